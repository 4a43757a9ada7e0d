"""Slices and positions that are known only when the compiled function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizing import EDGES, N, assert_like_numpy, matrix, vector

import arrayjit
from arrayjit.errors import ShapeError

Program = Callable[..., Any]

READS: dict[str, Program] = {
    "from": lambda x, k: x[k:].sum(),
    "up to": lambda x, k: x[:k].sum(),
    "from the end": lambda x, k: x[-k:].sum(),
    "between": lambda x, k: x[k : N - k].sum(),
    "between, of one length": lambda x, k: x[k : k + 2].sum(),
    "every second from": lambda x, k: x[k::2].sum(),
    "every second up to": lambda x, k: (x[:k:2] * np.arange(N)[:k:2]).sum(),
    "backward from": lambda x, k: (x[k::-1] * x[k::-1]).sum(),
    "backward down to": lambda x, k: x[:k:-1].sum(),
    "every third backward": lambda x, k: x[k::-3].sum(),
    "backward between": lambda x, k: x[N - k : k : -2].sum(),
    "the prefix reversed": lambda x, k: (x[:k][::-1] * np.arange(N)[:k]).sum(),
    "the prefix flipped": lambda x, k: (np.flip(x[:k]) * x[:k]).sum(),
    "of a part": lambda x, k: x[1:][:k].sum(),
    "of a part that has no known length": lambda x, k: x[:k][1:][:-1].sum(),
    "of a part with the same bound": lambda x, k: x[k:][k:].sum(),
    "the last of a part": lambda x, k: x[k:][:k][-1:].sum(),
    "of a part that is reversed": lambda x, k: x[k:][::-1][1::2].sum(),
    "a position": lambda x, k: x[k],
    "a position from the end": lambda x, k: x[-k],
    "a position in a part": lambda x, k: x[:k][-1] + x[k:][0],
    "a position computed": lambda x, k: x[(k * k) % N],
    "positions in a list": lambda x, k: x[:k][[0, -1]].sum(),
    "a number read from an array": lambda x, k: x[np.arange(N)[k] :].sum(),
    "neighbours": lambda x, k: (x[1:k] - x[: k - 1]).sum(),
    "two parts joined": lambda x, k: np.concatenate([x[k:], x[:k]]).sum(),
    "a mask of a part": lambda x, k: x[:k][x[:k] > 0].sum(),
    "how many": lambda x, k: (x[:k].shape[0], x[k:].size, x[::2][:k].shape[0], np.size(x[:k])),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    assert_like_numpy(READS[name], vector)


READS_OF_MATRICES: dict[str, Program] = {
    "a row": lambda a, k: a[k].sum(),
    "part of a row": lambda a, k: a[k, 1:].sum(),
    "a column of part": lambda a, k: a[:k, 1].sum(),
    "rows": lambda a, k: a[k:].sum(axis=0),
    "rows and columns": lambda a, k: a[k:, :k].sum(),
    "rows of the transpose": lambda a, k: a.T[:, k:].sum(axis=1),
    "a row among rows": lambda a, k: a[1:][k].sum(),
    "with an ellipsis": lambda a, k: a[..., k:].sum(axis=1),
    "with a new axis": lambda a, k: (a[:k, None, 0] - a[None, :k, 0]).sum(),
    "with positions": lambda a, k: a[[0, 2], k:].sum(axis=1),
    "an element": lambda a, k: a[k, k],
    "an item": lambda a, k: (a.item(k), a.item(k, 1), a.item((1, k))),
    "an item of all": lambda a, k: a.item(3 * k) + a[:1, :1].item(),
}


@pytest.mark.parametrize("name", READS_OF_MATRICES)
def test_reads_of_matrices(name: str) -> None:
    assert_like_numpy(READS_OF_MATRICES[name], matrix)


def written(key: Callable[[int], Any], value: Callable[[Any, int], Any]) -> Program:
    def program(x: Any, k: int) -> None:
        x[key(k)] = value(x, k)

    return program


def add_to_part(x: Any, k: int) -> None:
    x[k:] += x[:k].sum()


def add_to_row(a: Any, k: int) -> None:
    a[k] += 1


def write_through_a_view(x: Any, k: int) -> None:
    part = x[k:][::-1]
    part[:2] = -1


def overlap(x: Any, k: int) -> None:
    x[1:k] = x[: k - 1] + 1


WRITES: dict[str, Program] = {
    "a number": written(lambda k: slice(k, None), lambda x, k: 7),
    "a number at a position": written(lambda k: k, lambda x, k: 7),
    "a part of itself, reversed": written(lambda k: slice(None, k), lambda x, k: x[:k][::-1]),
    "a part of another length": written(lambda k: slice(k, None), lambda x, k: x[:3]),
    "added to a part": add_to_part,
    "through a view of a view": write_through_a_view,
    "neighbours": overlap,
    "filled": lambda x, k: x[k:].fill(2),
    "by out=": lambda x, k: np.add(x[:k], 1, out=x[:k]).sum(),
    "copied": lambda x, k: np.copyto(x[:k], 2 * x[:k]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str) -> None:
    assert_like_numpy(WRITES[name], vector)


WRITES_OF_MATRICES: dict[str, Program] = {
    "a row": written(lambda k: k, lambda a, k: a[0] * 2),
    "added to a row": add_to_row,
    "a block": written(lambda k: (slice(k, None), slice(None, 2)), lambda a, k: 0),
    "a diagonal": lambda a, k: np.fill_diagonal(a[:k], 3),
    "a raveled block of rows": lambda a, k: a[:k].ravel().__setitem__(slice(None), 5),
}


@pytest.mark.parametrize("name", WRITES_OF_MATRICES)
def test_writes_of_matrices(name: str) -> None:
    assert_like_numpy(WRITES_OF_MATRICES[name], matrix)


@pytest.mark.parametrize("kind", ["i1", "u2", "i8", "u8"])
def test_bounds_of_numpys_types(kind: str) -> None:
    def program(x: Any, numbers: Any, k: int) -> Any:
        return x[numbers[k] :].sum(), x[numbers[k]]

    assert_like_numpy(program, vector, np.array([3, 0, 5, 1], kind), numbers=range(4))


def test_two_bounds() -> None:
    def program(x: Any, low: int, high: int) -> Any:
        part = x[low:high]
        return (part * x[low:high]).sum(), part.size, x[low:high:-1].sum()

    for low in EDGES:
        assert_like_numpy(program, vector, low)


def test_steps_are_compiled_in() -> None:
    steps = [-3, -1, 0, 1, 2]
    assert_like_numpy(lambda x, k: x[::k].sum(), vector, numbers=steps, compiles=len(steps) - 1)


class TestBroadcasting:
    def test_parts_of_one_length(self) -> None:
        assert_like_numpy(lambda x, k: (x[:k] * x[:k] + x[0]).sum(), vector)

    def test_a_known_extent_of_one_is_repeated(self) -> None:
        assert_like_numpy(lambda x, k: (x[:k] * x[:1] + np.ones((3, 1))).sum(), vector)

    def test_parts_that_turn_out_equal(self) -> None:
        assert_like_numpy(lambda x, k: (x[:k] * x[3:]).sum(), vector, numbers=[3])
        assert_like_numpy(lambda x, k: (x[:k] + x[k:]).sum(), vector, numbers=[3, 2, 4])

    def test_an_extent_that_turns_out_one_is_not_repeated(self) -> None:
        jitted = arrayjit.jit(lambda x, k: (x[:k] * x).sum())
        with pytest.raises(ValueError, match="repeated only if it is known while tracing"):
            jitted(vector, 1)

    def test_parts_that_cannot_be_equal(self) -> None:
        def program(x: Any, k: int) -> Any:
            return (np.concatenate([x[:k], x]) + np.ones(N - 1)).sum()

        with pytest.raises(ShapeError, match="could not be broadcast together with shapes"):
            arrayjit.jit(program)(vector, 2)


@pytest.mark.parametrize("position", [np.array(2), np.int64(2), 2], ids=["array", "scalar", "int"])
def test_what_an_array_of_no_axes_chooses_is_a_copy(position: Any) -> None:
    def program(a: Any, position: Any, k: int) -> Any:
        row, part = a[position], a[position, k:]
        row[:] = 50
        part[:] = 60
        a[position, 0] = 3
        return row.sum(), part.sum(), a.sum()

    assert_like_numpy(program, matrix, position)


def test_numbers_near_the_largest() -> None:
    numbers = (2**63 - 1, 2**63 - 6, 2**62, -(2**62), -(2**63), 2**31, -(2**31))
    for program in (READS["from"], READS["up to"], READS["backward from"], READS["a position"]):
        assert_like_numpy(program, vector, numbers=numbers)
