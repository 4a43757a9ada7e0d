"""Every rule of `simplify` holds bit for bit: tried on all values of the 8-bit types and on the floats
where identities break (signed zeros, infinities, NaN, subnormals)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from arrayjit.ir.dtype import BOOL, DTYPES, F32, I64, DType, from_numpy, named
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Local, Variable, constant, dtype_of
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.ops import OPS
from arrayjit.passes.bodies import rules

TINY = float(np.finfo(np.float32).smallest_subnormal)
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e-38, TINY, -TINY, 3.4e38, np.inf, -np.inf, np.nan]
CONSTANTS = {"f32": [0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 3.0, 2.0**-127, np.inf, np.nan], "bool": [True, False]}
INTEGERS = [0, 1, 2, 127, -1]


def values_of(dtype: DType) -> np.ndarray:
    """All values of a small type, or the telling ones of a float."""
    if dtype.is_float:
        return np.array(FLOATS, dtype.numpy)
    if dtype is BOOL:
        return np.array([False, True])
    limits = np.iinfo(dtype.numpy)
    return np.arange(limits.min, limits.max + 1).astype(dtype.numpy)


def evaluate(expr: Expr, values: dict[Variable, np.ndarray]) -> np.ndarray:
    match expr:
        case Const(value=value, dtype=dtype):
            return np.array(value, dtype.numpy)
        case Local(variable=variable):
            return values[variable]
        case Cast(arg=arg, dtype=dtype):
            return evaluate(arg, values).astype(dtype.numpy)
        case Apply(op=op, args=args):
            return np.asarray(op.ref(*(evaluate(arg, values) for arg in args)))
    raise AssertionError(expr)


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    left, right = np.broadcast_arrays(left, right)
    if left.dtype != right.dtype:
        return False
    if not from_numpy(left.dtype).is_float:
        return bool(np.array_equal(left, right))
    nan = np.isnan(left)
    bits = f"u{left.itemsize}"
    return bool(
        np.array_equal(nan, np.isnan(right)) and np.array_equal(left[~nan].view(bits), right[~nan].view(bits))
    )


def operands(dtype: DType, x: Variable, y: Variable) -> Iterator[Expr]:
    yield Local(x)
    yield Local(y)
    numbers = CONSTANTS.get(dtype.short, [n for n in INTEGERS if n >= 0 or dtype.short == "i8"])
    yield from (constant(number, dtype) for number in numbers)
    if dtype.is_float:
        for name in ("negative", "absolute"):
            yield Apply(OPS[name], (Local(x),), dtype)


def expressions(name: str, dtype: DType) -> Iterator[tuple[Expr, Variable, Variable]]:
    """An op over every choice of variables and constants, where it is defined for the type."""
    op = OPS[name]
    x, y, condition = Variable("x", dtype), Variable("y", dtype), Variable("c", BOOL)
    try:
        result = np.asarray(op.ref(*[np.ones(1, dtype.numpy)] * op.arity)).dtype
    except TypeError:
        return
    if name == "where":
        for c in (Local(condition), Const(True, BOOL), Const(False, BOOL)):
            for pair in product(operands(dtype, x, y), repeat=2):
                yield Apply(op, (c, *pair), dtype), x, y
        return
    if result not in (np.dtype(bool), dtype.numpy):
        return
    for args in product(operands(dtype, x, y), repeat=op.arity):
        if name.startswith("raw_") and not (isinstance(args[1], Const) and 0 <= args[1].value < 8):
            continue
        yield Apply(op, args, BOOL if result == np.dtype(bool) else dtype), x, y


@pytest.mark.parametrize("dtype", [BOOL, named("i8"), named("u8"), F32], ids=repr)
@pytest.mark.parametrize("name", rules.RULES)
def test_rules_keep_every_bit(name: str, dtype: DType) -> None:
    grid = np.meshgrid(values_of(dtype), values_of(dtype))
    flags = np.resize([True, False, False], grid[0].shape)
    with np.errstate(all="ignore"):
        for expr, x, y in expressions(name, dtype):
            values = {x: grid[0], y: grid[1]}
            if name == "where" and isinstance(expr.args[0], Local):
                values[expr.args[0].variable] = flags
            found = rules.simpler(expr)
            assert dtype_of(found) is dtype_of(expr)
            assert same_bits(evaluate(found, values), evaluate(expr, values)), f"{expr} became {found}"


def test_every_rule_fires() -> None:
    fired: Counter[str] = Counter()
    with np.errstate(all="ignore"):
        for name, of_op in rules.RULES.items():
            for dtype in (BOOL, named("i8"), F32):
                for expr, _, _ in expressions(name, dtype):
                    fired.update(rule.__name__ for rule in of_op if rule(expr) is not None)
    index = Apply(OPS["add"], (Index(Affine.of(Symbol("i"))), Const(3, I64)), I64)
    fired.update(rule.__name__ for rule in rules.RULES["add"] if rule(index) is not None)
    assert {rule.__name__ for of_op in rules.RULES.values() for rule in of_op} == set(fired)


def test_zero_plus_is_not_dropped_from_floats() -> None:
    x = Local(Variable("x", F32))
    for name, number in (("add", 0.0), ("subtract", -0.0), ("multiply", 0.0), ("divide", 3.0)):
        expr = Apply(OPS[name], (x, Const(number, F32)), F32)
        assert rules.simpler(expr) is expr


def test_casts_through_a_type_that_holds_every_value_become_one() -> None:
    merged = 0
    for first, middle, last in product(DTYPES, repeat=3):
        x = Variable("x", first)
        expr = Cast(Cast(Local(x), middle), last)
        found = rules.simpler(expr)
        if isinstance(found, Cast) and isinstance(found.arg, Cast):
            continue
        merged += 1
        if first.bits > 8 and first.is_integer:
            limits = np.iinfo(first.numpy)
            data = np.array([0, 1, 255, 2**14 + 1, limits.min, limits.max, limits.max - 1], first.numpy)
        else:
            data = values_of(first)
        with np.errstate(all="ignore"):
            assert same_bits(evaluate(found, {x: data}), evaluate(expr, {x: data})), (first, middle, last)
    assert merged == 794, "of 13 ** 3"


def test_index_arithmetic_stays_affine() -> None:
    i = Symbol("i")
    expr = Apply(OPS["multiply"], (Index(Affine.of(i) + 1), Const(4, I64)), I64)
    assert rules.simpler(expr) == Index(Affine.of(i) * 4 + 4)
    far = Apply(OPS["multiply"], (Index(Affine.of(i)), Const(2**40, I64)), I64)
    assert rules.simpler(far) is far
