"""A device that works only when it is told to, in the worst order that what it was told allows.

Its queues do nothing until the host blocks or lets the explorer wander; the explorer then advances whichever
queue it likes of those whose head may run. New memory is full of NaN, freed memory cannot be touched, and
every access to memory, the host's arrays included, is reported to the race detector.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Union

import numpy as np
from races import HOST, Actor, Clock, Races, joined

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Code
from arrayjit.runtime.driver import Driver, Memory, Outcome, Queue, Task

__all__ = ["ORDERS", "Deadlock", "Explorer", "FreedMemory", "LazyDriver", "LazyQueue"]

TARGET = "lazy"


class Deadlock(AssertionError):
    """No queue can go on, and some are not empty."""


class FreedMemory(AssertionError):
    """A task uses memory that was given back."""


@dataclass(slots=True, eq=False)
class _Run:
    """The tasks between two errors that were raised: from `first` on they are dropped. `blocked` is what
    stopped something that the next task waits for."""

    error: Exception | None = None
    first: int = 0
    blocked: Exception | None = None

    def stopped(self, number: int) -> Exception | None:
        """What stopped the task of this number."""
        return self.error if self.first <= number else None


@dataclass(frozen=True, slots=True)
class _Work:
    task: Task
    actor: Actor
    run: _Run


@dataclass(frozen=True, slots=True)
class _Wait:
    queue: LazyQueue
    count: int
    other: _Run
    run: _Run


class LazyQueue:
    """The contract of a queue, without a thread: the explorer runs its entries one by one."""

    def __init__(self, explorer: Explorer, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.awaited: Clock = {}
        """What the program explicitly made this queue wait for."""
        self.over = 0
        self.submitted = 0
        self._explorer = explorer
        self._entries: deque[Union[_Work, _Wait]] = deque()
        self._clock: Clock = {}
        self._clocks: list[Clock] = [{}]
        self._run = _Run()
        self.number = explorer.add(self)

    @property
    def done(self) -> int:
        self._explorer.learn(self._clocks[self.over])
        return self.over

    def put(self, task: Task, label: str) -> None:
        self._raise_error()
        self.submitted += 1
        self._clock = joined(self._clock, self._explorer.step(), {self.number: self.submitted})
        self._clocks.append(self._clock)
        name = f"{label} (task {self.submitted} of {self.name})"
        actor = Actor(self.number, self.submitted, self._clock, name)
        self._explorer.races.promise(actor, self.awaited)
        self._entries.append(_Work(task, actor, self._run))
        self._explorer.wander()

    def wait_for(self, other: Queue, count: int) -> None:
        assert isinstance(other, LazyQueue)
        clock = other._clocks[count]
        if self._explorer.knows(clock) and other._run.stopped(count) is None:
            return
        if self._explorer.is_removed():
            return
        self._clock = joined(self._clock, clock)
        self._entries.append(_Wait(other, count, other._run, self._run))

    def flush(self, count: int) -> None:
        if self.submitted - self.over > self.capacity:
            self._explorer.run_until(lambda: self.over >= count, self)
            self._explorer.learn(self._clocks[count])

    def wait(self, count: int) -> None:
        self._explorer.run_until(lambda: self.over >= count, self)
        self._raise_error()
        self._explorer.learn(self._clocks[count])

    def outcome(self, count: int) -> Outcome | None:
        raise NotImplementedError("lazy queues wait for lazy queues only, which look for themselves")

    def end(self) -> None:
        return None

    def close(self) -> None:
        self._explorer.run_until(lambda: self.over >= self.submitted, self)

    def point(self) -> Clock:
        """What is over when an event that is recorded now is done."""
        return joined(self.awaited, {self.number: self.submitted})

    def head(self) -> str:
        """For messages: what the queue is at."""
        match self._entries[0]:
            case _Wait(queue=queue, count=number):
                return f"{self.name} waits for task {number} of {queue.name}, which has done {queue.over}"
            case _Work(actor=actor):
                return actor.name

    def is_ready(self) -> bool:
        """Whether the explorer may `advance` it."""
        return bool(self._entries) and self.blocker() is None

    def blocker(self) -> LazyQueue | None:
        """The queue that the first entry waits for."""
        head = self._entries[0]
        return head.queue if isinstance(head, _Wait) and head.queue.over < head.count else None

    def advance(self) -> None:
        """Run the first entry. Tasks behind a failure are passed over, but waits are not."""
        match self._entries.popleft():
            case _Wait(count=number, other=other, run=run):
                run.blocked = run.blocked or other.stopped(number)
            case _Work(task=task, actor=actor, run=run):
                if run.error is None:
                    run.error = run.blocked or self._explorer.run(task, actor)
                    run.first = actor.number
                self.over += 1

    def _raise_error(self) -> None:
        run = self._run
        if run.error is not None:
            self._explorer.run_until(lambda: self.over >= self.submitted, self)
            self._explorer.learn(self._clocks[self.submitted])
            self._run = _Run()
            raise run.error


Order = Callable[[Sequence[LazyQueue], LazyQueue, Random], LazyQueue]


def _needed(ready: Sequence[LazyQueue], target: LazyQueue, random: Random) -> LazyQueue:
    """Nothing but what the target needs."""
    seen = {target}
    while target not in ready:
        blocker = target.blocker()
        if blocker is None or blocker in seen:
            return ready[0]
        target = blocker
        seen.add(target)
    return target


ORDERS: Mapping[str, Order] = {
    "any": lambda ready, target, random: random.choice(ready),
    "oldest": lambda ready, target, random: ready[0],
    "newest": lambda ready, target, random: ready[-1],
    "furthest": lambda ready, target, random: max(ready, key=lambda queue: queue.over),
    "target last": lambda ready, target, random: min(ready, key=lambda queue: queue is target),
    "needed": _needed,
}


class Explorer:
    """Chooses what runs when, and knows what the host knows.

    `order` says who goes on while the host waits; `restlessness` is how likely one more entry runs whenever
    the host submits something. The effective wait number `removed`, counted from 0, is kept from its queue.
    """

    def __init__(
        self, seed: int, order: Order, restlessness: float = 0.0, removed: int | None = None
    ) -> None:
        self.races = Races()
        self.queues: list[LazyQueue] = []
        self.num_waits = 0
        self._order = order
        self._restlessness = restlessness
        self._removed = removed
        self._random = Random(seed)
        self._clock: Clock = {}
        self._steps = 0
        self._actor: Actor | None = None

    def add(self, queue: LazyQueue) -> int:
        """The number of a new queue; 0 is the host."""
        self.queues.append(queue)
        return len(self.queues)

    def is_removed(self) -> bool:
        """Whether the wait that a queue is told of now is to be ignored."""
        self.num_waits += 1
        return self.num_waits - 1 == self._removed

    def step(self) -> Clock:
        """What a task that the host submits now can rely on, were it the only one on its queue."""
        self._steps += 1
        return {**self._clock, HOST: self._steps}

    def learn(self, clock: Clock) -> None:
        """The host has seen that all this is over."""
        if not self.knows(clock):
            self._clock = joined(self._clock, clock)

    def knows(self, clock: Clock) -> bool:
        return all(queue == HOST or self._clock.get(queue, 0) >= number for queue, number in clock.items())

    @property
    def actor(self) -> Actor:
        """Who runs now."""
        if self._actor is not None:
            return self._actor
        clock = self.step()
        return Actor(HOST, self._steps, clock, f"the host (step {self._steps})")

    def touch_host(self, array: np.ndarray, is_write: bool) -> None:
        """Whoever runs now accesses an array of the host's, which must live as long as the explorer."""
        self.races.touch(("host", id(array)), 0, array.nbytes, is_write, self.actor)

    def run(self, task: Task, actor: Actor) -> Exception | None:
        """Run a task of a queue; what it raised, but for what the checker itself has to say."""
        self._actor = actor
        try:
            task()
        except AssertionError:
            raise
        except Exception as error:
            return error
        finally:
            self._actor = None
        return None

    def wander(self) -> None:
        """Let some queues go on while the host does not wait for any."""
        while self._random.random() < self._restlessness:
            ready = [queue for queue in self.queues if queue.is_ready()]
            if not ready:
                return
            self._random.choice(ready).advance()

    def run_until(self, is_reached: Callable[[], bool], target: LazyQueue) -> None:
        """The host waits for something of the target's."""
        while not is_reached():
            ready = [queue for queue in self.queues if queue.is_ready()]
            if not ready:
                raise Deadlock(
                    "; ".join(queue.head() for queue in self.queues if queue.over < queue.submitted)
                )
            self._order(ready, target, self._random).advance()


