"""`threads=`: how many threads share the loops of a call at most; the bits are the same for any number."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.backends import backend
from arrayjit.errors import NumberError


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    """The process's own backend, as it would be on four cores."""
    driver = backend("llvm").driver
    monkeypatch.setenv("ARRAYJIT_NUM_THREADS", "4")
    monkeypatch.setattr(driver, "_most", 4)
    return driver


def sparse_product(data, indices, starts, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        row = slice(starts[i], starts[i + 1])
        y[i] = data[row] @ x[indices[row]]
    return y


def test_a_shared_loop_may_raise():
    random = np.random.default_rng(3)
    starts = np.sort(random.integers(0, 9000, 601))
    data, indices, x = random.random(9000), random.integers(-50, 50, 9000), random.random(50)
    on_one, shared = arrayjit.jit(sparse_product, threads=1), arrayjit.jit(sparse_product)
    assert shares(shared.lower(data, indices, starts, x))
    wanted = on_one(data, indices, starts, x)
    np.testing.assert_allclose(wanted, sparse_product(data, indices, starts, x))
    assert np.array_equal(shared(data, indices, starts, x), wanted)
    for wrong in (starts[0], starts[300], starts[600] - 1):
        bad = indices.copy()
        bad[wrong] = 50
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 50"):
            shared(data, bad, starts, x)
    assert np.array_equal(shared(data, indices, starts, x), wanted)


@pytest.fixture
def x():
    return np.random.default_rng(2).random((300, 700))


def spread(x):
    return np.exp(x) / np.cumsum(x, axis=1) + x.sum(axis=0) + np.log(x).sum()


def shares(lowered):
    return "grain=" in lowered.as_text("optimized")


def test_the_decorator_says(x):
    on_one = arrayjit.jit(spread, threads=1)
    assert not shares(on_one.lower(x))
    assert shares(arrayjit.jit(threads=3)(spread).lower(x))
    assert shares(arrayjit.jit(spread).lower(x))


def test_a_call_says_more(x):
    f = arrayjit.jit(spread, threads=1)
    assert shares(f.lower(x, threads=2))
    assert not shares(arrayjit.jit(spread).lower(x, threads=1))
    assert shares(f.on(threads=2).lower(x))
    assert "is shared" in f.explain(x, threads=4)
    assert "is shared" not in f.explain(x)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 1000, None])
def test_the_bits_are_the_same(x, threads):
    wanted = arrayjit.jit(spread)(x, target="sync_llvm").tobytes()
    f = arrayjit.jit(spread)
    assert f(x, threads=threads).tobytes() == wanted
    assert f.on("llvm", threads=threads)(x).tobytes() == wanted
    assert f(x, target="sync_llvm", threads=threads).tobytes() == wanted


def test_the_bits_of_long_sums_are_the_same():
    x, y = np.random.default_rng(0).standard_normal((2, 140_001))
    f = arrayjit.jit(lambda x, y: (x.sum(), x @ y, (x[1:] * x[:-1]).sum(), x.max(), (y > 0).sum()))
    wanted = f(x, y, target="interp")
    np.testing.assert_allclose(wanted[0], x.sum(), rtol=1e-12)
    np.testing.assert_allclose(wanted[1], x @ y, rtol=1e-12)
    assert wanted[3:] == (x.max(), (y > 0).sum())
    for options in ({"threads": 1}, {"threads": 2}, {"threads": 4}, {"target": "c"}, {"target": "sync_llvm"}):
        assert f(x, y, **options) == wanted, options
    x[50_000] = np.nan
    assert np.isnan(f(x, y)[:4]).all()


def test_columns_are_added_up_alike_whether_other_rows_go_along_or_not(x):
    f = arrayjit.jit(lambda x: (np.cumsum(x, axis=1), x.sum(axis=0), (x * x).mean(axis=0)))
    wanted = f(x, target="interp")
    for threads in (1, 2, 3, 4):
        for result, expected in zip(f(x, threads=threads), wanted, strict=True):
            np.testing.assert_array_equal(result, expected)


def test_targets_without_threads_do_with_one(x):
    f = arrayjit.jit(spread, target="interp", threads=2)
    np.testing.assert_array_equal(f(x[:3, :5]), f(x[:3, :5], target="llvm"))


def test_each_number_has_code_of_its_own(x):
    f = arrayjit.jit(spread)
    for threads in (1, 2, None, 2, 1):
        f(x, threads=threads)
    assert (f.stats().compiles, f.stats().hits) == (3, 2)


def test_a_call_gets_no_more_than_the_device_has(x, four_threads):
    f = arrayjit.jit(spread)
    for threads in (3, 4, 5, None):
        f(x, threads=threads)
    assert {pool.threads for pool in four_threads._pools.values() if pool.threads > 2} == {3, 4}


def test_calls_on_a_device_s_arrays_too(x):
    f = arrayjit.jit(spread)
    wanted = f(x, threads=1)
    here = f(arrayjit.asarray(x, device="llvm"), threads=2)
    np.testing.assert_array_equal(here.numpy(), wanted)


def test_a_parameter_called_threads_belongs_to_the_function(x):
    @arrayjit.jit
    def scaled(x, threads):
        return x * threads

    np.testing.assert_array_equal(scaled(x, threads=3.0), x * 3.0)
    np.testing.assert_array_equal(scaled.on(threads=1)(x, threads=3.0), x * 3.0)
    np.testing.assert_array_equal(scaled(x, 3.0, target="sync_llvm"), x * 3.0)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_what_is_no_number_of_threads_is_refused(x, threads):
    with pytest.raises(NumberError, match="threads is"):
        arrayjit.jit(spread, threads=threads)
    with pytest.raises(NumberError, match="threads is"):
        arrayjit.jit(spread)(x, threads=threads)
