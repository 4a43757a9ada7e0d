"""Section 15 of the seeds (rows SC): tasks, queues, their threads, and errors of what they run."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from small_programs import (
    Failed,
    N,
    code,
    fail,
    guarded,
    held_up,
    incremented,
    set_when_awaited,
    value,
    vector,
)

from arrayjit.devices import Context, fresh_backend
from arrayjit.errors import DeviceError
from arrayjit.runtime.queues import CAPACITY, InlineQueue, WorkerQueue


@pytest.fixture
def worker():
    queue = WorkerQueue("a worker", capacity=4)
    yield queue
    queue.close()


def put(queue, task, label="some"):
    queue.put(task, label)
    queue.flush(queue.done + 1 if isinstance(queue, InlineQueue) else 0)


def test_SC_1_what_is_queued_keeps_the_memory_and_code_that_it_needs(machine, device):
    """Everything is dropped while the work waits; it still runs on memory that is its own."""
    x, result = vector("x"), np.zeros(N)
    routine = Context(device).init_from_host(x, np.ones(N)).link(code(machine, incremented(x)))
    forgotten = weakref.ref(routine.context)
    if machine.name == "llvm":
        with held_up(device.stream) as gate:
            routine.schedule()
            routine.context.to_host(x, result)
            del routine
            gc.collect()
            assert forgotten() is not None
            gate.set()
            device.await_()
    else:
        routine.schedule()
        routine.context.to_host(x, result)
        del routine
    device.await_()
    gc.collect()
    assert forgotten() is None
    np.testing.assert_array_equal(result, np.full(N, 2.0))
    assert device.get_used_memory() == 0


@pytest.mark.parametrize("kind", [InlineQueue, WorkerQueue])
def test_SC_1_what_a_task_keeps_is_gone_before_the_task_is_over(kind):
    """Who has waited finds memory free, and no thread that is about to free it."""
    queue, gate, over = kind("queue"), threading.Event(), []

    class Kept:
        def __del__(self):
            over.append(queue.done)

    queue.put(gate.wait, "gate")
    queue.put(lambda kept=Kept(): None, "keeps")  # noqa: B008
    gate.set()
    queue.wait(2)
    assert over == [1]
    queue.close()


def test_SC_2_an_error_says_which_task_of_which_stream_raised_it(device, target):
    with pytest.raises(DeviceError, match=rf"Failed: as the test asked\n  on {target}:0, in 'my task'"):
        device.stream.submit(fail, "my task").sync()


def test_SC_3_each_stream_has_one_thread_of_its_own():
    backend = fresh_backend("llvm", devices=2)
    seen = {}
    streams = [s for device in backend.machine.devices() for s in (device.stream, device.new_stream())]
    for stream in streams * 3:
        stream.submit(lambda name=stream.name: seen.setdefault(name, set()).add(threading.get_ident()), "who")
    for device in backend.machine.devices():
        device.await_()
    assert set(seen) == {"llvm:0", "llvm:0 stream 1", "llvm:1", "llvm:1 stream 1"}
    assert all(len(threads) == 1 for threads in seen.values())
    assert len(set.union(*seen.values())) == 4
    backend.machine.unsafe_cleanup()


def test_SC_3_work_is_done_in_the_order_of_submission(device):
    order = []
    for number in range(200):
        device.stream.submit(lambda number=number: order.append(number), "some")
    device.await_()
    assert order == list(range(200))


def test_SC_4_a_queue_that_is_full_is_drained_by_who_submits():
    backend = fresh_backend("llvm")
    stream = backend.get_device().stream
    with held_up(stream) as gate:
        for _ in range(CAPACITY - 1):
            stream.submit(lambda: None, "some")
        assert stream.queue.done == 0
        set_when_awaited(gate, stream.queue)
        event = stream.submit(lambda: None, "one too many")
        assert gate.is_set()
        assert event.is_done()
    backend.machine.unsafe_cleanup()


def test_SC_4_a_full_queue_does_not_stop_others_from_submitting(worker):
    backend = fresh_backend("llvm", devices=2)
    full, free = (device.stream for device in backend.machine.devices())
    with held_up(full) as gate:
        for _ in range(CAPACITY - 1):
            full.submit(lambda: None, "some")
        waiting = threading.Thread(target=full.submit, args=(lambda: None, "one too many"))
        waiting.start()
        free.submit(lambda: None, "another device's").sync()
        assert waiting.is_alive()
        gate.set()
        waiting.join()
    backend.machine.unsafe_cleanup()


def test_SC_5_a_sleeping_worker_wakes_up_for_every_task(worker):
    for number in range(1, 201):
        worker.put(lambda: None, "some")
        worker.wait(number)
    assert worker.done == 200


def test_SC_5_many_threads_wait_for_different_tasks(worker):
    """None misses the moment in which what it waits for is over."""
    worker.capacity = 1000
    for _ in range(50):
        worker.put(lambda: time.sleep(0.0005), "some")
    seen = []
    threads = [
        threading.Thread(target=lambda n=n: (worker.wait(n), seen.append(worker.done >= n)))
        for n in range(1, 51)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [True] * 50


def test_SC_6_an_error_surfaces_at_the_next_schedule_or_await_and_only_once(machine, device, target):
    x = vector("x")
    routine = Context(device).init_from_host(x, np.full(N, -1.0)).link(code(machine, guarded(x)))
    with pytest.raises(IndexError, match="a negative cell") as caught:
        (routine.schedule(), device.await_())
    assert f"on {target}:0, in 'guarded'" in str(caught.value)
    assert __file__.replace("test_schedulers", "small_programs") in str(caught.value)
    routine.context.from_host(x, np.zeros(N))
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, x), np.ones(N))


def test_SC_6_it_surfaces_at_the_next_schedule(machine):
    backend = fresh_backend("llvm")
    stream = backend.get_device().stream
    event = stream.submit(fail, "first")
    while not event.is_done():
        time.sleep(0.001)
    ran = []
    with pytest.raises(DeviceError, match="as the test asked"):
        stream.submit(lambda: ran.append(1), "second")
    stream.submit(lambda: ran.append(2), "third").sync()
    assert ran == [2]
    backend.machine.unsafe_cleanup()


def test_SC_6_what_was_queued_behind_an_error_is_dropped(worker):
    ran, gate = [], threading.Event()
    worker.put(gate.wait, "gate")
    worker.put(fail, "fails")
    worker.put(lambda: ran.append(1), "behind")
    gate.set()
    with pytest.raises(DeviceError, match="in 'fails'"):
        worker.wait(3)
    assert worker.done == 3
    worker.put(lambda: ran.append(2), "later")
    worker.wait(4)
    assert ran == [2]


def test_SC_6_SC_7_any_thread_may_submit_and_wait(machine, device):
    x, size = vector("x"), 50
    routine = Context(device).init_from_host(x, np.zeros(N)).link(code(machine, incremented(x)))
    threads = [
        threading.Thread(target=lambda: [routine.schedule().sync() for _ in range(size)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(value(routine.context, x), np.full(N, 4.0 * size))


def test_SC_7_threads_do_not_wait_for_one_another_on_devices_that_work_at_once(fresh, target):
    """Two host threads, each inside a task of a device of its own at the same time."""
    backend = fresh(devices=2) if target == "llvm" else fresh()
    first = backend.get_device()
    second = backend.machine.new_virtual_device(first)
    meeting = threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda s=device.stream: s.submit(lambda: meeting.wait(60), "meet").sync())
        for device in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not meeting.broken


def test_SC_8_waiting_for_an_event_blocks_the_other_worker_and_not_the_host():
    backend = fresh_backend("llvm", devices=2)
    one, two = (device.stream for device in backend.machine.devices())
    with held_up(one) as gate:
        two.wait_for(one.record())
        event = two.submit(lambda: None, "behind the gate")
        assert not event.is_done()
        assert not two.is_idle()
        gate.set()
        event.sync()
        assert one.is_idle()
    backend.machine.unsafe_cleanup()


def test_SC_9_there_are_as_many_cpu_devices_as_asked_for():
    backend = fresh_backend("llvm", devices=4)
    assert [device.name for device in backend.machine.devices()] == [f"llvm:{n}" for n in range(4)]
    assert len({device.stream.queue for device in backend.machine.devices()}) == 4
    assert fresh_backend("sync_llvm").num_devices() == 1
    backend.machine.unsafe_cleanup()


def threads_named(name):
    return {thread for thread in threading.enumerate() if thread.name == name}


def test_SC_10_cleanup_finishes_the_work_and_ends_the_threads():
    backend = fresh_backend("llvm")
    device, done = backend.get_device(), []
    stream = device.new_stream()
    before = threads_named(stream.name)
    for _ in range(20):
        stream.submit(lambda: (time.sleep(0.001), done.append(1)), "slow")
    begun = threads_named(stream.name) - before
    assert len(begun) == 1
    backend.machine.unsafe_cleanup()
    assert len(done) == 20
    assert not begun & threads_named(stream.name)


def test_SC_10_a_stream_that_is_dropped_ends_its_thread_after_its_work():
    backend = fresh_backend("llvm")
    device, done = backend.get_device(), []
    device.stream.submit(lambda: None, "some")
    stream = device.new_stream()
    thread_of = []
    event = stream.submit(lambda: (thread_of.append(threading.current_thread()), time.sleep(0.05)), "slow")
    device.stream.wait_for(event)
    device.stream.submit(lambda: done.append(thread_of), "behind")
    del stream
    gc.collect()
    device.await_()
    thread_of[0].join(60)
    assert not thread_of[0].is_alive()
    assert done == [thread_of]
    assert event.is_done()
    assert device.streams == (device.stream,)
    backend.machine.unsafe_cleanup()


@pytest.mark.parametrize("name", ["sync_llvm", "interp"])
def test_SC_11_a_synchronous_device_works_on_the_calling_thread(name):
    backend = fresh_backend(name)
    device, who = backend.get_device(), []
    event = device.stream.submit(lambda: who.append(threading.current_thread()), "who")
    assert event.is_done()
    assert device.is_idle()
    assert who == [threading.current_thread()]
    virtual = [backend.machine.new_virtual_device(device) for _ in range(3)]
    assert [each.subordinal for each in virtual] == [1, 2, 3]


@pytest.mark.parametrize("kind", [InlineQueue, WorkerQueue])
def test_a_wait_is_kept_although_the_task_before_it_failed(kind):
    """So a task being over always means that whatever it had to follow is over."""
    other, queue, start, gate = WorkerQueue("other"), kind("queue"), threading.Event(), threading.Event()
    other.put(gate.wait, "gate")
    queue.put(start.wait, "start")
    queue.put(fail, "fails")
    queue.wait_for(other, 1)
    queue.put(lambda: None, "dropped")
    start.set()
    set_when_awaited(gate, other)
    with pytest.raises(DeviceError, match="as the test asked"):
        queue.wait(3)
    assert other.done == 1
    for each in (queue, other):
        each.close()


@pytest.mark.parametrize("kind", [InlineQueue, WorkerQueue])
def test_a_task_that_is_refused_leaves_nothing_to_wait_for(kind):
    """Whoever submits anew says anew what it has to follow."""
    other, queue, ran = WorkerQueue("other"), kind("queue"), []
    for each in (other, queue):
        each.put(fail, "fails")
    assert queue.outcome(1)() is not None
    queue.wait_for(other, 1)
    with pytest.raises(DeviceError, match="on queue, in 'fails'"):
        queue.put(lambda: ran.append(1), "refused")
    queue.put(lambda: ran.append(2), "new")
    queue.wait(2)
    assert ran == [2]
    for each in (queue, other):
        each.close()


def test_who_waits_for_what_was_dropped_is_dropped_too_even_after_the_error_was_raised():
    """The failed queue starts anew before the other one gets to its wait."""
    first, second = WorkerQueue("first"), WorkerQueue("second")
    busy, gate, ran = threading.Event(), threading.Event(), []
    second.put(busy.wait, "busy")
    first.put(gate.wait, "gate")
    first.put(fail, "fails")
    second.wait_for(first, 2)
    second.put(lambda: ran.append(1), "depends on it")
    gate.set()
    with pytest.raises(DeviceError, match="in 'fails'"):
        first.wait(2)
    first.put(lambda: ran.append(2), "new")
    first.wait(3)
    busy.set()
    with pytest.raises(DeviceError, match="on first, in 'fails'"):
        second.wait(2)
    assert ran == [2]
    second.put(lambda: ran.append(3), "new")
    second.wait(3)
    assert ran == [2, 3]
    for queue in (first, second):
        queue.close()


def test_several_hosts_that_wait_all_hear_of_the_error():
    queue, gate, heard = WorkerQueue("queue"), threading.Event(), []

    def wait():
        try:
            queue.wait(2)
        except DeviceError:
            heard.append(1)

    queue.put(gate.wait, "gate")
    queue.put(fail, "fails")
    threads = [threading.Thread(target=wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    while queue._watchers < 5:
        time.sleep(0.001)
    gate.set()
    for thread in threads:
        thread.join(60)
    assert heard == [1] * 5
    queue.put(lambda: None, "new")
    queue.wait(3)
    queue.close()


def test_an_error_is_what_was_raised_where_it_is_the_users():
    queue = InlineQueue("queue")
    queue.put(fail, "fails")
    with pytest.raises(DeviceError) as caught:
        queue.flush(1)
    assert isinstance(caught.value.__cause__, Failed)
    queue.close()
    with pytest.raises(DeviceError, match="queue is closed"):
        queue.put(fail, "fails")
