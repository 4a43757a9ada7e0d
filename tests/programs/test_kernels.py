"""The scientific programs of `bench/kernels` run with the decorator alone and do what they do in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import KERNELS, Kernel, difference, results_of

import arrayjit

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


@every_kernel
@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
def test_a_kernel_does_what_it_does_in_numpy(kernel: Kernel, target: str) -> None:
    wanted = results_of(kernel.plain or kernel.function, kernel.arguments("small"))
    got = results_of(arrayjit.jit(kernel.function, target=target), kernel.arguments("small"))
    assert difference(got, wanted) <= kernel.tolerance


@pytest.mark.parametrize("kernel", [one for one in KERNELS if one.plain], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
def test_a_kernel_that_was_changed_does_so_as_it_was_with_branches(kernel: Kernel, target: str) -> None:
    assert kernel.plain is not None
    wanted = results_of(kernel.plain, kernel.arguments("small"))
    got = results_of(arrayjit.jit(kernel.plain, target=target, branches=True), kernel.arguments("small"))
    assert difference(got, wanted) <= kernel.tolerance


@every_kernel
def test_what_numpy_computes_is_what_mathematics_says(kernel: Kernel) -> None:
    with np.errstate(all="raise"):
        results = results_of(kernel.plain or kernel.function, kernel.arguments("small"))
    kernel.check(kernel.arguments("small"), results)


@every_kernel
def test_a_kernel_has_three_sizes(kernel: Kernel) -> None:
    assert list(kernel.sizes) == ["small", "medium", "large"]


@every_kernel
def test_a_kernel_says_why_it_was_changed_and_what_it_was(kernel: Kernel) -> None:
    assert bool(kernel.changed) == (kernel.plain is not None)


def test_names_are_unique() -> None:
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


def test_a_difference_is_a_fraction_of_the_largest_number() -> None:
    wanted = (np.array([1.0, -4.0, np.inf]), 3)
    assert difference(wanted, wanted) == 0
    assert difference((np.array([1.0, -3.0, np.inf]), 3), wanted) == 0.25


@pytest.mark.parametrize(
    "got",
    [
        (np.array([1.0, 2.0]),),
        (np.array([1.0, 2.0], np.float32), 3),
        (np.array([[1.0, 2.0]]), 3),
        (np.array([1.0, np.nan]), 3),
        (np.array([1.0, 2.0]), 4),
        (np.array([1.0, 2.0]), np.int64(3)),
    ],
)
def test_another_number_type_dtype_or_shape_is_no_small_difference(got: tuple[object, ...]) -> None:
    assert difference(got, (np.array([1.0, 2.0]), 3)) == np.inf
