"""Both IRs as text that is valid Python and that `parse.py` reads back. Only what does not change the
program's meaning is left out: notes on decisions and, unless asked for, locations.

    def saxpy(x: read[f32, 1024], y: update[f32, 1024]):
        for i in vector(0, 1024, lanes=16):
            t: f32 = multiply[f32](f32(2.0), x[i])
            y[i] = add[f32](t, y[i])

An op is followed by the dtype of its result. A variable is defined with its dtype and updated without;
`acc = reduce(add, acc, x[i])` combines (`fused=True`: by fused multiply-add), as does
`y[n] = reduce(add, y[n], x[i])`. `x.at(t)` is a computed index,
`index(i + 1)` an affine one as a number. Temporaries are declared first (`t: temporary[f32, 64]`, with
`place(...)` once placed; `virtual` and `local` are said of those that somebody has a wish for). An assignment
of the high-level IR is a store under `for ... in each(extents)`:

    for i, j in each(4, 8):
        s[i] = reduce(add, x[i, j], f32(0.0))

The parameter `m: merge('grad', 1)[f64, 3]` is merge buffer 1, which holds the values of the tensor `grad`;
`m: merge[f64, 3]` is buffer 0, of which that is not known. `n: index[0, 8] = x[i]` binds a symbol to a number
that the program computes, with the symbol's range (None where it has no end). A loop that runs as long as a
condition holds has the statements of its test inside:

    while True:
        ok: bool = less[bool](x[0], f32(1.0))
        if not ok:
            break
        x[0] = add[f32](x[0], x[1])

Names are given here, in order of use, from the hints and labels: text depends on the program alone.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Union

from typing_extensions import assert_never

from ..errors import Location
from .assign import (
    ArrayParam,
    Assign,
    Bind,
    Branch,
    Check,
    Computation,
    IndexParam,
    Loop,
    Note,
    Param,
    Statement,
    While,
    statements,
)
from .dtype import SHORT_NAMES, DType
from .expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable
from .index import Affine, Symbol, SymbolKind
from .loops import (
    Barrier,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Lap,
    Multiply,
    Place,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    touched,
    walk_statements,
)
from .loops import While as WhileStmt
from .ops import OPS
from .tensor import Tensor
from .walk import expressions, walk

__all__ = ["print_computation", "print_kernel"]

_RESERVED = {
    *("read", "write", "update", "merge", "journal", "temporary", "place", "index", "static", "dim", "each"),
    "arena",
    *("sequential", "parallel", "vector", "unrolled", "grid", "block", "fill", "cast", "reduce", "fused"),
    *("virtual", "local", "stay", "prefetch", "seldom"),
    *("check", "raise_", "barrier", "bypass", "regroup", "comment", "note"),
    *("range", "flat", "strides", "inf", "nan"),
    *("copy", "multiply_matrices"),
    *SHORT_NAMES,
    *OPS,
}  # fmt: skip
_INDENT = "    "

Named = Union[Symbol, Tensor, Variable]


def print_computation(computation: Computation, *, locations: bool = False) -> str:
    """The text of a computation; with `locations`, statements end in the user's file and line."""
    names = _Names(locations)
    head = names.signature(computation.name, computation.params)
    if computation.checks:
        head += f" -> check({', '.join(map(repr, computation.checks))})"
    tensors = _used_tensors(computation.params, _computation_tensors(computation))
    lines = [*names.declarations(tensors, {}), *_statements(computation.body, names)]
    return _joined(f"{head}:", lines)


def print_kernel(kernel: Kernel) -> str:
    """The text of a kernel. One whose statements computations have too says `-> kernel`."""
    names = _Names()
    head = names.signature(kernel.name, kernel.params)
    if (
        not kernel.placement
        and not kernel.arena_bytes
        and all(map(_is_ambiguous, walk_statements(kernel.body)))
    ):
        head += " -> kernel"
    tensors = _used_tensors(kernel.params, _kernel_tensors(kernel))
    lines = [f"arena({kernel.arena_bytes})"] if kernel.arena_bytes else []
    lines += [*names.declarations(tensors, kernel.placement), *_body(kernel.body, names)]
    return _joined(f"{head}:", lines)


def _is_ambiguous(stmt: Stmt) -> bool:
    """Does a statement look the same in both IRs?"""
    return isinstance(stmt, (Bind, If, Store, WhileStmt))


def _joined(head: str, lines: list[str]) -> str:
    return "\n".join([head, *(f"{_INDENT}{line}" for line in lines or ["pass"])]) + "\n"


