"""A procedure: code loaded on a device. It may be launched on any memory of the device."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import (
    CompilerBug,
    DivisionByZero,
    DTypeError,
    IndexOutOfRange,
    IntegerOverflow,
    LinearAlgebraError,
    Location,
    NotANumber,
    NumberError,
    UnboundName,
    UserError,
    raised_by_program,
)
from ..ir.code import Code, Failure
from ..ir.journal import filled, given, journal_of, log_of
from ..ir.params import Param
from ..ir.tensor import Tensor
from ..locks import lock
from ..timeline import RECORDER, note
from .driver import Executable
from .stream import Buffer

__all__ = ["Procedure", "Workspaces"]


ALIGNMENT = 64

Launch = Callable[[Sequence[int], Sequence[int], int, int], int]

Reader = Callable[[Buffer, int, np.ndarray], np.ndarray]
"""Copies from a place in a buffer into an array, once what was launched has ended, and returns that."""


def _no_cells() -> np.ndarray:
    raise CompilerBug("a message shows numbers of a journal that is not there", stage="runtime")


class Workspaces:
    """Memory for temporaries. Launches that don't overlap share it: there are as many workspaces as launches
    were ever running at the same time. `order` is the driver's: launches of another order may overlap."""

    def __init__(self, allocate: Callable[[int], Buffer], order: Callable[[], object]) -> None:
        self._allocate = allocate
        self._order = order
        self._idle: WeakKeyDictionary[object, list[Buffer]] = WeakKeyDictionary()
        self._lock = lock()

    def take(self, nbytes: int) -> Buffer:
        """A buffer of at least so many bytes; a smaller idle one makes way for it."""
        with self._lock:
            idle = self._idle.get(self._order() or self)
            buffer = idle.pop() if idle else None
        if buffer is None or buffer.nbytes < nbytes:
            del buffer
            buffer = self._allocate(nbytes)
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        with self._lock:
            self._idle.setdefault(self._order() or self, []).append(buffer)

    def drop_idle(self) -> None:
        """Keep only what is in use."""
        with self._lock:
            self._idle.clear()


class Procedure:
    """Loaded code.

    `launch` runs it at once, on the calling thread and on whatever threads help there; several threads may
    launch one procedure at the same time. `params` are what its callers pass, `threads` is the address of the
    pool that helps, `arena_bytes` the size of the workspace; code with a journal has it behind that.
    """

    def __init__(
        self, code: Code, executable: Executable, threads: int, workspaces: Workspaces, read: Reader
    ) -> None:
        self.name = code.name
        self.params: tuple[Param, ...] = given(code.params)
        self.journal = journal_of(code.params)
        self.executable = executable
        self.threads = threads
        self._failures = code.failures
        self._logged = code.logged
        self.arena_bytes = code.arena_bytes
        self._workspaces = workspaces
        self._read = read

    def launch(self, pointers: Sequence[int], bindings: Sequence[int] = ()) -> None:
        """Run now. `pointers` has the address of the first cell of each array parameter, `bindings` the
        number of each index parameter, in parameter order; see `Executable.launch`. Raises the exception that
        the program asks for."""
        launch = self.executable.launch if RECORDER.timeline is None else self._recorded_launch
        if self.journal is not None:
            self._launch_with(self.journal, pointers, bindings, launch)
            return
        if self.arena_bytes:
            workspace = self._workspaces.take(self.arena_bytes)
            try:
                status = launch(pointers, bindings, workspace.address, self.threads)
            finally:
                self._workspaces.give_back(workspace)
        else:
            status = launch(pointers, bindings, 0, self.threads)
        if status:
            raise self.exception(status)

    def exception(self, status: int, cells: Callable[[], np.ndarray] = _no_cells) -> Exception:
        """What a status asks for that is not 0, with numbers of the journal's `cells`."""
        return _exception(self._failures[status - 1], cells)

    def _recorded_launch(
        self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int
    ) -> int:
        start = time.perf_counter()
        try:
            return self.executable.launch(pointers, bindings, workspace, pool)
        finally:
            note(self.name, "kernel", start)

    def _launch_with(
        self, journal: Tensor, pointers: Sequence[int], bindings: Sequence[int], launch: Launch
    ) -> None:
        """Run with a journal behind the workspace, and raise what it tells of."""
        start = -(-self.arena_bytes // ALIGNMENT) * ALIGNMENT
        workspace = self._workspaces.take(start + journal.nbytes)

        def cells() -> np.ndarray:
            return self._read(workspace, start, np.empty(journal.nbytes // 8, np.int64))

        try:
            address = workspace.address
            own = address if self.arena_bytes else 0
            status = launch((*pointers, address + start), bindings, own, self.threads)
            if self._logged and RECORDER.values is not None:
                RECORDER.values(log_of(self.name, self._logged, cells()))
            if status:
                raise self.exception(status, cells)
        finally:
            self._workspaces.give_back(workspace)

    def __repr__(self) -> str:
        return f"Procedure({self.name!r})"


_ERRORS: Mapping[str, tuple[type[UserError], str]] = {
    "ArithmeticError": (
        IntegerOverflow,
        "compute with a wider dtype, as after x.astype(np.int64), or floats",
    ),
    "FloatingPointError": (NotANumber, "keep such operands out, as with np.where, or leave the check out"),
    "IndexError": (IndexOutOfRange, "keep indices within the axis, as np.clip(i, 0, n - 1) does"),
    "LinAlgError": (
        LinearAlgebraError,
        "check the matrix before the call, as with np.linalg.cond, for cholesky with np.linalg.eigvalsh",
    ),
    "OverflowError": (IntegerOverflow, "use NumPy integers, which wrap around, or floats"),
    "TypeError": (DTypeError, "check the numbers and sizes that this line takes, before the call"),
    "UnboundLocalError": (UnboundName, "give the name a value before the loop"),
    "ValueError": (NumberError, "check the numbers and sizes that this line takes, before the call"),
    "ZeroDivisionError": (DivisionByZero, "divide NumPy numbers, which give inf and nan: np.float64(x) / y"),
}


def _exception(failure: Failure, cells: Callable[[], np.ndarray]) -> Exception:
    """The error that a failure stands for, with the user's line."""
    if "." in failure.exception:
        return _of_the_users(failure)
    kind, fix = _ERRORS.get(failure.exception, (None, ""))
    if kind is None:
        return CompilerBug(f"no error stands for {failure.exception!r}", stage="runtime")
    loc = Location(failure.file, failure.line) if failure.file else None
    what, _, details = filled(failure.message, cells).partition("\n")
    return kind(what, loc=loc, details=tuple(details.splitlines()), fix=fix)


def _of_the_users(failure: Failure) -> Exception:
    """What the user's code raises, as Python would have it."""
    name = failure.exception.rpartition(".")[2]
    kind: type[Exception] = getattr(builtins, name, np.linalg.LinAlgError)
    loc = Location(failure.file, failure.line)
    return raised_by_program(kind(failure.message) if failure.message else kind(), loc)
