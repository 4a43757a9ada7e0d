"""Values of a body that are one another's, some iterations further on.

    t = subtract(a[i + 1, j], a[i, j])          shape 2 at (0, 0), made of shape 1 at (1, 0) and at (0, 0)
    u = subtract(a[i + 2, j], a[i + 1, j])      shape 2 at (1, 0): `u` is the `t` of the next iteration of i

A value is a shape, what it would be at the first iterations, and an offset for each loop: by how many
iterations it is moved, or None where the loop makes no difference. Shapes are numbers: that of a node follows
from its op and its operands' shapes and offsets, relative to its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Union

from ...frozen import frozen, slotted
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol
from ...ir.walk import children, substitute, transform

__all__ = ["Numbering", "Offset", "Value"]

Offset = tuple[Union[int, None], ...]


@frozen
class Value:
    """A shape, moved."""

    shape: int
    offset: Offset


@slotted
class Numbering:
    """What is known of the values of a body, which is given in program order: an expression for each, what it
    is made of, and how many nodes its text has. `definitions` are the body's own locals."""

    loops: Sequence[Symbol]
    expressions: dict[Value, Expr] = field(default_factory=dict)
    operands: dict[Value, tuple[Value, ...]] = field(default_factory=dict)
    sizes: dict[Value, int] = field(default_factory=dict)
    definitions: dict[Variable, tuple[Value, Expr]] = field(default_factory=dict)
    _shapes: dict[Hashable, int] = field(default_factory=dict)
    _known: dict[int, Value] = field(default_factory=dict)

    def define(self, variable: Variable, expr: Expr) -> None:
        """A local of the body that is set once."""
        self.definitions[variable] = self.number(expr), expr

    def number(self, expr: Expr) -> Value:
        """The value of an expression where it stands."""
        known = self._known.get(id(expr))
        if known is None:
            known = self._known[id(expr)] = self._numbered(expr)
        return known

    def _numbered(self, expr: Expr) -> Value:
        if isinstance(expr, Local) and expr.variable in self.definitions:
            return self.definitions[expr.variable][0]
        operands = tuple(self.number(child) for child in children(expr))
        offset = self._offset(expr, operands)
        shape = self._shapes.setdefault(self._key(expr, operands, offset), len(self._shapes))
        value = Value(shape, offset)
        if value not in self.operands:
            self.expressions[value] = expr
            self.operands[value] = operands
            self.sizes[value] = 1 + sum(self.sizes[operand] for operand in operands)
        return value

    def _offset(self, expr: Expr, operands: Sequence[Value]) -> Offset:
        """Of each loop, that of the first position or operand for which it makes a difference."""
        match expr:
            case Load(index=index):
                moved: Sequence[Offset] = [self._moved(position) for position in index]
            case Index(value=position):
                moved = [self._moved(position)]
            case _:
                moved = [operand.offset for operand in operands]
        columns = zip(*moved, strict=True) if moved else [()] * len(self.loops)
        return tuple(next((part for part in column if part is not None), None) for column in columns)

    def _moved(self, position: Affine) -> Offset:
        """By how many iterations a position is moved from where it is near 0; of several loops that move it,
        by the first one's."""
        steps = [position.coefficient(loop) for loop in self.loops]
        first = next((number for number, step in enumerate(steps) if step), None)
        return tuple(
            position.offset // step if number == first else 0 if step else None
            for number, step in enumerate(steps)
        )

    def _key(self, expr: Expr, operands: Sequence[Value], offset: Offset) -> Hashable:
        """What values have in common that differ in their offset alone."""
        here = tuple((operand.shape, _apart(operand.offset, offset)) for operand in operands)
        back = {loop: loop - part for loop, part in zip(self.loops, offset, strict=True) if part is not None}
        match expr:
            case Const():
                return "const", expr
            case Index(value=position):
                return "index", position.substitute(back)
            case Local(variable=variable):
                return "local", variable
            case Load(tensor=tensor, index=index):
                return "load", tensor, tuple(position.substitute(back) for position in index)
            case Gather(tensor=tensor):
                return "gather", tensor, here
            case Cast(dtype=dtype):
                return "cast", dtype, here
            case Apply(op=op, dtype=dtype):
                return "apply", op, dtype, here

    def elsewhere(self, value: Value, positions: Mapping[Symbol, Affine]) -> Expr:
        """A value at other iterations, computed without the body's locals."""

        def rule(node: Expr) -> Expr:
            if isinstance(node, Local) and node.variable in self.definitions:
                return transform(self.definitions[node.variable][1], rule)
            return node

        return substitute(transform(self.expressions[value], rule), positions)


def _apart(one: Offset, other: Offset) -> Offset:
    return tuple(
        None if mine is None or theirs is None else mine - theirs
        for mine, theirs in zip(one, other, strict=True)
    )
