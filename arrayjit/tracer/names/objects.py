"""Objects, classes and containers of the user's as a traced function sees them.

`model.forward(x)` must run the user's method with the view of names (see `namespace`), and what the method
reads of `model` must be seen as a global is. Traced code therefore holds the *view* of an object:

- of a class, a class of the same name over the views of its bases, whose functions are rebuilt;
- of an object, an instance of the view of its class with the same attributes, each seen through the namespace
  when it is read;
- of a list, dict, set or tuple, one of what its items are seen as.

A thing has one view in a trace, so that `is`, `==` and hashes mean what they mean outside. Traced code writes
into views only: the user's objects are never touched, and a view that at last holds something else than at
first is an error. Objects that the function makes are instances of views of classes; `open_result` takes them
apart, so that each call makes its own of the user's class.
"""

from __future__ import annotations

import functools
from abc import ABCMeta, update_abstractmethods
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from operator import is_, or_
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    SimpleNamespace,
    UnionType,
)
from typing import Any, Protocol

from ..loops.ranges import Range
from ..record.guards import ABSENT, once_for_many_calls
from ..record.trace import user_location
from ..record.tree import Opened, Static, hold, layout_of, opened

__all__ = ["Objects"]

_DICTS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, deque)
_METACLASSES = (type, ABCMeta, type(Protocol))
_GIVEN_TO_TYPE = frozenset(("__module__", "__qualname__", "__doc__", "__slots__", "__orig_bases__"))
_NOT_COPIED = _GIVEN_TO_TYPE | {
    "__dict__", "__weakref__", "__init_subclass__", "__abstractmethods__", "_abc_impl", "__del__"
}  # fmt: skip
_PLAIN = (bool, int, float, complex, str, bytes)
_MEMBERS = (
    FunctionType,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
    functools.singledispatchmethod,
)
_ABSENT = object()


class Names(Protocol):
    """What objects ask of the view of names: a Namespace."""

    def of(self, value: Any) -> Any: ...
    def item(self, value: Any) -> Any: ...
    def remember(self, value: Any, view: Any) -> None: ...
    def original(self, view: Any) -> Any: ...
    def depend(self, holder: Mapping[str, Any], name: str, value: Any) -> None: ...
    def is_users(self, kind: type) -> bool: ...
    def follow(self, value: Any) -> None: ...


