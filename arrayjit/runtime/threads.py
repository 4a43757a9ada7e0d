"""The threads that share the loops of kernels on one device.

A pool is native: kernels call it, and its threads run nothing but kernels, so none of them ever needs the
interpreter. Its memory starts with the address of `run`, which a kernel calls for a loop that may be shared.
The iterations are cut into chunks; threads claim one after another, and the caller claims too, so it never
waits for a thread that sleeps. Between loops threads look for work for about a millisecond, then sleep.

A pool has no threads before the first loop that is shared. In a child made by `fork` it has none again.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable
from functools import cache
from weakref import finalize, ref

from .machine_code import loaded, process_address

__all__ = ["ThreadPool"]

ALIGNMENT = 128
"""Bytes between what different threads write: a cache line and the one that is fetched along with it."""

_FIELDS = {
    "RUN": 0,  # what kernels call
    "THREADS": 8,  # how many may work, the caller among them
    "WORKERS": 16,  # how many there are beside the caller
    "BODY": 24,  # the loop: its function,
    "CONTEXT": 32,  # what that takes first,
    "TRIPS": 40,  # its iterations,
    "CHUNK": 48,  # how many of them are claimed at once
    "SCRATCH": 56,  # memory of the workers' own,
    "SHARE": 64,  # and the bytes of it for each
    "MISSED": 72,  # grains of loops that were not shared since the workers slept
    "CLAIMS": 1 * ALIGNMENT,  # chunks << 32 | the next one to be claimed
    "DONE": 2 * ALIGNMENT,  # chunks that are done
    "ROUND": 3 * ALIGNMENT,  # grows with each loop
    "SLEEPERS": 4 * ALIGNMENT,  # workers that sleep, or are about to
    "TAKEN": 5 * ALIGNMENT,  # 1 while a call has the pool, and after the end
    "ENDED": 5 * ALIGNMENT + 4,  # 1 when workers should end
    "LOCK": 6 * ALIGNMENT,  # for sleeping: a pthread_mutex_t
    "NEWS": 7 * ALIGNMENT,  # and a pthread_cond_t
    "LIST": 8 * ALIGNMENT,  # of each worker: the pool's address, its number from 0, its pthread_t
}
"""Where the parts of a pool's memory are. What different threads write is on lines of its own."""

WORKER_BYTES = 24

SPINS = 20_000
"""How often a thread looks for work before it sleeps, and pauses in between."""

YIELD_EVERY = 400
"""After so many looks, for work or for its end, a thread lets others have its core: where other programs run,
it may be the one that the rest of the pool needs."""

CHUNKS = 4
"""Chunks per thread: a thread that starts late takes fewer."""

PATIENCE = 16
"""Sleeping workers are woken for so many grains of work: of one loop, or of several that went by. They begin
up to seven grains later."""

_PAUSES = {
    **dict.fromkeys(("x86_64", "AMD64"), "call void @llvm.x86.sse2.pause()"),
    **dict.fromkeys(("aarch64", "arm64"), "call void @llvm.aarch64.hint(i32 1)"),
}


class ThreadPool:
    """`threads` threads, the calling one among them.

    `address` is what kernels take, 0 where no thread could help them. It stays valid: where another call has
    the pool, and after the end, a loop runs on the calling thread alone.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.address = 0
        if threads > 1:
            size = _FIELDS["LIST"] + WORKER_BYTES * threads
            self.address = _lasting(size)
            _native().start(self.address, threads)
            self._end = finalize(self, _native().stop, self.address)
            self._end.atexit = False
            os.register_at_fork(after_in_child=_Reset(self, size))

    def close(self) -> None:
        """End the threads, after the loop that they work on. So does the garbage collector."""
        if self.address:
            self._end()


class _Reset:
    """What a child does with a pool of its parent's, whose threads it has not got."""

    def __init__(self, pool: ThreadPool, size: int) -> None:
        self._pool = ref(pool)
        self._size = size

    def __call__(self) -> None:
        pool = self._pool()
        if pool is not None and pool._end.alive:
            ctypes.memset(pool.address, 0, self._size)
            _native().start(pool.address, pool.threads)


def _lasting(size: int) -> int:
    """The address of zeroed memory that is never freed: some kernel may be about to look at it."""
    memory = ctypes.create_string_buffer(size + ALIGNMENT)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    start = ctypes.addressof(memory)
    return start + -start % ALIGNMENT


class _Native:
    """The functions of `_TEXT`, loaded for good: threads may be running them when the interpreter ends."""

    def __init__(self) -> None:
        image = loaded(_text(), "the thread pool", process_address)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(image))
        word, number = ctypes.c_void_p, ctypes.c_int64
        self.start: Callable[[int, int], None] = ctypes.CFUNCTYPE(None, word, number)(
            image.addresses["pool.start"]
        )
        self.stop: Callable[[int], None] = ctypes.CFUNCTYPE(None, word)(image.addresses["pool.stop"])


