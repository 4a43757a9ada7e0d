"""Views, writes in place and shared memory mean what they mean in NumPy, in random programs."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import event, given
from judging import assert_like_numpy
from memory import memory_programs
from written import Written

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of empty means and the like


@examples(250)
@given(memory_programs())
def test_memory(program: Written) -> None:
    event(assert_like_numpy(*program.load(), program.approximate))
