"""Shaping, joining and padding: values, shapes, and which results are views of the argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_like_numpy, trace_and_interpret
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import arrayjit

Function = Callable[..., Any]


def grid(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.arange(np.prod(shape), dtype="i8").reshape(shape).astype(dtype)


VIEWS: dict[str, Function] = {
    "reshape": lambda x: (
        x.reshape(6, 4),
        np.reshape(x, (-1, 2)),
        x.reshape(2, 2, -1, 2, 1),
        x.reshape(-9, 8),
    ),
    "reshape of a slice": lambda x: (x[1].reshape(2, 6), x[:, :, 1].reshape(3, 2), x[:, 1:].reshape(-1)),
    "reshape of a step": lambda x: (
        x[:, :, ::2].reshape(-1),
        x[::-1].reshape(2, 12),
        x[1, 2, ::2].reshape(2, 1),
    ),
    "reshape of a transpose": lambda x: (x.T.reshape(-1), x.T.reshape(4, 3, 2, 1), x.T.reshape(2, 12)),
    "reshape in Fortran order": lambda x: (x.reshape(4, 6, order="F"), x.T.reshape(-1, order="F")),
    "ravel": lambda x: (x.ravel(), np.ravel(x.T), x.T.ravel("F"), x.ravel("K"), x[0, 0].ravel()),
    "flatten": lambda x: (x.flatten(), x.T.flatten("F")),
    "transpose": lambda x: (x.T, x.transpose(1, 0, 2), np.transpose(x, (2, 0, 1)), x.transpose((1, 2, 0))),
    "swapaxes": lambda x: (x.swapaxes(0, -1), np.matrix_transpose(x)),
    "moveaxis": lambda x: (np.moveaxis(x, 0, -1), np.moveaxis(x, (0, 1), (2, 0)), np.rollaxis(x, 2, 1)),
    "expand_dims": lambda x: (np.expand_dims(x, 1), np.expand_dims(x, (0, -1))),
    "squeeze": lambda x: (x[:1].squeeze(), np.squeeze(x[:, :1, :1]), x[:, :1].squeeze(axis=1)),
    "squeeze to nothing": lambda x: x[:1, :1, :1].squeeze(),
    "broadcast_to": lambda x: (np.broadcast_to(x[0, 0], (3, 4)), np.broadcast_to(x[:, :1], (2, 3, 4))),
    "atleast": lambda x: (
        np.atleast_1d(x),
        np.atleast_2d(x[0, 0]),
        np.atleast_3d(x[0]),
        np.atleast_3d(x[0, 0]),
    ),
    "flip": lambda x: (np.flip(x), np.flip(x, 1), np.flip(x, (0, 2)), np.fliplr(x), np.flipud(x)),
    "rot90": lambda x: (*(np.rot90(x, k) for k in range(-1, 4)), np.rot90(x, 1, (1, 2))),
    "diagonal": lambda x: (x.diagonal(), np.diagonal(x, 1, 2, 0), x[0].diagonal(-1), np.diag(x[0], 1)),
    "split": lambda x: (
        np.split(x, 2),
        np.split(x, [1, 3], axis=2),
        np.array_split(x, 3, 1),
        np.hsplit(x, 3),
    ),
    "unstack": lambda x: (np.unstack(x, axis=1), np.unstack(x[0]), np.unstack(x[:, :1].T, axis=-1)),
    "copy": lambda x: (x.copy(), np.copy(x)),
    "real": lambda x: (np.real(x), x.real),
    "mT": lambda x: x.mT,
    "sliding_window_view": lambda x: (
        np.lib.stride_tricks.sliding_window_view(x, (2, 2, 3)),
        np.lib.stride_tricks.sliding_window_view(x, 3, axis=2).sum(-1, dtype=int),
    ),
    "as_strided": lambda x: (
        as_strided(x, (2, 2, 3), (x.strides[0], x.strides[2] * 2, x.strides[1])),
        as_strided(x[1:], (3,), (sum(x.strides[1:]),)),
        as_strided(x[0, ::-1], (3, 2), (-x.strides[1], x.strides[2])),
        as_strided(x, (4, 3, 5), (x.strides[1], 0, x.strides[2]), writeable=False),
        as_strided(x.astype(complex), (7,), (48,)),
        as_strided(x, (0, 9, 9)).sum(),
        as_strided(x),
        (x.T + 1).strides,
    ),
    "methods named as our fields": lambda x: (x[0].trace(dtype=int), x.view()),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("dtype", ["f8", "i2", "?"])
def test_views(view: Function, dtype: str) -> None:
    assert_like_numpy(view, lambda: (grid(2, 3, 4, dtype=dtype),))


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "Fortran": lambda: np.asfortranarray(grid(4, 3)),
    "every other row": lambda: grid(8, 3)[::2],
    "some columns": lambda: grid(4, 5)[:, 1:4],
    "reversed": lambda: grid(4, 3)[::-1, ::-1],
}


@pytest.mark.parametrize("mask", [np.array([True, False, True]), np.zeros(3, bool)], ids=str)
def test_bools_that_are_moved_by_ways_of_all_kinds(mask: np.ndarray) -> None:
    def program(x: np.ndarray, p: np.ndarray, m: np.ndarray) -> Any:
        turned = np.where(m[:, None], x.T[p], np.pad(x[:, ::-1], 1)[1:-1, 1:-1].T[p])
        kept = turned[m]
        turned[p, 0] = m
        return turned, kept, turned.T.copy(), np.concatenate([x, x > 0])

    assert_like_numpy(program, lambda: (grid(4, 3) % 3 == 1, np.array([2, 0, -2]), mask.copy()))


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_reshapes_of_any_layout(make: Callable[[], np.ndarray]) -> None:
    def shapes(x: np.ndarray) -> Any:
        return x.reshape(-1), x.T.reshape(-1), x.reshape(2, 2, 3), x.ravel("F"), x.T.reshape(6, 2)

    assert_like_numpy(shapes, lambda: (make(),))


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_other_strides_of_any_layout(make: Callable[[], np.ndarray]) -> None:
    def pairs(x: np.ndarray) -> Any:
        down, right = x.strides
        blocks = as_strided(x, (2, 2, 2), (2 * down, right, down))
        blocks[1] *= -1
        return blocks, as_strided(x[1:, 1:], (2,), (down + right,)), x.strides

    assert_like_numpy(pairs, lambda: (make(),))


def test_windows_by_strides() -> None:
    def windows(x: np.ndarray, width: int, step: int) -> Any:
        count = (len(x) - width) // step + 1
        view = as_strided(x, (count, width), (step * x.strides[0], x.strides[0]))
        return view.mean(axis=1), sum(as_strided(x[i:], (2,), (16,)).sum() for i in range(17))

    assert_like_numpy(windows, lambda: (grid(20), 5, 3))


@st.composite
def reshaped_views(draw: st.DrawFn) -> tuple[Callable[[], np.ndarray], Function]:
    """A view into a larger array, and a function that reshapes it twice and writes the result."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    cuts = [draw(st.sampled_from(_cuts(extent))) for extent in shape]
    layout = draw(st.sampled_from(["view", "C", "F"]))
    axes = draw(st.permutations(range(len(shape))))
    first, second = (draw(st.sampled_from(_shapes_of(math.prod(shape)))) for _ in range(2))
    order, turned = draw(st.sampled_from("CF")), draw(st.booleans())

    def make() -> np.ndarray:
        part = grid(*(2 * extent for extent in shape))[tuple(cuts)]
        return part if layout == "view" else np.array(part, order=layout)

    def function(x: np.ndarray) -> Any:
        once = x.transpose(axes).reshape(first, order=order)
        twice = (once[::-1] if turned else once).reshape(second)
        twice[...] = twice * 2
        return once, twice

    return make, function


