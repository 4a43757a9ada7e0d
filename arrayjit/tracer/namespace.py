"""The user's function as it runs while traced: the same code, with another view of its names.

Calls such as `np.zeros(n)` get no symbolic array, so no protocol sees them. The function therefore runs
with a view of its globals and closure in which a name bound to

- NumPy, a module of it or one of its functions gives ours (`np.zeros` makes a symbolic array);
- an ndarray gives the symbolic array that stands for its memory at each call;
- a Python function or module of the user's gives the same treatment, recursively.

NumPy and the user's modules are never changed. The user's code is what lies outside the standard library
and outside site-packages, and the distribution package of the jitted function itself. Methods that are
reached through objects run as they are.
"""

from __future__ import annotations

import builtins
import functools
import math
import os
import random
import sys
import sysconfig
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Union

import numpy as np

from ..errors import Location, UnsupportedError
from .array import SymbolicArray
from .builtin_view import Builtins, as_called
from .elementwise import as_operand, constant_array
from .mathematics import MATH
from .ranges import BUILTINS
from .registry import CREATION
from .state import has_state, state_of
from .trace import Trace, user_location
from .tree import flatten

__all__ = ["Guard", "Namespace", "guards_hold", "once_for_many_calls"]

_ABSENT = object()
_INSTALLED = tuple(
    {
        os.path.realpath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_TAKE_PARTS = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "choose", "column_stack", "concat",
    "concatenate", "dstack", "einsum", "hstack", "ix_", "meshgrid", "multi_dot", "select", "stack", "vstack",
))  # fmt: skip
"""NumPy's functions whose lists of arrays are no arrays themselves."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A global or a closure variable that the trace read: the trace is valid while it holds `value`, and
    that keeps its `state`."""

    holder: Union[Mapping[str, Any], CellType]
    name: str
    value: Any
    state: Hashable = None

    def holds(self) -> bool:
        if isinstance(self.holder, CellType):
            held = _content(self.holder)
        else:
            held = self.holder.get(self.name, _ABSENT)
        return held is self.value and (self.state is None or state_of(held) == self.state)


def once_for_many_calls(what: str, loc: Location | None) -> UnsupportedError:
    """The error of a function that does `what` to something outside it."""
    return UnsupportedError(
        f"the function {what}, which it did not make",
        loc=loc,
        details=("its code runs once for many calls, so the change would be made once",),
        fix="return the new value instead; arrays may be written in place",
    )


def guards_hold(guards: tuple[Guard, ...]) -> bool:
    """Whether every name that a trace baked in is still bound to what it was."""
    return all(guard.holds() for guard in guards)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


class Namespace:
    """The view of names for one trace. `of` gives the counterpart of any value."""

    def __init__(self, trace: Trace, function: Callable[..., Any]) -> None:
        self._trace = trace
        trace.namespace = self
        self._home = _distribution(function)
        self._known: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, GlobalsView] = {}
        self._cells: list[tuple[str, CellType, Any]] = []
        self._guards: dict[tuple[int, str], Guard] = {}
        self._builtins = Builtins({**vars(builtins), **BUILTINS})
        self._builtins["__import__"] = self._import

    def root(self, function: Callable[..., Any]) -> Any:
        """`of` the jitted function itself, on whose state the trace depends."""
        return self.read({"": function}, "", function) if has_state(function) else self.of(function)

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(self._guards.values())

    def of(self, value: Any) -> Any:
        """What the traced code sees in place of `value`: often the value itself."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        counterpart = self._counterpart(value)
        if counterpart is not value:
            self._known[id(value)] = (value, counterpart)
        return counterpart

    def read(self, holder: Mapping[str, Any] | CellType, name: str, value: Any) -> Any:
        """`of(value)`, and the trace depends on `holder` keeping it."""
        if not isinstance(value, ModuleType) and (id(holder), name) not in self._guards:
            state = None
            if has_state(value):
                state = state_of(value)
                self._trace.watch(value)
            self._guards[id(holder), name] = Guard(holder, name, value, state)
        return self.of(value)

    def leave(self) -> list[str]:
        """The global and closure variables that the function assigned, each put back."""
        assigned = [name for view in self._globals.values() for name in view.assigned()]
        for name, ours, value in self._cells:
            if _content(ours) is not value:
                assigned.append(name)
                if value is _ABSENT:
                    del ours.cell_contents
                else:
                    ours.cell_contents = value
        return assigned

    def _counterpart(self, value: Any) -> Any:
        kind = type(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is ModuleType:
            return self._module(value)
        if kind is MethodType:
            return MethodType(self.of(value.__func__), value.__self__)
        if kind is functools.partial:
            arguments = {name: self.of(item) for name, item in value.keywords.items()}
            return functools.partial(self.of(value.func), *map(self.of, value.args), **arguments)
        if kind in (np.ndarray, np.memmap):
            return as_operand(value, self._trace)
        if value is np.ndarray:
            return NdarrayView
        if kind is BuiltinFunctionType and value in MATH:
            return MATH[value]
        if kind in (np.random.Generator, np.random.RandomState, random.Random):
            return RandomView(value)
        return self._of_numpy(value) if _is_numpy(value) else value

    def _of_numpy(self, value: Any) -> Any:
        if isinstance(value, Hashable) and value in CREATION:
            return CREATION[value]
        return NumpyFunction(value) if callable(value) and not isinstance(value, type) else value

    def _function(self, function: FunctionType) -> Any:
        if _is_numpy(function):
            return self._of_numpy(function)
        if not self._is_users(function.__code__.co_filename, function.__module__):
            return function
        return self.rebuilt(function)

    def rebuilt(self, function: FunctionType) -> FunctionType:
        """The function over the view of its globals, closure and defaults."""
        cells = function.__closure__
        closure = None if cells is None else tuple(self._cell_for(cell) for cell in cells)
        names = self._globals_view(function.__globals__)
        copied = FunctionType(function.__code__, names, function.__name__, None, closure)
        self._known[id(function)] = (function, copied)
        copied.__qualname__ = function.__qualname__
        copied.__module__ = function.__module__
        copied.__dict__.update(function.__dict__)
        if function.__defaults__ is not None:
            copied.__defaults__ = tuple(self.of(value) for value in function.__defaults__)
        if function.__kwdefaults__ is not None:
            copied.__kwdefaults__ = {k: self.of(value) for k, value in function.__kwdefaults__.items()}
        for name, theirs, ours in zip(function.__code__.co_freevars, cells or (), closure or (), strict=True):
            if ours is not theirs:
                ours.cell_contents = self.read(theirs, "", theirs.cell_contents)
            self._cells.append((name, ours, _content(ours)))
        return copied

    def _cell_for(self, cell: CellType) -> CellType:
        """A cell of our own where the content has a counterpart, to be filled when the function is known
        (it may refer to itself); else the user's own."""
        value = _content(cell)
        if value is _ABSENT:
            return cell
        if isinstance(value, (FunctionType, ModuleType, MethodType, functools.partial, np.ndarray)):
            return CellType()
        return cell if self.read(cell, "", value) is value else CellType()

    def _globals_view(self, names: dict[str, Any]) -> GlobalsView:
        if isinstance(names, GlobalsView):
            return names
        view = self._globals.get(id(names))
        if view is None:
            view = self._globals[id(names)] = GlobalsView(names, self, self._builtins)
        return view

    def _module(self, module: ModuleType) -> Any:
        if module is random:
            return RandomView(module)
        if module is math or _is_numpy(module):
            return ModuleView(module, self)
        file = getattr(module, "__file__", None)
        return ModuleView(module, self) if file and self._is_users(file, module.__name__) else module

    def _is_users(self, file: str, module: str | None) -> bool:
        if (module or "").partition(".")[0] == self._home:
            return True
        path = os.path.realpath(file)
        return not path.startswith((*_INSTALLED, _PACKAGE)) and "site-packages" not in path

    def _import(self, name: str, *args: Any) -> Any:
        """`import` inside the traced function."""
        return self.of(builtins.__import__(name, *args))


