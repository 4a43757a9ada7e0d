"""Numbers that neither find memory nor are tested for exceptions are locals: loops around them go in vectors.

    n: index = cast(t, i64)                             t1: i64 = cast(t, i64)
    n1: index = where(less(255, n), 255, n)    ->       t2: i64 = where(less(255, t1), 255, t1)
    y[i] = cast(index(n1), u8)                          y[i] = cast(t2, u8)

`certain` calls this for what it has left: positions are recognised by the symbols that they are bound to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import Bind, Comment, Define, For, If, Raise, Stmt, Store, Update, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import children, expressions, locals_read, nodes_in, transform_statements, walk

__all__ = ["with_plain_numbers"]

_KNOWN = (Bind, Comment, Define, For, If, Raise, Store, Update, While)


def with_plain_numbers(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with such numbers as locals."""
    inside = list(walk_statements(body))
    loops = [stmt for stmt in body if isinstance(stmt, (For, While))]
    bound = [stmt.symbol for stmt in walk_statements(tuple(loops)) if isinstance(stmt, Bind)]
    if not bound or not all(isinstance(stmt, _KNOWN) for stmt in inside):
        return body
    needed = _needed(inside)
    locals_of = {symbol: Variable(symbol.hint, I64) for symbol in bound if symbol not in needed}
    return _rewritten(body, locals_of) if locals_of else body


def _needed(inside: list[Stmt]) -> set[Symbol]:
    """The symbols that memory is found by or exceptions are raised by, and those that these come from."""
    symbols = {symbol for stmt in inside for symbol in _places(stmt)}
    raising = [stmt for stmt in inside if isinstance(stmt, Raise)]
    symbols |= {symbol for stmt in raising for symbol in _asked(stmt)}
    variables = set(locals_read(raising))
    sources = [stmt for stmt in inside if isinstance(stmt, (Bind, Define, Update))]
    while True:
        found = [
            stmt
            for stmt in sources
            if (stmt.symbol in symbols if isinstance(stmt, Bind) else stmt.variable in variables)
        ]
        if not found:
            return symbols
        sources = [stmt for stmt in sources if stmt not in found]
        symbols |= {symbol for stmt in found for symbol in _asked(stmt)}
        variables |= set(locals_read(found))


def _places(stmt: Stmt) -> Iterator[Symbol]:
    """The symbols by which a statement itself finds memory, or by which it is repeated."""
    match stmt:
        case For(lo=lo, hi=hi):
            yield from symbols_of((lo, hi))
        case Store(tensor=tensor, index=index):
            yield from symbols_of((*index, *tensor.shape))
        case _:
            pass
    for node in nodes_in((stmt,)):
        if isinstance(node, Load):
            yield from symbols_of((*node.index, *node.tensor.shape))
        elif isinstance(node, Gather):
            yield from (symbol for part in children(node) for symbol in _numbers(part))


def _asked(stmt: Stmt) -> Iterator[Symbol]:
    """The symbols that a statement computes with."""
    for expr in expressions(stmt):
        yield from _numbers(expr)


def _numbers(expr: Expr) -> Iterator[Symbol]:
    return (symbol for node in walk(expr) if isinstance(node, Index) for symbol in node.value.symbols)


def _rewritten(body: tuple[Stmt, ...], locals_of: Mapping[Symbol, Variable]) -> tuple[Stmt, ...]:
    def rule(node: Expr) -> Expr:
        if isinstance(node, Index) and not locals_of.keys().isdisjoint(node.value.symbols):
            return _sum(node.value, locals_of)
        return node

    def bound(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Bind) and stmt.symbol in locals_of:
            return Define(locals_of[stmt.symbol], stmt.value)
        return stmt

    return transform_statements(body, rule, bound)


def _sum(value: Affine, locals_of: Mapping[Symbol, Variable]) -> Expr:
    """An index as arithmetic on locals."""
    rest, terms = value, []
    for factor, symbol in value.terms:
        if symbol in locals_of:
            rest = rest - Affine.of(symbol) * factor
            term: Expr = Local(locals_of[symbol])
            terms.append(term if factor == 1 else Apply(OPS["multiply"], (term, Const(factor, I64)), I64))
    if rest != Affine.of(0):
        terms.append(Const(rest.offset, I64) if rest.is_constant else Index(rest))
    found, *others = terms
    for term in others:
        found = Apply(OPS["add"], (found, term), I64)
    return found
