"""Mistakes: the named error, NumPy's exception type, the user's line, and nothing changed."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit


@pytest.fixture
def x():
    return np.arange(6.0)


def mistake(function, *args, **options):
    """The error of a call, which must name a line of this file and be short."""
    jitted = arrayjit.jit(function, **options)
    with pytest.raises(arrayjit.UserError) as caught:
        jitted(*args)
    text = str(caught.value)
    assert len(text.splitlines()) <= 15
    assert jitted.stats().compiles == 0
    return caught.value


def at_this_file(error):
    return error.loc is not None and error.loc.file == __file__


def test_shapes_that_do_not_fit(x):
    error = mistake(lambda a, b: a + b, x, np.ones(4))
    assert isinstance(error, ValueError)
    assert at_this_file(error)
    assert "(6,)" in str(error)
    assert "(4,)" in str(error)


def test_matmul_of_wrong_shapes(x):
    error = mistake(lambda a, b: a @ b, np.ones((2, 3)), np.ones((2, 3)))
    assert isinstance(error, ValueError)
    assert at_this_file(error)


def test_dtype_without_a_meaning(x):
    error = mistake(lambda a: np.bitwise_and(a, 1), x)
    assert isinstance(error, TypeError)
    assert at_this_file(error)


@pytest.mark.parametrize("array", [np.array([1, "a"], object), np.array(["a"]), np.array(["2001"], "M8[Y]")])
def test_arrays_without_an_element_type(array):
    error = mistake(lambda a: a, array)
    assert isinstance(error, TypeError)
    assert at_this_file(error)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: 1 if a[0] else 2,
        lambda a: [10, 20][a[0]],
        lambda a: np.sum([v for v in range(a[0])]),
        lambda a: a[0] and a[1],
        lambda a: {a[0]: 1},
    ],
)
def test_a_traced_value_has_no_number(x, function):
    error = mistake(function, x.astype(np.int64))
    assert isinstance(error, arrayjit.ConcretizationError)
    assert at_this_file(error)
    assert "fix:" in str(error)


def test_while_on_an_array(x):
    def halve(a):
        while a.sum() > 1:
            a = a / 2
        return a

    error = mistake(halve, x)
    assert at_this_file(error)


def test_unsupported_function(x):
    error = mistake(lambda a: np.linalg.eigvals(a), x)
    assert isinstance(error, arrayjit.UnsupportedError)
    assert "eigvals" in str(error)
    assert at_this_file(error)


def test_random_numbers_are_not_baked_in(x):
    error = mistake(lambda a: a + np.random.rand(6), x)
    assert isinstance(error, arrayjit.UnsupportedError)


def test_a_leaked_array(x):
    leaked = []

    @arrayjit.jit
    def leak(a):
        leaked.append(a)
        return a + 1

    with pytest.raises(arrayjit.UnsupportedError, match="changes a list"):
        leak(x)
    assert leaked == []


def test_index_out_of_range(x):
    error = mistake(lambda a: a[6], x)
    assert isinstance(error, IndexError)
    assert at_this_file(error)
    assert "index 6 is out of bounds for axis 0 with size 6" in str(error)


def test_writing_a_read_only_argument(x):
    x.flags.writeable = False

    def write(a):
        a[0] = 1

    error = mistake(write, x)
    assert isinstance(error, ValueError)
    assert "read-only" in str(error)
    assert x[0] == 0


def test_unhashable_static_argument(x):
    error = mistake(lambda a, n: a, x, [1, 2], static_argnames="n")
    assert isinstance(error, arrayjit.StaticArgumentError)
    assert at_this_file(error)
    assert "cannot be hashed" in str(error)


def test_static_name_that_is_no_parameter():
    with pytest.raises(arrayjit.StaticArgumentError, match="no parameter"):
        arrayjit.jit(lambda a: a, static_argnames="steps")


def test_unknown_target(x):
    with pytest.raises(arrayjit.UnknownTarget, match="sync_llvm"):
        arrayjit.jit(lambda a: a, target="quantum")
    with pytest.raises(arrayjit.UnknownTarget, match="sync_llvm") as caught:
        arrayjit.jit(lambda a: a)(x, target="quantum")
    assert isinstance(caught.value, ValueError)
    assert at_this_file(caught.value)


def test_jit_of_something_else():
    with pytest.raises(TypeError, match="takes a function"):
        arrayjit.jit(3)


def test_the_users_own_exception_passes_through(x):
    def fails(a):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        arrayjit.jit(fails)(x)


def test_integers_to_negative_integer_powers():
    def power(a, b):
        return a**b

    with pytest.raises(ValueError, match="negative integer powers"):
        arrayjit.jit(power)(np.arange(4), np.array([1, 2, -1, 0]))


@pytest.mark.parametrize("dtype", ["<i8", ">i8"])
def test_what_was_written_before_an_exception_stays_written(dtype):
    def power(into, a, b):
        into[:] = 1
        into += a**b

    into = np.zeros(2, dtype)
    with pytest.raises(ValueError, match="negative integer powers"):
        arrayjit.jit(power)(into, np.arange(2), np.array([1, -1]))
    np.testing.assert_array_equal(into, [1, 1])


def test_a_python_integer_that_does_not_fit():
    with pytest.raises(OverflowError):
        arrayjit.jit(lambda a: a + 300)(np.arange(3, dtype=np.uint8))
    with pytest.raises(arrayjit.IntegerOverflow) as caught:
        arrayjit.jit(lambda a, n: a + n)(np.arange(3), 2**70)
    assert at_this_file(caught.value)


def test_a_failed_call_leaves_the_function_usable(x):
    f = arrayjit.jit(lambda a, b: a + b)
    with pytest.raises(ValueError, match="broadcast"):
        f(x, np.ones(4))
    np.testing.assert_array_equal(f(x, x), x + x)
    assert (f.stats().compiles, f.stats().hits) == (1, 0)


def test_an_array_that_no_memory_could_hold_is_refused_soon() -> None:
    with pytest.raises(ValueError, match="Maximum allowed dimension exceeded"):
        arrayjit.jit(lambda: np.arange(2**62))()
