"""What to write instead of a line that needs a number: the fix of an error, in the user's own words."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Union

import numpy as np

from ...errors import Location
from .liveness import Names, assigned, needed_after, needed_before

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


def _instead_of_choice(node: Choice, around: list[ast.AST]) -> str:
    """`around` is the syntax that reaches over the condition, the function first."""
    test = _vectorised(node.test)
    match node:
        case ast.While():
            return _instead_of_while(node, test, around[0])
        case ast.IfExp(body=yes, orelse=no):
            return f"write {_choice(node.test, yes, no)}"
        case ast.Assert(msg=said):
            error = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), [said] if said else [], []))
            return _as_functions(_vectorised(ast.UnaryOp(ast.Not(), node.test)), [error], [], frozenset())
        case ast.If():
            return _instead_of_if(node, test, around)


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


def _instead_of_if(node: ast.If, test: str, around: list[ast.AST]) -> str:
    """What to write instead of an `if`; `around` is the syntax that reaches over it."""
    scope = around[0]
    loops = [part for part in around if isinstance(part, (ast.For, ast.While))]
    leaves = {type(part) for part in ast.walk(node) if isinstance(part, _LEAVING)}
    if loops and (ast.Break in leaves or ast.Return in leaves):
        return _instead_of_leaving(node, test, loops[-1], scope)
    if ast.Return in leaves:
        return _instead_of_return(node, test, scope)
    if ast.Continue in leaves and loops:
        return _instead_of_continue(node, loops[-1], scope)
    chosen = _chosen(node)
    if chosen is not None:
        target, value = map(ast.unparse, chosen)
        return f"write {target} = {value}"
    return _as_functions(test, node.body, node.orelse, needed_after(scope, node))


def _instead_of_return(node: ast.If, test: str, scope: ast.AST) -> str:
    match [*node.body, *(node.orelse or _following(node, scope)[:1])]:
        case [ast.Return(value=ast.expr() as yes), ast.Return(value=ast.expr() as no)]:
            return f"write return {_choice(node.test, yes, no)}"
        case _:
            return (
                "write what is done either way, up to its return, as functions\n"
                "    def yes(): ...\n"
                "    def no(): ...\n"
                f"    return arrayjit.cond({test}, yes, no)"
            )


def _instead_of_continue(node: ast.If, loop: Loop, scope: ast.AST) -> str:
    """The rest of the iteration is one side, what is done before the `continue` is the other."""
    opposite = _vectorised(ast.UnaryOp(ast.Not(), node.test))
    rest = [*node.orelse, *(loop.body[loop.body.index(node) + 1 :] if node in loop.body else [])]
    before = [part for part in node.body if not isinstance(part, ast.Continue)]
    return _as_functions(opposite, rest, before, needed_after(scope, loop.body[-1]))


def _following(node: ast.stmt, scope: ast.AST) -> list[ast.stmt]:
    """The statements that stand after one, in the same block."""
    for part in ast.walk(scope):
        for block in (getattr(part, "body", None), getattr(part, "orelse", None)):
            if isinstance(block, list) and node in block:
                return block[block.index(node) + 1 :]
    return []


def _instead_of_leaving(node: ast.If, test: str, loop: Loop, scope: ast.AST) -> str:
    """A loop that a `break` or `return` leaves, as one that carries whether it was left. Its index is carried
    as Python has it: after the loop it is that of the last iteration."""
    returned = [part for part in ast.walk(node) if isinstance(part, ast.Return)]
    carried = {name: name for name in _carried(loop, scope, needed_before(list(returned)))}
    before: list[str] = []
    match loop:
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"), args=limits)):
            limits = [
                *[ast.Constant(0)] * (len(limits) == 1),
                *limits,
                *[ast.Constant(1)] * (len(limits) < 3),
            ]
            start, stop, step = map(ast.unparse, limits)
            if not needed_before([ast.Expr(limits[1])]).isdisjoint(assigned(loop.body)):
                name = _new_name("stop", scope)
                before, stop = [f"    {name} = {stop}"], name
            following = _plus(index, step)
            goes_on = f"{following} {'>' if step.startswith('-') else '<'} {stop}"
            carried = {index: _minus(start, step), **carried}
            begins = f"{index} = {following}; "
        case ast.While():
            goes_on, begins = _vectorised(loop.test), ""
        case _:
            opposite = _vectorised(ast.UnaryOp(ast.Not(), node.test))
            return f"leave the loop by its condition: write it as an arrayjit.while_loop, while {opposite}"
    left = _new_name("left", scope)
    state, stays = ", ".join((*carried, left)), f"np.logical_not({left})"
    test_of_all = stays if goes_on == "True" else f"np.logical_and({goes_on}, {stays})"
    has_sides = node is not loop.body[-1] or len(node.body) > 1 or bool(node.orelse)
    ends = (
        f"return {', '.join((*carried, test))}" if not has_sides else f"{left} = {test}; ...; return {state}"
    )
    lines = [
        "carry whether the loop is left",
        *before,
        f"    def test(state): {state} = state; return {test_of_all}",
        f"    def body(state): {state} = state; {begins}...; {ends}",
        f"    {state} = arrayjit.while_loop(test, body, ({', '.join((*carried.values(), 'False'))}))",
    ]
    lines.extend(_without_value(carried, loop, scope))
    if has_sides:
        lines.append(
            f"    what the body does only where it is left, or only where not, by arrayjit.cond({left}, ...)"
        )
    if returned:
        lines.append(f"    what is returned, and what is done behind the loop, by arrayjit.cond({left}, ...)")
    return "\n".join(lines)


def _new_name(name: str, scope: ast.AST) -> str:
    used = {part.id for part in ast.walk(scope) if isinstance(part, ast.Name)}
    return f"is_{name}" if name in used else name


def _plus(number: str, step: str) -> str:
    """The sum of a number and a step, as one writes it."""
    return f"{number} - {step[1:]}" if step.startswith("-") else f"{number} + {step}"


def _minus(number: str, step: str) -> str:
    if number.isdigit() and step.isdigit():
        return str(int(number) - int(step))
    return f"{number} + {step[1:]}" if step.startswith("-") else f"{number} - {step}"


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


def _as_functions(test: str, yes: list[ast.stmt], no: list[ast.stmt], after: Names) -> str:
    """The sides of an `if` as functions for `arrayjit.cond`. They give the names that they assign and that
    are read afterwards, and take those that they may not assign or that they read before."""
    names = assigned((*yes, *no))
    given = [name for name in names if name in after]
    needed = needed_before(yes, given) | needed_before(no, given)
    taken = ", ".join(name for name in names if name in needed)
    results = ", ".join(given)
    ending = f"; return {results}" if given else ""
    other = "no" if no else f"lambda {taken}: {_packed(results)}" if given else _nothing(taken)
    call = ", ".join(part for part in (test, "yes", other, taken) if part)
    return "\n".join(
        [
            "write the branches as functions",
            f"    def yes({taken}): {_raising(yes) or '...' + ending}",
            *[f"    def no({taken}): ...{ending}"] * bool(no),
            f"    {results + ' = ' if given else ''}arrayjit.cond({call})",
        ]
    )


def _nothing(taken: str) -> str:
    return f"lambda {taken}: None" if taken else "lambda: None"


def _raising(side: list[ast.stmt]) -> str:
    """A side that does nothing but raise, on a line."""
    match side:
        case [ast.Raise() as error] if len(said := ast.unparse(error)) < 80:
            return said
        case _:
            return ""


def _packed(names: str) -> str:
    return f"({names})" if "," in names else names


def _instead_of_while(node: ast.While, test: str, scope: ast.AST) -> str:
    carried = _carried(node, scope)
    names = ", ".join(carried) or "state"
    several = "," in names
    state = "state" if several else names
    unpack = f"{names} = state; " if several else ""
    lines = [
        "write the loop as",
        f"    def test({state}): {unpack}return {test}",
        f"    def body({state}): {unpack}...; return {names}",
        f"    {names} = arrayjit.while_loop(test, body, {_packed(names)})",
        *_without_value(carried, node, scope),
    ]
    return "\n".join(lines)


def _without_value(carried: Iterable[str], loop: Loop, scope: ast.AST) -> list[str]:
    """What to do about names that a loop carries and that have no value where it begins."""
    known = {part.arg for part in ast.walk(scope) if isinstance(part, ast.arg)}
    for part in ast.walk(scope):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.lineno < loop.lineno:
            known.add(part.id)
    first = assigned([loop.target]) if isinstance(loop, ast.For) else []
    names = [name for name in carried if name not in known and name not in first]
    return [f"    bind {' and '.join(names)} before, to values of the kinds that the loop gives"] * bool(
        names
    )


def _carried(loop: Loop, scope: ast.AST, besides: Names = frozenset()) -> list[str]:
    """The names that a loop's body assigns, and that the next iteration or what is after the loop reads,
    or that are needed besides."""
    needed = needed_after(scope, loop.body[-1]) | besides
    return [name for name in assigned(loop.body) if name in needed]


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
