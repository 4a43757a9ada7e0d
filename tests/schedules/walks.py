"""Random schedules: the same operations on the device layer and on the model, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Union

import numpy as np
import sequential
from lazy import Explorer, LazyQueue
from races import Clock, joined
from schedule_programs import CONSTANTS, FAILING, PLANNED, PROGRAMS, STEP, TENSORS, VARIABLES, Program

from arrayjit.errors import UserError
from arrayjit.ir.code import Code, Postponed
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.context import Context
from arrayjit.runtime.device import Device, Machine
from arrayjit.runtime.life import Life
from arrayjit.runtime.merge import MergeUse
from arrayjit.runtime.stream import Event, Events, Stream
from arrayjit.runtime.transfer import device_to_device, init_from_device

__all__ = ["Walk", "Wrong"]

MOST = 9
"""Contexts, routines and events that are kept; the oldest are dropped."""


class Wrong(AssertionError):
    """The device layer did something else than the model."""


@dataclass(frozen=True, eq=False)
class Place:
    """A stream of a device, the model's, and the number that `copies` know it by."""

    device: Device
    real: Stream
    model: sequential.Stream
    number: int


@dataclass(frozen=True, eq=False)
class Pair:
    """A context or a routine of the device layer, the model's, and the stream that they work on. `program` is
    that of a routine, if it is no transfer."""

    real: Any
    model: Any
    place: Place
    program: Union[Program, None] = None


@dataclass
class Copy:
    """A host array that work on a stream uses: a source, or a result and what it must be."""

    array: np.ndarray
    expected: Union[np.ndarray, None]
    is_over: bool = False


@dataclass(frozen=True)
class Mark:
    """An event; by stream, how many copies are over with it; and, by queue, how many tasks."""

    event: Union[Event, Events]
    places: tuple[Place, ...]
    copies: Clock
    tasks: Clock


