"""The queue of a GPU's stream.

A task is issued by the thread that submits it, or that waits for it, in order: what it does on the host is
then done, and what it asked of the GPU is under way. Two queues of GPUs wait for each other on the GPUs;
other queues wait, and are waited for, on the host."""

from __future__ import annotations

import weakref
from functools import partial

from ...errors import DeviceError
from ..driver import Outcome, Queue, Task
from ..queues import InlineQueue
from .gpu import Gpu
from .lane import stay_on

__all__ = ["GpuQueue"]


class GpuQueue:
    """Work of a GPU, in order."""

    def __init__(self, gpu: Gpu, name: str) -> None:
        self.name = name
        self.gpu = gpu
        self.lane = gpu.lane()
        self._issuing = InlineQueue(name)
        self._handed_out = 0
        weakref.finalize(self, gpu.leave_lane, self.lane).atexit = False

    @property
    def done(self) -> int:
        issued, lane = self._issuing.done, self.lane
        if lane.finished < lane.issued:
            try:
                with self.gpu.asked():
                    lane.mark()
                    lane.look()
            except DeviceError:
                return issued  # whoever waits is told
        return issued if lane.finished >= lane.issued else min(issued, lane.finished)

    @property
    def recorded_as(self) -> object:
        return self._issuing

    def put(self, task: Task, label: str) -> None:
        self._issuing.put(partial(self._issue, task), label)

    def wait_for(self, other: Queue, count: int) -> None:
        is_near = isinstance(other, GpuQueue) and other.gpu.api is self.gpu.api
        self._issuing.wait_for(_Behind(self, other) if is_near else other, count)  # type: ignore[arg-type]

    def flush(self, count: int) -> None:
        self._issuing.flush(count)

    def wait(self, count: int) -> None:
        self._issuing.wait(count)
        self._sync(count)

    def outcome(self, count: int) -> Outcome | None:
        issued = self._issuing.outcome(count)
        if issued is None and self.done >= count and self.gpu.error is None:
            return None
        return partial(self._outcome, issued, count)

    def end(self) -> None:
        self._issuing.end()

    def close(self) -> None:
        self._issuing.close()
        try:
            self._sync(self._issuing.done)
        except DeviceError:
            return  # who waited was told

    def awaited_by(self, other: GpuQueue, count: int, issued: Outcome | None) -> BaseException | None:
        """Let the other queue's next work come after the first `count` tasks; what stopped them."""
        error = issued() if issued is not None else None
        if error is not None or self.gpu.error is not None:
            return error or self.gpu.error
        with self.gpu.asked():
            event = self.lane.mark_of(count)
        if event:
            with other.gpu.asked():
                other.gpu.api.wait(other.lane.stream, event)
        return None

    def issued(self, count: int) -> Outcome | None:
        """How to have the first `count` tasks issued; None if they are and nothing stopped them."""
        return self._issuing.outcome(count)

    def _issue(self, task: Task) -> None:
        gpu, lane = self.gpu, self.lane
        with lane.lock, gpu.asked():
            if self._handed_out != gpu.handed_out:
                self._handed_out = gpu.handed_out
                gpu.follow(lane)
            before = stay_on(lane)
            lane.issued = self._issuing.done + 1
            try:
                task()
            finally:
                stay_on(before)

    def _sync(self, count: int) -> None:
        """Block until the first `count` tasks, which are issued, are over. Raises DeviceError."""
        with self.gpu.asked():
            event = self.lane.mark_of(count)
            if event:
                self.gpu.api.sync_event(event)
                self.lane.look()

    def _outcome(self, issued: Outcome | None, count: int) -> BaseException | None:
        error = issued() if issued is not None else None
        if error is None:
            try:
                self._sync(count)
            except DeviceError as raised:
                return raised
        return error


class _Behind:
    """A queue as one of the same GPUs sees it: what it is told to wait for, the GPU waits for."""

    def __init__(self, waiting: GpuQueue, other: GpuQueue) -> None:
        self._waiting = waiting
        self._other = other

    def outcome(self, count: int) -> Outcome:
        return partial(self._other.awaited_by, self._waiting, count, self._other.issued(count))
