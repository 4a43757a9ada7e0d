"""Random bodies of operations on bits: those said to be linear are."""

from __future__ import annotations

import random

import numpy as np
import pytest

from arrayjit.ir.dtype import BOOL, DType, named
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Local, Variable, constant
from arrayjit.ir.loops import Define, Update
from arrayjit.ir.ops import OPS
from arrayjit.passes.bodies.linear import Followed

U16, I16 = named("u16"), named("i16")
NUMBERS = [0, 0, 1, 2, 4, 7, 128, 0x8408, 0x8000, 0xFFFF]
BITS = (1 << np.arange(16)).astype(np.uint16)
ONES = np.concatenate([np.repeat(BITS, 16), np.random.default_rng(0).integers(0, 1 << 16, 500, np.uint16)])
OTHERS = np.concatenate([np.tile(BITS, 16), np.random.default_rng(1).integers(0, 1 << 16, 500, np.uint16)])


class Draw:
    """Expressions over variables, drawn at random."""

    def __init__(self, seed: int, *variables: Variable) -> None:
        self.random = random.Random(seed)
        self.variables = list(variables)

    def number(self, dtype: DType) -> Const:
        return constant(self.random.choice(NUMBERS), dtype)

    def value(self, depth: int, dtype: DType) -> Expr:
        choose = self.random.random
        if depth == 0 or choose() < 0.1:
            variable = self.random.choice(self.variables)
            known = Local(variable) if variable.dtype is dtype else Cast(Local(variable), dtype)
            return known if choose() < 0.8 else self.number(dtype)
        one, other, number = self.value(depth - 1, dtype), self.value(depth - 1, dtype), self.number(dtype)
        match self.random.choice(["^", "^", "^", "^", "&", "&", "shift", "where", "one", "two", "cast"]):
            case "^":
                return Apply(OPS["bitwise_xor"], (one, other), dtype)
            case "&":
                return Apply(OPS["bitwise_and"], self.random.choice([(one, number), (number, one)]), dtype)
            case "shift":
                op = OPS[self.random.choice(["raw_left_shift", "raw_right_shift"])]
                return Apply(op, (one, constant(self.random.randrange(16), dtype)), dtype)
            case "where":
                op = OPS[self.random.choice(["equal", "not_equal", "less"])]
                test = Apply(op, (one, number), BOOL) if choose() < 0.7 else Cast(one, BOOL)
                near = Apply(OPS["bitwise_xor"], (other, self.number(dtype)), dtype)
                return Apply(OPS["where"], (test, self.random.choice([near, number, one]), other), dtype)
            case "one":
                return Apply(OPS[self.random.choice(["negative", "absolute", "invert"])], (one,), dtype)
            case "two":
                op = OPS[self.random.choice(["add", "multiply", "bitwise_or", "maximum"])]
                return Apply(op, self.random.choice([(one, number), (one, other)]), dtype)
            case _:
                return Cast(self.value(depth - 1, I16 if dtype is U16 else U16), dtype)


def computed(expr: Expr, values: dict[Variable, np.ndarray]) -> np.ndarray:
    match expr:
        case Const(value=value, dtype=dtype):
            return np.full(1, value, dtype.numpy)
        case Local(variable=variable):
            return values[variable]
        case Cast(arg=arg, dtype=dtype):
            return computed(arg, values).astype(dtype.numpy)
        case Apply(op=op, args=args):
            return np.asarray(op.ref(*(computed(arg, values) for arg in args)))
        case _:
            raise AssertionError(expr)


def result(body: list[Define | Update], sofar: Variable, bits: np.ndarray) -> np.ndarray:
    values = {sofar: bits.view(sofar.dtype.numpy)}
    for stmt in body:
        values[stmt.variable] = np.broadcast_to(computed(stmt.value, values), bits.shape)
    return values[sofar]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_to_be_linear_is(seed: int) -> None:
    found = 0
    for number in range(1500):
        sofar, step = Variable("c", (U16, I16)[number % 2]), Variable("t", U16)
        draw = Draw(10_000 * seed + number, sofar)
        define = Define(step, draw.value(number % 3 + 1, U16))
        draw.variables.append(step)
        body = [define, Update(sofar, draw.value(number % 4, sofar.dtype))]
        if not Followed(sofar).is_linear(body):
            continue
        one, other, both = (result(body, sofar, bits) for bits in (ONES, OTHERS, ONES ^ OTHERS))
        np.testing.assert_array_equal(both, one ^ other)
        found += len(np.unique(one)) > 2
    assert found > 100
