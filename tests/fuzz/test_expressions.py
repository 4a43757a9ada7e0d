"""Elementwise operations, reductions, contractions and joins give NumPy's numbers, in random programs."""

from __future__ import annotations

import pytest
from budget import examples
from expressions import expression_programs
from hypothesis import event, given
from hypothesis import strategies as st
from judging import TARGETS, assert_like_numpy
from machines import MACHINES, on_machine
from written import Written

from arrayjit.ir.code import Caps

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like


@examples(700)
@given(expression_programs())
def test_expressions(program: Written) -> None:
    event(assert_like_numpy(*program.load(), program.approximate))


@examples(40)
@given(expression_programs())
def test_expressions_through_c(program: Written) -> None:
    event(assert_like_numpy(*program.load(), program.approximate, ("sync_c",)))


@examples(250)
@given(expression_programs(most=14), st.sampled_from(MACHINES))
def test_expressions_on_other_machines(program: Written, caps: Caps) -> None:
    with on_machine(caps, TARGETS):
        event(assert_like_numpy(*program.load(), program.approximate))
