"""Whole programs over complex numbers: as NumPy runs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import arrayjit
from arrayjit.entry import entries

TARGETS = ["interp", "sync_llvm", "llvm"]


def numbers(*shape, seed=0, dtype=complex):
    random = np.random.default_rng(seed)
    return (random.normal(size=(*shape, 2)) @ [1, 1j]).astype(dtype)


def mandelbrot(width, height, steps):
    x = np.linspace(-2, 0.6, width)
    y = np.linspace(-1.2, 1.2, height)
    c = x + 1j * y[:, np.newaxis]
    z = np.zeros_like(c)
    count = np.zeros(c.shape, np.int64)
    for _ in range(steps):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = np.where(inside, z * z + c, z)
        count += inside
    return count, z


def mandelbrot_in_place(c, steps):
    z = c.copy()
    for _ in range(steps):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
    return z


def fourier(x):
    """Radix 2, by halves."""
    n = x.shape[0]
    if n == 1:
        return x
    even, odd = fourier(x[::2]), fourier(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


def split_step(psi, potential, dt, steps):
    """A Schroedinger equation, whose kinetic part is applied in Fourier space by a DFT matrix."""
    n = psi.shape[0]
    k = np.arange(n)
    forth = np.exp(-2j * np.pi * k * k[:, np.newaxis] / n) / np.sqrt(n)
    momentum = np.where(k < n // 2, k, k - n)
    kinetic = np.exp(-0.5j * dt * momentum**2)
    kick = np.exp(-1j * dt * potential)
    for _ in range(steps):
        psi = forth.conj().T @ (kinetic * (forth @ (kick * psi)))
    return psi


def resonator(x, pole, gain):
    """A filter of one complex pole."""
    y = np.zeros(x.shape[0], complex)
    state = 0j
    for n in range(x.shape[0]):
        state = pole * state + gain * x[n]
        y[n] = state
    return y.real, state


def escape(c):
    return arrayjit.while_loop(
        lambda state: (abs(state[0]) < 2.0) & (state[1] < 100),
        lambda state: (state[0] * state[0] + c, state[1] + 1),
        (0j, 0),
    )


def root_near(z):
    """Newton's method for z**3 = 1."""
    for _ in range(20):
        z = z - (z**3 - 1) / (3 * z**2)
    return z


def turned_or_not(z):
    return arrayjit.cond(z.real.sum() > 0, lambda: z * 1j, lambda: z.conj())


def written_through_views(z):
    z[1:, ::2] += 1j
    z.real[0] = 3
    z.imag *= 2
    z.T[1].imag[:] = z.T[2].real
    z[z.real > 0] -= 1 - 2j
    z[[0, 2], 1] = z[[2, 0], 1]
    z.reshape(-1)[::-1][:2] = 5
    z.imag = z.real
    return z[:, 1], z.real


def overlapping(z):
    z[1:] = z[:-1] * z[1:]
    z[:] = z[::-1] * 1j
    z *= z
    return z


def gram_schmidt(a):
    q = a.copy()
    for j in range(q.shape[1]):
        for i in range(j):
            q[:, j] -= np.vdot(q[:, i], q[:, j]) * q[:, i]
        q[:, j] /= np.linalg.norm(q[:, j])
    return q, abs(q.conj().T @ q)


def equations(a, b):
    positive = a @ a.conj().T + np.eye(5)
    sizes = np.linalg.slogdet(a)
    return (
        np.linalg.solve(a, b),
        np.linalg.inv(a),
        np.linalg.det(a),
        sizes[0],
        sizes[1],
        np.linalg.cholesky(positive),
    )


PROGRAMS = {
    "mandelbrot": (mandelbrot, lambda: (40, 30, 25)),
    "mandelbrot in place": (mandelbrot_in_place, lambda: (numbers(20, 20), 12)),
    "a Fourier transform": (fourier, lambda: (numbers(16),)),
    "a Fourier transform of real numbers": (fourier, lambda: (np.arange(8.0),)),
    "split steps": (split_step, lambda: (numbers(24), np.linspace(0, 1, 24) ** 2, 0.01, 15)),
    "a resonator": (resonator, lambda: (np.arange(40.0) % 7, 0.9 * np.exp(0.3j), 1 + 0j)),
    "escape": (escape, lambda: (-0.75 + 0.05j,)),
    "Newton's method": (root_near, lambda: (numbers(10),)),
    "a condition": (turned_or_not, lambda: (numbers(4),)),
    "the other condition": (turned_or_not, lambda: (-np.ones(4, complex),)),
    "views": (written_through_views, lambda: (numbers(4, 5),)),
    "overlapping parts": (overlapping, lambda: (numbers(9),)),
    "equations": (equations, lambda: (numbers(5, 5), numbers(5))),
    "orthogonal columns": (gram_schmidt, lambda: (numbers(6, 4),)),
}


