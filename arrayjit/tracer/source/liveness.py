"""Which local variables statements bind, and which values they need of those that are bound before.

i = 0                   live before: n
while i < n:            live before: i, n, as the end of the body comes back here
    i = i + 1
return i                live before: i
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from ...frozen import frozen

__all__ = ["Ends", "bound", "head", "is_endless", "live", "live_between", "names_read"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NONE: frozenset[str] = frozenset()


@frozen
class Ends:
    """What is live where statements end, and where they leave by `break`, `continue` and `return`."""

    falls: frozenset[str]
    breaks: frozenset[str] = _NONE
    continues: frozenset[str] = _NONE
    returns: frozenset[str] = _NONE

    def falling(self, falls: frozenset[str]) -> Ends:
        return Ends(falls, self.breaks, self.continues, self.returns)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The variables that statements bind in the scope that they stand in."""
    return {name for node in nodes for name in _bound(node)}


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
            yield name
        case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            yield name
        case _:
            pass
    if isinstance(node, _SCOPES):
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(node, _COMPREHENSIONS) and isinstance(part, ast.comprehension):
            continue
        yield from _bound(part)


def names_read(*nodes: ast.AST | None) -> frozenset[str]:
    """The names that are read in nodes, inner functions included."""
    parts = (part for node in nodes if node is not None for part in ast.walk(node))
    return frozenset(
        part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    )


def live(statements: Sequence[ast.stmt], ends: Ends) -> frozenset[str]:
    """The names of which the value before the statements may be read by them or by what follows."""
    return live_between(statements, ends)[0]


def live_between(statements: Sequence[ast.stmt], ends: Ends) -> list[frozenset[str]]:
    """The names that are live before each of the statements, and after the last one."""
    found = [ends.falls]
    for statement in reversed(statements):
        found.append(_before(statement, ends.falling(found[-1])))
    return found[::-1]


def _before(statement: ast.stmt, ends: Ends) -> frozenset[str]:
    after = ends.falls
    match statement:
        case ast.Assign(targets=targets, value=value):
            return (after - _names_bound(*targets)) | names_read(value, *targets)
        case ast.AnnAssign(target=target, value=value):
            return after if value is None else (after - _names_bound(target)) | names_read(value, target)
        case ast.AugAssign(target=target, value=value):
            return after | names_read(value, target) | _names_bound(target)
        case ast.If(test=test, body=body, orelse=orelse):
            return names_read(test) | live(body, ends) | live(orelse, ends)
        case ast.While() | ast.For():
            return _before_loop(statement, ends)
        case ast.Break():
            return ends.breaks
        case ast.Continue():
            return ends.continues
        case ast.Return(value=value):
            return ends.returns | names_read(value)
        case ast.Raise():
            return names_read(statement)
        case ast.FunctionDef() | ast.Import() | ast.ImportFrom():
            return (after - bound([statement])) | names_read(statement)
        case ast.Match(subject=subject, cases=cases):
            return names_read(subject) | _before_cases(cases, ends)
        case _:
            # Handlers and contexts may be entered from anywhere in their blocks.
            leaves = ends.breaks | ends.continues | ends.returns if _has_blocks(statement) else _NONE
            return after | leaves | names_read(statement)


def _before_cases(cases: Sequence[ast.match_case], ends: Ends) -> frozenset[str]:
    now = ends.falls
    for case in reversed(cases):
        match case:
            case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
                now = _NONE
        now |= names_read(case.pattern, case.guard) | live(case.body, ends)
        now -= bound([case.pattern])
    return now


def _before_loop(loop: ast.While | ast.For, ends: Ends) -> frozenset[str]:
    begin = head(loop, ends)
    return begin if isinstance(loop, ast.While) else begin | names_read(loop.iter)


def head(loop: ast.While | ast.For, ends: Ends) -> frozenset[str]:
    """What is live where an iteration of the loop begins, or it ends."""
    found = _NONE if is_endless(loop) else live(loop.orelse, ends)
    while True:
        body = live(loop.body, Ends(found, ends.falls, found, ends.returns))
        match loop:
            case ast.While(test=test):
                more = found | body | names_read(test)
            case ast.For(target=target):
                more = found | (body - _names_bound(target)) | names_read(target)
        if more == found:
            return found
        found = more


def is_endless(loop: ast.While | ast.For) -> bool:
    """Whether a loop never ends by itself."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)


def _names_bound(*targets: ast.expr) -> frozenset[str]:
    """The names that targets bind; what they store into has to be there before."""
    return frozenset(bound(targets))


def _has_blocks(statement: ast.stmt) -> bool:
    return hasattr(statement, "body") and not isinstance(statement, _SCOPES)
