"""What a recorded loop appended to lists: rows of memory with the iteration's number, and items made of them.

    for k in range(100):                 for k in range(100):
        xs.append(x + k)          =>         x[k] = ...
                                         xs += [x[0], x[1], ..., x[99]]

An array that the body made and a number that it computed are stored at the end of the iteration, when the
body has written into the array what it will. A view of an older array and an integer that the iteration's
number tells are the same expressions after the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Union

from ...errors import Location
from ...frozen import frozen_by_identity
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ..record.retrace import Reason, Site
from ..record.sameness import Held
from ..record.scopes import Mark
from ..record.state import reachable
from ..record.trace import Trace
from ..record.tree import Leaf, Structure, statics, unflatten
from ..record.view import View, same_cells
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand, operand_at
from ..values.integer import SymbolicInt
from ..values.rows import MANY, runs
from .carries import (
    Cell,
    Kind,
    Unfit,
    is_array,
    kind_of,
    leaves_of,
    substituted,
    symbols_of,
)
from .comprehensions import Built
from .growing import Growth
from .iterations import Iterations

__all__ = ["Appended"]

MOST_ITEMS = 1 << 20
"""Lists of more items are not made."""

_TEXT = (str, bytes, type(None))


@frozen_by_identity
class _Told:
    """A leaf that the loop's symbol tells."""

    leaf: Any


@frozen_by_identity
class _Stored:
    """A leaf that is row `first + each * iteration` of memory; `before` is the array that it is in the first
    iteration, if that is one from before the loop."""

    kind: Kind
    rows: View
    first: int
    each: int
    before: SymbolicArray | None


_Part = Union[_Told, _Stored]


@frozen_by_identity
class _Array:
    """An array that each iteration stores, as row `first + each * iteration`."""

    shown: View
    rows: View
    first: int
    each: int

    def row(self, iteration: int) -> View | None:
        """The array of an iteration after the first one, if it is one by itself."""
        is_known = iteration > 0 and self.shown.is_whole()
        return self.rows.part(self.first + self.each * iteration) if is_known else None

    def in_place_of(self, other: _Array) -> View | None:
        """The same rows as those of another one, if they are as far apart."""
        if self.each != other.each or not same_cells(self.shown, other.shown):
            return None
        shape, axes = other.rows.shape, self.rows.axes
        return self.rows.remap(shape, axes, (axes[0] + (self.first - other.first), *axes[1:]))


