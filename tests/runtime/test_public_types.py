"""Section 12 of the seeds (rows BI): the public types of the device layer."""

from __future__ import annotations

import numpy as np
import pytest
from hardware import HOSTS
from small_programs import N, cells, code, incremented, merged, stamped, summed, value, vector

from arrayjit.devices import (
    Code,
    Context,
    Event,
    Events,
    Location,
    MergeUse,
    Postponed,
    Purpose,
    Routine,
    Stream,
    compile,
    compile_batch,
    device_to_device,
    init_from_device,
)
from arrayjit.errors import BackendUnavailable, LinkError
from arrayjit.ir.assign import ArrayParam, Computation, Note


def test_BI_1_a_buffer_is_named_by_small_numbers_that_are_the_same_in_every_run(fresh):
    def places():
        x, y, out = vector("x"), vector("y"), vector("out", 3)
        backend = fresh()
        context = backend.init().link(code(backend, summed(vector("z"), x, y))).context
        context = context.link(code(backend, incremented(out))).context
        return [buffer.location for buffer in context.buffers.values()]

    assert places() == places()
    assert places() == [Location(0, 0), Location(0, 64), Location(0, 128), Location(1, 0)]
    assert repr(Location(0, 64)) == "Location(pool=0, offset=64)"


def test_BI_2_the_map_from_tensors_to_buffers_is_never_changed(root):
    x = vector("x")
    before = root.buffers
    after = root.init_from_host(x, np.zeros(N)).buffers
    assert dict(before) == {}
    assert list(after) == [x]
    with pytest.raises(TypeError):
        after[x] = None


def test_BI_3_BI_4_a_slab_has_a_size_an_alignment_and_a_purpose(device):
    pool = device.alloc_pool(100, Purpose.WORKING)
    assert (pool.nbytes, pool.purpose) == (100, Purpose.WORKING)
    assert pool.memory.address % 64 == 0
    assert device.memory_by_purpose()[Purpose.WORKING] == 100


def test_BI_5_a_slab_that_is_freed_or_forgotten_is_given_back(device):
    kept, dropped = device.alloc_pool(100, Purpose.WORKING), device.alloc_pool(20, Purpose.WORKING)
    assert device.get_used_memory() == 120
    del dropped
    assert device.get_used_memory() == 100
    kept.free()
    kept.free()
    assert device.get_used_memory() == 0


def test_BI_6_part_of_a_slab_is_zeroed(device):
    pool = device.alloc_pool(4, Purpose.WORKING)
    device.driver.upload(pool.memory, 0, np.array([1, 2, 3, 4], np.uint8))
    device.driver.memset_zero(pool.memory, 1, 2)
    seen = np.empty(4, np.uint8)
    device.driver.download(pool.memory, 0, seen)
    np.testing.assert_array_equal(seen, [1, 0, 0, 4])


@pytest.mark.parametrize("into", [MergeUse.COPY, MergeUse.STREAMING])
def test_BI_7_a_transfer_goes_into_a_merge_buffer(machine, device, other, into):
    x = vector("x")
    here = Context(device).init_from_host(x, np.ones(N))
    there = Context(other).init_from_host(x, np.full(N, 5.0))
    transfer = device_to_device(x, dst=here, src=there, into=into)
    routine = transfer.context.link(code(machine, merged(x)))
    transfer.schedule()
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.full(N, 6.0))


def test_BI_7_a_transfer_goes_into_the_tensor_itself(device, other):
    x = vector("x")
    here = Context(device).init_from_host(x, np.ones(N))
    there = Context(other).init_from_host(x, np.full(N, 5.0))
    transfer = device_to_device(x, dst=here, src=there)
    transfer.schedule()
    np.testing.assert_array_equal(value(transfer.context, x), np.full(N, 5.0))


def test_BI_8_a_routine_knows_its_name_inputs_outputs_bindings_and_merge_input(machine, root):
    x, y, out = vector("x"), vector("y"), vector("out")
    routine = root.link(code(machine, summed(out, x, y)))
    assert isinstance(routine, Routine)
    assert routine.name == "summed"
    assert routine.inputs == {x, y}
    assert routine.outputs == {out}
    assert routine.bindings == {}
    assert routine.merges == {}
    assert isinstance(routine.schedule(), Event)
    own = routine.context.child(merges={0: x})
    assert own.link(code(machine, merged(x))).merges == {0: x}
    assert root.link(code(machine, incremented(x))).inputs == {x}


def test_BI_9_the_parts_of_a_device_are_objects_with_names(device, target):
    assert device.driver.name == target
    assert isinstance(device.stream, Stream)
    assert isinstance(device.stream.record(), Event)
    assert device.name == f"{target}:0"


def test_BI_10_a_new_context_has_nothing_to_optimise_with(root):
    assert not root.buffers
    assert not root.merges
    assert not root.frontier.writer


