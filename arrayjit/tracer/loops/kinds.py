"""One value or the other, as the compiled function finds: the kind that both have, and the memory for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtype import BOOL, from_numpy
from ...ir.expr import Apply, Expr, convert
from ...ir.index import Affine
from ...ir.ops import OPS
from ..record.retrace import Reason
from ..record.trace import Trace
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand, operand_at
from ..values.integer import SymbolicInt
from ..values.layout import copy_order
from ..values.numbers import as_scalar
from .carries import Kind, is_array, kind_of

__all__ = ["choose", "common_kind", "memory", "put", "stand_in", "truth"]

_WEAK = (bool, int, float, complex)
_ONE_OF_BOTH = Reason(
    "an array of no axes is written that may be the same as another one, of which max or min chose it",
    None,
    "choose between numbers: take arrays of no axes with [()], as in np.where(...)[()]",
)


def common_kind(one: Any, other: Any) -> Kind | None:
    """The kind of which both values are, or as which numbers keep their value, be it an array of no axes;
    None if there is none."""
    mine, theirs = kind_of(one), kind_of(other)
    if mine is None or theirs is None or mine == theirs:
        return mine if theirs is not None else None
    kind = _wider(mine, theirs)
    fits = kind is not None and all(kind_of(value) == kind or kind.holds(value) for value in (one, other))
    return kind if fits else None


def _wider(mine: Kind, theirs: Kind) -> Kind | None:
    if mine.weak is not None and theirs.weak is not None:
        return max(mine, theirs, key=lambda kind: _WEAK.index(kind.weak))
    number, kind = (theirs, mine) if mine.is_array or theirs.weak is not None else (mine, theirs)
    if number.is_array or kind.shape:
        return None
    given = number.dtype.numpy if number.weak is None else number.weak(0)
    is_kept = from_numpy(np.result_type(given, kind.dtype.numpy)) is kind.dtype
    return kind if is_kept and (kind.is_array or number.weak is not None) else None


def memory(kind: Kind, trace: Trace, like: Any = None) -> SymbolicArray:
    """A value of this kind that is written later; an array lies in memory as `like` does."""
    order = copy_order(like.cells, "K") if kind.is_array and type(like) is SymbolicArray else None
    view = trace.window(kind.shape, kind.dtype, order=order)
    return SymbolicArray(view, trace, kind.weak, kind.is_scalar)


def stand_in(leaf: Any, trace: Trace) -> Any:
    """A value of the kind of a leaf that nothing reads."""
    kind = kind_of(leaf)
    assert kind is not None
    if kind.is_array:
        return memory(kind, trace, leaf)
    return kind.dtype.numpy.type(0) if kind.weak is None else kind.weak(0)


def put(target: SymbolicArray, value: Any, trace: Trace) -> None:
    """Write the value into memory of a kind that holds it."""
    operand = as_operand(value, trace) if type(value) is not SymbolicArray else value
    trace.store(target.cells, lambda position: operand_at(operand, position, target.element_type))


def truth(value: Any, trace: Trace) -> bool | Expr:
    """What `if value` asks: a bool where it is known while tracing, else a bool expression."""
    if type(value) is SymbolicInt:
        value = as_scalar(value, trace)
    if type(value) is not SymbolicArray:
        return bool(value)
    as_operand(value, trace)
    if any(extent != Affine.of(1) for extent in value.cells.shape):
        return bool(value)
    known = trace.known(value.cells)
    return convert(value.load((0,) * value.ndim), BOOL) if known is None else bool(known.all())


def choose(condition: Expr, yes: Any, no: Any, trace: Trace) -> SymbolicArray | None:
    """The number `yes` where the condition holds, else `no`, either of which may be an array of no axes; None
    where they have no kind in common."""
    kind = common_kind(yes, no)
    if kind is None or kind.shape:
        return None
    cases = tuple(operand_at(as_operand(value, trace), (), kind.dtype) for value in (yes, no))
    view = trace.compute((), kind.dtype, lambda _: Apply(OPS["where"], (condition, *cases), kind.dtype))
    for value in (yes, no):
        if is_array(value):
            trace.sameness.note_choice(view.tensor, value.cells.tensor.storage, _ONE_OF_BOTH)
    return SymbolicArray(view, trace, kind.weak, kind.is_scalar)
