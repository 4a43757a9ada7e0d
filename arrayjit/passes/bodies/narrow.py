"""narrow: integers of which only the lowest bits are kept are computed in no more than these.

    for i in parallel(0, 640):                      for i in parallel(0, 640):
        t = multiply(cast(r[i], i64), 77)               t = multiply(cast(r[i], i16), 77)
        t1 = multiply(cast(g[i], i64), 150)   ->        t1 = multiply(cast(g[i], i16), 150)
        t2 = raw_right_shift(add(t, t1), 8)             t2 = raw_right_shift(add(t, t1), 8)
        y[i] = cast(t2, u8)                             y[i] = cast(t2, u8)

NumPy's integers among themselves have 64 bits, which leaves eight to a vector; pixels have 8. The lowest bits
of sums, products and bitwise ops follow from the lowest bits of their operands, those of a shift to the right
from as many more as it shifts by. What is wanted of a local is known from all that read it; it becomes narrow
where what it is made of is narrow, so that nothing is cut off before it would be. Two integers that lie
between ends compare as so many of their lowest bits do: sizes of such, and those that are cut to a range, are
narrow too.

    t1 = less(t, 0)                                 t1 = less(t, 0)
    t2 = where(t1, subtract(0, t), t)      ->       t2 = where(t1, subtract(0, t), t)
    t3 = less(t2, 255)                              t3 = less(t2, 255)
    y[i] = cast(where(t3, t2, 255), u8)             y[i] = cast(where(t3, t2, i16(255)), u8)
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.code import Caps
from ...ir.dtype import BOOL, DType, named
from ...ir.expr import Apply, Cast, Const, Expr, Gather, Load, Local, Variable, constant, dtype_of
from ...ir.loops import Define, Kernel, Stmt, walk_statements
from ...ir.ops import OPS
from ...ir.walk import (
    children,
    expressions,
    kept,
    locals_updated,
    nodes_in,
    rewrite_bodies,
    rewrite_expressions,
    transform,
    transform_statements,
    variables,
)
from ..analysis.spans import Span, converted, held, result
from .rules import simpler

__all__ = ["narrow"]

FROM_LOWEST = frozenset(
    OPS[name] for name in ("add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor")
)
"""The ops whose lowest bits follow from as many bits of their operands."""

WHERE, SHIFT = OPS["where"], OPS["raw_right_shift"]
COMPARISONS = frozenset(
    OPS[name] for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
)
WIDTHS = (8, 16, 32)
WIDEST = 64

Spans = dict[Variable, Span]
"""Between which ends locals lie that only their definition sets."""


def narrow(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with such integers narrow."""
    statements = list(walk_statements(kernel.body))
    if not any(map(_is_cut, nodes_in(statements))):
        return kernel
    changing = frozenset(locals_updated(statements))
    spans = _spans(statements, changing)
    body = _compared(kernel.body, spans)
    narrower = _Narrower(_wanted(list(walk_statements(body))), spans, changing)
    new = narrower.body(body)
    if not narrower.narrowed:
        new = _Narrower(_wanted(statements), spans, changing).body(kernel.body)
    return kernel.with_body(new)


def _is_cut(node: Expr) -> bool:
    """Does it take the lowest bits of an integer?"""
    return isinstance(node, Cast) and node.dtype.is_integer and _width(dtype_of(node.arg)) > node.dtype.bits


def _width(dtype: DType) -> int:
    """How many bits an integer has; 0 for what is none."""
    return dtype.bits if dtype.is_integer else 0


def _spans(statements: list[Stmt], changing: frozenset[Variable]) -> Spans:
    spans: Spans = {}
    for stmt in statements:
        if isinstance(stmt, Define) and stmt.variable not in changing:
            span = _span(stmt.value, spans)
            if span is not None:
                spans[stmt.variable] = span
    return spans


