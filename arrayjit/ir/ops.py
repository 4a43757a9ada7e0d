"""THE table of scalar ops: one row each.

A row says what the op means (`ref`, on NumPy arrays of the op's own dtypes) and how a target gets it:
either primitive, with a spelling per arithmetic kind, or derived, built once from other ops by `expand`.
Tests, the documentation's table and the fuzzer are generated from the rows. Adding an op is adding a
row; an op of the user's own needs no registration, since expressions hold the `Op` itself. Which dtypes
an op takes and gives is NumPy's to say: see `resolve.py`.

Spellings of the `llvm` column, keyed by the kind of the first argument:

- a word is an instruction: `"fadd"`, `"ashr"`; `"fneg"` takes one operand, `"select"` three, and
  `"bitcast"` gives the result type;
- `"icmp slt"`, `"fcmp olt"` compare and give a bool;
- `"@llvm.sqrt"` is an intrinsic, overloaded on the result type;
- `"table"` chooses one of the op's constants;
- `"libm exp"` is a scalar call per lane: `exp` for float64, `expf` for float32.

Spellings of the `c` column, keyed alike: `"+"` and other signs stand between two operands (before one),
`"?:"` chooses, `"sqrt{f}"` is a function with `f` after its name for float32, `"bits"` copies the bytes
into the result type, `"popcount"` counts bits that are set, `"table"` chooses one of the op's
constants. Integers are unsigned there: overflow wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ..frozen import frozen_by_identity
from ..processor import is_arm
from . import references as reference
from .definitions import complexes, elementary, error_function, hyperbolic, logarithms, roots, trigonometric
from .definitions import expansions as define
from .definitions.power import power, unusual_power
from .definitions.powers import known_power
from .definitions.tables import (
    EXP_POWERS,
    LOG_OF_CENTRES,
    LOG_OF_MIDDLES,
    POWERS,
    RECIPROCALS,
    RECIPROCALS_OF_MIDDLES,
    REST_OF_LOG,
    REST_OF_POWERS,
    Table,
)
from .definitions.terms import Builder, Term, definition
from .dtype import F32, F64, DType, Kind

__all__ = ["OPS", "PART_OPS", "Builder", "Op", "divides_integers", "is_of_library", "op"]


_ON_SMALL_FLOATS = {
    "absolute", "bits", "fmax", "fmin", "maximum", "minimum", "negative", "nextafter", "recip_sqrt", "relu",
    "satur01", "sign", "spacing",
}  # fmt: skip
"""What is not done in float32 as a whole, but to small floats themselves, step by step."""


def _always(dtypes: Sequence[DType]) -> bool:
    return True


@frozen_by_identity
class Op:
    """One row. Compares by identity.

    name        unique; the spelling in IR text
    ref         the meaning on NumPy arrays whose dtypes are already the op's input dtypes
    ufunc       the NumPy ufunc that resolves dtypes (NEP 50) and that tracing maps to this op, or ""
    like        the ufunc that resolves dtypes where NumPy has none for this op, or ""
    output      which output of a many-valued ufunc (divmod, frexp, modf) this op is
    expand      the definition over other ops, or None for an op that always is a primitive
    expand_for  whether the definition is meant for arguments of these dtypes
    tables      what the op chooses one of, for each dtype of its result, by the lowest bits of its argument
    apart       whether targets make the definition a function, and the op a call: it is long, seldom needed
    llvm, c     spellings per arithmetic kind of the first argument (primitives)
    identity    neutral element for `accum`, given the dtype; None when the op does not accumulate.
                Of float sums it is -0.0, for 0.0 would turn the sum of -0.0 into 0.0
    ulp         greatest error against the exact result in units in the last place, (float32, float64);
                0 means bit for bit NumPy's. Where terms cancel (logaddexp), in units of the larger argument
    cost        in adds, for the cost model
    commutative, associative: as real-number algebra; `associative` admits the op as `accum`
    dunder      the Python operator, without underscores ("add" for `__add__`), or ""
    """

    name: str
    arity: int
    ref: Callable[..., Any]
    ufunc: str = ""
    like: str = ""
    output: int = 0
    expand: Callable[..., Any] | None = None
    expand_for: Callable[[Sequence[DType]], bool] = _always
    tables: Table = field(default_factory=dict)
    apart: bool = False
    llvm: Mapping[Kind, str] = field(default_factory=dict)
    c: Mapping[Kind, str] = field(default_factory=dict)
    identity: Callable[[DType], bool | int | float] | None = None
    ulp: tuple[float, float] = (0.0, 0.0)
    cost: float = 1.0
    commutative: bool = False
    associative: bool = False
    dunder: str = ""

    def definition(self, dtypes: Sequence[DType]) -> Callable[..., Any] | None:
        """How to build the op from others for arguments of these dtypes, as `definition(builder, *args)`;
        None where it is a primitive, which targets spell."""
        if dtypes[0].is_small and self.name not in _ON_SMALL_FLOATS:
            return self._in_float32
        return self.expand if self.expand is not None and self.expand_for(dtypes) else None

    def error(self, dtype: DType) -> float:
        """The greatest error for arguments of a float dtype, in units in the last place. What is rounded from
        float32 to fewer bits is within half a unit and little more."""
        if dtype.is_small:
            return 0.51 if any(self.ulp) else 0.0
        return self.ulp[dtype is F64]

    def _in_float32(self, builder: Builder, *args: Any) -> Any:
        """The op on small floats, which is rounded to a small float again."""
        wide = [builder.cast(arg, F32) if builder.dtype(arg).is_small else arg for arg in args]
        value = builder.op(self.name, *wide)
        return builder.cast(value, builder.dtype(args[0])) if builder.dtype(value) is F32 else value

    def __repr__(self) -> str:
        return self.name


@cache
def is_of_library(op: Op) -> bool:
    """Whether LLVM calls the mathematical library for it, lane by lane."""
    return any(spelling.startswith("libm") for spelling in op.llvm.values())


CHOOSING = ("where", "rarely", "maximum", "minimum")
"""Ops whose result is one of their operands."""


@cache
def divides_integers(op: Op, dtype: DType) -> bool:
    """Whether it divides operands of that type as integers, which not all of them can be."""
    spelled = "select" if op.name in CHOOSING else op.llvm.get(dtype.kind, "sdiv")
    return dtype.is_integer and spelled in ("sdiv", "udiv", "srem", "urem")


def _spelled(f: str = "", i: str = "", u: str = "", b: str = "") -> Mapping[Kind, str]:
    pairs = ((Kind.FLOAT, f), (Kind.INT, i), (Kind.UINT, u or i), (Kind.BOOL, b))
    return {kind: text for kind, text in pairs if text}


def _not_floats(dtypes: Sequence[DType]) -> bool:
    return not dtypes[0].is_float


def _not_large_floats(dtypes: Sequence[DType]) -> bool:
    return not dtypes[0].is_float or dtypes[0].is_small


def _not_bools(dtypes: Sequence[DType]) -> bool:
    return dtypes[0].kind is not Kind.BOOL


def _is_compared(dtypes: Sequence[DType]) -> bool:
    """Is an extreme found by comparing? ARM64 has instructions for those of floats, which NumPy uses there:
    of two zeros they take the one that its sign tells."""
    return not (is_arm() and dtypes[0] in (F32, F64))


def _mixed(dtypes: Sequence[DType]) -> bool:
    return dtypes[0] is not dtypes[1]


def _least(dtype: DType) -> bool | int | float:
    if dtype.is_float:
        return float("-inf")
    return int(np.iinfo(dtype.name).min) if dtype.is_integer else False


def _greatest(dtype: DType) -> bool | int | float:
    if dtype.is_float:
        return float("inf")
    return int(np.iinfo(dtype.name).max) if dtype.is_integer else True


def _zero(dtype: DType) -> bool | int | float:
    return -0.0 if dtype.is_float else 0 if dtype.is_integer else False


def _one(dtype: DType) -> bool | int | float:
    return 1.0 if dtype.is_float else 1 if dtype.is_integer else True


def _all_bits(dtype: DType) -> bool | int | float:
    return -1 if dtype.kind is Kind.INT else _greatest(dtype)


def _comparison(name: str, dunder: str, code: str, sign: str, commutative: bool = False) -> Op:
    """Code is LLVM's ("lt"), sign C's. Comparisons of int64 with uint64 are by value."""
    floats = "fcmp une" if code == "ne" else f"fcmp o{code}"
    order = ("", "") if code in ("eq", "ne") else ("s", "u")
    signed, unsigned = (f"icmp {letter}{code}" for letter in order)
    return Op(name, 2, getattr(np, name), name, expand=getattr(define, name), expand_for=_mixed,
              llvm=_spelled(floats, signed, unsigned, unsigned), c=_spelled(sign, sign, b=sign),
              commutative=commutative, dunder=dunder)  # fmt: skip


def _written(module: ModuleType, name: str, ulp: tuple[float, float], cost: float, arity: int = 1) -> Op:
    """A float function of NumPy's that a module defines."""
    return Op(name, arity, getattr(np, name), name, expand=getattr(module, name), ulp=ulp, cost=cost)


