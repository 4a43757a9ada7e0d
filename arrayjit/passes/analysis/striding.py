"""Loops of steps whose own loops stride through arrays: `a[n + k*j] = ...` for j = 0, 1, ... in step k."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...frozen import frozen
from ...ir.expr import Apply, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Comment, Define, For, If, LoopKind, Stmt, Store, walk_statements, written
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from .access import Ranges, effects, loads, reads

__all__ = ["Steps", "Stride"]

ZERO = Affine.of(0)


@frozen
class Stride:
    """A loop whose iterations stand at the positions `start`, `start + step`, `start + 2 * step`, ..., which
    they call `position`."""

    loop: For
    position: Symbol
    start: Affine
    step: Affine

    @staticmethod
    def of(loop: For, arrays: Collection[Tensor], ranges: Ranges) -> Stride | None:
        """None where it is not known that they touch no other cells of the arrays, and go upwards."""
        runs, does = loop.hi.bounds(ranges), effects(loop.body, ranges)
        if runs is None or runs[0] < 0 or (loop.lo, loop.step) != (ZERO, 1) or does.leaves or does.updates:
            return None
        values = {stmt.symbol: stmt.value for stmt in loop.body if isinstance(stmt, Bind)}
        own = {loop.symbol, *values}
        match [*set(_positions(loop.body, arrays))]:
            case [Affine(symbol=Symbol() as position)] if position in values:
                stride = Stride._by(loop, position, values[position])
            case _:
                return None
        if stride is None or not own.isdisjoint((*stride.start.symbols, *stride.step.symbols)):
            return None
        apart = stride.step.bounds(ranges)
        return stride if apart is not None and apart[0] > 0 else None

    @staticmethod
    def _by(loop: For, position: Symbol, value: Expr) -> Stride | None:
        """How a position follows from the number of the iteration."""
        match value:
            case Apply(
                op=add, args=(Index(value=start), Apply(op=multiply, args=(Index(value=step), count)))
            ):
                found = (add, multiply, count)
                known = (OPS["add"], OPS["multiply"], Index(Affine.of(loop.symbol)))
                return Stride(loop, position, start, step) if found == known else None
            case _:
                return None


def _positions(body: tuple[Stmt, ...], arrays: Collection[Tensor]) -> Iterator[Affine | None]:
    """Where along their first axis statements touch the arrays; None for anywhere."""
    for stmt in walk_statements(body):
        touched = [*reads(stmt)]
        if isinstance(stmt, Store):
            touched.append((stmt.tensor, stmt.index))
        elif (whole := written(stmt)) is not None:
            touched.append((whole, None))
        for tensor, index in touched:
            if tensor.storage in arrays:
                yield index[0] if index and tensor in arrays else None


@frozen
class Steps:
    """A loop of steps that stride through `arrays`; `strides` are the loops of its `body`, in their order.
    With a `condition`, which no step changes, that is done in those steps alone in which it holds."""

    loop: For
    body: tuple[Stmt, ...]
    condition: Expr | None
    arrays: Collection[Tensor]
    strides: Sequence[Stride]

    @staticmethod
    def of(loop: For, ranges: Ranges) -> Steps | None:
        """None where steps do anything else, or one has to go on before another has been everywhere."""
        condition: Expr | None = None
        match loop.body:
            case (If(condition=condition, body=body, orelse=()),):
                pass
            case body:
                pass
        inner = [stmt for stmt in body if isinstance(stmt, For)]
        rest = tuple(stmt for stmt in body if not isinstance(stmt, For))
        if not inner or not all(one.kind is LoopKind.SEQUENTIAL for one in (loop, *inner)):
            return None
        arrays = effects(inner, ranges).writes.keys()
        if not all(isinstance(stmt, (Bind, Define, Comment)) for stmt in rest) or [*_positions(rest, arrays)]:
            return None
        if condition is not None and any(tensor.storage in arrays for tensor, _ in loads(condition)):
            return None
        strides = [stride for one in inner if (stride := Stride.of(one, arrays, ranges)) is not None]
        return Steps(loop, body, condition, arrays, strides) if len(strides) == len(inner) else None
