"""stream: sums down the columns of a large array read its rows, not its columns.

    for i in vector(0, 1024, lanes=64):             for i in vector(0, 1024, lanes=32):
        s = 0.0                                         sums[i] = 0.0
        for j in sequential(0, 4096):       ->      for j in sequential(0, 512):
            s = fma(b[j], a[j, i], s)                   for i in vector(0, 1024, lanes=32):
        y[i] = s                                            s = sums[i]
                                                            for j1 in unrolled(0, 8):
                                                                s = fma(b[8*j + j1], a[8*j + j1, i], s)
                                                            sums[i] = s
                                                    for i in vector(0, 1024, lanes=32):
                                                        y[i] = sums[i]

A vector that walks down a large array touches another page with every step. Here the columns are gone
through once for every few rows, in strips whose sums stay in the nearest cache, and memory is read in
runs of a strip's length. Every sum is made of the very operations of before, in their order. Rows and columns
whose number varies are streamed likewise; the last strip then is as wide as what is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.dtype import I64
from ...ir.expr import Const, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import kept, locals_used, nodes_in, rewrite_bodies, rewrite_loops_inside_out
from ..analysis.access import Range
from ..analysis.copies import Copying, in_turn, unless_once
from ..analysis.strides import LINE, places, stride
from ..analysis.trips import about, blocks, enter, lesser

__all__ = ["stream"]

ROWS = 8
"""How many rows are read at once, each a stream of its own. Of 4096 x 1024 float32 cells the columns are
summed in 0.9 ms column by column, in 0.72 ms with 16 rows at once, in 0.40 ms with 8 or 4."""

WHOLE = 16
"""As many rows are read at once where they are all there are, as in each part of a sum in halves: no second
loop then takes up what the first left in the row of sums. Means of the columns of 1000 x 1000 float64 cells,
ten rows a part, take 0.87 of the time."""

STRIP = 16384
"""Bytes of a row that are gone through at once."""

WIDEST = 64
"""Lanes of the widest vectors: strips for threads are multiples of it."""

NARROW = 2048
"""Bytes of a row below which a strip of its own for each thread costs more than it gains."""

REGISTERS = 128
"""Bytes of a row that one step of a vector loop takes."""


def stream(kernel: Kernel, caps: Caps) -> Kernel:
    """Every large sum down columns made to read rows."""
    streaming = _Streaming(caps)
    body = streaming.body(kernel.body)
    notes = tuple(f"stream: {tensor}: {place.reason}" for tensor, place in streaming.placement.items())
    return kernel.with_body(body, notes, streaming.placement)


@slotted
class _Streaming:
    """`placement` is where the sums are kept."""

    caps: Caps
    placement: dict[Tensor, Place] = field(default_factory=dict)
    ranges: dict[Symbol, Range] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        large = self.caps.l2_bytes // 2
        for stmt in body:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
            if isinstance(stmt, For) and _is_sum(stmt) and self._bytes_down(stmt.body, stmt, 1) >= large:
                out.extend(self._strips(stmt))
            else:
                out.append(in_turn(stmt, rewrite_bodies(stmt, self.body)))
        return kept(body, out)

    def _bytes_down(self, body: Sequence[Stmt], columns: For, times: int) -> int:
        """The bytes of what `body` reads down the columns, run `times` times for each of them."""
        total = 0
        for stmt in body:
            if isinstance(stmt, For):
                rows = times * (about(stmt, self.ranges) or 0)
                read = sum(
                    load.tensor.dtype.itemsize for load in _loads(stmt.body) if _is_down(load, columns, stmt)
                )
                total += read * rows * (about(columns, self.ranges) or 0)
                total += self._bytes_down(stmt.body, columns, rows)
        return total

    def _strips(self, columns: For) -> Sequence[Stmt]:
        binds: list[Bind] = []
        spread = _in_blocks(columns.body, binds, self.caps)
        groups = list(_groups(spread))
        shared = _shared(groups)
        if not shared:  # so few rows that they are read at once anyway
            return [columns]
        size = max(variable.dtype.itemsize for variable in shared)
        span = (columns.hi - columns.lo).bounds(self.ranges)
        width = STRIP // size if span is None else min(span[1], STRIP // size)
        if self.caps.threads > 1 and span is not None:
            part = -(-span[1] // (self.caps.threads * WIDEST)) * WIDEST
            width = min(width, max(part, NARROW // size))
        homes = {v: Tensor(f"{v.hint}_row", (Affine.of(width),), v.dtype) for v in shared}
        reason = "sums down the columns go on from row to row"
        self.placement.update({home: Place(PlaceKind.ARENA, reason) for home in homes.values()})
        lanes = min(columns.lanes, REGISTERS // size)
        if columns.trips is None or (self.caps.threads > 1 and columns.trips % width):
            return [*binds, *_varying(columns, spread, lanes, homes, width)]
        count, rest = divmod(columns.trips, width)
        strip = Symbol(columns.symbol.hint)
        main = _Strip(columns, columns.lo + Affine.of(strip) * width, Affine.of(width), lanes, homes)
        out = [*binds, *unless_once(For(strip, Affine.of(0), Affine.of(count), main.body(spread, {})))]
        if rest:
            out += _Strip(columns, columns.hi - rest, Affine.of(rest), lanes, homes).body(spread, {})
        return out


def _written_out(rows: For) -> For:
    """A few rows of sums, each read by an instruction of its own: by these the hardware that fetches ahead
    tells streams. Of what memory holds, products of vectors with matrices take 0.6 to 0.8 of the time on
    Zen 5, sums of columns 0.75 to 0.85. Extremes are written out together with what is seldom met in them."""
    updates = [stmt for stmt in walk_statements(rows.body) if isinstance(stmt, Update)]
    if not all(update.accum is OPS["add"] for update in updates):
        return rows
    return replace(rows, kind=LoopKind.UNROLLED)


def _varying(
    columns: For, body: tuple[Stmt, ...], lanes: int, homes: Mapping[Variable, Tensor], width: int
) -> Sequence[Stmt]:
    """Strips of columns whose number varies, or of which the last is narrower."""
    strip, rest = Symbol(columns.symbol.hint), Symbol("width", lower=0, upper=width + 1)
    if columns.trips is None:
        start, strips = Affine.of(strip), For(strip, columns.lo, columns.hi, (), step=width)
    else:
        count = Affine.of(-(-columns.trips // width))
        start, strips = columns.lo + Affine.of(strip) * width, For(strip, Affine.of(0), count, ())
    least = lesser(columns.hi - start, Const(width, I64))
    inside = _Strip(columns, start, Affine.of(rest), lanes, homes).body(body, {})
    return [replace(strips, body=(Bind(rest, least), *inside))]


@frozen
class _Strip:
    """Some of the columns, from `start` on; `homes` has the rows that hold locals from loop to loop."""

    columns: For
    start: Affine
    width: Affine
    lanes: int
    homes: Mapping[Variable, Tensor]

    def body(self, body: tuple[Stmt, ...], symbols: Mapping[Symbol, Affine]) -> tuple[Stmt, ...]:
        """A body of the loop over all columns, done for each of these columns statement by statement."""
        out: list[Stmt] = []
        parts = list(_parts(body))
        for part in parts:
            if isinstance(part, For):
                row = Symbol(part.symbol.hint)
                inner = self.body(part.body, {**symbols, part.symbol: Affine.of(row)})
                out.append(replace(part, symbol=row, body=inner))
            else:
                is_last = part is parts[-1] and not symbols
                out.append(self._vectors(part, symbols, () if is_last else _changed(part)))
        return tuple(out)

    def _vectors(
        self, group: Sequence[Stmt], symbols: Mapping[Symbol, Affine], onward: Collection[Variable]
    ) -> For:
        """One vector loop, which leaves the locals `onward` for those that follow."""
        column = Symbol(self.columns.symbol.hint)
        here = (Affine.of(column),)
        defined, used = _defined(group), locals_used(group)
        found = {v: Variable(v.hint, v.dtype) for v in self.homes if v in used and v not in defined}
        copy = Copying({**symbols, self.columns.symbol: self.start + Affine.of(column)}, found)
        body = [
            *(Define(name, Load(self.homes[v], here)) for v, name in found.items()),
            *copy.body(tuple(group)),
            *(Store(self.homes[v], here, Local(copy.variables[v])) for v in self.homes if v in onward),
        ]
        return For(column, Affine.of(0), self.width, tuple(body), LoopKind.VECTOR, 1, self.lanes)


def _is_sum(columns: For) -> bool:
    """Is this a vector loop over sums of its own, whose lengths are settled before it?"""
    inside = list(walk_statements(columns.body))
    own = _defined(inside)
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    symbols = {loop.symbol for loop in loops}
    return (
        columns.kind is LoopKind.VECTOR
        and (columns.trips is None or columns.trips >= columns.lanes)
        and all(stmt.variable in own for stmt in inside if isinstance(stmt, Update))
        and all(isinstance(stmt, (For, Define, Update, Store)) for stmt in inside)
        and all(loop.step == 1 for loop in loops)
        and not any(symbols.intersection(loop.bound_by) for loop in loops)
        and not any(isinstance(stmt, Store) for loop in loops for stmt in loop.body)
    )


def _loads(body: Sequence[Stmt]) -> Iterator[Load]:
    return (node for node in nodes_in(body) if isinstance(node, Load))


def _is_down(load: Load, columns: For, rows: For) -> bool:
    along, down = (stride(load.tensor, load.index, loop.symbol) for loop in (columns, rows))
    return along == 1 and (down is None or abs(down) >= LINE)


def _in_blocks(body: tuple[Stmt, ...], binds: list[Bind], caps: Caps) -> tuple[Stmt, ...]:
    """A body with the innermost loops cut into blocks of a few rows; `binds` gets what it needs to know."""
    return rewrite_loops_inside_out(
        body, lambda loop: None if _has_loops(loop) else _blocks(loop, binds, caps)
    )


def _blocks(rows: For, binds: list[Bind], caps: Caps) -> Sequence[Stmt]:
    if rows.trips is not None and rows.trips <= _at_once(rows, caps):
        return [_written_out(rows)]
    before, count = blocks(rows, ROWS)
    binds.extend(before)
    block, row = Symbol(rows.symbol.hint), Symbol(rows.symbol.hint)
    copy = Copying({rows.symbol: rows.lo + Affine.of(block) * ROWS + row}, {})
    chain = _written_out(For(row, Affine.of(0), Affine.of(ROWS), copy.body(rows.body)))
    out: list[Stmt] = [For(block, Affine.of(0), count, (chain,))]
    rest = replace(rows, lo=rows.lo + count * ROWS)
    return out if rest.trips == 0 else [*out, rest]


def _at_once(rows: For, caps: Caps) -> int:
    """As many rows as go at once if there are no more: the first cache holds a line of each, and of sums."""
    most = WHOLE
    for load in _loads(rows.body):
        step = stride(load.tensor, load.index, rows.symbol)
        if step is None:
            return ROWS
        if step:
            most = min(most, places(step * load.tensor.dtype.itemsize, caps) - 1)
    return max(most, ROWS)


def _has_loops(loop: For) -> bool:
    return any(isinstance(stmt, For) for stmt in loop.body)


def _parts(body: Sequence[Stmt]) -> Iterator[For | Sequence[Stmt]]:
    """A body as loops to go through row by row, and what stands between them."""
    group: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and _has_loops(stmt):
            if group:
                yield group
            group = []
            yield stmt
        else:
            group.append(stmt)
    if group:
        yield group


def _groups(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    """Every run of statements, at any depth, that becomes one vector loop."""
    for part in _parts(body):
        if isinstance(part, For):
            yield from _groups(part.body)
        else:
            yield part


def _shared(groups: Sequence[Sequence[Stmt]]) -> tuple[Variable, ...]:
    """The locals that one group defines and another uses."""
    everywhere = {v: None for group in groups for v in _defined(group)}
    foreign = {v for group in groups for v in locals_used(group) - _defined(group).keys()}
    return tuple(v for v in everywhere if v in foreign)


def _defined(body: Sequence[Stmt]) -> dict[Variable, None]:
    return {stmt.variable: None for stmt in walk_statements(tuple(body)) if isinstance(stmt, Define)}


def _changed(body: Sequence[Stmt]) -> set[Variable]:
    return {stmt.variable for stmt in walk_statements(tuple(body)) if isinstance(stmt, (Define, Update))}
