"""Section 14 of the seeds (rows BE): what is the same for every driver."""

from __future__ import annotations

import numpy as np
import pytest
from small_programs import N, add, code, incremented, merged, summed, value, vector

from arrayjit.backends import BACKENDS
from arrayjit.compile import compile
from arrayjit.devices import (
    Context,
    MergeUse,
    Purpose,
    compile_batch,
    device_to_device,
    fresh_backend,
    init_from_device,
)
from arrayjit.errors import LinkError, MergeMismatch, UnknownTarget
from arrayjit.ir.assign import ArrayParam, Assign, Computation
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Const, Load
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.tensor import Tensor


class Program:
    """A computation with tensors that it expects to find."""

    def __init__(self, computation, *prior):
        self.computation = computation
        self.prior = frozenset(prior)


def test_BE_1_the_stages_of_each_of_a_batch_are_dumped_in_order(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYJIT_DUMP", str(tmp_path))
    x = vector("x")
    compile_batch(machine, [incremented(x), incremented(x, 2.0)], names=["one", "two"], shared=True)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["one-0", "two-0"]
    stages = sorted(file.name for file in (tmp_path / "one-0").iterdir())
    assert stages[0].startswith("000-")
    assert len(stages) > 3


@pytest.mark.parametrize("shared", [False, True])
def test_BE_2_what_code_relies_on_must_be_in_the_context(machine, root, target, shared):
    x, y = vector("x"), vector("y")
    made = compile(machine, Program(summed(y, x), x), shared=shared)
    with pytest.raises(
        LinkError, match=rf"'summed' relies on x, which the context on {target}:0 lacks\n.*fix: link into"
    ):
        root.link(made)
    routine = root.init_from_host(x, np.ones(N)).link(made)
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, y), np.ones(N))


def test_BE_2_what_comes_with_its_values_need_not_be_there(machine, root):
    x, y = vector("x"), vector("y")
    made = compile(machine, Program(summed(y, x), x))
    routine = root.link(made, initial={x: np.ones(N)})
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, y), np.ones(N))


def test_BE_3_a_plain_computation_relies_on_nothing(machine, root):
    x = vector("x")
    assert compile(machine, incremented(x)).prior == frozenset()
    assert x in root.link(compile(machine, incremented(x))).context.buffers


@pytest.mark.parametrize("into", [MergeUse.COPY, MergeUse.STREAMING])
def test_BE_4_BE_6_linking_checks_what_the_merge_buffer_will_hold(machine, root, other, into):
    x, y = vector("x"), vector("y")
    made = code(machine, merged(x))
    with pytest.raises(MergeMismatch, match=r"'merged' reads x from merge buffer 0.* nothing"):
        root.link(made)
    there = Context(other).init_from_host(y, np.zeros(N))
    transfer = device_to_device(y, dst=root, src=there, into=into)
    with pytest.raises(MergeMismatch, match=r"reads x from merge buffer 0 of \S+, which will hold y"):
        transfer.context.link(made)
    transfer.context.link(code(machine, incremented(x)))


@pytest.mark.parametrize("into", [MergeUse.COPY, MergeUse.STREAMING])
def test_BE_5_scheduling_checks_what_the_merge_buffer_holds(machine, root, other, into):
    x, y = vector("x"), vector("y")
    there = Context(other).init_from_host(x, np.ones(N)).init_from_host(y, np.ones(N))
    transfer = device_to_device(x, dst=root, src=there, into=into)
    routine = transfer.context.link(code(machine, merged(x)))
    with pytest.raises(MergeMismatch, match=r"reads x from merge buffer 0 of \S+, which holds nothing"):
        routine.schedule()
    transfer.schedule()
    routine.schedule()
    device_to_device(y, dst=root, src=there, into=into).schedule()
    with pytest.raises(MergeMismatch, match=r"reads x from merge buffer 0 of \S+, which holds y"):
        routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.ones(N))


def test_BE_7_BE_8_a_transfer_waits_for_the_last_writer_on_the_other_device(machine, device, other):
    x = vector("x")
    here, there = (Context(place).init_from_host(x, np.zeros(N)) for place in (device, other))
    increment = there.link(code(machine, incremented(x)))
    for _ in range(5):
        last = increment.schedule()
    copy = device_to_device(x, dst=here, src=increment.context)
    event = copy.schedule()
    assert event.clock.get(last.queue, 0) == last.number
    np.testing.assert_array_equal(value(here, x), np.full(N, 5.0))


def test_BE_7_no_wait_is_told_within_one_stream(machine, root, monkeypatch):
    x = vector("x")
    routine = root.init_from_host(x, np.zeros(N)).link(code(machine, incremented(x)))
    told = []
    monkeypatch.setattr(root.stream.queue, "wait_for", lambda *args: told.append(args))
    routine.schedule()
    routine.schedule()
    assert told == []


