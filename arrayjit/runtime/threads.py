"""The threads that share the loops of kernels on one device.

A pool is native: kernels call it, and its threads run nothing but kernels, so none of them ever needs the
interpreter. Its memory starts with the address of `run`, which a kernel calls for a loop that may be shared.
The iterations are cut into chunks. Of these each thread has a range of its own, the same part of every loop:
what it wrote in one loop is in its cache when it reads that in the next. Threads claim one chunk after
another of their own range, then of others'; the caller claims too, so it never waits for a thread that
sleeps. Between loops threads look for work for about a millisecond, then sleep; `cores` says where.

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

from . import cores
from .machine_code import loaded, process_address
from .words import spelled_out

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
    "CHUNKS": 48,  # in how many parts they are claimed
    "SCRATCH": 56,  # memory of the workers' own,
    "SHARE": 64,  # and the bytes of it for each
    "MISSED": 72,  # grains of loops that were not shared since the workers slept
    "HOME": 80,  # the core, from 1, on which the caller began the loop
    "DONE": 1 * ALIGNMENT,  # chunks that workers have done
    "ROUND": 2 * ALIGNMENT,  # grows with each loop
    "SLEEPERS": 3 * ALIGNMENT,  # workers that sleep, or are about to
    "TAKEN": 4 * ALIGNMENT,  # 1 while a call has the pool, and after the end
    "ENDED": 4 * ALIGNMENT + 4,  # 1 when workers should end
    "LOCK": 5 * ALIGNMENT,  # for sleeping: a pthread_mutex_t
    "NEWS": 6 * ALIGNMENT,  # and a pthread_cond_t
    "LIST": 7 * ALIGNMENT,  # of each thread what `_MEMBER` says, the caller first
}
"""Where the parts of a pool's memory are. What different threads write is on lines of its own."""

_MEMBER = {
    "RANGE": 0,  # the end of its chunks << 32 | the next one to be claimed
    "POOL": 8,  # of a worker: the pool's address,
    "NUMBER": 16,  # its number from 1,
    "THREAD": 24,  # its pthread_t,
    "FORBIDDEN": 32,  # the core, from 1, on which it must not wake; 0 for none
}

SPINS = 20_000
"""How often a thread looks for work before it sleeps, and pauses in between."""

YIELD_EVERY = 400
"""After so many looks, for work or for its end, a thread lets others have its core: where other programs run,
it may be the one that the rest of the pool needs."""

PARTS = 4
"""Chunks per thread: of one that starts late, others take some."""

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
            size = _FIELDS["LIST"] + ALIGNMENT * threads
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
    values: dict[str, int | str] = {
        **_FIELDS,
        **_MEMBER,
        "PAUSE": _PAUSES.get(platform.machine(), ""),
        "SETMASK": int(signal.SIG_SETMASK),
        "SPINS": SPINS,
        "YIELD": YIELD_EVERY,
        "PARTS": PARTS,
        "PATIENCE": PATIENCE,
        "LINE": ALIGNMENT,
        "CORES": cores.CORES,
        "SET": cores.CORES // 8,
        "WORDS": cores.CORES // 64,
    }
    return spelled_out(_TEXT + cores.TEXT, values)


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
  put i64 %count in field %pool <THREADS>
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
  br label %take
take:
  %claim = cmpxchg ptr %taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %claim, 1
  if %mine goto end
  %r = call i32 @sched_yield()
  br label %take
end:
  store atomic i32 1, ptr %ended seq_cst, align 4
  call void @announce(ptr %pool)
  %count = field i64 %pool <WORKERS>
  br label %each
each:
  %i = phi i64 [ 0, %end ], [ %next, %join ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %join, label %finish
join:
  %next = add i64 %i, 1
  %worker = call ptr @member(ptr %pool, i64 %next)
  %thread = field i64 %worker <THREAD>
  %j = call i32 @pthread_join(i64 %thread, ptr null)
  br label %each
finish:
  %memory = field ptr %pool <SCRATCH>
  call void @free(ptr %memory)
  ret void
}

define internal ptr @member(ptr %pool, i64 %i) {
  %list = getelementptr i8, ptr %pool, i64 <LIST>
  %member = getelementptr [<LINE> x i8], ptr %list, i64 %i
  ret ptr %member
}

