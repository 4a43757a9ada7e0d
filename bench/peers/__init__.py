"""What users would pick instead of arrayjit: `PEERS` is the table, `installed` says which of them are here.

Each peer has a module, which has the tasks as users of that peer write them for speed: compiled ahead, with
memory for the results where the peer can use it again.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from contest import OURS, Peer

__all__ = ["PEERS", "installed"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A row: the column's name, the package that it needs, the module and the name of its `contest.Peer`."""

    name: str
    package: str
    module: str
    entry: str = "entry"
    missing: Callable[[], str] = lambda: ""
    """Says what else it needs and does not find."""


def compiler() -> str:
    return "" if shutil.which("g++") or shutil.which("clang++") else "it needs a C++ compiler"


PEERS = (
    Listed(OURS, "arrayjit", "peers.ours"),
    Listed("numpy", "numpy", "peers.with_numpy"),
    Listed("numba", "numba", "peers.with_numba"),
    Listed("numexpr", "numexpr", "peers.with_numexpr"),
    Listed("jax", "jax", "peers.with_jax"),
    Listed("torch", "torch", "peers.with_torch"),
    Listed("torch.compile", "torch", "peers.with_torch", "compiled_entry", compiler),
)


def installed(wanted: tuple[str, ...] | None = None) -> tuple[dict[str, Peer], list[str]]:
    """The peers by name, and for each that is not here the reason."""
    found, reasons = {}, []
    for row in PEERS:
        if wanted and row.name not in wanted:
            continue
        reason = row.missing() if find_spec(row.package) else f"{row.package} is not installed"
        if reason:
            reasons.append(f"without {row.name}: {reason}")
        else:
            found[row.name] = getattr(importlib.import_module(row.module), row.entry)
    return found, reasons