def _chosen(name: str, tables: Table) -> Op:
    """One of few constants, in each lane another one."""
    return Op(name, 1, lambda index: reference.chosen(tables, index), tables=tables,
              llvm=_spelled(i="table"), c=_spelled(i="table"), cost=2.0)  # fmt: skip


def _power(builder: Builder, x: Any, y: Any) -> Any:
    exponent = builder.known(y)
    product = None if exponent is None else known_power(Term(builder, x), exponent)
    if product is not None:
        return product.value
    define_it = power if builder.dtype(x).is_float else define.integer_power
    return define_it(builder, x, y)


_ARITHMETIC = (
    Op("add", 2, np.add, "add", llvm=_spelled("fadd", "add", b="or"), c=_spelled("+", "+", b="|"),
       identity=_zero, commutative=True, associative=True, dunder="add"),
    Op("subtract", 2, np.subtract, "subtract", llvm=_spelled("fsub", "sub"), c=_spelled("-", "-"),
       dunder="sub"),
    Op("multiply", 2, np.multiply, "multiply", llvm=_spelled("fmul", "mul", b="and"),
       c=_spelled("*", "*", b="&"), identity=_one, commutative=True, associative=True, dunder="mul"),
    Op("divide", 2, np.divide, "divide", llvm=_spelled("fdiv"), c=_spelled("/"), cost=8.0, dunder="truediv"),
    Op("floor_divide", 2, np.floor_divide, "floor_divide", expand=define.floor_divide, cost=30.0,
       dunder="floordiv"),
    Op("remainder", 2, np.remainder, "remainder", expand=define.remainder, cost=30.0, dunder="mod"),
    Op("fmod", 2, np.fmod, "fmod", expand=define.fmod, cost=20.0),
    Op("divmod_quotient", 2, np.floor_divide, "divmod", expand=define.divmod_quotient, cost=30.0),
    Op("divmod_remainder", 2, np.remainder, "divmod", output=1, expand=define.divmod_remainder, cost=30.0),
    Op("power", 2, reference.power, "power", expand=_power, ulp=(0.7, 1.4), cost=60.0, dunder="pow"),
    Op("float_power", 2, np.float_power, "float_power", expand=define.float_power, ulp=(0.7, 1.4), cost=60.0),
    Op("negative", 1, np.negative, "negative", expand=define.negative, expand_for=_not_large_floats,
       llvm=_spelled("fneg"), c=_spelled("-"), dunder="neg"),
    Op("positive", 1, np.positive, "positive", expand=define.identity, cost=0.0, dunder="pos"),
    Op("conjugate", 1, np.conjugate, "conjugate", expand=define.identity, cost=0.0),
    Op("absolute", 1, np.absolute, "absolute", expand=define.absolute, expand_for=_not_large_floats,
       llvm=_spelled("@llvm.fabs"), c=_spelled("fabs{f}"), dunder="abs"),
    Op("fabs", 1, np.fabs, "fabs", llvm=_spelled("@llvm.fabs"), c=_spelled("fabs{f}")),
    Op("sign", 1, np.sign, "sign", expand=define.sign, cost=4.0),
    Op("square", 1, np.square, "square", expand=define.square),
    Op("reciprocal", 1, np.reciprocal, "reciprocal", expand=define.reciprocal, cost=8.0),
    Op("sqrt", 1, np.sqrt, "sqrt", llvm=_spelled("@llvm.sqrt"), c=_spelled("sqrt{f}"), cost=8.0),
    Op("deg2rad", 1, np.deg2rad, "deg2rad", expand=define.deg2rad),
    Op("radians", 1, np.radians, "radians", expand=define.deg2rad),
    Op("rad2deg", 1, np.rad2deg, "rad2deg", expand=define.rad2deg),
    Op("degrees", 1, np.degrees, "degrees", expand=define.rad2deg),
    Op("gcd", 2, np.gcd, "gcd", expand=define.gcd, cost=500.0, commutative=True),
    Op("lcm", 2, np.lcm, "lcm", expand=define.lcm, cost=520.0, commutative=True),
    Op("fma", 3, reference.fma, llvm=_spelled("@llvm.fma"), c=_spelled("fma{f}")),
)  # fmt: skip

