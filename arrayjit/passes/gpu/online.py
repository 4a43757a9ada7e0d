"""Which programs that weigh rows need the scores only once, of which only some are there at a time.

    m = max(s[i, :])                                        a weight is exp(score - maximum);
    a = sum(exp(s[i, :] - m))                         ->    a is the sum of the weights, o of those times v;
    y[i, d] = sum(exp(s[i, :] - m) / a * v[:, d])           y[i, d] = o / a

A *weight* is what the exponential makes of how far a score is below the maximum of its row; or any function
of the score. What weights by the maximum, which are 1 at most, are multiplied or divided by, the same for a
whole row, is a *factor*; other weights have none, since sums of them may be too large for a float before a
division and not after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.expr import Apply, Const, Expr, Local, Variable
from ...ir.loops import Define, Stmt, Store
from ...ir.ops import OPS
from ...ir.walk import locals_read, rewrite_expressions, transform, variables
from ..products.products import Product, Sum
from .weights import Weighing

__all__ = ["OnePass", "one_pass"]


@frozen
class OnePass:
    """Two products, of which the second multiplies weights of the sums of the first.

    `weight` is an expression over the locals `score`, `maximum` and those of outside. The sum of `result` is
    that of weights without factors, and its epilogue mentions `maximum` and `total`, the sum of the weights
    of a row, as locals. Those that are not needed are None."""

    scores: Product
    stored: Store
    score: Variable
    weight: Expr
    maximum: Variable | None
    total: Variable | None
    result: Product

    @property
    def is_relative(self) -> bool:
        """Are weights by the maximum?"""
        return self.maximum in set(variables(self.weight))

    def weighed(self, score: Expr, maximum: Expr) -> Expr:
        """The weight of a score, by a maximum."""

        def rule(node: Expr) -> Expr:
            match node:
                case Local(variable=variable) if variable is self.score:
                    return score
                case Local(variable=variable) if variable is self.maximum:
                    return maximum
                case _:
                    return node

        return transform(self.weight, rule)


def one_pass(weighing: Weighing) -> OnePass | None:
    """How a weighing is done in one pass, if it can be."""
    maximum = total = weight = None
    for fold in weighing.folds:
        if fold.variable.dtype is not weighing.score.dtype:
            return None
        if fold.op is OPS["maximum"] and fold.value == Local(weighing.score):
            maximum = fold.variable
        elif fold.op is OPS["add"] and total is None:
            total, weight = fold.variable, fold.value
        else:
            return None
    factors, weight = _taken_apart(weighing, weight, maximum)
    if weight is None or not _is_weight(weight, weighing.score, maximum, total):
        return None
    if factors and maximum not in set(variables(weight)):
        return None
    (summed,) = weighing.result.sums
    epilogue = _scaled_last(weighing.result, summed, factors, weighing.score)
    used = set(locals_read(epilogue))
    return OnePass(
        weighing.scores,
        weighing.stored,
        weighing.score,
        weight,
        maximum,
        total if total in used else None,
        replace(weighing.result, epilogue=epilogue),
    )


def _taken_apart(
    weighing: Weighing, weight: Expr | None, maximum: Variable | None
) -> tuple[list[Apply], Expr | None]:
    """The left factor of the result as factors, the last of which comes first, and the weight; None if it has
    another form."""
    factors: list[Apply] = []
    value, score = weighing.left, weighing.score
    while value != weight and not (weight is None and _is_weight(value, score, maximum, None)):
        match value:
            case Apply(op=op, args=(first, second)) if op.name in ("multiply", "divide"):
                varies = [score in variables(part) for part in (first, second)]
                if varies != [True, False] and (op.name == "divide" or varies != [False, True]):
                    return [], None
                factors.append(value)
                value = first if varies[0] else second
            case _:
                return [], None
    return factors, value


def _is_weight(value: Expr, score: Variable, maximum: Variable | None, total: Variable | None) -> bool:
    """Is it known from the score; if from the maximum too, so that the weight of a maximum, by a later one,
    is what turns weights by the one into weights by the other?"""
    inside = set(variables(value))
    if score not in inside or total in inside:
        return False
    if maximum is None or maximum not in inside:
        return True
    below = Apply(OPS["subtract"], (Local(score), Local(maximum)), score.dtype)
    match value:
        case Apply(op=op, args=(inner,)) if op.name in ("exp", "exp2"):
            pass
        case _:
            return False
    match inner:
        case Apply(op=op, args=(Const(value=factor), far) | (far, Const(value=factor))) if (
            op.name == "multiply"
        ):
            return far == below and 0 < factor < math.inf
        case _:
            return inner == below


def _scaled_last(product: Product, total: Sum, factors: Sequence[Apply], score: Variable) -> tuple[Stmt, ...]:
    """What is done with a sum of weights: factors are applied to it first."""
    whole: Expr = Local(total.variable)
    for factor in reversed(factors):
        args = [whole if score in variables(part) else part for part in factor.args]
        whole = Apply(factor.op, tuple(args), factor.dtype)
    done = Variable(total.variable.hint, total.variable.dtype)

    def node(expr: Expr) -> Expr:
        return Local(done) if expr == Local(total.variable) else expr

    rest = [
        rewrite_expressions(stmt, lambda expr: transform(expr, node))
        for stmt in product.epilogue
        if not (isinstance(stmt, Define) and stmt.variable is total.variable)
    ]
    return (Define(total.variable, total.start), Define(done, whole), *rest)
