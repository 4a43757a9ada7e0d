"""Locks that a forked child finds free: the threads that may have held them are not in it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

__all__ = ["lock", "reentrant_lock"]

_locks: WeakSet[Any] = WeakSet()


def lock() -> AbstractContextManager[bool]:
    """A lock that a thread takes once."""
    return _known(Lock())


def reentrant_lock() -> AbstractContextManager[bool]:
    """A lock that a thread which has it may take again."""
    return _known(RLock())


def _known(new: Any) -> AbstractContextManager[bool]:
    _locks.add(new)
    known: AbstractContextManager[bool] = new
    return known


def _free() -> None:
    for each in list(_locks):
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
