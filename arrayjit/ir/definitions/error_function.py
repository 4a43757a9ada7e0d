"""The error function, and what it lacks to 1.

It is a polynomial in pieces: the numbers up to where it is 1 are cut into 8. In each, it is a polynomial in
the distance from a number of the piece, its centre: of the first that is 0, so that small results are
relatively exact. Other centres are such that the error function of them is almost a float, lest rounding it
count. The centres and the coefficients are tables, of which one instruction chooses a vector (see `tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..dtype import F32, F64
from .elementary import WIDTHS, clamped, horner, polynomial, usual_exp
from .tables import Table
from .terms import Term, definition, fma, where

__all__ = ["PIECES", "erf", "erfc"]

_ONE_FROM = 3.92
_LAST = 7
_DEGREE = 6
# The pieces of float32s are of one length, the first and the last half as long; the last centre is the end.
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
# The pieces of float64s begin where a parabola rounds to the next integer: they are the longer, the less the
# function changes. Their centres are in the middle, but for the first; the slope there is the one that is
# less 1. The lower halves of the centres, and of coefficients that few bits are enough of, are zero: where
# registers are short, these need not be chosen.
_ONE_FROM_DOUBLE = 5.925
_PARABOLA = (-0.42, 2.09232, -0.12758)
_DEGREE_DOUBLE = 13
_PIECES_DOUBLE = (
    (
        0.0, 0.7142386436462402, 1.2595367431640625, 1.849858283996582, 2.5033512115478516,
        3.2344837188720703, 4.119686126708984, 5.250160217285156,
    ),
    (
        0.0, 0.6875458997542606, 0.9251290253751315, 0.9911058107237115, 0.9996002870283031,
        0.9999952207279847, 0.9999999943267808, 0.9999999999998871,
    ),
    (
        0.12837916709551253, 0.67749398639164, 0.23092770801755577, 0.03683917605901806,
        0.0021420648098328717, 3.227870961834263e-05, 4.804962303276559e-08, 1.2063505539408521e-12,
    ),
    (
        2.6870487176695926e-14, -0.48389238591886435, -0.2908619332627668, -0.06814725500838083,
        -0.005362340536914892, -0.0001044049607232719, -1.9794936636426977e-07, -6.330443009652306e-12,
    ),
    (
        -0.3761263890351422, 0.004578432129042984, 0.16725829208231952, 0.07176211745284881,
        0.00823519284999413, 0.00021437119386094491, 5.276429775329061e-07, 2.1767442698631717e-11,
    ),
    (
        1.5957204572255939e-10, 0.15966241540023665, -0.008380004485754747, -0.04365912205465333,
        -0.008520343152610878, -0.00031188841502129464, -1.020878531690925e-06, -5.516701575562792e-11,
    ),
    (
        0.11283791271112986, -0.0469883564401443, -0.04595551820816962, 0.010776640213426324,
        0.006061206681322458, 0.00033920784342867906, 1.5239861634600764e-06, 1.0903246380454331e-10,
    ),
    (
        5.951987739593244e-08, -0.03138967784557352, 0.02152888925086491, 0.004997346855711903,
        -0.0027856849063122744, -0.00028255048718096827, -1.8205492320111663e-06, -1.7411427947710938e-10,
    ),
    (
        -0.02686673789212605, 0.017593338092275347, 0.003194239870581271, -0.005207119504977943,
        0.0005492979534248315, 0.00018035188130778032, 1.7800415318737542e-06, 2.3794561267348727e-10,
    ),
    (
        3.6084707941818084e-06, 0.0035849161709070906, -0.005619154426478279, 0.0013372472523048812,
        0.0002531623206048458, -8.529011528775518e-05, -1.4431610741348248e-06, -2.883960124498246e-10,
    ),
    (
        0.005208362948232733, -0.003989910129471369, 0.0009516696164473984, 0.00046278968315761925,
        -0.00024764635952690344, 2.623671119277194e-05, 9.749469572717097e-07, 2.7775618957853154e-10,
    ),
    (
        4.5896973460912704e-05, -6.77435309626162e-05, 0.000759330578148365, -0.0004089362919330597,
        7.896655006334186e-05, -1.8064138203044422e-06, -5.468873496283777e-07, -1.9465218326075728e-10,
    ),
    (
        -0.0009440570138394833, 0.000661428552120924, -0.00032939878292381763, 6.168411346152425e-05,
        4.626970621757209e-06, -3.2382904464611784e-06, 2.5081635612878017e-07, 1.6936985147708583e-10,
    ),
    (
        0.00010664394358173013, -6.443390157073736e-05, -4.6855275286361575e-05, 4.282189183868468e-05,
        -1.3795841368846595e-05, 2.003320332732983e-06, -8.886956948117586e-08, -1.9564927455917314e-10,
    ),
    (
        5.735043669119477e-05, -8.35905084386468e-05, 5.361853982321918e-05, -1.9997809431515634e-05,
        4.412566340761259e-06, -5.061833689978812e-07, 1.8905765841736866e-08, 1.0197720445859204e-10,
    ),
)  # fmt: skip


def _table(column: int) -> Table:
    """Of both widths, as far as they have one."""
    both = ((F32, _PIECES), (F64, _PIECES_DOUBLE))
    return {dtype: pieces[column] for dtype, pieces in both if column < len(pieces)}


_NAMES = ("raw_erf_centre", *(f"raw_erf_{power}" for power in range(_DEGREE_DOUBLE + 1)))
PIECES: Mapping[str, Table] = {name: _table(column) for column, name in enumerate(_NAMES)}
"""The tables, by the names of the ops that choose from them."""

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
    """The distance is greater than the constant in the first piece alone, where the slope is less 1: there it
    is added."""
    near = where(size > _ONE_FROM_DOUBLE, _ONE_FROM_DOUBLE, size)
    piece = (horner(near, _PARABOLA) + WIDTHS[F64].rounder).op("bits")
    distance = near - piece.op("raw_erf_centre")
    square = distance * distance
    other, slope = piece.op(f"raw_erf_{_DEGREE_DOUBLE}"), piece.op(f"raw_erf_{_DEGREE_DOUBLE - 1}")
    for power in range(_DEGREE_DOUBLE - 2, 0, -1):
        other, slope = slope, fma(other, square, piece.op(f"raw_erf_{power}"))
    constant = piece.op("raw_erf_0")
    base = where(constant > distance, constant, distance)
    return fma(fma(other, distance, slope), distance, base)


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
