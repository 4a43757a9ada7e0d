"""Rows finished beside the next one's work have the bits of rows one after the other, on threads too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from arrayjit.compile import build
from arrayjit.ir.code import Schedule
from arrayjit.tracer.calls.function import trace_function

PAGE = 4096


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def layernorm(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * 1.5 + 0.5


def smooth(x):
    t = np.tanh(x * x)
    return t * (x - t.mean(axis=-1, keepdims=True))


def launched(
    program: Callable[[np.ndarray], np.ndarray], x: np.ndarray, schedule: Schedule, apart: int = 0
) -> tuple[np.ndarray, set[str]]:
    """The result, so many cells apart from where a page starts, and the passes that noted something."""
    built = build(trace_function(program, (x,), {}).computation, "sync_llvm", schedule=schedule)
    memory = np.zeros(x.size + 2 * PAGE, x.dtype)
    start = -memory.ctypes.data % PAGE // x.itemsize + apart
    ours = memory[start : start + x.size].reshape(x.shape)
    built.load().launch([x.ctypes.data, ours.ctypes.data])
    assert not memory[:start].any()
    assert not memory[start + x.size :].any()
    return ours, {note.partition(":")[0] for note in built.optimized.kernel.notes}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(8, 128), (9, 1000), (83, 301), (3, 70, 160)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", [softmax, layernorm, log_softmax, smooth])
def test_rows_beside_one_another_have_the_same_bits(
    program: Callable[[np.ndarray], np.ndarray], dtype: str, shape: tuple[int, ...], threads: int
) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)
    x[..., 5, 7] = -np.inf if program is softmax else 0
    sizes = (("threads", threads), ("thread_work", 100))
    ours, notes = launched(program, x, Schedule(sizes=sizes))
    one_by_one, others = launched(program, x, Schedule(without=("trail",), sizes=sizes))
    assert "trail" not in others
    assert "trail" in notes or (threads > 1 and len(x) < 64)
    assert np.array_equal(ours, one_by_one)
    np.testing.assert_allclose(ours, program(x), rtol=1e-4 if dtype == "f4" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("apart", [0, 1, 8])
@pytest.mark.parametrize("shape", [(24, 4096), (9, 3001), (2, 9, 2051)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("program", [softmax, smooth])
def test_rows_that_no_cache_holds_are_finished_past_the_caches(
    program: Callable[[np.ndarray], np.ndarray], dtype: str, shape: tuple[int, ...], apart: int
) -> None:
    """Beside one another if they are whole lines; else each in a loop that starts where a line does."""
    x = np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)
    sizes = (("threads", 1), ("l3_bytes", 1000))
    ours, notes = launched(program, x, Schedule(sizes=sizes), apart)
    one_by_one, _ = launched(program, x, Schedule(without=("trail",), sizes=sizes))
    assert "bypass" in notes
    assert ("trail" in notes) == (shape[-1] * x.itemsize % 64 == 0)
    assert np.array_equal(ours, one_by_one)


def normalised(x):
    e = np.exp(x)
    x[...] = e / e.sum(axis=-1, keepdims=True)


def test_rows_in_place_are_finished_one_by_one() -> None:
    x = np.random.default_rng(0).uniform(-3, 3, (40, 300))
    wanted = x.copy()
    normalised(wanted)
    built = build(trace_function(normalised, (x,), {}).computation, "sync_llvm")
    assert not any(note.startswith("trail") for note in built.optimized.kernel.notes)
    built.load().launch([x.ctypes.data])
    np.testing.assert_allclose(x, wanted, rtol=1e-12)
