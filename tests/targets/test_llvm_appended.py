"""What a condition selects, put side by side a register at a time: as NumPy has it, at every size."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.targets.host import host_cpu

SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 257, 1003)
DTYPES = ("f8", "f4", "i8", "i4", "u8", "u4", "i2", "u1", "f2", "?")
BOUNDS = (0, 30, 50, 100)


def selected(x, y):
    return x[x > y], np.nonzero(x > y)[0], np.flatnonzero(x)


def of_rows(x, y):
    return np.nonzero(x.reshape(-1, 1) > y)


def by_hand(x, y):
    """What was not selected last stays where it was put, and is the caller's."""
    more, less = np.zeros(x.shape[0] + 1, x.dtype), np.zeros(x.shape[0] + 1, np.int64)
    above, below = 0, 0
    for i in range(x.shape[0]):
        more[above] = x[i]
        less[below] = i
        above += np.int64(x[i] > y)
        below += np.int64(x[i] <= y)
    return more, less, above, below


def always_or_never(x, y):
    """One condition for all cells."""
    out, count = np.zeros(x.shape[0] + 1, x.dtype), 0
    for i in range(x.shape[0]):
        out[count] = x[i]
        count += np.int64(y > 40)
    return out, count


def in_place(x, y):
    """Cells move up, over what was read; from the second one on, over what is read next."""
    first, second, count, more = x.copy(), x.copy(), 0, 1
    for i in range(x.shape[0] - 1):
        first[count] = first[i]
        count += np.int64(first[i] > y)
    for i in range(x.shape[0] - 1):
        second[more] = second[i]
        more += np.int64(second[i] > y)
    return first, second, count, more


@pytest.mark.parametrize("program", [selected, of_rows, by_hand, in_place, always_or_never])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_selected_is_numpy_s(program, dtype):
    compiled = arrayjit.jit(program)
    random = np.random.default_rng(7)
    for size in SIZES:
        x = (100 * random.random(size)).astype(dtype)
        for bound in BOUNDS:
            y = np.dtype(dtype).type(bound)
            for ours, its in zip(compiled(x, y), program(x, y), strict=True):
                np.testing.assert_array_equal(ours, its)
                assert np.asarray(ours).dtype == np.asarray(its).dtype


@pytest.mark.parametrize("program", [lambda x, y: x[x > y], by_hand])
def test_a_register_of_lanes_is_put_together_by_one_instruction(program):
    text = arrayjit.jit(program, target="llvm").lower(np.arange(1000.0), 0.5).as_text("asm")
    assert ("vcompresspd" in text) == bool(host_cpu().caps.packed)
