"""The walk over loops: which of them a rule sees, and what it makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from arrayjit.ir.loops import For, Kernel, Stmt
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.ir.walk import rewrite_loops

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
