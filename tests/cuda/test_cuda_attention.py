"""Attention stays within the blocks of one launch: NumPy's results, whatever the sizes, the mask and the
numbers; mistakes, which the simulator finds; what NVRTC makes of it; which programs are done otherwise."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attentions import SCALE, Function, drawn, notes_of, plan_for, softmax
from planted import BARRIER, RACE, UNWRITTEN, pieces_of, run_with
from test_cuda_emitter import program

import arrayjit
from arrayjit.errors import DeviceError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.passes.gpu import attend
from arrayjit.passes.gpu.attention import Tiles
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.runtime.device import Machine
from arrayjit.targets.cuda import ARCHITECTURES
from arrayjit.targets.interp import InterpTarget


def attention(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) * SCALE) @ v


def causal(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) * SCALE
    before = np.arange(s.shape[-2])[:, None] >= np.arange(s.shape[-1])
    return softmax(np.where(before, s, np.float32(-np.inf))) @ v


def masked(q, k, v, m):
    return softmax(np.where(m, q @ np.swapaxes(k, -1, -2) * SCALE, np.float32(-np.inf))) @ v


def divided_last(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    e = np.exp((s - s.max(axis=-1, keepdims=True)) * SCALE)
    return (e @ v) / e.sum(axis=-1, keepdims=True) + q


def not_divided(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    return np.exp2(s - s.max(axis=-1, keepdims=True)) @ v


def without_maximum(q, k, v):
    e = np.maximum(q @ np.swapaxes(k, -1, -2), 0) + np.float32(0.5)
    total = e.sum(axis=-1, keepdims=True)
    return (e @ v) / total


def heads(x, w):
    """All of a layer: `w` makes queries, keys and values of two heads."""
    parts = x @ w
    q, k, v = parts.reshape(x.shape[0], 3, 2, -1).transpose(1, 2, 0, 3)
    return attention(q, k, v).transpose(1, 0, 2).reshape(x.shape[0], -1)


def arguments_of(function: Function, batch: tuple[int, ...], rows: int, columns: int, depth: int, wide: int):
    """Queries, keys and values, of so many numbers, and what else a function takes."""
    found = [
        drawn(np.float32, *batch, rows, depth),
        drawn(np.float32, *batch, columns, depth),
        drawn(np.float32, *batch, columns, wide),
    ]
    if function is masked:
        found.append(np.random.default_rng(1).random((rows, columns)) < 0.7)
    return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that few rows keep busy, on every target here."""
    plan_for(monkeypatch, GpuCaps(wide=16, processors=1))


def assert_close(got: Any, wanted: Any) -> None:
    """Equal but for the order of sums, and what weights are scaled by."""
    assert got.dtype == wanted.dtype
    finite = wanted[np.isfinite(wanted)]
    bound = 4e-6 * max(1.0, float(np.abs(finite).max(initial=0)))
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=bound)


def wanted_of(function: Function, *arguments: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments)


def check(function: Function, *arguments: Any) -> None:
    """The schedule has NumPy's results, and hands no scores on."""
    (note,) = notes_of(function, *arguments)
    assert "stays in blocks" in note
    jitted = arrayjit.jit(function, target="interp")
    assert_close(jitted(*arguments), wanted_of(function, *arguments))


# Results

FUNCTIONS = (attention, causal, masked, divided_last, not_divided, without_maximum)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_attention_of_any_kind(function: Function) -> None:
    check(function, *arguments_of(function, (), 40, 70, 20, 20))


@pytest.mark.parametrize("batch", [(2,), (2, 1, 2)], ids=str)
def test_batches(batch: tuple[int, ...]) -> None:
    check(causal, *arguments_of(causal, batch, 40, 70, 10, 20))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "wide"),
    [(64, 64, 8, 32), (65, 64, 16, 64), (63, 65, 7, 33), (33, 72, 9, 100), (20, 130, 17, 128), (2, 2, 2, 2)],
)
def test_sizes_around_tiles(rows: int, columns: int, depth: int, wide: int) -> None:
    check(causal, *arguments_of(causal, (), rows, columns, depth, wide))


