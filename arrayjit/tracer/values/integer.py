"""A Python int that is known only when the compiled function runs: an index of a loop, a computed bound.

It is an affine expression of symbols, and stays one under `+`, `-` and `*` with numbers. Other results get
a symbol of their own where int64 certainly holds them (`i // 2`, `i * j`); else they become traced Python
scalars, whose overflow is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, NoReturn, final

import numpy as np

from ...errors import Location
from ...ir.dtype import I64
from ...ir.expr import Apply, Index
from ...ir.index import Affine
from ...ir.ops import OPS
from ..record.registry import METHODS
from ..record.retrace import Fix, Reason, Site, number_needed
from ..record.rewrites import instead_of_condition
from ..record.trace import Trace, user_location
from ..record.turns import require_one_answer

__all__ = ["BEYOND", "LARGEST", "TRUTH", "SymbolicInt", "needed", "number", "python_int"]

LARGEST = 2**63 - 1
BEYOND = "a Python int grew beyond 64 bits in a jitted function"
"""What is said of an integer that would be larger."""

_BOUND = {"mul": "multiply", "floordiv": "floor_divide", "mod": "remainder"}
_LARGEST = 2**62
_BITS = 63
_NO_TEXT = "print it after the call; keep what it would name in an array, and index that"


@final
class SymbolicInt:
    """A traced Python int whose value is `value`."""

    __slots__ = ("record", "value")

    value: Affine
    record: Trace

    def __init__(self, value: Affine, record: Trace) -> None:
        self.value = value
        self.record = record

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def __index__(self) -> NoReturn:
        self._needed("as a number", "index an array instead of a list, np.array(items)[i]")

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> NoReturn:
        self._needed("as a float", "multiply by 1.0")

    def __bool__(self) -> bool:
        least, most = self.record.limits.least(self.value), self.record.limits.most(self.value)
        if (least is not None and least > 0) or (most is not None and most < 0):
            return True
        fix = partial(
            instead_of_condition, user_location(), "use np.where(condition, a, b)", self.record.branches
        )
        self._needed(TRUTH, fix)

    def __hash__(self) -> int:
        self._needed("as a key", "keep the values in an array, and index it")

    def __round__(self, digits: int | None = None) -> SymbolicInt:
        return self

    def __format__(self, spec: str) -> str:
        self._needed("as text", _NO_TEXT)

    def __repr__(self) -> str:
        if self.record.is_open:
            self._needed("as text", _NO_TEXT)
        return f"<traced int {self.value}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("real", "numerator"):
            return self
        if name in ("imag", "denominator"):
            return int(name == "denominator")
        if name == "bit_count":
            return MethodType(METHODS[name], self)
        raise AttributeError(f"'int' object has no attribute {name!r}")

    def __neg__(self) -> SymbolicInt:
        return SymbolicInt(-self.value, self.record)

    def __pos__(self) -> SymbolicInt:
        return self

    def __abs__(self) -> Any:
        least, most = self.record.limits.least(self.value), self.record.limits.most(self.value)
        if least is not None and least >= 0:
            return self
        if most is not None and most <= 0:
            return -self
        return METHODS["__abs__"](self)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        return METHODS["__array_ufunc__"](self, ufunc, how, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return METHODS["__array_function__"](self, function, types, args, kwargs)

    def _needed(self, purpose: str, fix: Fix) -> NoReturn:
        words = needed("a loop index or a computed integer", purpose)
        if purpose is TRUTH:
            require_one_answer(self.record, Index(self.value), Reason(words, user_location(), fix))
        number_needed(
            self.record, [Index(self.value)], words, user_location(), fix=fix, is_condition=purpose is TRUTH
        )


TRUTH = "whether it is true"


def needed(what: str, purpose: str) -> str:
    """What the current line needs of a value, in words."""
    return (
        f"this line asks whether {what} is true" if purpose is TRUTH else f"this line needs {what} {purpose}"
    )


_PASS_IT = "pass the number that it comes from to the function as an int"


def number(
    value: Affine, trace: Trace, purpose: str, fix: Fix = _PASS_IT, loc: Location | None = None
) -> int:
    """The number itself, for what must be known while tracing, at `loc` if not at the current line. Raises
    Retrace, which restarts the trace, or ConcretizationError."""
    if value.is_constant:
        return value.offset
    words = f"{purpose} must be known while tracing"
    number_needed(trace, [Index(value)], words, loc or user_location(), fix=fix)


def python_int(value: Affine, trace: Trace) -> int | SymbolicInt:
    """What the user's code sees of an extent or an index."""
    return value.offset if value.is_constant else SymbolicInt(value, trace)


