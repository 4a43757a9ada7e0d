"""GPUs for tests: simulated ones of two architectures, each of which does work in another order, and with
`-m gpu` those of the machine, or of the library that FAKE_LIBCUDA names."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from arrayjit.runtime.context import Context
from arrayjit.runtime.cuda.driver import CudaDriver, GpuDriver, SimulatedDriver
from arrayjit.runtime.device import Device, Machine
from arrayjit.runtime.ptx.spaces import SharedSpace

SIMULATED = ("sm_80", "sm_90")
GPUS = [*SIMULATED, pytest.param("gpu", marks=pytest.mark.gpu)]

Make = Callable[[], GpuDriver]


@pytest.fixture(params=GPUS)
def make_driver(request: pytest.FixtureRequest) -> Make:
    if request.param in SIMULATED:
        arch, seed = request.param, SIMULATED.index(request.param)
        return lambda: SimulatedDriver("cuda-sim", arch=arch, seed=seed, memory_bytes=64 << 20)
    if "FAKE_LIBCUDA" in os.environ:
        ctypes.CDLL(os.environ["FAKE_LIBCUDA"], mode=ctypes.RTLD_GLOBAL)
    return lambda: CudaDriver("cuda")


@pytest.fixture
def machine(make_driver: Make) -> Iterator[Machine]:
    made = Machine(make_driver)
    yield made
    made.unsafe_cleanup()


@pytest.fixture
def target(machine: Machine) -> str:
    return machine.driver.name


@pytest.fixture
def device(machine: Machine) -> Device:
    return machine.get_device(0)


@pytest.fixture
def other(machine: Machine, device: Device) -> Device:
    """A second GPU; where there is one only, a second device on it."""
    if machine.num_devices() > 1:
        return machine.get_device(1)
    return machine.new_virtual_device(device)


@pytest.fixture
def root(device: Device) -> Context:
    return Context(device)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """For each access of a warp to shared memory, how many words it needs of one bank."""
    found: list[int] = []
    locate = SharedSpace.locate

    def watched(self: SharedSpace, threads: Any, addresses: Any, nbytes: int, use: Any) -> Any:
        together = 32 if nbytes <= 4 else 128 // nbytes
        for group in np.unique(threads.numbers // together):
            words = np.unique(addresses[threads.numbers // together == group] // 4)
            first = words[words % max(nbytes // 4, 1) == 0]
            found.append(int(np.unique(first % 32, return_counts=True)[1].max()))
        return locate(self, threads, addresses, nbytes, use)

    monkeypatch.setattr(SharedSpace, "locate", watched)
    yield found
    assert found
