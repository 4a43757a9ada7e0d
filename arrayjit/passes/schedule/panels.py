"""panels: steps that change a whole matrix by one of its rows and columns go in groups.

    for k in sequential(0, 199):                          for g in sequential(0, 24):
        for i in parallel(0, 199 - k):                        for s in sequential(0, 8):
            a[i + k + 1, k] = a[i + k + 1, k] / a[k, k]           ... step 8*g + s, for rows and columns up
            for j in parallel(0, 199 - k):                            to 8*g + 7; and
                t = a[i + k + 1, k] * a[k, j + k + 1]             for r in parallel(8*g + s + 1, 200):
                a[i + k + 1, j + k + 1] -= t        ->                column[r, s] = a[r, 8*g + s]
                                                                  for c in parallel(8*g + s + 1, 200):
                                                                      row[s, c] = a[8*g + s, c]
                                                              for c in parallel(8*g + 8, 200):
                                                                  for s in sequential(0, 8):
                                                                      for r in parallel(8*g + 8, 200):
                                                                          a[r, c] -= column[r, s] * row[s, c]
                                                          ... the last 7 steps as before

A step needs its pivot's row and column, as earlier steps have left them. What these need of the steps of a
group is in a panel: the group's rows and columns. So the panel goes first, and keeps what each step used;
then every other cell takes all steps of the group, in the order of before, while it is in a register
(`trapezoid`). Before, each step went through the whole matrix, from the second cache or beyond. LU
factorisations, the eliminations of Gauss and of Jordan, sweep operators, shortest paths after Floyd and
Warshall are such steps: they take 0.2 to 0.5 of the time.

Panels and what is left to update: J. J. Dongarra, F. G. Gustavson and A. Karp, Implementing linear algebra
algorithms for dense matrices on a vector pipeline machine (1984); for paths G. Venkataraman, S. Sahni and S.
Mukhopadhyaya, A blocked all-pairs shortest-paths algorithm (2003), whose cells take other sums than here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Load, Local, dtype_of
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Define,
    For,
    LoopKind,
    Place,
    PlaceKind,
    Stmt,
    Store,
    Update,
    nested,
    walk_statements,
    written_in,
)
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, nodes_in, transform_statements
from ..analysis.copies import Copying, copy_body, unless_once
from ..analysis.loopwise import Site, loopwise
from ..analysis.pivots import Changes, Pivoting, Span, pivoting
from ..analysis.trips import blocks

__all__ = ["panels"]

MANY_REGISTERS = 32

STEPS, FEW_STEPS = 8, 4
"""In a group, with many registers and with few: each takes some for its row."""

GROUPS = 8
"""So many at least there are: of fewer, the panels are most of the work."""

VECTORS = 8
"""So many at least are in a row."""

MOST_STATEMENTS = 8
"""More take longer than to read and to store a cell."""

MOST_KEPT = 6
"""Rows, columns and numbers that a step keeps for later."""


@loopwise
def panels(loop: For, site: Site) -> Sequence[Stmt] | None:
    """Every loop over such steps in groups."""
    if loop.kind is not LoopKind.SEQUENTIAL:
        return (loop,)  # iterations would share what steps keep
    steps = pivoting(loop)
    if steps is None or not _pays(steps, site.caps):
        return None
    count = _count(site.caps)
    kept = {at: _kept(steps.loop, located.changes, count) for at, located in steps.changes.items()}
    known = {at: found for at, found in kept.items() if found is not None}
    if len(known) < len(kept):
        return None
    for found in known.values():
        site.placement.update(
            (keep.into, Place(PlaceKind.ARENA, "other cells take a group of steps later")) for keep in found
        )
    site.notes.append(f"panels: {count} steps of {loop.symbol.hint} at once change most cells")
    return _Grouping(steps, known, count).loops()


def _count(caps: Caps) -> int:
    """How many steps go together."""
    return STEPS if caps.registers >= MANY_REGISTERS else FEW_STEPS


def _pays(steps: Pivoting, caps: Caps) -> bool:
    """Are there enough steps, rows of enough vectors, and more cells than the first cache holds?"""
    if (steps.loop.trips or 0) < GROUPS * _count(caps):
        return False
    return all(
        located.rows.sides
        and located.columns.sides
        and len(located.changes.columns.body) <= MOST_STATEMENTS
        and all(
            tensor.has_fixed_shape
            and tensor.nbytes > caps.l1_bytes
            and tensor.shape[1].constant * tensor.dtype.itemsize >= VECTORS * caps.vector_bytes
            for tensor in located.changes.tensors
        )
        for located in steps.changes.values()
    )


@frozen
class _Keep:
    """A number that changes need, as it is when a step makes them: `into` has it for each step of a group, in
    each row if it `has_rows`, or in each column if it `has_columns`."""

    number: Load | Local
    into: Tensor
    has_rows: bool
    has_columns: bool

    def cell(self, changes: Changes, step: Affine) -> tuple[Affine, ...]:
        """Where it is for the row and column that the changes are at."""
        row, column = changes.index
        if self.has_columns:
            return step, column
        return (row, step) if self.has_rows else (step,)


def _kept(loop: For, changes: Changes, count: int) -> list[_Keep] | None:
    """What changes need of all that steps make; None if that differs from cell to cell."""
    inside = list(walk_statements(loop.body))
    made = written_in(inside)
    named = {stmt.variable for stmt in inside if isinstance(stmt, (Define, Update))}
    here = locals_defined(changes.columns.body)
    by_row = locals_defined(changes.before)
    row, column = changes.rows.symbol, changes.columns.symbol
    numbers = dict.fromkeys(_numbers(changes.columns.body))
    numbers |= dict.fromkeys(
        number
        for number in _numbers(changes.after)
        if isinstance(number, Local) and number.variable in by_row
    )
    kept: list[_Keep] = []
    for number in numbers:
        match number:
            case Load(tensor=tensor, index=index):
                is_changed = tensor in changes.tensors and index == changes.index
                if is_changed or tensor.storage not in made:
                    continue
                symbols = set(symbols_of(index))
                has_rows, has_columns, label = row in symbols, column in symbols, tensor.label
            case Local(variable=variable):
                if variable in here or variable not in named:
                    continue
                has_rows, has_columns, label = variable in by_row, False, variable.hint
        if has_rows and has_columns:
            return None
        height, width = changes.tensors[0].shape
        shape = (height,) * has_rows + (Affine.of(count),) + (width,) * has_columns
        kept.append(_Keep(number, Tensor(f"{label}_steps", shape, dtype_of(number)), has_rows, has_columns))
    return kept if len(kept) <= MOST_KEPT else None


def _numbers(body: tuple[Stmt, ...]) -> Iterator[Load | Local]:
    return (node for node in nodes_in(body) if isinstance(node, (Load, Local)))


@slotted
class _Grouping:
    """Steps in groups of `count`; the `number` of a step is that in its group."""

    steps: Pivoting
    kept: Mapping[int, Sequence[_Keep]]
    count: int
    group: Symbol = field(default_factory=lambda: Symbol("group"))

    def at(self, number: Affine) -> Affine:
        """A step of a group."""
        loop = self.steps.loop
        return loop.lo + (Affine.of(self.group) * self.count + number) * loop.step

    @property
    def panel(self) -> Span:
        """The rows and columns of the pivots of a group."""
        number = Affine.of(0 if self.steps.loop.step > 0 else self.count - 1)
        start = self.steps.pivot.substitute({self.steps.loop.symbol: self.at(number)})
        return start, start + self.count

    def loops(self) -> tuple[Stmt, ...]:
        """The groups, then the steps that are left."""
        loop = self.steps.loop
        binds, groups = blocks(loop, self.count)
        number, left = Symbol(loop.symbol.hint), Symbol(loop.symbol.hint)
        early = For(number, Affine.of(0), Affine.of(self.count), tuple(self.early(Affine.of(number))))
        body = (early, *(stmt for at in self.kept for stmt in self.late(at)))
        main = For(self.group, Affine.of(0), groups, body)
        rest = copy_body(loop.body, {loop.symbol: Affine.of(left)}, {})
        last = replace(loop, symbol=left, lo=loop.lo + groups * (self.count * loop.step), body=rest)
        return (*binds, main, *(() if last.trips == 0 else unless_once(last)))

    def early(self, number: Affine) -> Iterator[Stmt]:
        """A step, with changes in the panel alone."""
        copying = Copying({self.steps.loop.symbol: self.at(number)}, {})
        for at, stmt in enumerate(self.steps.loop.body):
            if at in self.kept:
                yield from self.keeping(at, number, copying)
                yield from self.in_panel(at, number, copying)
                yield from self.after(at, number, copying)
            else:
                yield copying.statement(stmt)

    def keeping(self, at: int, number: Affine, copying: Copying) -> Iterator[Stmt]:
        """Keeps what the changes of a step need, after the own part of each row."""
        changes = self.steps.changes[at].changes

        def stores(*, rows: bool, columns: bool) -> tuple[Stmt, ...]:
            return tuple(
                Store(keep.into, keep.cell(changes, number), keep.number)
                for keep in self.kept[at]
                if keep.has_rows == rows and keep.has_columns == columns
            )

        yield from copying.body(stores(rows=False, columns=False))
        for loop, body in (
            (changes.rows, (*changes.before, *stores(rows=True, columns=False))),
            (changes.columns, stores(rows=False, columns=True)),
        ):
            inside = Copying(copying.symbols, copying.variables)
            yield from inside.body(nested([loop], body))

    def in_panel(self, at: int, number: Affine, copying: Copying) -> Iterator[Stmt]:
        """The changes of a step to the panel's rows, and to its columns in the other rows."""
        located = self.steps.changes[at]
        pivot = self.steps.pivot.substitute(copying.symbols)
        rows, columns = (way.within(pivot, self.panel) for way in (located.rows, located.columns))
        ends = (end.substitute(copying.symbols) for end in (located.columns.lo, located.columns.hi))
        others = [(span, columns) for span in located.rows.beside(self.panel)]
        for height, width in ((rows, (next(ends), next(ends))), *others):
            yield from self.changing(at, height, width, number, copying.symbols, is_late=False)

    def after(self, at: int, number: Affine, copying: Copying) -> Iterator[Stmt]:
        """What each row does after its columns."""
        changes = self.steps.changes[at].changes
        body = self.reading(at, changes.after, number, Local)
        yield from Copying(copying.symbols, copying.variables).body(nested([changes.rows], body))

    def late(self, at: int) -> Iterator[Stmt]:
        """The changes of all steps of a group to what is not in its panel."""
        located = self.steps.changes[at]
        beside = located.rows.beside(self.panel), located.columns.beside(self.panel)
        for height, width in product(*beside):
            number = Affine.of(Symbol(self.steps.loop.symbol.hint))
            symbols = {self.steps.loop.symbol: self.at(number)}
            yield from self.changing(at, height, width, number, symbols, is_late=True)

    def changing(
        self,
        at: int,
        height: Span,
        width: Span,
        number: Affine,
        symbols: Mapping[Symbol, Affine],
        *,
        is_late: bool,
    ) -> tuple[Stmt, ...]:
        """Changes to some rows and columns: in one step, or, column after column, in all steps."""
        changes = self.steps.changes[at].changes
        rows, columns = (
            replace(loop, symbol=Symbol(loop.symbol.hint), lo=lo, hi=hi)
            for loop, (lo, hi) in ((changes.rows, height), (changes.columns, width))
        )
        if rows.trips == 0 or columns.trips == 0:
            return ()
        inside = dict(symbols)
        for loop, new, position in zip(
            (changes.rows, changes.columns), (rows, columns), changes.index, strict=True
        ):
            shift = (position - loop.symbol).substitute(symbols)
            inside[loop.symbol] = Affine.of(new.symbol) - shift
        body = copy_body(self.reading(at, changes.columns.body, number), inside, {})
        if not is_late:
            return nested((rows, columns), body)
        assert number.symbol is not None
        steps = For(number.symbol, Affine.of(0), Affine.of(self.count), ())
        return nested((columns, steps, rows), body)

    def reading(
        self, at: int, body: tuple[Stmt, ...], number: Affine, kind: type[Load | Local] | None = None
    ) -> tuple[Stmt, ...]:
        """A part of changes with what is kept, of one kind or of both, for it."""
        changes = self.steps.changes[at].changes
        cells = {
            keep.number: Load(keep.into, keep.cell(changes, number))
            for keep in self.kept[at]
            if kind is None or isinstance(keep.number, kind)
        }

        def kept(node: Expr) -> Expr:
            return cells.get(node, node) if isinstance(node, (Load, Local)) else node

        return transform_statements(body, kept)
