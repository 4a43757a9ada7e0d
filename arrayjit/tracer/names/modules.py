"""NumPy and other modules as a traced function sees them: views of modules, of NumPy's functions that have no
counterpart of ours, and of `np.ndarray`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType, GenericAlias, ModuleType
from typing import Any, Protocol

import numpy as np

from ...errors import DTypeError, NotAnArray
from ..functions.adopted import numpy_program
from ..record.guards import ABSENT, once_for_many_calls
from ..record.registry import CREATION, METHODS
from ..record.trace import user_location
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand, constant_array, items_of
from ..values.integer import SymbolicInt
from ..values.protocols import unsupported
from ..values.rows import LISTS
from .builtin_view import as_called
from .outside import the_same

__all__ = [
    "ModuleView",
    "NdarrayView",
    "NumpyFunction",
    "Unreadable",
    "array_method",
    "is_numpy",
]


_TAKE_PARTS = frozenset((
    "at", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "choose", "column_stack", "concat", "concatenate", "dstack", "einsum", "histogramdd",
    "hstack", "ix_", "meshgrid", "multi_dot", "piecewise", "ravel_multi_index", "select", "stack",
    "trim_zeros", "vstack",
))  # fmt: skip
"""NumPy's functions whose lists of arrays, or of numbers, are no arrays themselves."""

_JOIN = frozenset(("column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack"))
"""Those among them that join what is in a list, where each part may be a list of numbers."""

_READERS = (np.fromfile, np.fromregex, np.genfromtxt, np.load, np.loadtxt)
"""What reads files, which may hold something else at the next call."""

_SETTINGS = (np.geterr, np.geterrcall, np.getbufsize, np.get_printoptions)
"""What tells settings, which may be others at the next call."""

_PROGRAMS = "val", "vander", "der", "int"
"""How those functions in `np.polynomial` end that need no number of their arguments to choose what to do.
They know of no protocols, and are programs over functions that do."""

_FOUND = (SymbolicArray, SymbolicInt, np.ndarray, np.memmap)
"""Arguments by which NumPy's protocols find us, so that others, such as shapes, stay what they are."""


class Names(Protocol):
    """What modules ask of the view of names: a Namespace."""

    def of(self, value: Any) -> Any: ...
    def globals_view(self, names: dict[str, Any]) -> Any: ...


class ModuleView:
    """A module whose attributes are read through `read(names of the module, name, value)`, where the value is
    ABSENT if the module has no such name. It then may have a function that gives one."""

    __slots__ = ("_module", "_names", "_read")

    def __init__(
        self, module: ModuleType, names: Names, read: Callable[[Mapping[str, Any], str, Any], Any]
    ) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_read", read)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return self._names.globals_view(vars(self._module))

    def __getattr__(self, name: str) -> Any:
        names = vars(self._module)
        value, frame = names.get(name, ABSENT), sys._getframe(1)
        if value is ABSENT:
            seen = self._given(name)
        elif getattr(frame.f_globals, "is_fixed", False):
            seen = self._names.of(value)
        else:
            seen = self._read(names, name, value)
        return as_called(seen, frame)

    def _given(self, name: str) -> Any:
        """What the module's own `__getattr__` gives, which may make the name one of the module's."""
        names = vars(self._module)
        if "__getattr__" in names:
            getter = self._read(names, "__getattr__", names["__getattr__"])
            if type(getter) is FunctionType and getter is not names["__getattr__"]:
                self._read(names, name, ABSENT)
                return getter(name)
            with suppress(AttributeError):
                value = getattr(self._module, name)
                return self._read(names if name in names else {name: value}, name, value)
        self._read(names, name, ABSENT)
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise once_for_many_calls(f"assigns {self._module.__name__}.{name}", user_location())

    def __repr__(self) -> str:
        return f"<{self._module.__name__} as seen by a traced function>"


