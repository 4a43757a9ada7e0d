"""Which names statements need and hand on: what the fixes of conditions are written with."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from arrayjit.tracer.record.liveness import assigned, needed_after, needed_before


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y = x", "x"),
        ("x = 1; y = x", ""),
        ("x += 1", "x"),
        ("x[i] = y", "i x y"),
        ("if c: y = x\nelse: x = 1", "c x"),
        ("if c: x = 1\nelse: x = 2\ny = x", "c"),
        ("if c: x = 1\ny = x", "c x"),
        ("for i in range(n): y = i", "n range"),
        ("for i in range(n): y = x; x = i", "n range x"),
        ("for i in range(n): x = i\ny = x", "n range x"),
        ("while c: c = x; x = y", "c x y"),
        ("for i in a:\n if i: break\n x = 1\ny = x", "a x"),
        ("for i in a:\n if i: continue\n x = 1\n y = x", "a"),
        ("for i in a: pass\nelse: y = x", "a x"),
        ("return x; y = z", "x"),
        ("raise x", "x"),
        ("y = [x * k for k in a]", "a x"),
        ("y = lambda k: k + x", "x"),
        ("def f(k, m=d):\n t = k\n return t + x", "d x"),
        ("with a as b: c = b + x", "a x"),
        ("try: y = x\nexcept E: y = z", "x z"),
        ("try: pass\nfinally: y = x", "x"),
        ("match x:\n case 1: y = a\n case _: y = b", "a b x"),
        ("if (k := x) > 1: y = k", "k x"),
    ],
)
def test_names_that_statements_read_first(source: str, names: str) -> None:
    assert " ".join(sorted(needed_before(ast.parse(source).body))) == names


def test_names_that_statements_hand_on() -> None:
    choice = ast.parse("if c:\n x = 1\n z = 2\nelse: x = 3").body
    assert needed_before(choice, ("x", "z")) == {"c", "z"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("here\ny = x", "x"),
        ("x = here\nx = 1", ""),
        ("for i in a:\n y = x\n here\n", "x"),
        ("for i in a:\n x = i\n y = x\n here\n", ""),
        ("for i in a:\n x = i\n if c: here\nz = x", "c x"),
        ("while x > 1:\n x = here\n", "x"),
        ("for i in a:\n for j in b:\n  here\n  y = j\n t = y", "b j"),
        ("for i in a:\n if c:\n  here\n  break\n z = y\nw = x", "x"),
        ("if c: here; return 1\ny = x", ""),
    ],
)
def test_names_that_are_needed_after_a_statement(source: str, names: str) -> None:
    scope = ast.parse("def f():\n" + "".join(f"  {line}\n" for line in source.splitlines())).body[0]
    found = [part for part in ast.walk(scope) if isinstance(part, (ast.Expr, ast.Assign))]
    (here,) = (part for part in found if isinstance(part.value, ast.Name) and part.value.id == "here")
    assert " ".join(sorted(needed_after(scope, here) - {"here"})) == names


def test_names_that_are_assigned_stand_in_the_order_of_the_text() -> None:
    source = """
        b = [c for c in x]
        for a in x:
            d = lambda e: e
        def f():
            g = 1
        b += 1
    """
    assert assigned(ast.parse(dedent(source)).body) == ["b", "a", "d"]
