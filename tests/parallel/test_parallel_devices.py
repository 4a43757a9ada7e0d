"""What happens on the devices: who works at the same time, what travels, and that time changes no bit."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable
from threading import Barrier, Event, Thread
from typing import Any

import numpy as np
import pytest

from arrayjit.devices import Device, Purpose, fresh_backend
from arrayjit.parallel import data_parallel, devices
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.runtime.device import Machine
from arrayjit.runtime.queues import WorkerQueue
from arrayjit.runtime.workers import WorkerDriver

COUNT = 4
random = np.random.default_rng(0)
weights = random.standard_normal((5, 3))
x, y = random.standard_normal((10, 5)), random.standard_normal((10, 3))


def slopes(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray]:
    gap = x @ weights - y
    return (gap * gap).mean(), x.T @ gap / len(x)


def descend(weights: np.ndarray, slope: np.ndarray) -> np.ndarray:
    return weights - 0.1 * slope


def trained(group: Any, steps: int = 5) -> tuple[list[Any], np.ndarray]:
    """The losses on the way, and the parameters at the end."""
    train = data_parallel(slopes, group, update=descend)
    model = train.replicate(weights)
    losses = [train(model, x, y) for _ in range(steps)]
    return losses, model.parameters()


Act = Callable[[], None]


class WatchedQueue(WorkerQueue):
    """A worker that calls `before` with the label of each task."""

    def __init__(self, name: str, before: Callable[[str], None]) -> None:
        super().__init__(name)
        self.before = before

    def put(self, task: Act, label: str, *more: Any) -> None:
        def watched() -> None:
            self.before(label)
            task()

        super().put(watched, label, *more)


def watched_devices(before: Callable[[str], None]) -> tuple[Device, ...]:
    """Workers that call `before` first."""

    class Driver(WorkerDriver):
        def queue(self, ordinal: int, name: str) -> WorkerQueue:
            return WatchedQueue(name, before)

    return Machine(lambda: Driver("llvm", COUNT)).devices()


def test_WK_1_all_steps_are_in_flight_together() -> None:
    """Each step waits for the others to start: this ends only if no device waits for another's step."""
    start = Barrier(COUNT)

    def before(label: str) -> None:
        if label == "slopes":
            start.wait(timeout=60)

    assert trained(watched_devices(before))[0] == trained(devices(COUNT, "sync_llvm"))[0]


def test_a_call_does_not_wait_for_the_update() -> None:
    """The update starts when the call has returned."""
    returned = Event()

    def before(label: str) -> None:
        if label == "descend":
            assert returned.wait(timeout=60)

    train = data_parallel(slopes, watched_devices(before), update=descend)
    model = train.replicate(weights)
    train(model, x, y)
    returned.set()
    np.testing.assert_array_equal(model.parameters(), trained(devices(COUNT, "sync_llvm"), steps=1)[1])


def test_time_changes_no_bit() -> None:
    delays = np.random.default_rng(1)
    losses, end = trained(devices(COUNT, "sync_llvm"))
    for _ in range(3):
        late_losses, late_end = trained(watched_devices(lambda label: time.sleep(delays.random() / 500)))
        assert late_losses == losses
        np.testing.assert_array_equal(late_end, end)


class CountingDriver(CpuDriver):
    """Counts the bytes that it moves; `is_far` devices have memory that only they reach."""

    def __init__(self, name: str, is_far: bool = False) -> None:
        super().__init__(name)
        self.moved = Counter[str]()
        self.is_host = not is_far

    def num_devices(self) -> int:
        return COUNT

    def reaches(self, ordinal: int, other: int) -> bool:
        return self.is_host

    def upload(self, memory: Any, offset: int, array: np.ndarray) -> None:
        self.moved["up"] += array.nbytes
        super().upload(memory, offset, array)

    def download(self, memory: Any, offset: int, array: np.ndarray) -> None:
        self.moved["down"] += array.nbytes
        super().download(memory, offset, array)

    def copy(self, memory: Any, offset: int, source: Any, origin: Any, start: int, nbytes: int) -> None:
        self.moved["across"] += nbytes
        ctypes.memmove(memory.address + offset, origin.address + start, nbytes)


