"""C-like text: values, constants, names and the lines of one function.

What the languages of this family have in common is printed here and in the other files named `c_`; what sets
them apart is a `Dialect`.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Union

import numpy as np

from ..frozen import frozen, frozen_by_identity
from ..ir.dtype import BOOL, DType, Kind

__all__ = ["Dialect", "Operand", "Value", "Writer", "added", "commented", "constant", "multiplied"]

# An int64: known while printing, or the text of one that can stand beside any sign.
Operand = Union[int, str]

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl complex const
const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern
false final float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq override private protected public register reinterpret_cast restrict return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq

ceil ceilf copysign copysignf fabs fabsf floor floorf fma fmaf fmod fmodf rint rintf sqrt sqrtf trunc truncf
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t popcount main
atomicAdd atomicAnd atomicCAS atomicMax atomicMin atomicOr atomicXor

arena c context loop_part pool pool_run scratch share table
"""
"""What stands for something else in some language of the family, or in text of ours. Macros are written in
capital letters, and small functions of ours are called `x_as_y` or `x_to_y`, which `fresh` leaves to them."""

_DECIMAL = 8
"""Characters of a number that is printed in decimal, if it is exact; others are printed in hexadecimal."""


@frozen
class Value:
    """The text of a value in registers. An atom can be an operand of any sign as it stands."""

    text: str
    dtype: DType
    is_atom: bool = True

    @property
    def operand(self) -> str:
        return self.text if self.is_atom else f"({self.text})"


@frozen_by_identity
class Dialect:
    """What sets a C-like language apart from the others, beside the loops that it has.

    `types` has what element types are called, in memory; a `_Bool`, or whatever `flag` is, is one of them in
    registers. `local` stands before the functions of a module that nobody else calls, `restrict` before the
    name of a pointer to memory that is reached through it only. `specials` are the infinity and the NaN of
    each float type. `reinterpreted` gives, for two types, an expression over `x` of the first one that has
    the same bits in the second. `functions` are other names for functions that the `c` column of the op table
    names. `leave` is the statement that ends a kernel with a status, `barrier` the one at which threads wait
    for one another; `prefetch` brings what is at an address near, and `lap` defines the function of a Lap, if
    they are not "". `converted` has the body of a function from `x` of one type to another, for those that
    casts do not convert. With `reads_first`, both sides of a selection are read before it: what C reads for
    the chosen side only, GCC 12 reads under a mask, of which it takes the wrong lanes. `known_to_none` hides
    how an integer was computed, if it is not "": of one that a loop multiplies by itself, GCC 12 takes the
    first value to be a factor, and multiplies vectors of them. `in_order` keeps the iterations of a loop one
    after the other, if it is not "": GCC 12 makes vectors of those that hand rows of few cells on as well.
    """

    name: str
    types: Mapping[DType, str]
    flag: str
    local: str
    restrict: str
    specials: Mapping[DType, tuple[str, str]]
    reinterpreted: Callable[[str, str], str]
    functions: Mapping[str, str]
    leave: Callable[[int], str]
    barrier: str
    prefetch: str
    lap: str = ""
    reads_first: bool = False
    known_to_none: str = ""
    in_order: str = ""
    converted: Mapping[tuple[DType, DType], str] = field(default_factory=dict)

    def type(self, dtype: DType) -> str:
        """What the type is called in registers."""
        return self.flag if dtype is BOOL else self.types[dtype]


class _Names:
    """The names that are visible where a module's text has come to."""

    def __init__(self) -> None:
        self._taken = dict.fromkeys(_KEYWORDS.split())
        self._numbers: dict[str, int] = {}
        self._given: list[tuple[str, str, int]] = []

    def fresh(self, hint: str, lasting: bool) -> str:
        base = re.sub(r"\W", "_", hint, flags=re.ASCII) or "_"
        if base[0] in "_0123456789":
            base = f"v{base}"
        if base.isupper() and len(base) > 1:
            base += "_"
        first = number = self._numbers.get(base, 0)
        stem = f"{base}_" if base[-1].isdigit() else base
        name = f"{stem}{number}" if number else base
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken[name] = None
        self._numbers[base] = number
        if not lasting:
            self._given.append((name, base, first))
        return name

    def mark(self) -> int:
        return len(self._given)

    def release(self, mark: int) -> None:
        """Forget what was given since the mark was set."""
        while len(self._given) > mark:
            name, base, number = self._given.pop()
            del self._taken[name]
            self._numbers[base] = number


