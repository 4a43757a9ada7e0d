"""check: what a program shall be stopped at is looked for beside what it computes.

    y[i] = log(x[i])   for i in n

        ->

    y[i] = log(x[i])   for i in n
    nan = reduce(or, isnan(y[i]))   for i in n
    if nan:
        fails = reduce(or, isnan(log(x[i])) and not isnan(x[i]))   for i in n
        if fails:
            for i in range(0, n):
                if isnan(log(x[i])) and not isnan(x[i]):
                    told[0], told[1] = i, bits(x[i])
                    check(False, 'FloatingPointError', ...)

Whether something is wrong is a reduction, which is vectorised as any; only where it is, the first point in
the program's order is looked for, and its numbers are left in the journal. All of it is ordinary statements,
so that every target has it. `Computation.checks` says what is looked for:

- `nan`: a float operation that gives NaN without having read one; of a reduction, its cells.
- `bounds`: an index outside its axis wherever it is not known to lie within; and the program's own checks say
  at which point they fail, and of which numbers.
- `overflow`: an integer that +, -, *, a power or a negation, a sum or a product, or a cast to integers cannot
  hold. The exact result is compared through float64, whose error is far less than the 2**bits by which a
  result that wrapped is off.

A test may not come after what it reads is overwritten: all of a statement's stand before it, but for NaN in
results where nothing is overwritten, and in the cells of reductions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...errors import Location
from ...frozen import frozen, slotted
from ...ir.assign import ArrayParam, Assign, Bind, Branch, Check, Computation, Loop, Note, Statement, While
from ...ir.code import Caps
from ...ir.conditions import both, compare, either, is_nan, opposite
from ...ir.dtype import BOOL, F64, I64, Kind
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, constant, convert, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.journal import FIELDS, given, journal_of, new_journal, shown_cell
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import storages_read, substitute, walk
from ..analysis.access import Range
from ..analysis.trips import at_points, enter
from .log import as_cell

__all__ = ["check"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "square", "power", "absolute"))
"""The operations on integers of which it is looked at whether they overflow."""

Loops = tuple[tuple[Symbol, Affine], ...]

ZERO, FALSE = Affine.of(0), Const(False, BOOL)


def check(computation: Computation, caps: Caps) -> Computation:
    """The computation with statements that look for what `checks` names."""
    if not computation.checks:
        return computation
    found = journal_of(computation.params)
    journal = new_journal() if found is None else ArrayParam(found, "journal")
    kinds = frozenset(computation.checks)
    arrays = (param for param in computation.params if isinstance(param, ArrayParam))
    known = frozenset(param.tensor for param in arrays if param.access != "write")
    checking = _Checking(kinds, journal.tensor, known)
    body = tuple(checking.body(computation.body, _Site((), (), {}, None)))
    return replace(computation, params=(*given(computation.params), journal), body=body, checks=())


@frozen
class _Site:
    """Where something is computed: at every point of `loops`, in the iterations of the loops of the user's
    whose symbols are `around`; `ranges` has the values of all."""

    loops: Loops
    around: tuple[Symbol, ...]
    ranges: Mapping[Symbol, Range]
    loc: Location | None

    def over(self, loops: Loops, loc: Location | None) -> _Site:
        """The site of a statement here that goes over loops of its own."""
        return replace(self, loops=loops, ranges=at_points(loops, self.ranges), loc=loc)

    def inside(self, loop: Loop) -> _Site:
        """The site of the statements in a loop."""
        ranges = dict(self.ranges)
        enter(loop, ranges)
        return replace(self, around=(*self.around, loop.symbol), ranges=ranges)

    def is_within(self, position: Affine, extent: Affine) -> bool:
        """Whether an index is known to lie in an axis."""
        known = position.bounds(self.ranges)
        beyond = (extent - position).bounds(self.ranges)
        return known is not None and beyond is not None and known[0] >= 0 and beyond[0] > 0


@frozen
class _Wrong:
    """What a program is stopped at: where `fails` holds, with `shown` in the message, each with its name, or
    none if the user knows none."""

    fails: Expr
    exception: str
    what: str
    shown: tuple[tuple[str, Expr], ...] = ()


@slotted
class _Checking:
    """Adds the statements; `known` are the arrays that the user has names for."""

    kinds: frozenset[str]
    journal: Tensor
    known: frozenset[Tensor]

    def body(self, body: tuple[Statement, ...], site: _Site) -> Iterator[Statement]:
        for statement in body:
            match statement:
                case Assign(into=into) if into is self.journal:
                    yield statement
                case Assign():
                    yield from self.assign(statement, site.over(statement.loops, statement.loc))
                case Check(loops=loops, condition=condition) if "bounds" in self.kinds:
                    there = site.over(loops, statement.loc)
                    yield from self.wrongs(self.unseen(condition, there), there)
                    fails = opposite(condition)
                    wrong = _Wrong(fails, statement.exception, statement.message, self.operands(condition))
                    yield from self.wrongs([wrong], there)
                case Bind(value=value, loc=loc):
                    yield from self.expression(value, site.over((), loc))
                    yield statement
                case Loop(body=inner):
                    yield replace(statement, body=tuple(self.body(inner, site.inside(statement))))
                case Branch(condition=condition, body=inner, orelse=other, loc=loc):
                    yield from self.expression(condition, site.over((), loc))
                    bodies = tuple(self.body(inner, site)), tuple(self.body(other, site))
                    yield replace(statement, body=bodies[0], orelse=bodies[1])
                case While(test=test, condition=condition, body=inner, loc=loc):
                    first = (*self.body(test, site), *self.expression(condition, site.over((), loc)))
                    yield replace(statement, test=first, body=tuple(self.body(inner, site)))
                case Check() | Note():
                    yield statement

    def expression(self, value: Expr, site: _Site) -> Iterator[Statement]:
        """What may be wrong with a value whoever reads it."""
        if "bounds" in self.kinds:
            yield from self.wrongs(self.unseen(value, site), site)
        if "overflow" in self.kinds:
            yield from self.wrongs(self.overflows(value), site)

    def assign(self, assign: Assign, site: _Site) -> Iterator[Statement]:
        yield from self.expression(assign.value, site)
        if "bounds" in self.kinds:
            yield from self.wrongs(self.outside(assign.into, assign.index, site), site)
        if "overflow" in self.kinds and assign.accum and assign.into.dtype.is_integer:
            yield from self.sum_overflows(assign, site)
        if "nan" not in self.kinds or not assign.into.dtype.is_float:
            yield assign
        elif assign.accum is not None:
            yield from self.sum_is_nan(assign, site)
        else:
            yield from self.is_nan(assign, site)

    # What may be wrong

    def is_nan(self, assign: Assign, site: _Site) -> Iterator[Statement]:
        """Whether there is any NaN is seen from the result, where the statement overwrites nothing that it
        reads. Only if there is, it is asked where it came from."""
        value = assign.value
        ops = _names(value)
        if not ops:
            yield assign
            return
        overwrites = assign.into.storage in storages_read((value,))
        if not overwrites:
            yield assign
        fails = both(is_nan(value), opposite(_any_nan(value)))
        wrong = _Wrong(fails, "FloatingPointError", f"{ops} gives nan", self.operands(value))
        found = is_nan(value if overwrites else Load(assign.into, assign.index))
        if assign.loops:
            nan = Tensor("nan", (), BOOL)
            own, point = _fresh(assign.loops)
            every = substitute(found, point)
            yield Assign(own, nan, (), every, OPS["logical_or"], FALSE, loc=assign.loc)
            found = Load(nan, ())
        yield Branch(found, tuple(self.wrongs([wrong], site)), loc=assign.loc)
        if overwrites:
            yield assign

    def unseen(self, value: Expr, site: _Site) -> Iterator[_Wrong]:
        """Every index of an expression, those of its operands first."""
        for node in reversed(list(walk(value))):
            if isinstance(node, Load):
                yield from self.outside(node.tensor, node.index, site)
            elif isinstance(node, Gather):
                for axis, (position, extent) in enumerate(zip(node.index, node.tensor.shape, strict=True)):
                    if not isinstance(position, Index) or not site.is_within(position.value, extent):
                        yield _outside(position, axis, extent)

    def outside(self, tensor: Tensor, index: tuple[Affine, ...], site: _Site) -> Iterator[_Wrong]:
        for axis, (position, extent) in enumerate(zip(index, tensor.shape, strict=True)):
            if not site.is_within(position, extent):
                yield _outside(Index(position), axis, extent)

    def overflows(self, value: Expr) -> Iterator[_Wrong]:
        """Of casts only one that the value itself is: the user's. What is cast on the way to a value, as to
        find a place in a table, may be dropped later."""
        for node in reversed(list(walk(value))):
            match node:
                case Apply(op=op, args=args, dtype=dtype) if dtype.is_integer and op.name in ARITHMETIC:
                    wide = Apply(op, tuple(Cast(arg, F64) for arg in args), F64)
                    what = f"{op.name} overflows {dtype.name}"
                    yield _Wrong(_differs(wide, node), "ArithmeticError", what, self.named(args))
                case Cast(arg=arg, dtype=dtype) if (
                    node is value and dtype.is_integer and (fails := _lost(arg, node))
                ):
                    what = f"a cast from {dtype_of(arg).name} overflows {dtype.name}"
                    yield _Wrong(fails, "ArithmeticError", what, self.named((arg,)))
                case _:
                    pass

    def sum_overflows(self, assign: Assign, site: _Site) -> Iterator[Statement]:
        """Each cell once more, and in float64, before the statement: it may overwrite what it reads."""
        assert assign.accum is not None
        if assign.accum.name not in ARITHMETIC:
            return
        outer, inner = assign.cell_loops, assign.reduced_loops
        symbols, at = _fresh(outer)
        start = Load(assign.into, assign.index) if assign.initial is None else assign.initial
        cell, wide = Tensor("cell", (), assign.into.dtype), Tensor("wide", (), F64)
        body: list[Statement] = []
        for into, dtype in ((cell, assign.into.dtype), (wide, F64)):
            own, point = _fresh(inner, at)
            value, first = (substitute(convert(expr, dtype), point) for expr in (assign.value, start))
            body.append(Assign(own, into, (), value, assign.accum, first, loc=assign.loc))
        fails = _differs(Load(wide, ()), Load(cell, ()))
        what = f"reduce {assign.accum} overflows {assign.into.dtype.name}"
        shown = (("exactly", Load(wide, ())), ("wrapped", Load(cell, ())))
        there = replace(site, loops=symbols)
        body.append(self.leaving(_Wrong(fails, "ArithmeticError", what, shown), there, at))
        yield from _nested(symbols, body)

    def sum_is_nan(self, assign: Assign, site: _Site) -> Iterator[Statement]:
        """Cells of a reduction that are NaN where nothing that they are of is. Where the statement overwrites
        what it reads, that is looked at before, for all cells together."""
        assert assign.accum is not None
        outer, inner = assign.cell_loops, assign.reduced_loops
        cell = Load(assign.into, assign.index)
        start = cell if assign.initial is None else assign.initial
        overwrites = assign.into.storage in storages_read((assign.value, start))
        had = Tensor("had_nan", (), BOOL)
        read = _or(_any_nan(assign.value), _any_nan(start))
        if overwrites:
            own, point = _fresh(assign.loops)
            yield Assign(own, had, (), substitute(read, point), OPS["logical_or"], FALSE, loc=assign.loc)
        yield assign
        found = Tensor("nan", (), BOOL)
        own, point = _fresh(outer)
        yield Assign(
            own, found, (), substitute(is_nan(cell), point), OPS["logical_or"], FALSE, loc=assign.loc
        )
        symbols, at = _fresh(outer)
        body: list[Statement] = []
        if not overwrites:
            own, point = _fresh(inner, at)
            body.append(
                Assign(own, had, (), substitute(read, point), OPS["logical_or"], FALSE, loc=assign.loc)
            )
        fails = both(is_nan(cell), opposite(Load(had, ())))
        what = " of ".join(filter(None, (f"reduce {assign.accum}", _names(assign.value))))
        wrong = _Wrong(fails, "FloatingPointError", f"{what} gives nan from numbers that are none")
        body.append(self.leaving(wrong, replace(site, loops=symbols), at))
        yield Branch(Load(found, ()), tuple(_nested(symbols, body)), loc=assign.loc)

    def operands(self, value: Expr) -> tuple[tuple[str, Expr], ...]:
        """What an expression reads, by the names that the user knows."""
        return self.named([node for node in walk(value) if isinstance(node, (Load, Gather))])

    def named(self, values: Sequence[Expr]) -> tuple[tuple[str, Expr], ...]:
        """Expressions, each once; those that are cells of the caller's by the names of their arrays."""
        return tuple(
            (
                value.tensor.label
                if isinstance(value, (Load, Gather)) and value.tensor.storage in self.known
                else "",
                value,
            )
            for value in dict.fromkeys(values)
        )

    # How it is looked for

    def wrongs(self, wrongs: Iterator[_Wrong] | Sequence[_Wrong], site: _Site) -> Iterator[Statement]:
        """Leave at the first point at which something is wrong."""
        for wrong in wrongs:
            symbols, at = _fresh(site.loops)
            leaving = self.leaving(wrong, replace(site, loops=symbols), at)
            if not symbols:
                yield leaving
                continue
            fails = Tensor("fails", (), BOOL)
            own, point = _fresh(site.loops)
            every = substitute(wrong.fails, point)
            yield Assign(own, fails, (), every, OPS["logical_or"], FALSE, loc=site.loc)
            yield Branch(Load(fails, ()), tuple(_nested(symbols, [leaving])), loc=site.loc)

    def leaving(self, wrong: _Wrong, site: _Site, at: Mapping[Symbol, Affine]) -> Branch:
        """Leave if something is wrong at one point: that of `site.loops`, which `at` puts for others."""
        point = [symbol for symbol, _ in site.loops]
        cells = _Cells()
        fields = [cells.field(Index(Affine.of(symbol))) for symbol in (*point, *site.around)]
        place = f" at [{', '.join(fields[: len(point)])}]" if point else ""
        turns = fields[len(point) :]
        if turns:
            place += f" in iteration{'s' if len(turns) > 1 else ''} {', '.join(turns)}"
        message = wrong.what + place
        for name, value in wrong.shown:
            index = [substitute(position, at) for position in _index(value)] if name else []
            where = f"[{', '.join(map(cells.field, index))}]" if index else ""
            message += f"\n{name or 'an operand'}{where}: {cells.field(substitute(value, at))}"
        told = (
            Assign((), self.journal, (Affine.of(cell),), as_cell(number), loc=site.loc)
            for cell, number in enumerate(cells.numbers)
        )
        leave = Check((), FALSE, wrong.exception, message, site.loc)
        return Branch(substitute(wrong.fails, at), (*told, leave), loc=site.loc)