def _binary(stem: str, reflected: bool) -> Callable[[SymbolicInt, Any], Any]:
    method = f"__{'r' if reflected else ''}{stem}__"

    def dunder(self: SymbolicInt, other: Any) -> Any:
        if type(other) in (int, SymbolicInt):
            mine, theirs = self.value, _affine(other)
            left, right = (theirs, mine) if reflected else (mine, theirs)
            result = _affine_result(stem, left, right)
            if result is None and stem in _BOUND:
                result = _bound_result(stem, left, right, self.record)
            if result is not None:
                return python_int(result, self.record)
            if stem == "pow" and left.is_constant and _is_long(left.offset, right, self.record):
                self._needed("as an exponent: not every one of its powers has 64 bits", "use a float")
        if stem == "mul" and isinstance(other, (str, bytes, list, tuple)):
            self._needed("to repeat a sequence", "make an array: np.zeros(n)")
        return METHODS[method](self, other)

    dunder.__name__ = method
    return dunder


def _affine(value: int | SymbolicInt) -> Affine:
    return value.value if type(value) is SymbolicInt else Affine.of(int(value))


def _affine_result(stem: str, left: Affine, right: Affine) -> Affine | None:
    match stem:
        case "add":
            return left + right
        case "sub":
            return left - right
        case "mul" if left.is_constant:
            return right * left.offset
        case "mul" if right.is_constant:
            return left * right.offset
        case "mod" if right.is_constant and right.offset > 0 and _divides(left, right.offset):
            return Affine.of(left.offset % right.offset)
        case "floordiv" if right.is_constant and right.offset > 0 and _divides(left, right.offset):
            return Affine(tuple((c // right.offset, s) for c, s in left.terms), left.offset // right.offset)
        case _:
            return None


def _divides(value: Affine, divisor: int) -> bool:
    return all(coefficient % divisor == 0 for coefficient, _ in value.terms)


def _bound_result(stem: str, left: Affine, right: Affine, trace: Trace) -> Affine | None:
    """A symbol for the result where its range is known and int64 holds it."""
    mine, theirs = trace.limits.between(left), trace.limits.between(right)
    if theirs is None or (stem != "mul" and theirs[0] <= 0):
        return None
    if stem == "mod":
        corners = [0, theirs[1] - 1]
    elif mine is None:
        return None
    elif stem == "mul":
        corners = [a * b for a in mine for b in theirs]
    else:
        corners = [a // b for a in mine for b in theirs]
    low, high = min(corners), max(corners)
    if max(abs(low), abs(high)) >= _LARGEST:
        return None
    result = trace.bind(Apply(OPS[_BOUND[stem]], (Index(left), Index(right)), I64), low, high + 1)
    if stem == "floordiv" and right.is_constant:
        trace.limits.note_quotient(result, left, right.offset)
    return result


def _is_long(base: int, exponent: Affine, trace: Trace) -> bool:
    """Whether a power of a number will need more than 64 bits: in the last iterations of loops."""
    largest = trace.limits.most(exponent)
    if largest is None or not all(isinstance(trace.origin(symbol), Site) for symbol in exponent.symbols):
        return False
    return max(largest, 0) * math.log2(max(abs(base), 1)) >= _BITS


_STEMS = ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "lshift", "rshift", "and", "or", "xor")

for _stem in _STEMS:
    for _reflected in (False, True):
        _dunder = _binary(_stem, _reflected)
        setattr(SymbolicInt, _dunder.__name__, _dunder)


def _comparison(stem: str) -> Callable[[SymbolicInt, Any], Any]:
    decided: dict[str, Callable[[int, int], bool | None]] = {
        "lt": lambda low, high: True if high < 0 else False if low >= 0 else None,
        "le": lambda low, high: True if high <= 0 else False if low > 0 else None,
        "gt": lambda low, high: True if low > 0 else False if high <= 0 else None,
        "ge": lambda low, high: True if low >= 0 else False if high < 0 else None,
        "eq": lambda low, high: True if low == high == 0 else False if low > 0 or high < 0 else None,
        "ne": lambda low, high: False if low == high == 0 else True if low > 0 or high < 0 else None,
    }

    def dunder(self: SymbolicInt, other: Any) -> Any:
        if type(other) in (int, SymbolicInt):
            limits, gap = self.record.limits, self.value - _affine(other)
            least, most = limits.least(gap), limits.most(gap)
            answer = decided[stem](-_LARGEST if least is None else least, _LARGEST if most is None else most)
            if answer is not None:
                return answer
        return METHODS[f"__{stem}__"](self, other)

    dunder.__name__ = f"__{stem}__"
    return dunder


for _stem in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(SymbolicInt, f"__{_stem}__", _comparison(_stem))


def _unary(name: str) -> Callable[..., Any]:
    def dunder(self: SymbolicInt, *others: Any) -> Any:
        return METHODS[name](self, *others)

    dunder.__name__ = name
    return dunder


for _name in ("__invert__", "__divmod__", "__rdivmod__", "__matmul__"):
    setattr(SymbolicInt, _name, _unary(_name))