@cache
def _native() -> _Native:
    return _Native()


def _text() -> str:
    values = {
        **_FIELDS,
        "PAUSE": _PAUSES.get(platform.machine(), ""),
        "SETMASK": int(signal.SIG_SETMASK),
        "SPINS": SPINS,
        "YIELD": YIELD_EVERY,
        "CHUNKS": CHUNKS,
        "PATIENCE": PATIENCE,
        "LINE": ALIGNMENT,
    }
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"<{name}>", str(value))
    return text


_TEXT = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.hint(i32)

; A pool without workers, of zeroed memory.
define void @pool.start(ptr %pool, i64 %count) {
  store ptr @run, ptr %pool
  %threads = getelementptr i8, ptr %pool, i64 <THREADS>
  store i64 %count, ptr %threads
  %lock = getelementptr i8, ptr %pool, i64 <LOCK>
  %news = getelementptr i8, ptr %pool, i64 <NEWS>
  %r1 = call i32 @pthread_mutex_init(ptr %lock, ptr null)
  %r2 = call i32 @pthread_cond_init(ptr %news, ptr null)
  ret void
}

; Take the pool for good, wake the workers and wait for their end.
define void @pool.stop(ptr %pool) {
entry:
  %taken = getelementptr i8, ptr %pool, i64 <TAKEN>
  %ended = getelementptr i8, ptr %pool, i64 <ENDED>
  %workers = getelementptr i8, ptr %pool, i64 <WORKERS>
  %scratch = getelementptr i8, ptr %pool, i64 <SCRATCH>
  br label %take
take:
  %claim = cmpxchg ptr %taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %claim, 1
  br i1 %mine, label %end, label %wait
wait:
  %r = call i32 @sched_yield()
  br label %take
end:
  store atomic i32 1, ptr %ended seq_cst, align 4
  call void @announce(ptr %pool)
  %count = load i64, ptr %workers
  br label %each
each:
  %i = phi i64 [ 0, %end ], [ %next, %join ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %join, label %finish
join:
  %worker = call ptr @worker(ptr %pool, i64 %i)
  %place = getelementptr i8, ptr %worker, i64 16
  %thread = load i64, ptr %place
  %j = call i32 @pthread_join(i64 %thread, ptr null)
  %next = add i64 %i, 1
  br label %each
finish:
  %memory = load ptr, ptr %scratch
  call void @free(ptr %memory)
  ret void
}

define internal ptr @worker(ptr %pool, i64 %i) {
  %list = getelementptr i8, ptr %pool, i64 <LIST>
  %worker = getelementptr { ptr, i64, i64 }, ptr %list, i64 %i
  ret ptr %worker
}

; A new round: who looks for work finds it, who sleeps is woken.
define internal void @announce(ptr %pool) {
entry:
  %round = getelementptr i8, ptr %pool, i64 <ROUND>
  %sleepers = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  %old = atomicrmw add ptr %round, i32 1 seq_cst
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %leave
wake:
  %lock = getelementptr i8, ptr %pool, i64 <LOCK>
  %news = getelementptr i8, ptr %pool, i64 <NEWS>
  %r1 = call i32 @pthread_mutex_lock(ptr %lock)
  %r2 = call i32 @pthread_mutex_unlock(ptr %lock)
  %r3 = call i32 @pthread_cond_broadcast(ptr %news)
  br label %leave
leave:
  ret void
}

; Make the workers, or as many as the system gives. Signals are for other threads.
define internal void @recruit(ptr %pool, i64 %count) {
entry:
  %all = alloca [<LINE> x i8], align 16
  %before = alloca [<LINE> x i8], align 16
  %workers = getelementptr i8, ptr %pool, i64 <WORKERS>
  %r1 = call i32 @sigfillset(ptr %all)
  %r2 = call i32 @pthread_sigmask(i32 <SETMASK>, ptr %all, ptr %before)
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %made ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %make, label %leave
make:
  %worker = call ptr @worker(ptr %pool, i64 %i)
  %number = getelementptr i8, ptr %worker, i64 8
  %thread = getelementptr i8, ptr %worker, i64 16
  store ptr %pool, ptr %worker
  store i64 %i, ptr %number
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr %worker)
  %works = icmp eq i32 %failed, 0
  br i1 %works, label %made, label %leave
made:
  %next = add i64 %i, 1
  store i64 %next, ptr %workers
  br label %each
leave:
  %r3 = call i32 @pthread_sigmask(i32 <SETMASK>, ptr %before, ptr null)
  ret void
}

