"""Expressions of random loop programs: numbers, and views of vectors and matrices whose lengths agree."""

from __future__ import annotations

from itertools import count
from typing import Any

__all__ = ["NUMBERS", "Operands"]

NUMBERS = ("1", "2", "-1", "3", "0.5", "0")


class Operands:
    """What can be read at some point of a program: `known` are the names that surely have a value there,
    `assigned` those that may have one, `indices` the integers that are surely below n.

    Choices are read off `entropy`, one byte each, the first option when none is left: so that hypothesis
    has nothing but bytes to vary and to shrink."""

    def __init__(self, entropy: bytes) -> None:
        self._entropy = iter(entropy)
        self._fresh = count()
        self.known: list[str] = []
        self.assigned: set[str] = set()
        self.indices: list[str] = []
        self.size = 0
        self.bounded = False

    # ---- choices -------------------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        return low + next(self._entropy, 0) % (high - low + 1)

    def choose(self, *options: Any) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def seldom(self, one_in: int = 10) -> bool:
        return self.integer(1, one_in) == one_in

    def fresh(self, kind: str) -> str:
        return f"{kind}{next(self._fresh)}"

    def names(self, kind: str) -> list[str]:
        return [name for name in self.known if name[0] == kind]

    def some(self, kind: str) -> str | None:
        """A name of a kind; now and then one that has no value in the first iteration."""
        names = self.names(kind)
        if self.seldom(30):
            names += sorted(name for name in self.assigned if name[0] == kind)
        return self.choose(*names) if names else None

    # ---- numbers -------------------------------------------------------------------------------------

    def number(self, depth: int = 1) -> str:
        """An expression that gives a number."""
        if depth and self.integer(0, 1):
            sign = self.choose("+", "-", "+", "*")
            left = self.number(depth - 1)
            right = self.choose("2", "-1", "0.5") if sign == "*" else self.number(depth - 1)
            return f"({left} {sign} {right})"
        options = [
            *NUMBERS,
            *self.names("s"),
            *self.names("s"),
            *self.names("c"),
            *self.names("e"),
            *self.indices,
        ]
        options += [self.cell(), self.cell()] if self.size else []
        if self.seldom(4):
            options = [self._reduction()]
        elif self.seldom(8):
            options = [f"np.maximum({self.cell()}, {self.choose(*options)})", f"abs({self.choose(*options)})"]
            options += [f"np.where({b}, 1, {self.cell()})" for b in self.names("b")]
        return str(self.choose(*options))

    def _reduction(self) -> str:
        length = self.choose(*self.lengths())
        left, right = self.vector_part(length), self.vector_part(length)
        texts = ("{0}.sum()", "({0} @ {1} + 0)", "(np.dot({0}, {1}) + 0)", "({0} * {1}).sum()")
        return str(self.choose(*texts)).format(left, right)

    def index(self) -> str:
        """An index of an axis of length n, in range most of the time."""
        options = ["0", "-1"]
        for i in self.indices:
            options += [f"n - 1 - {i}", f"-1 - {i}", f"{i} - 1", f"{i} // 2", f"({i} + 1) % n", i, i, i]
            options += [f"idx[{i}]"] if self.seldom(3) else []
        options += [f"{c} % n" for c in self.names("c")]
        if self.seldom():
            options += [f"{i} + 1" for i in self.indices] + [
                *self.names("c"),
                *(("k",) if self.bounded else ()),
            ]
        return str(self.choose(*options))

    def cell(self) -> str:
        vectors = ("x", "x", "y", *self.names("u"), *self.names("r"))
        if self.integer(0, 2) == 0:
            return f"{self.choose('A', 'A.T', *self.names('M'))}[{self.index()}, {self.index()}]"
        return f"{self.choose(*vectors)}[{self.index()}]"

    # ---- vectors -------------------------------------------------------------------------------------

    def lengths(self) -> tuple[str, ...]:
        """Lengths that parts of vectors of length n may have here."""
        own = [
            f(i)
            for i in self.indices
            for f in ("{}".format, "n - {}".format, "{} + 1".format, "n - {} - 1".format)
        ]
        known = ["n", "n - 1", *(("k", "n - k", "n - 2k") if self.bounded else ())]
        return (*known, "half", *own)

    def slices(self, length: str) -> tuple[str, ...]:
        """Ways to take `length` elements out of n."""
        fixed = {
            "n": ("", "", "", "[::-1]", "[:]"),
            "n - 1": ("[1:]", "[:-1]", "[: n - 1]", "[:0:-1]", "[::-1][1:]"),
            "half": ("[::2]", "[::2][::-1]"),
            "k": ("[:k]", "[:k][::-1]"),
            "n - k": ("[k:]", "[k:][::-1]"),
            "n - 2k": ("[k : n - k]", "[k : n - k][::-1]"),
        }
        if length in fixed:
            return fixed[length]
        if length.startswith("n - "):
            start = length[4:].replace(" - 1", " + 1")
            return (f"[{start} :]", f"[: {length}]", f"[{start} :][::-1]", f"[::-1][{start} :]")
        texts = (f"[:{length}]", f"[:{length}][::-1]", f"[::-1][:{length}]")
        return (*texts, f"[{length[:-4]}::-1]") if length.endswith(" + 1") else (*texts, f"[n - {length} :]")

    def row(self) -> str:
        """A vector of length n that lies in a matrix."""
        name = self.choose("A", "A", *self.names("M"))
        return str(
            self.choose(f"{name}[{self.index()}]", f"{name}[:, {self.index()}]", f"{name}.T[{self.index()}]")
        )

    def parts(self, length: str) -> list[str]:
        """Views of `length` elements."""
        whole = ["x", "y", *self.names("u"), *self.names("u"), *self.names("r")]
        whole += [self.row(), self.row()] if self.size else []
        return [f"{name}{self.choose(*self.slices(length))}" for name in whole]

    def target(self, length: str = "") -> tuple[str, str]:
        """A view to write into, and its length."""
        length = length or self.choose(*self.lengths())
        text = self.choose(*self.parts(length))
        return (text if "[" in text else f"{text}[:]"), length

    def vector_part(self, length: str) -> str:
        return str(self.choose(*self.parts(length)))

    def vector(self, length: str) -> str:
        """An expression that gives `length` elements, or a number; no view, since NumPy copies cells that it
        has already overwritten where views of one axis cross."""
        if self.integer(0, 4) == 0:
            return self.number()
        left, right = self.vector_part(length), self.vector_part(length)
        texts = ["{0}.copy()", "{0} + {1}", "{0} - {1}", "{0} + {2}", "{0} * {3}", "np.maximum({0}, {1})"]
        texts += ["np.where({0} > {1}, {0}, {2})", "np.cumsum({0})", "np.flip({0}) + 1"]
        factor = self.choose("2", "-1", "0.5")
        return str(self.choose(*texts)).format(left, right, self.number(0), factor)

    def fresh_vector(self) -> str:
        """An expression that makes a new vector of length n. Signs of zeros in products are not NumPy's."""
        left, right = self.vector_part("n"), self.vector_part("n")
        texts = ["{0}.copy()", "{0} + {1}", "{0} + {2}", "-{0}", "{0} * 0.5", "np.zeros(n)", "np.cumsum({0})"]
        texts += ["np.where({0} > 0, {0}, {1})", "A @ {0} + 0", "np.roll({0}, 1)"]
        return str(self.choose(*texts)).format(left, right, self.number(0))
