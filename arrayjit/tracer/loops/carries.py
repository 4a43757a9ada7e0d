"""What an iteration of the user's loop hands to the next one: the values that its body rebinds.

A changed leaf (a name's value, or a part of a tuple) is one of

- `Count`: an integer that grows by the same amount each time is affine in the iteration's number;
- `Moving`: a view that moves along its array with the index, or loses its ends, is that view of an iteration
  earlier;
- `Cell`: a scalar, or an array made anew in each iteration, lies in memory between iterations. Its extents
  may change by the same number each time: the memory has room for the largest.

Anything else cannot be carried as it is: `Unfit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import lcm
from typing import Any, Union

import numpy as np

from ...frozen import frozen, frozen_by_identity
from ...ir.dtype import BOOL, C128, F64, I64, DType, from_numpy
from ...ir.index import Affine, Symbol
from ...ir.tensor import Tensor
from ..record.scopes import Mark
from ..record.state import reachable
from ..record.trace import TEMPORARY, Trace
from ..record.tree import Static, Structure, container, flatten, unflatten
from ..record.view import View, same_cells
from ..values.array import PythonNumber, SymbolicArray
from ..values.integer import SymbolicInt, number, python_int
from .instances import opened
from .iterations import Iterations
from .places import MISSING, Name
from .steps import constant_steps, later, moved, stepped, stepped_view

__all__ = [
    "Carry",
    "Cell",
    "Count",
    "Kind",
    "Leaf",
    "Moving",
    "Planner",
    "Unfit",
    "fix_of",
    "is_array",
    "is_number",
    "kind_of",
    "leaves_of",
    "lists_of",
    "map_leaves",
    "rotation",
    "same",
    "shows",
    "substituted",
    "symbols_of",
]

_WEAK: dict[type, DType] = {bool: BOOL, int: I64, float: F64, complex: C128}
_NUMBERS = (bool, int, float, complex)


class Unfit(Exception):
    """A name whose change cannot be carried; `what` says why, and `fix` what else to write."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


@frozen
class Kind:
    """What a value is to NumPy: two values of one kind give results of one kind."""

    dtype: DType
    weak: PythonNumber | None
    is_scalar: bool
    shape: tuple[Affine, ...]

    @property
    def is_array(self) -> bool:
        return self.weak is None and not self.is_scalar

    def of_shape(self, shape: tuple[Affine, ...]) -> Kind:
        """The same, with these extents."""
        return Kind(self.dtype, self.weak, self.is_scalar, shape)

    def moved(self, values: Mapping[Symbol, Affine]) -> Kind:
        """The same, with symbols of its extents replaced."""
        return self.of_shape(tuple(extent.substitute(values) for extent in self.shape))

    def is_like(self, other: Kind | None) -> bool:
        """Whether the other is of this kind apart from its extents."""
        alike = other is not None and len(self.shape) == len(other.shape)
        return other is not None and alike and self.of_shape(other.shape) == other

    def __str__(self) -> str:
        if self.weak is not None:
            return f"a Python {self.weak.__name__}"
        if self.is_scalar:
            return f"a NumPy {self.dtype.name}"
        shape = ",".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"an array of {self.dtype.name} and shape ({shape})"

    def holds(self, number: Any) -> bool:
        """Whether a scalar of another kind keeps its value as one of this kind, be it an array of no axes: a
        Python number this value, one of NumPy's any of its dtype."""
        theirs = kind_of(number)
        if theirs is None or self.shape or theirs.is_array:
            return False
        if type(number) in _NUMBERS:
            exact = np.asarray(number).item()
            with np.errstate(all="ignore"):
                converted = np.asarray(number).astype(self.dtype.numpy).item()
            return bool(converted == exact or (converted != converted and exact != exact))
        return bool(np.can_cast(theirs.dtype.numpy, self.dtype.numpy, "safe"))


@frozen
class Count:
    """`start + stride * iteration`."""

    start: Affine
    stride: int