class GlobalsView(dict[str, Any]):
    """The globals of a rebuilt function. LOAD_GLOBAL asks `__getitem__`; STORE_GLOBAL writes into the
    dict itself and never reaches the real globals."""

    __slots__ = ("_names", "_namespace")

    def __init__(self, names: dict[str, Any], namespace: Namespace, builtin_names: dict[str, Any]) -> None:
        super().__init__(__builtins__=builtin_names)
        self._names = names
        self._namespace = namespace

    def __getitem__(self, name: str) -> Any:
        if name in self:
            return super().__getitem__(name)
        return as_called(self._namespace.read(self._names, name, self._names[name]), sys._getframe(1))

    def assigned(self) -> list[str]:
        """The names that the function assigned."""
        return [name for name in self if name != "__builtins__"]


class ModuleView:
    """A module whose attributes are seen through a Namespace."""

    def __init__(self, module: ModuleType, namespace: Namespace) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_namespace", namespace)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if _is_numpy(self._module):
            return as_called(self._namespace.of(value), sys._getframe(1))
        return self._namespace.read(vars(self._module), name, value)

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
            raise _random_numbers(f"np.random.{self._function.__name__}")
        takes_parts = getattr(self._function, "__name__", "") in _TAKE_PARTS
        symbolic = [_symbolic(arg, takes_parts) for arg in args]
        named = {name: _symbolic(value, takes_parts or name == "out") for name, value in kwargs.items()}
        return _as_constants(self._function(*symbolic, **named))

    def __repr__(self) -> str:
        return f"<{self._function!r} as seen by a traced function>"

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return NumpyFunction(value) if callable(value) else value


class RandomView:
    """A random generator as the traced function sees it: every use of it is an error."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        owner = "random" if self._generator is random else type(self._generator).__name__
        raise _random_numbers(f"{owner}.{name}")


def _random_numbers(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} in a jitted function would give the same numbers at each call",
        loc=user_location(),
        fix="draw the numbers before the call and pass them as an argument",
    )


class _NdarrayType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return CREATION[np.ndarray](*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)


class NdarrayView(metaclass=_NdarrayType):
    """`np.ndarray` as the traced function sees it: calling it makes a symbolic array."""


def _symbolic(value: Any, takes_parts: bool) -> Any:
    """An argument for NumPy with the user's arrays replaced, so that its protocols find us; so are lists of
    traced numbers, unless the function takes lists of arrays."""
    if type(value) in (np.ndarray, np.memmap):
        return as_operand(value)
    if type(value) not in (list, tuple) or takes_parts:
        return value
    leaves, _ = flatten(value, lambda part: type(part) is SymbolicArray)
    return as_operand(value) if leaves else value


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


def _is_numpy(value: Any) -> bool:
    return _module_name(value).partition(".")[0] == "numpy"


def _distribution(function: Callable[..., Any]) -> str:
    """The top-level package of the jitted function; "" for a script."""
    home = (getattr(function, "__module__", None) or "").partition(".")[0]
    return "" if home == "__main__" else home
