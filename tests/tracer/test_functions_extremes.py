"""Extremes of complex numbers, and where they stand: the first of equal numbers, the first NaN."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

ENDS = 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan
SPECIAL = np.array([complex(x, y) for x in ENDS for y in ENDS])
NUMBERS = SPECIAL[~np.isnan(SPECIAL)]
ZEROS = NUMBERS[NUMBERS == 0]
SHAPES = {
    (577,): (None,),
    (9001,): (None,),
    (3, 700): (None, 1),
    (700, 3): (None, 0),
    (40, 40): (1,),
    (5, 40, 6): (1, (0, 1)),
}
CASES = [
    *((shape, "sync_llvm") for shape in SHAPES),
    ((9001,), "sync_c"),
    ((40, 40), "sync_c"),
    ((577,), "interp"),
]
FUNCTIONS = {
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "fmax": np.fmax.reduce,
    "from one": lambda x, axis: np.max(x, axis=axis, initial=complex(1, -0.0)),
}


def drawn(shape, dtype):
    """Arrays of numbers that are often equal; the last two have NaN in one part or the other."""
    random = np.random.default_rng(5)
    for numbers in (ZEROS, NUMBERS, ZEROS - 1j, SPECIAL):
        yield random.choice(numbers, shape).astype(dtype)
    x = random.choice(ZEROS, shape)
    x.flat[x.size // 2], x.flat[-1] = complex(1, np.nan), complex(np.nan, 1)
    yield x.astype(dtype)


def assert_same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "c":
        for got, want in ((actual.real, expected.real), (actual.imag, expected.imag)):
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            signs = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[signs], np.signbit(want)[signs])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("shape", "target"), CASES, ids=str)
def test_extremes_are_numpys(shape, name, target):
    for axis in SHAPES[shape]:
        if isinstance(axis, tuple) and name.startswith("arg"):
            continue

        def program(x, axis=axis):
            return FUNCTIONS[name](x, axis=axis)

        function = arrayjit.jit(program, target=target)
        dtypes = (np.complex64, np.complex128) if target == "sync_llvm" else (np.complex128,)
        for x in (x for dtype in dtypes for x in drawn(shape, dtype)):
            for layout in (x, np.asfortranarray(x)):
                assert_same(function(layout), program(layout))


def loops(function, x):
    return [
        line for line in arrayjit.jit(function).lower(x).as_text("optimized").split("\n") if " for " in line
    ]


@pytest.mark.parametrize("function", [np.max, np.argmax])
def test_long_rows_do_not_wait_for_one_another(function):
    """All loops over many numbers go in vectors."""
    x = np.zeros(4096, complex)
    assert not any("sequential(0, 4096)" in loop for loop in loops(lambda x: function(x), x))


def test_positions_in_rows_go_in_vectors():
    x = np.zeros((40, 96), complex)
    assert not any("sequential(0, 96)" in loop for loop in loops(lambda x: np.argmin(x, axis=1), x))
