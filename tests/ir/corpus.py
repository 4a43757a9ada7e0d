"""The hand-written programs of `cases/`: blocks of `[what it shows]` and the text of one program."""

from __future__ import annotations

import re
from pathlib import Path

from arrayjit.ir.assign import Computation
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_computation, print_kernel

__all__ = ["COMPUTATIONS", "KERNELS", "computation", "kernel", "printed"]


def _programs(file: str) -> dict[str, str]:
    text = Path(__file__).parent.joinpath("cases", file).read_text()
    parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)[1:]
    return {name: program.strip() + "\n" for name, program in zip(parts[::2], parts[1::2], strict=True)}


KERNELS = _programs("kernels.txt")
COMPUTATIONS = _programs("computations.txt")


def kernel(text: str) -> Kernel:
    program = parse(text)
    assert isinstance(program, Kernel)
    return program


def computation(text: str) -> Computation:
    program = parse(text)
    assert isinstance(program, Computation)
    return program


def printed(program: Computation | Kernel) -> str:
    return print_computation(program) if isinstance(program, Computation) else print_kernel(program)
