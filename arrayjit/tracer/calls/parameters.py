"""The arguments of a traced call as symbolic values, and the parameters they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import DTypeError, Location, UnsupportedError
from ...ir.assign import Access
from ...ir.dtype import DType, of_any_order
from ...ir.index import Affine, Symbol, affine
from ...ir.tensor import Tensor
from ..record.facts import Argument, Fact, Positive, Remainder
from ..record.foreign import needs_copy
from ..record.resident import layout_of
from ..record.trace import Trace, tensor_like
from ..record.tree import Opened, Static, Structure, flatten, paths, seen_through, statics, unflatten
from ..record.view import View
from ..values.array import SymbolicArray
from .binding import ArgumentSource, OverlapSource, ScalarSource, Source
from .names import positional_names
from .signature import (
    PYTHON_SCALARS,
    Declared,
    Overlap,
    Spec,
    ends_of,
    is_leaf,
    length_of,
    overlaps,
    same_memory,
)

__all__ = ["Arguments", "may_overlap_itself"]

_OVERLAPS_ITSELF = "its elements may share memory with one another"


class Arguments:
    """The leaves of a call, each with its symbolic counterpart.

    An array is one tensor. Arrays that share memory are views of one tensor, so that a write through one
    is seen through the others; where their element types differ, none of them may be written. The lengths
    that are left open are leaves as well, behind all others: numbers that each call tells.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        declared: Declared,
        trace: Trace,
    ) -> None:
        self._trace = trace
        self._count = len(args)
        self._keywords = tuple(kwargs)
        self._structures: list[Structure] = []
        self._leaves: list[Any] = []
        self._labels: list[str] = []
        self._of_any_length: set[int] = set()
        names = [*positional_names(function, len(args)), *kwargs]
        for position, (name, value) in enumerate(zip(names, (*args, *kwargs.values()), strict=True)):
            given = name if position >= len(args) else None
            is_static = declared.static.has(position, given)
            leaves, structure = ([], Static(value)) if is_static else flatten(value, is_leaf)
            self._structures.append(structure)
            if declared.any_length.has(position, given):
                first = len(self._leaves)
                self._of_any_length |= {n for n, leaf in enumerate(leaves, first) if length_of(leaf)}
            self._leaves += map(layout_of, leaves)
            self._labels += paths(structure, name)
            for constant in statics(structure):
                trace.watch(constant)
        self._views: list[View | None] = [None] * len(self._leaves)
        self._params: dict[Tensor, Source] = {}
        self._lengths: dict[int, Symbol | int] = {}
        self._unwritable: dict[Tensor, str] = {}
        trace.leaves = [*self._leaves, *self._open_lengths()]
        self._bind_all()
        self._symbolic = self._symbols()

    def values(self, seen: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments to call the function with: fresh containers of symbolic leaves, types and static
        values as `seen` gives them."""
        remaining = iter(self._symbolic)
        values = []
        for structure in self._structures:
            count = len(paths(structure, ""))
            leaves = [next(remaining) for _ in range(count)]
            values.append(unflatten(seen_through(structure, seen), leaves))
        return values[: self._count], dict(zip(self._keywords, values[self._count :], strict=True))

    def require_unchanged(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        opened: Callable[[Any], Opened],
        loc: Location | None,
    ) -> None:
        """Raise if the function changed a list, dict or object that it was called with: the caller's own
        would stay as it is. `opened` takes apart what `values` gave."""
        leaves: list[Any] = []
        structures: list[Structure] = []
        for value, known in zip((*args, *kwargs.values()), self._structures, strict=True):
            if isinstance(known, Static):
                structures.append(known)
                continue
            part, structure = flatten(value, _is_given_leaf, opened)
            leaves += part
            structures.append(structure)
        same = len(leaves) == len(self._symbolic) and all(map(_is, leaves, self._symbolic))
        if not same or structures != self._structures:
            raise UnsupportedError(
                "the function changes a list, dict or object that was passed to it",
                loc=loc,
                fix="return the new value instead; arrays may be written in place",
            )

    def label(self, fact: Fact) -> str:
        """The arguments that a fact is about."""
        match fact:
            case Argument(leaf=leaf):
                return self._labels[leaf]
            case Positive(terms=terms) | Remainder(terms=terms):
                return " and ".join(self._labels[leaf] for _, leaf in terms)

    def position(self, value: SymbolicArray) -> int | None:
        """Which leaf this very value is."""
        return next((n for n, known in enumerate(self._symbolic) if known is value), None)

    def parameters(self) -> list[tuple[Tensor, Access, Source]]:
        """Each parameter, after the run: its tensor, how it is used, where its memory comes from."""
        result: list[tuple[Tensor, Access, Source]] = []
        for tensor, source in self._params.items():
            written = self._trace.is_written(tensor)
            if written and tensor in self._unwritable:
                raise UnsupportedError(
                    f"argument {tensor.label} is written, but {self._unwritable[tensor]}",
                    fix="pass a copy of it",
                )
            result.append((tensor, "update" if written else "read", _marked(source, written)))
        return result

    def lengths(self) -> list[tuple[Symbol, Source]]:
        """The lengths that are left open, in the order of their leaves."""
        return [
            (length, ScalarSource(leaf, self._labels[leaf], np.dtype(np.int64), is_length=True))
            for leaf, length in enumerate(self._lengths.values(), len(self._leaves))
            if isinstance(length, Symbol)
        ]

    def _open_lengths(self) -> Sequence[int]:
        """The lengths that may be left open, each once: of one whose number is compiled in, that."""
        trace = self._trace
        for position in sorted(self._of_any_length):
            length, label = length_of(self._leaves[position]), self._labels[position]
            if length is not None and length not in self._lengths:
                fact = Argument(len(self._labels))
                self._labels.append(f"len({label})")
                if fact in trace.decisions.baked:
                    self._lengths[length] = length
                else:
                    symbol = trace.lengths.add(label, *ends_of(length), fact.leaf)
                    trace.came_from(symbol, fact)
                    self._lengths[length] = symbol
        return tuple(self._lengths)

    def _symbols(self) -> list[Any]:
        """What stands for each leaf in the traced function: of one that is compiled in, its value."""
        known: dict[int, SymbolicArray] = {}
        result: list[Any] = []
        for leaf, view in zip(self._leaves, self._views, strict=True):
            if view is None:
                result.append(leaf)
                continue
            weak = PYTHON_SCALARS.get(type(leaf))
            is_scalar = weak is None and isinstance(leaf, np.generic)
            value = known.get(id(leaf)) if isinstance(leaf, np.ndarray) else None
            if value is None:
                value = SymbolicArray(view, self._trace, weak, is_scalar)
                known[id(leaf)] = value
            result.append(value)
        return result

    def _bind_all(self) -> None:
        grouped: dict[int, Overlap] = {}
        for group in overlaps(self._leaves):
            grouped.update(dict.fromkeys(group.leaves, group))
        for position in range(len(self._leaves)):
            if Argument(position) not in self._trace.decisions.baked and self._views[position] is None:
                if position in grouped:
                    self._bind_overlapping(grouped[position])
                else:
                    self._bind(position)

    def _bind(self, position: int, reason: str = "") -> None:
        """One leaf as one tensor. `reason`, if any, says why it must not be written."""
        leaf, label = self._leaves[position], self._labels[position]
        dtype = _element_type(leaf, label)
        if isinstance(leaf, np.ndarray):
            tensor = tensor_like(leaf, label)
            if position in self._of_any_length:
                tensor = replace(tensor, shape=self._open_shape(leaf))
            self._params[tensor] = ArgumentSource(position, label, needs_copy(leaf), False)
            self._note_order(tensor, leaf)
            if not reason and may_overlap_itself(leaf):
                reason = _OVERLAPS_ITSELF
            if reason:
                self._unwritable[tensor] = reason
            self._views[position] = View.whole(tensor, leaf.flags.writeable)
            return
        if isinstance(leaf, Spec):
            is_open = position in self._of_any_length
            tensor = Tensor(label, self._open_shape(leaf) if is_open else affine(leaf.shape), dtype)
            self._params[tensor] = ArgumentSource(position, label, False, False)
        else:
            tensor = Tensor(label, (), dtype)
            self._params[tensor] = ScalarSource(position, label, dtype.numpy)
            self._trace.came_from(tensor, Argument(position))
        self._views[position] = View.whole(tensor)

    def _open_shape(self, array: np.ndarray | Spec) -> tuple[Affine, ...]:
        """The shape of an array of any length."""
        length, *rest = array.shape
        return affine((self._lengths[length], *rest))

    def _bind_overlapping(self, group: Overlap) -> None:
        members = [self._leaves[position] for position in group.leaves]
        first = members[0]
        if all(same_memory(first, member) for member in members):
            chosen = next((n for n in group.leaves if self._leaves[n].flags.writeable), group.leaves[0])
            self._bind(chosen)
            bound = self._views[chosen]
            assert bound is not None
            for position, member in zip(group.leaves, members, strict=True):
                self._views[position] = replace(bound, writeable=member.flags.writeable)
            return
        size = first.itemsize
        shiftable = all(offset % size == 0 for offset in group.offsets)
        if shiftable and all(member.dtype == first.dtype and _in_elements(member) for member in members):
            self._bind_flat(group)
            return
        for position in group.leaves:
            self._bind(position, "it shares memory with another argument of another element layout")

    def _bind_flat(self, group: Overlap) -> None:
        """Leaves of one element type as views of the flat memory that covers them."""
        members = [self._leaves[position] for position in group.leaves]
        first, size = members[0], members[0].itemsize
        dtype = _element_type(first, self._labels[group.leaves[0]])
        label = "_and_".join(self._labels[position] for position in group.leaves[:3])
        tensor = Tensor(label, affine((group.nbytes // size,)), dtype)
        self._params[tensor] = OverlapSource(
            group.leaves[0], group.offsets[0], group.nbytes // size, first.dtype, needs_copy(first), False
        )
        self._note_order(tensor, first)
        if any(member.flags.writeable and may_overlap_itself(member) for member in members):
            self._unwritable[tensor] = _OVERLAPS_ITSELF
        for position, member, offset in zip(group.leaves, members, group.offsets, strict=True):
            self._views[position] = _window(tensor, member, offset // size)

    def _note_order(self, tensor: Tensor, array: np.ndarray) -> None:
        if not array.dtype.isnative:
            self._trace.swapped.add(tensor)


def _is_given_leaf(value: Any) -> bool:
    return type(value) is SymbolicArray or is_leaf(value)


def _is(left: object, right: object) -> bool:
    return left is right


def _in_elements(array: np.ndarray) -> bool:
    """Whether every stride is a whole number of elements."""
    return all(stride % array.itemsize == 0 for stride in array.strides)


def _window(tensor: Tensor, array: np.ndarray, start: int) -> View:
    """An array as a view of the flat tensor that covers its memory."""
    axes = tuple(Symbol("i") for _ in array.shape)
    place = Affine.of(start)
    for axis, stride in zip(axes, array.strides, strict=True):
        place = place + Affine.of(axis) * (stride // array.itemsize)
    return View(tensor, affine(array.shape), axes, (place,), array.flags.writeable)


def may_overlap_itself(array: np.ndarray) -> bool:
    """Whether two indices may reach one element; False only when that is certain."""
    if array.flags.c_contiguous:
        return False
    reach = array.itemsize
    for stride, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1:
            if stride < reach:
                return True
            reach = stride * (extent - 1) + reach
    return False


def _element_type(leaf: Any, label: str) -> DType:
    if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, np.memmap):
        raise UnsupportedError(
            f"argument {label} is a {type(leaf).__name__}, a subclass of ndarray that is not supported",
            fix="pass np.asarray(...) of it",
        )
    dtype = np.dtype(type(leaf)) if type(leaf) in PYTHON_SCALARS else leaf.dtype
    try:
        return of_any_order(dtype)
    except DTypeError as error:
        raise DTypeError(f"argument {label}: {error.what}", details=error.details, fix=error.fix) from None


def _marked(source: Source, written: bool) -> Source:
    match source:
        case ArgumentSource() | OverlapSource():
            return replace(source, written=written)
        case _:
            return source
