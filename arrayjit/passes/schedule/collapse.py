"""collapse: two loops that together walk straight through memory become one.

    for i in parallel(0, 480):
        for j in parallel(0, 3):            ->      for i in parallel(0, 1440):
            y[i, j] = add(x[i, j], f32(1.0))            y_flat[i] = add(x_flat[i], f32(1.0))

Every access must either advance by the same step from the last iteration of a row to the first of the
next as within the row, or not move at all. Rows shorter than a vector then fill vectors, and a sum over
all axes becomes one long sum. The order of the iterations is the same as before.
"""

from __future__ import annotations

from dataclasses import field

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Index
from ...ir.index import Affine, Symbol, affine
from ...ir.loops import For, Kernel, LoopKind, Stmt, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import expressions, rewrite_cells, rewrite_loops_inside_out, walk
from ..analysis.strides import affine_accesses, stride

__all__ = ["collapse"]


def collapse(kernel: Kernel, caps: Caps) -> Kernel:
    """Every nest with as few loops as memory allows."""
    flattening = _Flattening()
    return kernel.with_body(flattening.body(kernel.body))


@slotted
class _Flattening:
    """The flat form of each tensor that has needed one."""

    flat: dict[Tensor, Tensor] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return rewrite_loops_inside_out(body, self._one_loop)

    def _one_loop(self, outer: For) -> tuple[Stmt, ...] | None:
        """One loop over `outer * count + inner`."""
        inner = outer.body[0] if len(outer.body) == 1 else None
        if not isinstance(inner, For) or not _walks_straight(outer, inner):
            return None
        assert inner.trips is not None
        count, joined = inner.trips, Symbol(outer.symbol.hint)
        start = {outer.symbol: Affine.of(0), inner.symbol: Affine.of(0)}

        def cell(tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
            step = stride(tensor, index, inner.symbol)
            if not step:
                return tensor, index
            return self.of(tensor), (tensor.linear(index).substitute(start) + Affine.of(joined) * step,)

        body = rewrite_cells(inner.body, cell)
        return (For(joined, outer.lo * count, outer.hi * count, body, LoopKind.PARALLEL),)

    def of(self, tensor: Tensor) -> Tensor:
        if tensor.rank == 1:
            return tensor
        if tensor not in self.flat:
            size = affine((tensor.size,))
            self.flat[tensor] = Tensor(f"{tensor.label}_flat", size, tensor.dtype, base=tensor)
        return self.flat[tensor]


def _walks_straight(outer: For, inner: For) -> bool:
    """Can the two loops be one?"""
    if any(loop.kind is not LoopKind.PARALLEL or loop.step != 1 for loop in (outer, inner)):
        return False
    count = inner.trips
    if count is None or outer.trips is None or inner.lo != Affine.of(0) or not outer.lo.is_constant:
        return False
    symbols = {outer.symbol, inner.symbol}
    for stmt in walk_statements(inner.body):
        if isinstance(stmt, For) and not symbols.isdisjoint(stmt.bound_by):
            return False
        if any(symbols & _numbers(expr) for expr in expressions(stmt)):
            return False
    return all(
        _is_straight(tensor, index, outer.symbol, inner.symbol, count)
        for tensor, index, _ in affine_accesses(inner.body)
    )


def _numbers(expr: Expr) -> set[Symbol]:
    """The symbols whose values an expression computes with."""
    return {s for node in walk(expr) if isinstance(node, Index) for s in node.value.symbols}


def _is_straight(tensor: Tensor, index: tuple[Affine, ...], outer: Symbol, inner: Symbol, count: int) -> bool:
    far, near = stride(tensor, index, outer), stride(tensor, index, inner)
    if far == near == 0:
        return all(outer not in position.symbols and inner not in position.symbols for position in index)
    if far is None or near is None or far != count * near:
        return False
    return tensor.strides is None and tensor.has_fixed_shape
