"""Temporaries and variables that nothing needs disappear, with the loops that only made them.

    t[i] = exp(x[i])   for i in parallel(0, 8)
    y[i] = x[i]        for i in parallel(0, 8)      ->      y[i] = x[i]   for i in parallel(0, 8)

Needed is what reaches a parameter's memory, a condition or an exception. The needs of each temporary
and variable are collected once and followed from those roots, so the time is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Union

from ..ir.code import Caps
from ..ir.expr import Expr, Gather, Load, Local, Variable
from ..ir.loops import Define, Fill, For, If, Kernel, Stmt, Store, Update, walk_statements
from ..ir.tensor import Tensor
from ..ir.walk import expressions, kept, rewrite_bodies, walk
from .access import given

__all__ = ["prune"]

Value = Union[Tensor, Variable]


def prune(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel without what has no effect."""
    visible = given(kernel.params)
    needs: dict[Value | None, set[Value]] = {None: set()}
    for stmt in walk_statements(kernel.body):
        made = _made(stmt)
        root = made is None or made in visible
        needs.setdefault(None if root else made, set()).update(_needed(stmt))
    needed: set[Value] = set()
    pending = list(needs[None])
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending.extend(needs.get(value, ()))
    body = _swept(kernel.body, needed | visible)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _made(stmt: Stmt) -> Value | None:
    """What a statement gives a value to; None when it acts in another way."""
    match stmt:
        case Store(tensor=tensor) | Fill(tensor=tensor):
            return tensor.storage
        case Define(variable=variable) | Update(variable=variable):
            return variable
        case _:
            return None


def _needed(stmt: Stmt) -> Iterator[Value]:
    for expr in expressions(stmt):
        yield from _read(expr)


def _read(expr: Expr) -> Iterator[Value]:
    for node in walk(expr):
        match node:
            case Load(tensor=tensor) | Gather(tensor=tensor):
                yield tensor.storage
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
