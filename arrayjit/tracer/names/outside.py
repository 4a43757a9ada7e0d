"""What Python's own modules tell of the world outside: clocks, files, processes, random bits, settings.

A traced function runs once for many calls, so that what it is told once would be told at each call. Using it
is an error at the user's line (see `Fleeting`), but for the variables of the environment and context
variables: these are read where Python keeps them, and the trace depends on what is there.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from io import IOBase
from pathlib import Path, PurePath
from types import BuiltinFunctionType
from typing import Any

from ...errors import UnsupportedError
from ...settings import environment, variables
from ..record.guards import ABSENT, once_for_many_calls, set_in_context
from ..record.trace import user_location

__all__ = ["ContextView", "Environment", "Fleeting", "TypeView", "given_anew", "outside", "the_same"]

Read = Callable[[Any, str, Any], Any]
"""`read(holder, name, value)`: what a trace sees of a value on which it depends from then on."""

_INSTEAD = {
    "answer": "ask before the call and pass the answer as an argument",
    "numbers": "draw the numbers before the call and pass them as an argument",
    "time": "read the clock before the call and pass the number as an argument",
    "items": "pass the items as a list or an array",
    "contents": "read the file before the call and pass the numbers as an argument",
}

_ASKING = {
    **dict.fromkeys(("os", "posix", "nt", "posixpath", "ntpath", "genericpath"), "answer"),
    **dict.fromkeys(("glob", "shutil", "socket", "_socket", "subprocess", "tempfile"), "answer"),
    **dict.fromkeys(("secrets", "uuid"), "numbers"),
    **dict.fromkeys(("_io", "io", "linecache", "fileinput"), "contents"),
    "time": "time",
}
"""Modules whose functions ask the world outside, and what they give."""

_ASKS_NOTHING = {
    "basename", "commonpath", "commonprefix", "compare_digest", "cpu_count", "dirname", "fsdecode",
    "fsencode", "fspath", "getpid", "get_clock_info", "isabs", "join", "mktime", "normcase", "normpath",
    "sleep", "split", "splitdrive", "splitext", "splitroot", "strerror", "text_encoding", "uuid3", "uuid5",
}  # fmt: skip
"""Those among them that tell the same whenever they are called, or nothing."""

_CALLED = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path", "genericpath": "os.path"}
_WRITING = {
    "close", "closed", "encoding", "errors", "fileno", "flush", "isatty", "mode", "name", "newlines", "write",
    "writelines",
}  # fmt: skip
"""What may be done to a file: each trace does it once, as it prints."""

_GENERATORS = ("numpy.random._generator", "numpy.random.mtrand")
_ANEW = {"date": ("today",), "datetime": ("now", "today", "utcnow")}


class Fleeting:
    """What gives other numbers, another time or other items whenever it is asked, as traced functions see it:
    every use of it is an error."""

    def __init__(self, name: str, given: str) -> None:
        self._name = name
        self._given = given

    def __getattr__(self, name: str) -> Any:
        raise the_same(f"{self._name}.{name}", self._given)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise the_same(self._name, self._given)

    def __iter__(self) -> Any:
        raise the_same(self._name, self._given)

    def __next__(self) -> Any:
        raise the_same(self._name, self._given)


def the_same(what: str, given: str) -> UnsupportedError:
    """The error of what would be told once."""
    return UnsupportedError(
        f"{what} in a jitted function would give the same {given} at each call", fix=_INSTEAD[given]
    )


def given_anew(function: Any) -> Fleeting | None:
    """What stands for a function of Python's own that asks the world outside; None for any other."""
    module, name = function.__module__, function.__name__
    if type(function) is BuiltinFunctionType and isinstance(function.__self__, type):
        kind = function.__self__
        if kind.__module__ == "datetime" and name in _ANEW.get(kind.__name__, ()):
            return Fleeting(f"{kind.__name__}.{name}", "time")
    given = "answer" if name == "input" and module == "builtins" else _ASKING.get(module or "")
    if given is None or name in _ASKS_NOTHING:
        return None
    called = "" if module in ("_io", "io", "builtins") else f"{_CALLED.get(module, module)}."
    return Fleeting(f"{called}{name}", "numbers" if name == "urandom" else given)