@pytest.mark.parametrize(("rows", "wide"), [(64, 100), (32, 20), (32, 60)])
def test_every_tile(rows: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attend, "ROWS", (rows,))
    check(attention, *arguments_of(attention, (), 70, 65, 8, wide))


def test_a_layer_of_heads() -> None:
    check(heads, drawn(np.float32, 70, 16), drawn(np.float32, 16, 3 * 2 * 16) / 4)


def test_larger_scores_that_come_later_and_earlier() -> None:
    q, k, v = arguments_of(attention, (), 32, 192, 8, 16)
    for last in (0.1, 10):
        check(attention, 10 * q, k * np.geomspace(1, last, 192, dtype=np.float32)[:, None], v)


def rows_of_all_kinds() -> list[np.ndarray]:
    """Rows without any score, with some in the last tile alone, in the first alone, and with few."""
    q, k, v, m = arguments_of(masked, (), 60, 130, 8, 16)
    m[:10] = False
    m[10:20, :128] = False
    m[20:30, 5:] = False
    m[30:40] = np.random.default_rng(2).random((10, 130)) < 0.03
    return [q, k, v, m]


def test_rows_without_scores_are_no_numbers() -> None:
    q, k, v, m = rows_of_all_kinds()
    assert np.isnan(wanted_of(masked, q, k, v, m)[:10]).all()
    check(masked, q, k, v, m)
    check(not_divided_masked, q, k, v, m)


def not_divided_masked(q, k, v, m):
    s = np.where(m, q @ k.T, np.float32(-np.inf))
    return np.exp(s - s.max(axis=-1, keepdims=True)) @ v


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_is_no_finite_number(which: int, bad: float) -> None:
    arguments = rows_of_all_kinds()
    arguments[which][3, 5] = arguments[which][25, 0] = arguments[which][55, 2] = bad
    check(masked, *arguments)


