"""Rows on a GPU: read once and written once, 16 bytes at a time, and equal to NumPy whatever their length."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_cuda_emitter import program

import arrayjit
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES

LENGTHS = (1, 31, 32, 33, 127, 128, 131, 260, 1021, 1028)
ROWS = 33


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def layer_norm(x):
    m = x.mean(axis=-1, keepdims=True)
    return (x - m) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * x[0] + x[1]


def rms_norm(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def in_place(x):
    x -= x.mean(axis=-1, keepdims=True)
    x /= np.abs(x).max(axis=-1, keepdims=True) + 1
    return x


def argmax(x):
    return x.argmax(axis=-1)


ROW_PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "log softmax": log_softmax,
    "layer norm": layer_norm,
    "rms norm": rms_norm,
    "in place": in_place,
    "argmax": argmax,
}


CASES = [*((name, "f4") for name in ROW_PROGRAMS), ("layer norm", "f8"), ("argmax", "i2")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_rows_of_any_length_are_numpy_s(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    function = ROW_PROGRAMS[name]
    for length in LENGTHS:
        x = (8 * random.normal(size=(ROWS, length))).astype(dtype)
        wanted = function(x.copy())
        got = np.asarray(arrayjit.jit(function, target="cuda-sim")(x.copy()))
        assert got.dtype == wanted.dtype
        error = 2e-6 if dtype == "f4" else 1e-14
        np.testing.assert_allclose(got, wanted, rtol=10 * error, atol=error * np.abs(wanted).max())


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("length", [1024, 4096, 8192])
@pytest.mark.parametrize("function", [softmax, rms_norm])
def test_a_row_is_read_once_and_written_once(function: Callable[[Any], Any], length: int, arch: str) -> None:
    made = program(function, np.ones((4096, length), np.float32), arch=arch)
    image = nvrtc.compiled(made.source, arch, "program")
    (usage,) = nvrtc.usage(image.log).values()
    assert usage.spilled_bytes == usage.stack_bytes == 0
    (launch,) = made.plan
    vectors = length // 4 // launch.threads[0]
    code = disassembled(image.cubin)
    assert len(re.findall(r"LDG\.E\.128", code)) == len(re.findall(r"STG\.E\.128", code)) == vectors
    assert not re.search(r"LDL|STL|LDS\.128|STS\.128", code)
