"""Operations on bits: logic, shifts, counting, fields."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .elementwise import elementwise
from .module import Number
from .site import Action, Site
from .types import Array

__all__ = [
    "bit_mask",
    "count_ones",
    "count_zeros",
    "extract_field",
    "find_leading",
    "funnel_shift",
    "insert_field",
    "logic",
    "permute_bytes",
    "reverse",
    "shift_left",
    "shift_right",
    "sign_extend",
]


def logic(site: Site) -> Action:
    """`lop3`: any function of three bits, given as its table."""
    table = site.operands[4]
    if not isinstance(table, Number):
        raise site.unknown("its table is no constant")
    chosen = [row for row in range(8) if int(table.value) >> row & 1]

    def run(x: Array, y: Array, z: Array) -> Array:
        result = np.zeros(np.broadcast(x, y, z).shape, np.uint32)
        for row in chosen:
            result |= (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
        return result

    return elementwise(site, run, ["b32"] * 3)


def shift_left(site: Site) -> Action:
    """`shl`: by the number of bits or more gives zero."""
    bits, dtype = site.type.bits, site.type.dtype

    def run(x: Array, by: Array) -> Array:
        result: Array = np.where(by < bits, x << np.minimum(by, bits - 1).astype(dtype), dtype.type(0))
        return result

    return elementwise(site, run, [site.type, "u32"])


def shift_right(site: Site) -> Action:
    """`shr`: signed types keep their sign."""
    bits, dtype = site.type.bits, site.type.dtype

    def run(x: Array, by: Array) -> Array:
        shifted = x >> np.minimum(by, bits - 1).astype(dtype)
        result: Array = shifted if dtype.kind == "i" else np.where(by < bits, shifted, dtype.type(0))
        return result

    return elementwise(site, run, [site.type, "u32"])


def funnel_shift(site: Site) -> Action:
    """`shf`: of two registers as one of 64 bits, `[b a]`."""
    is_left, wraps = site.has("l"), site.has("wrap")

    def run(low: Array, high: Array, by: Array) -> Array:
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        count = (by & np.uint32(31) if wraps else np.minimum(by, 32)).astype(np.uint64)
        result: Array = (both << count >> np.uint64(32) if is_left else both >> count).astype(np.uint32)
        return result

    return elementwise(site, run, ["b32", "b32", "u32"])


def count_ones(site: Site) -> Action:
    """`popc`."""
    return elementwise(site, lambda x: _ones(x).astype(np.uint32), [site.type], "u32")


def _ones(x: Array) -> Array:
    single = np.unpackbits(np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8), axis=1)
    result: Array = single.sum(axis=1, dtype=np.int64)
    return result


def _filled(x: Array) -> Array:
    """All bits below the highest one that is set, and itself."""
    for shift in (1, 2, 4, 8, 16, 32)[: {4: 5, 8: 6}[x.dtype.itemsize]]:
        x = x | x >> x.dtype.type(shift)
    return x


def count_zeros(site: Site) -> Action:
    """`clz`: before the highest bit that is set."""
    return elementwise(
        site, lambda x: (site.type.bits - _ones(_filled(x))).astype(np.uint32), [site.type], "u32"
    )


def find_leading(site: Site) -> Action:
    """`bfind`: the highest bit that differs from the sign, or all ones; `.shiftamt` counts from above."""
    bits = site.type.bits

    def run(x: Array) -> Array:
        value = np.where(x < 0, ~x, x).view(f"u{bits // 8}") if x.dtype.kind == "i" else x
        place = _ones(_filled(value)) - 1
        shown = bits - 1 - place if site.has("shiftamt") else place
        return np.where(place < 0, np.uint32(0xFFFF_FFFF), shown.astype(np.uint32))

    return elementwise(site, run, [site.type], "u32")


def reverse(site: Site) -> Action:
    """`brev`."""

    def run(x: Array) -> Array:
        single = np.unpackbits(
            np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8), axis=1, bitorder="little"
        )
        return np.packbits(single[:, ::-1], axis=1, bitorder="little").view(x.dtype).reshape(-1)

    return elementwise(site, run, [site.type])


def extract_field(site: Site) -> Action:
    """`bfe`: `length` bits from `start` on; signed types extend the field's sign."""
    bits, dtype = site.type.bits, site.type.dtype
    plain = f"u{bits // 8}"

    def run(x: Array, start: Array, length: Array) -> Array:
        start = (start & np.uint32(0xFF)).astype(np.int64)
        length = (length & np.uint32(0xFF)).astype(np.int64)
        last = np.minimum(start + length - 1, bits - 1)
        sign = np.where((length > 0) & (dtype.kind == "i"), x >> last.clip(0).astype(dtype) & 1, 0).astype(
            bool
        )
        kept = np.minimum(length, bits - start).clip(0)
        field = x.view(plain) >> np.minimum(start, bits - 1).astype(plain)
        mask = _below(kept, bits)
        field = np.where(start < bits, field, 0) & mask
        return np.where(sign, field | ~mask, field).astype(plain).view(dtype)

    return elementwise(site, run, [site.type, "u32", "u32"])


