"""Random programs of the patterns that passes look for, with what comes close to them.

Numbers are small and whole where they are summed, so that every sum is exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from rounds import rounds, strides
from whole_numbers import whole_numbers
from written import INDENT, Draw, Writer, Written

__all__ = ["PATTERNS", "Pattern"]

FLOATS = ("f8", "f8", "f4", "f2")
NUMBERS = (*FLOATS, "c16", "c8", "i8", "i4", "i2", "u1", "i1", "u8", "?")


@dataclass(frozen=True)
class Pattern:
    """Programs, and the names of passes that look for such."""

    programs: st.SearchStrategy[Written]
    passes: tuple[str, ...]


def _patterns(write: Callable[[Writer], None], *passes: str) -> Pattern:
    @st.composite
    def programs(draw: Draw) -> Written:
        writer = Writer(draw)
        write(writer)
        known = [*writer.arguments, *(name for name in writer.names if name[0] == "v")]
        return Written(tuple(writer.making), tuple(writer.arguments), tuple(writer.body), tuple(known), {})

    return Pattern(programs(), passes)


def _window(ends: tuple[int, ...], apart: tuple[int, ...]) -> str:
    """The cells so far from those that are `ends` away from the edges."""
    return ", ".join(f"{end + step}:{step - end or None}" for end, step in zip(ends, apart, strict=True))


# ---- rows that use the values of other rows ----------------------------------------------------------

HEAVY = (
    "np.sqrt({0})",
    "{0} / ({1} + 3)",
    "np.sqrt({0} * {0} + {1} * {1})",
    "1 / np.sqrt({0} + 2) / {1}",
    "np.where({0} > {1}, {0} / 3, {1} / 7)",
    "np.floor({0} / 2).astype(int) // 3 / 2",
    "np.maximum({0}, {1}) / 5",
    "{0} % 3 / 7",
)
TOGETHER = ("{0} - {1}", "{0} + {1}", "{0} * {1}", "{0} - {1} / 2", "np.minimum({0}, {1})")


def _rows(writer: Writer) -> None:
    rank = writer.choose(2, 2, 2, 3)
    ends = tuple(writer.choose(*((2, 2, 1) if axis == 0 else (1, 1, 2, 0))) for axis in range(rank))
    extents = (writer.integer(3, 11), *(writer.choose(1, 3, 8, 17, 33) for _ in range(rank - 1)))
    shape = tuple(extent + 2 * end for extent, end in zip(extents, ends, strict=True))
    dtype = writer.choose(*FLOATS)
    for name in "ab":
        whole_numbers(writer, name, shape, dtype)
    made = writer.integer(0, 1)
    functions = [writer.choose(*HEAVY) for _ in range(writer.integer(1, 2))]
    values: list[str] = []
    for function in functions:
        other = tuple(writer.integer(-end, end) if writer.integer(0, 1) else 0 for end in ends)
        array = writer.choose("a", "b")
        places = [tuple(writer.integer(-end, end) for end in ends) for _ in range(writer.integer(1, 3))]
        for place in (*places, (places[0][0] + 1 if places[0][0] < ends[0] else -1, *places[0][1:])):
            there = tuple(
                min(max(step + more, -end), end) for step, more, end in zip(place, other, ends, strict=True)
            )
            value = function.format(f"a[{_window(ends, place)}]", f"{array}[{_window(ends, there)}]")
            values.append(_named(writer, value) if writer.integer(0, 2) == 0 else f"({value})")
    total = values[0]
    for value in values[1:]:
        total = f"({writer.choose(*TOGETHER).format(total, value)})"
    text = f"{writer.fresh()} = {total}"
    into = f"[{_window(ends, (0,) * rank)}]"
    match made, writer.integer(0, 2):
        case 1, 0:
            text = f"a{into} = {total}"
        case 1, 1:
            text = f"b{into} += {total}"
        case 1, 2:
            text = f"a{into}, b{into} = {total}, {values[0]}"
        case _:
            pass
    writer.line(text)
    if writer.integer(0, 2) == 0:
        writer.line(writer.choose(f"v90 = ({total}) + 1", f"a{into} = b{into} / 2", "b[...] = a[::-1] / 3"))


def _named(writer: Writer, value: str) -> str:
    name = writer.fresh()
    return name if writer.line(f"{name} = {value}") else f"({value})"


# ---- arrays and their own reverse --------------------------------------------------------------------

REVERSED = (
    "{0} = {0} + {1}",
    "{0} += {1}",
    "{0} -= {1} * 2",
    "{0} = {1} * 3 - {0}",
    "{0} = {1}",
    "{0}, {2} = {1} + {3}, {1} - {3}",
    "{0}, {2} = {3}, {1}",
    "{0} = np.where({0} > {1}, {0}, {3})",
    "{0} = np.maximum({1}, {2}) + {3}",
    "{0} = {1} + {3} * {2}",
    "{0} = {0}[::-1] + {1}",
    "{0} *= {1} + {0}",
)


def _mirrored(writer: Writer) -> None:
    rank = writer.choose(1, 1, 2, 2, 3)
    shape = tuple(writer.choose(0, 1, 2, 3, 5, 8, 13, 40) for _ in range(rank))
    dtype = writer.choose(*NUMBERS)
    for name in "ab":
        whole_numbers(writer, name, shape, dtype)
    axes = [axis for axis in range(rank) if writer.integer(0, 3)]
    for _ in range(writer.integer(1, 3)):
        places = {"a": _turned(writer, shape, axes), "b": _turned(writer, shape, axes)}
        here, there = places["a"]
        if writer.integer(0, 3) == 0:
            axes = [axis for axis in range(rank) if writer.integer(0, 1)]
        cells = f"a[{here}]", f"a[{there}]", f"b[{here}]", f"b[{there}]"
        if writer.integer(0, 2) == 0:
            cells = cells[2:] + cells[:2]
        text = writer.choose(*REVERSED).format(*cells)
        if writer.integer(0, 3) == 0:
            name = writer.fresh()
            writer.line(f"{name} = {cells[1]} * 2")
            text = f"{cells[0]} = {cells[0]} - {name}"
        writer.line(text)


def _turned(writer: Writer, shape: tuple[int, ...], axes: list[int]) -> tuple[str, str]:
    """A box of cells, and one of the same shape that is gone through backwards along some axes."""
    here, there = [], []
    for axis, extent in enumerate(shape):
        cut = writer.choose(0, 0, 0, 1, 2)
        first = writer.choose(0, cut, 0)
        start, stop = first, max(extent - cut + first, first)
        here.append(f"{start}:{stop}")
        move = writer.choose(0, 0, 0, cut - first, -first)
        if axis in axes:
            last = stop + move - 1
            there.append(f"{last}:{start + move - 1 if start + move > 0 else ''}:-1" if last >= 0 else "0:0")
        else:
            there.append(f"{start + move}:{stop + move}")
    return ", ".join(here), ", ".join(there)


# ---- extremes and where they are; reductions of the same ---------------------------------------------

REDUCTIONS = (
    "{0}.max({1})",
    "{0}.argmax({1})",
    "{0}.min({1})",
    "{0}.argmin({1})",
    "np.argmax({0}, {1})",
    "{0}.max({1}) - {0}.min({1})",
    "np.argmax(-{0}, {1})",
    "{0}.max({1}) + {0}.argmax({1})",
    "{0}.sum({1}) + {0}.max({1})",
    "np.nanmax({0}, {1})",
    "np.argmax({0} > 2, {1})",
    "np.argmax(np.abs({0}), {1})",
    "np.abs({0}).max({1})",
    "{0}.max({1}, initial=2)",
    "np.any({0} > 3, {1})",
)
BETWEEN = (
    "{0}[...] = {0}[::-1]",
    "{0}[-1] = 4",
    "{0} += 1",
    "{0}[0] = np.minimum({0}[0], {0}[-1])",
    "b[...] = {0}",
)


def _extremes(writer: Writer) -> None:
    rank = writer.choose(1, 1, 2, 2, 3)
    shape = tuple(writer.choose(1, 2, 5, 12, 33) for _ in range(rank))
    dtype = writer.choose(*FLOATS, *(name for name in NUMBERS if name[0] != "c"))
    for name in "ab":
        whole_numbers(writer, name, shape, dtype)
    if writer.integer(0, 9) == 0:
        writer.make(f"a[...] = {'-np.inf' if dtype[0] == 'f' else 1}")
    for _ in range(writer.integer(2, 5)):
        if writer.integer(0, 3) == 0:
            writer.line(writer.choose(*BETWEEN).format(writer.choose("a", "a", "b")))
            continue
        axis = writer.choose("", 0, rank - 1)
        text = writer.choose(*REDUCTIONS).format(writer.choose("a", "a", "a", "b"), axis)
        writer.line(f"{writer.fresh()} = {text.replace(', )', ')').replace('(, ', '(')}")


# ---- positions in loops ------------------------------------------------------------------------------

STEPS = (
    "y[i, j] = y[i, j - 1] + table[{0}]",
    "y[i, j] = y[i, j - 1] + table[{0}]",
    "y[i, {0}] += table[j % 4]",
    "y[i, j] = y[i - 1, j] + table[{0}] * table[{1}]",
    "y[i, j] = grid[{0}, {1}]",
    "y[i, j] = max(y[i - 1, j], y[i, j - 1] + grid[{0}, {1}])",
    "y[i, j] = table[{0} + 1]",
    "y[i, j] = table[{0} - {1}]",
    "y[{0}, {1}] = y[i, j] + 1",
    "table[{0}] += y[i, j - 1] + 1",
    "y[i, j] = np.where(y[i - 1, j] > 2, 1, table[{0}])",
    "p[i] = {0}",
)
PLACES = ("p[j]", "p[j]", "p[i]", "q[i]", "q[j]", "p[j - 1]", "p[q[i]]", "s[i, j]", "s[j, i]", "r[j]", "q[0]")


def _positions(writer: Writer) -> None:
    n, m = writer.choose(9, 9, 5, 2, 1, 0), writer.choose(9, 9, 6, 2, 1)
    writer.argument("y", f"np.zeros(({writer.choose(9, 9, n + 1)}, 9))")
    writer.argument("table", "np.arange(6) * 2.0")
    writer.argument("grid", "np.arange(42).reshape(7, 6) % 5.0")
    for name, shape in (("p", "9"), ("q", "9"), ("r", "9"), ("s", "(9, 9)")):
        ends = writer.choose("0, 6", "0, 6", "0, 6", "0, 5", "-6, 6", "-1, 6", "0, 7", "-7, 0", "-9, 9")
        dtype = writer.choose("i8", "i8", "i4", "u1", "i2", "u8", "i1")
        made = f"np.random.default_rng({writer.integer(0, 9)}).integers({ends}, {shape})"
        writer.argument(name, f"{made}.astype({'i2' if dtype[0] == 'u' and '-' in ends else dtype!r})")
    writer.argument("k", str(writer.integer(-1, 9)))
    steps = [
        writer.choose(*STEPS).format(writer.choose(*PLACES), writer.choose(*PLACES))
        for _ in range(writer.integer(1, 2))
    ]
    first, last = writer.choose(1, 1, 0), writer.choose(n, n, n, "k")
    inner = writer.choose(f"1, {m}", f"1, {m}", f"0, {m}", "k", "i, 9", f"{m - 1}, 0, -1")
    lines = [f"for i in range({first}, {last}):", f"{INDENT}for j in range({inner}):"]
    writer.lines(*lines, *(2 * INDENT + step for step in steps))


# ---- positions that go along with a loop -------------------------------------------------------------

ALONG = (
    "x[j] += x[j - n[i]]",
    "x[j] = max(x[j], x[j - n[i]] + w[i])",
    "x[j - n[i]] += 1",
    "x[j] = x[j - k] - w[j]",
    "x[n[i]] += j",
    "x[j + n[i + 1]] += w[j - 1]",
    "x[n[i] - j] += 2",
    "x[2 * j - k] += 3",
    "w[j] = x[j - w[i]] % 5",
    "t = x[j] - x[j - 1]; w[j] = t % 3",
    "x[w[j]] = x[j] % 9",
)
SPANS = (
    "n[i], 40",
    "n[i], 40",
    "39, n[i] - 1, -1",
    "39, n[i] - 1, -1",
    "n[i], n[i + 1]",
    "n[i] - 2, 38 + n[i + 1]",
    "k, 40",
    "0, k",
    "i, 39",
    "n[i], 40, 2",
)


def _ends(writer: Writer) -> None:
    writer.argument("x", f"np.arange({writer.choose(40, 40, 41, 39)}) % 7")
    writer.argument("w", "np.arange(40) % 5")
    ends = writer.choose("1, 9", "1, 9", "0, 20", "-3, 9", "-40, 0", "30, 45")
    dtype = writer.choose("i8", "i8", "i4", "u1") if "-" not in ends else "i8"
    made = f"np.random.default_rng({writer.integer(0, 9)}).integers({ends}, {writer.choose(5, 5, 4)})"
    writer.argument("n", f"{made}.astype({dtype!r})")
    writer.argument("k", str(writer.integer(-2, 41)))
    steps = [writer.choose(*ALONG) for _ in range(writer.integer(1, 2))]
    lines = [
        f"for i in range({writer.choose(4, 4, 1)}):",
        f"{INDENT}for j in range({writer.choose(*SPANS)}):",
    ]
    writer.lines(*lines, *(2 * INDENT + step for step in steps))


# ---- sums that go backwards --------------------------------------------------------------------------

PAST = (
    "(w[:{k}] * x[:{k}][::-1]).sum()",
    "(w[1 : {k} + 1] * x[:{k}][::-1]).sum()",
    "(w[:{k}] * x[:{k}][::-1]).sum() + x[:{k}].sum()",
    "w[:{k}] @ x[:{k}][::-1]",
    "(x[:{k}] * x[:{k}][::-1]).sum()",
    "(w[:{k}] * x[{k}:0:-1]).sum()",
)


def _backwards(writer: Writer) -> None:
    size = writer.choose(9, 40, 64, 75)
    dtype = writer.choose("i8", "i8", "u8")
    for name in "wx":
        whole_numbers(writer, name, (size + 1,), dtype)
    lines = [f"for k in range(1, {size}):"]
    value = writer.choose(*PAST).format(k="k")
    lines.append(writer.choose(f"x[k] = {value}", f"x[k] += {value} % 7", f"w[k] = {value}"))
    if writer.integer(0, 2) == 0:
        lines.append(writer.choose("x[k] -= 1", "x[k - 1] = x[k]", "x[: k // 2] += 1", "w[k] = x[k] * 2"))
    if writer.integer(0, 3) == 0:
        lines.insert(
            1, writer.choose("x[0] = k", "x[k - 1] = np.where(x[k] > 3, 2, x[0])", "w[0] += x[k - 1]")
        )
    writer.lines(lines[0], *(INDENT + line for line in lines[1:]))
    writer.line("v91 = x.sum()")


# ---- checksums ---------------------------------------------------------------------------------------

BIT_STEPS = (
    "c = (c >> 1) ^ (0x8408 * (c & 1))",
    "c = (c >> 1) ^ (0x8408 * (c & 1))",
    "c = (c << 1) ^ np.where(c & 0x8000, 0x1021, 0)",
    "c = np.where(c & 1, (c >> 1) ^ 0x8408, c >> 1)",
    "c = (c >> 1) ^ (c << 3)",
    "c = (c >> 1) ^ (0x8408 * (c & 1)) ^ (c & 0x70)",
    "c = (c >> 2) ^ (np.where((c & 4) == 4, 9, 0)) ^ (c << 7)",
    "c = (c >> 1) ^ ((c & 2) << 4) ^ np.where((c & 1) != 0, 77, 0)",
    "c = (c >> 1) + (c & 1)",
    "c = c ^ (c >> 3) ^ 5",
    "c = ~c",
    "c = np.where(c > 100, c >> 1, c ^ 3)",
    "c = (c >> 1) ^ (-(c & 1) & 0xA001)",
    "c = c ^ (i << 1)",
    "c = (c << 1) | (c >> 15)",
)


def _checksums(writer: Writer) -> None:
    size = writer.choose(64, 65, 71, 79)
    dtype = writer.choose("u2", "u2", "u4", "u8", "i4", "i8", "i2", "u1")
    cells = writer.choose("u1", "u1", "u1", "i1", "u2", "?")
    writer.argument("x", f"(np.arange({size}) * 37 % 251 % 129).astype({cells!r})")
    if cells == "i1" and writer.integer(0, 1):
        writer.make("x -= 64")
    start = writer.choose("0", "1", "0x7FFF")
    join = writer.choose(
        "c = c ^ b",
        "c = c ^ b",
        f"c = c ^ (b.astype(np.{_name(dtype)}) << 8)",
        "c = c + b",
        "c = c ^ (b & 15)",
    )
    steps = [INDENT + writer.choose(*BIT_STEPS) for _ in range(writer.choose(1, 1, 2))]
    body = [join, f"for i in range({writer.choose(8, 8, 9, 5)}):", *steps]
    if writer.integer(0, 3) == 0:
        body = [*body[1:], body[0]]
    if writer.integer(0, 3) == 0:
        body.append(writer.choose("c = c ^ 1", "c = c ^ (c >> 5)", "d = c"))
    head = writer.choose("for b in x:", "for b in x[::-1]:", "for b in x:")
    lines = [f"c = np.{_name(dtype)}({start})", head, *(INDENT + line for line in body)]
    writer.lines(*lines, "v0 = c")


def _name(dtype: str) -> str:
    return {"u": "uint", "i": "int"}[dtype[0]] + str(8 * int(dtype[1]))


# ---- rows that are looked at twice -------------------------------------------------------------------

LIGHT = ("row - m", "row * 2", "row + b[i]", "m - row", "row * m", "row - b[0]", "row * b")
TWICE = (
    "y[i] = t / (s + 1)",
    "y[i] = t - s",
    "x[i] = t * s",
    "y[i] = t * 2 + t[::-1]",
    "y[i] = t * t + s",
    "y[i, 1:] = t[1:] - t[:-1]",
    "x[i] = t\n        y[i] = t + x[i]",
)


def _twice(writer: Writer) -> None:
    n, m = writer.choose(1, 3, 8), writer.choose(1, 4, 33, 64)
    dtype = writer.choose("f8", "f8", "f4", "i8", "i4", "f2")
    for name, shape in (("x", (n, m)), ("y", (n, m)), ("b", (m,))):
        whole_numbers(writer, name, shape, dtype)
    body = [
        "row = x[i]",
        f"m = {writer.choose('row.max()', 'row[0]', 'row.sum()', 'b[i % 2 % len(b)]')}",
        f"t = {writer.choose(*LIGHT)}".replace("b[i]", "b[0]"),
        f"s = {writer.choose('(t * t).sum()', 't.sum()', 't.max()', '(t + row).max()')}",
    ]
    if writer.integer(0, 3) == 0:
        body.append(writer.choose("m = s", "x[i] = 1", "b[0] = s", "x[i] += 1", "row = row + 1"))
    body += [writer.choose(*TWICE).split("\n")[0]]
    if writer.integer(0, 3) == 0:
        body.append(writer.choose(*TWICE).split("\n")[0])
    writer.lines(f"for i in range({n}):", *(INDENT + line for line in body))


# ---- tables that are filled first --------------------------------------------------------------------

CELLS = (
    "y[i, j] = max(y[i - 1, j], y[i, j - 1]) + x[i, j]",
    "y[i, j] = y[i - 1, j - 1] + 1",
    "y[i, j] = y[i - 1, j] + y[i, j]",
    "y[i, j] = x[i, j]",
    "y[i, j] = y[i, j - 1] + y[i - 1, -1]",
    "y[i, j] = y[i - 1, 2] * x[i, j] + 1",
)
WHOLES = ("y[1:] = x[1:] + {0}", "y[1:-1, 1:-1] = x[1:-1, 1:-1]", "y[:, 2:] = x[:, :-2]", "y[0] = y[1] + 1")


def _filled(writer: Writer) -> None:
    n, m = writer.choose(5, 8, 12), writer.choose(6, 9, 17)
    whole_numbers(writer, "x", (n, m), dtype := writer.choose("f8", "i8", "i4", "f4"))
    fill = f"np.full(({n}, {m}), {writer.choose(0, 2, 5)}, {dtype!r})"
    if writer.integer(0, 1):
        writer.line(f"v0 = {fill}")
        writer.line("y = v0")
    else:
        whole_numbers(writer, "y", (n, m), dtype)
        writer.line(f"y[...] = {writer.choose(0, 3, 'x[::-1]')}")
    for _ in range(writer.integer(1, 3)):
        if writer.integer(0, 1):
            writer.line(writer.choose(*WHOLES).format(writer.choose(1, "y[:-1]", "y[1:]")))
            continue
        start, end = writer.choose(1, 1, 0, 2), writer.choose(0, 0, 1)
        writer.lines(
            f"for i in range({writer.choose(1, start)}, {n - end}):",
            f"{INDENT}for j in range({start}, {m}):",
            2 * INDENT + writer.choose(*CELLS),
        )
    writer.line("v92 = y[::3] + 1")


# ---- long sums ---------------------------------------------------------------------------------------

SUMS = (
    "{0}.sum()",
    "({0} * {1}).sum()",
    "({0} * {1}[::-1]).sum()",
    "{0} @ {1}",
    "{0}.max()",
    "({0} - {1}).min()",
    "np.abs({0} - 2).sum() + {1}.max()",
    "({0} > {1}).sum()",
    "({0} > {1}).any()",
    "{0}.argmax()",
    "(grid * 2).sum()",
    "grid.sum(axis=1)",
    "grid @ {0}",
    "(grid * {0}).max(axis=1)",
)


def _sums(writer: Writer) -> None:
    size = writer.choose(1000, 1024, 1025, 1777, 4096, 5003)
    dtype = writer.choose("f8", "f8", "f4", "i8", "i4", "u1")  # not f2: sums beyond 2048 are not exact in it
    for name, shape in (("a", (size,)), ("b", (size,)), ("grid", (3, size))):
        whole_numbers(writer, name, shape, "f8" if name == "b" and writer.integer(0, 1) else dtype)
    for _ in range(writer.integer(1, 3)):
        places = writer.choose("a", "a", "b", "a[1:-1]", "a[::2]"), writer.choose("b", "b", "a")
        writer.line(f"{writer.fresh()} = {writer.choose(*SUMS).format(*places)}")


# ---- names that take over one another's arrays -------------------------------------------------------

TURNS = (
    "a, b = b, a",
    "a, b = b, a + b",
    "a, b, c = c, a, b",
    "a, b, c = b, c, a * 2",
    "a, b = b, b + 1",
    "a, b = b, a",
    "c = a",
    "c = b[::-1]",
    "a = b",
    "b = c + k",
    "b = a.copy()",
    "a[0] = k",
    "b += a",
    "c[1:] = b[:-1] * 2",
    "d = a",
    "d = b + c",
    "a = a * 1",
    "t = a; a = b; b = t + c",
    "t = c; c = a; a = t",
)
AFTER = (
    "a[0] = 90",
    "b[1] = 91",
    "c += 92",
    "x[2] = 93",
    "y[1] = 94",
    "z[0] = 95",
    "a, b = b, a",
    "v5 = a + b",
)


def _turns(writer: Writer) -> None:
    for name in "xyz":
        writer.argument(name, f"np.arange(3) + {ord(name)}")
    writer.argument("n", str(writer.choose(0, 1, 2, 3, 4, 5, 7, 8)))
    writer.lines(
        *(
            f"{name} = {writer.choose(value, value, value, 'x')}"
            for name, value in zip("abcd", "xyzx", strict=True)
        )
    )
    count = writer.choose(0, 1, 2, 3, 4, 5, 8, 9, "n", "n")
    turns = [INDENT + writer.choose(*TURNS) for _ in range(writer.integer(1, 4))]
    writer.lines(f"for k in range({count}):", *turns)
    for _ in range(writer.integer(0, 2)):
        writer.lines(writer.choose(*AFTER))
    writer.lines(f"v0, v1, v2, v3 = {writer.choose('a, b, c, a', 'a, b, c, d', 'b, a, c, x', 'c, d, c, b')}")


PATTERNS = {
    "rounds": _patterns(rounds, "group"),
    "strides": _patterns(strides, "portion"),
    "turns": _patterns(_turns),
    "sums": _patterns(_sums, "quarters"),
    "rows": _patterns(_rows, "retain"),
    "mirrored": _patterns(_mirrored, "mirror"),
    "extremes": _patterns(_extremes, "again", "foremost"),
    "positions": _patterns(_positions, "beforehand"),
    "ends": _patterns(_ends, "beforehand"),
    "backwards": _patterns(_backwards, "reverse"),
    "checksums": _patterns(_checksums, "bytewise"),
    "twice": _patterns(_twice, "rematerialise"),
    "filled": _patterns(_filled, "margins"),
}
"""Programs by what they have, and the passes that look for it."""
