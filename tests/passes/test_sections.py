"""Programs that go through memory by sections, and what is stored for that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pass_programs import CAPS

from arrayjit.ir.loops import For, walk_statements
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function


def means_and_differences(signal: Any) -> Any:
    """Two steps of Haar's wavelets."""
    out = signal.copy()
    n = len(out)
    for _ in range(2):
        pairs = out[:n].reshape(n // 2, 2)
        means = (pairs[:, 0] + pairs[:, 1]) / np.sqrt(2)
        out[n // 2 : n] = (pairs[:, 0] - pairs[:, 1]) / np.sqrt(2)
        out[: n // 2] = means
        n //= 2
    return out


@pytest.mark.parametrize(("length", "in_sections"), [(4 * 250_000, True), (4 * 250_007, False)])
def test_steps_go_by_sections_of_a_good_length(length: int, in_sections: bool) -> None:
    """A prime number of pairs of means has no sections: the means are computed where they are read."""
    computation = trace_function(means_and_differences, (np.zeros(length),), {}).computation
    body = optimize(computation, CAPS, verify=True).kernel.body
    symbols = {stmt.symbol.hint for stmt in walk_statements(body) if isinstance(stmt, For)}
    assert ("section" in symbols) is in_sections
