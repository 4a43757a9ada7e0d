"""What functions take and refuse in the ways that NumPy's own tests call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret

from arrayjit.errors import UnsupportedError

Function = Callable[..., Any]

ROW = np.array([2.0, -0.0, 0.0, np.nan, -3.0, 0.5])
MATRIX = np.arange(12.0).reshape(3, 4)


def row() -> tuple[np.ndarray]:
    return (ROW.copy(),)


def matrix() -> tuple[np.ndarray]:
    return (MATRIX.copy(),)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize(
    "clip",
    [
        lambda x: (np.clip(x, 0.0, 1.0), x.clip(-0.0, 1), np.clip(x, -1, -0.0), np.clip(x, 0, 0)),
        lambda x: np.clip(x, np.array([0.0]).astype(x.dtype), np.ones(1, x.dtype)),
        lambda x: (np.clip(x, np.zeros(6, x.dtype), 1), np.clip(x[:1], x[2:3], x[:1])),
        lambda x: (np.clip(x, 0.0, None), np.clip(x, None, -0.0), np.clip(x[1], 0.0, 1.0)),
        lambda x: np.clip(x, x[2], x[0]),
    ],
)
def test_clip_leaves_the_sign_of_zero_between_two_numbers(clip: Function, dtype: str) -> None:
    assert_like_numpy(clip, lambda: (ROW.astype(dtype),))


def flat_in_any_order(x: np.ndarray) -> Any:
    flat = (x[::2].ravel("K"), x[:, ::-1].ravel("K"), x[::-1].T.ravel("K"), x.T.ravel("K"), x[1].ravel("k"))
    for part in flat:
        part[:2] = 100
    return x, flat


def own_memory(x: np.ndarray) -> np.ndarray:
    np.float64(x)[0] = 9
    np.float32(x)[1] = 9
    return x


def into_other_dtypes(x: np.ndarray) -> Any:
    made = {name: np.zeros((3, 4), "i4") for name in ("choose", "clip", "median", "quantile")}
    np.choose(np.zeros((3, 4), int), (x + 0.5, x), out=made["choose"])
    x.clip(1.5, 2.5, out=made["clip"], casting="unsafe")
    np.nanmedian(x + 0.5, axis=0, out=made["median"][0])
    np.nanquantile(x + 0.5, 0.4, axis=0, out=made["quantile"][0])
    taken, compressed = np.zeros((2, 4), "f4"), np.zeros((2, 4), "f4")
    x.take([1, 0], axis=0, out=taken, mode="clip")
    x.compress([True, False, True], axis=0, out=compressed)
    return made, taken, compressed


def orders(x: np.ndarray) -> Any:
    made = (
        np.zeros((2, 3), order="f"),
        np.copy(x, order="f"),
        x.astype("f4", order="f"),
        np.array(x, order="f"),
    )
    like = np.zeros_like(x, order="f"), x.copy("f"), np.asarray(x, order="f"), x.copy(None)
    return (
        [array.strides for array in (*made, *like)],
        x.ravel("f"),
        x.flatten("f"),
        x.reshape(4, 3, order="f"),
    )


TAKEN: dict[str, Function] = {
    "flat in any order": flat_in_any_order,
    "the type of an array": own_memory,
    "out of other dtypes": into_other_dtypes,
    "orders by small letters": orders,
    "choices one by one": lambda x: x.astype(int)[0].choose(x[0], x[1], 7.0, 8.0),
    "axes in a range": lambda x: (
        np.moveaxis(x[None], range(2), (1, 0)),
        np.transpose(x[None], range(3)[::-1]),
    ),
    "a mask of numbers": lambda x: (
        np.add(x, 1, where=[1, 0, 2, 0], out=np.zeros((3, 4))),
        np.sum(x, where=[[1], [0], [1]]),
    ),
    "steps beyond the end": lambda x: (
        np.arange(0, 1, np.inf) + x[0, 1],
        np.arange(0, -1, np.inf),
        np.arange(0),
    ),
    "a number in no axes": lambda x: (x.sum().reshape(()), np.reshape(x[0, 1], ())),
    "tolerances of float32": lambda x: np.isclose(x.astype("f4"), 2, atol=0, rtol=0.4999999999999999),
    "types of lists": lambda x: (np.uint8([1, 2, 3]) + x[:, 0], np.float32([1, 2]), np.bool_([1, 0])),
    "windows of windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 1)),
    "a range in an array": lambda x: np.histogram(x, 4, np.array([1.0, 9.0])),
    "bits of one cell": lambda x: x[:, 1:2].view("f4").copy(),
    "nothing to place": lambda x: np.place(x, x < 0, []),
    "where numbers end": lambda x: np.arange(stop=3) + x[:, 0],
    "no margins": lambda x: [
        np.pad(x, 0, mode) for mode in ("maximum", "mean", "linear_ramp", "edge", "wrap")
    ],
    "positions of a number": lambda x: np.lexsort((np.array(3),), axis=0),
}
IS_NEW = np.lib.NumpyVersion(np.__version__) >= "2.3.0"
if IS_NEW:
    TAKEN["counts of uint64"] = lambda x: np.bincount(x[0].astype("u8"), minlength=5)


@pytest.mark.parametrize("function", TAKEN.values(), ids=TAKEN)
def test_what_functions_take(function: Function) -> None:
    assert_like_numpy(function, matrix)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", [-1, -3, -2.0, 0])
def test_nothing_has_no_inverse_power(exponent: Any) -> None:
    zeros = np.array([0, 0j, -0.0, complex(0, -0.0), 2j])
    assert_like_numpy(lambda z: np.power(z, exponent), lambda: (zeros.copy(),))


REFUSED: dict[str, Function] = {
    "one bound": lambda x: np.clip(x, 1),
    "the upper bound": lambda x: np.clip(x, a_max=1),
    "a kind of partition": lambda x: np.partition(x, 1, kind="nonsense"),
    "a kind of argpartition": lambda x: x.argpartition(1, kind=1),
    "kinds of sorts twice": lambda x: np.sort(x + 1j, kind="stable", stable=True),
    "many bools": lambda x: np.arange(3, dtype=bool) + x[0, :3],
    "a product into floats of another size": lambda x: np.dot(x, x[0], out=np.zeros(3, "f4")),
    "a product into an array of Fortran's": lambda x: np.dot(x, x.T, out=np.zeros((3, 3), order="F")),
    "taken into what it does not take": lambda x: np.take(x.astype(int), [0], out=np.zeros(1)),
    "compressed into it": lambda x: x.astype(int).compress([True], axis=0, out=np.zeros((1, 4))),
    "a wrong order": lambda x: x.flatten("z"),
    "a new array in a wrong order": lambda x: np.zeros(3, order="z") + x[:, 0],
    "nothing to place": lambda x: np.place(x, x > 3, []),
    "numbers without an end": lambda x: np.arange() + x[0],
    "samples that do not match": lambda x: np.interp(x[0], [0], [1, 2], period=3),
    "no period": lambda x: np.interp(x[0], [0, 1], [1, 2], period=x[0, 0]),
    "more cells than there can be": lambda x: np.zeros([975] * 7) + x[0, 0],
    "into an empty array": lambda x: np.put(x[:0], [0], 1, mode="clip"),
    "a short sorter": lambda x: np.searchsorted(x[0], 1, sorter=[0, 1]),
    "a sorter of floats": lambda x: np.searchsorted(x[0], 1, sorter=x[0]),
    "a number without the axis": lambda x: np.lexsort((x[0, 0],), axis=3),
    "out and dtype": lambda x: np.concatenate([x, x], out=np.zeros((6, 4)), dtype=float),
    "stacked into out and dtype": lambda x: np.stack([x, x], out=np.zeros((2, 3, 4)), dtype=float),
    "a kind of isin": lambda x: np.isin(x, x[0], kind="quicksort"),
    "conditions that are none": lambda x: np.select([x], [x]),
}
if IS_NEW:
    REFUSED["bounds twice"] = lambda x: np.clip(x, 1, 2, max=3)


@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED)
def test_what_functions_refuse(function: Function) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as numpys:
        function(MATRIX.copy())
    kinds = tuple(kind for kind in (TypeError, ValueError, IndexError) if isinstance(numpys.value, kind))
    with pytest.raises(kinds, match=r"test_functions_arguments\.py|Cannot insert|period must be"):
        trace_and_interpret(function, MATRIX.copy())


@pytest.mark.parametrize("place", [4, -5, np.int64(9), np.array([1, 7])])
@pytest.mark.parametrize("function", [np.partition, np.argpartition])
def test_places_that_the_run_finds_outside_are_refused(function: Function, place: Any) -> None:
    for divide in (function, lambda x, n: function(x, [1, n]) if np.ndim(n) == 0 else function(x, n)):
        with pytest.raises(ValueError, match="out of bounds"):
            divide(MATRIX.copy(), place)
        with pytest.raises(ValueError, match="out of bounds"):
            trace_and_interpret(divide, MATRIX.copy(), place)


@pytest.mark.parametrize("name", ["shape", "dtype", "strides"])
def test_what_an_array_is_stays_as_it_is(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"assigning to .{name} is not supported"):
        trace_and_interpret(lambda x: setattr(x, name, getattr(x, name)), MATRIX.copy())
