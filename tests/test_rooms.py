"""docs/rooms.md has a line for every file, docs/passes.md for every pass; both are written from the code."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_floors import FLOORS, STOREYS

from arrayjit.ir.assign import Computation
from arrayjit.ir.loops import Kernel
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS
from arrayjit.passes.pipeline.lanes import ON_LANES
from arrayjit.passes.pipeline.nests import ON_NESTS
from arrayjit.passes.table import CPU, GPU, Pass

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "arrayjit"
ROOMS = """\
# The rooms, file by file

What each file is for, in its own first words; folders from the ground up, as in [the tour](ARCHITECTURE.md).
Written by `pytest tests/test_rooms.py --update`.
"""
PASSES = """\
# The passes, in order

What each does, in its own first words, and why it stands where it does; the rows are those of
`arrayjit/passes/pipeline/`. A program is right without those that are optional. The files show programs
before and after, and `ARRAYJIT_DUMP=folder` writes out yours after each pass. Written by
`pytest tests/test_rooms.py --update`.
"""


def test_the_page_of_rooms_names_every_file(request: pytest.FixtureRequest) -> None:
    compare("rooms.md", [ROOMS, *rooms()], request)


def test_the_page_of_passes_names_every_pass(request: pytest.FixtureRequest) -> None:
    compare("passes.md", [PASSES, *passes()], request)


def compare(page: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    text = "\n".join(lines)
    path = ROOT / "docs" / page
    if request.config.getoption("--update"):
        path.write_text(text)
    assert text == path.read_text(), f"pytest {Path(__file__).name} --update writes docs/{page} anew"


def rooms() -> Iterator[str]:
    for number, floor in enumerate(FLOORS):
        yield f"## Floor {number}\n"
        names = sorted(floor - {"__init__"})
        files = [file for name in names if (file := PACKAGE / f"{name}.py").exists()]
        yield from (listed(file) for file in files)
        yield from [""] * bool(files)
        for name in names:
            if (PACKAGE / name).is_dir():
                yield from room(PACKAGE / name)


def room(folder: Path) -> Iterator[str]:
    yield f"### `{folder.relative_to(PACKAGE)}/`\n"
    yield f"{first_words(folder / '__init__.py')}\n"
    yield from (listed(file) for file in sorted(folder.glob("*.py")) if file.name != "__init__.py")
    yield ""
    inner = {file.parent for file in folder.glob("*/__init__.py")}
    storeys = STOREYS.get(folder.name, ())
    for each in sorted(inner, key=lambda path: (path.name in storeys and storeys.index(path.name), path)):
        yield from room(each)


def listed(file: Path) -> str:
    return f"- `{file.stem}`: {first_words(file)}"


def first_words(file: Path) -> str:
    """The first paragraph of a file's docstring, without the name that those of passes begin with."""
    text = ast.get_docstring(ast.parse(file.read_text()))
    assert text, f"{file} does not say what it is for"
    return " ".join(text.partition("\n\n")[0].split()).removeprefix(f"{file.stem}: ")


def passes() -> Iterator[str]:
    yield from table("On assignments", ON_ASSIGNMENTS)
    yield from table("To loops", (LOWERING,))
    yield from table("On loops: nests", ON_NESTS)
    yield from table("On loops: lanes", ON_LANES)


def table(
    title: str,
    rows: tuple[Pass[Computation, Computation] | Pass[Computation, Kernel] | Pass[Kernel, Kernel], ...],
) -> Iterator[str]:
    yield f"## {title}\n"
    for row in rows:
        file = Path(inspect.getfile(inspect.unwrap(row.run)))
        words = [
            file.parent.name,
            *(["GPUs only"] if row.on == GPU else []),
            *(["GPUs too"] if row.on not in (CPU, GPU) else []),
            *(["optional"] if row.optional else []),
        ]
        after = f" After {', '.join(f'`{name}`' for name in row.after)}: {row.why}." if row.after else ""
        yield f"- **`{row.name}`** ({', '.join(words)}): {first_words(file).rstrip('.:')}.{after}"
    yield ""
