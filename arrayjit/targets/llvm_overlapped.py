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

Where a lane needs what seldom one does, the loop is left, before that turn stores anything, and goes on by
whole vectors for some: a call among the parts would have all registers saved around it in every turn.

from start:  the parts of vectors, in turns  ->  to whole vectors from there, if a condition holds in any lane
             ->  done, behind the last one
whole:       AGAIN vectors, each one after the other, with what is seldom needed  ->  start, or done
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from ..frozen import slotted
from ..ir.cuts import alternating, handed_on, parts_of
from ..ir.dtype import I64
from ..ir.expr import Variable
from ..ir.loops import For, If
from .llvm_interleaved import Item, side_by_side
from .llvm_loops import lesser
from .llvm_memory import Lanes
from .llvm_text import Operand, Value, Writer

__all__ = ["Overlapped", "Vector"]

AGAIN = 8
"""Vectors that are done whole where one has to be: where many have to, few are begun in vain."""

Vector = Callable[[Operand], None]
"""Prints what is done for the vector that starts there."""

Locals = dict[Variable, Value]


@slotted
class Overlapped:
    """`outside` are the locals around the loop, `lives` those of the vector that each part is done for. What
    they hand from part to part is in locals around the loop, `held`, each for the part that gets it. `place`
    says where a vector is that would start there, `do` prints what is done for the vector that starts there,
    by its locals, `wanted` whether it needs what is seldom needed, and `repeat` a loop over vectors which
    hand on these locals. `turn` is where the vector starts that is at its last part; `exits` has it by the
    block that turns are left from, to where `whole` vectors are done."""

    writer: Writer
    loop: For
    lanes: Lanes
    outside: Locals
    place: Callable[[Operand], Operand]
    do: Callable[[Iterable[Item], Operand, Locals], None]
    wanted: Callable[[If, Operand, Locals], str]
    repeat: Callable[[Operand, Operand, tuple[Variable, ...], Vector], None]
    items: list[tuple[int, Item]] = field(init=False)
    lives: list[Locals] = field(init=False)
    held: dict[Variable, tuple[int, Variable]] = field(init=False)
    whole: str = field(init=False)
    turn: Operand = 0
    exits: dict[str, Operand] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = parts_of(self.loop)
        self.items = alternating([list(side_by_side(part, self.lanes)) for part in parts])
        self.whole = self.writer.fresh("whole")
        self.lives = [dict(self.outside) for _ in parts]
        self.held = {
            Variable(variable.hint, variable.dtype): (number, variable)
            for number, handed in enumerate(handed_on(parts))
            for variable in handed
        }

    def print(self, lo: Operand, hi: Operand) -> None:
        """The vectors from `lo` to `hi`, at least one."""
        if not any(isinstance(item, If) for _, item in self.items):
            self._in_turns(lo, hi)
            return
        writer = self.writer
        outside, start, done = writer.block, writer.fresh("start"), writer.fresh("done")
        writer.jump(start)
        writer.start(start)
        line, first = writer.reserve(), Value("%" + writer.fresh("i"), I64)
        with writer.scope():
            self._in_turns(first.text, hi)
            writer.jump(done)
        writer.start(self.whole)
        with writer.scope():
            again = writer.phi({block: Value(str(turn), I64) for block, turn in self.exits.items()}).text
            end = lesser(writer, writer.add(again, self.lanes.count * AGAIN), hi)
            self.repeat(again, end, (), self._one_whole)
            writer.fill_phi(line, first, {outside: lo, writer.block: end})
            writer.branch(f"{writer.compare('slt', end, hi)}", start, done)
        writer.start(done)

    def _in_turns(self, lo: Operand, hi: Operand) -> None:
        self._begin(lo)
        self.repeat(lo, hi, tuple(self.held), self._go_on)

    def _one_whole(self, at: Operand) -> None:
        self.do(side_by_side(self.loop.body, self.lanes), self.place(at), dict(self.outside))

    def _begin(self, lo: Operand) -> None:
        """The first vectors, up to where the first of them is at its last part: what is handed on."""
        self.turn = lo
        for ahead in range(len(self.loop.cuts)):
            self._turn(self.writer.add(lo, self.lanes.count * ahead), ahead + 1)
        self._hold()

    def _go_on(self, at: Operand) -> None:
        """The loop's body: the last part of the vector that starts there, and parts of those behind it."""
        self.turn = at
        self.lives = [dict(self.outside) for _ in self.lives]
        for held, (number, variable) in self.held.items():
            self.lives[number][variable] = self.outside[held]
        ahead = len(self.loop.cuts)
        self.writer.takes_turns = True
        self._turn(self.writer.add(at, self.lanes.count * ahead), ahead + 1)
        self.writer.takes_turns = False
        self._hold()

    def _turn(self, first: Operand, parts: int) -> None:
        """The first parts, each for another vector; then each vector is at its next part."""
        add, lanes = self.writer.add, self.lanes.count
        starts = [self.place(add(first, -lanes * number)) for number in range(parts)]
        for number, item in self.items:
            if number < parts and isinstance(item, If):
                self._leave_if(self.wanted(item, starts[number], self.lives[number]))
            elif number < parts:
                self.do((item,), starts[number], self.lives[number])
        self.lives = [dict(self.outside), *self.lives[:-1]]

    def _leave_if(self, condition: str) -> None:
        stay = self.writer.fresh("stay")
        self.exits[self.writer.block] = self.turn
        self.writer.branch(condition, self.whole, stay, seldom=True)
        self.writer.start(stay)

    def _hold(self) -> None:
        for held, (number, variable) in self.held.items():
            self.outside[held] = self.lives[number][variable]
