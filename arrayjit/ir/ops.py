"""THE table of scalar ops: one row each.

A row says what the op means (`ref`, on NumPy arrays of the op's own dtypes) and how a target gets it:
either primitive, with a spelling per arithmetic kind, or derived, built once from other ops by `expand`.
Tests, the documentation's table and the fuzzer are generated from the rows. Adding an op is adding a
row; an op of the user's own needs no registration, since expressions hold the `Op` itself.

Spellings of the `llvm` column, keyed by the kind of the first argument:

- a word is an instruction: `"fadd"`, `"ashr"`;
- `"icmp slt"`, `"fcmp olt"` compare and give a bool;
- `"@llvm.sqrt"` is an intrinsic, overloaded on the result type;
- `"libm exp"` is a scalar call per lane: `exp` for float64, `expf` for float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .dtype import DType, Kind

__all__ = ["OPS", "Builder", "Op", "op"]


class Builder(Protocol):
    """What an `expand` function is written over. Values are opaque: NumPy arrays when the definition is
    tested against `ref`, IR locals when a pass expands it, so one text serves both."""

    def op(self, name: str, *args: Any) -> Any:
        """Apply the op called `name`; arguments must already have the dtypes it computes in."""

    def const(self, value: bool | int | float, dtype: DType) -> Any: ...

    def cast(self, value: Any, dtype: DType) -> Any:
        """Conversion with `astype` meaning."""

    def dtype(self, value: Any) -> DType: ...


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One row. Compares by identity.

    name      unique; the spelling in IR text
    ref       the meaning on NumPy arrays whose dtypes are already the op's input dtypes
    ufunc     the NumPy ufunc that resolves dtypes (NEP 50) and that tracing maps to this op, or ""
    output    which output of a many-valued ufunc (divmod, frexp, modf) this op is
    expand    the definition over other ops, or None for a primitive
    llvm, c   spellings per arithmetic kind of the first argument (primitives)
    identity  neutral element for `accum`, given the dtype; None when the op does not accumulate
    ulp       greatest error against the exact result in units in the last place, (float32, float64);
              0 means bit for bit NumPy's
    cost      in adds, for the cost model
    commutative, associative: as real-number algebra; `associative` admits the op as `accum`
    dunder    the Python operator, without underscores ("add" for `__add__`), or ""
    """

    name: str
    arity: int
    ref: Callable[..., Any]
    ufunc: str = ""
    output: int = 0
    expand: Callable[..., Any] | None = None
    llvm: Mapping[Kind, str] = field(default_factory=dict)
    c: Mapping[Kind, str] = field(default_factory=dict)
    identity: Callable[[DType], bool | int | float] | None = None
    ulp: tuple[float, float] = (0.0, 0.0)
    cost: float = 1.0
    commutative: bool = False
    associative: bool = False
    dunder: str = ""

    def __repr__(self) -> str:
        return self.name


def _spelled(f: str = "", i: str = "", u: str = "", b: str = "") -> Mapping[Kind, str]:
    pairs = ((Kind.FLOAT, f), (Kind.INT, i), (Kind.UINT, u or i), (Kind.BOOL, b))
    return {kind: text for kind, text in pairs if text}


_ROWS: tuple[Op, ...] = (
    Op("add", 2, np.add, "add", llvm=_spelled("fadd", "add", b="or"), identity=lambda d: 0,
       commutative=True, associative=True, dunder="add"),
    Op("subtract", 2, np.subtract, "subtract", llvm=_spelled("fsub", "sub"), dunder="sub"),
    Op("multiply", 2, np.multiply, "multiply", llvm=_spelled("fmul", "mul", b="and"),
       identity=lambda d: 1, commutative=True, associative=True, dunder="mul"),
    Op("divide", 2, np.divide, "divide", llvm=_spelled("fdiv"), cost=8.0, dunder="truediv"),
    Op("sqrt", 1, np.sqrt, "sqrt", llvm=_spelled("@llvm.sqrt"), cost=8.0),
    Op("less", 2, np.less, "less",
       llvm=_spelled("fcmp olt", "icmp slt", "icmp ult", "icmp ult"), dunder="lt"),
    Op("where", 3, np.where),
    Op("exp", 1, np.exp, "exp", llvm=_spelled("libm exp"), ulp=(2.0, 1.0), cost=20.0),
)  # fmt: skip

OPS: Mapping[str, Op] = {row.name: row for row in _ROWS}


def op(name: str) -> Op:
    """The row called `name`. Raises KeyError."""
    return OPS[name]
