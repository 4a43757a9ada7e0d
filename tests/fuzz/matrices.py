"""Random programs of loops over rows, columns and triangles of matrices, as in factorisations, recurrences or
histograms: what a step reads may be what another step writes, in part, turned, or where an array says.

`A` and `B` are matrices of n by n, `x` and `y` vectors, `p` has positions, of which some come twice; `m` is a
number of steps. Numbers are whole, and stay so small that every sum is exact in any order, or they wrap.
Nothing is copied as it is: NumPy copies a column wrongly to a row that it crosses.
"""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from written import INDENT, Draw, Writer, Written

__all__ = ["matrix_programs"]

LARGEST = {"f4": 2.0**16, "f8": 2.0**30, "c8": 2.0**14, "c16": 2.0**28}
DTYPES = ("i8", "i8", "i4", "f8", "f8", "f4", "c16", "c8")
SIZES = (5, 6, 7, 3, 4, 9, 2, 17, 1, 12)
LAYOUTS = ("{0}", "{0}", "{0}", "np.asfortranarray({0})", "{0}.T", "{0}[::-1]", "{0}[:, ::-1]")
HEADS = (
    "for k in range(n):", "for k in range(n):", "for k in range(1, n):", "for k in range(n - 1):",
    "for k in range(n - 1, -1, -1):", "for k in range(0, n, 2):", "for k in range(min(m, n)):",
)  # fmt: skip
INNER = ("k", "n", "k, n", "n - k", "k + 1, n", "n - 1, k, -1", "1, n", "m")
EXTENTS = (":", ":", ":k", "k:", "k + 1:", ":k + 1", "1:-1", "::2", "::-1", "k::2", "k::-1", "n - k:")
SHIFTS = (("1:", ":-1"), (":-1", "1:"), ("k:", ":n - k"), (":k", "n - k:"), ("1:-1", "2:"), (":-2", "2:"))
ASSIGNS = ("+=", "+=", "-=", "= +")
ASSIGNS_TO_INTEGERS = ("*=", "^=", "|=")
STEPS = (
    "{M}[k, {S}] {o} {N}[k, {S}]", "{M}[k, {S}] {o} {v}[{S}]", "{M}[{S}, k] {o} {N}[k, {S}]",
    "{M}[{S}, k] {o} {v}[k] * {w}[{S}]", "{M}[{S}] {o} {v}", "{M}[:, {S}] {o} {N}[:, {S}]",
    "{M}[{S}, {T}] {o} np.outer({v}[{S}], {w}[{T}])", "{M}[{S}, {T}] {o} {N}[{S}, {T}]",
    "{M}[{S}, {S}] {o} {N}[{S}, {S}].T", "{M}[{S}, {T}] {o} {N}[{S}, k, None] * {M}[k, {T}]",
    "{v}[k] {o} {M}[k, {S}] @ {w}[{S}]", "{v}[k] {o} ({M}[{S}, k] * {w}[{S}]).sum()",
    "{v}[{S}] {o} {w}[{S}] * {M}[k, k]", "{v}[{S}] {o} {M}[{S}, {T}] @ {w}[{T}]", "{v} {o} {M} @ {w}",
    "{M}[{S}] {o} {N}[{S}] @ {M}", "{v}[k] {o} {M}[{S}, {T}].sum()",
    "{v}[{S}] {o} {M}[{S}, {T}].max(axis=1, initial=0)",
    "{v}[p[k]] {o} {w}[k]", "{v}[p[{S}]] = +{w}[{S}]", "{v}[{S}] {o} {w}[p[{S}]]", "{v}[k] {o} {M}[p[k], k]",
    "np.add.at({v}, p[{S}], {w}[{S}])", "np.subtract.at({M}, (p[{S}], k), {w}[{S}])",
    "np.add.at({M}, p[{S}], {N}[{S}])", "np.maximum.at({v}, p, {M}[k])", "np.add.at({v}, p, {M}[:, k])",
    "{M}[p[k], {S}] {o} {w}[{S}]", "{M}[{S}, p[k]] {o} {v}[{S}]", "{M}[p[{S}]] = +{N}[{S}]",
    "{v}[{P}] {o} {w}[{Q}]", "{M}[k, {P}] {o} {N}[k, {Q}]", "{M}[{P}, {S}] {o} {N}[{Q}, {S}]",
    "{M}[{P}, {P}] {o} {N}[{Q}, {Q}]", "{M}[k] {o} {M}[k - 1]", "{M}[:, k] {o} {M}[:, k - 1] + {v}",
    "{v} {o} {v}.sum()", "{v} -= {v}.max()", "{v}[{S}] {o} ({v} * {w}).sum()", "{M}[{S}] -= {M}.min()",
    "{v}[k] {o} {v}[k - 1] + {w}[k]", "{M}[k, k] {o} {v}[k]", "s += {v}[k]", "{v}[{S}] {o} s",
    "{v}[{S}] = np.where({w}[{S}] > {v}[k], {v}[{S}], {M}[k, {S}])", "x, y = y, x", "{v} = {w} + {M}[k]",
    "t = {M}[k] - {v}\n{M}[k] = t[::-1]", "t = {v}[{S}].copy()\n{v}[{S}] {o} {w}[{S}]\n{w}[{S}] = t",
)  # fmt: skip
INNER_STEPS = (
    "{v}[l] {o} {M}[k, l]", "{M}[k, l] {o} {v}[l] * {w}[k]", "{M}[l, k] {o} {M}[k, l]", "{v}[p[l]] += 1",
    "{v}[l] {o} {v}[l - 1] + {M}[l, k]", "{M}[l] {o} {N}[l, k]", "{M}[l, {S}] {o} {M}[l, {S}] * {v}[k]",
    "{M}[k, {S}] {o} {M}[l, {S}]", "{M}[k, l] {o} {M}[k, :l] @ {N}[l, :l]", "{v}[k] {o} {M}[k, l] * {w}[l]",
    "{M}[k, l] = np.maximum({M}[k - 1, l], {M}[k, l - 1]) + {v}[l]", "s += {M}[l, k]",
)  # fmt: skip


