"""Complex arithmetic on real and imaginary parts.

`PARTS` says for each op that takes complex arguments what it is on pairs of parts. Functions of long
definitions are two ops on reals, such as `exp_real(x, y)` and `exp_imag(x, y)`: `CORES` has those, whose
common work is done once where both parts are computed in one loop. Infinities,
NaNs and signs of zeros follow C99, Annex G, as NumPy's do; division is Smith's, as NumPy's is; the inverse
functions are Kahan's (Branch Cuts for Complex Elementary Functions, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..dtype import F32
from .terms import Term, fma, rarely, where

__all__ = ["CORES", "PARTS", "Halves", "Pair", "phase"]

Pair = tuple[Term, Term]

_LN2 = math.log(2)


# ---- what ops are on pairs ---------------------------------------------------------------------------


def on_parts(name: str) -> Callable[..., Pair]:
    """The op called `name` on the real parts, and on the imaginary parts."""

    def apply(*args: Pair) -> Pair:
        first, *others = args
        real = first[0].op(name, *(other[0] for other in others))
        return real, first[1].op(name, *(other[1] for other in others))

    return apply


def in_parts(name: str) -> Callable[..., Pair]:
    """The core called `name`."""

    def apply(*args: Pair) -> Pair:
        first, *others = (part for arg in args for part in arg)
        return first.op(f"{name}_real", *others), first.op(f"{name}_imag", *others)

    return apply


def turned(name: str) -> Callable[[Pair], Pair]:
    """`f(z) = -i g(i z)` for the core `g`: sines by hyperbolic sines."""

    def apply(z: Pair) -> Pair:
        x, y = z
        return (-y).op(f"{name}_imag", x), -(-y).op(f"{name}_real", x)

    return apply


def either(name: str) -> Callable[..., Term]:
    """Whether the op called `name` holds for one of the parts."""

    def apply(*args: Pair) -> Term:
        real, imaginary = on_parts(name)(*args)
        return real | imaginary

    return apply


def both(name: str) -> Callable[..., Term]:
    """Whether the op called `name` holds for both parts."""

    def apply(*args: Pair) -> Term:
        real, imaginary = on_parts(name)(*args)
        return real & imaginary

    return apply


def ordered(strict: str, name: str) -> Callable[[Pair, Pair], Term]:
    """NumPy's order: by real parts, equal ones by imaginary parts."""

    def apply(a: Pair, b: Pair) -> Term:
        are_numbers = _is_number(a[1]) & _is_number(b[1])
        return (a[0].op(strict, b[0]) & are_numbers) | ((a[0] == b[0]) & a[1].op(name, b[1]))

    return apply


def something(z: Pair) -> Term:
    """Whether a number is not 0."""
    return (z[0] != 0) | (z[1] != 0)


def nothing(z: Pair) -> Term:
    return ~something(z)


def truths(name: str) -> Callable[[Pair, Pair], Term]:
    """The op called `name` on whether numbers are not 0."""

    def apply(a: Pair, b: Pair) -> Term:
        return something(a).op(name, something(b))

    return apply


def chosen(condition: Term, then: Pair, otherwise: Pair) -> Pair:
    return where(condition, then[0], otherwise[0]), where(condition, then[1], otherwise[1])


def extreme(strict: str, among_numbers: bool) -> Callable[[Pair, Pair], Pair]:
    """The one for which a comparison holds. With a NaN it is the first of those, or `among_numbers` the other
    one."""

    def apply(a: Pair, b: Pair) -> Pair:
        is_lost = _is_nan(b if among_numbers else a)
        return chosen(ordered(strict, f"{strict}_equal")(a, b) | is_lost, a, b)

    return apply


def _is_nan(z: Pair) -> Term:
    return ~_is_number(z[0]) | ~_is_number(z[1])


