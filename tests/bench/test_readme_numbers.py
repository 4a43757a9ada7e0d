"""What the README and docs/kernels.md show is what the committed results say."""

from __future__ import annotations

import pytest
from kernels import KERNELS
from readme import PAGE, README, RESULTS, kernels_page, placed, table

from arrayjit.contest.results import Results

COMMITTED = Results.from_json(RESULTS.read_text())


def test_the_readme_shows_the_committed_results() -> None:
    text = README.read_text()
    assert placed(text, table(COMMITTED)) == text, "run python bench/readme.py"


def test_the_page_of_the_kernels_shows_them_as_well() -> None:
    assert PAGE.read_text() == kernels_page(COMMITTED), "run python bench/readme.py"


def test_the_page_has_a_row_for_each_kernel() -> None:
    shown = [
        line.split(" | ")[0].strip("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")
    ]
    assert [name for name in shown if name != "kernel"] == [kernel.name for kernel in KERNELS]


def test_a_readme_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(SystemExit, match="lacks the marks"):
        placed("# arrayjit\n", "| table |\n")
