"""prune: temporaries, variables and bound symbols that nothing needs disappear, and the loops that made them.

    t[i] = exp(x[i])   for i in parallel(0, 8)
    y[i] = x[i]        for i in parallel(0, 8)      ->      y[i] = x[i]   for i in parallel(0, 8)

Needed is what reaches a parameter's memory, the end of a `while` loop or an exception, and with a statement
the bounds and conditions that it stands under. The needs of each value are collected once and followed from
those roots, so the time is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from ...ir.code import Caps
from ...ir.expr import Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Symbol, symbols_of
from ...ir.loops import Bind, Copy, Define, Fill, For, If, Kernel, Multiply, Stmt, Store, Update, While
from ...ir.tensor import Tensor
from ...ir.walk import expressions, kept, rewrite_bodies, walk
from ..analysis.access import given

__all__ = ["prune"]

Value = Union[Tensor, Variable, Symbol]


def prune(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without what has no effect."""
    visible = given(kernel.params)
    needs: dict[Value | None, set[Value]] = {None: set()}
    for made, needed_here in _needs(kernel.body, frozenset()):
        needs.setdefault(None if made in visible else made, set()).update(needed_here)
    needed: set[Value] = set()
    pending = list(needs[None])
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending.extend(needs.get(value, ()))
    return kernel.with_body(_swept(kernel.body, needed | visible))


def _needs(body: tuple[Stmt, ...], under: frozenset[Value]) -> Iterator[tuple[Value | None, set[Value]]]:
    """For each statement what it gives a value to, None where it acts in another way, and what it needs,
    `under` which is what decides whether it runs."""
    for stmt in body:
        match stmt:
            case For(lo=lo, hi=hi, body=inner):
                yield from _needs(inner, under.union(symbols_of((lo, hi))))
            case If(condition=condition, body=inner, orelse=orelse):
                decisive = under.union(_read(condition))
                yield from _needs(inner, decisive)
                yield from _needs(orelse, decisive)
            case While(test=test, condition=condition, body=inner):
                yield None, {*under, *_read(condition)}
                yield from _needs(test, under)
                yield from _needs(inner, under)
            case _:
                yield _made(stmt), {*under, *_needed(stmt)}


def _made(stmt: Stmt) -> Value | None:
    """What a statement gives a value to; None when it acts in another way."""
    match stmt:
        case Store(tensor=tensor) | Fill(tensor=tensor):
            return tensor.storage
        case Define(variable=variable) | Update(variable=variable):
            return variable
        case Bind(symbol=symbol):
            return symbol
        case _:
            return None


def _needed(stmt: Stmt) -> Iterator[Value]:
    match stmt:
        case Store(index=index):
            yield from symbols_of(index)
        case Copy(index=index, source=source, at=at):
            yield source.storage
            yield from symbols_of((*index, *at))
        case Multiply(total=total, left=left, right=right, stage=stage):
            yield from (total.storage, left.storage, right.storage)
            yield from symbols_of((stage,))
        case _:
            pass
    for expr in expressions(stmt):
        yield from _read(expr)


def _read(expr: Expr) -> Iterator[Value]:
    for node in walk(expr):
        match node:
            case Load(tensor=tensor, index=index):
                yield tensor.storage
                yield from symbols_of(index)
            case Gather(tensor=tensor):
                yield tensor.storage
            case Index(value=value):
                yield from value.symbols
            case Local(variable=variable):
                yield variable
            case _:
                pass


def _swept(body: tuple[Stmt, ...], needed: set[Value]) -> tuple[Stmt, ...]:
    remaining: list[Stmt] = []
    for stmt in body:
        made = _made(stmt)
        if made is not None and made not in needed:
            continue
        swept = rewrite_bodies(stmt, lambda inner: _swept(inner, needed))
        match swept:
            case For(body=()) | If(body=(), orelse=()):
                pass
            case _:
                remaining.append(swept)
    return kept(body, remaining)
