"""Derived ops are written as arithmetic on `Term`s.

    @definition
    def sign(x: Term) -> Term:
        return where(x > 0, 1, where(x < 0, -1, where(x == 0, 0, x)))

A `Term` is a value that a `Builder` made. The builder decides what computing means: NumPy arrays when a
definition is tested, statements of the IR when the pass `expand` writes it into a kernel, so one text
serves both. A Python number among the operands takes the dtype of the Term beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, Union

from ...frozen import frozen_by_identity
from ..dtype import DType

__all__ = ["Builder", "Number", "Term", "definition", "fma", "rarely", "where"]

Number = Union[bool, int, float]


class Builder(Protocol):
    """What an `expand` function is written over. Values are opaque: NumPy arrays when the definition is
    tested against `ref`, IR locals when a pass expands it, so one text serves both."""

    def op(self, name: str, *args: Any) -> Any:
        """Apply the op called `name`; arguments must already have the dtypes it computes in."""

    def const(self, value: bool | int | float, dtype: DType) -> Any: ...

    def cast(self, value: Any, dtype: DType) -> Any:
        """Conversion with `astype` meaning."""

    def dtype(self, value: Any) -> DType: ...

    def known(self, value: Any) -> Number | None:
        """The value, if it is a constant."""


@frozen_by_identity
class Term:
    """A builder's value with Python's operators."""

    builder: Builder
    value: Any

    @property
    def dtype(self) -> DType:
        return self.builder.dtype(self.value)

    def const(self, number: Number) -> Term:
        """A constant of this term's dtype."""
        return Term(self.builder, self.builder.const(number, self.dtype))

    @property
    def known(self) -> Number | None:
        """The value, if it is a constant."""
        return self.builder.known(self.value)

    def cast(self, dtype: DType) -> Term:
        return self if dtype is self.dtype else Term(self.builder, self.builder.cast(self.value, dtype))

    def op(self, name: str, *others: Term | Number) -> Term:
        """The op called `name` on this term and others of its dtype (numbers take it)."""
        values = (o.value if isinstance(o, Term) else self.const(o).value for o in others)
        return Term(self.builder, self.builder.op(name, self.value, *values))

    def __add__(self, other: Term | Number) -> Term:
        return self.op("add", other)

    def __sub__(self, other: Term | Number) -> Term:
        return self.op("subtract", other)

    def __mul__(self, other: Term | Number) -> Term:
        return self.op("multiply", other)

    def __truediv__(self, other: Term | Number) -> Term:
        return self.op("divide", other)

    def __rsub__(self, other: Number) -> Term:
        return self.const(other) - self

    def __rtruediv__(self, other: Number) -> Term:
        return self.const(other) / self

    def __neg__(self) -> Term:
        return self.op("negative")

    def __abs__(self) -> Term:
        return self.op("absolute")

    def __and__(self, other: Term | Number) -> Term:
        return self.op("bitwise_and", other)

    def __or__(self, other: Term | Number) -> Term:
        return self.op("bitwise_or", other)

    def __xor__(self, other: Term | Number) -> Term:
        return self.op("bitwise_xor", other)

    def __invert__(self) -> Term:
        return self.op("invert")

    def __lt__(self, other: Term | Number) -> Term:
        return self.op("less", other)

    def __le__(self, other: Term | Number) -> Term:
        return self.op("less_equal", other)

    def __gt__(self, other: Term | Number) -> Term:
        return self.op("greater", other)

    def __ge__(self, other: Term | Number) -> Term:
        return self.op("greater_equal", other)

    def __eq__(self, other: Term | Number) -> Term:  # type: ignore[override]
        return self.op("equal", other)

    def __ne__(self, other: Term | Number) -> Term:  # type: ignore[override]
        return self.op("not_equal", other)

    __radd__ = __add__
    __rmul__ = __mul__
    __hash__ = None  # type: ignore[assignment]


def where(condition: Term, then: Term | Number, otherwise: Term | Number) -> Term:
    """`then` where the condition holds, else `otherwise`; at least one of the two is a Term."""
    if not isinstance(then, Term):
        assert isinstance(otherwise, Term)
        then = otherwise.const(then)
    if not isinstance(otherwise, Term):
        otherwise = then.const(otherwise)
    return Term(
        condition.builder, condition.builder.op("where", condition.value, then.value, otherwise.value)
    )


def rarely(condition: Term, then: Term, otherwise: Term) -> Term:
    """`where` whose condition seldom holds: `then` is computed only where it does in some lane, so it may be
    long, and what serves both choices had better be short."""
    return Term(
        condition.builder, condition.builder.op("rarely", condition.value, then.value, otherwise.value)
    )


def fma(factor: Term, other: Term | Number, addend: Term | Number) -> Term:
    """`factor * other + addend`, rounded once."""
    return factor.op("fma", other, addend)


def definition(text: Callable[..., Term]) -> Callable[..., Any]:
    """Turns a function of Terms into the `expand` column of a row: `expand(builder, *values) -> value`."""

    @wraps(text)
    def expand(builder: Builder, *args: Any) -> Any:
        return text(*(Term(builder, arg) for arg in args)).value

    return expand