@frozen_by_identity
class Moving:
    """`view`, an expression in the loop's symbol, is the value after an iteration."""

    view: View

    def changes(self, symbol: Symbol) -> bool:
        """Whether the extents are others in each iteration over the symbol."""
        return any(symbol in extent.symbols for extent in self.view.shape)


@frozen_by_identity
class Cell:
    """Memory of its own that each iteration reads and leaves the next value in: what that is at the start of
    an iteration, in terms of the loop's symbol where its extents change."""

    kind: Kind
    view: View

    def changes(self, symbol: Symbol) -> bool:
        """Whether the extents are others in each iteration over the symbol."""
        return any(symbol in extent.symbols for extent in self.view.shape)


Leaf = Union[Count, Moving, Cell, None]
"""How one leaf is carried; None for one that stays."""


@frozen_by_identity
class Carry:
    """How a name is carried: the structure of its value, the leaves before the loop and what they become.
    Containers that stay in their places are `kept`: they are leaves too, which do not change."""

    structure: Structure
    entry: tuple[Any, ...]
    leaves: tuple[Leaf, ...]
    kept: tuple[Any, ...] = ()

    def leaves_of(self, value: Any) -> tuple[list[Any], Structure]:
        """The parts of a value of the name's and how they are put together."""
        return leaves_of(value, self.kept)

    def value(self, of: Callable[[Leaf, Any], Any]) -> Any:
        """The name's value with each carried leaf as `of` gives it."""
        return unflatten(
            self.structure,
            [
                before if leaf is None else of(leaf, before)
                for leaf, before in zip(self.leaves, self.entry, strict=True)
            ],
        )

    def changes(self, symbol: Symbol) -> bool:
        """Whether extents of arrays are others in each iteration over the symbol."""
        return any(isinstance(leaf, (Cell, Moving)) and leaf.changes(symbol) for leaf in self.leaves)


def _is_leaf(value: Any) -> bool:
    """Whether a value is carried by itself: an array or a number."""
    kind = type(value)
    return kind in (SymbolicArray, SymbolicInt, *_NUMBERS) or issubclass(kind, np.generic)


def leaves_of(value: Any, kept: Sequence[Any] = ()) -> tuple[list[Any], Structure]:
    """The carried parts of a value, or the containers that are kept, and how they are put together."""
    return flatten(value, lambda part: _is_leaf(part) or any(part is one for one in kept), opened)


def _kept(before: Any, after: Any) -> Iterator[Any]:
    """The containers that are the same ones in the same places of two values."""
    if _is_leaf(before) or _is_leaf(after):
        return
    mine, theirs = opened(before), opened(after)
    if isinstance(mine, Static) or isinstance(theirs, Static):
        return
    if before is after:
        yield before
        return
    for old, new in zip(mine[2], theirs[2], strict=False):
        yield from _kept(old, new)


def map_leaves(
    value: Any,
    change: Callable[[Any], Any],
    stays: Callable[[Any], bool],
    made: dict[int, Any],
) -> Any:
    """The value with each leaf changed, in new containers but for those that stay. What is made of each is
    `made`, by its identity: what is one container stays one, for all values that are mapped with it."""
    if _is_leaf(value):
        return change(value)
    inner = opened(value)
    if isinstance(inner, Static) or stays(value):
        return value
    if id(value) not in made:
        kind, keys, children = inner
        parts = [map_leaves(part, change, stays, made) for part in children]
        made[id(value)] = container(kind, keys, parts)
    return made[id(value)]


def lists_of(value: Any, stays: Callable[[Any], bool]) -> Iterator[Any]:
    """The containers that `map_leaves` makes anew and that may be written into."""
    if _is_leaf(value):
        return
    inner = opened(value)
    if not isinstance(inner, Static) and not stays(value):
        if not isinstance(value, (tuple, slice)):
            yield value
        for part in inner[2]:
            yield from lists_of(part, stays)