class _Names:
    """Names for symbols, tensors and variables, each given at first use."""

    def __init__(self, locations: bool = False) -> None:
        self._locations = locations
        self._order: dict[Named, int] = {}
        self._given: dict[Named, str] = {}
        self._taken: set[str] = set(_RESERVED)
        self._next: dict[str, int] = {}

    def of(self, thing: Named) -> str:
        name = self._given.get(thing)
        if name is None:
            name = self._given[thing] = self._fresh(thing.label if isinstance(thing, Tensor) else thing.hint)
            self._order[thing] = len(self._order)
        return name

    def at(self, loc: Location | None) -> str:
        return f"  # {loc}" if self._locations and loc is not None else ""

    def _fresh(self, hint: str) -> str:
        stem = re.sub(r"\W", "_", hint) or "v"
        if stem[0].isdigit() or keyword.iskeyword(stem):
            stem = f"_{stem}"
        name = stem
        while name in self._taken:
            number = self._next.get(stem, 1)
            self._next[stem] = number + 1
            name = f"{stem}{number}" if not stem[-1].isdigit() else f"{stem}_{number}"
        self._taken.add(name)
        return name

    def signature(self, name: str, params: tuple[Param, ...]) -> str:
        safe = re.sub(r"\W", "_", name) or "program"
        self._taken.add(safe)
        return f"def {safe}({', '.join(self._param(param) for param in params)})"

    def _param(self, param: Param) -> str:
        match param:
            case ArrayParam(tensor=tensor, access=access, source=source, slot=slot):
                held = "" if source is None else repr(self.of(source))
                buffer = f"({held or None}, {slot})" if held or slot else ""
                return f"{self.of(tensor)}: {access}{buffer}[{self.layout(tensor)}]"
            case IndexParam(symbol=symbol):
                return f"{self.of(symbol)}: index[{symbol.lower}, {symbol.upper}]"
            case _:
                assert_never(param)

    def layout(self, tensor: Tensor) -> str:
        parts = [tensor.dtype.short, *(self.affine(extent) for extent in tensor.shape)]
        if tensor.strides is not None:
            parts.append(f"strides({', '.join(self.affine(stride) for stride in tensor.strides)})")
        return ", ".join(parts)

    def declarations(self, tensors: Iterable[Tensor], placement: Mapping[Tensor, Place]) -> Iterator[str]:
        for tensor in tensors:
            form = "real" if tensor.is_real_form else "flat"
            base = f", {form}({self.of(tensor.base)})" if tensor.base is not None else ""
            kind = "temporary" if tensor.wish is None else tensor.wish.kind
            line = f"{self.of(tensor)}: {kind}[{self.layout(tensor)}{base}]"
            place = placement.get(tensor)
            if place is not None:
                line += f" = place({place.kind.value!r}, {place.offset}, {place.reason!r})"
            yield line

    def affine(self, value: Affine) -> str:
        terms = [(symbol, coefficient, self.symbol(symbol)) for coefficient, symbol in value.terms]
        terms.sort(key=lambda term: self._order[term[0]])
        text = "".join(_signed(factor, name) for _, factor, name in terms)
        if value.offset or not terms:
            text += f" {'-' if value.offset < 0 else '+'} {abs(value.offset)}"
        return text[3:] if text[1] == "+" else f"-{text[3:]}"

    def symbol(self, symbol: Symbol) -> str:
        if symbol.kind is SymbolKind.LOOP or symbol in self._given:
            return self.of(symbol)
        return f"{symbol.kind.value}({self.of(symbol)!r}, {symbol.lower}, {symbol.upper})"


def _signed(factor: int, name: str) -> str:
    """A term of a sum, with the sign that joins it to what stands before."""
    term = name if abs(factor) == 1 else f"{abs(factor)}*{name}"
    return f" {'-' if factor < 0 else '+'} {term}"


def _expr(expr: Expr, names: _Names) -> str:
    match expr:
        case Const(value=value, dtype=dtype):
            return f"{dtype.short}({_number(value, dtype)})"
        case Load(tensor=tensor, index=index):
            return _cell(tensor, index, names)
        case Gather(tensor=tensor, index=index):
            return f"{names.of(tensor)}.at({', '.join(_expr(part, names) for part in index)})"
        case Local(variable=variable):
            return names.of(variable)
        case Index(value=value):
            return f"index({names.affine(value)})"
        case Apply(op=op, args=args, dtype=dtype):
            listed = ", ".join(_expr(arg, names) for arg in args)
            return f"{op.name}[{dtype.short}]({listed})"
        case Cast(arg=arg, dtype=dtype):
            return f"cast({_expr(arg, names)}, {dtype.short})"
        case _:
            assert_never(expr)


