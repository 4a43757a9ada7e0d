"""The system's C compiler: text becomes a shared object, which is loaded into this process.

The compiler is `$CC`, else the first of `cc`, `gcc` and `clang` that is there. It runs without a shell, in a
folder of its own that goes when it is done. What it makes is kept in the cache, under the text, the flags,
the compiler and the processor.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from weakref import finalize

from .. import processor
from ..cache import key_for, recall, remember
from ..errors import BackendUnavailable, CompilerBug
from ..frozen import frozen
from ..ir.code import Code
from ..settings import c_compiler_wanted
from .objects import Image

__all__ = ["CCompiler", "c_compiler"]

_KIND = "shared-object"
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = (
    "-std=c11",
    "-fPIC",
    "-fno-strict-aliasing",
    # As the IR has it: products and sums are fused where it says so, nothing is reordered. Nobody looks at
    # errno or at the flags of the floating-point unit, so most of C's functions are instructions.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
)
# Loops over lanes become vectors before they become copies, and what they add up stays in registers.
_OF_GCC = ("--param=max-completely-peel-times=7", "-fno-loop-unroll-and-jam")

# For ARM not every clang knows the other one, for x86 no compiler this one.
_NATIVE = "-mcpu=native" if processor.is_arm() else "-march=native"

# GCC 12 makes instructions with masks that it then does not know, of maxima of small integers for one.
_BREAKS = "internal compiler error"
_CAREFUL = "-O1"

_FIX = "install gcc or clang, or set CC to the command of a C compiler"


@frozen
class CCompiler:
    """A command that compiles C, and what it says of itself."""

    command: tuple[str, ...]
    version: str

    def image(self, code: Code, cpu: str, seconds: dict[str, float]) -> Image:
        """The code as a function in memory; `cpu` is the CPU that it was emitted for, "" for this one.
        `seconds` receives the time of each phase. Raises CompilerBug for text that the compiler rejects,
        BackendUnavailable where it or the system does not work."""
        start = time.perf_counter()
        flags = self._flags(code, cpu)
        key = key_for(code.payload, flags, self.command, self.version, processor.identity())
        content = recall(_KIND, key)
        phase = "recall code" if content else "codegen"
        with _folder() as folder:
            file = folder / "code.so"
            if content:
                file.write_bytes(content)
            else:
                self._run(code, (*flags, "-shared"), file)
                remember(_KIND, key, file.read_bytes())
            ready = time.perf_counter()
            image = _loaded(file, code.symbol)
        seconds[phase] = ready - start
        seconds["link"] = time.perf_counter() - ready
        return image

    def assembly(self, code: Code, cpu: str) -> str:
        """The machine code as text. Raises what `image` raises."""
        with _folder() as folder:
            file = folder / "code.s"
            self._run(code, (*self._flags(code, cpu), "-S"), file)
            return file.read_text()

    def _flags(self, code: Code, cpu: str) -> tuple[str, ...]:
        """What the code needs of the compiler; an effort of 2, the default, is C's third."""
        machine = [_NATIVE]
        if cpu:
            machine = [f"-m{feature}" for feature in code.needs if feature != "neon"]
        if "avx512f" in code.needs:
            machine.append("-mprefer-vector-width=512")
        of_gcc = () if "clang" in self.version else _OF_GCC
        return (f"-O{min(code.opt + 1, 3)}", *_FLAGS, *of_gcc, *machine)

    def _run(self, code: Code, flags: Sequence[str], file: Path) -> None:
        """Have the file made."""
        failed = self._complaint(code.payload, flags, file)
        if failed is not None and _BREAKS in failed:
            failed = self._complaint(code.payload, (*flags, _CAREFUL), file)
        if failed is None:
            return
        broken = self._complaint("int works;", flags, file)
        if broken is not None:
            raise BackendUnavailable(
                f"the C compiler {shlex.join(self.command)!r} does not work",
                details=tuple(broken.splitlines()[:8]),
                fix=_FIX,
            )
        handle, reproducer = tempfile.mkstemp(prefix=f"arrayjit-{code.symbol}-", suffix=".c")
        with os.fdopen(handle, "w", encoding="utf-8") as source:
            source.write(code.payload)
        what = f"{shlex.join(self.command)} rejects the text of {code.name!r}: {failed}"
        raise CompilerBug(what, stage="targets/c", reproducer=reproducer)

    def _complaint(self, text: str, flags: Sequence[str], file: Path) -> str | None:
        """What the compiler says against a text; None if it makes the file."""
        command = [*self.command, *flags, "-o", str(file), "-x", "c", "-", "-lm"]
        try:
            done = subprocess.run(
                command, input=text.encode(), capture_output=True, cwd=file.parent, check=False
            )
        except OSError as error:
            return str(error)
        if done.returncode == 0 and file.exists():
            return None
        said = done.stderr.decode(errors="replace").strip()
        return said or f"it ends with status {done.returncode} and says nothing"


def c_compiler() -> CCompiler:
    """The one to use now. Raises BackendUnavailable where there is none."""
    wanted = c_compiler_wanted()
    for command in (shlex.split(wanted),) if wanted else ((name,) for name in _COMPILERS):
        place = shutil.which(command[0]) if command else None
        if place is not None:
            return _described((place, *command[1:]), Path(place).stat().st_mtime_ns)
    missing = f"there is no C compiler {wanted!r}, which CC names" if wanted else "there is no C compiler"
    raise BackendUnavailable(missing, fix=_FIX)


@cache
def _described(command: tuple[str, ...], changed: int) -> CCompiler:
    """With its version; another one when its file changes."""
    try:
        told = subprocess.run([*command, "--version"], capture_output=True, check=False).stdout
    except OSError as error:
        raise BackendUnavailable(
            f"the C compiler {shlex.join(command)!r} does not work", details=(str(error),), fix=_FIX
        ) from error
    return CCompiler(command, told.decode(errors="replace"))


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that nobody else looks into, for a while."""
    try:
        folder = tempfile.mkdtemp(prefix="arrayjit-")
    except OSError as error:
        raise BackendUnavailable(
            "C is compiled in a temporary folder, which cannot be made",
            details=(str(error),),
            fix="set TMPDIR to a folder that can be written",
        ) from error
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Library:
    """A shared object in memory, which goes with the last reference to this."""

    def __init__(self, file: Path) -> None:
        self.functions = ctypes.CDLL(str(file))
        unload = finalize(self, _close, ctypes.c_void_p(self.functions._handle))
        unload.atexit = False


def _close(handle: ctypes.c_void_p) -> None:
    ctypes.CDLL(None).dlclose(handle)


def _loaded(file: Path, symbol: str) -> Image:
    """The function of a shared object, whose file is not needed after."""
    try:
        library = _Library(file)
    except OSError as error:
        raise BackendUnavailable(
            "compiled C cannot be loaded",
            details=(str(error),),
            fix="set TMPDIR to a folder whose files may be executed",
        ) from error
    address = ctypes.cast(getattr(library.functions, symbol), ctypes.c_void_p).value
    return Image({symbol: address or 0}, library)