class NumpyFunction:
    """A function of NumPy's that has no counterpart of ours: what it makes of constants is a constant
    of the program, so its arrays become symbolic too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _module_name(self._function).startswith("numpy.random"):
            raise the_same(f"np.random.{self._function.__name__}", "numbers")
        if self._function in _READERS:
            raise the_same(f"np.{self._function.__name__}", "contents")
        if self._function in _SETTINGS:
            raise the_same(f"np.{self._function.__name__}", "answer")
        finds_us = any(type(value) in _FOUND for value in (*args, *kwargs.values()))
        if finds_us and _is_program(self._function):
            return numpy_program(self._function)(*args, **kwargs)
        name = getattr(self._function, "__name__", "")
        if name in _JOIN and args and type(args[0]) in LISTS:
            args = ([_symbolic(part, False) for part in args[0]], *args[1:])
        keeps_lists = finds_us or name in _TAKE_PARTS
        symbolic = [_symbolic(arg, keeps_lists) for arg in args]
        named = {name: _symbolic(value, keeps_lists or name == "out") for name, value in kwargs.items()}
        try:
            return _as_constants(self._function(*symbolic, **named))
        except NotAnArray as error:
            whole = f"{_module_name(self._function)}.{name}".replace("numpy", "np", 1)
            raise unsupported(whole, error.loc, error.details) from None

    def __repr__(self) -> str:
        return f"<{self._function!r} as seen by a traced function>"

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return NumpyFunction(value) if callable(value) else value


class Unreadable:
    """Stands for an array of an element type that arrayjit does not take, which its class is named for: every
    use of it is an error."""

    @staticmethod
    def of(array: np.ndarray | np.void) -> Unreadable:
        name = f"{array.dtype} array" if type(array) is np.ndarray else type(array).__name__
        kind: type[Unreadable] = type(name, (Unreadable,), {})
        return kind()

    def __getattr__(self, name: str) -> Any:
        raise DTypeError(
            f"a {type(self).__name__} is not supported in a jitted function",
            fix="convert it with .astype(...) to a supported dtype before the call",
        )


class _NdarrayType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return CREATION[np.ndarray](*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or issubclass(kind, np.ndarray)

    def __getitem__(cls, kinds: Any) -> Any:
        return GenericAlias(cls, kinds)

    def __getattr__(cls, name: str) -> Any:
        return array_method(getattr(np.ndarray, name))


class NdarrayView(metaclass=_NdarrayType):
    """`np.ndarray` as the traced function sees it: calling it makes a symbolic array."""


NdarrayView.__name__ = np.ndarray.__name__


def array_method(value: Any) -> Any:
    """A method of `np.ndarray` as a function of traced arrays; anything else is itself."""
    is_method = getattr(value, "__objclass__", None) is np.ndarray
    return METHODS.get(value.__name__, value) if is_method else value


def is_numpy(value: Any) -> bool:
    """Whether a module, a class or a function is NumPy's."""
    return _module_name(value).partition(".")[0] == "numpy"


def _is_program(function: Callable[..., Any]) -> bool:
    in_python = isinstance(function, FunctionType) and function.__module__.startswith("numpy.polynomial.")
    return in_python and function.__name__.endswith(_PROGRAMS)


def _symbolic(value: Any, keeps_lists: bool) -> Any:
    """An argument for NumPy with the user's arrays replaced, so that its protocols find us; so are lists of
    traced numbers, where nothing else tells."""
    if type(value) in (np.ndarray, np.memmap):
        return as_operand(value)
    if type(value) not in LISTS or keeps_lists:
        return value
    return as_operand(value) if any(type(part) is SymbolicArray for part in items_of(value)) else value


def _as_constants(result: Any) -> Any:
    if type(result) is np.ndarray:
        return constant_array(result)
    if type(result) in (tuple, list):
        return type(result)(_as_constants(item) for item in result)
    return result


def _module_name(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, np.ufunc):
        return "numpy"
    name = getattr(value, "__module__", None)
    if name is None and callable(value):
        name = type(getattr(value, "__self__", None)).__module__
    return name if isinstance(name, str) else ""