class Writer:
    """The lines of one function while they are written.

    `frame` comes before them. What is written `beside` another function is of the same module: `functions`
    come before both, `prelude` has the small functions that all may call. `own` are the names that were given
    here.
    """

    def __init__(self, dialect: Dialect, beside: Writer | None = None) -> None:
        self.dialect = dialect
        self.frame: list[str] = []
        self.lines: list[str] = []
        self.functions: list[str] = beside.functions if beside else []
        self.prelude: dict[str, str] = beside.prelude if beside else {}
        self.own: set[str] = set()
        self._names: _Names = beside._names if beside else _Names()
        self._depth = 1

    def fresh(self, hint: str, *, lasting: bool = False) -> str:
        """A name that nothing visible here has, as like the hint as C allows. It is free again at the end of
        the block, or, if `lasting`, never."""
        name = self._names.fresh(hint, lasting)
        self.own.add(name)
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names given inside are free again after."""
        mark = self._names.mark()
        yield
        self._names.release(mark)

    def emit(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    def comment(self, text: str) -> None:
        """The text in one line, whatever is in it."""
        self.emit(commented(text))

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """What is written inside stands in braces, behind the head."""
        self.emit(f"{head} {{" if head else "{")
        self._depth += 1
        with self.scope():
            yield
        self._depth -= 1
        self.emit("}")

    def let(self, value: Value) -> Value:
        """The value under a name."""
        name = self.fresh("t")
        self.emit(f"const {self.dialect.type(value.dtype)} {name} = {value.text};")
        return Value(name, value.dtype)

    def number(self, text: Operand, hint: str) -> Operand:
        """An int64 under a name, unless it is known or has one."""
        if isinstance(text, int) or text.isidentifier():
            return text
        name = self.fresh(hint)
        self.emit(f"const int64_t {name} = {text};")
        return name

    def helper(self, name: str, definition: str) -> str:
        """The name of a small function, which the module will have."""
        self.prelude.setdefault(name, f"{self.dialect.local} {definition}")
        return name

    def mentioned(self) -> set[str]:
        """All names in the function's text."""
        return set(re.findall(r"[A-Za-z_]\w*", "\n".join((*self.frame, *self.lines))))

    def function(self, head: str) -> list[str]:
        """What has been written as a function."""
        heads = textwrap.wrap(f"{head} {{", 110, subsequent_indent=" " * 8, break_long_words=False)
        return [*heads, *("    " + line for line in self.frame), *self.lines, "}", ""]


def commented(text: str) -> str:
    """A text as one line of a comment, whatever is in it: names of files may have line breaks, too."""
    return f"// {' '.join(text.split())}".rstrip("\\ ")


def constant(dialect: Dialect, value: bool | int | float, dtype: DType) -> Value:
    """A literal that is exactly the number; of a small float its bits."""
    if dtype.is_small:
        text = str(np.array(value, dtype.numpy).view(np.uint16))
    elif dtype.is_float:
        text = _float(dialect, float(value), dtype)
    elif dtype is BOOL:
        text = str(int(value))
    else:
        text = _integer(int(value), dtype)
    return Value(text, dtype, text[0] != "-")


def _float(dialect: Dialect, value: float, dtype: DType) -> str:
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    infinity, nan = dialect.specials[dtype]
    if math.isnan(value):
        return sign + nan
    if math.isinf(value):
        return sign + infinity
    suffix = "f" if dtype.bits == 32 else ""
    decimal = repr(abs(value))
    # Few digits that are sums of powers of two are exact; others might be rounded on the way.
    is_exact = len(decimal) <= _DECIMAL and "e" not in decimal and (abs(value) * 1024).is_integer()
    return sign + (decimal if is_exact else _hexadecimal(abs(value))) + suffix


def _hexadecimal(value: float) -> str:
    digits, _, exponent = value.hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


def _integer(value: int, dtype: DType) -> str:
    if dtype.bits < 32:
        return str(value)
    suffix = ("U" if dtype.kind is Kind.UINT else "") + ("LL" if dtype.bits == 64 else "")
    if value == -(2 ** (dtype.bits - 1)):
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"


def added(left: Operand, right: Operand) -> Operand:
    """The sum of two numbers, as an operand of sums."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if left == 0:
        return right
    if right == 0:
        return left
    if isinstance(left, int):
        left, right = right, left
    if isinstance(right, int):
        return f"{left} - {-right}" if right < 0 else f"{left} + {right}"
    return f"{left} - {right[1:]}" if right.startswith("-") else f"{left} + {right}"


def multiplied(left: Operand, right: Operand) -> Operand:
    """The product of two numbers, as an operand of sums and products."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if left in (0, 1):
        return right if left else 0
    if right in (0, 1):
        return left if right else 0
    if isinstance(right, int):
        left, right = right, left
    if left == -1:
        return f"-{_factor(right)}"
    return f"{_factor(left)} * {_factor(right)}"


def _factor(operand: Operand) -> str:
    text = str(operand)
    return text if re.fullmatch(r"-?\w+", text) else f"({text})"
