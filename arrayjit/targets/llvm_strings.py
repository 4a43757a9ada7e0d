"""Loops that only copy neighbours, or fill them, as the processor's instructions for strings of bytes.

for i in vector(0, 1000000, lanes=64):         ; rep movsb
    t[i] = x[i]                           ->
    u[i] = 3                                   ; rep stosb

A line is fetched before part of it is stored; of strings it is known that they overwrite whole lines. On
Zen 5 what the second cache has no room for is filled in 0.5 to 0.9 of the time so, and copied in 0.8 to 0.95.
Short strings begin late: their vectors are stored before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..ir.expr import Const, Load
from ..ir.loops import For, LoopKind, Store
from .host import cpu_named
from .llvm_memory import Lanes, Memory
from .llvm_text import Operand, Writer

__all__ = ["fewest_cells", "strings"]

FEATURES = frozenset(cpu_named("zen5").features)
"""Of the processor on which strings were measured: of others it is not known."""

COPIED, FILLED = 1 << 15, 3 << 18
"""So many bytes are copied or filled, at least: three quarters of the second cache, which takes vectors
faster than strings."""

WORDS = {1: "b", 2: "w", 4: "l", 8: "q"}
CHANGED = "~{memory},~{dirflag},~{fpsr},~{flags}"


def fewest_cells(loop: For, features: Collection[str]) -> int | None:
    """How many iterations a loop has, at least, if it goes by strings; None if it may not."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    if not FEATURES.issubset(features) or loop.kind is not LoopKind.VECTOR or loop.step != 1:
        return None
    if not stores or len(stores) < len(loop.body) or not all(_is_string(store, loop) for store in stores):
        return None
    read = {store.value.tensor.storage for store in stores if isinstance(store.value, Load)}
    if not read.isdisjoint(store.tensor.storage for store in stores):
        return None
    return max(
        (COPIED if isinstance(store.value, Load) else FILLED) // store.tensor.dtype.itemsize
        for store in stores
    )


def _is_string(store: Store, loop: For) -> bool:
    """Are neighbours stored, by copying neighbours or with one known value?"""
    lanes, dtype = Lanes(loop.symbol, 1, loop.lanes), store.tensor.dtype
    if store.accum is not None or store.bypass or lanes.step_in(store.tensor, store.index) != 1:
        return False
    match store.value:
        case Load(tensor=tensor, index=index):
            return tensor.dtype is dtype and lanes.step_in(tensor, index) == 1
        case Const():
            return dtype.itemsize in WORDS
        case _:
            return False


def strings(writer: Writer, memory: Memory, stores: Sequence[Store], count: Operand) -> None:
    """So many cells of each store, from where its loop's symbol stands on."""
    for store in stores:
        tensor, size = store.tensor, store.tensor.dtype.itemsize
        target = memory.address(tensor, store.index, Lanes())
        match store.value:
            case Load(tensor=source, index=index):
                at, cells = memory.address(source, index, Lanes()), writer.multiply(count, size)
                given = f"ptr {target}, ptr {at}, i64 {cells}"
                writer.let(
                    'call { ptr, ptr, i64 } asm sideeffect "rep movsb", '
                    f'"={{di}},={{si}},={{cx}},0,1,2,{CHANGED}"({given})'
                )
            case Const(value=value):
                bits = int.from_bytes(np.array(value, tensor.dtype.numpy).tobytes(), "little")
                given = f"i{8 * size} {bits}, ptr {target}, i64 {count}"
                writer.let(
                    f'call {{ ptr, i64 }} asm sideeffect "rep stos{WORDS[size]}", '
                    f'"={{di}},={{cx}},{{ax}},0,1,{CHANGED}"({given})'
                )
            case _:
                raise AssertionError(store)