def multiply(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def square(z: Pair) -> Pair:
    return multiply(z, z)


def conjugate(z: Pair) -> Pair:
    return z[0], -z[1]


def absolute(z: Pair) -> Term:
    return z[0].op("hypot", z[1])


def phase(z: Pair) -> Pair:
    """The exponential of a number whose real part is 0 or NaN, of which it is one more: `exp(1j * x)`."""
    size, (_, y) = z[0] + 1.0, z
    return size * y.op("cos"), where(y == 0, y, size * y.op("sin"))


def scaled(name: str, factor: float) -> Callable[[Pair], Pair]:
    """The core called `name`, times a number."""

    def apply(z: Pair) -> Pair:
        real, imaginary = in_parts(name)(z)
        return real * factor, imaginary * factor

    return apply


def exp2(z: Pair) -> Pair:
    return in_parts("exp")((z[0] * _LN2, z[1] * _LN2))


def cos(z: Pair) -> Pair:
    return in_parts("cosh")((-z[1], z[0]))


def sign(z: Pair) -> Pair:
    """The number of size 1 in the same direction."""
    size = absolute(z)
    along, across = (abs(part) == math.inf for part in z)
    units = tuple(part.const(1.0).op("copysign", part) for part in z)
    ends = where(along, units[0], 0.0), where(along, z[1].const(0.0), units[1])
    parts = [where(size == 0, size.const(0.0), part / size) for part in z]
    real, imaginary = chosen(size == math.inf, ends, (parts[0], parts[1]))
    return where(along & across, math.nan, real), where(along & across, math.nan, imaginary)


def power(base: Pair, exponent: Pair) -> Pair:
    """By products where the exponent is a known small integer, as NumPy computes those."""
    real, imaginary = (part.known for part in exponent)
    if imaginary == 0 and real is not None and abs(real) < _MOST_PRODUCTS and real == int(real):
        return _whole_power(base, int(real))
    return in_parts("power")(base, exponent)


_MOST_PRODUCTS = 100


def _whole_power(base: Pair, exponent: int) -> Pair:
    one = base[0].const(1.0), base[0].const(0.0)
    left, factor, result = abs(exponent), base, None
    while left:
        if left & 1:
            result = factor if result is None else multiply(result, factor)
        left >>= 1
        factor = multiply(factor, factor) if left else factor
    if result is None:
        return one
    if exponent > 0:
        return result
    nothing = (base[0] == 0) & (base[1] == 0)
    real, imaginary = in_parts("divide")(one, result)
    return where(nothing, math.nan, real), where(nothing, math.nan, imaginary)


# ---- cores: pairs of parts of pairs of reals ---------------------------------------------------------


def _is_number(x: Term) -> Term:
    return x == x


def _is_finite(x: Term) -> Term:
    return abs(x) < math.inf


def _limits(x: Term) -> tuple[float, float]:
    """A number whose exponential is barely finite, and one that is less by a few."""
    return (88.0, 80.0) if x.dtype is F32 else (709.0, 700.0)


def _digits(x: Term) -> int:
    return 24 if x.dtype is F32 else 53


def _top(x: Term) -> int:
    """The largest exponent of 2."""
    return 127 if x.dtype is F32 else 1023


def _signed(size: Term | float, like: Term) -> Term:
    number = size if isinstance(size, Term) else like.const(size)
    return number.op("copysign", like)


def _divide(a: Term, b: Term, c: Term, d: Term) -> Pair:
    """Smith's way: the smaller part of the divisor by the larger one comes first."""
    swap = abs(c) < abs(d)
    longer, shorter = where(swap, d, c), where(swap, c, d)
    ratio = shorter / longer
    scale = 1.0 / (longer + shorter * ratio)
    real = where(swap, a * ratio + b, a + b * ratio) * scale
    imaginary = where(swap, b * ratio - a, b - a * ratio) * scale
    nothing = (c == 0) & (d == 0)
    return where(nothing, a / abs(c), real), where(nothing, b / abs(c), imaginary)


def _reciprocal(c: Term, d: Term) -> Pair:
    swap = abs(c) < abs(d)
    longer, shorter = where(swap, d, c), where(swap, c, d)
    ratio = shorter / longer
    scale = longer + shorter * ratio
    return where(swap, ratio, 1.0) / scale, where(swap, scale.const(-1.0), -ratio) / scale


def _exp_size(x: Term) -> tuple[Term, Term]:
    """`exp(x)` as a product, whose second factor is not 1 where it would overflow."""
    limit, step = _limits(x)
    big = x > limit
    return where(big, x - step, x).op("exp"), where(big, x.const(math.exp(step)), 1.0)


def _exp_real(x: Term, y: Term) -> Term:
    """`exp(x) cos(y)`"""
    size, scale = _exp_size(x)
    lost = (abs(x) == math.inf) & ~_is_finite(y)
    return where(lost, where(x > 0, x, 0.0), size * y.op("cos") * scale)


def _exp_imag(x: Term, y: Term) -> Term:
    """`exp(x) sin(y)`"""
    size, scale = _exp_size(x)
    lost = (x == -math.inf) & ~_is_finite(y)
    imaginary = where(lost, _signed(0.0, y), size * y.op("sin") * scale)
    return where(y == 0, y, imaginary)


def _angle(x: Term, y: Term) -> Term:
    return y.op("arctan2", x)


def _log_size(x: Term, y: Term) -> Term:
    """The logarithm of `hypot(x, y)`; near 1 by the distance of the square from it."""
    one, other = abs(x), abs(y)
    swap = other > one
    longer, shorter = where(swap, other, one), where(swap, one, other)
    huge, tiny = longer > 2.0 ** (_top(x) - 2), longer < 2.0 ** (_digits(x) - _top(x))
    step = 2 * _digits(x)
    scale = where(huge, x.const(2.0**-step), where(tiny, x.const(2.0**step), 1.0))
    added = where(huge, x.const(step * _LN2), where(tiny, x.const(-step * _LN2), 0.0))
    size = (longer * scale).op("hypot", shorter * scale)
    beyond = fma(shorter, shorter, (longer - 1.0) * (longer + 1.0))
    near = (size > 0.5) & (size < 2.0)
    return where(near, where(near, beyond, 0.0).op("log1p") * 0.5, size.op("log") + added)


def _log1p_real(x: Term, y: Term) -> Term:
    """As NumPy has it."""
    return (x + 1.0).op("hypot", y).op("log")


def _log1p_imag(x: Term, y: Term) -> Term:
    return y.op("arctan2", x + 1.0)


def _expm1_real(x: Term, y: Term) -> Term:
    """`exp(x) cos(y) - 1` without cancellation, as NumPy has it."""
    half = (y * 0.5).op("sin")
    return x.op("expm1") * y.op("cos") - half * half * 2.0


def _expm1_imag(x: Term, y: Term) -> Term:
    return x.op("exp") * y.op("sin")


def _sqrt(x: Term, y: Term) -> Pair:
    """The root of half of `|x| + hypot(x, y)` is one part; the other one follows."""
    one, other = abs(x), abs(y)
    longer = where(other > one, other, one)
    huge, tiny = longer > 2.0 ** (_top(x) - 2), longer < 2.0 ** (_digits(x) - _top(x))
    step = 2 * _digits(x)
    scale = where(huge, x.const(2.0**-step), where(tiny, x.const(2.0**step), 1.0))
    back = where(huge, x.const(2.0 ** (step // 2)), where(tiny, x.const(2.0 ** (-step // 2)), 1.0))
    part = ((one * scale + (one * scale).op("hypot", other * scale)) * 0.5).op("sqrt")
    rest = where((one == 0) & (other == 0), other, other * scale / (part * 2.0))
    part, rest = part * back, rest * back
    right, upright = x >= 0, other == math.inf
    real = where(upright, other, where(right, part, rest))
    return real, where(upright, y, _signed(where(right, rest, part), y))


def _hyperbolic(name: str, x: Term) -> tuple[Term, Term]:
    """`sinh(x)` or `cosh(x)` as a product, whose second factor is not 1 where it would overflow."""
    limit, step = _limits(x)
    big = abs(x) > limit
    half = (abs(x) - step).op("exp") * 0.5
    huge = _signed(half, x) if name == "sinh" else half
    return rarely(big, huge, x.op(name)), where(big, x.const(math.exp(step)), 1.0)


def _sinh_real(x: Term, y: Term) -> Term:
    size, scale = _hyperbolic("sinh", x)
    lost = ~_is_finite(y) & ((x == 0) | (abs(x) == math.inf))
    return where(lost, x, size * y.op("cos") * scale)


def _sinh_imag(x: Term, y: Term) -> Term:
    size, scale = _hyperbolic("cosh", x)
    return where(y == 0, y, size * y.op("sin") * scale)


def _cosh_real(x: Term, y: Term) -> Term:
    size, scale = _hyperbolic("cosh", x)
    lost = (abs(x) == math.inf) & ~_is_finite(y)
    return where(lost, abs(x), size * y.op("cos") * scale)


def _cosh_imag(x: Term, y: Term) -> Term:
    size, scale = _hyperbolic("sinh", x)
    imaginary = size * y.op("sin") * scale
    nothing = ((x == 0) | (y == 0)) & ~_is_number(imaginary)
    return where(nothing, _signed(0.0, x) * _signed(1.0, y), imaginary)


def _tanh(x: Term, y: Term) -> Pair:
    large = abs(x) > (10.0 if x.dtype is F32 else 22.0)
    near = where(large, x.const(0.0), x)
    sine, cosine = near.op("sinh"), near.op("cosh")
    across, along = y.op("sin"), y.op("cos")
    below = fma(sine, sine, along * along)
    real = where(large, _signed(1.0, x), sine * cosine / below)
    far = across * along * 4.0 * (abs(x) * -2.0).op("exp")
    imaginary = where(large, far, across * along / below)
    lost, endless = ~_is_finite(y), abs(x) == math.inf
    real = where(lost & ~endless, y - y, real)
    imaginary = where(lost & endless, _signed(0.0, y), imaginary)
    return where(x == 0, x, real), where(y == 0, y, imaginary)


def _is_large(size: Term) -> Term:
    """Whether a number is so large that 1 does not matter beside it."""
    return size > 2.0 ** (_digits(size) + 2)


def _roots(x: Term, y: Term) -> tuple[Pair, Pair, Term]:
    """`sqrt(1 - z)`, `sqrt(1 + z)`, and whether `z` is large."""
    large = _is_large(x.op("hypot", y))
    near = where(large, x.const(0.0), x), where(large, y.const(0.0), y)
    return _sqrt(1.0 - near[0], -near[1]), _sqrt(near[0] + 1.0, near[1]), large


def _log_double(x: Term, y: Term) -> Term:
    return _log_size(x, y) + _LN2


def _arcsin(x: Term, y: Term) -> Pair:
    less, more, large = _roots(x, y)
    along = less[0] * more[0] - less[1] * more[1]
    grown = (less[0] * more[1] - less[1] * more[0]).op("arcsinh")
    real = where(large, x.op("arctan2", abs(y)), x.op("arctan2", along))
    imaginary = where(large, _log_double(x, y), abs(grown))
    return where(x == 0, x, real), _signed(imaginary, y)


def _arcsinh(x: Term, y: Term) -> Pair:
    real, imaginary = _arcsin(-y, x)
    return imaginary, -real


def _arccos(x: Term, y: Term) -> Pair:
    less, more, large = _roots(x, y)
    real = where(large, abs(y).op("arctan2", x), less[0].op("arctan2", more[0]) * 2.0)
    grown = (more[0] * less[1] - more[1] * less[0]).op("arcsinh")
    size = where(large, _log_double(x, y), abs(grown))
    return where(x == 0, x.const(math.pi / 2), real), _signed(size, -y)


def _arccosh(x: Term, y: Term) -> Pair:
    real, imaginary = _arccos(x, y)
    return abs(imaginary), _signed(real, y)


def _arctanh_real(x: Term, y: Term) -> Term:
    one, size = abs(x), x.op("hypot", y)
    large = _is_large(size)
    near = where(large, x.const(0.0), one), where(large, y.const(0.0), y)
    less, square = 1.0 - near[0], near[1] * near[1]
    gap = less.op("hypot", near[1])
    grown = (near[0] * 4.0 / fma(less, less, square)).op("log1p") * 0.25
    grown = rarely(gap < 2.0 ** (-_top(x) // 2), (gap.op("log") - _LN2) * -0.5, grown)
    far = where(size == math.inf, size.const(0.0), one / size / size)
    return where(x == 0, x, _signed(where(large, far, grown), x))


def _arctanh_imag(x: Term, y: Term) -> Term:
    large = _is_large(x.op("hypot", y))
    one, other = where(large, x.const(0.0), abs(x)), where(large, y.const(0.0), y)
    angle = (other * 2.0).op("arctan2", fma(-other, other, (1.0 - one) * (one + 1.0))) * 0.5
    return where(large, where(_is_number(y), _signed(math.pi / 2, y), y), angle)


def _power(a: Term, b: Term, c: Term, d: Term) -> Pair:
    """`exp((c + i d) log(a + i b))`."""
    length, angle = _log_size(a, b), _angle(a, b)
    size, turn = c * length - d * angle, c * angle + d * length
    nothing, whole = (a == 0) & (b == 0), (c == 0) & (d == 0)
    of_nothing = where(c > 0, c.const(0.0), math.nan)
    real = where(nothing, of_nothing, _exp_real(size, turn))
    imaginary = where(nothing, of_nothing, _exp_imag(size, turn))
    return where(whole, 1.0, real), where(whole, 0.0, imaginary)


def _halves(core: Callable[..., Pair]) -> Halves:
    """The two parts of what is computed together."""
    return lambda *args: core(*args)[0], lambda *args: core(*args)[1]


Halves = tuple[Callable[..., Term], Callable[..., Term]]

CORES: Mapping[str, tuple[int, Halves, float]] = {
    "divide": (2, _halves(_divide), 20.0),
    "reciprocal": (1, _halves(_reciprocal), 20.0),
    "power": (2, _halves(_power), 160.0),
    "exp": (1, (_exp_real, _exp_imag), 60.0),
    "expm1": (1, (_expm1_real, _expm1_imag), 60.0),
    "log": (1, (_log_size, _angle), 60.0),
    "log1p": (1, (_log1p_real, _log1p_imag), 50.0),
    "sqrt": (1, _halves(_sqrt), 50.0),
    "sinh": (1, (_sinh_real, _sinh_imag), 60.0),
    "cosh": (1, (_cosh_real, _cosh_imag), 60.0),
    "tanh": (1, _halves(_tanh), 100.0),
    "arcsinh": (1, _halves(_arcsinh), 200.0),
    "arccos": (1, _halves(_arccos), 200.0),
    "arccosh": (1, _halves(_arccosh), 200.0),
    "arctanh": (1, (_arctanh_real, _arctanh_imag), 80.0),
}
"""For each function how many complex arguments it takes, the definitions of the real and of the imaginary
part on the parts of arguments, and what each costs."""

PARTS: Mapping[str, Callable[..., Any]] = {
    **{name: on_parts(name) for name in ("add", "subtract", "negative", "positive", "rint")},
    **{name: in_parts(name) for name in CORES if name != "power"},
    **{name: either(name) for name in ("isnan", "isinf", "not_equal")},
    **{name: both(name) for name in ("isfinite", "equal")},
    "less": ordered("less", "less"),
    "less_equal": ordered("less", "less_equal"),
    "greater": ordered("greater", "greater"),
    "greater_equal": ordered("greater", "greater_equal"),
    "maximum": extreme("greater", False),
    "minimum": extreme("less", False),
    "fmax": extreme("greater", True),
    "fmin": extreme("less", True),
    "where": chosen,
    "multiply": multiply,
    "square": square,
    "conjugate": conjugate,
    "absolute": absolute,
    "sign": sign,
    "power": power,
    "exp2": exp2,
    "log2": scaled("log", 1.4426950408889634),
    "log10": scaled("log", 0.4342944819032518),
    "cos": cos,
    "sin": turned("sinh"),
    "tan": turned("tanh"),
    "arcsin": turned("arcsinh"),
    "arctan": turned("arctanh"),
    "logical_not": nothing,
    "logical_and": truths("bitwise_and"),
    "logical_or": truths("bitwise_or"),
    "logical_xor": truths("bitwise_xor"),
}
"""What ops are on complex arguments, each a pair of Terms (others are Terms): a pair, or a Term where the
result is real."""
