"""The queues of the host: work done by whoever submits it, and work done by a thread.

When a task raises, the tasks behind it are dropped; but what the queue was told to wait for it still waits
for, so that a task being over, done or dropped, always means that what it had to follow is over.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Union

from ..errors import CompilerBug, DeviceError, UserError, is_raised_by_program
from ..frozen import slotted_by_identity
from ..timeline import RECORDER
from .driver import Outcome, Queue, Task

__all__ = ["CAPACITY", "HostQueue", "InlineQueue", "WorkerQueue"]

CAPACITY = 4096
"""Tasks that a queue holds; who submits one more waits until all are over."""


@slotted_by_identity
class _Run:
    """The tasks between two errors that were raised: `first` raised the next, it and those behind it are
    dropped."""

    error: BaseException | None = None
    first: int = 0

    def stopped(self, number: int) -> BaseException | None:
        """What stopped the task of this number."""
        return self.error if self.first <= number else None


@slotted_by_identity
class _Work:
    """A task that waits for its turn, and the run that it is part of."""

    task: Task
    label: str
    number: int
    run: _Run


@slotted_by_identity
class _Wait:
    """Another queue's work, which must be over before what comes next."""

    outcome: Outcome


@slotted_by_identity
class _Forget:
    """The work that was to wait for what comes before this was refused."""


_Entry = Union[_Work, _Wait, _Forget]


class HostQueue(ABC):
    """What both kinds have: numbers, and what becomes of errors."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self._last = 0
        self._run = _Run()
        self._blocked: BaseException | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def recorded_as(self) -> object:
        return self

    def put(self, task: Task, label: str) -> None:
        if self._is_closed:
            raise DeviceError(f"{self.name} is closed", fix="get a device anew after reinitialize()")
        run = self._run
        if run.error is not None:
            self._add(_Forget())
            self._raise(run)
        with self._lock:
            number = self._last + 1
            self._last = number
            self._add(_Work(task, label, number, self._run))

    def wait_for(self, other: Queue, count: int) -> None:
        outcome = other.outcome(count)
        if outcome is not None:
            self._add(_Wait(outcome))

    def wait(self, count: int) -> None:
        run = self._run
        if self.done < count:
            self._reach(count)
        if run.error is not None and run.first <= count:
            self._raise(run)
        if self._run.error is not None:
            self._raise(self._run)

    def outcome(self, count: int) -> Outcome | None:
        run = self._run
        if self.done >= count and run.stopped(count) is None:
            return None
        return partial(self._outcome, run, count)

    def end(self) -> None:
        """Also called by the garbage collector, at any moment and in any thread: it takes no lock."""
        self._is_closed = True

    @abstractmethod
    def _add(self, entry: _Entry) -> None:
        """Add the entry at the end."""

    @abstractmethod
    def _reach(self, count: int) -> None:
        """Block until the first `count` tasks are over."""

    def _outcome(self, run: _Run, count: int) -> BaseException | None:
        try:
            self._reach(count)
        except DeviceError as error:
            return error
        return run.stopped(count)

    def _raise(self, run: _Run) -> None:
        """Raise what stopped the run, once all behind it is dropped; the next task starts another run."""
        assert run.error is not None
        while True:
            self._reach(self._last)
            with self._lock:
                if self.done >= self._last:
                    if self._run is run:
                        self._run = _Run()
                    raise run.error

    def _perform(self, entry: _Entry) -> None:
        if isinstance(entry, _Wait):
            self._blocked = entry.outcome() or self._blocked
            return
        if isinstance(entry, _Forget):
            self._blocked = None
            return
        run = entry.run
        error, self._blocked = self._blocked, None
        if run.error is None:
            if error is None:
                timeline = RECORDER.timeline
                try:
                    if timeline is None:
                        entry.task()
                    else:
                        with timeline.task(self, self.name, entry.number, entry.label):
                            entry.task()
                except BaseException as raised:
                    error = _located(raised, self.name, entry.label)
            if error is not None:
                run.first = entry.number
                run.error = error
        entry.task = _let_go  # what only the task has kept is gone before anybody hears that it is over
        if self.done < entry.number:  # a task may have put another one, which came first
            self.done = entry.number


class InlineQueue(HostQueue):
    """Work is done by the thread that submits it, or waits for it, and what it raises is raised there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._entries: deque[_Entry] = deque()
        self._turn = threading.RLock()

    def flush(self, count: int) -> None:
        self.wait(count)

    def close(self) -> None:
        self.end()
        self._reach(self._last)

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)

    def _reach(self, count: int) -> None:
        with self._turn:
            while self.done < count and self._entries:
                self._perform(self._entries.popleft())


class WorkerQueue(HostQueue):
    """Work is done by a thread of its own, started at the first task. Native code runs without the
    interpreter's lock, so that the threads of several queues overlap."""

    def __init__(self, name: str, capacity: int = CAPACITY) -> None:
        super().__init__(name)
        self.capacity = capacity
        self._renew()
        _queues.add(self)

    def flush(self, count: int) -> None:
        if count - self.done > self.capacity:
            self._reach(count)

    def end(self) -> None:
        super().end()
        self._entries.put(None)

    def close(self) -> None:
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def before_fork(self) -> None:
        """Only the forking thread lives on in the child: what was submitted has to be over by then."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._outcome(self._run, self._last)

    def after_fork(self) -> None:
        """In the child, where the thread and whoever held a lock are gone."""
        self.done = self._last
        self._lock = threading.Lock()
        self._renew()

    def _renew(self) -> None:
        self._entries: SimpleQueue[_Entry | None] = SimpleQueue()
        self._progress = threading.Condition()
        self._watchers = 0
        self._thread: threading.Thread | None = None
        self._is_over = False

    def _add(self, entry: _Entry) -> None:
        self._entries.put(entry)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
            self._thread.start()

    def _reach(self, count: int) -> None:
        if threading.current_thread() is self._thread and self.done < count:
            raise DeviceError(f"a task of {self.name} waits for its own stream", fix="use another stream")
        with self._progress:
            self._watchers += 1
            try:
                while self.done < count and not self._is_over:
                    self._progress.wait()
            finally:
                self._watchers -= 1
        if self.done < count:
            raise DeviceError(
                f"the worker of {self.name} is dead", fix="reinitialize the backend and link again"
            )

    def _work(self) -> None:
        """The thread."""
        try:
            while (entry := self._entries.get()) is not None:
                self._perform(entry)
                del entry
                if self._watchers:
                    self._notify()
        finally:
            self._is_over = True
            self._notify()

    def _notify(self) -> None:
        with self._progress:
            self._progress.notify_all()


def _let_go() -> None:
    """The task of work that is over."""


def _located(error: BaseException, name: str, label: str) -> BaseException:
    """The error with the names of the stream and of the work."""
    where = f"on {name}, in {label!r}"
    match error:
        case UserError():
            error.details = (*error.details, where)
            return error
        case CompilerBug():
            return error
        case Exception() if is_raised_by_program(error):
            return error
        case Exception():
            found = DeviceError(f"{type(error).__name__}: {error}", details=(where,))
            found.__cause__ = error
            return found
        case _:
            return error


# For what ends all threads: a fork, of which the child has none of them, and the interpreter's end.
_queues: weakref.WeakSet[WorkerQueue] = weakref.WeakSet()


def _for_all(act: Callable[[WorkerQueue], None]) -> None:
    for queue in list(_queues):
        act(queue)


os.register_at_fork(
    before=lambda: _for_all(WorkerQueue.before_fork),
    after_in_child=lambda: _for_all(WorkerQueue.after_fork),
)
atexit.register(_for_all, WorkerQueue.close)
