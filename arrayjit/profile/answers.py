"""How long a core takes to answer another one, which says whether the two share a cache.

A virtual machine's cores sometimes do and sometimes do not, and what goes from thread to thread takes several
times as long if they do not: times on several threads are to be compared with others of the same kind.
"""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..runtime.machine_code import loaded, process_address

__all__ = ["answer_seconds"]

TURNS = 1_000
ROUNDS = 9

TEXT = """
declare i32 @sched_yield()

; So many times: wait for a number, which begins with %first, and write the next one.
define void @answer(ptr %word, i64 %first, i64 %turns) {
entry:
  %twice = shl i64 %turns, 1
  %end = add i64 %first, %twice
  br label %wait
wait:
  %wanted = phi i64 [ %first, %entry ], [ %wanted, %look ], [ %wanted, %yield ], [ %following, %tell ]
  %looks = phi i64 [ 0, %entry ], [ %more, %look ], [ 0, %yield ], [ 0, %tell ]
  %found = load atomic i64, ptr %word acquire, align 8
  %is_there = icmp eq i64 %found, %wanted
  br i1 %is_there, label %tell, label %look
look:
  %more = add i64 %looks, 1
  %is_long = icmp ugt i64 %more, 10000
  br i1 %is_long, label %yield, label %wait
yield:
  %r = call i32 @sched_yield()
  br label %wait
tell:
  %next = add i64 %wanted, 1
  store atomic i64 %next, ptr %word release, align 8
  %following = add i64 %wanted, 2
  %is_over = icmp eq i64 %following, %end
  br i1 %is_over, label %leave, label %wait
leave:
  ret void
}
"""
"""Who waits for long lets others have its core: the thread that it waits for may need it."""


def answer_seconds(turns: int = TURNS, rounds: int = ROUNDS) -> float:
    """Seconds from a thread's writing to memory until it sees what another one has written in answer; in the
    best of the rounds, of so many turns each, since other programs take cores away at times."""
    image = loaded(TEXT, "the answers of threads", process_address)
    kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    answer = ctypes.CFUNCTYPE(None, *kinds)(image.addresses["answer"])
    lines = np.zeros(32, np.int64)
    word = lines.ctypes.data + -lines.ctypes.data % 128  # a cache line that holds nothing else

    def times(first: int) -> list[float]:
        found = []
        for number in range(rounds):
            start = time.perf_counter()
            answer(word, first + 2 * turns * number, turns)
            found.append(time.perf_counter() - start)
        return found

    with ThreadPoolExecutor(2) as pool:
        asking, _ = pool.map(times, (0, 1))
    return min(asking) / turns