def test_BE_9_from_host_fills_what_is_there(root):
    x, y = vector("x"), vector("y")
    context = root.init_from_host(x, np.zeros(N))
    assert context.from_host(x, np.full(N, 3.0))
    assert not context.from_host(y, np.full(N, 3.0))
    np.testing.assert_array_equal(value(context, x), np.full(N, 3.0))


def test_BE_10_init_from_host_adds_a_tensor(root, target):
    x = vector("x")
    context = root.init_from_host(x, np.arange(N, dtype=float))
    np.testing.assert_array_equal(value(context, x), np.arange(N))
    with pytest.raises(LinkError, match=r"x: f64\[8\] already has a buffer"):
        context.init_from_host(x, np.zeros(N))


def test_BE_11_to_host_reads_what_is_there(root):
    x, y = vector("x"), vector("y")
    context = root.init_from_host(x, np.ones(N))
    assert not context.to_host(y, np.empty(N))
    result = np.empty(N)
    assert context.to_host(x, result)
    context.device.await_()
    np.testing.assert_array_equal(result, np.ones(N))


def test_BE_12_a_transfer_is_a_routine_that_does_nothing_until_it_is_scheduled(device, other):
    x = vector("x")
    here = Context(device).init_from_host(x, np.zeros(N))
    there = Context(other).init_from_host(x, np.ones(N))
    transfer = device_to_device(x, dst=here, src=there)
    assert not value(here, x).any()
    assert transfer.inputs == transfer.outputs == {x}
    assert transfer.context.parent is here
    transfer.schedule()
    np.testing.assert_array_equal(value(here, x), np.ones(N))


def test_BE_12_a_merge_transfer_has_no_outputs_and_says_what_will_be_held(device, other):
    x = vector("x")
    here = Context(device)
    there = Context(other).init_from_host(x, np.ones(N))
    transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY)
    assert (transfer.inputs, transfer.outputs) == ({x}, frozenset())
    assert transfer.context.merges == {0: x}
    filled = device_to_device(
        x, dst=transfer.context.init_from_host(x, np.zeros(N)), src=there, into=MergeUse.NO
    )
    assert filled.context.merges == {0: x}


def test_BE_12_there_is_no_transfer_of_what_is_not_there_or_is_the_same(device, other):
    x, y = vector("x"), vector("y")
    here = Context(device).init_from_host(x, np.zeros(N))
    there = Context(other).init_from_host(y, np.zeros(N))
    assert device_to_device(x, dst=here, src=there) is None
    assert device_to_device(x, dst=here, src=there, into=MergeUse.COPY) is None
    assert device_to_device(y, dst=here, src=there) is None
    assert device_to_device(x, dst=here.child(), src=here) is None


def test_BE_13_init_from_device_copies_at_once_and_wants_the_tensor_absent(device, other, target):
    x = vector("x")
    there = Context(other).init_from_host(x, np.ones(N))
    here = init_from_device(x, dst=Context(device), src=there)
    np.testing.assert_array_equal(value(here, x), np.ones(N))
    with pytest.raises(LinkError, match="already has a buffer"):
        init_from_device(x, dst=here, src=there)
    with pytest.raises(LinkError, match="not in the context to copy from"):
        init_from_device(vector("y"), dst=here, src=there)


def test_BE_14_one_event_is_recorded_for_all_that_a_routine_writes(machine, root):
    x, y, out = vector("x"), vector("y"), vector("out")
    routine = root.link(code(machine, summed(out, x, y)))
    event = routine.schedule()
    buffers = routine.context.buffers
    assert buffers[out].writer is event
    assert list(buffers[x].readers.values()) == list(buffers[y].readers.values()) == [event]


def test_BE_15_BE_17_what_a_link_adds_is_in_one_slab_of_the_context(machine, root, device):
    x, y, out = vector("x", 3), vector("y", 3), vector("out", 3)
    context = root.init_from_host(x, np.zeros(3))
    assert device.memory_by_purpose()[Purpose.WORKING] == 24
    context = context.link(code(machine, summed(out, x, y))).context
    assert device.memory_by_purpose()[Purpose.WORKING] == 24 + 64 + 24
    assert context.buffers[y].pool is context.buffers[out].pool
    assert context.buffers[x].pool is not context.buffers[out].pool


def test_BE_17_a_constant_has_one_copy_on_a_device_for_all_contexts(machine, device, root):
    x, y, out = vector("x"), vector("y"), vector("out")
    made = code(machine, summed(out, x, y))
    one = root.link(made, constants={x: np.ones(N)})
    two = root.link(made, constants={x: np.ones(N)})
    assert one.context.buffers[x] is two.context.buffers[x]
    assert one.context.buffers[y] is not two.context.buffers[y]
    assert device.memory_by_purpose()[Purpose.CONSTANT] == 8 * N
    for routine in (one, two):
        routine.schedule()
        np.testing.assert_array_equal(value(routine.context, out), np.ones(N))


