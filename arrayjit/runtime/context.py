"""A context: which buffer of a device holds each tensor, and what code linked here may rely on.

Contexts are values. Linking code gives a routine whose own context knows the buffers that the code added;
the context it was linked into stays as it was. Siblings share the buffers of their ancestors and no others.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ..errors import DeviceError, LinkError
from ..ir.assign import ArrayParam, IndexParam
from ..ir.code import Code, Postponed
from ..ir.index import Symbol
from ..ir.tensor import Tensor
from .device import Device
from .frontier import Frontier, Ledger
from .life import Life
from .memory import Pool, Purpose, plan
from .merge import Held, check_merges
from .procedure import Procedure
from .routine import Routine, bound_number
from .stream import Buffer, Event, Stream

__all__ = ["Context"]


@dataclass(frozen=True, eq=False)
class Context:
    """A stream of a device and the buffers of its tensors.

    `merges` says which tensors the stream's merge buffers will hold when code linked here runs. `parent` is
    the context that this one was derived from.
    """

    device: Device
    stream: Stream = None  # type: ignore[assignment]
    buffers: Mapping[Tensor, Buffer] = field(default_factory=lambda: MappingProxyType({}))
    merges: Mapping[int, Tensor] = field(default_factory=lambda: MappingProxyType({}))
    frontier: Frontier = field(default_factory=Frontier)
    ledger: Ledger = field(default_factory=Ledger)
    parent: Context | None = None
    life: Life = field(default_factory=Life)

    def __post_init__(self) -> None:
        if self.stream is None:
            object.__setattr__(self, "stream", self.device.stream)
        if self.stream not in self.device.streams:
            raise LinkError(
                f"{self.stream.name} is not a stream of {self.device.name}", fix="use new_stream()"
            )
        for tensor, buffer in self.buffers.items():
            if buffer.pool.owner != self.device.device_id:
                raise LinkError(
                    f"the buffer of {tensor.label} is not on {self.device.name}",
                    fix="copy it with init_from_device",
                )
        weakref.finalize(self, self.life.end).atexit = False

    def link(
        self,
        code: Code | Postponed,
        *,
        initial: Mapping[Tensor, np.ndarray] | None = None,
        constants: Mapping[Tensor, np.ndarray] | None = None,
    ) -> Routine[Context]:
        """Load the code, emitted now if that was postponed, and bind its tensors to buffers, new ones where
        this context has none.

        New buffers hold zeros unless the code fills them; those of `initial` hold the arrays, and so do those
        of `constants`, of which the device has one copy for all contexts. Raises LinkError when the code is
        for another target or relies on a tensor that is not here, MergeMismatch when it reads a merge buffer
        that will hold another tensor, OutOfMemory.
        """
        self.check_usable()
        self._check_prior(code)
        arrays = [param for param in code.params if isinstance(param, ArrayParam)]
        wanted = {param.slot: param.source or param.tensor for param in arrays if param.access == "merge"}
        check_merges(code.name, wanted, self.merges)
        own = [param for param in arrays if param.access != "merge"]
        inputs = frozenset(param.tensor for param in own if param.access != "write")
        outputs = frozenset(param.tensor for param in own if param.access != "read")
        procedure = self.device.load(code.emit() if isinstance(code, Postponed) else code)
        buffers, pools = self._allocate(own, initial or {}, constants or {})
        number = self.ledger.enter(code.name)
        context = self.child(buffers, pools, frontier=self.frontier.after(number, inputs, outputs))
        return Routine(
            context,
            number,
            code.name,
            _Launch(context, procedure, wanted),
            reads={
                p.tensor: context.buffers[p.tensor]
                for p in own
                if p.access == "read" and _has_layout(p.tensor)
            },
            inputs=inputs,
            outputs=outputs,
            merges=MappingProxyType(wanted),
            dependencies=self.frontier.dependencies(inputs, outputs),
        )

    def link_batch(
        self, codes: Sequence[Code | Postponed | None]
    ) -> tuple[Context, tuple[Routine[Context] | None, ...]]:
        """Link several, each into the context of the one before: a tensor of two of them has one buffer. The
        context that comes with the routines is downstream of all."""
        context, routines = self, []
        for code in codes:
            routine = None if code is None else context.link(code)
            context = context if routine is None else routine.context
            routines.append(routine)
        return context, tuple(routines)

    def from_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        """Schedule a copy of the array into the tensor's buffer; False when there is none here. The array
        must not change until the stream has done it."""
        self.check_usable()
        buffer = self.buffers.get(tensor)
        if buffer is None:
            return False
        self.device.upload(buffer, np.ascontiguousarray(checked(tensor, array)), self.stream)
        return True

    def to_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        """Schedule a copy of the tensor's buffer into the array; False when there is none here. Read the
        array after the stream has done it."""
        self.check_usable()
        buffer = self.buffers.get(tensor)
        if buffer is None:
            return False
        if not checked(tensor, array).flags.c_contiguous:
            raise LinkError(f"the array for {tensor} is not C-ordered", fix="copy out to np.empty(shape)")
        self.device.download(buffer, array, self.stream)
        return True

    def init_from_host(self, tensor: Tensor, array: np.ndarray) -> Context:
        """A context that also has the tensor, with the array's values. Raises LinkError if it is here."""
        context = self.with_tensor(tensor)
        context.from_host(tensor, array)
        return context

    def with_tensor(self, tensor: Tensor) -> Context:
        """A context that also has the tensor, with any values. Raises LinkError if this one has it."""
        self.check_usable()
        if tensor in self.buffers:
            raise LinkError(f"{tensor} already has a buffer", fix="use from_host to overwrite it")
        pool = self.device.alloc_pool(tensor.nbytes, Purpose.WORKING, zeroed=False)
        return self.child({tensor: Buffer(pool, 0, tensor.nbytes)}, (pool,))

    def child(
        self,
        buffers: Mapping[Tensor, Buffer] | None = None,
        pools: tuple[Pool, ...] = (),
        *,
        merges: Mapping[int, Tensor] | None = None,
        frontier: Frontier | None = None,
    ) -> Context:
        """A context with more buffers, and whatever else is given in place of this one's."""
        return replace(
            self,
            buffers=MappingProxyType({**self.buffers, **buffers}) if buffers else self.buffers,
            merges=self.merges if merges is None else MappingProxyType({**self.merges, **merges}),
            frontier=frontier or self.frontier,
            parent=self,
            life=Life(self.life, pools),
        )

    def finalize(self) -> None:
        """Give the memory back, after the work that uses it; this context cannot be used from then on. What
        contexts that descend from it still need is given back with the last of them."""
        if self.life.is_over:
            return
        try:
            for buffer in self.buffers.values():
                buffer.sync()
        finally:
            self.life.end()

    def check_usable(self) -> None:
        """Raises DeviceError once the context is finalized or its device closed."""
        if self.life.is_over:
            raise DeviceError("the context was finalized", fix="link into a context that is in use")
        self.device.check_alive()

    def _check_prior(self, code: Code | Postponed) -> None:
        if code.target != self.device.driver.name:
            raise LinkError(
                f"code of {code.name!r} is for target {code.target!r}, the device is {self.device.name}",
                fix=f"compile for {self.device.driver.name!r}, or link on a device of {code.target!r}",
            )
        for tensor in code.prior:
            if tensor not in self.buffers:
                raise LinkError(
                    f"the context that {code.name!r} is linked into lacks {tensor.label}",
                    fix="link into the context of the routine that makes it, or init_from_host",
                )

    def _allocate(
        self,
        params: Sequence[ArrayParam],
        initial: Mapping[Tensor, np.ndarray],
        constants: Mapping[Tensor, np.ndarray],
    ) -> tuple[dict[Tensor, Buffer], tuple[Pool, ...]]:
        """Buffers for what the code adds: constants, and one or more slabs with all the rest."""
        added = [p for p in params if p.tensor not in self.buffers and _has_layout(p.tensor)]
        buffers = {
            param.tensor: self.device.constant(param.tensor, host_copy(param.tensor, constants[param.tensor]))
            for param in added
            if param.tensor in constants
        }
        working = [param for param in added if param.tensor not in constants]
        pools = []
        for segment in plan([param.tensor.nbytes for param in working]):
            pool = self.device.alloc_pool(segment.nbytes, Purpose.WORKING, zeroed=False)
            pools.append(pool)
            for param, offset in zip(working[segment.first :], segment.offsets, strict=False):
                buffer = buffers[param.tensor] = Buffer(pool, offset, param.tensor.nbytes)
                if param.tensor in initial:
                    self.device.upload(buffer, host_copy(param.tensor, initial[param.tensor]), self.stream)
                elif param.access != "write":
                    self.device.driver.memset_zero(pool.memory, offset, buffer.nbytes)
        return buffers, tuple(pools)