@slotted
class _Cells:
    """What is left in the journal."""

    numbers: list[Expr] = field(default_factory=list)

    def field(self, number: Expr) -> str:
        """A number as it stands in the message: itself, or where it is left; dots where there is no room."""
        match number:
            case Const(value=value):
                return str(value)
            case Index(value=Affine(terms=(), offset=offset)):
                return str(offset)
        if len(self.numbers) == FIELDS:
            return "..."
        self.numbers.append(number)
        return shown_cell(len(self.numbers) - 1, dtype_of(number))


def _index(value: Expr) -> Sequence[Expr]:
    """The index of a cell."""
    match value:
        case Load(index=index):
            return [Index(position) for position in index]
        case Gather(index=computed):
            return computed
        case _:
            return ()


def _fresh(loops: Loops, known: Mapping[Symbol, Affine] | None = None) -> tuple[Loops, dict[Symbol, Affine]]:
    """The loops over symbols of their own, and what to put for the old ones."""
    values = dict(known or {})
    own: list[tuple[Symbol, Affine]] = []
    for symbol, extent in loops:
        new = Symbol(symbol.hint)
        own.append((new, extent.substitute(values)))
        values[symbol] = Affine.of(new)
    return tuple(own), values


def _nested(loops: Loops, body: Sequence[Statement]) -> Sequence[Statement]:
    """Statements in real loops, in order."""
    for symbol, extent in reversed(loops):
        body = [Loop(symbol, ZERO, extent, 1, tuple(body))]
    return body


