"""What random programs found, as rules; each was once broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from judging import assert_like_numpy
from machines import MACHINES, on_machine

import arrayjit


def grid(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def unaligned(*shape: int, dtype: str = "f8") -> np.ndarray:
    width = np.dtype(dtype).itemsize
    memory = np.zeros(int(np.prod(shape)) * width + 1, "u1")[1:].view(dtype).reshape(shape)
    memory[...] = grid(*shape, dtype=dtype)
    return memory


def field(*shape: int, dtype: str = "f8") -> np.ndarray:
    """An array whose strides are no multiples of its elements."""
    records = np.zeros(shape, [("before", "i1"), ("numbers", dtype)])
    records["numbers"] = grid(*shape, dtype=dtype)
    return records["numbers"]


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def with_part(array: np.ndarray, key: Any) -> tuple[np.ndarray, np.ndarray]:
    return array, array[key]


def swap_ends(x: np.ndarray) -> None:
    x[0], x[-1] = x[-1] + 1, x[0] + 2


def written_through_reshape(x: np.ndarray) -> Any:
    y = x.reshape(-1)
    swap_ends(y)
    return (y,)


def written_through_ravel(x: np.ndarray) -> Any:
    y = x.ravel()
    swap_ends(y)
    return (y,)


def both_written(x: np.ndarray, y: np.ndarray) -> Any:
    y += 1
    x *= 2
    return x[1:], y.T


def added_out(x: np.ndarray) -> Any:
    view = x[...]
    return np.add(x, 1, out=view), view


def assigned_after_contiguous(x: np.ndarray) -> Any:
    y = np.ascontiguousarray(x)
    y *= y[::-1, ::-1]
    return (y,)


def arrays_of(number: Any) -> None:
    made = (
        number[...],
        number[None],
        number.reshape(1),
        np.atleast_1d(number),
        np.broadcast_arrays(number)[0],
    )
    for array in made:
        array[...] = 77


Case = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]

LIKE_NUMPY: dict[str, Case] = {
    "an array returned twice is one object": (lambda x: (x[1:], *2 * (x + 1,)), lambda: (grid(4),)),
    "the object of out= is the result": (added_out, lambda: (grid(4)[::-1],)),
    "two views of a fresh array are two objects": (
        lambda x: (y := x + 1, y[...], y.view()),
        lambda: (grid(4),),
    ),
    "two views of a fresh number array are two objects": (
        lambda x: (y := np.ones(()) + x, y[...]),
        lambda: (grid(2),),
    ),
    "squeezing nothing is the array itself": (lambda x: (x.squeeze(), x), lambda: (grid(3, 2),)),
    "an empty view of a read-only array is read-only": (
        lambda x: (x[3:], x.T.reshape(-1)[9:], np.broadcast_to(x[:0], (2, 0))),
        lambda: (read_only(grid(3)),),
    ),
    "an empty read-only array is contiguous as it is": (
        lambda x: (np.ascontiguousarray(x[5:]),),
        lambda: (read_only(grid(4, 3)),),
    ),
    "a strided swapped array is copied by reshape": (
        written_through_reshape,
        lambda: (grid(4, 6, dtype=">i4")[:, :3],),
    ),
    "a strided unaligned array is copied by reshape": (
        written_through_reshape,
        lambda: (unaligned(4, 6)[:, ::-2],),
    ),
    "an evenly strided unaligned array is viewed by reshape": (
        written_through_reshape,
        lambda: (unaligned(4, 6)[:, ::2],),
    ),
    "a field of records is viewed by reshape": (written_through_reshape, lambda: (field(3, 4)[:, ::-2],)),
    "a part of a field of records is copied by reshape": (
        written_through_reshape,
        lambda: (field(3, 4)[:, 1:],),
    ),
    "a field of records is copied by ravel": (written_through_ravel, lambda: (field(5),)),
    "an evenly strided array is copied by ravel": (written_through_ravel, lambda: (grid(4, 6)[:, ::2],)),
    "a contiguous array is viewed by ravel": (written_through_ravel, lambda: (grid(4, 6),)),
    "swapped arguments may share memory": (
        both_written,
        lambda: with_part(grid(3, 3, dtype=">f8"), slice(1, 3)),
    ),
    "unaligned arguments may share memory": (
        both_written,
        lambda: with_part(unaligned(3, 3), slice(0, 3, 2)),
    ),
    "one strided swapped argument may come twice": (
        lambda x, y: both_written(x, y),
        lambda: with_part(grid(9, dtype=">i4")[::-1], ...),
    ),
    "a Fortran array is copied to be contiguous": (
        assigned_after_contiguous,
        lambda: (np.asfortranarray(grid(5, 2)),),
    ),
    "a number becomes contiguous with one axis": (lambda x: (np.ascontiguousarray(x),), lambda: (grid(),)),
    "a number flips to a number": (lambda x: (np.flip(x),), lambda: (grid(),)),
    "a number repeats along its axis": (
        lambda x: (np.repeat(x, 2, axis=-1), np.take(x, [0, -1], axis=0)),
        lambda: (grid(),),
    ),
    "an array made of a NumPy number is a copy": (
        lambda x: (s := x.sum(), arrays_of(s), s + 1)[::2],
        lambda: (grid(3),),
    ),
    "an index with an ellipsis makes an array of a number": (
        lambda x: (x.sum()[...], x.sum()[None, ...]),
        lambda: (grid(3),),
    ),
    "replacing NaN keeps float32": (
        lambda x: (np.nan_to_num(x), np.nan_to_num(x, posinf=3)),
        lambda: (np.array([1, np.nan, np.inf, -np.inf], "f4"),),
    ),
    "the square of bools is int8, their second power is not": (
        lambda x, y: (x**2, y**2, x**3, np.power(x, 2)),
        lambda: (grid(3, dtype="?"), grid(dtype="?")),
    ),
    "a view of an empty array is written": (
        lambda x: (x[None].reshape(-1), np.add(x, 1, out=x[None][0]), (x[None] + 1).sum(axis=-1)),
        lambda: (grid(2, 0),),
    ),
    "negative exponents of nothing": (
        lambda x, y: (x**y, x**-1),
        lambda: (grid(0, dtype="i8"), np.array([-1])),
    ),
    "replacing NaN among bools": (
        lambda x, y: (np.nan_to_num(x), np.nan_to_num(y)),
        lambda: (grid(3, dtype="?"), grid(dtype="i4")),
    ),
    "tiling an empty array is a view": (
        lambda x: (np.tile(x, 2), np.tile(x, 1)),
        lambda: (read_only(grid(2, 0)),),
    ),
    "copyto takes Python numbers that fit the kind": (
        lambda x, y: (np.copyto(x, 7), np.copyto(y, 1.5, where=x > 1)),
        lambda: (grid(3, dtype="u1"), grid(3, dtype="f4")),
    ),
}

RAISES: dict[str, Case] = {
    "copyto of a float into integers": (lambda x: np.copyto(x, 1.5), lambda: (grid(3, dtype="i4"),)),
    "copyto of an int into bools": (lambda x: np.copyto(x, 1, where=x), lambda: (grid(3, dtype="?"),)),
    "read-only is said before the dtypes": (
        lambda x: np.subtract(x, x, out=x),
        lambda: (read_only(grid(3, dtype="?")),),
    ),
    "the dtype of out= is said before its shape": (
        lambda x: np.add(x, [1.5, 2.5], out=x),
        lambda: (grid(3, dtype="i4"),),
    ),
    "a number as out=": (lambda x: np.add(x[0], 1, out=x[-1]), lambda: (grid(3),)),
    "accumulating along two axes": (lambda x: np.maximum.accumulate(x, axis=(0, 1)), lambda: (grid(3, 2),)),
    "the largest of nothing, even none of them": (lambda x: x.max(axis=1), lambda: (grid(0, 0),)),
    "tensordot over more axes than there are": (lambda x: np.tensordot(x, x[0], 1), lambda: (grid(3),)),
    "argmax over two axes": (lambda x: np.argmax(x, axis=(0, 1)), lambda: (grid(3, 2),)),
    "one label for axes of two sizes": (lambda x: np.einsum("ii->i", x), lambda: (grid(1, 4),)),
    "a triangle of a number": (np.triu, lambda: (grid(),)),
}


@pytest.mark.parametrize(("program", "make"), LIKE_NUMPY.values(), ids=LIKE_NUMPY)
def test_like_numpy(program: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    assert assert_like_numpy(program, make) == "same"


@pytest.mark.parametrize(("program", "make"), RAISES.values(), ids=RAISES)
def test_raises_as_numpy_does(program: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    assert assert_like_numpy(program, make) == "raised"


def test_the_right_side_is_read_before_any_cell_is_written() -> None:
    """NumPy itself overwrites cells that it reads later, where slices of one axis cross with other steps."""

    def crossing(x: np.ndarray) -> None:
        x[15:89:3] = x[3:100:4]

    x, wanted = grid(100), grid(100)
    wanted[15:89:3] = wanted[3:100:4].copy()
    arrayjit.jit(crossing)(x)
    np.testing.assert_array_equal(x, wanted)


def test_rows_whose_beginning_the_body_computes() -> None:
    """Their first cells cannot be asked for in front of it."""

    def program(x: np.ndarray, a: np.ndarray, k: int) -> None:
        n = len(x)
        for i in range(1, n):
            a[:, -1 - i][k : n - k][::-1] -= np.where(
                x[k : n - k] > a[i][k : n - k], x[k : n - k], a[i][i + 1 :][::-1].sum()
            )

    with on_machine(MACHINES[2], ("sync_llvm",)):
        verdict = assert_like_numpy(lambda *args: (program(*args),), lambda: (grid(19), grid(19, 19) % 7, 0))
    assert verdict == "same"
