"""Lists of traced ints, sizes out of arguments, and slices whose step is a loop's index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import assert_kept, assert_like_numpy

import arrayjit

Function = Callable[..., Any]
x = np.arange(40.0) - 7
matrix = np.arange(42.0).reshape(7, 6)


def rows_by_lists(a: np.ndarray) -> np.ndarray:
    for i in range(len(a)):
        a[[i, 0]] += 1
        a[:, [i % 6]] -= a[[0, i], :1].sum()
    return a


def swap_by_lists(a: np.ndarray) -> np.ndarray:
    for i in range(len(a) // 2):
        a[[i, len(a) - 1 - i]] = a[[len(a) - 1 - i, i]]
    return a


def arrays_of_indices(a: np.ndarray) -> Any:
    total = np.zeros(3)
    for i in range(len(a)):
        pair = np.array([i, 0])
        total[0] += (pair * a[pair, 1]).sum()
        total[1] += np.array(i) + np.asarray(i) * np.float64(i) + np.int32(i)
        total[2] += sum([i, i + 1]) + np.stack([i, 2 * i]).max()
    return total


def dtypes_of_indices(a: np.ndarray) -> Any:
    for i in range(len(a)):
        one, two, three, four = np.array(i), np.array([i, 0]), np.array([i, 0.5]), np.array([[i], [1]], "f4")
    return one, two, three, four


@pytest.mark.parametrize("program", [rows_by_lists, swap_by_lists, arrays_of_indices, dtypes_of_indices])
def test_lists_of_loop_indices_are_arrays(program: Function) -> None:
    assert_like_numpy(program, (matrix,))


def test_lists_of_loop_indices_keep_the_loop() -> None:
    assert_kept(swap_by_lists)


def test_a_list_of_loop_indices_is_checked() -> None:
    def beyond(a: np.ndarray) -> Any:
        for i in range(9):
            a[[i, 0]] = 1

    for target in ("interp", "sync_llvm"):
        with pytest.raises(IndexError, match="out of bounds"):
            arrayjit.jit(beyond, target=target)(np.ones(7))


SIZES: dict[str, Function] = {
    "float step": lambda n: np.arange(-n, n + 1, 2.0),
    "half steps": lambda n: np.arange(0, n, 0.5) * 2,
    "float end": lambda n: np.arange(n * 1.0),
    "from -0.0": lambda n: np.copysign(1.0, np.arange(-0.0, n)),
    "int step": lambda n: np.arange(0, 20, n),
    "linspace": lambda n: np.linspace(0.0, 1.0, n + 1),
    "zeros": lambda n: np.zeros((n, 2 * n)) + np.eye(n, 2 * n),
    "full": lambda n: np.full(n, 7),
    "reshape": lambda n: np.arange(12).reshape(n, -1) * 1,
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_number_that_gives_a_size_is_compiled_in(size: Function) -> None:
    jitted = assert_like_numpy(size, (2,), (3,), (2,))
    assert jitted.stats().compiles == 4  # two numbers, two targets


def test_floats_out_of_arrays_give_no_size() -> None:
    with pytest.raises(arrayjit.ConcretizationError, match="counts floats"):
        arrayjit.jit(lambda a: np.arange(0, a[0], 0.5))(x)


def whole_floats(a: np.ndarray) -> np.ndarray:
    total = np.zeros(4)
    for i in range(1, len(a)):
        total[0] += (a[:i] * np.arange(1.0, i + 1)).sum()
        total[1] += (a[: i + 1] * np.arange(i, -i - 1, -2.0)).sum()
        total[2] += np.arange(i, len(a) + 3.0, np.float32(3)).sum()
        total[3] += np.arange(np.float64(0), i)[-1]
    return total


def test_floats_that_are_whole_count_as_integers_do() -> None:
    assert_like_numpy(whole_floats, (x,))
    assert_kept(whole_floats)


def sieve(limit: np.ndarray) -> np.ndarray:
    prime = np.ones(len(limit), dtype=bool)
    prime[:2] = False
    for p in range(2, int(len(limit) ** 0.5) + 1):
        prime[p * p :: p] = False
    return prime


def steps_into_arrays(a: np.ndarray) -> np.ndarray:
    for k in range(1, 12):
        a[k::k] = k
        a[-k - 1 :: k] = a[0]
        a[2 : 3 * k : k + 1] = np.arange(5.0)[:1]
        a[: a.shape[0] : k] += a[0]
    return a


def steps_beside_slices(m: np.ndarray) -> np.ndarray:
    for k in range(1, 7):
        m[k:, ::k] = k
        m[1, None, ::k] = -k
        m[::k, 2:4] = m[:2, 0] * k
    return m


def steps_of_the_array_itself(a: np.ndarray) -> np.ndarray:
    for k in range(1, 6):
        a[k : 5 * k : k] = a[:4]
    return a


@pytest.mark.parametrize("program", [sieve, steps_into_arrays, steps_of_the_array_itself])
def test_the_step_of_a_slice_may_be_an_index(program: Function) -> None:
    assert_like_numpy(program, (x,))


def test_a_step_stands_beside_other_slices() -> None:
    assert_like_numpy(steps_beside_slices, (matrix,))


def test_writing_in_steps_keeps_the_loop() -> None:
    def marked(a: np.ndarray) -> np.ndarray:
        for k in range(1, len(a)):
            a[::k] = k
        return a

    assert_kept(marked)
    assert_like_numpy(marked, (x,))


def test_what_is_written_in_steps_has_their_number() -> None:
    def misfit(a: np.ndarray) -> None:
        for k in range(1, 9):
            a[::k] = np.ones(7)

    for target in ("interp", "sync_llvm"):
        with pytest.raises(ValueError, match="could not broadcast"):
            arrayjit.jit(misfit, target=target)(np.ones(7))
