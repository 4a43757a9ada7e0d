"""The only generic walkers: children, rebuilding and substitution over expressions and statements.

Expressions may be deep (inlining nests them), so nothing here recurses over them without bound by
user program size: passes keep single expressions small and let `Define` carry the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import TypeVar

from ..frozen import replace
from . import assign
from .expr import Apply, Cast, Composed, Const, Expr, Gather, Index, Load, Local, Variable
from .index import Affine, Symbol, symbols_of
from .loops import (
    Barrier,
    Bind,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Lap,
    Multiply,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from .ops import Op
from .tensor import Tensor

__all__ = [
    "applies",
    "bottom_up",
    "children",
    "differs",
    "expressions",
    "kept",
    "locals_defined",
    "locals_read",
    "locals_updated",
    "locals_used",
    "nodes_in",
    "outer_updates",
    "rebuild",
    "rewrite_bodies",
    "rewrite_cells",
    "rewrite_expressions",
    "rewrite_loops",
    "rewrite_loops_inside_out",
    "storages_read",
    "substitute",
    "substitute_assignments",
    "substitute_statements",
    "symbols_read",
    "transform",
    "transform_statements",
    "variables",
    "walk",
]

Value = TypeVar("Value")
Cell = tuple[Tensor, tuple[Affine, ...]]

# Most nodes are leaves, most statements have a value and no body, and most of a compilation's time in Python
# is spent walking: what is met most often is asked for by its type, in a fraction of the time of a match.
_LEAVES = frozenset((Const, Load, Local, Index))
_VALUED = (Define, Store, Update, Bind, Fill)
_VALUED_TYPES = frozenset(_VALUED)
_WITH_BODIES = frozenset((For, If, While))


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Apply(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Gather(index=index):
            return index
        case Const() | Load() | Local() | Index():
            return ()


def rebuild(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The same expression over other operands; the same object when they are the same objects."""
    if isinstance(expr, Apply):
        same = all(map(is_, operands, expr.args))
        return expr if same else Apply(expr.op, operands, expr.dtype)
    if all(map(is_, operands, children(expr))):
        return expr
    match expr:
        case Cast(dtype=dtype):
            return Cast(operands[0], dtype)
        case Gather(tensor=tensor):
            return Gather(tensor, operands)
        case Const() | Load() | Local() | Index():
            return expr


def walk(expr: Expr) -> Sequence[Expr]:
    """Every node of an expression, each before its operands."""
    return (expr,) if type(expr) in _LEAVES else (expr, *_below(expr))


_keep_below = vars(Composed)["below"].__set__


def _below(expr: Expr) -> Sequence[Expr]:
    """The nodes under one that has operands."""
    try:
        return expr.below  # type: ignore[union-attr]
    except AttributeError:
        pass
    operands = children(expr)
    if all([type(operand) in _LEAVES for operand in operands]):
        _keep_below(expr, operands)
        return operands
    found: list[Expr] = []
    pending = list(operands[::-1])
    while pending:
        node = pending.pop()
        found.append(node)
        if type(node) not in _LEAVES:
            known = getattr(node, "below", None)
            if known is None:
                pending += children(node)[::-1]
            else:
                found += known
    _keep_below(expr, tuple(found))
    return found


def bottom_up(expr: Expr, rule: Callable[[Expr, tuple[Value, ...]], Value]) -> Value:
    """What `rule` makes of an expression: of each node, once for each object, given what it made of the
    operands. Goes over a stack of its own: expressions may be deep and shared."""
    if type(expr) in _LEAVES:
        return rule(expr, ())
    done: dict[int, Value] = {}
    pending = [expr]
    while pending:
        node = pending.pop()
        if id(node) in done:
            continue
        operands = node.args if type(node) is Apply else children(node)
        missing = [operand for operand in operands if id(operand) not in done]
        if any([type(operand) not in _LEAVES for operand in missing]):
            pending.append(node)
            pending.extend(reversed(missing))
            continue
        for operand in missing:
            if id(operand) not in done:
                done[id(operand)] = rule(operand, ())
        done[id(node)] = rule(node, tuple([done[id(operand)] for operand in operands]))
    return done[id(expr)]


