"""Which programs weigh the rows of one product and multiply them again, as attention does.

    for i in parallel(0, 512):                              scores, stored in a temporary
        for j in parallel(0, 512):
            c = 0.0
            for k in parallel(0, 64): c = fma(q[i, k], x[j, k], c)
            s[i, j] = multiply(c, 0.125)
    for i in parallel(0, 512):                              folds: their maximum, the sum of their weights
        m = -inf
        for j in parallel(0, 512): m = maximum(m, s[i, j])
        a = 0.0
        for j in parallel(0, 512):
            e[j] = exp(subtract(s[i, j], m))
            a = add(a, e[j])
        for j in parallel(0, 512): p[i, j] = divide(e[j], a)
    for i in parallel(0, 512):                              the result: the left factor is
        for d in parallel(0, 64):                           divide(exp(subtract(score, m)), a)
            o = 0.0
            for j in parallel(0, 512): o = fma(p[i, j], v[j, d], o)
            y[i, d] = o

A *fold* combines what is computed for each score of a row, by an op whose order is the compiler's choice.
What is computed may need folds before it, and so may the left factor and what is done with a sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.expr import Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import (
    expressions,
    locals_read,
    locals_updated,
    rewrite_expressions,
    substitute,
    transform,
    variables,
)
from ..analysis.access import loads
from ..products.products import Product, Sum, product_of

__all__ = ["Fold", "Rows", "Weighing", "scored", "variables"]

Place = tuple[Affine, ...]


_STARTS = {"maximum": -math.inf, "minimum": math.inf, "add": 0}
"""What may fold, and what it starts from."""


@frozen
class Fold:
    """`variable` is what `op` makes of all values of a row, which are expressions over the local `score` and
    the variables of folds before; with `contract`, as of an Update."""

    variable: Variable
    op: Op
    start: Const
    value: Expr
    contract: bool


@frozen
class Weighing:
    """Two products, of which the second multiplies something that is made of the sums of the first.

    `stored` is where the first stores its scores. `left` is the left factor of the second, an expression over
    the locals `score`, those of `folds` and those of outside. `result` has the rows, and the loops around
    them, of `scores`; its epilogue mentions folds as locals. No fold is without use."""

    scores: Product
    stored: Store
    score: Variable
    folds: tuple[Fold, ...]
    left: Expr
    result: Product


def scored(stmt: Stmt, temporaries: frozenset[Tensor], constants: Mapping[Variable, Const]) -> Rows | None:
    """What a statement starts, if it is a product that does nothing but store scores. `constants` are
    variables with one known value."""
    product = product_of(stmt)
    if product is None or product.within is not None or not _is_free(product.sums):
        return None
    stores = [one for one in product.epilogue if isinstance(one, Store)]
    if len(stores) != 1 or stores[0].tensor not in temporaries:
        return None
    (store,) = stores
    loops = (*product.around, product.rows, product.columns)
    if not all(loop.trips and loop.step == 1 and loop.lo == Affine.of(0) for loop in loops):
        return None
    moving = [position.symbol for position in store.index if not position.is_constant]
    if sorted(moving, key=id) != sorted((loop.symbol for loop in loops), key=id):
        return None
    return Rows(product, store, temporaries, dict(constants))


def _is_free(sums: Sequence[Sum]) -> bool:
    """Is there one sum, of floats, whose terms may be added up in any order?"""
    if len(sums) != 1:
        return False
    (total,) = sums
    is_known = isinstance(total.start, Const) and total.start.value == 0
    return is_known and total.update.contract and all(loop.kind is LoopKind.PARALLEL for loop in total.terms)


class _Other(Exception):
    """A statement does something else."""


@frozen
class _Cell:
    """What a temporary has at `place`, by the loops of the scores, while the loops of `within` are in the
    iteration that stored it."""

    place: Place
    value: Expr
    within: frozenset[Symbol] = frozenset()


@frozen
class _Start:
    """What a variable starts from, in an iteration of the loops of `within`."""

    value: Const
    within: tuple[Symbol, ...]


@slotted
class Rows:
    """What is known so far of the rows of scores. `symbols` says which loop of `scores` each later one is,
    `cells` what temporaries have in each cell, `locals` what variables are; `within` are the loops that are
    gone through."""

    scores: Product
    stored: Store
    temporaries: frozenset[Tensor]
    locals: dict[Variable, Expr]
    score: Variable = field(init=False)
    folds: list[Fold] = field(default_factory=list)
    symbols: dict[Symbol, Symbol] = field(default_factory=dict)
    cells: dict[Tensor, _Cell] = field(default_factory=dict)
    starts: dict[Variable, _Start] = field(default_factory=dict)
    within: list[Symbol] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.score = Variable("score", self.stored.tensor.dtype)
        self.cells[self.stored.tensor] = _Cell(self.stored.index, Local(self.score))
        self.symbols.update((loop.symbol, loop.symbol) for loop in self.loops)

    @property
    def loops(self) -> tuple[For, ...]:
        return (*self.scores.around, self.scores.rows, self.scores.columns)

    def reads(self, stmt: Stmt) -> bool:
        """Does a statement need anything that is made of the scores?"""
        return any(
            tensor in self.cells
            for inner in walk_statements((stmt,))
            for expr in expressions(inner)
            for tensor, _ in loads(expr)
        )

    def takes(self, stmt: Stmt) -> bool:
        """Whether a statement does no more than to fold rows, and to compute what folds and results need."""
        try:
            self.statement(stmt)
        except _Other:
            return False
        return True

    def result(self, stmt: Stmt) -> Weighing | None:
        """The whole, if a statement multiplies weights by something else."""
        product = product_of(stmt)
        if product is None or product.within is not None or not _is_free(product.sums):
            return None
        try:
            return self.weighing(product)
        except _Other:
            return None

    # rows

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.meet(stmt)
                self.within.append(stmt.symbol)
                self.loop(stmt)
                self.within.pop()
            case Define(variable=variable, value=value):
                self.locals[variable] = self.value(value)
                if isinstance(value, Const):
                    self.starts[variable] = _Start(value, tuple(self.within))
            case Store(tensor=tensor, index=index, value=value) if tensor in self.temporaries:
                if tensor in self.cells:
                    raise _Other
                place = self.place(index)
                within = {one for one in self.within if Affine.of(self.symbols[one]) not in place}
                self.cells[tensor] = _Cell(place, self.value(value), frozenset(within))
            case _:
                raise _Other

    def loop(self, loop: For) -> None:
        """The body of a loop; what it adds up is known when it ends."""
        updated = locals_updated(loop.body)
        for variable in updated:
            self.locals.pop(variable, None)
        known: dict[Variable, Expr] = {}
        for stmt in loop.body:
            if not updated.isdisjoint(locals_read((stmt,))):
                raise _Other
            if isinstance(stmt, Update):
                known[stmt.variable] = self.accumulated(stmt, loop)
            else:
                self.statement(stmt)
        if len(known) < sum(isinstance(stmt, Update) for stmt in loop.body):
            raise _Other
        self.locals.update(known)

    def accumulated(self, update: Update, loop: For) -> Expr:
        """What a variable is after a loop over the columns of a row."""
        start, op = self.starts.pop(update.variable, None), update.accum and update.accum.name
        is_row = self.symbols[loop.symbol] is self.scores.columns.symbol and len(self.within) == len(
            self.loops
        )
        if start is None or start.within != tuple(self.within[:-1]) or not is_row:
            raise _Other
        if loop.kind is not LoopKind.PARALLEL:
            raise _Other
        if op not in _STARTS or start.value.value != _STARTS[op]:
            raise _Other
        value = self.value(update.value)
        return Local(self.folded(Fold(update.variable, OPS[op], start.value, value, update.contract)))

    def folded(self, fold: Fold) -> Variable:
        """What has the value of a fold, which is done once."""
        for known in self.folds:
            if (known.op, known.value, known.contract) == (fold.op, fold.value, fold.contract):
                return known.variable
        self.folds.append(fold)
        return fold.variable

    # the result

    def weighing(self, product: Product) -> Weighing:
        (total,) = product.sums
        if len(total.terms) != 1:
            raise _Other
        self.meet_all(total.left)
        own = [*product.around, product.rows, *total.terms]
        known = [self.loop_of(loop) for loop in own]
        if {id(loop) for loop in known} != {id(loop) for loop in self.loops} or len(own) != len(self.loops):
            raise _Other
        if known[-2:] != [self.scores.rows, self.scores.columns]:
            raise _Other
        if product.columns.lo != Affine.of(0) or product.columns.step != 1:
            raise _Other
        left = self.value(total.left)
        values = {old: Affine.of(new) for old, new in self.symbols.items()}
        values[total.terms[0].symbol] = Affine.of(total.terms[0].symbol)
        right = substitute(total.right, values)
        if any(tensor in self.cells for tensor, _ in loads(right)):
            raise _Other
        sums = (replace(total, right=right),)
        epilogue = self.epilogue(product, values)
        folds = self.needed((left, *(expr for stmt in epilogue for expr in expressions(stmt))))
        if not folds:
            raise _Other
        result = replace(
            product, around=self.scores.around, rows=self.scores.rows, sums=sums, epilogue=epilogue
        )
        return Weighing(self.scores, self.stored, self.score, folds, left, result)

    def needed(self, exprs: Sequence[Expr]) -> tuple[Fold, ...]:
        """The folds that expressions need, in order."""
        used = {variable for expr in exprs for variable in variables(expr)}
        found: list[Fold] = []
        for fold in reversed(self.folds):
            if fold.variable in used:
                found.append(fold)
                used.update(variables(fold.value))
        return tuple(reversed(found))

    def epilogue(self, product: Product, values: dict[Symbol, Affine]) -> tuple[Stmt, ...]:
        """What is done with a sum."""

        def node(expr: Expr) -> Expr:
            match expr:
                case Load(tensor=tensor) if tensor in self.cells:
                    return self.cell(expr)
                case _:
                    return substitute(expr, values)

        def statement(stmt: Stmt) -> Stmt:
            stmt = rewrite_expressions(stmt, lambda expr: transform(expr, node))
            if isinstance(stmt, Store):
                return replace(stmt, index=tuple(position.substitute(values) for position in stmt.index))
            return stmt

        return tuple(map(statement, product.epilogue))

    # expressions

    def value(self, expr: Expr) -> Expr:
        """An expression over the score, folds and locals of outside."""

        def node(part: Expr) -> Expr:
            match part:
                case Load(tensor=tensor) if tensor in self.cells:
                    return self.cell(part)
                case Local(variable=variable):
                    return self.locals.get(variable, part)
                case Load() | Gather() | Index():
                    raise _Other
                case _:
                    return part

        return transform(expr, node)

    def cell(self, load: Load) -> Expr:
        """What has been stored in a cell."""
        cell = self.cells[load.tensor]
        self.meet_all(load)
        if self.place(load.index) != cell.place or not cell.within <= set(self.within):
            raise _Other
        return cell.value

    def place(self, index: Place) -> Place:
        """An index by the loops of the scores."""
        found: list[Affine] = []
        for position in index:
            symbol = position.symbol
            if symbol is not None and symbol in self.symbols:
                found.append(Affine.of(self.symbols[symbol]))
            elif position.is_constant:
                found.append(position)
            else:
                raise _Other
        return tuple(found)

    def meet(self, loop: For) -> None:
        """Find out which loops of the scores a loop, and those in it, are."""
        for stmt in walk_statements((loop,)):
            for expr in expressions(stmt):
                self.meet_all(expr)
        self.loop_of(loop)

    def loop_of(self, loop: For) -> For:
        """The loop of the scores that a loop is."""
        found = self.symbols.get(loop.symbol)
        known = next((one for one in self.loops if one.symbol is found), None)
        if known is None or loop.bounds != (known.lo, known.hi, 1):
            raise _Other
        return known

    def meet_all(self, expr: Expr) -> None:
        """Take what an expression reads for what was stored at the loops of the same places."""
        for tensor, index in loads(expr):
            if tensor not in self.cells:
                continue
            if index is None:
                raise _Other
            for position, stored in zip(index, self.cells[tensor].place, strict=True):
                symbol, known = position.symbol, stored.symbol
                if symbol is None or known is None:
                    if position != stored:
                        raise _Other
                elif self.symbols.setdefault(symbol, known) is not known:
                    raise _Other
