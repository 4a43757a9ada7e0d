"""Bits in bytes: `packbits` and `unpackbits`, as NumPy programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ..record.registry import implements
from ..values.array import describe
from ..values.elementwise import as_array
from .adopted import numpy_program
from .operands import refuse

__all__: list[str] = []


@implements(np.packbits)
@numpy_program
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """Eight flags to a byte; the last byte is filled up with zeros."""
    rows = _in_rows(a, axis, "iub", "Expected an input array of integer or boolean data type")
    count = rows.shape[-1]
    flags = np.zeros((*rows.shape[:-1], -(-count // 8), 8), np.uint8)
    flags.reshape((*rows.shape[:-1], -(-count // 8) * 8))[..., :count] = rows != 0
    return _back(np.sum(flags << _places("np.packbits", bitorder), axis=-1, dtype=np.uint8), axis)


@implements(np.unpackbits)
@numpy_program
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    """The bits of each byte; `count` says how many are wanted, or, below zero, how many are left out."""
    rows = _in_rows(a, axis, "u", "Expected an input array of unsigned byte data type")
    bits = (rows[..., None] >> _places("np.unpackbits", bitorder)) & 1
    bits = bits.reshape((*rows.shape[:-1], 8 * rows.shape[-1]))
    if count is not None:
        wanted = count if count >= 0 else bits.shape[-1] + count
        if wanted < 0:
            words = "-count larger than number of elements"
            raise ShapeError(words, details=(describe(rows),), fix="leave out fewer bits")
        whole = np.zeros((*rows.shape[:-1], wanted), np.uint8)
        whole[..., : bits.shape[-1]] = bits[..., :wanted]
        bits = whole
    return _back(bits, axis)


def _in_rows(a: Any, axis: Any, kinds: str, words: str) -> Any:
    """The array with the axis last, or flat if none is named."""
    array: Any = as_array(a)
    if array.dtype.kind not in kinds or (kinds == "u" and array.dtype != np.uint8):
        raise DTypeError(words, details=(describe(array),), fix="use x.astype(np.uint8)")
    return array.ravel() if axis is None else np.moveaxis(array, axis, -1)


def _back(rows: Any, axis: Any) -> Any:
    return rows if axis is None else np.moveaxis(rows, -1, axis)


def _places(function: str, bitorder: str) -> np.ndarray:
    """How far each of the eight bits is shifted."""
    refuse(
        function,
        "use bitorder='big' or 'little'",
        bitorder=None if bitorder in ("big", "little") else bitorder,
    )
    places = np.arange(8, dtype=np.uint8)
    return places[::-1] if bitorder == "big" else places
