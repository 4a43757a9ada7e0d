"""Random programs over views, writes in place and arguments that share memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from written import Draw, Writer, Written

__all__ = ["memory_programs"]

SHAPES = (
    (4, 3),
    (6,),
    (3, 3),
    (2, 3, 4),
    (9,),
    (4, 4),
    (5, 1),
    (),
    (1,),
    (0,),
    (2, 0),
    (17, 2),
    (100,),
    (9, 33),
    (20, 20),
)
DTYPES = ("f8", "f4", "f2", "i4", "u1", "i8", "?")
# How an array lies in memory that holds (at least) its elements: {0} is the memory, {1} the shape,
# {2} the shape the other way round, {3} the shape with a last axis twice as long.
LAYOUTS = {
    "plain": "{0}[: {4}].reshape({1})",
    "offset": "{0}[-{4}:].reshape({1})",
    "Fortran's": "{0}[: {4}].reshape({2}).T",
    "strided": "{0}[: 2 * {4}].reshape({3})[..., ::2]",
    "reversed": "{0}[: {4}].reshape({1})[::-1]",
    "reversed and strided": "{0}[: 2 * {4}].reshape({3})[..., ::-2]",
    "swapped axes": "{0}[: {4}].reshape({1}[:-2] + {1}[:-3:-1]).swapaxes(-1, -2)",
    "broadcast": "np.broadcast_to({0}[: {1}[-1]], {1})",
    "windows": "np.lib.stride_tricks.sliding_window_view({0}[: {4}], 3, writeable=True)",
}
ALIASES = (
    "{0}",
    "{0}[...]",
    "{0}.T",
    "{0}[::-1]",
    "{0}[1:]",
    "{0}[:-1]",
    "{0}[::2]",
    "{0}.reshape(-1)",
    "{0}[1::2]",
    "{0}.view('u1')",
    "{0}.view({0}.dtype.newbyteorder())",
)
FUNCTIONS = ("np.add", "np.multiply", "np.subtract", "np.maximum", "np.minimum")
SIGNS = {"np.add": "+", "np.subtract": "-", "np.multiply": "*"}
VIEWS = (
    "{0}.T",
    "{0}.ravel()",
    "np.flip({0})",
    "np.flip({0}, -1)",
    "{0}[::-1]",
    "{0}.squeeze()",
    "np.diagonal({0})",
    "{0}[None]",
    "{0}[..., None]",
    "{0}.swapaxes(0, -1)",
    "np.moveaxis({0}, 0, -1)",
    "np.atleast_2d({0})",
    "np.expand_dims({0}, -1)",
    "np.broadcast_to({0}, (2, *{0}.shape))",
    "{0}.reshape(-1)",
    "{0}.view()",
    "np.asarray({0})",
    "{0}.reshape({0}.shape[::-1])",
    "{0}.reshape(-1, 2)",
    "{0}.reshape(2, -1)",
    "np.rot90({0})",
    "np.split({0}, [1, 3])[1]",
    "{0}.T.reshape(-1)",
    "{0}[...]",
    "{0}.reshape(1, *{0}.shape)",
    "np.fliplr({0})",
    "np.rollaxis({0}, -1)",
    "np.ascontiguousarray({0})",
    "np.atleast_1d({0})",
    "{0}[()]",
)
NEW = (
    "{0}.copy()",
    "{0} + 1",
    "-{0}",
    "{0} * 2",
    "{0}.flatten()",
    "np.array({0})",
    "{0}.astype('f8')",
    "np.zeros_like({0})",
    "np.concatenate([{0}, {0}])",
    "np.where({0} > 2, {0}, 5)",
    "np.roll({0}, 1)",
    "{0}.astype('i4', copy=False)",
    "np.ones({0}.shape)",
    "np.stack([{0}, {0}])",
    "np.maximum({0}, 2)",
    "np.array({0}, copy=None)",
    "{0}.T + {0}.T",
    "np.copy({0})",
    "np.pad({0}, 1)",
    "np.tile({0}, 2)",
    "np.full({0}.shape, 3)",
    "{0}.sum(axis=0)",
    "{0}.max(axis=-1)",
    "{0}.sum()",
    "np.cumsum({0})",
    "{0} > 1",
    "{0}.sum(axis=-1, keepdims=True)",
    "{0} @ {0}.T",
    "{0}[[0, -1]]",
    "{0}[[0, 0], ...]",
    "np.take({0}, [0, 1])",
)
SUMS = ("sum", "cumsum", "@")


def memory_programs(most: int = 8) -> st.SearchStrategy[Written]:
    """Programs of up to `most` statements."""

    @st.composite
    def programs(draw: Draw) -> Written:
        writer = Writer(draw)
        _arguments(writer)
        for _ in range(writer.integer(1, most)):
            if writer.arrays():
                _statement(writer)
        return writer.written()

    return programs()


# ---- arguments ---------------------------------------------------------------------------------------


def _arguments(writer: Writer) -> None:
    for number, name in enumerate("abc"[: writer.integer(1, 3)]):
        if number and writer.integer(0, 2) == 0:
            of = writer.choose(*writer.arguments)
            text = writer.choose(*ALIASES).format(of)
            if isinstance(writer.value(text), np.ndarray):
                writer.argument(name, text)
                continue
        _fresh_argument(writer, name)


def _fresh_argument(writer: Writer, name: str) -> None:
    shape, dtype = writer.choose(*SHAPES), writer.choose(*DTYPES)
    size = int(np.prod(shape))
    memory = f"memory_{name}"
    match writer.choose(
        "owned", "owned", "owned", "native", "native", "native", "swapped", "unaligned", "field"
    ):
        case "native":
            writer.make(f"{memory} = np.arange({2 * size + 3}).astype({dtype!r})")
        case "swapped":
            writer.make(
                f"{memory} = np.arange({2 * size + 3}).astype({np.dtype(dtype).newbyteorder().str!r})"
            )
        case "unaligned":
            width = np.dtype(dtype).itemsize
            writer.make(f"{memory} = np.zeros({(2 * size + 3) * width + 1}, 'u1')[1:].view({dtype!r})")
            writer.make(f"{memory}[...] = np.arange({2 * size + 3})")
        case "field":
            fields = f"[('x', 'i1'), ('y', {dtype!r})]"
            writer.make(f"{memory} = np.zeros({2 * size + 3}, {fields})['y']")
            writer.make(f"{memory}[...] = np.arange({2 * size + 3})")
        case _:
            writer.argument(name, f"np.arange({size}).reshape({shape}).astype({dtype!r})")
            return
    layout = LAYOUTS[writer.choose(*LAYOUTS)]
    twice = (*shape[:-1], 2 * shape[-1]) if shape else ()
    text = layout.format(memory, shape, shape[::-1], twice, size)
    if not isinstance(writer.value(text), np.ndarray):
        text = LAYOUTS["plain"].format(memory, shape, shape, shape, size)
    writer.argument(name, text)
    if writer.seldom():
        writer.make(f"{name}.flags.writeable = False")


# ---- statements --------------------------------------------------------------------------------------


def _statement(writer: Writer) -> None:
    kinds = (
        _view,
        _view,
        _new,
        _assign,
        _assign,
        _augment,
        _whole,
        _out,
        _chain,
        _swap,
        _loop,
        _scatter,
        _copyto,
    )
    writer.choose(*kinds)(writer)


def _some(writer: Writer) -> str:
    return str(writer.choose(*writer.arrays()))


def _view(writer: Writer) -> None:
    name = _some(writer)
    if writer.integer(0, 1):
        writer.line(f"{writer.fresh()} = {writer.choose(*VIEWS).format(name)}")
    else:
        writer.line(f"{writer.fresh()} = {name}[{_key(writer, name)}]")


def _new(writer: Writer) -> None:
    name, text = _some(writer), str(writer.choose(*NEW))
    if any(word in text for word in SUMS) and not sums_exactly(writer.names[name]):
        return
    if "copy=False" in text and not writer.names[name].dtype.isnative:  # arrayjit sees native numbers only
        return
    writer.line(f"{writer.fresh()} = {text.format(name)}")


def _assign(writer: Writer) -> None:
    name = _some(writer)
    target = f"{name}[{_key(writer, name)}]"
    right = _right(writer, target)
    if not _crossing(writer.value(target), writer.value(right)):
        _store(writer, f"{target} = {right}")


def _augment(writer: Writer) -> None:
    name = _some(writer)
    target = f"{name}[{_key(writer, name)}]"
    _store(writer, f"{target} {writer.choose('+', '-', '*')}= {_right(writer, target)}")


def _whole(writer: Writer) -> None:
    name = _some(writer)
    _store(writer, f"{name} {writer.choose('+', '-', '*')}= {_right(writer, name)}")


def _out(writer: Writer) -> None:
    name = _some(writer)
    target = writer.choose(name, f"{name}[{_key(writer, name)}]")
    left, right = _operand(writer, target), _operand(writer, target)
    where = f", where={left} > {right}" if writer.seldom() else ""
    _store(writer, f"{writer.fresh()} = {writer.choose(*FUNCTIONS)}({left}, {right}, out={target}{where})")


def _chain(writer: Writer) -> None:
    first, second = _some(writer), _some(writer)
    target = f"{first}[{_key(writer, first)}]"
    other = _part(writer, second, np.shape(writer.value(target))) or second
    right = _right(writer, target)
    value = writer.value(right)
    if not (_crossing(writer.value(target), value) or _crossing(writer.value(other), value)):
        _store(writer, f"{target} = {other} = {right}")


def _swap(writer: Writer) -> None:
    name = _some(writer)
    if np.ndim(writer.names[name]) and len(writer.names[name]) > 1:
        first, second = writer.integer(0, len(writer.names[name]) - 1), writer.choose(0, -1)
        _store(writer, f"{name}[{first}], {name}[{second}] = {name}[{second}], {name}[{first}]")


def _loop(writer: Writer) -> None:
    name = _some(writer)
    if np.ndim(writer.names[name]):
        body = writer.choose(
            "{0}[k] = {0}[k - 1] + 1", "{0}[k] += {0}[-1 - k]", "{0}[k:] -= {0}[k - 1]", "{0}[: k] = {0}[-1]"
        )
        _store(writer, f"for k in range(1, min(len({name}), 4)): {body.format(name)}")


def _scatter(writer: Writer) -> None:
    name = _some(writer)
    key = writer.choose(
        "[0, -1]", "[-1, 0, 0]", "..., [1, 0]", "[0, 1], [1, 0]", f"{name} > 2", "[True, False, True]"
    )
    value = writer.choose(1, 7, 0.5, f"{name}[{key}]", f"{name}[[1, 0]]")
    if writer.value(f"{name}[{key}]") is not None and writer.value(str(value)) is not None:
        _store(writer, f"{name}[{key}] {writer.choose('=', '=', '+=')} {value}")


def _copyto(writer: Writer) -> None:
    name = _some(writer)
    if not writer.names[name].flags.writeable:
        return
    source = _operand(writer, name)
    if _crossing(writer.names[name], writer.value(source)):
        return
    text = writer.choose(
        "np.copyto({0}, {1})",
        "np.copyto({0}, {1}, where={0} > 1)",
        "{0}.fill(3)",
        "{0}[...] = {1}",
        "{0}[:] = {1}",
    )
    _store(writer, text.format(name, source))


def _crossing(target: Any, source: Any) -> bool:
    """Whether NumPy copies cells that it has already overwritten: along one axis, with other strides."""
    if not isinstance(source, np.ndarray) or not np.shape(target):
        return False
    return target.ndim == 1 and source.strides[-1:] != target.strides and np.shares_memory(source, target)


def _store(writer: Writer, text: str) -> None:
    """A line that writes, unless it converts a number that does not fit, whose result is the machine's."""
    saved = {name: value for name, value in writer.names.items() if isinstance(value, np.ndarray)}
    before = {name: value.copy() for name, value in saved.items()}
    if not writer.line(text):
        return
    fits = all(_fits(value) for value in writer.names.values() if isinstance(value, np.ndarray))
    if fits:
        return
    writer.body.pop()
    for name in [name for name in writer.names if name[0] == "v" and name not in saved]:
        del writer.names[name]
    for name, value in saved.items():
        if value.flags.writeable:
            value[...] = before[name]


