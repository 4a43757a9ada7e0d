"""Narrow integers are added up in narrow sums, which hold them."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

random = np.random.default_rng(5)


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"target": "c"}], ids=str)
@pytest.mark.parametrize("length", [511, 8160, 8192, 300_001])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.uint16, np.int16])
def test_the_largest_and_the_smallest_fit(dtype, length, options):
    least, greatest = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    total = arrayjit.jit(np.sum, **options)
    for values in (
        np.full(length, least, dtype),
        np.full(length, greatest, dtype),
        random.integers(least, greatest + 1, length).astype(dtype),
    ):
        result = total(values)
        assert result == values.sum()
        assert result.dtype == values.sum().dtype


def test_a_sum_of_more_int16s_than_one_int32_holds():
    values = np.full(32 * 65536 * 3 + 17, -(2**15), np.int16)
    assert arrayjit.jit(np.sum, threads=1)(values) == values.sum()


def rows_and_columns(mask, image):
    return (
        mask.sum(axis=1),
        mask.sum(axis=0),
        np.count_nonzero(image),
        (image > 100).sum(axis=1),
        (mask & (image != 3)).sum(),
        (image + image).sum(axis=1, dtype=np.uint32),
        image.mean(axis=1),
        image.mean(),
        (mask & (image > 100)).mean(),
        (mask & ~mask).mean(),
        mask.sum() - image.sum(dtype=np.int64),
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_counts_of_what_is_computed_from_bytes(threads):
    mask = random.random((120, 9001)) < 0.3
    image = random.integers(0, 256, (120, 9001)).astype(np.uint8)
    results = arrayjit.jit(rows_and_columns, threads=threads)(mask, image)
    for result, expected in zip(results, rows_and_columns(mask, image), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype
        assert not np.signbit(result).any() or np.less(expected, 0).any()
