"""docs/seeds.md: every feature of the systems that we build on, what it is called here, and its tests.

The tests of a row carry its id: `test_BI_4_...`. The last column is written by `--update`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "seeds.md"
ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
TEST = re.compile(r"^def (test_((?:[A-Z]+_\d+_)+)\w+)", re.MULTILINE)
NOT_HERE = ("Replaced", "Not yet")


def named_tests() -> dict[str, list[str]]:
    """The tests that carry a row's id, `test_BI_4_BI_5_x` two of them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for test, ids in TEST.findall(path.read_text()):
            for kind, number in re.findall(r"([A-Z]+)_(\d+)_", ids):
                found[f"{kind}-{number}"].append(f"`{path.relative_to(TESTS)}::{test}`")
    return found


def test_the_table_names_the_tests_of_each_row(request: pytest.FixtureRequest) -> None:
    found = named_tests()
    text = TABLE.read_text()
    written = ROW.sub(lambda row: f"| {row[1]} | {row[2]} | {row[3]} | {'<br>'.join(found[row[1]])} |", text)
    if request.config.getoption("--update"):
        TABLE.write_text(written)
    assert written == TABLE.read_text(), "run pytest tests/test_seeds.py --update"


def test_every_row_has_a_test_or_says_what_replaces_it() -> None:
    rows = ROW.findall(TABLE.read_text())
    assert len(rows) == len({name for name, *_ in rows}) > 150
    assert not [name for name, _, here, tests in rows if not tests and not here.startswith(NOT_HERE)]


def test_what_is_named_is_there() -> None:
    """The last word of each name in the third column is one of the package's."""
    source = "\n".join(path.read_text() for path in (TESTS.parent / "arrayjit").rglob("*.py"))
    words = set(re.findall(r"\w+", source)) | {
        path.stem for path in (TESTS.parent / "arrayjit").rglob("*.py")
    }
    named = {
        name for _, _, here, _ in ROW.findall(TABLE.read_text()) for name in re.findall(r"`(.*?)`", here)
    }
    assert not [name for name in named if not set(re.findall(r"\w+", name)[-1:]) <= words]


def test_every_id_in_a_test_is_a_row() -> None:
    assert set(named_tests()) <= {name for name, *_ in ROW.findall(TABLE.read_text())}
