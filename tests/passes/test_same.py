"""Numbers that are bound twice: how long it takes to find them."""

from __future__ import annotations

from typing import Any

import numpy as np

import arrayjit


def test_values_of_values_are_not_written_out() -> None:
    """Each of them is read twice: written out they would have 2**200 terms."""

    def program(x: Any, starts: Any) -> Any:
        first, other = starts[0], starts[0]
        for _ in (None,) * 200:
            first, other = (first + first) % 5, (other + other) % 5
        return x[:first] + x[:other]

    starts, x = np.array([3]), np.arange(9.0)
    np.testing.assert_array_equal(arrayjit.jit(program)(x, starts), program(x, starts))
