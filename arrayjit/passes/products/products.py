"""Which nests of loops are products: sums, one for each row and column, of what depends on the row times what
depends on the column.

    for n in parallel(0, 5):
        for i in parallel(0, 64):                           rows i, columns j, around them n;
            for j in parallel(0, 32):                       the sum of x[n, i, k], which varies by row,
                c = 0.0                                     times w[k, j], which varies by column
                for k in parallel(0, 48):
                    c = fma(x[n, i, k], w[k, j], c)
                y[n, i, j] = maximum(add(c, b[j]), 0.0)

Matrix products in any layout are that, einsums, convolutions (a sum over three loops, read at `i + k`). What
stands around the sums in the body is the epilogue. A sum may also be formed in the very cell of an array; and
a row may have columns of its own, such as those of a triangle, `for j in parallel(0, i + 1)`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Apply, Const, Expr, Gather, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import locals_defined, nodes_in, rebuild, rewrite_bodies, storages_read, symbols_read, walk
from ..analysis.access import Range, Ranges
from ..analysis.costs import cost_of_nodes
from ..analysis.inside import exists
from ..analysis.strides import parallel_nest, stride
from ..analysis.trips import enter, extent
from ..analysis.values import in_place, written_out
from .triangles import Rectangle, rectangles

__all__ = ["Product", "Sum", "product_of"]

MAX_NODES = 64
"""The largest factor, with what is computed for it put in."""

ROWS = 24
"""So many rows are enough for slivers of any height to leave little over."""

LIGHT = 8
"""So much may be done with a sum where it is, in additions; more is written out once, not for each row."""


@frozen
class Sum:
    """`variable = start`, then for all terms `variable = fma(left, right, variable)`: `left` varies by row,
    `right` by column. For integers, and for what is added up in an array, it is a product and an addition."""

    variable: Variable
    start: Expr
    terms: tuple[For, ...]
    update: Update
    left: Expr
    right: Expr

    def plus(self, total: Variable, left: Expr, right: Expr) -> Update:
        """One more term of a sum."""
        term = Apply(OPS["multiply"], (left, right), total.dtype)
        if self.update.accum is None:
            return Update(total, Apply(OPS["add"], (Local(total), term), total.dtype))
        return Update(total, term, self.update.accum, self.update.contract)

    @property
    def depth(self) -> int:
        """How many terms it has, at most."""
        return math.prod(_most(loop) for loop in self.terms)

    @property
    def length(self) -> Affine:
        """How many terms it has, of one loop."""
        return self.terms[0].hi - self.terms[0].lo if len(self.terms) == 1 else Affine.of(self.depth)

    @property
    def is_open(self) -> bool:
        """Does only the run know how many terms there are?"""
        return any(loop.trips is None for loop in self.terms)


@frozen
class Product:
    """A nest: the loops around rows and columns, those first that `right` factors depend on; the sums of a
    cell, and its other statements, in which a sum's variable is defined by its start. `within` are the first
    column of a row and the end of its columns, where rows differ in them: `columns` are those of any row then
    and sums for all of them may be computed."""

    around: tuple[For, ...]
    shared: int
    rows: For
    columns: For
    sums: tuple[Sum, ...]
    epilogue: tuple[Stmt, ...]
    within: tuple[Affine, Affine] | None = None

    @property
    def height(self) -> int:
        """How many rows it has, at most."""
        return _most(self.rows)

    @property
    def width(self) -> int:
        """How many columns it has, at most."""
        return _most(self.columns)

    @property
    def least(self) -> tuple[int, int]:
        """How many rows and columns it has at least."""
        return (extent(self.rows) or (0, 0))[0], (extent(self.columns) or (0, 0))[0]

    def sliver(self, most: int) -> int:
        """So many rows, or fewer if there may be fewer, that do not all make one sliver."""
        return most if most >= self.height else min(most, self.least[0])

    def turned(self) -> Product:
        """The same product, rows for columns."""
        sums = tuple(replace(total, left=total.right, right=total.left) for total in self.sums)
        outer, inner = _around(self.around, sums)
        around = (*outer, *inner)
        return replace(
            self, around=around, shared=len(outer), rows=self.columns, columns=self.rows, sums=sums
        )

    @property
    def has_same_rows(self) -> bool:
        """Are left factors the same in all iterations around?"""
        needed = {symbol for total in self.sums for symbol in symbols_read(total.left)}
        needed |= {symbol for total in self.sums for loop in total.terms for symbol in loop.bound_by}
        return needed.isdisjoint(loop.symbol for loop in self.around)

    @property
    def ending(self) -> tuple[Stmt, ...] | None:
        """What is done with a cell's one sum, if a register of columns can do it at once: little, along the
        columns."""
        if self.within is not None or len(self.sums) > 1:
            return None
        (total,), column = self.sums, self.columns.symbol
        out = tuple(
            stmt
            for stmt in self.epilogue
            if not (isinstance(stmt, Define) and stmt.variable is total.variable)
        )
        nodes = list(nodes_in(out))
        is_light = cost_of_nodes(nodes) <= LIGHT
        in_registers = all(
            isinstance(node, (Apply, Const, Local))
            or (isinstance(node, Load) and stride(node.tensor, node.index, column) in (0, 1))
            for node in nodes
        )
        is_along = all(isinstance(stmt, Define) or _is_along((stmt,), column) for stmt in out)
        return out if is_light and in_registers and is_along else None


def product_of(stmt: Stmt) -> Product | None:
    """The product that a statement is, if it is one, perhaps with the steps of a term in one expression."""
    loops = parallel_nest(stmt)
    if len(loops) < 2:
        return None
    body = loops[-1].body
    return _product_in(loops, body) or _product_in(loops, in_place(body))


def _product_in(loops: Sequence[For], body: tuple[Stmt, ...]) -> Product | None:
    """The product that loops are which have this body."""
    body = _in_variables(body)
    if not _are_independent(loops):
        products = (_in_rectangle(nest) for nest in rectangles(loops, body))
        return next((product for product in products if product is not None), None)
    found = _sums(body)
    roles = _roles(loops, body, found) if found else None
    return None if roles is None else _product(loops, *roles, body, found)


def _in_rectangle(nest: Rectangle) -> Product | None:
    """The product that a nest is in whose rows have columns of their own."""
    found = _sums(nest.body)
    product = _product(nest.loops, nest.rows, nest.columns, nest.body, found) if found else None
    if product is None:
        return None
    ranges: dict[Symbol, Range] = {}
    for loop in (*nest.loops, *(term for total in product.sums for term in total.terms)):
        enter(loop, ranges)
    parts = (part for total in product.sums for part in (total.start, total.left, total.right))
    exist = all(_exists(node, ranges) for part in parts for node in walk(part))
    return replace(product, within=nest.within) if exist else None


def _exists(node: Expr, ranges: Ranges) -> bool:
    """May a part of a factor be computed for any row and column?"""
    match node:
        case Load(tensor=tensor, index=index):
            return exists(tensor, index, ranges)
        case Apply(dtype=dtype):
            return dtype.is_float
        case _:
            return isinstance(node, (Const, Local))


def _product(
    loops: Sequence[For], rows: For, columns: For, body: Sequence[Stmt], found: Sequence[Sum]
) -> Product | None:
    """What independent loops around sums are, if one factor varies by row, the other by column."""
    sums = tuple(_turned(total, rows.symbol) for total in found)
    if not all(_fits(total, rows.symbol, columns.symbol) for total in sums):
        return None
    outer, inner = _around([loop for loop in loops if loop is not rows and loop is not columns], sums)
    nests = {id(total.terms[0]) for total in sums}
    epilogue = tuple(stmt for stmt in body if id(stmt) not in nests)
    return Product((*outer, *inner), len(outer), rows, columns, sums, epilogue)


def _around(loops: Sequence[For], sums: Sequence[Sum]) -> tuple[list[For], list[For]]:
    """The loops around rows and columns on which right factors depend, and the others."""
    needed = {symbol for total in sums for symbol in symbols_read(total.right)}
    outer = [loop for loop in loops if loop.symbol in needed]
    return outer, [loop for loop in loops if loop.symbol not in needed]


def _are_independent(loops: Sequence[For]) -> bool:
    symbols = {loop.symbol for loop in loops}
    return not any(symbols.intersection(loop.bound_by) for loop in loops)


def _sums(body: Sequence[Stmt]) -> tuple[Sum, ...]:
    """The sums of products in a body of nothing else but definitions and stores."""
    found: list[Sum] = []
    started: dict[Variable, Expr] = {}
    own = locals_defined(body)
    stores = [stmt for stmt in body if isinstance(stmt, Store)]
    written = {store.tensor.storage for store in stores}
    before: set[Tensor] = set()
    for stmt in body:
        for node in nodes_in((stmt,)):
            if isinstance(node, Local):
                started.pop(node.variable, None)
        match stmt:
            case Define(variable=variable, value=start) if _is_start(start, own, stores, before):
                started[variable] = start
            case For():
                total = _sum(stmt, started)
                if total is None or not _stands_alone(total, own, written):
                    return ()
                del started[total.variable]
                found.append(total)
            case Store(tensor=tensor):
                before.add(tensor.storage)
            case Define():
                pass
            case _:
                return ()
    return tuple(found)


def _is_start(
    start: Expr, own: Collection[Variable], stores: Sequence[Store], before: Collection[Tensor]
) -> bool:
    """Does a sum start from what stands before the whole body, of memory from what is in its own cell?"""
    for node in walk(start):
        match node:
            case Local(variable=variable) if variable in own:
                return False
            case Load(tensor=tensor) if tensor.storage in before:
                return False
            case Load(tensor=tensor, index=index):
                others = (store for store in stores if store.tensor.storage is tensor.storage)
                if any((store.tensor, store.index) != (tensor, index) for store in others):
                    return False
            case Gather():
                return False
            case _:
                pass
    return True


def _in_variables(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which what is added up in a cell of an array is added up in a local, and stored once."""
    out: list[Stmt] = []
    for stmt in body:
        store = _chained(stmt) if isinstance(stmt, For) else None
        if store is None:
            out.append(stmt)
            continue
        total = Variable(store.tensor.label, store.tensor.dtype)
        out.append(Define(total, Load(store.tensor, store.index)))
        out += (_chain(stmt, total), replace(store, value=Local(total)))
    return tuple(_from_values(out))


