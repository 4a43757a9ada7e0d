"""What a module that measures its own time needs."""

from __future__ import annotations

import time

__all__ = ["LAP"]

LAP = """\
declare i32 @clock_gettime(i32, ptr)
define internal void @lap(ptr %times, i64 %number) noinline #0 {
  %now = alloca { i64, i64 }
  %status = call i32 @clock_gettime(i32 <CLOCK>, ptr %now)
  %seconds = load i64, ptr %now
  %place = getelementptr { i64, i64 }, ptr %now, i32 0, i32 1
  %rest = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %time = add i64 %whole, %rest
  %last = load i64, ptr %times
  %spent = sub i64 %time, %last
  %cell = getelementptr i64, ptr %times, i64 %number
  %before = load i64, ptr %cell
  %after = add i64 %before, %spent
  store i64 %after, ptr %cell
  store i64 %time, ptr %times
  ret void
}
""".replace("<CLOCK>", str(time.CLOCK_MONOTONIC))
"""The function that a Lap calls."""
