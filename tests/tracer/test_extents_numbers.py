"""What needs an extent as a number: the argument it comes from is compiled in, or the loop unrolled; what
comes from the elements of arrays is an error that says so."""

from __future__ import annotations

import collections
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rolling import length
from sizing import N, assert_like_numpy, matrix, vector

import arrayjit
from arrayjit.errors import ConcretizationError

Program = Callable[..., Any]

COMPILED_IN: dict[str, Program] = {
    "a result of this shape": lambda a, k: a[:k] * 2,
    "a view of this shape": lambda a, k: a[k:],
    "an array of an argument's size": lambda a, k: np.zeros(k).sum(),
    "a range up to an argument": lambda a, k: np.arange(k).sum(),
    "linspace": lambda a, k: np.linspace(0, 1, k + 1).sum(),
    "eye": lambda a, k: np.eye(k).sum(),
    "tile": lambda a, k: np.tile(a, k).sum(),
    "cells of a block in a row": lambda a, k: a[:k, :k].ravel().sum(),
    "a reversed part that may be one cell": lambda a, k: a[:k, 0][::-1].ravel().sum(),
    "a contiguous block": lambda a, k: np.ascontiguousarray(a[:, :k]).sum(),
    "equal parts": lambda a, k: [part.sum() for part in np.split(a[: 2 * k], 2)],
    "axes of extent 1": lambda a, k: np.squeeze(a[:k]).sum(),
    "whether arrays are equal": lambda a, k: np.array_equal(a[:k], a),
    "margins by reflection": lambda a, k: np.pad(a[:k], 1, mode="edge").sum(),
    "a diagonal": lambda a, k: np.diagonal(a, k).sum(),
    "the last few rows": lambda a, k: sum(row.sum() for row in deque(a, maxlen=k)),
    "the last few rows, counted by position": lambda a, k: [row.sum() for row in collections.deque(a, k)],
    "turns": lambda a, k: np.rot90(a, k).sum(axis=0),
}


@pytest.mark.parametrize("name", COMPILED_IN)
def test_arguments_are_compiled_in(name: str) -> None:
    numbers = (1, 2, 3)
    assert_like_numpy(COMPILED_IN[name], matrix, numbers=numbers, compiles=len(numbers))


def test_a_loop_is_unrolled_for_an_extent() -> None:
    def program(a: Any) -> Any:
        total = 0.0
        for i in range(a.shape[0]):
            total = total + a[:i, :i].ravel().sum()
        return total

    assert length(program, np.ones((7, 7))) < length(program, np.ones((9, 9)))
    for n in (0, 1, 7):
        assert arrayjit.jit(program)(np.ones((n, n))) == program(np.ones((n, n)))


FROM_DATA: dict[str, Program] = {
    "a view": lambda x: x[: x.astype(int)[0]],
    "a result": lambda x: np.zeros((3, x.astype(int)[0])),
    "cells in a row": lambda x: np.ones((3, 3))[:, : x.astype(int)[0]].ravel().sum(),
    "a step": lambda x: x[:: x.astype(int)[0]],
    "the last few cells": lambda x: sum(deque(x, maxlen=int(x[0]))),
}


@pytest.mark.parametrize("name", FROM_DATA)
def test_numbers_out_of_arrays_are_refused(name: str) -> None:
    with pytest.raises(ConcretizationError) as caught:
        arrayjit.jit(FROM_DATA[name])(vector)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert caught.value.fix
    assert len(str(caught.value).splitlines()) <= 15


WORDS: dict[str, tuple[Program, int, str]] = {
    "a position beyond the end": (lambda x, k: x[k], N, "index is out of bounds for axis 0 with size 6"),
    "a position before the start": (lambda x, k: x[k], -N - 1, "index is out of bounds for axis 0"),
    "an empty maximum": (lambda x, k: x[:k].max(), 0, "zero-size array to reduction operation maximum"),
    "an empty argmin": (lambda x, k: x[:k].argmin(), 0, "attempt to get argmin of an empty sequence"),
    "a product": (lambda x, k: x[:k] @ x, 2, "mismatch in its core dimension"),
    "a value": (lambda x, k: x.__setitem__(slice(k), x[:2]), 4, "could not broadcast input array"),
    "a shape": (lambda x, k: x[:k].reshape(-1, 2).sum(), 3, "cannot reshape array of shape"),
    "stacked": (lambda x, k: np.stack([x[:k], x]).sum(), 3, "all input arrays must have the same shape"),
    "out=": (lambda x, k: np.add(x, 1, out=x[:k]).sum(), 3, "non-broadcastable output operand"),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_the_compiled_function_raises(name: str) -> None:
    program, number, words = WORDS[name]
    for target in ("interp", "sync_llvm"):
        with pytest.raises((IndexError, ValueError), match=words) as caught:
            arrayjit.jit(program, target=target)(vector, number)
        assert f"{__file__}:{program.__code__.co_firstlineno}" in str(caught.value)


def test_new_arrays_take_the_room_they_may_need() -> None:
    def program(x: Any, k: int) -> Any:
        return (np.ones((2, x[:k].size)) * x[:k]).sum()

    assert f"temporary[f64, 2, {N}]" in arrayjit.jit(program).lower(vector, 2).as_text("assignments")
    assert_like_numpy(program, vector)


def test_every_rule_has_its_test() -> None:
    here = Path(__file__).parent
    rules = re.split(r"^\d+\. ", (here.parents[1] / "docs" / "sizes.md").read_text(), flags=re.MULTILINE)[1:]
    quoted = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert all(quoted)
    files = (*here.glob("test_extents_*.py"), here.parent / "api" / "test_any_length.py")
    written = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert {name for names in quoted for name in names} <= written