def transform(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """`rule` applied to every node, operands first."""
    if type(expr) in _LEAVES:
        return rule(expr)
    operands = expr.args if type(expr) is Apply else children(expr)
    new = [rule(one) if type(one) in _LEAVES else transform(one, rule) for one in operands]
    return rule(expr if all(map(is_, new, operands)) else rebuild(expr, tuple(new)))


def substitute(expr: Expr, values: Mapping[Symbol, Affine]) -> Expr:
    """The expression with index symbols replaced; the same object where it has none of them."""

    def rule(node: Expr) -> Expr:
        if type(node) is Load:
            index = tuple([position.substitute(values) for position in node.index])
            return node if all(map(is_, index, node.index)) else Load(node.tensor, index)
        if type(node) is Index:
            value = node.value.substitute(values)
            return node if value is node.value else Index(value)
        return node

    return transform(expr, rule) if values else expr


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand directly in a statement (not in its nested bodies). That of a `While` is
    evaluated at the end of its test."""
    if isinstance(stmt, _VALUED):
        return (stmt.value,)
    match stmt:
        case (
            If(condition=condition)
            | Raise(condition=condition)
            | While(condition=condition)
            | Stay(condition=condition)
        ):
            return (condition,)
        case Copy(count=count):
            return (count,)
        case For() | Multiply() | Prefetch() | Lap() | Barrier() | Comment():
            return ()


def nodes_in(stmts: Iterable[Stmt]) -> list[Expr]:
    """Every node of the expressions of statements; not of the statements inside them."""
    found: list[Expr] = []
    for stmt in stmts:
        for expr in (stmt.value,) if type(stmt) in _VALUED_TYPES else expressions(stmt):  # type: ignore[union-attr]
            found.append(expr)
            if type(expr) not in _LEAVES:
                found += _below(expr)
    return found


def applies(body: Iterable[Stmt], ops: Container[Op]) -> bool:
    """Whether an op of these is in a body, or in the statements inside it: passes that are about few ops ask
    before they go through it."""
    nodes = nodes_in(walk_statements(body))
    return any(type(node) is Apply and node.op in ops for node in nodes)


def variables(expr: Expr) -> Iterator[Variable]:
    """The locals that an expression reads, each as often as it does."""
    return (node.variable for node in walk(expr) if isinstance(node, Local))


def locals_read(stmts: Iterable[Stmt]) -> Iterator[Variable]:
    """The locals that statements read, each as often as they do; not those of the statements inside them."""
    return (node.variable for node in nodes_in(stmts) if isinstance(node, Local))


def differs(expr: Expr, symbol: Symbol, varying: Container[Variable]) -> bool:
    """May a value differ from one iteration of the loop over a symbol to another, as `varying` locals do?"""
    for node in walk(expr):
        match node:
            case Local(variable=variable):
                if variable in varying:
                    return True
            case Load(index=index):
                if any(position.coefficient(symbol) for position in index):
                    return True
            case Index(value=value):
                if value.coefficient(symbol):
                    return True
            case _:
                pass
    return False


def locals_defined(stmts: Iterable[Stmt]) -> set[Variable]:
    """The locals that statements define; not those that the statements inside them do."""
    return {stmt.variable for stmt in stmts if isinstance(stmt, Define)}


def locals_updated(stmts: Iterable[Stmt]) -> set[Variable]:
    """The locals that statements update; not those that the statements inside them do."""
    return {stmt.variable for stmt in stmts if isinstance(stmt, Update)}


def outer_updates(stmts: Collection[Stmt]) -> list[Update]:
    """The updates, among these statements, of locals that none of them defines."""
    own = locals_defined(stmts)
    return [stmt for stmt in stmts if isinstance(stmt, Update) and stmt.variable not in own]


def locals_used(body: Iterable[Stmt]) -> set[Variable]:
    """The locals that a body reads or updates, in the statements inside too."""
    inside = list(walk_statements(tuple(body)))
    return locals_updated(inside) | set(locals_read(inside))


def storages_read(exprs: Iterable[Expr]) -> Iterator[Tensor]:
    """The storages that expressions read, each as often as they do."""
    for expr in exprs:
        for node in walk(expr):
            if type(node) is Load or type(node) is Gather:
                yield node.tensor.storage


def symbols_read(expr: Expr) -> Iterator[Symbol]:
    """The symbols that an expression depends on, each as often as it names it."""
    for node in walk(expr):
        if isinstance(node, Load):
            yield from symbols_of(node.index)
        elif isinstance(node, Index):
            yield from node.value.symbols


def rewrite_expressions(stmt: Stmt, rule: Callable[[Expr], Expr]) -> Stmt:
    """The statement with `rule` applied to each expression standing directly in it; of an `Update` with
    `contract`, to both factors, since the product must stay one."""
    if isinstance(stmt, _VALUED):
        value = stmt.value
        if type(stmt) is Update and stmt.contract:
            new = rebuild(value, tuple(rule(factor) for factor in children(value)))
        else:
            new = rule(value)
        return stmt if new is value else replace(stmt, value=new)
    match stmt:
        case (
            If(condition=condition)
            | Raise(condition=condition)
            | While(condition=condition)
            | Stay(condition=condition)
        ):
            new = rule(condition)
            return stmt if new is condition else replace(stmt, condition=new)
        case Copy(count=count):
            new = rule(count)
            return stmt if new is count else replace(stmt, count=new)
        case For() | Multiply() | Prefetch() | Lap() | Barrier() | Comment():
            return stmt


def kept(old: tuple[Value, ...], new: Sequence[Value]) -> tuple[Value, ...]:
    """`new` as a body, of either IR; `old` itself when it has the same statements."""
    same = len(old) == len(new) and all(map(is_, old, new))
    return old if same else tuple(new)


def rewrite_bodies(stmt: Stmt, rule: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """The statement with `rule` applied to each body nested in it."""
    if type(stmt) not in _WITH_BODIES:
        return stmt
    match stmt:
        case For(body=body):
            new = rule(body)
            return stmt if new is body else replace(stmt, body=new)
        case If(body=body, orelse=orelse):
            new, other = rule(body), rule(orelse)
            return stmt if new is body and other is orelse else replace(stmt, body=new, orelse=other)
        case While(test=test, body=body):
            first, new = rule(test), rule(body)
            return stmt if first is test and new is body else replace(stmt, test=first, body=new)
        case _:
            return stmt


def rewrite_loops(body: tuple[Stmt, ...], rule: Callable[[For], Iterable[Stmt] | None]) -> tuple[Stmt, ...]:
    """A body with what `rule` makes of its loops, outer ones first. Where that is None, `rule` sees the loops
    inside; otherwise it does not."""
    out: list[Stmt] = []
    for stmt in body:
        if type(stmt) not in _WITH_BODIES:
            out.append(stmt)
            continue
        new = rule(stmt) if type(stmt) is For else None
        if new is None:
            out.append(rewrite_bodies(stmt, lambda inner: rewrite_loops(inner, rule)))
        else:
            out.extend(new)
    return kept(body, out)


def rewrite_loops_inside_out(
    body: tuple[Stmt, ...], rule: Callable[[For], Iterable[Stmt] | None]
) -> tuple[Stmt, ...]:
    """A body with what `rule` makes of its loops, inner ones first; where that is None, they stay."""
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite_bodies(stmt, lambda inner: rewrite_loops_inside_out(inner, rule))
        new = rule(stmt) if type(stmt) is For else None
        out.extend((stmt,) if new is None else new)
    return kept(body, out)


def transform_statements(
    body: tuple[Stmt, ...], rule: Callable[[Expr], Expr], then: Callable[[Stmt], Stmt] | None = None
) -> tuple[Stmt, ...]:
    """A body with `rule` applied to every node of every expression in it, operands first, and `then` to every
    statement with such expressions, outer ones first."""
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, rule))
        stmt = then(stmt) if then else stmt
        out.append(rewrite_bodies(stmt, lambda inner: transform_statements(inner, rule, then)))
    return kept(body, out)


def rewrite_cells(
    body: tuple[Stmt, ...], rule: Callable[[Tensor, tuple[Affine, ...]], Cell]
) -> tuple[Stmt, ...]:
    """A body with `rule` applied to every cell that it loads or stores."""

    def loaded(node: Expr) -> Expr:
        if not isinstance(node, Load):
            return node
        tensor, index = rule(node.tensor, node.index)
        return node if tensor is node.tensor and index is node.index else Load(tensor, index)

    def stored(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Store):
            return stmt
        tensor, index = rule(stmt.tensor, stmt.index)
        same = tensor is stmt.tensor and index is stmt.index
        return stmt if same else replace(stmt, tensor=tensor, index=index)

    return transform_statements(body, loaded, stored)


def substitute_statements(body: tuple[Stmt, ...], values: Mapping[Symbol, Affine]) -> tuple[Stmt, ...]:
    """A body with index symbols replaced everywhere: loads, stores, bounds."""
    return tuple([_placed(stmt, values) for stmt in body])


def _placed(stmt: Stmt, values: Mapping[Symbol, Affine]) -> Stmt:
    stmt = rewrite_expressions(stmt, lambda expr: substitute(expr, values))
    match stmt:
        case Store(index=index) | Prefetch(index=index):
            return replace(stmt, index=tuple([position.substitute(values) for position in index]))
        case Copy(index=index, at=at):
            index = tuple(position.substitute(values) for position in index)
            return replace(stmt, index=index, at=tuple(position.substitute(values) for position in at))
        case Multiply(stage=stage):
            return replace(stmt, stage=stage.substitute(values))
        case For(lo=lo, hi=hi, body=body, grain=grain):
            return replace(
                stmt,
                lo=lo.substitute(values),
                hi=hi.substitute(values),
                body=substitute_statements(body, values),
                grain=grain and grain.substitute(values),
            )
        case _:
            return rewrite_bodies(stmt, lambda inner: substitute_statements(inner, values))


def substitute_assignments(
    body: tuple[assign.Statement, ...], values: Mapping[Symbol, Affine]
) -> tuple[assign.Statement, ...]:
    """As `substitute_statements`, of the high-level IR."""
    return tuple(_substituted(statement, values) for statement in body)


def _substituted(statement: assign.Statement, values: Mapping[Symbol, Affine]) -> assign.Statement:
    statement = assign.rewrite_expressions(statement, lambda expr: substitute(expr, values))
    match statement:
        case assign.Assign(loops=loops, index=index):
            positions = tuple(position.substitute(values) for position in index)
            return replace(statement, loops=_extents(loops, values), index=positions)
        case assign.Check(loops=loops):
            return replace(statement, loops=_extents(loops, values))
        case assign.Loop(lo=lo, hi=hi, body=body):
            ends = lo.substitute(values), hi.substitute(values)
            return replace(statement, lo=ends[0], hi=ends[1], body=substitute_assignments(body, values))
        case _:
            return assign.rewrite_bodies(statement, lambda body: substitute_assignments(body, values))


def _extents(
    loops: tuple[tuple[Symbol, Affine], ...], values: Mapping[Symbol, Affine]
) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple((symbol, extent.substitute(values)) for symbol, extent in loops)
