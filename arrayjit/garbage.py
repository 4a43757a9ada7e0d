"""Python's collector of garbage, which rests while a program is compiled.

A compilation makes hundreds of thousands of objects, which go by themselves, as they hardly ever point to one
another in circles. They are reason enough for the collector to go through everything that the process has:
where that is much, as with other libraries of arrays, it takes longer than most compilations.

A compilation that is the first one imports modules besides, whose functions and classes stay. They are handed
to the oldest generation when it ends, where the collector seldom looks: to go through them at once takes a
seventh of the time of the first call.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

__all__ = ["make_old", "resting"]


class _Rest:
    """The threads for which the collector rests, each as often as it has asked, whether it goes on after
    the last of them, and how many modules there were before the first."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.threads: list[int] = []
        self.goes_on = False
        self.modules = 0

    def begin(self) -> None:
        with self.lock:
            if not self.threads:
                self.goes_on = gc.isenabled()
                gc.disable()
                self.modules = len(sys.modules)
            self.threads.append(get_ident())

    def end(self) -> None:
        with self.lock:
            self.threads.remove(get_ident())
            if self.goes_on and not self.threads:
                if len(sys.modules) > self.modules:
                    make_old()
                gc.enable()

    def forked(self) -> None:
        """In a new process, which has only the thread that made it."""
        self.lock = Lock()
        self.threads, others = [one for one in self.threads if one == get_ident()], self.threads
        if self.goes_on and others and not self.threads:
            gc.enable()


def make_old() -> None:
    """All that there is goes to the oldest generation, unless somebody keeps things from the collector."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


_REST = _Rest()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_REST.forked)


@contextmanager
def resting() -> Iterator[None]:
    """A block in which the collector does not start by itself, whatever other threads do. One that the user
    has switched off stays off."""
    _REST.begin()
    try:
        yield
    finally:
        _REST.end()