_COMPARISON = (
    _comparison("less", "lt", "lt", "<"),
    _comparison("less_equal", "le", "le", "<="),
    _comparison("greater", "gt", "gt", ">"),
    _comparison("greater_equal", "ge", "ge", ">="),
    _comparison("equal", "eq", "eq", "==", commutative=True),
    _comparison("not_equal", "ne", "ne", "!=", commutative=True),
    Op("maximum", 2, np.maximum, "maximum", expand=define.maximum,
       expand_for=lambda d: _not_bools(d) and _is_compared(d), llvm=_spelled("@llvm.maximum", b="or"),
       c=_spelled("extreme", b="|"), identity=_least, commutative=True, associative=True),
    Op("minimum", 2, np.minimum, "minimum", expand=define.minimum,
       expand_for=lambda d: _not_bools(d) and _is_compared(d), llvm=_spelled("@llvm.minimum", b="and"),
       c=_spelled("extreme", b="&"), identity=_greatest, commutative=True, associative=True),
    Op("fmax", 2, np.fmax, "fmax", expand=define.fmax, expand_for=_is_compared,
       llvm=_spelled("@llvm.maxnum"), c=_spelled("extreme"),
       identity=lambda d: float("nan") if d.is_float else _least(d), commutative=True, associative=True),
    Op("fmin", 2, np.fmin, "fmin", expand=define.fmin, expand_for=_is_compared,
       llvm=_spelled("@llvm.minnum"), c=_spelled("extreme"),
       identity=lambda d: float("nan") if d.is_float else _greatest(d), commutative=True, associative=True),
    Op("where", 3, np.where, llvm=_spelled(b="select"), c=_spelled(b="?:")),
    Op("rarely", 3, np.where, llvm=_spelled(b="select"), c=_spelled(b="?:")),
    Op("heaviside", 2, np.heaviside, "heaviside", expand=define.heaviside, cost=4.0),
    Op("isnan", 1, np.isnan, "isnan", expand=define.isnan),
    Op("isinf", 1, np.isinf, "isinf", expand=define.isinf),
    Op("isfinite", 1, np.isfinite, "isfinite", expand=define.isfinite),
    Op("signbit", 1, np.signbit, "signbit", expand=define.signbit),
)  # fmt: skip

