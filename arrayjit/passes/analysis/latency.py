"""After how many cycles results are there, and for how long units are busy with them."""

from __future__ import annotations

from ...ir.code import Pipes
from ...ir.expr import Apply, Cast, Expr, Gather, Load, dtype_of

__all__ = ["SLOW", "USUAL", "busy", "ready"]

USUAL = Pipes()
"""Those of most processors."""

SLOW = {"divide": (13, 9), "sqrt": (20, 12)}
"""After how many cycles the result is there, and for how many nothing else is multiplied, unless what divides
is apart."""

MULTIPLIES = frozenset(("multiply", "fma"))

LOADED, LOOKED_UP, COMPUTED = 8, 6, 4
"""After how many cycles a result is there."""


def ready(node: Expr, operands: tuple[int, ...], pipes: Pipes = USUAL) -> int:
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
            return start + (COMPUTED if op.name in MULTIPLIES else pipes.added)
        case Apply() | Cast():
            return start + 1
        case _:
            return start


def busy(node: Expr, pipes: Pipes = USUAL) -> int:
    """For how many cycles a unit that multiplies does nothing else."""
    match node:
        case Apply(op=op) if op.name in SLOW:
            return 1 if pipes.divides_apart else SLOW[op.name][1]
        case Apply(op=op, dtype=dtype):
            return int(dtype.is_float and op.name in MULTIPLIES)
        case _:
            return 0
