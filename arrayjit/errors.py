"""The two families of failure: the user's mistakes and our own.

A `UserError` says what happened, where in the user's file, with which shapes and dtypes, and one
concrete fix, in at most fifteen lines. Each subclass also is the exception that NumPy would raise,
so `except ValueError` keeps working. A `CompilerBug` is our fault and names the pass or the emitter.
"""

from __future__ import annotations

import linecache
import sys
from contextvars import ContextVar
from types import CodeType
from typing import TYPE_CHECKING

import numpy as np

from .frozen import frozen
from .late import Late

if TYPE_CHECKING:
    import signal
else:
    signal = Late("signal")

__all__ = [
    "RAISED",
    "BackendUnavailable",
    "CompilationForbidden",
    "CompilerBug",
    "ConcretizationError",
    "DTypeError",
    "DeletedArray",
    "DeviceError",
    "DeviceMismatch",
    "DivisionByZero",
    "IndexOutOfRange",
    "IntegerOverflow",
    "InvalidProgram",
    "LeakedArrayError",
    "LinearAlgebraError",
    "LinkError",
    "Location",
    "MergeMismatch",
    "MissingPackage",
    "NotANumber",
    "NotAnArray",
    "NumberError",
    "OutOfMemory",
    "ReadOnlyError",
    "SettingError",
    "ShapeError",
    "StaticArgumentError",
    "UnboundName",
    "UnknownTarget",
    "UnsupportedError",
    "UserError",
    "is_ours",
    "is_raised_by_program",
    "raised_by_program",
]

MAX_LINES = 15

RAISED: ContextVar[list[UserError] | None] = ContextVar("arrayjit_raised", default=None)
"""Where errors of this context are noted while a function is traced: its own code may catch them."""


@frozen
class Location:
    """A place in the user's program."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def source(self) -> str:
        """The source line, stripped; empty when the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


class UserError(Exception):
    """A mistake that the user can mend.

    `what` is one sentence, `details` are further lines (operands, shapes, dtypes), `fix` says what to
    write instead, `loc` is the user's line.
    """

    def __init__(
        self,
        what: str,
        *,
        loc: Location | None = None,
        details: tuple[str, ...] = (),
        fix: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.loc = loc
        self.details = details
        self.fix = fix
        if (raised := RAISED.get()) is not None:
            raised.append(self)

    def __str__(self) -> str:
        lines = [self.what]
        if self.loc is not None:
            lines.append(f"  at {self.loc}" + (f" in {self.loc.function}" if self.loc.function else ""))
            if source := self.loc.source():
                lines.append(f"    {source}")
        tail = f"  fix: {self.fix}".splitlines() if self.fix else []
        room = MAX_LINES - len(lines) - len(tail)
        lines.extend(f"  {detail}" for detail in self.details[:room])
        return "\n".join(lines + tail)


class ShapeError(UserError, ValueError):
    """Shapes that do not fit together."""


class DTypeError(UserError, TypeError):
    """An element type that the operation or arrayjit does not take."""


class IndexOutOfRange(UserError, IndexError):
    """An index outside its axis, or too many indices."""


class IntegerOverflow(UserError, OverflowError):
    """A Python integer that the element type cannot hold."""


class DivisionByZero(UserError, ZeroDivisionError):
    """A Python number divided by zero."""


class NotANumber(UserError, FloatingPointError):
    """A float operation that gave NaN where that was to be looked for."""


class UnboundName(UserError, UnboundLocalError):
    """A local name that a loop would have bound, had it run."""


class NumberError(UserError, ValueError):
    """A number that the operation does not take, such as NaN where an integer is wanted."""


class LinearAlgebraError(UserError, np.linalg.LinAlgError):
    """A matrix that has no inverse or no such factors, or that is not square."""


class ReadOnlyError(UserError, ValueError):
    """A write into an array that may only be read."""


class UnsupportedError(UserError, NotImplementedError, TypeError):
    """A NumPy feature that arrayjit does not trace."""


class ConcretizationError(UserError, TypeError):
    """A traced value was asked for its number: `if x`, `float(x)`, `int(x)`, `np.asarray(x)`."""


class NotAnArray(ConcretizationError):
    """A traced value was given to code that wants an array of NumPy's own."""


class LeakedArrayError(UserError, RuntimeError):
    """A symbolic array outlived the trace that made it."""


class StaticArgumentError(UserError, TypeError):
    """A static argument that cannot be hashed, or a name that is not a parameter."""


class CompilationForbidden(UserError, RuntimeError):
    """A call within `no_compile` that has to be compiled."""


class UnknownTarget(UserError, ValueError):
    """A target name that is not in the table of backends."""


class BackendUnavailable(UserError, RuntimeError):
    """A known target whose driver, compiler or hardware is missing here."""


class MissingPackage(UserError, ImportError):
    """A package that some of arrayjit needs and that is not installed."""


class LinkError(UserError, RuntimeError):
    """Code that does not fit the context it is linked into."""


class DeviceError(UserError, RuntimeError):
    """A device that cannot work: closed, dead, or stopped by what a task raised."""


class DeviceMismatch(UserError, ValueError):
    """Arrays of several devices in one call, or of another device than the one that was asked for."""


class DeletedArray(UserError, RuntimeError):
    """An Array that was deleted or donated."""


class OutOfMemory(UserError, MemoryError):
    """No room on a device; it stays usable."""


class MergeMismatch(LinkError):
    """A merge buffer that holds another tensor than the code reads from it."""


class SettingError(UserError, ValueError):
    """An environment variable whose value means nothing."""


class InvalidProgram(UserError, ValueError):
    """IR text that does not parse, or IR that breaks a rule of the verifier."""


class CompilerBug(Exception):
    """Our fault: `stage` names the pass or the emitter, `reproducer` a file when one was written."""

    def __init__(self, what: str, *, stage: str = "", reproducer: str = "") -> None:
        text = f"arrayjit bug{f' in {stage}' if stage else ''}: {what}"
        if reproducer:
            text += f"\n  reproducer: {reproducer}"
        super().__init__(text)
        self.stage = stage
        self.reproducer = reproducer


def is_ours(error: Exception) -> bool:
    """Whether an exception out of a pass or an emitter is our fault: not if memory gave out, nor the stack
    of a caller who had used most of it, nor if a handler of signals raised it, such as a user's alarm."""
    codes = _codes_of(error)
    if isinstance(error, RecursionError):
        return len(codes) > sys.getrecursionlimit() // 2
    return not isinstance(error, MemoryError) and _handlers().isdisjoint(codes)


def _codes_of(error: Exception) -> list[CodeType]:
    """What ran when it was raised, from whoever asks on."""
    found, frame = [], error.__traceback__
    while frame is not None:
        found.append(frame.tb_frame.f_code)
        frame = frame.tb_next
    return found


def _handlers() -> set[CodeType]:
    """The code of all handlers of signals that are written in Python."""
    handlers = map(signal.getsignal, signal.valid_signals())
    functions = (getattr(handler, "__func__", handler) for handler in handlers)
    codes = (getattr(function, "__code__", None) for function in functions)
    return {code for code in codes if code is not None}


_IN_CODE = ", in compiled code"


def raised_by_program(error: Exception, loc: Location) -> Exception:
    """An exception that the user's own code raises, with a note that says where."""
    vars(error)["__notes__"] = [f"raised at {loc}{_IN_CODE}"]
    return error


def is_raised_by_program(error: BaseException) -> bool:
    """Whether the user's own code raises this, as compiled code found."""
    return any(note.endswith(_IN_CODE) for note in vars(error).get("__notes__", ()))
