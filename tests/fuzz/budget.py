"""How many programs to try: `ARRAYJIT_FUZZ=20` tries twenty times as many, other ones each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

__all__ = ["examples"]


def examples(count: int) -> settings:
    """Settings for `count` programs; always the same ones unless the budget was raised."""
    factor = int(os.environ.get("ARRAYJIT_FUZZ", "1"))
    return settings(
        max_examples=count * factor,
        derandomize=factor == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
