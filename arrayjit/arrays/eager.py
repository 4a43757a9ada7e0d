"""What a user calls on Arrays outside of jitted functions: each function is compiled by itself, as the body
of a jitted one, and kept.

An Array has the operators and methods that arrays have in jitted functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..api import JitFunction, jit
from ..tracer.calls.features import METHODS
from .array import Array, asarray, donate, from_dlpack

__all__ = ["Array", "asarray", "donate", "from_dlpack"]

_WRITERS = frozenset(
    (np.save, np.savez, np.savez_compressed, np.savetxt, np.array2string, np.array_repr, np.array_str)
)
"""Functions that write numbers into files and for people: the host's work."""


def _evaluate(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if function in _WRITERS:
        return function(*map(_on_host, args), **{name: _on_host(value) for name, value in kwargs.items()})
    return _jitted(function)(*args, **kwargs)


def _on_host(value: Any) -> Any:
    return value.numpy() if isinstance(value, Array) else value


@cache
def _jitted(function: Callable[..., Any]) -> JitFunction[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return jit(call)


@cache
def _jitted_method(name: str) -> JitFunction[..., Any]:
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    return jit(call)


def _method(name: str) -> Callable[..., Any]:
    """The method of a name, compiled. Scalars are not written in place: Python then binds the name anew."""
    is_in_place = name.startswith("__i") and name != "__invert__"

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if is_in_place and not self.ndim and not self.layout.flags.writeable:
            return NotImplemented
        return _jitted_method(name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = getattr(np.ndarray, name).__doc__
    return method


Array.evaluate = staticmethod(_evaluate)
for _name in METHODS:
    if hasattr(np.ndarray, _name) and _name not in vars(Array):
        setattr(Array, _name, _method(_name))
