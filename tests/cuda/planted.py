"""Mistakes planted in programs: a piece of the CUDA C that the compiler emits is replaced, and a simulated
GPU runs it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Code
from arrayjit.ir.loops import Kernel
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.device import Machine
from arrayjit.targets.cuda import CudaTarget

__all__ = ["BARRIER", "OUTSIDE", "RACE", "UNFINISHED", "UNWRITTEN", "pieces_of", "run_with"]

BARRIER = r"__syncthreads\(\);"

RACE = r"nothing orders the two|at the same time"
UNWRITTEN = r"which no thread has written"
UNFINISHED = r"asynchronous copy"
OUTSIDE = r"cannot be (read|written)|lie outside"
"""What the GPU says."""


def pieces_of(right: str, function: Callable[..., Any], *arguments: Any, fast: str = "") -> int:
    """How often a pattern is found in the CUDA C of a call."""
    source = arrayjit.jit(function, target="cuda-sim", fast=fast).lower(*arguments).as_text("cuda")
    return len(re.findall(right, source))


def run_with(
    monkeypatch: pytest.MonkeyPatch,
    mistake: tuple[str, str, int],
    function: Callable[..., Any],
    *arguments: np.ndarray,
    fast: str = "",
) -> np.ndarray:
    """The result of a call, by a GPU of its own, where what a pattern finds there is replaced by something
    else: once, as often as told. Raises DeviceError for what the GPU finds."""
    right, wrong, occurrence = mistake
    emit = CudaTarget.emit

    def broken(self: CudaTarget, kernel: Kernel) -> Code:
        code = emit(self, kernel)
        source = code.payload.source
        found = list(re.finditer(right, source))[occurrence]
        source = source[: found.start()] + found.expand(wrong) + source[found.end() :]
        return replace(code, payload=replace(code.payload, source=source))

    monkeypatch.setattr(CudaTarget, "emit", broken)
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    machine = Machine(lambda: SimulatedDriver("cuda-sim"))
    try:
        held = [arrayjit.asarray(array, device=machine.get_device(0)) for array in arguments]
        result: np.ndarray = arrayjit.jit(function, fast=fast)(*held).numpy()
        return result
    finally:
        machine.unsafe_cleanup()
