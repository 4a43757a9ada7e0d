"""`np.fft`: NumPy's own code for axes, lengths and norms, over transforms of rows that are recorded here.

A row of n numbers is transformed by the prime factors of n, two twos at a time, in Stockham's order: after
each factor the rows of what is done are longer, and where they stand needs no reversal of digits. A prime
factor beyond `_LARGEST_FACTOR` is left to Bluestein's convolution, whose length has small factors. Numbers
are pairs of arrays, of real and of imaginary parts. Roots of unity are constants of the program, exact to
rounding. Sums follow other orders than NumPy's: results are within 16 units in the last place of the greatest
one for rows of up to 2**17 numbers.
"""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

import numpy as np
from numpy.fft import _pocketfft_umath as of_rows  # type: ignore[attr-defined]
from numpy.fft._pocketfft import _cook_nd_args  # type: ignore[attr-defined]

from ...errors import DTypeError
from ...ir.expr import Apply, Expr
from ...ir.index import Affine
from ...ir.ops import OPS
from ..record.registry import AnyCallable, implements
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray, describe
from ..values.elementwise import as_array, broadcast, operand_at, shape_of, store, views_of
from ..values.extents import known_number
from ..values.integer import number
from ..values.numbers import integer_of
from .adopted import numpy_program

__all__: list[str] = []

_LARGEST_FACTOR = 200
"""Products with the matrices of 199 cells take 0.6 to 0.8 of the time of convolutions, of 67 cells 0.3 to
0.4, and are four times as fast to compile."""
_WRITTEN_OUT = 13

_ADOPTED: tuple[Any, ...] = (
    np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft,
    np.fft.rfft2, np.fft.irfft2, np.fft.rfftn, np.fft.irfftn, np.fft.fftshift, np.fft.ifftshift,
)  # fmt: skip

_OF_ONE_AXIS: tuple[Any, ...] = _ADOPTED[:6]