; What a worker does until the end.
define internal ptr @work(ptr %worker) {
entry:
  %pool = load ptr, ptr %worker
  %place = getelementptr i8, ptr %worker, i64 8
  %number = load i64, ptr %place
  %round = getelementptr i8, ptr %pool, i64 <ROUND>
  %sleepers = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  %ended = getelementptr i8, ptr %pool, i64 <ENDED>
  %lock = getelementptr i8, ptr %pool, i64 <LOCK>
  %news = getelementptr i8, ptr %pool, i64 <NEWS>
  br label %turn
turn:
  %seen = load atomic i32, ptr %round acquire, align 4
  %over = load atomic i32, ptr %ended acquire, align 4
  %stop = icmp ne i32 %over, 0
  br i1 %stop, label %leave, label %help
help:
  call void @claim(ptr %pool, ptr null, i64 %number)
  br label %look
look:
  %n = phi i64 [ 0, %help ], [ %n1, %pause ], [ %n1, %yield ]
  %now = load atomic i32, ptr %round acquire, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %turn, label %again
again:
  %patient = icmp ult i64 %n, <SPINS>
  br i1 %patient, label %pause, label %sleep
pause:
  <PAUSE>
  %n1 = add i64 %n, 1
  %looks = urem i64 %n1, <YIELD>
  %tired = icmp eq i64 %looks, 0
  br i1 %tired, label %yield, label %look
yield:
  %r0 = call i32 @sched_yield()
  br label %look
sleep:
  %r1 = call i32 @pthread_mutex_lock(ptr %lock)
  %s1 = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %still
still:
  %then = load atomic i32, ptr %round seq_cst, align 4
  %same = icmp eq i32 %then, %seen
  br i1 %same, label %doze, label %awake
doze:
  %r2 = call i32 @pthread_cond_wait(ptr %news, ptr %lock)
  br label %still
awake:
  %s2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %r3 = call i32 @pthread_mutex_unlock(ptr %lock)
  br label %turn
leave:
  ret ptr null
}

; Chunk after chunk, as long as there are any. The loop's fields are read after a claim: it keeps them.
; A worker has scratch memory by its number, the caller brings its own.
define internal void @claim(ptr %pool, ptr %own, i64 %number) {
entry:
  %claims = getelementptr i8, ptr %pool, i64 <CLAIMS>
  %done = getelementptr i8, ptr %pool, i64 <DONE>
  %f1 = getelementptr i8, ptr %pool, i64 <BODY>
  %f2 = getelementptr i8, ptr %pool, i64 <CONTEXT>
  %f3 = getelementptr i8, ptr %pool, i64 <TRIPS>
  %f4 = getelementptr i8, ptr %pool, i64 <CHUNK>
  %f5 = getelementptr i8, ptr %pool, i64 <SCRATCH>
  %f6 = getelementptr i8, ptr %pool, i64 <SHARE>
  %is_worker = icmp eq ptr %own, null
  br label %look
look:
  %state = load atomic i64, ptr %claims acquire, align 8
  %chunk = and i64 %state, 4294967295
  %chunks = lshr i64 %state, 32
  %any = icmp ult i64 %chunk, %chunks
  br i1 %any, label %try, label %leave
try:
  %following = add i64 %state, 1
  %swap = cmpxchg ptr %claims, i64 %state, i64 %following acq_rel acquire
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look
run:
  %body = load ptr, ptr %f1
  %context = load ptr, ptr %f2
  %trips = load i64, ptr %f3
  %size = load i64, ptr %f4
  %scratch = load ptr, ptr %f5
  %share = load i64, ptr %f6
  %first = mul i64 %chunk, %size
  %end = add i64 %first, %size
  %last = call i64 @llvm.umin.i64(i64 %end, i64 %trips)
  %offset = mul i64 %share, %number
  %part = getelementptr i8, ptr %scratch, i64 %offset
  %memory = select i1 %is_worker, ptr %part, ptr %own
  call void %body(ptr %context, i64 %first, i64 %last, ptr %memory)
  %d = atomicrmw add ptr %done, i64 1 release
  br label %look
leave:
  ret void
}

; Scratch memory of so many bytes for each worker, if there is not yet; whether there is now.
define internal i1 @provide(ptr %pool, i64 %workers, i64 %bytes) {
entry:
  %scratch = getelementptr i8, ptr %pool, i64 <SCRATCH>
  %share = getelementptr i8, ptr %pool, i64 <SHARE>
  %have = load i64, ptr %share
  %enough = icmp ule i64 %bytes, %have
  br i1 %enough, label %yes, label %grow
grow:
  %old = load ptr, ptr %scratch
  call void @free(ptr %old)
  store ptr null, ptr %scratch
  store i64 0, ptr %share
  %size = mul i64 %workers, %bytes
  %failed = call i32 @posix_memalign(ptr %scratch, i64 <LINE>, i64 %size)
  %works = icmp eq i32 %failed, 0
  br i1 %works, label %keep, label %no
keep:
  store i64 %bytes, ptr %share
  br label %yes
yes:
  ret i1 true
no:
  store ptr null, ptr %scratch
  ret i1 false
}

