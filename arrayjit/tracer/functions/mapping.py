"""The user's own functions of rows and numbers, one after another: `np.apply_along_axis`, `np.vectorize`,
`np.piecewise`; NumPy programs with one loop each."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ..record.registry import creates, implements
from .adopted import numpy_program
from .operands import axis_of, refuse

__all__ = ["Vectorized"]


@implements(np.apply_along_axis)
@numpy_program
def apply_along_axis(func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    moved = np.moveaxis(np.asarray(arr), axis, -1)
    if 0 in moved.shape[:-1]:
        words = "Cannot apply_along_axis when any iteration dimensions are 0"
        raise ShapeError(words, fix="call it with arrays that have rows")
    rows = moved.reshape(prod(moved.shape[:-1]), moved.shape[-1])
    first = np.asarray(func1d(rows[0], *args, **kwargs))
    results = np.empty((len(rows), *first.shape), first.dtype)
    results[0] = first
    for k in range(1, len(rows)):
        results[k] = func1d(rows[k], *args, **kwargs)
    along = axis_of(axis, moved.ndim)
    places = [along + place for place in range(first.ndim)]
    shaped = results.reshape(*moved.shape[:-1], *first.shape)
    return np.moveaxis(shaped, list(range(moved.ndim - 1, shaped.ndim)), places)


@implements(np.piecewise)
@numpy_program
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    cells = np.asarray(x)
    is_one = np.ndim(condlist) == 0 or (np.ndim(condlist[0]) == 0 and cells.ndim > 0)
    conditions = [condlist] if is_one else list(condlist)
    _require_functions(len(conditions), len(funclist))
    masks = [np.broadcast_to(np.asarray(one, dtype=bool), cells.shape) for one in conditions]
    if len(funclist) == len(masks) + 1:
        rest = masks[0]
        for mask in masks[1:]:
            rest = rest | mask
        masks.append(~rest)
    result = np.zeros_like(cells)
    for mask, function in zip(masks, funclist, strict=True):
        result[mask] = function(cells[mask], *args, **kw) if callable(function) else function
    return result


def _require_functions(conditions: int, functions: int) -> None:
    if functions not in (conditions, conditions + 1):
        raise ShapeError(
            f"with {conditions} condition(s), either {conditions} or {conditions + 1} functions are expected",
            fix="give a function for each condition, and one for the rest",
        )


@creates(np.vectorize)
class Vectorized:
    """`np.vectorize(function)`: the function of one element after another, each a Python number."""

    def __init__(self, pyfunc: Any, otypes: Any = None, doc: Any = None, excluded: Any = None,
                 cache: bool = False, signature: Any = None) -> None:  # fmt: skip
        fix = "write a loop: for i in range(len(x)): out[i] = function(x[i])"
        refuse("np.vectorize", fix, excluded=excluded or None, signature=signature)
        self.pyfunc = pyfunc
        self.otypes = otypes

    def __call__(self, *args: Any) -> Any:
        return _mapped(self.pyfunc, self.otypes, args)


@numpy_program
def _mapped(function: Callable[..., Any], otypes: Any, args: tuple[Any, ...]) -> Any:
    arrays = np.broadcast_arrays(*args)
    shape = arrays[0].shape
    rows = [array.ravel() for array in arrays]
    if otypes:
        results = np.empty(len(rows[0]), np.dtype(otypes[0]))
    else:
        first = function(*[row[0] for row in rows])
        results = np.empty(len(rows[0]), np.asarray(first).dtype)
    for k in range(len(results)):
        results[k] = function(*[row[k].item() for row in rows])
    return results.reshape(shape)
