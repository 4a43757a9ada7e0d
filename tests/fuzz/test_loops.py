"""Python's loops mean what they mean in Python, in random programs."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest
from budget import examples
from hypothesis import given
from judging import Rules, assert_calls_like_numpy
from loops import loop_programs
from machines import MACHINES, on_machine
from written import LoopProgram

import arrayjit

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like

MOST_REFUSED = 0.05


def is_refusal(error: Exception) -> bool:
    return isinstance(error, (arrayjit.UnsupportedError, arrayjit.ConcretizationError))


MACHINE = {machine.vector_bytes: machine for machine in MACHINES}


@pytest.mark.parametrize(
    ("target", "count", "machine"),
    [
        *(("interp", 1000, None), ("sync_llvm", 600, None), ("sync_c", 30, None)),
        *(("sync_llvm", 150, bytes_) for bytes_ in MACHINE),
    ],
)
def test_loops(target: str, count: int, machine: int | None) -> None:
    """Few programs may be refused; the message counts them by feature."""
    programs, refused = Counter[str](), Counter[str]()

    @examples(count)
    @given(loop_programs())
    def run(program: LoopProgram) -> None:
        rules = Rules(refuses=is_refusal, may_not_run=program.may_not_run)
        verdicts = assert_calls_like_numpy(*program.load(), rules, (target,))
        features = ["all", *program.features]
        programs.update(features)
        if "refused" in verdicts:
            refused.update(features)

    with on_machine(MACHINE[machine], (target,)) if machine else nullcontext():
        run()
    rates = {feature: f"{refused[feature]} of {tried}" for feature, tried in programs.items()}
    assert refused["all"] <= MOST_REFUSED * programs["all"], rates
