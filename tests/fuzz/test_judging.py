"""The judge of random programs sees every kind of difference, and names the stage that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import judging
import numpy as np
import pytest
from judging import Difference, assert_like_numpy

from arrayjit.ir.code import Caps
from arrayjit.ir.expr import Apply, Expr
from arrayjit.ir.loops import Kernel, Stmt
from arrayjit.ir.ops import op
from arrayjit.ir.walk import rewrite_bodies, rewrite_expressions, transform
from arrayjit.passes import manager
from arrayjit.passes.table import Pass
from arrayjit.tracer.record.current import tracing


def is_plain(x: Any) -> bool:
    """Whether NumPy runs the program; each program below does something else when it is traced."""
    return not tracing()


def raise_unless_plain(x: Any) -> Any:
    if not is_plain(x):
        raise KeyError("x")
    return (x,)


def write_unless_plain(x: Any) -> Any:
    if not is_plain(x):
        x[0] = 9
    return ()


TWO_FACED: dict[str, Callable[[Any], Any]] = {
    "a number": lambda x: (x + (1 if is_plain(x) else 2),),
    "the sign of a zero": lambda x: (x * (0.0 if is_plain(x) else -0.0),),
    "a dtype": lambda x: (x.astype("f8" if is_plain(x) else "f4"),),
    "a shape": lambda x: (x.reshape((3, 1) if is_plain(x) else (1, 3)),),
    "a scalar or an array": lambda x: (x.sum() if is_plain(x) else x.sum()[...],),
    "an exception": raise_unless_plain,
    "an argument": write_unless_plain,
    "shared memory": lambda x: (x[1:] if is_plain(x) else x[1:].copy(),),
    "where it is shared": lambda x: (x[::-1] if is_plain(x) else x[:],),
    "one object": lambda x: (x if is_plain(x) else x[:],),
    "a view that may be written": lambda x: (x[:] if is_plain(x) else np.broadcast_to(x, (3,)),),
}


@pytest.mark.parametrize("program", TWO_FACED.values(), ids=TWO_FACED)
def test_a_difference_is_seen(program: Callable[[Any], Any]) -> None:
    with pytest.raises(Difference, match="first wrong stage trace"):
        assert_like_numpy(program, lambda: (np.array([7.0, 7.0, 7.0]),))


def test_a_tolerance_is_per_result() -> None:
    def program(x: Any) -> Any:
        return x + (0 if is_plain(x) else 1e-9), x + 0

    def make() -> tuple[np.ndarray]:
        return (np.ones(3),)

    assert assert_like_numpy(program, make, {0: 1e-8}) == "same"
    with pytest.raises(Difference, match="value 0"):
        assert_like_numpy(program, make, {0: 1e-10, 1: 1e-8})


def subtract_for_add(kernel: Kernel, caps: Caps) -> Kernel:
    """A pass that is wrong."""

    def wrong(expr: Expr) -> Expr:
        if isinstance(expr, Apply) and expr.op is op("add"):
            return Apply(op("subtract"), expr.args, expr.dtype)
        return expr

    def rewrite(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        changed = (rewrite_expressions(stmt, lambda expr: transform(expr, wrong)) for stmt in body)
        return tuple(rewrite_bodies(stmt, rewrite) for stmt in changed)

    return replace(kernel, body=rewrite(kernel.body))


@pytest.mark.parametrize("position", [1, 5, -1])
def test_the_wrong_pass_is_named(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    passes = list(manager.ON_LOOPS)
    passes.insert(position, Pass(subtract_for_add))
    for module in (manager, judging):
        monkeypatch.setattr(module, "ON_LOOPS", tuple(passes))
    with pytest.raises(Difference, match="first wrong stage subtract_for_add"):
        assert_like_numpy(lambda x, y: (x * y + x,), lambda: (np.arange(9.0), np.ones(9)))
