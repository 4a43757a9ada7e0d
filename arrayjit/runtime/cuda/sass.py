"""Machine code of GPUs as text, by NVIDIA's disassembler, which comes in a package of its own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import BackendUnavailable, CompilerBug
from ...late import Late

if TYPE_CHECKING:
    import subprocess
    import tempfile
else:
    subprocess, tempfile = Late("subprocess"), Late("tempfile")

__all__ = ["disassembled"]


def disassembled(cubin: bytes, *options: str) -> str:
    """The text of machine code; with the option "-json" as JSON. Raises BackendUnavailable where there is no
    disassembler, CompilerBug for what it rejects."""
    tool = next(_tools(), None)
    if tool is None:
        raise BackendUnavailable("nvdisasm is missing", fix="pip install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(tool), *options, file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerBug(done.stderr.strip(), stage="nvdisasm")
    return done.stdout


def _tools() -> Iterator[Path]:
    """Where it is: among the programs, or where its package puts it."""
    found = shutil.which("nvdisasm")
    if found:
        yield Path(found)
    for folder in sys.path:
        yield from Path(folder, "nvidia").glob("*/bin/nvdisasm")
