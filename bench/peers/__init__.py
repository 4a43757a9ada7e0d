"""What users would pick instead of arrayjit: `PEERS` is the table.

Each peer has a module, which has the tasks as users of that peer write them for speed: compiled ahead, with
memory for the results where the peer can use it again. First calls are those of the programs as they are, and
whole processes run the scripts in `starts`.
"""

from __future__ import annotations

from arrayjit.contest.callers import compiler
from arrayjit.contest.peers import Listed
from arrayjit.contest.tasks import OURS

__all__ = ["PEERS"]

PEERS = (
    Listed(OURS, "arrayjit", "peers.ours"),
    Listed("numpy", "numpy", "peers.with_numpy"),
    Listed("numba", "numba", "peers.with_numba"),
    Listed("numexpr", "numexpr", "peers.with_numexpr"),
    Listed("jax", "jax", "peers.with_jax"),
    Listed("torch", "torch", "peers.with_torch"),
    Listed("torch.compile", "torch", "peers.with_torch", "compiled_entry", compiler, slow=True),
)
