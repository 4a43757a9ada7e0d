"""Programs as text: a function, and another that makes its arguments anew for each run.

A `Writer` writes one line at a time and runs it at once on arguments of its own, so that the next line
can be chosen to fit the shapes and values that it finds; a line that NumPy refuses is left out, or ends
the program, which then tests the exception.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

__all__ = ["INDENT", "Draw", "LoopProgram", "Writer", "Written"]

INDENT = "    "

Draw = Callable[[st.SearchStrategy[Any]], Any]

_numbers = count()


@dataclass(frozen=True)
class Written:
    """A program: lines that make the arguments, the arguments' names, the function's lines, and what it
    returns. `approximate` has, by place in the result, how far the numbers may be from NumPy's."""

    making: tuple[str, ...]
    arguments: tuple[str, ...]
    body: tuple[str, ...]
    results: tuple[str, ...]
    approximate: dict[int, Any]

    def __str__(self) -> str:
        names = ", ".join(self.arguments)
        made = f"return {names}," if names else "return ()"
        returned = f"return {', '.join(self.results)}," if self.results else "return ()"
        make = "\n".join(f"    {line}" for line in (*self.making, made))
        body = "\n".join(f"    {line}" for line in (*self.body, returned))
        return f"import numpy as np\n\n\ndef make():\n{make}\n\n\ndef program({names}):\n{body}\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self}")

    def load(self) -> tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]:
        """The function and the maker of its arguments; errors show their source lines."""
        names = _run(str(self))
        return names["program"], names["make"]


@dataclass(frozen=True)
class LoopProgram:
    """Helper functions, the function's parameters, lines and results, and the arguments of each call.

    `may_not_run` says that a loop may run zero times, which only the run shows: it leaves the NumPy number
    where Python keeps the number that it started from."""

    helpers: tuple[str, ...]
    parameters: tuple[str, ...]
    body: tuple[str, ...]
    results: tuple[str, ...]
    calls: tuple[tuple[str, ...], ...]
    may_not_run: bool
    features: frozenset[str]

    def __str__(self) -> str:
        names = ", ".join(self.parameters)
        returned = f"return ({', '.join(self.results)},)" if self.results else "return ()"
        parts = [*self.helpers, _function(f"program({names})", (*self.body, returned))]
        for number, lines in enumerate(self.calls):
            parts.append(_function(f"make{number}()", (*lines, f"return {names},")))
        return "import numpy as np\n\n\n" + "\n\n\n".join(parts) + "\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self}")

    def load(self) -> tuple[Callable[..., Any], list[Callable[[], tuple[Any, ...]]]]:
        """The function and the makers of its arguments; errors show their source lines."""
        names = _run(str(self))
        return names["program"], [names[f"make{number}"] for number in range(len(self.calls))]


def _function(head: str, lines: tuple[str, ...]) -> str:
    return "\n".join((f"def {head}:", *(INDENT + line for line in lines)))


def _run(text: str) -> dict[str, Any]:
    """The names that a program defines."""
    name = f"written-{next(_numbers)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    exec(compile(text, name, "exec"), names)
    return names


class Writer:
    """Writes one program."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.names: dict[str, Any] = {"np": np}
        self.making: list[str] = []
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.ended = False
        self.approximate: dict[str, Any] = {}
        self._fresh = count()

    def choose(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def seldom(self) -> bool:
        return self.integer(0, 9) == 9

    def make(self, line: str) -> None:
        """Add a line to those that make the arguments."""
        exec(line, self.names)
        self.making.append(line)

    def argument(self, name: str, text: str) -> None:
        self.make(f"{name} = {text}")
        self.arguments.append(name)

    def fresh(self) -> str:
        return f"v{next(self._fresh)}"

    def line(self, text: str, may_fail: bool = True) -> bool:
        """Add a line to the function, if NumPy accepts it. Whether it did."""
        if self.ended:
            return False
        try:
            with np.errstate(all="ignore"):
                exec(text, self.names)
        except Exception:
            if may_fail and self.seldom():
                self.body.append(text)
                self.ended = True
            return False
        self.body.append(text)
        return True

    def lines(self, *texts: str) -> None:
        """Add a loop to the function. Where NumPy raises an exception, that is what the program tests."""
        try:
            with np.errstate(all="ignore"):
                exec("\n".join(texts), self.names)
        except Exception:
            self.ended = True
        self.body.extend(texts)

    def value(self, text: str) -> Any:
        """What an expression gives now, or None if NumPy refuses it."""
        try:
            with np.errstate(all="ignore"):
                return eval(text, self.names)
        except Exception:
            return None

    def arrays(self) -> list[str]:
        """The names that hold arrays now, but for approximate ones."""
        known = [*self.arguments, *(name for name in self.names if name[0] == "v")]
        return [
            name
            for name in known
            if isinstance(self.names[name], np.ndarray) and name not in self.approximate
        ]

    def written(self, most: int = 4) -> Written:
        """The program, which returns some of its values."""
        known = [*self.arguments, *(name for name in self.names if name[0] == "v")]
        results = self.draw(st.lists(st.sampled_from(known), min_size=1, max_size=most, unique=True))
        return Written(
            tuple(self.making),
            tuple(self.arguments),
            tuple(self.body),
            tuple(results),
            {n: self.approximate[name] for n, name in enumerate(results) if name in self.approximate},
        )
