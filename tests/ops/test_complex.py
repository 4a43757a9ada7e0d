"""Functions of complex numbers against NumPy: values within bounds, special values those of C99's Annex G."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import DTypeError
from arrayjit.ir.definitions.complexes import PARTS
from arrayjit.ir.dtype import COMPLEX, DType
from arrayjit.ir.ops import OPS, PART_OPS

BOUNDS = {
    "add": 0.75, "subtract": 0.75, "sign": 1.0, "absolute": 1.0, "multiply": 1.5, "square": 1.5,
    "reciprocal": 1.8, "sqrt": 1.8, "exp": 2.2, "divide": 3.0, "log": 3.5, "expm1": 3.5, "sin": 3.0,
    "cos": 3.0, "sinh": 3.0, "cosh": 3.0, "arccos": 3.5, "arcsin": 3.5, "arcsinh": 3.5, "arccosh": 3.5,
    "arctan": 3.0, "arctanh": 3.0, "log2": 4.0, "log10": 4.0, "tan": 5.5, "tanh": 5.0,
}  # fmt: skip
"""The greatest errors, in units in the last place of the size of the exact result."""

EXACT = (
    "negative", "positive", "conjugate", "rint", "isnan", "isinf", "isfinite", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin",
    "logical_not", "logical_and",
    "logical_or", "logical_xor",
)  # fmt: skip
AS_NUMPY = ("exp2", "log1p", "power")
"""What loses digits where NumPy does: compared with it, on numbers where neither does."""

SIGNS_ARE_OPEN = {"sin", "cos", "sinh", "cosh"}
"""C99 leaves open signs of zeros and infinities beside a NaN."""

ROUNDED_ONCE = {"multiply", "square"}
"""NumPy computes them with fused multiply-add on some processors: other zeros, and infinities for NaNs."""

SHAPE = 3000


def test_every_function_is_tried() -> None:
    assert {*BOUNDS, *EXACT, *AS_NUMPY, "where"} == set(PARTS)


def drawn(dtype: DType, random: np.random.Generator) -> np.ndarray:
    """Numbers of all magnitudes; some parts are small integers or zeros."""
    most = 35 if dtype.part.bits == 32 else 290
    parts = random.normal(size=(2, SHAPE)) * 10.0 ** random.integers(-4, 3, size=(2, SHAPE))
    parts[:, ::7] = 10.0 ** random.uniform(-most, most, size=parts[:, ::7].shape)
    parts[0, ::11] = random.choice([0.0, 1.0, -1.0, 0.5, 2.0, -0.0], size=len(parts[0, ::11]))
    parts[1, ::13] = random.choice([0.0, 1.0, -1.0, 0.5, 2.0, -0.0], size=len(parts[1, ::13]))
    numbers = np.empty(SHAPE, dtype.numpy)
    numbers.real, numbers.imag = parts
    return numbers


def edges(dtype: DType) -> np.ndarray:
    """All pairs of special parts."""
    info = np.finfo(dtype.part.numpy)
    parts = [0, 1, 2.5, 0.5, np.inf, np.nan, info.tiny, info.smallest_subnormal, 1e10, 3.7]
    signed = np.array([*parts, *np.negative(parts)], dtype.part.numpy)
    numbers = np.empty((len(signed), len(signed)), dtype.numpy)
    numbers.real, numbers.imag = signed[:, None], signed[None]
    return numbers.ravel()


def arguments(ufunc: np.ufunc, dtype: DType) -> list[np.ndarray]:
    """Random numbers, then special ones."""
    random = np.random.default_rng(ufunc.nin)
    special = edges(dtype)
    if ufunc.nin == 2:
        pairs = random.integers(0, len(special), size=(2, 4 * len(special)))
        return [np.concatenate([drawn(dtype, random), special[chosen]]) for chosen in pairs]
    return [np.concatenate([drawn(dtype, random), special])]


def compiled(ufunc: np.ufunc, operands: list[np.ndarray], target: str = "sync_llvm") -> np.ndarray:
    return arrayjit.jit(lambda *args: ufunc(*args), target=target)(*operands)


def parts_of(numbers: np.ndarray) -> np.ndarray:
    return np.stack([numbers.real, numbers.imag]) if numbers.dtype.kind == "c" else numbers[None]


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_give_numpys_bits(name: str, dtype: DType) -> None:
    operands = arguments(getattr(np, name), dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*operands)
    actual = compiled(getattr(np, name), operands)
    assert actual.dtype == expected.dtype
    for mine, theirs in zip(parts_of(actual), parts_of(expected), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        if mine.dtype.kind == "f":
            numbers = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(mine[numbers]), np.signbit(theirs[numbers]))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("name", BOUNDS)
def test_errors_are_within_the_bounds(name: str, dtype: DType) -> None:
    ufunc = getattr(np, name)
    operands = arguments(ufunc, dtype)
    actual = compiled(ufunc, operands)
    with np.errstate(all="ignore"):
        wide = np.complex128 if dtype.part.bits == 32 else np.clongdouble
        exact = ufunc(*(operand.astype(wide) for operand in operands))
        expected = ufunc(*operands)
        assert actual.dtype == expected.dtype
        size = np.abs(exact).astype(dtype.part.numpy)
        least = np.finfo(dtype.part.numpy).tiny * 8
        normal = np.isfinite(size) & (size > least) & np.isfinite(expected) & (np.abs(operands[0]) > least)
        error = np.abs(actual.astype(exact.dtype) - exact)[normal] / np.spacing(size[normal])
    assert normal.sum() > SHAPE / 2
    assert error.max() <= BOUNDS[name], operands[0][normal][error.argmax()]


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("name", sorted(BOUNDS.keys() - ROUNDED_ONCE))
def test_special_values_are_numpys(name: str, dtype: DType) -> None:
    ufunc = getattr(np, name)
    operands = [operand[SHAPE:] for operand in arguments(ufunc, dtype)]
    with np.errstate(all="ignore"):
        expected = parts_of(ufunc(*operands))
    actual = parts_of(compiled(ufunc, operands))
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    special = np.isinf(expected) | (expected == 0)
    if name in SIGNS_ARE_OPEN:
        special &= ~np.isnan(expected).any(axis=0)
    least = np.finfo(expected.dtype).tiny
    np.testing.assert_allclose(actual[special], expected[special], rtol=0, atol=least)
    np.testing.assert_array_equal(np.signbit(actual[special]), np.signbit(expected[special]))


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("name", AS_NUMPY)
def test_where_numpy_is_accurate(name: str, dtype: DType) -> None:
    ufunc = getattr(np, name)
    random = np.random.default_rng(3)
    operands = [
        (random.normal(size=(ufunc.nin, SHAPE, 2)) @ [1, 1j])[n].astype(dtype.numpy) for n in range(ufunc.nin)
    ]
    eps = np.finfo(dtype.part.numpy).eps
    np.testing.assert_allclose(compiled(ufunc, operands), ufunc(*operands), rtol=40 * eps, atol=eps)


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 7, 0.5, 2.5, 1j, 2 - 1j])
def test_powers_by_known_exponents(exponent: complex) -> None:
    z = drawn(COMPLEX[1], np.random.default_rng(0))[:200]
    z = z[(np.abs(z) > 1e-3) & (np.abs(z) < 1e3)]
    np.testing.assert_allclose(arrayjit.jit(lambda z: z**exponent)(z), z**exponent, rtol=1e-12, atol=0)


def test_powers_of_zero() -> None:
    def powers(z, w):
        return z**w, z**0, z**2

    z, w = np.zeros(3, complex), np.array([1 + 1j, 0, 2])
    for mine, theirs in zip(arrayjit.jit(powers)(z, w), powers(z, w), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("row", PART_OPS.values(), ids=str)
def test_parts_agree_with_their_references(row) -> None:
    """The interpreter runs the references, other targets the definitions."""
    if row.expand is None:
        return
    name = row.name.rpartition("_")[0]
    ufunc = getattr(np, name)
    operands = [np.array([0.5 + 1.25j, -2 + 0.125j]) for _ in range(ufunc.nin)]
    np.testing.assert_allclose(compiled(ufunc, operands), compiled(ufunc, operands, "interp"), rtol=1e-14)


REFUSED = (
    "floor_divide",
    "remainder",
    "fmod",
    "arctan2",
    "hypot",
    "copysign",
    "floor",
    "cbrt",
    "bitwise_and",
)


@pytest.mark.parametrize("name", REFUSED)
def test_functions_of_real_numbers_only(name: str) -> None:
    ufunc = getattr(np, name)
    operands = [np.ones(3, complex)] * ufunc.nin
    with pytest.raises(TypeError):
        ufunc(*operands)
    with pytest.raises(DTypeError, match=OPS[name].name):
        compiled(ufunc, operands)
