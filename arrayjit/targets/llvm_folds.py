"""What lanes have accumulated in several locals is folded in the same registers.

for i in vector(0, 48, lanes=8):             ; one = p's first half and q's, two = the second halves
    p = reduce(add, p, ..., fused=True)  ->  ; one + two: four lanes of p, then four of q
    q = reduce(add, q, ..., fused=True)      ; and again until a lane is left of each

By itself each half of a register takes an instruction to get at it and one to add it: 24 of them fold four
registers of eight lanes, where together 11 do. Each lane is added to the one that it is added to otherwise. A
matrix of 32 to 128 rows that lies on boundaries in a cache, by a vector, takes 0.9 to 0.95 of the time; one
that lies elsewhere waits for what it loads. A network whose gates are such products takes 0.95.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..frozen import frozen
from ..ir.dtype import BOOL
from ..ir.ops import Op
from .llvm_text import PART, Value, Writer
from .llvm_values import apply, halves

__all__ = ["folded", "folded_together", "go_together"]

FEWEST_BITS = 32
"""Narrower numbers fill a register with more lanes than there are locals to share it."""


def go_together(op: Op, value: Value) -> bool:
    """Whether a local may share registers while its lanes are folded."""
    return op.commutative and value.dtype is not BOOL and value.dtype.bits >= FEWEST_BITS


def folded(writer: Writer, value: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """One lane of many: lane `l` with lane `l + width / 2`, until one is left."""
    while value.lanes > 2:
        value = combine(*halves(writer, value))
    return combine(writer.lane(value, 0), writer.lane(value, 1))


def folded_together(
    writer: Writer, op: Op, totals: Sequence[Value], values: Sequence[Value]
) -> Iterator[Value]:
    """The same for several vectors of as many lanes, each combined with its total."""
    part = _register_bytes(writer) // values[0].dtype.itemsize
    narrow = [_narrowed(writer, op, value, part) for value in values]
    first = 0
    while first < len(narrow):
        count = min(1 << ((len(narrow) - first).bit_length() - 1), narrow[0].lanes)
        those = slice(first, first + count)
        yield from _shared(writer, op, totals[those], narrow[those])
        first += count


def _register_bytes(writer: Writer) -> int:
    wider = (("avx512f", 64), ("avx", 32), ("avx2", 32))
    return next((size for feature, size in wider if feature in writer.features), PART)


def _narrowed(writer: Writer, op: Op, value: Value, lanes: int) -> Value:
    while value.lanes > lanes:
        value = apply(writer, op, halves(writer, value), value.dtype)
    return value


@frozen
class _Shared:
    """A register whose lanes belong to several locals, by their numbers, so many together (`width`)."""

    value: Value
    owners: tuple[int, ...]
    width: int


def _shared(writer: Writer, op: Op, totals: Sequence[Value], values: Sequence[Value]) -> Iterator[Value]:
    """As many vectors as a power of two, no longer than a register, nor more than it has lanes."""
    lanes, dtype = values[0].lanes, values[0].dtype
    rows = [_Shared(value, (number,) * lanes, lanes) for number, value in enumerate(values)]
    while len(rows) > 1:
        rows = [_joined(writer, op, *pair) for pair in zip(rows[::2], rows[1::2], strict=True)]
    (row,) = rows
    value, width = row.value, row.width
    while width > 1:
        width //= 2
        other = writer.shuffle(value, [lane ^ width for lane in range(lanes)])
        value = apply(writer, op, (value, other), dtype)
    first = totals[0]
    at_once = first.is_literal and all(total.text == first.text for total in totals)
    if at_once:
        value = apply(writer, op, (first, value), dtype)
    for number, total in enumerate(totals):
        lane = writer.lane(value, row.owners.index(number))
        yield lane if at_once else apply(writer, op, (total, lane), dtype)


def _joined(writer: Writer, op: Op, left: _Shared, right: _Shared) -> _Shared:
    """A register of both, with half as many lanes of each local."""
    lows, highs = (_chosen(left.width, left.value, high) for high in (False, True))
    parts = [writer.shuffle(left.value, lanes, right.value) for lanes in (lows, highs)]
    owners = (*left.owners, *right.owners)
    value = apply(writer, op, (parts[0], parts[1]), left.value.dtype)
    return _Shared(value, tuple(owners[lane] for lane in lows), left.width // 2)


def _chosen(width: int, value: Value, high: bool) -> list[int]:
    """Of two registers the lower or the upper halves of all that lies together: those of the one before those
    of the other, in each 16 bytes where these hold no less, as one instruction puts them."""
    lanes, half = value.lanes, width // 2
    part = PART // value.dtype.itemsize
    block = part if width <= part else lanes
    return [
        side + piece + half * high + lane
        for start in range(0, lanes, block)
        for side in (0, lanes)
        for piece in range(start, min(start + block, lanes), width)
        for lane in range(half)
    ]
