"""How devices, threads and memory end: forks, the interpreter's exit, garbage, and the same work for ever."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import weakref

import numpy as np
import pytest
from small_programs import N, code, held_up, incremented, stamped, summed, value, vector

from arrayjit.devices import Context, fresh_backend
from arrayjit.errors import DeviceError
from arrayjit.runtime.queues import HostQueue
from arrayjit.runtime.stream import MANY_STREAMS

FILLED = np.arange(N, dtype=float)


def run_script(body, *arguments):
    """Run Python code in a process of its own, which has to end by itself, without a word of complaint."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(body), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


START = """
import os, sys, time
import numpy as np
from arrayjit.devices import *
from small_programs import *
backend = fresh_backend(sys.argv[1])
device = backend.get_device()
x = vector("x")
routine = backend.init().init_from_host(x, np.zeros(N)).link(code(backend, incremented(x)))
"""


def test_a_child_uses_the_backend_that_its_parent_had_work_queued_on(target):
    """Both find the work that was submitted before the fork done, and go their own ways."""
    report = run_script(
        START
        + """
for _ in range(5):
    device.stream.submit(lambda: time.sleep(0.01), "slow")
    routine.schedule()
child = os.fork()
for _ in range(10 if child else 20):
    routine.schedule()
result = value(routine.context, x)
if child == 0:
    another = device.new_stream()
    y = vector("y")
    more = Context(device, another).init_from_host(y, np.zeros(N)).link(code(backend, incremented(y)))
    more.schedule()
    assert value(more.context, y)[0] == 1
    print("child", result[0], flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", result[0])
""",
        target,
    )
    assert report == "child 25.0\nparent 15.0\n"


def test_a_child_hears_of_what_failed_before_the_fork():
    report = run_script(
        START
        + """
device.stream.submit(fail, "my task")
child = os.fork()
if child:
    os.waitpid(child, 0)
try:
    device.await_()
except RuntimeError as error:
    print(error.what, flush=True)
""",
        "llvm",
    )
    assert report == 2 * "Failed: as the test asked\n"


def test_multiprocessing_by_fork_works_in_a_process_that_used_a_device(target):
    report = run_script(
        START
        + """
import multiprocessing
routine.schedule()
def work(number):
    for _ in range(number):
        routine.schedule()
    return value(routine.context, x)[0]
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(sorted(pool.map(work, [3, 3], chunksize=1))[0])
""",
        target,
    )
    assert report == "4.0\n"


def test_the_interpreter_ends_after_the_work_that_is_queued(target):
    report = run_script(
        START
        + """
for number in range(20):
    device.stream.submit(lambda number=number: (time.sleep(0.002), print(number)), "slow")
    routine.schedule()
""",
        target,
    )
    assert report.split() == [str(number) for number in range(20)]


def test_the_interpreter_ends_although_workers_are_idle_or_have_failed(target):
    run_script(
        START
        + """
streams = [device.new_stream() for _ in range(5)]
for stream in streams:
    stream.submit(lambda: None, "some")
device.await_()
try:
    streams[0].submit(fail, "fails")
except RuntimeError:
    pass
""",
        target,
    )


def test_the_interpreter_ends_on_an_exception_with_work_queued():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(START) + "routine.schedule(); raise SystemExit(3)", "llvm"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    )
    assert (done.returncode, done.stderr) == (3, "")


def test_a_context_that_is_dropped_gives_its_memory_back(machine, device):
    x, y = vector("x"), vector("y")
    parent = Context(device).init_from_host(x, FILLED)
    routine = parent.link(code(machine, summed(y, x)))
    routine.schedule()
    device.await_()
    assert device.get_used_memory() == 2 * 8 * N
    del routine
    assert device.get_used_memory() == 8 * N
    del parent
    assert device.get_used_memory() == 0


def test_a_child_keeps_what_it_has_of_a_context_that_is_dropped(machine, device):
    x, y = vector("x"), vector("y")
    routine = Context(device).init_from_host(x, FILLED).link(code(machine, summed(y, x)))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, y), FILLED)
    assert device.get_used_memory() == 2 * 8 * N


def test_backends_devices_and_streams_that_are_dropped_are_gone(target):
    """With their threads, and although what they did is in the books of others."""
    before = set(threading.enumerate())
    backend = fresh_backend(target)
    device = backend.get_device()
    x = vector("x")
    stream = device.new_stream()
    context = Context(device).init_from_host(x, FILLED)
    stream.submit(lambda: None, "reads", reads=(context.buffers[x],))
    context.from_host(x, FILLED)
    forgotten = [weakref.ref(each) for each in (stream, device, backend.machine)]
    device.await_()
    del stream
    assert forgotten[0]() is None
    del backend, device, context
    gc.collect()
    assert [each() for each in forgotten] == [None] * 3
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert set(threading.enumerate()) <= before


