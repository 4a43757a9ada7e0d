"""What the simulated GPUs find: work that nothing orders, memory that is gone, host memory that changed."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Collection, Sequence

import hand_written as programs
import numpy as np
import pytest
from hand_written import SIZE, n, x, y

from arrayjit.errors import DeviceError, LinkError
from arrayjit.runtime.context import Context
from arrayjit.runtime.cuda.api import Api, ApiError
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.cuda.gpu import Gpu
from arrayjit.runtime.cuda.lane import Lane
from arrayjit.runtime.cuda.sim import SimulatedApi
from arrayjit.runtime.device import Machine
from arrayjit.runtime.merge import MergeUse
from arrayjit.runtime.stream import Buffer, Event, Stream
from arrayjit.runtime.transfer import device_to_device, init_from_device

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


def streamed(seed: int) -> bool:
    """Is what one device makes what another reads in its memory, each time, while the one goes on?"""
    machine = make(seed)
    near, far = machine.devices()
    here = Context(near, near.new_stream()).init_from_host(x, np.zeros(SIZE))
    there = Context(far, far.new_stream()).init_from_host(y, np.ones(SIZE)).init_from_host(x, np.ones(SIZE))
    bring = device_to_device(y, dst=here, src=there, into=MergeUse.STREAMING)
    assert bring is not None
    join = bring.context.link(programs.joined("cuda-sim"))
    add = there.link(programs.added("cuda-sim"))
    found = np.empty(SIZE)
    try:
        for _ in range(5):
            add.schedule()
            bring.schedule()
            join.schedule()
        add.schedule()
        here.to_host(x, found)
        near.await_()
    except DeviceError:
        return False
    return bool((found == 2 + 3 + 4 + 5 + 6).all())


def test_what_another_device_reads_is_neither_read_too_early_nor_written_too_early() -> None:
    assert all(streamed(seed) for seed in SEEDS)


def forgotten_writer(self: Stream, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> Collection[Event]:
    """What a task reads and the code of another device writes is not waited for."""
    return [event for event in needed(self, (), writes) if event.queue is not self.queue]


def forgotten_reader(self: Buffer, event: Event) -> None:
    """Who writes next does not wait for who reads now."""


needed = Stream._needed


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (SimulatedApi, "wait", forgotten_wait),
        (Stream, "_needed", forgotten_writer),
        (Buffer, "read_at", forgotten_reader),
    ],
    ids=["waits of GPUs", "a reader's wait for the writer", "a writer's wait for the reader"],
)
def test_a_forgotten_wait_between_devices_that_stream_is_found(monkeypatch, owner, name, mutant) -> None:
    monkeypatch.setattr(owner, name, mutant)
    assert not all(streamed(seed) for seed in SEEDS)


def streamed_from_passing_memory(seed: int) -> bool:
    """Contexts of one device are gone while another device still reads what was in them."""
    machine = make(seed)
    near, far = machine.devices()
    here = Context(near).init_from_host(x, np.zeros(SIZE))
    found = np.empty(SIZE)
    try:
        for value in range(6):
            there = Context(far, far.new_stream()).init_from_host(y, np.full(SIZE, float(value)))
            bring = device_to_device(y, dst=here, src=there, into=MergeUse.STREAMING)
            assert bring is not None
            bring.schedule()
            bring.context.link(programs.joined("cuda-sim")).schedule()
            del there, bring
            gc.collect()
        here.to_host(x, found)
        near.await_()
    except DeviceError:
        return False
    return bool((found == 15).all())


def test_memory_that_another_device_still_reads_is_not_given_back(monkeypatch) -> None:
    assert all(streamed_from_passing_memory(seed) for seed in SEEDS)
    monkeypatch.setattr(Gpu, "clear", forgotten_clear)
    assert not all(streamed_from_passing_memory(seed) for seed in SEEDS)


def test_devices_without_peer_access_do_not_stream() -> None:
    machine = Machine(lambda: SimulatedDriver("cuda-sim", memory_bytes=1 << 24, peer_access=False))
    near, far = machine.devices()
    here, there = (Context(device).init_from_host(x, np.ones(SIZE)) for device in (near, far))
    with pytest.raises(LinkError, match="cuda-sim:0 does not reach the memory of cuda-sim:1") as raised:
        device_to_device(x, dst=here, src=there, into=MergeUse.STREAMING)
    assert "transfer with MergeUse.COPY" in str(raised.value)
    with pytest.raises(ApiError, match="CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"):
        machine.driver.api.enable_peer_access(0, 1)


def test_access_is_given_to_those_devices_alone_that_asked_for_it() -> None:
    machine = make(0)
    near, far = machine.devices()
    here, there = (Context(device).init_from_host(x, np.ones(SIZE)) for device in (near, far))
    device_to_device(x, dst=here, src=there, into=MergeUse.STREAMING)
    for device, context in ((near, there), (far, here)):
        procedure = device.load(programs.doubled("cuda-sim"))
        address = context.buffers[x].address
        device.stream.submit(lambda one=procedure, at=address: one.launch([at]), "doubled")
    near.await_()
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        far.await_()


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