def matrix_programs() -> st.SearchStrategy[Written]:
    """Programs of a few loops."""
    return st.composite(_written)()


def _written(draw: Draw) -> Written:
    writer = _Writer(draw)
    writer.begin()
    for _ in range(writer.integer(1, 3)):
        writer.loops()
    return writer.written()


class _Writer(Writer):
    """Writes one program."""

    def begin(self) -> None:
        n, dtype, shift = self.choose(*SIZES), self.choose(*DTYPES), self.integer(0, 4)
        self.dtype = dtype
        few = "{0}, -1 + 1j, 1, 2j, 2, 1 - 2j, -2" if dtype[0] == "c" else "{0}, -1, 1, 0, 2, 1, -2"
        numbers = f"np.resize(np.array([{few}]), {{1}}).astype({{2!r}})"
        self.argument("A", self.choose(*LAYOUTS).format(numbers.format(shift, (n, n), dtype)))
        second = self.choose(*LAYOUTS).format(numbers.format(1 - shift, (n, n), dtype))
        self.argument("B", self.choose(second, second, second, "A", "A.T"))
        self.argument("x", numbers.format(2, n, dtype))
        self.argument("y", self.choose(numbers.format(shift, n, dtype), "x[::-1]", "A[0]", "A[:, -1]"))
        self.argument("p", f"np.resize(np.array([{shift}, 1, 0, 3, 1]) % {n}, {n})")
        self.argument("n", str(n))
        self.argument("m", str(self.integer(0, 3)))
        self.line("s = x[0]")
        self.assigns = ASSIGNS if dtype[0] in "fc" else ASSIGNS + ASSIGNS_TO_INTEGERS

    def loops(self) -> None:
        """A loop over `k`, with what it does in each step; all of it a few times, now and then."""
        steps = [step for _ in range(self.integer(1, 3)) for step in self.step()]
        lines = [self.choose(*HEADS), *(INDENT + step for step in steps)]
        if self.integer(0, 3) == 3:
            lines = ["for _ in range(m):", *(INDENT + line for line in lines)]
        if self.line(("\n" + INDENT).join(lines), may_fail=False):
            largest = LARGEST.get(self.dtype, np.inf)
            assume(all(np.all(np.abs(self.names[name]) < largest) for name in "ABxys"))

    def step(self) -> list[str]:
        if self.integer(0, 3) < 3:
            return self.filled(self.choose(*STEPS)).split("\n")
        head = f"for l in range({self.choose(*INNER)}):"
        return [head, INDENT + self.filled(self.choose(*INNER_STEPS))]

    def filled(self, pattern: str) -> str:
        """A pattern with matrices, vectors, and parts of both chosen."""
        there, from_there = self.choose(*SHIFTS)
        return pattern.format(
            M=self.choose("A", "A", "B", "A.T"),
            N=self.choose("B", "B", "A", "B.T"),
            v=self.choose("x", "x", "y"),
            w=self.choose("y", "y", "x"),
            S=self.choose(*EXTENTS),
            T=self.choose(*EXTENTS),
            P=there,
            Q=from_there,
            o=self.choose(*self.assigns),
        )