def test_BE_17_only_what_nobody_else_initialises_is_zeroed(machine, root, monkeypatch):
    x, y, out = vector("x"), vector("y"), vector("out")
    given = root.init_from_host(x, np.ones(N))
    zeroed = []
    driver, zero = root.device.driver, root.device.driver.memset_zero
    monkeypatch.setattr(driver, "memset_zero", lambda *args: (zeroed.append(args[1:]), zero(*args)))
    context = given.link(code(machine, summed(out, x, y))).context
    assert zeroed == [(context.buffers[y].offset, 8 * N)]
    given.link(code(machine, summed(out, x, y)), initial={y: np.ones(N)})
    given.link(code(machine, summed(out, x, y)), constants={y: np.ones(N)})
    assert len(zeroed) == 1


def test_BE_18_a_merge_buffer_grows_and_queued_work_keeps_the_old_one(machine, device, other):
    small, large = vector("small", 4), vector("large", 400)
    here = Context(device).init_from_host(small, np.zeros(4)).init_from_host(large, np.zeros(400))
    there = Context(other).init_from_host(small, np.ones(4)).init_from_host(large, np.ones(400))
    for x in (small, large, small):
        transfer = device_to_device(x, dst=here, src=there, into=MergeUse.COPY)
        merge = transfer.context.link(code(machine, merged(x)))
        transfer.schedule()
        merge.schedule()
    np.testing.assert_array_equal(value(here, small), np.full(4, 2.0))
    np.testing.assert_array_equal(value(here, large), np.ones(400))
    assert device.memory_by_purpose()[Purpose.MERGE] == 3200


def test_BE_19_BE_20_a_backend_takes_computations_and_gives_routines(fresh):
    x = vector("x")
    backend = fresh()
    routine = backend.init().link(compile(backend, incremented(x)))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.ones(N))


def test_BE_21_a_context_is_finalized_once_after_its_work(machine, root, device):
    x, y = vector("x"), vector("y")
    parent = root.init_from_host(x, np.zeros(N))
    routine = parent.link(code(machine, summed(y, x)), constants={})
    routine.schedule()
    routine.context.finalize()
    assert device.is_idle()
    assert device.get_used_memory() == 8 * N
    routine.context.finalize()
    np.testing.assert_array_equal(value(parent, x), np.zeros(N))
    parent.finalize()
    assert device.get_used_memory() == 0


def test_BE_22_a_fresh_backend_shares_nothing(fresh, target):
    one, two = fresh(target.upper()), fresh()
    assert one.name == target
    assert one.driver is not two.driver
    assert one.get_device() is not two.get_device()
    x = vector("x")
    one.init().link(code(one, incremented(x)))
    kept = one.init().init_from_host(x, np.zeros(N))
    assert two.get_device().get_used_memory() == 0
    assert one.get_device().get_used_memory() == kept.buffers[x].nbytes
    with pytest.raises(UnknownTarget, match=f"unknown target 'abacus'.*\n.*{', '.join(BACKENDS)}"):
        fresh_backend("abacus")


def test_BE_23_nothing_is_copied_to_or_from_the_host_unasked(machine, root, monkeypatch):
    x = vector("x")
    array = np.zeros(N)
    routine = root.init_from_host(x, array).link(code(machine, incremented(x)))
    routine.schedule().sync()
    np.testing.assert_array_equal(array, np.zeros(N))
    array[:] = 9.0
    np.testing.assert_array_equal(value(routine.context, x), np.ones(N))


def test_BE_24_linking_checks_first_and_changes_nothing_when_it_refuses(machine, root, device, target):
    x, y = vector("x"), vector("y")
    made = compile(machine, Program(merged(x), y))
    with pytest.raises(LinkError, match="relies on y"):
        root.link(made)
    with pytest.raises(MergeMismatch, match="reads x"):
        root.init_from_host(y, np.zeros(N)).link(made)
    assert device.get_used_memory() == 0
    assert root.ledger.entries() == ()


def test_BE_17_temporaries_share_one_workspace(machine, root, device):
    """Lives that do not overlap take the same bytes, and so do routines one after another."""
    size = 3000
    x, out = vector("x", size), vector("out", size)
    hidden = [Tensor.of(f"hidden_{number}", (size,), F64) for number in range(4)]
    body, last = [], x
    for each in (*hidden, out):
        i = Symbol("i")
        mirrored = (Affine.of(size - 1) - i,)
        term = add(Load(last, (Affine.of(i),)), Load(last, mirrored))
        body.append(Assign(((i, Affine.of(size)),), each, (Affine.of(i),), add(term, Const(1.0, F64))))
        last = each
    program = Computation("chain", (ArrayParam(x, "read"), ArrayParam(out, "write")), tuple(body))
    made = code(machine, program)
    routines = [root.init_from_host(x, np.ones(size)).link(made) for _ in range(2)]
    for routine in routines:
        routine.schedule()
    expected = np.ones(size)
    for _ in range(5):
        expected = expected + expected[::-1] + 1
    for routine in routines:
        np.testing.assert_array_equal(value(routine.context, out), expected)
    assert made.arena_bytes <= 2 * (8 * size + 64)
    assert device.memory_by_purpose()[Purpose.WORKSPACE] == made.arena_bytes
