"""Attention of small floats by tensor cores in one launch: NumPy's results, whatever the sizes, the mask and
the numbers; mistakes, which the simulator finds; what NVRTC makes of it; which programs go other ways."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attentions import SCALE, Function, drawn, notes_of, plan_for, softmax
from ml_dtypes import bfloat16
from planted import BARRIER, RACE, UNFINISHED, UNWRITTEN, pieces_of, run_with
from test_cuda_emitter import program

import arrayjit
from arrayjit.errors import DeviceError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.runtime.device import Machine
from arrayjit.targets.cuda import ARCHITECTURES
from arrayjit.targets.interp import InterpTarget

GPU = GpuCaps(wide=16, processors=1, tensor_cores=True)


def scores(q, k):
    return (q @ np.swapaxes(k, -1, -2)).astype(np.float32) * SCALE


def attention(q, k, v):
    return softmax(scores(q, k)).astype(q.dtype) @ v


def masked(q, k, v, m):
    return softmax(np.where(m, scores(q, k), np.float32(-np.inf))).astype(q.dtype) @ v


def causal(q, k, v):
    before = np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2])
    return masked(q, k, v, before)


def divided_last(q, k, v):
    """The sum of the weights is formed with the result."""
    s = scores(q, k)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e.astype(q.dtype) @ v).astype(np.float32) / e.sum(axis=-1, keepdims=True) + q


def turned(q, kt, vt):
    """Keys and values that lie the other way round."""
    return softmax((q @ kt).astype(np.float32) * SCALE).astype(q.dtype) @ np.swapaxes(vt, -1, -2)


def computed(q, k, v):
    """Queries that are computed where they are read, and another weight of the scores."""
    s = scores(q * q.dtype.type(0.5), k)
    e = np.maximum(s, 0) + np.float32(0.5)
    return (e / e.sum(axis=-1, keepdims=True)).astype(q.dtype) @ v


def by_mean_and_extremes(q, k, v):
    s = scores(q, k)
    low, high = s.min(axis=-1, keepdims=True), s.max(axis=-1, keepdims=True)
    near = (s - low) / (high - low)
    return (near / near.sum(axis=-1, keepdims=True)).astype(q.dtype) @ v


def halves(q, k, v):
    """All in float16, rounded after each operation."""
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.25)) @ v


def heads(x, w):
    """All of a layer: `w` makes queries, keys and values of two heads."""
    q, k, v = (x @ w).astype(x.dtype).reshape(x.shape[0], 3, 2, -1).transpose(1, 2, 0, 3)
    return attention(q, k, v).transpose(1, 0, 2).reshape(x.shape[0], -1)


def arguments_of(
    function: Function, dtype: Any, batch: tuple[int, ...], rows: int, columns: int, depth: int, wide: int
) -> list[np.ndarray]:
    """Queries, keys and values, of so many numbers, and what else a function takes."""
    shapes = [(rows, depth), (columns, depth), (columns, wide)]
    if function is turned:
        shapes[1:] = [shape[::-1] for shape in shapes[1:]]
    found = [drawn(dtype, *batch, *shape) for shape in shapes]
    if function is masked:
        found.append(np.random.default_rng(1).random((rows, columns)) < 0.7)
    return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that few rows keep busy, on every target here."""
    plan_for(monkeypatch, GPU)


def assert_close(got: Any, wanted: Any, dtype: Any) -> None:
    """Equal but for what the order of sums does to numbers that are rounded: such as scores, of which one
    that is rounded the other way changes its weight, by far fewer than all bits."""
    assert got.dtype == wanted.dtype
    got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    bound = {np.float16: 2.0**-8, bfloat16: 2.0**-6}[dtype]
    finite = wanted[np.isfinite(wanted)]
    np.testing.assert_allclose(got, wanted, rtol=bound, atol=bound * float(np.abs(finite).max(initial=0)))


def check(function: Function, dtype: Any, *arguments: Any) -> None:
    """The schedule has NumPy's results, and hands no scores on."""
    (note,) = notes_of(function, *arguments)
    assert re.search(r"stays in blocks of .*, by tensor cores", note)
    with np.errstate(all="ignore"):
        wanted = function(*arguments)
    assert_close(arrayjit.jit(function, target="interp")(*arguments), wanted, dtype)


