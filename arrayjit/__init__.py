"""arrayjit compiles NumPy programs: decorate a function with `jit` and it runs as native code."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api import JitFunction, jit, spec, use
from .compilations import RecompilationWarning, no_compile
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

if TYPE_CHECKING:
    from . import parallel
    from .arrays.array import asarray, donate, from_dlpack
    from .arrays.eager import Array
    from .contest.function import bench
    from .tracer.loops.control import cond, while_loop
    from .tracer.loops.ranges import explicit_range as range
    from .traces import trace
    from .value_log import log_values

_LATE = {
    "Array": ("arrays.eager", "Array"),
    "asarray": ("arrays.eager", "asarray"),
    "bench": ("contest.function", "bench"),
    "cond": ("tracer.loops.control", "cond"),
    "donate": ("arrays.eager", "donate"),
    "from_dlpack": ("arrays.eager", "from_dlpack"),
    "log_values": ("value_log", "log_values"),
    "trace": ("traces", "trace"),
    "range": ("tracer.loops.ranges", "explicit_range"),
    "while_loop": ("tracer.loops.control", "while_loop"),
}
"""Parts that are imported when they are first asked for: where each is."""

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
    "bench",
    "cond",
    "donate",
    "from_dlpack",
    "jit",
    "log_values",
    "no_compile",
    "parallel",
    "range",
    "spec",
    "trace",
    "use",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    if name == "parallel":
        return import_module(".parallel", __name__)
    if name in _LATE:
        module, own_name = _LATE[name]
        value = globals()[name] = getattr(import_module(f".{module}", __name__), own_name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
