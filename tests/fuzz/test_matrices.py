"""Loops over rows, columns and triangles, and adding where an array says, mean what they mean in NumPy."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from judging import TARGETS, Rules, assert_calls_like_numpy
from machines import MACHINES, on_machine
from matrices import matrix_programs
from written import Written

import arrayjit
from arrayjit.ir.code import Caps

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow


def is_refusal(error: Exception) -> bool:
    return isinstance(error, (arrayjit.UnsupportedError, arrayjit.ConcretizationError))


@examples(100)
@given(matrix_programs())
def test_matrices(program: Written) -> None:
    check(program)


@examples(100)
@given(matrix_programs(), st.sampled_from(MACHINES))
def test_matrices_on_other_machines(program: Written, caps: Caps) -> None:
    with on_machine(caps, TARGETS):
        check(program)


def check(program: Written) -> None:
    function, make = program.load()
    assert_calls_like_numpy(function, [make], Rules(refuses=is_refusal))
