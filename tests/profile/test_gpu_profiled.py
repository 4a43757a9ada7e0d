"""`f.profile(...)` for GPUs: what each launch does and takes, on simulated ones and (`-m gpu`) real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.__main__ import main
from arrayjit.backends import fresh_backend
from arrayjit.errors import DeviceError, NumberError
from arrayjit.profile.counters import Refused
from arrayjit.profile.gpu import profiled
from arrayjit.profile.gpu.machine import GpuLimits
from arrayjit.profile.gpu.profiled import GpuProfile
from arrayjit.profile.gpu.roofline import GpuRoofline
from arrayjit.profile.measure import Spread
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.cuda.sim import SimulatedApi
from arrayjit.runtime.device import Device

N = 3000
SECONDS = 0.01


def profile(function: Callable[..., Any], *args: Any, **options: Any) -> GpuProfile:
    jitted = arrayjit.jit(function)
    found = jitted.profile(*args, **{"seconds": SECONDS, "target": "cuda-sim", **options})
    assert isinstance(found, GpuProfile)
    return found


@pytest.fixture
def device() -> Iterator[Device]:
    """Of a GPU that nobody else has."""
    backend = fresh_backend("cuda-sim", devices=2)
    yield backend.get_device(0)
    backend.machine.unsafe_cleanup()


def smooth(x: Any) -> Any:
    return 0.5 * (x[:-1] + x[1:])


def added(x: Any) -> Any:
    return x.sum()


def steps(x: Any, n: int) -> Any:
    for _ in range(n):
        y = x.max()
        x[:] = x[::-1] / y
    return x


def product(x: Any, y: Any) -> Any:
    return x @ y


def picked(x: Any, i: Any) -> Any:
    return x[i] * 2


def scaled(x: Any) -> Any:
    total = x.sum()
    return arrayjit.cond(
        total > 0,
        lambda: x * 2,
        lambda: x - 1,
    )


def halved(x: Any) -> Any:
    return arrayjit.while_loop(lambda v: v.max() > 1, lambda v: v / 2, x)


def test_a_launch_has_its_time_and_what_it_takes() -> None:
    found = profile(smooth, np.ones(N))
    (kernel,) = found.kernels
    assert kernel.name == "smooth_0"
    assert kernel.runs == 1
    assert kernel.flops == {"float64": 2 * (N - 1)}
    assert kernel.nbytes == 8 * (2 * N - 1)
    assert kernel.grid[0] * kernel.block[0] * kernel.lanes >= N - 1
    assert kernel.registers > 0
    assert kernel.spilled_bytes == kernel.local_bytes == 0
    assert kernel.occupancy is not None
    assert 0 < kernel.occupancy.fraction <= 1
    assert 0 < kernel.seconds.low <= kernel.seconds.median <= kernel.seconds.high
    assert kernel.bytes_per_second == kernel.nbytes / kernel.seconds.median
    assert isinstance(found.call, Spread)
    assert [line.source for line in found.lines] == ["return 0.5 * (x[:-1] + x[1:])"]


def test_a_simulation_has_no_limits_and_says_what_its_times_are() -> None:
    found = profile(smooth, np.ones(N))
    assert found.is_simulated
    assert found.roofline is found.fraction is found.kernels[0].fraction is None
    assert "these times are those of a simulation" in str(found)


def test_a_launch_is_beside_the_limits_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = GpuRoofline("a GPU", GpuLimits(80e9, 40e9, 800e9, 10e9))
    monkeypatch.setattr(SimulatedDriver, "is_simulated", False)
    monkeypatch.setattr(profiled, "roofline", lambda device, info: limits)
    (kernel,) = profile(smooth, np.ones(N)).kernels
    assert kernel.bound == "memory"
    assert kernel.fraction == pytest.approx(kernel.nbytes / 10e9 / kernel.seconds.median)
    x = np.ones((32, 32))
    (kernel,) = profile(product, x, x).kernels
    assert kernel.flops == {"float64": 2 * 32**3}
    monkeypatch.setattr(profiled, "roofline", lambda device, info: GpuRoofline("", GpuLimits(1, 1, 1, 1e12)))
    assert profile(product, x, x).kernels[0].bound == "arithmetic"


def test_a_sum_is_counted_where_its_terms_are_loaded() -> None:
    parts, total = profile(added, np.ones(20_000)).kernels
    assert parts.flops == {"float64": 20_000}
    assert 8 * 20_000 < parts.nbytes < 8 * 20_000 + 20_000
    assert not total.flops
    assert total.nbytes < 20_000


def test_tensor_cores_have_operations_of_their_own() -> None:
    x = np.ones((64, 64), np.float16)
    (kernel,) = profile(product, x, x).kernels
    assert kernel.flops == {"tensor float16": 2 * 64**3}
    assert kernel.nbytes == 2 * 2 * 64 * 64  # one array, read as both factors, and the result
    assert kernel.shared_bytes > 0
    x = np.ones((64, 64), np.float32)
    (kernel,) = profile(product, x, x, fast="tf32").kernels
    assert kernel.flops == {"tensor float32": 2 * 64**3}
    limits = GpuRoofline("", GpuLimits(1.0, 1.0, 6.0, 1.0))
    assert [limits.peak(kind) for kind in ("tensor float16", "tensor float32", "float32")] == [6.0, 3.0, 1.0]


def test_launches_in_a_loop_of_the_host_count_each_time() -> None:
    found = profile(steps, np.ones(20_000), 2)
    again = [kernel for kernel in found.kernels if kernel.runs == 2 and kernel.nbytes > 20_000]
    largest, turned, copied = again
    assert not largest.flops
    assert largest.nbytes == pytest.approx(2 * 8 * 20_000, rel=1e-3)
    assert turned.flops == {"float64": 2 * 20_000}
    assert turned.nbytes == pytest.approx(2 * 2 * 8 * 20_000, rel=1e-3)
    assert copied.nbytes == pytest.approx(2 * 2 * 8 * 20_000, rel=1e-3)
    assert 0 < sum(line.share for line in found.lines) <= 1 + 1e-9  # counting the turns is for no line
    assert {line.source for line in found.lines} >= {"y = x.max()", "x[:] = x[::-1] / y"}


def test_the_turns_of_a_while_loop_are_those_that_were_made() -> None:
    found = profile(halved, np.full(20_000, 3.0))
    turns = {kernel.runs for kernel in found.kernels}
    assert turns == {1, 2, 3}  # 3 > 1, 1.5 > 1, 0.75: three tests, two divisions
    (divided,) = [kernel for kernel in found.kernels if kernel.runs == 2]
    assert divided.flops == {"float64": 2 * 20_000}
    assert divided.nbytes >= 2 * 2 * 8 * 20_000
    tested = [kernel for kernel in found.kernels if kernel.runs == 3]
    assert tested[0].nbytes == pytest.approx(3 * 8 * 20_000, rel=1e-3)


def test_what_a_branch_is_decided_by_is_counted_where_it_is_loaded() -> None:
    found = profile(scaled, np.ones(20_000))
    parts, *others = found.kernels
    assert parts.flops == {"float64": 20_000}
    assert parts.nbytes == pytest.approx(8 * 20_000, rel=1e-3)
    assert [line.source for line in parts.lines] == ["total = x.sum()"]
    assert sum(sum(kernel.flops.values()) for kernel in others) == 0  # which branch is taken, data decides
    assert {line.source for line in found.lines} >= {"total = x.sum()", "lambda: x * 2,"}


def test_arrays_on_the_device_stay_as_they_are() -> None:
    x = arrayjit.asarray(np.linspace(0, 1, N), device="cuda-sim:1")
    found = profile(steps, x[::2], 2)
    np.testing.assert_array_equal(x.numpy(), np.linspace(0, 1, N))
    assert found.target == "cuda-sim"
    assert len(found.kernels) == 1


def test_a_donated_array_is_still_there() -> None:
    x = arrayjit.donate(arrayjit.asarray(np.ones(N), device="cuda-sim"))
    found = profile(steps, x, 1)
    assert isinstance(found.call, Refused)
    assert "donated once" in str(found)
    np.testing.assert_array_equal(arrayjit.jit(smooth)(x).numpy(), np.ones(N - 1))


def test_a_plan_is_measured_as_it_runs_and_launch_by_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[int] = []
    launch = SimulatedApi.graph_launch

    def counted(api: SimulatedApi, graph: int, stream: int) -> None:
        graphs.append(graph)
        launch(api, graph, stream)

    monkeypatch.setattr(SimulatedApi, "graph_launch", counted)
    found = profile(added, np.ones(20_000))
    assert len(set(graphs)) >= 1
    assert len(graphs) >= found.native.count
    assert [kernel.runs for kernel in found.kernels] == [1, 1]


def test_an_exception_of_the_program_is_raised_and_nothing_is_left_behind() -> None:
    with pytest.raises(IndexError, match=r"return x\[i\] \* 2"):
        profile(picked, np.ones(N), np.array([1, N]))
    found = profile(picked, np.ones(N), np.array([1, 2]))
    assert found.kernels[0].runs == 1


def test_a_device_that_fails_in_a_profile_says_so_and_others_go_on(device: Device) -> None:
    x = arrayjit.asarray(np.ones(N), device=device)
    i = arrayjit.asarray(np.array([1 << 40]), device=device)
    with pytest.raises(DeviceError, match="cuda-sim:0 has failed"):
        arrayjit.jit(picked, unchecked=True).profile(x, i, seconds=SECONDS)
    assert profile(smooth, np.ones(N)).kernels


def test_arguments_need_values_and_seconds_are_positive() -> None:
    with pytest.raises(NumberError, match="a shape and a dtype only"):
        profile(smooth, arrayjit.spec(N))
    with pytest.raises(NumberError, match="seconds is 0"):
        profile(smooth, np.ones(N), seconds=0)


def test_the_command_line_writes_it(tmp_path: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text("def double(x):\n    return 2 * x\n")
    file = tmp_path / "p.json"
    command = ["profile", f"{script}:double", "--arg", "np.ones(3000)", "--seconds", "0.01"]
    assert main([*command, "--target", "cuda-sim", "--save", str(file)]) == 0
    read = json.loads(file.read_text())
    assert (read["target"], read["is_simulated"]) == ("cuda-sim", True)
    assert read["kernels"][0]["lines"][0]["source"] == "return 2 * x"


def test_an_hour_of_work_is_counted_at_once() -> None:
    x = arrayjit.spec((4096, 4096), np.float32)
    counted = arrayjit.jit(product).lower(x, x, target="cuda").cost()
    assert int(counted.executed.all_flops) == 2 * 4096**3


@pytest.mark.gpu
def test_a_gpu_is_measured() -> None:
    x = arrayjit.asarray(np.ones(1 << 26, np.float32), device="cuda")
    found = profile(lambda v: 2 * v + 1, x, target="cuda", seconds=0.5)
    (kernel,) = found.kernels
    assert not found.is_simulated
    assert kernel.bound == "memory"
    assert kernel.fraction is not None
    assert 0.3 < kernel.fraction < 1.2
    assert kernel.spilled_bytes == 0
    assert found.native.median >= 0.9 * kernel.seconds.median