def _from_values(body: Sequence[Stmt]) -> list[Stmt]:
    """A body in which a sum that starts from what was just stored in its cell starts from that value."""
    out: list[Stmt] = []
    for stmt in body:
        out.append(stmt)
        match out[-4:]:
            case [Store() as first, Define(value=Load() as read) as start, For(), Store() as last] if (
                (first.tensor, first.index) == (read.tensor, read.index) == (last.tensor, last.index)
            ):
                out[-4:-2] = [replace(start, value=first.value)]
            case _:
                pass
    return out


def _chained(loop: For) -> Store | None:
    """The store of a nest that adds up in one cell of an array, which it does not touch otherwise."""
    symbols = {loop.symbol}
    *before, last = loop.body
    while not before and isinstance(last, For):
        symbols.add(last.symbol)
        *before, last = last.body
    if not isinstance(last, Store) or not isinstance(last.value, Apply) or last.value.op.name != "add":
        return None
    cell, value = last.value.args
    values = [value, *(stmt.value for stmt in before if isinstance(stmt, Define))]
    if len(values) <= len(before) or cell != Load(last.tensor, last.index):
        return None
    moves = any(not symbols.isdisjoint(position.symbols) for position in last.index)
    again = last.tensor.storage in storages_read(values)
    return None if moves or again else last


