"""Transposes and stencils on the simulated GPU: blocks that bring windows of memory near."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
import arrayjit.devices
from arrayjit.errors import DeviceError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.passes import manager
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.api import Image
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

SMALL = GpuCaps(processors=1, busy_threads=64, wide=16, wide_again=16)
"""A GPU that is worth it for small arrays."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaTarget, "caps", lambda self: Caps(gpu=SMALL))


def compared(function: Callable[..., Any], *arguments: Any) -> str:
    """The loops of a function, which does exactly what it does in NumPy."""
    jitted = arrayjit.jit(function, target="cuda-sim")
    got, wanted = jitted(*arguments).numpy(), function(*arguments)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)
    return jitted.lower(*arguments).as_text("optimized")


def drawn(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(0).integers(0, 99, shape).astype(dtype)


def transposed(x):
    y = np.empty(x.shape[::-1], x.dtype)
    y[:] = x.T
    return y


def permuted(x):
    y = np.empty((x.shape[3], x.shape[1], x.shape[0], x.shape[2]), x.dtype)
    y[:] = np.transpose(x, (3, 1, 0, 2))
    return y


def five_points(x):
    return 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def nine_points(x):
    total = 0
    for i in range(3):
        for j in range(3):
            total = total + (i + 2 * j) * x[i : x.shape[0] - 2 + i, j : x.shape[1] - 2 + j]
    return total


def seven_points(x):
    inner = x[1:-1, 1:-1, 1:-1]
    vertical = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1]
    return vertical + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:] - inner


def relaxed(x, steps):
    for _ in range(steps):
        x[1:-1, 1:-1] = five_points(x)
    return x


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(0, 40), (1, 1), (31, 65), (32, 64), (33, 97), (9, 300), (300, 16)])
def test_transposes_of_any_size(shape: tuple[int, int]) -> None:
    assert ("shared" in compared(transposed, drawn(*shape))) is (min(shape) > 8)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["f2", "f8", "i1", "?", "i8", "c8"])
def test_transposes_of_any_type(dtype: str) -> None:
    assert "shared" in compared(transposed, drawn(65, 130, dtype=dtype))


@pytest.mark.usefixtures("small")
def test_other_permutations() -> None:
    assert "shared" in compared(permuted, drawn(3, 2, 37, 33))
    assert "shared" in compared(lambda x, y: np.einsum("ijk->kji", x) * y, drawn(40, 3, 33), drawn(33, 3, 40))


@pytest.mark.usefixtures("small")
def test_what_else_is_read_is_read_as_it_lies() -> None:
    loops = compared(lambda x: x + x.T, drawn(67, 67))
    assert loops.count("'shared'") == 1


@pytest.mark.usefixtures("small")
def test_views() -> None:
    y = drawn(66, 67)
    assert "shared" in compared(lambda x, y: x[::-1, ::-1].T + y, drawn(67, 66), y)
    assert "shared" in compared(lambda x, y: x[1:, 2:].T + y, drawn(68, 68), y)
    assert "shared" in compared(lambda x, y: x.T + y, drawn(67, 132)[:, ::2], y)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(2, 40), (3, 3), (18, 66), (17, 65), (19, 67), (50, 131)])
def test_stencils_of_any_size(shape: tuple[int, int]) -> None:
    loops = compared(five_points, drawn(*shape))
    assert ("shared" in loops) is (min(shape) >= 18)


@pytest.mark.usefixtures("small")
def test_other_stencils() -> None:
    assert "shared" in compared(nine_points, drawn(40, 71, dtype="f8"))
    assert "shared" in compared(seven_points, drawn(11, 19, 35))
    assert "shared" in compared(lambda x: five_points(x[::-1, ::-1]), drawn(40, 71))


@pytest.mark.usefixtures("small")
def test_steps_in_place() -> None:
    wanted = relaxed(drawn(40, 71), 3)
    got = arrayjit.jit(relaxed, target="cuda-sim")(drawn(40, 71), 3)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("function", "shape"),
    [(transposed, (64, 64)), (five_points, (34, 66)), (lambda x: x.sum(axis=0), (64, 40))],
)
def test_a_missing_barrier_is_found(
    function: Callable[..., Any], shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what brings a window, or forms parts of sums, and what reads them."""
    rows = tuple(row for row in manager.ON_LOOPS if row.name != "barriers")
    monkeypatch.setattr(manager, "ON_LOOPS", rows)
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    backend = arrayjit.devices.fresh_backend("cuda-sim")
    x = arrayjit.asarray(drawn(*shape), device=backend.get_device(0))
    with pytest.raises(DeviceError, match=r"nothing orders the two|which no thread has written"):
        arrayjit.jit(function, target="cuda-sim")(x).numpy()
    backend.machine.unsafe_cleanup()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1"])
def test_transposes_meet_in_no_bank(dtype: str, ways: list[int]) -> None:
    compared(transposed, drawn(64, 64, dtype=dtype))
    assert max(ways) == 1


@pytest.mark.usefixtures("small")
def test_stencils_meet_in_no_bank(ways: list[int]) -> None:
    compared(five_points, drawn(18, 66))
    assert max(ways) == 1


def made(function: Callable[..., Any], arch: str, *arguments: Any) -> Image:
    target = CudaTarget("cuda", arch)
    computation = arrayjit.jit(function, target="interp").lower(*arguments).build.computation
    payload: Any = target.emit(optimize(computation, target.caps(), verify=True).kernel).payload
    return nvrtc.compiled(payload.source, arch, "windows")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("function", "count"), [(lambda x: x + x.T, 4), (five_points, 4)])
def test_a_thread_waits_for_its_cells_together(function: Callable[..., Any], count: int, arch: str) -> None:
    """It loads several of them before it stores the first in shared memory."""
    compiled = made(function, arch, np.ones((1001, 1001), np.float32))
    assert all(
        kernel.spilled_bytes == kernel.stack_bytes == 0 for kernel in nvrtc.usage(compiled.log).values()
    )
    order = "".join(re.findall(r"\b(LDG|STS|BAR|STG)\b", disassembled(compiled.cubin)))
    assert "LDG" * count + "STS" in order


def test_small_arrays_get_a_thread_for_each_cell() -> None:
    lowered = arrayjit.jit(transposed, target="cuda-sim").lower(drawn(100, 100))
    assert "shared" not in lowered.as_text("optimized")


def test_the_reasons_are_told() -> None:
    def told(function: Callable[..., Any], *shape: int) -> str:
        return str(arrayjit.jit(function, target="cuda-sim").lower(drawn(*shape)).explain())

    assert "x is read across memory, so 32 x 32 cells are transposed in shared memory" in told(
        transposed, 1000, 1000
    )
    assert re.search(
        r"windows of 16 x 64 cells of x in shared memory take 8\.6 bytes .* and single reads 16\.0",
        told(five_points, 1000, 1000),
    )
