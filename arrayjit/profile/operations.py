"""What statements do, counted.

An addition, subtraction, multiplication, division or square root of floats is one floating-point operation, a
fused multiply-add two. An elementary function (`exp`, `power`: what is not correctly rounded) counts once
as itself, by name; other ops that are defined by primitive ones count as these. What else is done with floats
(comparisons, minima and maxima, signs, rounding, choices, conversions) and with bools is `other`; arithmetic
and bits of integers are `integer`. The arithmetic of indices is not counted: it is part of an access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..frozen import frozen
from ..ir.dtype import DType
from ..ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    ExprBuilder,
    Gather,
    Index,
    Load,
    Local,
    Variable,
    dtype_of,
)
from ..ir.loops import Fill, Store, Update
from ..ir.ops import OPS, Op
from ..ir.resolve import resolve
from ..ir.walk import children, expressions
from .amounts import NONE, Amount
from .visits import Visit

__all__ = ["Operations", "counted", "operations"]

FLOPS = {"add": 1, "subtract": 1, "multiply": 1, "divide": 1, "sqrt": 1, "fma": 2}

Kind = tuple[str, str]
"""What is counted: flops by dtype, functions by name, others by what they are."""


@frozen
class Operations:
    """What some statements do. `flops` are by dtype, `functions` by name; `loads` and `stores` are accesses
    to arrays, of `bytes_loaded` and `bytes_stored` together."""

    flops: Mapping[str, Amount]
    functions: Mapping[str, Amount]
    integer: Amount
    other: Amount
    loads: Amount
    stores: Amount
    bytes_loaded: Amount
    bytes_stored: Amount

    @property
    def all_flops(self) -> Amount:
        """Of any dtype."""
        return sum(self.flops.values(), NONE)


def operations(visits: Iterable[Visit], written_out: bool = False) -> Operations:
    """What the statements do in all their runs; elementary functions as the arithmetic of their definitions
    where they are to be `written_out`."""
    low: Counter[Kind] = Counter()
    high: dict[Kind, float] = {}
    for visit in visits:
        least, most = visit.space.runs
        if most:
            for kind, count in counted(visit, written_out).items():
                low[kind] += int(count * least)
                high[kind] = high.get(kind, 0) + count * most
    amounts = {kind: Amount.of(low[kind], most) for kind, most in high.items()}

    def group(kind: str) -> dict[str, Amount]:
        return {name: amount for (other, name), amount in sorted(amounts.items()) if other == kind}

    single = ("integer", "other", "loads", "stores", "bytes_loaded", "bytes_stored")
    rest = (amounts.get((kind, ""), NONE) for kind in single)
    return Operations(group("flops"), group("functions"), *rest)


def counted(visit: Visit, written_out: bool = False) -> Counter[Kind]:
    """What one run of a statement does, without the statements in it."""
    stmt, found = visit.stmt, Counter[Kind]()
    if isinstance(stmt, Update) and visit.lanes:
        assert stmt.accum is not None
        once = _accumulated(stmt.accum, stmt.variable.dtype)
        return Counter({kind: count * visit.lanes for kind, count in once.items()})
    for expr in expressions(stmt):
        for node in _nodes(expr):
            found.update(_node(node, written_out))
    match stmt:
        case Store(tensor=tensor, accum=accum):
            found.update({("stores", ""): 1, ("bytes_stored", ""): tensor.dtype.itemsize})
            if accum is not None:
                found.update({("loads", ""): 1, ("bytes_loaded", ""): tensor.dtype.itemsize})
                found.update(_accumulated(accum, tensor.dtype))
        case Fill(tensor=tensor) if tensor.has_fixed_shape:
            found.update({("stores", ""): tensor.size, ("bytes_stored", ""): tensor.nbytes})
        case Update(variable=variable, accum=Op() as accum):
            found.update(_accumulated(accum, variable.dtype))
        case _:
            pass
    return found


def _accumulated(accum: Op, dtype: DType) -> Counter[Kind]:
    return Counter({_kind(accum, (dtype, dtype), dtype): FLOPS.get(accum.name, 1)})


def _nodes(expr: Expr) -> Iterable[Expr]:
    """Every node once: what is shared is computed once."""
    seen: dict[int, Expr] = {}
    pending = [expr]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            pending.extend(children(node))
    return seen.values()


def _node(node: Expr, written_out: bool) -> Counter[Kind]:
    match node:
        case Apply(args=args) if all(isinstance(arg, (Index, Const)) for arg in args):
            return Counter()
        case Apply(op=op, args=args, dtype=dtype):
            definition = _Definition(written_out)
            definition.apply(op, args, dtype)
            return definition.found
        case Load(tensor=tensor) | Gather(tensor=tensor):
            return Counter({("loads", ""): 1, ("bytes_loaded", ""): tensor.dtype.itemsize})
        case Cast(arg=arg, dtype=dtype):
            return Counter({_conversion(dtype_of(arg), dtype): 1})
        case Const() | Local() | Index():
            return Counter()


class _Definition(ExprBuilder):
    """A `Builder` that counts what definitions are made of."""

    def __init__(self, written_out: bool) -> None:
        self.found: Counter[Kind] = Counter()
        self._written_out = written_out

    def apply(self, op: Op, args: Sequence[Expr], dtype: DType) -> Expr:
        """The result of an op, which counts as itself or as its definition."""
        kinds = [dtype_of(arg) for arg in args]
        definition = op.definition(kinds) if self._written_out or not _is_function(op, kinds) else None
        if definition is None:
            self.found[_kind(op, kinds, dtype)] += FLOPS.get(op.name, 1)
        else:
            definition(self, *args)
        return Local(Variable("t", dtype))

    def op(self, name: str, *args: Expr) -> Expr:
        row = OPS[name]
        _, dtype = resolve(row, [dtype_of(arg) for arg in args])
        return self.apply(row, args, dtype)

    def cast(self, value: Expr, dtype: DType) -> Expr:
        if dtype_of(value) is not dtype:
            self.found[_conversion(dtype_of(value), dtype)] += 1
        return Local(Variable("t", dtype))


def _is_function(op: Op, args: Sequence[DType]) -> bool:
    return any(op.ulp) and args[0].is_float


def _kind(op: Op, args: Sequence[DType], result: DType) -> Kind:
    if _is_function(op, args):
        return "functions", op.name
    if op.name in FLOPS and args[0].is_float:
        return "flops", result.name
    return ("integer", "") if all(dtype.is_integer for dtype in args) else ("other", "")


def _conversion(source: DType, target: DType) -> Kind:
    return ("integer", "") if source.is_integer and target.is_integer else ("other", "")