class _Launch:
    """A procedure on a context's buffers."""

    def __init__(self, context: Context, procedure: Procedure, merges: Mapping[int, Tensor]) -> None:
        self._context = context
        self._procedure = procedure
        self._merges = merges
        params = procedure.params
        self._symbols = tuple(param.symbol for param in params if isinstance(param, IndexParam))
        arrays = [param for param in params if isinstance(param, ArrayParam)]
        held = [None if param.access == "merge" else context.buffers.get(param.tensor) for param in arrays]
        self._without = next(
            (
                p.tensor
                for p, buffer in zip(arrays, held, strict=True)
                if buffer is None and p.access != "merge"
            ),
            None,
        )
        pairs = [(p, buffer) for p, buffer in zip(arrays, held, strict=True) if buffer is not None]
        self._reads = tuple(buffer for param, buffer in pairs if param.access == "read")
        self._writes = tuple(buffer for param, buffer in pairs if param.access != "read")
        self._addresses = tuple(0 if buffer is None else buffer.address for buffer in held)
        slots = list(merges)
        self._merge_places = tuple(
            (place, slots.index(param.slot)) for place, param in enumerate(arrays) if param.access == "merge"
        )

    def __call__(self, bindings: Mapping[Symbol, int]) -> Event:
        """Submit a launch with what is bound and merged now."""
        if self._without is not None:
            raise LinkError(
                f"{self._procedure.name!r} has no buffer for {self._without}",
                details=("its layout or its extents are chosen by the caller",),
                fix="use launch, with the address of an array",
            )
        name = self._procedure.name
        numbers = tuple(bound_number(name, bindings, symbol) for symbol in self._symbols)
        addresses, reads = self._addresses, self._reads
        held: tuple[Held, ...] = ()
        if self._merges:
            held = self._context.device.merge_buffers(self._context.stream).take(name, self._merges)
            self._refuse_overlap(held)
            reads = (*reads, *(one.buffer for one in held))
            places = list(addresses)
            for place, number in self._merge_places:
                places[place] = held[number].buffer.address
            addresses = tuple(places)

        def task(_kept: tuple[Held, ...] = held) -> None:
            self._procedure.launch(addresses, numbers)

        return self._context.stream.submit(task, name, reads, self._writes)

    def _refuse_overlap(self, held: Sequence[Held]) -> None:
        """What streams from a buffer that the code writes would read its own results."""
        for one in held:
            if one.buffer in self._writes:
                raise LinkError(
                    f"{self._procedure.name!r} writes {one.tensor.label}, which it streams from",
                    fix="transfer with MergeUse.COPY",
                )


def _has_layout(tensor: Tensor) -> bool:
    """Whether the layout is known and ours to choose; other arrays are the caller's, given at launch."""
    return tensor.strides is None and all(extent.is_constant for extent in tensor.shape)


def host_copy(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """A C-ordered copy, which nobody else writes."""
    return np.array(checked(tensor, array), order="C")


def checked(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The array. Raises LinkError if it is not of the tensor's shape and dtype."""
    shape = tuple(extent.constant for extent in tensor.shape)
    if array.shape != shape or array.dtype != tensor.dtype.numpy:
        raise LinkError(
            f"{tensor} cannot be copied from or to an array of {array.dtype} {array.shape}",
            fix=f"give an array of {tensor.dtype.name} {shape}",
        )
    return array
