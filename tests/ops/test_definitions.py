"""The rows themselves: references are NumPy's ufuncs, definitions compute what references say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cells import ANY_ZERO, assert_same, cells, check, grid, user_ops

from arrayjit.ir.dtype import DTYPES, F32, F64, DType
from arrayjit.ir.evaluation import Evaluation
from arrayjit.ir.ops import OPS, Op
from arrayjit.ir.resolve import resolve


class Checked(Evaluation):
    """Of whose values the dtypes are looked at."""

    def op(self, name: str, *args: Any) -> Any:
        dtypes = [self.dtype(arg) for arg in args]
        inputs, output = resolve(OPS[name], dtypes)
        assert list(inputs) == dtypes, f"{name} does not compute in {dtypes}"
        value = super().op(name, *args)
        assert self.dtype(value) is output
        return value


@pytest.mark.parametrize("op", [op for op in user_ops() if op.expand], ids=str)
def test_definition_computes_what_the_reference_says_on_every_edge(op: Op) -> None:
    for inputs, _ in cells(op).computed:
        if op.definition(inputs) is not None:
            args = grid(inputs)
            with np.errstate(all="ignore"):
                check(op, Checked().op(op.name, *args), args)


@pytest.mark.parametrize("op", [op for op in user_ops() if op.ufunc and op.name != "power"], ids=str)
def test_reference_is_the_ufunc(op: Op) -> None:
    for inputs, output in cells(op).computed:
        args = grid(inputs)
        with np.errstate(all="ignore"):
            results = getattr(np, op.ufunc)(*args)
            want = results[op.output] if isinstance(results, tuple) else results
            got = np.asarray(op.ref(*args))
        assert got.dtype == output.numpy
        assert_same(got, want, args, zero_signs=op.name not in ANY_ZERO)


def test_power_of_integers_is_numpys_for_the_exponents_that_numpy_takes() -> None:
    for inputs, _ in cells(OPS["power"]).computed:
        base, exponent = grid(inputs)
        taken = exponent >= 0 if inputs[1].is_integer else np.ones(base.shape, bool)
        with np.errstate(all="ignore"):
            want = np.power(base[taken], exponent[taken])
            assert_same(OPS["power"].ref(base, exponent)[taken], want, (base[taken], exponent[taken]))


def test_fma_rounds_once() -> None:
    tiny = 2.0**-30
    for number in (np.float32, np.float64):
        x = np.array([1 + np.finfo(number).eps, 2.0**60, np.inf, 0.0, -0.0], number)
        y = np.array([1 - np.finfo(number).eps, 2.0**60, 0.0, -1.0, 1.0], number)
        z = np.array([-1.0, -np.inf, 1.0, -0.0, 0.0], number)
        square = np.array(-np.finfo(number).eps, np.float64) ** 2
        assert_same(
            OPS["fma"].ref(x, y, z), np.array([-square, -np.inf, np.nan, -0.0, 0.0], number), (x, y, z)
        )
    assert OPS["fma"].ref(np.float32(1 + 2**-23), np.float32(tiny), np.float32(1)) == np.float32(1)


def test_float32_fma_agrees_with_exact_arithmetic() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=4000).astype(np.float32) for _ in range(2))
    z = (-x * y * rng.choice([1, 1 + 2.0**-20, 2.0**24, 2.0**-24], 4000)).astype(np.float32)
    # Products of float32 are exact in long double, and so are these sums.
    want = x.astype(np.longdouble) * y + z
    assert_same(OPS["fma"].ref(x, y, z), want.astype(np.float32), (x, y, z))


@pytest.mark.parametrize("op", [op for op in user_ops() if op.identity], ids=str)
def test_identity_is_neutral(op: Op) -> None:
    for inputs, output in cells(op).computed:
        if set(inputs) != {output}:
            continue
        assert op.identity is not None
        (values,) = grid([output])
        neutral = np.full(values.shape, op.identity(output), output.numpy)
        with np.errstate(invalid="ignore"):
            result = op.ref(neutral, values)
        assert_same(result, values, (neutral, values), zero_signs=op.name not in ANY_ZERO and not any(op.ulp))


def test_every_primitive_is_spelled_in_llvm_and_in_c() -> None:
    for op in OPS.values():
        for inputs, _ in cells(op).computed:
            if op.definition(inputs) is None:
                assert inputs[0].kind in op.llvm, f"{op} on {inputs} has no LLVM spelling"
                assert inputs[0].kind in op.c, f"{op} on {inputs} has no C spelling"


def test_names_operators_and_ufunc_outputs_are_unique() -> None:
    dunders = [op.dunder for op in OPS.values() if op.dunder]
    outputs = [(op.ufunc, op.output) for op in OPS.values() if op.ufunc]
    assert len(set(dunders)) == len(dunders)
    assert len(set(outputs)) == len(outputs)
    assert len({dtype.short for dtype in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_far_angles_are_reduced_as_the_reference_says(dtype: DType) -> None:
    far = 10.0 ** np.random.default_rng(2).uniform(14, 38 if dtype is F32 else 308, 2000)
    angles = np.concatenate([far, -far]).astype(dtype.numpy)
    for op in (OPS["raw_far_sine"], OPS["raw_far_tangent"]):
        ahead = [np.full(angles.shape, turns, f"i{dtype.itemsize}") for turns in range(op.arity)]
        for args in [(angles, turns) for turns in ahead] if op.arity == 2 else [(angles,)]:
            check(op, Checked().op(op.name, *args), args)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_powers_that_are_not_everyday_are_right_for_all_others_as_well(dtype: DType) -> None:
    op, args = OPS["raw_unusual_power"], grid((dtype, dtype))
    with np.errstate(all="ignore"):
        check(op, Checked().op(op.name, *args), args)
