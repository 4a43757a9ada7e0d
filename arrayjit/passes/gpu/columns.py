"""Sums down the columns of memory, by blocks whose threads go along it.

    for j in parallel(0, 3000):             for t in grid(0, 94):
        s = -0.0                                for e in block(0, 256, lanes=256):
        for i in parallel(0, 500):                  r = e // 32
            s = add(s, x[i, j])     ->              s = -0.0
        y[j] = s                                    for i in sequential(r, 500, 8):
                                                        s = add(s, x[i, 32*t + e % 32])
                                                    part[r, e % 32] = s
                                                for c in block(0, 32, lanes=256):
                                                    y[32*t + c] = ((part[0, c] + part[4, c]) + ...

A block takes a few columns, as many as a warp reads at once, and its threads share their rows: number `r` of
`n` that share a column takes rows `r`, `r + n`, ..., starting from the op's identity, then their parts are
folded in half repeatedly, as those of a `block` loop. What else is done for each column, before, between and
after its sums, one thread does. Where that makes too few blocks, other blocks take other rows, and the sums
of their parts, which are kept in order, are sums down columns again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import GpuCaps
from ...ir.conditions import compare
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Index, Load, Local, Variable, neutral
from ...ir.index import Affine, Symbol, affine, symbols_of
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    walk_statements,
)
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import locals_read, locals_updated
from ..analysis.access import Ranges, effects
from ..analysis.carriers import disturb
from ..analysis.copies import Copying, copy_body
from ..analysis.strides import affine_accesses, stride
from ..analysis.trips import lesser
from .nests import Grids, Nest, accumulated, flat, nest_of, power_of_two

__all__ = ["by_columns", "identity", "limits"]

THREADS = 256
"""Of a block."""

BLOCKS = 4
"""So many blocks of them keep a processor busy."""

SHARED_ROWS = 4
"""Fewer rows than these are not worth a thread of their own."""

PART_ROWS = 8
"""Fewer rows for each thread are not worth a block of their own."""

NEAR = 4
"""Columns that are no farther apart, as parts of complex numbers are, share what memory gives at once."""

TREE = 8
"""So many parts one thread adds up."""

ZERO = Affine.of(0)


def by_columns(nest: Nest, gpu: GpuCaps, ranges: Ranges) -> Grids | None:
    """The nest as blocks of columns; None if it has none, or so many that a thread for each is as good."""
    program = _program(nest)
    if program is None:
        return None
    points, rows = nest.points(ranges), program.rows(ranges)
    width = min(gpu.warp, power_of_two(program.columns.trips or gpu.warp))
    shared, least = THREADS // width, max(2, gpu.warp // width)
    while shared > least and rows < SHARED_ROWS * shared:
        shared //= 2
    if points >= BLOCKS * THREADS * gpu.processors or rows < SHARED_ROWS * shared:
        return None
    reason = (
        f"a thread for each of {points} columns would go through {rows} rows alone, so blocks take columns"
    )
    blocks = points // width
    count = min(BLOCKS * gpu.processors // max(blocks, 1), rows // (PART_ROWS * shared))
    if count < 2 or program.columns.trips is None or not program.is_one_sum():
        built = _Blocks(program, width, shared)
        return Grids((built.grid(),), built.placement, reason)
    making, tensors, rest = _in_parts(program, count)
    first = _Blocks(making, width, shared)
    second = _Blocks(rest, width, max(min(shared, power_of_two(count) // SHARED_ROWS), gpu.warp // width))
    placement = {tensor: Place(PlaceKind.ARENA, "blocks form parts of a sum") for tensor in tensors}
    launches = first.grid(), second.grid()
    return Grids(
        launches, {**placement, **first.placement, **second.placement}, f"{reason}, in {count} parts"
    )


@frozen
class _Program:
    """What is done for each of the `columns`, in each iteration of the loops `around`: scalar statements and
    loops over rows, after `numbers` that are the same for all columns."""

    around: tuple[For, ...]
    columns: For
    numbers: tuple[Bind, ...]
    body: tuple[Stmt, ...]

    def rows(self, ranges: Ranges) -> int:
        """How many rows the longest loop has, about; many where nobody knows."""
        counts = (nest_of(stmt).points(ranges) for stmt in self.body if isinstance(stmt, For))
        return max(counts)

    def is_one_sum(self) -> bool:
        """Is there one loop over rows, which does nothing but add up?"""
        loops = [stmt for stmt in self.body if isinstance(stmt, For)]
        before = self.body[: self.body.index(loops[0])]
        return len(loops) == 1 and all(isinstance(stmt, Define) for stmt in before) and not any(
            isinstance(stmt, Store) for stmt in walk_statements(loops[0].body)
        )  # fmt: skip


def _program(nest: Nest) -> _Program | None:
    rows = tuple(stmt for stmt in nest.body if isinstance(stmt, For))
    if not rows or not all(isinstance(stmt, (Define, Update, Store, For)) for stmt in nest.body):
        return None
    own = {loop.symbol for loop in nest.loops}
    if any(loop.step != 1 for loop in nest.loops) or not all(_are_rows(loop, own) for loop in rows):
        return None
    columns = max(nest.loops, key=lambda loop: _near(rows, loop.symbol, loop.symbol, NEAR))
    along = _near(rows, columns.symbol, columns.symbol, NEAR)
    inner = [stmt.symbol for stmt in walk_statements(rows) if isinstance(stmt, For)]
    if along == 0 or any(_near(rows, symbol, columns.symbol, 1) >= along for symbol in inner):
        return None
    around = tuple(loop for loop in nest.loops if loop is not columns)
    if _is_reused(rows, columns, around) or (around and columns.trips is None):
        return None
    if any(loop.trips is None for loop in around[1:]) or any(loop.trips == 0 for loop in nest.loops):
        return None
    return _Program(around, columns, (), nest.body)


def _near(rows: tuple[For, ...], symbol: Symbol, column: Symbol, most: int) -> int:
    """How many accesses to cells of a column move by so many cells at most when the symbol grows by one."""
    moves = (
        stride(tensor, index, symbol)
        for tensor, index, _ in affine_accesses(rows)
        if any(position.coefficient(column) for position in index)
    )
    return sum(move is not None and 1 <= abs(move) <= most for move in moves)


def _are_rows(loop: For, own: set[Symbol]) -> bool:
    """Are the iterations independent, but for sums that they add to, and those of each column the same?"""
    inside = list(walk_statements(loop.body))
    return (
        loop.kind is LoopKind.PARALLEL
        and loop.step == 1
        and accumulated(loop) is not None
        and all(isinstance(stmt, (Define, Update, Store, For, If)) for stmt in inside)
        and own.isdisjoint(loop.bound_by)
    )


def _is_reused(rows: tuple[For, ...], columns: For, around: Sequence[For]) -> bool:
    """Do iterations of the loops around read the same columns, as those of matrix products do?"""
    for _, index, _ in affine_accesses(rows):
        symbols = set(symbols_of(index))
        if columns.symbol in symbols and all(loop.symbol in symbols for loop in around):
            return False
    return True


# sums in parts


def _in_parts(program: _Program, count: int) -> tuple[_Program, list[Tensor], _Program]:
    """The program in two, of which the first forms so many parts of each sum and the second adds them up; and
    what it keeps them in."""
    at = next(number for number, stmt in enumerate(program.body) if isinstance(stmt, For))
    before, rows, after = program.body[:at], program.body[at], program.body[at + 1 :]
    assert isinstance(rows, For)
    rows = flat(nest_of(rows))
    sums = accumulated(rows) or ()
    accums = {update.variable: update.accum for update in sums}
    place = (*(loop.symbol - loop.lo for loop in program.around), program.columns.symbol - program.columns.lo)
    extents = (*(loop.hi - loop.lo for loop in program.around), program.columns.hi - program.columns.lo)
    tensors = {v: Tensor(f"{v.hint}s", (Affine.of(count), *extents), v.dtype) for v in accums}
    part, again = (Symbol("p", lower=0, upper=count) for _ in range(2))
    first, last, numbers = limits(rows, part, count)
    copying = Copying({}, {})
    starts = copying.body(tuple(stmt for stmt in before if not _made((stmt,)).keys() & accums.keys()))
    for update in sums:
        copying.variables[update.variable] = Variable(update.variable.hint, update.variable.dtype)
    starts += tuple(Define(copying.variables[update.variable], identity(update)) for update in _once(sums))
    adding = replace(rows, lo=first, hi=last, body=copying.body(rows.body))
    keeping = [Store(tensors[v], (Affine.of(part), *place), Local(copying.variables[v])) for v in accums]
    parts = For(part, ZERO, Affine.of(count), (), LoopKind.PARALLEL)
    making = _Program((*program.around, parts), program.columns, tuple(numbers), (*starts, adding, *keeping))
    terms = [Update(v, Load(tensors[v], (Affine.of(again), *place)), accums[v]) for v in accums]
    total = For(again, ZERO, Affine.of(count), tuple(terms), LoopKind.PARALLEL)
    return making, list(tensors.values()), _fresh(replace(program, body=(*before, total, *after)))


def _fresh(program: _Program) -> _Program:
    """The program over loops of its own."""
    loops = [replace(loop, symbol=_like(loop.symbol)) for loop in (*program.around, program.columns)]
    old = (*program.around, program.columns)
    values = {one.symbol: Affine.of(other.symbol) for one, other in zip(old, loops, strict=True)}
    return replace(
        program, around=tuple(loops[:-1]), columns=loops[-1], body=copy_body(program.body, values, {})
    )


def _like(symbol: Symbol) -> Symbol:
    return Symbol(symbol.hint, symbol.kind, symbol.lower, symbol.upper)


def _once(sums: Sequence[Update]) -> list[Update]:
    """An update of each variable."""
    return list({update.variable: update for update in sums}.values())


def limits(whole: For, part: Symbol, count: int) -> tuple[Affine, Affine, list[Bind]]:
    """From where to where part number `part` of `count` of a loop goes, after what computes it."""
    extent = whole.hi - whole.lo
    first, last = Symbol("first"), Symbol("last")
    size: Expr
    if extent.is_constant:
        each = -(-extent.offset // count)
        start: Expr = Index(Affine.of(part) * each)
        size = Const(each, I64)
    else:
        size = Apply(OPS["raw_divide"], (Index(extent + (count - 1)), Const(count, I64)), I64)
        start = Apply(OPS["multiply"], (Index(Affine.of(part)), size), I64)
    end = Apply(OPS["add"], (Index(Affine.of(first)), size), I64)
    return whole.lo + first, whole.lo + last, [Bind(first, start), Bind(last, lesser(end, extent))]


def identity(update: Update) -> Const:
    """What a sum of nothing is."""
    assert update.accum is not None
    return neutral(update.accum, update.variable.dtype)


# blocks


@slotted
class _Blocks:
    """A program by blocks of `width` columns, in each of which `shared` threads share the rows. `homes` have
    the columns' variables from one loop of the block to another; `place` stands for a column's number in its
    block, where statements are not in their loop yet."""

    program: _Program
    width: int
    shared: int
    placement: dict[Tensor, Place] = field(default_factory=dict)
    homes: dict[Variable, Tensor] = field(default_factory=dict)
    out: list[Stmt] = field(default_factory=list)
    place: Symbol = field(default_factory=lambda: Symbol("c"))
    start: Affine = ZERO

    def grid(self) -> For:
        """The launch."""
        program, columns = self.program, self.program.columns
        tile = Symbol("t")
        if columns.trips is None:
            self.start = Affine.of(tile)
            body = (*program.numbers, *self.body())
            return For(tile, columns.lo, columns.hi, body, LoopKind.GRID, step=self.width)
        count = -(-columns.trips // self.width)
        tiles = For(tile, ZERO, Affine.of(count), (), LoopKind.PARALLEL)
        loops = (*program.around, tiles) if count > 1 or not program.around else program.around
        self.start = columns.lo + Affine.of(tile) * self.width if tiles in loops else columns.lo
        return replace(flat(Nest(loops, (*program.numbers, *self.body()))), kind=LoopKind.GRID)

    def body(self) -> tuple[Stmt, ...]:
        """Loops over rows, in each of which all threads take part, and what one does for a column between
        them."""
        waiting: list[Stmt] = []
        body = self.program.body
        for number, stmt in enumerate(body):
            if not isinstance(stmt, For):
                waiting.append(stmt)
                continue
            if _meet(waiting, stmt):
                now, waiting = _apart(waiting, stmt)
                self.by_column(now, (*waiting, *body[number:]))
            waiting += self.by_row(stmt)
        self.by_column(waiting, ())
        return tuple(self.out)

    def by_row(self, loop: For) -> list[Stmt]:
        """A loop over rows; returns what adds its sums to the variables of a column."""
        loop = flat(nest_of(loop))
        sums = _once(accumulated(loop) or ())
        thread, shared = Symbol("e"), Symbol("r", lower=0, upper=self.shared)
        column = thread - Affine.of(shared) * self.width
        copying = self.copying(column)
        taken = self.taken(copying, _read((loop,)), column)
        own = {update.variable: Variable(update.variable.hint, update.variable.dtype) for update in sums}
        copying.variables.update(own)
        starts = [Define(own[update.variable], identity(update)) for update in sums]
        row = Symbol(loop.symbol.hint)
        copying.symbols[loop.symbol] = Affine.of(row)
        lo, hi = (end.substitute(copying.symbols) for end in (loop.lo, loop.hi))
        rows = For(row, lo + shared, hi, copying.body(loop.body), step=self.shared)
        parts = {v: self.kept(v, (self.shared, self.width), "threads form parts of a sum") for v in own}
        ends = [Store(parts[v], (Affine.of(shared), column), Local(own[v])) for v in own]
        inside = self.existing(column, (*taken, *starts, rows, *ends))
        self.out.append(self.dealt(thread, shared, self.shared, inside))
        return [self.folded(update.variable, parts[update.variable], update.accum) for update in sums]

    def folded(self, variable: Variable, parts: Tensor, op: Op | None) -> Update:
        """The parts of a sum added to a column's variable, in halves; all but the last few by many
        threads."""
        assert op is not None
        count = self.shared
        while count > TREE:
            count //= TREE
            fewer = self.kept(variable, (count, self.width), "threads fold parts of a sum")
            thread, row = Symbol("e"), Symbol("r", lower=0, upper=count)
            column = thread - Affine.of(row) * self.width
            parts_of = [Load(parts, (Affine.of(row) + count * n, column)) for n in range(TREE)]
            store = Store(fewer, (Affine.of(row), column), _tree(op, parts_of, variable))
            self.out.append(self.dealt(thread, row, count, self.existing(column, (store,))))
            parts = fewer
        at = Affine.of(self.place)
        total = _tree(op, [Load(parts, (Affine.of(row), at)) for row in range(count)], variable)
        return Update(variable, total, op)

    def by_column(self, body: Sequence[Stmt], after: Sequence[Stmt]) -> None:
        """What one thread does for a column; what statements `after` that need of it is kept."""
        if not body:
            return
        column = Symbol("c", lower=0, upper=self.width)
        copying = self.copying(Affine.of(column))
        taken = self.taken(copying, _mentioned(body), Affine.of(column))
        done = copying.body(tuple(body))
        later = _mentioned(after)
        ends: list[Stmt] = []
        for variable in _made(body):
            if variable in later:
                if variable not in self.homes:
                    self.homes[variable] = self.kept(variable, (self.width,), "rows need it of their column")
                home = self.homes[variable]
                ends.append(Store(home, (Affine.of(column),), Local(copying.variables[variable])))
        inside = self.existing(Affine.of(column), (*taken, *done, *ends))
        self.out.append(
            For(column, ZERO, Affine.of(self.width), inside, LoopKind.BLOCK, lanes=self.width * self.shared)
        )

    def copying(self, column: Affine) -> Copying:
        return Copying({self.program.columns.symbol: self.start + column, self.place: column}, {})

    def taken(self, copying: Copying, needed: set[Variable], column: Affine) -> list[Define]:
        """The variables of the column, among those that are needed, that were made before."""
        taken = []
        for variable in self.homes:
            if variable in needed:
                copying.variables[variable] = Variable(variable.hint, variable.dtype)
                taken.append(Define(copying.variables[variable], Load(self.homes[variable], (column,))))
        return taken

    def dealt(self, thread: Symbol, row: Symbol, rows: int, body: tuple[Stmt, ...]) -> For:
        """A loop over some rows of the block's columns."""
        number = Bind(row, Apply(OPS["raw_divide"], (Index(Affine.of(thread)), Const(self.width, I64)), I64))
        extent = Affine.of(rows * self.width)
        return For(thread, ZERO, extent, (number, *body), LoopKind.BLOCK, lanes=self.width * self.shared)

    def existing(self, column: Affine, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements for columns that exist."""
        columns = self.program.columns
        if columns.trips is not None and columns.trips % self.width == 0:
            return body
        there = compare("less", Index(self.start + column), Index(columns.hi))
        return (If(there, body),)

    def kept(self, variable: Variable, shape: tuple[int, ...], reason: str) -> Tensor:
        tensor = Tensor(variable.hint, affine(shape), variable.dtype)
        self.placement[tensor] = Place(PlaceKind.SCRATCH, reason)
        return tensor


def _tree(op: Op, values: Sequence[Expr], variable: Variable) -> Expr:
    """The values in halves, the upper one onto the lower one."""
    while len(values) > 1:
        half = len(values) // 2
        pairs = zip(values[:half], values[half:], strict=True)
        values = [Apply(op, pair, variable.dtype) for pair in pairs]
    return values[0]


def _meet(before: Sequence[Stmt], loop: For) -> bool:
    """Does a loop need what statements before it make, or they what it changes?"""
    return disturb(effects(before, {}), effects((loop,), {})) or not _read((loop,)).isdisjoint(_made(before))


def _apart(waiting: Sequence[Stmt], loop: For) -> tuple[list[Stmt], list[Stmt]]:
    """What is done before a loop, and the constants that sums start from, which may wait until they end."""
    starts = {
        stmt.variable: stmt for stmt in waiting if isinstance(stmt, Define) and isinstance(stmt.value, Const)
    }
    others = [stmt for stmt in waiting if stmt not in starts.values()]
    needed = _read((*others, loop)) | _made(others).keys()
    later = [start for variable, start in starts.items() if variable not in needed]
    return [stmt for stmt in waiting if stmt not in later], [*later]


def _made(body: Sequence[Stmt]) -> dict[Variable, None]:
    """The variables that statements of a column give values."""
    return {stmt.variable: None for stmt in body if isinstance(stmt, (Define, Update))}


def _read(body: Sequence[Stmt]) -> set[Variable]:
    return set(locals_read(walk_statements(tuple(body))))


def _mentioned(body: Sequence[Stmt]) -> set[Variable]:
    """The variables that statements read or change."""
    inside = walk_statements(tuple(body))
    return _read(body) | locals_updated(inside)
