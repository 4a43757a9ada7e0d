"""A pool runs every iteration of a loop once, in chunks, on threads that nobody notices."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from arrayjit.runtime.threads import _FIELDS, ThreadPool

NOTE = """
declare i32 @usleep(i32)
define void @note(ptr %context, i64 %first, i64 %last, ptr %scratch) {
entry:
  %n = atomicrmw add ptr %context, i64 1 seq_cst
  %chunk = getelementptr [24 x i8], ptr %context, i64 %n
  %f1 = getelementptr i8, ptr %chunk, i64 16
  %f2 = getelementptr i8, ptr %chunk, i64 24
  %f3 = getelementptr i8, ptr %chunk, i64 32
  store i64 %first, ptr %f1
  store i64 %last, ptr %f2
  store ptr %scratch, ptr %f3
  %where = getelementptr i8, ptr %context, i64 8
  br label %look
look:
  %looks = phi i64 [ 0, %entry ], [ %more, %wait ]
  %begun = load atomic i64, ptr %context seq_cst, align 8
  %company = load atomic i64, ptr %where seq_cst, align 8
  %before = udiv i64 %n, %company
  %groups = add i64 %before, 1
  %wanted = mul i64 %groups, %company
  %complete = icmp uge i64 %begun, %wanted
  %late = icmp uge i64 %looks, 600000
  %over = or i1 %complete, %late
  br i1 %over, label %leave, label %wait
wait:
  %more = add i64 %looks, 1
  %r = call i32 @usleep(i32 100)
  br label %look
leave:
  ret void
}
"""
"""The loop's function: the context is a number of chunks, how many keep company, then of each chunk its first
and last iteration and its scratch memory. A chunk ends when as many as keep company have begun, so that these
are on threads of their own, whatever else the machine does; after a minute it ends anyway, for a test that
fails to come to an end."""

NOBODY = 1 << 40
"""As company, it comes never: the chunks last until the context says otherwise."""

RUN = ctypes.CFUNCTYPE(
    None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)


@dataclass(frozen=True)
class Chunk:
    first: int
    last: int
    scratch: int


def loaded():
    """The engine that keeps the function, and its address."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(NOTE), machine)
    engine.finalize_object()
    return engine, engine.get_function_address("note")


@pytest.fixture(scope="module")
def engine():
    return loaded()


@pytest.fixture
def note(engine):
    return engine[1]


@pytest.fixture
def pool():
    pool = ThreadPool(3)
    yield pool
    pool.close()


