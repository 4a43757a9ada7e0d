"""Other tensors in the place of those of statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.assign import Assign, Statement, rewrite_bodies, rewrite_expressions
from ...ir.expr import Expr, Gather, Load
from ...ir.tensor import Tensor
from ...ir.walk import transform

__all__ = ["Renaming"]


class Renaming:
    """Statements with other tensors, and with the flat and the real forms of these."""

    def __init__(self, tensors: Mapping[Tensor, Tensor]) -> None:
        self._tensors = dict(tensors)

    def body(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(self._statement(statement) for statement in body)

    def tensor(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor."""
        base = tensor.base
        if tensor not in self._tensors and base is not None and (other := self.tensor(base)) is not base:
            self._tensors[tensor] = other.real_form() if tensor.is_real_form else other.flat_form()
        return self._tensors.get(tensor, tensor)

    def _statement(self, statement: Statement) -> Statement:
        renamed = rewrite_bodies(rewrite_expressions(statement, self._expression), self.body)
        match renamed:
            case Assign(into=into):
                return replace(renamed, into=self.tensor(into))
            case _:
                return renamed

    def _expression(self, expression: Expr) -> Expr:
        return transform(expression, self._node)

    def _node(self, node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor) | Gather(tensor=tensor):
                return replace(node, tensor=self.tensor(tensor))
            case _:
                return node
