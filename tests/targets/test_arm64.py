"""What NumPy gives on ARM64 where it differs from x86-64, made on any machine; and code for it."""

from __future__ import annotations

import math
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from arrayjit import jit, processor
from arrayjit.passes.manager import optimize
from arrayjit.runtime import c_compiler
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function

BEYOND = [
    *(0.5, -0.5, -1.5, 127.9, 128.0, 255.9, 256.5, -129.0, 300.7, -300.2, 65536.5, -40000.0),
    *(2.0**31 - 1, 2.0**31, 2.0**31 + 5, -(2.0**31) - 5000, 2.0**32 - 1, 2.0**32, -(2.0**32) - 7),
    *(
        2.0**40 + 3,
        2.0**53 + 2,
        2.0**63,
        -(2.0**63),
        2.0**63 + 4096,
        2.0**64,
        2.0**70,
        -(2.0**70),
        1e300,
        -1e300,
    ),
    *(math.inf, -math.inf, math.nan),
]


assert c_compiler  # which knows what machine it is on by now


@pytest.fixture
def on_arm(monkeypatch):
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")


def nearest(number, dtype):
    """The nearest integer of that sign and of at least 32 bits, cut down; zero for NaN."""
    wide = np.iinfo(f"{dtype.kind}{max(4, dtype.itemsize)}")
    whole = 0 if math.isnan(number) else int(max(min(number, wide.max), wide.min))
    return np.array(whole).astype(wide.dtype).astype(dtype)


WHOLE = [np.dtype(name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
@pytest.mark.parametrize("source", ["f2", "f4", "f8"])
def test_floats_that_do_not_fit_become_the_nearest_integers(on_arm, source, target):
    with np.errstate(over="ignore"):
        x = np.array(BEYOND).astype(source)
    converted = jit(lambda x: [x.astype(dtype) for dtype in WHOLE], target=target)
    for given in (x, np.repeat(x, 16), x[19], x[-1]):
        for dtype, result in zip(WHOLE, converted(given), strict=True):
            expected = np.array([nearest(float(number), dtype) for number in np.ravel(given)])
            np.testing.assert_array_equal(np.ravel(result), expected, strict=True)


def machine_code(program, *args):
    """The program's text, and its assembly for ARM64."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = LlvmTarget("sync_llvm", "neon")
    kernel = optimize(trace_function(program, args, {}).computation, target.caps()).kernel
    text = target.emit(kernel).payload
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=2)
    return text, machine.emit_assembly(llvm.parse_assembly(text))


def test_what_is_seldom_needed_is_called_in_a_way_that_LLVM_has_for_ARM():
    def seldom_needed(x, y):
        y[:] = np.sin(x) * x[0] + np.sin(x[0])

    text, _ = machine_code(seldom_needed, np.ones(23), np.ones(23))
    assert "preserve_allcc void @" in text
    assert "coldcc" not in text


ZEROS = np.array([0.0, -0.0])
EXTREMES = {"maximum": 0.0, "fmax": 0.0, "minimum": -0.0, "fmin": -0.0}


def test_extremes_are_instructions(on_arm):
    def extremes(x, y):
        return [getattr(np, name)(x, y) for name in EXTREMES]

    _, assembly = machine_code(extremes, np.ones(64), np.ones(64))
    for name in ("fmax", "fmin", "fmaxnm", "fminnm"):
        assert re.search(rf"\t{name}\tv\d+\.2d", assembly)
    assert "fcm" not in assembly


# What LLVM's `maxnum` makes of zeros is the processor's to say.
BY_SIGN = [("sync_c", name) for name in EXTREMES] + [("sync_llvm", name) for name in ("maximum", "minimum")]
BY_SIGN += [("sync_llvm", name) for name in ("fmax", "fmin") if processor.is_arm()]


@pytest.mark.parametrize(("target", "name"), BY_SIGN)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_of_zeros_an_extreme_is_the_one_that_its_sign_tells(on_arm, target, name, dtype):
    extreme = getattr(np, name)

    def extremes(x, y):
        steps = np.stack([x, y])
        rows = np.stack([np.concatenate([x, y])] * 9)
        return extreme(x, y), extreme.reduce(steps, axis=0), extreme.reduce(rows, axis=1), extreme(x[0], y[0])

    found = jit(extremes, target=target)
    for one in ZEROS:
        results = found(np.full(67, one, dtype), np.full(67, -one, dtype))
        assert all((np.signbit(result) == np.signbit(EXTREMES[name])).all() for result in results)


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_of_all_kinds_of_floats_are_NumPys(on_arm, name, target):
    kinds = np.array([1.0, -1.0, 3.5, np.inf, -np.inf, np.nan, 5e-324, -5e-324])
    x, y = np.repeat(kinds, len(kinds)), np.tile(kinds, len(kinds))
    extreme = getattr(np, name)
    found = jit(lambda x, y: (extreme(x, y), extreme.reduce(np.stack([x, y]))), target=target)
    for result in found(x, y):
        np.testing.assert_array_equal(result, extreme(x, y))
