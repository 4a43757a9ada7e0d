"""The processor's own counters, where the system lets us read them: Linux's `perf_event_open`, by its number.

Counted is what the calling thread does in user mode. A group of events is opened, run, and read at once, so
that all are of the same time; see perf_event_open(2) for the layouts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Union

from ..frozen import frozen

__all__ = ["Refused", "counted_while"]

_CALLS = {"x86_64": 298, "aarch64": 241}
_LEVEL = Path("/proc/sys/kernel/perf_event_paranoid")

_EVENTS = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "cache references": (0, 2),
    "cache misses": (0, 3),
    "branch misses": (0, 5),
}
"""The kind of an event, of the hardware all of them, and its number."""

_ATTRIBUTES = struct.Struct("<IIQQQQQ")
"""Kind, size, number, sampling, what samples hold, what reads give, flags; the rest is 0."""
_SIZE = 112
_GROUP, _TIMES = 8, 3
"""Reads give all of a group, with the time that it was enabled and running."""
_DISABLED, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_ENABLE, _DISABLE, _RESET, _ALL = 0x2400, 0x2401, 0x2403, 1


@frozen
class Refused:
    """Why there are no counts."""

    why: str


def counted_while(run: Callable[[], None]) -> Union[Mapping[str, int], Refused]:
    """What the processor counts while `run` runs, by name; or why it does not. What `run` raises passes."""
    number = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        return Refused(f"hardware counters are read on Linux for x86-64 and ARM64, not on {sys.platform}")
    files: dict[str, int] = {}
    try:
        for name in _EVENTS:
            opened = _opened(number, name, next(iter(files.values()), -1))
            if opened >= 0:
                files[name] = opened
            elif not files:
                return Refused(_reason(-opened))
        return _read(files, run)
    finally:
        for file in files.values():
            os.close(file)


def _opened(number: int, name: str, leader: int) -> int:
    """A file that counts an event, in the leader's group; where that fails the error's number, negative."""
    kind, event = _EVENTS[name]
    flags = _NO_KERNEL | _NO_HYPERVISOR | (_DISABLED if leader < 0 else 0)
    attributes = _ATTRIBUTES.pack(kind, _SIZE, event, 0, 0, _GROUP | _TIMES, flags).ljust(_SIZE, b"\0")
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    this_thread, any_core, no_flags = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_ulong(0)
    opened = call(ctypes.c_long(number), attributes, this_thread, any_core, ctypes.c_int(leader), no_flags)
    return int(opened) if opened >= 0 else -ctypes.get_errno()


def _read(files: Mapping[str, int], run: Callable[[], None]) -> Union[Mapping[str, int], Refused]:
    leader = next(iter(files.values()))
    control = ctypes.CDLL(None, use_errno=True).ioctl
    for step in (_RESET, _ENABLE):
        control(leader, ctypes.c_ulong(step), _ALL)
    try:
        run()
    finally:
        control(leader, ctypes.c_ulong(_DISABLE), _ALL)
    count, enabled, running, *values = struct.unpack(
        f"<{3 + len(files)}Q", os.read(leader, 8 * (3 + len(files)))
    )
    if not running or count != len(files):
        return Refused("the processor's counters are all in use")
    return {name: round(value * enabled / running) for name, value in zip(files, values, strict=True)}


def _reason(error: int) -> str:
    if error in (errno.EACCES, errno.EPERM):
        level = _LEVEL.read_text().strip() if _LEVEL.exists() else "unknown"
        return (
            f"hardware counters are not permitted (perf_event_paranoid is {level}); the administrator may "
            "allow them: sysctl kernel.perf_event_paranoid=2; in a container, the system call perf_event_open"
        )
    if error in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS):
        return "this machine shows no hardware counters, as most virtual machines and containers"
    return f"hardware counters cannot be read: {os.strerror(error)}"