; A new round: who looks for work finds it, who sleeps is woken.
define internal void @announce(ptr %pool) {
entry:
  %round = getelementptr i8, ptr %pool, i64 <ROUND>
  %sleepers = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  call void @note_core(ptr %pool)
  %old = atomicrmw add ptr %round, i32 1 seq_cst
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  unless %any goto leave
  %lock = getelementptr i8, ptr %pool, i64 <LOCK>
  %news = getelementptr i8, ptr %pool, i64 <NEWS>
  %r1 = call i32 @pthread_mutex_lock(ptr %lock)
  call void @leave_cores(ptr %pool)
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
  %r1 = call i32 @sigfillset(ptr %all)
  %r2 = call i32 @pthread_sigmask(i32 <SETMASK>, ptr %all, ptr %before)
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %made ]
  %more = icmp ult i64 %i, %count
  unless %more goto leave
  %next = add i64 %i, 1
  %worker = call ptr @member(ptr %pool, i64 %next)
  %thread = getelementptr i8, ptr %worker, i64 <THREAD>
  put ptr %pool in field %worker <POOL>
  put i64 %next in field %worker <NUMBER>
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr %worker)
  %works = icmp eq i32 %failed, 0
  br i1 %works, label %made, label %leave
made:
  put i64 %next in field %pool <WORKERS>
  br label %each
leave:
  %r3 = call i32 @pthread_sigmask(i32 <SETMASK>, ptr %before, ptr null)
  ret void
}

; What a worker does until the end.
define internal ptr @work(ptr %worker) {
entry:
  %pool = field ptr %worker <POOL>
  %number = field i64 %worker <NUMBER>
  %done = getelementptr i8, ptr %pool, i64 <DONE>
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
  %helped = call i64 @claim(ptr %pool, ptr null, i64 %number)
  %any = icmp ne i64 %helped, 0
  br i1 %any, label %report, label %look
report:
  %d = atomicrmw add ptr %done, i64 %helped release
  br label %look
look:
  %n = phi i64 [ 0, %help ], [ 0, %report ], [ %n1, %pause ], [ %n1, %yield ]
  %now = load atomic i32, ptr %round acquire, align 4
  %new = icmp ne i32 %now, %seen
  if %new goto turn
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
  call void @make_way(ptr %pool, ptr %worker)
  br label %look
sleep:
  call void @leave_core(ptr %pool, ptr %worker)
  %r1 = call i32 @pthread_mutex_lock(ptr %lock)
  %s1 = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %still
still:
  %then = load atomic i32, ptr %round seq_cst, align 4
  %same = icmp eq i32 %then, %seen
  unless %same goto awake
  %r2 = call i32 @pthread_cond_wait(ptr %news, ptr %lock)
  br label %still
awake:
  %s2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %core = call i32 @forgive(ptr %worker)
  %r3 = call i32 @pthread_mutex_unlock(ptr %lock)
  call void @return(ptr %worker, i32 %core)
  br label %turn
leave:
  ret ptr null
}

; Chunk after chunk, as long as there are any, of the thread's own range and then of those of others; how many
; it were. The loop's fields are read after a claim: they stay until the chunk is reported to be done.
; A worker has scratch memory by its number, the caller brings its own.
define internal i64 @claim(ptr %pool, ptr %own, i64 %number) {
entry:
  %threads = field i64 %pool <THREADS>
  %is_caller = icmp eq i64 %number, 0
  br label %visit
visit:
  %turn = phi i64 [ 0, %entry ], [ %later, %next ]
  %before = phi i64 [ 0, %entry ], [ %count, %next ]
  %place = add i64 %number, %turn
  %over = icmp uge i64 %place, %threads
  %around = sub i64 %place, %threads
  %whose = select i1 %over, i64 %around, i64 %place
  %range = call ptr @member(ptr %pool, i64 %whose)
  br label %look
look:
  %count = phi i64 [ %before, %visit ], [ %count, %try ], [ %count1, %run ]
  %state = load atomic i64, ptr %range acquire, align 8
  %chunk = and i64 %state, 4294967295
  %end = lshr i64 %state, 32
  %any = icmp ult i64 %chunk, %end
  br i1 %any, label %try, label %next
next:
  %later = add i64 %turn, 1
  %others = icmp ult i64 %later, %threads
  br i1 %others, label %visit, label %leave
try:
  %following = add i64 %state, 1
  %swap = cmpxchg ptr %range, i64 %state, i64 %following acq_rel acquire
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %run, label %look
run:
  %body = field ptr %pool <BODY>
  %context = field ptr %pool <CONTEXT>
  %trips = field i64 %pool <TRIPS>
  %chunks = field i64 %pool <CHUNKS>
  %scratch = field ptr %pool <SCRATCH>
  %share = field i64 %pool <SHARE>
  %first = call i64 @part(i64 %trips, i64 %chunk, i64 %chunks)
  %chunk1 = add i64 %chunk, 1
  %last = call i64 @part(i64 %trips, i64 %chunk1, i64 %chunks)
  %worker = sub i64 %number, 1
  %offset = mul i64 %share, %worker
  %part = getelementptr i8, ptr %scratch, i64 %offset
  %memory = select i1 %is_caller, ptr %own, ptr %part
  call void %body(ptr %context, i64 %first, i64 %last, ptr %memory)
  %count1 = add i64 %count, 1
  br label %look
leave:
  ret i64 %count
}