def assert_alike(actual, expected, rtol=1e-10):
    if isinstance(expected, (tuple, list)):
        assert type(actual) is type(expected)
        for mine, theirs in zip(actual, expected, strict=True):
            assert_alike(mine, theirs, rtol)
        return
    assert type(actual) is type(expected)
    mine, theirs = np.asarray(actual), np.asarray(expected)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_numpys(name, target):
    function, make = PROGRAMS[name]
    given, kept = make(), make()
    expected = function(*kept)
    assert_alike(arrayjit.jit(function, target=target)(*given), expected)
    for mine, theirs in zip(given, kept, strict=True):
        assert_alike(mine, theirs)


PHASES = {
    "turned": lambda x: np.exp(1j * x),
    "turned back": lambda x: np.exp(x * -2j * np.pi / 16),
    "in single precision": lambda x: np.exp(np.complex64(0.5j) * x.astype(np.float32)),
    "of cells": lambda x: np.exp(-2j * np.pi * np.arange(len(x)) / len(x)),
    "not only": lambda x: np.exp((1e-3 + 1j) * x),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PHASES)
def test_a_phase_is_numpys(name, target):
    """Exponentials of numbers whose real parts are known to be 0 or NaN, whatever the other parts are."""
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e300]
    x = np.concatenate([ends, np.linspace(-40, 40, 23)])
    with np.errstate(all="ignore"):
        expected = PHASES[name](x)
    actual = arrayjit.jit(PHASES[name], target=target)(x)
    assert_alike(actual, expected, 1e-5 if expected.dtype == np.complex64 else 1e-10)
    zeros = expected.imag == 0
    assert np.array_equal(np.signbit(actual.imag[zeros]), np.signbit(expected.imag[zeros]))


def test_a_phase_takes_no_exponential():
    text = arrayjit.jit(PHASES["turned"]).lower(np.arange(9.0)).as_text("loops")
    assert "cos[" in text
    assert "exp" not in text


# ---- one operation at a time -------------------------------------------------------------------------

