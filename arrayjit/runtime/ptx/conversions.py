"""`cvt`: between all types, rounding and saturating as its modifiers say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .elementwise import elementwise
from .floats import mode_of
from .rounding import flushed, rounded, saturated, two_sum
from .site import Action, Site
from .threads import Threads
from .types import TYPES, Array, Type

__all__ = ["convert"]

_WHOLE: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def convert(site: Site) -> Action:
    """`cvt.rn.f32.f64`, `cvt.sat.s8.s32`, `cvt.rni.f32.f32`, `cvt.rn.bf16x2.f32`, `cvt.rna.tf32.f32`, ..."""
    if site.has("tf32"):
        return elementwise(site, _tensor_float(site), ["f32"], "f32")
    if site.has("pack"):
        return _pack(site)
    target, source = site.types[0], site.types[1]
    if target.packed > 1:
        return _pair(site, target, source)
    if source.is_float:
        function = _from_float_to_float(site) if target.is_float else _from_float_to_integer(site)
    elif target.is_float:
        function = _from_integer_to_float(site)
    else:
        function = _from_integer_to_integer(site)
    return elementwise(site, function, [source], target)


def _from_integer_to_integer(site: Site) -> Callable[[Array], Array]:
    target = site.types[0].dtype
    if not site.has("sat"):
        return lambda x: x.astype(target)
    limits = np.iinfo(target)

    def run(x: Array) -> Array:
        own = np.iinfo(x.dtype)
        return np.clip(x, max(limits.min, own.min), min(limits.max, own.max)).astype(target)

    return run


def _from_integer_to_float(site: Site) -> Callable[[Array], Array]:
    target, mode = site.types[0], mode_of(site)

    def run(x: Array) -> Array:
        low = x.astype(np.uint64) & np.uint64(0xFFFF_FFFF)
        wide = x.astype(np.int64) if x.dtype.kind == "i" else x.astype(np.uint64)
        high = (wide >> wide.dtype.type(32)).astype(np.float64) * 2.0**32
        value = rounded(*two_sum(high, low.astype(np.float64)), target, mode)
        return saturated(value) if site.has("sat") else value

    return run


def _whole(site: Site) -> Callable[[Array], Array] | None:
    return next((function for name, function in _WHOLE.items() if site.has(name)), None)


def _from_float_to_integer(site: Site) -> Callable[[Array], Array]:
    """Out of range gives the nearest integer of the type; what NaN gives depends on the types."""
    target, source = site.types[0], site.types[1]
    limits = np.iinfo(target.dtype)
    top = 2.0 ** (target.bits - (target.dtype.kind == "i"))
    is_wide = source.name == "f64" or target.bits == 64
    not_a_number = (
        target.dtype.type(1 << target.bits - 1 if target.kind == "u" else limits.min) if is_wide else 0
    )
    whole = _whole(site)
    if whole is None:
        raise site.unknown("it has no rounding to integers")

    def run(x: Array) -> Array:
        value = whole((flushed(x) if site.has("ftz") else x).astype(np.float64))
        inside = (value >= float(limits.min)) & (value < top)
        result = np.where(inside, value, 0.0).astype(target.dtype)
        result = np.where(value >= top, target.dtype.type(limits.max), result)
        result = np.where(value < float(limits.min), target.dtype.type(limits.min), result)
        return np.where(np.isnan(value), target.dtype.type(not_a_number), result)

    return run


def _from_float_to_float(site: Site) -> Callable[[Array], Array]:
    target, source = site.types[0], site.types[1]
    whole, mode = _whole(site), mode_of(site)
    shortens = (target.significand, target.bits) < (source.significand, source.bits)

    def run(x: Array) -> Array:
        x = flushed(x) if site.has("ftz") and source.name == "f32" else x
        x = whole(x) if whole is not None else x
        if shortens or target.is_widened:
            wide = x.astype(np.float64)
            x = rounded(wide, np.zeros_like(wide), target, mode)
        else:
            x = x.astype(target.dtype)
        return _finished(site, target, x)

    return run


def _finished(site: Site, target: Type, x: Array) -> Array:
    if site.has("ftz") and target.name == "f32":
        x = flushed(x)
    if site.has("relu"):
        x = np.where(np.isnan(x), x, np.maximum(x, x.dtype.type(0)))
    if site.has("satfinite"):
        x = _within(x, target)
    return saturated(x) if site.has("sat") else x


def _within(x: Array, target: Type) -> Array:
    """Infinities as the greatest finite numbers."""
    greatest = {"f16": 65504.0, "bf16": 3.3895313892515355e38}[target.name.removesuffix("x2")]
    return np.where(np.isnan(x), x, np.clip(x, -greatest, greatest).astype(x.dtype))


def _tensor_float(site: Site) -> Callable[[Array], Array]:
    """float32s with ten bits of fraction; `rna` takes ties away from zero."""

    def run(x: Array) -> Array:
        bits = np.ascontiguousarray(x).view(np.uint32)
        if site.has("rna"):
            up = np.uint32(0x1000)
        elif site.has("rn"):
            up = np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
        else:
            up = np.uint32(0)
        kept = (bits + up & ~np.uint32(0x1FFF)).view(np.float32)
        kept = np.where(np.isfinite(x), kept, x)
        if site.has("satfinite"):
            kept = np.where(np.isinf(kept), np.copysign(np.uint32(0x7F7FE000).view(np.float32), kept), kept)
        return np.where(kept < 0, np.float32(0), kept) if site.has("relu") else kept

    return run


def _pair(site: Site, target: Type, source: Type) -> Action:
    """Two float32s to two short floats in a register: the first operand becomes the upper half."""
    one = TYPES[target.name.removesuffix("x2")]
    mode = mode_of(site)
    upper, lower = site.read(1, source), site.read(2, source)
    store = site.write(0, target)

    def run(threads: Threads) -> None:
        both = np.empty((threads.count, 2), np.float64)
        both[:, 0], both[:, 1] = lower(threads), upper(threads)
        store(threads, _finished(site, one, rounded(both, np.zeros_like(both), one, mode)))

    return run


def _pack(site: Site) -> Action:
    """`cvt.pack.sat.s16.s32 d, a, b`: two saturated integers, a above b; `c` shifted up comes before them."""
    target, source = site.types[0], site.types[1]
    has_rest = len(site.operands) == 4
    limits = np.iinfo(target.dtype)
    mask = np.uint32((1 << target.bits) - 1)

    def run(x: Array, y: Array, *rest: Array) -> Array:
        upper, lower = (
            np.clip(each.astype(np.int64), limits.min, limits.max).astype(np.uint32) & mask for each in (x, y)
        )
        both = upper << np.uint32(target.bits) | lower
        result: Array = both | rest[0] << np.uint32(2 * target.bits) if has_rest else both
        return result

    return elementwise(site, run, [source, source, *["b32"] * has_rest], "b32")
