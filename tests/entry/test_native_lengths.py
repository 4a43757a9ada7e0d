"""Calls without Python whose arrays have any length: what the same calls through Python give."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import arrayjit
from arrayjit.runtime.results import LARGE


def row(length):
    return np.arange(float(length))


@arrayjit.jit(any_length=("x", "y"))
def joined(x, y):
    return np.concatenate([x, y, x[2:]]), (x[:, None] + np.arange(3.0)).T, x.sum()


def test_each_length_between_the_ends(native):
    for length in range(17, 33):
        x, y = row(length), row(49 - length)
        one, turned, total = native(joined, x, y) if length == 17 else joined(x, y)
        np.testing.assert_array_equal(one, np.concatenate([x, y, x[2:]]))
        np.testing.assert_array_equal(turned, (x[:, None] + np.arange(3.0)).T)
        assert turned.flags.f_contiguous
        assert total == x.sum()
    before = joined._entries.hits
    joined(row(25), row(24)), joined(row(32), row(17))
    assert joined._entries.hits == before + 2


def test_equal_lengths_stay_equal(native):
    f = arrayjit.jit(lambda x, y: x * y, any_length=("x", "y"))
    native(f, row(20), row(20))
    before = f._entries.hits
    f(row(30), row(30))
    assert f._entries.hits == before + 1
    with pytest.raises(ValueError, match="broadcast"):
        f(row(30), row(20))
    np.testing.assert_array_equal(f(row(30), row(1)), np.zeros(30))
    assert f._entries.hits == before + 1


@pytest.mark.parametrize("other", [row(33), row(16), row(1), row(0), row(40)[::2], row(20).reshape(20, 1)])
def test_other_arrays_are_no_calls_of_it(native, other):
    f = arrayjit.jit(lambda x: x + 1, any_length="x")
    native(f, row(20))
    before = f._entries.hits
    np.testing.assert_array_equal(f(other), other + 1)
    assert f._entries.hits == before


def test_arrays_that_overlap_are_no_calls_of_it(native):
    def f(x, y):
        x[1:] += y[:-1]

    jitted = arrayjit.jit(f, any_length=("x", "y"))
    native(jitted, row(20), row(20))
    ours, theirs = row(40), row(40)
    for start in (0, 1, 10, 19, 20):
        jitted(ours[:20], ours[start : start + 20]), f(theirs[:20], theirs[start : start + 20])
        np.testing.assert_array_equal(ours, theirs)


def test_the_same_array_twice(native):
    f = arrayjit.jit(lambda x, y: x + 2 * y, any_length=("x", "y"))
    x = row(20)
    np.testing.assert_array_equal(native(f, x, x), 3 * x)
    np.testing.assert_array_equal(f(x[:19], x[:19]), 3 * x[:19])


def test_in_containers(native):
    f = arrayjit.jit(lambda leaves: leaves["x"] * 2 + leaves["more"][0].sum(), any_length="leaves")
    for length in (20, 31):
        leaves = {"x": row(length), "more": (row(length + 1), 3)}
        np.testing.assert_array_equal(native(f, leaves), 2 * row(length) + row(length + 1).sum())


def test_large_results_have_blocks(native):
    f = arrayjit.jit(lambda x: x * 2, any_length="x")
    length = LARGE // 8
    for cells in (length - 1, length // 2 + 1, length, length - 7):
        result = native(f, row(cells))
        assert result.shape == (cells,)
        np.testing.assert_array_equal(result, 2 * row(cells))


def test_results_with_open_columns(native):
    f = arrayjit.jit(lambda x, y: (x[:, None] * y, np.stack([y, y])), any_length=("x", "y"))
    native(f, row(20), row(300))
    before = f._entries.hits
    for lengths in ((17, 257), (32, 512), (25, 400)):
        squares, both = f(*map(row, lengths))
        np.testing.assert_array_equal(squares, np.outer(*map(row, lengths)))
        np.testing.assert_array_equal(both, np.stack([row(lengths[1])] * 2))
        assert squares.flags.owndata
        assert squares.flags.c_contiguous
    assert f._entries.hits == before + 3


def test_large_results_with_open_columns_have_blocks(native):
    f = arrayjit.jit(lambda x, y: x[:, None] * y, any_length=("x", "y"))
    native(f, row(900), row(2000))
    for lengths in ((513, 1025), (1024, 2048)):
        np.testing.assert_array_equal(f(*map(row, lengths)), np.outer(*map(row, lengths)))
    x, y = row(1000), row(2000)
    before = sys.getallocatedblocks()
    for _ in range(200):
        f(x, y)
    assert sys.getallocatedblocks() < before + 100


def test_no_reference_is_lost_or_kept(native):
    f = arrayjit.jit(lambda x: (x, x * 2, [x[:3] + 1]), any_length="x")
    x = row(20)
    native(f, x)
    gc.collect()
    before = sys.getrefcount(x)
    for _ in range(100):
        f(x)
    assert sys.getrefcount(x) == before
    assert sys.getrefcount(f(x)[1]) <= 2


def test_parts_of_arguments(native, through_python):
    first = arrayjit.jit(lambda x: x[:3], any_length="x")
    assert np.shares_memory(native(first, x := row(20)), x)
    rest = arrayjit.jit(lambda x: x[1:], any_length="x")
    assert np.shares_memory(through_python(rest, x), x)
    assert rest(row(25)).shape == (24,)


def test_memory_that_arrays_cover_together_is_told_from_that_of_others(native):
    def f(x, y, z):
        z[1:] += y[:-1]
        return x.sum()

    jitted = arrayjit.jit(f, any_length=("x", "y", "z"))
    ours, theirs = row(60), row(60)
    native(jitted, ours[:20], ours[10:40], row(30))
    for start in (0, 5, 15, 25, 30):
        z = slice(start, start + 30)
        got, wanted = jitted(ours[:20], ours[10:40], ours[z]), f(theirs[:20], theirs[10:40], theirs[z])
        np.testing.assert_array_equal(ours, theirs)
        assert got == wanted
