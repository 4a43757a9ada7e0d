"""Where a program can tell how an array lies, it lies as NumPy's does; elsewhere as it takes least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy

from arrayjit.ir.assign import Assign
from arrayjit.tracer.calls.function import trace_function

Function = Callable[..., Any]

NUMBERS = np.random.default_rng(0).integers(0, 9, (3, 5, 4)).astype("f8")
PLACES = np.array([[0, 1, 2], [1, 0, 1]])

LAYOUTS: dict[str, np.ndarray] = {
    "C": NUMBERS[0, :4].copy(),
    "Fortran's cube": np.asfortranarray(NUMBERS),
    "turned": NUMBERS.transpose(2, 0, 1),
}

MADE: dict[str, Function] = {
    "columns": lambda x: x[:, [0, 1]],
    "rows": lambda x: x[[0, 1]],
    "rows in two axes": lambda x: x[PLACES.T],
    "columns in two axes": lambda x: x[:, PLACES.T],
    "cells": lambda x: x[PLACES.T, PLACES.T],
    "parts of columns": lambda x: x[::-1, [0, 1], 1:] if x.ndim == 3 else x[1:, [0, 2]],
    "chosen by a mask": lambda x: x[:, [n % 2 == 0 for n in range(x.shape[1])]],
    "columns of a sum": lambda x: (x + 1)[:, [0, 1]] * 2,
    "columns, turned": lambda x: x[:, [0, 1]].T,
    "columns, joined": lambda x: np.concatenate([x[:, [0, 1]], x[:, [1, 0]]]),
    "sums of columns": lambda x: x[:, [0, 1]].sum(-1, keepdims=True),
    "like columns": lambda x: np.zeros_like(x[:, [0, 1]]),
    "sort": lambda x: np.sort(x, axis=0),
    "sort of rows": lambda x: np.sort(x),
    "sort of complex": lambda x: np.sort(x + 1j, axis=0),
    "partition": lambda x: np.partition(x, [*range(x.shape[0])], axis=0),
    "argsort": lambda x: np.argsort(x, axis=0, kind="stable"),
    "triu": np.triu,
    "isin": lambda x: np.isin(x, [1.0, 2.0]),
    "taken along": lambda x: np.take_along_axis(x, np.argsort(x, axis=0, kind="stable").copy("F"), 0),
    "take": lambda x: np.take(x, [0, 1], axis=1),
    "round": lambda x: np.round(x, 1),
    "nan_to_num": np.nan_to_num,
    "delete": lambda x: np.delete(x, 0, axis=1),
    "delete several": lambda x: np.delete(x, [0, 2], axis=1),
    "insert": lambda x: np.insert(x, 0, 5, axis=1),
    "cross": lambda x: np.cross(x[..., :3], x[..., 1:4]),
}


def write(written: Any, other: Any) -> Any:
    written[(0,) * written.ndim] = 100
    return written, other


def write_in_a_loop(y: Any) -> Any:
    row = y.reshape(-1)
    for n in range(3):
        row[n] = n
    return y


SHOWN: dict[str, Function] = {
    "reshape": lambda y: write(y.reshape(-1), y),
    "reshape before a write": lambda y: write(y, y.reshape(-1)),
    "reshape handed out": lambda y: (y, y.reshape(-1)),
    "reshape in a loop": write_in_a_loop,
    "reshape to rows": lambda y: write(y.reshape(y.shape[0], -1), y),
    "reshape in Fortran's order": lambda y: write(np.reshape(y, -1, order="F"), y),
    "reshape of the transpose": lambda y: write(y.T.reshape(-1), y),
    "ravel": lambda y: write(np.ravel(y), y),
    "ravel in Fortran's order": lambda y: write(y.ravel("F"), y),
    "ravel in any order": lambda y: (y.ravel("K"), y.flatten("K"), y.ravel("A"), y.reshape(-1, order="A")),
    "ascontiguousarray": lambda y: write(np.ascontiguousarray(y), y),
    "asfortranarray": lambda y: write(np.asfortranarray(y), y),
    "astype": lambda y: write(y.astype(y.dtype, order="F", copy=False), y),
    "strides": lambda y: np.array([s for s, n in zip(y.strides, y.shape, strict=True) if n > 1]),
    "strides of a copy": lambda y: np.array((y * 2).strides) if min(y.shape) > 1 else y,
    "order A": lambda y: np.array(np.add(y, 1, order="A").strides) if min(y.shape) > 1 else y,
    "flags": lambda y: np.array([y.flags.c_contiguous, y.flags.f_contiguous, np.isfortran(y)]),
}


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MADE)
def test_what_shows_a_layout_shows_that_of_numpy(name: str, layout: str) -> None:
    x, make = LAYOUTS[layout], MADE[name]
    for show in SHOWN.values():
        assert_like_numpy(lambda x, show=show: show(make(x)), lambda: (x.copy("K"),))


def test_columns_lie_as_it_takes_least_unless_that_shows() -> None:
    def orders(function: Function) -> list[tuple[int, ...]]:
        computation = trace_function(function, (np.zeros((3, 4)),), {}).computation
        assigns = [statement for statement in computation.body if isinstance(statement, Assign)]
        return [tuple(part.constant for part in assign.into.shape) for assign in assigns]

    def unwritten(x: Any) -> Any:
        return x[:, [0, 1]].reshape(-1) * 2

    def written_before(x: Any) -> Any:
        y = x[:, [0, 1]]
        y[0] = 1
        return y.reshape(-1) * 2

    def written(x: Any) -> Any:
        y = x[:, [0, 1]]
        y.reshape(-1)[0] = 1
        return y

    assert orders(unwritten)[0] == orders(written_before)[0] == (3, 2)
    assert (2, 3) in orders(written)
