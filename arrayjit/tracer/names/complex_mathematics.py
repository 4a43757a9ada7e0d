"""Python's `cmath` functions of traced numbers.

They give what NumPy's do, as numbers of Python's, and where Python raises they do when the compiled function
runs: ValueError where a number has no result, OverflowError where the result of a finite one is too large.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...ir.conditions import opposite
from ..functions.parts import parts
from ..record.trace import current_trace
from ..values.array import SymbolicArray
from ..values.conversions import to_bool, to_complex, to_float
from ..values.elementwise import as_array
from ..values.scalars import require
from .mathematics import instead_of

__all__: list[str] = []

_Condition = Callable[[Any, Any], Any]


def _never(x: Any, y: Any) -> Any:
    return None


def _exponential(x: Any, y: Any) -> Any:
    return np.isinf(y) & (x > -np.inf)


def _hyperbolic(x: Any, y: Any) -> Any:
    return np.isinf(y) & ~np.isnan(x)


def _tangent(x: Any, y: Any) -> Any:
    return np.isinf(y) & np.isfinite(x)


def _logarithm(x: Any, y: Any) -> Any:
    return (x == 0) & (y == 0)


def _inverse_tangent(x: Any, y: Any) -> Any:
    return (abs(x) == 1) & (y == 0)


def _turned(condition: _Condition) -> _Condition:
    """The same of the number times i."""
    return lambda x, y: condition(y, x)


_FUNCTIONS: Mapping[str, tuple[Any, _Condition]] = {
    "acos": (np.arccos, _never),
    "acosh": (np.arccosh, _never),
    "asin": (np.arcsin, _never),
    "asinh": (np.arcsinh, _never),
    "atan": (np.arctan, _turned(_inverse_tangent)),
    "atanh": (np.arctanh, _inverse_tangent),
    "cos": (np.cos, _turned(_hyperbolic)),
    "cosh": (np.cosh, _hyperbolic),
    "exp": (np.exp, _exponential),
    "log": (np.log, _logarithm),
    "log10": (np.log10, _logarithm),
    "sin": (np.sin, _turned(_hyperbolic)),
    "sinh": (np.sinh, _hyperbolic),
    "sqrt": (np.sqrt, _never),
    "tan": (np.tan, _turned(_tangent)),
    "tanh": (np.tanh, _tangent),
}
"""NumPy's function of a name, and where the number with these parts has no result in Python."""

_TOO_LARGE = frozenset(("cos", "cosh", "exp", "sin", "sinh"))


def _result(name: str, value: Any) -> SymbolicArray:
    computed, is_undefined = _FUNCTIONS[name]
    number = as_array(to_complex(value))
    result = computed(number)
    undefined = is_undefined(*parts(number))
    if undefined is not None:
        _raise(undefined, "ValueError", "math domain error")
    if name in _TOO_LARGE:
        _raise(np.isinf(result) & np.isfinite(number), "OverflowError", "math range error")
    return SymbolicArray(result.cells, result.record, weak=complex)


def _raise(condition: SymbolicArray, exception: str, message: str) -> None:
    """Raise the exception where the condition holds when the compiled function runs."""
    require(current_trace(), opposite(condition.load(())), exception, message)


for _name in _FUNCTIONS:
    instead_of(getattr(cmath, _name), 1)(partial(_result, _name))


@instead_of(cmath.log, 1, 2)
def log(*args: Any) -> Any:
    if len(args) == 1:
        return _result("log", args[0])
    divisor: Any = _result("log", args[1])  # only this one is looked at
    _raise(divisor == 0, "ValueError", "math domain error")
    return to_complex(np.log(as_array(to_complex(args[0]))) / divisor)


@instead_of(cmath.phase, 1)
def phase(z: Any) -> Any:
    return to_float(np.angle(to_complex(z)))


@instead_of(cmath.polar, 1)
def polar(z: Any) -> Any:
    number = to_complex(z)
    size = np.abs(number)
    _raise(np.isinf(size) & np.isfinite(number), "OverflowError", "math range error")
    return to_float(size), phase(number)


@instead_of(cmath.rect, 2)
def rect(r: Any, phi: Any) -> Any:
    """Of a length of 0 the direction need be none, and none turns by an angle of 0."""
    size: Any = as_array(to_float(r))
    angle: Any = as_array(to_float(phi))
    _raise(np.isinf(angle) & (size != 0) & ~np.isnan(size), "ValueError", "math domain error")
    is_nothing = (size == 0) & ~np.isfinite(angle)
    along = np.where(is_nothing, 0.0, size * np.cos(angle))
    across = np.where(is_nothing, 0.0, size * np.sin(angle))
    return to_complex(along, np.where(angle == 0, angle * np.copysign(1.0, size), across))


def _answer(question: Callable[[Any], Any], z: Any) -> Any:
    return to_bool(question(to_complex(z)))


for _name in ("isfinite", "isinf", "isnan"):
    instead_of(getattr(cmath, _name), 1)(partial(_answer, getattr(np, _name)))


@instead_of(cmath.isclose)
def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    share: Any = as_array(to_float(rel_tol))
    most: Any = as_array(to_float(abs_tol))
    _raise((share < 0) | (most < 0), "ValueError", "tolerances must be non-negative")
    one: Any = as_array(to_complex(a))
    other: Any = as_array(to_complex(b))
    gap = np.abs(one - other)
    is_near = (gap <= share * np.abs(other)) | (gap <= share * np.abs(one)) | (gap <= most)
    return to_bool((one == other) | (is_near & ~np.isinf(one) & ~np.isinf(other)))
