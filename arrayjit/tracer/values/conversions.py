"""`int(x)`, `float(x)`, `complex(x)`, `bool(x)`, `round(x)`, `np.float32(x)` of traced numbers: traced ones.

Python's and NumPy's scalar types stay what they are where the user's code compares with them or passes them
on. Only a call by name gets these functions: see `is_called`.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ...errors import DTypeError, UnsupportedError
from ...ir.dtype import BOOL, C128, COMPLEX, DTYPES, F64, I64, DType
from ...ir.expr import Apply, convert
from ...ir.ops import PART_OPS
from ..record.registry import METHODS, method
from ..record.trace import current_trace
from .array import PythonNumber, SymbolicArray, describe
from .decimals import MOST_DECIMALS, to_decimals
from .elementwise import as_array, as_operand, cast, constant_array, is_traced
from .fitting import check_fits
from .integer import SymbolicInt
from .numbers import as_scalar, require_int64

__all__ = ["CONVERSIONS", "is_called", "scalar", "to_bool", "to_complex", "to_float", "to_int"]

_VERSION = sys.version_info
_IS_CALL = "PRECALL" if _VERSION[:2] == (3, 11) else "CALL"  # after PRECALL the arguments are counted off
_CALLS = {_IS_CALL: 0, "CALL_FUNCTION": 0, "CALL_FUNCTION_KW": 1}  # what lies above the arguments
_ALWAYS_JUMPS = ("JUMP_FORWARD", "JUMP_ABSOLUTE")
_NEUTRAL = frozenset(("EXTENDED_ARG", "NOP"))
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_BELOW_ARGUMENTS = 2 if _VERSION >= (3, 13) else 1  # the callee, and from CPython 3.13 on a mark above it
_HAS_MARK_BEFORE = _VERSION[:2] == (3, 12)  # with a global of which an attribute is called
_OF_CALLEES = {(1, "PUSH_NULL"), (2, "LOAD_COMMON_CONSTANT")} if _VERSION >= (3, 13) else set()
"""What follows a callee at once, with the depth of the stack from it on: that mark, and from CPython 3.14 on
the question whether it is the built-in `any` that gets a generator."""


def scalar(value: Any) -> SymbolicArray | None:
    """The value as a traced number; None for arrays with axes and for what is not traced."""
    if type(value) is SymbolicInt:
        return as_scalar(value, current_trace())
    if type(value) is SymbolicArray and value.ndim == 0:
        as_operand(value)
        return value
    return None


def to_float(*args: Any) -> Any:
    """`float(x)`."""
    number = scalar(args[0]) if len(args) == 1 else None
    return float(*args) if number is None else _converted(number, float, F64)


def to_int(*args: Any, **options: Any) -> Any:
    """`int(x)`: rounds towards zero. NaN, infinities and what 64 bits do not hold raise when it runs."""
    number = scalar(args[0]) if len(args) == 1 and not options else None
    if number is None:
        return int(*args, **options)
    if number.element_type.is_float or (number.element_type.is_complex and number.weak is None):
        number = _converted(number, float, F64)
        check_fits(number, I64, number.record)
    require_int64(number.load(()), number.record)
    return _converted(number, int, I64)


def to_bool(*args: Any) -> Any:
    """`bool(x)`."""
    number = scalar(args[0]) if len(args) == 1 else None
    return bool(*args) if number is None else _converted(number, bool, BOOL)


def to_complex(*args: Any, **options: Any) -> Any:
    """`complex(x)` and `complex(real, imag)`."""
    numbers = [scalar(value) for value in (*args, *options.values())]
    if all(number is None for number in numbers):
        return complex(*args, **options)
    if len(numbers) == 1 and numbers[0] is not None:
        return _converted(numbers[0], complex, C128)
    given = {"real": 0.0, "imag": 0.0} | dict(zip(("real", "imag"), args, strict=False)) | options
    parts = tuple(as_array(to_float(given[name])) for name in ("real", "imag"))
    value = Apply(PART_OPS["complex"], tuple(convert(part.load(()), F64) for part in parts), C128)
    trace = current_trace()
    return SymbolicArray(trace.compute((), C128, lambda _: value), trace, weak=complex)


def _converted(number: SymbolicArray, kind: PythonNumber, dtype: DType) -> SymbolicArray:
    if number.weak is kind:
        return number
    if number.element_type.is_complex and kind in (int, float) and number.weak is complex:
        raise DTypeError(
            f"{kind.__name__}() argument must be a real number, not 'complex'",
            details=(describe(number),),
            fix="use the .real part, or abs(x)",
        )
    view = number.record.compute((), dtype, lambda _: convert(number.load(()), dtype))
    return SymbolicArray(view, number.record, weak=kind)


def _numpy_type(dtype: DType) -> Callable[..., Any]:
    """`np.float32(x)` and its kin: Python's numbers must fit, NumPy's are converted as `astype` does it."""
    plain = dtype.numpy.type

    def convert_to(*args: Any) -> Any:
        if len(args) != 1 or not is_traced(args[0]):
            made = plain(*args)
            return constant_array(made) if isinstance(made, np.ndarray) and made.size else made
        value = as_array(args[0])
        is_it = value is args[0] and value.ndim > 0 and dtype is value.element_type
        if is_it and value.cells.tensor.storage not in value.record.swapped:
            return value
        check_fits(value, dtype, value.record)
        return SymbolicArray(cast(value, dtype).cells, value.record, is_scalar=value.ndim == 0)

    return convert_to


CONVERSIONS: Mapping[Any, Callable[..., Any]] = {
    int: to_int,
    float: to_float,
    bool: to_bool,
    complex: to_complex,
    **{dtype.numpy.type: _numpy_type(dtype) for dtype in (*DTYPES, *COMPLEX)},
}
"""What stands for a type where the user's code calls it by its name."""