def _fits(value: np.ndarray) -> bool:
    return value.dtype.kind != "f" or bool(np.all(np.abs(value) < 120))


def sums_exactly(value: Any) -> bool:
    """Whether sums of these numbers and their products are exact in any order."""
    if np.asarray(value).dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        whole = np.all(np.isfinite(value)) and np.all(value == np.rint(value))
        return bool(whole and np.sum(np.square(value, dtype="f8")) < 2**20)


# ---- parts and operands ------------------------------------------------------------------------------


def _key(writer: Writer, name: str) -> str:
    """An index of what `name` holds, of any kind that gives a view or a number."""
    parts: list[str] = []
    for extent in np.shape(writer.names[name]):
        kind = writer.integer(0, 9)
        if kind == 0:
            break
        if kind == 1:
            parts.append("None")
        if kind == 2:
            parts.append(str(writer.integer(-extent - 1, extent)))
        elif kind == 3 and "..." not in parts:
            parts.append("...")
            break
        else:
            parts.append(_slice(writer, extent))
    return ", ".join(parts) or "..."


def _slice(writer: Writer, extent: int) -> str:
    bound = st.none() | st.integers(-extent - 1, extent + 1)
    start, stop = (writer.draw(bound) for _ in range(2))
    step = writer.choose(None, None, None, 1, 2, 3, -1, -1, -2)
    text = f"{'' if start is None else start}:{'' if stop is None else stop}"
    return text if step is None else f"{text}:{step}"


