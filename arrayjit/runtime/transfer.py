"""Transfers between contexts, of one device or of two, also of two kinds."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..errors import LinkError
from ..ir.index import Symbol
from ..ir.tensor import Tensor
from .context import Context
from .life import Life
from .merge import Held, MergeUse
from .routine import Routine
from .stream import Buffer, Event

__all__ = ["device_to_device", "init_from_device"]


def device_to_device(
    tensor: Tensor, *, dst: Context, src: Context, into: MergeUse = MergeUse.NO, slot: int = 0
) -> Routine[Context] | None:
    """A routine that copies the tensor when it is scheduled, on the stream of `dst`; or None when there is
    nothing to transfer: `src` lacks the tensor; or, into its own buffer, `dst` lacks it or has the very same.

    Into a merge buffer, `dst` need not have the tensor, and code that reads the merge buffer is to be linked
    into the routine's context. `COPY` copies; with `STREAMING` the merge buffer is the buffer of `src`
    itself, and work that would overwrite it waits for the readers. Raises LinkError for a target that is a
    constant, and for `STREAMING` to a device that does not reach the memory of `src`.
    """
    src.check_usable()
    dst.check_usable()
    origin, target = src.buffers.get(tensor), dst.buffers.get(tensor)
    if origin is None or (into is MergeUse.NO and (target is None or target is origin)):
        return None
    if into is MergeUse.NO and target is not None and target.is_constant:
        raise LinkError(
            f"{tensor.label} is a constant of {dst.device.name}, which cannot be written",
            fix="transfer into a merge buffer, or init_from_device into a context without it",
        )
    if into is MergeUse.STREAMING:
        if not dst.device.reaches(src.device):
            raise LinkError(
                f"{dst.device.name} does not reach the memory of {src.device.name}",
                fix="transfer with MergeUse.COPY",
            )
        dst.device.enable_access(src.device)
    arrow = f"{tensor.label}: {src.stream.name} -> {dst.stream.name}"
    transfer = _Transfer(tensor, src, origin, dst, target, into, slot)
    is_merge = into is not MergeUse.NO
    inputs = frozenset((tensor,))
    outputs = frozenset() if is_merge else inputs
    entry = dst.ledger.enter(arrow)
    context = (
        dst.child(merges={slot: tensor})
        if is_merge
        else dst.child(frontier=dst.frontier.after(entry, (), outputs))
    )
    return Routine(
        context,
        entry,
        transfer,
        reads={tensor: origin},
        inputs=inputs,
        outputs=outputs,
        merges=MappingProxyType({}),
        dependencies=dst.frontier.dependencies((), outputs),
    )


def init_from_device(tensor: Tensor, *, dst: Context, src: Context) -> Context:
    """A context that also has the tensor, with a copy of its values in `src` that is scheduled now. Raises
    LinkError if `dst` has it, or `src` has not."""
    src.check_usable()
    dst.check_usable()
    if tensor not in src.buffers:
        raise LinkError(f"{tensor} is not in the context to copy from", fix="link or init it there first")
    context = dst.with_tensor(tensor)
    routine = device_to_device(tensor, dst=context, src=src)
    assert routine is not None
    routine.schedule()
    return routine.context


class _Transfer:
    """What a transfer's routine submits."""

    def __init__(
        self,
        tensor: Tensor,
        src: Context,
        origin: Buffer,
        dst: Context,
        target: Buffer | None,
        into: MergeUse,
        slot: int,
    ) -> None:
        self._tensor = tensor
        self._src = src
        self._origin = origin
        self._dst = dst
        self._target = target
        self._into = into
        self._slot = slot

    def __call__(self, bindings: Mapping[Symbol, int]) -> Event:
        self._src.check_usable()
        dst, origin, tensor = self._dst, self._origin, self._tensor
        match self._into:
            case MergeUse.NO:
                assert self._target is not None
                return self._copy(self._target)
            case MergeUse.COPY:
                merge_buffers = dst.device.merge_buffers(dst.stream)
                room = merge_buffers.room(self._slot, tensor.nbytes)
                event = self._copy(room)
                merge_buffers.held[self._slot] = Held(tensor, room, dst.device.check_alive)
                return event
            case MergeUse.STREAMING:
                event = dst.stream.record()
                merge_buffers = dst.device.merge_buffers(dst.stream)
                life = Life(self._src.life)
                merge_buffers.held[self._slot] = Held(tensor, origin, _usability(self._src), life)
                return event

    def _copy(self, target: Buffer) -> Event:
        origin, nbytes = self._origin, self._tensor.nbytes
        driver, source = self._dst.device.driver, self._src.device.driver
        into, out_of = target.pool.memory, origin.pool.memory

        def task() -> None:
            driver.copy(into, target.offset, source, out_of, origin.offset, nbytes)

        return self._dst.stream.submit(task, f"copy {self._tensor.label}", (origin,), (target,))


def _usability(context: Context) -> Callable[[], None]:
    """Its `check_usable`, without keeping the context: it may be on the very stream that keeps this."""
    source = weakref.ref(context)

    def check() -> None:
        found = source()
        if found is not None:
            found.check_usable()

    return check
