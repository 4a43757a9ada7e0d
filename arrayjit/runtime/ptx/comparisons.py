"""Comparisons, and choices by them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .elementwise import elementwise
from .rounding import flushed
from .site import Action, Site
from .threads import Threads
from .types import Array, Type

__all__ = ["ORDERS", "choose", "choose_by_sign", "is_of_class", "set_predicate", "set_register"]

Compare = Callable[[Array, Array], Array]


def _unordered(x: Array, y: Array) -> Array:
    return np.isnan(x) | np.isnan(y)


def _or_unordered(compare: Compare) -> Compare:
    return lambda x, y: compare(x, y) | _unordered(x, y)


ORDERS: dict[str, Compare] = {
    "eq": np.equal,
    "ne": lambda x, y: (x < y) | (x > y),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "equ": _or_unordered(np.equal),
    "neu": np.not_equal,
    "ltu": _or_unordered(np.less),
    "leu": _or_unordered(np.less_equal),
    "gtu": _or_unordered(np.greater),
    "geu": _or_unordered(np.greater_equal),
    "num": lambda x, y: ~_unordered(x, y),
    "nan": _unordered,
}
"""By their names. Ordered ones are false where an operand is NaN, `ne` too."""

_COMBINED: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _compared(site: Site) -> Callable[[Threads], Array]:
    kind = site.type
    compare = ORDERS[site.choice(*ORDERS)]
    x, y = site.read(1, kind), site.read(2, kind)
    if site.has("ftz") and kind.name == "f32":
        return lambda threads: compare(flushed(x(threads)), flushed(y(threads)))
    return lambda threads: compare(x(threads), y(threads))


def _combined(site: Site) -> Callable[[Array, Threads], Array]:
    """The result of a comparison, and of its opposite, with the predicate that the instruction names."""
    if len(site.operands) == 3:
        return lambda values, threads: values
    combine = _COMBINED[site.choice(*_COMBINED)]
    third = site.read(3, "pred")
    return lambda values, threads: combine(values, third(threads))


def set_predicate(site: Site) -> Action:
    """`setp`: `p|q` take the comparison and its opposite."""
    compare, combine = _compared(site), _combined(site)
    store, store_opposite = site.write_pair("pred")

    def run(threads: Threads) -> None:
        holds = compare(threads)
        first = combine(holds, threads)
        if store_opposite is not None:
            store_opposite(threads, combine(~holds, threads))
        store(threads, first)

    return run


def set_register(site: Site) -> Action:
    """`set`: all ones or zero; 1.0 or 0.0 for a float."""
    result = site.types[0]
    compare, combine = _compared(site), _combined(site)
    store = site.write(0, result)
    true = result.dtype.type(1) if result.is_float else np.array(-1).astype(result.dtype)[()]

    def run(threads: Threads) -> None:
        store(threads, np.where(combine(compare(threads), threads), true, result.dtype.type(0)))

    return run


def _chosen(x: Array, y: Array, holds: Array) -> Array:
    return np.where(holds, x, y)


def choose(site: Site) -> Action:
    """`selp`: by a predicate."""
    kind = f"b{site.type.bits}" if site.type.name != "pred" else "pred"
    return elementwise(site, _chosen, [kind, kind, "pred"])


def choose_by_sign(site: Site) -> Action:
    """`slct`: by whether the third operand is at least zero."""
    result, by = site.types
    kinds: list[Type | str] = [f"b{result.bits}", f"b{result.bits}", by]
    return elementwise(site, lambda x, y, z: _chosen(x, y, z >= 0), kinds)


_CLASSES: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


def is_of_class(site: Site) -> Action:
    """`testp`."""
    test = _CLASSES[site.choice(*_CLASSES)]
    store, read = site.write(0, "pred"), site.read(1, site.type)
    return lambda threads: store(threads, test(read(threads)))
