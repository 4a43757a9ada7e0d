"""Long copies and fills, which go by instructions for strings of bytes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import arrayjit
from arrayjit import processor
from arrayjit.passes.manager import optimize
from arrayjit.targets import llvm_strings
from arrayjit.targets.host import cpu_named
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function

MOVED = {
    "a copy": (lambda x: x.copy(), ["movsb"]),
    "parts": (lambda x: np.concatenate([x[3:], x]), ["movsb", "movsb"]),
    "rows of parts": (lambda x: x.reshape(2, -1)[:, 1:].copy(), ["movsb"]),
    "one value": (lambda x: np.full_like(x, 3), ["stos"]),
    "bits of a value": (lambda x: np.full(x.size, 1, x.dtype) + np.zeros_like(x), ["stos"]),
    "beside a copy": (lambda x: np.pad(x, 1), ["movsb"]),
}
COMPUTED = {
    "what is computed": lambda x: x + x,
    "steps": lambda x: x[::2].copy(),
    "from behind": lambda x: x[::-1].copy(),
    "within one array": lambda x: np.copyto(x[1:], x[:-1]),
    "a short array": lambda x: x[:100].copy(),
}


def repeated(program, x, cpu="zen5"):
    """Which instructions for strings there are."""
    computation = trace_function(program, (x,), {}).computation
    kernel = optimize(computation, replace(cpu_named(cpu).caps, l3_bytes=1 << 28)).kernel
    return re.findall(r'"rep (movsb|stos)', LlvmTarget("sync_llvm", cpu).emit(kernel).payload)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float16, np.float32, np.int64], ids=str)
@pytest.mark.parametrize(("program", "expected"), MOVED.values(), ids=MOVED)
def test_long_moves_are_strings(program, expected, dtype):
    x = (np.arange(1_000_002) % 100).astype(dtype)
    assert repeated(program, x) == expected
    assert repeated(program, x, "avx512") == []


@pytest.mark.parametrize("program", COMPUTED.values(), ids=COMPUTED)
def test_nothing_else_is(program):
    assert repeated(program, np.arange(1_000_002)) == []


@pytest.mark.skipif(processor.features().isdisjoint({"sse2"}), reason="has no such instructions")
@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float16, np.float32, np.complex128], ids=str)
@pytest.mark.parametrize("program", [program for program, _ in MOVED.values()], ids=MOVED)
@pytest.mark.parametrize("cells", [202, 1_000_002])
def test_they_are_those_of_numpy(program, cells, dtype, monkeypatch):
    monkeypatch.setattr(llvm_strings, "FEATURES", set())
    x = (np.arange(cells) % 100).astype(dtype)
    result = arrayjit.jit(program, target="sync_llvm")(x)
    np.testing.assert_array_equal(result, program(x), strict=True)
