"""Loops that collect the cells which a mask selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...frozen import frozen_by_identity
from ...ir.assign import Statement
from ...ir.expr import Expr
from ...ir.index import Affine
from ...ir.tensor import Tensor
from .view import View

__all__ = ["Selection"]


@frozen_by_identity
class Selection:
    """A recorded loop that collects `total` cells: of each tensor, where the mask holds, `values[tensor]` of
    the mask's position."""

    loop: Statement
    mask: View
    total: Affine
    values: Mapping[Tensor, Callable[[tuple[Affine, ...]], Expr]]
