"""`if` and `while` statements whose conditions only the compiled function can decide, written as functions.

    for x in xs:                    .items, .position, .exit = .counted(xs), 0, 0
        if x > limit:               def .test(...): return .position < .items.times
            return x                def .body(...):
        total += x              =>      x, .position = .items.item(.position), .following(.position)
    return total                        def .yes(...): .exit = 2; .position = .items.times; return ...
                                        def .no(...): total += x; return ...
                                        .exit, .position, total = .branch(x > limit, .yes, .no, ...)
                                        return .exit, .position, total, x
                                    .exit, .position, total, x = .repeat(.test, .body, ...)
                                    def .yes(...): return x
                                    def .no(...): return total
                                    return .branch(.exit == 2, .yes, .no, ...)

Names that begin with a dot are none that a program can have. What they stand for is in `loops.statements`:
where a condition turns out to be known, the function of its side is called and nothing else. Only statements
that asked for such a condition are rewritten, and those that they leave. What follows a statement that may be
left goes into its sides: a side of the last statement of a function returns from it; in loops, `break` and
`return` set a number that the loop's condition looks at, and the statements after the loop.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Sequence
from typing import Union

from ...frozen import frozen, replace
from .exits import Exits
from .liveness import Ends, bound, head, is_endless, live, live_between, names_read
from .syntax import (
    LEFT,
    NOTHING,
    Loop,
    Node,
    NotRewritten,
    all_ends,
    assigned,
    assignment,
    call_of,
    captured,
    computed_between,
    covers,
    falls,
    function_of,
    has_leaving,
    is_broken,
    lambda_of,
    left_by,
    pairs_of,
    placed,
    texts_of,
    tuple_of,
)

__all__ = ["rewritten"]

_Choice = Union[ast.If, ast.While, ast.IfExp, ast.Assert]


@frozen
class _Context:
    """Where statements stand: what is live where they end; what of that is so by `staying` in the
    loops around until they end by themselves; whether they end their function, and whether they are a side of
    a condition or the body of a loop that has become a function, which `continue` may end."""

    ends: Ends
    staying: Ends
    is_last: bool = False
    is_inside: bool = False

    def each(self, statements: Sequence[ast.stmt]) -> list[_Context]:
        """Where each of the statements stands."""
        lives = zip(live_between(statements, self.ends), live_between(statements, self.staying), strict=True)
        return [
            replace(self, ends=self.ends.falling(one), staying=self.staying.falling(other))
            for one, other in list(lives)[1:]
        ]

    def inside(self, begin: frozenset[str] | None = None, staying: frozenset[str] | None = None) -> _Context:
        """In what has become a function, and ends where a loop begins again, or where this statement ends."""
        ends = self.ends.falls if begin is None else begin
        still = self.staying.falls if staying is None else staying
        return _Context(Ends(ends, continues=ends), Ends(still, continues=still), is_inside=True)

    def in_loop(self, loop: Loop) -> _Context:
        """In a loop that stays one of Python's."""
        return _Context(_in_loop(loop, self.ends), _in_loop(loop, self.staying))


def _in_loop(loop: Loop, ends: Ends) -> Ends:
    begin = head(loop, ends)
    return Ends(begin, ends.falls, begin, ends.returns)


def rewritten(function: ast.FunctionDef, lines: Collection[int]) -> ast.FunctionDef:
    """The function with the conditions on these lines decided where it runs. Raises NotRewritten."""
    return _Rewriting(function, lines).function()


