"""The programs in README.md and docs run as they stand there, and do what they do in NumPy."""

from __future__ import annotations

import copy
import linecache
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels import KERNELS

import arrayjit

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
random = np.random.default_rng(0)

ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "blur": (random.random((20, 30)), 7),
    "product": (random.random(6), np.array([0, 3, 1, 2, 0, 3]), np.array([0, 2, 2, 5, 6]), random.random(4)),
    "first_above": (random.random(9), 0.5),
    "root": (random.random(9),),
    "shares": (random.random(9),),
    "powers": (random.random(9), 4),
    "normalised": (random.random(30),),
    "standardised": (random.random((30, 4)),),
    "growth": (random.random(9),),
    "settled": (random.random(9),),
    "escapes": (random.random((4, 5)) - 1 + 1j * random.random((4, 5)), 9),
    "shifted": (random.random(7) + 1j,),
    "unit": (random.random((1000, 64)),),
}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the blocks of the documents define, run one after another."""
    found: dict[str, Any] = {}
    for document in DOCUMENTS:
        for block in re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
            name = f"<{document.name} {len(linecache.cache)}>"
            linecache.cache[name] = len(block), None, block.splitlines(True), name
            exec(compile(block, name, "exec"), found)
    return found


def test_every_function_is_compared(names: dict[str, Any]) -> None:
    jitted = {name for name, value in names.items() if isinstance(value, arrayjit.JitFunction)}
    assert jitted == ARGUMENTS.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_it_does_what_it_does_in_numpy(name: str, names: dict[str, Any]) -> None:
    ours, theirs = copy.deepcopy(ARGUMENTS[name]), copy.deepcopy(ARGUMENTS[name])
    got, wanted = names[name](*ours), names[name].__wrapped__(*theirs)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_the_tour_shows_a_program_as_it_is(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_CPU", "avx512")
    lowered = names["unit"].lower(*ARGUMENTS["unit"], target="sync_llvm")
    tour = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    for stage in ("assignments", "optimized"):
        assert textwrap.indent(lowered.as_text(stage).strip(), " " * 4) in tour


def test_the_programs_are_counted_right() -> None:
    changed = sum(bool(kernel.changed) for kernel in KERNELS)
    text = " ".join(README.read_text().split())
    assert f"Of [{len(KERNELS)} scientific programs](docs/kernels.md)" in text
    assert f"{len(KERNELS) - changed} run with the decorator alone and {changed} with `branches=True`" in text


def test_the_code_for_other_steps_is_the_same(names: dict[str, Any]) -> None:
    stats = names["blur"].stats()
    assert stats.hits > 0
    assert all("steps" not in miss.reason for miss in stats.reasons)
