"""On which cores the threads of a pool wake and look for work: not on their caller's.

Linux wakes a thread on the core of who wakes it, with an idle one beside it, if it takes that for busy: so
it does in a virtual machine where that has halted. There the thread stays for about ten milliseconds, since
tasks that give way to each other count as hot in a cache, which no other core should take them from. Hence a
thread that goes to sleep forbids itself the core of its caller, and allows it again when it is awake. One
that comes to be there later forbids and allows it at once, which moves it.
"""

from __future__ import annotations

import sys

__all__ = ["CORES", "TEXT"]

CORES = 1024
"""So many there is room for in the C library's sets."""

_LINUX = """
declare i32 @sched_getcpu()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)

; Note the caller's core, counted from one.
define internal void @note_core(ptr %pool) {
  %place = getelementptr i8, ptr %pool, i64 <HOME>
  %core = call i32 @sched_getcpu()
  %here = add i32 %core, 1
  store atomic i32 %here, ptr %place monotonic, align 4
  ret void
}

; A worker that is about to sleep leaves the caller its core.
define internal void @leave_core(ptr %pool, ptr %worker) {
  %place = getelementptr i8, ptr %pool, i64 <HOME>
  %theirs = load atomic i32, ptr %place monotonic, align 4
  call void @allow(ptr %worker, i32 0, i32 %theirs)
  ret void
}

; Those who sleep leave the caller the core on which it is by now. It has the lock.
define internal void @leave_cores(ptr %pool) {
entry:
  %here = field i32 %pool <HOME>
  %count = field i64 %pool <WORKERS>
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %look ], [ %next, %move ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %leave
look:
  %next = add i64 %i, 1
  %worker = call ptr @member(ptr %pool, i64 %next)
  %place = getelementptr i8, ptr %worker, i64 <FORBIDDEN>
  %other = load atomic i32, ptr %place monotonic, align 4
  %any = icmp ne i32 %other, 0
  %wrong = icmp ne i32 %other, %here
  %moves = and i1 %any, %wrong
  br i1 %moves, label %move, label %each
move:
  call void @allow(ptr %worker, i32 %other, i32 %here)
  br label %each
leave:
  ret void
}

; The core that a worker may use again, which is awake and has the lock: from here on only itself moves it.
define internal i32 @forgive(ptr %worker) {
  %place = getelementptr i8, ptr %worker, i64 <FORBIDDEN>
  %core = atomicrmw xchg ptr %place, i32 0 monotonic
  ret i32 %core
}

; A worker that is awake may go anywhere.
define internal void @return(ptr %worker, i32 %core) {
entry:
  %any = icmp ne i32 %core, 0
  unless %any goto leave
  call void @allow(ptr %worker, i32 %core, i32 0)
  br label %leave
leave:
  ret void
}

; A worker that looks for work where the caller runs goes elsewhere: Linux lets the two share one core, beside
; an idle one, for as long as they give way to each other.
define internal void @make_way(ptr %pool, ptr %worker) {
entry:
  %place = getelementptr i8, ptr %pool, i64 <HOME>
  %theirs = load atomic i32, ptr %place monotonic, align 4
  %core = call i32 @sched_getcpu()
  %here = add i32 %core, 1
  %same = icmp eq i32 %here, %theirs
  unless %same goto leave
  call void @leave_core(ptr %pool, ptr %worker)
  %lock = getelementptr i8, ptr %pool, i64 <LOCK>
  %r1 = call i32 @pthread_mutex_lock(ptr %lock)
  %left = call i32 @forgive(ptr %worker)
  %r2 = call i32 @pthread_mutex_unlock(ptr %lock)
  call void @return(ptr %worker, i32 %left)
  br label %leave
leave:
  ret void
}

; Allow a worker one core, and forbid it another one that it might use, if it has one then.
define internal void @allow(ptr %worker, i32 %allowed, i32 %forbidden) {
entry:
  %set = alloca [<WORDS> x i64], align 16
  %thread = field i64 %worker <THREAD>
  %r1 = call i32 @pthread_getaffinity_np(i64 %thread, i64 <SET>, ptr %set)
  %known = icmp eq i32 %r1, 0
  unless %known goto leave
  %n = call i1 @flip(ptr %set, i32 %allowed, i1 true)
  %was = call i1 @flip(ptr %set, i32 %forbidden, i1 false)
  %r2 = call i32 @pthread_setaffinity_np(i64 %thread, i64 <SET>, ptr %set)
  %done = icmp eq i32 %r2, 0
  unless %done goto leave
  %now = select i1 %was, i32 %forbidden, i32 0
  %place1 = getelementptr i8, ptr %worker, i64 <FORBIDDEN>
  store atomic i32 %now, ptr %place1 monotonic, align 4
  br label %leave
leave:
  ret void
}

; Put a core, counted from one, into a set or out of it; whether it was the other way.
define internal i1 @flip(ptr %set, i32 %core, i1 %in) {
entry:
  %from_zero = sub i32 %core, 1
  %known = icmp ult i32 %from_zero, <CORES>
  unless %known goto no
  %number = zext i32 %from_zero to i64
  %index = udiv i64 %number, 64
  %word = getelementptr i64, ptr %set, i64 %index
  %shift = urem i64 %number, 64
  %bit = shl i64 1, %shift
  %before = load i64, ptr %word
  %old = and i64 %before, %bit
  %was_in = icmp ne i64 %old, 0
  %changes = icmp ne i1 %was_in, %in
  unless %changes goto no
  %after = xor i64 %before, %bit
  store i64 %after, ptr %word
  ret i1 true
no:
  ret i1 false
}
"""

_ELSEWHERE = """
define internal void @note_core(ptr %pool) {
  ret void
}

define internal void @leave_core(ptr %pool, ptr %worker) {
  ret void
}

define internal void @leave_cores(ptr %pool) {
  ret void
}

define internal i32 @forgive(ptr %worker) {
  ret i32 0
}

define internal void @return(ptr %worker, i32 %core) {
  ret void
}

define internal void @make_way(ptr %pool, ptr %worker) {
  ret void
}
"""
"""For systems that let no thread choose."""

TEXT = _LINUX if sys.platform == "linux" else _ELSEWHERE
"""Functions that the pool's text calls."""
