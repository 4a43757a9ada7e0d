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
from arrayjit.tracer.values.array import SymbolicArray

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
HEAD = """\
# What a jitted function may call

Written from the compiler's tables by `pytest tests/test_support.py --update`. A name or an argument that is
not listed raises `UnsupportedError` at the user's line. NumPy's other functions may be asked about what is
known while tracing: `np.hanning(5)`, `np.fft.fftfreq(x.size)`, `np.tril_indices(3)`,
`np.issubdtype(x.dtype, np.floating)`.
"""


def test_the_page_says_what_the_tables_say(request: pytest.FixtureRequest) -> None:
    assert features, "importing it fills the tables"
    text = "\n".join([HEAD, *ufuncs(), *functions(), *creation(), *methods()])
    if request.config.getoption("--update"):
        PAGE.write_text(text)
    assert text == PAGE.read_text()


def ufuncs() -> Iterator[str]:
    yield "## Ufuncs\n"
    yield "With `out=`, `where=`, `dtype=`; `reduce`, `accumulate`, `reduceat`, `outer`, `at` where NumPy has"
    yield "them."
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
    ours = {name: ours for name, ours in METHODS.items() if not name.startswith("__")}
    known = [name for name in dir(np.ndarray) if not callable(getattr(np.ndarray, name))]
    attributes = [name for name in known if name in ours or hasattr(SymbolicArray, name)]
    yield "## Attributes and methods of arrays\n"
    yield from (f"- `x.{name}`" for name in attributes if not name.startswith("__"))
    yield from signatures(
        (f"x.{name}", function) for name, function in ours.items() if name not in attributes
    )


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


def test_other_functions_take_what_is_known_while_tracing() -> None:
    x = np.arange(9.0).reshape(3, 3)
    for program in (
        lambda v: np.hanning(5) + np.fft.fftfreq(5) * v.sum(),
        lambda v: v[np.tril_indices(3)],
        lambda v: np.issubdtype(v.dtype, np.floating),
    ):
        np.testing.assert_array_equal(arrayjit.jit(program)(x), program(x))


def test_a_listed_function_runs_and_another_refuses() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(arrayjit.jit(lambda v: np.flip(v))(x), x[::-1])
    assert "`np.flip(" in PAGE.read_text()
    assert "np.linalg.eigvals(" not in PAGE.read_text()
    with pytest.raises(arrayjit.UnsupportedError):
        arrayjit.jit(lambda v: np.linalg.eigvals(v))(x[:4].reshape(2, 2))
