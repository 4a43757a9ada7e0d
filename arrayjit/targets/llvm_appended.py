"""Lanes that a condition chooses, stored side by side.

if c:                        ; %m, where c holds, as bits, of which %count are set
    n = reached              ; %v = compress(value, %m): the chosen lanes first
    selected[n] = value      ; stored from cell `reached` on, under a mask of the lowest %count bits
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.loops import Store
from .llvm_memory import Lanes, Memory
from .llvm_text import Value, Writer

__all__ = ["COUNTS", "appended", "count_of"]

COUNTS = "avx512vl"
"""The feature of CPUs that have the lanes of a mask as bits, and count these in one step."""


def appended(
    writer: Writer, memory: Memory, lanes: Lanes, condition: Value, stores: Iterable[tuple[Store, Value]]
) -> str:
    """What is stored for the lanes that touch memory and for which a condition holds, side by side from each
    store's cell on; how many lanes these are."""
    number, bits = lanes.count, f"i{lanes.count}"
    mask = writer.widen(condition, number).text
    if lanes.present is not None:
        within = writer.first_lanes(lanes.present, number)
        mask = writer.pure(f"and <{number} x i1> {mask}, {within}")
    count = count_of(writer, mask, number)
    above = writer.pure(f"sub i64 {writer.pure(f'shl i64 1, {count}')}, 1")
    first = writer.pure(f"bitcast {bits} {writer.pure(f'trunc i64 {above} to {bits}')} to <{number} x i1>")
    for store, value in stores:
        packed = writer.compressed(writer.widen(value, number), mask)
        memory.store_first(store.tensor, store.index, packed, first)
    return count


def count_of(writer: Writer, mask: str, lanes: int) -> str:
    """In how many lanes a mask is true."""
    bits = f"i{lanes}"
    writer.declare(f"declare {bits} @llvm.ctpop.{bits}({bits})")
    whole = writer.pure(f"bitcast <{lanes} x i1> {mask} to {bits}")
    count = writer.pure(f"call {bits} @llvm.ctpop.{bits}({bits} {whole})")
    return count if lanes == 64 else writer.pure(f"zext {bits} {count} to i64")