class _Slab:
    """Memory at an address of its own, never given to another."""

    def __init__(self, number: int, nbytes: int) -> None:
        self.address = number * _REACH
        self.cells = np.full(-(-nbytes // 8), np.nan)


_REACH = 1 << 32


class LazyExecutable:
    """A NumPy function of the array parameters, in their order, and the numbers."""

    def __init__(self, driver: LazyDriver, code: Code) -> None:
        self.seconds: Mapping[str, float] = {}
        self._driver = driver
        self._function = code.payload
        self._arrays = [param for param in code.params if isinstance(param, ArrayParam)]

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int = 0) -> int:
        views = [
            self._driver.view(pointer, param.tensor.nbytes, param.access in ("write", "update"))
            for pointer, param in zip(pointers, self._arrays, strict=True)
        ]
        self._function(*views, *bindings)
        return 0


class LazyDriver:
    """Several devices, whose queues are the explorer's and hold `capacity` tasks each."""

    is_host = True
    name = TARGET

    def __init__(self, explorer: Explorer, devices: int = 3, capacity: int = 1000) -> None:
        self._explorer = explorer
        self._devices = devices
        self._capacity = capacity
        self._numbers = count(1)
        self._slabs: weakref.WeakValueDictionary[int, _Slab] = weakref.WeakValueDictionary()

    def num_devices(self) -> int:
        return self._devices

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {"ordinal": ordinal}

    def debug_info(self, ordinal: int) -> Mapping[str, str | int]:
        return {"ordinal": ordinal}

    def queue(self, ordinal: int, name: str) -> LazyQueue:
        return LazyQueue(self._explorer, name, self._capacity)

    def threads(self, ordinal: int, most: int | None = None) -> int:
        return 0

    def reaches(self, ordinal: int, other: int) -> bool:
        return True

    def enable_access(self, ordinal: int, other: int) -> None:
        return None

    def allocate(self, ordinal: int, nbytes: int) -> _Slab:
        number = next(self._numbers)
        slab = self._slabs[number] = _Slab(number, nbytes)
        return slab

    def memset_zero(self, memory: Memory, offset: int, nbytes: int) -> None:
        self.view(memory.address + offset, nbytes, True)[:] = 0

    def upload(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        self._explorer.touch_host(array, False)
        self.view(memory.address + offset, array.nbytes, True)[:] = array

    def download(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        self._explorer.touch_host(array, True)
        array[:] = self.view(memory.address + offset, array.nbytes, False)

    def copy(
        self, memory: Memory, offset: int, source: Driver, origin: Memory, start: int, nbytes: int
    ) -> None:
        values = self.view(origin.address + start, nbytes, False)
        self.view(memory.address + offset, nbytes, True)[:] = values

    def view(self, address: int, nbytes: int, is_write: bool) -> np.ndarray:
        """The cells at an address, which whoever runs now accesses."""
        number, offset = divmod(address, _REACH)
        actor = self._explorer.actor
        slab = self._slabs.get(number)
        if slab is None:
            raise FreedMemory(f"{actor.name} uses memory that was given back")
        self._explorer.races.touch(number, offset, offset + nbytes, is_write, actor)
        return slab.cells[offset // 8 : (offset + nbytes) // 8]

    def order(self) -> None:
        return None

    def load(self, code: Code, ordinal: int = 0) -> LazyExecutable:
        return LazyExecutable(self, code)

    def assembly(self, code: Code) -> str:
        raise NotImplementedError(f"{code.name} is a Python function")

    def close(self) -> None:
        return None
