"""Matrix products in tiles: the bits of CPUs, in any size and layout; mistakes, which the simulator finds;
what NVRTC makes of them; and which tile is chosen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from planted import BARRIER, RACE, UNWRITTEN, pieces_of, run_with

import arrayjit
from arrayjit.errors import DeviceError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.ir.launches import DeviceProgram
from arrayjit.passes.gpu import gemm
from arrayjit.passes.gpu.slices import Tile
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

SMALL, MIDDLE, LARGE = (tile for tile, _ in reversed(gemm.TILES))

Function = Callable[..., Any]


@pytest.fixture(params=[SMALL], ids=str)
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Tile:
    """The tile that is taken for products of any size."""
    chosen: Tile = request.param
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    monkeypatch.setattr(gemm, "TILES", ((chosen, 1.0),))
    monkeypatch.setattr(gemm, "LATENCY", 0)
    monkeypatch.setattr(gemm, "ALONE", 10**6)
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=GpuCaps(wide=16)))
    return chosen


def drawn(*shape: int, dtype: Any = np.float32) -> Any:
    random = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, 100, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def in_tiles(function: Function, *arguments: Any) -> Any:
    """The result of the simulated GPU, which forms the product in tiles."""
    copies = [np.copy(argument, order="K") for argument in arguments]
    jitted = arrayjit.jit(function, target="cuda-sim")
    assert "__shared__" in jitted.lower(*copies).as_text("cuda")
    return jitted(*copies).numpy()


def on_the_cpu(function: Function, *arguments: Any) -> Any:
    return arrayjit.jit(function)(*[np.copy(argument, order="K") for argument in arguments])


def both_agree(function: Function, *arguments: Any) -> None:
    np.testing.assert_array_equal(in_tiles(function, *arguments), on_the_cpu(function, *arguments))


def product(x, w):
    return x @ w


# Results


@pytest.mark.parametrize("tile", [SMALL], indirect=True)
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(32, 32, 16), (31, 33, 15), (33, 31, 17), (64, 36, 32), (37, 41, 53), (3, 40, 34), (40, 2, 2)],
)
def test_sizes_around_a_tile(rows: int, columns: int, depth: int, tile: Tile) -> None:
    both_agree(product, drawn(rows, depth), drawn(depth, columns))


@pytest.mark.parametrize("tile", [MIDDLE, LARGE], indirect=True)
@pytest.mark.parametrize("more", [0, 1])
def test_larger_tiles(more: int, tile: Tile) -> None:
    both_agree(product, drawn(tile.rows + more, 34 - more), drawn(34 - more, tile.columns + more))


@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("size", [36, 33])
def test_every_layout(turned: str, size: int, tile: Tile) -> None:
    def function(x, w):
        return (x if turned[0] == "n" else x.T) @ (w if turned[1] == "n" else w.T)

    both_agree(function, drawn(size, size), drawn(size, size))


def test_memory_of_any_strides(tile: Tile) -> None:
    both_agree(lambda x, w: x[::2, ::-1] @ w[::-1, ::3], drawn(70, 36), drawn(36, 120))


def test_memory_that_is_not_aligned(tile: Tile) -> None:
    both_agree(lambda x, w: x[:, 1:] @ w[1:, 3:], drawn(40, 37), drawn(37, 43))


@pytest.mark.parametrize("batch", [(3,), (2, 2)])
def test_batches(batch: tuple[int, ...], tile: Tile) -> None:
    both_agree(product, drawn(*batch, 36, 20), drawn(*batch, 20, 34))


def test_sums_over_two_axes(tile: Tile) -> None:
    both_agree(lambda x, w: np.einsum("ijk,jkl->il", x, w), drawn(40, 5, 7), drawn(5, 7, 36))


@pytest.mark.parametrize("dtype", ["f8", "f2", ml_dtypes.bfloat16, "i1", "u2", "i4", "i8"])
def test_every_dtype(dtype: Any, tile: Tile) -> None:
    both_agree(product, drawn(33, 18, dtype=dtype), drawn(18, 36, dtype=dtype))


@pytest.mark.parametrize("columns", [36, 35])
def test_what_is_done_with_the_sums(columns: int, tile: Tile) -> None:
    def layer(x, w, b, r):
        return np.maximum(x @ w.T + b, 0) + r

    both_agree(layer, drawn(33, 20), drawn(columns, 20), drawn(columns), drawn(33, columns))


def test_sums_that_go_on_from_what_is_there(tile: Tile) -> None:
    def biased(b, x, w):
        y = np.empty((33, 36), np.float32)
        for i in range(33):
            for j in range(36):
                total = b[j]
                for k in range(20):
                    total += x[i, k] * w[k, j]
                y[i, j] = total
        return y

    both_agree(biased, drawn(36), drawn(33, 20), drawn(20, 36))


def test_zeros_keep_their_signs_and_what_is_no_number_stays_so(tile: Tile) -> None:
    tiny, huge = np.float32(1e-30), np.float32(3e38)
    x, w = np.full((33, 17), -tiny), np.full((17, 35), tiny)
    x[1], x[2, 0] = huge, np.nan
    w[:, 3] = np.inf
    got, wanted = in_tiles(product, x, w), on_the_cpu(product, x, w)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_a_loop_around_products_is_the_hosts(tile: Tile) -> None:
    def steps(x, w):
        for _ in range(2):
            x = np.tanh(x @ w)
        return x

    both_agree(steps, drawn(130, 130) / 9, drawn(130, 130) / 9)


# Mistakes


@pytest.mark.parametrize("barrier", range(2))
def test_each_missing_barrier_is_found(barrier: int, tile: Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = drawn(32, 40), drawn(40, 32)
    assert pieces_of(BARRIER, product, x, w) == 2
    with pytest.raises(DeviceError, match=f"{RACE}|{UNWRITTEN}"):
        run_with(monkeypatch, (BARRIER, "", barrier), product, x, w)


# Banks


@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("processors", [1, 132])
def test_tensor_cores_are_fed_from_different_banks(
    processors: int, dtype: str, turned: str, ways: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the largest tile and by the smallest."""
    gpu = GpuCaps(processors=processors, tensor_cores=True)
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=gpu))
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    x, w = drawn(128, 128, dtype=dtype), drawn(128, 128, dtype=dtype)

    def function(x, w):
        return (x if turned[0] == "n" else x.T) @ (w if turned[1] == "n" else w.T)

    jitted = arrayjit.jit(function, target="cuda-sim", fast="tf32")
    assert f"multiply_{'tf32' if dtype == 'f4' else 'f16'}" in jitted.lower(x, w).as_text("cuda")
    jitted(x, w)
    assert max(ways) == 1


