"""Random sweeps over arrays, in place, turned and shifted, mean what they mean in NumPy, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from budget import examples
from hypothesis import example, given
from hypothesis import strategies as st
from judging import TARGETS
from machines import MACHINES, on_machine

import arrayjit
from arrayjit.ir.code import Caps


@st.composite
def stencils(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], tuple[int, ...], int]:
    """Offsets of the cells that are added up, a shape, and how often."""
    rank = draw(st.integers(2, 3))
    reach = draw(st.integers(1, 2))
    offset = st.tuples(*[st.integers(-reach, reach)] * rank)
    shape = draw(st.tuples(*[st.integers(2 * reach + 1, 24)] * rank))
    return draw(st.lists(offset, min_size=1, max_size=5)), shape, draw(st.integers(1, 3))


@examples(60)
@given(stencils(), st.sampled_from([np.float32, np.float64]), st.sampled_from(MACHINES))
def test_stencils_in_place(stencil: tuple[list[Any], Any, int], dtype: Any, caps: Caps) -> None:
    offsets, shape, steps = stencil
    reach = max(1, *(abs(step) for offset in offsets for step in offset))

    def shifted(a: Any, offset: tuple[int, ...]) -> Any:
        cells = zip(offset, shape, strict=True)
        return a[tuple(slice(reach + step, extent - reach + step) for step, extent in cells)]

    def sweep(a: Any) -> Any:
        for _ in range(steps):
            total = shifted(a, offsets[0])
            for offset in offsets[1:]:
                total = total + shifted(a, offset)
            shifted(a, (0,) * len(shape))[...] = total * dtype(0.25)

    check(sweep, caps, np.random.default_rng(0).random(shape).astype(dtype))


@examples(60)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40)),
    st.permutations(range(3)),
    st.sampled_from([np.float32, np.float64, np.int16, np.uint8, np.bool_]),
    st.sampled_from(MACHINES),
)
@example((1, 9, 40), (0, 2, 1), np.float64, MACHINES[2]).via("lines shorter than a cell")
def test_turned_arrays(shape: Any, axes: Any, dtype: Any, caps: Caps) -> None:
    def turn(a: Any, b: Any) -> Any:
        b[...] = a.transpose(axes)
        return a.transpose(axes).copy(), b[:, ::-1] + a.transpose(axes)

    a = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    check(turn, caps, a, np.zeros_like(a.transpose(axes), order="C"))


def check(program: Any, caps: Caps, *arrays: np.ndarray) -> None:
    """NumPy and both targets agree, about results and about what is written in place."""
    wanted = [array.copy() for array in arrays]
    results = program(*wanted)
    with on_machine(caps, TARGETS):
        for target in TARGETS:
            got = [array.copy() for array in arrays]
            returned = arrayjit.jit(program, target=target)(*got)
            for one, other in zip((*got, *(returned or ())), (*wanted, *(results or ())), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
