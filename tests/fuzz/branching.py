"""Random functions of nested `if`, `while`, `for`, `break`, `continue` and `return` on computed values."""

from __future__ import annotations

from random import Random

__all__ = ["branching_program"]

MOST_LINES = 40
DEEPEST = 4
RANGES = ("6", "n", "1, 5", "5, -1, -1", "n - 1")


def branching_program(seed: int) -> str:
    """A function `program(x, y, a, n)` of an array of six numbers, one that it writes, a NumPy number and 6,
    that ends."""
    return _Writer(Random(seed)).program()


class _Writer:
    """The lines so far. `places` are the variables that index arrays."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._lines: list[str] = []
        self._places: list[str] = []
        self._made = 0

    def program(self) -> str:
        self._line(0, "def program(x, y, a, n):")
        for line in ("b = x[0]", "c = a + x[1]", "a = a * 1.0 + x[2]"):
            self._line(1, line)
        names = ["a", "b", "c"]
        for _ in range(self._random.randint(2, 4)):
            self._statement(1, names, 1, False)
        self._line(1, f"return {self._number(['a', 'b', 'c'])}, {self._random.choice(['a', 'b', 'c'])}")
        return "\n".join(self._lines) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _new(self, stem: str) -> str:
        self._made += 1
        return f"{stem}{self._made}"

    def _place(self) -> str:
        known = self._places and self._random.random() < 0.8
        return self._random.choice(self._places) if known else str(self._random.randrange(6))

    def _number(self, names: list[str], depth: int = 0) -> str:
        kind = self._random.random()
        if depth > 1 or kind < 0.35:
            return self._random.choice(names)
        if kind < 0.5:
            return repr(round(self._random.uniform(-2, 2), 2))
        if kind < 0.65:
            return f"x[{self._place()}]"
        one, other = self._number(names, depth + 1), self._number(names, depth + 1)
        if kind < 0.72:
            return f"({one} if {self._condition(names)} else {other})"
        return f"({one} {self._random.choice('+-*')} {other})"

    def _condition(self, names: list[str]) -> str:
        kind, choose = self._random.random(), self._random.choice
        plain = f"{self._number(names, 1)} {choose(['<', '>', '<=', '>='])} {self._number(names, 1)}"
        if kind < 0.3:
            return f"({plain} {choose(['and', 'or'])} {self._number(names, 1)} > {self._number(names, 1)})"
        if kind < 0.36:
            return f"not {plain}"
        if kind < 0.42:
            return f"{choose(names)} < {choose(names)} < 3"
        if kind < 0.5 and self._places:
            return f"{choose(self._places)} {choose(['==', '>', '<'])} {self._random.randrange(5)}"
        return plain

    def _statement(self, depth: int, names: list[str], nested: int, in_loop: bool) -> None:
        kind = self._random.random() * (0.46 if nested >= DEEPEST else 1.0)
        if kind < 0.33:
            self._line(
                depth,
                f"{self._random.choice(names)} {self._random.choice(['', '+', '-'])}= {self._number(names)}",
            )
        elif kind < 0.40:
            self._line(depth, f"y[{self._place()}] = {self._number(names)}")
        elif kind < 0.46:
            name = self._new("t")
            self._line(depth, f"{name} = {self._number(names)}")
            names.append(name)
        elif kind < 0.70:
            self._branch(depth, names, nested, in_loop)
        elif kind < 0.86:
            self._for(depth, names, nested, in_loop)
        else:
            self._while(depth, names, nested)

    def _branch(self, depth: int, names: list[str], nested: int, in_loop: bool) -> None:
        self._line(depth, f"if {self._condition(names)}:")
        self._block(depth + 1, names, nested + 1, in_loop)
        if self._random.random() < 0.3:
            self._line(depth, f"elif {self._condition(names)}:")
            self._block(depth + 1, names, nested + 1, in_loop)
        if self._random.random() < 0.5:
            self._line(depth, "else:")
            self._block(depth + 1, names, nested + 1, in_loop)

    def _for(self, depth: int, names: list[str], nested: int, in_loop: bool) -> None:
        place, value, kind = self._new("i"), self._new("v"), self._random.random()
        over = (
            "enumerate(x)" if kind < 0.2 else "x" if kind < 0.4 else f"range({self._random.choice(RANGES)})"
        )
        target = f"{place}, {value}" if kind < 0.2 else value if kind < 0.4 else place
        self._line(depth, f"for {target} in {over}:")
        places = [place] if place in target else []
        self._places += places
        self._block(depth + 1, [*names, value] if value in target else names, nested + 1, True)
        self._places = [name for name in self._places if name not in places]
        if self._random.random() < 0.15:
            self._line(depth, "else:")
            self._block(depth + 1, names, nested + 1, in_loop)

    def _while(self, depth: int, names: list[str], nested: int) -> None:
        count, most = self._new("k"), self._random.randint(1, 6)
        self._line(depth, f"{count} = 0")
        if self._random.random() < 0.7:
            self._line(depth, f"while {count} < {most} and {self._condition(names)}:")
            self._line(depth + 1, f"{count} += 1")
        else:
            self._line(depth, "while True:")
            self._line(depth + 1, f"{count} += 1")
            self._line(depth + 1, f"if {count} > {most}: break")
        self._block(depth + 1, names, nested + 1, True)

    def _block(self, depth: int, names: list[str], nested: int, in_loop: bool) -> None:
        before, own = len(self._lines), list(names)
        for _ in range(self._random.randint(1, 3)):
            if len(self._lines) <= MOST_LINES:
                self._statement(depth, own, nested, in_loop)
        kind = self._random.random()
        if in_loop and kind < 0.34:
            self._line(depth, "break" if kind < 0.18 else "continue")
        elif kind < 0.44:
            self._line(depth, f"return {self._number(own)}, {self._random.choice(own)}")
        elif len(self._lines) == before:
            self._line(depth, "pass")
