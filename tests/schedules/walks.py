"""Random schedules: operations chosen at random, done on the device layer and on the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Union

import numpy as np
import sequential
from lazy import Explorer
from schedule_programs import CONSTANTS, FAILING, PROGRAMS, STEP, TENSORS, VARIABLES, Program
from sides import Copy, Mark, Pair, Place, Sides, Wrong

from arrayjit.ir.code import Code, Postponed
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.context import Context
from arrayjit.runtime.device import Machine
from arrayjit.runtime.life import Life
from arrayjit.runtime.merge import MergeUse
from arrayjit.runtime.transfer import device_to_device, init_from_device

__all__ = ["Walk"]

MOST = 9
"""Routines that are kept; the oldest are dropped."""


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
        self.sides = Sides(explorer)
        self._random = Random(seed)
        self._machine = machine
        self._code = code
        self._explorer = explorer
        self._faults = faults
        self._contexts: list[Pair] = []
        self._routines: list[Pair] = []
        self._finalized: list[Pair] = []
        self._marks: list[Mark] = []
        self._arrays = 0

    def run(self, steps: int) -> None:
        """Raises AssertionError for whatever is not as it must be."""
        self._set_up()
        for _ in range(steps):
            act = self._random.choices(_OPERATIONS, _WEIGHTS)[0]
            act(self)
        self._finish()
        if self._explorer is not None:
            if self._explorer.races.found:
                raise Wrong("\n".join(self._explorer.races.found))
            if not self._faults:
                self._check_memory()

    def _set_up(self) -> None:
        """Streams of devices, some of them virtual; on each an empty context, and one that has tensors."""
        random, machine = self._random, self._machine
        devices = list(machine.devices())[: random.randint(1, 3)]
        while len(devices) < 2 or random.random() < 0.2:
            devices.append(machine.new_virtual_device(devices[0]))
        for device in devices:
            constants: dict[Tensor, np.ndarray] = {}
            for _ in range(random.randint(1, 2)):
                place = self.sides.add(device, device.new_stream(), sequential.Stream(constants))
                empty = Context(device, place.real), sequential.Context(place.model)
                self._add(Pair(*empty, place))
        for pair in tuple(self._contexts):
            for tensor in VARIABLES:
                if random.random() < 0.6:
                    pair = self._init_from_host(pair, tensor) or pair

    def _context(self) -> Pair:
        """One of the latest of a stream."""
        place = self._place()
        return self._random.choice([pair for pair in self._contexts if pair.place is place][-3:])

    def _place(self) -> Place:
        return self._random.choice(self.sides.places)

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
        context = self.sides.do(
            f"init {tensor.label} from host",
            pair.place,
            lambda: pair.real.init_from_host(tensor, array),
            lambda: pair.model.init_from_host(tensor, array),
            copy=Copy(array),
        )
        return self._add(context)

    def _from_host(self) -> None:
        pair, tensor = self._context(), self._tensor()
        array = self._fresh(tensor)
        self.sides.do(
            f"{tensor.label} from host",
            pair.place,
            lambda: pair.real.from_host(tensor, array),
            lambda: pair.model.from_host(tensor, array),
            copy=Copy(array),
        )

    def _to_host(self, pair: Pair, tensor: Tensor) -> None:
        array, expected = (np.full(tensor.size, np.nan) for _ in range(2))
        self.sides.do(
            f"{tensor.label} to host",
            pair.place,
            lambda: pair.real.to_host(tensor, array),
            lambda: pair.model.to_host(tensor, expected),
            copy=Copy(array, expected),
        )

    def _link(self, pair: Pair, program: Program, times: int = 0) -> Union[Pair, None]:
        constants = {
            tensor: array
            for tensor, array in CONSTANTS.items()
            if tensor in program.operands and tensor not in pair.model.arrays
        }
        routine = self.sides.do(
            f"link {program.name}",
            pair.place,
            lambda: pair.real.link(self._code(program), constants=constants),
            lambda: pair.model.link(program, constants),
        )
        if routine is None:
            return None
        made = replace(routine, program=program)
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
        routine = self.sides.do(
            f"{tensor.label} from stream {src.place.number} into {into.value}",
            dst.place,
            lambda: device_to_device(tensor, dst=dst.real, src=src.real, into=into, slot=slot),
            lambda: sequential.device_to_device(tensor, dst=dst.model, src=src.model, into=into, slot=slot),
        )
        if routine is None or routine.real is None:
            return None
        self._keep(routine)
        if into is MergeUse.NO:
            self._schedule(routine)
        return routine

    def _schedule(self, routine: Pair) -> None:
        """Run it with another number each time, which changes right afterwards."""
        step = self._random.randrange(100)
        has_step = routine.program is not None and routine.program.has_step
        if has_step:
            routine.real.bindings[STEP] = step
        self.sides.do(
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
        context = self.sides.do(
            f"init {tensor.label} from stream {src.place.number}",
            dst.place,
            lambda: init_from_device(tensor, dst=dst.real, src=src.real),
            lambda: sequential.init_from_device(tensor, dst=dst.model, src=src.model),
        )
        self._add(context)

    def _share(self) -> None:
        """The same buffers, for work on another stream of the device."""
        pair = self._context()
        real, model = pair.real, pair.model
        if real.life.is_over:
            return
        place = self._random.choice([one for one in self.sides.places if one.device is real.device])
        shared = Context(real.device, place.real, real.buffers, parent=real, life=Life(real.life))
        self._add(Pair(shared, sequential.Context(place.model, model.arrays), place))

    def _record(self) -> None:
        place = self._place()
        if self._random.random() < 0.2 and not self._faults:
            places = tuple(one for one in self.sides.places if one.device is place.device)
            mark = self.sides.record(places, place.device.all_work)
        else:
            mark = self.sides.record((place,), place.real.record)
        if mark is not None:
            self._marks.append(mark)

    def _use_event(self) -> None:
        if self._marks:
            mark = self._random.choice(self._marks)
            match self._random.randrange(6):
                case 0:
                    self.sides.poll(mark)
                case 1:
                    self.sides.sync(mark)
                case _:
                    self.sides.wait(self._place(), mark)

    def _drop(self) -> None:
        for kept in (self._contexts, self._routines, self._marks):
            if len(kept) > len(self.sides.places):
                del kept[self._random.randrange(len(self.sides.places), len(kept))]

    def _finalize(self) -> None:
        context = self._context()
        self._finalized.append(context)
        self.sides.finalize(context)

    def _finish(self) -> None:
        """Once all errors are raised, look at every buffer."""
        self.sides.recover()
        seen = set()
        for pair in self._contexts:
            for tensor, array in pair.model.arrays.items():
                if not pair.model.is_over and id(array) not in seen:
                    seen.add(id(array))
                    self._to_host(pair, tensor)
        for place in self.sides.places:
            self.sides.await_(place)

    def _check_memory(self) -> None:
        """Nothing is left of contexts and streams that nobody has any more."""
        devices = {place.device for place in self.sides.places}
        for kept in (self._contexts, self._routines, self._finalized, self._marks):
            kept.clear()
        self.sides = Sides(self._explorer)
        for device in devices:
            if any(device.memory_by_purpose().values()):
                raise Wrong(f"{device} still has {device.memory_by_purpose()}")

    def _add(self, context: Union[Pair, None]) -> Union[Pair, None]:
        """Keep the context that an operation made."""
        if context is not None:
            self._contexts.append(context)
        return context

    def _keep(self, routine: Pair) -> None:
        self._routines.append(routine)
        self._add(Pair(routine.real.context, routine.model.context, routine.place))
        while len(self._routines) > MOST:
            del self._routines[0]

    def _fresh(self, tensor: Tensor) -> np.ndarray:
        """An array that nobody else has, of values that no other array has."""
        self._arrays += 1
        return self._arrays + np.arange(tensor.size) / 8


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
    Walk._use_event: 6,
    lambda walk: walk.sides.await_(walk._place()): 1,
    Walk._drop: 1,
    Walk._finalize: 1,
    Walk._fail_any: 2,
}
_OPERATIONS, _WEIGHTS = tuple(_CHANCES), tuple(_CHANCES.values())
