"""invert: steps that every cell takes by itself are taken cell by cell.

    for k in sequential(0, 60):                     for i in parallel(0, 9000):
        for i in parallel(0, 9000):         ->          for k in sequential(0, 60):
            x[i] = add(multiply(x[i], x[i]), c[i])          x[i] = add(multiply(x[i], x[i]), c[i])

A cell then stays in a register from step to step (`carry` sees to that), and threads meet once, not at every
step. No cell may need another one, in any step; nor may many steps walk through arrays that cells walk
through too, if that would read memory in another order than it lies: of a product that is added to each cell,
a factor that only some axes of the cells have is read for many cells anyway, in blocks (`contract`). Nests
over the same cells go in as one, and numbers that a step makes for all cells become locals of each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from ...ir.code import Caps
from ...ir.expr import Apply, Expr, Load, Local, Variable
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Define, For, Kernel, LoopKind, Stmt, Store, go_in_order, nested
from ...ir.ops import Op
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, substitute_statements, symbols_read, transform_statements
from ..analysis.access import Range, effects
from ..analysis.carriers import disturbed
from ..analysis.strides import affine_accesses, parallel_nest, stride
from ..analysis.trips import enter
from ..analysis.uses import Use, common_path, uses_of_temporaries
from ..analysis.values import in_place

__all__ = ["invert"]

FEW = 16
"""Through so many rows of an array that is only read a cell may step: it is read in as many streams."""


def invert(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such loop inside the cells that it is about."""
    if not go_in_order(kernel.body):
        return kernel
    ranges: dict[Symbol, Range] = {}
    notes: list[str] = []
    numbers: dict[Symbol, set[Tensor]] = {}
    for tensor, uses in uses_of_temporaries(kernel).items():
        if _is_number(tensor, uses):
            for frame in common_path(use.path for use in uses):
                if frame.loop is not None:
                    numbers.setdefault(frame.loop.symbol, set()).add(tensor)

    def visit(body: tuple[Stmt, ...], around: tuple[Symbol, ...]) -> tuple[Stmt, ...]:
        return kept(body, [statement(stmt, around) for stmt in body])

    def statement(stmt: Stmt, around: tuple[Symbol, ...]) -> Stmt:
        within = around
        if isinstance(stmt, For):
            enter(stmt, ranges)
            within = (*around, stmt.symbol) if stmt.kind is LoopKind.PARALLEL else around
        stmt = rewrite_bodies(stmt, partial(visit, around=within))
        if not isinstance(stmt, For) or stmt.kind is not LoopKind.SEQUENTIAL:
            return stmt
        own = numbers.get(stmt.symbol)
        cells, body = _in_one_nest(_in_locals(stmt.body, own) if own else stmt.body)
        if not cells or not _is_about_cells(stmt, cells, body, around, ranges):
            return stmt
        notes.append(f"invert: all steps of {stmt.symbol.hint} are taken at once, cell by cell")
        return nested((*cells, stmt), body)[0]

    return kernel.with_body(visit(kernel.body, ()), notes)


def _is_number(tensor: Tensor, uses: Sequence[Use]) -> bool:
    """Is a temporary one number, which is made once before it is used?"""
    return tensor.rank == 0 and uses[0].writes and not any(use.writes for use in uses[1:])


def _in_locals(body: tuple[Stmt, ...], numbers: Collection[Tensor]) -> tuple[Stmt, ...]:
    """A body that defines numbers instead of storing them, as far as it makes them itself."""
    made = [stmt.tensor for stmt in body if isinstance(stmt, Store) and stmt.tensor in numbers]
    names = {tensor: Variable(tensor.label, tensor.dtype) for tensor in made}

    def node(expr: Expr) -> Expr:
        return Local(names[expr.tensor]) if isinstance(expr, Load) and expr.tensor in names else expr

    def stored(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.tensor in names:
            return Define(names[stmt.tensor], stmt.value)
        return stmt

    return transform_statements(body, node, stored)


def _in_one_nest(body: Sequence[Stmt]) -> tuple[Sequence[For], tuple[Stmt, ...]]:
    """The loops over cells of a step and what it does in them, as if its nests over the same cells were one;
    no loops if that is not all it does."""
    inside: list[Stmt] = []
    cells: Sequence[For] = ()
    for nest in body:
        if isinstance(nest, Define):
            inside.append(nest)
            continue
        loops = parallel_nest(nest)
        if effects((nest,), {}).updates:  # what cells add up together
            return (), ()
        cells = cells or loops
        names: dict[Symbol, Affine] = {}
        for loop, cell in zip(loops, cells, strict=False):
            names[loop.symbol] = Affine.of(cell.symbol)
            if loop.bounds != cell.bounds:
                return (), ()
        if not loops or len(loops) != len(cells):
            return (), ()
        inside.extend(substitute_statements(loops[-1].body, names))
    return cells, tuple(inside)


def _is_about_cells(
    steps: For,
    cells: Sequence[For],
    body: Sequence[Stmt],
    around: Sequence[Symbol],
    ranges: dict[Symbol, Range],
) -> bool:
    """Whether the cells, with all that a step does, need nothing of one another in any two steps."""
    if any(steps.symbol in loop.bound_by for loop in cells):
        return False
    own = [loop.symbol for loop in cells]
    found = effects(body, ranges)
    if found.leaves:
        return False
    few = steps.trips is not None and steps.trips <= FEW
    is_product = _adds_products(body, (*around, *own))
    for tensor, index, _ in affine_accesses(tuple(body)):
        symbols = set(symbols_of(index))
        is_own = symbols.issuperset((*around, *own)) if is_product else not symbols.isdisjoint(own)
        walks = is_own and steps.symbol in symbols
        if (
            walks
            and not (few and tensor.storage not in found.writes)
            and not _lies(tensor, index, steps, own)
        ):
            return False
    found = found.without({steps.symbol: ranges.get(steps.symbol)})
    return not any(disturbed(found, own, ranges))


def _adds_products(body: Sequence[Stmt], cells: Collection[Symbol]) -> bool:
    """Does a step add to a cell the product of two factors, neither of which depends on all that the other
    one does of where the cell is?"""
    match in_place(tuple(body)):
        case (
            Store(
                tensor=tensor,
                index=index,
                value=Apply(op=Op(name="add"), args=(cell, Apply(op=Op(name="multiply"), args=factors))),
            ),
        ) if cell == Load(tensor, index):
            left, right = (set(symbols_read(factor)).intersection(cells) for factor in factors)
            return not (left <= right or right <= left)
        case _:
            return False


def _lies(tensor: Tensor, index: tuple[Affine, ...], steps: For, cells: Sequence[Symbol]) -> bool:
    """Are the steps of a cell nearer to one another in memory than to those of the next cell?"""
    near = stride(tensor, index, steps.symbol)
    far = [stride(tensor, index, cell) for cell in cells]
    return near is not None and all(step is None or step == 0 or abs(near) < abs(step) for step in far)
