"""Devices, streams, contexts and routines on GPUs, with programs written by hand."""

from __future__ import annotations

import gc

import hand_written as programs
import numpy as np
import pytest
from hand_written import SIZE, n, x, y

from arrayjit.errors import DeviceError, LinkError, OutOfMemory
from arrayjit.profile.gpu.submitted import submitted, timed_launches
from arrayjit.runtime.context import Context
from arrayjit.runtime.cuda.lane import CHUNK
from arrayjit.runtime.cuda.program import GpuExecutable
from arrayjit.runtime.device import Device
from arrayjit.runtime.memory import Purpose
from arrayjit.runtime.merge import MergeUse
from arrayjit.runtime.transfer import device_to_device, init_from_device


def values(context: Context, tensor=x) -> np.ndarray:
    array = np.empty(SIZE)
    context.to_host(tensor, array)
    context.stream.await_()
    return array


@pytest.fixture
def ones(root: Context) -> Context:
    return root.init_from_host(x, np.ones(SIZE))


def test_launches_are_in_the_order_of_their_stream(ones: Context, target: str) -> None:
    double = ones.link(programs.doubled(target))
    for _ in range(5):
        double.schedule()
    assert (values(ones) == 32).all()


def test_numbers_are_those_of_each_launch(ones: Context, target: str) -> None:
    part = ones.link(programs.doubled_part(target))
    for bound in (1000, 500, 257, 1):
        part.bindings[n] = bound
        part.schedule()
    expected = np.ones(SIZE)
    for bound in (1000, 500, 257, 1):
        expected[:bound] *= 2
    np.testing.assert_array_equal(values(ones), expected)


def test_an_empty_grid_is_no_launch(ones: Context, target: str) -> None:
    part = ones.link(programs.doubled_part(target))
    part.bindings[n] = 0
    part.schedule()
    assert (values(ones) == 1).all()


def test_the_host_repeats_launches(ones: Context, target: str) -> None:
    summed = ones.link(programs.summed(target))
    for bound in (8, 1, 8):
        summed.bindings[n] = bound
        summed.schedule()
    assert values(ones)[0] == 1 + 2 * sum(i + 10 for i in range(1, 8, 2))


def test_the_host_repeats_while_a_condition_of_the_device_holds(ones: Context, target: str) -> None:
    grown = ones.link(programs.grown(target))
    grown.bindings[n] = 30
    grown.schedule()
    assert values(ones)[0] == 36


def test_a_failure_is_raised_at_the_users_line_and_nothing_follows_it(ones: Context, target: str) -> None:
    checked = ones.link(programs.checked(target))
    checked.bindings[n] = 2
    checked.schedule()
    with pytest.raises(IndexError, match=r"a number is too large\n  at model\.py:13"):
        checked.schedule()
    assert values(ones)[0] == 2
    checked.bindings[n] = 3
    checked.schedule()
    assert values(ones)[0] == 3


def test_a_failure_ends_a_loop_that_its_condition_does_not_end(ones: Context, target: str) -> None:
    loop = ones.link(programs.stopped_loop(target))
    loop.bindings[n] = 5
    with pytest.raises(IndexError):
        loop.schedule()
    assert values(ones)[0] == 5


def test_a_plan_that_runs_again_is_a_graph(root: Context, target: str) -> None:
    left, right = (root.init_from_host(x, np.full(SIZE, float(value))) for value in (1.0, 3.0))
    routines = [context.link(programs.doubled(target, times=3)) for context in (left, right)]
    for _ in range(4):
        for routine in routines:
            routine.schedule()
    assert (values(left) == 2**12).all()
    assert (values(right) == 3 * 2**12).all()


def test_more_addresses_than_graphs_are_kept(root: Context, target: str) -> None:
    contexts = [root.init_from_host(x, np.full(SIZE, float(value))) for value in range(12)]
    device = root.device
    procedure = device.load(programs.doubled(target, times=2))
    for _ in range(3):
        for context in contexts:
            buffer = context.buffers[x]
            device.stream.submit(lambda b=buffer: procedure.launch([b.address]), "doubled", writes=(buffer,))
    for value, context in enumerate(contexts):
        assert (values(context) == value * 2**6).all()


