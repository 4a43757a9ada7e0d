"""Positions and masks mean what they mean in NumPy, in random programs."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from judging import Rules, assert_calls_like_numpy
from selections import selecting_programs
from written import Written

import arrayjit

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of casts and the like


def is_refusal(error: Exception) -> bool:
    """What depends on data may be asked of the run only."""
    return isinstance(error, (arrayjit.UnsupportedError, arrayjit.ConcretizationError)) or (
        "an extent of 1 is repeated only if it is known while tracing" in str(error)
    )


@pytest.mark.parametrize(("target", "count"), [("interp", 250), ("sync_llvm", 100)])
def test_selections(target: str, count: int) -> None:
    @examples(count)
    @given(selecting_programs())
    def run(program: Written) -> None:
        function, make = program.load()
        assert_calls_like_numpy(function, [make], Rules(refuses=is_refusal), (target,))

    run()
