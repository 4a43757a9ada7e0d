"""Text of `text.py` back to IR: the same program, over fresh tensors, symbols and variables.

The text is Python, so Python's own `ast` reads it and `match` recognises it. A program with a statement or
a loop that only kernels have, or that says `-> kernel`, is a Kernel; any other is a Computation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn, cast

from ..errors import InvalidProgram
from .assign import (
    Access,
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
)
from .dtype import SHORT_NAMES, DType, named
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
    LoopKind,
    Multiply,
    Place,
    PlaceKind,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
)
from .loops import While as WhileStmt
from .ops import OPS, PART_OPS, Op
from .tensor import Tensor, Wish

__all__ = ["parse"]

_LOOP_KINDS = {kind.value: kind for kind in LoopKind}
_PLACE_KINDS = tuple(kind.value for kind in PlaceKind)
_TEMPORARIES = {"temporary": None, "virtual": Wish("virtual"), "local": Wish("local")}
_ACCESSES = ("read", "write", "update", "merge", "journal")


def parse(text: str) -> Computation | Kernel:
    """The program that a text describes. Raises InvalidProgram with the line that cannot be read."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise InvalidProgram(f"line {error.lineno}: {error.msg}") from None
    match module.body:
        case [ast.FunctionDef() as function]:
            return _Reader().program(function)
        case _:
            raise InvalidProgram("line 1: one function definition is expected")


def _refuse(node: ast.AST, expected: str) -> NoReturn:
    line = getattr(node, "lineno", 1)
    raise InvalidProgram(f"line {line}: {expected} is expected, not `{ast.unparse(node)}`")


def _checks(function: ast.FunctionDef) -> tuple[str, ...]:
    match function.returns:
        case None:
            return ()
        case ast.Call(func=ast.Name(id="check"), args=kinds):
            return tuple(_literal(kind, lambda name: isinstance(name, str), "a name") for kind in kinds)
        case other:
            _refuse(other, "-> kernel, or -> check('nan')")


def _is_kernel(function: ast.FunctionDef) -> bool:
    if isinstance(function.returns, ast.Name) and function.returns.id == "kernel":
        return True
    for node in ast.walk(function):
        match node:
            case ast.For(iter=ast.Call(func=ast.Name(id=kind))) if kind in _LOOP_KINDS:
                return True
            case ast.Call(
                func=ast.Name(id="arena" | "fill" | "raise_" | "stay" | "lap" | "barrier" | "comment")
            ):
                return True
            case ast.AnnAssign(annotation=ast.Name()):
                return True
            case ast.Call(func=ast.Name(id="place")):
                return True
    return False


