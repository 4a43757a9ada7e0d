"""Which programs weigh the rows of one product and multiply them again, as attention does.

    for i in parallel(0, 512):                              scores, stored in a temporary
        for j in parallel(0, 512):
            c = 0.0
            for k in parallel(0, 64): c = fma(q[i, k], x[j, k], c)
            s[i, j] = multiply(c, 0.125)
    for i in parallel(0, 512):                              their maximum and the sum of their weights
        m = -inf
        for j in parallel(0, 512): m = maximum(m, s[i, j])
        a = 0.0
        for j in parallel(0, 512):
            e[j] = exp(subtract(s[i, j], m))
            a = add(a, e[j])
        for j in parallel(0, 512): p[i, j] = divide(e[j], a)
    for i in parallel(0, 512):                              the result: weight exp(score - maximum),
        for d in parallel(0, 64):                           divided by the sum
            o = 0.0
            for j in parallel(0, 512): o = fma(p[i, j], v[j, d], o)
            y[i, d] = o

A *weight* is what the exponential makes of how far a score is below the maximum of its row; or any function
of the score. What weights by the maximum, which are 1 at most, are multiplied or divided by, the same for a
whole row, is a *factor*; other weights have none, since sums of them may be too large for a float before a
division and not after it. Sums are those whose order is the compiler's choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...frozen import frozen
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Define, For, LoopKind, Stmt, Store, Update, walk_statements
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import expressions, rewrite_expressions, substitute, transform, walk
from ..access import loads
from ..products import Product, Sum, product_of

__all__ = ["Rows", "Weighing", "scored"]

Place = tuple[Affine, ...]


@frozen
class Weighing:
    """Two products, of which the second multiplies weights of the sums of the first.

    `stored` is where the first stores its scores. `weight` is an expression over the locals `score`,
    `maximum` and those of outside. `result` has the rows, and the loops around them, of `scores`; its sum is
    that of weights without factors, and its epilogue mentions `maximum` and `total`, the sum of the weights
    of a row, as locals. Those that it does not need are None."""

    scores: Product
    stored: Store
    weight: Expr
    score: Variable
    maximum: Variable | None
    total: Variable | None
    result: Product

    @property
    def is_relative(self) -> bool:
        """Are weights by the maximum?"""
        return self.maximum in _variables(self.weight)

    def weighed(self, score: Expr, maximum: Expr) -> Expr:
        """The weight of a score, by a maximum."""

        def rule(node: Expr) -> Expr:
            match node:
                case Local(variable=variable) if variable is self.score:
                    return score
                case Local(variable=variable) if variable is self.maximum:
                    return maximum
                case _:
                    return node

        return transform(self.weight, rule)


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


@dataclass(slots=True)
class Rows:
    """What is known so far of the rows of scores. `symbols` says which loop of `scores` each later one is,
    `cells` what temporaries have in each cell, `locals` what variables are; `within` are the loops that are
    gone through."""

    scores: Product
    stored: Store
    temporaries: frozenset[Tensor]
    locals: dict[Variable, Expr]
    score: Variable = field(init=False)
    maximum: Variable = field(init=False)
    total: Variable = field(init=False)
    weight: Expr | None = None
    symbols: dict[Symbol, Symbol] = field(default_factory=dict)
    cells: dict[Tensor, _Cell] = field(default_factory=dict)
    starts: dict[Variable, _Start] = field(default_factory=dict)
    within: list[Symbol] = field(default_factory=list)

    def __post_init__(self) -> None:
        dtype = self.stored.tensor.dtype
        self.score, self.maximum = Variable("score", dtype), Variable("maximum", dtype)
        self.total = Variable("total", dtype)
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
        """Whether a statement does no more than to form maxima, sums and weights of rows."""
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
        updated = {stmt.variable for stmt in loop.body if isinstance(stmt, Update)}
        for variable in updated:
            self.locals.pop(variable, None)
        known: dict[Variable, Expr] = {}
        for stmt in loop.body:
            if any(updated & _variables(expr) for expr in expressions(stmt)):
                raise _Other
            if isinstance(stmt, Update):
                known[stmt.variable] = self.accumulated(stmt, loop)
            else:
                self.statement(stmt)
        if len(known) < sum(isinstance(stmt, Update) for stmt in loop.body):
            raise _Other
        self.locals.update(known)

    def accumulated(self, update: Update, loop: For) -> Expr:
        """What a variable is after a loop over the columns of a row: their maximum, or a sum."""
        start, op = self.starts.pop(update.variable, None), update.accum and update.accum.name
        is_row = self.symbols[loop.symbol] is self.scores.columns.symbol and len(self.within) == len(
            self.loops
        )
        if start is None or start.within != tuple(self.within[:-1]) or not is_row:
            raise _Other
        if loop.kind is not LoopKind.PARALLEL:
            raise _Other
        value = self.value(update.value)
        if op == "maximum" and value == Local(self.score) and start.value.value == -math.inf:
            return Local(self.maximum)
        if op == "add" and start.value.value == 0:
            self.weigh(value)
            return Local(self.total)
        raise _Other

    def weigh(self, value: Expr) -> None:
        """Remember what the weight is, of which there is one."""
        if self.weight is None and self.is_weight(value):
            self.weight = value
        elif self.weight is None or self.weight != value:
            raise _Other

    def is_weight(self, value: Expr) -> bool:
        """Is it known from the score; if from the maximum too, so that the weight of a maximum, by a later
        one, is what turns weights by the one into weights by the other?"""
        inside = _variables(value)
        if self.score not in inside or self.total in inside:
            return False
        if self.maximum not in inside:
            return True
        below = Apply(OPS["subtract"], (Local(self.score), Local(self.maximum)), self.score.dtype)
        match value:
            case Apply(op=op, args=(inner,)) if op.name in ("exp", "exp2"):
                pass
            case _:
                return False
        match inner:
            case Apply(op=op, args=(Const(value=factor), far) | (far, Const(value=factor))) if (
                op.name == "multiply"
            ):
                return far == below and 0 < factor < math.inf
            case _:
                return inner == below

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
        value = self.value(total.left)
        factors: list[Apply] = []
        while value != self.weight and not (self.weight is None and self.is_weight(value)):
            factors.append(self.factor(value))
            value = next(part for part in factors[-1].args if self.score in _variables(part))
        self.weigh(value)
        assert self.weight is not None
        if factors and self.maximum not in _variables(self.weight):
            raise _Other
        values = {old: Affine.of(new) for old, new in self.symbols.items()}
        values[total.terms[0].symbol] = Affine.of(total.terms[0].symbol)
        right = substitute(total.right, values)
        if any(tensor in self.cells for tensor, _ in loads(right)):
            raise _Other
        sums = (replace(total, right=right),)
        epilogue = self.epilogue(product, total, factors, values)
        used = {v for stmt in epilogue for expr in expressions(stmt) for v in _variables(expr)}
        used |= _variables(self.weight)
        if used.isdisjoint((self.maximum, self.total)):
            raise _Other
        result = replace(
            product, around=self.scores.around, rows=self.scores.rows, sums=sums, epilogue=epilogue
        )
        return Weighing(
            self.scores,
            self.stored,
            self.weight,
            self.score,
            self.maximum if self.maximum in used else None,
            self.total if self.total in used else None,
            result,
        )

    def factor(self, value: Expr) -> Apply:
        """A value that is a weight, or more, multiplied or divided by what is the same for the whole row."""
        match value:
            case Apply(op=op, args=(first, second)) if op.name in ("multiply", "divide"):
                varies = [self.score in _variables(part) for part in (first, second)]
                if varies == [True, False] or (op.name == "multiply" and varies == [False, True]):
                    return value
                raise _Other
            case _:
                raise _Other

    def epilogue(
        self, product: Product, total: Sum, factors: Sequence[Apply], values: dict[Symbol, Affine]
    ) -> tuple[Stmt, ...]:
        """What is done with a sum of weights: factors are applied to it first."""
        whole: Expr = Local(total.variable)
        for factor in reversed(factors):
            args = [whole if self.score in _variables(part) else part for part in factor.args]
            whole = Apply(factor.op, tuple(args), factor.dtype)
        done = Variable(total.variable.hint, total.variable.dtype)
        starts = Define(total.variable, total.start)

        def node(expr: Expr) -> Expr:
            match expr:
                case Local(variable=variable) if variable is total.variable:
                    return Local(done)
                case Load(tensor=tensor) if tensor in self.cells:
                    return self.cell(expr)
                case _:
                    return substitute(expr, values)

        def statement(stmt: Stmt) -> Stmt:
            stmt = rewrite_expressions(stmt, lambda expr: transform(expr, node))
            if isinstance(stmt, Store):
                return replace(stmt, index=tuple(position.substitute(values) for position in stmt.index))
            return stmt

        rest = [
            statement(stmt)
            for stmt in product.epilogue
            if not (isinstance(stmt, Define) and stmt.variable is total.variable)
        ]
        return (starts, Define(done, whole), *rest)

    # expressions

    def value(self, expr: Expr) -> Expr:
        """An expression over the score, the maximum, the sum of the weights and locals of outside."""

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
        if known is None or (loop.lo, loop.hi, loop.step) != (known.lo, known.hi, 1):
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


def _variables(expr: Expr) -> set[Variable]:
    return {node.variable for node in walk(expr) if isinstance(node, Local)}
