"""Compiles CUDA C in a process of its own, since NVRTC may take its process with it.

Reads one JSON line `[source, architecture, options]` at a time and answers with one: `["", ptx]`, or the log.
"""

from __future__ import annotations

import json
import sys

from cuda.bindings import nvrtc


def compiled(source: str, architecture: str, options: list[str]) -> tuple[str, str]:
    """The compiler's complaint, or the PTX."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], [])
    given = [f"--gpu-architecture={architecture}", "--std=c++17", "-default-device", *options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [each.encode() for each in given])
    try:
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog), ""
        return "", text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def text(program: object, size: object, get: object) -> str:
    _, nbytes = size(program)
    buffer = bytearray(nbytes)
    get(program, buffer)
    return buffer.rstrip(b"\0").decode()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(compiled(*json.loads(line))), flush=True)
