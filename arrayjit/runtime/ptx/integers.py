"""Integer arithmetic. What does not fit wraps around, unless `.sat` says otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .elementwise import elementwise, kind_named, plain
from .site import Action, Maker, Site
from .threads import Threads
from .types import Array, unsigned

__all__ = [
    "add",
    "dot_product",
    "extreme",
    "multiply",
    "multiply_24",
    "multiply_add",
    "multiply_add_24",
    "quotient",
    "rest",
    "subtract",
]

Carrying = Callable[[Array, Array, Array], tuple[Array, Array]]

_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)


def _summing(function: Callable[[Array, Array], Array], carrying: Carrying) -> Maker:
    """`add`, `add.cc`, `addc`, `addc.cc`, `add.sat.s32`, or the same of `sub`."""

    def action(site: Site) -> Action:
        if site.has("sat"):
            return elementwise(site, lambda x, y: _clamped(function(x.astype(np.int64), y)), ["s32", "s32"])
        if site.has("cc") or site.instruction.opcode.endswith("c"):
            return _with_carry(site, (site.read(1, _plain(site)), site.read(2, _plain(site))), carrying)
        return elementwise(site, function, [site.type] * 2)

    return action


def _plain(site: Site) -> str:
    return f"u{site.type.bits}"


def _sum(x: Array, y: Array, carry: Array) -> tuple[Array, Array]:
    part = x + y
    total = part + carry
    return total, (part < x) | (total < part)


def _difference(x: Array, y: Array, borrow: Array) -> tuple[Array, Array]:
    part = x - y
    return part - borrow, (x < y) | (part < borrow)


add, subtract = _summing(np.add, _sum), _summing(np.subtract, _difference)


def _with_carry(
    site: Site,
    operands: tuple[Callable[[Threads], Array], Callable[[Threads], Array]],
    function: Carrying,
) -> Action:
    """Opcodes that end in c take the carry; `.cc` leaves one."""
    first, second = operands
    takes = site.instruction.opcode.endswith("c")
    leaves = site.has("cc")
    store = site.write(0, _plain(site))
    dtype = unsigned(site.type.bits)

    def run(threads: Threads) -> None:
        carry = threads.carry[threads.lanes] if takes else np.zeros(1, bool)
        total, carried = function(first(threads), second(threads), carry.astype(dtype))
        store(threads, total)
        if leaves:
            threads.carry[threads.lanes] = carried

    return run


def _clamped(wide: Array) -> Array:
    limits = np.iinfo(np.int32)
    return np.clip(wide, limits.min, limits.max).astype(np.int32)


def high_product(x: Array, y: Array) -> Array:
    """The upper half of the product of equal integers."""
    if x.dtype.itemsize < 8:
        wide = np.dtype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")
        shift = wide.type(8 * x.dtype.itemsize)
        result: Array = (x.astype(wide) * y.astype(wide) >> shift).astype(x.dtype)
        return result
    a, b = x.astype(np.uint64), y.astype(np.uint64)
    low = (a & _LOW) * (b & _LOW)
    cross = (a >> _U32) * (b & _LOW) + (low >> _U32)
    other = (a & _LOW) * (b >> _U32) + (cross & _LOW)
    high = (a >> _U32) * (b >> _U32) + (cross >> _U32) + (other >> _U32)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    result = high.astype(x.dtype)
    return result


def _product(site: Site) -> Callable[[Array, Array], Array]:
    if site.has("hi"):
        return high_product
    if site.has("wide"):
        wide = kind_named(site.type.kind, 2 * site.type.bits).dtype
        return lambda x, y: x.astype(wide) * y.astype(wide)
    return np.multiply


def multiply(site: Site) -> Action:
    """`mul.lo`, `mul.hi`, `mul.wide`."""
    result = kind_named(site.type.kind, 2 * site.type.bits) if site.has("wide") else site.type
    return elementwise(site, _product(site), [site.type] * 2, result)


def multiply_add(site: Site) -> Action:
    """`mad.lo`, `mad.hi`, `mad.wide`, with `.cc` and as `madc`."""
    product = _product(site)
    kind = site.type
    if site.has("cc") or site.instruction.opcode == "madc":
        x, y, plain = site.read(1, kind), site.read(2, kind), unsigned(kind.bits)
        factor = site.read(3, _plain(site))
        return _with_carry(site, (lambda threads: product(x(threads), y(threads)).view(plain), factor), _sum)
    if site.has("sat"):
        return elementwise(site, lambda x, y, z: _clamped(product(x, y).astype(np.int64) + z), [kind] * 3)
    total = kind_named(kind.kind, 2 * kind.bits) if site.has("wide") else kind
    return elementwise(site, lambda x, y, z: product(x, y) + z, [kind, kind, total], total)


def _product_24(site: Site) -> Callable[[Array, Array], Array]:
    """Of the low 24 bits: bits 0 to 31 of it, or 16 to 47."""
    shift = np.int64(16 if site.has("hi") else 0)
    dtype = site.type.dtype

    def extended(x: Array) -> Array:
        low = x.astype(np.int64) & 0xFFFFFF
        return np.where(low >> 23 == 1, low - (1 << 24), low) if site.type.kind == "s" else low

    return lambda x, y: (extended(x) * extended(y) >> shift).astype(dtype)


def multiply_24(site: Site) -> Action:
    """`mul24.lo`, `mul24.hi`."""
    return elementwise(site, _product_24(site), [site.type] * 2)


def multiply_add_24(site: Site) -> Action:
    """`mad24.lo`, `mad24.hi`, `mad24.hi.sat.s32`."""
    product = _product_24(site)
    if site.has("sat"):
        return elementwise(
            site, lambda x, y, z: _clamped(product(x, y).astype(np.int64) + z), [site.type] * 3
        )
    return elementwise(site, lambda x, y, z: product(x, y) + z, [site.type] * 3)


def magnitudes(x: Array) -> Array:
    """Absolute values, as unsigned integers."""
    return np.where(x < 0, np.negative(x), x).view(unsigned(8 * x.dtype.itemsize))


def quotient(x: Array, y: Array) -> Array:
    """Rounded towards zero; all ones where the divisor is zero."""
    below = magnitudes(y)
    size = magnitudes(x) // np.where(below == 0, below.dtype.type(1), below)
    signed = size.view(x.dtype)
    signed = np.where((x < 0) != (y < 0), np.negative(signed), signed)
    return np.where(y == 0, np.invert(x.dtype.type(0)), signed)


def rest(x: Array, y: Array) -> Array:
    """Of a division: of the sign of the dividend, which it is where the divisor is zero."""
    return np.where(y == 0, x, x - quotient(x, y) * y)


def extreme(function: Callable[[Array, Array], Array]) -> Maker:
    """`min`, `max`: by that function of two."""
    of_two, bounded = plain(function, 2), plain(lambda x, y: np.maximum(function(x, y), 0), 2)
    return lambda site: bounded(site) if site.has("relu") else of_two(site)


def dot_product(site: Site) -> Action:
    """`dp4a`: four bytes by four bytes, plus an integer. `dp2a`: two 16-bit integers by two of the bytes."""
    first, second = site.types
    pairs = site.instruction.opcode == "dp2a"
    skipped = 2 if site.has("hi") else 0

    def run(x: Array, y: Array, z: Array) -> Array:
        left = np.ascontiguousarray(x).reshape(-1, 1).view(f"{first.dtype.kind}{2 if pairs else 1}")
        right = np.ascontiguousarray(y).reshape(-1, 1).view(f"{second.dtype.kind}1")
        right = right[:, skipped : skipped + 2] if pairs else right
        total = (left.astype(np.int64) * right.astype(np.int64)).sum(axis=1) + z
        result: Array = total.astype(z.dtype)
        return result

    total = "u32" if first.kind == second.kind == "u" else "s32"
    return elementwise(site, run, [first, second, total], total)
