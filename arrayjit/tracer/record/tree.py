"""Nested arguments and results: tuples, lists, dicts, slices, namedtuples and dataclasses of leaves.

`flatten` takes a value apart into its leaves, left to right, and a hashable structure; `unflatten` puts
leaves (the same or others) back. What is neither a container nor a leaf is static: part of the structure,
compared by type and equality.
"""

from __future__ import annotations

import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import MemberDescriptorType
from typing import Any, Union

from ...frozen import frozen, frozen_by_identity

__all__ = [
    "Leaf",
    "Node",
    "Opened",
    "Static",
    "Structure",
    "container",
    "contents",
    "flatten",
    "hold",
    "is_called",
    "layout_of",
    "opened",
    "paths",
    "seen_through",
    "statics",
    "unflatten",
]


@frozen
class Leaf:
    """The place of the next leaf."""


@frozen_by_identity
class Static:
    """A value that is the same at each call."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Static) and type(self.value) is type(other.value) and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@frozen
class Node:
    """A container: its type, the keys of its children (empty for sequences), and the children."""

    kind: type
    keys: tuple[Hashable, ...]
    children: tuple[Structure, ...]


Structure = Union[Leaf, Static, Node]

_LEAF = Leaf()
_HEAP_TYPE = 1 << 9


def contents(value: Any) -> tuple[tuple[Hashable, ...], Sequence[Any]] | None:
    """The keys and children of a container; None for anything else."""
    kind = type(value)
    if kind in (tuple, list):
        return (), value
    if kind is slice:
        return (), (value.start, value.stop, value.step)
    if kind in (dict, OrderedDict):
        return tuple(value), tuple(value.values())
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind._fields, value
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return names, tuple(getattr(value, name) for name in names)
    return None


Opened = Union[Static, tuple[type, tuple[Hashable, ...], Sequence[Any]]]
"""What a value is: static, or the type, keys and children of a container."""


def opened(value: Any) -> Opened:
    """How a value is taken apart."""
    inner = contents(value)
    return Static(value) if inner is None else (type(value), *inner)


def flatten(
    value: Any, is_leaf: Callable[[Any], bool], opened: Callable[[Any], Opened] = opened
) -> tuple[list[Any], Structure]:
    """The leaves of a nested value and its structure. `opened` may take values apart in another way."""
    leaves: list[Any] = []

    def build(part: Any) -> Structure:
        if is_leaf(part):
            leaves.append(part)
            return _LEAF
        inner = opened(part)
        if isinstance(inner, Static):
            return inner
        kind, keys, children = inner
        return Node(kind, keys, tuple(build(child) for child in children))

    return leaves, build(value)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The value of this structure with these leaves."""
    return _filled(structure, iter(leaves))


def _filled(structure: Structure, leaves: Iterator[Any]) -> Any:
    match structure:
        case Leaf():
            return next(leaves)
        case Static(value=value):
            return value
        case Node(kind=kind, keys=keys, children=children):
            values = [_filled(child, leaves) for child in children]
            return container(kind, keys, values)


def container(kind: type, keys: tuple[Hashable, ...], values: list[Any]) -> Any:
    """The container of this type with these children."""
    if kind in (tuple, list):
        return kind(values)
    if kind in (dict, OrderedDict):
        return kind(zip(keys, values, strict=True))
    if is_called(kind):
        return kind(*values)
    # The fields were checked when the original was made; `__init__` might compute with their numbers.
    instance: Any = object.__new__(kind)
    for name, value in zip(keys, values, strict=True):
        hold(instance, str(name), value)
    return instance


def is_called(kind: type) -> bool:
    """Whether a container of this type is made by a call with its children: a namedtuple or a slice."""
    return kind is slice or (kind is not tuple and issubclass(kind, tuple))


def hold(instance: Any, name: str, value: Any) -> None:
    """Give an object an attribute, past all that its class says."""
    slot = next((vars(part)[name] for part in type(instance).__mro__ if name in vars(part)), None)
    if isinstance(slot, MemberDescriptorType):
        slot.__set__(instance, value)
    else:
        object.__getattribute__(instance, "__dict__")[name] = value


def layout_of(kind: type) -> type:
    """The class of C code that says how instances lie in memory."""
    part: type | None = kind
    while part is not None and part.__flags__ & _HEAP_TYPE:
        part = part.__base__
    return part or object


def paths(structure: Structure, prefix: str) -> list[str]:
    """A name for each leaf, made from the keys on the way to it: an identifier."""
    match structure:
        case Leaf():
            return [prefix]
        case Static():
            return []
        case Node(keys=keys, children=children):
            names = keys or range(len(children))
            pairs = zip(names, children, strict=True)
            return [path for name, child in pairs for path in paths(child, _joined(prefix, name))]


def _joined(prefix: str, name: Hashable) -> str:
    return re.sub(r"\W", "_", f"{prefix}_{name}")


def seen_through(structure: Structure, seen: Callable[[Any], Any]) -> Structure:
    """The structure with its types and static values as `seen` gives them."""
    match structure:
        case Leaf():
            return structure
        case Static(value=value):
            return Static(seen(value))
        case Node(kind=kind, keys=keys, children=children):
            return Node(seen(kind), keys, tuple(seen_through(child, seen) for child in children))


def statics(structure: Structure) -> list[Any]:
    """The static values, left to right."""
    match structure:
        case Leaf():
            return []
        case Static(value=value):
            return [value]
        case Node(children=children):
            return [value for child in children for value in statics(child)]
