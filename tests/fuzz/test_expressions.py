"""Elementwise operations, reductions, contractions and joins give NumPy's numbers, in random programs."""

from __future__ import annotations

import pytest
from budget import examples
from expressions import expression_programs
from hypothesis import event, given
from judging import assert_like_numpy
from written import Written

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like


@examples(400)
@given(expression_programs())
def test_expressions(program: Written) -> None:
    event(assert_like_numpy(*program.load(), program.approximate))
