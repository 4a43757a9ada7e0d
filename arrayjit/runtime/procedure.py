"""A procedure: code loaded on a device. It may be launched on any memory of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from ..errors import (
    CompilerBug,
    DivisionByZero,
    IndexOutOfRange,
    IntegerOverflow,
    LinearAlgebraError,
    Location,
    NumberError,
    UnboundName,
    UserError,
)
from ..ir.code import Code, Failure
from ..ir.params import Param
from .driver import Executable
from .stream import Buffer

__all__ = ["Procedure", "Workspaces"]


class Workspaces:
    """Memory for temporaries. Launches that don't overlap share it: there are as many workspaces as launches
    were ever running at the same time."""

    def __init__(self, allocate: Callable[[int], Buffer]) -> None:
        self._allocate = allocate
        self._idle: list[Buffer] = []
        self._lock = Lock()

    def take(self, nbytes: int) -> Buffer:
        """A buffer of at least so many bytes; a smaller idle one makes way for it."""
        with self._lock:
            buffer = self._idle.pop() if self._idle else None
        if buffer is None or buffer.nbytes < nbytes:
            del buffer
            buffer = self._allocate(nbytes)
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        with self._lock:
            self._idle.append(buffer)

    def drop_idle(self) -> None:
        """Keep only what is in use."""
        with self._lock:
            self._idle.clear()


class Procedure:
    """Loaded code.

    `launch` runs it at once, on the calling thread and on whatever threads help there; several threads may
    launch one procedure at the same time. `threads` is the address of the pool that helps, `arena_bytes` the
    size of the workspace.
    """

    def __init__(self, code: Code, executable: Executable, threads: int, workspaces: Workspaces) -> None:
        self.name = code.name
        self.params: tuple[Param, ...] = code.params
        self.executable = executable
        self.threads = threads
        self._failures = code.failures
        self.arena_bytes = code.arena_bytes
        self._workspaces = workspaces

    def launch(self, pointers: Sequence[int], bindings: Sequence[int] = ()) -> None:
        """Run now. `pointers` has the address of the first cell of each array parameter, `bindings` the
        number of each index parameter, in parameter order. Raises the exception that the program asks for."""
        if self.arena_bytes:
            workspace = self._workspaces.take(self.arena_bytes)
            try:
                status = self.executable.launch(pointers, bindings, workspace.address, self.threads)
            finally:
                self._workspaces.give_back(workspace)
        else:
            status = self.executable.launch(pointers, bindings, 0, self.threads)
        if status:
            raise self.exception(status)

    def exception(self, status: int) -> Exception:
        """What a status asks for that is not 0."""
        return _exception(self._failures[status - 1])

    def __repr__(self) -> str:
        return f"Procedure({self.name!r})"


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
