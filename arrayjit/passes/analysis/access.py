"""Which memory a statement touches, and when two statements may meet in one cell.

A `Region` is what one access touches while some *aligned* loops stand at one iteration: per dimension
an affine base over the aligned (and outer) symbols, widened by the range of the loops inside. With `j`
inside and `i` aligned, `x[i, j + 1]` for `j in range(0, 8)` is `x[i .. i, 1 .. 8]`.

Where positions leave others out, a region says which: with `n = i % 2`, `x[i, n + 2 * j]` is those cells
of `x[i, 0 .. 15]` that are in the *phase* of `i` but for multiples of 2, as none of the next row's is.

Two regions of one storage either never meet or meet at certain *distances*: iteration of the first
minus iteration of the second, per aligned symbol. Every answer is conservative: unsure means any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Union

from ...frozen import frozen, slotted
from ...ir.assign import ArrayParam, Param
from ...ir.expr import Apply, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Barrier,
    Bind,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Lap,
    Multiply,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import nodes_in, walk

__all__ = [
    "ANY",
    "Distance",
    "Effects",
    "Range",
    "Ranges",
    "Region",
    "Span",
    "Touched",
    "declared",
    "distances",
    "effects",
    "given",
    "is_injective",
    "loads",
    "loop_range",
    "mentioned",
    "reads",
    "region",
    "visible",
]

Range = tuple[int, int]
"""First and last value of a symbol, both included."""

Ranges = Mapping[Symbol, Range]

Distance = tuple[float, float]
"""Least and greatest distance between two iterations that meet."""

Phases = Mapping[Symbol, tuple[Affine, int]]
"""What symbols are but for multiples of a number."""

NO_PHASES: Phases = {}

ZERO = Affine.of(0)

ANY: Distance = (-math.inf, math.inf)

REMAINDER = OPS["remainder"]


@frozen
class Span:
    """Positions `base + low ..= base + high` along one dimension, or those of them that are as `phase` is but
    for multiples of `step`."""

    base: Affine
    low: int = 0
    high: int = 0
    phase: Affine = ZERO
    step: int = 1


Spans = tuple[Union[Span, None], ...]


@frozen
class Region:
    """Cells of one tensor; a span of None may be anywhere along its dimension."""

    tensor: Tensor
    spans: Spans

    def renamed(self, values: Mapping[Symbol, Affine]) -> Region:
        """The region with aligned symbols replaced."""
        if not values:
            return self
        return Region(self.tensor, tuple(span and _renamed(span, values) for span in self.spans))

    def without(self, inner: Mapping[Symbol, Range | None]) -> Region:
        """The region seen from outside the loops of `inner`, whose symbols it no longer mentions."""
        if not inner:
            return self
        return Region(self.tensor, tuple(span and _widen(span, inner) for span in self.spans))

    def linear(self) -> Span | None:
        """The one span in elements from the storage's first cell; None if it is not known."""
        try:
            strides = self.tensor.element_strides()
        except ValueError:
            return None
        low = high = 0
        parts: list[tuple[Affine, int]] = []
        for span, stride in zip(self.spans, strides, strict=True):
            if span is None or not stride.is_constant:
                return None
            step = stride.offset
            ends = (span.low * step, span.high * step)
            low, high = low + min(ends), high + max(ends)
            parts.append((span.base, step))
        return Span(Affine.total(parts), low, high)


def _renamed(span: Span, values: Mapping[Symbol, Affine]) -> Span:
    base, phase = span.base.substitute(values), span.phase.substitute(values)
    is_same = base is span.base and phase is span.phase
    return span if is_same else Span(base, span.low, span.high, phase, span.step)


def _widen(span: Span, inner: Mapping[Symbol, Range | None]) -> Span | None:
    for _, symbol in span.base.terms + span.phase.terms:
        if symbol in inner:
            return _wide(span.base, span.low, span.high, _phase_of(span), inner, NO_PHASES)
    return span


def _spanned(position: Affine, inner: Mapping[Symbol, Range | None], phases: Phases) -> Span | None:
    """Where a position is while the loops of `inner` run."""
    for _, symbol in position.terms:
        if symbol in inner:
            return _wide(position, 0, 0, (position, 0), inner, phases)
    return Span(position)


