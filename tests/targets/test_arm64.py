"""What NumPy gives on ARM64 where it differs from x86-64, made on any machine; and code for it."""

from __future__ import annotations

import math

import llvmlite.binding as llvm
import numpy as np
import pytest

from arrayjit import jit, processor
from arrayjit.passes.manager import optimize
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


def seldom_needed(x, y):
    y[:] = np.sin(x) * x[0] + np.sin(x[0])


def test_what_is_seldom_needed_is_called_in_a_way_that_LLVM_has_for_ARM():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    x = np.ones(23)
    target = LlvmTarget("sync_llvm", "neon")
    kernel = optimize(trace_function(seldom_needed, (x, x.copy()), {}).computation, target.caps()).kernel
    text = target.emit(kernel).payload
    assert "preserve_allcc void @" in text
    assert "coldcc" not in text
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=2)
    assert machine.emit_object(llvm.parse_assembly(text))