_BITS = (
    Op("logical_and", 2, np.logical_and, "logical_and", expand=define.logical_and, expand_for=_not_bools,
       llvm=_spelled(b="and"), c=_spelled(b="&"), identity=lambda d: True, commutative=True,
       associative=True),
    Op("logical_or", 2, np.logical_or, "logical_or", expand=define.logical_or, expand_for=_not_bools,
       llvm=_spelled(b="or"), c=_spelled(b="|"), identity=lambda d: False, commutative=True,
       associative=True),
    Op("logical_xor", 2, np.logical_xor, "logical_xor", expand=define.logical_xor, expand_for=_not_bools,
       llvm=_spelled(b="xor"), c=_spelled(b="^"), identity=lambda d: False, commutative=True,
       associative=True),
    Op("logical_not", 1, np.logical_not, "logical_not", expand=define.logical_not),
    Op("bitwise_and", 2, np.bitwise_and, "bitwise_and", llvm=_spelled("", "and", b="and"),
       c=_spelled("", "&", b="&"), identity=_all_bits, commutative=True, associative=True, dunder="and"),
    Op("bitwise_or", 2, np.bitwise_or, "bitwise_or", llvm=_spelled("", "or", b="or"),
       c=_spelled("", "|", b="|"), identity=_zero, commutative=True, associative=True, dunder="or"),
    Op("bitwise_xor", 2, np.bitwise_xor, "bitwise_xor", llvm=_spelled("", "xor", b="xor"),
       c=_spelled("", "^", b="^"), identity=_zero, commutative=True, associative=True, dunder="xor"),
    Op("invert", 1, np.invert, "invert", expand=define.invert, dunder="invert"),
    Op("left_shift", 2, np.left_shift, "left_shift", expand=define.left_shift, cost=3.0, dunder="lshift"),
    Op("right_shift", 2, np.right_shift, "right_shift", expand=define.right_shift, cost=3.0, dunder="rshift"),
    Op("bitwise_count", 1, np.bitwise_count, "bitwise_count", expand=define.bitwise_count, cost=4.0),
)  # fmt: skip