class _Rewriting(ast.NodeTransformer):
    """The conditions of one function. `asked` has those that were made on the way, `sealed` those of which
    `continue` ends a side."""

    def __init__(self, function: ast.FunctionDef, lines: Collection[int]) -> None:
        self._function = function
        self._lines = lines
        self._names = _variables(function)
        self._asked: set[ast.stmt] = set()
        self._sealed: set[ast.stmt] = set()
        self._heads: dict[ast.stmt, frozenset[str]] = {}
        self._captured = captured(function)
        self._ours: set[str] = set()
        self._made = 0

    def function(self) -> ast.FunctionDef:
        made = copy.copy(self._function)
        body = self._block(made.body, _Context(Ends(frozenset()), Ends(frozenset()), is_last=True))
        made.body = [*body, *self._still_local()]
        return made

    def _still_local(self) -> list[ast.stmt]:
        """What never runs, but lets names stay variables of the function that only sides bind now."""
        names = sorted(bound(self._function.body))
        if not names:
            return []
        never = ast.If(ast.Constant(False), [assignment(names, ast.Constant(None))], [])
        return [placed(self._function, never)]

    # statements

    def _block(self, statements: Sequence[ast.stmt], context: _Context) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        places: list[_Context] = []
        for n, statement in enumerate(statements):
            rest = list(statements[n + 1 :])
            match statement:
                case ast.Continue() if context.is_inside:
                    return made
                case ast.Return() | ast.Break() | ast.Continue():
                    assert not (context.is_inside and isinstance(statement, ast.Return))
                    return [*made, self._seen(statement)]
                case ast.Assert() if self._is_asked(statement):
                    return [*made, *self._block([self._raising(statement), *rest], context)]
                case ast.If() | ast.Match() if self._must_end(statement, context):
                    return [*made, *self._ending(statement, rest, context)]
                case ast.For() | ast.While() if statement.orelse and not is_broken(statement.body):
                    return [*made, *self._block([*self._without_else(statement), *rest], context)]
                case ast.For() | ast.While() if self._must_convert(statement, context):
                    places = places or context.each(statements)
                    converted = self._converted(statement, places[n])
                    return [*made, *self._block([*converted, *rest], context)]
                case _:
                    places = places or context.each(statements)
                    made += self._statement(statement, places[n])
        return made

    def _statement(self, statement: ast.stmt, context: _Context) -> list[ast.stmt]:
        """A statement that its block does not end with: `context` is where it stands."""
        within = replace(context, is_last=False)
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                if self._is_asked(statement):
                    return self._choice(statement, body, orelse, context)
                within = context.inside() if statement in self._sealed else within
                sides = self._block(body, within), self._block(orelse, within)
                return [placed(statement, ast.If(self._seen(test), sides[0] or [ast.Pass()], sides[1]))]
            case ast.While() if self._is_asked(statement):
                return self._repetition(statement, context)
            case ast.For() | ast.While():
                return [self._kept(statement, context)]
            case ast.With() | ast.Try():
                return [self._guarded(statement, within)]
            case ast.Match():
                return [self._chosen(statement, context.inside() if statement in self._sealed else within)]
            case ast.FunctionDef():
                return [_Rewriting(statement, self._lines).function()]
            case _ if context.is_inside and has_leaving(statement):
                raise NotRewritten(LEFT)
            case _:
                return [self._seen(statement)]

    def _kept(self, loop: Loop, context: _Context) -> Loop:
        """A loop that stays one of Python's."""
        body = self._block(loop.body, context.in_loop(loop)) or [ast.Pass()]
        orelse = self._block(loop.orelse, replace(context, is_last=False))
        if isinstance(loop, ast.While):
            return placed(loop, ast.While(self._seen(loop.test), body, orelse))
        return placed(loop, ast.For(loop.target, self._seen(loop.iter), body, orelse))

    def _chosen(self, statement: ast.Match, context: _Context) -> ast.stmt:
        """A statement of which one block runs, known while tracing."""
        cases = [
            ast.match_case(part.pattern, part.guard, self._block(part.body, context) or [ast.Pass()])
            for part in statement.cases
        ]
        return placed(statement, ast.Match(self._seen(statement.subject), cases))

    def _guarded(self, statement: ast.With | ast.Try, context: _Context) -> ast.stmt:
        """A statement of blocks that anything in them may leave."""
        if self._leaving([statement], context.is_inside):
            raise NotRewritten(LEFT)
        all_read = all_ends(names_read(self._function))
        inside = replace(context, ends=all_read, staying=all_read)
        if isinstance(statement, ast.With):
            items = [self._seen(item) for item in statement.items]
            return placed(statement, ast.With(items, self._block(statement.body, inside)))
        handlers = [
            placed(part, ast.ExceptHandler(part.type, part.name, self._block(part.body, inside)))
            for part in statement.handlers
        ]
        blocks = [
            self._block(part, inside) for part in (statement.body, statement.orelse, statement.finalbody)
        ]
        return placed(statement, ast.Try(blocks[0], handlers, blocks[1], blocks[2]))

    def _raising(self, statement: ast.Assert) -> ast.If:
        error = ast.Call(ast.Name("AssertionError", ast.Load()), [statement.msg] if statement.msg else [], [])
        made = placed(statement, ast.If(ast.UnaryOp(ast.Not(), statement.test), [ast.Raise(error)], []))
        self._asked.add(made)
        return made

    def _without_else(self, loop: Loop) -> list[ast.stmt]:
        """A loop that nothing breaks, and what follows its end."""
        made = copy.copy(loop)
        made.orelse = []
        if loop in self._asked:
            self._asked.add(made)
        return [made, *loop.orelse]

    # what leaves the statements that it stands in

    def _is_asked(self, node: _Choice) -> bool:
        return node in self._asked or any(covers(node.test, line) for line in self._lines)

    def _leaving(self, statements: Sequence[ast.stmt], is_asked: bool) -> set[type[ast.stmt]]:
        """How statements may be left: by anything where they stand under a condition that was asked for
        (`is_asked`), else under one."""
        found: set[type[ast.stmt]] = set()
        more: set[type[ast.stmt]]
        for statement in statements:
            match statement:
                case ast.Return() | ast.Break() | ast.Continue():
                    more = {type(statement)} if is_asked else set()
                case ast.If() | ast.Match() if statement in self._sealed:
                    more = set()
                case ast.If(body=body, orelse=orelse):
                    inside = is_asked or self._is_asked(statement)
                    more = self._leaving(body, inside) | self._leaving(orelse, inside)
                case ast.For() | ast.While():
                    inside = is_asked or (isinstance(statement, ast.While) and self._is_asked(statement))
                    ways = self._leaving(statement.body, inside)
                    more = ways & {ast.Return}
                    more |= self._leaving(statement.orelse, is_asked or ast.Break in ways)
                case ast.With(body=body):
                    more = self._leaving(body, is_asked)
                case ast.Match(cases=cases):
                    more = {kind for part in cases for kind in self._leaving(part.body, is_asked)}
                case ast.Try(body=body, orelse=orelse, finalbody=finalbody, handlers=handlers):
                    blocks = (body, orelse, finalbody, *(part.body for part in handlers))
                    more = {kind for part in blocks for kind in self._leaving(part, is_asked)}
                case _:
                    more = set()
            found |= more
            is_asked = is_asked or bool(more)
        return found

    def _must_end(self, statement: ast.If | ast.Match, context: _Context) -> bool:
        """Whether what follows goes into the sides."""
        return statement not in self._sealed and bool(self._leaving([statement], context.is_inside))

    def _must_convert(self, loop: Loop, context: _Context) -> bool:
        """Whether what leaves a loop has to be a part of its condition."""
        if loop in self._asked:
            return False
        is_asked = isinstance(loop, ast.While) and self._is_asked(loop)
        leaving = self._leaving(loop.body, is_asked) & {ast.Break, ast.Return}
        leaving |= self._leaving(loop.orelse, context.is_inside)
        return bool(leaving) or (context.is_inside and ast.Return in self._leaving(loop.body, True))

    # conditions

    def _ending(
        self, statement: ast.If | ast.Match, rest: list[ast.stmt], context: _Context
    ) -> list[ast.stmt]:
        """A condition with all that follows in its block."""
        if rest and (isinstance(statement, ast.Match) or (falls(statement.body) and falls(statement.orelse))):
            return self._block(self._marked(statement, rest, context), context)
        if isinstance(statement, ast.Match):
            return [self._chosen(statement, context)]
        body, orelse = (
            [*side, *rest] if falls(side) else side for side in (statement.body, statement.orelse)
        )
        if not self._is_asked(statement):
            sides = self._block(body, context), self._block(orelse, context)
            return [placed(statement, ast.If(self._seen(statement.test), sides[0] or [ast.Pass()], sides[1]))]
        if not context.is_last:
            return self._choice(statement, body, orelse, context)
        call, functions = self._branch(statement, body, orelse, None, context)
        return [*functions, placed(statement, ast.Return(call))]

    def _marked(
        self, statement: ast.If | ast.Match, rest: list[ast.stmt], context: _Context
    ) -> list[ast.stmt]:
        """A condition that notes how it would be left, what leaves, and what follows: this would stand in
        both sides otherwise, and in four of two such conditions. Variables that are read only if it is left
        have no value before it."""
        left = self._named(f".exit{self._number()}")
        exits = Exits(left, [], self._asked, of_loop=False)
        (made,) = exits.lowered([statement])
        self._sealed.add(made)
        conditions = [left_by(left, ast.Eq(), number, [way]) for way, number in exits.ways.items()]
        self._asked.update(conditions)
        after = [made, *conditions, *rest]
        read = live(after, context.ends) - live([statement, *rest], context.ends) - {left}
        begin = [assigned(left, ast.Constant(0))]
        begin += [assigned(name, ast.Name(NOTHING, ast.Load())) for name in sorted(read & self._names)]
        return [*(placed(statement, part) for part in begin), *after]

    def _choice(
        self, statement: ast.If, body: list[ast.stmt], orelse: list[ast.stmt], context: _Context
    ) -> list[ast.stmt]:
        """A condition of which the sides end in the same place."""
        given = sorted(bound([*body, *orelse]) & self._names & context.ends.falls)
        if all(isinstance(part, ast.Continue) for part in (*body, *orelse)):
            return []
        call, functions = self._branch(statement, body, orelse, given, context.inside())
        return [*functions, placed(statement, assignment(given, call))]

    def _branch(
        self,
        statement: ast.If,
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        given: Sequence[str] | None,
        context: _Context,
    ) -> tuple[ast.expr, list[ast.stmt]]:
        """The call that decides, and the functions of both sides, which give the variables `given`, or what
        the function does."""
        self._require_own([*body, *orelse])
        ends = all_ends(given or ())
        names = sorted((live(body, ends) | live(orelse, ends)) & self._names)
        sides = [self._side(statement, side, names, given, context) for side in (body, orelse)]
        called = [ast.Name(side.name, ast.Load()) for side in sides]
        words = ast.Constant(None) if given is None else texts_of(given)
        call = call_of("branch", self._truth(statement.test), *called, words, tuple_of(names))
        return placed(statement, call), list(sides)

    def _side(
        self,
        statement: ast.stmt,
        side: list[ast.stmt],
        names: Sequence[str],
        given: Sequence[str] | None,
        context: _Context,
    ) -> ast.FunctionDef:
        made = self._block(side, context)
        if given is not None:
            made = [*made, ast.Return(tuple_of(given))]
        return function_of(statement, self._fresh("side"), names, made or [ast.Pass()])

    def _require_own(self, statements: list[ast.stmt]) -> None:
        """Raise NotRewritten if what becomes a function binds a variable that a function outside it looks up,
        for that would not see the value."""
        inside = {part for statement in statements for part in ast.walk(statement)}
        for name in sorted(bound(statements) & self._names):
            if any(name in names for part, names in self._captured.items() if part not in inside):
                raise NotRewritten(f"an inner function reads {name}, which changes where a condition decides")

    # loops

    def _repetition(self, loop: ast.While, context: _Context) -> list[ast.stmt]:
        """A loop until its condition does not hold."""
        self._require_own(loop.body)
        begin = head(loop, context.ends)
        staying = self._heads[loop] if loop in self._heads else head(loop, context.staying)
        state = sorted(bound(loop.body) & self._names & begin)
        needed = names_read(loop.test) | live(loop.body, all_ends(()))
        constant = sorted(needed & self._names - set(state))
        first = [name if name in staying or name in self._ours else NOTHING for name in state]
        test = function_of(
            loop, self._fresh("test"), [*state, *constant], [ast.Return(self._truth(loop.test))]
        )
        body = [*self._block(loop.body, context.inside(begin, staying)), ast.Return(tuple_of(state))]
        step = function_of(loop, self._fresh("body"), [*state, *constant], body)
        called = [ast.Name(function.name, ast.Load()) for function in (test, step)]
        call = call_of("repeat", *called, texts_of(state), tuple_of(first), tuple_of(constant))
        surely = self._without_values(loop, staying.intersection(state) - self._ours)
        return [test, step, *surely, placed(loop, assignment(state, call))]

    def _without_values(self, loop: ast.While, names: frozenset[str]) -> list[ast.stmt]:
        """What variables hold before a loop that surely runs, if its iterations begin with assigning them."""
        read = names_read(loop.test)
        made = [name for name in sorted(names - read) if name not in live(loop.body, all_ends({name}))]
        if not made:
            return []
        tested = sorted(read & self._names)
        runs = call_of("holds", lambda_of(tested, self._truth(loop.test)), tuple_of(tested))
        nothing: list[ast.stmt] = [assigned(name, ast.Name(NOTHING, ast.Load())) for name in made]
        return [placed(loop, ast.If(runs, nothing, []))]

    def _converted(self, loop: Loop, context: _Context) -> list[ast.stmt]:
        """A loop that ends by its condition alone, and after it what is done where it was left."""
        number = self._number()
        staying = head(loop, context.staying)
        left = self._named(f".exit{number}")
        setup, test, begin, end = self._counting(loop, number)
        exits = Exits(left, end, self._asked, of_loop=True)
        body = exits.lowered(loop.body)
        if not end:
            here = ast.Compare(ast.Name(left, ast.Load()), [ast.Eq()], [ast.Constant(0)])
            test = placed(loop, here if is_endless(loop) else ast.BoolOp(ast.And(), [here, test]))
        repeated = placed(loop, ast.While(test, [*begin, *body], []))
        self._asked.add(repeated)
        self._heads[repeated] = staying
        ways: list[tuple[int, list[ast.stmt]]] = [(number, [way]) for way, number in exits.ways.items()]
        ways += [(0, loop.orelse)] if loop.orelse else []
        last = ways.pop()[1] if ways and is_endless(loop) and not is_broken(loop.body) else []
        conditions = [left_by(left, ast.Eq(), number, way) for number, way in ways]
        self._asked.update(conditions)
        return [*setup, placed(loop, assigned(left, ast.Constant(0))), repeated, *conditions, *last]

    def _counting(
        self, loop: Loop, number: int
    ) -> tuple[list[ast.stmt], ast.expr, list[ast.stmt], list[ast.stmt]]:
        """What stands before a loop, its condition, how its body begins, and what ends it at once."""
        if isinstance(loop, ast.While):
            return [], loop.test, [], []
        items, place = self._named(f".items{number}"), self._named(f".position{number}")
        counted, position = ast.Name(items, ast.Load()), ast.Name(place, ast.Load())
        setup = [assigned(items, call_of("counted", loop.iter)), assigned(place, ast.Constant(0))]
        item = ast.Call(ast.Attribute(counted, "item", ast.Load()), [position], [])
        begin = [ast.Assign([loop.target], item), assigned(place, call_of("following", position))]
        times = ast.Attribute(counted, "times", ast.Load())
        end = [assigned(place, times)]
        for statement in (*setup, *begin, *end):
            placed(loop.iter, statement)
        return setup, placed(loop, ast.Compare(position, [ast.Lt()], [times])), begin, end

    # expressions

    def _seen(self, node: Node) -> Node:
        """A copy of a node with its conditions rewritten: what follows a condition stands in both sides."""
        made: Node = self.visit(copy.deepcopy(node))
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if not self._is_asked(node):
            return self.generic_visit(node)
        names = sorted(names_read(node.body, node.orelse) & self._names)
        sides = [lambda_of(names, self.visit(side)) for side in (node.body, node.orelse)]
        return placed(
            node, call_of("branch", self._truth(node.test), *sides, ast.Constant(None), tuple_of(names))
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if not any(covers(node, line) for line in self._lines):
            return self.generic_visit(node)
        return self._joined(node, [self.visit(value) for value in node.values])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 or not any(covers(node, line) for line in self._lines):
            return self.generic_visit(node)
        return self._chained(
            node, lambda pairs: self._joined(pairs, [self.visit(pair) for pair in pairs.values])
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if not isinstance(node.op, ast.Not) or not any(covers(node, line) for line in self._lines):
            return self.generic_visit(node)
        return placed(node, call_of("opposite", self.visit(node.operand)))

    def _truth(self, test: ast.expr) -> ast.expr:
        """A condition of which only its truth matters."""
        match test:
            case ast.BoolOp(values=values):
                return self._joined(test, [call_of("true", self._truth(value)) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return placed(test, call_of("opposite", self._truth(operand)))
            case ast.Compare(ops=[_, _, *_]):
                return self._chained(test, self._truth)
            case _:
                return self._seen(test)

    def _chained(self, node: ast.Compare, made: Callable[[ast.BoolOp], ast.expr]) -> ast.expr:
        """A chain of comparisons, as `made` of single ones; what is computed between two is an argument."""
        between = computed_between(node)
        if between is None:
            return made(placed(node, ast.BoolOp(ast.And(), pairs_of(node))))
        name = f".between{self._number()}"
        parts = [ast.Name(name, ast.Load()) if part is between else part for part in node.comparators]
        self._names.add(name)
        body = self._chained(placed(node, ast.Compare(node.left, node.ops, parts)), made)
        self._names.remove(name)
        others = sorted(names_read(body) & self._names)
        arguments = [self._seen(between), *(ast.Name(other, ast.Load()) for other in others)]
        return placed(node, ast.Call(lambda_of([name, *others], body), arguments, []))

    def _joined(self, node: ast.BoolOp, values: list[ast.expr]) -> ast.expr:
        """`and` or `or`: what comes later is looked at only if it matters."""
        made = values[-1]
        for value in reversed(values[:-1]):
            names = sorted(names_read(made) & self._names)
            name = "both" if isinstance(node.op, ast.And) else "either"
            made = placed(node, call_of(name, value, lambda_of(names, made), tuple_of(names)))
        return made

    # names

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _fresh(self, kind: str) -> str:
        return f".{kind}{self._number()}"

    def _named(self, name: str) -> str:
        """A variable of ours."""
        self._names.add(name)
        self._ours.add(name)
        return name


def _variables(function: ast.FunctionDef) -> set[str]:
    """The local variables of a function."""
    arguments = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    for part in ast.walk(function):
        match part:
            case ast.Global() | ast.Nonlocal():
                raise NotRewritten("variables of the function are global or nonlocal")
            case ast.Call(func=ast.Name(id="super"), args=[]):
                raise NotRewritten("the function calls super(), which looks at the function around it")
            case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.NamedExpr():
                raise NotRewritten("the function has `:=`, `yield` or `await`")
            case _:
                pass
    return arguments | bound(function.body)