OPERATIONS = {
    "sums": lambda z, w: (z.sum(), z.sum(0), z.mean(1), np.nansum(z), z.sum(where=z.real > 0)),
    "products": lambda z, w: (z.prod(), z.prod(0), z.prod(1), np.multiply.reduce(z, 0)),
    "scans": lambda z, w: (np.cumsum(z), np.cumsum(z, 1), np.cumprod(z, 0)),
    "deviations": lambda z, w: (np.var(z), np.std(z, 0), np.var(z, ddof=1), np.average(z, 0, w[:, 0].real)),
    "extremes": lambda z, w: (z.max(), z.min(0), np.maximum(z, w)),
    "positions of extremes": lambda z, w: (
        z.argmax(), z.argmin(0), np.rint(w).argmax(1), np.argmin(np.rint(z), axis=-1, keepdims=True),
        np.where(z.imag > 1, complex(0, np.nan), z).argmax(), np.where(z.imag < -1, np.nan, w).argmin(0),
        np.tile(np.rint(z).ravel(), 300).argmax(),
    ),
    "norms": lambda z, w: (np.linalg.norm(z), np.linalg.norm(z, axis=1), np.linalg.norm(z, np.inf)),
    "matrix products": lambda z, w: (z @ w.T, z.T @ w, z @ w[0], z[0] @ w.T, w.conj() @ z.T),
    "batched products": lambda z, w: np.stack([z, w]) @ np.stack([w.T, z.T]),
    "real by complex": lambda z, w: (z.real @ w.T, w @ np.arange(7), z.real @ (1j * w.T)),
    "dots": lambda z, w: (np.dot(z[0], w[0]), np.vdot(z, w), np.inner(z, w), np.outer(z[0], w[1])),
    "einsums": lambda z, w: (np.einsum("ij,kj->ik", z, w.conj()), np.einsum("ij,ij->i", z, w)),
    "other products": lambda z, w: (np.tensordot(z, w, 2), np.trace(z), np.kron(z[:2, :2], w[:2, :2])),
    "parts": lambda z, w: (z.real, z.imag.T, np.real(z), np.imag(w), z[1].real, z[1, 2].imag),
    "parts of reshaped arrays": lambda z, w: (
        z.reshape(-1).real, z.ravel()[::2].imag, z.imag.reshape(-1)[3:9]
    ),
    "conjugates": lambda z, w: (z.conj(), np.conj(w), z.T.conjugate(), z[0, 0].conjugate()),
    "angles": lambda z, w: (np.angle(z), np.angle(w, deg=True), np.abs(z), abs(w)),
    "questions": lambda z, w: (np.iscomplexobj(z), np.isrealobj(z.real), np.iscomplex(z), np.isreal(z.real)),
    "comparisons": lambda z, w: (
        z == w, z < w, z >= 0, np.allclose(z, z), np.isclose(z, w), np.array_equal(z, z)
    ),
    "choices": lambda z, w: (np.where(z.real > 0, z, w), np.where(z.real > 0, z, 0), z[z.imag > 0]),
    "positions": lambda z, w: (z[[2, 0], 1:3], z[np.arange(5), np.arange(5)], np.take(z, [1, 0], 1)),
    "positions in parts": lambda z, w: (
        z.real[[2, 0], 1:3], (z * w).imag[:, [1, 4]], z.imag[z.real.argmax(0)],
        np.array([1j, 2]).imag[[1, 0, 0]], np.sort(z.imag), np.searchsorted(np.arange(5.0), w.real),
    ),
    "positions in parts of reshaped arrays": lambda z, w: (
        z.reshape(-1).imag[[9, 2]], (z * w).reshape(-1).imag[[9, 2]], (z * w).real.reshape(-1)[[3, 3]],
        (z * w).T.reshape(5, 7).real[[0, 4], 2],
    ),
    "arrangements": lambda z, w: (np.concatenate([z, w]), np.stack([z, w], -1), np.roll(z, 1), z[::-1, ::-2]),
    "shapes": lambda z, w: (
        z.T.copy(), np.pad(z, 1), np.tile(z, 2), np.diag(z[0]), np.triu(z), np.flip(z, 0)
    ),
    "rounding": lambda z, w: (np.round(z, 2), np.rint(w)),
    "differences": lambda z, w: (np.diff(z), np.gradient(z[0])),
    "dtypes": lambda z, w: (z.astype(np.complex64), z.real.astype(complex), z.astype(np.complex64) * 2.0),
    "weak numbers": lambda z, w: (
        z.real.astype("f4") + 1j, z.real + 2j, np.arange(3) * 1j, z.astype("c8") + 1
    ),
    "constants": lambda z, w: (
        np.zeros(3, complex), np.ones(2, "c8"), np.full(3, 1 + 2j), np.eye(3, dtype=complex)
    ),
    "more constants": lambda z, w: (
        np.arange(4, dtype=complex), np.array([1, 2j]), np.asarray([[z[0, 0], 1j]])
    ),
    "like": lambda z, w: (np.zeros_like(z), np.ones_like(z.real, dtype=complex), np.full_like(z, 2j)),
    "ranges": lambda z, w: (np.linspace(0, 1j, 5), np.linspace(z[0, 0], 1, 4), np.arange(3) + 0j),
    "numbers": lambda z, w: (z[0, 0] * 2, complex(z[0, 0]), complex(2.0, z[0, 0].real), float(z[0, 0].imag)),
    "items": lambda z, w: (z.item(3), z[0, 0].real, np.complex64(z[0, 1]), z[1, 1] ** 2),
    "numbers instead": lambda z, w: (
        np.nan_to_num(np.where(z.real > 0, z, np.nan)), np.nanmax(z), np.clip(z, 0, 1)
    ),
    "sequences": lambda z, w: (
        np.convolve(z[0], w[1]), np.cov(z), np.trapezoid(z[0]), np.cross(z[0, :3], w[0, :3])
    ),
    "polynomials": lambda z, w: np.polyval([1j, 2, 3], z),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_numpys(name):
    function = OPERATIONS[name]
    z, w = numbers(5, 7), numbers(5, 7, seed=1)
    expected = function(z, w)
    is_single = name in ("dtypes", "weak numbers", "items")
    assert_alike(arrayjit.jit(function)(z, w), expected, 1e-6 if is_single else 1e-12)


LAYOUTS = {
    "transposed": lambda z: z.T,
    "every other": lambda z: z[::2, 1::3],
    "backwards": lambda z: z[::-1, ::-1],
    "a field of parts": lambda z: z.view(float)[:, 1:-1].view(complex) if z.flags.c_contiguous else z,
    "one number": lambda z: z[1, 1, ...],
    "empty": lambda z: z[:0],
    "foreign byte order": lambda z: z.astype(">c16"),
    "Fortran's order": np.asfortranarray,
    "read only": lambda z: np.broadcast_to(z[0], z.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments_of_any_layout(layout):
    def function(z):
        return z * z + 1j, z.real, z.sum()

    z = LAYOUTS[layout](numbers(6, 8))
    assert_alike(arrayjit.jit(function)(z), function(z), 1e-13)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "read only"])
def test_arguments_of_any_layout_are_written(layout):
    def function(z):
        z *= 1 + 2j
        z.real += 1

    mine, theirs = (LAYOUTS[layout](numbers(6, 8)) for _ in range(2))
    function(theirs)
    arrayjit.jit(function)(mine)
    assert_alike(mine, theirs, 1e-13)


def test_parts_of_results_share_memory():
    def function(z):
        y = z + 1
        return y, y.real, y.imag[1:], z.imag

    z = numbers(4)
    y, real, imaginary, own = arrayjit.jit(function)(z)
    assert np.shares_memory(y, real)
    assert np.shares_memory(y, imaginary)
    assert np.shares_memory(z, own)
    real[:] = 7
    imaginary[:] = 8
    np.testing.assert_array_equal(y[1:], [7 + 8j] * 3)


class Signal(NamedTuple):
    carrier: np.ndarray
    phase: complex


def test_containers_captured_arrays_and_static_arguments():
    offset = numbers(3, seed=5)

    def function(signal, factors, turn):
        return {"sum": signal.carrier * signal.phase + offset, "rest": [f * turn for f in factors]}

    jitted = arrayjit.jit(function, static_argnames="turn")
    given = Signal(numbers(3), 2 - 1j), [1j, np.complex64(2j)], 3j
    mine, theirs = jitted(*given), function(*given)
    assert_alike(mine["sum"], theirs["sum"])
    assert_alike(mine["rest"], theirs["rest"])


def test_out():
    def function(z, out):
        np.multiply(z, 2j, out=out)
        return np.abs(z, out=np.empty(3))

    z, out = numbers(3), np.zeros(3, complex)
    np.testing.assert_allclose(arrayjit.jit(function)(z, out), abs(z))
    np.testing.assert_allclose(out, z * 2j)


NUMBERS = [(2j, 1 + 1j), (1j, 2), (2.5, 1j), (np.complex64(1j), 2.0), (np.complex128(1j), np.float32(2))]


@pytest.mark.parametrize(("a", "b"), NUMBERS, ids=repr)
def test_numbers_as_arguments_and_results(a, b):
    def function(a, b):
        return a * b + a, a - b, a == b, abs(a), a.real + b.imag, a / b, -a

    assert_alike(arrayjit.jit(function)(a, b), function(a, b), 1e-6 if type(a) is np.complex64 else 1e-14)


def test_python_raises_for_divisions_by_zero():
    divide = arrayjit.jit(lambda a, b: a / b)
    with pytest.raises(ZeroDivisionError):
        divide(1j, 0j)
    assert np.isnan(arrayjit.jit(lambda a: a[0] / a[0])(np.zeros(1, complex)))


@pytest.fixture
def at_once(monkeypatch):
    """Calls are answered without Python from the second on."""
    monkeypatch.setattr(entries, "WORTH", 1)


WARM = {
    "an array and a number": (numbers(3), 2j),
    "Python numbers": (1j, 2.0),
    "NumPy's numbers": (np.complex64(1j), np.complex128(2)),
    "single precision": (np.complex64(1j), numbers(2, dtype="c8")),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", WARM)
def test_warm_calls_do_without_python(name):
    def function(a, b):
        return a * b, abs(a + b)

    given = WARM[name]
    jitted = arrayjit.jit(function)
    for _ in range(4):
        mine = jitted(*given)
    assert_alike(mine, function(*given), 1e-6)
    assert jitted._entries.hits == 2, jitted._entries._reasons.values()


def test_a_miss_names_the_dtype():
    jitted = arrayjit.jit(lambda z: z + 1)
    jitted(np.ones(3))
    jitted(numbers(3))
    assert "complex128" in jitted.stats().reasons[-1].reason


def test_stages_show_complex_numbers_and_then_their_parts():
    lowered = arrayjit.jit(lambda z: z * z).lower(numbers(3))
    assert "multiply[c128](z[i], z[i])" in lowered.as_text("assignments")
    assert "c128" not in lowered.as_text("loops")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: z // 2, "floor_divide of complex128"),
        (lambda z: np.median(z), "of complex numbers"),
        (lambda z: np.searchsorted(z, z), "of complex numbers"),
        (lambda z: np.zeros(3).__setitem__(0, 1j), "complex"),
        (lambda z: float(z[0].item()), "complex"),
        (lambda z: np.arctan2(z, z), "arctan2 of complex128"),
        (lambda z: z.view(float), "view"),
    ],
)
def test_what_is_refused_is_refused_at_the_line(function, words):
    with pytest.raises(arrayjit.UserError, match=words) as caught:
        arrayjit.jit(function)(numbers(3))
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