@pytest.mark.parametrize("is_far", [False, True])
def test_only_batches_and_values_pass_the_host(is_far: bool) -> None:
    """Gradients and parameters go from device to device: gradients up the tree, where they are not read in
    place, and parameters to each other device."""
    driver = CountingDriver("sync_llvm", is_far)
    train = data_parallel(slopes, Machine(lambda: driver).devices(), update=descend)
    model = train.replicate(weights)
    assert driver.moved == {"up": weights.nbytes, "across": (COUNT - 1) * weights.nbytes}
    for _ in range(2):
        driver.moved.clear()
        train(model, x, y)
        merged = (weights.nbytes + 8) if is_far else 0
        assert driver.moved == {
            "up": x.nbytes + y.nbytes,
            "down": 8,
            "across": (COUNT - 1) * (merged + weights.nbytes),
        }


def test_far_devices_compute_what_near_ones_do() -> None:
    near, far = (
        trained(Machine(lambda is_far=is_far: CountingDriver("sync_llvm", is_far)).devices())  # type: ignore[misc]
        for is_far in (False, True)
    )
    assert near[0] == far[0]
    np.testing.assert_array_equal(near[1], far[1])


def test_merge_buffers_are_kept_from_call_to_call() -> None:
    machine = Machine(lambda: CountingDriver("sync_llvm", is_far=True))
    train = data_parallel(slopes, machine.devices(), update=descend)
    model = train.replicate(weights)
    used = []
    for _ in range(3):
        train(model, x, y)
        used.append([device.memory_by_purpose()[Purpose.MERGE] for device in machine.devices()])
    into_three = weights.nbytes + 8
    assert used == [[into_three, 0, into_three, 0]] * 3


@pytest.mark.parametrize("peer_access", [True, False])
def test_gpus_read_the_results_of_others_in_place_where_they_reach_them(peer_access: bool) -> None:
    backend = fresh_backend("cuda-sim", devices=2, peer_access=peer_access)
    group = backend.machine.devices()
    losses, end = trained(group, steps=2)
    wanted, wanted_end = trained(devices(2, "sync_llvm"), steps=2)
    np.testing.assert_allclose(losses, wanted, rtol=1e-13)
    np.testing.assert_allclose(end, wanted_end, rtol=1e-13)
    train = data_parallel(slopes, group, update=descend)
    model = train.replicate(weights)
    train(model, x, y)
    assert bool(group[0].memory_by_purpose()[Purpose.MERGE]) != peer_access
    del model
    backend.machine.unsafe_cleanup()


def test_devices_of_different_targets_work_together() -> None:
    group = ["interp", *devices(1), *devices(2, "sync_llvm")]
    losses, end = trained(group, steps=2)
    wanted, wanted_end = trained(devices(COUNT, "sync_llvm"), steps=2)
    np.testing.assert_allclose(losses, wanted, rtol=1e-13)
    np.testing.assert_allclose(end, wanted_end, rtol=1e-13)


def test_devices_may_be_named() -> None:
    train = data_parallel(slopes, ["interp", "sync_llvm:0"])
    assert [device.name for device in train.devices] == ["interp:0", "sync_llvm:0"]


def test_memory_is_given_back_with_the_parameters() -> None:
    group = devices(2, "sync_llvm")
    train = data_parallel(slopes, group, update=descend)
    model = train.replicate(weights)
    train(model, x, y)
    assert group[0].get_used_memory() > 0
    del model
    left = [{purpose for purpose, used in device.memory_by_purpose().items() if used} for device in group]
    assert left == [{Purpose.WORKSPACE}] * 2  # which a device keeps for whatever it runs next


def test_threads_may_share_a_model() -> None:
    """One call after the other, in any order: here the order makes no difference."""
    train = data_parallel(
        lambda total, x: total * 0 + x.sum(),
        devices(2),
        update=lambda total, more: total + more,
        reduce="sum",
    )
    model = train.replicate(np.zeros(3))
    threads = [Thread(target=lambda: [train(model, np.ones(4)) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(model.parameters(), np.full(3, 160.0))
