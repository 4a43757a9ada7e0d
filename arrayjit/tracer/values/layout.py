"""In which order the axes of fresh arrays lie in memory.

NumPy's results keep the order of their operands, so that `x.T + 1` transposes nothing. An *order* names
the axes of an array from the one whose neighbours are farthest apart to the one whose are nearest:
`(0, 1)` is C's order of a matrix, `(1, 0)` Fortran's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from ...errors import NumberError
from ...ir.index import Affine
from ..record.trace import user_location
from ..record.view import View
from .extents import ONE, ZERO, is_at_least, numbers

__all__ = [
    "Order",
    "contiguity",
    "copy_order",
    "is_laid_out",
    "joined_order",
    "kept_order",
    "lies_in",
    "order_named",
    "shape_order",
]

Order = tuple[int, ...]
Steps = tuple[Union[int, None], ...]


def order_named(order: Any, default: str = "C") -> str:
    """An order as NumPy spells it, by one letter of either case; None is the default. Raises NumberError."""
    asked = default if order is None else str(order).upper()
    if asked not in ("C", "F", "A", "K"):
        words = f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})"
        raise NumberError(words, loc=user_location(), fix="order='C'")
    return asked


def kept_order(rank: int, views: Sequence[View]) -> Order:
    """The order of a result of `rank` axes of operands that broadcast to it: that of a ufunc's, as
    NumPy's iterator chooses it. Where operands disagree, C's order wins."""
    return _common_order(rank, [_aligned(view, rank) for view in views if view.rank > 1])


def joined_order(views: Sequence[View]) -> Order:
    """The order of arrays of one rank joined along an axis."""
    return _common_order(views[0].rank, [_known(view) for view in views])


def shape_order(rank: int, order: str) -> Order:
    """The order of an array of `rank` axes that is made from nothing."""
    axes = tuple(range(rank))
    return axes[::-1] if order_named(order) == "F" else axes


def copy_order(view: View, order: str) -> Order:
    """The order of a copy of one array: `order` as NumPy spells it, "K" for the array's own."""
    order = order_named(order, "K")
    if order == "A":
        order = "F" if contiguity(view, "F") and not contiguity(view, "C") else "C"
    if order != "K" or view.rank < 2 or contiguity(view, "C"):
        return shape_order(view.rank, order)
    strides = _strides(view)
    return tuple(sorted(range(view.rank), key=lambda axis: -abs(strides[axis])))


def is_laid_out(view: View, order: str) -> bool:
    """Whether an array that is asked for in `order`, as NumPy spells it, may be this one. Raises Retrace or
    ConcretizationError where that depends on extents that are not known."""
    order = order_named(order, "K")
    if order == "K":
        return True
    answers = [contiguity(view, one) for one in ("CF" if order == "A" else order)]
    if None in answers and True not in answers:
        numbers(view.shape, "an extent on which depends whether this line makes a copy")
    return any(answers)


def lies_in(view: View, order: Order) -> bool:
    """Whether the axes of an array of its own lie in the order, as far as they have neighbours."""
    known = _known(view)
    return _descends([known[axis] for axis in order])


def contiguity(view: View, order: str) -> bool | None:
    """Whether the cells lie one after another, in C's or Fortran's order; None where that depends on extents
    that are not known. A window of a tensor may stand for an array of its own, contiguous in NumPy."""
    if ZERO in view.shape:
        return True
    expected = ONE
    answer: bool | None = True
    pairs = list(zip(view.shape, _strides(view), strict=True))
    for extent, stride in pairs if order == "F" else reversed(pairs):
        if extent == ONE:
            continue
        if expected != Affine.of(stride):
            if expected.is_constant and is_at_least(extent, 2):
                return False if all(is_at_least(one, 1) for one in view.shape) else None
            answer = None
        expected = extent * expected.offset if expected.is_constant else expected
    return answer


def _strides(view: View) -> tuple[int, ...]:
    """Strides in elements. Symbolic ones count as C's order."""
    strides = view.element_strides()
    if strides is None:
        return tuple(range(view.rank, 0, -1))
    return tuple(stride.constant for stride in strides)


def _known(view: View) -> Steps:
    """How far apart neighbours along each axis are; None where there are no neighbours."""
    pairs = zip(view.shape, _strides(view), strict=True)
    return tuple(None if extent == ONE else abs(stride) for extent, stride in pairs)


def _aligned(view: View, rank: int) -> Steps:
    """As `_known`, along the axes of a shape of `rank` axes; None where the operand is repeated."""
    return (*[None] * (rank - view.rank), *(step or None for step in _known(view)))


def _common_order(rank: int, operands: Sequence[Steps]) -> Order:
    axes = tuple(range(rank))
    if all(_descends(steps) for steps in operands):
        return axes
    ordered: list[int] = []  # the nearest first
    for axis in reversed(axes):
        place = len(ordered)
        for earlier in range(place - 1, -1, -1):
            nearer = _is_nearer(axis, ordered[earlier], operands)
            if nearer is False:
                break
            if nearer:
                place = earlier
        ordered.insert(place, axis)
    return tuple(reversed(ordered))


def _descends(steps: Sequence[int | None]) -> bool:
    given = [step for step in steps if step is not None]
    return given == sorted(given, reverse=True)


def _is_nearer(axis: int, other: int, operands: Sequence[Steps]) -> bool | None:
    """Whether all operands that can tell have neighbours along `axis` nearer than along `other`; None
    where none can tell."""
    pairs = [(steps[axis], steps[other]) for steps in operands]
    answers = [one < two for one, two in pairs if one is not None and two is not None]
    return all(answers) if answers else None
