"""One of few constants in each lane, chosen by the lowest bits of an integer.

Where a register or two hold them all, one instruction chooses from there in all lanes:

    %t1 = call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> <...>, <16 x i32> %index)

Elsewhere they are in memory, from which each lane loads its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from ..ir.dtype import BOOL, F32, F64, I32, DType
from .llvm_text import Value, Writer, constant

__all__ = ["chosen"]


def chosen(writer: Writer, name: str, table: Sequence[float], index: Value, dtype: DType) -> Value:
    """The entries of the table of that name; there is a power of two of them."""
    lanes = _lanes(writer, dtype)
    if index.lanes == 1 or len(table) > 2 * lanes:
        return _loaded(writer, f'@"{name}.{dtype.short}"', table, index, dtype)
    if index.lanes < lanes:
        wide = writer.shuffle(index, [lane % index.lanes for lane in range(lanes)])
        return writer.shuffle(_permuted(writer, table, wide, dtype), range(index.lanes))
    parts = (
        writer.shuffle(index, range(first, first + lanes)) if lanes < index.lanes else index
        for first in range(0, index.lanes, lanes)
    )
    return writer.concatenated([_permuted(writer, table, part, dtype) for part in parts])


def _lanes(writer: Writer, dtype: DType) -> int:
    """Of the registers whose lanes can be taken in any order; 0 where they cannot."""
    if "avx512f" in writer.features:
        return 64 // dtype.itemsize
    return 32 // dtype.itemsize if "avx2" in writer.features else 0


def _permuted(writer: Writer, table: Sequence[float], index: Value, dtype: DType) -> Value:
    """By instructions on registers of so many lanes as the index has."""
    lanes = index.lanes
    if dtype is F64 and "avx512f" not in writer.features:
        return _permuted_halves(writer, [*table] * (2 * lanes // len(table)), index)
    entries = [*table] * max(1, lanes // len(table))
    first, *more = (_register(entries[n : n + lanes], dtype) for n in range(0, len(entries), lanes))
    letter = "s" if dtype is F32 else "d"
    if "avx512f" not in writer.features:
        low = writer.x86("avx2.permps", first, index)
        return _either(writer, index, low, writer.x86("avx2.permps", more[0], index)) if more else low
    if more:
        return writer.x86(f"avx512.vpermi2var.p{letter}.512", first, index, more[0])
    return writer.x86(f"avx512.permvar.{letter}f.512", first, index)


def _permuted_halves(writer: Writer, table: Sequence[float], index: Value) -> Value:
    """AVX2 takes 32 bits in any order: the lower halves of all entries from one register, the upper ones from
    another. A lane's index stands in both of its halves. What is zero in all entries is not chosen."""
    lanes = 2 * index.lanes
    parts = Value(writer.pure(f"bitcast {index} to <{lanes} x i32>"), I32, lanes)
    indices = writer.shuffle(parts, [lane & -2 for lane in range(lanes)])
    halves = zip(*(struct.unpack("<2i", struct.pack("<d", entry)) for entry in table), strict=True)
    low, high = (
        writer.x86("avx2.permd", _register(half, I32), indices) if any(half) else _register(half, I32)
        for half in halves
    )
    joined = writer.shuffle(low, [lane + lanes * (lane % 2) for lane in range(lanes)], high)
    result = Value("", F64, index.lanes)
    return replace(result, text=writer.pure(f"bitcast {joined} to {result.type}"))


def _either(writer: Writer, index: Value, low: Value, high: Value) -> Value:
    """Of two registers' entries those that the index means, by its lowest bit that counts no lanes, which
    instructions look for where a sign is."""
    beyond = writer.widen(constant(index.dtype.bits - low.lanes.bit_length(), index.dtype), index.lanes)
    signs = writer.pure(f"shl {index}, {beyond.text}")
    is_high = Value(writer.pure(f"icmp slt {index.type} {signs}, zeroinitializer"), BOOL, index.lanes)
    return replace(low, text=writer.pure(f"select {is_high}, {high}, {low}"))


def _register(entries: Sequence[float], dtype: DType) -> Value:
    return Value(f"<{_listed(entries, dtype)}>", dtype, len(entries))


def _listed(entries: Sequence[float], dtype: DType) -> str:
    return ", ".join(str(constant(entry, dtype)) for entry in entries)


def _loaded(writer: Writer, name: str, table: Sequence[float], index: Value, dtype: DType) -> Value:
    """Lane by lane from memory."""
    kind = f"[{len(table)} x {dtype.llvm}]"
    writer.declare(f"{name} = private unnamed_addr constant {kind} [{_listed(table, dtype)}], align 64")
    last = writer.widen(constant(len(table) - 1, index.dtype), index.lanes)
    inside = replace(index, text=writer.pure(f"and {index}, {last.text}"))
    entries = []
    for lane in range(index.lanes):
        place = writer.lane(inside, lane)
        address = writer.pure(f"getelementptr inbounds {kind}, ptr {name}, i64 0, {place}")
        entries.append(Value(writer.pure(f"load {dtype.llvm}, ptr {address}, align {dtype.itemsize}"), dtype))
    return writer.join(entries)
