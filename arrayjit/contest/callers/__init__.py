"""Any NumPy program, by those who can run it: `CALLERS` is the table of them.

`anew` makes of an entry one that compiles in every call.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from ..peers import Listed
from ..tasks import OURS, Entry, Peer, Task

__all__ = ["CALLERS", "anew", "compiler"]


def compiler() -> str:
    """What PyTorch's compiler lacks here."""
    return "" if shutil.which("g++") or shutil.which("clang++") else "it needs a C++ compiler"


CALLERS = (
    Listed(OURS, "arrayjit", f"{__name__}.plain", "ours"),
    Listed("numpy", "numpy", f"{__name__}.plain", "numpy"),
    Listed("numba", "numba", f"{__name__}.with_numba"),
    Listed("jax", "jax", f"{__name__}.with_jax"),
    Listed("torch.compile", "torch", f"{__name__}.with_torch", missing=compiler),
)


def anew(peer: Peer) -> Peer:
    """A call of the entry starts it and calls what it has started."""

    @wraps(peer)
    def entry(task: Task, written: tuple[int, ...]) -> Entry | None:
        made = peer(task, written)
        if made is None:
            return None

        def start(*arguments: Any) -> Callable[..., Any]:
            return lambda *arguments: made.start(*arguments)(*arguments)

        return replace(made, start=start)

    return entry