def test_streams_that_come_and_go_leave_nothing_behind(target):
    backend = fresh_backend(target)
    device, x = backend.get_device(), vector("x")
    context = Context(device).init_from_host(x, FILLED)
    routine = context.link(code(backend, incremented(x)))

    def use_one():
        stream = device.new_stream()
        stream.submit(lambda: None, "reads", reads=(context.buffers[x],))
        routine.schedule().sync()

    def objects():
        gc.collect()
        return sum(isinstance(each, HostQueue) for each in gc.get_objects())

    for _ in range(MANY_STREAMS):
        use_one()
    before = objects()
    for _ in range(8 * MANY_STREAMS):
        use_one()
    assert objects() < 2 * before
    assert len(context.buffers[x].events()) <= MANY_STREAMS + 1
    assert len(device.stream.record().clock) <= MANY_STREAMS
    backend.machine.unsafe_cleanup()


@pytest.mark.alone
def test_routines_that_come_and_go_leave_nothing_behind(machine, root):
    x = vector("x")
    made = code(machine, incremented(x))

    def use_one():
        routine = root.link(made)
        routine.schedule().sync()

    def objects():
        gc.collect()
        return len(gc.get_objects())

    for _ in range(3):
        use_one()
    before = objects()
    for _ in range(20):
        use_one()
    assert objects() - before < 20
    assert root.device.get_used_memory() == 0


@pytest.mark.alone
def test_a_hundred_thousand_schedules_take_no_more_memory_than_a_thousand(target):
    """Counted in objects and in traced bytes; the queue fills up many times."""
    if target == "cuda-sim":
        schedules, warm = 600, 200
    elif target == "interp":
        schedules, warm = 2_000, 500
    else:
        schedules, warm = 100_000, 10_000
    backend = fresh_backend(target)
    device, x, out = backend.get_device(), vector("x"), vector("out")
    step, program = stamped(out)
    plain = Context(device).init_from_host(x, np.zeros(N)).link(code(backend, incremented(x)))
    bound = plain.context.link(code(backend, program))

    def repeat(times):
        for number in range(times // 2):
            plain.schedule()
            bound.bindings[step] = number % 100
            bound.schedule()
        device.await_()

    def objects():
        gc.collect()
        return len(gc.get_objects())

    def traced():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    repeat(warm)
    counted = objects()
    tracemalloc.start()
    repeat(warm // 10)
    before = traced()
    repeat(schedules // 10)
    assert traced() - before < 20_000
    tracemalloc.stop()
    repeat(schedules - schedules // 10)
    assert objects() - counted < 50
    times = warm // 2 + warm // 20 + schedules // 20 + (schedules - schedules // 10) // 2
    np.testing.assert_array_equal(value(plain.context, x), np.full(N, float(times)))
    backend.machine.unsafe_cleanup()


def test_unsafe_cleanup_may_be_repeated_and_initialize_starts_again(fresh):
    backend = fresh()
    backend.get_device().stream.submit(lambda: None, "some")
    for _ in range(2):
        backend.machine.unsafe_cleanup()
    backend.machine.initialize()
    backend.machine.initialize()
    assert backend.machine.is_initialized()
    assert backend.get_device().is_idle()


def test_WK_24_cleanup_while_other_threads_submit_stops_them_cleanly(target):
    backend = fresh_backend(target)
    device, x, stopped = backend.get_device(), vector("x"), []
    routine = Context(device).init_from_host(x, np.zeros(N)).link(code(backend, incremented(x)))

    def submit():
        try:
            while True:
                routine.schedule()
        except DeviceError as error:
            stopped.append(error.what)

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    backend.machine.unsafe_cleanup()
    for thread in threads:
        thread.join(60)
    assert stopped == [f"{device.name} is closed"] * 3


@pytest.mark.parametrize("kind", ["routine", "context", "stream"])
def test_what_is_dropped_while_it_is_queued_is_done_all_the_same(kind):
    backend = fresh_backend("llvm")
    device, x, result = backend.get_device(), vector("x"), np.zeros(N)
    stream = device.new_stream()
    routine = Context(device, stream).init_from_host(x, FILLED).link(code(backend, incremented(x)))
    context = routine.context
    with held_up(stream) as gate:
        routine.schedule()
        context.to_host(x, result)
        event = stream.record()
        kept = {"routine": (context, stream), "context": (stream,), "stream": ()}[kind]
        del routine, context, stream
        gc.collect()
        gate.set()
    event.sync()
    assert len(kept) < 3
    np.testing.assert_array_equal(result, FILLED + 1)
    backend.machine.unsafe_cleanup()