def test_BI_11_a_device_has_identity_numbers_streams_and_bookkeeping(machine, device, other):
    assert device.ordinal == 0
    assert device.device_id != other.device_id
    assert device.streams == (device.stream,)
    x = vector("x")
    context = Context(device).init_from_host(x, np.zeros(N))
    buffer = context.buffers[x]
    write = context.link(code(machine, incremented(x))).schedule()
    assert buffer.writer is write
    context.to_host(x, np.empty(N))
    assert len(buffer.events()) == 2


def test_BI_12_a_context_is_a_device_a_parent_buffers_and_what_will_be_merged(machine, root, other):
    x = vector("x")
    child = root.init_from_host(x, np.zeros(N))
    assert child.parent is root
    assert child.device is root.device
    assert not child.life.is_over
    there = Context(other).init_from_host(x, np.zeros(N))
    transfer = device_to_device(x, dst=child, src=there, into=MergeUse.COPY, slot=2)
    assert transfer.context.merges == {2: x}
    child.finalize()
    assert child.life.is_over


def test_BI_13_BI_14_a_child_inherits_all_that_is_not_given(device):
    x = vector("x")
    context = Context(device).init_from_host(x, np.zeros(N)).child(merges={0: x})
    child = context.child()
    assert child.parent is context
    assert (child.device, child.stream) == (context.device, context.stream)
    assert child.buffers == context.buffers
    assert child.merges == context.merges
    assert child.frontier is context.frontier


def test_BI_15_names_say_which_device(machine, device, target):
    virtual = machine.machine.new_virtual_device(device)
    assert device.name == f"{target}:0"
    assert virtual.name == f"{target}:0.1"
    assert device.new_stream().name == f"{target}:0 stream 1"


def test_BI_16_a_backend_emits_code_and_runs_it(machine, target):
    assert machine.name == target
    assert machine.target.caps().vector_bytes > 0
    made = compile(machine, incremented(vector("x")), shared=True)
    assert isinstance(made, Code)
    assert made.target == target


def test_BI_17_code_belongs_to_no_context_and_is_named_after_its_computation(machine, device, other):
    x = vector("x")
    made = code(machine, incremented(x))
    assert made.name == "incremented"
    assert compile(machine, incremented(x), name="one_more", shared=True).name == "one_more"
    for place in (device, other):
        routine = Context(place).init_from_host(x, np.zeros(N)).link(made)
        routine.schedule()
        np.testing.assert_array_equal(value(routine.context, x), np.ones(N))


def test_BI_18_of_a_batch_only_what_is_occupied_is_compiled(machine):
    x = vector("x")
    programs = [incremented(x, by) for by in (1.0, 2.0, 3.0)]
    asked = []

    def occupancy(name, number):
        asked.append((name, number))
        return number != 1

    batch = compile_batch(machine, programs, names=["a", "b", "c"], occupancy=occupancy)
    assert [made and made.name for made in batch] == ["a", None, "c"]
    assert asked == [("a", 0), ("b", 1), ("c", 2)]
    assert [made.name for made in compile_batch(machine, programs)] == ["incremented"] * 3
    with pytest.raises(ValueError, match="zip"):
        compile_batch(machine, programs, names=["a"])


def test_BI_19_what_the_next_routine_is_optimised_with_comes_from_the_context(machine, root):
    x, y, z = vector("x"), vector("y"), vector("z")
    first = root.init_from_host(x, np.ones(N)).link(code(machine, summed(y, x)))
    second = first.context.link(code(machine, summed(z, y)))
    assert second.dependencies == {first.entry}


def test_BI_20_BI_21_an_event_is_polled_or_waited_for(device):
    events = [device.stream.submit(lambda: None, "nothing") for _ in range(3)]
    events[-1].sync()
    assert all(event.is_done() for event in events)


def test_BI_22_work_waits_for_an_event_of_another_device(device, other):
    seen = []
    event = device.stream.submit(lambda: seen.append("first"), "first")
    other.stream.wait_for(event)
    other.stream.submit(lambda: seen.append("second"), "second").sync()
    assert seen == ["first", "second"]


def test_BI_23_all_work_is_an_event_of_everything_enqueued_so_far(device):
    extra = device.new_stream()
    done = []
    for stream in (device.stream, extra):
        stream.submit(lambda: done.append(1), "some")
    event = device.all_work()
    assert isinstance(event, Events)
    event.sync()
    assert event.is_done()
    assert done == [1, 1]


def test_BI_24_a_device_is_awaited_and_then_idle(device):
    done = []
    for number in range(10):
        device.stream.submit(lambda number=number: done.append(number), "some")
    device.await_()
    assert device.is_idle()
    assert done == list(range(10))


def test_BI_25_sync_device_awaits_and_nothing_is_left_to_clear(device):
    x = vector("x")
    context = Context(device).init_from_host(x, np.zeros(N))
    device.sync_device()
    assert device.is_idle()
    assert context.buffers[x].writer.is_done()


