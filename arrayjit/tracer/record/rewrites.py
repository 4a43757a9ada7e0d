"""What to write instead of a line that needs a number: the fix of an error, in the user's own words."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from typing import Union

import numpy as np

from ...errors import Location

__all__ = ["instead_of_condition", "instead_of_float"]

_CALLS = {
    "any": "np.any(x)",
    "all": "np.all(x)",
    "max": "np.maximum(a, b), or x.max()",
    "min": "np.minimum(a, b), or x.min()",
    "sorted": "np.sort(x)",
}
_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}
_NEEDING_CELLS = frozenset(("max", "min", "argmax", "argmin"))

_LEAVING = (ast.Break, ast.Continue, ast.Return)

Choice = Union[ast.While, ast.If, ast.IfExp, ast.Assert]
Loop = Union[ast.For, ast.While]


def instead_of_condition(loc: Location | None, otherwise: str) -> str:
    """What to write where Python asks whether a value is true; `otherwise`, if the line does not tell."""
    nodes = list(_nodes_at(loc))
    for node in nodes:
        if isinstance(node, (ast.While, ast.If, ast.IfExp, ast.Assert)) and _covers(node.test, loc):
            return _instead_of_choice(node, nodes)
    for node in nodes:
        if isinstance(node, ast.comprehension) and any(_covers(test, loc) for test in node.ifs):
            return "select with a mask instead: x[condition]"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            return f"use {_CALLS[node.func.id]}"
        if _is_logical(node):
            return f"use {_vectorised(node)}"
    return otherwise


def instead_of_float(loc: Location | None) -> str:
    """What to write where Python asks for a traced value as a float."""
    for node in _nodes_at(loc):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)):
                if hasattr(np, name):
                    return f"use np.{name}, which takes arrays"
                return f"compute what math.{name} would give before, and pass it as an argument"
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


def _instead_of_choice(node: Choice, around: list[ast.AST]) -> str:
    """`around` is the syntax that reaches over the condition, the function first."""
    test = _vectorised(node.test)
    match node:
        case ast.While():
            return _instead_of_while(node, test)
        case ast.IfExp(body=yes, orelse=no) if any(map(_may_be_guarded, (yes, no))):
            return f"write arrayjit.cond({test}, lambda: {ast.unparse(yes)}, lambda: {ast.unparse(no)})"
        case ast.IfExp(body=yes, orelse=no):
            return f"write np.where({test}, {ast.unparse(yes)}, {ast.unparse(no)})"
        case ast.Assert(msg=said):
            error = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), [said] if said else [], []))
            return _as_functions(_vectorised(ast.UnaryOp(ast.Not(), node.test)), [error], [], around[0])
        case ast.If():
            loops = [part for part in around if isinstance(part, (ast.For, ast.While))]
            return _instead_of_if(node, test, around[0], loops[-1] if loops else None)


def _may_be_guarded(side: ast.expr) -> bool:
    """Whether a side of a choice raises where there are no cells, which the condition may ask for:
    `np.where` computes both sides."""
    return any(
        isinstance(part, ast.Subscript) or (isinstance(part, ast.Attribute) and part.attr in _NEEDING_CELLS)
        for part in ast.walk(side)
    )


def _instead_of_if(node: ast.If, test: str, scope: ast.AST, loop: Loop | None) -> str:
    """What to write instead of an `if` in a function and in the innermost loop around it."""
    leaves = {type(part) for part in ast.walk(node) if isinstance(part, _LEAVING)}
    opposite = _vectorised(ast.UnaryOp(ast.Not(), node.test))
    if ast.Break in leaves or (ast.Return in leaves and loop is not None):
        return f"leave the loop by its condition: write it as an arrayjit.while_loop, while {opposite}"
    if ast.Return in leaves:
        return f"compute both results, and return np.where({test}, a, b)"
    if ast.Continue in leaves and loop is not None:
        rest = loop.body[loop.body.index(node) + 1 :] if node in loop.body else []
        return _as_functions(opposite, rest, [], scope)
    chosen = _chosen(node)
    if chosen is not None:
        target, value = chosen
        return f"write {target} = {value}"
    return _as_functions(test, node.body, node.orelse, scope)


def _chosen(node: ast.If) -> tuple[str, str] | None:
    """What an `if` assigns and the value as an expression, if each side is one assignment to the same."""
    yes = _assigned(node.body)
    no = _assigned(node.orelse) if node.orelse or yes is None else (yes[0], yes[0])
    if yes is None or no is None or yes[0] != no[0]:
        return None
    return yes[0], f"np.where({_vectorised(node.test)}, {yes[1]}, {no[1]})"


def _assigned(side: list[ast.stmt]) -> tuple[str, str] | None:
    """The target and the value of a side that is one assignment."""
    match side:
        case [ast.Assign(targets=[ast.Name() | ast.Subscript() | ast.Attribute() as target], value=value)]:
            return ast.unparse(target), ast.unparse(value)
        case [ast.AugAssign(target=target, op=op, value=value)]:
            return ast.unparse(target), ast.unparse(ast.BinOp(target, op, value))
        case [ast.If() as inner]:
            return _chosen(inner)
        case _:
            return None


def _as_functions(test: str, yes: list[ast.stmt], no: list[ast.stmt], scope: ast.AST) -> str:
    """The sides of an `if` as functions for `arrayjit.cond`. They give the names that they assign and that
    the rest of the function knows too, and take those that they may not assign or that they read."""
    inside = {id(part) for side in (yes, no) for part in _names(side)}
    known = {part.id for part in _names([scope]) if id(part) not in inside}
    known |= {part.arg for part in ast.walk(scope) if isinstance(part, ast.arg)}
    first, second = _assigned_names(yes), _assigned_names(no)
    names = [name for name in dict.fromkeys((*first, *second)) if name in known]
    read = {part.id for side in (yes, no) for part in _names(side) if isinstance(part.ctx, ast.Load)}
    taken = ", ".join(n for n in names if n in read or n not in first or n not in second)
    given = ", ".join(names)
    after = f"; return {given}" if names else ""
    other = "no" if no else f"lambda {taken}: {_packed(given)}" if names else "lambda: None"
    call = ", ".join(part for part in (test, "yes", other, taken) if part)
    return "\n".join(
        [
            "write the branches as functions",
            f"    def yes({taken}): {_raising(yes) or '...' + after}",
            *[f"    def no({taken}): ...{after}"] * bool(no),
            f"    {given + ' = ' if names else ''}arrayjit.cond({call})",
        ]
    )


def _raising(side: list[ast.stmt]) -> str:
    """A side that does nothing but raise, on a line."""
    match side:
        case [ast.Raise() as error] if len(said := ast.unparse(error)) < 80:
            return said
        case _:
            return ""


def _names(statements: Sequence[ast.AST]) -> Iterator[ast.Name]:
    for statement in statements:
        yield from (part for part in ast.walk(statement) if isinstance(part, ast.Name))


def _assigned_names(side: list[ast.stmt]) -> list[str]:
    return [part.id for part in _names(side) if isinstance(part.ctx, ast.Store)]


def _packed(names: str) -> str:
    return f"({names})" if "," in names else names


def _instead_of_while(node: ast.While, test: str) -> str:
    names = ", ".join(_carried(node)) or "state"
    several = "," in names
    state = "state" if several else names
    unpack = f"{names} = state; " if several else ""
    return (
        "write the loop as\n"
        f"    def test({state}): {unpack}return {test}\n"
        f"    def body({state}): {unpack}...; return {names}\n"
        f"    {names} = arrayjit.while_loop(test, body, {_packed(names)})"
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
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return True
        case ast.Compare(ops=ops):
            return len(ops) > 1
        case _:
            return False


def _vectorised(node: ast.AST) -> str:
    """A condition as text, with NumPy's functions for `and`, `or`, `not`, `in` and chained comparisons."""
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
        pairs = [_compared(parts[n], op, parts[n + 1]) for n, op in enumerate(node.ops)]
        joined = pairs[0]
        for pair in pairs[1:]:
            joined = _numpy("logical_and", joined, pair)
        return joined


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    match op:
        case ast.In():
            return _numpy("isin", left, right)
        case ast.NotIn():
            return _numpy("logical_not", _numpy("isin", left, right))
        case _:
            return ast.Compare(left, [op], [right])


def _numpy(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np"), name), list(args), [])
