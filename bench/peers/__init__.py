"""What users would pick instead of arrayjit: `PEERS` is the table.

Each peer has a module, which has the tasks as users of that peer write them for speed: compiled ahead, with
memory for the results where the peer can use it again. First calls are those of the programs as they are, and
whole processes run the scripts in `starts`.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

from arrayjit.contest.callers import compiler
from arrayjit.contest.peers import Listed
from arrayjit.contest.tasks import OURS

__all__ = ["PEERS"]

GPU = ("cuda",)
"""Where the libraries for NVIDIA's GPUs compute."""


def gpu(library: str) -> str:
    """What a library lacks to compute on a GPU."""
    found = import_module(f"peers.with_{library}").has_gpu()
    return "" if found else f"{library} finds no GPU"


def gpu_compiler() -> str:
    """What PyTorch's compiler lacks to compile for a GPU."""
    return gpu("torch") or compiler()


PEERS = (
    Listed(OURS, "arrayjit", "peers.ours", targets=("", "cuda", "cuda-sim")),
    Listed("numpy", "numpy", "peers.with_numpy"),
    Listed("numba", "numba", "peers.with_numba"),
    Listed("numexpr", "numexpr", "peers.with_numexpr"),
    Listed("jax", "jax", "peers.with_jax"),
    Listed("torch", "torch", "peers.with_torch"),
    Listed("torch.compile", "torch", "peers.with_torch", "compiled_entry", compiler, slow=True),
    Listed("cupy", "cupy", "peers.with_cupy", missing=partial(gpu, "cupy"), targets=GPU),
    Listed("jax", "jax", "peers.with_jax", "gpu_entry", partial(gpu, "jax"), targets=GPU),
    Listed("torch", "torch", "peers.with_torch", "gpu_entry", partial(gpu, "torch"), targets=GPU),
    Listed("torch.compile", "torch", "peers.with_torch", "gpu_compiled_entry", gpu_compiler, targets=GPU),
)
