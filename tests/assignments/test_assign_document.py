"""docs/assignments.md: every rule names its tests, and every row that it is about is accounted for."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "assignments.md").read_text()
WRITTEN = {
    name
    for file in HERE.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
}

ROWS = {"IX": 13, "TN": 11, "AS": 19, "LL": 13, "VI": 15}
"""The last row of each section."""


def test_every_rule_of_the_document_names_its_tests() -> None:
    rules = re.split(r"^\d+\. ", PAGE, flags=re.MULTILINE)[1:]
    quoted = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert [number for number, names in enumerate(quoted, 1) if not names] == []
    assert {name for names in quoted for name in names} - WRITTEN == set()


def test_every_row_has_a_test_or_a_replacement() -> None:
    tested = {f"{kind}-{row}" for name in WRITTEN for kind, row in re.findall(r"([A-Z]+)_(\d+)", name)}
    replaced: set[str] = set()
    for line in re.findall(r"^\| ([A-Z].*?) \|", PAGE, re.MULTILINE):
        for part in line.split(", "):
            ends = re.findall(r"([A-Z]+)-(\d+)", part)
            kind, first, last = ends[0][0], int(ends[0][1]), int(ends[-1][1])
            replaced.update(f"{kind}-{row}" for row in range(first, last + 1))
    every = {f"{kind}-{row}" for kind, last in ROWS.items() for row in range(1, last + 1)}
    assert every - tested - replaced == set()
    assert every & tested & replaced == set()
