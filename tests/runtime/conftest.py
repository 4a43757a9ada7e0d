"""Backends of a test's own, on every target of the table, cleaned up after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hardware import TARGETS
from small_programs import WORKERS

from arrayjit.devices import Backend, Context, Device, fresh_backend

Fresh = Callable[..., Backend]


@pytest.fixture(params=[*TARGETS, "cuda-sim:sm_80"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Simulated GPUs are of the architecture that is named, by default sm_90."""
    name, _, architecture = str(request.param).partition(":")
    if architecture:
        monkeypatch.setenv("ARRAYJIT_GPU", architecture)
    return name


@pytest.fixture
def fresh(target: str) -> Iterator[Fresh]:
    """`fresh(memory_limit=...)` is a backend that the test shares with nobody."""
    made: list[Backend] = []

    def make(name: str = target, **options: int) -> Backend:
        made.append(fresh_backend(name, **options))
        return made[-1]

    yield make
    for backend in made:
        backend.machine.unsafe_cleanup()


@pytest.fixture
def machine(fresh: Fresh, target: str) -> Backend:
    """With two devices where the target can have several."""
    return fresh(devices=2) if target in WORKERS else fresh()


@pytest.fixture
def device(machine: Backend) -> Device:
    return machine.get_device(0)


@pytest.fixture
def other(machine: Backend, device: Device) -> Device:
    """A second device that reaches the memory of the first: of its own, or a virtual one."""
    if machine.num_devices() > 1 and machine.get_device(1).reaches(device):
        return machine.get_device(1)
    return machine.machine.new_virtual_device(device)


@pytest.fixture
def root(device: Device) -> Context:
    return Context(device)
