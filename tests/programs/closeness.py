"""When two results of one program are close enough."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_close"]


def assert_close(got: Any, wanted: Any, tolerance: float) -> None:
    """Equal structure, types and shapes; numbers that differ by at most `tolerance` of the largest."""
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = tuple(got.values()), tuple(wanted.values())
    if isinstance(wanted, (tuple, list)):
        for ours, theirs in zip(got, wanted, strict=True):
            assert_close(ours, theirs, tolerance)
    elif tolerance and np.asarray(wanted).dtype.kind == "f":
        ours, theirs = np.asarray(got), np.asarray(wanted)
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * np.max(np.abs(theirs)))
    else:
        np.testing.assert_array_equal(got, wanted, strict=True)
