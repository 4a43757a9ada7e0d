"""Devices of the CPU work at the same time: two routines meet inside native code."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest
from small_programs import N, code, incremented, value, vector

from arrayjit.devices import Code, Context, fresh_backend
from arrayjit.runtime.queues import InlineQueue

MEETING = """
declare i32 @sem_post(ptr)
declare i32 @sem_timedwait(ptr, ptr)

define i32 @meeting_kernel(ptr %table) {{
  %posted = call i32 @sem_post(ptr inttoptr (i64 {own} to ptr))
  %status = call i32 @sem_timedwait(ptr inttoptr (i64 {other} to ptr), ptr inttoptr (i64 {deadline} to ptr))
  %is_late = icmp ne i32 %status, 0
  %result = zext i1 %is_late to i32
  store i32 %result, ptr inttoptr (i64 {result} to ptr)
  ret i32 0
}}
"""
"""Each of two routines says that it is inside, and waits there for the other one to say so."""


def meeting(target):
    """The code of both, and the array with a 0 for each that met the other."""
    libc = ctypes.CDLL(None)
    semaphores = [ctypes.create_string_buffer(64) for _ in range(2)]
    for semaphore in semaphores:
        assert libc.sem_init(semaphore, 0, 0) == 0
    own, other = (ctypes.addressof(semaphore) for semaphore in semaphores)
    deadline = np.array([time.time() + 60 if target == "llvm" else 0, 0], np.int64)
    results = np.full(2, -1, np.int32)
    codes = []
    for number, (mine, yours) in enumerate([(own, other), (other, own)]):
        text = MEETING.format(
            own=mine, other=yours, deadline=deadline.ctypes.data, result=results[number:].ctypes.data
        )
        codes.append(Code(target, "meeting", text, ()))
    return codes, results, (semaphores, deadline)


@pytest.mark.parametrize("where", ["two devices", "two streams of one device"])
def test_two_routines_are_inside_native_code_at_the_same_time(where):
    backend = fresh_backend("llvm", devices=2)
    first, second = backend.machine.devices()
    places = [(first, first.stream), (second, second.stream)]
    if where != "two devices":
        places[1] = (first, first.new_stream())
    codes, results, _kept = meeting("llvm")
    for place, made in zip(places, codes, strict=True):
        Context(*place).link(made).schedule()
    for _, stream in places:
        stream.await_()
    np.testing.assert_array_equal(results, [0, 0])
    backend.machine.unsafe_cleanup()


def test_a_routine_alone_meets_nobody():
    """On one thread the same routines come one after the other: the test above can fail."""
    backend = fresh_backend("sync_llvm")
    codes, results, _kept = meeting("sync_llvm")
    for made in codes:
        backend.init().link(made).schedule()
    np.testing.assert_array_equal(results, [1, 0])


@pytest.mark.parametrize("target", ["llvm", "sync_llvm"])
def test_the_interpreter_goes_on_while_native_code_runs(target):
    """Who holds its lock in a routine would stop every other thread."""
    backend = fresh_backend(target)
    codes, results, _kept = meeting("llvm")
    routines = [Context(backend.get_device()).link(Code(target, c.name, c.payload, ())) for c in codes[:1]]
    other = fresh_backend("sync_llvm").init().link(Code("sync_llvm", "meeting", codes[1].payload, ()))
    thread = threading.Thread(target=lambda: (routines[0].schedule(), backend.get_device().await_()))
    thread.start()
    other.schedule()
    thread.join(60)
    np.testing.assert_array_equal(results, [0, 0])
    backend.machine.unsafe_cleanup()


def test_a_schedule_is_one_call_of_its_queue(target, machine, root, monkeypatch):
    """What it costs is counted, not timed: one task put, no wait told, nothing waited for."""
    x = vector("x")
    routine = root.init_from_host(x, np.zeros(N)).link(code(machine, incremented(x)))
    routine.schedule().sync()
    queue, calls = root.stream.queue, []
    for name in ("put", "wait_for", "wait", "outcome"):
        known = getattr(queue, name)
        monkeypatch.setattr(
            queue, name, lambda *args, name=name, known=known: (calls.append(name), known(*args))[1]
        )
    for _ in range(10):
        routine.schedule()
    expected = ["put", "wait"] if isinstance(queue, InlineQueue) else ["put"]
    assert calls == expected * 10
    monkeypatch.undo()
    np.testing.assert_array_equal(value(routine.context, x), np.full(N, 11.0))
