"""After how many cycles results are there, and for how long units are busy with them."""

from __future__ import annotations

from ...ir.expr import Apply, Cast, Expr, Gather, Load, dtype_of

__all__ = ["AT_ONCE", "busy", "ready"]

AT_ONCE = 2
"""So many operations are begun in a cycle, one of which multiplies."""

SLOW = {"divide": (13, 9), "sqrt": (20, 12)}
"""After how many cycles the result is there, and for how many nothing else is multiplied."""

MULTIPLIES = frozenset(("multiply", "fma"))

LOADED, LOOKED_UP, COMPUTED = 8, 6, 4
"""After how many cycles a result is there."""


def ready(node: Expr, operands: tuple[int, ...]) -> int:
    """When a value is there whose operands are."""
    start = max(operands, default=0)
    match node:
        case Load() | Gather():
            return start + LOADED
        case Apply(op=op) if op.tables:
            return start + LOOKED_UP
        case Apply(op=op) if op.name in SLOW:
            return start + SLOW[op.name][0]
        case Apply(op=op, args=args) if dtype_of(args[0]).is_float and op.cost >= 1:
            return start + COMPUTED
        case Apply() | Cast():
            return start + 1
        case _:
            return start


def busy(node: Expr) -> int:
    """For how many cycles nothing else is multiplied."""
    match node:
        case Apply(op=op) if op.name in SLOW:
            return SLOW[op.name][1]
        case Apply(op=op, dtype=dtype):
            return int(dtype.is_float and op.name in MULTIPLIES)
        case _:
            return 0
