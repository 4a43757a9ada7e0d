"""Sections 17, 18 and 25 of the seeds (rows CX, SA, EZ): contexts, the older features, and what is easy to
get wrong."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hardware import ANYWHERE, TARGETS
from small_programs import WORKERS, N, code, held_up, incremented, merged, stamped, summed, value, vector

from arrayjit.backends import BACKENDS
from arrayjit.devices import (
    Context,
    Location,
    MergeUse,
    Postponed,
    Purpose,
    compile,
    device_to_device,
    fresh_backend,
    init_from_device,
)
from arrayjit.errors import DeviceError, LinkError, MergeMismatch

FILLED = np.arange(N, dtype=float)


@pytest.fixture
def pair(device, other):
    """A tensor on two devices: zeros here, ones there."""
    x = vector("x")
    return (
        x,
        Context(device).init_from_host(x, np.zeros(N)),
        Context(other).init_from_host(x, np.ones(N)),
    )


def test_CX_1_a_context_is_made_on_any_target_by_its_name(fresh, target):
    names = {name: fresh(name).init().device.driver.name for name in ANYWHERE}
    assert names == {name: name for name in ANYWHERE}


def test_CX_2_only_the_routines_context_sees_what_was_added(machine, root):
    x = vector("x")
    routine = root.link(code(machine, incremented(x)))
    assert x in routine.context.buffers
    assert x in routine.context.frontier.writer
    assert x not in root.buffers
    assert x not in root.frontier.writer


def test_CX_3_routines_depend_on_writers_and_writers_on_readers(machine, root):
    x, y, z = vector("x"), vector("y"), vector("z")
    write = root.link(code(machine, incremented(x, name="write")))
    read = write.context.link(code(machine, summed(y, x, name="read")))
    again = write.context.link(code(machine, summed(z, x, name="again")))
    assert write.dependencies == frozenset()
    assert read.dependencies == again.dependencies == {write.entry}
    over = read.context.link(code(machine, incremented(x, name="over")))
    assert over.dependencies == {write.entry, read.entry}
    rewrite = over.context.link(code(machine, summed(y, z, name="rewrite")))
    assert read.entry in rewrite.dependencies
    assert over.entry not in rewrite.dependencies


def test_CX_3_siblings_are_independent(machine, root):
    x = vector("x")
    one, two = (root.link(code(machine, incremented(x))) for _ in range(2))
    assert one.dependencies == two.dependencies == frozenset()


def test_CX_4_the_ledger_says_what_has_to_run_first(machine, root):
    x, y, z = vector("x"), vector("y"), vector("z")
    given = root.init_from_host(x, FILLED)
    first = given.link(code(machine, summed(y, x, name="first")))
    second = first.context.link(code(machine, summed(z, y, name="second")))
    assert not second.can_run()
    assert second.missing() == ("first",)
    with pytest.raises(LinkError, match=r"'second' cannot run before 'first'\n.*fix: run the routines"):
        second.run()
    first.run()
    assert second.can_run()
    second.run()
    second.run()
    np.testing.assert_array_equal(value(second.context, z), FILLED)


def test_CX_4_the_ledger_forgets_what_nothing_depends_on(machine, root):
    x = vector("x")
    made = code(machine, incremented(x))
    kept = root.link(made)
    for _ in range(20):
        root.link(made)
    gc.collect()
    assert root.ledger.entries() == (kept.entry,)


def test_CX_5_WK_25_inputs_must_have_been_filled_and_zeros_of_a_new_buffer_do_not_count(machine, root):
    x, y, out = vector("x"), vector("y"), vector("out")
    routine = root.init_from_host(x, FILLED).link(code(machine, summed(out, x, y)))
    assert not routine.can_run()
    with pytest.raises(LinkError, match=r"'summed' reads y, which nothing has filled\n.*fix: use from_host"):
        routine.run()
    routine.context.from_host(y, FILLED)
    routine.run()
    np.testing.assert_array_equal(value(routine.context, out), 2 * FILLED)
    assert root.link(code(machine, incremented(x))).can_run()


def test_CX_6_each_read_is_of_a_new_array_and_sees_what_was_scheduled_before(machine, root):
    x = vector("x")
    routine = root.init_from_host(x, FILLED).link(code(machine, incremented(x)))
    first = value(routine.context, x)
    routine.schedule()
    second = value(routine.context, x)
    np.testing.assert_array_equal(first, FILLED)
    np.testing.assert_array_equal(second, FILLED + 1)


def test_CX_8_a_context_and_a_routine_answer_questions(machine, root, target):
    out = vector("out")
    step, program = stamped(out)
    routine = root.link(code(machine, program))
    routine.bindings[step] = 3
    assert routine.name == "stamped"
    assert routine.entry.number == 0
    assert routine.bindings == {step: 3}
    assert out in routine.context.buffers
    assert not routine.context.buffers[out].is_filled
    routine.schedule()
    assert routine.context.buffers[out].is_filled
    assert routine.context.device.name == f"{target}:0"


@pytest.mark.parametrize("name", TARGETS)
def test_CX_9_values_are_copied_between_contexts_of_different_targets(machine, root, fresh, name):
    x = vector("x")
    there = fresh(name).init().init_from_host(x, FILLED)
    here = init_from_device(x, dst=root, src=there)
    np.testing.assert_array_equal(value(here, x), FILLED)


def test_SA_1_SA_6_SA_7_a_synchronous_backend_runs_when_it_is_scheduled():
    backend, x = fresh_backend("sync_llvm"), vector("x")
    context, result = backend.init().init_from_host(x, FILLED), np.empty(N)
    routine = context.link(code(backend, incremented(x)))
    assert routine.schedule().is_done()
    routine.context.to_host(x, result)
    np.testing.assert_array_equal(result, FILLED + 1)


def test_SA_2_SA_3_postponed_code_is_emitted_when_it_is_linked(machine, root, monkeypatch):
    x, emitted = vector("x"), []
    emit = machine.target.emit
    monkeypatch.setattr(machine.target, "emit", lambda kernel: (emitted.append(1), emit(kernel))[1])
    postponed = compile(machine, incremented(x))
    assert isinstance(postponed, Postponed)
    assert emitted == []
    root.link(postponed)
    assert emitted == [1]
    shared = compile(machine, incremented(x), shared=True)
    assert emitted == [1, 1]
    for _ in range(3):
        root.link(shared)
    assert emitted == [1, 1]


def test_SA_2_postponed_and_shared_code_say_the_same_of_themselves(machine):
    x = vector("x")
    postponed, shared = (compile(machine, merged(x), shared=shared) for shared in (False, True))
    for field in ("target", "name", "prior"):
        assert getattr(postponed, field) == getattr(shared, field)
    assert len(postponed.params) == len(shared.params) == 2


def test_SA_4_SA_20_code_says_which_tensors_it_expects_in_merge_buffers(machine, pair):
    x, here, there = pair
    made = code(machine, merged(x, slots=2))
    wanted = {p.slot: p.source for p in made.params if p.access == "merge"}
    assert wanted == {0: x, 1: x}
    for slot in range(2):
        transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY, slot=slot)
        transfer.schedule()
        here = transfer.context
    routine = here.link(made)
    assert routine.merges == {0: x, 1: x}
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.full(N, 2.0))


def test_SA_8_cleanup_invalidates_everything_and_reinitialize_starts_anew(fresh, target):
    backend, x = fresh(), vector("x")
    assert backend.machine.is_initialized()
    device = backend.get_device()
    routine = backend.init().init_from_host(x, FILLED).link(code(backend, incremented(x)))
    backend.machine.unsafe_cleanup()
    assert not backend.machine.is_initialized()
    with pytest.raises(DeviceError, match="cleaned up"):
        backend.get_device()
    for use in (routine.schedule, device.new_stream, lambda: routine.context.to_host(x, np.empty(N))):
        with pytest.raises(DeviceError, match=rf"{target}:0 is closed\n.*reinitialize"):
            use()
    backend.machine.reinitialize()
    assert backend.get_device() is not device
    again = backend.init().init_from_host(x, FILLED).link(code(backend, incremented(x)))
    again.schedule()
    np.testing.assert_array_equal(value(again.context, x), FILLED + 1)


def test_SA_9_SA_18_targets_are_chosen_by_name_and_devices_by_number():
    assert {"llvm", "sync_llvm", "interp"} <= set(BACKENDS)
    backend = fresh_backend("llvm", devices=3)
    assert backend.num_devices() == 3
    assert fresh_backend("llvm").num_devices() == 1
    backend.machine.unsafe_cleanup()


def test_SA_10_init_makes_a_root_and_finalize_awaits(machine, device):
    x = vector("x")
    root = machine.init(device)
    assert root.parent is None
    routine = root.init_from_host(x, FILLED).link(code(machine, incremented(x)))
    routine.schedule()
    routine.context.finalize()
    assert device.is_idle()


def test_SA_11_SA_17_a_merge_buffer_is_used_again_when_it_is_large_enough(machine, pair, device):
    x, here, there = pair
    transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY)
    for _ in range(5):
        transfer.schedule()
    assert device.memory_by_purpose()[Purpose.MERGE] == 8 * N
    assert device.merge_buffers(here.stream).held[0].tensor is x


def test_SA_12_a_tensors_buffer_is_looked_up_and_copied_raw(device):
    x = vector("x")
    context = Context(device).init_from_host(x, np.zeros(N))
    buffer, seen = context.buffers[x], np.empty(N)
    device.upload(buffer, FILLED)
    device.download(buffer, seen).sync()
    np.testing.assert_array_equal(seen, FILLED)


def test_SA_13_virtual_devices_share_hardware_and_nothing_else(machine, device):
    virtual = [machine.machine.new_virtual_device(device) for _ in range(2)]
    assert [(each.ordinal, each.subordinal) for each in (device, *virtual)] == [(0, 0), (0, 1), (0, 2)]
    x = vector("x")
    contexts = [Context(each).init_from_host(x, np.full(N, float(n))) for n, each in enumerate(virtual)]
    for number, context in enumerate(contexts):
        np.testing.assert_array_equal(value(context, x), np.full(N, number))
    assert device.get_used_memory() == 0


def test_SA_14_a_backend_keeps_its_devices_and_says_what_is_queued(machine, device):
    assert machine.get_device(0) is device
    if machine.name in WORKERS:
        with held_up(device.stream) as gate:
            device.stream.submit(lambda: None, "some")
            assert device.get_debug_info()["streams"] == {device.name: 2}
            gate.set()
    device.await_()
    assert device.get_debug_info()["streams"] == {device.name: 0}


@pytest.mark.parametrize("into", list(MergeUse))
def test_SA_15_no_synchronisation_by_the_caller_is_needed_around_transfers(machine, pair, into):
    x, here, there = pair
    increment = there.link(code(machine, incremented(x)))
    transfer = device_to_device(x, dst=here, src=increment.context, into=into)
    made = merged(x) if into is not MergeUse.NO else incremented(x, 0.0)
    use = transfer.context.link(code(machine, made))
    for _ in range(10):
        increment.schedule()
        transfer.schedule()
        use.schedule()
    expected = 11.0 if into is MergeUse.NO else sum(range(2, 12))
    np.testing.assert_array_equal(value(use.context, x), np.full(N, expected))


def test_SA_16_streaming_copies_nothing(machine, pair, device):
    x, here, there = pair
    transfer = device_to_device(x, dst=here, src=there, into=MergeUse.STREAMING)
    transfer.schedule()
    assert device.merge_buffers(here.stream).held[0].buffer is there.buffers[x]
    assert device.memory_by_purpose()[Purpose.MERGE] == 0


def test_SA_19_EZ_13_WK_9_bindings_are_taken_when_work_is_scheduled(machine, device):
    out = vector("out")
    step, program = stamped(out)
    routine = Context(device).link(code(machine, program))
    results = [np.empty(N) for _ in range(5)]
    for number, result in enumerate(results):
        routine.bindings[step] = number
        routine.schedule()
        routine.bindings[step] = 99
        routine.context.to_host(out, result)
    device.await_()
    assert [result[0] for result in results] == [0, 1, 2, 3, 4]


def test_SA_22_linking_leaves_what_will_be_merged_as_it_was(machine, pair):
    x, here, there = pair
    transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY)
    context, routines = transfer.context.link_batch(
        [code(machine, merged(x)), code(machine, incremented(vector("y")))]
    )
    assert context.merges == {0: x}
    assert [dict(routine.merges) for routine in routines] == [{0: x}, {}]


def test_EZ_1_a_transfer_into_the_tensor_inherits_and_one_into_the_merge_buffer_replaces(machine, pair):
    x, here, there = pair
    y = vector("y")
    here, there = (each.init_from_host(y, np.zeros(N)) for each in (here, there))
    first = device_to_device(x, dst=here, src=there, into=MergeUse.COPY).context
    inherits = device_to_device(y, dst=first, src=there).context
    replaces = device_to_device(y, dst=first, src=there, into=MergeUse.COPY).context
    assert (first.merges, inherits.merges, replaces.merges) == ({0: x}, {0: x}, {0: y})


def test_EZ_1_linking_trusts_the_context_and_scheduling_what_is_there(machine, pair):
    x, here, there = pair
    y = vector("y")
    there = there.init_from_host(y, np.zeros(N))
    transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY)
    transfer.schedule()
    device_to_device(y, dst=here, src=there, into=MergeUse.COPY).schedule()
    late = transfer.context.link(code(machine, merged(x)))
    with pytest.raises(MergeMismatch, match="which holds y"):
        late.schedule()


def test_EZ_2_what_is_merged_need_not_be_in_the_context(machine, device, other):
    """The code adds it; only the source has to have it."""
    x = vector("x")
    there = Context(other).init_from_host(x, FILLED)
    transfer = device_to_device(x, dst=Context(device), src=there, into=MergeUse.COPY)
    routine = transfer.context.link(code(machine, merged(x)))
    transfer.schedule()
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), FILLED)


def test_EZ_2_work_that_is_queued_reads_the_merge_buffer_of_its_moment(machine, pair):
    x, here, there = pair
    increment = there.link(code(machine, incremented(x)))
    transfer = device_to_device(x, dst=here, src=increment.context, into=MergeUse.COPY)
    merge = transfer.context.link(code(machine, merged(x)))
    for _ in range(3):
        transfer.schedule()
        merge.schedule()
        increment.schedule()
    np.testing.assert_array_equal(value(merge.context, x), np.full(N, 1.0 + 2.0 + 3.0))


def test_EZ_3_an_event_is_of_the_device_that_did_the_write(pair):
    x, here, there = pair
    event = device_to_device(x, dst=here, src=there).schedule()
    assert event.queue is here.stream.queue
    assert here.buffers[x].writer is event
    assert there.buffers[x].readers == {event.queue: event}


def test_EZ_3_host_arrays_are_read_and_written_when_the_stream_gets_there():
    backend, x = fresh_backend("llvm"), vector("x")
    context = backend.init().init_from_host(x, FILLED)
    array, result = np.zeros(N), np.full(N, -1.0)
    with held_up(context.stream) as gate:
        context.from_host(x, array)
        context.to_host(x, result)
        array[:] = 7.0
        assert result[0] == -1.0
        gate.set()
        backend.get_device().sync_device()
    np.testing.assert_array_equal(result, np.full(N, 7.0))
    backend.machine.unsafe_cleanup()


def test_EZ_4_absence_is_soft_for_transfers_and_an_error_for_what_makes_or_needs(machine, root, pair):
    x, here, there = pair
    absent = vector("absent")
    assert here.from_host(absent, np.zeros(N)) is False
    assert here.to_host(absent, np.zeros(N)) is False
    assert device_to_device(absent, dst=here, src=there) is None
    for refused in (
        lambda: here.init_from_host(x, np.zeros(N)),
        lambda: here.with_tensor(x),
        lambda: init_from_device(x, dst=here, src=there),
        lambda: init_from_device(absent, dst=here, src=there),
    ):
        with pytest.raises(LinkError):
            refused()


def test_EZ_7_fresh_buffers_hold_zeros_where_code_may_see_them(machine, root):
    x, y, out = vector("x"), vector("y"), vector("out")
    routine = root.link(code(machine, summed(out, x, y)))
    for tensor in (x, y):
        np.testing.assert_array_equal(value(routine.context, tensor), np.zeros(N))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, out), np.zeros(N))
    counted = routine.context.link(code(machine, incremented(vector("z"))))
    counted.schedule()
    np.testing.assert_array_equal(value(counted.context, next(iter(counted.outputs))), np.ones(N))


def test_EZ_7_memory_that_was_used_before_is_zeroed_again(machine, root):
    x = vector("x", 1000)
    made = code(machine, incremented(x))
    for _ in range(10):
        routine = root.link(made)
        routine.schedule()
        np.testing.assert_array_equal(value(routine.context, x), np.ones(1000))
        routine.context.finalize()


def test_EZ_10_contexts_are_values(machine, root):
    x, y = vector("x"), vector("y")
    parent = root.init_from_host(x, FILLED)
    one, two = (parent.link(code(machine, summed(y, x))) for _ in range(2))
    assert one.context.buffers[x] is two.context.buffers[x] is parent.buffers[x]
    assert one.context.buffers[y] is not two.context.buffers[y]
    assert set(parent.buffers) == {x}
    assert set(root.buffers) == set()
    unrelated = Context(root.device).init_from_host(x, np.zeros(N))
    one.schedule()
    assert not value(unrelated, x).any()
    np.testing.assert_array_equal(value(one.context, y), FILLED)


def test_EZ_10_what_a_context_holds_cannot_be_changed(root):
    x = vector("x")
    context = root.init_from_host(x, FILLED)
    with pytest.raises(AttributeError):
        context.buffers = {}
    with pytest.raises(TypeError):
        context.buffers[x] = None
    assert context.buffers[x].location == Location(0, 0)


def test_EZ_13_scheduling_does_not_wait_for_the_work():
    backend, x = fresh_backend("llvm"), vector("x")
    routine = backend.init().init_from_host(x, FILLED).link(code(backend, incremented(x)))
    with held_up(routine.context.stream) as gate:
        events = [routine.schedule() for _ in range(100)]
        assert not any(event.is_done() for event in events)
        gate.set()
    np.testing.assert_array_equal(value(routine.context, x), FILLED + 100)
    assert all(event.is_done() for event in events)
    backend.machine.unsafe_cleanup()


def test_WK_5_two_of_a_batch_share_the_buffer_of_a_new_tensor(machine, root):
    x, y = vector("x"), vector("y")
    context, (write, read) = root.link_batch(
        [code(machine, incremented(x)), code(machine, summed(y, x, name="read"))]
    )
    assert write.context.buffers[x] is read.context.buffers[x] is context.buffers[x]
    write.schedule()
    read.schedule()
    np.testing.assert_array_equal(value(context, y), np.ones(N))
    assert (write.name, read.name) == ("incremented", "read")


def test_WK_6_compiling_for_one_context_changes_nothing_for_its_siblings(machine, root):
    x, y = vector("x"), vector("y")
    before = root.frontier
    for _ in range(2):
        root.link(code(machine, summed(y, x)))
    assert root.frontier is before
    assert not before.writer


def test_WK_7_a_source_is_not_overwritten_before_it_was_read(machine, pair):
    x, here, there = pair
    increment = there.link(code(machine, incremented(x)))
    copy = device_to_device(x, dst=here, src=increment.context)
    read, results = copy.context, []
    for _ in range(30):
        copy.schedule()
        results.append(np.empty(N))
        read.to_host(x, results[-1])
        increment.schedule()
    here.stream.await_()
    assert [result[0] for result in results] == [1.0 + n for n in range(30)]


def test_WK_11_constants_live_as_long_as_a_context_has_them(machine, root, device):
    x, y, out = vector("x"), vector("y"), vector("out")
    routine = root.link(code(machine, summed(out, x, y)), constants={x: FILLED})
    assert device.memory_by_purpose()[Purpose.CONSTANT] == 8 * N
    assert device.memory_by_purpose()[Purpose.WORKING] == 64 + 8 * N
    del routine
    assert device.get_used_memory() == 0


def test_WK_13_a_parents_memory_lives_as_long_as_its_children(machine, root, device):
    x, y = vector("x"), vector("y")
    parent = root.init_from_host(x, FILLED)
    child = parent.link(code(machine, summed(y, x)))
    parent.finalize()
    with pytest.raises(DeviceError, match="was finalized"):
        parent.to_host(x, np.empty(N))
    child.schedule()
    np.testing.assert_array_equal(value(child.context, y), FILLED)
    assert device.get_used_memory() == 2 * 8 * N
    child.context.finalize()
    assert device.get_used_memory() == 0


def test_WK_21_a_reduction_of_several_sources_uses_a_merge_buffer_for_each(machine, device, other):
    x, width = vector("x"), 4
    sources = [Context(other).init_from_host(x, np.full(N, 10.0**n)) for n in range(width)]
    here = Context(device).init_from_host(x, np.zeros(N))
    transfers = []
    for slot, source in enumerate(sources):
        transfers.append(device_to_device(x, dst=here, src=source, into=MergeUse.COPY, slot=slot))
        here = transfers[-1].context
    merge = here.link(code(machine, merged(x, slots=width)))
    for transfer in transfers:
        transfer.schedule()
    merge.schedule()
    np.testing.assert_array_equal(value(merge.context, x), np.full(N, 1111.0))
    assert device.memory_by_purpose()[Purpose.MERGE] == width * 8 * N


def test_WK_23_memory_reports_equal_counts_by_hand(machine, root, device, other):
    x, y, out = vector("x", 100), vector("y", 50), vector("out", 100)
    there = Context(other).init_from_host(x, np.zeros(100))
    context = root.init_from_host(x, np.zeros(100))
    device_to_device(x, dst=context, src=there, into=MergeUse.COPY).schedule()
    routine = context.link(code(machine, summed(out, x, vector("z", 100))), constants={})
    held = routine.context.init_from_host(y, np.zeros(50))
    device.await_()
    slab = 13 * 64 + 800
    assert device.memory_by_purpose() == {
        Purpose.WORKING: 800 + slab + 400,
        Purpose.CONSTANT: 0,
        Purpose.MERGE: 800,
        Purpose.WORKSPACE: 0,
        Purpose.ARRAY: 0,
    }
    assert device.get_used_memory() == sum(device.memory_by_purpose().values())
    assert other.get_used_memory() == 800
    held.finalize()
    assert device.memory_by_purpose()[Purpose.WORKING] == 800 + slab