# Results

FUNCTIONS = (attention, causal, masked, divided_last, turned, computed, by_mean_and_extremes)

each_dtype = pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=lambda dtype: dtype.__name__)


@each_dtype
@pytest.mark.parametrize("function", FUNCTIONS)
def test_attention_of_any_kind(function: Function, dtype: Any) -> None:
    check(function, dtype, *arguments_of(function, dtype, (), 40, 70, 20, 20))


def test_attention_that_is_rounded_all_the_time() -> None:
    check(halves, np.float16, *arguments_of(halves, np.float16, (), 40, 70, 20, 20))


def test_what_is_rounded_is_rounded_as_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors of which sums are exact, so that no order matters: each bit is that of three launches."""
    arguments = [np.sign(part) for part in arguments_of(halves, np.float16, (), 40, 64, 32, 32)]
    got = arrayjit.jit(halves, target="interp")(*arguments)
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps())
    np.testing.assert_array_equal(got, arrayjit.jit(halves, target="interp")(*arguments))


@pytest.mark.parametrize("batch", [(2,), (2, 1, 2)], ids=str)
def test_batches(batch: tuple[int, ...]) -> None:
    check(causal, np.float16, *arguments_of(causal, np.float16, batch, 40, 70, 16, 20))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "wide"),
    [(64, 64, 32, 32), (65, 32, 33, 64), (63, 33, 16, 65), (16, 16, 128, 17), (130, 96, 127, 128)],
)
def test_sizes_around_tiles(rows: int, columns: int, depth: int, wide: int) -> None:
    for function in (causal, turned):
        check(function, np.float16, *arguments_of(function, np.float16, (), rows, columns, depth, wide))


def test_a_layer_of_heads() -> None:
    check(heads, np.float16, drawn(np.float16, 70, 16), drawn(np.float16, 16, 3 * 2 * 16) / 4)


def rows_of_all_kinds() -> list[np.ndarray]:
    """Rows without any score, with some in the last tile alone, in the first alone, and with few."""
    q, k, v, m = arguments_of(masked, np.float16, (), 60, 130, 16, 16)
    m[:10] = False
    m[10:20, :128] = False
    m[20:30, 5:] = False
    m[30:40] = np.random.default_rng(2).random((10, 130)) < 0.03
    return [q, k, v, m]


def test_rows_without_scores_are_no_numbers() -> None:
    arguments = rows_of_all_kinds()
    with np.errstate(all="ignore"):
        assert np.isnan(masked(*arguments)[:10]).all()
    check(masked, np.float16, *arguments)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_is_no_finite_number(which: int, bad: float) -> None:
    arguments = rows_of_all_kinds()
    arguments[which][3, 5] = arguments[which][25, 0] = arguments[which][55, 2] = bad
    check(masked, np.float16, *arguments)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("function", "dtype"), [(masked, np.float16), (turned, bfloat16)])
def test_a_simulated_gpu_has_numpys_results(function: Function, dtype: Any, arch: str) -> None:
    machine = Machine(lambda: SimulatedDriver("cuda-sim", arch=arch))
    arguments = arguments_of(function, dtype, (2,), 70, 90, 20, 20)
    if function is masked:
        arguments[-1] = arguments[-1][None]
    arrays = [arrayjit.asarray(array, device=machine.get_device(0)) for array in arguments]
    assert_close(arrayjit.jit(function)(*arrays).numpy(), function(*arguments), dtype)
    machine.unsafe_cleanup()


# Mistakes


WAIT = r'asm volatile\("cp.async.wait_group 0;" ::: "memory"\);'

HOW_OFTEN = {BARRIER: 5, WAIT: 3}
"""In two sweeps: for the tiles of each and for the second product; where threads tell one another folds."""


@pytest.mark.parametrize(
    ("piece", "which"), [(piece, which) for piece, count in HOW_OFTEN.items() for which in range(count)]
)
def test_each_missing_barrier_and_wait_is_found(
    piece: str, which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = arguments_of(divided_last, np.float16, (), 32, 64, 32, 32)
    assert pieces_of(piece, divided_last, *arguments) == HOW_OFTEN[piece]
    with pytest.raises(DeviceError, match=f"{RACE}|{UNWRITTEN}|{UNFINISHED}"):
        run_with(monkeypatch, (piece, "", which), divided_last, *arguments)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(r"cells\[2 \* pair\]", "cells[2 * pair + 1]"), (r"to\[pair\] =", "to[3 - pair] =")],
    ids=["neighbours", "pairs"],
)
def test_factors_that_threads_own_in_other_places_are_seen(
    right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = arguments_of(divided_last, np.float16, (), 32, 32, 32, 32)
    got = run_with(monkeypatch, (right, wrong, 0), divided_last, *arguments)
    assert np.abs(got - divided_last(*arguments)).max() > 0.1


# Machine code


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("wide", "rows"), [(64, 2048), (128, 2040)])
def test_one_launch_reads_and_writes_what_it_is_given_alone(
    wide: int, rows: int, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 32 columns: 4 by 4, or 8, instructions for scores in each of three sweeps, and for results."""
    monkeypatch.undo()
    x = np.ones((8, rows, wide), np.float16)
    made = program(causal, x, x, x, arch=arch)
    (launch,) = made.plan
    assert (launch.grid[0].cells.constant, launch.threads) == (8 * -(-rows // 64), (128,))
    assert not any("Workspace" in type(argument).__name__ for argument in launch.arguments)
    image = nvrtc.compiled(made.source, arch, "program")
    (usage,) = nvrtc.usage(image.log).values()
    assert usage.spilled_bytes == usage.stack_bytes == 0
    found = disassembled(image.cubin)
    assert not re.search(r"\b(LDL|STL)\b", found)
    assert len(re.findall(r"\bHMMA\.16816\.F32 ", found)) == (3 + 1) * wide // 4
    assert len(re.findall(r"\bLDSM\.16\.MT?88\.4", found)) == (3 + 1) * wide // 8
    assert re.search(r"\bLDGSTS\.E\.BYPASS\.128", found)


def test_scores_are_no_memory() -> None:
    arguments = arguments_of(attention, np.float16, (), 256, 512, 32, 32)
    lowered = arrayjit.jit(attention, target="interp").lower(*arguments)
    assert lowered.build.optimized.kernel.arena_bytes == 0


# Choices


def test_the_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape, said in (
        ((64, 64, 16, 200), "no room for more than 128 terms"),
        ((64, 64, 200, 16), "no room for more than 128 terms"),
        ((64, 64, 8, 16), "too little"),
    ):
        (note,) = notes_of(attention, *arguments_of(attention, np.float16, (), *shape))
        assert said in note
    arguments = arguments_of(attention, np.float16, (), 64, 64, 16, 16)
    monkeypatch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=GpuCaps(processors=1)))
    (note,) = notes_of(attention, *arguments)
    assert note.endswith("there are no tensor cores")


