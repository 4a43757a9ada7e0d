"""The user's function as it runs while traced: the same code, with another view of its names.

Calls such as `np.zeros(n)` get no symbolic array, so no protocol sees them. The function therefore runs
with a view of its globals and closure in which a name bound to

- NumPy, a module of it or one of its functions gives ours (`np.zeros` makes a symbolic array);
- an ndarray gives the symbolic array that stands for its memory at each call;
- a Python function, class, object or module of the user's gives the same treatment, recursively (see
  `objects` and `modules`).

NumPy and the user's modules, classes and objects are never changed. The user's code is what lies outside the
standard library and outside site-packages, and the distribution package of the jitted function itself.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import os
import random
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from io import IOBase
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from ...errors import DTypeError, UnsupportedError
from ...frozen import slotted
from ...settings import GET_VARIABLE, variables
from ..functions.coordinates import traced_product
from ..functions.mapping import Vectorized
from ..loops.bytecode import asks_which_bool
from ..loops.ranges import STANDING
from ..loops.statements import OURS
from ..record.deciding import know_bools
from ..record.guards import ABSENT, FunctionGuard, NameGuard, content
from ..record.registry import CREATION
from ..record.resident import Resident
from ..record.state import attributes_of, has_state, state_of
from ..record.trace import Trace
from ..record.tree import Opened
from ..source.recompiling import lines_of, recompiled
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand
from .builtin_view import PLAIN_FUNCTIONS, Builtins, as_called
from .mathematics import MATH
from .modules import ModuleView, NdarrayView, NumpyFunction, Unreadable, array_method, is_numpy
from .objects import Objects
from .outside import Fleeting, given_anew, outside

__all__ = ["Namespace"]

_CachedFunction = type(functools.cache(len))
_HOLDING_FUNCTIONS = {
    **dict.fromkeys((functools.partial, functools.partialmethod, functools.cached_property), "func"),
    **dict.fromkeys((staticmethod, classmethod, MethodType), "__func__"),
    _CachedFunction: "__wrapped__",
}
_CONTAINERS = (list, dict, set, deque)
_FIXED = ("numpy.", f"{__name__.partition('.')[0]}.tracer.")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, np.generic, np.dtype)
_RESTORED = (bool, int, str, bytes)
"""What is the same where it is equal."""

_INSTALLED = tuple(
    {
        os.path.realpath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_OF_PYTHON = ("__builtins__", "__warningregistry__")
"""Globals that Python itself writes: the second one where a warning is given, by `warnings`."""


@slotted
class Cell:
    """A closure variable of the user's, ours, and what ours holds at first."""

    name: str
    theirs: CellType
    ours: CellType
    value: Any = ABSENT


