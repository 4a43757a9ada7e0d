"""arrayjit compiles NumPy programs: decorate a function with `jit` and it runs as native code."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api import JitFunction, jit, spec, use
from .array import asarray, donate, from_dlpack
from .compilations import RecompilationWarning, no_compile
from .eager import Array
from .errors import (
    BackendUnavailable,
    CompilationForbidden,
    CompilerBug,
    ConcretizationError,
    DeletedArray,
    DeviceError,
    DeviceMismatch,
    DivisionByZero,
    DTypeError,
    IndexOutOfRange,
    IntegerOverflow,
    LeakedArrayError,
    NumberError,
    OutOfMemory,
    ReadOnlyError,
    ShapeError,
    StaticArgumentError,
    UnboundName,
    UnknownTarget,
    UnsupportedError,
    UserError,
)
from .stages import Compiled, Lowered
from .stats import Miss, Stats
from .tracer.loops.control import cond, while_loop
from .tracer.loops.ranges import explicit_range as range

if TYPE_CHECKING:
    from . import parallel

__version__ = "0.1.0"

__all__ = [
    "Array",
    "BackendUnavailable",
    "CompilationForbidden",
    "Compiled",
    "CompilerBug",
    "ConcretizationError",
    "DTypeError",
    "DeletedArray",
    "DeviceError",
    "DeviceMismatch",
    "DivisionByZero",
    "IndexOutOfRange",
    "IntegerOverflow",
    "JitFunction",
    "LeakedArrayError",
    "Lowered",
    "Miss",
    "NumberError",
    "OutOfMemory",
    "ReadOnlyError",
    "RecompilationWarning",
    "ShapeError",
    "StaticArgumentError",
    "Stats",
    "UnboundName",
    "UnknownTarget",
    "UnsupportedError",
    "UserError",
    "asarray",
    "cond",
    "donate",
    "from_dlpack",
    "jit",
    "no_compile",
    "parallel",
    "range",
    "spec",
    "use",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    """Parts that few programs need are imported when they are first asked for."""
    if name == "parallel":
        return import_module(".parallel", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