def kind_of(value: Any) -> Kind | None:
    """The kind of a leaf; None for what is no leaf."""
    if type(value) is SymbolicArray:
        return Kind(value.element_type, value.weak, value.is_scalar, value.cells.shape)
    if type(value) is SymbolicInt:
        return Kind(I64, int, False, ())
    if type(value) in _NUMBERS:
        return Kind(_WEAK[type(value)], type(value), False, ())
    if isinstance(value, np.generic):
        return Kind(from_numpy(value.dtype), None, True, ())
    return None


def same(before: Any, after: Any) -> bool:
    """Whether a name still stands for the same value."""
    if before is after:
        return True
    mine, structure = leaves_of(before)
    theirs, other = leaves_of(after)
    try:
        alike = structure == other
    except (TypeError, ValueError):
        return False
    return alike and len(mine) == len(theirs) and all(map(_same_leaf, mine, theirs))


def _same_leaf(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if type(before) is SymbolicInt:
        return bool(before.value == after.value)
    if type(before) is SymbolicArray:
        return kind_of(before) == kind_of(after) and same_cells(before.cells, after.cells)
    return repr(before) == repr(after)


def symbols_of(leaf: Any) -> set[Symbol]:
    """The symbols that a leaf's value mentions, apart from those of its axes."""
    if type(leaf) is SymbolicInt:
        return set(leaf.value.symbols)
    if type(leaf) is SymbolicArray:
        parts = (*leaf.cells.index, *leaf.cells.shape)
        return {symbol for part in parts for symbol in part.symbols} - set(leaf.cells.axes)
    return set()


def substituted(leaf: Any, values: Mapping[Symbol, Affine]) -> Any:
    """The leaf with symbols replaced."""
    if type(leaf) is SymbolicInt:
        return python_int(leaf.value.substitute(values), leaf.record)
    if type(leaf) is SymbolicArray and symbols_of(leaf) & values.keys():
        return SymbolicArray(moved(leaf.cells, values), leaf.record, leaf.weak, leaf.is_scalar)
    return leaf


def shows(value: Any, storage: Tensor) -> bool:
    """Whether the value, or something that it leads to, is an array over the storage."""
    return any(
        type(part) is SymbolicArray and part.cells.tensor.storage is storage for part in reachable(value)
    )


class Planner:
    """Decides how names are carried, from what an iteration made of them since `mark`."""

    def __init__(
        self,
        trace: Trace,
        mark: Mark,
        iterations: Iterations,
        carried: Iterable[Carry],
        is_older: Callable[[Any], bool],
    ) -> None:
        self.trace = trace
        self.mark = mark
        self.iterations = iterations
        self.is_older = is_older
        self.cells = [leaf for carry in carried for leaf in carry.leaves if isinstance(leaf, Cell)]

    def carry(self, name: Name, entry: Any, now: Any) -> Carry:
        """How to carry a name that stood for `entry` before the loop and for `now` after an iteration."""
        kept = tuple(_kept(entry, now))
        before, structure = leaves_of(entry, kept)
        after, other = self._leaves(name, now, kept)
        if structure != other:
            raise Unfit(f"{name} {_change(entry, now)}")
        leaves = tuple(self.leaf(name, old, new) for old, new in zip(before, after, strict=True))
        return Carry(structure, tuple(before), leaves, kept)

    def _leaves(self, name: Name, now: Any, kept: Sequence[Any]) -> tuple[list[Any], Structure]:
        """The leaves of what a name stands for after an iteration. Raises Unfit where it leads to a list from
        before the iteration that was in another place: writing into it must be seen there."""
        made = lists_of(now, lambda part: any(part is one for one in kept))
        if any(self.is_older(part) for part in made):
            raise Unfit(f"{name} becomes another object")
        return leaves_of(now, kept)

    def following(self, name: Name, entry: SymbolicArray, now: SymbolicArray) -> Carry | None:
        """How to carry a name that becomes an array whose extents are to change; None where that is another
        kind of array."""
        before, after = kind_of(entry), kind_of(now)
        if before is None or after is None or not after.is_like(before):
            return None
        cell = self._cell(name, after) if after == before else self._stepping(name, before, after)
        return Carry(leaves_of(entry)[1], (entry,), (cell,))

    def checked(self, name: Name, carry: Carry, now: Any) -> Carry:
        """The carry itself if `now` is what it says about the end of an iteration, else a better one."""
        after, structure = self._leaves(name, now, carry.kept)
        if structure != carry.structure:
            raise Unfit(f"{name} becomes {_described(now)} in a later iteration")
        leaves = tuple(
            self._checked(name, leaf, entry, new)
            for leaf, entry, new in zip(carry.leaves, carry.entry, after, strict=True)
        )
        if all(new is old for new, old in zip(leaves, carry.leaves, strict=True)):
            return carry
        return Carry(carry.structure, carry.entry, leaves, carry.kept)

    def leaf(self, name: Name, entry: Any, now: Any) -> Leaf:
        """How to carry one leaf."""
        if _same_leaf(entry, now):
            return None
        count = _counted(entry, now)
        if count is not None:
            return count
        kind, before = kind_of(now), kind_of(entry)
        if kind is None or before is None or not kind.is_like(before):
            raise Unfit(f"{name} changes from {_described(entry)} to {_described(now)}")
        if kind.is_array and not self._is_own(now, entry.cells):
            return self._moving(name, entry, now)
        return self._cell(name, kind) if kind == before else self._stepping(name, before, kind)

    def _checked(self, name: Name, leaf: Leaf, entry: Any, now: Any) -> Leaf:
        if leaf is None:
            return self.leaf(name, entry, now)
        kind = kind_of(now)
        assert kind is not None
        match leaf:
            case Count(start=start, stride=stride):
                if _integer(now) == start + (self.iterations.number + 1) * stride:
                    return leaf
                if kind != kind_of(0):
                    raise Unfit(f"{name} changes from a Python int to {kind}")
                return self._cell(name, kind)
            case Moving(view=view):
                if not kind.is_like(kind_of(entry)) or not same_cells(now.cells, view):
                    raise Unfit(f"{name} becomes a view of another array")
            case Cell(kind=known, view=view):
                if kind != known.moved(later(self.iterations)):
                    raise Unfit(f"{name} changes from {known} to {kind}")
                if known.is_array and not self._is_own(now, view):
                    raise _another(name, kind)
        return leaf

    def _is_own(self, now: SymbolicArray, start: View) -> bool:
        """Whether an array is made anew in each iteration, unless it stays what it was at the `start` of one,
        or is what another one, that is carried as well, was then."""
        return self._is_made_anew(now, start) or any(same_cells(now.cells, cell.view) for cell in self.cells)

    def _is_made_anew(self, array: SymbolicArray, start: View) -> bool:
        """Whether the array is one that the body made, and certainly no older one but that of the start: that
        one it is where a loop of the body does not run, say."""
        storage = array.cells.tensor.storage
        others = self.trace.sameness.origins(storage, start.tensor.storage)
        return all(self.trace.is_new(one, self.mark) for one in (storage, *others))

    def _moving(self, name: Name, entry: Any, now: SymbolicArray) -> Moving:
        symbol = self.iterations.symbol
        before_first = moved(now.cells, {symbol: self.iterations.symbol_after(Affine.of(0))})
        made = self.trace.symbols_since(self.mark)
        if symbols_of(now).isdisjoint(made) and same_cells(entry.cells, before_first):
            return Moving(now.cells)
        if (view := stepped_view(entry.cells, now.cells, self.iterations)) is not None:
            self._require_extents(name, view.shape)
            return Moving(view)
        raise _another(name, kind_of(now))

    def _cell(self, name: Name, kind: Kind) -> Cell:
        return Cell(kind, self._memory(name, kind))

    def _memory(self, name: Name, kind: Kind) -> View:
        return self.trace.window(kind.shape, kind.dtype, name if isinstance(name, str) else TEMPORARY)

    def _stepping(self, name: Name, before: Kind, after: Kind) -> Cell:
        """Memory of an array whose extents change by constants, as after the first iteration."""
        steps = constant_steps(before.shape, after.shape, self.iterations)
        if steps is None or not any(steps):
            raise Unfit(f"{name} changes from {before} to {after}")
        start = before.of_shape(stepped(before.shape, steps, self.iterations))
        end = start.moved(later(self.iterations))
        self._require_extents(name, end.shape)
        largest = zip(start.shape, end.shape, steps, strict=True)
        room = self._memory(name, before.of_shape(tuple(e if step > 0 else s for s, e, step in largest)))
        return Cell(start, View(room.tensor, start.shape, room.axes, room.index))

    def _require_extents(self, name: Name, shape: tuple[Affine, ...]) -> None:
        """Raise Unfit if an extent is negative in some iteration, and Retrace if only that may be."""
        for extent in shape:
            least = self.trace.limits.least(extent)
            if least is None or least < 0:
                purpose = "how many iterations a loop has in which arrays change their extents"
                number(self.iterations.count, self.trace, purpose)
                raise Unfit(f"{name} does not change its extents by the same number in each iteration")


def _another(name: Name, kind: Kind | None) -> Unfit:
    """A name that stands for an array which is neither its own nor a view that moves."""
    return Unfit(f"{name} becomes a view of another array", fix_of(kind))


def fix_of(kind: Kind | None) -> str:
    """What to write instead of a value of a kind that cannot be carried."""
    is_number = kind is not None and not kind.shape
    return "take it as a number with [()], as in np.where(...)[()], which can be carried" if is_number else ""


def rotation(entry: Mapping[Name, Any], after: Mapping[Name, Any], is_object: Callable[[Any], bool]) -> int:
    """After how many iterations objects that change places are back where they were; 1 if none do."""
    objects = {name: value for name, value in entry.items() if is_object(value)}
    becomes = {
        name: other
        for name, value in objects.items()
        for other, old in objects.items()
        if after.get(name) is old and value is not old
    }
    return lcm(*(_cycle(name, becomes) for name in becomes))


def _cycle(name: Name, becomes: Mapping[Name, Name]) -> int:
    """The length of the cycle that the name is on; 1 if it is on none."""
    place, length = becomes[name], 1
    while place != name and place in becomes and length <= len(becomes):
        place, length = becomes[place], length + 1
    return length if place == name else 1


def is_array(value: Any) -> bool:
    """Whether a value is a traced array, and no number."""
    return type(value) is SymbolicArray and value.weak is None and not value.is_scalar


def is_number(value: Any) -> bool:
    """Whether a value is a number, traced or not."""
    kind = kind_of(value)
    return kind is not None and not kind.is_array


def _integer(value: Any) -> Affine | None:
    """A Python int, traced or not, as an expression."""
    if type(value) is SymbolicInt:
        return value.value
    return Affine.of(value) if type(value) is int else None


def _counted(entry: Any, now: Any) -> Count | None:
    """An integer that grew by a constant."""
    start, reached = _integer(entry), _integer(now)
    if start is None or reached is None:
        return None
    stride = reached - start
    return Count(start, stride.offset) if stride.is_constant else None


def _change(before: Any, now: Any) -> str:
    """How a name's value became one of another structure."""
    old, new = _described(before), _described(now)
    if old != new:
        return f"changes from {old} to {new}"
    if isinstance(opened(now), Static):
        return f"becomes another {type(now).__name__}, which is not taken apart into attributes"
    return f"becomes {new} with other parts"


def _described(value: Any) -> str:
    kind = kind_of(value)
    if kind is not None:
        return str(kind)
    return "nothing" if value is MISSING else "None" if value is None else f"a {type(value).__name__}"