def _wide(
    base: Affine,
    low: int,
    high: int,
    phase: tuple[Affine, int],
    inner: Mapping[Symbol, Range | None],
    phases: Phases,
) -> Span | None:
    """A span from outside the loops of `inner`."""
    kept: list[tuple[int, Symbol]] = []
    for coefficient, symbol in base.terms:
        if symbol not in inner:
            kept.append((coefficient, symbol))
            continue
        known = inner[symbol]
        if known is None:
            return None
        first, last = coefficient * known[0], coefficient * known[1]
        low += first if first < last else last
        high += last if first < last else first
    return Span(Affine(tuple(kept), base.offset), low, high, *_widened(*phase, inner, phases))


def _widened(phase: Affine, step: int, inner: Container[Symbol], phases: Phases) -> tuple[Affine, int]:
    """What is left of a phase, and of its step, whatever the symbols of `inner` are."""
    if not phases and any(abs(factor) == 1 and symbol in inner for factor, symbol in phase.terms):
        return ZERO, 1
    while step != 1 and (symbol := _newest(phase, inner)) is not None:
        its_phase, its_step = phases.get(symbol, (ZERO, 1))
        coefficient = phase.coefficient(symbol)
        phase = phase + (its_phase - Affine.of(symbol)) * coefficient
        step = math.gcd(step, coefficient * its_step)
    return (ZERO, 1) if step == 1 else (phase, step)


def _newest(value: Affine, inner: Container[Symbol]) -> Symbol | None:
    return next((symbol for symbol in reversed(value.symbols) if symbol in inner), None)


def region(
    tensor: Tensor,
    index: Iterable[Affine] | None,
    inner: Mapping[Symbol, Range | None],
    phases: Phases = NO_PHASES,
) -> Region:
    """What `tensor[index]` touches while the loops of `inner` run; any cell when `index` is None."""
    if index is None:
        return Region(tensor, (None,) * tensor.rank)
    return Region(tensor, tuple([_spanned(position, inner, phases) for position in index]))


def declared(symbol: Symbol) -> Range | None:
    """The range that a symbol comes with."""
    return None if symbol.lower is None or symbol.upper is None else (symbol.lower, symbol.upper - 1)


def loop_range(lo: Affine, hi: Affine, step: int, ranges: Ranges) -> Range | None:
    """The values of a loop's symbol, at most; None when the bounds have no known range."""
    first, last = lo.bounds(ranges), hi.bounds(ranges)
    if first is None or last is None:
        return None
    least, greatest = (first[0], last[1] - 1) if step > 0 else (last[0] + 1, first[1])
    if first[0] != first[1] or least > greatest:
        return least, greatest
    passed = (greatest - least) % abs(step)
    return (least, greatest - passed) if step > 0 else (least + passed, greatest)


def given(params: Iterable[Param]) -> frozenset[Tensor]:
    """The storages that come from the caller; all others are temporaries."""
    return frozenset(param.tensor.storage for param in params if isinstance(param, ArrayParam))


def visible(params: Iterable[Param]) -> frozenset[Tensor]:
    """The storages that the caller sees before the call, and after one that raises an exception; not those of
    results alone."""
    arrays = (param for param in params if isinstance(param, ArrayParam))
    return frozenset(param.tensor.storage for param in arrays if param.access != "write")


def loads(expr: Expr) -> list[tuple[Tensor, tuple[Affine, ...] | None]]:
    """The tensors an expression reads, each with its index; None for an index computed at run time."""
    return _loaded(walk(expr))


def reads(stmt: Stmt) -> list[tuple[Tensor, tuple[Affine, ...] | None]]:
    """What the expressions of a statement read, and the cell that it combines with."""
    found = _loaded(nodes_in((stmt,)))
    if type(stmt) is Store and stmt.accum is not None:
        found.append((stmt.tensor, stmt.index))
    return found


def _loaded(nodes: Iterable[Expr]) -> list[tuple[Tensor, tuple[Affine, ...] | None]]:
    found: list[tuple[Tensor, tuple[Affine, ...] | None]] = []
    for node in nodes:
        if type(node) is Load:
            found.append((node.tensor, node.index))
        elif type(node) is Gather:
            found.append((node.tensor, None))
    return found


def mentioned(body: Iterable[Stmt]) -> Iterator[Symbol]:
    """Every symbol that a body uses, each as often as it does."""
    for stmt in walk_statements(tuple(body)):
        for node in nodes_in((stmt,)):
            match node:
                case Load(index=index):
                    yield from symbols_of(index)
                case Index(value=value):
                    yield from value.symbols
                case _:
                    pass
        match stmt:
            case Store(index=index):
                yield from symbols_of(index)
            case Copy(index=index, at=at):
                yield from symbols_of((*index, *at))
            case Multiply(stage=stage):
                yield from symbols_of((stage,))
            case For(lo=lo, hi=hi):
                yield from symbols_of((lo, hi))
            case _:
                pass


