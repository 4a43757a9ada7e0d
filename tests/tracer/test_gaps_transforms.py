"""`np.fft`: NumPy's to rounding, of every length, along any axes, in NumPy's types and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from likeness import TARGETS

import arrayjit

Function = Callable[..., Any]
UNITS = 16
"""How far results are from NumPy's at most, in units of the greatest number of the result."""


def numbers(*shape: int, dtype: str = "c16") -> np.ndarray:
    draw = np.random.default_rng(sum(shape))
    real, imaginary = draw.standard_normal((2, *shape)) * 50
    return (real + 1j * imaginary).astype(dtype) if dtype[-2:] in ("c8", "16") else real.astype(dtype)


def assert_near_numpy(program: Function, given: np.ndarray, targets: tuple[str, ...] = TARGETS) -> None:
    wanted = program(given.copy())
    for target in targets:
        before = given.copy()
        got = arrayjit.jit(program, target=target)(before)
        np.testing.assert_array_equal(before, given)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, (tuple, list)) else [(got, wanted)]
        for ours, theirs in pairs:
            room = UNITS * np.finfo(theirs.dtype).eps * np.max(np.abs(theirs), initial=0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=room, strict=True)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 30, 34, 67, 96, 211, 422])
def test_every_length(count: int) -> None:
    """Powers of two, small primes, primes by their matrix and by convolution, and products of these."""
    assert_near_numpy(lambda x: (np.fft.fft(x), np.fft.ifft(x)), numbers(count))
    assert_near_numpy(lambda x: np.fft.rfft(x), numbers(count, dtype="f8"))
    if count > 1:
        assert_near_numpy(lambda x: (np.fft.irfft(x), np.fft.irfft(x, 2 * count - 1)), numbers(count))


@pytest.mark.parametrize("count", [1000, 1009, 3 * 199, 4096, 9 * 1009, 100_000, 131_071, 2**17])
def test_long_rows(count: int) -> None:
    assert_near_numpy(lambda x: np.fft.fft(x), numbers(count), ("sync_llvm",))


OPTIONS: dict[str, Function] = {
    "shorter": lambda f, x: f(x, n=4),
    "longer": lambda f, x: f(x, 11),
    "one": lambda f, x: f(x, 1),
    "first axis": lambda f, x: f(x, axis=0),
    "by the root of the length": lambda f, x: f(x, axis=1, norm="ortho"),
    "forward": lambda f, x: f(x, n=7, axis=-2, norm="forward"),
    "backward": lambda f, x: f(x, norm="backward"),
    "transposed": lambda f, x: f(x.T, axis=0),
    "strided": lambda f, x: f(x[::2, ::-1, 1:]),
}


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_lengths_axes_and_norms(options: Function, name: str) -> None:
    function = getattr(np.fft, name)
    given = numbers(3, 4, 6, dtype="f8" if name in ("rfft", "ihfft") else "c16")
    assert_near_numpy(lambda x: options(function, x), given, ("sync_llvm",))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"])
def test_several_axes(name: str) -> None:
    function = getattr(np.fft, name)

    def program(x: Any) -> Any:
        axes = function(x, axes=(2, 0), norm="ortho")
        return function(x), function(x, s=(4, 9), axes=(0, 1)), axes

    assert_near_numpy(program, numbers(3, 4, 5, dtype="f8" if "r" in name[:1] else "c16"), ("sync_llvm",))


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "c8", ">f8"])
def test_types_are_numpys(dtype: str) -> None:
    given = numbers(3, 12, dtype=dtype)
    assert_near_numpy(lambda x: (np.fft.fft(x), np.fft.ifft(x), np.fft.irfft(x)), given)
    if given.dtype.kind != "c":
        assert_near_numpy(lambda x: np.fft.rfft(x), given)