_FLOAT_PARTS = (
    Op("floor", 1, np.floor, "floor", expand=define.identity, expand_for=_not_floats,
       llvm=_spelled("@llvm.floor"), c=_spelled("floor{f}")),
    Op("ceil", 1, np.ceil, "ceil", expand=define.identity, expand_for=_not_floats,
       llvm=_spelled("@llvm.ceil"), c=_spelled("ceil{f}")),
    Op("trunc", 1, np.trunc, "trunc", expand=define.identity, expand_for=_not_floats,
       llvm=_spelled("@llvm.trunc"), c=_spelled("trunc{f}")),
    Op("rint", 1, np.rint, "rint", llvm=_spelled("@llvm.rint"), c=_spelled("rint{f}")),
    Op("copysign", 2, np.copysign, "copysign", llvm=_spelled("@llvm.copysign"), c=_spelled("copysign{f}")),
    Op("nextafter", 2, np.nextafter, "nextafter", expand=define.nextafter, cost=10.0),
    Op("spacing", 1, np.spacing, "spacing", expand=define.spacing, cost=6.0),
    Op("ldexp", 2, np.ldexp, "ldexp", expand=define.ldexp, cost=20.0),
    Op("frexp_mantissa", 1, lambda x: np.frexp(x)[0], "frexp", expand=define.frexp_mantissa, cost=10.0),
    Op("frexp_exponent", 1, lambda x: np.frexp(x)[1], "frexp", output=1, expand=define.frexp_exponent,
       cost=10.0),
    Op("modf_fraction", 1, lambda x: np.modf(x)[0], "modf", expand=define.modf_fraction, cost=4.0),
    Op("modf_integer", 1, lambda x: np.modf(x)[1], "modf", output=1, expand=define.modf_integer),
)  # fmt: skip

