"""Random programs of elementwise operations, reductions, contractions, selections and joins.

Results are compared bit for bit where arrayjit promises NumPy's bits. The others (sums of floats whose
order shows, elementary functions) are ends of programs: nothing reads them, and each has its tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from memory import sums_exactly
from written import Draw, Writer, Written

from arrayjit.ir.dtype import DTYPES, from_numpy
from arrayjit.ir.ops import OPS, Op

__all__ = ["expression_programs"]

SIZES = (0, 1, 7, 8, 9, 13, 33, 1000)
MOST_CELLS = 40_000
NAMES = tuple(dtype.name for dtype in DTYPES if dtype.numpy.kind in "biuf")
# Of two zeros NumPy's fmax takes sometimes the first, sometimes the second, by where they stand.
ANY_ZERO = ("fmax", "fmin")
# How many roundings a result may be off by, beside the tolerance that the op's row publishes: NumPy's own.
NUMPYS_ERROR = 4.0
OPERATORS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">=")
MANY_VALUED = {"np.divmod": 2, "divmod": 2, "np.modf": 1, "np.frexp": 1}
LITERALS = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "0.5",
    "-2.5",
    "2.0",
    "True",
    "1e-3",
    "np.float32(1.5)",
    "np.int8(3)",
    "np.pi",
)


def _exact_ufuncs(arity: int) -> tuple[str, ...]:
    rows = [row for row in OPS.values() if row.ufunc and row.arity == arity and row.ulp == (0.0, 0.0)]
    names = {row.ufunc for row in rows}
    return tuple(sorted(name for name in names if getattr(np, name).nout == 1 and name != "power"))


UNARY, BINARY = _exact_ufuncs(1), _exact_ufuncs(2)
ELEMENTARY = tuple(
    row
    for row in OPS.values()
    if row.ufunc and row.ulp != (0.0, 0.0) and not row.name.startswith("logaddexp") and not row.output
)
MOVES = (
    "{0}.T",
    "{0}[::-1]",
    "{0}[..., ::2]",
    "{0}[1:]",
    "{0}[..., 1:-1]",
    "{0}[None]",
    "{0}[..., None]",
    "{0}.ravel()",
    "{0}.reshape(-1, 1)",
    "np.roll({0}, 3)",
    "np.roll({0}, -1, axis=0)",
    "np.concatenate([{0}, {1}])",
    "np.concatenate([{0}, {1}], axis=-1)",
    "np.concatenate([{0}, {1}], axis=None)",
    "np.stack([{0}, {1}])",
    "np.stack([{0}, {1}], axis=-1)",
    "np.hstack([{0}, {1}])",
    "np.vstack([{0}, {1}])",
    "np.column_stack([{0}, {1}])",
    "np.append({0}, {1})",
    "np.pad({0}, 2)",
    'np.pad({0}, 1, mode="edge")',
    "np.pad({0}, (1, 2), constant_values=3)",
    "np.tile({0}, 2)",
    "np.tile({0}, (2, 1, 2))",
    "np.repeat({0}, 3)",
    "np.repeat({0}, 2, axis=-1)",
    "np.flip({0}, 0)",
    "np.where({0} > {1}, {0}, {1})",
    "np.where({0}, {1}, 2)",
    "np.where({0} != 0, 1.5, {1})",
    "np.where({0} > 0, 1, 0)",
    "np.clip({0}, 1, 3)",
    "np.clip({0}, None, {1})",
    "np.clip({0}, {1}, {0})",
    "{0}.clip(min=0)",
    "np.take({0}, [0, -1, 0], axis=0)",
    "{0}[[0, -1]]",
    "{0}[..., [0, 0, 0]]",
    "np.take_along_axis({0}, np.zeros({0}.shape, int), axis=-1)",
    "np.split({0}, 2)[1]",
    "np.array_split({0}, 3, axis=-1)[1]",
    "np.triu({0})",
    "np.tril({0}, -1)",
    "np.diff({0})",
    "np.diff({0}, n=2, axis=0)",
    "np.diag({0})",
    "np.expand_dims({0}, (0, -1))",
    "np.broadcast_to({0}, (3, *{0}.shape))",
    "np.atleast_2d({0})",
    "np.moveaxis({0}, 0, -1)",
    "np.select([{0} > 1, {1} > 0], [{1}, {0}], 0)",
    "np.full_like({0}, 2)",
    "np.zeros_like({0}) + {1}",
    "np.arange({0}.shape[0]) * {0}",
    "np.eye(3)[:, :1] * {0}",
    "np.linspace(0, 1, 7)[:, None] + {0}",
    "np.nan_to_num({0})",
    "np.round({0}, 1)",
    "np.rint({0})",
    "np.isclose({0}, {1})",
    "np.array_equal({0}, {1})",
    "np.count_nonzero({0})",
    "np.count_nonzero({0}, axis=0)",
    "np.any({0})",
    "np.all({0}, axis=-1)",
    "np.any({0} > {1}, axis=0, keepdims=True)",
    "np.logical_and.reduce({0} != 0)",
    "np.bitwise_or.reduce({0} > 1, axis=-1)",
    "np.meshgrid({0}.ravel()[:3], {1}.ravel()[:4])[1]",
    "{0}.astype(np.float32)",
    "{0}.astype(bool)",
    '{0}.astype("i2")',
    '{0}.astype("u8")',
    "{0}.astype(np.int64)",
    '{0}.astype("u1")',
    "{0}.astype(np.float64)",
)
EXTREMES = (
    "{0}.max({1})",
    "{0}.min({1})",
    "{0}.max({1}{3})",
    "np.argmax({0}{2})",
    "np.argmin({0}{2})",
    "np.ptp({0}{2})",
    "np.nanmax({0}{2})",
    "np.maximum.reduce({0}{2})",
    "np.maximum.accumulate({0}{2})",
)
PRODUCTS = (
    "{0} @ {1}",
    "{0} @ {1}.T",
    "{0}.T @ {1}",
    "np.dot({0}, {1})",
    "np.inner({0}, {1})",
    "np.outer({0}, {1})",
    "np.tensordot({0}, {1}, 1)",
    "np.vdot({0}, {1})",
    "np.kron({0}, {1})",
    "np.trace({0})",
    "np.matmul({0}[None], {1})",
    "np.linalg.norm({0})",
    "np.einsum('ij,jk->ik', {0}, {1})",
    "np.einsum('ij,ij->i', {0}, {1})",
    "np.einsum('i,j->ij', {0}, {1})",
    "np.einsum('ij,kj->ik', {0}, {1})",
    "np.einsum('ij->ji', {0})",
    "np.einsum('ii->i', {0})",
    "np.einsum('ij->', {0})",
)


def expression_programs(most: int = 6) -> st.SearchStrategy[Written]:
    """Programs of up to `most` statements."""

    @st.composite
    def programs(draw: Draw) -> Written:
        writer = Writer(draw)
        _arguments(writer)
        kinds = (
            _unary,
            _binary,
            _binary,
            _operator,
            _operator,
            _move,
            _move,
            _extreme,
            _sum,
            _many,
            _product,
        )
        for _ in range(writer.integer(1, most)):
            writer.choose(*kinds, _elementary)(writer)
        return writer.written()

    return programs()


# ---- arguments ---------------------------------------------------------------------------------------


def _arguments(writer: Writer) -> None:
    n, m = writer.choose(*SIZES), writer.choose(*SIZES)
    if n * m > MOST_CELLS:
        m = 7
    shapes = [(n,), (m,), (n, m), (n, m), (m, n), (n, 1), (1, m), (), (n, n), (2, 3, m)]
    same = writer.choose(*NAMES) if writer.integer(0, 1) else None
    special = writer.integer(0, 2) == 0
    for name in "abc"[: writer.integer(1, 3)]:
        shape = writer.choose(*shapes)
        if np.prod(shape) > MOST_CELLS:
            shape = (n,)
        dtype = same or writer.choose(*NAMES)
        values = _values(np.dtype(dtype), special)
        turned = values[(start := writer.integer(0, 3)) :] + values[:start]
        writer.argument(name, f"np.resize(np.array([{', '.join(turned)}], {dtype!r}), {shape})")
    if writer.seldom():
        writer.argument("d", writer.choose("3", "2.5", "True", "-1"))


def _values(dtype: np.dtype[Any], special: bool) -> list[str]:
    """Numbers as text, of a prime count so that rows differ."""
    if dtype.kind == "b":
        return ["True", "False", "False", "True", "True"]
    if dtype.kind != "f":
        info = np.iinfo(dtype)
        small = ["3", "0", "1", "7", "2", "5", "1", "9", "4", "0", "6", "11", "8"]
        small = small if dtype.kind == "u" else [*small[:8], "-4", "-1", "0", "-7", "8"]
        return [*small[:6], str(info.max), str(info.min), str(info.max - 1), *small[9:]] if special else small
    info = np.finfo(dtype)
    small = ["1", "-2", "0", "3", "0.5", "-1.5", "5", "2", "-0.25", "4", "1", "-3", "7"]
    if special:
        return [
            *small[:7],
            "np.inf",
            "-np.inf",
            "np.nan",
            "-0.0",
            str(info.max),
            str(info.smallest_subnormal),
        ]
    return small


# ---- statements --------------------------------------------------------------------------------------


def _some(writer: Writer) -> str:
    return str(writer.choose(*writer.arrays()))


def _add(writer: Writer, text: str) -> bool:
    """A line that names a new value, unless it converts numbers that do not fit or grows too large."""
    name = writer.fresh()
    value = writer.value(text)
    if not _small(value):
        return False
    return writer.line(f"{name} = {text}")


def _small(value: Any) -> bool:
    return np.size(value) <= MOST_CELLS and np.ndim(value) <= 4


def _partner(writer: Writer, name: str) -> str:
    """Another operand, most often one that broadcasts."""
    fitting = [other for other in writer.arrays() if _broadcast(writer.names[name], writer.names[other])]
    scalars = ["d"] if "d" in writer.names else []
    return str(writer.choose(*fitting, *fitting, *scalars, writer.choose(*LITERALS)))


def _broadcast(left: Any, right: Any) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(left.shape, right.shape)) <= MOST_CELLS)
    except ValueError:
        return False


def _unary(writer: Writer) -> None:
    name, function = _some(writer), writer.choose(*UNARY)
    _add(writer, f"np.{function}({name})")


def _binary(writer: Writer) -> None:
    name, function = _some(writer), writer.choose(*BINARY)
    other = _partner(writer, name)
    if function in ANY_ZERO and _both_zeros(writer.names[name], writer.value(other)):
        return
    left, right = (name, other) if writer.integer(0, 1) else (other, name)
    _add(writer, f"np.{function}({left}, {right})")


def _operator(writer: Writer) -> None:
    name = _some(writer)
    other = _partner(writer, name)
    left, right = (name, other) if writer.integer(0, 1) else (other, name)
    sign = writer.choose(*OPERATORS, "**")
    if sign == "**":
        integers = all(np.asarray(writer.value(text)).dtype.kind in "iub" for text in (left, right))
        left, right = (left, right) if integers else (name, "2")
    _add(writer, f"{left} {sign} {right}")


def _move(writer: Writer) -> None:
    name = _some(writer)
    other = _some(writer) if writer.integer(0, 3) == 0 else _array_like(writer, name)
    text = str(writer.choose(*MOVES))
    if ".astype(" in text and not _converts(writer.names[name], text):
        return
    if "clip" in text and _both_zeros(writer.names[name], writer.names[other]):
        return
    _add(writer, text.format(name, other))


def _array_like(writer: Writer, name: str) -> str:
    """An array of the same shape, if only the same array."""
    shape = writer.names[name].shape
    return str(writer.choose(*(other for other in writer.arrays() if writer.names[other].shape == shape)))


def _many(writer: Writer) -> None:
    name, function = _some(writer), writer.choose(*MANY_VALUED)
    arguments = ", ".join([name, _partner(writer, name)][: MANY_VALUED[function]])
    writer.line(f"{writer.fresh()}, {writer.fresh()} = {function}({arguments})")


def _axis(writer: Writer, name: str) -> str:
    rank = writer.names[name].ndim
    axis = writer.choose(None, *range(-rank, rank), *([(0, rank - 1)] if rank > 1 else []))
    return "" if axis is None else f"axis={axis}"


def _extreme(writer: Writer) -> None:
    name = _some(writer)
    if _both_zeros(writer.names[name]):
        return
    axis = _axis(writer, name)
    keep = (", " if axis else "") + writer.choose("keepdims=True", "initial=3", "keepdims=False")
    _add(writer, writer.choose(*EXTREMES).format(name, axis, f", {axis}" if axis else "", keep))


def _sum(writer: Writer) -> None:
    name = _some(writer)
    axis = _axis(writer, name)
    method = writer.choose("sum", "sum", "mean", "var", "std", "prod", "cumsum", "cumprod")
    options = [axis] if axis and not (method.startswith("cum") and "(" in axis) else []
    if method in ("sum", "mean") and writer.seldom():
        options.append(writer.choose("dtype='f8'", "dtype='f4'"))
    if method in ("sum", "prod") and writer.seldom():
        options.append(f"where={name} > 1, initial=2")
    if not method.startswith("cum") and writer.integer(0, 2) == 0:
        options.append("keepdims=True")
    text = f"{name}.{method}({', '.join(options)})"
    value, result = writer.names[name], writer.value(text)
    if method not in ("sum", "cumsum", "mean") and value.size > 33:
        return
    _add_float_sum(writer, text, [name], max(1, value.size // max(1, np.size(result))))


def _product(writer: Writer) -> None:
    name, other = _some(writer), _some(writer)
    text = writer.choose(*PRODUCTS).format(name, other)
    most = max(writer.names[name].size, writer.names[other].size)
    # NumPy reads beyond an empty array for a label that stands twice.
    if most <= 4000 and not ("ii" in text and not writer.names[name].size):
        _add_float_sum(writer, text, [name, other] if other in text else [name], most)


def _add_float_sum(writer: Writer, text: str, operands: list[str], terms: int) -> None:
    """A line that sums: bit for bit where the order of the sum cannot show, else within `c n eps sum|x|`."""
    result = writer.value(text)
    if result is None or np.asarray(result).dtype.kind != "f":
        _add(writer, text)
        return
    values = [writer.names[operand].astype("f8") for operand in operands]
    if not all(map(_tame, values)):
        return
    ordered = any(word in text for word in (".var", ".std", ".prod", ".cumprod", "norm"))
    if not ordered and all(map(sums_exactly, values)):
        _add(writer, text)
        return
    line = f"{writer.fresh()} = {text}"
    if _small(result) and writer.line(line):
        bound = _sum_of_magnitudes(writer, text, operands)
        unit = 4 * terms * np.finfo(np.asarray(result).dtype).eps
        writer.approximate[line.split(" ")[0]] = np.sqrt(unit * bound) if ".std" in text else unit * bound


def _sum_of_magnitudes(writer: Writer, text: str, operands: list[str]) -> Any:
    """What a sum gives when all its terms are positive; for a variance, of the squares."""
    wide = {name: np.abs(writer.names[name].astype(np.longdouble)) for name in operands}
    if ".var" in text or ".std" in text:
        text = text.replace(".var", ".mean").replace(".std", ".mean")
        wide = {name: value * value for name, value in wide.items()}
    for option in ("dtype='f8'", "dtype='f4'"):
        text = text.replace(option, "dtype='g'")
    with np.errstate(all="ignore"):
        return eval(text, {**writer.names, **wide})


def _elementary(writer: Writer) -> None:
    row: Op = writer.choose(*ELEMENTARY)
    name = _some(writer)
    arguments = ", ".join([name, _partner(writer, name)][: row.arity])
    text = f"np.{row.ufunc}({arguments})"
    result = writer.value(text)
    line = f"{writer.fresh()} = {text}"
    if result is None or not _small(result) or not writer.line(line):
        return
    kind = np.asarray(result).dtype
    if kind.kind == "f":
        allowed = row.error(from_numpy(kind)) + NUMPYS_ERROR
        with np.errstate(all="ignore"):
            writer.approximate[line.split(" ")[0]] = allowed * np.spacing(np.abs(result))


# ---- values ------------------------------------------------------------------------------------------


def _both_zeros(*values: Any) -> bool:
    """Whether zeros of both signs are among the numbers: which one is the larger is nobody's to say."""
    zeros = [np.signbit(np.asarray(value)[np.asarray(value) == 0]) for value in values]
    zeros = [signs for value, signs in zip(values, zeros, strict=True) if np.asarray(value).dtype.kind == "f"]
    signs = np.concatenate([[], *zeros])
    return bool(signs.size and signs.any() and not signs.all()) or len(zeros) not in (0, len(values))


def _tame(value: Any) -> bool:
    """Whether errors of its sums are easily bounded."""
    return bool(np.all(np.isfinite(value)) and np.max(np.abs(value.astype("f8")), initial=0) < 1e6)


def _converts(value: Any, text: str) -> bool:
    """Whether every number fits the dtype that it is converted to; else the machine chooses the result."""
    wanted = eval(f"np.dtype({text[text.index('(') + 1 : -1]})", {"np": np, "bool": bool})
    if value.dtype.kind != "f" or wanted.kind not in "iu":
        return True
    info = np.iinfo(wanted)
    with np.errstate(invalid="ignore"):
        return bool(np.all((value >= info.min) & (value < float(info.max))))
