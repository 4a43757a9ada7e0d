"""Arrays that are larger or smaller by the same extents in every iteration of a loop (`v = v[1:] + v[:-1]`).

What such an array is after one iteration tells its extents at the start of any, as affine expressions in the
iteration's number. That is an assumption, which the next record of the body confirms or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.index import Affine, Symbol
from ..record.view import View
from .iterations import Iterations

__all__ = ["constant_steps", "earliest", "later", "moved", "stepped", "stepped_view"]

Values = Mapping[Symbol, Affine]


def moved(view: View, values: Values) -> View:
    """The view with symbols of its index and shape replaced."""
    return View(
        view.tensor,
        tuple(extent.substitute(values) for extent in view.shape),
        view.axes,
        tuple(part.substitute(values) for part in view.index),
        view.writeable,
    )


def later(iterations: Iterations) -> Values:
    """What makes an expression for the start of an iteration one for its end."""
    symbol = iterations.symbol
    return {symbol: Affine.of(symbol) + iterations.shift}


def earliest(iterations: Iterations) -> Values:
    """What makes an expression for the start of an iteration one for before the loop."""
    return {iterations.symbol: iterations.symbol_after(Affine.of(1))}


def constant_steps(
    before: Sequence[Affine], after: Sequence[Affine], iterations: Iterations
) -> tuple[int, ...] | None:
    """By how much each number grows from before the loop to after its first iteration; None where these are
    no constants."""
    first = earliest(iterations)
    steps = [new.substitute(first) - old for old, new in zip(before, after, strict=True)]
    return tuple(step.offset for step in steps) if all(step.is_constant for step in steps) else None


def stepped(before: Sequence[Affine], steps: Sequence[int], iterations: Iterations) -> tuple[Affine, ...]:
    """The numbers at the start of any iteration."""
    return tuple(old + iterations.number * step for old, step in zip(before, steps, strict=True))


def stepped_view(before: View, after: View, iterations: Iterations) -> View | None:
    """A view that moves over its array or loses its ends (`x = x[1:]`), after any iteration; None for another
    one."""
    if before.tensor is not after.tensor or before.rank != after.rank:
        return None
    old, new = (*before.shape, *before.at(after.axes)), (*after.shape, *after.index)
    steps = constant_steps(old, new, iterations)
    if steps is None or not any(steps):
        return None
    parts = tuple(part.substitute(later(iterations)) for part in stepped(old, steps, iterations))
    return View(after.tensor, parts[: after.rank], after.axes, parts[after.rank :], after.writeable)
