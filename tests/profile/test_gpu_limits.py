"""What a GPU can do at best: the kernels that measure it run, and it is measured once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from arrayjit.backends import fresh_backend
from arrayjit.profile.gpu import machine, roofline
from arrayjit.profile.gpu.machine import Effort, GpuLimits, limits
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.api import GpuInfo
from arrayjit.runtime.cuda.driver import GpuDriver
from arrayjit.runtime.device import Device

SMALL = Effort(turns=2, nbytes=1 << 16, rounds=1)


@pytest.fixture
def device() -> Iterator[Device]:
    backend = fresh_backend("cuda-sim", devices=1)
    yield backend.get_device(0)
    backend.machine.unsafe_cleanup()


def info_of(device: Device) -> GpuInfo:
    driver = device.driver
    assert isinstance(driver, GpuDriver)
    return driver.gpu(device.ordinal).info


def test_each_kernel_runs_and_has_a_rate(device: Device) -> None:
    found = limits(device, replace(info_of(device), multiprocessors=1), SMALL)
    assert min(found.float32, found.float64, found.tensor, found.copy) > 0
    # Of a warp, a turn of `tensor` does 4096 operations, one of `float32` does 64.
    assert found.tensor > found.float32


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_kernels_are_what_they_say(arch: str) -> None:
    info = GpuInfo("", arch, (12, 9), 1, 1 << 30, 1 << 16, 1 << 20)
    code = machine._code("cuda", info, 100, 1 << 20)
    image = nvrtc.compiled(code.payload.source, arch, "limits")
    kernels = {part.split("(")[0].strip(): part for part in image.ptx.split(".entry")[1:]}
    assert kernels["float32"].count("fma.rn.f32") >= 8 * machine.SUMS
    assert kernels["float64"].count("fma.rn.f64") >= 8 * machine.SUMS
    assert kernels["tensor"].count("mma.sync") >= 4 * machine.SUMS
    assert ".v4." in kernels["copy"]
    assert not any(used.spilled_bytes for used in nvrtc.usage(image.log).values())


def test_it_is_measured_once_for_a_kind_of_gpu(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Effort] = []

    def measure(device: Device, info: GpuInfo, effort: Effort) -> GpuLimits:
        measured.append(effort)
        return GpuLimits(4e9, 2e9, 16e9, 1e9)

    monkeypatch.setattr(roofline, "limits", measure)
    monkeypatch.setattr(roofline, "_known", {})
    info = info_of(device)
    first = roofline.roofline(device, info, again=True)
    assert roofline.roofline(device, info) is first
    roofline._known.clear()
    assert roofline.roofline(device, info) == first  # out of a file
    assert len(measured) == 1
    assert measured[0].nbytes <= info.memory_bytes // 8


def test_work_takes_the_longer_of_arithmetic_and_bytes() -> None:
    found = roofline.GpuRoofline("a GPU", GpuLimits(4e9, 2e9, 16e9, 1e9))
    assert found.seconds({"float32": 4e9}, int(5e8)) == 1
    assert found.seconds({"float64": 4e9}, 0) == 2
    assert found.seconds({"tensor float16": 4e9}, int(5e8)) == 0.5
    assert found.peaks == {"float32": 4e9, "float64": 2e9, "tensor": 16e9}


@pytest.mark.gpu
def test_a_gpu_reaches_more_than_a_processor() -> None:
    backend = fresh_backend("cuda")
    found = limits(backend.get_device(0), info_of(backend.get_device(0)), Effort())
    assert found.copy > 100e9
    assert found.float32 > 1e12
    assert found.tensor > found.float32
    backend.machine.unsafe_cleanup()
