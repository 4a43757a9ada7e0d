"""batch: products of a matrix with one vector after the other become one product of two matrices.

    for k in sequential(0, 50):                     for k in parallel(0, 50):
        for i in parallel(0, 128):                      for i in parallel(0, 128):
            p = 0.0                                         p = 0.0
            for j in parallel(0, 128):                      for j in parallel(0, 128):
                p = fma(a[k, j], c[j, i], p)                    p = fma(a[k, j], c[j, i], p)
            t[i] = p                        ->              t1[k, i] = p
        for i in parallel(0, 128):                  for k in sequential(0, 50):
            a[k, i] = t[i]                              for i in parallel(0, 128):
                                                            a[k, i] = t1[k, i]

The matrix is then read once for many vectors. Such a product must need nothing that its loop has made before:
no iteration may write what a later one, or a later statement, reads for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Local
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, For, Kernel, LoopKind, Stmt, Store, Update, go_in_order, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import children, kept, rewrite_bodies, rewrite_cells, rewrite_loops, substitute_statements
from ..analysis.access import Range, effects, loads, mentioned
from ..analysis.carriers import meetings
from ..analysis.inside import exists
from ..analysis.trips import enter
from ..analysis.uses import Use, uses_of_temporaries

__all__ = ["batch"]

FEWEST = 4
"""So many products are worth a matrix of their results."""


def batch(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such product before its loop, for all iterations at once."""
    inside = walk_statements(kernel.body)
    if not (go_in_order(inside) and any(isinstance(stmt, Update) and stmt.contract for stmt in inside)):
        return kernel
    batching = _Batching(caps.l3_bytes, uses_of_temporaries(kernel))
    body = batching.body(kernel.body)
    return kernel.with_body(body, batching.notes)


@frozen
class _Product:
    """A statement that multiplies a matrix with a vector: the factors, and where the result goes."""

    factors: tuple[Expr, ...]
    store: Store

    @staticmethod
    def of(stmt: Stmt) -> _Product | None:
        match stmt:
            case For(
                kind=LoopKind.PARALLEL,
                body=(
                    Define(variable=total),
                    For(body=(Update(variable=added, value=value, contract=True),)),
                    Store(index=(position,), value=Local(variable=stored)) as store,
                ),
            ) if total is added is stored and position == Affine.of(stmt.symbol):
                return _Product(children(value), store)
            case _:
                return None


@slotted
class _Batching:
    """`room` is what a matrix of results may take, `uses` are those of the kernel's temporaries."""

    room: int
    uses: dict[Tensor, list[Use]]
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return rewrite_loops(body, self.split)

    def split(self, loop: For) -> list[Stmt]:
        """A loop after the products that can go before it."""
        enter(loop, self.ranges)
        first: list[Stmt] = []
        rest, at = list(loop.body), 0
        while at < len(rest):
            product = _Product.of(rest[at])
            if product is None or not self.may_go(product, rest, at, loop):
                at += 1
                continue
            old, number = product.store.tensor, Affine.of(loop.symbol) - loop.lo
            new = replace(old, shape=(loop.hi - loop.lo, *old.shape))
            rest = [*_with_axis(tuple(rest), old, new, number)]
            own = Symbol(loop.symbol.hint)
            body = substitute_statements((rest.pop(at),), {loop.symbol: Affine.of(own)})
            first.append(replace(loop, symbol=own, body=body, kind=LoopKind.PARALLEL))
            self.notes.append(
                f"batch: {old.label}: {loop.trips} products with the same matrix are made at once"
            )
        body = kept(loop.body, rest)
        return [*first, rewrite_bodies(loop if body is loop.body else replace(loop, body=body), self.body)]

    def may_go(self, product: _Product, rest: Sequence[Stmt], at: int, loop: For) -> bool:
        """Whether the product at a position of the loop's body may be made before the loop, and should."""
        result, trips = product.store.tensor, loop.trips or 0
        if loop.kind is not LoopKind.SEQUENTIAL or loop.step != 1 or trips < FEWEST:
            return False
        if not self.is_private(result, loop) or trips * result.nbytes > self.room:
            return False
        one, other = (_moves(factor, loop.symbol) for factor in product.factors)
        return one != other and self.is_there(product, rest[at]) and self.is_free(rest, at, loop)

    def is_private(self, result: Tensor, loop: For) -> bool:
        """Whether a temporary is written as a whole, once, and then read in the same iteration only."""
        uses = self.uses.get(result)
        if uses is None or result.wish is not None or not result.has_fixed_shape:
            return False
        (written, *more) = [use.at for use in uses if use.writes]
        return not more and all(
            use.tensor is result
            and use.index is not None
            and use.at >= written
            and any(frame.loop is not None and frame.loop.symbol is loop.symbol for frame in use.path)
            for use in uses
        )

    def is_there(self, product: _Product, stmt: Stmt) -> bool:
        """Whether all cells that a product reads exist, so that it may run where it did not before."""
        inside = dict(self.ranges)
        for inner in walk_statements((stmt,)):
            if isinstance(inner, For):
                enter(inner, inside)
        return all(
            index is not None and exists(tensor, index, inside)
            for factor in product.factors
            for tensor, index in loads(factor)
        )

    def is_free(self, rest: Sequence[Stmt], at: int, loop: For) -> bool:
        """Whether nothing that the product reads has been made by an iteration before it."""
        bound = {stmt.symbol for stmt in walk_statements(loop.body) if isinstance(stmt, Bind)}
        own = effects((rest[at],), self.ranges)
        if own.uses or not bound.isdisjoint(mentioned((rest[at],))):
            return False
        for position, stmt in enumerate(rest):
            if position == at:
                continue
            written = effects((stmt,), self.ranges).writes
            met = meetings(own.reads, written, (loop.symbol,), self.ranges)
            if any(apart[loop.symbol][1] > (-1 if position < at else 0) for apart in met):
                return False
        return True


def _moves(factor: Expr, symbol: Symbol) -> bool:
    """Does a factor read other cells in other iterations?"""
    return any(index is None or any(symbol in part.symbols for part in index) for _, index in loads(factor))


def _with_axis(body: tuple[Stmt, ...], old: Tensor, new: Tensor, number: Affine) -> tuple[Stmt, ...]:
    """A body with a tensor that has an axis more, and is used at `number` along it."""
    return rewrite_cells(
        body, lambda tensor, index: (new, (number, *index)) if tensor is old else (tensor, index)
    )
