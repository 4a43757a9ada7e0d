"""Between which ends results of integers lie: all that NumPy gives for operands between such ends."""

from __future__ import annotations

import random

import numpy as np
import pytest

from arrayjit.ir.dtype import named
from arrayjit.ir.ops import OPS
from arrayjit.passes.analysis.spans import result

TWO = (
    *("add", "subtract", "multiply", "minimum", "maximum", "remainder", "floor_divide"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
)
ONE = ("negative", "absolute", "square")


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_results_of_integers_lie_between_their_ends(name: str, dtype: str) -> None:
    kind, draw, known = named(dtype), random.Random(0), 0
    limits = np.iinfo(kind.numpy)
    for _ in range(300):
        spans = [_span(draw, int(limits.min), int(limits.max)) for _ in range(1 if name in ONE else 2)]
        found = result(OPS[name], spans, kind)
        if found is not None:
            known += 1
            operands = np.meshgrid(*(np.arange(low, high + 1, dtype=kind.numpy) for low, high in spans))
            results = getattr(np, name)(*operands)
            assert found[0] <= results.min() <= results.max() <= found[1], spans
    assert known > 10


def test_ends_of_shifts_of_numbers_with_a_sign_are_known() -> None:
    assert result(OPS["right_shift"], [(-100, 100), (1, 3)], named("i64")) == (-50, 50)
    assert result(OPS["right_shift"], [(-100, 100), (-1, 3)], named("i64")) is None
    assert result(OPS["right_shift"], [(-100, 100), (64, 70)], named("i64")) == (-1, 0)


def _span(draw: random.Random, least: int, most: int) -> tuple[int, int]:
    middle, reach = draw.choice((0, 6, draw.randint(least, most))), draw.choice((0, 1, 4, 300))
    return max(least, middle - draw.randint(0, reach)), min(most, middle + draw.randint(0, reach))
