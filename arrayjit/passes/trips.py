"""How often loops run, where that is known only when they do."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import BOOL, I64
from ..ir.expr import Apply, Const, Expr, Index
from ..ir.index import Affine, Symbol
from ..ir.loops import Bind, For
from ..ir.ops import OPS
from .access import Range, Ranges, loop_range

__all__ = ["Blocks", "about", "enter", "in_blocks"]


def enter(loop: For, ranges: dict[Symbol, Range]) -> None:
    """Note the values of a loop's symbol, if they are known."""
    known = loop_range(loop.lo, loop.hi, loop.step, ranges)
    if known is not None:
        ranges[loop.symbol] = known


def about(loop: For, ranges: Ranges) -> int | None:
    """How often the body runs: for extents that vary, the mean of the least and the most; None where nothing
    is known."""
    if loop.trips is not None:
        return loop.trips
    span = (loop.hi - loop.lo).bounds(ranges)
    if span is None:
        return None
    least, most = (len(range(0, end, loop.step)) for end in span)
    return (least + most + 1) // 2


@dataclass(frozen=True, slots=True)
class Blocks:
    """A loop with step 1 as `count` blocks of equal size and a `rest`; `binds` come first."""

    binds: tuple[Bind, ...]
    count: Affine
    rest: Affine


def in_blocks(loop: For, size: int) -> Blocks:
    """The iterations of a loop in blocks of `size`."""
    if loop.trips is not None:
        whole, over = divmod(loop.trips, size)
        return Blocks((), Affine.of(whole), Affine.of(over))
    extent = loop.hi - loop.lo
    blocks = Symbol("blocks", lower=0)
    number, zero = Index(extent), Const(0, I64)
    runs = _call("where", _call("less", zero, number), number, zero)
    left = Symbol("rest", lower=0, upper=size)
    binds = (
        Bind(blocks, _call("raw_divide", runs, Const(size, I64))),
        Bind(left, _call("raw_remainder", runs, Const(size, I64))),
    )
    return Blocks(binds, Affine.of(blocks), Affine.of(left))


def _call(name: str, *args: Expr) -> Expr:
    return Apply(OPS[name], args, BOOL if name == "less" else I64)
