"""The walk over loops: which of them a rule sees, and what it makes of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Sequence

from arrayjit.ir.dtype import BOOL, F64, I64
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Gather, Index, Local, Variable, constant
from arrayjit.ir.index import Affine
from arrayjit.ir.loops import Comment, Define, For, If, Kernel, Stmt, While, walk_statements
from arrayjit.ir.ops import OPS
from arrayjit.ir.parse import parse
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.text import print_kernel
from arrayjit.ir.walk import applies, children, nodes_in, rewrite_loops, walk

NESTS = """
def f(x: read[f64, 4, 3], n: read[i64, 1], y: write[f64, 4, 3], z: write[f64, 3]):
    for i in parallel(0, 4):
        for j in parallel(0, 3):
            y[i, j] = x[i, j]
    if less[bool](n[0], i64(3)):
        for k in parallel(0, 3):
            z[k] = f64(1.0)
"""


def kernel() -> Kernel:
    program = parse(NESTS)
    assert isinstance(program, Kernel)
    return program


def test_a_rule_sees_every_loop_the_outer_ones_first() -> None:
    seen: list[str] = []

    def rule(loop: For) -> None:
        seen.append(loop.symbol.hint)

    body = kernel().body
    assert rewrite_loops(body, rule) is body
    assert seen == ["i", "j", "k"]


def test_a_rule_does_not_see_what_it_has_made() -> None:
    seen: list[str] = []

    def twice(loop: For) -> Sequence[Stmt] | None:
        seen.append(loop.symbol.hint)
        return None if loop.symbol.hint == "k" else (loop, loop)

    program = kernel()
    body = rewrite_loops(program.body, twice)
    assert seen == ["i", "k"]
    assert body == (program.body[0], *program.body)


def test_a_loop_may_vanish_from_a_branch() -> None:
    program = kernel()
    text = print_kernel(program.with_body(rewrite_loops(program.body, lambda loop: ())))
    assert "for" not in text
    assert "if" in text


def an_expression() -> Expr:
    x = Tensor.of("x", (4,), F64)
    place = Apply(OPS["add"], (Index(Affine.of(1)), Local(Variable("i", I64))), I64)
    product = Apply(OPS["multiply"], (Gather(x, (place,)), Cast(place, F64)), F64)
    return Apply(OPS["add"], (product, product), F64)


def one_by_one(expr: Expr) -> Iterator[Expr]:
    """What `walk` is to give, by its definition."""
    yield expr
    for child in children(expr):
        yield from one_by_one(child)


def test_every_walk_meets_each_node_before_its_operands() -> None:
    expr = an_expression()
    wanted = [id(node) for node in one_by_one(expr)]
    inner = children(expr)[0]
    assert [id(node) for node in walk(inner)] == [id(node) for node in one_by_one(inner)]
    for _ in range(2):
        assert [id(node) for node in walk(expr)] == wanted
        assert [id(node) for node in nodes_in((Define(Variable("t", F64), expr), Comment("")))] == wanted
    assert walk(Const(1, I64)) == (Const(1, I64),)


def test_a_walk_leaves_no_trace_in_what_it_went_through() -> None:
    expr, other = an_expression(), an_expression()
    walk(expr)
    assert copy.copy(expr) == expr
    assert len(walk(pickle.loads(pickle.dumps(expr)))) == len(walk(other))


def test_every_walk_meets_each_statement_before_those_inside() -> None:
    inner = If(constant(True, BOOL), (Comment("a"),), (Comment("b"),))
    loop = While((Comment("c"),), constant(True, BOOL), (inner, Comment("d")))
    for _ in range(2):
        found = walk_statements((loop, Comment("e")))
        assert [s.text for s in found if isinstance(s, Comment)] == ["c", "a", "b", "d", "e"]
        assert found[0] is loop
        assert found[2] is inner


def test_an_op_is_found_in_statements_inside() -> None:
    inside = If(constant(True, BOOL), (Define(Variable("t", F64), an_expression()),))
    assert applies((inside,), (OPS["multiply"],))
    assert not applies((inside,), (OPS["sqrt"],))