def _cuts(extent: int) -> list[slice]:
    starts = [slice(None, extent), slice(1, extent + 1)]
    return [*starts, slice(None, None, 2), slice(extent - 1, None, -1)]


def _shapes_of(size: int) -> list[tuple[int, ...]]:
    shapes = [(size,), (1, size), (size, 1)]
    shapes += [(n, size // n) for n in range(2, size) if size % n == 0]
    return shapes + [(2, n // 2, size // n) for n, _ in shapes[3:] if n % 2 == 0]


def test_reshapes_to_a_shape_that_is_an_argument() -> None:
    def shaped(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return x.reshape(shape)

    for wanted in (24,), (8, 3), (8, 1, 3), (1, 8, 1, 1, 3, 1):
        assert_like_numpy(shaped, lambda wanted=wanted: (grid(2, 3, 4), wanted))


@given(reshaped_views())
@settings(max_examples=150)
def test_reshapes_of_random_views(case: tuple[Callable[[], np.ndarray], Function]) -> None:
    make, function = case
    assert_like_numpy(function, lambda: (make(),))


def test_writes_through_a_reshape_reach_the_argument() -> None:
    def write(x: np.ndarray) -> np.ndarray:
        flat = x.reshape(-1)
        flat[1::2] *= 10
        x[0] += 1
        flat[:3] = flat[3:6]
        return flat

    assert_like_numpy(write, lambda: (grid(3, 4),))


JOINED: dict[str, Function] = {
    "concatenate": lambda x, y: (
        np.concatenate((x, y)),
        np.concatenate([x, x], 1),
        np.concatenate((x, y), None),
    ),
    "concatenate numbers": lambda x, y: (
        np.concatenate([x.astype("u1"), 300, y.astype("i1")], None),
        np.concatenate([x.astype("f4"), 2.5, True], axis=None),
        np.concatenate([x.astype("i2"), x.shape[0], 1j], axis=None),
        np.concatenate([2, 0.5], axis=None),
        np.union1d(x.astype("u1"), -1),
    ),
    "concatenate dtype": lambda x, y: np.concatenate((x, y), dtype="f4"),
    "stack": lambda x, y: (np.stack([x, y]), np.stack((x, y), axis=-1), np.stack([x[0], y[1]], 1)),
    "stacks": lambda x, y: (np.vstack((x, y)), np.hstack((x, y)), np.dstack((x, y)), np.vstack([x[0], y])),
    "stacks of lists": lambda x, y: (
        np.vstack([[x[0, 0], x[0, 1]], [y[0, 0], 3.0]]),
        np.hstack([[x[0, 0], y[0, 1]], [y[0, 0]]]),
        np.dstack(([[y[0, 0]]], [[y[0, 1]]])),
        np.stack([[y[0, 0]], [2.0]], axis=1),
        np.concatenate([[y[0, 0], x[0, 1]], y[0]]),
        np.column_stack([[y[0, 0], 1.0], [y[0, 1], x[0, 0]]]),
    ),
    "column_stack": lambda x, y: (np.column_stack((x[:, 0], y)), np.hstack((x[0], y[1]))),
    "block": lambda x, y: (np.block([[x, y], [y, x]]), np.block([x[0], 5]), np.block(x)),
    "append": lambda x, y: (np.append(x, y), np.append(x, y, axis=1), np.append(x, 7)),
    "delete": lambda x, y: (np.delete(x, 1, axis=1), np.delete(x, [0, -1], 1), np.delete(x, slice(1, 3))),
    "roll": lambda x, y: (np.roll(x, 2), np.roll(x, -1, 1), np.roll(x, (1, -2), (0, 1)), np.roll(x, 9, 0)),
    "tile": lambda x, y: (np.tile(x, 2), np.tile(x, (2, 3)), np.tile(x[0], (2, 1)), np.tile(x, 0)),
    "repeat": lambda x, y: (
        np.repeat(x, 2),
        x.repeat(3, axis=1),
        np.repeat(x, [2, 0, 1], 0),
        np.repeat(x, np.array([2, 0, 1]), 0),
        np.repeat(x, np.array([True]), 1),
        np.repeat(x, [1.9], 0),
        np.repeat(x, 0),
    ),
    "list of traced": lambda x, y: np.array([x[0, 0], y[1, 1], 2]),
    "broadcast_arrays": lambda x, y: tuple(a + 0 for a in np.broadcast_arrays(x, y[:1])),
}


@pytest.mark.parametrize("join", JOINED.values(), ids=JOINED)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("i4", "f4"), ("?", "u1")], ids=str)
def test_joins(join: Function, dtypes: tuple[str, str]) -> None:
    assert_like_numpy(join, lambda: (grid(3, 4, dtype=dtypes[0]), grid(3, 4, dtype=dtypes[1])))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [1, (2, 0), ((1, 2), (0, 3)), ((0, 0), (7, 9)), 0], ids=str)
def test_pads(mode: str, width: Any) -> None:
    def padded(x: np.ndarray) -> Any:
        return np.pad(x, width, mode=mode), np.pad(x, width, mode).ravel("K")

    assert_like_numpy(padded, lambda: (grid(3, 4),))
    assert_like_numpy(padded, lambda: (np.asfortranarray(grid(3, 4)),))


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("shape", [(3, 4), (1, 2), (5,)], ids=str)
@pytest.mark.parametrize("dtype", ["i1", "f4", "c16", "?"])
def test_pads_that_go_on_beyond_the_mirror(mode: Any, shape: tuple[int, ...], dtype: str) -> None:
    def padded(x: np.ndarray) -> Any:
        wide, narrow = (np.pad(x, width, mode, reflect_type="odd") for width in ((0, 9), 1))
        return wide.ravel("K"), narrow

    assert_like_numpy(padded, lambda: (grid(*shape, dtype=dtype),))
    assert_like_numpy(padded, lambda: (np.asfortranarray(grid(*shape, dtype=dtype)),))


@pytest.mark.parametrize("values", [3, (1, 2), ((1, 2), (3, 4)), ((5,),)], ids=str)
def test_pads_with_constants(values: Any) -> None:
    assert_like_numpy(
        lambda x: np.pad(x, ((1, 2), (2, 1)), constant_values=values), lambda: (grid(2, 3, dtype="i4"),)
    )


@pytest.mark.parametrize("shifts", [(2, -3), (4,), (0, 0)], ids=str)
def test_rolls_by_numbers_out_of_an_array(shifts: tuple[int, ...]) -> None:
    def roll(x: np.ndarray, by: np.ndarray) -> Any:
        return np.roll(x, by, axis=(0, 1)), np.roll(x, by), np.roll(x, by[0], axis=1)

    assert_like_numpy(roll, lambda: (grid(3, 4), np.array(shifts)))


@pytest.mark.parametrize("dtype", ["?", "u1", "i8"])
@pytest.mark.parametrize("shape", [(3, 11), (16,), (0,), (2, 0)], ids=str)
def test_flags_become_bits(dtype: str, shape: tuple[int, ...]) -> None:
    def pack(x: np.ndarray) -> Any:
        return np.packbits(x), np.packbits(x, axis=-1), np.packbits(x % 3, 0, bitorder="little")

    assert_like_numpy(pack, lambda: ((grid(*shape) % 5 > 1).astype(dtype) * grid(*shape, dtype=dtype),))


@pytest.mark.parametrize("shape", [(3, 5), (4,)], ids=str)
def test_bits_become_flags(shape: tuple[int, ...]) -> None:
    def unpack(x: np.ndarray) -> Any:
        parts = [np.unpackbits(x, axis=-1, count=count) for count in (0, 3, -2, 70)]
        return np.unpackbits(x), np.unpackbits(x, axis=0, bitorder="little"), parts

    assert_like_numpy(unpack, lambda: (grid(*shape, dtype="u1") * 37,))


def test_pads_an_axis_of_one_cell() -> None:
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        assert_like_numpy(lambda x, mode=mode: np.pad(x, 3, mode=mode), lambda: (grid(1),))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x.reshape(5, 2), ValueError),
        (lambda x: x.reshape(-1, -1), ValueError),
        (lambda x: x.T.reshape(12, copy=False), ValueError),
        (lambda x: np.squeeze(x, 0), ValueError),
        (lambda x: np.transpose(x, (0, 0)), ValueError),
        (lambda x: np.moveaxis(x, 2, 0), np.exceptions.AxisError),
        (lambda x: np.concatenate((x, x[0])), ValueError),
        (lambda x: np.stack([x, x[:2]]), ValueError),
        (lambda x: np.split(x, 5), ValueError),
        (lambda x: np.pad(x, -1), ValueError),
        (lambda x: np.pad(x, 1, mode="edge", reflect_type="odd"), NotImplementedError),
        (lambda x: np.broadcast_to(x, (3, 5)), ValueError),
        (lambda x: setattr(x, "shape", (12,)), NotImplementedError),
        (lambda x: np.repeat(x, x[0].astype(int)), NotImplementedError),
        (lambda x: np.repeat(x, x[0]), TypeError),
        (lambda x: np.repeat(x, np.array([1, 2])), ValueError),
        (lambda x: np.repeat(x, [-1], 0), ValueError),
        (lambda x: np.repeat(x, -1), ValueError),
        (lambda x: np.repeat(x, [[1, 2, 1]], 0), ValueError),
        (lambda x: np.trim_zeros(x, "fx"), ValueError),
        (lambda x: np.unpackbits(x), TypeError),
        (lambda x: np.unpackbits(x.astype("u1"), count=-200), ValueError),
        (lambda x: np.packbits(x > 1, bitorder="middle"), NotImplementedError),
    ],
)
def test_mistakes(function: Function, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"test_functions_arrange\.py"):
        trace_and_interpret(function, grid(3, 4))


