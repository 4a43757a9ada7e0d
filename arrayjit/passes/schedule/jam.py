"""jam: several rows of sums are computed at once, so that what they share is loaded once.

    for i in parallel(0, 256):                           for i in parallel(0, 42):
        for j in vector(0, 256, lanes=32):                   for j in vector(0, 256, lanes=8):
            s = 0.0                                              s = 0.0
            for k in sequential(0, 16):            ->            s1 = 0.0  ...
                s = add(s, multiply(a[i, k], b[k, j]))           for k in sequential(0, 16):
            y[i, j] = s                                              t = b[k, j]
                                                                     s = add(s, multiply(a[6*i, k], t))
                                                                     s1 = add(s1, multiply(a[..., k], t))  ...
                                                                 y[6*i, j] = s  ...
                                                             (the last 4 rows likewise)

The outer loop is unrolled and its copies are interleaved; the sums stay in vector registers, of which
`Caps` says how many bytes they have. Every cell is computed by the very operations of before. Products by
fused operations `contract` has cut already. Where the second cache does not hold what the rows share, the
loop over columns goes outside, so that it is read once. Else rows stay whole, and what they store goes to
memory in a few long streams: 8000 x 800 distances of points of eight coordinates take half of the time so.

Rows of a matrix-vector product are interleaved likewise, so that the vector is loaded once for a few rows.
They are as far apart as rows can be: the next ones go on where these end, and memory is read in a few long
streams, each of which the processor fetches ahead of. Of 1000 x 1000 float64 cells that takes 0.12 ms, with
neighbouring rows 0.14, row by row 0.15; of 20,000 x 100 cells half of what neighbouring rows take. Rows that
positions choose take 0.7 to 0.95 of the time so, where that was measured (Zen 5). Where the first cache holds
the matrix, up to twice as many go at once: 64 x 64 float64s take 0.9 of the time that four rows take.

Of a stencil, two neighbouring rows are computed at once if they read cells in common:

    for i in parallel(0, 298):                           for i in parallel(0, 149):
        for j in vector(0, 298, lanes=16):                   for j in vector(0, 298, lanes=16):
            y[i, j] = add(x[i, j], x[i + 1, j])    ->            t = x[2*i + 1, j]
                                                                 y[2*i, j] = add(x[2*i, j], t)
                                                                 y[2*i + 1, j] = add(t, x[2*i + 2, j])

Where caches hold the arrays, a stencil waits for what it loads: vectors that start anywhere take a cache two
accesses each. Five points take four fifths of the time so. Four points without the one in their midst share
no cell with the next row's; where vectors fill lines, cells beside one another are one load all the same.
Where it is the second cache that holds them, and not the first one, a stencil waits for its stores: the lines
of two rows in turn take half as long again as those of one after another (of 300 x 300 cells with caches of
48 kB and 2 MB), whose vectors `tails` can have start on boundaries besides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.expr import Apply, Load, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, Kernel, LoopKind, Stmt, Store, Update, walk_statements, written_in
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    locals_defined,
    nodes_in,
    outer_updates,
    rewrite_loops,
    storages_read,
    walk,
)
from ..analysis.access import loads, reads
from ..analysis.copies import copy_body, interleaved, unless_once
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import blocks
from ..bodies.share import share

__all__ = ["jam"]

MAX_LANES = 64
MAX_STATEMENTS = 16
MAX_PARTS = 32
"""Statements that form the sums of a row in parts: two of a complex row of 10,000 numbers take 23."""

NEIGHBOURS = 2
"""How many rows of a stencil are computed at once. Three took no less time."""

SHARED = 0.25
"""Of the cells of a stencil the next row touches so many as well. Of fewer nothing is gained."""

MOST_OPERATIONS = 1.5
"""Where a column takes more of them for each cell, it does not wait for vectors that start anywhere."""

MAX_ROWS, MAX_NEAR_ROWS = 4, 8
"""How many rows of a matrix-vector product are computed at once, and how many where the first cache holds the
matrix: more streams than the processor fetches ahead of then do no harm."""

MAX_BYTES = 64
"""The widest vectors whose sums there are registers for in that many rows."""


_Access = tuple[Tensor, tuple[Affine, ...], bool]
"""A cell that is read or, if that is true, stored."""


def jam(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such nest with its rows interleaved."""

    def jammed(rows: For) -> Sequence[Stmt] | None:
        return _rows_of_sums(rows, caps) or _jammed(rows, caps) or _overlapping(rows, caps)

    body = rewrite_loops(kernel.body, jammed)
    return kernel if body is kernel.body else share(replace(kernel, body=body), caps)