class Appended:
    """The items that an iteration appends to lists. `nexts` says what carried arrays become in it, `firsts`
    which they are in the first one, `written` what the body writes."""

    def __init__(
        self,
        trace: Trace,
        mark: Mark,
        iterations: Iterations,
        growths: Iterable[Growth | Built],
        nexts: Mapping[Cell, SymbolicArray],
        firsts: Mapping[Cell, Sequence[SymbolicArray]],
    ) -> None:
        self._trace = trace
        self._mark = mark
        self._iterations = iterations
        self._growths = [growth for growth in growths if growth.each]
        self._nexts = nexts
        self._firsts = firsts
        self._made = trace.symbols_since(mark)
        self._written = trace.written_since(mark)
        self._plans: list[tuple[Growth | Built, list[tuple[Structure, list[_Part]]]]] = []
        self._arrays: list[_Array] = []

    def __bool__(self) -> bool:
        return bool(self._growths)

    def __str__(self) -> str:
        return ", ".join(growth.label for growth in self._growths)

    # inside the body

    def store(self, alive: Collection[Any], site: Site) -> None:
        """Store the items, at the end of the iteration; `alive` are values that are read after it."""
        for growth in self._growths:
            if self._count * growth.each > MOST_ITEMS:
                raise Unfit(f"it appends more than {MOST_ITEMS:,} items to {growth.label}")
            items = list(growth.items)
            self._require_own(growth, items, alive)
            taken = [leaves_of(item) for item in items]
            parts: list[list[_Part]] = [[] for _ in items]
            for column in _columns(taken):
                found = self._column(growth, [taken[item][0][leaf] for item, leaf in column], site)
                for (item, _), part in zip(column, found, strict=True):
                    parts[item].append(part)
            structures = [structure for _, structure in taken]
            self._plans.append((growth, list(zip(structures, parts, strict=True))))

    @property
    def _count(self) -> int:
        return self._iterations.groups.constant

    def _require_own(self, growth: Growth | Built, items: Sequence[Any], alive: Collection[Any]) -> None:
        """Raise Unfit unless each item is made of arrays and numbers, and its containers are its own."""
        seen: set[int] = set()
        known = {id(part) for value in alive for part in reachable(value)}
        for item in items:
            for value in statics(leaves_of(item)[1]):
                if type(value) not in _TEXT:
                    raise Unfit(f"it appends a {type(value).__name__} to {growth.label}")
            for part in _containers(item):
                if id(part) in seen or id(part) in known:
                    raise Unfit(f"something else holds what it appends to {growth.label}")
                seen.add(id(part))

    def _column(self, growth: Growth | Built, leaves: Sequence[Any], site: Site) -> list[_Part]:
        """How the leaves at one place of the items that an iteration appends are found."""
        kinds = [kind_of(leaf) for leaf in leaves]
        if all(kind == kinds[0] for kind in kinds) and not any(map(self._is_told, leaves)):
            return self._rows(growth, leaves, site)
        return [
            _Told(leaf) if self._is_told(leaf) else self._rows(growth, [leaf], site)[0] for leaf in leaves
        ]

    def _is_told(self, leaf: Any) -> bool:
        """Whether the leaf is known from the iteration's number. Raises Unfit for an array of which neither
        that nor the contents are."""
        if type(leaf) is SymbolicInt:
            return symbols_of(leaf).isdisjoint(self._made)
        if not is_array(leaf):
            return type(leaf) is not SymbolicArray
        if self._cell(leaf) is not None or self._is_made_anew(leaf):
            return False
        if symbols_of(leaf).isdisjoint(self._made):
            return True
        raise Unfit("it appends a view whose place it computes")

    def _cell(self, array: SymbolicArray) -> Cell | None:
        """The carried array that this shows."""
        storage = array.cells.tensor.storage
        return next((cell for cell in self._nexts if cell.view.tensor is storage), None)

    def _later(self, storage: Tensor) -> dict[Tensor, tuple[int, bool]]:
        """The carried memories that hold what an iteration had in a storage: after how many more iterations
        they do at the end of one, and whether they hold all of it."""
        found: dict[Tensor, tuple[int, bool]] = {}
        waiting = [(storage, 0, True)]
        for memory, after, is_all in waiting:
            for cell, now in self._nexts.items():
                if now.cells.tensor.storage is memory and cell.view.tensor not in found:
                    held = after, is_all and now.cells.is_whole() and cell.view.is_whole()
                    found[cell.view.tensor] = held
                    waiting.append((cell.view.tensor, held[0] + 1, held[1]))
        return found

    def _is_made_anew(self, array: SymbolicArray) -> bool:
        storage = array.cells.tensor.storage
        alike = (storage, *self._trace.sameness.of(storage))
        return all(self._trace.is_new(one, self._mark) for one in alike)

    def _rows(self, growth: Growth | Built, leaves: Sequence[Any], site: Site) -> list[_Part]:
        """Store leaves of one kind in memory of their own."""
        kind = kind_of(leaves[0])
        assert kind is not None
        if any({*extent.symbols} & {self._iterations.symbol, *self._made} for extent in kind.shape):
            raise Unfit(f"what it appends to {growth.label} differs in shape from iteration to iteration")
        arrays = [leaf.cells for leaf in leaves if is_array(leaf)]
        if len({view.tensor.storage for view in arrays}) < len(arrays) and not _are_apart(arrays):
            raise Unfit(f"it appends an array twice to {growth.label}")
        later = {memory for view in arrays for memory in self._later(view.tensor.storage)}
        if any(view.tensor.storage in later for view in arrays):
            raise Unfit(f"two iterations append one array to {growth.label}")
        befores = [self._before(leaf) if is_array(leaf) else None for leaf in leaves]
        each = len(leaves)
        rows = self._trace.window((self._count * each, *kind.shape), kind.dtype, growth.label)
        for start, count, value in _stacked(leaves, self._trace):
            target = _stretch(rows, self._iterations.number * each + start, count)
            self._trace.store(target, value)
        if not kind.is_array:
            self._trace.came_from(rows.tensor, site)
        self._arrays += [_Array(leaf.cells, rows, n, each) for n, leaf in enumerate(leaves) if is_array(leaf)]
        return [_Stored(kind, rows, n, each, before) for n, before in enumerate(befores)]

    def _before(self, array: SymbolicArray) -> SymbolicArray | None:
        """The array that this one is in the first iteration, if that is from before the loop. Raises Unfit
        where later iterations may write into what was appended."""
        cell = self._cell(array)
        storage = array.cells.tensor.storage
        if any(
            now.cells.tensor.storage is storage and other.view.tensor in self._written
            for other, now in self._nexts.items()
        ):
            raise Unfit("its body writes into an array that the iteration before appended to a list")
        if cell is None:
            return None
        chained = self._firsts[cell][1:] or not self._is_made_anew(self._nexts[cell])
        if chained or array.cells.index != cell.view.index or cell.view.tensor in self._written:
            raise Unfit("it appends an array that it rebinds")
        return self._firsts[cell][0]

    # after the loop

    def give(self) -> None:
        """Append the items to the lists."""
        if not self._plans:
            return
        symbol = self._iterations.symbol
        ends = [
            {symbol: self._iterations.symbol_after(Affine.of(number + 1))} for number in range(self._count)
        ]
        for growth, plan in self._plans:
            parts = [(structure, [self._finder(part) for part in found]) for structure, found in plan]
            for number, values in enumerate(ends):
                for structure, finders in parts:
                    leaves = [find(number, values) for find in finders]
                    item = leaves[0] if type(structure) is Leaf else unflatten(structure, leaves)
                    growth.add(item)

    def _finder(self, part: _Part) -> Callable[[int, Mapping[Symbol, Affine]], Any]:
        """What gives the leaf of an iteration."""
        if isinstance(part, _Told):
            return lambda number, values: substituted(part.leaf, values)
        rows, trace, weak, is_scalar = part.rows, self._trace, part.kind.weak, part.kind.is_scalar
        shape, axes, inner = rows.shape[1:], rows.axes[1:], rows.index[1:]

        def find(number: int, values: Mapping[Symbol, Affine]) -> Any:
            if number == 0 and part.before is not None:
                return part.before
            index = (Affine.of(part.first + number * part.each), *inner)
            return SymbolicArray(View(rows.tensor, shape, axes, index), trace, weak, is_scalar)

        return find

    def tell_apart(
        self,
        finals: Mapping[Cell, Tensor],
        copies: Sequence[tuple[View, SymbolicArray]],
        site: Site,
        loc: Location | None,
    ) -> None:
        """An array that was appended may be known by other names after the loop, which stand for memory of
        their own: where either is written, it must not matter."""
        why = Reason("an array is in a list and has a name besides", loc, "append a copy of it", site)
        carried, sameness = {cell.view.tensor for cell in self._nexts}, self._trace.sameness
        memories = {*finals.values(), *(array.rows.tensor for array in self._arrays)}
        for array in self._arrays:
            rows, storage = array.rows.tensor, array.shown.tensor.storage
            if storage in carried:
                for memory in memories - {rows}:
                    sameness.note(rows, memory, why)
            later = self._later(storage)
            for memory, (after, is_all) in self._named(storage, later, finals, copies).items():
                if after < self._count:
                    row = array.row(self._count - 1 - after) if is_all else None
                    sameness.hold(memory, Held(rows, row, why))
            for other in self._arrays:
                if other.shown.tensor.storage in later and other.rows.tensor is not rows:
                    sameness.hold(other.rows.tensor, Held(rows, None, why))
        for array, other in combinations(self._arrays, 2):
            is_one = array.shown.tensor.storage is other.shown.tensor.storage
            if is_one and array.rows.tensor is not other.rows.tensor:
                sameness.hold(other.rows.tensor, Held(array.rows.tensor, array.in_place_of(other), why))

    def _named(
        self,
        storage: Tensor,
        later: Mapping[Tensor, tuple[int, bool]],
        finals: Mapping[Cell, Tensor],
        copies: Sequence[tuple[View, SymbolicArray]],
    ) -> dict[Tensor, tuple[int, bool]]:
        """The memories that hold after the loop what an iteration had in a storage: how many iterations
        before the last one that was, and whether they hold all of it."""
        found = {finals[cell]: later[cell.view.tensor] for cell in self._nexts if cell.view.tensor in later}
        if all(cell.view.tensor is not storage for cell in self._nexts):
            found[storage] = 0, True
        for view, made in copies:
            after, is_all = later.get(view.tensor.storage, (-1, True))
            if after >= 0 or view.tensor.storage is storage:
                found[made.cells.tensor] = after + 1, is_all and view.is_whole()
        return found


