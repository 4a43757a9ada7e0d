"""Integer instructions and operations on bits, against Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Compute = Callable[..., np.ndarray]


def edges(dtype: type, count: int = 96) -> np.ndarray:
    """The extremes of a type, small numbers, and random ones."""
    limits = np.iinfo(dtype)
    known = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 31, 32, limits.max // 2]
    rng = np.random.default_rng(np.dtype(dtype).num)
    return np.array([*known, *rng.integers(limits.min, limits.max, count, dtype, endpoint=True)], dtype)


def wrapped(values: list[int], dtype: type) -> np.ndarray:
    bits = 8 * np.dtype(dtype).itemsize
    return np.array([value % (1 << bits) for value in values], f"u{bits // 8}").view(dtype)


def check(
    compute: Compute, text: str, function: Callable[..., int], result: type, *operands: np.ndarray
) -> None:
    """Every element is what the function makes of Python integers, wrapped around."""
    shown = compute(text, result, *operands)
    expected = [function(*map(int, row)) for row in zip(*np.broadcast_arrays(*operands), strict=True)]
    np.testing.assert_array_equal(shown, wrapped(expected, result), err_msg=text)


NAMES = {
    "u16": np.uint16,
    "s16": np.int16,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
}


def towards_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul.lo": lambda x, y: x * y,
    "min": min,
    "max": max,
    "div": lambda x, y: towards_zero(x, y) if y else -1,
    "rem": lambda x, y: x - towards_zero(x, y) * y if y else x,
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_of_two_operands(compute: Compute, name: str, kind: str) -> None:
    x = edges(NAMES[kind])
    for y in (np.roll(x, 1), np.roll(x, 5), np.zeros_like(x)):
        check(compute, f"{name}.{kind} d, a, b;", BINARY[name], NAMES[kind], x, y)


@pytest.mark.parametrize("kind", NAMES)
def test_the_upper_half_of_products(compute: Compute, kind: str) -> None:
    x = edges(NAMES[kind])
    bits = 8 * x.itemsize
    check(compute, f"mul.hi.{kind} d, a, b;", lambda x, y: x * y >> bits, NAMES[kind], x, np.roll(x, 3))
    check(
        compute,
        f"mad.hi.{kind} d, a, b, c;",
        lambda x, y, z: (x * y >> bits) + z,
        NAMES[kind],
        x,
        np.roll(x, 3),
        np.roll(x, 7),
    )


@pytest.mark.parametrize(("kind", "wide"), [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")])
def test_wide_products(compute: Compute, kind: str, wide: str) -> None:
    x = edges(NAMES[kind])
    y, z = np.roll(x, 3), np.resize(edges(NAMES[wide]), x.size)
    check(compute, f"mul.wide.{kind} d, a, b;", lambda x, y: x * y, NAMES[wide], x, y)
    check(compute, f"mad.wide.{kind} d, a, b, c;", lambda x, y, z: x * y + z, NAMES[wide], x, y, z)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_one_operand(compute: Compute, kind: str) -> None:
    check(compute, f"abs.{kind} d, a;", abs, NAMES[kind], edges(NAMES[kind]))
    check(compute, f"neg.{kind} d, a;", lambda x: -x, NAMES[kind], edges(NAMES[kind]))


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("add.sat.s32 d, a, b;", lambda x, y: max(-(1 << 31), min((1 << 31) - 1, x + y))),
        ("sub.sat.s32 d, a, b;", lambda x, y: max(-(1 << 31), min((1 << 31) - 1, x - y))),
    ],
)
def test_saturation(compute: Compute, text: str, function: Callable[..., int]) -> None:
    x = edges(np.int32)
    check(compute, text, function, np.int32, x, np.roll(x, 1))


def low_24(x: int, is_signed: bool) -> int:
    return (x & 0xFFFFFF) - (1 << 24 if is_signed and x >> 23 & 1 else 0)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_products_of_24_bits_and_differences(compute: Compute, kind: str) -> None:
    x, signed = edges(NAMES[kind]), kind == "s32"
    y, z = np.roll(x, 1), np.roll(x, 5)

    def product(x: int, y: int) -> int:
        return low_24(x, signed) * low_24(y, signed)

    check(compute, f"mul24.lo.{kind} d, a, b;", product, NAMES[kind], x, y)
    check(compute, f"mul24.hi.{kind} d, a, b;", lambda x, y: product(x, y) >> 16, NAMES[kind], x, y)
    check(compute, f"mad24.lo.{kind} d, a, b, c;", lambda x, y, z: product(x, y) + z, NAMES[kind], x, y, z)
    check(compute, f"sad.{kind} d, a, b, c;", lambda x, y, z: abs(x - y) + z, NAMES[kind], x, y, z)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("add.cc.u32 l, al, bl; addc.u32 h, ah, bh;", lambda x, y, z: x + y),
        ("sub.cc.u32 l, al, bl; subc.u32 h, ah, bh;", lambda x, y, z: x - y),
        ("mad.lo.cc.u32 l, al, bl, cl; madc.hi.u32 h, al, bl, ch;", lambda x, y, z: (x & M) * (y & M) + z),
        (
            "add.cc.u32 l, al, bl; addc.cc.u32 h, ah, bh; addc.u32 h, 0, 0; mov.u32 l, 0;",
            lambda x, y, z: ((x & M64) + (y & M64) >> 64) << 32,
        ),
        (
            "sub.cc.u32 l, al, bl; subc.cc.u32 h, ah, bh; subc.u32 h, 0, 0; mov.u32 l, 0;",
            lambda x, y, z: (-1 if x < y else 0) << 32,
        ),
    ],
)
def test_carries_join_words(compute: Compute, text: str, function: Callable[..., int]) -> None:
    x = edges(np.uint64)
    words = "mov.b64 {al, ah}, a; mov.b64 {bl, bh}, b; mov.b64 {cl, ch}, c;"
    body = f".reg .b32 l, h, al, ah, bl, bh, cl, ch; {words} {text} mov.b64 d, {{l, h}};"
    check(compute, body, function, np.uint64, x, np.roll(x, 1), np.roll(x, 7))


M, M64 = (1 << 32) - 1, (1 << 64) - 1


def test_dot_products_of_bytes(compute: Compute) -> None:
    x = edges(np.uint32)
    y, z = np.roll(x, 1), np.roll(x, 5)

    def of(x: int, signed: bool, size: int) -> list[int]:
        raw = x.to_bytes(4, "little")
        return [int.from_bytes(raw[at : at + size], "little", signed=signed) for at in range(0, 4, size)]

    for first in (False, True):
        for second in (False, True):
            kinds = f"{'s' if first else 'u'}32.{'s' if second else 'u'}32"
            check(
                compute,
                f"dp4a.{kinds} d, a, b, c;",
                lambda x, y, z, first=first, second=second: (
                    sum(p * q for p, q in zip(of(x, first, 1), of(y, second, 1), strict=True)) + z
                ),
                np.uint32,
                x,
                y,
                z,
            )
    check(
        compute,
        "dp2a.hi.s32.u32 d, a, b, c;",
        lambda x, y, z: sum(p * q for p, q in zip(of(x, True, 2), of(y, False, 1)[2:], strict=True)) + z,
        np.uint32,
        x,
        y,
        z,
    )


BITWISE: dict[str, Callable[..., int]] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_logic(compute: Compute, dtype: type) -> None:
    x = edges(dtype)
    bits = 8 * x.itemsize
    for name, function in BITWISE.items():
        check(compute, f"{name}.b{bits} d, a, b;", function, dtype, x, np.roll(x, 1))
    check(compute, f"not.b{bits} d, a;", lambda x: ~x, dtype, x)
    check(compute, f"cnot.b{bits} d, a;", lambda x: int(not x), dtype, x)


@pytest.mark.parametrize("table", [0x00, 0x96, 0xE8, 0xCA, 0x1B, 0xFF])
def test_any_function_of_three_bits(compute: Compute, table: int) -> None:
    x = edges(np.uint32)

    def function(x: int, y: int, z: int) -> int:
        rows = ((x >> bit & 1) << 2 | (y >> bit & 1) << 1 | z >> bit & 1 for bit in range(32))
        return sum((table >> row & 1) << bit for bit, row in enumerate(rows))

    check(compute, f"lop3.b32 d, a, b, c, {table};", function, np.uint32, x, np.roll(x, 1), np.roll(x, 2))


@pytest.mark.parametrize("kind", NAMES)
def test_shifts(compute: Compute, kind: str) -> None:
    x = edges(NAMES[kind])
    by = np.resize(
        np.array([0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 1 << 31, (1 << 32) - 1], np.uint32), x.size
    )
    check(compute, f"shr.{kind} d, a, b;", lambda x, by: x >> min(by, 64), NAMES[kind], x, by)
    check(
        compute,
        f"shl.b{8 * x.itemsize} d, a, b;",
        lambda x, by: x << by if by < 64 else 0,
        NAMES[kind],
        x,
        by,
    )


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(compute: Compute, mode: str) -> None:
    x = edges(np.uint32)
    by = np.resize(np.array([0, 1, 7, 31, 32, 33, 63, 64, 100], np.uint32), x.size)

    def count(by: int) -> int:
        return by & 31 if mode == "wrap" else min(by, 32)

    low, high = x, np.roll(x, 1)
    check(
        compute,
        f"shf.l.{mode}.b32 d, a, b, c;",
        lambda a, b, n: (b << 32 | a) << count(n) >> 32,
        np.uint32,
        low,
        high,
        by,
    )
    check(
        compute,
        f"shf.r.{mode}.b32 d, a, b, c;",
        lambda a, b, n: (b << 32 | a) >> count(n),
        np.uint32,
        low,
        high,
        by,
    )


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int32, np.int64])
def test_counting(compute: Compute, dtype: type) -> None:
    x = edges(dtype)
    bits = 8 * x.itemsize
    kind = f"{x.dtype.kind.replace('i', 's')}{bits}"
    plain = x.view(f"u{x.itemsize}")

    def leading(x: int) -> int:
        return (x if x >= 0 else ~x).bit_length() - 1

    check(compute, f"popc.b{bits} d, a;", lambda x: bin(x).count("1"), np.uint32, plain)
    check(compute, f"clz.b{bits} d, a;", lambda x: bits - x.bit_length(), np.uint32, plain)
    check(compute, f"brev.b{bits} d, a;", lambda x: int(f"{x:0{bits}b}"[::-1], 2), plain.dtype.type, plain)
    check(compute, f"bfind.{kind} d, a;", leading, np.uint32, x)
    shifted = lambda x: bits - 1 - leading(x) if leading(x) >= 0 else -1  # noqa: E731
    check(compute, f"bfind.shiftamt.{kind} d, a;", shifted, np.uint32, x)


def field(x: int, start: int, length: int, bits: int, is_signed: bool) -> int:
    """As the PTX manual defines `bfe`, bit by bit."""
    start, length = start & 0xFF, length & 0xFF
    plain = x % (1 << bits)
    sign = plain >> min(start + length - 1, bits - 1) & 1 if is_signed and length else 0
    return sum(
        (plain >> start + at & 1 if at < length and start + at < bits else sign) << at for at in range(bits)
    )


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(compute: Compute, kind: str) -> None:
    x = edges(NAMES[kind])
    bits = 8 * x.itemsize
    start = np.resize(np.array([0, 1, 8, 31, 40, 63, 64, 200, 256, 0, 4], np.uint32), x.size)
    length = np.resize(np.array([0, 1, 4, 8, 32, 33, 64, 255, 3, 300], np.uint32), x.size)
    is_signed = kind[0] == "s"
    check(
        compute,
        f"bfe.{kind} d, a, b, c;",
        lambda x, start, length: field(x, start, length, bits, is_signed),
        NAMES[kind],
        x,
        start,
        length,
    )

    def inserted(x: int, y: int, start: int, length: int) -> int:
        start, length = start & 0xFF, length & 0xFF
        mask = ((1 << length) - 1 << start) % (1 << bits)
        return (x << start & mask) | (y & ~mask)

    plain = x.view(f"u{x.itemsize}")
    check(
        compute,
        f"bfi.b{bits} d, a, b, c, e;",
        inserted,
        plain.dtype.type,
        plain,
        np.roll(plain, 1),
        start,
        length,
    )


def test_masks_and_extension(compute: Compute) -> None:
    x = edges(np.uint32)
    start = np.resize(np.array([0, 1, 8, 31, 32, 33], np.uint32), x.size)
    length = np.resize(np.array([0, 1, 4, 8, 31, 32, 40], np.uint32), x.size)
    check(
        compute,
        "bmsk.clamp.b32 d, a, b;",
        lambda start, length: ((1 << min(length, 32)) - 1) << min(start, 32),
        np.uint32,
        start,
        length,
    )
    check(compute, "szext.clamp.u32 d, a, b;", lambda x, n: x & (1 << min(n, 32)) - 1, np.uint32, x, length)
    check(
        compute,
        "szext.clamp.s32 d, a, b;",
        lambda x, n: field(x, 0, min(n, 32), 32, True) if n else 0,
        np.uint32,
        x,
        length,
    )


def test_permutations_of_bytes(compute: Compute) -> None:
    x = edges(np.uint32)
    y = np.roll(x, 1)
    chosen = np.resize(np.array([0x3210, 0x7654, 0x0123, 0x8F9A, 0xFEDC, 0x4040, 3, 2, 1], np.uint32), x.size)

    def byte(x: int, y: int, nibble: int) -> int:
        value = (y << 32 | x) >> 8 * (nibble & 7) & 0xFF
        return (0xFF if value & 0x80 else 0) if nibble & 8 else value

    def permuted(x: int, y: int, selector: int) -> int:
        return sum(byte(x, y, selector >> 4 * at & 15) << 8 * at for at in range(4))

    check(compute, "prmt.b32 d, a, b, c;", permuted, np.uint32, x, y, chosen)
    rows = {  # the table of the PTX manual, from the highest byte down
        "f4e": ("3210", "4321", "5432", "6543"),
        "b4e": ("5670", "6701", "7012", "0123"),
        "rc8": ("0000", "1111", "2222", "3333"),
        "ecl": ("3210", "3211", "3222", "3333"),
        "ecr": ("0000", "1110", "2210", "3210"),
        "rc16": ("1010", "3232", "1010", "3232"),
    }
    for mode, table in rows.items():
        check(
            compute,
            f"prmt.b32.{mode} d, a, b, c;",
            lambda x, y, selector, table=table: permuted(x, y, int(table[selector & 3], 16)),
            np.uint32,
            x,
            y,
            chosen,
        )


def test_pairs_of_short_integers(compute: Compute) -> None:
    x = edges(np.uint32)

    def largest(x: int, y: int) -> int:
        halves = [
            max(*(np.int32(v >> at & 0xFFFF << 16 >> 16).astype(np.int16) for v in (x, y))) for at in (0, 16)
        ]
        return int(halves[0]) % 65536 | int(halves[1]) % 65536 << 16

    check(compute, "max.s16x2 d, a, b;", largest, np.uint32, x, np.roll(x, 1))