Touched = dict[Tensor, dict[Region, None]]


@slotted
class Effects:
    """What a statement does to the world outside it: regions by storage, and outer variables.

    `leaves`: it may leave the kernel, or must stay where it is for another reason.
    """

    reads: Touched = field(default_factory=dict)
    writes: Touched = field(default_factory=dict)
    uses: set[Variable] = field(default_factory=set)
    updates: set[Variable] = field(default_factory=set)
    leaves: bool = False

    def add(self, other: Effects) -> None:
        """Take over what another statement of the same body does."""
        for mine, more in ((self.reads, other.reads), (self.writes, other.writes)):
            for storage, regions in more.items():
                mine.setdefault(storage, {}).update(regions)
        self.uses |= other.uses
        self.updates |= other.updates
        self.leaves |= other.leaves

    def renamed(self, values: Mapping[Symbol, Affine]) -> Effects:
        return self._mapped(lambda item: item.renamed(values))

    def without(self, inner: Mapping[Symbol, Range | None]) -> Effects:
        """The effects seen from outside the loops of `inner`; these themselves if there are no such loops."""
        return self if not inner else self._mapped(lambda item: item.without(inner))

    def shares_variables(self, other: Effects) -> bool:
        """Whether one of them sets a variable that the other sets or reads."""
        return not (
            self.updates.isdisjoint(other.updates)
            and self.updates.isdisjoint(other.uses)
            and self.uses.isdisjoint(other.updates)
        )

    def in_rows(self, symbol: Symbol) -> bool:
        """Whether a symbol decides on nothing but rows, wherever arrays of several dimensions are touched."""
        spans = (
            span
            for touched in (self.reads, self.writes)
            for regions in touched.values()
            for item in regions
            for span in item.spans[1:]
        )
        return all(span is not None and not span.base.coefficient(symbol) for span in spans)

    def _mapped(self, change: Callable[[Region], Region]) -> Effects:
        def over(touched: Touched) -> Touched:
            return {s: {change(item): None for item in items} for s, items in touched.items()}

        return Effects(over(self.reads), over(self.writes), self.uses, self.updates, self.leaves)


def effects(body: Iterable[Stmt], ranges: Ranges) -> Effects:
    """What a body does in one iteration of the loops around it; `ranges` has their values."""
    found = Effects()
    inside = list(walk_statements(tuple(body)))
    inner, phases = _ranges_inside(inside, ranges), _phases_inside(inside)
    local: set[Variable] = set()
    for stmt in inside:
        _collect_reads(stmt, inner, phases, found)
        match stmt:
            case Store(tensor=tensor, index=index):
                _touch(found.writes, region(tensor, index, inner, phases))
            case Fill(tensor=tensor):
                _touch(found.writes, region(tensor, None, inner))
            case Copy(into=into, index=index, source=source, at=at, cells=cells):
                _touch(found.writes, _neighbours(region(into, index, inner), cells))
                _touch(found.reads, _neighbours(region(source, at, inner), cells))
            case Multiply(total=total, left=left):
                for tensor, index in stmt.factors:
                    _touch(found.reads, _matrix(region(tensor, index, inner)))
                if stmt.owns_left:
                    _touch(found.reads, region(left, None, inner))
                _touch(found.writes, region(total, None, inner))
            case Define(variable=variable):
                local.add(variable)
            case Update(variable=variable):
                found.updates.add(variable)
            case Raise() | Stay() | Lap() | Barrier():
                found.leaves = True
            case Bind() | For() | If() | While() | Prefetch() | Comment():
                pass
    found.uses -= local
    found.updates -= local
    return found


def _neighbours(first: Region, cells: int) -> Region:
    """So many cells along the last axis."""
    *before, last = first.spans
    wider = last and Span(last.base, last.low, last.high + cells - 1)
    return Region(first.tensor, (*before, wider))


def _matrix(first: Region) -> Region:
    """All cells along the two last axes."""
    return Region(first.tensor, (*first.spans[:-2], None, None))


