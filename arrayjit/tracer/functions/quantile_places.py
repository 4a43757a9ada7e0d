"""Where quantiles lie among sorted cells, by each of NumPy's methods: between which two, and how far on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError

__all__ = ["is_a_cell", "neighbours", "place_in_the_run", "require_method"]

_CELLS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_CORRECTIONS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_METHODS = dict.fromkeys((*_CELLS, *_CORRECTIONS, "linear", "midpoint", "averaged_inverted_cdf"))


def require_method(method: str) -> None:
    """Raise unless NumPy has the method."""
    if method not in _METHODS:
        words = f"{method!r} is not a valid method. Use one of: {_METHODS.keys()}"
        raise ShapeError(words, fix="use method='linear'")


def is_a_cell(method: str, fractions: Any) -> bool:
    """Whether quantiles are cells as they are: by the method, or because the ends are wanted, as integers."""
    return method in _CELLS or (method == "linear" and fractions.dtype.kind in "biu")


def neighbours(method: str, fractions: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of so many cells, between which each quantile lies, and how far on."""
    if is_a_cell(method, fractions):
        cells = np.quantile(np.arange(count), fractions, method=method).astype(np.intp)  # type: ignore[call-overload]
        return cells, cells, np.zeros(cells.shape)
    is_mean = method == "averaged_inverted_cdf"
    places = count * fractions - 1 if is_mean else place_in_the_run(method, np.asarray(count - 1), fractions)
    before = np.clip(np.floor(places), 0, count - 1).astype(np.intp)
    after = np.where(places < 0, 0, np.minimum(before + 1, count - 1))
    further = places - np.floor(places)
    if is_mean:
        further = np.where(further == 0, 0.5, 1.0)
    return before, after, np.asarray(further, places.dtype)


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
            fix="use method='linear', 'lower', 'higher', 'nearest', 'midpoint', 'hazen' or 'weibull'",
        )
    alpha, beta = _CORRECTIONS[method]
    return (last + 1) * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
