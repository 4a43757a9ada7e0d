"""From IR text to functions in memory, by way of the cache: LLVM is loaded only for what is not there, or if
gdb is to know the functions: LLVM's own loader tells it of all that comes and goes."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .. import processor
from ..cache import key_for, recall, remember
from ..errors import BackendUnavailable
from ..ir.code import DEFAULT_OPT
from ..late import Late
from ..settings import debugger_wanted, perf_map_wanted
from ..timeline import note
from .objects import Image, ObjectFile, can_load, load

if TYPE_CHECKING:
    import pathlib

    from . import compiler
else:
    pathlib = Late("pathlib")
    compiler = Late("arrayjit.runtime.compiler")

__all__ = ["loaded", "process_address"]

_KIND = "machine"
_FORMAT = 1

_REGISTER = b"__jit_debug_register_code\0"
"""Where gdb has a breakpoint, as its manual says under "JIT Compilation Interface"."""


def loaded(
    text: str,
    name: str,
    resolve: Callable[[str], int],
    *,
    opt: int = DEFAULT_OPT,
    seconds: dict[str, float] | None = None,
) -> Image:
    """The functions of a module of IR, compiled with the effort `opt`. `resolve` gives the address of what it
    declares, 0 if there is none; what the process has needs none. `seconds` receives the time of each phase.
    Raises CompilerBug for text that LLVM rejects, and for names that are nowhere."""
    start = time.perf_counter()
    key = key_for(_FORMAT, text, opt, _compiler_identity(), processor.identity())
    packed = recall(_KIND, key)
    if packed is None:
        file = compiler.compiler().object_file(text, name, opt)
        remember(_KIND, key, file.packed())
    else:
        file = ObjectFile.unpacked(packed)
    phase = "codegen" if packed is None else "recall code"
    note(phase, "compile", start)
    ready = time.perf_counter()

    def address(needed: str) -> int:
        return resolve(needed) or process_address(needed)

    is_listed, is_told = perf_map_wanted() and sys.platform == "linux", debugger_wanted()
    if is_told:
        _require_debugger_symbols()
    loader = load if can_load() and not is_told else compiler.engine_image
    image = loader(file, address, listed=is_listed)
    if is_listed:
        _tell_perf(image)
    note("link", "compile", ready)
    if seconds is not None:
        seconds[phase] = ready - start
        seconds["link"] = time.perf_counter() - ready
    return image


def _tell_perf(image: Image) -> None:
    """Add the functions to the file in which `perf` looks for code that was made by the process."""
    lines = (f"{start:x} {size:x} {name}\n" for name, start, size in image.functions)
    with pathlib.Path("/tmp", f"perf-{os.getpid()}.map").open("a", encoding="utf-8") as stream:
        stream.writelines(lines)


@cache
def process_address(name: str) -> int:
    """Where the process has a function, of the C library for example; 0 if it has none."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _compiler_identity() -> tuple[object, ...]:
    """Another one for another LLVM; it is not loaded for that."""
    library = _compiler_library()
    status = library.stat()
    return library.name, status.st_size, status.st_mtime_ns


def _compiler_library() -> pathlib.Path:
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise BackendUnavailable("compiled code needs the package llvmlite", fix="pip install llvmlite")
    return max(pathlib.Path(spec.submodule_search_locations[0], "binding").glob("*llvmlite.*"))


@cache
def _require_debugger_symbols() -> None:
    """Raises BackendUnavailable where gdb would never learn of what LLVM loads: it looks for symbols of
    LLVM's, which a library may have been stripped of."""
    with _compiler_library().open("rb") as library:
        has_symbols = mmap.mmap(library.fileno(), 0, access=mmap.ACCESS_READ).rfind(_REGISTER) >= 0
    if sys.platform != "linux" or not has_symbols:
        raise BackendUnavailable(
            "gdb cannot be told of compiled functions by this build of llvmlite",
            fix="unset ARRAYJIT_GDB, or use the llvmlite that pip installs on Linux",
        )