class _Reader:
    """One program being read: what each name stands for."""

    def __init__(self) -> None:
        self.names: dict[str, Symbol | Tensor | Variable] = {}
        self.placement: dict[Tensor, Place] = {}
        self.arena = 0

    def program(self, function: ast.FunctionDef) -> Computation | Kernel:
        params = self.merging(tuple(self.param(argument) for argument in function.args.args))
        body = self.declarations(function.body)
        if _is_kernel(function):
            return Kernel(function.name, params, self.stmts(body), self.placement, self.arena)
        return Computation(function.name, params, self.statements(body), _checks(function))

    def param(self, argument: ast.arg) -> Param:
        match argument.annotation:
            case ast.Subscript(value=ast.Name(id="index"), slice=ast.Tuple(elts=[lower, upper])):
                symbol = self.names.get(argument.arg)  # that of an extent before
                if not isinstance(symbol, Symbol):
                    symbol = Symbol(argument.arg, SymbolKind.STATIC, _optional(lower), _optional(upper))
                self.names[argument.arg] = symbol
                return IndexParam(symbol)
            case ast.Subscript(value=ast.Name(id=access), slice=layout) if access in _ACCESSES:
                return ArrayParam(self.tensor(argument.arg, layout), cast(Access, access))
            case ast.Subscript(value=ast.Call(func=ast.Name(id="merge"), args=[source, slot]), slice=layout):
                tensor = self.tensor(argument.arg, layout)
                label = _literal(source, lambda held: held is None or isinstance(held, str), "a name or None")
                held = None if label is None else replace(tensor, label=label)
                return ArrayParam(tensor, "merge", held, _integer(slot))
            case _:
                _refuse(argument, "a parameter such as `x: read[f32, 8]`")

    def merging(self, params: tuple[Param, ...]) -> tuple[Param, ...]:
        """The parameters, with those sources of merge buffers that are parameters themselves."""
        declared = {param.tensor.label: param.tensor for param in params if isinstance(param, ArrayParam)}
        others: dict[str, Tensor] = {}
        found: list[Param] = []
        for param in params:
            if isinstance(param, ArrayParam) and param.source is not None:
                label = param.source.label
                source = declared.get(label) or others.setdefault(label, param.source)
                param = replace(param, source=source)
            found.append(param)
        return tuple(found)

    def tensor(self, name: str, layout: ast.expr, wish: Wish | None = None) -> Tensor:
        parts = layout.elts if isinstance(layout, ast.Tuple) else [layout]
        if not parts:
            _refuse(layout, "a dtype and extents")
        strides: tuple[Affine, ...] | None = None
        base: Tensor | None = None
        shape = []
        for part in parts[1:]:
            match part:
                case ast.Call(func=ast.Name(id="strides"), args=args):
                    strides = tuple(self.affine(arg) for arg in args)
                case ast.Call(func=ast.Name(id="flat" | "real"), args=[ast.Name() as owner]):
                    base = self.tensor_named(owner)
                case _:
                    shape.append(self.affine(part))
        tensor = Tensor(name, tuple(shape), _dtype(parts[0]), strides, base, wish)
        self.names[name] = tensor
        return tensor

    def declarations(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Read the declarations at the head of a body; the rest of it."""
        for position, node in enumerate(body):
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Name(id="arena"), args=[ast.Constant(value=int(size))])
                ):
                    self.arena = size
                case ast.AnnAssign(
                    target=ast.Name(id=name),
                    annotation=ast.Subscript(value=ast.Name(id=kind), slice=layout),
                    value=place,
                ) if kind in _TEMPORARIES:
                    tensor = self.tensor(name, layout, _TEMPORARIES[kind])
                    if place is not None:
                        self.placement[tensor] = _place(place)
                case _:
                    return body[position:]
        return []

    def statements(self, body: list[ast.stmt]) -> tuple[Statement, ...]:
        return tuple(statement for node in body for statement in self.statement(node))

    def statement(self, node: ast.stmt) -> Iterator[Statement]:
        match node:
            case ast.Pass():
                pass
            case ast.For(target=target, iter=ast.Call(func=ast.Name(id="each"), args=extents), body=[inner]):
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                bounds = [self.affine(extent) for extent in extents]
                if len(targets) != len(bounds):
                    _refuse(node.target, f"{len(bounds)} symbols")
                loops = tuple(zip(map(self.fresh, targets), bounds, strict=True))
                yield self.assignment(inner, loops)
            case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range"), args=args), body=inner_body):
                lo, hi, step = self.bounds(node, args)
                symbol = self.fresh(target)
                yield Loop(symbol, lo, hi, step, self.statements(inner_body))
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="index"))):
                yield self.bind(node)
            case ast.If(test=test, body=body, orelse=orelse):
                yield Branch(self.expr(test), self.statements(body), self.statements(orelse))
            case ast.While():
                first, condition, rest = self.repetition(node)
                yield While(self.statements(first), self.expr(condition), self.statements(rest))
            case ast.Expr(value=ast.Call(func=ast.Name(id="note"), args=[ast.Constant(value=str(text))])):
                yield Note(text)
            case _:
                yield self.assignment(node, ())

    def assignment(self, node: ast.stmt, loops: tuple[tuple[Symbol, Affine], ...]) -> Assign | Check:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="check"), args=[condition, kind, message])):
                return Check(loops, self.expr(condition), _text(kind), _text(message))
            case ast.Assign(targets=[ast.Subscript() as cell], value=value):
                into, index = self.cell(cell)
            case _:
                _refuse(node, "an assignment to a cell")
        match value:
            case ast.Call(func=ast.Name(id="reduce"), args=[accum, reduced, *initial], keywords=keywords):
                start = self.expr(initial[0]) if initial else None
                contract = _is_fused(keywords)
                return Assign(loops, into, index, self.expr(reduced), _op(accum), start, contract)
            case ast.Call(func=ast.Name(id="regroup"), args=[scanned], keywords=[]):
                return Assign(loops, into, index, self.expr(scanned), regroup=True)
            case _:
                return Assign(loops, into, index, self.expr(value))

    def stmts(self, body: list[ast.stmt]) -> tuple[Stmt, ...]:
        return tuple(self.stmt(node) for node in body if not isinstance(node, ast.Pass))

    def stmt(self, node: ast.stmt) -> Stmt:
        match node:
            case ast.For(iter=ast.Call(func=ast.Name(id=kind))) if kind in _LOOP_KINDS:
                return self.loop(node, node.iter, _LOOP_KINDS[kind])
            case ast.Assign(targets=[ast.Subscript() as cell], value=value):
                return self.store(cell, value)
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="index"))):
                return self.bind(node)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=dtype, value=ast.expr() as value):
                defined = self.expr(value)
                variable = Variable(name, _dtype(dtype))
                self.names[name] = variable
                return Define(variable, defined)
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return self.update(self.variable(target), value)
            case ast.If(test=ast.Call(func=ast.Name(id="seldom"), args=[test]), body=body, orelse=orelse):
                return If(self.expr(test), self.stmts(body), self.stmts(orelse), seldom=True)
            case ast.If(test=test, body=body, orelse=orelse):
                return If(self.expr(test), self.stmts(body), self.stmts(orelse))
            case ast.While():
                first, condition, rest = self.repetition(node)
                return WhileStmt(self.stmts(first), self.expr(condition), self.stmts(rest))
            case ast.Expr(value=ast.Call(func=ast.Name(id=verb), args=args)):
                return self.command(node, verb, args)
            case _:
                _refuse(node, "a statement")

    def store(self, cell: ast.Subscript, value: ast.expr) -> Store:
        tensor, index = self.cell(cell)
        match value:
            case ast.Call(func=ast.Name(id="bypass"), args=[stored], keywords=[]):
                return Store(tensor, index, self.expr(stored), bypass=True)
            case ast.Call(func=ast.Name(id="regroup"), args=[scanned], keywords=[]):
                return replace(self.store(cell, scanned), regroup=True)
            case ast.Call(func=ast.Name(id="reduce"), args=[accum, held, combined], keywords=[]):
                if not isinstance(held, ast.Subscript) or self.cell(held) != (tensor, index):
                    _refuse(held, "the cell itself")
                return replace(self.store(cell, combined), accum=_op(accum))
            case _:
                return Store(tensor, index, self.expr(value))

    def bind(self, node: ast.AnnAssign) -> Bind:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Subscript(slice=ast.Tuple(elts=[lower, upper])),
                value=ast.expr() as value,
            ):
                bound = self.expr(value)
                symbol = Symbol(name, lower=_optional(lower), upper=_optional(upper))
                self.names[name] = symbol
                return Bind(symbol, bound)
            case _:
                _refuse(node, "a bound symbol such as `n: index[0, 8] = x[i]`")

    def repetition(self, node: ast.While) -> tuple[list[ast.stmt], ast.expr, list[ast.stmt]]:
        """The test, the condition and the body of `while condition:`, or of a `while True:` that holds one
        `if not condition: break`."""
        if not isinstance(node.test, ast.Constant):
            return [], node.test, node.body
        for position, inner in enumerate(node.body):
            match inner:
                case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=condition), body=[ast.Break()], orelse=[]):
                    return node.body[:position], condition, node.body[position + 1 :]
        _refuse(node, "a condition under which the loop is left")

    def loop(self, node: ast.For, call: ast.expr, kind: LoopKind) -> For:
        assert isinstance(call, ast.Call)
        lo, hi, step = self.bounds(node, call.args)
        lanes, grain, aligned, masked, cuts = 1, None, None, False, tuple[int, ...]()
        for keyword in call.keywords:
            match keyword:
                case ast.keyword(arg="lanes", value=value):
                    lanes = _integer(value)
                case ast.keyword(arg="grain", value=value):
                    grain = self.affine(value)
                case ast.keyword(arg="aligned", value=value):
                    aligned = _integer(value)
                case ast.keyword(arg="masked", value=ast.Constant(value=bool(said))):
                    masked = said
                case ast.keyword(arg="cuts", value=ast.Tuple(elts=positions)):
                    cuts = tuple(map(_integer, positions))
                case _:
                    _refuse(call, "no other keywords than `lanes`, `grain`, `aligned`, `masked` and `cuts`")
        symbol = self.fresh(node.target)
        return For(symbol, lo, hi, self.stmts(node.body), kind, step, lanes, grain, aligned, masked, cuts)

    def update(self, variable: Variable, value: ast.expr) -> Update:
        match value:
            case ast.Call(func=ast.Name(id="reduce"), args=[accum, held, reduced], keywords=keywords):
                if not isinstance(held, ast.Name) or self.variable(held) is not variable:
                    _refuse(held, "the variable itself")
                return Update(variable, self.expr(reduced), _op(accum), _is_fused(keywords))
            case _:
                return Update(variable, self.expr(value))

    def command(self, node: ast.stmt, verb: str, args: list[ast.expr]) -> Stmt:
        match verb, args:
            case "fill", [ast.Name() as tensor, value]:
                return Fill(self.tensor_named(tensor), self.expr(value))
            case "raise_", [condition, kind, message]:
                return Raise(self.expr(condition), _text(kind), _text(message))
            case "stay", [condition]:
                return Stay(self.expr(condition))
            case "prefetch", [ast.Subscript() as cell]:
                return Prefetch(*self.cell(cell))
            case "prefetch", [ast.Subscript() as cell, cache]:
                return Prefetch(*self.cell(cell), _integer(cache))
            case "lap", [ast.Name() as times, ast.Constant(value=int(number))]:
                return Lap(self.tensor_named(times), number)
            case "barrier", []:
                return Barrier()
            case "barrier", [pending]:
                return Barrier(_integer(pending))
            case "copy", [ast.Subscript() as cell, ast.Subscript() as source, cells, count]:
                return Copy(*self.cell(cell), *self.cell(source), _integer(cells), self.expr(count))
            case "multiply_matrices", [ast.Name() as total, ast.Name() as left, ast.Name() as right, *how]:
                return self.multiply(node, (total, left, right), how)
            case "comment", [text]:
                return Comment(_text(text))
            case _:
                _refuse(node, "a statement")

    def multiply(
        self, node: ast.stmt, names: tuple[ast.Name, ast.Name, ast.Name], how: list[ast.expr]
    ) -> Multiply:
        total, left, right = (self.tensor_named(name) for name in names)
        match how:
            case [
                stage,
                ast.Tuple(elts=[ast.Constant(value=bool(first)), ast.Constant(value=bool(second))]),
                ast.Tuple(elts=[rows, columns]),
            ]:
                warps = _integer(rows), _integer(columns)
                return Multiply(total, left, right, self.affine(stage), (first, second), warps)
            case _:
                _refuse(node, "a stage, which factors are turned, and the rows and columns of warps")

    def expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Call(keywords=[_, *_]):
                _refuse(node, "an expression without keywords")
            case ast.Call(func=ast.Name(id=name), args=[number]) if name in SHORT_NAMES:
                return _const(number, named(name))
            case ast.Call(func=ast.Name(id="index"), args=[value]):
                return Index(self.affine(value))
            case ast.Call(func=ast.Name(id="cast"), args=[value, dtype]):
                return Cast(self.expr(value), _dtype(dtype))
            case ast.Call(func=ast.Attribute(value=ast.Name() as tensor, attr="at"), args=args):
                return Gather(self.tensor_named(tensor), tuple(self.expr(arg) for arg in args))
            case ast.Call(func=ast.Subscript(value=ast.Name() as op, slice=dtype), args=args):
                return Apply(_op(op), tuple(self.expr(arg) for arg in args), _dtype(dtype))
            case ast.Subscript():
                return Load(*self.cell(node))
            case ast.Name():
                return Local(self.variable(node))
            case _:
                _refuse(node, "an expression")

    def cell(self, node: ast.Subscript) -> tuple[Tensor, tuple[Affine, ...]]:
        if not isinstance(node.value, ast.Name):
            _refuse(node, "a cell such as `x[i, j]`")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self.tensor_named(node.value), tuple(self.affine(part) for part in parts)

    def bounds(self, node: ast.For, args: list[ast.expr]) -> tuple[Affine, Affine, int]:
        match args:
            case [lo, hi]:
                return self.affine(lo), self.affine(hi), 1
            case [lo, hi, step]:
                return self.affine(lo), self.affine(hi), _integer(step)
            case _:
                _refuse(node.iter, "a lower and an upper bound")

    def affine(self, node: ast.expr) -> Affine:
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.affine(left) + self.affine(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.affine(left) - self.affine(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.affine(right) * _integer(left)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.affine(operand)
            case ast.Name(id=name):
                symbol = self.names.get(name)
                if isinstance(symbol, Symbol):
                    return Affine.of(symbol)
                _refuse(node, "a symbol in scope")
            case ast.Call(func=ast.Name(id="static" | "dim" as kind), args=[name_node, lower, upper]):
                name = _text(name_node)
                known = self.names.get(name)
                if not isinstance(known, Symbol):
                    known = Symbol(name, SymbolKind(kind), _optional(lower), _optional(upper))
                    self.names[name] = known
                return Affine.of(known)
            case _:
                return Affine.of(_integer(node))

    def fresh(self, target: ast.expr) -> Symbol:
        if not isinstance(target, ast.Name):
            _refuse(target, "a loop symbol")
        symbol = Symbol(target.id)
        self.names[target.id] = symbol
        return symbol

    def tensor_named(self, node: ast.Name) -> Tensor:
        found = self.names.get(node.id)
        if not isinstance(found, Tensor):
            _refuse(node, "a declared tensor")
        return found

    def variable(self, node: ast.Name) -> Variable:
        found = self.names.get(node.id)
        if not isinstance(found, Variable):
            _refuse(node, "a defined variable")
        return found


def _dtype(node: ast.expr) -> DType:
    if not (isinstance(node, ast.Name) and node.id in SHORT_NAMES):
        _refuse(node, "a dtype such as `f32`")
    return named(node.id)


def _op(node: ast.expr) -> Op:
    found = (OPS.get(node.id) or PART_OPS.get(node.id)) if isinstance(node, ast.Name) else None
    if found is None:
        _refuse(node, "an op of the table")
    return found


def _is_fused(keywords: list[ast.keyword]) -> bool:
    match keywords:
        case []:
            return False
        case [ast.keyword(arg="fused", value=ast.Constant(value=True))]:
            return True
        case _:
            _refuse(keywords[0], "`fused=True`")


def _integer(node: ast.expr) -> int:
    return int(_literal(node, lambda value: type(value) is int, "an integer"))


def _optional(node: ast.expr) -> int | None:
    value = _literal(node, lambda found: found is None or type(found) is int, "an integer or None")
    return value if value is None else int(value)


def _text(node: ast.expr) -> str:
    return str(_literal(node, lambda value: isinstance(value, str), "a string"))


def _const(node: ast.expr, dtype: DType) -> Const:
    value = _number(node)
    try:
        return Const(dtype.numpy.type(value).item(), dtype)
    except OverflowError:
        _refuse(node, f"a number that {dtype} holds")


def _number(node: ast.expr) -> bool | int | float:
    match node:
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="nan" | "inf" as name)):
            return -float(name)
        case _:
            value: bool | int | float = _literal(
                node, lambda v: isinstance(v, (bool, int, float)), "a number"
            )
            return value


def _literal(node: ast.expr, accepts: Callable[[Any], bool], expected: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        _refuse(node, expected)
    if not accepts(value):
        _refuse(node, expected)
    return value


def _place(node: ast.expr) -> Place:
    match node:
        case ast.Call(func=ast.Name(id="place"), args=[kind, offset, reason]):
            if _text(kind) not in _PLACE_KINDS:
                _refuse(kind, f"one of {', '.join(_PLACE_KINDS)}")
            return Place(PlaceKind(_text(kind)), _text(reason), _integer(offset))
        case _:
            _refuse(node, "a place")