def test_streams_wait_for_what_they_need(ones: Context, target: str, device: Device) -> None:
    aside = Context(device, device.new_stream(), ones.buffers).init_from_host(y, np.zeros(SIZE))
    double = ones.link(programs.doubled(target))
    add = aside.link(programs.added(target))
    for _ in range(4):
        double.schedule()
        add.schedule()
    assert (values(aside, y) == 2 + 4 + 8 + 16).all()


def test_streams_have_workspaces_of_their_own(root: Context, target: str, device: Device) -> None:
    code = programs.grown(target)
    contexts = [
        Context(device, stream).init_from_host(x, np.zeros(SIZE))
        for stream in (device.stream, device.new_stream())
    ]
    routines = [context.link(code) for context in contexts]
    for bound in (10, 40):
        for routine in routines:
            routine.bindings[n] = bound
            routine.schedule()
    assert [values(context)[0] for context in contexts] == [42, 42]
    assert device.memory_by_purpose()[Purpose.WORKSPACE] == 2 * 256


def test_devices_copy_from_one_another(ones: Context, target: str, other: Device) -> None:
    double = ones.link(programs.doubled(target))
    double.schedule()
    there = init_from_device(x, dst=Context(other), src=ones)
    double.schedule()
    again = there.link(programs.doubled(target))
    again.schedule()
    back = device_to_device(x, dst=ones, src=there)
    assert back is not None
    back.schedule()
    assert (values(there) == 4).all()
    assert (values(ones) == 4).all()


@pytest.mark.parametrize("use", [MergeUse.COPY, MergeUse.STREAMING])
def test_merge_buffers_bring_values_from_another_device(
    ones: Context, target: str, other: Device, use: MergeUse
) -> None:
    far = Context(other).init_from_host(y, np.full(SIZE, 5.0))
    if use is MergeUse.STREAMING and not ones.device.reaches(other):
        with pytest.raises(LinkError, match=f"{ones.device.name} does not reach the memory of {other.name}"):
            device_to_device(y, dst=ones, src=far, into=use)
        return
    bring = device_to_device(y, dst=ones, src=far, into=use)
    assert bring is not None
    join = bring.context.link(programs.joined(target))
    bring.schedule()
    join.schedule()
    assert (values(ones) == 6).all()
    assert bool(ones.device.memory_by_purpose()[Purpose.MERGE]) == (use is MergeUse.COPY)


def test_a_stream_of_another_device_reads_what_its_producer_made_last(
    ones: Context, target: str, other: Device
) -> None:
    far = Context(other).init_from_host(y, np.ones(SIZE)).init_from_host(x, np.ones(SIZE))
    use = MergeUse.STREAMING if ones.device.reaches(other) else MergeUse.COPY
    bring = device_to_device(y, dst=ones, src=far, into=use)
    assert bring is not None
    join = bring.context.link(programs.joined(target))
    add = far.link(programs.added(target))
    for _ in range(4):
        add.schedule()
        bring.schedule()
        join.schedule()
    assert (values(ones) == 1 + 2 + 3 + 4 + 5).all()
    assert (values(far, y) == 5).all()


def test_an_array_may_change_once_it_is_given(root: Context) -> None:
    array = np.arange(float(SIZE))
    context = root.init_from_host(x, array)
    array[:] = -1
    np.testing.assert_array_equal(values(context), np.arange(float(SIZE)))


@pytest.mark.parametrize("nbytes", [1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 77])
def test_copies_of_any_size(device: Device, nbytes: int) -> None:
    array = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    buffers = [device.alloc_buffer(nbytes, Purpose.ARRAY) for _ in range(2)]
    for buffer in buffers:
        device.upload(buffer, array)
    for buffer in buffers:
        found = np.empty_like(array)
        device.download(buffer, found).sync()
        np.testing.assert_array_equal(found, array)


def test_new_memory_is_zero_where_that_is_asked_for(device: Device) -> None:
    buffer = device.alloc_buffer(4096, Purpose.ARRAY)
    found = np.empty(4096, np.uint8)
    device.download(buffer, found).sync()
    assert not found.any()


