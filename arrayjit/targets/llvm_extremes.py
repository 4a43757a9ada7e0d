"""Extremes that lanes form: among numbers by one operation a step, and again where a NaN was met.

                                              ; lost = 0
for j in vector(0, 256, lanes=32):            ; m = where(m > x[j], m, x[j]), one instruction
    m = reduce(maximum, m, x[j])      ->      ; lost |= lanes of x[j] that do not compare with others of x[j]
                                              ; if any bit of lost is set, seldom: all of it as it stands

An extreme of two numbers is one instruction, which takes the second where they do not compare; NumPy takes a
NaN from either. A step that looks for one in what it goes on from waits for a comparison and a choice more;
what comes next can be looked at before its turn, two registers by one comparison. Of equal ones, zeros with
signs among them, the last is taken either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import zip_longest

from ..ir.conditions import BEYOND, is_compared
from ..ir.dtype import BOOL, F32, F64, DType, named
from ..ir.expr import Variable
from ..ir.loops import Comment, Define, For, Prefetch, Update
from ..ir.ops import OPS, Op
from .llvm_folds import folded, folded_together, go_together
from .llvm_text import Value, Writer
from .llvm_values import any_lane, any_sign, apply, either, halves, mask_lanes, select

__all__ = ["folds", "forms_again", "greatest", "lost", "nothing_lost", "were_lost"]

FEWEST = 8
"""Lanes that are worth a branch."""


def forms_again(loop: For, lanes: int) -> frozenset[DType]:
    """Of which dtypes a loop forms extremes in so many lanes, if it may be run again."""
    is_plain = all(isinstance(stmt, (Define, Update, Prefetch, Comment)) for stmt in loop.body)
    is_short = loop.trips is not None and loop.trips < 2 * loop.lanes
    if not is_plain or is_short or loop.cuts or lanes < FEWEST:
        return frozenset()
    return frozenset(
        stmt.variable.dtype
        for stmt in loop.body
        if isinstance(stmt, Update) and stmt.accum and _is_extreme(stmt.accum, stmt.variable.dtype)
    )


def _is_extreme(op: Op, dtype: DType) -> bool:
    return dtype in (F32, F64) and is_compared(op, dtype)


def greatest(writer: Writer, op: Op, low: Value, high: Value) -> Value:
    """The extreme of numbers, `maximum` or `minimum`."""
    beyond = apply(writer, OPS[BEYOND[op]], (low, high), BOOL)
    return select(writer, beyond.text, low, high)


def nothing_lost(writer: Writer, dtype: DType, lanes: int) -> Value:
    """What a loop hands on of NaNs before it has met any: bits where masks have registers, else signs."""
    if part := mask_lanes(writer, (dtype,)):
        return Value("0", named(f"i{min(part, lanes)}"))
    return Value("zeroinitializer", named(f"i{dtype.bits}"), _register(dtype))


def lost(writer: Writer, before: Value, values: Sequence[Value]) -> Value:
    """The same when it has met these values, all of a dtype."""
    dtype = values[0].dtype
    masks = mask_lanes(writer, (dtype,))
    parts = list(values)
    while parts[0].lanes > (masks or _register(dtype)):
        parts = [half for part in parts for half in halves(writer, part)]
    pairs = zip_longest(parts[::2], parts[1::2], fillvalue=parts[-1])
    compared = (Value(writer.pure(f"fcmp uno {one}, {other.text}"), BOOL, one.lanes) for one, other in pairs)
    mask = reduce(partial(either, writer), compared)
    conversion = "bitcast" if masks else "sext"
    return either(writer, before, replace(before, text=writer.pure(f"{conversion} {mask} to {before.type}")))


def _register(dtype: DType) -> int:
    return 256 // dtype.bits


def were_lost(writer: Writer, every: Iterable[Value]) -> str:
    """Whether any NaN has been met."""
    conditions = [
        writer.pure(f"icmp ne {value}, 0") if value.lanes == 1 else any_sign(writer, value) for value in every
    ]
    return reduce(lambda one, other: writer.pure(f"or i1 {one}, {other}"), conditions)


def folds(
    writer: Writer,
    ops: Mapping[Variable, Op],
    totals: Mapping[Variable, Value],
    values: Mapping[Variable, Value],
    numbers: Sequence[int] = (),
    nans: bool | None = None,
) -> dict[Variable, Value]:
    """The lanes of locals combined into one, and with what each was before: lane `l` with lane
    `l + width / 2`, until one is left. They may have other `numbers` than those of their order. `nans` says
    whether there is a NaN, if that is known."""
    alike: dict[tuple[Op, DType, int], list[Variable]] = {}
    if numbers:
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        values = {variable: writer.shuffle(values[variable], order) for variable in ops}
    for variable, op in ops.items():
        value = values[variable]
        alike.setdefault((op, value.dtype, value.lanes), []).append(variable)
    found: dict[Variable, Value] = {}
    for (op, dtype, _), variables in alike.items():
        value = values[variables[0]]
        if len(variables) > 1 and go_together(op, value) and not _is_extreme(op, dtype):
            parts = ([of[variable] for variable in variables] for of in (totals, values))
            found.update(zip(variables, folded_together(writer, op, *parts), strict=True))
        else:
            for variable in variables:
                value = _fold(writer, op, values[variable], nans)
                found[variable] = apply(writer, op, (totals[variable], value), dtype)
    return found


def _fold(writer: Writer, op: Op, value: Value, nans: bool | None) -> Value:
    def combine(low: Value, high: Value) -> Value:
        return apply(writer, op, (low, high), value.dtype)

    def choose(low: Value, high: Value) -> Value:
        return greatest(writer, op, low, high)

    if not _is_extreme(op, value.dtype) or nans or value.lanes < FEWEST:
        return folded(writer, value, combine)
    if nans is None:
        return _extreme(writer, value, combine, choose)
    return folded(writer, value, choose)


Combine = Callable[[Value, Value], Value]


def _extreme(writer: Writer, value: Value, combine: Combine, choose: Combine) -> Value:
    """The lanes folded, among numbers by one operation a step; where there is a NaN, as `combine` does it.
    Each step waits for the one before: rows of 100 float32s find their largest in 0.7 of the time."""
    low, high = halves(writer, value)
    mask = Value(writer.pure(f"fcmp uno {low}, {high.text}"), BOOL, low.lanes)
    lost, usual, join = map(writer.fresh, ("lost", "usual", "join"))
    writer.branch(any_lane(writer, mask, (value.dtype,)), lost, usual, seldom=True)
    ends = {}
    for label, step in ((lost, combine), (usual, choose)):
        writer.start(label)
        with writer.scope():
            found = folded(writer, value, step)
        ends[writer.block] = found
        writer.jump(join)
    writer.start(join)
    return writer.phi(ends)
