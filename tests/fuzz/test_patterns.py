"""What passes find in programs and rearrange means what it meant, in random programs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from budget import examples
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from judging import TARGETS, Rules, assert_calls_like_numpy
from machines import MACHINES, on_machine
from patterns import PATTERNS, Pattern
from written import Written

import arrayjit
from arrayjit.ir.code import Caps
from arrayjit.passes.manager import optimize
from arrayjit.passes.table import Pass
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.calls.signature import Declared

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of roots and the like

LEAST = {
    ("bodies.bytewise", "LONG"): 32,
    ("bodies.bytewise", "HEAVY"): 3.0,
    ("bodies.ends", "FEWEST"): 2,
    ("bodies.group", "ITERATIONS"): (8, 1 << 31),
    ("bodies.group", "ROUNDS"): 4,
    ("bodies.group", "SELECTING"): 4,
    ("structure.margins", "FEWEST"): 16,
    ("structure.portion", "VISITS"): 1,
    ("schedule.quarters", "LONG"): 1 << 14,
    ("schedule.retain", "LEAST_ROWS"): 2,
    ("schedule.retain", "NARROW"): 2,
    ("bodies.spell", "LONG"): 9,
}
"""What passes ask of a program, that little is enough here."""


@pytest.fixture(autouse=True)
def little_is_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for (name, constant), least in LEAST.items():
            patch.setattr(import_module(f"arrayjit.passes.{name}"), constant, least)
        yield


def is_refusal(error: Exception) -> bool:
    return isinstance(error, (arrayjit.UnsupportedError, arrayjit.ConcretizationError))


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_patterns(pattern: Pattern) -> None:
    verdicts: list[str] = []

    @examples(30)
    @given(pattern.programs, st.sampled_from(MACHINES))
    def run(program: Written, caps: Caps) -> None:
        function, make = program.load()
        rules = Rules(refuses=is_refusal, may_not_run=True)
        with on_machine(caps, TARGETS):
            verdicts.extend(assert_calls_like_numpy(function, [make], rules))

    run()
    assert verdicts.count("refused") * 20 <= len(verdicts)


@pytest.mark.parametrize(
    ("programs", "name"),
    [(pattern.programs, name) for pattern in PATTERNS.values() for name in pattern.passes],
    ids=[name for pattern in PATTERNS.values() for name in pattern.passes],
)
def test_passes_find_their_patterns(programs: st.SearchStrategy[Written], name: str) -> None:
    few = settings(max_examples=200, derandomize=True, deadline=None, phases=[Phase.generate])
    find(programs, lambda program: name in acting(program), settings=few)


def acting(program: Written) -> set[str]:
    """The passes that change a program."""
    function, make = program.load()
    names: set[str] = set()

    def watch(step: Pass[Any, Any], before: Any, after: Any, caps: Caps) -> None:
        if after is not before:
            names.add(step.name)

    try:
        traced = trace_function(function, make(), {}, Declared())
    except arrayjit.errors.UserError:
        return names
    optimize(traced.computation, MACHINES[1], watch=watch)
    return names
