"""Results lie in memory as NumPy's do: elementwise results in the order of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_same, trace_and_interpret

from arrayjit import UnsupportedError, jit

Function = Callable[..., Any]

CUBE = np.arange(2 * 3 * 4, dtype="f8").reshape(2, 3, 4)

LAYOUTS: dict[str, np.ndarray] = {
    "C": CUBE,
    "Fortran": np.asfortranarray(CUBE),
    "transposed": CUBE.transpose(1, 2, 0),
    "swapped": CUBE.swapaxes(1, 2),
    "reversed": np.asfortranarray(CUBE)[::-1, :, ::-1],
    "every other": np.asfortranarray(np.arange(48.0).reshape(4, 3, 4))[::2],
    "repeated": np.broadcast_to(CUBE[0].T, (3, 4, 3)),
    "one row": np.asfortranarray(CUBE)[:, 1:2],
    "matrix": np.arange(12.0).reshape(3, 4).T,
    "vector": np.arange(12.0)[::3],
}

KEPT: dict[str, Function] = {
    "negative": lambda x: -x,
    "with a number": lambda x: x * 2 + 1,
    "of equal layouts": lambda x: x + x * x,
    "with a row": lambda x: x + np.arange(x.shape[-1]),
    "with a column": lambda x: np.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1)) - x,
    "with another order": lambda x: x + np.ascontiguousarray(x),
    "with its transpose": lambda x: x[:2, ..., :2] * x[:2, ..., :2].T if x.ndim > 1 else x * x,
    "of a transpose": lambda x: np.sqrt(x.T) + 1,
    "of a slice": lambda x: np.exp(x[..., 1:] - x[..., :-1]),
    "of a new axis": lambda x: x[..., None] + x[None, ...].swapaxes(0, 1) if x.ndim == 1 else x[:, None] * 2,
    "comparison": lambda x: x > 3,
    "two results": lambda x: np.divmod(x, 3),
    "where=": lambda x: np.where(x > 3, np.add(x, 1, where=x > 3), 0),
    "order=": lambda x: tuple(np.add(x, 1, order=order) for order in "CFAK"),
    "order= of two": lambda x: tuple(np.multiply(x, x.copy("F"), order=order) for order in "CFAK"),
    "order= with two results": lambda x: tuple(np.modf(x, order=order, subok=False)[1] for order in "CFAK"),
    "order= with an output": lambda x: np.negative(x, order="F", out=np.zeros(x.shape)),
    "np.where": lambda x: np.where(x > 3, x, 0),
    "np.clip": lambda x: np.clip(x, 1, 5),
    "np.select": lambda x: np.select([x > 6, x > 3], [x, x + 1], 0),
    "astype": lambda x: (x.astype("f4"), x.astype("i4", order="C"), x.astype("i4", order="F")),
    "astype in place": lambda x: x.astype("f8", copy=False, order="C") + 0,
    "copies": lambda x: (x.copy(), x.copy("K"), x.copy("F"), x.copy("A"), np.copy(x), np.copy(x, "C")),
    "np.array": lambda x: (np.array(x), np.array(x, order="C"), np.array(x, "f4"), np.array(x, order="F")),
    "contiguous": lambda x: (np.ascontiguousarray(x), np.asfortranarray(x), np.asarray(x, order="F")),
    "zeros": lambda x: (np.zeros(x.shape), np.ones(x.shape, order="F"), np.full(x.shape, 2, order="F")),
    "like": lambda x: (np.zeros_like(x), np.ones_like(x, order="C"), np.full_like(x, 2, order="A")),
    "reshape copies": lambda x: (x + 0).reshape(-1),
    "sum": lambda x: (x.sum(axis=0), x.sum(axis=-1, keepdims=True), x.max(axis=0), (x > 1).any(axis=0)),
    "mean": lambda x: (x.mean(axis=0), x.var(axis=-1, keepdims=True), x - x.mean(axis=0)),
    "argmax": lambda x: x.argmax(axis=0),
    "cumsum": lambda x: (np.cumsum(x, axis=0), np.cumsum(x, axis=-1), np.maximum.accumulate(x, axis=0)),
    "concatenate": lambda x: np.concatenate([x, x + 1], axis=-1),
    "stack": lambda x: (np.stack([x, x]), np.stack([x, x], axis=-1)),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "diff": lambda x: np.diff(x, axis=0),
}


def steps(value: Any) -> Any:
    """The strides along the axes that have neighbours."""
    if isinstance(value, tuple):
        return tuple(steps(item) for item in value)
    return tuple(step for step, extent in zip(value.strides, value.shape, strict=True) if extent > 1)


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KEPT)
def test_strides_are_those_of_numpy(name: str, layout: str) -> None:
    function, x = KEPT[name], LAYOUTS[layout]
    wanted = function(x)
    got = trace_and_interpret(function, x)
    assert_same(got, wanted)
    assert steps(got) == steps(wanted)


def test_flags_are_those_of_numpy() -> None:
    def flags(x: np.ndarray) -> Any:
        views = x, x.T, x[0], x[:1], x[..., ::-1], x + 1, x.T * 2, x[:, :0], x.sum()
        named = [
            (v.flags.c_contiguous, v.flags.f_contiguous, v.flags.contiguous, v.flags.fnc, v.flags.forc)
            for v in views
        ]
        keyed = [(v.flags["C_CONTIGUOUS"], v.flags["F"], v.flags["W"], v.flags.writeable) for v in views]
        return named, keyed, np.isfortran(x), np.isfortran(x.T), np.broadcast_to(x, (2, *x.shape)).flags["C"]

    for array in (CUBE, CUBE.T, CUBE[:, ::2], CUBE[0], CUBE[0, :1].T, np.asfortranarray(CUBE)):
        assert jit(flags)(array) == flags(array)
    fixed = CUBE.copy()
    fixed.flags.writeable = False
    assert jit(flags)(fixed) == flags(fixed)


def test_flags_are_not_set_and_some_are_not_known() -> None:
    def set_flag(x: np.ndarray) -> None:
        x.flags.writeable = False

    for function in (set_flag, lambda x: x.flags.owndata, lambda x: x.flags["ALIGNED"]):
        with pytest.raises(UnsupportedError, match=r"the flag .* of an array is not supported"):
            jit(function)(CUBE)
    for function, error in ((lambda x: x.flags.big, AttributeError), (lambda x: x.flags["big"], KeyError)):
        with pytest.raises(error):
            jit(function)(CUBE)


def test_a_reshape_of_a_transposed_temporary_is_a_copy() -> None:
    def write_through(x: Any) -> Any:
        y = x.T + 1
        flat = y.reshape(-1)
        flat[0] = 99
        along = y.ravel(order="K")
        along[1] = 77
        return y, flat, along

    x = np.arange(6.0).reshape(2, 3)
    assert_same(trace_and_interpret(write_through, x), write_through(x))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_own_their_memory(layout: str) -> None:
    result, view = trace_and_interpret(lambda x: (y := x * 2, y.T), LAYOUTS[layout])
    assert result.flags.owndata
    assert np.shares_memory(result, view)
