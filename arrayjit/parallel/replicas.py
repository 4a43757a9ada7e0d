"""Parameters on several devices, and the work on them: steps, the merging of their results, the update.

Nothing here is beside the device layer: contexts hold the tensors, programs are linked into them, tensors
travel by `device_to_device`, and the streams find out by themselves what waits for what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..frozen import frozen
from ..ir.tensor import Tensor
from ..locks import reentrant_lock
from ..runtime.context import Context
from ..runtime.device import Device
from ..runtime.merge import MergeUse
from ..runtime.routine import Routine
from ..runtime.transfer import device_to_device
from .located import located
from .programs import Layout, Program, arrays_of, merge_program

__all__ = ["Replicated", "Shard", "pairs"]


@frozen
class Shard:
    """A device's part of a batch, leaf by leaf, and the step for it."""

    program: Program
    arrays: tuple[np.ndarray, ...]


def pairs(count: int) -> Iterator[tuple[int, int]]:
    """Who merges whose values, pair by pair: a tree with 0 as its root."""
    distance = 1
    while distance < count:
        for into in range(0, count - distance, 2 * distance):
            yield into, into + distance
        distance *= 2


class Replicated:
    """Parameters that are the same on several devices, and state that is on the first of them.

    A `DataParallel` on these devices reads them, and changes them if it has an `update`. They have a stream
    of their own on each device.
    """

    def __init__(self, devices: Sequence[Device], parameters: Layout, state: Sequence[Layout]) -> None:
        self.devices = tuple(devices)
        self.layout = parameters
        self.state_layouts = tuple(state)
        self._parameters = parameters.tensors("parameters")
        self._state = Layout.tuple_of(state).tensors("state")
        contexts = [
            _with_tensors(Context(device, device.new_stream()), self._parameters) for device in devices
        ]
        contexts[0] = _with_tensors(contexts[0], self._state)
        self._contexts = contexts
        self._broadcast = [
            _transfer(tensor, context, contexts[0]) for context in contexts[1:] for tensor in self._parameters
        ]
        self._reductions: dict[Layout, _Reduction] = {}
        self._lock = reentrant_lock()
        self._is_same_everywhere = False

    @located
    def load(self, parameters: Any, *state: Any) -> None:
        """Replace the values by others of the same structure, shapes and dtypes, which may change afterwards.
        Raises ShapeError for any other."""
        given, wanted = (parameters, *state), Layout.tuple_of((self.layout, *self.state_layouts))
        if Layout.of(given) != wanted:
            raise ShapeError(
                "the parameters or the state are not those that were replicated",
                fix="keep structure, shapes and dtypes, or replicate anew",
            )
        arrays, _ = arrays_of(given)
        with self._working():
            self._is_same_everywhere = False
            first = self._contexts[0]
            for tensor, array in zip((*self._parameters, *self._state), arrays, strict=True):
                first.from_host(tensor, array.copy())
            self._make_same()

    @located
    def parameters(self) -> Any:
        """A copy of the parameters, after all calls so far: arrays, and numbers as NumPy scalars."""
        with self._working():
            return self.layout.value(_fetched(self._contexts[0], self._parameters)())

    @located
    def state(self) -> tuple[Any, ...]:
        """A copy of each part of the state."""
        with self._working():
            leaves = _fetched(self._contexts[0], self._state)()
            found: tuple[Any, ...] = Layout.tuple_of(self.state_layouts).value(leaves)
            return found

    def run(self, shards: Sequence[Shard], update: Program | None) -> list[Any]:
        """Run the steps, merge what they return, and update; the leaves of what the steps return for the
        whole batch, without the gradients where `update` takes them.

        Returns when the results are there; update and broadcast may still be running.
        """
        layout = shards[0].program.layout
        with self._working():
            reduction = self._reductions.get(layout)
            if reduction is None:
                reduction = self._reductions[layout] = _Reduction(self._contexts, layout)
            if not self._is_same_everywhere:
                self._make_same()
            for number, shard in enumerate(shards):
                reduction.step(number, shard, self._parameters)
            reduction.merge()
            first = len(layout.leaves) - len(self._parameters)
            fetch = _fetched(reduction.contexts[0], reduction.results[: None if update is None else first])
            if update is not None:
                self._is_same_everywhere = False
                reduction.update(update, (*self._parameters, *reduction.results[first:], *self._state))
                self._make_same()
            return fetch()

    def _make_same(self) -> None:
        """Schedule copies of the first device's parameters to all others."""
        for copy in self._broadcast:
            copy.schedule()
        self._is_same_everywhere = True

    @contextmanager
    def _working(self) -> Iterator[None]:
        """One thread at a time, and after an error all devices at rest.

        When a task raises, what depends on it is dropped, the update too. Each stream that is so stopped
        raises the same once more; nobody is to hear of it again. The next call broadcasts first, since copies
        of the parameters may be among what was dropped.
        """
        with self._lock:
            try:
                yield
            except Exception:
                self._is_same_everywhere = False
                for context in self._contexts:
                    with suppress(Exception):
                        context.stream.await_()
                raise

    def __repr__(self) -> str:
        return f"Replicated({', '.join(context.device.name for context in self._contexts)})"


