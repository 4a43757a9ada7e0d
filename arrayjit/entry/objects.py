"""What objects hold, as guards: that everything in them is the very same object in the same place.

    self.rate, self.layers[1]    the class of `self`, its dict and slots, all that is in the dict, the items
                                 of `layers`; and of the class of `self` its dict and its bases

A trace depends on the state of the objects that it read (`tracer.record.state`). The dispatcher computes no
states: where all that a state is computed of is as it was, the state is, too. Where something is another
object, equal or not, the call goes through Python, which compares.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, MappingProxyType, MemberDescriptorType
from typing import Any

from ..tracer.record.guards import ABSENT
from ..tracer.record.state import (
    attributes_of,
    has_attributes_alone,
    has_plain_attributes,
    has_plain_items,
    is_fixed,
    is_read,
    reachable,
    slots_of,
)
from .arguments import ThroughPython
from .layout import OFFSETS, bases_place, dict_place, has_dict_versions, has_object_versions, slot_place
from .rows import code, row

__all__ = ["dict_of", "guards_of", "under_version"]

MOST_PLACES = 4096
"""Places that a call may look at to see whether objects are as they were."""

_HEAP_TYPE = 1 << 9


def guards_of(values: Iterable[Any]) -> tuple[list[list[int]], list[Any]]:
    """Rows that hold while objects are as they are, and what must be kept for them. Raises ThroughPython for
    objects that cannot be looked into."""
    guards: list[list[int]] = []
    kept: list[Any] = []
    for part in reachable(tuple(values)):
        kept.append(part)
        for found, owned in _places(part):
            guards += found
            kept.append(owned)
        if len(guards) > MOST_PLACES:
            raise ThroughPython("the code depends on very many objects")
    return guards, kept


Places = tuple[Sequence[list[int]], Any]
"""Rows, and what must be kept for them."""


def _places(value: Any) -> Iterator[Places]:
    """What a value itself holds. What that holds is reached by itself."""
    kind = type(value)
    if is_fixed(value):
        return
    if kind is list:
        yield _list(value)
    elif kind is dict:
        yield _dict(value, has_dict_versions())
    elif kind is set and not value:
        yield [_number(value, OFFSETS["SET_SIZE"], 0)], None
    elif issubclass(kind, dict) and has_plain_items(kind):
        yield _dict(value, has_dict_versions())
        yield from _object(value, kind)
    elif not isinstance(value, type) and not has_attributes_alone(kind):
        raise ThroughPython(f"a {kind.__name__} may change and stay the same object")
    elif isinstance(value, type):
        yield from _class(value)
    else:
        yield from _object(value, kind)


def _class(kind: type) -> Iterator[Places]:
    if kind.__flags__ & _HEAP_TYPE:
        yield _dict(vars(kind), has_dict_versions())
        yield [_field(kind, bases_place(), kind.__bases__)], kind.__bases__


def _object(value: Any, kind: type) -> Iterator[Places]:
    if kind.__flags__ & _HEAP_TYPE:
        yield [_field(value, OFFSETS["TYPE"], kind)], kind
    if not is_read(kind):
        if attributes_of(value):
            raise ThroughPython(f"a {kind.__name__} may change and stay the same object")
        return
    if not has_plain_attributes(kind):
        raise ThroughPython(f"a {kind.__name__} has attributes of its own making")
    if kind is not FunctionType:
        for name, member in slots_of(kind):
            place, held = slot_place(member), _held(member, value)
            if place is None or (held is ABSENT and hasattr(kind, "__getattr__")):
                raise ThroughPython(f"a {kind.__name__} keeps {name} where it cannot be looked at")
            yield [_field(value, place, held)], held
    held = _dict_held(value)
    if held is not None:
        place = dict_place(value)
        if place is None:
            raise ThroughPython(f"a {kind.__name__} keeps its attributes where they cannot be looked at")
        yield [_field(value, place, held)], held
        yield _dict(held, has_object_versions())


def _dict_held(value: Any) -> Any:
    """The dict of an object's attributes, whatever its own `__getattr__` would give for the name."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _held(member: MemberDescriptorType, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:
        return ABSENT


def _list(held: list[Any]) -> Places:
    """All that is in a list."""
    items = list(held)
    size = _number(held, OFFSETS["SIZE"], len(items))
    kind = code("GUARD", "ITEM")
    found = [row("GUARD", kind=kind, holder=id(held), name=n, value=id(each)) for n, each in enumerate(items)]
    return [size, *found], items


def _field(holder: Any, place: int, held: Any) -> list[int]:
    """That an object has another at a place, or none."""
    return _number(holder, place, 0 if held is ABSENT else id(held))


def _number(holder: Any, place: int, number: int) -> list[int]:
    """That an object has a number at a place."""
    return row("GUARD", kind=code("GUARD", "FIELD"), holder=id(holder), name=place, value=number)


def _dict(held: Mapping[Any, Any], has_versions: bool) -> Places:
    """All that is in a dict, in its order; not looked at while the dict has the version that it had."""
    held = held if isinstance(held, dict) else dict_of(held)
    kind, about = code("GUARD", "ENTRY"), id(held)
    entries = [row("GUARD", kind=kind, holder=about, name=id(k), value=id(v)) for k, v in dict.items(held)]
    guards = [row("GUARD", kind=code("GUARD", "ENTRIES"), holder=about, value=len(entries)), *entries]
    return (under_version(about, guards) if has_versions else guards), (
        held,
        *dict.keys(held),
        *dict.values(held),
    )


def dict_of(holder: Any) -> dict[str, Any]:
    """The dict that has the names of a module, or those of a class, which shows it through a proxy."""
    held: Any = gc.get_referents(holder)[0] if type(holder) is MappingProxyType else holder
    if type(held) is not dict:
        raise ThroughPython(f"names are looked up in a {type(held).__name__}")
    return held


def under_version(about: int, guards: Sequence[list[int]]) -> list[list[int]]:
    """Guards about a dict, given by its address: while it has the version with which they held, they are not
    looked at."""
    before, after = (code("GUARD", name) for name in ("VERSION", "SEEN"))
    first = row("GUARD", kind=before, holder=about, name=len(guards) + 2, value=-1)
    return [first, *guards, row("GUARD", kind=after, holder=about)]
