"""Bad input, on every driver: what is refused, what the error says, and that the device works afterwards."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from small_programs import (
    WORKERS,
    N,
    code,
    fail,
    guarded,
    held_up,
    incremented,
    merged,
    set_when_awaited,
    stamped,
    summed,
    value,
    vector,
)

from arrayjit.devices import Context, MergeUse, Purpose, Stream, device_to_device, fresh_backend
from arrayjit.errors import (
    BackendUnavailable,
    DeviceError,
    LinkError,
    MergeMismatch,
    NumberError,
    OutOfMemory,
    UnknownTarget,
    UnsupportedError,
    UserError,
)

FILLED = np.arange(N, dtype=float)


@pytest.fixture
def works(machine, device):
    """`works()` checks that the device still does what it should."""

    def check(device=device):
        x = vector("x")
        routine = Context(device).init_from_host(x, FILLED).link(code(machine, incremented(x)))
        routine.schedule()
        np.testing.assert_array_equal(value(routine.context, x), FILLED + 1)

    return check


def refused(error, act, *words):
    """The act raises the error, whose text has all the words and a fix, in at most 15 lines."""
    with pytest.raises(error) as caught:
        act()
    text = str(caught.value)
    for word in (*words, "fix: "):
        assert word in text
    assert len(text.splitlines()) <= 15
    return caught.value


def test_a_merge_mismatch_at_link_names_the_device_and_both_tensors(machine, root, other, target, works):
    x, y = vector("grad"), vector("loss")
    there = Context(other).init_from_host(y, FILLED)
    transfer = device_to_device(y, dst=root, src=there, into=MergeUse.COPY)
    made = code(machine, merged(x))
    refused(MergeMismatch, lambda: transfer.context.link(made), "'merged'", "grad", "loss", f"{target}:0")
    works()


def test_a_merge_mismatch_at_schedule_names_the_device_and_both_tensors(machine, root, other, target, works):
    x, y = vector("grad"), vector("loss")
    there = Context(other).init_from_host(y, FILLED).init_from_host(x, FILLED)
    transfer = device_to_device(x, dst=root, src=there, into=MergeUse.COPY)
    routine = transfer.context.link(code(machine, merged(x)))
    refused(MergeMismatch, routine.schedule, "'merged'", "grad", "nothing", f"{target}:0")
    device_to_device(y, dst=root, src=there, into=MergeUse.COPY).schedule()
    refused(MergeMismatch, routine.schedule, "'merged'", "grad", "loss", f"{target}:0")
    works()


def test_code_that_writes_what_it_streams_from_is_refused(machine, root, target, works):
    x = vector("x")
    context = root.init_from_host(x, FILLED)
    transfer = device_to_device(x, dst=context, src=context, into=MergeUse.STREAMING)
    routine = transfer.context.link(code(machine, merged(x)))
    transfer.schedule()
    refused(LinkError, routine.schedule, "'merged' writes x", "MergeUse.COPY")
    works()


def test_a_stream_of_another_device_is_refused(device, other, target):
    refused(
        LinkError, lambda: Context(device, other.stream), f"{other.name} is not a stream of {device.name}"
    )


def test_a_buffer_of_another_device_is_refused(device, other):
    x = vector("x")
    foreign = Context(other).init_from_host(x, FILLED).buffers[x]
    refused(LinkError, lambda: Context(device, buffers={x: foreign}), "x", device.name, "init_from_device")


@pytest.mark.parametrize("bad", [np.zeros(N, np.float32), np.zeros(N + 1), np.zeros((N, 1))])
def test_arrays_of_another_shape_or_dtype_are_refused(root, bad, works):
    x = vector("x")
    context = root.init_from_host(x, FILLED)
    for act in (
        lambda: context.from_host(x, bad),
        lambda: context.to_host(x, bad),
        lambda: root.init_from_host(x, bad),
    ):
        refused(LinkError, act, "x: f64[8]", f"{bad.dtype} {bad.shape}", "float64 (8,)")
    works()
    assert root.device.memory_by_purpose()[Purpose.WORKING] == 8 * N


def test_what_is_no_array_is_refused(root):
    x = vector("x")
    refused(LinkError, lambda: root.init_from_host(x, [0.0] * N), "x: f64[8]", "a list", "float64 (8,)")


def test_results_cannot_be_read_into_an_array_with_gaps(root):
    x = vector("x")
    context = root.init_from_host(x, FILLED)
    refused(LinkError, lambda: context.to_host(x, np.zeros(2 * N)[::2]), "C-ordered", "np.empty")


def test_results_cannot_be_read_into_an_array_that_is_read_only(root):
    x = vector("x")
    context, result = root.init_from_host(x, FILLED), np.zeros(N)
    result.flags.writeable = False
    refused(LinkError, lambda: context.to_host(x, result), "x: f64[8]", "read-only")
    assert not result.any()


def test_initial_values_of_what_the_code_does_not_add_are_refused(machine, root, target):
    x, y = vector("x"), vector("y")
    made = code(machine, incremented(x))
    context = root.init_from_host(x, FILLED)
    for given in ({"initial": {y: FILLED}}, {"constants": {y: FILLED}}):
        refused(LinkError, lambda given=given: root.link(made, **given), "'incremented'", "y", f"{target}:0")
    refused(LinkError, lambda: context.link(made, initial={x: FILLED}), "x", "from_host")
    refused(LinkError, lambda: root.link(made, initial={x: np.zeros(2)}), "x: f64[8]", "float64 (2,)")


def test_constants_are_not_written_and_have_one_value(machine, root, target, works):
    x, out = vector("x"), vector("out")
    refused(
        LinkError,
        lambda: root.link(code(machine, incremented(x)), constants={x: FILLED}),
        "x is a constant",
        f"{target}:0",
    )
    made = code(machine, summed(out, x))
    context = root.link(made, constants={x: FILLED}).context
    refused(LinkError, lambda: context.from_host(x, FILLED), "x is a constant")
    refused(LinkError, lambda: context.link(code(machine, incremented(x))), "x is a constant")
    refused(
        LinkError, lambda: root.link(made, constants={x: FILLED + 1}), "constant x", "other values", "initial"
    )
    works()


@pytest.mark.parametrize("number", [-1, 100, 2**40])
def test_a_binding_out_of_range_is_refused(machine, root, number, works):
    step, program = stamped(vector("out"))
    routine = root.link(code(machine, program))
    routine.bindings[step] = number
    refused(LinkError, routine.schedule, f"step = {number}", "'stamped'", "from 0 to below 100")
    works()


def test_a_binding_that_is_not_set_or_no_integer_is_refused(machine, root, works):
    step, program = stamped(vector("out"))
    routine = root.link(code(machine, program))
    refused(LinkError, routine.schedule, "'stamped' needs step", "bindings[step]")
    for number in (1.5, "3", None):
        routine.bindings[step] = number
        refused(LinkError, routine.schedule, "step", "'stamped'")
    routine.bindings[step] = np.int32(7)
    routine.schedule()
    works()


def test_a_binding_that_the_routine_does_not_have_is_refused(machine, root):
    (step, program), (unknown, _) = stamped(vector("out")), stamped(vector("out"))
    routine = root.link(code(machine, program))
    routine.bindings[step] = 1
    routine.bindings[unknown] = 1
    refused(LinkError, routine.schedule, "'stamped'", "step")


@pytest.mark.parametrize("ordinal", [-1, 2, 99])
def test_a_device_that_is_not_there_is_refused(machine, target, ordinal):
    refused(BackendUnavailable, lambda: machine.get_device(ordinal), target, f"no device {ordinal}", "below")


def test_options_of_fresh_backends_are_checked(fresh, target):
    refused(UnknownTarget, lambda: fresh_backend("abacus"), "abacus", target)
    refused(
        UnsupportedError, lambda: fresh(colour=3), f"target '{target}' has no option 'colour'", "memory_limit"
    )
    refused(NumberError, lambda: fresh(memory_limit=-1), target, "-1")
    for devices in (0, -2):
        error = NumberError if target in (*WORKERS, "cuda-sim") else UnsupportedError
        refused(error, lambda devices=devices: fresh(devices=devices), target, "devices")


def test_a_finalized_context_is_refused(machine, root, other, target, works):
    x = vector("x")
    context = root.init_from_host(x, FILLED)
    routine = context.link(code(machine, incremented(x)))
    transfer = device_to_device(x, dst=Context(other).init_from_host(x, FILLED), src=routine.context)
    routine.context.finalize()
    for act in (
        routine.schedule,
        routine.run,
        transfer.schedule,
        lambda: routine.context.link(code(machine, incremented(x))),
        lambda: routine.context.from_host(x, FILLED),
        lambda: routine.context.to_host(x, np.empty(N)),
        lambda: routine.context.init_from_host(vector("y"), FILLED),
        lambda: device_to_device(x, dst=root, src=routine.context, into=MergeUse.COPY),
    ):
        refused(DeviceError, act, f"the context on {target}:0 was finalized")
    np.testing.assert_array_equal(value(context, x), FILLED)
    works()


def test_what_streams_from_a_finalized_context_is_refused(machine, root, other, works):
    x = vector("x")
    there = Context(other).init_from_host(x, FILLED)
    transfer = device_to_device(x, dst=root, src=there, into=MergeUse.STREAMING)
    merge = transfer.context.link(code(machine, merged(x)))
    transfer.schedule()
    there.finalize()
    refused(DeviceError, merge.schedule, f"the context on {other.name} was finalized")
    works()


def test_a_device_that_was_closed_is_refused(machine, device, root, target):
    x = vector("x")
    routine = root.init_from_host(x, FILLED).link(code(machine, incremented(x)))
    stream = device.stream
    machine.machine.unsafe_cleanup()
    for act in (
        routine.schedule,
        device.new_stream,
        lambda: device.load(code(machine, incremented(x))),
        lambda: device.alloc_pool(8, Purpose.WORKING),
        lambda: machine.machine.new_virtual_device(device),
        lambda: stream.submit(fail, "some"),
    ):
        refused(DeviceError, act, f"{target}:0 is closed", "reinitialize()")


def test_WK_24_out_of_memory_names_the_device_and_the_tensors_and_what_is_in_use(fresh, target):
    backend = fresh(memory_limit=1000)
    device, x, large = backend.get_device(), vector("x"), vector("large", 1000)
    held = Context(device).init_from_host(x, FILLED)
    made = code(backend, summed(vector("out", 1000), large))
    words = (f"{target}:0 has no room for the 16,000 bytes of large, out of 'summed'", "in use: working 64")
    error = refused(OutOfMemory, lambda: held.link(made), *words)
    assert isinstance(error, MemoryError)
    assert device.get_used_memory() == 8 * N
    routine = held.link(code(backend, incremented(x)))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), FILLED + 1)


def test_memory_that_the_machine_does_not_have_is_refused(machine, root, works, target):
    petabytes = vector("petabytes", 2**50)
    refused(OutOfMemory, lambda: root.with_tensor(petabytes), f"{target}:0", "petabytes")
    works()


def test_before_memory_runs_out_what_nobody_uses_is_given_back(fresh):
    """A context in a circle of references is garbage, but nobody has collected it."""
    backend, x = fresh(memory_limit=1000), vector("x", 100)
    context = Context(backend.get_device()).init_from_host(x, np.zeros(100))
    circle = [context]
    circle.append(circle)
    del context, circle
    again = Context(backend.get_device()).init_from_host(x, np.ones(100))
    np.testing.assert_array_equal(value(again, x), np.ones(100))


def surfaced(act):
    """What the act raises, now or at the next await."""
    with pytest.raises(UserError) as caught:
        act()
    return str(caught.value)


def test_a_task_that_raises_says_where_and_the_device_works_afterwards(device, target, works):
    def act():
        device.stream.submit(fail, "my task")
        device.await_()

    text = surfaced(act)
    assert "Failed: as the test asked" in text
    assert f"on {target}:0, in 'my task'" in text
    device.await_()
    works()


def test_a_program_that_raises_says_where_and_the_device_works_afterwards(machine, root, target, works):
    x = vector("x")
    routine = root.init_from_host(x, FILLED - 2).link(code(machine, guarded(x)))

    def act():
        routine.schedule()
        routine.context.device.await_()

    assert f"on {target}:0, in 'guarded'" in surfaced(act)
    works()


def test_what_depends_on_a_failure_elsewhere_is_dropped_and_raises_too(machine, device, other, target):
    x, y = vector("x"), vector("y")
    bad = Context(device).init_from_host(x, FILLED - 2).link(code(machine, guarded(x)))
    here = Context(other).init_from_host(x, FILLED).init_from_host(y, FILLED)
    copy = device_to_device(x, dst=here, src=bad.context)
    use = copy.context.link(code(machine, incremented(x)))
    free = here.link(code(machine, incremented(y)))

    gate = threading.Event()
    if target not in WORKERS:
        gate.set()
    device.stream.submit(gate.wait, "gate")

    def act():
        bad.schedule()
        copy.schedule()
        use.schedule()
        gate.set()
        device.await_()

    assert f"on {target}:0, in 'guarded'" in surfaced(act)
    if target in WORKERS:
        assert f"on {target}:0, in 'guarded'" in surfaced(other.await_)
        np.testing.assert_array_equal(value(here, x), FILLED)
    free.schedule()
    np.testing.assert_array_equal(value(here, y), FILLED + 1)


def test_WK_8_a_host_that_is_waiting_already_hears_of_the_failure():
    backend = fresh_backend("llvm")
    stream, gate = backend.get_device().stream, threading.Event()
    stream.submit(gate.wait, "gate")
    event = stream.submit(fail, "my task")
    set_when_awaited(gate, stream.queue)
    with pytest.raises(DeviceError, match="on llvm:0, in 'my task'"):
        event.sync()
    backend.machine.unsafe_cleanup()


@contextmanager
def ctrl_c_while_waiting(begun: threading.Event) -> Iterator[None]:
    """The block is interrupted once the task that sets the event has begun and the main thread waits, for it
    or in it. A lock that is just about to be waited for does not hear of a signal, so it is sent until it is
    heard, which it is once."""
    main, heard = threading.main_thread().ident, []

    def hear(number: int, frame: object) -> None:
        if not heard:
            heard.append(number)
            raise KeyboardInterrupt

    def press() -> None:
        begun.wait()
        while not heard:
            if sys._current_frames()[main].f_code is threading.Condition.wait.__code__:
                signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, hear)
    presses = threading.Thread(target=press)
    presses.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        heard.append(0)
        begun.set()
        presses.join()
        signal.signal(signal.SIGINT, before)


def held(begun: threading.Event, gate: threading.Event) -> Callable[[], None]:
    """A task that says that it has begun, and lasts until the gate is open."""

    def task() -> None:
        begun.set()
        gate.wait(60)

    return task


@pytest.mark.parametrize("how", ["await", "sync", "read"])
def test_ctrl_c_while_awaiting_leaves_everything_as_it_was(machine, root, device, target, how, works):
    x = vector("x")
    routine = root.init_from_host(x, FILLED).link(code(machine, incremented(x)))
    begun, gate, result = threading.Event(), threading.Event(), np.empty(N)
    wait = {
        "await": device.await_,
        "sync": lambda: device.stream.record().sync(),
        "read": lambda: value(routine.context, x),
    }[how]
    with ctrl_c_while_waiting(begun):
        (device.stream.submit(held(begun, gate), "gate"), wait())
    gate.set()
    routine.schedule()
    routine.context.to_host(x, result)
    device.await_()
    np.testing.assert_array_equal(result, FILLED + 1)
    works()


def test_ctrl_c_while_finalizing_frees_nothing_that_is_in_use():
    backend, x, begun, gate = fresh_backend("llvm"), vector("x"), threading.Event(), threading.Event()
    context = backend.init().init_from_host(x, FILLED)
    with ctrl_c_while_waiting(begun):
        context.stream.submit(held(begun, gate), "gate", writes=(context.buffers[x],))
        context.finalize()
    assert backend.get_device().get_used_memory() == 8 * N
    gate.set()
    np.testing.assert_array_equal(value(context, x), FILLED)
    context.finalize()
    assert backend.get_device().get_used_memory() == 0
    backend.machine.unsafe_cleanup()


def test_finalize_waits_for_all_work_although_some_of_it_fails():
    """Memory is not given back under work that is still running."""
    backend = fresh_backend("llvm")
    device, x, y, late = backend.get_device(), vector("x"), vector("y"), []
    context = Context(device).init_from_host(x, FILLED).init_from_host(y, FILLED)
    slow = device.new_stream()
    context.stream.submit(fail, "fails", writes=(context.buffers[x],))
    slow.submit(
        lambda: (time.sleep(0.1), late.append(device.get_used_memory())), "slow", reads=(context.buffers[y],)
    )
    with pytest.raises(DeviceError, match="in 'fails'"):
        context.finalize()
    assert late == [2 * 8 * N]
    assert device.get_used_memory() == 8 * N
    backend.machine.unsafe_cleanup()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_WK_8_a_worker_that_was_killed_is_reported_everywhere_and_reinitialize_helps():
    backend = fresh_backend("llvm", devices=2)
    device, other = backend.machine.devices()
    x = vector("x")
    context = Context(device).init_from_host(x, FILLED)
    device.await_()
    held_up_elsewhere = other.new_stream()
    with held_up(held_up_elsewhere):
        device.stream.wait_for(held_up_elsewhere.record())
        pending = device.stream.submit(lambda: None, "never", writes=(context.buffers[x],))
        kill_between_tasks(device.stream)
        other.stream.wait_for(pending)
        waiting = other.stream.submit(lambda: None, "behind")
    thread = device.stream.queue._thread
    thread.join(60)
    assert not thread.is_alive()
    for act in (pending.sync, device.await_, waiting.sync, lambda: device.stream.submit(fail, "more").sync()):
        refused(DeviceError, act, "worker of llvm:0 is dead", "reinitialize")
    other.await_()
    backend.machine.reinitialize()
    again = backend.init().init_from_host(x, FILLED)
    np.testing.assert_array_equal(value(again, x), FILLED)
    backend.machine.unsafe_cleanup()


def kill_between_tasks(stream: Stream) -> None:
    """The exception strikes where the queue's own code runs: its thread is in no task, but waits for one or
    for another stream."""
    thread = ctypes.c_ulong(stream.queue._thread.ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SystemExit))
