"""`bench/table.py` shows each kernel's times, and says so where a kernel is refused or is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from kernels import KERNELS, Kernel
from rich.console import Console
from table import measured, page, remarks, shown

PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"
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


def test_the_page_shows_losses_errors_and_changes() -> None:
    changed = replace(ATAX, changed="for a reason", plain=ATAX.function)
    refused = replace(ATAX, name="refused", function=lambda a, x: x if a[0, 0] > 0 else -x)
    slower, failed = (measured(kernel, "small", "interp") for kernel in (changed, refused))
    text = "\n".join(page({"small": [slower, failed]}))
    assert "with the decorator alone; 1 had to be changed" in text
    assert "- `atax`: for a reason" in text
    assert "1 of 2 as NumPy" in text
    assert f"Slower than NumPy: `atax` ({slower.ratio:.2f}x)." in text
    assert "| refused | PolyBench | ConcretizationError" in text


def test_the_page_of_the_project_has_a_row_for_each_kernel() -> None:
    text = PAGE.read_text()
    rows = re.findall(r"^\| (\w+) \| .*\d", text, flags=re.MULTILINE)
    sizes = re.findall("^## (Small|Medium|Large)$", text, flags=re.MULTILINE)
    assert len(sizes) >= 1
    assert rows == [kernel.name for kernel in KERNELS] * len(sizes)