def blank(trips, grain, company=1):
    """The context of a loop before it runs."""
    return (ctypes.c_int64 * (2 + 3 * (trips // grain + 2)))(0, company)


def run(pool, note, trips, grain, own=0, scratch=0, company=1, context=None):
    """The chunks of one loop, in the order of their iterations."""
    context = context or blank(trips, grain, company)
    function = RUN(ctypes.c_void_p.from_address(pool.address).value)
    function(pool.address, note, ctypes.addressof(context), trips, grain, own, scratch)
    chunks = [Chunk(*context[2 + 3 * n : 5 + 3 * n]) for n in range(context[0])]
    return sorted(chunks, key=lambda chunk: chunk.first)


def threads_of_this_process():
    return set(os.listdir("/proc/self/task"))


def ended(threads):
    """Whether none of them is left; one that was joined is listed until the kernel has done with it."""
    deadline = time.monotonic() + 10
    while threads & threads_of_this_process():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("trips", [2, 3, 63, 64, 65, 1000])
@pytest.mark.parametrize("grain", [1, 2, 16, 64])
def test_every_iteration_belongs_to_one_chunk_of_a_grain_at_least(note, threads, trips, grain):
    pool = ThreadPool(threads)
    chunks = run(pool, note, trips, grain)
    pool.close()
    assert [chunk.first for chunk in chunks] == [0, *(chunk.last for chunk in chunks[:-1])]
    assert chunks[-1].last == trips
    sizes = [chunk.last - chunk.first for chunk in chunks]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(grain, trips)


@pytest.mark.parametrize(
    ("trips", "grain", "chunks"),
    [(1000, 1, 8), (1000, 130, 6), (25, 8, 2), (25, 12, 2), (25, 13, 1), (25, 30, 1)],
)
def test_two_threads_get_as_many_chunks_each(note, trips, grain, chunks):
    pool = ThreadPool(2)
    assert len(run(pool, note, trips, grain)) == chunks
    pool.close()


def test_the_chunks_of_a_loop_are_always_the_same(pool, note):
    first = [chunk.first for chunk in run(pool, note, 1000, 7)]
    assert all([chunk.first for chunk in run(pool, note, 1000, 7)] == first for _ in range(50))


def test_a_thread_begins_with_the_same_part_of_every_loop(note):
    """One that is late would lose chunks to the other, so each chunk waits for one of the other's."""
    pool = ThreadPool(2)
    own = ctypes.create_string_buffer(64)
    address = ctypes.addressof(own)
    owners = [
        [chunk.scratch == address for chunk in run(pool, note, 192, 12, address, 64, company=2)]
        for _ in range(50)
    ]
    pool.close()
    assert owners == [[False] * 4 + [True] * 4] * 50


def test_threads_help(pool, note):
    own = ctypes.create_string_buffer(64)
    address = ctypes.addressof(own)
    assert len({chunk.scratch for chunk in run(pool, note, 12, 1, address, 64, company=3)}) == 3


def test_scratch_memory_is_each_thread_s_own_and_begins_on_a_cache_line(pool, note):
    own = ctypes.create_string_buffer(4096)
    address = ctypes.addressof(own)
    for size in (64, 4096, 128):
        for _ in range(5):
            starts = sorted({c.scratch for c in run(pool, note, 12, 1, address, size, company=3)} - {address})
            assert len(starts) == 2
            assert all(start % 64 == 0 for start in starts)
            assert all(b - a >= size for a, b in pairwise(starts))


def test_without_memory_for_the_threads_the_caller_does_all(pool, note):
    assert run(pool, note, 12, 1, own=64, scratch=2**61) == [Chunk(0, 12, 64)]
    assert len(run(pool, note, 12, 1)) > 1


def test_a_loop_while_another_call_has_the_pool_runs_on_its_own_thread(pool, note):
    chunks, context = [], blank(12, 1, company=NOBODY)
    caller = threading.Thread(target=lambda: chunks.extend(run(pool, note, 12, 1, context=context)))
    caller.start()
    until_begun(context)
    assert len(run(pool, note, 12, 1)) == 1
    context[1] = 1
    caller.join()
    assert len(chunks) == 12
    assert len(run(pool, note, 12, 1)) == 12


def until_begun(context):
    """Some chunk of the context's loop has begun."""
    while not context[0]:
        time.sleep(0.001)


def test_many_calls_at_once(pool, note):
    def work(failed):
        for trips in range(2, 300):
            if sum(chunk.last - chunk.first for chunk in run(pool, note, trips, 1)) != trips:
                failed.append(trips)

    failed = []
    callers = [threading.Thread(target=work, args=(failed,)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failed == []


def test_one_thread_needs_no_pool():
    assert ThreadPool(1).address == 0


def test_threads_begin_with_the_first_loop_and_end_with_the_pool(note):
    before = threads_of_this_process()
    pool = ThreadPool(4)
    assert threads_of_this_process() <= before
    run(pool, note, 12, 1)
    begun = threads_of_this_process() - before
    assert len(begun) == 3
    pool.close()
    assert ended(begun)
    pool.close()


def test_a_loop_after_the_end_runs_on_its_own_thread(note):
    pool = ThreadPool(4)
    pool.close()
    assert run(pool, note, 12, 1) == [Chunk(0, 12, 0)]


def test_a_pool_that_nobody_has_any_more_ends(note):
    before = threads_of_this_process()
    pool = ThreadPool(4)
    run(pool, note, 12, 1)
    begun = threads_of_this_process() - before
    assert len(begun) == 3
    del pool
    gc.collect()
    assert ended(begun)


def test_a_pool_that_was_never_used_closes():
    ThreadPool(4).close()


def test_sleeping_threads_end_too(note):
    before = threads_of_this_process()
    pool = ThreadPool(3)
    run(pool, note, 12, 1)
    begun = threads_of_this_process() - before
    assert len(begun) == 2
    until_all_sleep(pool)
    pool.close()
    assert ended(begun)


def test_sleeping_threads_wake(pool, note):
    for _ in range(5):
        run(pool, note, 12, 1)
        until_all_sleep(pool)
        assert sum(chunk.last - chunk.first for chunk in run(pool, note, 100, 1)) == 100


def until_all_sleep(pool):
    sleepers = ctypes.c_int32.from_address(pool.address + _FIELDS["SLEEPERS"])
    while sleepers.value < pool.threads - 1:
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("trips", "grain", "woken"), [(100, 10, False), (159, 10, False), (160, 10, True), (2, 1, True)]
)
def test_sleeping_threads_are_woken_for_much_work_only(note, trips, grain, woken):
    pool = ThreadPool(2)
    run(pool, note, 12, 1)
    until_all_sleep(pool)
    assert (len(run(pool, note, trips, grain)) > 1) == woken
    pool.close()


def test_or_for_many_loops_that_went_by(note):
    pool = ThreadPool(2)
    run(pool, note, 12, 1)
    until_all_sleep(pool)
    assert [len(run(pool, note, 60, 10)) for _ in range(3)] == [1, 1, 6]
    pool.close()


def test_who_looks_for_work_gives_way_to_the_caller():
    (more,) = script("""
import time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
pool.close()
pool = ThreadPool(2)
own, both = time.thread_time(), time.process_time()
while time.thread_time() < own + 0.2:
    run(pool, address, 12, 1)
    sum(range(20_000))
print((time.process_time() - both) / (time.thread_time() - own))
pool.close()
""")
    assert float(more) < 1.4


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="there is no other core, or no choice"
)
def test_a_thread_that_sleeps_leaves_the_caller_its_core():
    printed = script("""
import time
pool.close()
cores = sorted(os.sched_getaffinity(0))
before = threads_of_this_process()
pool = ThreadPool(2)
run(pool, address, 12, 1)
(worker,) = map(int, threads_of_this_process() - before)

def until(condition):
    while not condition():
        time.sleep(0.0001)

for core in cores[:2]:  # on the second one the thread may be, asleep
    os.sched_setaffinity(0, {core})
    run(pool, address, 12, 1)
    until(lambda: os.sched_getaffinity(worker) == set(cores) - {core})
until(lambda: run(pool, address, 12, 1, company=2) and os.sched_getaffinity(worker) == set(cores))
pool.close()
""")
    assert printed == []


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="there is no other core, or no choice"
)
def test_a_thread_that_looks_for_work_leaves_the_caller_its_core():
    printed = script("""
import time
from arrayjit.runtime import threads
pool.close()
threads.SPINS = 1 << 40  # it never sleeps
threads._native.cache_clear()
cores = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cores)})
before = threads_of_this_process()
pool = ThreadPool(2)
run(pool, address, 12, 1)
(worker,) = map(int, threads_of_this_process() - before)
os.sched_setaffinity(worker, cores)

def core():
    with open(f"/proc/self/task/{worker}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[36])

for _ in range(5000):
    if core() != min(cores) and os.sched_getaffinity(worker) == cores:
        break
    time.sleep(0.001)
else:
    print("it stays")
pool.close()
""")
    assert printed == []


def test_signals_are_for_other_threads(note):
    before = set(os.listdir("/proc/self/task"))
    pool = ThreadPool(2)
    run(pool, note, 12, 1)
    (worker,) = set(os.listdir("/proc/self/task")) - before
    status = Path("/proc/self/task", worker, "status").read_text()
    blocked = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk"))
    pool.close()
    assert blocked & 0b10  # SIGINT


CHILD = """
import ctypes, os, sys
sys.path[:0] = {path!r}
from test_thread_pool import NOBODY, ThreadPool, blank, loaded, run, threads_of_this_process, until_begun

engine, address = loaded()
pool = ThreadPool(3)
run(pool, address, 12, 1)
{rest}
"""


def script(rest):
    """What a process of its own prints that has a pool with threads."""
    text = CHILD.format(path=[str(Path(__file__).parent), *sys.path], rest=rest)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_forked_child_makes_threads_of_its_own():
    printed = script("""
child = os.fork()
if child == 0:
    print(len(threads_of_this_process()), flush=True)
    covered = sum(chunk.last - chunk.first for chunk in run(pool, address, 100, 1))
    print(covered, len(threads_of_this_process()), flush=True)
    pool.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(sum(chunk.last - chunk.first for chunk in run(pool, address, 100, 1)))
""")
    assert printed == ["1", "100", "3", "100"]


@pytest.mark.parametrize("rest", ["", "import time; time.sleep(0.1)", "del pool", "os._exit(0)"])
def test_the_interpreter_ends_whatever_the_threads_do(rest):
    assert script(rest) == []


def test_a_child_may_be_forked_in_the_middle_of_a_loop():
    printed = script("""
import threading
context = blank(12, 1, company=NOBODY)
slow = threading.Thread(target=run, args=(pool, address, 12, 1), kwargs={"context": context})
slow.start()
until_begun(context)
child = os.fork()
if child == 0:
    print(len(run(pool, address, 12, 1)), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
context[1] = 1
slow.join()
print(len(run(pool, address, 12, 1)))
""")
    assert printed == ["12", "12"]