class _Reduction:
    """The results of steps on all devices, and what is linked to make, merge and use them."""

    def __init__(self, contexts: Sequence[Context], layout: Layout) -> None:
        self.results = layout.tensors("result")
        self.contexts = [_with_tensors(context, self.results) for context in contexts]
        self._merges: list[Routine[Context]] = []
        program = merge_program(self.results)
        for into, out_of in pairs(len(contexts)):
            context, source = self.contexts[into], self.contexts[out_of]
            is_near = context.device.reaches(source.device)
            for slot, tensor in enumerate(self.results):
                use = MergeUse.STREAMING if is_near else MergeUse.COPY
                transfer = _transfer(tensor, context, source, use, slot)
                self._merges.append(transfer)
                context = transfer.context
            self._merges.append(context.link(program.code(context.device)))
        self._linked: dict[tuple[int, Program], Routine[Context]] = {}

    def step(self, number: int, shard: Shard, parameters: Sequence[Tensor]) -> None:
        """Schedule a step on a device."""
        program = shard.program
        count = len(parameters)
        known, batch = program.arguments[:count], program.arguments[count:]
        ours = dict(zip((*known, *program.results), (*parameters, *self.results), strict=True))
        routine = self._link(number, program, ours)
        for tensor, array in zip(batch, shard.arrays, strict=True):
            routine.context.from_host(tensor, array)
        _send_captured(routine, program)
        routine.schedule()

    def merge(self) -> None:
        """Schedule the merging of all results into the first device's."""
        for routine in self._merges:
            routine.schedule()

    def update(self, program: Program, arguments: Sequence[Tensor]) -> None:
        """Schedule the update on the first device."""
        routine = self._link(0, program, dict(zip(program.arguments, arguments, strict=True)))
        _send_captured(routine, program)
        routine.schedule()

    def _link(self, number: int, program: Program, ours: Mapping[Tensor, Tensor]) -> Routine[Context]:
        """The program linked on a device, once, to the buffers of our tensors."""
        routine = self._linked.get((number, program))
        if routine is None:
            context = self.contexts[number]
            buffers = {theirs: context.buffers[tensor] for theirs, tensor in ours.items()}
            routine = context.child(buffers).link(program.code(context.device))
            self._linked[number, program] = routine
        return routine


def _send_captured(routine: Routine[Context], program: Program) -> None:
    """The arrays that a function met by another way count as they are at the call."""
    for tensor, array in program.captured:
        routine.context.from_host(tensor, np.array(array, tensor.dtype.numpy, order="C"))


def _with_tensors(context: Context, tensors: Sequence[Tensor]) -> Context:
    for tensor in tensors:
        context = context.with_tensor(tensor)
    return context


def _transfer(
    tensor: Tensor, dst: Context, src: Context, into: MergeUse = MergeUse.NO, slot: int = 0
) -> Routine[Context]:
    """A transfer between two contexts that both have the tensor."""
    routine = device_to_device(tensor, dst=dst, src=src, into=into, slot=slot)
    assert routine is not None
    return routine


def _fetched(context: Context, tensors: Sequence[Tensor]) -> Callable[[], list[Any]]:
    """Schedule copies of the tensors to the host; what gives them waits for them."""
    arrays = [np.empty([extent.constant for extent in t.shape], t.dtype.numpy) for t in tensors]
    for tensor, array in zip(tensors, arrays, strict=True):
        context.to_host(tensor, array)
    event = context.stream.record()

    def wait() -> list[Any]:
        event.sync()
        return [array if array.ndim else array[()] for array in arrays]

    return wait
