"""What to write instead of a line that needs a number: the fix of an error, in the user's own words."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Collection, Iterator, Sequence
from typing import Union

import numpy as np

from ...errors import Location

__all__ = ["instead_of_array", "instead_of_condition", "instead_of_float"]

_CALLS = {
    "any": "np.any(x)",
    "all": "np.all(x)",
    "max": "np.maximum(a, b), or x.max()",
    "min": "np.minimum(a, b), or x.min()",
    "sorted": "np.sort(x)",
}
_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}
_NEEDING_CELLS = frozenset(("max", "min", "argmax", "argmin"))
_COUNTING_CELLS = frozenset(("len", "size", "shape"))

Choice = Union[ast.While, ast.If, ast.IfExp, ast.Assert]


def instead_of_condition(loc: Location | None, otherwise: str, branches: bool | None = None) -> str:
    """What to write where Python asks whether a value is true; `otherwise`, if the line does not tell.
    Statements may be compiled as they stand, unless that has been tried, as with `branches` it has; for None
    they may not."""
    nodes = list(_nodes_at(loc))
    for node in nodes:
        if isinstance(node, (ast.While, ast.If, ast.IfExp, ast.Assert)) and _covers(node.test, loc):
            is_guarded = any(isinstance(part, (ast.Try, ast.With)) for part in nodes)
            tried = branches if branches is None else branches or is_guarded
            return _instead_of_choice(node, nodes[0], tried) or otherwise
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


def instead_of_array(loc: Location | None, types: Collection[str]) -> str:
    """What to write where code asks for a traced value as a NumPy array. `types` are variables that hold
    element types, which convert it only where they are called by their own names."""
    for node in _nodes_at(loc):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name in types:
                return f"write np.asarray({ast.unparse(value)}).astype({name})"
            case _:
                pass
    return "use NumPy functions of the support table, and create arrays inside the jitted function"


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


def _instead_of_choice(node: Choice, scope: ast.AST, branches: bool | None) -> str:
    """What to write instead of a condition in a function; "" for a statement of which there is no saying."""
    match node:
        case ast.IfExp(test=test, body=yes, orelse=no):
            return f"write {_choice(test, yes, no)}"
        case ast.If():
            returned = _returned([node, *_following(node, scope)])
            if returned is not None:
                return f"write return {returned}"
            if (chosen := _chosen(node)) is not None:
                return f"write {ast.unparse(chosen[0])} = {ast.unparse(chosen[1])}"
        case ast.While() | ast.Assert():
            pass
    if branches is None:
        return ""
    function = "arrayjit.while_loop" if isinstance(node, ast.While) else "arrayjit.cond"
    as_it_stands = "" if branches else "have it compiled as it stands, by @arrayjit.jit(branches=True), or "
    return f"{as_it_stands}write it with {function}"


def _choice(test: ast.expr, yes: ast.expr, no: ast.expr) -> str:
    """One of two values by a condition; only that one is computed where the other may not be there."""
    if _may_be_guarded(test, (yes, no)) or any(map(_is_no_array, (yes, no))):
        return f"arrayjit.cond({_vectorised(test)}, lambda: {ast.unparse(yes)}, lambda: {ast.unparse(no)})"
    return f"np.where({_vectorised(test)}, {ast.unparse(yes)}, {ast.unparse(no)})"


def _is_no_array(value: ast.expr) -> bool:
    return isinstance(value, (ast.Tuple, ast.List, ast.Dict)) or value == ast.Constant(None)


def _may_be_guarded(test: ast.expr, sides: Sequence[ast.expr]) -> bool:
    """Whether the condition asks for what a side needs, which `np.where` computes both ways: whether there
    are cells, or the position of one; or whether a side calls a function that may write."""
    if any(map(_calls_a_function, sides)):
        return True
    asked = {ast.unparse(part) for one in ast.walk(test) for part in _compared_parts(one)}
    counted = any(_name_of(part) in _COUNTING_CELLS for part in ast.walk(test))
    for part in (part for side in sides for part in ast.walk(side)):
        if counted and (isinstance(part, ast.Subscript) or _name_of(part) in _NEEDING_CELLS):
            return True
        if isinstance(part, ast.Subscript) and any(
            isinstance(one, ast.expr) and ast.unparse(one) in asked for one in ast.walk(part.slice)
        ):
            return True
    return False


def _calls_a_function(node: ast.AST) -> bool:
    """Whether one is called that is none of Python's own, by its bare name."""
    called = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(name, ast.Name) and not hasattr(builtins, name.id) for name in called)


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _compared_parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=others):
            return [part for part in (left, *others) if not isinstance(part, ast.Constant)]
        case _:
            return []


def _returned(block: list[ast.stmt]) -> str | None:
    """What a block returns, as an expression, if it does nothing but choose between two values."""
    match block:
        case [ast.If(test=test, body=[ast.Return(value=ast.expr() as yes)], orelse=[]), *after]:
            other = after[:1]
        case [ast.If(test=test, body=[ast.Return(value=ast.expr() as yes)], orelse=other), *_]:
            pass
        case _:
            return None
    match other:
        case [ast.Return(value=ast.expr() as no)]:
            return _choice(test, yes, no)
        case _:
            return None


def _following(node: ast.stmt, scope: ast.AST) -> list[ast.stmt]:
    """The statements that stand after one, in the same block."""
    for part in ast.walk(scope):
        for block in (getattr(part, "body", None), getattr(part, "orelse", None)):
            if isinstance(block, list) and node in block:
                return block[block.index(node) + 1 :]
    return []


def _chosen(node: ast.If) -> tuple[ast.expr, ast.expr] | None:
    """What an `if` assigns and the value as an expression, if each side is one assignment to the same."""
    yes = _assigned(node.body)
    no = _assigned(node.orelse) if node.orelse or yes is None else (yes[0], yes[0])
    if yes is None or no is None or ast.unparse(yes[0]) != ast.unparse(no[0]):
        return None
    if _may_be_guarded(node.test, (yes[0], yes[1], no[1])) or any(map(_is_no_array, (yes[1], no[1]))):
        return None
    return yes[0], _numpy("where", ast.parse(_vectorised(node.test), mode="eval").body, yes[1], no[1])


def _assigned(side: list[ast.stmt]) -> tuple[ast.expr, ast.expr] | None:
    """The target and the value of a side that is one assignment."""
    match side:
        case [ast.Assign(targets=[ast.Name() | ast.Subscript() | ast.Attribute() as target], value=value)]:
            return target, value
        case [ast.AugAssign(target=target, op=op, value=value)]:
            return target, ast.BinOp(target, op, value)
        case [ast.If() as inner]:
            return _chosen(inner)
        case _:
            return None


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
            if _may_be_guarded(joined, (value,)):
                joined = _asked_next(node.op, joined, value)
            else:
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


def _asked_next(op: ast.boolop, first: ast.expr, second: ast.expr) -> ast.expr:
    """Two conditions, of which the second one is asked only where the first one leaves that open."""
    sides = (second, ast.Constant(False)) if isinstance(op, ast.And) else (ast.Constant(True), second)
    functions = (ast.Lambda(ast.arguments([], [], None, [], [], None, []), side) for side in sides)
    return ast.Call(ast.Attribute(ast.Name("arrayjit"), "cond"), [first, *functions], [])


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