; Where a part of a whole begins that is cut as evenly as it can be.
define internal i64 @part(i64 %whole, i64 %number, i64 %parts) {
  %many = mul i64 %whole, %number
  %begin = udiv i64 %many, %parts
  ret i64 %begin
}

; Scratch memory of so many bytes for each worker, if there is not yet; whether there is now.
define internal i1 @provide(ptr %pool, i64 %workers, i64 %bytes) {
entry:
  %scratch = getelementptr i8, ptr %pool, i64 <SCRATCH>
  %share = getelementptr i8, ptr %pool, i64 <SHARE>
  %have = load i64, ptr %share
  %enough = icmp ule i64 %bytes, %have
  if %enough goto yes
  %old = load ptr, ptr %scratch
  call void @free(ptr %old)
  store ptr null, ptr %scratch
  store i64 0, ptr %share
  %size = mul i64 %workers, %bytes
  %failed = call i32 @posix_memalign(ptr %scratch, i64 <LINE>, i64 %size)
  %works = icmp eq i32 %failed, 0
  unless %works goto no
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
  if %anyway goto yes
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
; unless they would be smaller than a grain. The last ones are the caller's, who has some if there are fewer.
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
  %threads = field i64 %pool <THREADS>
  %wanted = sub i64 %threads, 1
  %present = field i64 %pool <WORKERS>
  %none = icmp eq i64 %present, 0
  unless %none goto check
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
  %most = mul i64 %threads, <PARTS>
  %parts = call i64 @llvm.umin.i64(i64 %least, i64 %most)
  %over = urem i64 %parts, %threads
  %even = sub i64 %parts, %over
  %few = icmp eq i64 %even, 0
  %chunks = select i1 %few, i64 %parts, i64 %even
  %done = getelementptr i8, ptr %pool, i64 <DONE>
  put ptr %body in field %pool <BODY>
  put ptr %context in field %pool <CONTEXT>
  put i64 %trips in field %pool <TRIPS>
  put i64 %chunks in field %pool <CHUNKS>
  store atomic i64 0, ptr %done monotonic, align 8
  br label %deal
deal:
  %i = phi i64 [ 0, %share ], [ %next, %deal ]
  %end = phi i64 [ %chunks, %share ], [ %begin, %deal ]
  %next = add i64 %i, 1
  %after = sub i64 %threads, %next
  %begin = call i64 @part(i64 %chunks, i64 %after, i64 %threads)
  %high = shl i64 %end, 32
  %range = or i64 %high, %begin
  %member = call ptr @member(ptr %pool, i64 %i)
  store atomic i64 %range, ptr %member release, align 8
  %more = icmp ult i64 %next, %threads
  br i1 %more, label %deal, label %work
work:
  call void @announce(ptr %pool)
  %own_done = call i64 @claim(ptr %pool, ptr %own, i64 0)
  %theirs = sub i64 %chunks, %own_done
  br label %wait
wait:
  %n = phi i64 [ 0, %work ], [ %n1, %pause ], [ 0, %yield ]
  %d = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %d, %theirs
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