def _right(writer: Writer, target: str) -> str:
    """A right side that may be stored in `target`."""
    first = _operand(writer, target)
    if writer.integer(0, 1):
        return first
    function, second = writer.choose(*FUNCTIONS), _operand(writer, target)
    sign = SIGNS.get(function)
    return f"{first} {sign} {second}" if sign else f"{function}({first}, {second})"


def _operand(writer: Writer, target: str) -> str:
    """An array, part of one, or a number that broadcasts to what `target` holds now."""
    value = writer.value(target)
    shape = np.shape(value)
    found = [part for name in writer.arrays() if (part := _part(writer, name, shape))]
    choices = [*found, *found, str(writer.integer(-2, 5)), "1.5"]
    return str(writer.choose(*choices))


def _part(writer: Writer, name: str, shape: tuple[int, ...]) -> str | None:
    """A part of what `name` holds that has this shape, or broadcasts to it."""
    own = np.shape(writer.names[name])
    if len(own) < len(shape) or (len(own) == 1 and not shape):
        return name if not own or own == shape[-len(own) :] else f"{name}[0]" if own and own[0] else None
    if len(own) > len(shape):
        return f"{name}[{writer.integer(0, own[0] - 1)}]" if own[0] and own[1:] == shape else None
    keys = [_exactly(writer, extent, wanted) for extent, wanted in zip(own, shape, strict=True)]
    if not all(keys):
        return None
    return name if all(key == ":" for key in keys) else f"{name}[{', '.join(map(str, keys))}]"


def _exactly(writer: Writer, extent: int, wanted: int) -> str | None:
    """A slice of `wanted` elements out of `extent`, or of one, which broadcasts."""
    if extent == wanted:
        return str(writer.choose(":", ":", "::-1"))
    if extent < wanted or not wanted:
        return ":" if extent == 1 else None
    stride = writer.integer(1, max(1, (extent - 1) // max(1, wanted - 1)))
    first = writer.integer(0, extent - 1 - (wanted - 1) * stride)
    last = first + (wanted - 1) * stride
    if writer.integer(0, 3) == 0:
        return f"{last}:{'' if first == 0 else first - 1}:{-stride}"
    return f"{first}:{last + 1}" + ("" if stride == 1 else f":{stride}")
