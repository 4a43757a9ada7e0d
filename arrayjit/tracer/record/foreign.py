"""Arrays that compiled code cannot use where they are, and the copies that it gets instead.

A copy lies in memory as the original does, so that views, reshapes and copies of it are those of the
original: element `k` of the copy's memory stands for byte `k * pitch` of the original's.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from ...late import Late

if TYPE_CHECKING:
    import fractions
else:
    fractions = Late("fractions")

__all__ = ["element_strides", "native_copy", "needs_copy", "pitch"]


def needs_copy(array: np.ndarray) -> bool:
    """Whether code needs a copy: of foreign byte order, unaligned, or with strides that are no multiples
    of the element."""
    flags = array.flags
    if not (array.dtype.isnative and flags.aligned):
        return True
    return not flags.c_contiguous and any(stride % array.itemsize for stride in array.strides)


def pitch(array: np.ndarray) -> int | fractions.Fraction:
    """The size of an element; where strides are no multiples of it, half of their common divisor: a copy
    leaves every other element unused, so that neighbours do not touch, as in the original."""
    if array.flags.c_contiguous or not any(stride % array.itemsize for stride in array.strides):
        return array.itemsize
    return fractions.Fraction(gcd(*array.strides), 2)


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements: of the array itself, or of its copy."""
    unit = pitch(array)
    return tuple(int(stride // unit) for stride in array.strides)


def native_copy(array: np.ndarray) -> np.ndarray:
    """An aligned copy in native byte order, with the same layout."""
    dtype = array.dtype.newbyteorder("=")
    if array.flags.c_contiguous:
        return np.array(array, dtype, order="C", copy=True, subok=False)
    strides = element_strides(array)
    reaches = [(extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True)]
    before = -sum(min(0, reach) for reach in reaches)
    memory = np.empty(before + sum(max(0, reach) for reach in reaches) + 1, dtype)
    steps = tuple(stride * dtype.itemsize for stride in strides)
    copy = np.lib.stride_tricks.as_strided(memory[before:], array.shape, steps)
    copy[...] = array
    return copy