def _chain(stmt: Stmt, total: Variable) -> Stmt:
    """A nest that adds up in a local what it added up where it stored."""
    match stmt:
        case Store(value=Apply(args=(_, value)) as added):
            return Update(total, rebuild(added, (Local(total), value)))
        case _:
            return rewrite_bodies(stmt, lambda body: tuple(_chain(inner, total) for inner in body))


def _sum(loop: For, started: Mapping[Variable, Expr]) -> Sum | None:
    """A nest that adds up products onto a variable that has only been started."""
    terms = [loop]
    while len(terms[-1].body) == 1 and isinstance(terms[-1].body[0], For):
        terms.append(terms[-1].body[0])
    if any(
        extent(term) is None or not term.lo.is_constant or term.kind is LoopKind.VECTOR for term in terms
    ) or any(term.trips is None for term in terms[1:]):
        return None
    *before, update = terms[-1].body
    if not isinstance(update, Update) or not all(isinstance(stmt, Define) for stmt in before):
        return None
    known: dict[Variable, Expr] = {}
    for stmt in before:
        if isinstance(stmt, Define):
            known[stmt.variable] = written_out(stmt.value, known)
    update = replace(update, value=written_out(update.value, known))
    variable, value = update.variable, _added(update)
    if not isinstance(value, Apply) or value.op.name != "multiply" or variable not in started:
        return None
    if value.dtype is not variable.dtype:
        return None
    left, right = value.args
    return Sum(variable, started[variable], tuple(terms), update, left, right)