def _ranges_inside(body: Iterable[Stmt], ranges: Ranges) -> dict[Symbol, Range | None]:
    """The values of the symbols that statements introduce. Of those around, a whole program's perhaps, only
    the ones that bounds name are looked at."""
    inner: dict[Symbol, Range | None] = {}
    for stmt in body:
        match stmt:
            case For(symbol=symbol, lo=lo, hi=hi, step=step):
                named = ((bound, inner.get(bound) or ranges.get(bound)) for bound in symbols_of((lo, hi)))
                known = {bound: span for bound, span in named if span is not None}
                inner[symbol] = loop_range(lo, hi, step, known)
            case Bind(symbol=symbol):
                inner[symbol] = declared(symbol)
            case _:
                pass
    return inner


def _phases_inside(body: Iterable[Stmt]) -> Phases:
    """The phases of the symbols that statements introduce: remainders, and steps of loops."""
    found: dict[Symbol, tuple[Affine, int]] = {}
    for stmt in body:
        match stmt:
            case Bind(symbol=symbol, value=Apply(op=op, args=(Index(value), Index(by)))) if (
                op is REMAINDER and by.is_constant and by.offset
            ):
                found[symbol] = (value, by.offset)
            case For(symbol=symbol, lo=lo, step=step) if abs(step) != 1:
                found[symbol] = (lo, step)
            case _:
                pass
    return found


def _collect_reads(stmt: Stmt, inner: Mapping[Symbol, Range | None], phases: Phases, found: Effects) -> None:
    if isinstance(stmt, Store) and stmt.accum is not None:
        _touch(found.reads, region(stmt.tensor, stmt.index, inner, phases))
    for node in nodes_in((stmt,)):
        if type(node) is Load:
            _touch(found.reads, region(node.tensor, node.index, inner, phases))
        elif type(node) is Local:
            found.uses.add(node.variable)
        elif type(node) is Gather:
            known = (
                _spanned(at.value, inner, phases) if isinstance(at, Index) else None for at in node.index
            )
            _touch(found.reads, Region(node.tensor, tuple(known)))


def _touch(touched: Touched, item: Region) -> None:
    touched.setdefault(item.tensor.storage, {})[item] = None


def distances(
    first: Region, second: Region, aligned: Sequence[Symbol], ranges: Ranges
) -> dict[Symbol, Distance] | None:
    """At which distances two regions of one storage meet, per aligned symbol; None when they never do.

    Both regions name the aligned loops by the same symbols, which stand for different iterations of
    each. All other symbols have one value for both.
    """
    if first.tensor is second.tensor:
        pairs = list(zip(first.spans, second.spans, strict=True))
    else:
        pairs = [(first.linear(), second.linear())]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    found = {symbol: _trip_limit(symbol, ranges) for symbol in aligned}
    if not all(_meet(one, other, found, ranges) for one, other in known):
        return None
    here = [pair for pair in known if _moves(pair[0], found) and not _moves(pair[1], found)]
    there = [(other, one) for one, other in known if _moves(other, found) and not _moves(one, found)]
    if here or there:
        for symbol, (least, greatest) in found.items():
            one, other = (_iterations(symbol, pairs, ranges) for pairs in (here, there))
            found[symbol] = max(least, one[0] - other[1]), min(greatest, one[1] - other[0])
    if not all(_in_phase(one, other, found) for one, other in known):
        return None
    return None if any(least > greatest for least, greatest in found.values()) else found


def _in_phase(one: Span, other: Span, found: dict[Symbol, Distance]) -> bool:
    """Narrow `found` by the phases of two spans along one dimension; False when these never agree."""
    (mine, first), (theirs, second) = _phase_of(one), _phase_of(other)
    step = math.gcd(first, second)
    if step < 2:
        return True
    apart, moving = (mine - theirs).offset, list[tuple[int, Symbol]]()
    for symbol in {*mine.symbols, *theirs.symbols}:
        coefficient = mine.coefficient(symbol)
        if (coefficient - theirs.coefficient(symbol)) % step:
            return True
        if coefficient % step and symbol in found:
            least, greatest = found[symbol]
            if least == greatest:
                apart += coefficient * int(least)
            else:
                moving.append((coefficient, symbol))
    if not moving:
        return apart % step == 0
    if len(moving) == 1:
        ((coefficient, symbol),) = moving
        return _agree(coefficient, apart, step, found, symbol)
    return True


def _agree(coefficient: int, apart: int, step: int, found: dict[Symbol, Distance], symbol: Symbol) -> bool:
    """Narrow the distance for which `coefficient` times it and `apart` are a multiple of `step`."""
    common = math.gcd(coefficient, step)
    period = step // common
    if apart % common:
        return False
    first = -apart // common * pow(coefficient // common, -1, period) % period
    least, greatest = found[symbol]
    if math.isfinite(least) and math.isfinite(greatest):
        found[symbol] = least + (first - least) % period, greatest - (greatest - first) % period
    return True