def test_nothing_depends_on_the_order_of_blocks() -> None:
    """The same bits in every run, also where blocks run in another order."""
    arguments = arguments_of(causal, (2,), 40, 70, 8, 16)
    first, second = (arrayjit.jit(causal, target="cuda-sim")(*arguments).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert_close(first, causal(*arguments))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("function", [masked, divided_last])
def test_a_simulated_gpu_has_numpys_results(function: Function, arch: str) -> None:
    machine = Machine(lambda: SimulatedDriver("cuda-sim", arch=arch))
    arguments = arguments_of(function, (), 70, 90, 20, 20)
    arrays = [arrayjit.asarray(array, device=machine.get_device(0)) for array in arguments]
    assert_close(arrayjit.jit(function)(*arrays).numpy(), function(*arguments))
    machine.unsafe_cleanup()


# Mistakes


BARRIERS = 6


@pytest.mark.parametrize("barrier", range(BARRIERS))
def test_each_missing_barrier_is_found(barrier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(attention, (), 32, 128, 16, 16)
    assert pieces_of(BARRIER, attention, *arguments) == BARRIERS
    with pytest.raises(DeviceError, match=f"{RACE}|{UNWRITTEN}"):
        run_with(monkeypatch, (BARRIER, "", barrier), attention, *arguments)


# Machine code


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("wide", [64, 128])
def test_one_launch_reads_and_writes_what_it_is_given_alone(
    wide: int, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    x = np.ones((8, 2048, wide), np.float32)
    made = program(causal, x, x, x, arch=arch)
    (launch,) = made.plan
    assert (launch.grid[0].cells.constant, launch.threads) == (8 * 2048 // 64, (256,))
    assert not any("Workspace" in type(argument).__name__ for argument in launch.arguments)
    image = nvrtc.compiled(made.source, arch, "program")
    (usage,) = nvrtc.usage(image.log).values()
    assert usage.spilled_bytes == usage.stack_bytes == 0
    assert usage.registers <= 128
    assert not re.search(r"\b(LDL|STL)\b", disassembled(image.cubin))


def test_scores_are_no_memory() -> None:
    arguments = arguments_of(attention, (), 256, 512, 32, 32)
    lowered = arrayjit.jit(attention, target="interp").lower(*arguments)
    assert lowered.build.optimized.kernel.arena_bytes == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterpTarget, "caps", lambda self: Caps(gpu=GpuCaps(wide=16, processors=1000)))
        before = arrayjit.jit(attention, target="interp").lower(*arguments)
    assert before.build.optimized.kernel.arena_bytes >= 2 * 256 * 512 * 4


def test_tiles_fit_into_the_memory_of_a_block() -> None:
    for rows in attend.ROWS:
        for columns in (1, 32, 33, 64, 65, 128):
            tiles = Tiles.of(rows, columns)
            assert tiles.scores.threads == tiles.result.threads == 4 * rows
            assert tiles.shared_bytes(4, 16) <= 40 * 1024


# Choices


def test_the_reasons_are_told() -> None:
    (note,) = notes_of(attention, *arguments_of(attention, (), 64, 64, 16, 200))
    assert "no room for 200 columns" in note
    wide = [argument.astype(np.float64) for argument in arguments_of(attention, (), 64, 64, 16, 100)]
    (note,) = notes_of(attention, *wide)
    assert "tiles of float64 do not fit" in note


def test_few_rows_are_left_to_more_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(attention, (), 128, 128, 16, 16)
    for processors, said in ((2, "64 rows each"), (4, "32 rows each"), (5, "too few rows for 5 processors")):
        caps = Caps(gpu=GpuCaps(processors=processors))
        monkeypatch.setattr(InterpTarget, "caps", lambda self, caps=caps: caps)
        (note,) = notes_of(attention, *arguments)
        assert note.endswith(said)


def nothing_of_rows(q, k, v):
    return np.maximum(q @ k.T, 0) @ v


def divided_first(q, k, v):
    """A sum of weights that are not divided may be too large for a float."""
    e = np.exp(np.minimum(q @ k.T, 0) + np.float32(80))
    return (e / e.sum(axis=-1, keepdims=True)) @ (v * np.float32(1e4))


def scores_too(q, k, v):
    s = q @ k.T
    return softmax(s) @ v, s


def by_the_mean(q, k, v):
    s = q @ k.T * np.float32(0.01)
    return np.exp(s - s.mean(axis=-1, keepdims=True)) @ v


def by_columns(q, k, v):
    s = q @ k.T
    return np.exp(s - s.max(axis=0)) @ v


def turned(q, k, v):
    s = q @ k.T
    return softmax(s).T @ v


def negative(q, k, v):
    s = q @ k.T
    return np.exp((s - s.max(axis=-1, keepdims=True)) * np.float32(-0.01)) @ v


def neighbours(q, k, v):
    s = q @ k.T
    p = softmax(s)
    return (p[:, 1:] + p[:, :-1]) @ v[1:]


def in_place(q, k, v):
    s = q @ k.T
    q[:] = 1
    return softmax(s) @ v + q


def into_the_keys(q, k, v):
    k[:] = softmax(q @ k.T) @ v
    return k


def running(q, k, v):
    """Weights by the maximum so far are not those by the maximum."""
    s = q @ k.T
    return np.exp(s - np.maximum.accumulate(s, axis=-1)) @ v


def in_order(q, k, v):
    """The order of the sum is the user's."""
    s = q @ k.T
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    total = np.zeros(64, np.float32)
    for j in range(64):
        total += e[:, j]
    return (e / total[:, None]) @ v


OTHERS = (
    nothing_of_rows,
    divided_first,
    scores_too,
    by_the_mean,
    by_columns,
    turned,
    negative,
    neighbours,
    in_place,
    into_the_keys,
    running,
    in_order,
)


@pytest.mark.parametrize("function", OTHERS)
def test_other_programs_are_done_otherwise(function: Function) -> None:
    arguments = arguments_of(function, (), 64, 64, 64, 64)
    assert notes_of(function, *map(np.copy, arguments)) == []
    got = arrayjit.jit(function, target="interp")(*map(np.copy, arguments))
    wanted = function(*map(np.copy, arguments))
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, wanted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())