# Machine code


@cache
def compiled(arch: str, dtype: str, tile: Tile) -> tuple[nvrtc.Usage, list[str]]:
    """What a layer of a network takes of a processor, and the names of its instructions."""
    size = 4096
    target = CudaTarget("cuda", arch)
    x = arrayjit.spec((size, size), dtype)

    def layer(x, w, b):
        return np.maximum(x @ w.T + b, 0)

    computation = arrayjit.jit(layer, target="interp").lower(x, x, arrayjit.spec((size,), dtype)).build
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "TILES", ((tile, 1.0),))
        kernel = optimize(computation.computation, target.caps()).kernel
    made: DeviceProgram = target.emit(kernel).payload
    image = nvrtc.compiled(made.source, arch, "layer")
    (usage,) = nvrtc.usage(image.log).values()
    names = re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)", disassembled(image.cubin), re.M)
    return usage, names


def count(names: list[str], start: str) -> int:
    return sum(name.startswith(start) for name in names)


SHAPES: list[Any] = [("f4", "FFMA", LARGE), ("f4", "FFMA", SMALL), ("f8", "DFMA", MIDDLE)]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("dtype", "multiply", "shape"), SHAPES)
def test_sums_are_kept_in_registers(dtype: str, multiply: str, shape: Tile, arch: str) -> None:
    usage, names = compiled(arch, dtype, shape)
    assert usage.spilled_bytes == usage.stack_bytes == 0
    assert usage.registers <= 128
    assert count(names, multiply) == shape.depth * shape.high * shape.wide
    assert count(names, "BAR.SYNC") == 1


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("dtype", "multiply", "shape"), SHAPES)
def test_factors_are_read_by_16_bytes(dtype: str, multiply: str, shape: Tile, arch: str) -> None:
    _, names = compiled(arch, dtype, shape)
    at_once = 16 // np.dtype(dtype).itemsize
    assert count(names, "LDS") == count(names, "LDS.128")
    assert count(names, "LDS.128") == shape.depth * (shape.high + shape.wide) // at_once
    assert count(names, "LDG.E.128") > 0
    assert count(names, "STG.E.128") == shape.high * shape.wide // at_once


# Choices


def notes_of(rows: int, columns: int, depth: int, dtype: str = "f4", processors: int = 132) -> Iterator[str]:
    shapes = arrayjit.spec((rows, depth), dtype), arrayjit.spec((depth, columns), dtype)
    computation = arrayjit.jit(product, target="interp").lower(*shapes).build.computation
    caps = Caps(gpu=GpuCaps(processors=processors))
    return (note for note in optimize(computation, caps).kernel.notes if note.startswith("offload"))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "dtype", "processors", "note"),
    [
        (4096, 4096, 4096, "f4", 132, "a block of 256 for each of 1024 tiles of 128 x 128"),
        (1024, 1024, 1024, "f4", 132, "a block of 256 for each of 256 tiles of 64 x 64"),
        (1024, 1024, 1024, "f4", 16, "a block of 256 for each of 64 tiles of 128 x 128"),
        (4096, 4096, 4096, "f8", 132, "a block of 256 for each of 4096 tiles of 64 x 64"),
        (256, 256, 256, "f4", 132, "a block of 64 for each of 64 tiles of 32 x 32"),
        (64, 64, 8, "f4", 132, "a thread for each of 4096 iterations"),
    ],
)
def test_the_tile_follows_from_the_sizes(
    rows: int, columns: int, depth: int, dtype: str, processors: int, note: str
) -> None:
    (said,) = notes_of(rows, columns, depth, dtype, processors)
    assert said.endswith(note)


def test_the_choice_is_explained() -> None:
    x = np.zeros((1024, 1024), np.float32)
    said = str(arrayjit.jit(product, target="cuda-sim").explain(x, x))
    assert "tiles of 64 x 64" in said