def _rows_of_sums(rows: For, caps: Caps) -> Sequence[Stmt] | None:
    """A loop over rows of a matrix-vector product with a few rows at once; None for other statements."""
    if rows.kind is not LoopKind.PARALLEL or rows.step != 1:
        return None
    vectors = [stmt for stmt in rows.body if isinstance(stmt, For)]
    sums = locals_defined(rows.body)
    bound = {stmt.symbol for stmt in rows.body if isinstance(stmt, Bind)}
    if len(vectors) != 1 or not _sums_products(vectors[0], {rows.symbol, *bound}, sums):
        return None
    if not all(isinstance(stmt, (Define, Bind, For, Update, Store)) for stmt in rows.body):
        return None
    if bound and not caps.ahead.chosen:
        return None
    held = -(-MAX_BYTES // caps.vector_bytes)
    most = MAX_NEAR_ROWS if _is_near(rows, caps) else MAX_ROWS
    at_once = min(most, caps.registers * 3 // 4 // (held * len(sums)))
    if at_once < 2 or (rows.trips is not None and rows.trips < at_once):
        return None
    binds, body = _at_once(rows, rows.body, at_once, LoopKind.PARALLEL, False)
    return [*binds, *body]


def _is_near(rows: For, caps: Caps) -> bool:
    """Are there enough rows, and does the first cache hold all that they are rows of?"""
    inside = walk_statements(rows.body)
    arrays = {array for stmt in inside for array in storages_read(expressions(stmt))}
    if rows.trips is None or rows.trips < MAX_NEAR_ROWS or not all(array.has_fixed_shape for array in arrays):
        return False
    return sum(array.nbytes for array in arrays) <= caps.l1_bytes


def _at_once(
    rows: For, body: tuple[Stmt, ...], count: int, kind: LoopKind, are_neighbours: bool
) -> tuple[tuple[Bind, ...], tuple[Stmt, ...]]:
    """Rows of this body, `count` at a time, then what is left of them; after the numbers that this needs.
    Those that are no neighbours are as far apart as they can be."""
    binds, whole = blocks(rows, count)
    block = Symbol(rows.symbol.hint)
    here = Affine.of(block)
    first, apart = (here * count, 1) if are_neighbours else (here, whole)
    inside = interleaved(body, rows.symbol, rows.lo + first, count, apart)
    main = For(block, Affine.of(0), whole, inside, kind)
    start = rows.lo + whole * count
    if rows.trips is not None:
        rest = rows.trips % count
        last = interleaved(body, rows.symbol, start, rest) if rest else ()
        return binds, (*unless_once(main), *last)
    row = Symbol(rows.symbol.hint)
    one = copy_body(body, {rows.symbol: Affine.of(row)}, {})
    return binds, (main, For(row, start, rows.hi, one, kind))


def _sums_products(vector: For, row: Collection[Symbol], sums: Collection[Variable]) -> bool:
    """Is this a short loop over vectors that adds products to sums of the row, and does nothing else? It is
    as long in all rows: the symbols that differ by `row` are not its ends."""
    inside = list(walk_statements(vector.body))
    loops = [vector, *(stmt for stmt in inside if isinstance(stmt, For))]
    own = {*sums, *locals_defined(inside)}
    return (
        vector.kind is LoopKind.VECTOR
        and len(sums) > 0
        and len(inside) <= MAX_PARTS
        and all(isinstance(stmt, (For, Define, Update)) for stmt in inside)
        and any(isinstance(stmt, Update) and stmt.contract for stmt in inside)
        and not any(symbol in loop.bound_by for symbol in row for loop in loops)
        and all(
            stmt.variable in own and vector.lanes * stmt.variable.dtype.itemsize <= MAX_BYTES
            for stmt in inside
            if isinstance(stmt, Update)
        )
    )


def _jammed(rows: For, caps: Caps) -> Sequence[Stmt] | None:
    """A loop over rows and columns with the rows interleaved, or None where that does not help."""
    if rows.kind is not LoopKind.PARALLEL or rows.step != 1:
        return None
    *before, columns = rows.body
    if not isinstance(columns, For) or not _is_product(rows, before, columns):
        return None
    sums = sum(isinstance(stmt, Update) for stmt in walk_statements(columns.body))
    widest = max(s.variable.dtype.itemsize for s in walk_statements(columns.body) if isinstance(s, Update))
    lanes = min(MAX_LANES, 2 * caps.vector_bytes // widest)
    while columns.trips is not None and lanes > columns.trips:
        lanes //= 2
    at_most = caps.registers * 3 // 8 // sums
    if at_most < 2 or (rows.trips is not None and rows.trips < 2):
        return None
    count = at_most if rows.trips is None else -(-rows.trips // -(-rows.trips // at_most))
    vector = replace(columns, lanes=lanes)
    if _shared_bytes(rows, columns) <= caps.l2_bytes:
        binds, body = _at_once(rows, (*before, vector), count, LoopKind.PARALLEL, True)
        return [*binds, *body]
    binds, body = _at_once(rows, (*before, *columns.body), count, LoopKind.SEQUENTIAL, True)
    return [*binds, replace(vector, body=body)]


def _shared_bytes(rows: For, columns: For) -> float:
    """How much memory has what all rows read by column."""
    cells = affine_accesses(columns.body)
    shared = {
        tensor
        for tensor, index, stores in cells
        if not stores
        and stride(tensor, index, rows.symbol) == 0
        and stride(tensor, index, columns.symbol) != 0
    }
    return sum(tensor.nbytes if tensor.has_fixed_shape else math.inf for tensor in shared)


def _overlapping(rows: For, caps: Caps) -> Sequence[Stmt] | None:
    """A loop over rows of a stencil with two neighbours at once; None where they read too little in common,
    or wait for memory, or for the second cache to take what they store, anyway."""
    if rows.kind is not LoopKind.PARALLEL or rows.step != 1 or (rows.trips or 0) < NEIGHBOURS:
        return None
    *before, columns = rows.body
    if not isinstance(columns, For) or not _is_stencil(rows, before, columns):
        return None
    cells = set(affine_accesses(columns.body))
    storages = {tensor.storage for tensor, _, _ in cells}
    known = all(storage.has_fixed_shape for storage in storages)
    held = sum(storage.nbytes for storage in storages) if known else math.inf
    if held > caps.l3_bytes or caps.l1_bytes < held <= caps.l2_bytes:
        return None
    down = {rows.symbol: rows.symbol + 1}
    below = {cell: (cell[0], tuple(at.substitute(down) for at in cell[1]), cell[2]) for cell in cells}
    loads_most = _operations(columns) <= MOST_OPERATIONS * len(cells)
    at_hand = cells | (_beside(cells, columns, caps) if loads_most else set())
    # A cell that all rows read is at hand anyway.
    shared = [lower for cell, lower in below.items() if lower != cell and lower in at_hand]
    if len(shared) < SHARED * len(cells):
        return None
    binds, body = _at_once(rows, rows.body, NEIGHBOURS, LoopKind.PARALLEL, True)
    return [*binds, *body]


def _operations(columns: For) -> int:
    """How many operations a column takes."""
    return sum(isinstance(node, Apply) for node in nodes_in(columns.body))


def _beside(cells: Collection[_Access], columns: For, caps: Caps) -> set[_Access]:
    """The cells whose vectors are made of those that are loaded, a lane further on or back: where loads that
    start anywhere take longer than that."""
    if caps.vector_bytes < caps.line_bytes or columns.step != 1:
        return set()
    return {
        (tensor, (*index[:-1], index[-1] + by), False)
        for tensor, index, stores in cells
        if not stores and stride(tensor, index, columns.symbol) == 1
        for by in (-1, 1)
    }


def _is_stencil(rows: For, before: Sequence[Stmt], columns: For) -> bool:
    """Do rows have the same columns, for which a few cells are computed that no column reads, as those are
    not that are stored beside the columns?"""
    stored = written_in((*before, *columns.body))
    return (
        columns.kind is LoopKind.VECTOR
        and len(columns.body) <= MAX_STATEMENTS
        and all(isinstance(stmt, (Define, Store)) for stmt in (*before, *columns.body))
        and not any(
            tensor.storage in stored for stmt in (*before, *columns.body) for tensor, _ in reads(stmt)
        )
        and rows.symbol not in columns.bound_by
    )


def _is_product(rows: For, before: Sequence[Stmt], columns: For) -> bool:
    """Do rows of sums over inner loops read something in common that differs by column?"""
    inside = list(walk_statements(columns.body))
    loops = [columns, *(stmt for stmt in inside if isinstance(stmt, For))]
    written = written_in(inside)
    return (
        columns.kind is LoopKind.VECTOR
        and len(inside) <= MAX_STATEMENTS
        and all(_may_follow(stmt, written) for stmt in before)
        and not any(rows.symbol in loop.bound_by for loop in loops)
        and all(loop.kind is LoopKind.SEQUENTIAL for loop in loops[1:])
        and any(isinstance(stmt, Update) for stmt in inside)
        and not outer_updates(inside)
        and all(_mentions(stmt, rows.symbol) for stmt in inside if isinstance(stmt, Store))
        and any(
            _shares_columns(stmt, rows.symbol, columns.symbol) for loop in loops[1:] for stmt in loop.body
        )
    )


def _may_follow(stmt: Stmt, written: Collection[Tensor]) -> bool:
    """May a statement before the columns run again after some of them have been written?"""
    return isinstance(stmt, Define) and not any(tensor.storage in written for tensor, _ in loads(stmt.value))


def _mentions(store: Store, symbol: Symbol) -> bool:
    return any(symbol in position.symbols for position in store.index)


def _shares_columns(stmt: Stmt, row: Symbol, column: Symbol) -> bool:
    """Does a sum, or a term of it, read a cell that is the same in every row but not in every column?"""
    values = expressions(stmt) if isinstance(stmt, (Define, Update)) else ()
    return any(
        isinstance(node, Load)
        and stride(node.tensor, node.index, row) == 0
        and stride(node.tensor, node.index, column) != 0
        for value in values
        for node in walk(value)
    )
