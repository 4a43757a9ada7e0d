"""rematerialise: what is computed by one operation is computed again, not stored to be read back.

    for i in sequential(0, 1000):                   for i in sequential(0, 1000):
        ...                                             ...
        for j in parallel(0, 500):                      for j in parallel(0, 500):
            t[j] = subtract(x[i, j], mean)                  c = subtract(x[i, j], mean)
            s = reduce(add, s, multiply(t[j], t[j]))        s = reduce(add, s, multiply(c, c))
        d = sqrt(s)                         ->          d = sqrt(s)
        for j1 in parallel(0, 500):                     for j1 in parallel(0, 500):
            y[i, j1] = divide(t[j1], d)                     y[i, j1] = divide(subtract(x[i, j1], mean), d)

The other loops read `x` in place of `t`, each cell once and along memory as before, so that all there is to
pay is the operation. What it takes must be the same there. The norm of a layer takes 0.9 of the time.
For registers this is known since Briggs, Cooper and Torczon [Rematerialization, 1992]; here it is for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Const, Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, Define, Kernel, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_bodies, substitute, transform_statements, variables
from ..analysis.access import loads
from ..analysis.strides import stride
from ..analysis.uses import Use, common_path, makes_anew, uses_of

__all__ = ["rematerialise"]

LIGHT = frozenset(("add", "subtract", "multiply"))
"""Operations that take no longer than to store what they give, but for small floats, which are converted."""

FEW = 3
"""It is computed again in so many places at most."""


def rematerialise(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without temporaries that are as well computed again."""
    if not kernel.placement:
        return kernel
    found = uses_of(kernel.body)
    values = _Values(found, _defined(kernel.body))
    every = {tensor: one for tensor in kernel.placement if (one := values.made(found.get(tensor, ())))}
    made = {
        tensor: one
        for tensor, one in every.items()
        if not any(read.storage in every for read, _ in loads(one.value))
    }
    if not made:
        return kernel
    writer = _Writer(made)
    notes = (f"rematerialise: {one.tensor} is computed again where it is read" for one in made.values())
    return replace(
        kernel,
        body=writer.body(kernel.body),
        placement={tensor: place for tensor, place in kernel.placement.items() if tensor not in made},
        notes=(*kernel.notes, *notes),
    )


@frozen
class _Made:
    """How the cells of a temporary are made: `value` at the position `index`, of which `variable` has the
    value in the iteration that makes it."""

    tensor: Tensor
    index: tuple[Affine, ...]
    value: Expr
    variable: Variable

    def at(self, index: tuple[Affine, ...]) -> Expr:
        """The value of a cell."""
        if index == self.index:
            return Local(self.variable)
        symbols = (position.symbol for position in self.index)
        return substitute(self.value, {s: p for s, p in zip(symbols, index, strict=True) if s is not None})


@slotted
class _Values:
    """`uses` of all memory; `defined` are the names that statements define, each with the number of loops and
    branches around the one that does so, None if there are several."""

    uses: Mapping[Tensor, Sequence[Use]]
    defined: Mapping[Variable | Symbol, int | None]

    def made(self, uses: Sequence[Use]) -> _Made | None:
        """How a temporary of these uses is made, if it is as well computed again."""
        if not uses or not isinstance(uses[0].stmt, Store) or sum(use.writes for use in uses) > 1:
            return None
        write, *reads = uses
        store, depth = uses[0].stmt, len(common_path(use.path for use in uses))
        rank = write.tensor.rank
        if not makes_anew(uses, write.path[:depth], range(rank)) or len(write.path) != depth + rank:
            return None
        near = [use for use in reads if use.path[: len(write.path)] == write.path]
        far = [use for use in reads if use not in near]
        if not near or not 0 < len(far) <= FEW or any(use.index != write.index for use in near):
            return None
        if not all(_reads_each_once(use, write, depth) for use in far):
            return None
        if not _is_light(store.value, store) or not self.stays(store.value, store, uses, depth):
            return None
        return _Made(store.tensor, store.index, store.value, Variable(store.tensor.label, store.tensor.dtype))

    def stays(self, value: Expr, store: Store, uses: Sequence[Use], depth: int) -> bool:
        """Is all that a value is computed from the same where it is read, in `depth` common loops?"""
        own = {position.symbol for position in store.index}
        names: set[Variable | Symbol] = {*variables(value), *(set(_symbols(value)) - own)}
        around = [self.defined[name] for name in names if name in self.defined]
        if any(found is None or found > depth for found in around):
            return False
        inside = [use.path[depth] for use in uses]
        first, last = inside[0].first, max(frame.last for frame in inside)
        return not any(
            use.writes and first <= use.at <= last
            for tensor, _ in loads(value)
            for use in self.uses[tensor.storage]
        )


def _is_light(value: Expr, store: Store) -> bool:
    """Is a value one operation, on a cell that lies along memory as its own does and on what is the same for
    all?"""
    if not isinstance(value, Apply) or value.op.name not in LIGHT or value.dtype.is_small:
        return False
    own = {position.symbol for position in store.index}
    moving = [load for load in value.args if isinstance(load, Load) and not own.isdisjoint(_symbols(load))]
    last = store.index[-1].symbol
    return (
        all(isinstance(operand, (Load, Local, Const)) for operand in value.args)
        and len(moving) == 1
        and moving[0].tensor.dtype == store.tensor.dtype
        and last is not None
        and stride(moving[0].tensor, moving[0].index, last) == 1
    )


def _reads_each_once(use: Use, write: Use, depth: int) -> bool:
    """Does what is in `depth` common loops read each cell once, in loops of its own?"""
    loops = [frame.loop.symbol for frame in use.path[depth:] if frame.loop]
    if use.tensor is not write.tensor or use.index is None or use.index == write.index:
        return False
    is_product = isinstance(use.stmt, Update) and use.stmt.contract
    is_once = sorted(map(id, loops)) == sorted(id(position.symbol) for position in use.index)
    return is_once and len(use.path) == depth + len(loops) and not is_product


def _symbols(value: Expr) -> Iterator[Symbol]:
    """The symbols in the positions of the cells that a value is computed from."""
    for _, index in loads(value):
        for position in index or ():
            yield from position.symbols


def _defined(body: tuple[Stmt, ...], depth: int = 0) -> dict[Variable | Symbol, int | None]:
    """The names that statements in `depth` loops and branches define; see `_Values`."""
    found: dict[Variable | Symbol, int | None] = {}

    def note(name: Variable | Symbol, depth: int | None) -> None:
        found[name] = None if name in found else depth

    def inside(body: tuple[Stmt, ...], depth: int) -> tuple[Stmt, ...]:
        for stmt in body:
            match stmt:
                case Define(variable=name) | Bind(symbol=name):
                    note(name, depth)
                case Update(variable=name):
                    found[name] = None
                case _:
                    rewrite_bodies(stmt, lambda inner: inside(inner, depth + 1))
        return body

    inside(body, depth)
    return found


@slotted
class _Writer:
    """Writes statements that use the temporaries of `made` without them."""

    made: Mapping[Tensor, _Made]

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return transform_statements(body, self.read, self.stored)

    def stored(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.tensor in self.made:
            return Define(self.made[stmt.tensor].variable, stmt.value)
        return stmt

    def read(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.tensor in self.made:
            return self.made[expr.tensor].at(expr.index)
        return expr