class Objects:
    """The views of objects, classes and containers for one trace."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._root = _root(self)
        self._cached_property = _cached_property(self)
        self._first: dict[int, tuple[Any, list[Any]]] = {}
        self._attributes: dict[int, dict[str, Any]] = {}

    def of(self, value: Any) -> Any:
        """The view of a value; the value itself where it needs none."""
        kind = type(value)
        if isinstance(value, type):
            return self._class(value) if self._is_viewed(value) else self._plain(value, value)
        if kind in _DICTS:
            return self._dict(value)
        if kind in _SEQUENCES or kind is set:
            return self._sequence(value)
        if kind is tuple or kind is frozenset:
            return self._kept(value, kind(map(self._names.item, value)))
        if kind is MappingProxyType:
            return MappingProxyType(dict(self._items(value)))
        if kind is UnionType:
            return functools.reduce(or_, map(self._names.of, value.__args__))
        if kind is SimpleNamespace:
            return self._namespace(value)
        view = self._names.of(kind)
        is_viewed = isinstance(view, type) and issubclass(view, self._root)
        return self._object(value, kind, view) if is_viewed else self._plain(value, kind)

    def _plain(self, value: Any, kind: type) -> Any:
        """What has no view, whose methods run with the real names if the class is the user's."""
        if self._names.is_users(kind) and not issubclass(kind, self._root):
            self._names.follow(kind)
        return value

    def register(self, dispatcher: Any, view: Any) -> None:
        """Give the view of a `functools.singledispatch` what is registered, for the views of classes."""
        for kind, implementation in dispatcher.registry.items():
            seen = self._names.of(kind) if self._is_viewed(kind) else kind
            view.register(seen, self._method(implementation))

    def _method(self, function: Any) -> Any:
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(self._names.of(function.__func__))
        return self._names.of(function)

    def attribute(self, view: Any, name: str, value: Any) -> Any:
        """What reading an attribute gives that holds `value`."""
        held = self._attributes.get(id(view))
        return value if held is None or held.get(name, _ABSENT) is not value else self._names.of(value)

    def lacks(self, view: Any, name: str) -> None:
        """The trace depends on an object and its class having no attribute of that name, or a slot that is
        empty."""
        original = self._names.original(view)
        if original is not view and isinstance(getattr(original, "__dict__", None), dict):
            self._names.depend(vars(original), name, ABSENT)
        for kind in map(self._names.original, type(view).__mro__):
            if kind is not object and self._names.is_users(kind) and not issubclass(kind, self._root):
                self._names.depend(vars(kind), name, vars(kind).get(name, ABSENT))

    def assign(self, view: Any, name: str, value: Any) -> None:
        """Raise unless the object was made by the function, or holds the value already."""
        held = self._attributes.get(id(view))
        if held is not None and not self._is_same(value, held.get(name, _ABSENT)):
            raise once_for_many_calls(f"changes a {type(view).__name__}", user_location())

    def cache(self, view: Any, name: str) -> None:
        """Raise where a cached property of an object that the function did not make is computed."""
        if id(view) in self._attributes:
            what, fix = f"caches {name} in a {type(view).__name__}", f"read .{name} once before the call"
            raise once_for_many_calls(what, user_location(), fix)

    def changes(self) -> Iterator[str]:
        """What the run did to things that it did not make."""
        for view, before in self._first.values():
            now = _contents(view)
            if len(now) != len(before) or not all(map(self._is_same, now, before)):
                named = f"the class {view.__name__}" if isinstance(view, type) else f"a {type(view).__name__}"
                yield f"changes {named}"

    def _is_same(self, now: Any, before: Any) -> bool:
        if now is before or now is self._names.of(before):
            return True
        return type(now) is type(before) and type(now) in _PLAIN and repr(now) == repr(before)

    def open_result(self, value: Any) -> Opened:
        """How a result is taken apart: what came from outside is given back as it is, and what the function
        made is made anew by each call."""
        original = self._names.original(value)
        if original is not value:
            return Static(original)
        if type(value) is Range:
            return Static(value.numbers())
        kind = self._names.original(type(value))
        inner = opened(value)
        if not isinstance(inner, Static):
            return kind, *inner[1:]
        if kind is type(value):
            return inner
        held = _held(value)
        return kind, tuple(held), tuple(held.values())

    def note(self, view: Any) -> Any:
        """Remember what a view holds at first."""
        self._first[id(view)] = view, _contents(view)
        return view

    def _kept(self, value: Any, view: Any) -> Any:
        """A container that never changes: itself where all its items are."""
        return value if all(map(is_, value, view)) else view

    def _items(self, value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        return ((self._names.of(key), self._names.item(item)) for key, item in value.items())

    def _dict(self, value: dict[Any, Any]) -> Any:
        view: Any = copy(value)
        view.clear()
        self._names.remember(value, view)
        view.update(self._items(value))
        if isinstance(view, defaultdict):
            view.default_factory = self._names.of(view.default_factory)
        return self.note(view)

    def _sequence(self, value: Any) -> Any:
        view: Any = copy(value)
        view.clear()
        self._names.remember(value, view)
        add = view.update if isinstance(view, set) else view.extend
        add(map(self._names.item, value))
        return self.note(view)

    def _namespace(self, value: SimpleNamespace) -> Any:
        view: Any = SimpleNamespace()
        self._names.remember(value, view)
        vars(view).update(self._items(vars(value)))
        return self.note(view)

    def _object(self, value: Any, kind: type, view_kind: type) -> Any:
        """The view of an object whose class has one."""
        if issubclass(kind, tuple):
            return tuple.__new__(view_kind, map(self._names.item, value))
        view: Any = object.__new__(view_kind)
        self._names.remember(value, view)
        held = _held(value)
        for name, item in held.items():
            hold(view, name, item)
        self._attributes[id(view)] = held
        return self.note(view)

    def _is_viewed(self, kind: type) -> bool:
        """Whether a class is one of the user's that can be made again: of Python's own layout, not made by
        traced code, and no exception, which code outside must know by its class."""
        if type(kind) not in _METACLASSES or vars(kind).get("_is_protocol", False):
            return False
        if issubclass(kind, (BaseException, self._root)) or not self._names.is_users(kind):
            return False
        if any(
            type(item) is FunctionType and type(item.__globals__) is not dict for item in vars(kind).values()
        ):
            return False
        root = layout_of(kind)
        return root is object or (root is tuple and hasattr(kind, "_fields"))

    def _class(self, kind: type) -> Any:
        bases = tuple(self._names.of(base) for base in kind.__bases__ if base is not object)
        if not any(issubclass(base, self._root) for base in bases):
            bases = (self._root, *bases)
        members = vars(kind)
        given = {name: members[name] for name in _GIVEN_TO_TYPE if name in members}
        view: Any = type(kind).__new__(type(kind), kind.__name__, bases, given)
        self._names.remember(kind, view)
        for name, item in members.items():
            if name not in _NOT_COPIED and not isinstance(item, (MemberDescriptorType, GetSetDescriptorType)):
                setattr(view, name, self._member(members, name, item))
        for name in {name for base in kind.__mro__[1:-1] for name in vars(base)} - set(members) - _NOT_COPIED:
            self._names.depend(members, name, ABSENT)
        update_abstractmethods(view)
        return self.note(view)

    def _member(self, members: Mapping[str, Any], name: str, item: Any) -> Any:
        """What a member of a class is in its view."""
        if isinstance(item, _MEMBERS):
            self._names.depend(members, name, item)
        of = self._names.of
        match item:
            case staticmethod() | classmethod():
                return self._method(item)
            case property():
                return property(of(item.fget), of(item.fset), of(item.fdel), item.__doc__)
            case functools.cached_property():
                return self._cached_property(of(item.func), name)
            case functools.partialmethod():
                keywords = {key: of(value) for key, value in item.keywords.items()}
                return functools.partialmethod(of(item.func), *map(of, item.args), **keywords)
            case functools.singledispatchmethod():
                method = functools.singledispatchmethod(self._method(item.func))
                self.register(item.dispatcher, method.dispatcher)
                return method
            case _ if name.startswith("__") and not callable(item):
                return item
            case _:
                seen = self._names.item(item)
                return staticmethod(seen) if hasattr(seen, "__get__") > hasattr(item, "__get__") else seen


def _root(objects: Objects) -> type:
    """The base of every view of a class."""

    class View:
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            try:
                value = super().__getattribute__(name)
            except AttributeError:
                objects.lacks(self, name)
                raise
            return objects.attribute(self, name, value)

        def __setattr__(self, name: str, value: Any) -> None:
            objects.assign(self, name, value)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            objects.assign(self, name, _ABSENT)
            super().__delattr__(name)

    return View


def _cached_property(objects: Objects) -> Callable[[Callable[[Any], Any], str], Any]:
    """The class of cached properties in views of classes."""

    class CachedProperty(functools.cached_property[Any]):
        def __init__(self, function: Callable[[Any], Any], name: str) -> None:
            super().__init__(function)
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            objects.cache(instance, str(self.attrname))
            return super().__get__(instance, owner)

    return CachedProperty


def _held(value: Any) -> dict[str, Any]:
    """The attributes that an object holds itself, as they are."""
    held: dict[str, Any] = {}
    for part in type(value).__mro__:
        for name, member in vars(part).items():
            if isinstance(member, MemberDescriptorType):
                with suppress(AttributeError):
                    held[name] = member.__get__(value)
    with suppress(AttributeError):
        held.update(object.__getattribute__(value, "__dict__"))
    return held


def _contents(view: Any) -> list[Any]:
    """What a thing holds, in an order that stays."""
    if isinstance(view, type):
        return [
            part for name, item in vars(view).items() if not name.startswith("__") for part in (name, item)
        ]
    if isinstance(view, _SEQUENCES):
        return list(view)
    if isinstance(view, set):
        return sorted(view, key=id)
    pairs = view if isinstance(view, dict) else _held(view)
    return [part for pair in pairs.items() for part in pair]