# Errors are measured, a tenth added: docs/accuracy.md.
_ELEMENTARY = (
    _written(elementary, "exp", (1.1, 1.1), 20.0),
    _written(elementary, "exp2", (1.2, 1.2), 20.0),
    _written(elementary, "expm1", (1.2, 1.4), 25.0),
    _written(logarithms, "log", (1.0, 1.0), 20.0),
    _written(logarithms, "log2", (1.0, 1.0), 20.0),
    _written(logarithms, "log10", (1.0, 1.0), 25.0),
    _written(logarithms, "log1p", (1.0, 1.0), 25.0),
    Op("logaddexp", 2, np.logaddexp, "logaddexp", expand=define.logaddexp, ulp=(3.0, 2.0), cost=50.0,
       identity=lambda d: float("-inf"), commutative=True, associative=True),
    Op("logaddexp2", 2, np.logaddexp2, "logaddexp2", expand=define.logaddexp2, ulp=(3.0, 3.0), cost=50.0,
       identity=lambda d: float("-inf"), commutative=True, associative=True),
    _written(trigonometric, "sin", (1.7, 0.9), 25.0),
    _written(trigonometric, "cos", (1.7, 0.9), 25.0),
    _written(trigonometric, "tan", (2.6, 1.1), 40.0),
    _written(trigonometric, "arcsin", (1.2, 0.8), 40.0),
    _written(trigonometric, "arccos", (1.2, 1.1), 40.0),
    _written(trigonometric, "arctan", (1.7, 1.7), 40.0),
    _written(trigonometric, "arctan2", (1.8, 1.7), 50.0, arity=2),
    _written(hyperbolic, "sinh", (2.5, 2.6), 40.0),
    _written(hyperbolic, "cosh", (1.6, 1.6), 40.0),
    _written(hyperbolic, "tanh", (2.0, 1.9), 30.0),
    _written(hyperbolic, "arcsinh", (2.0, 2.0), 40.0),
    _written(hyperbolic, "arccosh", (2.3, 2.3), 40.0),
    _written(hyperbolic, "arctanh", (2.1, 2.1), 40.0),
    _written(roots, "cbrt", (0.6, 0.6), 40.0),
    _written(roots, "hypot", (0.6, 1.1), 20.0, arity=2),
    Op("erf", 1, reference.erf, like="exp", expand=error_function.erf, ulp=(1.8, 1.5), cost=30.0),
    Op("erfc", 1, reference.erfc, like="exp", expand=error_function.erfc, ulp=(0.7, 5.8), cost=40.0),
)  # fmt: skip

_GATES = (
    Op("relu", 1, reference.relu, like="positive", expand=define.relu),
    Op("relu_gate", 2, reference.relu_gate, like="maximum", expand=define.relu_gate, cost=2.0),
    Op("satur01", 1, reference.satur01, like="positive", expand=define.satur01, cost=2.0),
    Op("satur01_gate", 2, reference.satur01_gate, like="maximum", expand=define.satur01_gate, cost=4.0),
    Op("recip_sqrt", 1, reference.recip_sqrt, like="sqrt", expand=define.recip_sqrt, cost=16.0),
    Op("tanh_approx", 1, np.tanh, like="tanh", expand=define.tanh_approx, ulp=(2.0, 1.9), cost=30.0),
)  # fmt: skip