def _number(value: bool | int | float, dtype: DType) -> str:
    """The shortest digits that `dtype` reads back as this value."""
    sign = "-" if math.isnan(value) and math.copysign(1, value) < 0 else ""
    return f"{sign}{dtype.numpy.type(value)!s}"


def _cell(tensor: Tensor, index: tuple[Affine, ...], names: _Names) -> str:
    return f"{names.of(tensor)}[{', '.join(names.affine(part) for part in index) or '()'}]"


def _statements(body: tuple[Statement, ...], names: _Names) -> Iterator[str]:
    for statement in body:
        match statement:
            case Assign():
                yield from _assign(statement, names)
            case Bind():
                yield _bind(statement, names)
            case Branch(condition=condition, body=inner, orelse=orelse, loc=loc):
                yield f"if {_expr(condition, names)}:{names.at(loc)}"
                yield from _indented(_statements(inner, names))
                if orelse:
                    yield "else:"
                    yield from _indented(_statements(orelse, names))
            case While(test=test, condition=condition, body=inner, loc=loc):
                first = list(_statements(test, names))
                yield from _while(first, _expr(condition, names), _statements(inner, names), names.at(loc))
            case Check(loops=loops, condition=condition, exception=exception, message=message, loc=loc):
                yield from _each(loops, names)
                indent = _INDENT if loops else ""
                yield f"{indent}check({_expr(condition, names)}, {exception!r}, {message!r}){names.at(loc)}"
            case Loop(symbol=symbol, lo=lo, hi=hi, step=step, body=inner, loc=loc):
                bounds = f"{names.affine(lo)}, {names.affine(hi)}"
                by = f", {step}" if step != 1 else ""
                yield f"for {names.of(symbol)} in range({bounds}{by}):{names.at(loc)}"
                yield from _indented(_statements(inner, names))
            case Note(text=text):
                yield f"note({text!r})"
            case _:
                assert_never(statement)


def _bind(bind: Bind, names: _Names) -> str:
    symbol = bind.symbol
    named = f"{names.of(symbol)}: index[{symbol.lower}, {symbol.upper}]"
    return f"{named} = {_expr(bind.value, names)}{names.at(bind.loc)}"


def _while(test: list[str], condition: str, body: Iterable[str], at: str = "") -> Iterator[str]:
    if not test:
        yield f"while {condition}:{at}"
        yield from _indented(body)
        return
    yield f"while True:{at}"
    yield from _indented([*test, f"if not {condition}:", f"{_INDENT}break", *body])


def _each(loops: tuple[tuple[Symbol, Affine], ...], names: _Names) -> Iterator[str]:
    if loops:
        extents = ", ".join(names.affine(extent) for _, extent in loops)
        symbols = ", ".join(names.of(symbol) for symbol, _ in loops)
        yield f"for {symbols} in each({extents}):"


def _assign(assign: Assign, names: _Names) -> Iterator[str]:
    yield from _each(assign.loops, names)
    value = _expr(assign.value, names)
    if assign.accum is not None:
        initial = f", {_expr(assign.initial, names)}" if assign.initial is not None else ""
        fused = ", fused=True" if assign.contract else ""
        value = f"reduce({assign.accum.name}, {value}{initial}{fused})"
    if assign.regroup:
        value = f"regroup({value})"
    indent = _INDENT if assign.loops else ""
    yield f"{indent}{_cell(assign.into, assign.index, names)} = {value}{names.at(assign.loc)}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    empty = True
    for line in lines:
        empty = False
        yield f"{_INDENT}{line}"
    if empty:
        yield f"{_INDENT}pass"


def _body(body: tuple[Stmt, ...], names: _Names) -> Iterator[str]:
    for stmt in body:
        yield from _stmt(stmt, names)


def _stmt(stmt: Stmt, names: _Names) -> Iterator[str]:
    match stmt:
        case For():
            yield _for_head(stmt, names)
            yield from _indented(_body(stmt.body, names))
        case If(condition=condition, body=inner, orelse=orelse, seldom=seldom):
            holds = _expr(condition, names)
            yield f"if seldom({holds}):" if seldom else f"if {holds}:"
            yield from _indented(_body(inner, names))
            if orelse:
                yield "else:"
                yield from _indented(_body(orelse, names))
        case WhileStmt(test=test, condition=condition, body=inner):
            first = list(_body(test, names))
            yield from _while(first, _expr(condition, names), _body(inner, names))
        case _:
            yield _line(stmt, names)


