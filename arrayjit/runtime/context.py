"""A context: which buffer of a device holds each tensor, and what code linked here may rely on.

Contexts are values. Linking code gives a routine whose own context knows the buffers that the code added;
the context it was linked into stays as it was. Siblings share the buffers of their ancestors and no others.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ..errors import DeviceError, LinkError
from ..ir.code import Code, Postponed
from ..ir.index import Symbol
from ..ir.journal import given
from ..ir.params import ArrayParam, IndexParam
from ..ir.tensor import Tensor
from .device import Device
from .frontier import Frontier, Ledger
from .life import Life
from .memory import Pool, Purpose, plan
from .merge import Held, check_merges
from .procedure import Procedure
from .routine import Routine, bound_numbers
from .stream import Buffer, Event, Stream

__all__ = ["Context"]


@dataclass(frozen=True, eq=False, repr=False)
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
        for another target, relies on a tensor that is not here or writes a constant, MergeMismatch when it
        reads a merge buffer that will hold another tensor, OutOfMemory.
        """
        self.check_usable()
        initial, constants = initial or {}, constants or {}
        arrays = [param for param in given(code.params) if isinstance(param, ArrayParam)]
        own = [param for param in arrays if param.access != "merge"]
        self._check_prior(code, {*initial, *constants})
        self._check_given(code.name, own, initial, constants)
        wanted = {param.slot: param.source or param.tensor for param in arrays if param.access == "merge"}
        check_merges(code.name, self.stream.name, wanted, self.merges, "will hold")
        inputs = frozenset(param.tensor for param in own if param.access != "write")
        outputs = frozenset(param.tensor for param in own if param.access != "read")
        procedure = self.device.load(code.emit() if isinstance(code, Postponed) else code)
        buffers, pools = self._allocate(code.name, own, initial, constants)
        entry = self.ledger.enter(code.name)
        context = self.child(buffers, pools, frontier=self.frontier.after(entry, inputs, outputs))
        return Routine(
            context,
            entry,
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
        must not change until the stream has done it. Raises LinkError for a constant."""
        self.check_usable()
        buffer = self.buffers.get(tensor)
        if buffer is None:
            return False
        if buffer.is_constant:
            raise self._is_constant(tensor)
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
        if not array.flags.writeable:
            raise LinkError(f"the array for {tensor} is read-only", fix="copy out to np.empty(shape)")
        self.device.download(buffer, array, self.stream)
        return True

    def init_from_host(self, tensor: Tensor, array: np.ndarray) -> Context:
        """A context that also has the tensor, with the array's values. Raises LinkError if it is here."""
        checked(tensor, array)
        context = self.with_tensor(tensor)
        context.from_host(tensor, array)
        return context

    def with_tensor(self, tensor: Tensor) -> Context:
        """A context that also has the tensor, with any values. Raises LinkError if this one has it."""
        self.check_usable()
        if tensor in self.buffers:
            raise LinkError(f"{tensor} already has a buffer", fix="use from_host to overwrite it")
        pool = self.device.alloc_pool(tensor.nbytes, Purpose.WORKING, tensor.label, zeroed=False)
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
        contexts that descend from it still need is given back with the last of them. Raises what that work
        raised, when it is done."""
        if self.life.is_over:
            return
        failure: Exception | None = None
        for event in {event for buffer in self.buffers.values() for event in buffer.events()}:
            try:
                event.sync()
            except Exception as error:
                failure = failure or error
        self.life.end()
        if failure is not None:
            raise failure

    def __repr__(self) -> str:
        return f"Context({', '.join((self.stream.name, *(tensor.label for tensor in self.buffers)))})"

    def check_usable(self) -> None:
        """Raises DeviceError once the context is finalized or its device closed."""
        if self.life.is_over:
            raise DeviceError(
                f"the context on {self.stream.name} was finalized", fix="link into a context that is in use"
            )
        self.device.check_alive()

    def _check_prior(self, code: Code | Postponed, given: Collection[Tensor]) -> None:
        if code.target != self.device.driver.name:
            raise LinkError(
                f"code of {code.name!r} is for target {code.target!r}, the device is {self.device.name}",
                fix=f"compile for {self.device.driver.name!r}, or link on a device of {code.target!r}",
            )
        for tensor in code.prior:
            if tensor not in self.buffers and tensor not in given:
                raise LinkError(
                    f"{code.name!r} relies on {tensor.label}, which the context on {self.stream.name} lacks",
                    fix="link into the context of the routine that makes it, or init_from_host",
                )

    def _check_given(
        self,
        name: str,
        params: Sequence[ArrayParam],
        initial: Mapping[Tensor, np.ndarray],
        constants: Mapping[Tensor, np.ndarray],
    ) -> None:
        """Initial values are of tensors that the code adds; constants are not written."""
        added = {param.tensor for param in params if param.tensor not in self.buffers}
        for tensor, array in (*initial.items(), *constants.items()):
            if tensor not in added or (tensor in initial and tensor in constants):
                raise LinkError(
                    f"{name!r} cannot give {tensor.label} its values on {self.stream.name}",
                    details=(f"it adds {', '.join(sorted(t.label for t in added)) or 'nothing'}",),
                    fix="give values of tensors that the code adds, once; use from_host for others",
                )
            checked(tensor, array)
        for param in params:
            held = self.buffers.get(param.tensor)
            is_constant = param.tensor in constants or (held is not None and held.is_constant)
            if is_constant and param.access != "read":
                raise self._is_constant(param.tensor)

    def _is_constant(self, tensor: Tensor) -> LinkError:
        return LinkError(
            f"{tensor.label} is a constant of {self.device.name}, which cannot be written",
            fix="give it as initial instead: then each context has its own",
        )

    def _allocate(
        self,
        name: str,
        params: Sequence[ArrayParam],
        initial: Mapping[Tensor, np.ndarray],
        constants: Mapping[Tensor, np.ndarray],
    ) -> tuple[dict[Tensor, Buffer], tuple[Pool, ...]]:
        """Buffers for what the code adds, filled: constants, and slabs with all the rest."""
        device = self.device
        added = [p for p in params if p.tensor not in self.buffers and _has_layout(p.tensor)]
        working = [param for param in added if param.tensor not in constants]
        segments = plan([param.tensor.nbytes for param in working])
        labels = f"{', '.join(param.tensor.label for param in working)} of {name!r}"
        buffers = {
            param.tensor: device.constant(param.tensor, constants[param.tensor])
            for param in added
            if param.tensor in constants
        }
        pools = tuple(
            device.alloc_pool(each.nbytes, Purpose.WORKING, labels, zeroed=False) for each in segments
        )
        places = [
            (pool, offset) for pool, each in zip(pools, segments, strict=True) for offset in each.offsets
        ]
        for param, (pool, offset) in zip(working, places, strict=True):
            buffer = buffers[param.tensor] = Buffer(pool, offset, param.tensor.nbytes)
            if param.tensor in initial:
                device.fill(buffer, initial[param.tensor])
            elif param.access != "write":
                device.driver.memset_zero(pool.memory, offset, buffer.nbytes)
        return buffers, pools


class _Launch:
    """A procedure on a context's buffers. What is queued refers to it, and so keeps the context's memory."""

    def __init__(self, context: Context, procedure: Procedure, merges: Mapping[int, Tensor]) -> None:
        self._context = context
        self._stream = context.stream
        self._procedure = procedure
        self._name = procedure.name
        self._merges = merges
        self._symbols = tuple(p.symbol for p in procedure.params if isinstance(p, IndexParam))
        arrays = [param for param in procedure.params if isinstance(param, ArrayParam)]
        held = [None if p.access == "merge" else context.buffers.get(p.tensor) for p in arrays]
        pairs = list(zip(arrays, held, strict=True))
        self._without = [p.tensor for p, buffer in pairs if buffer is None and p.access != "merge"]
        self._reads = tuple(b for p, b in pairs if b is not None and p.access == "read")
        self._writes = tuple(b for p, b in pairs if b is not None and p.access != "read")
        self._addresses = tuple(0 if buffer is None else buffer.address for buffer in held)
        slots = list(merges)
        self._merge_places = tuple(
            (place, slots.index(param.slot)) for place, param in enumerate(arrays) if param.access == "merge"
        )
        self._is_plain = not (self._symbols or merges or self._without)

    def __call__(self, bindings: Mapping[Symbol, int]) -> Event:
        """Submit a launch with what is bound and merged now."""
        if self._is_plain and not bindings:
            return self._stream.submit(self._launch, self._name, self._reads, self._writes)
        if self._without:
            raise LinkError(
                f"{self._name!r} has no buffer for {self._without[0]}",
                details=("its layout or its extents are chosen by the caller",),
                fix="launch what device.load(code) gives, with the addresses of arrays",
            )
        numbers = bound_numbers(self._name, bindings, self._symbols)
        held = self._held() if self._merges else ()
        addresses = self._addresses
        if held:
            places = list(addresses)
            for place, number in self._merge_places:
                places[place] = held[number].buffer.address
            addresses = tuple(places)
        reads = (*self._reads, *(one.buffer for one in held))

        def task(_kept: tuple[Held, ...] = held) -> None:
            self._procedure.launch(addresses, numbers)

        return self._stream.submit(task, self._name, reads, self._writes)

    def _launch(self) -> None:
        self._procedure.launch(self._addresses)

    def _held(self) -> tuple[Held, ...]:
        """What the merge buffers hold. What streams from a buffer that the code writes would read the code's
        own results."""
        taken = self._context.device.merge_buffers(self._stream).take(
            self._name, self._stream.name, self._merges
        )
        for one in taken:
            if one.buffer in self._writes:
                raise LinkError(
                    f"{self._name!r} writes {one.tensor.label}, which it streams from",
                    fix="transfer with MergeUse.COPY",
                )
        return taken


def _has_layout(tensor: Tensor) -> bool:
    """Whether the layout is known and ours to choose; other arrays are the caller's, given at launch."""
    return tensor.strides is None and tensor.has_fixed_shape


def checked(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The array. Raises LinkError if it is not of the tensor's shape and dtype."""
    shape = tuple(extent.constant for extent in tensor.shape)
    is_array = isinstance(array, np.ndarray)
    if not is_array or array.shape != shape or array.dtype != tensor.dtype.numpy:
        given = f"an array of {array.dtype} {array.shape}" if is_array else f"a {type(array).__name__}"
        raise LinkError(
            f"{tensor} cannot be copied from or to {given}",
            fix=f"give an array of {tensor.dtype.name} {shape}",
        )
    return array