# What definitions are made of and nobody else needs. The machine leaves `raw_` ops undefined for some
# operands (division by zero, the least integer by -1, shifts by the width or more) or for some dtypes.
_MACHINE = (
    Op("raw_left_shift", 2, np.left_shift, like="left_shift", llvm=_spelled("", "shl"), c=_spelled("", "<<")),
    Op("raw_right_shift", 2, np.right_shift, like="right_shift", llvm=_spelled("", "ashr", "lshr"),
       c=_spelled("", ">>")),
    Op("raw_divide", 2, reference.truncated_quotient, like="floor_divide", llvm=_spelled("", "sdiv", "udiv"),
       c=_spelled("", "/"), cost=25.0),
    Op("raw_remainder", 2, np.fmod, like="fmod", llvm=_spelled("frem", "srem", "urem"),
       c=_spelled("fmod{f}", "%"), cost=25.0),
    # Of integers that may wrap around, whoever asks for a check of overflow.
    Op("raw_subtract", 2, np.subtract, like="subtract", expand=define.wrapped_difference),
    Op("raw_upper_half", 2, reference.upper_half, like="floor_divide", expand=define.upper_half, apart=True,
       llvm=_spelled("", "upper"), cost=4.0),
    Op("square_below", 1, reference.square_below, like="sqrt", expand=roots.square_below, cost=80.0),
    Op("square_within", 1, reference.square_within, like="sqrt", expand=roots.square_within, cost=80.0),
    Op("popcount", 1, reference.popcount, like="positive", llvm=_spelled("", "@llvm.ctpop"),
       c=_spelled("", "popcount"), cost=4.0),
    Op("bits", 1, reference.bits, llvm=_spelled("bitcast"), c=_spelled("bits")),
    Op("from_bits", 1, reference.from_bits, llvm=_spelled("", "bitcast"), c=_spelled("", "bits")),
    _chosen("raw_centre_reciprocal", RECIPROCALS),
    _chosen("raw_centre_log", LOG_OF_CENTRES),
    _chosen("raw_centre_log_rest", REST_OF_LOG),
    _chosen("raw_middle_reciprocal", RECIPROCALS_OF_MIDDLES),
    _chosen("raw_middle_log", LOG_OF_MIDDLES),
    _chosen("raw_exp_bits", EXP_POWERS),
    _chosen("raw_power_bits", POWERS),
    _chosen("raw_power_rest", REST_OF_POWERS),
    *(_chosen(name, table) for name, table in error_function.PIECES.items()),
    Op("raw_far_sine", 2, reference.sine, like="ldexp", expand=trigonometric.far_sine, apart=True,
       ulp=(1.7, 0.9), cost=100.0),
    Op("raw_far_tangent", 1, np.tan, like="tan", expand=trigonometric.far_tangent, apart=True,
       ulp=(2.6, 1.1), cost=110.0),
    Op("raw_unusual_power", 2, np.power, like="arctan2", expand=unusual_power, apart=True, ulp=(0.6, 1.4),
       cost=130.0),
    Op("from_brain_bits", 1, reference.from_brain_bits, llvm=_spelled("", "bitcast"), c=_spelled("", "bits")),
)  # fmt: skip

OPS: Mapping[str, Op] = {
    row.name: row
    for row in (*_ARITHMETIC, *_COMPARISON, *_BITS, *_FLOAT_PARTS, *_ELEMENTARY, *_GATES, *_MACHINE)
}


def _part_rows(name: str, count: int, halves: complexes.Halves, cost: float) -> Iterator[Op]:
    """The real and the imaginary part of a function of complex numbers, on the parts of its arguments."""
    ufunc = getattr(np, name)
    for part, half in zip(("real", "imag"), halves, strict=True):
        yield Op(f"{name}_{part}", 2 * count,
                 lambda *args, part=part: getattr(ufunc(*reference.joined(*args)), part),
                 expand=definition(half), cost=cost)  # fmt: skip


PART_OPS: Mapping[str, Op] = {
    row.name: row
    for row in (
        Op("complex", 2, lambda *parts: reference.joined(*parts)[0]),
        *(row for name, core in complexes.CORES.items() for row in _part_rows(name, *core)),
    )
}
"""What the pass `reals` makes of functions of complex numbers, and the one that it begins with."""


def op(name: str) -> Op:
    """The row called `name`. Raises KeyError."""
    return OPS[name] if name in OPS else PART_OPS[name]
