"""Which names a program still reads, from what its syntax says: what the sides of an `if` and the bodies of
loops must hand on."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...frozen import frozen

__all__ = ["Names", "assigned", "needed_after", "needed_before"]

Names = frozenset[str]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NONE: Names = frozenset()


def assigned(statements: Iterable[ast.AST]) -> list[str]:
    """The names that statements bind, in the order in which they stand there."""
    stores = [name for statement in statements for name in _bound(statement)]
    return list(
        dict.fromkeys(name.id for name in sorted(stores, key=lambda name: (name.lineno, name.col_offset)))
    )


def needed_before(statements: list[ast.stmt], after: Iterable[str] = ()) -> Names:
    """The names whose values these statements may read, or hand on to whoever reads those of `after`."""
    return _Reader().block(statements, frozenset(after))


def needed_after(scope: ast.AST, statement: ast.stmt) -> Names:
    """The names whose values a function may read after a statement in it, in the next iteration too."""
    reader = _Reader()
    reader.block(getattr(scope, "body", []))
    return reader.after.get(statement, _NONE)


@frozen
class _Ways:
    """What is read where a loop is left, and where it goes on with the next iteration."""

    end: Names = _NONE
    again: Names = _NONE


class _Reader:
    """Goes through statements from the last to the first."""

    def __init__(self) -> None:
        self.after: dict[ast.stmt, Names] = {}

    def block(self, statements: list[ast.stmt], after: Names = _NONE, ways: _Ways = _Ways()) -> Names:  # noqa: B008
        for statement in reversed(statements):
            self.after[statement] = self.after.get(statement, _NONE) | after
            after = self._before(statement, after, ways)
        return after

    def _before(self, node: ast.stmt, after: Names, ways: _Ways) -> Names:
        match node:
            case ast.If(test=test, body=yes, orelse=no):
                return _read(test) | self.block(yes, after, ways) | self.block(no, after, ways)
            case ast.For(target=target, iter=items):
                return _read(items) | self._around(node, after, ways, _NONE, _stored(target))
            case ast.While(test=test):
                return self._around(node, after, ways, _read(test), _NONE)
            case ast.With(items=items, body=body):
                read = frozenset().union(*map(_read, items))
                return read | (self.block(body, after, ways) - frozenset().union(*map(_stored, items)))
            case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
                after = self.block(last, after, ways)
                caught = [self.block(handler.body, after, ways) for handler in handlers]
                return self.block(body, self.block(other, after, ways), ways).union(*caught)
            case ast.Match(subject=subject, cases=cases):
                return (_read(subject) | after).union(*(self.block(case.body, after, ways) for case in cases))
            case ast.Break():
                return ways.end
            case ast.Continue():
                return ways.again
            case ast.Return() | ast.Raise():
                return _read(node)
            case ast.AugAssign(target=ast.Name(id=name)):
                return after | _read(node) | {name}
            case _:
                return (after - _stored(node)) | _read(node)

    def _around(
        self, node: ast.For | ast.While, after: Names, ways: _Ways, test: Names, index: Names
    ) -> Names:
        """What a loop reads: its second time through the body is what another iteration reads."""
        head = rest = test | self.block(node.orelse, after, ways)
        for _ in range(2):
            head = rest | (self.block(node.body, head, _Ways(end=after, again=head)) - index)
        return head


def _stored(node: ast.AST) -> Names:
    own = {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()
    return frozenset(name.id for name in _bound(node)) | own


def _bound(node: ast.AST) -> Iterable[ast.Name]:
    """The names that are bound here, and not in a comprehension or function inside."""
    if isinstance(node, (*_COMPREHENSIONS, *_FUNCTIONS)):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node
    for part in ast.iter_child_nodes(node):
        yield from _bound(part)


def _read(node: ast.AST) -> Names:
    """The names that are read here; of functions and comprehensions inside, those from outside."""
    if isinstance(node, ast.Name):
        return frozenset({node.id} if isinstance(node.ctx, ast.Load) else ())
    inner = _NONE.union(*map(_read, ast.iter_child_nodes(node)))
    if isinstance(node, _COMPREHENSIONS):
        return inner.difference(*(_stored(part.target) for part in node.generators))
    if isinstance(node, _FUNCTIONS):
        body = node.body if isinstance(node.body, list) else []
        return (
            inner - {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)} - set(assigned(body))
        )
    return inner
