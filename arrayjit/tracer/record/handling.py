"""What a traced function tells NumPy to do about floating-point errors, by `np.errstate` and `np.seterr`.

Compiled code goes on after them, as NumPy does where it warns or ignores. Whatever else is wanted is refused
where it would matter, if the function wants it itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import UnsupportedError
from ...ir.assign import Assign
from ...ir.expr import Apply, Cast, Expr, dtype_of
from ...ir.ops import OPS
from ...ir.walk import walk

__all__ = ["require_goes_on"]

_GOING_ON = ("ignore", "warn")
_DIVISIONS = tuple(OPS[name] for name in ("floor_divide", "remainder", "fmod"))


def require_goes_on(assign: Assign, before: Mapping[str, object]) -> None:
    """Raise UnsupportedError if the user is to be told of errors that the assignment may make, in a way that
    did not hold `before` the function was called."""
    now = np.geterr()
    told = [f"{kind}={how!r}" for kind, how in now.items() if how not in _GOING_ON and how != before[kind]]
    if told and (_sums(assign) or any(map(_may_fail, walk(assign.value)))):
        raise UnsupportedError(
            f"np.errstate({', '.join(told)}) is not supported in a jitted function",
            loc=assign.loc,
            fix='look at the numbers, as with np.isfinite(x), or compile with check="nan"',
        )


def _sums(assign: Assign) -> bool:
    return assign.accum is not None and assign.into.dtype.is_inexact


def _may_fail(node: Expr) -> bool:
    match node:
        case Apply(op=op, dtype=dtype):
            return dtype.is_inexact or op in _DIVISIONS
        case Cast(arg=arg):
            return dtype_of(arg).is_inexact
        case _:
            return False
