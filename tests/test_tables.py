"""The three tables: every row is complete, and agrees with the others."""

from __future__ import annotations

import inspect
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hardware import TARGETS

from arrayjit.backends import backend
from arrayjit.errors import DTypeError
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import DTYPES, DType
from arrayjit.ir.ops import OPS, Op
from arrayjit.ir.resolve import resolve
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS

PASSES = (*ON_ASSIGNMENTS, LOWERING, *ON_LOOPS)
NAMES = [row.name for row in PASSES]


@pytest.mark.parametrize("row", OPS.values(), ids=str)
def test_an_op_is_named_after_its_key_and_its_ufunc_exists(row: Op) -> None:
    assert OPS[row.name] is row
    assert callable(row.ref)
    for ufunc in filter(None, (row.ufunc, row.like)):
        assert isinstance(getattr(np, ufunc), np.ufunc)
    assert 1 <= row.arity <= 3


@pytest.mark.parametrize("row", [row for row in OPS.values() if row.ufunc], ids=str)
def test_an_op_takes_every_dtype_that_its_ufunc_takes(row: Op) -> None:
    ufunc = getattr(np, row.ufunc)
    known = {dtype.numpy for dtype in DTYPES}
    for dtypes in product(DTYPES, repeat=row.arity):
        try:
            found = ufunc.resolve_dtypes((*[dtype.numpy for dtype in dtypes], *[None] * ufunc.nout))
        except TypeError:
            continue
        if known.issuperset(found):
            inputs, result = resolve(row, dtypes)
            assert [dtype.numpy for dtype in inputs] == list(found[: ufunc.nin])
            assert result.numpy == found[ufunc.nin + row.output]


@pytest.mark.parametrize("row", OPS.values(), ids=str)
def test_an_op_that_accumulates_is_associative_and_has_a_neutral_element(row: Op) -> None:
    assert row.associative == (row.identity is not None)
    if row.identity is None:
        return
    for dtype in filter(lambda dtype: combines(row, dtype), DTYPES):
        neutral = np.array(row.identity(dtype), dtype.numpy)
        value = np.ones((), dtype.numpy)
        assert row.ref(neutral, value) == value == row.ref(value, neutral)


def combines(row: Op, dtype: DType) -> bool:
    """Whether the op combines values of the dtype to one of the same."""
    try:
        return resolve(row, (dtype, dtype)) == ((dtype, dtype), dtype)
    except DTypeError:
        return False


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_is_a_documented_function_in_a_file_of_its_name(name: str) -> None:
    run = PASSES[NAMES.index(name)].run
    module = inspect.getmodule(run)
    assert module is not None
    assert Path(str(module.__file__)).stem == name
    assert inspect.getdoc(run)
    text = inspect.getdoc(module) or ""
    assert text.startswith(f"{name}: ")
    assert "->" in text or " " * 8 in text, "the module shows no program before and after"


def test_passes_run_after_those_that_they_need() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for position, row in enumerate(PASSES):
        assert set(row.after) <= set(NAMES[:position]), f"{row.name} runs before one of {row.after}"
        assert row.why or not row.after, f"{row.name} does not say why it comes after {row.after}"


@pytest.mark.parametrize("name", TARGETS)
def test_a_backend_is_an_emitter_and_a_driver_of_its_name(name: str) -> None:
    row = backend(name)
    assert row.name == row.target.name == row.driver.name == name
    assert isinstance(row.target.caps(), Caps)
    assert row.get_device(0).driver is row.driver


def test_a_dtype_is_a_numpy_dtype_of_its_size() -> None:
    assert len({row.short for row in DTYPES}) == len(DTYPES)
    for row in DTYPES:
        assert row.numpy.itemsize == row.itemsize
