"""`x.view(dtype)`: the bits of numbers as other numbers, with NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import ShapeError, UnsupportedError

random = np.random.default_rng(0)
doubles = np.concatenate((random.standard_normal(20), [np.nan, -0.0, np.inf, -np.inf, 5e-324]))
singles = doubles.astype(np.float32)
words = random.integers(0, 2**32, 30, dtype=np.uint32)
wide = random.integers(-(2**63), 2**63 - 1, 30)
octets = random.integers(0, 256, 240, dtype=np.uint8)
pairs = np.stack((doubles[:20], doubles[5:]), axis=-1).view(np.complex128)[:, 0]


def inverse_root(x: Any) -> Any:
    half = np.float32(0.5) * x
    y = (np.int32(0x5F3759DF) - (x.view(np.int32) >> 1)).view(np.float32)
    return y * (np.float32(1.5) - half * y * y)


def hashed(x: Any) -> Any:
    h = x.copy().view(np.uint64)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    return h


def low_bits_of_each(x: Any) -> Any:
    total = 0
    for i in range(len(x)):
        total += int(x[i].view(np.int64) & 7)
    return total


def hashed_bytes(x: Any) -> Any:
    h = np.uint32(2166136261)
    for byte in (x * np.uint32(77)).view(np.uint8):
        h = (h ^ byte) * np.uint32(16777619)
    return h


def every_other(x: Any) -> Any:
    return x[::-2].view("u8").sum(), x[3].view(np.int64), x.reshape(5, 5).T.view(np.int64) + 1


PROGRAMS: list[tuple[Callable[[Any], Any], np.ndarray]] = [
    (inverse_root, singles),
    (hashed, doubles),
    (hashed, wide),
    (low_bits_of_each, doubles),
    (every_other, doubles),
    (lambda x: (x + np.float32(1)).view(np.uint32), singles),
    (lambda x: x.view(np.float32).view(np.int32) + 0, words),
    (lambda x: x.view(np.int64) >> 52, doubles[:0]),
    (hashed_bytes, words),
    (lambda x: x.view(np.uint8) + 0, words.reshape(5, 6)),
    (lambda x: x.view(np.int8).copy(), words[:0]),
    (lambda x: x[:, :0].view(np.uint8).copy(), words.reshape(5, 6)),
    (lambda x: x.view("u2").sum(), doubles),
    (lambda x: x[::8].reshape(-1, 1)[:1].view("u4") + 1, doubles),
    (lambda x: x.view("i8").copy(), octets),
    (lambda x: x.reshape(3, 5, 16).view("f4")[..., 1].copy(), octets),
    (lambda x: x.view("c16").copy(), octets),
    (lambda x: x.astype("f4").view("c8"), octets),
    (lambda x: (x.view("c16") * 2).view("f8"), octets),
    (lambda x: x.view("f8").reshape(-1, 2).copy(), pairs),
    (lambda x: x.view("u1").copy(), pairs),
    (lambda x: x.view("c8").copy(), pairs),
    (lambda x: (x > 0).view(np.int8) - 1, doubles),
]


@pytest.mark.parametrize("target", ["llvm", "c", "interp"])
@pytest.mark.parametrize(("program", "x"), PROGRAMS)
def test_bits_are_those_of_numpy(program: Callable[[Any], Any], x: np.ndarray, target: str) -> None:
    with np.errstate(all="ignore"):
        wanted, given = program(x.copy()), arrayjit.jit(program).on(target)(x.copy())
    parts = [result if isinstance(result, tuple) else (result,) for result in (given, wanted)]
    for one, other in zip(*parts, strict=True):
        assert type(one) is type(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def written_under_the_view(x: Any) -> Any:
    bits = x.view(np.int64)
    bits[0] = 3
    return x.sum()


def read_after_the_array_was_written(x: Any) -> Any:
    y = x * 2
    bits = y.view(np.int64)
    y[0] = 3
    return bits + 1


def shared_with_an_argument(x: Any) -> Any:
    return x.view(np.int64)


def shared_with_another_result(x: Any) -> Any:
    y = x * 2
    return y, y.view(np.int64)


SHARING = [
    written_under_the_view,
    read_after_the_array_was_written,
    shared_with_an_argument,
    shared_with_another_result,
]


@pytest.mark.parametrize("program", SHARING)
def test_what_would_show_that_memory_is_shared_is_refused(program: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"x\.view\(dtype\)\.copy\(\)"):
        arrayjit.jit(program)(doubles.copy())


@pytest.mark.parametrize("dtype", [np.float16, np.bool_])
def test_other_numbers_are_refused(dtype: type) -> None:
    with pytest.raises(UnsupportedError, match="a view of float64 as"):
        arrayjit.jit(lambda x: x.view(dtype) + 0)(doubles)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[:, ::2].view("u1"),
        lambda x: x.T.view("u1"),
        lambda x: x[:, :5].copy().view("u8"),
        lambda x: x[0, 0].view("u1"),
        lambda x: x.sum(keepdims=True).reshape(()).view("u1"),
    ],
)
def test_bytes_that_do_not_lie_in_rows_are_refused_as_in_numpy(program: Callable[[Any], Any]) -> None:
    matrix = words.reshape(5, 6)
    with pytest.raises(ValueError, match="dtype") as wanted:
        program(matrix)
    with pytest.raises(ShapeError) as given:
        arrayjit.jit(program)(matrix)
    assert given.value.what == str(wanted.value)


def test_how_many_bytes_there_are_may_depend_on_an_argument() -> None:
    def total(x: Any, n: int) -> Any:
        return x[: 4 * n].view(np.uint32).sum()

    jitted = arrayjit.jit(total)
    for n in (0, 1, 7, 60):
        assert jitted(octets, n) == total(octets, n)


FOREIGN = np.arange(6).astype(np.dtype("i4").newbyteorder())


def test_bits_of_foreign_byte_order_are_refused() -> None:
    shared = FOREIGN.copy()
    for program, arguments in (
        (lambda x: x.view(np.uint32) + 0, (FOREIGN,)),
        (lambda x: x[1:].view("u1") + 0, (FOREIGN,)),
        (lambda x: FOREIGN.view(np.int32) + x, (np.ones(6),)),
        (lambda x, y: x.view(np.int32) + y, (shared[1:], shared[:-1])),
    ):
        with pytest.raises(UnsupportedError, match="foreign byte order"):
            arrayjit.jit(program)(*arguments)
    got = arrayjit.jit(lambda x: (x.view(), x.view() * 2, x.copy().view("u4")))(FOREIGN)
    for ours, theirs in zip(got, (FOREIGN, FOREIGN * 2, np.arange(6)), strict=True):
        assert ours.tolist() == theirs.tolist()