def _span(value: Expr, spans: Spans) -> Span | None:
    """Between which ends an integer lies, as far as its type or what it is made of tells."""
    dtype = dtype_of(value)
    match value:
        case Const(value=number) if dtype.is_integer:
            return int(number), int(number)
        case Local(variable=variable) if variable in spans:
            return spans[variable]
        case Cast(arg=arg) if dtype.is_integer and (_width(dtype_of(arg)) or dtype_of(arg) is BOOL):
            span = _span(arg, spans)
            return (None if span is None else converted(span, dtype)) or held(dtype)
        case Apply(op=op, args=args) if dtype.is_integer:
            parts = [_span(part, spans) for part in (args[1:] if op is WHERE else args)]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return held(dtype)
            if op is WHERE:
                return min(low for low, _ in known), max(high for _, high in known)
            return result(OPS["right_shift"] if op is SHIFT else op, known, dtype) or held(dtype)
        case _:
            return held(dtype)


def _compared(body: tuple[Stmt, ...], spans: Spans) -> tuple[Stmt, ...]:
    """A body in which integers are compared by no more of their lowest bits than they have between their
    ends."""

    def cut(node: Expr) -> Expr:
        if not (isinstance(node, Apply) and node.op in COMPARISONS):
            return node
        dtype, ends = dtype_of(node.args[0]), [_span(arg, spans) for arg in node.args]
        for width in WIDTHS[1:] if _width(dtype) == WIDEST else ():
            narrow = _of_width(dtype, width)
            if all(span is not None and converted(span, narrow) is not None for span in ends):
                return Apply(node.op, tuple(_as(arg, narrow) for arg in node.args), BOOL)
        return node

    return transform_statements(body, cut)


def _as(value: Expr, dtype: DType) -> Expr:
    return constant(value.value, dtype) if isinstance(value, Const) else Cast(value, dtype)


def _of_width(dtype: DType, width: int) -> DType:
    return named(f"{dtype.short[0]}{width}")


def _wanted(statements: list[Stmt]) -> dict[Variable, int]:
    """How many of the lowest bits of each local are read by anything."""
    wanted: dict[Variable, int] = {}
    for stmt in reversed(statements):
        for expr in expressions(stmt):
            bits = wanted.get(stmt.variable, 0) if isinstance(stmt, Define) else 0
            for node, least in _demands(expr, bits or dtype_of(expr).bits):
                if isinstance(node, Local):
                    wanted[node.variable] = max(wanted.get(node.variable, 0), least)
    return wanted


def _demands(expr: Expr, bits: int) -> Iterator[tuple[Expr, int]]:
    """Every node with how many of its lowest bits are needed, of an expression of which `bits` are."""
    pending = [(expr, bits)]
    while pending:
        node, bits = pending.pop()
        yield node, bits
        pending.extend(zip(children(node), _operands_bits(node, bits), strict=True))


def _operands_bits(node: Expr, bits: int) -> tuple[int, ...]:
    """How many of the lowest bits of each operand those of a node follow from."""
    match node:
        case Apply(op=op, args=(_, Const(value=count))) if op is SHIFT:
            return min(bits + int(count), node.dtype.bits), node.dtype.bits
        case Apply(op=op) if op in FROM_LOWEST and node.dtype.is_integer:
            return bits, bits
        case Apply(op=op) if op is WHERE and node.dtype.is_integer:
            return BOOL.bits, bits, bits
        case Cast(arg=arg, dtype=dtype) if dtype.is_integer and dtype_of(arg).is_integer:
            return (min(bits, dtype_of(arg).bits),)
        case _:
            return tuple(dtype_of(child).bits for child in children(node))