def _line(
    stmt: Store
    | Fill
    | Define
    | Update
    | Bind
    | Raise
    | Stay
    | Copy
    | Multiply
    | Prefetch
    | Lap
    | Barrier
    | Comment,
    names: _Names,
) -> str:
    match stmt:
        case Store(tensor=tensor, index=index, value=value, accum=accum):
            cell = _cell(tensor, index, names)
            text = f"bypass({_expr(value, names)})" if stmt.bypass else _expr(value, names)
            text = f"regroup({text})" if stmt.regroup else text
            text = text if accum is None else f"reduce({accum.name}, {cell}, {text})"
            return f"{cell} = {text}"
        case Fill(tensor=tensor, value=value):
            return f"fill({names.of(tensor)}, {_expr(value, names)})"
        case Define(variable=variable, value=value):
            return f"{names.of(variable)}: {variable.dtype.short} = {_expr(value, names)}"
        case Update(variable=variable, value=value, accum=accum, contract=contract):
            name, text = names.of(variable), _expr(value, names)
            if accum is not None:
                text = f"reduce({accum.name}, {name}, {text}{', fused=True' if contract else ''})"
            return f"{name} = {text}"
        case Bind():
            return _bind(stmt, names)
        case Raise(condition=condition, exception=exception, message=message):
            return f"raise_({_expr(condition, names)}, {exception!r}, {message!r})"
        case Stay(condition=condition):
            return f"stay({_expr(condition, names)})"
        case Copy(into=into, index=index, source=source, at=at, cells=cells, count=count):
            first, second = _cell(into, index, names), _cell(source, at, names)
            return f"copy({first}, {second}, {cells}, {_expr(count, names)})"
        case Multiply(total=total, left=left, right=right, stage=stage, turned=turned, warps=warps):
            tensors = ", ".join(names.of(tensor) for tensor in (total, left, right))
            return f"multiply_matrices({tensors}, {names.affine(stage)}, {turned}, {warps})"
        case Prefetch() | Lap() | Barrier() | Comment():
            return _aside(stmt, names)
        case _:
            assert_never(stmt)


def _aside(stmt: Prefetch | Lap | Barrier | Comment, names: _Names) -> str:
    """A statement that changes nothing of the program's."""
    match stmt:
        case Prefetch(tensor=tensor, index=index, cache=cache):
            return f"prefetch({_cell(tensor, index, names)}{'' if cache == 1 else f', {cache}'})"
        case Lap(times=times, number=number):
            return f"lap({names.of(times)}, {number})"
        case Barrier(pending=pending):
            return f"barrier({'' if pending is None else pending})"
        case Comment(text=text):
            return f"comment({text!r})"


def _for_head(loop: For, names: _Names) -> str:
    parts = [names.affine(loop.lo), names.affine(loop.hi)]
    if loop.step != 1:
        parts.append(str(loop.step))
    if loop.lanes != 1:
        parts.append(f"lanes={loop.lanes}")
    if loop.grain is not None:
        parts.append(f"grain={names.affine(loop.grain)}")
    if loop.aligned is not None:
        parts.append(f"aligned={loop.aligned}")
    if loop.masked:
        parts.append("masked=True")
    if loop.cuts:
        parts.append(f"cuts={loop.cuts}")
    return f"for {names.of(loop.symbol)} in {loop.kind.value}({', '.join(parts)}):"


def _used_tensors(params: tuple[Param, ...], used: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that are no parameters, in order of use, a base before its flat form."""
    known = {param.tensor for param in params if isinstance(param, ArrayParam)}
    ordered: dict[Tensor, None] = {}
    for tensor in used:
        for one in (tensor.base, tensor):
            if one is not None and one not in known:
                ordered.setdefault(one)
    return list(ordered)


def _loaded(exprs: Iterable[Expr]) -> Iterator[Tensor]:
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, (Load, Gather)):
                yield node.tensor


def _computation_tensors(computation: Computation) -> Iterator[Tensor]:
    for statement in statements(computation.body):
        match statement:
            case Assign(into=into, value=value, initial=initial):
                yield from _loaded((value,) if initial is None else (value, initial))
                yield into
            case Bind(value=value):
                yield from _loaded((value,))
            case Branch(condition=condition) | Check(condition=condition) | While(condition=condition):
                yield from _loaded((condition,))
            case Loop() | Note():
                pass
            case _:
                assert_never(statement)


def _kernel_tensors(kernel: Kernel) -> Iterator[Tensor]:
    for stmt in walk_statements(kernel.body):
        yield from _loaded(expressions(stmt))
        yield from touched(stmt)
    yield from kernel.placement
