"""The function that a jitted function is called through, as LLVM IR: from a call to the kernel and back.

    call      own the function's table; answer, or ask Python
    answer    look for the variant (`matching`), the one called last first, and run it (`running`)
    ask       call the class's `__call__`, written in Python

Why this is safe. All of it holds the interpreter's lock but the kernel, and that only in variants that say
so.

- A call owns the table that it reads, and a table owns all that its words name: variants with their machine
  code, dtypes, keys, the workspace. So nothing that is read or run can go meanwhile, whoever exchanges the
  table. The dispatcher's own code is never unloaded.
- Values are borrowed. Arguments and the items of their tuples belong to the caller. What only a list or a
  dict keeps alive could go as soon as other Python code runs. A variant in which any may run (it releases
  the lock, has Python make large results, or makes containers, which can start a garbage collection) owns
  such values from the moment it has them all.
- Until then no Python code runs: types are compared by identity, dict keys as exact `str`, integers are exact
  `int`. Only guards look into dicts that might have strange keys, so they come before any value is looked at.
- Nothing is written before a variant is sure to be the one. What goes wrong from then on is raised, and never
  tried again: the kernel may have written into arguments.
- Arrays are used if they are exact `ndarray`s with the layout that the kernel was made for, and their memory
  is apart from that of all other arrays of the call. A kernel stays inside them.
- A variant's workspace is taken, before anything else can run, and given back under the lock; a call that
  does not find it asks Python.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.code import Code
from ..runtime.words import spelled_out
from . import layout, matching, running
from .rows import offsets

__all__ = ["code"]

_NAME = "entry"


def code(table_offset: int) -> Code:
    """The dispatcher for functions that keep the address of their table there. It names addresses that the
    driver must know."""
    unnamed = Code("llvm", _NAME, None, ())
    return replace(unnamed, payload=_text(table_offset).replace("@entry.call", f"@{unnamed.symbol}"))


def _text(table_offset: int) -> str:
    source = "".join((layout.declarations(), _TEXT, matching.TEXT, running.TEXT))
    numbers = {
        **layout.OFFSETS,
        **offsets(),
        "LAYOUT_FLAGS": layout.LAYOUT_FLAGS,
        "MOST_RANK": layout.MOST_RANK,
        "DICT_VERSION": layout.DICT_VERSION,
        "TABLE": table_offset,
        "COUNT_MASK": 2**63 - 1,
    }
    return spelled_out(source, numbers)


_TEXT = """
define ptr @entry.call(ptr %self, ptr %args, i64 %flags, ptr %names) {
  %missed = alloca i8
  %table = field ptr %self <TABLE>
  %none = icmp eq ptr %table, null
  if %none goto slow
  call void @Py_IncRef(ptr %table)
  %rows = field ptr %table <BUFFER>
  %count = and i64 %flags, <COUNT_MASK>
  store i8 0, ptr %missed
  %result = call ptr @answer(ptr %rows, ptr %args, i64 %count, ptr %names, ptr %missed)
  call void @Py_DecRef(ptr %table)
  %miss = load i8, ptr %missed
  %answered = icmp eq i8 %miss, 0
  unless %answered goto slow
  ret ptr %result
slow:
  %asked = call ptr @ask(ptr %self, ptr %args, i64 %flags, ptr %names)
  ret ptr %asked
}

; Call the function written in Python: with `self`, then with what was given.
define internal ptr @ask(ptr %self, ptr %args, i64 %flags, ptr %names) noinline {
entry:
  %count = and i64 %flags, <COUNT_MASK>
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %copy, label %keywords
keywords:
  %named = field i64 %names <SIZE>
  br label %copy
copy:
  %more = phi i64 [ 0, %entry ], [ %named, %keywords ]
  %all = add i64 %count, %more
  %places = add i64 %all, 1
  %values = alloca ptr, i64 %places
  store ptr %self, ptr %values
  %rest = getelementptr ptr, ptr %values, i64 1
  call void @copied(ptr %rest, ptr %args, i64 %all)
  %positional = add i64 %count, 1
  %result = call ptr @PyObject_Vectorcall(ptr @rt.slow, ptr %values, i64 %positional, ptr %names)
  ret ptr %result
}

define internal void @copied(ptr %to, ptr %from, i64 %count) {
entry:
  each %i below %count else done
  %value = item ptr %from %i
  put ptr %value in item %to %i
  again
done:
  ret void
}

; The result of a call, null with an exception set, or null and `missed`.
define internal ptr @answer(ptr %table, ptr %args, i64 %count, ptr %names, ptr %missed) {
entry:
  %guards = field ptr %table <TABLE_GUARDS>
  %guardcount = field i64 %table <TABLE_GUARD_COUNT>
  %outside = call i1 @holds(ptr %guards, i64 %guardcount)
  unless %outside goto miss
  %room = field i64 %table <TABLE_ROOM>
  %values = alloca ptr, i64 %room
  %slots = alloca i64, i64 %room
  %pointers = alloca ptr, i64 %room
  %lows = alloca i64, i64 %room
  %highs = alloca i64, i64 %room
  %total = field i64 %table <TABLE_COUNT>
  %last = field i64 %table <TABLE_LAST>
  %variants = getelementptr i8, ptr %table, i64 <TABLE_BYTES>
  each %tried below %total else miss
  %sum = add i64 %last, %tried
  %less = sub i64 %sum, %total
  %wraps = icmp uge i64 %sum, %total
  %place = select i1 %wraps, i64 %less, i64 %sum
  %variant = item ptr %variants %place
  %fits = call i1 @fits(ptr %variant, ptr %args, i64 %count, ptr %names,
                        ptr %values, ptr %slots, ptr %pointers, ptr %lows, ptr %highs)
  if %fits goto found
  again
found:
  store i64 %place, ptr %table
  %hits = field i64 %variant <VARIANT_HITS>
  %more = add i64 %hits, 1
  put i64 %more in field %variant <VARIANT_HITS>
  %result = call ptr @run(ptr %variant, ptr %values, ptr %slots, ptr %pointers)
  ret ptr %result
miss:
  store i8 1, ptr %missed
  ret ptr null
}
"""
