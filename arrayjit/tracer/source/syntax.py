"""Syntax: what statements do, and how new ones are made, on the lines of those that they stand for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, Union

from .liveness import Ends, bound, names_read

__all__ = [
    "LEFT",
    "NOTHING",
    "Loop",
    "Node",
    "NotRewritten",
    "all_ends",
    "assigned",
    "assignment",
    "call_of",
    "captured",
    "computed_between",
    "covers",
    "falls",
    "function_of",
    "has_leaving",
    "is_broken",
    "lambda_of",
    "left_by",
    "pairs_of",
    "parameters",
    "parts_of",
    "placed",
    "returns_in",
    "texts_of",
    "tuple_of",
]

Node = TypeVar("Node", bound=ast.AST)

Loop = Union[ast.For, ast.While]

NOTHING = ".nothing"
"""The name of what a variable holds that has no value."""

LEFT = "a `with` or `try` statement is left where a condition decides"
"""Why statements stay as they are that something in their blocks leaves."""

_LEAVING = (ast.Return, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CLOSURES = (*_SCOPES, ast.GeneratorExp)

_CALL_AT_ONCE = frozenset(
    (
        "all",
        "any",
        "cond",
        "dict",
        "list",
        "max",
        "min",
        "reduce",
        "set",
        "sorted",
        "sum",
        "tuple",
        "while_loop",
    )
)
"""Functions that have called those that they were given, and forgotten them, when they return."""


class NotRewritten(Exception):
    """A statement of a kind that cannot stand in a side of a condition."""


def left_by(left: str, op: ast.cmpop, number: int, body: list[ast.stmt]) -> ast.stmt:
    """What is done where a loop was left by a way of this number, or, with NotEq, by another one."""
    test = ast.Compare(ast.Name(left, ast.Load()), [op], [ast.Constant(number)])
    return placed(body[0], ast.If(test, body, []))


def covers(node: ast.expr, line: int) -> bool:
    first = getattr(node, "lineno", None)
    return first is not None and first <= line <= (node.end_lineno or first)


def falls(statements: Sequence[ast.stmt]) -> bool:
    """Whether what follows the statements may run after them."""
    match statements[-1:]:
        case [ast.Return() | ast.Break() | ast.Continue() | ast.Raise()]:
            return False
        case [ast.If(body=body, orelse=orelse)]:
            return falls(body) or falls(orelse)
        case _:
            return True


def is_broken(statements: Iterable[ast.AST]) -> bool:
    """Whether a `break` in the statements leaves the loop that they are the body of."""
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        inner = (
            statement.orelse
            if isinstance(statement, (ast.For, ast.While))
            else ast.iter_child_nodes(statement)
        )
        if not isinstance(statement, _SCOPES) and is_broken(inner):
            return True
    return False


def pairs_of(node: ast.Compare) -> list[ast.expr]:
    """The comparisons of a chain."""
    sides = zip((node.left, *node.comparators[:-1]), node.ops, node.comparators, strict=True)
    return [placed(node, ast.Compare(one, [op], [other])) for one, op, other in sides]


def computed_between(node: ast.Compare) -> ast.expr | None:
    """The first of what stands between two comparisons of a chain that is computed, and once."""
    between = node.comparators[:-1]
    return next((part for part in between if not isinstance(part, (ast.Name, ast.Constant))), None)


def captured(function: ast.FunctionDef) -> dict[ast.AST, frozenset[str]]:
    """The functions in a function that may be called later than where they stand, and the names that they
    look up outside themselves."""
    at_once = {
        id(part)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and _last_name(call.func) in _CALL_AT_ONCE
        for part in (*call.args, *(given.value for given in call.keywords))
    }
    closures = (part for part in ast.walk(function) if isinstance(part, _CLOSURES) and part is not function)
    return {part: names_read(part) - _own(part) for part in closures if id(part) not in at_once}


def _own(node: ast.AST) -> set[str]:
    """The variables of a function, as far as it is one."""
    if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return set()
    body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
    return {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)} | bound(body)


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def parts_of(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, without inner functions."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, _SCOPES):
            yield from parts_of(part)


def returns_in(node: ast.AST) -> list[ast.AST]:
    return [part for part in parts_of(node) if isinstance(part, ast.Return)]


def has_leaving(node: ast.AST) -> bool:
    return not isinstance(node, _SCOPES) and any(isinstance(part, _LEAVING) for part in parts_of(node))


def all_ends(names: Iterable[str]) -> Ends:
    """Ends where these names are live, however they are reached."""
    found = frozenset(names)
    return Ends(found, found, found, found)


def placed(place: ast.AST, made: Node) -> Node:
    """What was made, on the first line of what it stands for."""
    for part in ast.walk(made):
        if isinstance(part, (ast.stmt, ast.expr, ast.excepthandler, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
            part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
    return made


def function_of(place: ast.stmt, name: str, names: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, parameters(names), body, [])
    if sys.version_info >= (3, 12):
        made.type_params = []
    return placed(place, made)


def lambda_of(names: Sequence[str], body: ast.expr) -> ast.expr:
    return ast.Lambda(parameters(names), body)


def parameters(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def call_of(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(f".{name}", ast.Load()), list(arguments), [])


def texts_of(names: Iterable[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())


def tuple_of(names: Sequence[str], context: type[ast.expr_context] = ast.Load) -> ast.expr:
    return ast.Tuple([ast.Name(name, context()) for name in names], context())


def assignment(names: Sequence[str], value: ast.expr) -> ast.stmt:
    return ast.Assign([tuple_of(names, ast.Store)], value) if names else ast.Expr(value)


def assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)