def test_half_transforms_of_spectra_that_are_none() -> None:
    """What a real signal cannot have, imaginary parts at both ends of a spectrum, counts as nothing."""
    assert_near_numpy(lambda x: np.fft.irfft(x * 1j), numbers(6, 7, dtype="f8"))


def in_rows(x: Any) -> Any:
    found = np.empty((len(x), 5), complex)
    for k in range(len(x)):
        found[k] = np.fft.rfft(x[k])
    return found


def in_growing_rows(x: Any) -> Any:
    found = np.zeros(6)
    for k in range(1, 6):
        found[k] = np.abs(np.fft.fft(x[0, :k])).sum()
    return found


def into_out(x: Any) -> Any:
    out = np.empty(x.shape, complex)
    return np.fft.fft(x, out=out), out


PROGRAMS: dict[str, Function] = {
    "convolution": lambda x: np.fft.irfft(np.fft.rfft(x, 16) * np.fft.rfft(x[:, ::-1], 16), 16),
    "shifts": lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.fftshift(x, axes=1)),
    "frequencies": lambda x: (x * np.fft.fftfreq(8, 0.1), x[:, :5] * np.fft.rfftfreq(8, d=0.5)),
    "a list": lambda x: np.fft.fft([x[0, 0], 2.0, 3.0]),
    "no rows": lambda x: np.fft.fft(x[:0]),
    "a row of each iteration": in_rows,
    "rows that grow": in_growing_rows,
    "out": into_out,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_with_transforms(program: Function) -> None:
    assert_near_numpy(program, numbers(4, 8, dtype="f8"))


MISTAKES: list[tuple[Function, type[Exception], str]] = [
    (lambda x: np.fft.fft(x, 0), ValueError, r"Invalid number of FFT data points \(0\) specified"),
    (lambda x: np.fft.fft(x, norm="x"), ValueError, "Invalid norm value x"),
    (lambda x: np.fft.fft(x, axis=2), IndexError, "out of range|out of bounds"),
    (lambda x: np.fft.rfft(x), TypeError, "same_kind|safe"),
    (lambda x: np.fft.fft(x, out=np.empty(x.shape)), TypeError, "same_kind"),
    (lambda x: np.fft.fft(x, out=np.empty(3, complex)), ValueError, "output array has wrong shape"),
]


@pytest.mark.parametrize(("mistake", "kind", "words"), MISTAKES)
def test_mistakes_are_numpys(mistake: Function, kind: type[Exception], words: str) -> None:
    given = numbers(2, 8)
    for program in (mistake, arrayjit.jit(mistake)):
        with pytest.raises(kind, match=words):
            program(given)


@pytest.mark.parametrize("target", ["sync_c", "cuda-sim"])
def test_other_targets(target: str) -> None:
    program = arrayjit.jit(lambda x: np.fft.irfft(np.fft.rfft(x) * 2), target=target)
    given = numbers(3, 20, dtype="f8")
    np.testing.assert_allclose(np.asarray(program(given)), 2 * given, rtol=0, atol=1e-12)


def test_transforms_of_one_length_share_their_tables() -> None:
    once = arrayjit.jit(np.fft.fft, target="interp").lower(numbers(64)).build.computation
    twice = arrayjit.jit(lambda x: np.fft.fft(np.fft.fft(x)), target="interp").lower(numbers(64))
    assert len(twice.build.computation.params) == len(once.params)


@pytest.mark.parametrize("count", [7, 13, 26])
def test_roots_are_constants_of_the_program(count: int) -> None:
    text = arrayjit.jit(np.fft.fft, target="interp").lower(numbers(count)).as_text("assignments")
    assert "cos" not in text
    assert "sin" not in text


def test_a_step_of_four_takes_few_statements() -> None:
    """They are traced, joined and looked at one by one: programs have many transforms."""
    text = arrayjit.jit(np.fft.fft, target="interp").lower(numbers(256)).as_text("assignments")
    stored = [line for line in text.splitlines() if "] = " in line]
    assert len(stored) <= 4 * 26
