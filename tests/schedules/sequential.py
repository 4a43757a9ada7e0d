"""The contract of the device layer, in plain NumPy: what is asked for happens at once.

Written from the contract and not from the code; every refusal raises the error that the layer is to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Union

import numpy as np
from schedule_programs import Program

from arrayjit.errors import DeviceError, LinkError, MergeMismatch
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.merge import MergeUse

__all__ = ["Context", "Routine", "Stream", "device_to_device", "init_from_device"]


@dataclass(eq=False)
class Held:
    tensor: Tensor
    array: np.ndarray
    owner: Union[Context, None]


@dataclass(eq=False)
class Stream:
    """The constants of its device; what its merge buffers hold, by slot; the arrays that its work has read
    and written."""

    constants: dict[Tensor, np.ndarray]
    held: dict[int, Held] = field(default_factory=dict)
    reads: list[np.ndarray] = field(default_factory=list)
    writes: list[np.ndarray] = field(default_factory=list)

    def copy(self, target: np.ndarray, origin: np.ndarray) -> None:
        target[:] = origin
        self.reads.append(origin)
        self.writes.append(target)


@dataclass(eq=False)
class Context:
    """Arrays that were never filled hold NaN, for "anything"."""

    stream: Stream
    arrays: Mapping[Tensor, np.ndarray] = field(default_factory=dict)
    merges: Mapping[int, Tensor] = field(default_factory=dict)
    is_over: bool = False

    def check_usable(self) -> None:
        if self.is_over:
            raise DeviceError("finalized")

    def check_writable(self, tensor: Tensor) -> None:
        if tensor in self.arrays and self.arrays[tensor] is self.stream.constants.get(tensor):
            raise LinkError("constant")

    def child(
        self, arrays: Mapping[Tensor, np.ndarray], merges: Mapping[int, Tensor] | None = None
    ) -> Context:
        return Context(self.stream, {**self.arrays, **arrays}, {**self.merges, **(merges or {})})

    def init_from_host(self, tensor: Tensor, array: np.ndarray) -> Context:
        self.check_usable()
        if tensor in self.arrays:
            raise LinkError("present")
        child = self.child({tensor: np.full(tensor.size, np.nan)})
        child.from_host(tensor, array)
        return child

    def from_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        self.check_usable()
        self.check_writable(tensor)
        if tensor in self.arrays:
            self.stream.copy(self.arrays[tensor], array)
        return tensor in self.arrays

    def to_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        self.check_usable()
        if tensor in self.arrays:
            self.stream.copy(array, self.arrays[tensor])
        return tensor in self.arrays

    def link(self, program: Program, constants: Mapping[Tensor, np.ndarray]) -> Routine:
        self.check_usable()
        if any(self.merges.get(slot) is not tensor for slot, tensor in program.merges.items()):
            raise MergeMismatch("static")
        added = {
            tensor: np.full(tensor.size, np.nan if tensor is program.into and not program.is_update else 0.0)
            for tensor in (program.into, *program.operands)
            if tensor not in self.arrays
        }
        for tensor, array in constants.items():
            added[tensor] = self.stream.constants.setdefault(tensor, array)
        child = self.child(added)
        return Routine(child, lambda step: _launch(child, program, step))

    def finalize(self) -> None:
        self.is_over = True


@dataclass(eq=False)
class Routine:
    context: Context
    work: Callable[[int], None]

    def schedule(self, step: int) -> None:
        self.context.check_usable()
        self.work(step)


def _launch(context: Context, program: Program, step: int) -> None:
    held = [context.stream.held.get(slot) for slot in program.merges]
    for one, tensor in zip(held, program.merges.values(), strict=True):
        if one is None or one.tensor is not tensor:
            raise MergeMismatch("dynamic")
    arrays = [one.array for one in held if one is not None]
    for one in held:
        if one is not None and one.owner is not None:
            one.owner.check_usable()
    into = context.arrays[program.into]
    if any(array is into for array in arrays):
        raise LinkError("streams from what it writes")
    reads = [context.arrays[tensor] for tensor in program.operands if tensor is not program.into]
    context.stream.reads.extend((*reads, *arrays))
    context.stream.writes.append(into)
    if program.fails:
        into[:] = np.nan
    else:
        program.run(into, *reads, *arrays, *((step,) if program.has_step else ()))


def device_to_device(
    tensor: Tensor, *, dst: Context, src: Context, into: MergeUse = MergeUse.NO, slot: int = 0
) -> Routine | None:
    src.check_usable()
    dst.check_usable()
    origin, target = src.arrays.get(tensor), dst.arrays.get(tensor)
    if origin is None or (into is MergeUse.NO and (target is None or target is origin)):
        return None
    if into is MergeUse.NO:
        dst.check_writable(tensor)

    def work(step: int) -> None:
        src.check_usable()
        if into is MergeUse.NO:
            assert target is not None
            dst.stream.copy(target, origin)
        elif into is MergeUse.COPY:
            held = dst.stream.held[slot] = Held(tensor, np.empty_like(origin), None)
            dst.stream.copy(held.array, origin)
        else:
            dst.stream.held[slot] = Held(tensor, origin, src)

    return Routine(dst.child({}, {} if into is MergeUse.NO else {slot: tensor}), work)


def init_from_device(tensor: Tensor, *, dst: Context, src: Context) -> Context:
    src.check_usable()
    dst.check_usable()
    if tensor not in src.arrays or tensor in dst.arrays:
        raise LinkError("absent there, or present here")
    child = dst.child({tensor: np.empty(tensor.size)})
    dst.stream.copy(child.arrays[tensor], src.arrays[tensor])
    return child
