"""tile: a nest that reads across memory while it writes along it goes block by block.

    for i in parallel(0, 640):              for ib in parallel(0, 10):
        for j in parallel(0, 640):              for jb in parallel(0, 40):
            y[i, j] = x[j, i]       ->              for i in parallel(0, 64):
                                                        for j in parallel(0, 16):
                                                            y[64*ib + i, 16*jb + j] = x[16*jb + j, 64*ib + i]

Within a block each cache line that is read across is read again while it is still near. What the blocks
leave at the edges follows as smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.code import Caps
from ..ir.index import Affine, Symbol
from ..ir.loops import For, Kernel, LoopKind, Stmt
from ..ir.walk import kept, rewrite_bodies
from .copies import copy_body, unless_once
from .strides import LINE, affine_accesses, parallel_nest, stride

__all__ = ["tile"]

ROWS = 64
COLUMNS = 16


def tile(kernel: Kernel, caps: Caps) -> Kernel:
    """Every transposing nest in blocks."""
    body = _body(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        loops = parallel_nest(stmt)
        if len(loops) == 2 and _transposes(*loops):
            out.extend(_blocks(*loops))
        else:
            out.append(rewrite_bodies(stmt, _body))
    return kept(body, out)


def _transposes(rows: For, columns: For) -> bool:
    """Does a large nest step far through memory by column but not by row?"""
    if any(isinstance(stmt, For) for stmt in columns.body):
        return False
    if rows.symbol in (*columns.lo.symbols, *columns.hi.symbols):
        return False
    if any(loop.step != 1 or loop.trips is None or loop.trips < 2 * COLUMNS for loop in (rows, columns)):
        return False
    for tensor, index, _ in affine_accesses(columns.body):
        by_row, by_column = stride(tensor, index, rows.symbol), stride(tensor, index, columns.symbol)
        if by_row and by_column and abs(by_row) < LINE <= abs(by_column):
            return True
    return False


def _blocks(rows: For, columns: For) -> Sequence[Stmt]:
    """The nest as blocks; those at the edges are smaller."""
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


def _parts(loop: For, size: int) -> Sequence[tuple[Affine, int, int]]:
    """Where the blocks of a loop start, how long they are, and how many there are."""
    assert loop.trips is not None
    blocks, rest = divmod(loop.trips, size)
    parts = [(loop.lo, size, blocks), (loop.lo + blocks * size, rest, 1)]
    return [part for part in parts if part[1] and part[2]]


def _parallel(symbol: Symbol, extent: int, body: tuple[Stmt, ...]) -> For:
    return For(symbol, Affine.of(0), Affine.of(extent), body, LoopKind.PARALLEL)