def is_called(frame: FrameType) -> bool:
    """Whether the frame, which loads a global name or an attribute, is about to call what it gets."""
    return _is_callee(frame.f_code, frame.f_lasti)


_OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
"""Instructions that take the value on top, and may push two: a method and its object."""


@lru_cache(maxsize=1024)
def _is_callee(code: CodeType, at: int) -> bool:
    """Whether what the instruction at `at` pushes is called; False where a loop hides it. Any way that code
    may go tells, since each finds the same on the stack: past conditions, and out of loops."""
    name, low_bit = dis.opname[code.co_code[at]], code.co_code[at + 1] & 1
    tells = (name == "LOAD_GLOBAL" and _VERSION >= (3, 11)) or (name == "LOAD_ATTR" and _VERSION >= (3, 12))
    if name == "LOAD_METHOD" or (tells and low_bit):
        return True
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    place, depth = places[at], 1
    if _HAS_MARK_BEFORE and name == "LOAD_ATTR" and instructions[place - 1].argrepr[:7] == "NULL + ":
        return True
    place += 1
    while place < len(instructions):
        instruction = instructions[place]
        if depth == 1 and instruction.opname in _OF_ATTRIBUTES:
            return False
        if (depth, instruction.opname) in _OF_CALLEES:
            return True
        if instruction.opname == "CALL_FUNCTION_EX" and depth == 2 + (instruction.argval & 1):
            return True
        above = _CALLS.get(instruction.opname)
        if above is not None and instruction.arg == depth - _BELOW_ARGUMENTS - above:
            return True
        jumps = instruction.opname == "FOR_ITER" or instruction.opname in _ALWAYS_JUMPS
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=jumps)
        depth += effect
        following = places[instruction.argval] if jumps else place + 1
        is_jump = instruction.opcode in _JUMPS  # which takes the top at most
        is_taken = depth <= 1 - is_jump and effect < 1 and instruction.opname not in _NEUTRAL
        if is_taken or following <= place:
            return False
        place = following
    return False


@method("__round__")
def rounded(number: SymbolicArray, digits: Any = None) -> Any:
    """`round(x)` as Python's and NumPy's numbers do it; arrays have none."""
    is_float = number.element_type.is_float
    if number.element_type.is_complex and (number.is_scalar or number.weak is complex):
        name = "complex" if number.weak is complex else f"numpy.{number.dtype.name}"
        raise DTypeError(
            f"type {name} doesn't define __round__ method", details=(describe(number),), fix="use np.round(x)"
        )
    if number.weak is None and (not number.is_scalar or number.element_type is BOOL):
        raise DTypeError("arrays do not define __round__", details=(describe(number),), fix="use np.round(x)")
    if digits is None:
        return to_int(METHODS["round"](number) if is_float else number)
    if number.weak is None:
        return METHODS["round"](number, digits)
    places = operator.index(digits)
    if not is_float and places >= 0:
        return to_int(number)
    if not is_float or abs(places) > MOST_DECIMALS:
        kind = number.weak.__name__
        raise UnsupportedError(
            f"rounding a Python {kind} to {places} decimals is not supported in a jitted function",
            details=(describe(number),),
            fix="use np.round(x, digits), which rounds as NumPy does",
        )
    return to_decimals(number, places)