class _Narrower:
    """A walk in program order that makes locals narrow of which few bits are `wanted`; `narrowed` are those
    that are."""

    def __init__(self, wanted: dict[Variable, int], spans: Spans, changing: frozenset[Variable]) -> None:
        self.wanted = wanted
        self.spans = spans
        self.changing = changing
        self.narrowed: dict[Variable, Variable] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [self.statement(stmt) for stmt in body])

    def statement(self, stmt: Stmt) -> Stmt:
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self.node))
        match stmt:
            case Define(variable=variable, value=value) if variable not in self.changing:
                found = _cut(value, self.wanted.get(variable, variable.dtype.bits))
                if found is None or isinstance(value, Const):
                    return stmt
                self.narrowed[variable] = Variable(variable.hint, dtype_of(found))
                return Define(self.narrowed[variable], found)
            case _:
                return rewrite_bodies(stmt, self.body)

    def node(self, node: Expr) -> Expr:
        if isinstance(node, Local) and node.variable in self.narrowed:
            return Cast(Local(self.narrowed[node.variable]), node.variable.dtype)
        if isinstance(node, Cast) and _is_cut(node):
            found = _cut(node.arg, node.dtype.bits)
            return simpler(node if found is None else Cast(found, node.dtype))
        if isinstance(node, Apply) and node.op in COMPARISONS:
            return self.whole(node)
        return node

    def whole(self, node: Apply) -> Apply:
        """A comparison by all bits again, of what has them all the same."""
        cut = [arg.arg for arg in node.args if isinstance(arg, Cast) and _is_cut(arg)]
        narrow = dtype_of(node.args[0])
        is_cut_alone = len(cut) + sum(isinstance(arg, Const) for arg in node.args) == len(node.args)
        if not cut or not is_cut_alone or len({dtype_of(arg) for arg in cut}) > 1:
            return node
        if not set(self.narrowed.values()).isdisjoint(variables(Apply(node.op, tuple(cut), BOOL))):
            return node
        spans = [_span(arg, self.spans) for arg in cut]
        if any(span is None or converted(span, narrow) is None for span in spans):
            return node
        wide = dtype_of(cut[0])
        return Apply(
            node.op, tuple(arg.arg if isinstance(arg, Cast) else _as(arg, wide) for arg in node.args), BOOL
        )


def _cut(value: Expr, bits: int) -> Expr | None:
    """An integer that has so many of the lowest bits of another one, computed in as few as can be."""
    dtype = dtype_of(value)
    if _width(dtype) <= bits:
        return None
    inside = max(bits, *_inside(value, bits))
    for width in WIDTHS:
        if inside <= width < dtype.bits:
            found = _lowest(value, _of_width(dtype, width))
            if found is not None:
                return found
    return None


def _inside(value: Expr, bits: int) -> Iterator[int]:
    """How many bits the arithmetic that leads to the lowest bits of a value needs."""
    yield bits
    match value:
        case Apply(op=op, args=args) if op in FROM_LOWEST or op in (WHERE, SHIFT):
            for part, least in zip(args, _operands_bits(value, bits), strict=True):
                if part is not (args[0] if op is WHERE else args[1] if op is SHIFT else None):
                    yield from _inside(part, least)
        case Cast(arg=arg, dtype=dtype) if dtype.is_integer and _width(dtype_of(arg)) >= dtype.bits:
            yield from _inside(arg, min(bits, dtype.bits))
        case _:
            pass


def _lowest(value: Expr, dtype: DType) -> Expr | None:
    """The lowest bits of an integer, of a narrow type; None where something wide would be cut for them."""
    match value:
        case Const(value=number):
            return constant(number, dtype)
        case Load() | Gather() | Local() if _width(dtype_of(value)) <= dtype.bits:
            return Cast(value, dtype)
        case Cast(arg=arg) if dtype_of(arg) is BOOL or 0 < _width(dtype_of(arg)) <= dtype.bits:
            return simpler(Cast(arg, dtype))
        case Cast(arg=arg) if dtype_of(arg).is_integer and value.dtype.bits >= dtype.bits:
            return _lowest(arg, dtype)
        case Apply(op=op, args=(condition, *parts)) if op is WHERE:
            lowest = [_lowest(part, dtype) for part in parts]
            return _applied(value, [condition, *lowest], dtype)
        case Apply(op=op, args=(shifted, Const(value=count))) if op is SHIFT and int(count) < dtype.bits:
            return _applied(value, [_lowest(shifted, dtype), constant(count, dtype)], dtype)
        case Apply(op=op, args=args) if op in FROM_LOWEST:
            return _applied(value, [_lowest(part, dtype) for part in args], dtype)
        case _:
            return None


def _applied(value: Apply, parts: list[Expr | None], dtype: DType) -> Expr | None:
    """The op on what its operands have become, if all of them could."""
    known = tuple(part for part in parts if part is not None)
    return Apply(value.op, known, dtype) if len(known) == len(parts) else None
