"""A routine: linked code, ready to run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ..errors import (
    CompilerBug,
    DivisionByZero,
    IndexOutOfRange,
    IntegerOverflow,
    LinearAlgebraError,
    LinkError,
    Location,
    NumberError,
    UnboundName,
    UserError,
)
from ..ir.assign import ArrayParam, IndexParam, Param
from ..ir.code import Code, Failure
from ..ir.index import Symbol
from ..ir.tensor import Tensor
from .device import Buffer, Device, Event, Executable, Stream

__all__ = ["Bound", "Routine"]


class Bound(Protocol):
    """What a routine needs of the context that it was linked into."""

    @property
    def device(self) -> Device: ...

    @property
    def buffers(self) -> Mapping[Tensor, Buffer]: ...


class Routine:
    """Code loaded on a device.

    `schedule` runs it on the context's buffers, on a stream; `launch` runs it at once on arrays of the
    caller. `bindings` holds the number of each static symbol for the next `schedule`; `inputs` are the
    tensors that it reads, `outputs` those that it writes.
    """

    def __init__(self, code: Code, context: Bound, executable: Executable) -> None:
        self.name = code.name
        self.params: tuple[Param, ...] = code.params
        self.context = context
        self.executable = executable
        self.bindings: dict[Symbol, int] = {}
        arrays = tuple(param for param in code.params if isinstance(param, ArrayParam))
        self.inputs = frozenset(param.tensor for param in arrays if param.access != "write")
        self.outputs = frozenset(param.tensor for param in arrays if param.access in ("write", "update"))
        self._tensors = tuple(param.tensor for param in arrays)
        self._symbols = tuple(param.symbol for param in code.params if isinstance(param, IndexParam))
        self._failures = code.failures
        self._arena_bytes = code.arena_bytes
        self._idle: deque[Buffer] = deque()

    def launch(self, pointers: Sequence[int], bindings: Sequence[int] = ()) -> None:
        """Run now, on the calling thread.

        `pointers` has the address of the first cell of each array parameter, `bindings` the number of
        each index parameter, in parameter order. Threads may launch one routine at the same time. Raises
        the exception that the program asks for.
        """
        if self._arena_bytes:
            with self._workspace() as workspace:
                status = self.executable.launch(pointers, bindings, workspace.address)
        else:
            status = self.executable.launch(pointers, bindings, 0)
        if status:
            raise _exception(self._failures[status - 1])

    def schedule(self, stream: Stream | None = None) -> Event:
        """Run on the context's buffers, after the stream's earlier work; the event of its completion.
        The bindings are taken as they are now."""
        pointers = [self._buffer(tensor).address for tensor in self._tensors]
        bindings = [self._bound(symbol) for symbol in self._symbols]
        stream = self.context.device.stream if stream is None else stream
        stream.submit(lambda: self.launch(pointers, bindings))
        return stream.record()

    @contextmanager
    def _workspace(self) -> Iterator[Buffer]:
        """A buffer for the temporaries, kept for the next launch; each running launch has its own."""
        try:
            buffer = self._idle.pop()
        except IndexError:
            buffer = Buffer(self.context.device, self._arena_bytes)
        try:
            yield buffer
        finally:
            self._idle.append(buffer)

    def _buffer(self, tensor: Tensor) -> Buffer:
        buffer = self.context.buffers.get(tensor)
        if buffer is None:
            raise LinkError(
                f"{self.name!r} has no buffer for {tensor}",
                details=("its layout or its extents are chosen by the caller",),
                fix="use launch, with the address of an array",
            )
        return buffer

    def _bound(self, symbol: Symbol) -> int:
        number = self.bindings.get(symbol)
        if number is None:
            raise LinkError(f"{self.name!r} needs {symbol.hint}", fix=f"set bindings[{symbol.hint}]")
        low = symbol.lower is not None and number < symbol.lower
        if low or (symbol.upper is not None and number >= symbol.upper):
            raise LinkError(
                f"{symbol.hint} = {number} is out of range for {self.name!r}",
                fix=f"bind a number from {symbol.lower} to below {symbol.upper}",
            )
        return number

    def __repr__(self) -> str:
        return f"Routine({self.name!r} on {self.context.device.name})"


_ERRORS: Mapping[str, tuple[type[UserError], str]] = {
    "IndexError": (IndexOutOfRange, "keep indices within the axis, as np.clip(i, 0, n - 1) does"),
    "LinAlgError": (LinearAlgebraError, "check the matrix before the call, as with np.linalg.cond"),
    "OverflowError": (IntegerOverflow, "use NumPy integers, which wrap around, or floats"),
    "UnboundLocalError": (UnboundName, "give the name a value before the loop"),
    "ValueError": (NumberError, "check the numbers and sizes that this line takes, before the call"),
    "ZeroDivisionError": (DivisionByZero, "divide NumPy numbers, which give inf and nan: np.float64(x) / y"),
}


def _exception(failure: Failure) -> Exception:
    """The error that a failure stands for, with the user's line."""
    kind, fix = _ERRORS.get(failure.exception, (None, ""))
    if kind is None:
        return CompilerBug(f"no error stands for {failure.exception!r}", stage="runtime")
    loc = Location(failure.file, failure.line) if failure.file else None
    return kind(failure.message, loc=loc, fix=fix)
