"""The error function, and what it lacks to 1.

The one of float32s is a polynomial in pieces. The numbers up to where it is 1 are cut into 8 of one length,
the first and the last half as long. In each, it is a polynomial in the distance from a number of the piece,
its centre: of the first that is 0, so that small results are relatively exact, of the last the end. Other
centres are such that the error function of them is almost a float32, lest rounding it count. The centres and
the coefficients are tables, of which one instruction chooses a vector (see `tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .dtype import F32, F64
from .elementary import WIDTHS, clamped, polynomial, usual_exp
from .tables import Table
from .terms import Term, definition, fma, where

__all__ = ["PIECES", "erf", "erfc"]

_ONE_FROM = 3.92
_LAST = 7
_DEGREE = 6
# The centres, then the coefficients from the constant up. Those of the first power are less 1: the slope at 0
# is next to the middle of two float32s, and what it exceeds 1 by has three bits more.
_PIECES = (
    (
        0.0, 0.5600034594535828, 1.1199896335601807, 1.6800304651260376, 2.2399754524230957,
        2.7999346256256104, 3.3599045276641846, 3.9200000762939453,
    ),
    (
        0.0, 0.5716186165809631, 0.886784553527832, 0.9824948310852051, 0.998464047908783,
        0.9999249577522278, 0.9999979734420776, 1.0,
    ),
    (
        0.12837916612625122, -0.17537052929401398, -0.6781253218650818, -0.9329103231430054,
        -0.9925289154052734, -0.9995555877685547, -0.9999858736991882, -0.999992311000824,
    ),
    (
        -7.892363669270708e-07, -0.4617953300476074, -0.36049649119377136, -0.1127132847905159,
        -0.01673516072332859, -0.00124420749489218, -4.549016375676729e-05, 0.0003037556598428637,
    ),
    (
        -0.37608110904693604, -0.10251999646425247, 0.16182461380958557, 0.10391131043434143,
        0.022505570203065872, 0.002170470543205738, 0.00010073417070088908, 0.004590049386024475,
    ),
    (
        -0.0008007285068742931, 0.18260221183300018, 0.029564855620265007, -0.049686964601278305,
        -0.019624760374426842, -0.0026290540117770433, -0.00021928739442955703, 0.031295523047447205,
    ),
    (
        0.11890239268541336, -0.008874524384737015, -0.06045001372694969, 0.0013755718246102333,
        0.010714407078921795, 0.002382697770372033, 0.00019472396525088698, 0.09856782108545303,
    ),
    (
        -0.020784031599760056, -0.04583457484841347, 0.014221536926925182, 0.011997860856354237,
        -0.002743267919868231, -0.0014495971845462918, 0.00037941979826427996, 0.11649729311466217,
    ),
)  # fmt: skip
_NAMES = ("raw_erf_centre", *(f"raw_erf_{power}" for power in range(_DEGREE + 1)))
PIECES: Mapping[str, Table] = {name: {F32: column} for name, column in zip(_NAMES, _PIECES, strict=True)}
"""The tables, by the names of the ops that choose from them."""

# For x from 0 to 5.93, the fourth root of erfc(x) is 1 - x (1 + this polynomial) / 4.
_ERF64 = (
    0.1283791670955126, 0.4774648292756852, -0.061848925312734615, -0.07450578804618331,
    0.00488805191215062, 0.007784962432462344, -0.0008670232745129378, -0.0004867744843305683,
    0.00011779937671207552, -2.2431437084484187e-06, -4.1596469315074854e-06, 3.0723771965022095e-06,
    -1.058653864238834e-06, -1.935942729789658e-07, 3.860410482249359e-07, -2.2484470341159878e-07,
    8.803716308557202e-08, -2.6437483339488008e-08, 6.328888800724936e-09, -1.218982413403517e-09,
    1.882377795658798e-10, -2.3024245692664288e-11, 2.182837230589397e-12, -1.5477582164152109e-13,
    7.725810820937235e-15, -2.4208263860300607e-16, 3.580298385631145e-18,
)  # fmt: skip
# For x below 0.5, erf x is x + x times this polynomial in x**2.
_ERF_SMALL = (
    0.12837916709551256, -0.3761263890318355, 0.11283791670945252, -0.02686617064327605,
    0.005223977607422267, -0.000854832598964648, 0.00012055295319192592, -1.4924744641977462e-05,
    1.6447517456111443e-06, -1.620917450493188e-07, 1.372297131151967e-08, -7.801181493644965e-10,
)  # fmt: skip
_ERFC = (
    1.021582705242023, -0.6871606844138105, 0.27947209255605804, -0.0364422315068889, -0.02151066188976981,
    0.006479185068398158, 0.0030906120684868477, -0.0008372960826069453, -0.0006630736566873186,
    3.4371771095311673e-05, 0.00014447211634606167, 3.414558200707893e-05, -2.1703266275430428e-05,
    -1.610061356873843e-05, -1.1064612618305796e-06, 3.5663583349576547e-06, 1.987742182836815e-06,
    1.8003670431103553e-07, -6.310799959272412e-07, -5.473403156126513e-07, 1.631515850407315e-07,
    2.208057493513803e-07, -8.263882358530339e-08,
)  # fmt: skip
_ERFC_SHORT = (
    1.021582706580951, -0.687160645425027, 0.27947189951599605, -0.03644373978362466, -0.021506259427981306,
    0.006494935836090958, 0.0030553723066097005, -0.0008996216745107966, -0.000546081828639459,
    0.00012650484877860965,
)  # fmt: skip


def _erf_small(x: Term) -> Term:
    return fma(x, polynomial(x * x, _ERF_SMALL), x)


def _erfc_large(size: Term, coefficients: tuple[float, ...], exp_of: Callable[[Term], Term]) -> Term:
    """`e**-(size**2) Q(t) / (size + 2)`; what the square loses to rounding counts to first order."""
    shrink = 1.0 / (size + 2.0)
    t = (size - 2.0) * shrink
    square = size * size
    lost = fma(size, size, -square)
    scale = polynomial(t, coefficients) * shrink
    return exp_of(-square) * fma(scale, -lost, scale)


@definition
def erf(x: Term) -> Term:
    return _erf_single(x) if x.dtype is F32 else _erf_double(abs(x)).op("copysign", x)


def _erf_single(x: Term) -> Term:
    size = abs(x)
    near = where(size > _ONE_FROM, _ONE_FROM, size)
    piece = fma(near, _LAST / _ONE_FROM, WIDTHS[F32].rounder).op("bits")
    distance = near - piece.op("raw_erf_centre")
    slope = piece.op(f"raw_erf_{_DEGREE}")
    for power in range(_DEGREE - 1, 0, -1):
        slope = fma(slope, distance, piece.op(f"raw_erf_{power}"))
    return fma(slope, distance, piece.op("raw_erf_0") + distance).op("copysign", x)


def _erf_double(size: Term) -> Term:
    """`1 - (1 - t)**2` with `2 t = w - w**2 / 8`, in which no digits cancel. What is lost when
    `twice` is rounded counts to first order."""
    near = where(size > 5.93, 5.93, size)
    growth = polynomial(near, _ERF64)
    w = fma(near, growth, near)
    rest = fma(near, growth, w * w * -0.125)
    twice = near + rest
    lost = (near - twice) + rest
    t = twice * 0.5
    return twice + fma(t, -t, fma(lost, -t, lost))


@definition
def erfc(x: Term) -> Term:
    if x.dtype is F32:
        wide = x.cast(F64)
        return _erfc(wide, 10.6, _ERFC_SHORT, usual_exp).cast(F32)
    return _erfc(x, 27.5, _ERFC, lambda power: power.op("exp"))


def _erfc(x: Term, top: float, coefficients: tuple[float, ...], exp_of: Callable[[Term], Term]) -> Term:
    size = abs(x)
    large = _erfc_large(clamped(size, 0.5, top), coefficients, exp_of)
    return where(size < 0.5, 1.0 - _erf_small(x), where(x < 0, 2.0 - large, large))
