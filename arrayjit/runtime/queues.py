"""The queues of the host: work done at once by whoever submits it, and work done by a thread."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from ..errors import DeviceError, UserError
from .driver import Queue, Task

__all__ = ["CAPACITY", "InlineQueue", "WorkerQueue"]

CAPACITY = 4096
"""Tasks that a queue holds; when it is full, who submits waits until it is empty."""

_HEARTBEAT = 1.0
"""Seconds after which who waits looks whether the worker is alive."""


class InlineQueue:
    """Work is done where it is submitted, and what it raises is raised there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self._is_closed = False

    def put(self, task: Task, label: str) -> None:
        if self._is_closed:
            raise _closed(self.name)
        try:
            task()
        except Exception as error:
            raise _located(error, self.name, label) from error.__cause__
        self.done += 1

    def wait_for(self, other: Queue, count: int) -> None:
        other.wait(count)

    def wait(self, count: int) -> None:
        return None

    def outcome(self, count: int) -> Exception | None:
        return None

    def is_idle(self) -> bool:
        return True

    def end(self) -> None:
        self._is_closed = True

    def close(self) -> None:
        self.end()


@dataclass(frozen=True, slots=True)
class _Work:
    task: Task
    label: str


@dataclass(frozen=True, slots=True)
class _Wait:
    queue: Queue
    count: int


@dataclass(slots=True)
class _Failure:
    """The tasks from `first` on failed or were dropped; up to `last`, once the error was raised."""

    error: Exception
    first: int
    last: int | None = None

    def covers(self, number: int) -> bool:
        return self.first <= number and (self.last is None or number <= self.last)


class WorkerQueue:
    """Work is done by a thread of its own, started at the first task. Native code runs without the
    interpreter's lock, so that the threads of several queues overlap."""

    def __init__(self, name: str, capacity: int = CAPACITY) -> None:
        self.name = name
        self.capacity = capacity
        self.done = 0
        self._last_put = 0
        self._is_closed = False
        self.renew()
        _queues.add(self)

    def renew(self) -> None:
        """As a new queue, but for the numbers: whatever was queued is gone, and so is the thread."""
        self.done = self._last_put
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._has_progress = threading.Condition(self._lock)
        self._work: deque[Union[_Work, _Wait]] = deque()
        self._failure: _Failure | None = None
        self._watchers = 0
        self._is_asleep = False
        self._thread: threading.Thread | None = None

    def put(self, task: Task, label: str) -> None:
        with self._lock:
            if self._is_closed:
                raise _closed(self.name)
            self._raise_failure()
            if self._last_put - self.done >= self.capacity:
                self._watch(self._last_put)
            self._last_put += 1
            self._append(_Work(task, label))

    def wait_for(self, other: Queue, count: int) -> None:
        if other.done < count:
            with self._lock:
                self._append(_Wait(other, count))

    def wait(self, count: int) -> None:
        if self.done >= count and self._failure is None:
            return
        with self._lock:
            self._watch(count)

    def outcome(self, count: int) -> Exception | None:
        with self._lock:
            self._watch(count, is_host=False)
            failure = self._failure
            return failure.error if failure is not None and failure.covers(count) else None

    def is_idle(self) -> bool:
        return self.done >= self._last_put or self._is_stopped()

    def end(self) -> None:
        with self._lock:
            self._is_closed = True
            self._has_work.notify_all()

    def close(self) -> None:
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _append(self, entry: _Work | _Wait) -> None:
        self._work.append(entry)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        elif self._is_asleep:
            self._has_work.notify()

    def _is_stopped(self) -> bool:
        return self._failure is not None and self._failure.last is None

    def _watch(self, count: int, is_host: bool = True) -> None:
        """Block until `count` tasks are over or one failed; a signal, such as Ctrl-C, interrupts it."""
        self._watchers += 1
        try:
            while self.done < count and not self._is_stopped():
                if not self._has_progress.wait(_HEARTBEAT) and not self._is_alive():
                    raise DeviceError(
                        f"the worker of {self.name} is dead", fix="reinitialize the backend and link again"
                    )
        finally:
            self._watchers -= 1
        if is_host:
            self._raise_failure()

    def _is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _raise_failure(self) -> None:
        """Raise what a task raised, once; whatever was queued behind it is dropped."""
        failure = self._failure
        if failure is None or failure.last is not None:
            return
        self._work.clear()
        failure.last = self.done = self._last_put
        raise failure.error

    def _run(self) -> None:
        """The thread."""
        while True:
            with self._lock:
                while not self._work or self._is_stopped():
                    if self._is_closed:
                        return
                    self._is_asleep = True
                    self._has_work.wait()
                    self._is_asleep = False
                entry = self._work.popleft()
            error = _perform(entry, self.name)
            with self._lock:
                if error is not None:
                    self._failure = _Failure(error, self.done + 1)
                elif isinstance(entry, _Work):
                    self.done += 1
                if self._watchers and (error is not None or isinstance(entry, _Work)):
                    self._has_progress.notify_all()
            del entry


def _perform(entry: _Work | _Wait, name: str) -> Exception | None:
    match entry:
        case _Wait(queue=queue, count=count):
            return queue.outcome(count)
        case _Work(task=task, label=label):
            try:
                task()
            except Exception as error:
                return _located(error, name, label)
            return None


def _located(error: Exception, name: str, label: str) -> Exception:
    """The error with the names of the stream and of the work."""
    where = f"on {name}, in {label!r}"
    if isinstance(error, UserError):
        error.details = (*error.details, where)
        return error
    found = DeviceError(f"{type(error).__name__}: {error}", details=(where,))
    found.__cause__ = error
    return found


def _closed(name: str) -> DeviceError:
    return DeviceError(f"{name} is closed", fix="get a device anew after reinitialize()")


# For what ends all threads: a fork, of which the child has none of them, and the interpreter's end.
_queues: weakref.WeakSet[WorkerQueue] = weakref.WeakSet()


def _for_all(act: Callable[[WorkerQueue], None]) -> None:
    for queue in list(_queues):
        act(queue)


os.register_at_fork(after_in_child=lambda: _for_all(WorkerQueue.renew))
atexit.register(_for_all, WorkerQueue.close)
