"""simplify: what is known at compile time is computed, and what nobody reads is dropped.

    t0 = multiply(x[i], f32(1.0))
    t1 = t0
    for j in parallel(0, 1):            ->      t0 = x[i]
        z = less(t1, f32(0.0))                  y[i, 0] = where(less(t0, f32(0.0)), f32(6.0), t0)
        y[i, j] = where(z, multiply(f32(2.0), f32(3.0)), t1)

Constants are folded with each op's own meaning; the identities are in `rules.py`. Locals that only
rename a constant or another local vanish, as do locals that reach no store, loops that never run and
branches never taken; a loop that runs once becomes its body.
"""

from __future__ import annotations

from collections import Counter

from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Apply, Cast, Const, Expr, Local, Variable, dtype_of
from ...ir.loops import Define, For, If, Kernel, LoopKind, Raise, Stmt, Update, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import kept, nodes_in, rewrite_bodies, rewrite_expressions, substitute_statements, transform
from ..structure.prune import prune
from .rules import multiply_bit, simpler, simpler_cast

__all__ = ["simplify"]

_SHARED_OUT = (LoopKind.GRID, LoopKind.BLOCK)
"""Loops that say who runs what: they stay, even around one iteration."""


def simplify(kernel: Kernel, caps: Caps) -> Kernel:
    """The same program with less to do."""
    body = _Rewrite(kernel.body).body(kernel.body)
    return prune(kernel.with_body(body), caps)


class _Rewrite:
    """One walk in program order that knows which locals are mere names for something else.

    `updates` counts those still to come for each local that changes, and `homes` has the innermost loop
    around its definition. `choices` are what locals in `cast`, of which casts are taken, choose between.
    """

    def __init__(self, body: tuple[Stmt, ...]) -> None:
        self.updates = Counter(s.variable for s in walk_statements(body) if isinstance(s, Update))
        self.changing = frozenset(self.updates)
        self.homes: dict[Variable, For | While | None] = {}
        self.loop: For | While | None = None
        self.values: dict[Variable, Expr] = {}
        self.bits: set[Variable] = set()
        nodes = nodes_in(walk_statements(body))
        arguments = (node.arg for node in nodes if isinstance(node, Cast))
        self.cast = {arg.variable for arg in arguments if isinstance(arg, Local)} - self.changing
        self.choices: dict[Variable, Apply] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, While):
                out.extend(self._while(stmt))
            else:
                out.extend(self._statement(rewrite_expressions(stmt, self._expression)))
        return kept(body, out)

    def _expression(self, expr: Expr) -> Expr:
        return transform(expr, self._node)

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Local):
            return self.values.get(node.variable, node)
        if isinstance(node, Cast):
            return self._cast(node)
        chosen = multiply_bit(node, self._is_bit) if isinstance(node, Apply) else None
        return simpler(node if chosen is None else chosen)

    def _cast(self, node: Cast) -> Expr:
        """The cast of a local that chooses between constants chooses between other ones."""
        choice = self.choices.get(node.arg.variable) if isinstance(node.arg, Local) else None
        chosen = None if choice is None else simpler_cast(Cast(choice, node.dtype))
        return simpler(node if chosen is None else chosen)

    def _is_bit(self, expr: Expr) -> bool:
        """Is it 0 or 1, and no constant?"""
        match expr:
            case Apply(op=op, args=args) if op is OPS["bitwise_and"]:
                return any(isinstance(arg, Const) and arg.value == 1 for arg in args)
            case Cast(arg=arg):
                return dtype_of(arg) is BOOL
            case _:
                return isinstance(expr, Local) and expr.variable in self.bits

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """What is left of a statement whose own expressions are simple already."""
        match stmt:
            case For(trips=0):
                return ()
            case For(symbol=symbol, lo=lo, body=body, trips=1, kind=kind) if kind not in _SHARED_OUT:
                return self.body(substitute_statements(body, {symbol: lo}))
            case If(condition=Const(value=taken), body=body, orelse=orelse):
                return self.body(body if taken else orelse)
            case Raise(condition=Const(value=False)):
                return ()
            case For():
                around, self.loop = self.loop, stmt
                stmt = rewrite_bodies(stmt, self.body)
                self.loop = around
                return (stmt,)
            case Define(variable=variable, value=value) if self._is_name(variable, value):
                self.values[variable] = value
                return ()
            case Define(variable=variable, value=value):
                if variable not in self.changing and self._is_bit(value):
                    self.bits.add(variable)
                self.homes[variable] = self.loop
                return self._choice(stmt) if variable in self.cast else (stmt,)
            case Update(variable=variable):
                self.updates[variable] -= 1
                return (stmt,)
            case _:
                return (rewrite_bodies(stmt, self.body),)

    def _choice(self, stmt: Define) -> tuple[Define, ...]:
        """The definition of a local that is cast. What a choice between constants depends on gets a name."""
        match stmt.value:
            case Apply(op=op, args=(Local(variable=condition), Const(), Const())) as choice if (
                op is OPS["where"] and condition not in self.changing
            ):
                self.choices[stmt.variable] = choice
                return (stmt,)
            case Apply(op=op, args=(condition, Const() as x, Const() as y)) if op is OPS["where"]:
                name = Variable("t", BOOL)
                self.choices[stmt.variable] = choice = Apply(op, (Local(name), x, y), stmt.variable.dtype)
                return Define(name, condition), Define(stmt.variable, choice)
            case _:
                return (stmt,)

    def _while(self, loop: While) -> tuple[Stmt, ...]:
        """The condition is met after the test."""
        around, self.loop = self.loop, loop
        test, condition, body = self.body(loop.test), self._expression(loop.condition), self.body(loop.body)
        self.loop = around
        if isinstance(condition, Const) and not condition.value:
            return test
        same = test is loop.test and condition is loop.condition and body is loop.body
        return (loop if same else While(test, condition, body),)

    def _is_name(self, variable: Variable, value: Expr) -> bool:
        """Does the local always equal a constant or one other local? One that changes has settled when no
        update is to come, which a loop around both definitions cannot bring back."""
        if variable in self.changing:
            return False
        if not isinstance(value, Local):
            return isinstance(value, Const)
        source = value.variable
        settled = not self.updates[source] and self.homes.get(source) is self.loop
        return source not in self.changing or settled