class Walk:
    """One schedule. `code` gives what is linked for a program; with `faults` some tasks raise."""

    def __init__(
        self,
        seed: int,
        machine: Machine,
        code: Callable[[Program], Union[Code, Postponed]],
        explorer: Union[Explorer, None] = None,
        faults: bool = False,
    ) -> None:
        self._random = Random(seed)
        self._machine = machine
        self._code = code
        self._explorer = explorer
        self._faults = faults
        self._contexts: list[Pair] = []
        self._routines: list[Pair] = []
        self._marks: list[Mark] = []
        self._finalized: list[Pair] = []
        self._places: list[Place] = []
        self._copies: dict[int, list[Copy]] = {}
        self._awaited: dict[int, Clock] = {}
        # After an error: the streams that may drop work, those of them because they were told to wait for
        # another, those that have to raise, and the arrays that dropped work may have been about.
        self._doubtful: set[Place] = set()
        self._leaning: set[Place] = set()
        self._owing: set[Place] = set()
        self._unsure: list[np.ndarray] = []
        self._arrays = 0
        self.log: list[str] = []

    def run(self, steps: int) -> None:
        """Raises AssertionError for whatever is not as it must be."""
        self._set_up()
        for _ in range(steps):
            self._step()
        self._finish()
        if self._explorer is not None:
            if self._explorer.races.found:
                raise Wrong("\n".join(self._explorer.races.found))
            if not self._faults:
                self._check_memory()

    def _set_up(self) -> None:
        random, machine = self._random, self._machine
        devices = list(machine.devices())[: random.randint(1, 3)]
        while len(devices) < 2 or random.random() < 0.2:
            devices.append(machine.new_virtual_device(devices[0]))
        for device in devices:
            streams = [device.new_stream() for _ in range(random.randint(1, 2))]
            constants: dict[Tensor, np.ndarray] = {}
            for stream in streams:
                place = Place(device, stream, sequential.Stream(constants), len(self._places) + 1)
                self._places.append(place)
                self._copies[place.number], self._awaited[place.number] = [], {}
                self._contexts.append(Pair(Context(device, stream), sequential.Context(place.model), place))
        for pair in tuple(self._contexts):
            for tensor in VARIABLES:
                if random.random() < 0.6:
                    pair = self._init_from_host(pair, tensor) or pair
            self._contexts.append(pair)

    def _step(self) -> None:
        act = self._random.choices(_OPERATIONS, _WEIGHTS)[0]
        act(self)

    def _context(self) -> Pair:
        """One of the latest of a stream."""
        place = self._random.choice(self._places)
        return self._random.choice([pair for pair in self._contexts if pair.place is place][-3:])

    def _tensor(self) -> Tensor:
        return self._random.choice(TENSORS)

    def _schedule_any(self) -> None:
        if self._routines:
            self._schedule(self._random.choice(self._routines))

    def _link_any(self) -> None:
        self._link(self._context(), self._random.choice(PROGRAMS), self._random.randint(1, 2))

    def _fail_any(self) -> None:
        if self._faults:
            self._link(self._context(), FAILING, 1)

    def _transfer_any(self) -> None:
        """Mostly where there is something to copy, to another stream."""
        for _ in range(8):
            dst, src, tensor = self._context(), self._context(), self._tensor()
            there = dst.model.arrays.get(tensor), src.model.arrays.get(tensor)
            if dst.place is not src.place and there[0] is not None and there[1] is not None:
                break
        self._transfer(dst, src, tensor, MergeUse.NO, 0)

    def _init_from_host(self, pair: Pair, tensor: Tensor) -> Union[Pair, None]:
        array = self._fresh(tensor)
        return self._made(
            f"init {tensor.label} from host",
            pair.place,
            lambda: pair.real.init_from_host(tensor, array),
            lambda: pair.model.init_from_host(tensor, array),
            Copy(array, None),
        )

    def _from_host(self) -> None:
        pair, tensor = self._context(), self._tensor()
        array = self._fresh(tensor)
        self._do(
            f"{tensor.label} from host",
            pair.place,
            lambda: pair.real.from_host(tensor, array),
            lambda: pair.model.from_host(tensor, array),
            Copy(array, None),
        )

    def _to_host(self, pair: Pair, tensor: Tensor) -> None:
        array, expected = (np.full(tensor.size, np.nan) for _ in range(2))
        self._do(
            f"{tensor.label} to host",
            pair.place,
            lambda: pair.real.to_host(tensor, array),
            lambda: pair.model.to_host(tensor, expected),
            Copy(array, expected),
        )

    def _link(self, pair: Pair, program: Program, times: int = 0) -> Union[Pair, None]:
        constants = {
            tensor: array
            for tensor, array in CONSTANTS.items()
            if tensor in program.operands and tensor not in pair.model.arrays
        }
        routine = self._do(
            f"link {program.name}",
            pair.place,
            lambda: pair.real.link(self._code(program), constants=constants),
            lambda: pair.model.link(program, constants),
        )
        if routine is None:
            return None
        made = Pair(*routine, pair.place, program)
        if program is not FAILING:
            self._keep(made)
        for _ in range(times):
            self._schedule(made)
        return made

    def _merge(self) -> None:
        """Fill the merge buffers that a program reads, and run it."""
        pair, program = self._context(), self._random.choice(_MERGING)
        transfers: list[Pair] = []
        for slot, tensor in program.merges.items():
            there = [one for one in self._contexts if tensor in one.model.arrays]
            if not there:
                return
            into = self._random.choice((MergeUse.COPY, MergeUse.STREAMING))
            made = self._transfer(pair, self._random.choice(there), tensor, into, slot)
            if made is None:
                return
            pair = Pair(made.real.context, made.model.context, pair.place)
            transfers.append(made)
        consumer = self._link(pair, program)
        for _ in range(self._random.randint(1, 2)):
            for routine in (*transfers, *((consumer,) if consumer else ())):
                self._schedule(routine)
                if self._random.random() < 0.3 and self._routines:
                    self._schedule(self._random.choice(self._routines))

    def _transfer(self, dst: Pair, src: Pair, tensor: Tensor, into: MergeUse, slot: int) -> Union[Pair, None]:
        routine = self._do(
            f"{tensor.label} from stream {src.place.number} into {into.value}",
            dst.place,
            lambda: device_to_device(tensor, dst=dst.real, src=src.real, into=into, slot=slot),
            lambda: sequential.device_to_device(tensor, dst=dst.model, src=src.model, into=into, slot=slot),
        )
        if routine is None or routine[0] is None:
            return None
        made = Pair(*routine, dst.place)
        self._keep(made)
        if into is MergeUse.NO:
            self._schedule(made)
        return made

    def _schedule(self, routine: Pair) -> None:
        """Run it with another number each time, which changes right afterwards."""
        step = self._random.randrange(100)
        has_step = routine.program is not None and routine.program.has_step
        if has_step:
            routine.real.bindings[STEP] = step
        self._do(
            f"schedule {routine.real.name}",
            routine.place,
            routine.real.schedule,
            lambda: routine.model.schedule(step),
            fails=routine.program is FAILING,
        )
        if has_step:
            routine.real.bindings[STEP] = 101

    def _init_from_device(self) -> None:
        dst, src, tensor = self._context(), self._context(), self._tensor()
        self._made(
            f"init {tensor.label} from stream {src.place.number}",
            dst.place,
            lambda: init_from_device(tensor, dst=dst.real, src=src.real),
            lambda: sequential.init_from_device(tensor, dst=dst.model, src=src.model),
        )

    def _share(self) -> None:
        """The same buffers, for work on another stream of the device."""
        pair = self._context()
        real, model = pair.real, pair.model
        if real.life.is_over:
            return
        place = self._random.choice([one for one in self._places if one.device is real.device])
        shared = Context(real.device, place.real, real.buffers, parent=real, life=Life(real.life))
        self._contexts.append(Pair(shared, sequential.Context(place.model, model.arrays), place))

    # Events

    def _record(self) -> None:
        place = self._random.choice(self._places)
        places = (place,)
        record: Callable[[], Union[Event, Events]] = place.real.record
        if self._random.random() < 0.2 and not self._faults:
            places = tuple(one for one in self._places if one.device is place.device)
            record = place.device.all_work
        done = self._do("record", place, record, lambda: None)
        if done is not None:
            tasks = joined(*(_queue(one).point() for one in places)) if self._explorer else {}
            self._marks.append(Mark(done[0], places, self._copied(places), tasks))

    def _wait(self) -> None:
        if not self._marks:
            return
        place, mark = self._random.choice(self._places), self._random.choice(self._marks)
        self._do("wait", place, lambda: place.real.wait_for(mark.event), lambda: None)
        self._awaited[place.number] = joined(self._awaited[place.number], mark.copies)
        if self._doubtful.intersection(mark.places):
            self._doubtful.add(place)
            self._leaning.add(place)
        if self._explorer is not None:
            _queue(place).awaited = joined(_queue(place).awaited, mark.tasks)

    def _sync(self) -> None:
        if not self._marks:
            return
        mark = self._random.choice(self._marks)
        if self._random.random() < 0.3:
            if not mark.event.is_done():
                return
        elif self._do("sync", mark.places[0], mark.event.sync, lambda: None) is None:
            return
        if self._explorer is not None and not self._explorer.knows(mark.tasks):
            raise Wrong("an event is done before what it stands for")
        self._check(mark.copies)

    def _await(self, place: Place) -> bool:
        """Whether nothing was raised."""
        if self._do("await", place, place.real.await_, lambda: None) is None:
            return False
        if place in self._owing:
            raise Wrong(f"stream {place.number} never raised what a task raised")
        self._leaning.discard(place)
        self._check(self._copied((place,)))
        return True

    def _copied(self, places: tuple[Place, ...]) -> Clock:
        """How many copies are over with all the work of these streams."""
        return joined(
            *({one.number: len(self._copies[one.number])} for one in places),
            *(self._awaited[one.number] for one in places),
        )

    def _check(self, copies: Clock) -> None:
        """These are over: results are there, and sources may change."""
        for number, count in copies.items():
            for copy in self._copies[number][:count]:
                if not copy.is_over:
                    self._settle(copy)

    def _settle(self, copy: Copy) -> None:
        copy.is_over = True
        if self._explorer is not None:
            self._explorer.touch_host(copy.array, copy.expected is None)
        if copy.expected is None:
            copy.array[:] = np.nan
            return
        known = ~np.isnan(copy.expected)
        if not np.array_equal(copy.array[known], copy.expected[known]):
            raise Wrong(f"{copy.array} should be {copy.expected}")

    # The end of things

    def _drop(self) -> None:
        for kept in (self._contexts, self._routines, self._marks):
            if len(kept) > len(self._places):
                del kept[self._random.randrange(len(self._places), len(kept))]

    def _finalize(self) -> None:
        pair, doubtful = self._context(), set(self._doubtful)
        self._finalized.append(pair)
        done = self._do("finalize", pair.place, pair.real.finalize, pair.model.finalize)
        if done is None:  # raised what was raised on any stream that uses the context's memory
            self._owing.clear()
            self._doubtful = doubtful
            pair.model.finalize()

    def _finish(self) -> None:
        for _ in range(len(self._places) + 1):
            if all([self._await(place) for place in self._places]):
                break
        else:
            raise Wrong("streams go on raising")
        self._doubtful.clear()
        self._leaning.clear()
        self._unsure.clear()
        seen = set()
        for pair in self._contexts:
            for tensor, array in pair.model.arrays.items():
                if not pair.model.is_over and id(array) not in seen:
                    seen.add(id(array))
                    self._to_host(pair, tensor)
        for place in self._places:
            self._await(place)

    def _check_memory(self) -> None:
        """Nothing is left of contexts and streams that nobody has any more."""
        devices = {place.device for place in self._places}
        for device in devices:
            device.await_()
        for kept in (self._contexts, self._routines, self._marks, self._finalized, self._places):
            kept.clear()
        for device in devices:
            if any(device.memory_by_purpose().values()):
                raise Wrong(f"{device} still has {device.memory_by_purpose()}")

    # Both sides

    def _do(
        self,
        name: str,
        place: Place,
        real: Callable[[], Any],
        model: Callable[[], Any],
        copy: Union[Copy, None] = None,
        fails: bool = False,
    ) -> Union[tuple[Any, Any], None]:
        """The results of both; None when both refuse, or when an earlier task's exception is raised, and
        nothing was done."""
        self.log.append(f"{name} on stream {place.number}")
        refused: Union[type, None] = None
        try:
            found = real()
        except (UserError, RuntimeError) as error:
            if PLANNED in str(error):
                self._owing.discard(place)
                if place not in self._leaning:
                    self._doubtful.discard(place)
                return None
            refused = type(error)
        try:
            expected = model()
        except UserError as error:
            if refused is not type(error):
                raise Wrong(f"{name}: {refused}, should be {type(error)}") from error
            return None
        if refused is not None:
            raise Wrong(f"{name} was refused: {refused}")
        if isinstance(expected, bool) and found is not expected:
            raise Wrong(f"{name} says {found}")
        if copy is not None and found:
            self._copies[place.number].append(copy)
        if fails:
            self._owing.add(place)
            self._doubtful.add(place)
        self._follow(place)
        return found, expected

    def _made(
        self,
        name: str,
        place: Place,
        real: Callable[[], Any],
        model: Callable[[], Any],
        copy: Union[Copy, None] = None,
    ) -> Union[Pair, None]:
        """As `_do`, for what makes a context."""
        done = self._do(name, place, real, model, copy)
        if done is None:
            return None
        self._contexts.append(Pair(*done, place))
        return self._contexts[-1]

    def _keep(self, routine: Pair) -> None:
        self._routines.append(routine)
        self._contexts.append(Pair(routine.real.context, routine.model.context, routine.place))
        while len(self._routines) > MOST:
            del self._routines[0]

    def _follow(self, place: Place) -> None:
        """Work that a failed task may have stopped leaves its results unknown, and stops others."""
        used = [*place.model.reads, *place.model.writes]
        if place in self._doubtful or any(one is other for one in used for other in self._unsure):
            self._doubtful.add(place)
            self._unsure.extend(used)
            for array in place.model.writes:
                array[:] = np.nan
        place.model.reads.clear()
        place.model.writes.clear()

    def _fresh(self, tensor: Tensor) -> np.ndarray:
        """An array that nobody else has, of values that no other array has."""
        self._arrays += 1
        return self._arrays + np.arange(tensor.size) / 8


def _queue(place: Place) -> LazyQueue:
    queue = place.real.queue
    assert isinstance(queue, LazyQueue)
    return queue


_MERGING = [program for program in PROGRAMS if program.merges]

_CHANCES: dict[Callable[[Walk], object], int] = {
    Walk._schedule_any: 14,
    Walk._link_any: 4,
    Walk._merge: 6,
    Walk._from_host: 2,
    lambda walk: walk._to_host(walk._context(), walk._tensor()): 2,
    lambda walk: walk._init_from_host(walk._context(), walk._tensor()): 1,
    Walk._transfer_any: 9,
    Walk._init_from_device: 1,
    Walk._share: 5,
    Walk._record: 4,
    Walk._wait: 4,
    Walk._sync: 2,
    lambda walk: walk._await(walk._random.choice(walk._places)): 1,
    Walk._drop: 1,
    Walk._finalize: 1,
    Walk._fail_any: 2,
}
_OPERATIONS, _WEIGHTS = tuple(_CHANCES), tuple(_CHANCES.values())