def test_broadcasts_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        trace_and_interpret(lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1), grid(3))


REFUSED_BY_NUMPY: dict[str, Function] = {
    "joined as another dtype": lambda x: np.concatenate([x, x], dtype=np.int8),
    "stacked as another dtype": lambda x: np.stack([x, x], dtype=np.int8),
    "joined in a column as another dtype": lambda x: np.vstack([x, x], dtype="f4", casting="safe"),
    "joined in a row as another dtype": lambda x: np.hstack([x, x], dtype="f4", casting="safe"),
    "rows split in a row": lambda x: np.hsplit(x[0, 0], 1),
    "a row split into rows": lambda x: np.vsplit(x[0], 1),
    "a matrix split along a third axis": lambda x: np.dsplit(x, 1),
    "positions that are floats": lambda x: np.ravel_multi_index((x, x), (9, 9), mode="clip"),
    "choices by unsigned numbers": lambda x: np.choose(x.astype("u8"), [1, 2], mode="clip"),
    "a number correlated": lambda x: np.correlate(x[0, 0], x[0]),
    "factors of a row": lambda x: np.linalg.qr(x[0]),
    "condition of a row": lambda x: np.linalg.cond(x[0], 1),
    "a matrix that is a row": lambda x: np.linalg.matmul(x[0], x[0, 0]),
}
if hasattr(np, "matvec"):
    REFUSED_BY_NUMPY["a row beside a row"] = lambda x: np.matvec(x[0], x[0])
    REFUSED_BY_NUMPY["a row before a row"] = lambda x: np.vecmat(x[0], x[0])


@pytest.mark.parametrize("name", REFUSED_BY_NUMPY)
def test_what_numpy_refuses_is_refused_alike(name: str) -> None:
    program, x = REFUSED_BY_NUMPY[name], np.arange(9.0).reshape(3, 3)
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        program(x)
    with pytest.raises(theirs.type):
        arrayjit.jit(program)(x)


def test_joined_arrays_are_converted_as_far_as_is_asked() -> None:
    assert_like_numpy(
        lambda x: (
            np.concatenate([x, x], dtype=np.int8, casting="unsafe"),
            np.stack([x, x], dtype=np.float32),
            np.concatenate([x, x], out=np.zeros((6, 3), np.int16), casting="unsafe"),
        ),
        lambda: (np.arange(9.0).reshape(3, 3),),
    )
