"""`math.gamma` and `math.lgamma` of traced numbers, in the steps of CPython: Lanczos' approximation with 13
terms, reflected for negative numbers.

What is not computed by it (poles, NaN, infinities, numbers near zero or beyond 200) goes through as 1.5, so
that nothing on the way is infinite or NaN where the result is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..functions.creation import constant_of

__all__ = ["gamma", "log_gamma"]

_ABOVE = (
    23531376880.410759, 42919803642.649099, 35711959237.355668, 17921034426.037210, 6039542586.3520280,
    1439720407.3117216, 248874557.86205416, 31426415.585400194, 2876370.6289353724, 186056.26539522350,
    8071.6720023658162, 210.82427775157935, 2.5066282746310003,
)  # fmt: skip
_BELOW = (
    0.0, 39916800.0, 120543840.0, 150917976.0, 105258076.0, 45995730.0, 13339535.0, 2637558.0, 357423.0,
    32670.0, 1925.0, 66.0, 1.0,
)  # fmt: skip
_G = 6.024680040776729583740234375
_SHIFT = _G - 0.5
_TINY = 1e-20
_LARGE = 200.0
_FACTORIALS = [float(math.factorial(n)) for n in range(23)]


def gamma(x: Any) -> tuple[Any, Any, Any]:
    """The gamma function of a float64; whether it is defined there; and whether it is not too large."""
    size = np.abs(x)
    is_whole = (x == np.floor(x)) & np.isfinite(x)
    is_defined = ~((is_whole & (x <= 0)) | (x == -np.inf))
    is_usual = is_defined & (size >= _TINY) & (size <= _LARGE)
    result = _usual_gamma(np.where(is_usual, x, 1.5))
    place = np.where(is_whole & (x >= 1) & (x <= 23), x, 1.0).astype(np.int64)
    result = np.where(is_whole & (x <= 23), constant_of(_FACTORIALS).take(place - 1, mode="clip"), result)
    is_near = is_defined & (size < _TINY)
    result = np.where(is_near, 1 / np.where(is_near, x, 1.0), result)
    far = np.where(
        x > 0, np.inf, np.where(np.fmod(np.floor(np.where(size < np.inf, x, 0)), 2) == 0, 0.0, -0.0)
    )
    result = np.where(size > _LARGE, far, result)
    result = np.where(np.isnan(x), x, result)
    return result, is_defined, (size == np.inf) | ~np.isinf(result)


def log_gamma(x: Any) -> tuple[Any, Any, Any]:
    """The logarithm of the gamma function's size, and the same of it."""
    size = np.abs(x)
    is_whole = (x == np.floor(x)) & np.isfinite(x)
    is_defined = ~(is_whole & (x <= 0))
    is_usual = is_defined & (size >= _TINY) & np.isfinite(x)
    usual = np.where(is_usual, x, 1.5)
    result = _usual_log_gamma(usual, np.abs(usual))
    result = np.where(is_whole & (x <= 2), 0.0, result)
    is_near = is_defined & (size < _TINY)
    result = np.where(is_near, -np.log(np.where(is_near, size, 1.0)), result)
    result = np.where(np.isfinite(x), result, size)
    return result, is_defined, (size == np.inf) | ~np.isinf(result)


def _usual_gamma(x: Any) -> Any:
    size = np.abs(x)
    shifted = size + _SHIFT
    is_large = size > _SHIFT
    lost = np.where(is_large, (shifted - size) - _SHIFT, (shifted - _SHIFT) - size) * _G / shifted
    is_moderate = size < 140
    power = np.power(shifted, np.where(is_moderate, size - 0.5, size / 2 - 0.25))
    terms, scale = _terms(size), np.exp(shifted)
    upper = terms / scale
    upper = (upper + lost * upper) * power
    upper = np.where(is_moderate, upper, upper * np.where(is_moderate, 1.0, power))
    lower = -math.pi / np.where(x < 0, _sine(size), 1.0) / size * scale / terms
    lower = (lower - lost * lower) / power
    lower = np.where(is_moderate, lower, lower / np.where(is_moderate, 1.0, power))
    return np.where(x < 0, lower, upper)


def _usual_log_gamma(x: Any, size: Any) -> Any:
    upper = np.log(_terms(size)) - _G + (size - 0.5) * (np.log(size + _SHIFT) - 1)
    sine = np.where(x < 0, np.abs(_sine(size)), 1.0)
    return np.where(x < 0, math.log(math.pi) - np.log(sine) - np.log(size) - upper, upper)


def _terms(size: Any) -> Any:
    """Lanczos' sum, as a quotient of polynomials of the number, or of its inverse where it is large."""
    is_small = size < 5
    step = np.where(is_small, size, 1 / size)
    above = below = 0.0
    for n in range(len(_ABOVE)):
        above = above * step + np.where(is_small, _ABOVE[-1 - n], _ABOVE[n])
        below = below * step + np.where(is_small, _BELOW[-1 - n], _BELOW[n])
    return above / below


def _sine(size: Any) -> Any:
    """The sine of pi times a number that is not negative, exact near its zeros."""
    turned = np.fmod(size, 2.0)
    quarter = np.rint(2 * turned)
    half = np.where(quarter == 4, turned - 2, np.where(quarter == 2, 1 - turned, turned))
    aside = np.where(quarter == 3, 1.5 - turned, turned - 0.5)
    is_aside = (quarter == 1) | (quarter == 3)
    sign = np.where(quarter == 3, -1.0, 1.0)
    return np.where(is_aside, sign * np.cos(math.pi * np.where(is_aside, aside, 0.0)), np.sin(math.pi * half))
