"""From CUDA C to an Image, by NVRTC, which needs no GPU.

What was compiled is kept in files, under the source, the architecture, NVRTC's version and the options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from threading import Lock
from typing import Any

from ...cache import key_for, recall, remember
from ...errors import BackendUnavailable, CompilerBug
from ...frozen import frozen
from ...late import Late
from .api import Image

__all__ = [
    "INSTALL",
    "OPTIONS",
    "UNKNOWN",
    "Usage",
    "checked_arch",
    "choose",
    "compiled",
    "supported",
    "usage",
    "version",
]

nvrtc: Any = Late("cuda.bindings.nvrtc")

INSTALL = "pip install 'arrayjit[cuda]'"

OPTIONS = ("--std=c++17", "-default-device", "--fmad=false", "--ptxas-options=-v")
"""Without fused multiply-adds but where the source says so, and without fast mathematics: results are those
of the other targets. The assembler reports on each kernel."""

_KIND = "cuda"

# NVRTC does one compilation at a time anyway, under a lock of its own.
_compiling = Lock()


@frozen
class Usage:
    """What a thread of a kernel takes: registers, and bytes that were moved out of them for want of others;
    and the bytes that the threads of a block share."""

    registers: int
    spilled_bytes: int
    stack_bytes: int
    shared_bytes: int


UNKNOWN = Usage(0, 0, 0, 0)
"""Of a kernel on which no assembler has reported."""


def compiled(source: str, arch: str, name: str, seconds: dict[str, float] | None = None) -> Image:
    """Kernels for a device of an architecture such as "sm_90": machine code where NVRTC can make it, and PTX.

    Raises BackendUnavailable where NVRTC is missing or knows no such architecture, and CompilerBug, which
    names the user's line, for a source that it rejects. `name` is for messages.
    """
    chosen = choose(arch, supported())
    key = key_for(source, chosen, version(), *OPTIONS)
    kept = recall(_KIND, key)
    if kept is not None:
        return _unpacked(kept)
    with _compiling:
        image = _compiled(source, chosen, name)
    remember(_KIND, key, _packed(image))
    return image


def choose(arch: str, known: Iterable[str]) -> str:
    """What to compile for, for a device of `arch`: that, or else the newest before it of the same generation,
    whose machine code it runs, or else the PTX of the newest before it. Raises BackendUnavailable for a
    device that is older than all."""
    wanted = _number(arch)
    older = [number for number in map(_number, known) if number <= wanted]
    if not older:
        major, minor = version()
        raise BackendUnavailable(
            f"NVRTC {major}.{minor} makes no code for {arch}",
            details=(f"it knows {', '.join(known)}",),
            fix="use a newer GPU, or an older NVRTC: pip install nvidia-cuda-nvrtc-cu12==12.9.*",
        )
    newest = max(older)
    is_same_generation = newest // 10 == wanted // 10
    suffix = arch[len(f"sm_{wanted}") :] if newest == wanted else ""
    return f"{'sm' if is_same_generation else 'compute'}_{newest}{suffix}"


def checked_arch(arch: str) -> str:
    """An architecture that NVRTC makes machine code for, such as "sm_90". Raises BackendUnavailable for
    another."""
    if choose(arch, supported()) != arch:
        raise BackendUnavailable(
            f"NVRTC {'.'.join(map(str, version()))} makes no code for {arch}",
            details=(f"it knows {', '.join(supported())}",),
            fix="choose one of those",
        )
    return arch


@cache
def version() -> tuple[int, int]:
    """NVRTC's. Raises BackendUnavailable where it is missing."""
    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise BackendUnavailable(f"NVRTC is missing: {_first_line(error)}", fix=INSTALL) from error
    if int(status):
        raise BackendUnavailable(f"NVRTC does not work: {status!r}", fix=INSTALL)
    return major, minor


@cache
def supported() -> tuple[str, ...]:
    """The architectures that NVRTC knows, as "sm_90", in their order."""
    version()
    return tuple(f"sm_{number}" for number in _checked(nvrtc.nvrtcGetSupportedArchs()))


def usage(log: str) -> dict[str, Usage]:
    """What the assembler reported of each kernel."""
    found: dict[str, Usage] = {}
    for report in re.split(r"Compiling entry function '", log)[1:]:
        name = report.partition("'")[0]
        registers = re.search(r"Used (\d+) registers", report)
        stack, stores, loads, shared = (
            int(match[1]) if (match := re.search(rf"(\d+) bytes {what}", report)) else 0
            for what in ("stack frame", "spill stores", "spill loads", "smem")
        )
        found[name] = Usage(int(registers[1]) if registers else 0, stores + loads, stack, shared)
    return found


def _compiled(source: str, chosen: str, name: str) -> Image:
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, None, None))
    try:
        options = [f"-arch={chosen}".encode(), *(option.encode() for option in OPTIONS)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if int(status):
            raise CompilerBug(_located(source, log), stage=f"NVRTC, compiling {name!r} for {chosen}")
        ptx = _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        cubin = b""
        if chosen.startswith("sm_"):
            cubin = _content(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return Image(cubin, ptx, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _located(source: str, log: str) -> str:
    """The log, and above it the user's line of the first error: the nearest `// at FILE:LINE` before it."""
    error = re.search(r"\((\d+)\): (?:catastrophic )?error", log)
    if error is None:
        return log
    before = source.splitlines()[: int(error[1])]
    places = [found[1] for line in before if (found := re.search(r"// at (.+:\d+)\s*$", line))]
    where = f"at {places[-1]}\n" if places else ""
    return f"{where}{log}\n{before[-1].strip() if before else ''}"


def _text(program: Any, size: Any, get: Any) -> str:
    return _content(program, size, get).rstrip(b"\0").decode(errors="replace")


def _content(program: Any, size: Any, get: Any) -> bytes:
    content = bytearray(_checked(size(program)))
    _checked(get(program, content))
    return bytes(content)


def _checked(outcome: tuple[Any, ...]) -> Any:
    """What a function of NVRTC's gave. Raises CompilerBug for an error."""
    status, *values = outcome
    if int(status):
        raise CompilerBug(repr(status), stage="NVRTC")
    return values[0] if len(values) == 1 else values


def _packed(image: Image) -> bytes:
    ptx, log = image.ptx.encode(), image.log.encode()
    return b"%d %d\n%s%s%s" % (len(image.cubin), len(ptx), image.cubin, ptx, log)


def _unpacked(content: bytes) -> Image:
    head, _, rest = content.partition(b"\n")
    cubin, ptx = map(int, head.split())
    return Image(rest[:cubin], rest[cubin : cubin + ptx].decode(), rest[cubin + ptx :].decode())


def _number(arch: str) -> int:
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if found is None:
        raise BackendUnavailable(f"{arch!r} is no architecture", fix="write it as sm_80, sm_90, sm_100")
    return int(found[1])


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
