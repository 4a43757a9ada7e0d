"""Where quantiles lie among sorted cells, by each of NumPy's methods: between which two, and how far on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib._function_base_impl import (  # type: ignore[attr-defined]
    _get_gamma,
    _get_indexes,
    _QuantileMethods,
)

from ...errors import ShapeError, UnsupportedError
from ..record.trace import user_location

__all__ = ["is_a_cell", "neighbours", "place_in_the_run", "require_method"]

_CELLS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_CORRECTIONS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}


def require_method(method: str) -> None:
    """Raise unless NumPy has the method."""
    if method not in _QuantileMethods:
        words = f"{method!r} is not a valid method. Use one of: {_QuantileMethods.keys()}"
        raise ShapeError(words, loc=user_location(), fix="use method='linear'")


def is_a_cell(method: str, fractions: Any) -> bool:
    """Whether quantiles are cells as they are: by the method, or because the ends are wanted, as integers."""
    return method in _CELLS or (method == "linear" and fractions.dtype.kind in "biu")


def neighbours(method: str, fractions: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of so many cells, between which each quantile lies, and how far on."""
    found = _QuantileMethods[method]
    places = np.asanyarray(found["get_virtual_index"](count, fractions))
    if is_a_cell(method, fractions):
        return places.astype(np.intp), places.astype(np.intp), np.zeros(places.shape)
    before, after = _get_indexes(np.empty(0), places, count)
    return before, after, _get_gamma(places, before, found)


def place_in_the_run(method: str, last: Any, fraction: Any) -> Any:
    """Where a quantile lies among cells of which the last one stands at `last`, a number of the run's."""
    if fraction.dtype.kind not in "biu":
        last = last.astype(fraction.dtype)
    match method:
        case "linear":
            return last * fraction
        case "lower":
            return np.floor(last * fraction)
        case "higher":
            return np.ceil(last * fraction)
        case "nearest":
            return np.rint(last * fraction)
        case "midpoint":
            return 0.5 * (np.floor(last * fraction) + np.ceil(last * fraction))
    if method not in _CORRECTIONS:
        raise UnsupportedError(
            f"a quantile by method={method!r} of cells that only the run counts is not supported",
            loc=user_location(),
            fix="use method='linear', 'lower', 'higher', 'nearest', 'midpoint', 'hazen' or 'weibull'",
        )
    alpha, beta = _CORRECTIONS[method]
    return (last + 1) * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