def _added(update: Update) -> Expr:
    """What is added, in the order in which it stands; else the value of a local."""
    match update:
        case Update(variable=variable, accum=Op(name="add"), contract=contract, value=value) if (
            contract or variable.dtype.is_integer
        ):
            return value
        case Update(
            variable=variable,
            accum=None,
            value=Apply(op=Op(name="add"), args=(Local(variable=onto), value)),
        ) if onto is variable:
            return value
        case _:
            return Local(update.variable)


def _stands_alone(total: Sum, own: set[Variable], written: set[Tensor]) -> bool:
    """Does a sum need nothing else of the body it stands in?"""
    for factor in (total.left, total.right):
        for number, node in enumerate(walk(factor)):
            match node:
                case Local(variable=variable) if variable in own:
                    return False
                case Load(tensor=tensor) | Gather(tensor=tensor) if tensor.storage in written:
                    return False
                case _ if number > MAX_NODES:
                    return False
                case _:
                    pass
    return True


def _roles(loops: Sequence[For], body: Sequence[Stmt], sums: Sequence[Sum]) -> tuple[For, For] | None:
    """Rows and columns: of the loops that one factor depends on and the other does not, the columns are
    those along which the result lies, and the rows, for the other factor, the innermost of many iterations,
    which goes through memory in the shortest steps; else the longest."""
    first, second = (set(symbols_read(factor)) for factor in (sums[0].left, sums[0].right))
    single = [
        loop
        for loop in loops
        if (loop.symbol in first) != (loop.symbol in second)
        and extent(loop) is not None
        and loop.lo.is_constant
    ]
    if not single:
        return None
    columns = min(single, key=lambda loop: (not _is_along(body, loop.symbol), -_most(loop)))
    across = [loop for loop in single if (loop.symbol in first) != (columns.symbol in first)]
    if not across:
        return None
    near = [loop for loop in across if _most(loop) >= ROWS]
    return near[-1] if near else max(across, key=_most), columns


def _most(loop: For) -> int:
    return (extent(loop) or (0, 0))[1]


def _is_along(body: Sequence[Stmt], symbol: Symbol) -> bool:
    """Are neighbours stored side by side?"""
    return any(isinstance(stmt, Store) and stride(stmt.tensor, stmt.index, symbol) == 1 for stmt in body)


def _turned(total: Sum, row: Symbol) -> Sum:
    """The sum with the factor on the left that varies by row."""
    if row in symbols_read(total.left):
        return total
    return Sum(total.variable, total.start, total.terms, total.update, total.right, total.left)


def _fits(total: Sum, row: Symbol, column: Symbol) -> bool:
    left, right = set(symbols_read(total.left)), set(symbols_read(total.right))
    return row in left and column not in left and column in right and row not in right
