"""rows: cells along a row that is chosen at run time are read as those of any other row.

    for i in parallel(0, 500):                  for i in parallel(0, 500):
        p = k[i]                                    p = k[i]
        for j in parallel(0, 300):      ->          n = p
            y[i, j] = x.at(p, j)                    for j in parallel(0, 300):
                                                        y[i, j] = x[n, j]

A cell at computed places is read by itself, lane by lane. Where a loop moves along memory from there, and the
places do not change in it, but by the loop's own steps (`x.at(p + j)`), they are bound to symbols before it,
and its vectors are plain loads: of rows of 500 float64 cells, chosen by an array, that takes half of the
time. A place lies in its axis wherever the cell is read, so it is bound only before loops that surely run and
raise nothing, and not across a branch.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import Bind, For, If, Kernel, Raise, Stmt, While, walk_statements
from ...ir.ops import OPS
from ...ir.walk import kept, locals_defined, locals_updated, rewrite_bodies, rewrite_expressions, transform
from ..analysis.strides import gathered, stride

__all__ = ["rows"]

SHORT = 64
"""Bytes of a row below which rows side by side make better vectors."""

ADD = OPS["add"]

Place = tuple[Variable, int]
"""A local, and how many places of an axis it may be."""


def rows(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such gathers as loads."""
    if not gathered(kernel.body):
        return kernel
    changing = locals_updated(walk_statements(kernel.body))
    return kernel.with_body(_Choosing(frozenset(changing)).body(kernel.body))


@slotted
class _Choosing:
    """A walk with the symbols that places are bound to where it stands; `changing` are the locals that are
    more than their definitions."""

    changing: frozenset[Variable]
    symbols: dict[Place, Symbol] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body that may not run: what it needs is bound in it."""
        outside, self.symbols = self.symbols, {}
        new, _ = self.inside(body, None)
        self.symbols = outside
        return new

    def inside(self, body: tuple[Stmt, ...], loop: For | None) -> tuple[tuple[Stmt, ...], list[Place]]:
        """A body, of a loop whose cells are surely read if there is one, and what is to be bound before that:
        all that is not made in it."""
        made = locals_defined(body)
        out: list[Stmt] = []
        before: list[Place] = []
        for stmt in body:
            new, needed = self.statement(stmt, loop, made)
            here = [place for place in needed if loop is None or place[0] in made]
            before += [place for place in needed if place not in here]
            out += [Bind(self.symbols[place], Local(place[0])) for place in here]
            out.append(new)
        return kept(body, out), before

    def statement(self, stmt: Stmt, loop: For | None, made: Collection[Variable]) -> tuple[Stmt, list[Place]]:
        match stmt:
            case For(body=body) if stmt.trips and not _may_raise(body):
                new, needed = self.inside(body, stmt)
                return (stmt if new is body else replace(stmt, body=new)), needed
            case For() | If() | While():
                return rewrite_bodies(stmt, self.body), []
            case _ if loop is not None:
                return self.cells(stmt, loop, made)
            case _:
                return stmt, []

    def cells(self, stmt: Stmt, loop: For, made: Collection[Variable]) -> tuple[Stmt, list[Place]]:
        """A statement of a loop that defines what is `made`, and the places that are not bound yet."""
        needed: list[Place] = []

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Gather):
                return node
            return self.load(node, loop, made, needed) or node

        return rewrite_expressions(stmt, lambda expr: transform(expr, rule)), needed

    def load(self, node: Gather, loop: For, made: Collection[Variable], needed: list[Place]) -> Load | None:
        """A cell as one of a row along the loop, if nothing that changes in it chooses the row."""
        index: list[Affine] = []
        found: dict[Place, Symbol] = {}
        for part, extent in zip(node.index, node.tensor.shape, strict=True):
            along = Affine.of(0)
            match part:
                case Apply(op=op, args=(first, Index(value=along))) if op is ADD and _from_zero(along, loop):
                    part, extent = first, extent - (loop.hi - 1)
            match part:
                case Index(value=value):
                    index.append(value)
                case Const(value=value):
                    index.append(Affine.of(int(value)))
                case Local(variable=variable) if extent.is_constant:
                    if variable in made or variable in self.changing:
                        return None
                    place = variable, extent.offset
                    symbol = self.symbols.get(place) or found.get(place)
                    found[place] = symbol or Symbol(variable.hint, lower=0, upper=extent.offset)
                    index.append(found[place] + along)
                case _:
                    return None
        is_long = (loop.trips or 0) * node.tensor.dtype.itemsize >= SHORT
        if not found or not is_long or stride(node.tensor, tuple(index), loop.symbol) not in (1, -1):
            return None
        needed += [place for place in found if place not in self.symbols]
        self.symbols |= found
        return Load(node.tensor, tuple(index))


def _from_zero(value: Affine, loop: For) -> bool:
    """Does a value count the iterations of a loop whose number is known?"""
    return (
        value == Affine.of(loop.symbol) and loop.lo == Affine.of(0) and loop.hi.is_constant and loop.step == 1
    )


def _may_raise(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(stmt, Raise) for stmt in walk_statements(body))
