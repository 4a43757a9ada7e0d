"""Floating-point arithmetic. Approximations of the hardware are computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from . import rounding
from .elementwise import elementwise
from .site import Action, Maker, Site
from .types import Array, Type

__all__ = ["approximation", "exact", "maximum", "minimum", "mode_of", "reciprocal", "rounded"]

Rounded = Callable[..., Array]


def mode_of(site: Site) -> str:
    """The rounding mode; to nearest where none is given."""
    return next((mode for mode in rounding.MODES if site.has(mode)), "rn")


def finished(site: Site, function: Callable[..., Array]) -> Callable[..., Array]:
    """A function with what the modifiers want of its operands and of its result."""
    flushes = site.has("ftz") and site.type.name == "f32"
    saturates, has_relu = site.has("sat"), site.has("relu")
    if not (flushes or saturates or has_relu):
        return function

    def run(*operands: Array) -> Array:
        if flushes:
            operands = tuple(map(rounding.flushed, operands))
        result = function(*operands)
        result = rounding.flushed(result) if flushes else result
        if has_relu:
            result = np.where(result < 0, result.dtype.type(0), result)
        return rounding.saturated(result) if saturates else result

    return run


def rounded(function: Rounded, count: int) -> Maker:
    """Makes `function(operands..., kind, mode)` of so many operands, finished. Approximate ones are rounded
    as the exact ones are."""

    def make(site: Site) -> Action:
        kind, mode = site.type, mode_of(site)
        computed = finished(site, lambda *operands: function(*operands, kind, mode))
        return elementwise(site, computed, [kind] * count)

    return make


def exact(function: Callable[[Array], Array]) -> Maker:
    """Makes `function` of one operand, which needs no rounding, finished."""
    return lambda site: elementwise(site, finished(site, function), [site.type])


_RECIPROCAL = rounded(lambda x, kind, mode: rounding.divided(np.ones_like(x), x, kind, mode), 1)


def reciprocal(site: Site) -> Action:
    """`rcp`."""
    if site.type.name == "f64" and site.has("approx"):
        return _upper_half(site, lambda x: 1.0 / x)
    return _RECIPROCAL(site)


def _upper_half(site: Site, function: Callable[[Array], Array]) -> Action:
    """Float64s whose low 32 bits are taken as zero and given as zero, subnormals flushed."""
    mask = np.uint64(0xFFFF_FFFF_0000_0000)
    tiny = np.finfo(np.float64).tiny

    def cut(x: Array) -> Array:
        kept = (np.ascontiguousarray(x).view(np.uint64) & mask).view(np.float64)
        result: Array = np.where(np.abs(kept) < tiny, np.copysign(0.0, kept), kept)
        return result

    return elementwise(site, lambda x: cut(function(cut(x))), ["f64"])


_APPROXIMATED: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}


def approximation(site: Site) -> Action:
    """`ex2`, `lg2`, `sin`, `cos`, `tanh`, `rsqrt`."""
    function = _APPROXIMATED[site.instruction.opcode]
    kind = site.type
    if kind.name == "f64":
        if site.has("ftz"):
            return _upper_half(site, function)
        return elementwise(site, function, [kind])

    def run(x: Array) -> Array:
        exact = function(x.astype(np.float64))
        return rounding.rounded(exact, np.zeros_like(exact), kind)

    return elementwise(site, finished(site, run), [kind])


def minimum(site: Site) -> Action:
    """`min`: -0 is below +0; the other operand of a NaN, or NaN with `.NaN`."""
    return _extreme(site, np.fmin, np.signbit)


def maximum(site: Site) -> Action:
    """`max`."""
    return _extreme(site, np.fmax, lambda x: ~np.signbit(x))


def _extreme(site: Site, function: Callable[[Array, Array], Array], wins: Callable[[Array], Array]) -> Action:
    """With two operands, or with three of float32."""
    keeps_nan, takes_sign = site.has("NaN"), site.has("xorsign")

    def of_two(x: Array, y: Array) -> Array:
        sign = np.signbit(x) != np.signbit(y)
        if takes_sign:
            x, y = np.abs(x), np.abs(y)
        result = np.where(x == y, np.where(wins(x), x, y), function(x, y))
        if keeps_nan:
            result = np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), result)
        return np.where(sign, -result, result) if takes_sign else result

    def run(first: Array, *others: Array) -> Array:
        for each in others:
            first = of_two(first, each)
        return first

    kinds: Sequence[Type] = [site.type] * (len(site.operands) - 1)
    return elementwise(site, finished(site, run), kinds)
