"""Random computations of loops, branches and bound numbers: each pass and native code keep their meaning."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structures import arguments, random_computation

from arrayjit.backends import backend
from arrayjit.ir.assign import Computation
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import KernelRaise, run, run_computation
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_computation, print_kernel
from arrayjit.ir.verify import verify_computation, verify_kernel
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS

LEFT = "left with an exception"

MACHINES = (
    Caps(),
    Caps(vector_bytes=16, l1_bytes=256, l2_bytes=1024, stack_bytes=64),
    Caps(vector_bytes=64, l1_bytes=128, l2_bytes=128, stack_bytes=0),
    Caps(stack_bytes=64, threads=3, thread_work=1),
)


def outcome(program: Computation | Kernel) -> list[bytes] | str:
    """What the interpreter leaves in the arrays."""
    arrays, numbers = arguments(program)
    try:
        (run if isinstance(program, Kernel) else run_computation)(program, arrays, numbers)
    except KernelRaise:
        return LEFT
    return [array.tobytes() for array in arrays.values()]


def native_outcome(kernel: Kernel) -> list[bytes] | str:
    """What native code leaves in the arrays; threads share the loops that they may."""
    arrays, numbers = arguments(kernel)
    chosen = backend("llvm")
    routine = chosen.get_device(0).load(chosen.target.emit(kernel))
    try:
        routine.launch([array.ctypes.data for array in arrays.values()], list(numbers.values()))
    except ValueError:
        return LEFT
    return [array.tobytes() for array in arrays.values()]


def printed(program: Computation | Kernel) -> str:
    return print_computation(program) if isinstance(program, Computation) else print_kernel(program)


def assert_means_the_same_after_each_pass(computation: Computation, caps: Caps) -> None:
    verify_computation(computation)
    expected = outcome(computation)
    program: Computation | Kernel = computation
    for row in (*ON_ASSIGNMENTS, LOWERING, *ON_LOOPS):
        before, program = program, row.run(program, caps)
        if program is before:
            continue
        (verify_kernel if isinstance(program, Kernel) else verify_computation)(program)
        assert outcome(program) == expected, f"{row.name}\n{printed(before)}\n{printed(program)}"
    assert isinstance(program, Kernel)
    assert native_outcome(program) == expected, f"native\n{printed(program)}"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(MACHINES))
def test_no_pass_changes_a_bit(seed: int, caps: Caps) -> None:
    assert_means_the_same_after_each_pass(random_computation(Random(seed)), caps)


@pytest.mark.parametrize("seed", range(20))
def test_text_reads_back_as_the_program_that_was_printed(seed: int) -> None:
    text = print_computation(random_computation(Random(seed)))
    assert print_computation(parse(text)) == text


def test_programs_run_most_of_what_they_are_made_of() -> None:
    """They rarely leave early, and change what they are given."""
    programs = [random_computation(Random(seed)) for seed in range(40)]
    found = [(outcome(program), arguments(program)[0].values()) for program in programs]
    assert sum(left == LEFT for left, _ in found) < 8
    assert sum(left != [array.tobytes() for array in given] for left, given in found) > 32
