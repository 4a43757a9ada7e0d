"""A function's code, compiled again from its source with some of its conditions written otherwise.

Lines, names, constants and closure variables stay those of the source; a few global names that begin with a
dot are ours. Where the source is not at hand, or is not that of the code, there is none.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from .conditions import rewritten
from .syntax import NotRewritten

__all__ = ["lines_of", "recompiled"]

_NO_SOURCE = "its source is not there, or is another than when it was imported"


def lines_of(code: CodeType) -> range:
    """The lines of code and of the functions in it."""
    lines = [line for part in (code, *_inner(code)) for _, _, line in part.co_lines() if line is not None]
    return range(code.co_firstlineno, max(lines) + 1)


def recompiled(code: CodeType, lines: frozenset[int]) -> CodeType | str:
    """The code with the conditions on these lines decided where it runs, or why there is none."""
    return _recompiled(code, code.co_filename, lines)


@lru_cache(maxsize=256)
def _recompiled(code: CodeType, file: str, lines: frozenset[int]) -> CodeType | str:
    """`recompiled` of code in a file: equal code may be in several."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return _NO_SOURCE
    found = next((node for node in ast.walk(tree) if _is_of(node, code)), None)
    if not isinstance(found, ast.FunctionDef) or not _is_of_source(code, _compiled(tree, found, code)):
        return _NO_SOURCE
    try:
        made = rewritten(found, lines)
    except NotRewritten as error:
        return str(error)
    found.body = made.body
    whole = _compiled(tree, found, code)
    return _NO_SOURCE if whole is None else _named(whole, whole.co_name)


def _named(code: CodeType, name: str) -> CodeType:
    """The code with its parts that are ours called by the name of the user's function around them."""
    name = name if code.co_name.startswith(".") else code.co_name
    parts = (_named(part, name) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_name=name, co_consts=tuple(parts))


def _is_of(node: ast.AST, code: CodeType) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return False
    return min((part.lineno for part in node.decorator_list), default=node.lineno) == code.co_firstlineno


def _compiled(tree: ast.Module, function: ast.FunctionDef, code: CodeType) -> CodeType | None:
    """The code of a function in a module of which nothing else is needed but what it imports."""
    needed = [
        part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom)) or _holds(part, function)
    ]
    module = ast.fix_missing_locations(ast.Module(needed, []))
    whole = compile(module, code.co_filename, "exec", dont_inherit=True)
    alike = (part for part in _inner(whole) if part.co_firstlineno == code.co_firstlineno)
    return next((part for part in alike if part.co_name == code.co_name), None)


def _holds(statement: ast.stmt, function: ast.FunctionDef) -> bool:
    return any(part is function for part in ast.walk(statement))


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _is_of_source(code: CodeType, made: CodeType | None) -> bool:
    """Whether code is what its source gives now: the file may have changed since it was imported. Whoever
    compiled it may have passed on features of the future, which change nothing in a function."""
    return made is not None and made.replace(co_flags=code.co_flags) == code
