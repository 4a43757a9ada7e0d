"""tile: a nest that reads across memory while it writes along it goes block by block.

    for i in parallel(0, 640):              for jb in parallel(0, 40):
        for j in parallel(0, 640):              for ib in parallel(0, 80):
            y[i, j] = x[j, i]       ->              for j in vector(0, 16, lanes=16):
                                                        for i in unrolled(0, 8):
                                                            y[8*ib + i, 16*jb + j] = x[16*jb + j, 8*ib + i]

A block writes whole cache lines, at once, and the next one goes on where it stopped reading. Within it,
lanes take a few neighbouring cells of a row of `x`, to be transposed in registers. What blocks leave at the
edges is done by blocks that overlap others.

A body that may not repeat iterations, or is long, is written once. Its blocks are of single cells, smaller at
the edges, and still read each line again while it is near.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, LoopKind, Stmt, Store
from ...ir.tensor import Tensor
from ..analysis.copies import copy_body, unless_once
from ..analysis.loopwise import Site, loopwise
from ..analysis.repeats import may_repeat, weight
from ..analysis.strides import LINE, affine_accesses, parallel_nest, stride
from ..analysis.trips import blocks, fewest

__all__ = ["tile"]

ROWS, COLUMNS = 64, 16
"""The size of a block of single cells."""

LIGHT = 8
"""Operations in a body that may be written once for each row that is transposed."""

FEWEST, MOST = 16, 32
"""Cells of a row that a block writes, if there are so many, and at most."""

NEAR, FAR = 4, 2
"""So many lines of a row a block writes if there are registers for its cells, each of a row that is read: in
caches, and past them. Where rows are a power of two apart, few places of the caches are there for all: of
1024 x 1024 float64 cells, blocks of one line take 2.5 times as long as those of four; of 4096 x 4096, which
memory holds, twice as long as those of two, and those of four gain no more."""

MANY = 8
"""So many blocks of them there must be; else blocks write less, since less is left at the edges."""

BYTES, CELLS = 32, 8
"""Of each row that is read, at once: two of the parts that all CPUs can interleave in registers, or so many
cells, if there are registers for them."""


@loopwise
def tile(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every transposing nest in blocks."""
    match parallel_nest(loop):
        case [rows, columns] if across := _across(rows, columns):
            return _transposed(rows, columns, across, site.caps) or _in_blocks(rows, columns) or [loop]
        case _:
            return None


def _across(rows: For, columns: For) -> Mapping[Tensor, int]:
    """What a nest steps far through by column but not by row, with the steps by row."""
    if any(isinstance(stmt, For) for stmt in columns.body) or rows.step != 1 or columns.step != 1:
        return {}
    if rows.symbol in columns.lo.symbols or rows.symbol in columns.hi.symbols:
        return {}
    found: dict[Tensor, int] = {}
    for tensor, index, _ in affine_accesses(columns.body):
        by_row, by_column = (stride(tensor, index, loop.symbol) for loop in (rows, columns))
        if by_row and by_column and abs(by_row) < LINE <= abs(by_column):
            found[tensor] = by_row
    return found


