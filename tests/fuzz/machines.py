"""Machines of other sizes, so that passes which mind caches and registers act on small arrays too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from arrayjit.backends import backend
from arrayjit.ir.code import Caps

__all__ = ["MACHINES", "on_machine"]

MACHINES = (
    Caps(vector_bytes=16, l1_bytes=256, l2_bytes=1024, stack_bytes=64, threads=3, thread_work=1),
    Caps(vector_bytes=32, l1_bytes=512, l2_bytes=1 << 14, stack_bytes=0),
    Caps(vector_bytes=64, l1_bytes=128, l2_bytes=128, l3_bytes=128, line_bytes=4, stack_bytes=1 << 12),
)


@contextmanager
def on_machine(caps: Caps, targets: tuple[str, ...]) -> Iterator[None]:
    """Within the block, the passes are told that the targets' hardware is this."""
    with pytest.MonkeyPatch.context() as patch:
        for target in targets:
            patch.setattr(type(backend(target).target), "caps", lambda self: caps)
        yield
