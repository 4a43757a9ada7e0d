"""expand: derived ops become their definitions, so that targets meet primitives only.

    y[i] = square(add(x[i], 1.0))
->
    t0 = add(x[i], 1.0)
    t1 = multiply(t0, t0)
    y[i] = t1

Each call that a definition makes appends one `Define` before the statement that the op stands in, so a
definition may use a value as often as it likes and nothing is computed twice. Conversions of small floats are
derived as well, but for those between float16 and float32 and what else a GPU has, and what adds up in one is
converted for every step. Definitions that stand `apart` are left to the targets, which print each once and
call it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.code import Caps
from ...ir.definitions.small import converted
from ...ir.dtype import F16, F32, DType
from ...ir.expr import Apply, Cast, Const, Expr, ExprBuilder, Local, Variable, dtype_of
from ...ir.loops import Define, Kernel, Stmt, Update, While
from ...ir.ops import OPS
from ...ir.resolve import resolve
from ...ir.walk import kept, nodes_in, rewrite_bodies, rewrite_expressions, transform

__all__ = ["Definitions", "expand", "expanded"]


def expand(kernel: Kernel, caps: Caps) -> Kernel:
    """Every op with a definition replaced by it."""
    return kernel.with_body(expanded(kernel.body, (F16,) if caps.gpu is None else caps.gpu.small_floats))


def expanded(
    body: tuple[Stmt, ...], known: tuple[DType, ...], kinds: Sequence[type[Expr]] = (Apply, Cast)
) -> tuple[Stmt, ...]:
    """A body in which no expression of these kinds is derived, but conversions of `known` small floats from
    float32 and to it."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Update) and stmt.accum is not None and stmt.variable.dtype.is_small:
            step = Apply(stmt.accum, (Local(stmt.variable), stmt.value), stmt.variable.dtype)
            stmt = Update(stmt.variable, step)
        if any(type(node) in kinds and _is_derived(node, known) for node in nodes_in((stmt,))):
            definitions = Definitions(known)
            stmt = rewrite_expressions(stmt, definitions.of)
            if isinstance(stmt, While):
                stmt = replace(stmt, test=(*stmt.test, *definitions.lines))
            else:
                out.extend(definitions.lines)
        out.append(rewrite_bodies(stmt, lambda inner: expanded(inner, known, kinds)))
    return kept(body, out)


def _is_derived(expr: Expr, known: tuple[DType, ...]) -> bool:
    """Whether a part of an expression may have a definition."""
    match expr:
        case Apply(op=op, args=args):
            return (op.expand is not None and not op.apart) or dtype_of(args[0]).is_small
        case Cast(arg=arg, dtype=dtype):
            kinds = {dtype, dtype_of(arg)}
            is_known = F32 in kinds and not kinds.isdisjoint(known)
            return not is_known and any(kind.is_small for kind in kinds)
        case _:
            return False


class Definitions(ExprBuilder):
    """The `Builder` that definitions are run over: values are constants and locals."""

    def __init__(self, known: tuple[DType, ...]) -> None:
        self.known_floats = known
        self.lines: list[Define] = []

    def of(self, expr: Expr) -> Expr:
        """The expression over primitives only."""
        return transform(expr, self._primitive)

    def op(self, name: str, *args: Expr) -> Expr:
        row = OPS[name]
        _, dtype = resolve(row, [dtype_of(arg) for arg in args])
        return self.bound(self._primitive(Apply(row, args, dtype)))

    def cast(self, value: Expr, dtype: DType) -> Expr:
        return value if dtype_of(value) is dtype else self.bound(self._primitive(Cast(value, dtype)))

    def _primitive(self, expr: Expr) -> Expr:
        if isinstance(expr, Cast) and _is_derived(expr, self.known_floats):
            converting: Expr = converted(self, self.bound(expr.arg), expr.dtype)
            return converting
        if not isinstance(expr, Apply):
            return expr
        definition = expr.op.definition([dtype_of(arg) for arg in expr.args])
        if definition is None or expr.op.apart:
            return expr
        value: Expr = definition(self, *(self.bound(arg) for arg in expr.args))
        return value

    def bound(self, value: Expr) -> Expr:
        """The value as something that is free to repeat."""
        if isinstance(value, (Const, Local)):
            return value
        variable = Variable("t", dtype_of(value))
        self.lines.append(Define(variable, value))
        return Local(variable)
