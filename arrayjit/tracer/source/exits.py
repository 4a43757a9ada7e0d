"""How a loop is left, where its condition has to say so: `break` and `return` set a number, and end the
iteration.

    for x in xs:                        for x in xs:
        for y in x:                         for y in x:
            if y > 0:           =>              if y > 0:
                return y                            .exit = 2; break
                                            if .exit != 0: continue
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .syntax import (
    LEFT,
    NotRewritten,
    assigned,
    falls,
    has_leaving,
    left_by,
    placed,
    returns_in,
)

__all__ = ["Exits"]


class Exits:
    """`break` and `return` of a loop, or `continue` and `return` of a condition, as assignments of a number,
    after which an iteration or a side ends. `ways` has the numbers of what is done afterwards; what `asked`
    for its condition is noted there."""

    def __init__(self, left: str, end: list[ast.stmt], asked: set[ast.stmt], of_loop: bool) -> None:
        self._left = left
        self._end = end
        self._asked = asked
        self._of_loop = of_loop
        self.ways: dict[ast.stmt, int] = {}

    def lowered(self, statements: Sequence[ast.stmt], is_deeper: bool = False) -> list[ast.stmt]:
        """The statements, as far as they are reached; `is_deeper` are those of another loop in them."""
        made: list[ast.stmt] = []
        for statement in statements:
            made += self._lowered(statement, is_deeper)
            if not falls([statement]):
                break
        return made

    def _lowered(self, statement: ast.stmt, is_deeper: bool) -> list[ast.stmt]:
        match statement:
            case ast.Break() if self._of_loop and not is_deeper:
                return self._leave(statement, 1, is_deeper)
            case ast.Return():
                return self._leave(statement, self._way(statement), is_deeper)
            case ast.Continue() if not (self._of_loop or is_deeper):
                return self._leave(statement, self._way(statement), is_deeper)
            case ast.For() | ast.While():
                made = copy.copy(statement)
                made.body, made.orelse = self.lowered(made.body, True), self.lowered(made.orelse, is_deeper)
                leave = ast.Break() if is_deeper else ast.Continue()
                left = [self._if_left(placed(statement, leave))] if returns_in(statement) else []
                return [self._like(statement, made), *left]
            case ast.If():
                chosen = copy.copy(statement)
                chosen.body, chosen.orelse = (
                    self.lowered(side, is_deeper) for side in (statement.body, statement.orelse)
                )
                return [self._like(statement, chosen)]
            case ast.Match():
                cases = [
                    ast.match_case(part.pattern, part.guard, self.lowered(part.body, is_deeper))
                    for part in statement.cases
                ]
                return [placed(statement, ast.Match(statement.subject, cases))]
            case ast.Break() | ast.Continue():
                return [statement]
            case _ if has_leaving(statement):
                raise NotRewritten(LEFT)
            case _:
                return [statement]

    def _way(self, statement: ast.stmt) -> int:
        return self.ways.setdefault(statement, len(self.ways) + 2)

    def _leave(self, statement: ast.stmt, number: int, is_deeper: bool) -> list[ast.stmt]:
        end = ast.Break() if is_deeper else ast.Continue()
        return [
            placed(statement, part) for part in (assigned(self._left, ast.Constant(number)), *self._end, end)
        ]

    def _if_left(self, way: ast.stmt) -> ast.stmt:
        made = left_by(self._left, ast.NotEq(), 0, [way])
        self._asked.add(made)
        return made

    def _like(self, statement: ast.stmt, made: ast.stmt) -> ast.stmt:
        if statement in self._asked:
            self._asked.add(made)
        return made