def _below(count: Array, bits: int) -> Array:
    """So many ones, from the lowest bit."""
    dtype = np.dtype(f"u{bits // 8}")
    ones = ~dtype.type(0) >> np.minimum(bits - count, bits - 1).astype(dtype)
    result: Array = np.where(count > 0, ones, dtype.type(0))
    return result


def insert_field(site: Site) -> Action:
    """`bfi`: the low `length` bits of a put into b from `start` on."""
    bits, dtype = site.type.bits, site.type.dtype

    def run(x: Array, y: Array, start: Array, length: Array) -> Array:
        start = (start & np.uint32(0xFF)).astype(np.int64)
        length = (length & np.uint32(0xFF)).astype(np.int64)
        shift = np.minimum(start, bits - 1).astype(dtype)
        mask = np.where(start < bits, _below(np.minimum(length, bits), bits) << shift, dtype.type(0))
        result: Array = (x << shift & mask) | (y & ~mask)
        return result

    return elementwise(site, run, [site.type, site.type, "u32", "u32"])


def bit_mask(site: Site) -> Action:
    """`bmsk`: `length` ones from `start` on."""

    def run(start: Array, length: Array) -> Array:
        if site.has("wrap"):
            start, length = start & np.uint32(31), length & np.uint32(31)
        wide = _below(np.minimum(length, 32).astype(np.int64), 64)
        return (wide << np.minimum(start, 32).astype(np.uint64)).astype(np.uint32)

    return elementwise(site, run, ["u32", "u32"], "b32")


def sign_extend(site: Site) -> Action:
    """`szext`: the low bits extended, by their sign if the type has one."""
    dtype = site.type.dtype

    def run(x: Array, count: Array) -> Array:
        count = count & np.uint32(31) if site.has("wrap") else np.minimum(count, 32)
        unused = (np.uint32(32) - count).astype(np.int64)
        shift = np.minimum(unused, 31).astype(dtype)
        result: Array = np.where(unused < 32, x << shift >> shift, dtype.type(0))
        return result

    return elementwise(site, run, [site.type, "u32"])


_SELECTORS: dict[str, Callable[[int, int], int]] = {
    "f4e": lambda start, byte: start + byte,
    "b4e": lambda start, byte: (start - byte) % 8,
    "rc8": lambda start, byte: start,
    "ecl": lambda start, byte: max(start, byte),
    "ecr": lambda start, byte: min(start, byte),
    "rc16": lambda start, byte: 2 * (start & 1) + (byte & 1),
}


def permute_bytes(site: Site) -> Action:
    """`prmt`: four of the eight bytes of `[b a]`. Bit 3 of a choice repeats the byte's sign."""
    mode = next((each for each in _SELECTORS if site.has(each)), None)

    def run(low: Array, high: Array, selector: Array) -> Array:
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        result = np.zeros(np.broadcast(low, high, selector).shape, np.uint32)
        for byte in range(4):
            if mode is None:
                choice = selector >> np.uint32(4 * byte) & np.uint32(15)
            else:
                table = np.array([_SELECTORS[mode](start, byte) % 8 for start in range(4)], np.uint32)
                choice = table[selector & np.uint32(3)]
            value = (both >> np.uint64(8) * (choice & np.uint32(7)).astype(np.uint64)).astype(np.uint32)
            value &= np.uint32(0xFF)
            sign = np.where(value & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
            value = np.where(choice & np.uint32(8), sign, value)
            result |= value << np.uint32(8 * byte)
        return result

    return elementwise(site, run, ["b32"] * 3)