def test_BI_26_devices_are_made_once_and_counted(machine, device):
    assert machine.get_device(0) is device
    assert machine.machine.devices()[0] is device
    there = machine.num_devices()
    assert there >= 1
    with pytest.raises(BackendUnavailable, match=f"no device {there}"):
        machine.get_device(there)
    with pytest.raises(BackendUnavailable, match="no device -1"):
        machine.get_device(-1)


def test_BI_27_a_device_has_several_streams(machine, device):
    x = vector("x")
    stream = device.new_stream()
    context = Context(device, stream).init_from_host(x, np.ones(N))
    assert context.stream is stream
    assert context.link(code(machine, incremented(x))).context.stream is stream
    assert machine.init(device, stream).stream is stream
    assert device.streams == (device.stream, stream)


def test_BI_28_static_properties_need_no_context(fresh, target):
    backend = fresh()
    properties = backend.static_properties()
    assert list(properties) == [f"{target}:{ordinal}" for ordinal in range(backend.num_devices())]
    unit = "cores" if target in HOSTS else "multiprocessors"
    assert int(properties[f"{target}:0"][unit]) >= 1


def test_BI_29_used_memory_is_what_is_in_slabs(machine, root, device):
    x, y = vector("x", 10), vector("y", 20)
    context = root.init_from_host(x, np.zeros(10)).link(code(machine, incremented(y))).context
    assert device.get_used_memory() == 80 + 160
    del context
    assert device.get_used_memory() == 0


def test_BI_30_a_device_tells_its_state(machine, device, target):
    device.await_()
    info = device.get_debug_info()
    assert info["name"] == f"{target}:0"
    assert info["streams"] == {f"{target}:0": 0}
    assert set(info["bytes"]) == {purpose.value for purpose in Purpose}
    assert machine.machine.get_global_debug_info()[device.name] == info


def test_BI_31_linking_gives_a_routine_in_a_child_context(machine, root):
    x = vector("x")
    routine = root.link(code(machine, incremented(x)))
    assert routine.context.parent is root
    assert x in routine.context.buffers
    assert x not in root.buffers


def test_BI_32_a_batch_is_linked_into_one_context_downstream_of_all(machine, root):
    x, y, z = vector("x"), vector("y"), vector("z")
    programs = [summed(y, x), incremented(x), summed(z, y)]
    batch = compile_batch(machine, programs, occupancy=lambda name, number: number != 1)
    context, routines = root.init_from_host(x, np.ones(N)).link_batch(batch)
    assert routines[1] is None
    assert set(context.buffers) == {x, y, z}
    assert context is routines[2].context
    assert routines[0].context.buffers[y] is context.buffers[y]
    for routine in routines:
        if routine is not None:
            routine.schedule()
    np.testing.assert_array_equal(value(context, z), np.ones(N))


def test_BI_33_the_host_and_devices_exchange_values(device, other):
    x, y = vector("x"), vector("y")
    context = Context(device).init_from_host(x, np.zeros(N))
    assert context.from_host(x, np.arange(N, dtype=float))
    assert not context.from_host(y, np.zeros(N))
    copied = init_from_device(x, dst=Context(other), src=context)
    result = np.empty(N)
    assert copied.to_host(x, result)
    assert not copied.to_host(y, result)
    other.sync_device()
    np.testing.assert_array_equal(result, np.arange(N))


def test_BI_34_every_public_value_prints(machine, device, root):
    x = vector("x")
    postponed = compile(machine, incremented(x))
    assert isinstance(postponed, Postponed)
    routine = root.link(postponed)
    printed = {
        "Device(": device,
        "Stream(": device.stream,
        "Event(": routine.schedule(),
        "Buffer(pool": routine.context.buffers[x],
        "Pool(": routine.context.buffers[x].pool,
        "Routine('incremented')": routine,
        f"Context({device.name}, x)": routine.context,
        "Code(": code(machine, incremented(x)),
    }
    for start, thing in printed.items():
        assert repr(thing).startswith(start)


def test_a_note_names_nothing_and_does_nothing(machine, root):
    x = vector("x")
    program = Computation("noted", (ArrayParam(x, "update"),), (Note("a remark"), cells(x, x, 2.0)))
    routine = root.init_from_host(x, np.zeros(N)).link(code(machine, program))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.full(N, 2.0))


def test_BI_31_code_of_another_target_is_refused(machine, root, fresh, target):
    elsewhere = fresh("interp" if target != "interp" else "sync_llvm")
    with pytest.raises(LinkError, match=f"is for target '{elsewhere.name}', the device is {target}:0"):
        root.link(code(elsewhere, incremented(vector("x"))))


def test_BI_8_static_symbols_are_bound_for_the_next_schedule(machine, root):
    out = vector("out")
    step, program = stamped(out)
    routine = root.link(code(machine, program))
    routine.bindings[step] = 7
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, out), np.full(N, 7.0))
