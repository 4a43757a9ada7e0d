"""Dtypes follow NEP 50: what NumPy computes with the same arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from op_cells import cells, signatures, user_ops

from arrayjit.errors import DTypeError
from arrayjit.ir.dtype import BOOL, F32, F64, I64, DType, from_numpy, named
from arrayjit.ir.ops import Op, op
from arrayjit.ir.resolve import Argument, resolve


def _example(argument: Argument) -> object:
    return np.ones(3, argument.numpy) if isinstance(argument, DType) else argument(1)


def _resolved(row: Op, signature: tuple[Argument, ...]) -> DType | DTypeError:
    try:
        return resolve(row, signature)[1]
    except DTypeError as refusal:
        return refusal


def _computed_by_numpy(row: Op, signature: tuple[Argument, ...]) -> DType | None:
    try:
        with np.errstate(divide="ignore"):
            results = getattr(np, row.ufunc)(*map(_example, signature))
    except TypeError:
        return None
    result = results[row.output] if isinstance(results, tuple) else results
    return from_numpy(result.dtype)


@pytest.mark.parametrize("row", [row for row in user_ops() if row.ufunc], ids=str)
def test_result_dtype_is_numpys(row: Op) -> None:
    for signature in signatures(row):
        match _resolved(row, signature):
            case DType() as dtype:
                assert dtype is _computed_by_numpy(row, signature)
            case DTypeError():
                assert _computed_by_numpy(row, signature) is None


def test_python_scalars_are_weak() -> None:
    assert resolve(op("add"), [F32, float]) == ((F32, F32), F32)
    assert resolve(op("add"), [named("u8"), int]) == ((named("u8"),) * 2, named("u8"))
    assert resolve(op("add"), [BOOL, int]) == ((I64, I64), I64)
    assert resolve(op("multiply"), [named("i16"), float]) == ((F64, F64), F64)
    assert resolve(op("where"), [BOOL, F32, float]) == ((BOOL, F32, F32), F32)


def test_float_functions_of_small_integers_are_small_floats() -> None:
    assert resolve(op("sqrt"), [named("i8")]) == ((named("f16"),), named("f16"))
    assert resolve(op("sqrt"), [named("i16")]) == ((F32,), F32)


def test_scalars_alone_have_their_own_dtypes() -> None:
    assert resolve(op("add"), [int, float]) == ((F64, F64), F64)
    assert resolve(op("add"), [int, bool]) == ((I64, I64), I64)
    assert resolve(op("where"), [bool, int, int]) == ((BOOL, I64, I64), I64)


def test_comparisons_of_int64_with_uint64_keep_their_types() -> None:
    assert resolve(op("less"), [I64, named("u64")]) == ((I64, named("u64")), BOOL)


def test_a_loop_without_a_row_is_refused_with_the_fix() -> None:
    with pytest.raises(DTypeError, match=r"fma of float16.* is not supported[\s\S]*\.astype\("):
        resolve(op("fma"), [named("f16")] * 3)


def test_what_numpy_refuses_is_refused_in_its_words() -> None:
    with pytest.raises(DTypeError, match=r"subtract of bool and bool is not supported[\s\S]*NumPy: "):
        resolve(op("subtract"), [BOOL, BOOL])
    with pytest.raises(TypeError, match="bitwise_and of float32 and int64"):
        resolve(op("bitwise_and"), [F32, I64])


def test_machine_ops_are_refused_where_they_have_no_spelling() -> None:
    with pytest.raises(DTypeError, match="not defined on float32"):
        resolve(op("popcount"), [F32])


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(DTypeError, match="add takes 2 arguments, not 1"):
        resolve(op("add"), [F32])


def test_counts_of_cells_are_the_golden_ones(golden: Callable[[str, str], None]) -> None:
    counted = {row.name: cells(row) for row in user_ops()}
    lines = ["op accepted refused computed"]
    lines += [f"{name} {c.accepted} {c.refused} {len(c.computed)}" for name, c in counted.items()]
    totals = [(c.accepted, c.refused, len(c.computed)) for c in counted.values()]
    lines.append("total " + " ".join(str(sum(column)) for column in zip(*totals, strict=True)))
    golden("cells.txt", "\n".join(lines) + "\n")
