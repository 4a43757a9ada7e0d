"""Steps that look back a few registers, by what their number leaves when it is divided by how far they look.

    for k in sequential(2, 5001):               spans = 4999 // d
        v = x[k - d] + 1                        for r in vector(0, d, lanes=16, masked=True):
        x[k] = minimum(x[k], v)         ->          handed, own, next = x[2 - d + r], x[2 + r], x[2 + d + r]
                                                    for s in sequential(0, spans - 2):
                                                        start = 2 + s * d
                                                        last = x[start + 2 * d + r]
                                                        handed = minimum(own, handed + 1)
                                                        x[start + r] = handed
                                                        own, next = next, last
                                                (the steps that are left, from 2 + (spans - 2) * d on)

What a step needs of the one before stays in a register. Spans of few steps, one after the other, would read
it back from memory, and wait: a processor hands on what it has stored whole, but not parts of two stores.
Near a store under a mask it waits for any load, so that what a step overwrites is loaded two spans before.
Measured on Zen 5 alone, whose row says so (`ends_masked`): echoes of 3 to 20 steps take 0.25 to 0.5 of the
time, of up to 63 steps 0.3 to 0.95; of 48 and 56, which fill whole registers with float64s, 0.9, and in the
last cache 1.2. The fewest coins for an amount take three quarters of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.conditions import compare
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS
from ...ir.walk import nodes_in, transform_statements
from ..analysis.copies import copy_body
from ..analysis.strides import affine_accesses, stride
from ..analysis.work import REGISTER_BYTES

__all__ = ["Remainders"]

MOST = 4
"""Where steps look back so many times the lanes or further, what they read is in memory by then."""

SPANS = 4
"""So many spans there must be: some are left for steps one by one."""

AHEAD = 2
"""What a step overwrites is loaded so many spans before."""

MASKED = (4, 8)
"""The bytes of cells for which there are masks."""


@frozen
class Remainders:
    """A loop, counted by ones, whose steps need nothing of others but what the one `apart` before has made;
    the `store` of its body."""

    loop: For
    apart: Affine
    store: Store

    @staticmethod
    def of(loop: For, apart: Affine, all_apart: Sequence[Affine]) -> Remainders | None:
        """None where steps need more, or it would not pay."""
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        if len(stores) != 1 or any(steps not in (apart, Affine.of(0)) for steps in all_apart):
            return None
        found = Remainders(loop, apart, stores[0])
        return found if found._hands_on() and found._is_in_masks() and found._may_be_far() else None

    def _hands_on(self) -> bool:
        """Whether steps read what one of before has stored, and nothing else that any stores, but for what
        they overwrite themselves."""
        storage, at = self.store.tensor.storage, self.loop.body.index(self.store)
        before, after = (
            {node for node in nodes_in(part) if isinstance(node, Load) and node.tensor.storage is storage}
            for part in (self.loop.body[: at + 1], self.loop.body[at + 1 :])
        )
        handed = self._handed()
        return handed in before and not after and before <= {handed, self._own()}

    def _is_in_masks(self) -> bool:
        """Are all cells neighbours, or one for all steps, and are there masks for them?"""
        accesses = list(affine_accesses(self.loop.body))
        moves = [stride(tensor, index, self.loop.symbol) for tensor, index, _ in accesses]
        return all(move in (0, 1) for move in moves) and all(
            tensor.dtype.itemsize in MASKED
            for (tensor, _, _), move in zip(accesses, moves, strict=True)
            if move
        )

    def _may_be_far(self) -> bool:
        if not self.apart.is_constant:
            return True
        steps, trips = self.apart.constant, self.loop.trips
        fewest, most = self._between()
        return fewest <= steps <= most and (trips is None or trips >= SPANS * steps)

    def _between(self) -> tuple[int, int]:
        """How few and how many steps apart this pays. What is loaded `AHEAD` spans before lies behind the
        registers of all stores of before."""
        register = REGISTER_BYTES // self.store.tensor.dtype.itemsize
        return -(-register // (AHEAD + 1)), MOST * self.loop.lanes - 1

    def condition(self) -> Expr | None:
        """Whether steps are few enough apart, and there are enough; None if that is known. Nothing is added
        to the number, which might be too large."""
        if self.apart.is_constant and self.loop.trips is not None:
            return None
        steps, fewest = self.loop.hi - self.loop.lo, self.apart * SPANS
        enough: Expr = compare("greater_equal", Index(steps), Index(fewest))
        if self.apart.is_constant:
            return enough
        ((sign, symbol),) = self.apart.terms
        ends = sorted((end - self.apart.offset) * sign for end in self._between())
        for op, end in zip(("greater_equal", "less_equal"), ends, strict=True):
            within = compare(op, Index(Affine.of(symbol)), Const(end, I64))
            enough = Apply(OPS["bitwise_and"], (within, enough), BOOL)
        return enough

    def statements(self) -> Iterator[Stmt]:
        """The loop by remainders, and what it leaves for steps one by one."""
        lo, hi, apart = self.loop.lo, self.loop.hi, self.apart
        spans, remainder = Symbol("spans"), Symbol("r")
        yield Bind(spans, Apply(OPS["raw_divide"], (Index(hi - lo), Index(apart)), I64))
        count = Affine.of(spans) - AHEAD
        body = (*self._of_remainder(Affine.of(remainder), count),)
        lanes = replace(self.loop, symbol=remainder, lo=Affine.of(0), hi=apart, body=body)
        yield replace(lanes, kind=LoopKind.VECTOR, masked=True)
        bound, rest = self._after(count)
        yield from bound
        yield from copy_body((replace(self.loop, lo=rest, kind=LoopKind.SEQUENTIAL, lanes=1),), {}, {})

    def _after(self, spans: Affine) -> tuple[tuple[Stmt, ...], Affine]:
        """The step after so many spans, and what binds it."""
        if self.apart.is_constant:
            return (), self.loop.lo + spans * self.apart.constant
        start = Symbol("start")
        steps = Apply(OPS["multiply"], (Index(spans), Index(self.apart)), I64)
        return (Bind(start, Apply(OPS["add"], (Index(self.loop.lo), steps), I64)),), Affine.of(start)

    def _of_remainder(self, remainder: Affine, spans: Affine) -> Iterator[Stmt]:
        """All steps of one remainder but the last ones, in order."""
        handed, own, span = self._handed(), self._own(), Symbol("span")
        first, dtype = self.loop.lo + remainder, self.store.tensor.dtype
        before = Variable("handed", dtype)
        yield Define(before, self._at(handed, first))
        has_own = own in nodes_in(self.loop.body)
        ahead = [Variable("own", dtype) for _ in range(AHEAD)] if has_own else []
        for number, variable in enumerate(ahead):
            yield Define(variable, self._at(own, first + self.apart * number))
        bound, start = self._after(Affine.of(span))
        known: dict[Expr, Expr] = {handed: Local(before)}
        body, last = list(bound), list[Stmt]()
        if ahead:
            known[own], loaded = Local(ahead[0]), Variable("own", dtype)
            body.append(Define(loaded, self._at(own, start + remainder + self.apart * AHEAD)))
            values = (*ahead[1:], loaded)
            last = [Update(one, Local(value)) for one, value in zip(ahead, values, strict=True)]
        steps = transform_statements(
            self.loop.body, lambda node: known.get(node, node) if isinstance(node, Load) else node
        )
        for stmt in copy_body(steps, {self.loop.symbol: start + remainder}, {}):
            if isinstance(stmt, Store):
                made = Variable("made", dtype)
                body += (Define(made, stmt.value), replace(stmt, value=Local(made)))
                last.insert(0, Update(before, Local(made)))
            else:
                body.append(stmt)
        yield For(span, Affine.of(0), spans, (*body, *last))

    def _own(self) -> Load:
        """What a step overwrites."""
        return Load(self.store.tensor, self.store.index)

    def _handed(self) -> Load:
        """What the step `apart` before has stored."""
        return self._at(self._own(), Affine.of(self.loop.symbol) - self.apart)

    def _at(self, load: Load, step: Affine) -> Load:
        """The load of another step."""
        index = tuple(place.substitute({self.loop.symbol: step}) for place in load.index)
        return replace(load, index=index)
