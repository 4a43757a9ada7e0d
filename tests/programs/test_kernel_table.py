"""`bench/table.py` shows each kernel's times, and says so where a kernel is refused or is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernels import KERNELS, Kernel
from rich.console import Console
from table import measured, remarks, shown

ATAX = next(kernel for kernel in KERNELS if kernel.name == "atax")


def printed(*kernels: Kernel) -> str:
    rows = [measured(kernel, "small", "interp") for kernel in kernels]
    console = Console(width=80)
    with console.capture() as capture:
        console.print(shown(rows, "small"), *remarks(rows), sep="\n")
    return capture.get()


def test_a_row_has_the_times_of_both_and_their_ratio() -> None:
    row = measured(ATAX, "small", "interp")
    assert row.error == ""
    assert row.first is not None
    assert row.numpy is not None
    assert row.warm is not None
    assert row.first > row.warm > 0
    assert row.ratio == row.numpy / row.warm
    assert row.difference is not None
    assert row.difference <= ATAX.tolerance


def test_what_arrayjit_refuses_is_a_row_with_its_error() -> None:
    refused = replace(ATAX, name="refused", function=lambda a, x: x if a[0, 0] > 0 else -x)
    text = printed(ATAX, refused)
    assert "1 of 2 as NumPy" in text
    assert "refused: ConcretizationError" in text


def test_another_answer_than_numpy_s_is_an_error() -> None:
    wrong = replace(ATAX, function=lambda a, x: a.T @ np.abs(a @ x), plain=ATAX.function, changed="wrong")
    text = printed(wrong)
    assert "atax: differs by more than 1e-12" in text
    assert "atax was changed: wrong" in text
    assert "1 changed" in text
