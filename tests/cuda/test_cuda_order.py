"""What the simulated GPUs find: work that nothing orders, memory that is gone, host memory that changed."""

from __future__ import annotations

import ctypes

import hand_written as programs
import numpy as np
import pytest
from hand_written import SIZE, n, x, y

from arrayjit.errors import DeviceError
from arrayjit.runtime.context import Context
from arrayjit.runtime.cuda.api import Api
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.cuda.gpu import Gpu
from arrayjit.runtime.cuda.lane import Lane
from arrayjit.runtime.cuda.sim import SimulatedApi
from arrayjit.runtime.device import Machine
from arrayjit.runtime.transfer import init_from_device

SEEDS = range(6)


def make(seed: int) -> Machine:
    return Machine(lambda: SimulatedDriver("cuda-sim", seed=seed, memory_bytes=1 << 24))


def chain(seed: int) -> np.ndarray:
    """Two devices, three streams: `x` is doubled, copied over, added to `y` there, and read."""
    machine = make(seed)
    near, far = machine.devices()
    here = Context(near).init_from_host(x, np.ones(SIZE))
    target = Context(far, far.new_stream()).init_from_host(y, np.ones(SIZE))
    here.link(programs.doubled("cuda-sim")).schedule()
    there = init_from_device(x, dst=target, src=here)
    add = Context(far, far.stream, there.buffers).link(programs.added("cuda-sim"))
    for _ in range(3):
        add.schedule()
    found = np.empty(SIZE)
    add.context.to_host(y, found)
    far.await_()
    machine.unsafe_cleanup()
    return found


def right(seed: int) -> bool:
    try:
        return bool((chain(seed) == 7).all())
    except DeviceError:
        return False


def test_work_in_every_order_gives_the_same() -> None:
    assert all(right(seed) for seed in SEEDS)


def forgotten_wait(self: Api, stream: int, event: int) -> None:
    return None


def forgotten_follow(self: Gpu, lane: Lane) -> None:
    return None


def forgotten_clear(self: Gpu) -> None:
    """Memory is given back without waiting for what uses it."""
    while self._left:
        self._left.popleft()()


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [(SimulatedApi, "wait", forgotten_wait), (Gpu, "follow", forgotten_follow)],
    ids=["a wait for an event", "a wait for new memory"],
)
def test_a_forgotten_wait_is_found(monkeypatch, owner, name, mutant) -> None:
    monkeypatch.setattr(owner, name, mutant)
    assert not all(right(seed) for seed in SEEDS)


def passing_memory(seed: int) -> bool:
    machine = make(seed)
    device = machine.get_device(0)
    kept = Context(device).init_from_host(y, np.zeros(SIZE))
    try:
        for value in range(6):
            aside = Context(device, device.new_stream(), kept.buffers)
            aside.init_from_host(x, np.full(SIZE, float(value))).link(programs.added("cuda-sim")).schedule()
        found = np.empty(SIZE)
        kept.to_host(y, found)
        device.await_()
        return bool((found == 15).all())
    except DeviceError:
        return False


def test_memory_that_is_given_back_too_early_is_found(monkeypatch) -> None:
    assert all(passing_memory(seed) for seed in SEEDS)
    monkeypatch.setattr(Gpu, "clear", forgotten_clear)
    assert not all(passing_memory(seed) for seed in SEEDS)


def test_host_memory_is_looked_at_when_the_copy_is_done() -> None:
    api = make(0).driver.api
    api.use(0)
    stream, pinned = api.stream(), api.pinned_alloc(8)
    source = np.ctypeslib.as_array((ctypes.c_double * 1).from_address(pinned))
    address = api.alloc(8, stream)
    source[:] = 1
    api.h2d(address, pinned, 8, stream)
    source[:] = 2
    api.d2h(pinned, address, 8, stream)
    api.sync_stream(stream)
    assert source[0] == 2


def test_memory_is_not_a_number_until_it_is_written() -> None:
    machine = make(0)
    device = machine.get_device(0)
    context = Context(device).with_tensor(x)
    found = np.zeros(SIZE)
    context.to_host(x, found)
    device.await_()
    assert np.isnan(found).all()


def test_a_kernel_cannot_use_the_memory_of_another_device() -> None:
    machine = make(0)
    near, far = machine.devices()
    there = Context(far).init_from_host(x, np.ones(SIZE))
    procedure = near.load(programs.doubled("cuda-sim"))
    near.stream.submit(lambda: procedure.launch([there.buffers[x].address]), "doubled")
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        near.await_()
    far.await_()


def test_the_fault_names_the_thread_and_the_instruction() -> None:
    machine = make(0)
    device = machine.get_device(0)
    routine = Context(device).init_from_host(x, np.ones(SIZE)).link(programs.doubled_part("cuda-sim"))
    routine.bindings[n] = SIZE + 1
    routine.schedule()
    with pytest.raises(
        DeviceError, match=r"by thread \(232, 0, 0\) of block \(3, 0, 0\): ld\.global"
    ) as raised:
        device.await_()
    assert "'scale' of 'doubled_part', model.py:11" in str(raised.value)


def test_streams_take_no_more_work_than_hardware_would() -> None:
    machine = make(0)
    device = machine.get_device(0)
    buffer = Context(device).with_tensor(x).buffers[x]
    driver = machine.driver
    for _ in range(5000):
        driver.api.use(0)
        driver.api.memset(buffer.address, 0, 8, device.stream.queue.lane.stream)
    assert max(len(stream.entries) for stream in driver.api._streams) <= 1025