def outside(value: Any, read: Read) -> Any:
    """What stands for an object or a class of Python's own that tells of the world outside, or has such a
    class; None for others."""
    if value is variables():
        return Environment(read)
    if isinstance(value, ContextVar) and not value.name.startswith("numpy."):  # see `handling`
        return ContextView(value, read)
    if isinstance(value, IOBase) and type(value).__module__ in ("_io", "io"):
        return FileView(value)
    if isinstance(value, Path):
        return _path_type()(value)
    if isinstance(value, type):
        if issubclass(value, Path) and value.__module__.partition(".")[0] == "pathlib":
            return _path_type()
        if value.__module__ == "datetime" and value.__name__ in _ANEW:
            return TypeView(value)
        if issubclass(value, random.Random) or value.__module__ in _GENERATORS:
            return Fleeting(value.__name__, "numbers")
        if value.__module__ in ("socket", "subprocess", "tempfile"):
            return Fleeting(f"{value.__module__}.{value.__name__}", "answer")
    return value if type(value).__module__ == "datetime" else None


class Environment(Mapping[str, str]):
    """`os.environ`: the trace depends on those variables that it reads."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def __getitem__(self, name: str) -> str:
        held, key_of = environment()
        key = key_of(name)
        self._read(held, key, held.get(key, ABSENT))
        return variables()[name]

    def __iter__(self) -> Iterator[str]:
        raise the_same("going through os.environ", "items")

    def __len__(self) -> int:
        raise the_same("len(os.environ)", "answer")

    def __setitem__(self, name: str, value: str) -> None:
        raise once_for_many_calls("changes os.environ", user_location())

    def __delitem__(self, name: str) -> None:
        raise once_for_many_calls("changes os.environ", user_location())


class ContextView:
    """A context variable: the trace depends on what it holds."""

    def __init__(self, variable: ContextVar[Any], read: Read) -> None:
        self._variable = variable
        self._read = read
        self.name = variable.name

    def get(self, *default: Any) -> Any:
        held = set_in_context(self._variable)
        seen = self._read(self._variable, self.name, held)
        if default and held is not ABSENT and self._variable.get(ABSENT) is ABSENT:
            raise the_same(f"a default for the context variable {self.name}, which has one,", "answer")
        return self._variable.get(*default) if held is ABSENT else seen

    def set(self, value: Any) -> Any:
        raise once_for_many_calls(f"sets the context variable {self.name}", user_location())

    def reset(self, token: Any) -> None:
        raise once_for_many_calls(f"resets the context variable {self.name}", user_location())


class FileView:
    """An open file, which is written by each trace but not read."""

    def __init__(self, file: IOBase) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        if name in _WRITING:
            return getattr(self._file, name)
        raise the_same(f"{type(self._file).__name__}.{name}", "contents")

    def __iter__(self) -> Any:
        raise the_same(f"going through a {type(self._file).__name__}", "contents")


class _TypeViews(type):
    """The class of a `TypeView`, which stands for its `kind` in all but a few methods."""

    kind: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.kind(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kind)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(getattr(subclass, "kind", subclass), cls.kind)

    def __getattr__(cls, name: str) -> Any:
        value = getattr(cls.kind, name)
        anew = given_anew(value) if type(value) is BuiltinFunctionType else None
        return value if anew is None else anew


def TypeView(kind: type) -> Any:  # noqa: N802
    """A class of Python's own, of which those methods are errors that tell the time."""
    return _TypeViews(kind.__name__, (), {"kind": kind})


@functools.cache
def _path_type() -> type:
    """Paths that ask no file system."""
    real: Any = type(Path())

    def asking(name: str) -> Any:
        def ask(*args: Any, **kwargs: Any) -> Any:
            raise the_same(f"Path.{name}", "contents" if name.startswith(("read", "open")) else "answer")

        return classmethod(ask) if name in ("cwd", "home") else ask

    asked = {name for name in dir(Path) if not name.startswith("_")} - set(dir(PurePath))
    members = {"__slots__": (), **{name: asking(name) for name in asked}}
    seen: type = type(real)(real.__name__, (real,), members)
    return seen