def _columns(taken: Sequence[tuple[Sequence[Any], Structure]]) -> list[list[tuple[int, int]]]:
    """Which leaves of an iteration's items are stored together, each by its item and its place in it: all,
    where items hold many of one kind; else those at one place of each, where the items are alike."""
    places = [[(item, leaf) for leaf in range(len(leaves))] for item, (leaves, _) in enumerate(taken)]
    if not all(structure == taken[0][1] for _, structure in taken):
        return [[place] for own in places for place in own]
    kinds = [kind_of(leaf) for leaf in taken[0][0]]
    if len(kinds) >= MANY and all(kind == kinds[0] for kind in kinds):
        return [[place for own in places for place in own]]
    return [list(column) for column in zip(*places, strict=True)]


def _are_apart(views: Sequence[View]) -> bool:
    """Whether views of one array have no cells in common, as rows have none."""
    first, second = views[:2]
    moved = zip(first.index, second.at(first.axes), strict=True)
    return len(list(runs(views))) == 1 and any(
        one != two and {*one.symbols}.isdisjoint(first.axes) for one, two in moved
    )


def _containers(item: Any) -> Iterator[Any]:
    """The containers in an item that may be changed."""
    for part in reachable(item):
        if not isinstance(part, (*_TEXT, tuple, type)) and kind_of(part) is None:
            yield part


def _stacked(leaves: Sequence[Any], trace: Trace) -> Iterator[tuple[int, int, Any]]:
    """Leaves of one kind, with those taken together that lie in rows: where they start, how many there are,
    and their cells."""
    if all(type(leaf) is SymbolicArray for leaf in leaves):
        for start, view in runs([leaf.cells for leaf in leaves]):
            trace.require_alive((view.tensor.storage,))
            yield start, view.shape[0].constant, view.load
        return
    for start, leaf in enumerate(leaves):
        kind = kind_of(leaf)
        operand = as_operand(leaf, trace)
        assert kind is not None
        yield start, 1, lambda position, of=operand, into=kind.dtype: operand_at(of, position[1:], into)


def _stretch(rows: View, start: Affine, count: int) -> View:
    """So many rows from one on."""
    shape = (Affine.of(count), *rows.shape[1:])
    return rows.remap(shape, rows.axes, (Affine.of(rows.axes[0]) + start, *map(Affine.of, rows.axes[1:])))