; Whether a loop should be shared: who is awake may help, but all who sleep are woken for much work only.
; How much a grain of one iteration is, nobody knows.
define internal i1 @is_worth_waking(ptr %pool, i64 %workers, i64 %trips, i64 %grain) {
entry:
  %sleepers = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  %missed = getelementptr i8, ptr %pool, i64 <MISSED>
  %asleep = load atomic i32, ptr %sleepers monotonic, align 4
  %count = zext i32 %asleep to i64
  %some = icmp ult i64 %count, %workers
  %unknown = icmp eq i64 %grain, 1
  %anyway = or i1 %some, %unknown
  br i1 %anyway, label %yes, label %weigh
weigh:
  %grains = udiv i64 %trips, %grain
  %before = load i64, ptr %missed
  %sum = add i64 %before, %grains
  %enough = icmp uge i64 %sum, <PATIENCE>
  %kept = select i1 %enough, i64 0, i64 %sum
  store i64 %kept, ptr %missed
  ret i1 %enough
yes:
  ret i1 true
}

; Run a loop of so many iterations, at least one. There are as many chunks for each thread as for any other,
; unless they would be smaller than a grain.
define internal void @run(ptr %pool, ptr %body, ptr %context, i64 %trips, i64 %grain, ptr %own, i64 %bytes) {
entry:
  %taken = getelementptr i8, ptr %pool, i64 <TAKEN>
  %claim = cmpxchg ptr %taken, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %claim, 1
  br i1 %mine, label %staff, label %alone
alone:
  call void %body(ptr %context, i64 0, i64 %trips, ptr %own)
  ret void
staff:
  %f0 = getelementptr i8, ptr %pool, i64 <THREADS>
  %threads = load i64, ptr %f0
  %wanted = sub i64 %threads, 1
  %workers = getelementptr i8, ptr %pool, i64 <WORKERS>
  %present = load i64, ptr %workers
  %none = icmp eq i64 %present, 0
  br i1 %none, label %hire, label %check
hire:
  call void @recruit(ptr %pool, i64 %wanted)
  br label %equip
check:
  %wake = call i1 @is_worth_waking(ptr %pool, i64 %present, i64 %trips, i64 %grain)
  br i1 %wake, label %equip, label %release
equip:
  %works = call i1 @provide(ptr %pool, i64 %wanted, i64 %bytes)
  br i1 %works, label %share, label %release
release:
  store atomic i32 0, ptr %taken release, align 4
  br label %alone
share:
  %worth = udiv i64 %trips, %grain
  %least = call i64 @llvm.umax.i64(i64 %worth, i64 1)
  %most = mul i64 %threads, <CHUNKS>
  %parts = call i64 @llvm.umin.i64(i64 %least, i64 %most)
  %over = urem i64 %parts, %threads
  %even = sub i64 %parts, %over
  %few = icmp eq i64 %even, 0
  %equal = select i1 %few, i64 %parts, i64 %even
  %up = add i64 %trips, %equal
  %up1 = sub i64 %up, 1
  %size = udiv i64 %up1, %equal
  %end = add i64 %trips, %size
  %end1 = sub i64 %end, 1
  %chunks = udiv i64 %end1, %size
  %f1 = getelementptr i8, ptr %pool, i64 <BODY>
  %f2 = getelementptr i8, ptr %pool, i64 <CONTEXT>
  %f3 = getelementptr i8, ptr %pool, i64 <TRIPS>
  %f4 = getelementptr i8, ptr %pool, i64 <CHUNK>
  %done = getelementptr i8, ptr %pool, i64 <DONE>
  %claims = getelementptr i8, ptr %pool, i64 <CLAIMS>
  store ptr %body, ptr %f1
  store ptr %context, ptr %f2
  store i64 %trips, ptr %f3
  store i64 %size, ptr %f4
  store atomic i64 0, ptr %done monotonic, align 8
  %state = shl i64 %chunks, 32
  store atomic i64 %state, ptr %claims release, align 8
  call void @announce(ptr %pool)
  call void @claim(ptr %pool, ptr %own, i64 0)
  br label %wait
wait:
  %n = phi i64 [ 0, %share ], [ %n1, %pause ], [ 0, %yield ]
  %d = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %d, %chunks
  br i1 %all, label %leave, label %pause
pause:
  <PAUSE>
  %n1 = add i64 %n, 1
  %tired = icmp ugt i64 %n1, <YIELD>
  br i1 %tired, label %yield, label %wait
yield:
  %r = call i32 @sched_yield()
  br label %wait
leave:
  store atomic i32 0, ptr %taken release, align 4
  ret void
}
"""