class Namespace:
    """The view of names for one trace. `of` gives the counterpart of any value."""

    def __init__(self, trace: Trace, function: Callable[..., Any]) -> None:
        self._trace = trace
        trace.namespace = self
        self._home = _distribution(function)
        self._known: dict[int, tuple[Any, Any]] = {}
        self._originals: dict[int, Any] = {}
        self._globals: dict[int, GlobalsView] = {}
        self._cells: dict[int, Cell] = {}
        self._guards: dict[tuple[int, str], NameGuard | FunctionGuard] = {}
        self._followed: dict[int, Any] = {}
        self._builtins = Builtins(
            {**vars(builtins), **{kind.__name__: STANDING[kind] for kind in STANDING}, **OURS}
        )
        self._builtins["__import__"] = self._import
        self._objects = Objects(self)
        for function, ours in {**PLAIN_FUNCTIONS, **STANDING}.items():
            self.remember(function, ours)
        self._ways: Mapping[type, Callable[[Any], Any]] = {
            FunctionType: self._function,
            MethodType: self._method,
            ModuleType: self._module,
            BuiltinFunctionType: self._builtin,
            MethodWrapperType: self._bound,
            MethodDescriptorType: array_method,
            functools.partial: self._partial,
            _CachedFunction: self._cached,
            np.ndarray: self._array,
            np.memmap: self._array,
            **dict.fromkeys((random.Random, *_numpy_generators()), _generator),
            np.vectorize: lambda value: Vectorized(self.of(value.pyfunc), value.otypes),
        }
        self._builtins.update((name, self.of(getattr(builtins, name))) for name in ("input", "open"))

    def nameless(self, value: Any) -> Any:
        """`of` what is met by no name, the jitted function or the default of a parameter: the trace depends
        on its state."""
        return self.read({"": value}, "", value) if has_state(value) else self.of(value)

    @property
    def guards(self) -> tuple[NameGuard | FunctionGuard, ...]:
        return tuple(self._guards.values())

    def of(self, value: Any) -> Any:
        """What the traced code sees in place of `value`: often the value itself."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._originals:
            return value
        counterpart = self._counterpart(value)
        if counterpart is not value:
            self.remember(value, counterpart)
        else:
            self._known[id(value)] = value, value
        return counterpart

    def item(self, value: Any) -> Any:
        """`of` an item of a container, which traced code may have no use for."""
        try:
            return self.of(value)
        except (DTypeError, UnsupportedError):
            if not isinstance(value, (np.ndarray, np.void)):
                raise
            self.remember(value, Unreadable.of(value))
            return self.of(value)

    def remember(self, value: Any, counterpart: Any) -> None:
        """From now on traced code sees `counterpart` in place of `value`."""
        self._known[id(value)] = (value, counterpart)
        self._originals[id(counterpart)] = value

    def original(self, counterpart: Any) -> Any:
        """What `counterpart` is seen in place of; itself if it is no counterpart."""
        return self._originals.get(id(counterpart), counterpart)

    def met(self, value: Any) -> bool:
        """Whether traced code met the value outside."""
        return id(value) in self._known

    def open_result(self, value: Any) -> Opened:
        """How a part of the function's result is taken apart."""
        return self._objects.open_result(value)

    def read(self, holder: Mapping[str, Any] | CellType | ContextVar[Any], name: str, value: Any) -> Any:
        """`of(value)`, and the trace depends on `holder` keeping it."""
        self._guard(holder, name, value)
        return self.of(value)

    def _guard(self, holder: Mapping[str, Any] | CellType | ContextVar[Any], name: str, value: Any) -> None:
        if (id(holder), name) not in self._guards:
            state = None
            if has_state(value):
                state = state_of(value)
                self._trace.watch(value)
            self._guards[id(holder), name] = NameGuard(holder, name, value, state)

    def depend(self, holder: Mapping[str, Any], name: str, value: Any) -> None:
        """The trace depends on `holder` keeping a value that has no state; ABSENT for having none."""
        if (id(holder), name) not in self._guards:
            self._guards[id(holder), name] = NameGuard(holder, name, value)

    def follow(self, value: Any) -> None:
        """The trace depends on what the user's code in a function or class may look at, which runs with the
        real names: on what these stand for, in other functions and in modules too."""
        waiting: list[Any] = [value]
        while waiting:
            part = waiting.pop()
            if id(part) not in self._followed:
                self._followed[id(part)] = part
                for holder, name, held in self._looked_at(part):
                    self._guard(holder, name, held)
                    waiting.append(held)

    def _looked_at(self, value: Any) -> Iterator[tuple[Any, str, Any]]:
        """What the user's code in a value looks at: where, under which name, and what is there."""
        if isinstance(value, type) and self.is_users(value):
            for name, member in tuple(vars(value).items()):
                if not name.startswith("__") or isinstance(member, FunctionType):
                    yield vars(value), name, member
            yield from (({"": base}, "", base) for base in value.__bases__)
        code = [part for part in _functions_in(value) if self._is_users_function(part)]
        for function in code:
            self._guards[id(function), ""] = FunctionGuard.of(function)
            named = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            yield from ((cell, name, content(cell)) for name, cell in named)
            names, known = sorted(_names_in(function.__code__)), function.__globals__
            yield from ((known, name, known.get(name, ABSENT)) for name in names)
            for module in [known.get(name) for name in names]:
                if isinstance(module, ModuleType) and self._is_users_module(module):
                    held = vars(module)
                    yield from ((held, name, held[name]) for name in names if name in held)

    def changes(self) -> list[str]:
        """What the function did to names and things that it did not make."""
        assigned = [name for view in self._globals.values() for name in view.assigned()]
        assigned += [cell.name for cell in self._cells.values() if content(cell.ours) is not cell.value]
        return [*(f"assigns {name}" for name in assigned), *self._objects.changes()]

    def _counterpart(self, value: Any) -> Any:
        way = self._ways.get(type(value))
        if way is not None:
            return way(value)
        if isinstance(value, Resident):
            return as_operand(value, self._trace)
        stands = outside(value, self.read)
        if stands is not None:
            return stands
        if value is np.ndarray:
            return NdarrayView
        if value is itertools.product:
            return traced_product
        if issubclass(type(value), (np.ndarray, np.void)):  # arrays of other traces say to be instances
            raise _unreadable(value)
        if is_numpy(value):
            return self._of_numpy(value)
        if isinstance(value, random.Random):
            return _generator(value)
        if isinstance(value, Iterator) and not isinstance(value, IOBase) and not self.is_users(type(value)):
            return Fleeting(f"a {type(value).__name__} from outside", "items")
        return self._objects.of(value)

    def _of_numpy(self, value: Any) -> Any:
        if isinstance(value, Hashable) and value in CREATION:
            return CREATION[value]
        is_kind = isinstance(value, (type, GenericAlias))
        return NumpyFunction(value) if callable(value) and not is_kind else value

    def _array(self, array: np.ndarray) -> Any:
        return as_operand(array, self._trace)

    def _builtin(self, function: Any) -> Any:
        if function in MATH:
            return MATH[function]
        if isinstance(function.__self__, random.Random):
            return Fleeting(f"random.{function.__name__}", "numbers")
        if is_numpy(function):
            return self._of_numpy(function)
        anew = given_anew(function)
        return self._bound(function) if anew is None else anew

    def _bound(self, method: Any) -> Any:
        """A method of a container or another object of Python's own."""
        holder = method.__self__
        seen = self.of(holder) if isinstance(holder, _CONTAINERS) else holder
        return method if seen is holder else getattr(seen, method.__name__)

    def _method(self, method: MethodType) -> Any:
        return MethodType(self.of(method.__func__), self.of(method.__self__))

    def _partial(self, bound: functools.partial[Any]) -> Any:
        arguments = {name: self.of(item) for name, item in bound.keywords.items()}
        return functools.partial(self.of(bound.func), *map(self.of, bound.args), **arguments)

    def _cached(self, function: Any) -> Any:
        """A function under `functools.cache`: the real one where its arguments are plain, so that its results
        are the cached ones; else the one that it wraps, since traced values must not stay in the cache."""
        inner = inspect.unwrap(function)
        if not isinstance(inner, FunctionType) or not self._is_users_function(inner):
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = (*args, *kwargs.values())
            if all(issubclass(type(value), _PLAIN) for value in given):
                self.follow(inner)
                result = function(*args, **kwargs)
                return self.read({"": result}, "", result)
            for value in given:
                if type(value) is SymbolicArray and value.ndim:
                    hash(value)
            return self.of(function.__wrapped__)(*args, **kwargs)

        return call

    def _function(self, function: FunctionType) -> Any:
        if is_numpy(function):
            return self._of_numpy(function)
        if isinstance(function.__globals__, GlobalsView):
            return function
        if not self._is_users_function(function):
            return self._getenv if function is GET_VARIABLE else given_anew(function) or function
        if hasattr(function, "registry") and hasattr(function, "dispatch"):
            return self._dispatched(function)
        return self.rebuilt(function)

    def _dispatched(self, function: Any) -> Any:
        """A function under `functools.singledispatch`."""
        view = functools.singledispatch(self.of(function.registry[object]))
        self.remember(function, view)
        self._objects.register(function, view)
        return view

    def _is_users_function(self, function: FunctionType) -> bool:
        """Whether the function, or the one that it wraps, is the user's."""
        inner = inspect.unwrap(function)
        functions = (function, inner) if isinstance(inner, FunctionType) else (function,)
        return any(self._is_users(part.__code__.co_filename, part.__module__) for part in functions)

    def rebuilt(self, function: FunctionType) -> FunctionType:
        """The function over the view of its globals, closure and defaults."""
        is_fixed = _is_fixed(function.__globals__)
        if not is_fixed:
            self._guards[id(function), ""] = FunctionGuard.of(function)
        if asks_which_bool(function.__code__):
            know_bools(self._trace, f"{function.__name__} asks by `is` which bool it is")
        named = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        cells = [self._cell(name, cell) for name, cell in named]
        names = self.globals_view(function.__globals__)
        closure = tuple(cell.ours for cell in cells)
        copied = FunctionType(self._code(function), names, function.__name__, None, closure or None)
        self.remember(function, copied)
        copied.__qualname__ = function.__qualname__
        copied.__module__ = function.__module__
        copied.__dict__.update(function.__dict__)
        copied.__dict__.update((name, self.item(value)) for name, value in attributes_of(function).items())
        if function.__defaults__ is not None:
            copied.__defaults__ = tuple(map(self.nameless, function.__defaults__))
        if function.__kwdefaults__ is not None:
            given = function.__kwdefaults__
            read = self._seen if is_fixed else self.read
            copied.__kwdefaults__ = {name: read(given, name, value) for name, value in given.items()}
        for cell in cells:
            self._fill(cell)
        self._objects.note(copied)
        return copied

    def _code(self, function: FunctionType) -> CodeType:
        """The function's code, with conditions that are left to the run written as it takes them."""
        code = function.__code__
        asked = {line for file, line in self._trace.decisions.conditions if file == code.co_filename}
        lines = frozenset(asked.intersection(lines_of(code))) if asked else None
        made = recompiled(code, lines) if lines else code
        if isinstance(made, CodeType):
            return made
        self._trace.kept.update(((code.co_filename, line), made) for line in lines or ())
        return code

    def _cell(self, name: str, theirs: CellType) -> Cell:
        """Our cell for one of the user's, filled when the function is known: it may refer to itself."""
        return self._cells.setdefault(id(theirs), Cell(name, theirs, CellType()))

    def _fill(self, cell: Cell) -> None:
        held = content(cell.theirs)
        if cell.value is ABSENT and held is not ABSENT:
            cell.value = held
            cell.value = self.read(cell.theirs, cell.name, held)
            cell.ours.cell_contents = cell.value

    def globals_view(self, names: dict[str, Any]) -> GlobalsView:
        if isinstance(names, GlobalsView):
            return names
        view = self._globals.get(id(names))
        if view is None:
            view = self._globals[id(names)] = GlobalsView(names, self, self._builtins)
        return view

    def _module(self, module: ModuleType) -> Any:
        if module is random:
            return Fleeting("random", "numbers")
        is_pythons = module.__name__.partition(".")[0] in sys.stdlib_module_names
        if is_numpy(module):
            return ModuleView(module, self, self._of_stateless)
        if is_pythons or self._is_users_module(module):
            return ModuleView(module, self, self.read)
        return module

    def _seen(self, holder: Mapping[str, Any], name: str, value: Any) -> Any:
        return self.of(value)

    def _of_stateless(self, holder: Mapping[str, Any], name: str, value: Any) -> Any:
        """`read` of what has no state, as nothing has in NumPy's modules."""
        self.depend(holder, name, value)
        return self.of(value)

    def _is_users_module(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        return file is not None and self._is_users(file, module.__name__)

    def _getenv(self, name: str, default: Any = None) -> Any:
        """`os.getenv`."""
        return self.of(variables()).get(name, default)

    def is_users(self, kind: type) -> bool:
        """Whether a class is defined by the user's code."""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is None:
            return kind.__module__.partition(".")[0] not in sys.stdlib_module_names
        return self._is_users(file, kind.__module__)

    def _is_users(self, file: str, module: str | None) -> bool:
        return (module or "").partition(".")[0] == self._home or not _is_installed(file)

    def _import(self, name: str, globals: Any = None, *args: Any, **options: Any) -> Any:
        """`import` inside the traced function. Where a name begins with dots, globals tell the package."""
        names = globals.names if type(globals) is GlobalsView else globals
        module = builtins.__import__(name, names, *args, **options)
        if module.__name__ in sys.modules:
            self.depend(sys.modules, module.__name__, module)
        return self.of(module)


def _unreadable(value: np.ndarray | np.void) -> UnsupportedError:
    """The error of arrays that could change unseen: of a class of their own, or parts of such with fields."""
    kind = type(value).__name__
    what = (
        f"a {kind}, a subclass of ndarray," if isinstance(value, np.ndarray) else f"a scalar of {value.dtype}"
    )
    fix = "give it np.asarray(...) of that, or its fields as arrays"
    return UnsupportedError(f"{what} is not supported in a jitted function", fix=fix)


class GlobalsView(dict[str, Any]):
    """The globals of a rebuilt function. LOAD_GLOBAL asks `__getitem__`; STORE_GLOBAL writes into the
    dict itself and never reaches the real globals."""

    __slots__ = ("_namespace", "is_fixed", "names")

    def __init__(self, names: dict[str, Any], namespace: Namespace, builtin_names: dict[str, Any]) -> None:
        super().__init__(__builtins__=builtin_names)
        self.names = names
        self._namespace = namespace
        self.is_fixed = _is_fixed(names)

    def __getitem__(self, name: str) -> Any:
        if name in self:
            return super().__getitem__(name)
        value = self.names.get(name, ABSENT)
        if value is not ABSENT:
            namespace = self._namespace
            seen = namespace.of(value) if self.is_fixed else namespace.read(self.names, name, value)
            return as_called(seen, sys._getframe(1))
        if self.is_fixed:
            raise KeyError(name)
        self._namespace.depend(self.names, name, ABSENT)
        self._namespace.depend(vars(builtins), name, vars(builtins).get(name, ABSENT))
        raise KeyError(name)

    def assigned(self) -> list[str]:
        """The names that the function assigned, and that do not hold what they held before."""
        return [name for name in self if name not in _OF_PYTHON and not self._is_restored(name)]

    def _is_restored(self, name: str) -> bool:
        before, now = self.names.get(name, ABSENT), super().__getitem__(name)
        seen = ABSENT if before is ABSENT else self._namespace.read(self.names, name, before)
        return seen is now or (type(seen) is type(now) and type(now) in _RESTORED and seen == now)


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to arrayjit."""
    path = os.path.realpath(file)
    if file.startswith("<frozen "):
        return True
    return path.startswith((*_INSTALLED, _PACKAGE)) or "site-packages" in path


def _is_fixed(names: Mapping[str, Any]) -> bool:
    """Whether globals are those of a module of NumPy's or of the tracer's, which stay as they are."""
    return str(names.get("__name__")).startswith(_FIXED)


def _functions_in(value: Any) -> Iterable[FunctionType]:
    """The functions that a value runs when it is called or asked."""
    while type(value) in _HOLDING_FUNCTIONS:
        value = getattr(value, _HOLDING_FUNCTIONS[type(value)])
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    return [part for part in parts if isinstance(part, FunctionType)]


def _names_in(code: CodeType) -> set[str]:
    """The names in code and in that of the functions that it makes."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _distribution(function: Callable[..., Any]) -> str:
    """The top-level package of the jitted function; "" for a script, and for a function of arrayjit's own."""
    home = (getattr(function, "__module__", None) or "").partition(".")[0]
    return "" if home in ("__main__", __name__.partition(".")[0]) else home


def _generator(value: Any) -> Fleeting:
    return Fleeting(type(value).__name__, "numbers")


def _numpy_generators() -> tuple[type, ...]:
    """The types of NumPy's random generators, of which there are none before their module is imported."""
    is_there = "numpy.random" in sys.modules
    return (np.random.Generator, np.random.RandomState) if is_there else ()