def _adopted(function: Any) -> AnyCallable:
    """NumPy's own code, which has to know how many numbers it transforms."""
    program = numpy_program(function.__wrapped__)

    def transform(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        array = as_array(a)
        if n is None and -array.ndim <= operator.index(axis) < array.ndim:
            number(array.cells.shape[axis], array.record, "how many numbers are transformed", _LENGTH)
        return program(array, n, axis, norm, out)

    return transform if function in _OF_ONE_AXIS else program


_LENGTH = "pass n=, the length of the transform"

for _function in _ADOPTED:
    implements(_function)(_adopted(_function))


@numpy_program
def _along_axes(a: Any, s: Any, axes: Any, norm: Any, out: Any, one: Any) -> Any:
    """One axis after another, the last one first."""
    cells: Any = as_array(a)
    counts, places = _cook_nd_args(cells, s, axes)
    for count, place in reversed(list(zip(counts, places, strict=True))):
        cells = one(cells, n=count, axis=place, norm=norm, out=out)
    return cells


def _of_several_axes(name: str, one: Any, among: Any) -> AnyCallable:
    def transform(a: Any, s: Any = None, axes: Any = among, norm: Any = None, out: Any = None) -> Any:
        return _along_axes(a, s, axes, norm, out, one)

    transform.__name__ = transform.__qualname__ = name
    return transform


implements(np.fft.fftn)(_of_several_axes("fftn", np.fft.fft, None))
implements(np.fft.ifftn)(_of_several_axes("ifftn", np.fft.ifft, None))
implements(np.fft.fft2)(_of_several_axes("fft2", np.fft.fft, (-2, -1)))
implements(np.fft.ifft2)(_of_several_axes("ifft2", np.fft.ifft, (-2, -1)))


# What NumPy's own code computes rows by: each writes the transform of `a` along an axis, scaled, into `out`.


@implements(of_rows.fft)
def forward(a: Any, scale: Any, /, *, axes: Any, out: Any) -> Any:
    return _of_complex(a, scale, axes[0][0], out, -1)


@implements(of_rows.ifft)
def backward(a: Any, scale: Any, /, *, axes: Any, out: Any) -> Any:
    return _of_complex(a, scale, axes[0][0], out, 1)


@numpy_program
def _of_complex(a: Any, scale: Any, axis: int, out: Any, sign: int) -> Any:
    _require_kind(out, "c", "out")
    count = _known(out.shape[axis])
    given = _rows(a, axis, count)
    return _delivered(_transformed(_parts(given, out.real.dtype), sign), scale, axis, out)


@implements(of_rows.rfft_n_even)
def of_real_even(a: Any, scale: Any, /, *, axes: Any, out: Any) -> Any:
    return _of_real(a, scale, axes[0][0], out, 2)


@implements(of_rows.rfft_n_odd)
def of_real_odd(a: Any, scale: Any, /, *, axes: Any, out: Any) -> Any:
    return _of_real(a, scale, axes[0][0], out, 1)


@numpy_program
def _of_real(a: Any, scale: Any, axis: int, out: Any, fewer: int) -> Any:
    _require_kind(a, "biuf", "a")
    _require_kind(out, "c", "out")
    kept = _known(out.shape[axis])
    given = _rows(a, axis, 2 * kept - fewer)
    if fewer == 2:
        return _delivered(_spectrum_of_pairs(given.astype(out.real.dtype)), scale, axis, out)
    real, imaginary = _transformed(_parts(given, out.real.dtype), -1)
    return _delivered((real[..., :kept], imaginary[..., :kept]), scale, axis, out)


@numpy_program
def _spectrum_of_pairs(rows: Any) -> Any:
    """Of an even count of real numbers, each two of which are transformed as one complex number: its mirror
    image tells what the first ones and what the second ones give."""
    half = _known(rows.shape[-1]) // 2
    real, imaginary = _transformed((rows[..., ::2], rows[..., 1::2]), -1)
    a, b = real[..., 1:], imaginary[..., 1:]
    c, d = a[..., ::-1], b[..., ::-1]
    roots = (part[1:] for part in _turns(-1, half, 2 * half, rows.dtype))
    along, across = _product(((b + d) * 0.5, (c - a) * 0.5), roots)
    first, height = real[..., :1], imaginary[..., :1]
    nothing = np.zeros_like(first)
    return (
        np.concatenate([first + height, (a + c) * 0.5 + along, first - height], axis=-1),
        np.concatenate([nothing, (b - d) * 0.5 + across, nothing], axis=-1),
    )


@implements(of_rows.irfft)
def to_real(a: Any, scale: Any, /, *, axes: Any, out: Any) -> Any:
    return _to_real(a, scale, axes[0][0], out)


@numpy_program
def _to_real(a: Any, scale: Any, axis: int, out: Any) -> Any:
    """The rest of the spectrum is the mirror image of what is given; the first number and, of an even count,
    the last one count as real."""
    _require_kind(out, "f", "out")
    count = _known(out.shape[axis])
    half, heights = _parts(_rows(a, axis, count // 2 + 1), out.dtype)
    if count % 2 == 0:
        return _delivered((_pairs_of_spectrum(half, heights),), scale, axis, out)
    last = (count + 1) // 2
    edge = np.zeros_like(heights[..., :1])
    between = heights[..., 1:last]
    real = np.concatenate([half, half[..., 1:last][..., ::-1]], axis=-1)
    imaginary = np.concatenate([edge, between, -between[..., ::-1]], axis=-1)
    return _delivered((_transformed((real, imaginary), 1)[0],), scale, axis, out)


@numpy_program
def _pairs_of_spectrum(real: Any, imaginary: Any) -> Any:
    """The inverse of `_spectrum_of_pairs`."""
    half = _known(real.shape[-1]) - 1
    a, b = real[..., 1:-1], imaginary[..., 1:-1]
    c, d = a[..., ::-1], b[..., ::-1]
    roots = (part[1:] for part in _turns(1, half, 2 * half, real.dtype))
    along, across = _product((a - c, b + d), roots)
    first, last = real[..., :1], real[..., -1:]
    pairs = (
        np.concatenate([first + last, a + c - across], axis=-1),
        np.concatenate([first - last, b - d + along], axis=-1),
    )
    return np.stack(_transformed(pairs, 1), axis=-1).reshape(*real.shape[:-1], 2 * half)


def _require_kind(value: Any, kinds: str, name: str) -> None:
    array: SymbolicArray = as_array(value)
    if array.dtype.kind not in kinds:
        raise DTypeError(
            f"np.fft: {name} is of dtype {array.dtype}, which 'same_kind' does not cast",
            details=(describe(array),),
            fix="pass x.real, or an out= of the result's dtype",
        )


def _known(extent: Any) -> int:
    if type(extent) is int:
        return extent
    return number(extent.value, current_trace(), "the length of a Fourier transform")


@numpy_program
def _rows(a: Any, axis: int, count: int) -> Any:
    """The axis as the last one, cut to `count` numbers or filled up with zeros."""
    rows = np.moveaxis(np.asarray(a), axis, -1)
    given = known_number(integer_of(rows.shape[-1], current_trace()), "how many numbers are transformed")
    if given is None:
        filled: Any = np.zeros((*rows.shape[:-1], count), rows.dtype)
        kept = min(rows.shape[-1], count)
        filled[..., :kept] = rows[..., :kept]
        return filled
    missing = count - given
    if missing <= 0:
        return rows[..., :count]
    return np.concatenate([rows, np.zeros((*rows.shape[:-1], missing), rows.dtype)], axis=-1)


@numpy_program
def _parts(rows: Any, dtype: Any) -> Any:
    """The real and the imaginary parts, of that dtype."""
    real = rows.real.astype(dtype)
    return real, rows.imag.astype(dtype) if rows.dtype.kind == "c" else np.zeros_like(real)


@numpy_program
def _delivered(parts: Any, scale: Any, axis: int, out: Any) -> Any:
    rows = np.moveaxis(out, axis, -1)
    targets = (rows.real, rows.imag) if len(parts) == 2 else (rows,)
    for target, part in zip(targets, parts, strict=True):
        target[...] = part if scale == 1 else part * scale
    return out


@numpy_program
def _transformed(parts: Any, sign: int) -> Any:
    """Each row's sums over k of `row[k] * exp(sign * 2j * pi * k * q / count)`, for q from 0."""
    shape = parts[0].shape
    count = _known(shape[-1])
    done, left = 1, count
    for factor in _factors(count):
        left //= factor
        real, imaginary = (part.reshape(-1, factor, left, done) for part in parts)
        if factor > _WRITTEN_OUT:
            roots = _grid(sign, factor, done, factor * done, real.dtype)
            turned = _product((real, imaginary), roots) if done > 1 else (real, imaginary)
            parts = (_by_table if factor <= _LARGEST_FACTOR else _by_chirps)(turned, factor, sign)
        else:
            room = (len(real), left, factor, done)
            parts = np.empty(room, real.dtype), np.empty(room, real.dtype)
            _written_out((real, imaginary), factor, done, sign, parts)
        done *= factor
    return parts[0].reshape(shape), parts[1].reshape(shape)


def _product(one: Any, other: Any) -> Any:
    (a, b), (c, d) = one, other
    return _of_products("subtract", a, c, b, d), _of_products("add", a, d, b, c)


def _of_products(name: str, *factors: Any) -> SymbolicArray:
    """The sum or the difference of two products, in one statement: a transform has hundreds of them."""
    cells, trace = [as_array(factor) for factor in factors], current_trace()
    dtype = cells[0].element_type

    def body(position: tuple[Affine, ...]) -> Expr:
        a, b, c, d = (operand_at(factor, position, dtype) for factor in cells)
        products = (Apply(OPS["multiply"], pair, dtype) for pair in ((a, b), (c, d)))
        return Apply(OPS[name], tuple(products), dtype)

    return store(name, trace, broadcast(*map(shape_of, cells)), dtype, body, like=views_of(cells))


def _written_out(parts: Any, factor: int, done: int, sign: int, into: Any) -> None:
    """The transforms along axis 1, of a few numbers, which end up along axis 2 of `into`."""
    pairs: list[Any] = [tuple(part[:, k] for part in parts) for k in range(factor)]
    if done > 1:
        for k in range(1, factor):
            pairs[k] = _product(pairs[k], _turns(sign * k, done, factor * done, parts[0].dtype))
    _combine(pairs, sign, [tuple(part[:, :, q] for part in into) for q in range(factor)])


def _combine(parts: Any, sign: int, into: Any) -> None:
    """Store the transform of a few numbers, each of which is a pair of arrays."""
    if len(parts) == 2:
        one, other = parts
        _plus(one, other, into[0])
        _minus(one, other, into[1])
    elif len(parts) == 4:
        even, (a, b) = _plus(*parts[::2]), _minus(*parts[::2])
        odd, (c, d) = _plus(*parts[1::2]), _minus(*parts[1::2])
        left, right = into[1::2] if sign < 0 else into[:0:-2]
        _plus(even, odd, into[0])
        _minus(even, odd, into[2])
        _plus((a, b), (d, -c), left)
        _minus((a, b), (d, -c), right)
    else:
        _odd(parts, sign, into)


def _plus(one: Any, other: Any, into: Any = (None, None)) -> Any:
    return tuple(np.add(a, b, out=out) for a, b, out in zip(one, other, into, strict=True))


def _minus(one: Any, other: Any, into: Any = (None, None)) -> Any:
    return tuple(np.subtract(a, b, out=out) for a, b, out in zip(one, other, into, strict=True))


def _odd(parts: Any, sign: int, into: Any) -> None:
    """Items that are as far from the first one share their cosines, and have opposite sines."""
    count = len(parts)
    cosines, sines = _roots(np.arange(count), count)
    first, *rest = parts
    pairs = list(zip(rest[: count // 2], rest[::-1], strict=False))
    sums, gaps = [_plus(*pair) for pair in pairs], [_minus(*pair) for pair in pairs]
    total = first
    for pair in sums[:-1]:
        total = _plus(total, pair)
    _plus(total, sums[-1], into[0])
    for q in range(1, count // 2 + 1):
        (real, imaginary), across, along = first, 0.0, 0.0
        for k, ((a, b), (c, d)) in enumerate(zip(sums, gaps, strict=True), 1):
            cosine, sine = float(cosines[k * q % count]), float(sign * sines[k * q % count])
            real, imaginary = real + a * cosine, imaginary + b * cosine
            across, along = across + d * sine, along + c * sine
        left, right = into[q], into[-q]
        np.subtract(real, across, out=left[0])
        np.add(imaginary, along, out=left[1])
        np.add(real, across, out=right[0])
        np.subtract(imaginary, along, out=right[1])


@numpy_program
def _by_table(parts: Any, count: int, sign: int) -> Any:
    """The transforms along axis 1, of an odd count, by products with the matrices of cosines and of sines: of
    items that are as far from the first one the sums take the former, the gaps the latter."""
    half = count // 2
    cosines, sines = _grid(sign, half + 1, half + 1, count, parts[0].dtype)
    cosines, sines = cosines[1:, 0, 1:], sines[1:, 0, 1:]
    (real, imaginary), (c, d) = parts, (part[:, :half:-1] for part in parts)
    a, b = real[:, 1 : half + 1], imaginary[:, 1 : half + 1]
    along, height = (np.tensordot(cosines, one, (1, 1)) for one in (a + c, b + d))
    across, rise = (np.tensordot(sines, one, (1, 1)) for one in (b - d, a - c))
    along, height = along + real[:, 0], height + imaginary[:, 0]
    found = (
        (np.sum(real, axis=1)[None], along - across, (along + across)[::-1]),
        (np.sum(imaginary, axis=1)[None], height + rise, (height - rise)[::-1]),
    )
    return tuple(np.moveaxis(np.concatenate(items), 0, 2) for items in found)


@numpy_program
def _by_chirps(parts: Any, count: int, sign: int) -> Any:
    """The transforms along axis 1, by convolutions."""
    rows = tuple(np.moveaxis(part, 1, -1) for part in parts)
    return tuple(np.moveaxis(part, -1, 2) for part in _convolved(rows, count, sign))


@numpy_program
def _convolved(parts: Any, count: int, sign: int) -> Any:
    """Bluestein's: 2kq is kk + qq - (k - q)(k - q), so the sums are a convolution with a chirp."""
    length = _length(2 * count - 1)
    chirp, spectrum = _chirp(sign, count, length, parts[0].dtype)
    given = [_rows(part, -1, length) for part in _product(parts, chirp)]
    real, imaginary = _transformed(_product(_transformed(given, -1), spectrum), 1)
    return _product((real[..., :count], imaginary[..., :count]), chirp)


def _length(least: int) -> int:
    """Of the products of fours, twos, threes and fives from that number on, that of the fewest operations."""
    most = 1 << (least - 1).bit_length()
    odd: list[int] = [5**fives * 3**threes for fives, threes in product(range(most.bit_length()), repeat=2)]
    found = [one << (-(-least // one) - 1).bit_length() for one in odd if one <= most]
    return min(found, key=lambda length: length * sum(map(_COSTS.__getitem__, _factors(length))))


_COSTS = {4: 17, 2: 8, 3: 16, 5: 32}
"""Of each number, in halves."""


def _factors(count: int) -> list[int]:
    """The prime factors in order, pairs of twos as fours."""
    found = []
    factor = 4
    while count > 1:
        while count % factor == 0:
            found.append(factor)
            count //= factor
        factor = {4: 2, 2: 3}.get(factor, factor + 2)
        if count > 1 and factor > 2 and factor * factor > count:
            factor = count
    return found


def _turns(step: int, count: int, whole: int, dtype: Any) -> Any:
    """By how much the parts of a step are turned: `count` roots of the order `whole`, every `step`-th."""
    return _constants(_roots(step * np.arange(count), whole), dtype)


def _grid(sign: int, count: int, steps: int, whole: int, dtype: Any) -> Any:
    """By how much `count` parts of a step are turned in each of so many steps, with an axis between."""
    powers = sign * np.arange(count)[:, None, None] * np.arange(steps)
    return _constants(_roots(powers, whole), dtype)


def _chirp(sign: int, count: int, length: int, dtype: Any) -> Any:
    """The chirp, and the spectrum of its conjugate around the first of `length` places, for a mean."""
    cosines, sines = _roots(sign * np.arange(count) ** 2, 2 * count)
    around = np.zeros(length, complex)
    around[:count] = cosines - 1j * sines
    around[length - count + 1 :] = around[count - 1 : 0 : -1]
    spectrum = np.fft.fft(around) / length
    return _constants((cosines, sines), dtype), _constants((spectrum.real, spectrum.imag), dtype)


def _roots(powers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The parts of `exp(2j * pi * powers / count)`, from angles of an eighth of a circle at most, so that
    what is symmetric is so exactly."""
    turns = powers % count
    quarters = (8 * turns + count) // (2 * count)
    angles = (4 * turns - quarters * count) * (np.pi / 2 / count)
    cosines, sines = np.cos(angles), np.sin(angles)
    real = np.choose(quarters % 4, [cosines, -sines, -cosines, sines])
    return real, np.choose(quarters % 4, [sines, cosines, -sines, -cosines])


def _constants(parts: tuple[np.ndarray, np.ndarray], dtype: Any) -> Any:
    """One table for all transforms of a program that need such numbers."""
    trace = current_trace()
    tables = (View.whole(trace.constant(part.astype(dtype)), writeable=False) for part in parts)
    return tuple(SymbolicArray(table, trace) for table in tables)
