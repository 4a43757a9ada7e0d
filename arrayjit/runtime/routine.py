"""A routine: a procedure or a transfer bound to a context, ready to be scheduled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Generic, Protocol, TypeVar

from ..errors import LinkError
from ..ir.index import Symbol
from ..ir.tensor import Tensor
from .frontier import Entry
from .stream import Buffer, Event

__all__ = ["Bound", "Routine", "bound_numbers"]


class Bound(Protocol):
    """What a routine needs of its context."""

    def check_usable(self) -> None: ...


C = TypeVar("C", bound=Bound, covariant=True)


class Routine(Generic[C]):
    """Work bound to a context, of which `context` is the one with what the work adds.

    `inputs` are the tensors that it reads, `outputs` those that it writes, `merges` what it reads from merge
    buffers, by slot. `bindings` holds the number of each static symbol for the next `schedule`.
    `entry` is its place in the context's ledger, `dependencies` are those of the routines it has to follow.
    """

    def __init__(
        self,
        context: C,
        entry: Entry,
        schedule: Callable[[Mapping[Symbol, int]], Event],
        *,
        inputs: frozenset[Tensor],
        outputs: frozenset[Tensor],
        merges: Mapping[int, Tensor],
        reads: Mapping[Tensor, Buffer],
        dependencies: frozenset[Entry] = frozenset(),
    ) -> None:
        self.context = context
        self.entry = entry
        self.name = entry.name
        self.inputs = inputs
        self.outputs = outputs
        self.merges = merges
        self.dependencies = dependencies
        self.bindings: dict[Symbol, int] = {}
        self._schedule = schedule
        self._reads = reads

    def schedule(self) -> Event:
        """Add the work to the stream; the event of its completion.

        The bindings are taken as they are now. Blocks only while the stream's queue is full. Raises LinkError
        for a binding that is missing or out of range and for merge buffers that hold other tensors,
        DeviceError once the context is finalized or the device closed, and whatever earlier work raised.
        """
        self.context.check_usable()
        event = self._schedule(self.bindings)
        self.entry.has_run = True
        return event

    def run(self) -> Event:
        """As `schedule`, but raises LinkError if a routine that this one depends on has never run, or if
        something that it reads was never filled."""
        missing = self.missing()
        if missing:
            raise LinkError(
                f"{self.name!r} cannot run before {', '.join(map(repr, missing))}",
                fix="run the routines in the order in which their contexts were linked",
            )
        unfilled = [tensor.label for tensor, buffer in self._reads.items() if not buffer.is_filled]
        if unfilled:
            raise LinkError(
                f"{self.name!r} reads {', '.join(unfilled)}, which nothing has filled",
                fix="use from_host, or run the routine that makes it",
            )
        return self.schedule()

    def can_run(self) -> bool:
        """Whether `run` would find everything that the routine relies on."""
        return not self.missing() and all(buffer.is_filled for buffer in self._reads.values())

    def missing(self) -> tuple[str, ...]:
        """The names of the routines that this one has to follow and that never ran, in linking order."""
        entries = sorted(self.dependencies, key=lambda entry: entry.number)
        return tuple(entry.name for entry in entries if not entry.has_run)

    def __repr__(self) -> str:
        return f"Routine({self.name!r})"


def bound_numbers(routine: str, bindings: Mapping[Symbol, int], symbols: Sequence[Symbol]) -> tuple[int, ...]:
    """The numbers bound to a routine's static symbols. Raises LinkError for one that is missing, no integer
    or out of range, and for a symbol that is not the routine's."""
    try:
        numbers = tuple([index(bindings[symbol]) for symbol in symbols])
    except KeyError as missing:
        hint = missing.args[0].hint
        raise LinkError(f"{routine!r} needs {hint}", fix=f"set bindings[{hint}]") from None
    except TypeError as error:
        what = ", ".join(f"{symbol.hint} = {bindings[symbol]!r}" for symbol in symbols)
        raise LinkError(f"{what} in {routine!r}: {error}", fix="bind integers") from None
    for symbol, number in zip(symbols, numbers, strict=True):
        low, high = symbol.lower, symbol.upper
        if (low is not None and number < low) or (high is not None and number >= high):
            raise LinkError(
                f"{symbol.hint} = {number} is out of range for {routine!r}",
                fix=f"bind a number from {low} to below {high}",
            )
    if len(bindings) > len(symbols):
        unknown = next(symbol for symbol in bindings if symbol not in symbols)
        raise LinkError(f"{routine!r} has no {unknown.hint}", fix="bind the symbols of its program only")
    return numbers
