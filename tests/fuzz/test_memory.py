"""Views, writes in place and shared memory mean what they mean in NumPy, in random programs."""

from __future__ import annotations

from budget import examples
from hypothesis import event, given
from judging import assert_like_numpy
from memory import memory_programs
from written import Written


@examples(250)
@given(memory_programs())
def test_memory(program: Written) -> None:
    event(assert_like_numpy(*program.load(), program.approximate))
