"""docs/support.md lists what a jitted function may call; it is written from the tables that dispatch."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.ops import OPS
from arrayjit.tracer.calls import features
from arrayjit.tracer.record.registry import CREATION, FUNCTIONS, METHODS

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
HEAD = """\
# What a jitted function may call

Written from the compiler's tables by `pytest tests/test_support.py --update`. A name or an argument that is
not listed raises `UnsupportedError` at the user's line.
"""


def test_the_page_says_what_the_tables_say(request: pytest.FixtureRequest) -> None:
    assert features, "importing it fills the tables"
    text = "\n".join([HEAD, *ufuncs(), *functions(), *creation(), *methods()])
    if request.config.getoption("--update"):
        PAGE.write_text(text)
    assert text == PAGE.read_text()


def ufuncs() -> Iterator[str]:
    yield "## Ufuncs\n"
    yield "With `out=`, `where=`, `dtype=`; `reduce`, `accumulate`, `outer` where NumPy has them for the op."
    yield "The error is the greatest, in units in the last place, for float32 and float64; exact means"
    yield "NumPy's bits.\n"
    yield "| ufunc | error |"
    yield "| --- | --- |"
    rows = {row.ufunc: row for row in OPS.values() if row.ufunc}
    for name in sorted(rows):
        error = "exact" if rows[name].ulp == (0.0, 0.0) else "{:g}, {:g}".format(*rows[name].ulp)
        yield f"| `{name}` | {error} |"
    yield ""


def functions() -> Iterator[str]:
    yield "## Functions of arrays\n"
    # The ufuncs that np.fft is made of have no module.
    given = {function: ours for function, ours in FUNCTIONS.items() if hasattr(function, "__module__")}
    named = {qualified(function): ours for function, ours in given.items() if callable(function)}
    yield from signatures(named.items())
    yield "Of `np.polynomial` also what evaluates, differentiates and integrates series of coefficients"
    yield "(`polyval`, `chebder`, `legint`), and their Vandermonde matrices (`polyvander`).\n"


def creation() -> Iterator[str]:
    yield "## Functions that make arrays\n"
    yield from signatures((qualified(function), ours) for function, ours in CREATION.items())


def methods() -> Iterator[str]:
    yield "## Methods of arrays\n"
    yield from signatures((f"x.{name}", ours) for name, ours in METHODS.items() if not name.startswith("__"))


def signatures(entries: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for name, ours in sorted(entries, key=lambda entry: entry[0]):
        if not callable(ours):
            yield f"- `{name}[...]`"
            continue
        signature = inspect.signature(ours)
        if signature.return_annotation == "NoReturn":
            continue
        yield f"- `{name}({', '.join(arguments(signature, is_method=name.startswith('x.')))})`"
    yield ""


def arguments(signature: inspect.Signature, is_method: bool) -> Iterator[str]:
    for parameter in list(signature.parameters.values())[is_method:]:
        shown = parameter.replace(annotation=inspect.Parameter.empty)
        if parameter.default is np._NoValue:
            shown = shown.replace(default=None)
        yield str(shown)


def qualified(function: Any) -> str:
    if not hasattr(function, "__name__"):
        return next(f"np.{name}" for name, value in vars(np).items() if value is function)
    module = function.__module__.replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


def test_a_listed_function_runs_and_another_refuses() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(arrayjit.jit(lambda v: np.flip(v))(x), x[::-1])
    assert "`np.flip(" in PAGE.read_text()
    assert "np.linalg.eigvals(" not in PAGE.read_text()
    with pytest.raises(arrayjit.UnsupportedError):
        arrayjit.jit(lambda v: np.linalg.eigvals(v))(x[:4].reshape(2, 2))
