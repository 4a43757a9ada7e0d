"""The cells of the op table's tests: which dtypes an op is tried on, and with which numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import ml_dtypes
import numpy as np

from arrayjit.errors import DTypeError
from arrayjit.ir.dtype import BOOL, DTYPES, DType, from_numpy
from arrayjit.ir.ops import OPS, Op
from arrayjit.ir.resolve import Argument, resolve

WEAK = (bool, int, float)
MIXED_PAIRS = (("i64", "u64"), ("u64", "i64"), ("i8", "u8"), ("i32", "f32"), ("f32", "f64"), ("bool", "i16"))


def signatures(op: Op) -> Iterator[tuple[Argument, ...]]:
    """Every dtype alone, pairs of one dtype, a few mixed pairs, and each dtype beside Python scalars."""
    if op.name in ("where", "rarely"):
        yield from ((condition, *pair) for condition in (BOOL, DTYPES[1]) for pair in _pairs())
    elif op.arity == 1:
        yield from ((dtype,) for dtype in DTYPES)
    elif op.arity == 2:
        yield from _pairs()
    else:
        yield from ((*pair, pair[0]) for pair in _pairs())


def _pairs() -> Iterator[tuple[Argument, Argument]]:
    rows = {dtype.short: dtype for dtype in DTYPES}
    yield from ((dtype, dtype) for dtype in DTYPES)
    yield from ((rows[left], rows[right]) for left, right in MIXED_PAIRS)
    for dtype, scalar in product(DTYPES, WEAK):
        yield dtype, scalar
        yield scalar, dtype


@dataclass(frozen=True)
class Cells:
    """What an op computes on: the distinct resolved signatures; how many requests found one, or none."""

    computed: tuple[tuple[tuple[DType, ...], DType], ...]
    accepted: int
    refused: int


def cells(op: Op) -> Cells:
    found: dict[tuple[tuple[DType, ...], DType], None] = {}
    accepted = refused = 0
    for signature in signatures(op):
        try:
            found[resolve(op, signature)] = None
            accepted += 1
        except DTypeError:
            refused += 1
    return Cells(tuple(found), accepted, refused)


def user_ops() -> list[Op]:
    """All rows but those that are undefined for some operands and stand in definitions only."""
    return [op for op in OPS.values() if not op.name.startswith("raw_")]


def edges(dtype: DType) -> np.ndarray:
    """Zeros, units, extremes, subnormals, infinities, NaN, and numbers between."""
    if dtype is BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        wanted = [
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            12,
            31,
            32,
            63,
            64,
            100,
            info.max,
            info.max - 1,
            info.min,
            info.min + 1,
        ]
        wanted += [-1, -2, -3, -7, -8, -12, -100] if info.min else []
        return np.array([number for number in wanted if info.min <= number <= info.max], dtype.numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    least = info.smallest_subnormal
    positive = [
        0,
        0.1,
        0.5,
        1 - info.eps / 2,
        1,
        1 + info.eps,
        1.5,
        2,
        2.5,
        3,
        3.14159265,
        5,
        7.25,
        20,
        88,
        100,
    ]
    positive += [1e-3, 1e-9, 1e4, 1e10, 1e30, info.max, info.tiny, least, 3 * least, np.inf, np.nan]
    positive += [709.5] if dtype.bits == 64 else [88.6, 103.5]
    with np.errstate(over="ignore"):
        return np.concatenate([positive, np.negative(positive)]).astype(dtype.numpy)


def grid(dtypes: Sequence[DType]) -> tuple[np.ndarray, ...]:
    """Every combination of edge values."""
    return tuple(axis.ravel() for axis in np.meshgrid(*map(edges, dtypes), indexing="ij"))


def sample(dtypes: Sequence[DType], size: int) -> tuple[np.ndarray, ...]:
    """Edge values (all combinations, if there is room) and random numbers, well mixed."""
    rng = np.random.default_rng(0)
    combinations = grid(dtypes)
    chosen = rng.permutation(len(combinations[0]))[:size]
    fill = size - len(chosen)
    mixed = rng.permutation(size)
    return tuple(
        np.concatenate([edge[chosen], _random(rng, dtype, fill)])[mixed]
        for edge, dtype in zip(combinations, dtypes, strict=True)
    )


def _random(rng: np.random.Generator, dtype: DType, size: int) -> np.ndarray:
    if not dtype.is_float:
        return (
            rng.integers(0, 256, size * dtype.itemsize, np.uint8)
            .view(f"u{dtype.itemsize}")
            .astype(dtype.numpy)
        )
    narrow, wide = rng.uniform(-2, 2, size), rng.normal(size=size) * 10.0 ** rng.integers(-30, 30, size)
    with np.errstate(over="ignore"):
        return np.where(rng.random(size) < 0.5, narrow, wide).astype(dtype.numpy)


def assert_same(
    got: np.ndarray, want: np.ndarray, args: Sequence[np.ndarray], *, zero_signs: bool = True
) -> None:
    """Bit for bit, apart from which NaN a NaN is; without `zero_signs` -0.0 is 0.0."""
    assert got.dtype == want.dtype
    same = got == want
    if from_numpy(want.dtype).is_float:
        if zero_signs:
            same &= np.signbit(got) == np.signbit(want)
        same |= np.isnan(got) & np.isnan(want)
    _report(same, got, want, args)


def assert_within(
    got: np.ndarray, exact: np.ndarray, ulp: float, args: Sequence[np.ndarray], scale: np.ndarray
) -> None:
    """Within `ulp` units in the last place of `exact`, which has a wider dtype where there is one; a unit is
    that of the larger of `exact` and `scale`."""
    info = ml_dtypes.finfo(got.dtype)
    with np.errstate(over="ignore"):
        rounded = exact.astype(got.dtype)
    _, exponent = np.frexp(np.maximum(np.abs(exact), scale))
    unit = np.ldexp(np.ones_like(exact), np.maximum(exponent - 1, info.minexp) - info.nmant)
    with np.errstate(invalid="ignore"):
        near = np.abs(got.astype(exact.dtype) - exact) <= ulp * unit
    same_sign = np.signbit(got) == np.signbit(exact)
    overflow = (np.abs(exact) >= info.max) & (np.abs(got) >= info.max) & same_sign
    same = (near & np.isfinite(got) & ((got != 0) | same_sign | (scale > 0))) | overflow
    same |= (got == rounded) & same_sign | (np.isnan(got) & np.isnan(rounded))
    _report(same, got, rounded, args)


def _report(same: np.ndarray, got: np.ndarray, want: np.ndarray, args: Sequence[np.ndarray]) -> None:
    wrong = np.flatnonzero(~np.asarray(same))
    shown = [f"  f{tuple(a[k] for a in args)} = {got[k]!r}, not {want[k]!r}" for k in wrong[:6]]
    kinds = ", ".join(repr(from_numpy(a.dtype)) for a in args)
    assert not len(wrong), f"{len(wrong)} of {len(got)} wrong on ({kinds})\n" + "\n".join(shown)


def exact(op: Op, args: Sequence[np.ndarray]) -> np.ndarray:
    """The op in a wider dtype: float64 for smaller floats, long double for float64 where `ref` knows it."""
    wide = np.float64 if args[0].dtype.itemsize < 8 or op.name in ("erf", "erfc") else np.longdouble
    with np.errstate(all="ignore"):
        return np.asarray(op.ref(*(arg.astype(wide) for arg in args)))


def scale(op: Op, args: Sequence[np.ndarray]) -> np.ndarray:
    """The magnitude that errors are measured against beside the result's own: where terms cancel (`x` and
    `log(1 + exp(y - x))`), that of the terms."""
    if op.name in ("logaddexp", "logaddexp2"):
        with np.errstate(invalid="ignore"):
            largest = np.maximum(np.abs(args[0]), np.abs(args[1]))
        return np.where(np.isfinite(largest), largest, 0)
    return np.zeros(args[0].shape)


# For float64 the reference is no wider than the result, and errs itself.
REFERENCE_ERROR = {"erf": 1.0, "erfc": 2.5}

# Of two zeros NumPy's fmax takes sometimes the first, sometimes the second, by where they stand.
ANY_ZERO = ("fmax", "fmin")


ONE_BY_ONE = {"reciprocal"}
"""Of the int32 zero NumPy's loops on ARM64 give another one at the end of an array."""


def by_element(op: Op, args: Sequence[np.ndarray]) -> np.ndarray:
    """What NumPy gives for each element alone."""
    return np.array([op.ref(*numbers) for numbers in zip(*args, strict=True)], op.ref(*args).dtype)


def check(op: Op, got: np.ndarray, args: Sequence[np.ndarray]) -> None:
    """The op's promise: NumPy's bits, or the error that its row publishes."""
    allowed = op.error(from_numpy(args[0].dtype)) if from_numpy(args[0].dtype).is_float else 0.0
    if allowed:
        assert_within(
            got, exact(op, args), allowed + REFERENCE_ERROR.get(op.name, 0.0), args, scale(op, args)
        )
    else:
        with np.errstate(all="ignore"):
            want = by_element(op, args) if op.name in ONE_BY_ONE else np.asarray(op.ref(*args))
        assert_same(got, want, args, zero_signs=op.name not in ANY_ZERO)