def test_few_rows_are_left_to_more_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(attention, np.float16, (), 128, 128, 16, 16)
    for processors, said in ((2, "64 rows each"), (4, "32 rows each"), (5, "too few rows for 5 processors")):
        caps = Caps(gpu=replace(GPU, processors=processors))
        monkeypatch.setattr(InterpTarget, "caps", lambda self, caps=caps: caps)
        (note,) = notes_of(attention, *arguments)
        assert said in note
        assert_close(arrayjit.jit(attention, target="interp")(*arguments), attention(*arguments), np.float16)


def not_rounded(q, k, v):
    """Weights that are no small floats."""
    return (softmax(scores(q, k)) @ v.astype(np.float32)).astype(q.dtype)


def scores_too(q, k, v):
    s = scores(q, k)
    return softmax(s).astype(q.dtype) @ v, s


def running(q, k, v):
    s = scores(q, k)
    return np.exp(s - np.maximum.accumulate(s, axis=-1)).astype(q.dtype) @ v


def other_way_round(q, k, v):
    return softmax(scores(q, k)).astype(q.dtype).T @ v


@pytest.mark.parametrize("function", [not_rounded, scores_too, running, other_way_round])
def test_other_programs_are_done_otherwise(function: Function) -> None:
    arguments = arguments_of(function, np.float16, (), 64, 64, 64, 64)
    assert not any("by tensor cores" in note for note in notes_of(function, *arguments))
    got, wanted = arrayjit.jit(function, target="interp")(*arguments), function(*arguments)
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, wanted)), strict=True):
        assert_close(one, other, np.float16)