def _outside(position: Expr, axis: int, extent: Affine) -> _Wrong:
    low = compare("less", position, Const(0, I64))
    high = compare("greater_equal", position, Index(extent))
    size = extent.offset if extent.is_constant else extent
    what = f"an index is out of bounds for axis {axis} with size {size}"
    return _Wrong(either(low, high), "IndexError", what, (("index", position),))


def _differs(wide: Expr, node: Expr) -> Expr:
    """Whether an integer is another one than the same computed in float64."""
    half = float(2 ** (dtype_of(node).bits - 1))
    apart = Apply(OPS["absolute"], (Apply(OPS["subtract"], (wide, Cast(node, F64)), F64),), F64)
    return compare("greater_equal", apart, constant(half, F64))


def _lost(arg: Expr, cast: Cast) -> Expr | None:
    """Whether a number changes by becoming an integer, but for what is cut off behind the point; None where
    it cannot."""
    source, into = dtype_of(arg), cast.dtype
    if source.is_float:
        signed = into.kind is Kind.INT
        low = -(2 ** (into.bits - 1)) if signed else 0
        high = 2 ** (into.bits - 1 if signed else into.bits)
        wide = arg if source is F64 else Cast(arg, F64)
        is_exact = into.bits < 64 or not signed
        lowest = constant(float(low - 1 if is_exact else low), F64)
        above = Apply(OPS["greater" if is_exact else "greater_equal"], (wide, lowest), BOOL)
        below = compare("less", wide, constant(float(high), F64))
        return opposite(both(above, below))
    if not source.is_integer:
        return None
    back = compare("not_equal", Cast(cast, source), arg)
    signs = [compare("less", node, Const(0, dtype_of(node))) for node in (arg, cast)]
    return either(back, compare("not_equal", signs[0], signs[1]))


def _any_nan(value: Expr) -> Expr:
    """Whether NaN is among what an expression reads."""
    found: Expr = FALSE
    for node in walk(value):
        if isinstance(node, (Load, Gather, Const)) and dtype_of(node).is_float:
            found = _or(found, is_nan(node))
    return found


def _names(value: Expr) -> str:
    """The operations on floats in an expression."""
    ops = dict.fromkeys(
        node.op.name for node in walk(value) if isinstance(node, Apply) and node.dtype.is_float
    )
    return ", ".join(ops)


def _or(one: Expr, other: Expr) -> Expr:
    """As `either`, without what surely does not hold."""
    return other if one is FALSE else either(one, other)