def _phase_of(span: Span) -> tuple[Affine, int]:
    """What all positions are but for multiples of a number, which is 0 where there is one position."""
    return (span.base, 0) if span.low == span.high == 0 else (span.phase, span.step)


def _moves(span: Span, aligned: Container[Symbol]) -> bool:
    return any(symbol in aligned for _, symbol in span.base.terms)


def _iterations(symbol: Symbol, pairs: Iterable[tuple[Span, Span]], ranges: Ranges) -> Distance:
    """The iterations in which spans that move meet others that stay."""
    least, greatest = ranges.get(symbol, ANY)
    for moving, staying in pairs:
        step = moving.base.coefficient(symbol)
        gap = staying.base - moving.base + Affine.of(symbol) * step
        if step and gap.is_constant:
            ends = gap.offset + staying.low - moving.high, gap.offset + staying.high - moving.low
            first, last = sorted(end / step for end in ends)
            least, greatest = max(least, math.ceil(first)), min(greatest, math.floor(last))
    return least, greatest


def _trip_limit(symbol: Symbol, ranges: Ranges) -> Distance:
    known = ranges.get(symbol)
    return ANY if known is None else (known[0] - known[1], known[1] - known[0])


def _meet(one: Span, other: Span, found: dict[Symbol, Distance], ranges: Ranges) -> bool:
    """Narrow `found` by one dimension; False when the spans cannot meet along it."""
    mine = {s: c for c, s in one.base.terms if s in found}
    theirs = {s: c for c, s in other.base.terms if s in found}
    gap = ZERO if one.base == other.base else one.base - other.base
    if mine != theirs:
        gap = gap - _only(one.base, mine) + _only(other.base, theirs)
    if not gap.is_constant:
        factors = (*mine.values(), *theirs.values(), *(coefficient for coefficient, _ in gap.terms))
        apart = gap.offset + one.low - other.high
        return one.low != one.high or other.low != other.high or apart % math.gcd(*factors) == 0
    low = gap.offset + one.low - other.high
    high = gap.offset + one.high - other.low
    if mine != theirs:
        return _may_be_zero(mine, theirs, low, high, ranges)
    if not mine:
        return low <= 0 <= high
    if len(mine) == 1:
        ((symbol, coefficient),) = mine.items()
        ends = sorted((-low / coefficient, -high / coefficient))
        known = found[symbol]
        least, greatest = max(known[0], math.ceil(ends[0])), min(known[1], math.floor(ends[1]))
        found[symbol] = (least, greatest)
        return least <= greatest
    if low == high == 0 and is_injective(mine.items(), ranges):
        for symbol in mine:
            found[symbol] = (max(found[symbol][0], 0), min(found[symbol][1], 0))
        return all(found[symbol][0] <= found[symbol][1] for symbol in mine)
    return _may_be_zero(mine, theirs, low, high, ranges)


def _only(base: Affine, symbols: Mapping[Symbol, int]) -> Affine:
    return Affine(tuple((c, s) for c, s in base.terms if s in symbols), 0)


def _may_be_zero(
    mine: Mapping[Symbol, int], theirs: Mapping[Symbol, int], low: int, high: int, ranges: Ranges
) -> bool:
    """Whether `sum(mine) - sum(theirs) + [low, high]` can be zero for independent iterations."""
    factors = [*mine.items(), *((symbol, -c) for symbol, c in theirs.items())]
    divisor = math.gcd(*(c for _, c in factors))
    if low == high and divisor and low % divisor:
        return False
    for symbol, coefficient in factors:
        known = ranges.get(symbol)
        if known is None:
            return True
        ends = (coefficient * known[0], coefficient * known[1])
        low, high = low + min(ends), high + max(ends)
    return low <= 0 <= high


def is_injective(terms: Iterable[tuple[Symbol, int]], ranges: Ranges) -> bool:
    """Whether `sum(coefficient * symbol)` takes each value once, as a row-major offset does."""
    reach: float = 0
    for symbol, coefficient in sorted(terms, key=lambda item: abs(item[1])):
        if abs(coefficient) <= reach:
            return False
        known = ranges.get(symbol)
        reach += math.inf if known is None else abs(coefficient) * (known[1] - known[0])
    return True
