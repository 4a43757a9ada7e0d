"""What tests of attention share: weights of scores, what is drawn for them, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.targets.cuda import CudaTarget
from arrayjit.targets.interp import InterpTarget

__all__ = ["SCALE", "Function", "drawn", "notes_of", "plan_for", "softmax"]

Function = Callable[..., Any]

SCALE = np.float32(0.25)


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def drawn(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def plan_for(monkeypatch: pytest.MonkeyPatch, gpu: GpuCaps) -> None:
    """Every target here plans for such a GPU, and verifies what it plans."""
    monkeypatch.setenv("ARRAYJIT_VERIFY", "1")
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    for target in (InterpTarget, CudaTarget):
        monkeypatch.setattr(target, "caps", lambda self: Caps(gpu=gpu))


def notes_of(function: Function, *arguments: Any) -> list[str]:
    """What is said of scores."""
    said = str(arrayjit.jit(function, target="interp").lower(*arguments).explain())
    return [line for line in said.splitlines() if line.startswith("attend:")]
