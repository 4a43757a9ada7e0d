"""Values that one launch makes and another one needs go through memory, a cell each.

for g in grid(0, 1):                        for g in grid(0, 1):
    s = sqrt(x[0])                              s = sqrt(x[0])
for i in grid(0, 5000, lanes=256):   ->         cell[()] = s
    y[i] = add(x[i], s)                     for i in grid(0, 5000, lanes=256):
                                                s = cell[()]
                                                y[i] = add(x[i], s)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Union

from ...frozen import slotted
from ...ir.dtype import I64
from ...ir.expr import Expr, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, LoopKind, Place, PlaceKind, Stmt, Store, Update, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import locals_read, rewrite_bodies
from ..analysis.access import mentioned
from ..analysis.copies import Copying

__all__ = ["block_threads", "cross"]

Name = Union[Variable, Symbol]


def cross(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], dict[Tensor, Place]]:
    """The host's statements, and the cells that their launches use."""
    launches = [_Launch.of(loop) for loop in _launches(body)]
    crossing = _Crossing()
    made = {name for launch in launches for name in launch.made}
    for launch in launches:
        for name in launch.used:
            if name in made and name not in launch.made and name not in crossing.cells:
                crossing.cells[name] = _cell(name)
    if crossing.cells:
        body = crossing.body(body)
    why = "a launch hands a value to another one"
    return body, {cell: Place(PlaceKind.ARENA, why) for cell in crossing.cells.values()}


def block_threads(grid: For) -> int:
    """How many threads a block of a grid has."""
    inside = walk_statements(grid.body)
    sizes = (stmt.lanes for stmt in inside if isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK)
    return max(sizes, default=grid.lanes)


def _launches(body: tuple[Stmt, ...]) -> Iterator[For]:
    for stmt in walk_statements(body):
        if isinstance(stmt, For) and stmt.kind is LoopKind.GRID:
            yield stmt


def _cell(name: Name) -> Tensor:
    return Tensor(name.hint, (), name.dtype if isinstance(name, Variable) else I64)


@slotted
class _Launch:
    """The variables and bound symbols of a grid: those it makes, changes, and mentions, in order."""

    made: set[Name] = field(default_factory=set)
    changed: set[Name] = field(default_factory=set)
    used: dict[Name, None] = field(default_factory=dict)

    @staticmethod
    def of(loop: For) -> _Launch:
        launch = _Launch()
        launch.used.update(dict.fromkeys(mentioned(loop.body)))
        for stmt in walk_statements(loop.body):
            match stmt:
                case Define(variable=variable):
                    launch.made.add(variable)
                case Bind(symbol=symbol):
                    launch.made.add(symbol)
                case Update(variable=variable):
                    launch.changed.add(variable)
                    launch.used[variable] = None
                case _:
                    pass
            launch.used.update(dict.fromkeys(locals_read((stmt,))))
        return launch


@slotted
class _Crossing:
    """`cells` are those of the names that cross."""

    cells: dict[Name, Tensor] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(
            self.launch(stmt) if isinstance(stmt, For) and stmt.kind is LoopKind.GRID
            else rewrite_bodies(stmt, self.body)
            for stmt in body
        )  # fmt: skip

    def launch(self, loop: For) -> For:
        """A grid with names of its own for the values that it takes from others."""
        found = _Launch.of(loop)
        taken = [name for name in self.cells if name in found.used and name not in found.made]
        given = [name for name in self.cells if name in found.made or name in found.changed]
        copying = Copying({}, {})
        before = copying.body(tuple(_taken(name, self.cells[name]) for name in taken))
        body = copying.body(loop.body) if taken else loop.body
        after = copying.body(tuple(Store(self.cells[name], (), _present(name)) for name in given))
        return replace(loop, body=(*before, *body, *_by_one(after, block_threads(loop))))


def _taken(name: Name, cell: Tensor) -> Stmt:
    value = Load(cell, ())
    return Define(name, value) if isinstance(name, Variable) else Bind(name, value)


def _present(name: Name) -> Expr:
    return Local(name) if isinstance(name, Variable) else Index(Affine.of(name))


def _by_one(stores: tuple[Stmt, ...], threads: int) -> tuple[Stmt, ...]:
    """Stores by one thread of a block of so many."""
    if not stores or threads == 1:
        return stores
    once = Symbol("t", lower=0, upper=1)
    return (For(once, Affine.of(0), Affine.of(1), stores, LoopKind.BLOCK, lanes=threads),)