def _transposed(rows: For, columns: For, across: Mapping[Tensor, int], caps: Caps) -> Sequence[Stmt]:
    """The nest in blocks that are transposed in registers; nothing where it cannot be."""
    if not _may_go_in_lanes(columns) or any(by_row != 1 for by_row in across.values()):
        return []
    stored = min(stmt.tensor.dtype.itemsize for stmt in columns.body if isinstance(stmt, Store))
    loaded = max(tensor.dtype.itemsize for tensor in across)
    height, width = fewest(rows), fewest(columns)
    line, registers = max(1, caps.line_bytes // stored), caps.registers * caps.vector_bytes
    is_far = height * width * stored > caps.l3_bytes
    wide = min((FAR if is_far else NEAR) * line, MOST, registers // BYTES)
    lanes, at_once = min(line, MOST), BYTES // loaded
    if width >= FEWEST:
        lanes = max(lanes, FEWEST)
    if wide >= lanes and width >= MANY * wide:
        lanes, at_once = wide, max(at_once, min(CELLS, registers // (wide * loaded)))
    if min(at_once, lanes) < 2 or height < at_once or width < lanes:
        return []
    (wide_told, strips_of), (high_told, groups_of) = _units(columns, lanes), _units(rows, at_once)
    out: list[Stmt] = [*wide_told, *high_told]
    for left, strips in strips_of:
        strip, groups = Symbol(columns.symbol.hint), list[Stmt]()
        for top, count in groups_of:
            group = Symbol(rows.symbol.hint)
            i, j = top + Affine.of(group) * at_once, left + Affine.of(strip) * lanes
            groups.extend(unless_once(_parallel(group, count, _cells(rows, columns, i, j, at_once, lanes))))
        out.extend(unless_once(_parallel(strip, strips, tuple(groups))))
    return out


def _cells(rows: For, columns: For, top: Affine, left: Affine, at_once: int, lanes: int) -> tuple[Stmt, ...]:
    """The cells that are transposed at once."""
    i, j = (Symbol(loop.symbol.hint) for loop in (rows, columns))
    body = copy_body(columns.body, {rows.symbol: top + i, columns.symbol: left + j}, {})
    unrolled = replace(_parallel(i, at_once, body), kind=LoopKind.UNROLLED)
    return (replace(_parallel(j, lanes, (unrolled,)), kind=LoopKind.VECTOR, lanes=lanes),)


def _may_go_in_lanes(columns: For) -> bool:
    """Is the body one that a vector loop may hold, several times and several times over?"""
    return (
        all(
            isinstance(stmt, Define)
            or (isinstance(stmt, Store) and stride(stmt.tensor, stmt.index, columns.symbol) == 1)
            for stmt in columns.body
        )
        and may_repeat(columns.body)
        and weight(columns.body) <= LIGHT
        and not any(tensor.dtype is BOOL for tensor, _, _ in affine_accesses(columns.body))
    )


def _in_blocks(rows: For, columns: For) -> Sequence[Stmt]:
    """The nest in blocks of single cells; nothing if it is small."""
    if min(rows.trips or 0, columns.trips or 0) < 2 * COLUMNS:
        return []
    out: list[Stmt] = []
    for row, height, down in _parts(rows, ROWS):
        strip: list[Stmt] = []
        block_row = Symbol(rows.symbol.hint)
        for column, width, across in _parts(columns, COLUMNS):
            block, i, j = (Symbol(loop.symbol.hint) for loop in (columns, rows, columns))
            values = {
                rows.symbol: row + Affine.of(block_row) * height + i,
                columns.symbol: column + Affine.of(block) * width + j,
            }
            line = _parallel(j, width, copy_body(columns.body, values, {}))
            strip.extend(unless_once(_parallel(block, across, (_parallel(i, height, (line,)),))))
        out.extend(unless_once(_parallel(block_row, down, tuple(strip))))
    return out


def _units(loop: For, size: int) -> tuple[Sequence[Bind], Sequence[tuple[Affine, Affine]]]:
    """Where blocks of one size start and how many there are, which the run tells first of a loop whose length
    is open: one more ends where that does."""
    if loop.trips is not None:
        return (), [(start, Affine.of(count)) for start, _, count in _parts(loop, size, size)]
    told, count = blocks(loop, size)
    return told, [(loop.lo, count), (loop.hi - size, Affine.of(1))]


def _parts(loop: For, size: int, unit: int = 1) -> Sequence[tuple[Affine, int, int]]:
    """Where the blocks of a loop start, how long they are, and how many there are. They consist of whole
    units: the last may start before the one in front of it ends."""
    assert loop.trips is not None
    blocks, rest = divmod(loop.trips, size)
    if blocks:
        last = -(-rest // unit) * unit
        parts = [(loop.lo, size, blocks), (loop.hi - last, last, 1)]
    else:
        whole = rest // unit * unit
        parts = [(loop.lo, whole, 1), (loop.hi - unit, unit if whole < rest else 0, 1)]
    return [part for part in parts if part[1]]


def _parallel(symbol: Symbol, extent: Affine | int, body: tuple[Stmt, ...]) -> For:
    return For(symbol, Affine.of(0), Affine.of(extent), body, LoopKind.PARALLEL)
