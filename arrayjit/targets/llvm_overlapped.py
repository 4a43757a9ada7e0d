"""The parts of a vector loop's body, each for another vector, one beside the other.

for i in vector(0, 64, lanes=8, cuts=(2,)):     a0 = x[0];  b0 = a0 * a0
    a = x[i]                                    for i = 0, 8, ..., 56:
    b = multiply(a, a)                              a, b = phi(a0, a1), phi(b0, b1)
    c = sqrt(b)                           ->        a1 = x[min(i + 8, 56)]
    y[i] = add(a, c)                                c = sqrt(b)
                                                    b1 = a1 * a1
                                                    y[i] = a + c

A processor looks so many instructions ahead and no further: where those are one chain, in which each waits
for another, a second chain has to be among them. The end needs no code of its own: the vectors behind the
last one are the last one once more, and nothing is stored for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Union

from ..frozen import slotted
from ..ir.cuts import handed_on, parts_of
from ..ir.expr import Variable
from ..ir.loops import For, Stmt, Store
from .llvm_interleaved import side_by_side
from .llvm_memory import Lanes
from .llvm_text import Operand, Value, Writer

__all__ = ["Item", "Overlapped"]

Item = Union[Stmt, tuple[Store, ...]]
"""A statement, or stores that are done together."""

Locals = dict[Variable, Value]


@slotted
class Overlapped:
    """`outside` are the locals around the loop, `lives` those of the vector that each part is done for. What
    they hand from part to part is in locals around the loop, `held`, each for the part that gets it. `place`
    says where a vector is that would start there, `one` prints what is done for the vector that starts there,
    by its locals."""

    writer: Writer
    loop: For
    lanes: Lanes
    outside: Locals
    place: Callable[[Operand], Operand]
    one: Callable[[Item, Operand, Locals], None]
    items: list[tuple[int, Item]] = field(init=False)
    lives: list[Locals] = field(init=False)
    held: dict[Variable, tuple[int, Variable]] = field(init=False)

    def __post_init__(self) -> None:
        parts = parts_of(self.loop)
        self.items = list(_alternating([list(side_by_side(part, self.lanes)) for part in parts]))
        self.lives = [dict(self.outside) for _ in parts]
        self.held = {
            Variable(variable.hint, variable.dtype): (number, variable)
            for number, handed in enumerate(handed_on(parts))
            for variable in handed
        }

    def begin(self, lo: Operand) -> tuple[Variable, ...]:
        """The first vectors, up to where the first of them is at its last part: what is handed on."""
        for ahead in range(len(self.loop.cuts)):
            self._turn(self.writer.add(lo, self.lanes.count * ahead), ahead + 1)
        self._hold()
        return tuple(self.held)

    def go_on(self, at: Operand) -> None:
        """The loop's body: the last part of the vector that starts there, and parts of those behind it."""
        self.lives = [dict(self.outside) for _ in self.lives]
        for held, (number, variable) in self.held.items():
            self.lives[number][variable] = self.outside[held]
        ahead = len(self.loop.cuts)
        self._turn(self.writer.add(at, self.lanes.count * ahead), ahead + 1)
        self._hold()

    def _turn(self, first: Operand, parts: int) -> None:
        """The first parts, each for another vector; then each vector is at its next part."""
        add, lanes = self.writer.add, self.lanes.count
        starts = [self.place(add(first, -lanes * number)) for number in range(parts)]
        for number, item in self.items:
            if number < parts:
                self.one(item, starts[number], self.lives[number])
        self.lives = [dict(self.outside), *self.lives[:-1]]

    def _hold(self) -> None:
        for held, (number, variable) in self.held.items():
            self.outside[held] = self.lives[number][variable]


def _alternating(parts: list[list[Item]]) -> Iterator[tuple[int, Item]]:
    """The statements of all parts, each with its part's number, evenly mixed; those of later parts first."""
    places = [
        ((place + 0.5) / len(part), -number, item)
        for number, part in enumerate(parts)
        for place, item in enumerate(part)
    ]
    for _, number, item in sorted(places, key=lambda placed: placed[:2]):
        yield -number, item
