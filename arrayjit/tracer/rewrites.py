"""What to write instead of a line that needs a number: the fix of an error, in the user's own words."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Union

from ..errors import Location

__all__ = ["instead_of_condition", "instead_of_float"]

_CALLS = {
    "any": "np.any(x)",
    "all": "np.all(x)",
    "max": "np.maximum(a, b), or x.max()",
    "min": "np.minimum(a, b), or x.min()",
    "sorted": "np.sort(x)",
}
_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}

Choice = Union[ast.While, ast.If, ast.IfExp, ast.Assert]


def instead_of_condition(loc: Location | None) -> str:
    """What to write where Python asks whether a traced value is true; "" where the line does not tell."""
    nodes = list(_nodes_at(loc))
    for node in nodes:
        if isinstance(node, (ast.While, ast.If, ast.IfExp, ast.Assert)) and _covers(node.test, loc):
            return _instead_of_choice(node)
    for node in nodes:
        if isinstance(node, ast.comprehension) and any(_covers(test, loc) for test in node.ifs):
            return "select with a mask instead: x[condition]"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            return f"use {_CALLS[node.func.id]}"
        if _is_logical(node):
            return f"use {_vectorised(node)}"
    return ""


def instead_of_float(loc: Location | None) -> str:
    """What to write where Python asks for a traced value as a float."""
    for node in _nodes_at(loc):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)):
                return f"use np.{name}, which takes arrays"
            case _:
                pass
    return "leave it out: arrays and their elements take part in arithmetic as they are"


def _nodes_at(loc: Location | None) -> Iterator[ast.AST]:
    """The syntax that reaches over a line, outer before inner."""
    if loc is None:
        return
    source = "".join(linecache.getlines(loc.file))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    scopes = [node for node in ast.walk(tree) if _covers(node, loc) and _is_function(node, loc.function)]
    for scope in scopes or [tree]:
        yield from (
            node for node in ast.walk(scope) if _covers(node, loc) or isinstance(node, ast.comprehension)
        )


def _is_function(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=own):
            return own == name
        case ast.Lambda():
            return name == "<lambda>"
        case _:
            return False


def _covers(node: ast.AST, loc: Location | None) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return loc is not None and first is not None and last is not None and first <= loc.line <= last


def _instead_of_choice(node: Choice) -> str:
    test = _vectorised(node.test)
    match node:
        case ast.While():
            return _instead_of_while(node, test)
        case ast.IfExp(body=yes, orelse=no):
            return f"write np.where({test}, {ast.unparse(yes)}, {ast.unparse(no)})"
        case ast.Assert():
            return "check it outside the jitted function, on its arguments or its result"
        case ast.If(body=body) if any(isinstance(part, (ast.Break, ast.Continue)) for part in body):
            until = _vectorised(ast.UnaryOp(ast.Not(), node.test))
            return f"leave the loop by its condition: write it as an arrayjit.while_loop, while {until}"
        case ast.If(
            body=[ast.Assign(targets=[ast.Name(id=name)], value=yes)],
            orelse=[ast.Assign(targets=[ast.Name(id=other)], value=no)],
        ) if name == other:
            return f"write {name} = np.where({test}, {ast.unparse(yes)}, {ast.unparse(no)})"
        case ast.If(body=[ast.Assign(targets=[ast.Name(id=name)], value=yes)], orelse=[]):
            return f"write {name} = np.where({test}, {ast.unparse(yes)}, {name})"
        case ast.If():
            return f"use np.where({test}, a, b) for values, arrayjit.cond for statements"


def _instead_of_while(node: ast.While, test: str) -> str:
    names = ", ".join(_carried(node)) or "state"
    several = "," in names
    state = "state" if several else names
    unpack = f"{names} = state; " if several else ""
    whole = f"({names})" if several else names
    return (
        "write the loop as\n"
        f"    def test({state}): {unpack}return {test}\n"
        f"    def body({state}): {unpack}...; return {names}\n"
        f"    {names} = arrayjit.while_loop(test, body, {whole})"
    )


def _carried(node: ast.While) -> list[str]:
    """The names that a loop's body assigns, and that its test or the body before that reads."""
    stored: dict[str, None] = {}
    read = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    for statement in node.body:
        names = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            read.add(statement.target.id)
        read.update(name.id for name in names if isinstance(name.ctx, ast.Load) and name.id not in stored)
        stored.update((name.id, None) for name in names if isinstance(name.ctx, ast.Store))
    return [name for name in stored if name in read]


def _is_logical(node: ast.AST) -> bool:
    match node:
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=ops):
            return len(ops) > 1
        case _:
            return False


def _vectorised(node: ast.AST) -> str:
    """A condition as text, with NumPy's functions for `and`, `or`, `not` and chained comparisons."""
    return ast.unparse(_Vectorise().visit(ast.parse(ast.unparse(node), mode="eval").body))


class _Vectorise(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        joined = node.values[0]
        for value in node.values[1:]:
            joined = _numpy(_LOGICAL[type(node.op)], joined, value)
        return joined

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _numpy("logical_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        parts = [node.left, *node.comparators]
        pairs = [ast.Compare(parts[n], [op], [parts[n + 1]]) for n, op in enumerate(node.ops)]
        joined: ast.expr = pairs[0]
        for pair in pairs[1:]:
            joined = _numpy("logical_and", joined, pair)
        return joined


def _numpy(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np"), name), list(args), [])