def test_memory_is_given_back_after_the_work_that_uses_it(root: Context, target: str) -> None:
    device = root.device
    kept = root.init_from_host(y, np.zeros(SIZE))
    for value in range(20):
        context = Context(device, device.new_stream(), kept.buffers).init_from_host(
            x, np.full(SIZE, float(value))
        )
        context.link(programs.added(target)).schedule()
        del context
        gc.collect()
    assert (values(kept, y) == sum(range(20))).all()


def test_a_full_device_says_so_and_stays_usable(ones: Context, target: str) -> None:
    device = ones.device
    most = int(device.static_properties["memory_bytes"])
    with pytest.raises(OutOfMemory, match="has no room for"):
        device.alloc_buffer(2 * most, Purpose.ARRAY, zeroed=False)
    ones.link(programs.doubled(target)).schedule()
    assert (values(ones) == 2).all()


def test_memory_of_finished_work_makes_room(device: Device, target: str) -> None:
    most = min(int(device.static_properties["memory_bytes"]), 1 << 30)
    for _ in range(5):
        buffer = device.alloc_buffer(most * 3 // 4, Purpose.ARRAY, zeroed=False)
        device.upload(buffer, np.zeros(1000))
        del buffer


def test_events_say_when_work_is_over(ones: Context, target: str) -> None:
    event = ones.link(programs.doubled(target)).schedule()
    while not event.is_done():
        pass
    assert ones.stream.is_idle()
    assert ones.device.is_idle()
    event.sync()


def test_closed_devices_refuse_work(make_driver, target: str) -> None:
    from arrayjit.runtime.device import Machine

    machine = Machine(make_driver)
    context = Context(machine.get_device(0)).init_from_host(x, np.ones(SIZE))
    routine = context.link(programs.doubled(target))
    machine.unsafe_cleanup()
    with pytest.raises(DeviceError, match="is closed"):
        routine.schedule()
    machine.initialize()
    again = Context(machine.get_device(0)).init_from_host(x, np.ones(SIZE))
    again.link(programs.doubled(target)).schedule()
    assert (values(again) == 2).all()
    machine.unsafe_cleanup()


def test_what_one_device_did_wrong_ends_that_device_alone(ones: Context, target: str, other: Device) -> None:
    """On hardware with a single device this would end the other tests' as well, so it is the last."""
    elsewhere = Context(other).init_from_host(x, np.ones(SIZE))
    beyond = ones.link(programs.doubled_part(target))
    beyond.bindings[n] = 1 << 19
    beyond.schedule()
    with pytest.raises(DeviceError) as raised:
        ones.stream.await_()
    said = str(raised.value)
    assert "0 has failed: CUDA_ERROR_ILLEGAL_ADDRESS" in said
    assert "'scale' of 'doubled_part', model.py:11" in said
    for use in (beyond.schedule, lambda: values(ones), lambda: ones.device.alloc_buffer(8, Purpose.ARRAY)):
        with pytest.raises(DeviceError, match="cannot be used any more"):
            use()
    elsewhere.link(programs.doubled(target)).schedule()
    assert (values(elsewhere) == 2).all()


def test_launches_are_timed_one_by_one(device: Device, target: str) -> None:
    procedure = device.load(programs.doubled(target, 2))
    buffer = device.alloc_buffer(8 * SIZE, Purpose.ARRAY)
    for _ in range(3):
        procedure.launch([buffer.address])  # from the third on it is a graph
    launches = submitted(
        device, lambda lane: timed_launches(lane, lambda: procedure.launch([buffer.address])), "timed"
    )
    assert [launch.number for launch in launches] == [0, 1]
    assert all(launch.grid == (4, 1, 1) and launch.seconds > 0 for launch in launches)


def test_kernels_tell_what_they_take(device: Device, target: str) -> None:
    executable = device.load(programs.doubled(target)).executable
    assert isinstance(executable, GpuExecutable)
    (kernel,) = executable.kernels
    assert (kernel.name, kernel.threads, kernel.spilled_bytes) == ("scale", (256, 1, 1), 0)
    assert 0 < kernel.resources.registers < 64
    assert kernel.shared_bytes == kernel.resources.shared_bytes
