"""Random loops whose steps go through all of an array, or stride through it."""

from __future__ import annotations

from whole_numbers import whole_numbers
from written import INDENT, Writer

__all__ = ["rounds", "strides"]

ROUND_MASKS = (
    "lab == k",
    "lab == k",
    "k + 1 == lab",
    "lab[::-1] == k",
    "lab[q] == k",
    "(lab == k) & (x > 1)",
    "(lab == k) & (x > s)",
    "(lab == k) | (x == k)",
    "lab == c",
    "lab + c == k",
    "(x >= e[k]) & (x < e[k + 1])",
    "(x >= e[k]) & (x < e[k + 1])",
    "(e[k] < x) & (e[k + 1] >= x)",
    "(e[k] < x) & (x < e[k + 1]) & (lab > 2)",
    "(e[k] <= x) & (x <= e[k + 1])",
    "(x >= e[q[k]]) & (x < e[q[k] + 1])",
    "(x >= rows[k].min()) & (x < rows[k].max())",
    "(x > rows[k].sum()) & (x <= rows[k + 1].sum())",
    "(x > s) & (x <= s + 1)",
    "(x >= k * d) & (x < (k + 1) * d)",
)
ROUND_VALUES = (
    "{0}[m].sum()",
    "{0}[m].sum()",
    "m.sum()",
    "np.where(m, {0}, 0).sum()",
    "np.where(m, {0} + k, 0).sum()",
    "np.where(m, {0}, 1).max()",
    "np.where(m, {0}, -np.inf).max()",
    "{0}[m].max(initial=-9)",
    "{0}[m].min(initial=9)",
    "({0} * m).sum()",
    "{0}[m].size",
    "{0}[m].mean()",
    "(m & ({0} > 0)).any()",
    "{0}[m][:2].sum()",
    "{0}[m][-1:].sum()",
    "{0}[np.flatnonzero(m)].sum()",
    "np.flatnonzero(m)[1:].sum()",
    "grid[m].sum(axis=0)",
    "grid[m].max(axis=0, initial=0)",
    "np.where(m[:, None], grid, 0).sum(axis=0)",
    "grid[m, 1].sum() / (1 + m.sum())",
    "{0}[m] @ {1}[m]",
    "{0}[m].sum() * k - {1}[m].sum()",
    "np.where(m, {0}, -0.0).sum()",
)
ROUND_CHANGES = (
    "x[k] += 1",
    "lab[k] = k + 1",
    "e[k] += 1",
    "e[k + 1] = e[k]",
    "c = c + v % 2",
    "s = v",
    "s += 1",
    "x[m] = v",
    "x[m] += 1",
    "w[m] = x[m]",
    "q[k] = k",
    "rows[k] -= 1",
    "lab = lab[::-1]",
    "out[k + 1] = v",
)


def rounds(writer: Writer) -> None:
    """Each round counts or adds up what a mask selects."""
    count, size = writer.choose(5, 8, 11), writer.choose(16, 17, 40, 65)
    dtype = writer.choose("f8", "f8", "f4", "i8")
    for name, shape in (("x", (size,)), ("w", (size,)), ("grid", (size, 3))):
        whole_numbers(writer, name, shape, dtype)
    labels = writer.choose("i8", "i8", "i4", "u1", "i1", "u8", "f8", "?")
    random = f"np.random.default_rng({writer.integer(0, 9)})"
    least = 0 if labels in ("u1", "u8") else -2
    writer.argument("lab", f"{random}.integers({least}, {count + 2}, {size}).astype({labels!r})")
    edges = f"np.linspace(-1, 5, {count + 2})", f"np.arange({count + 2}) // 2", f"np.arange({count + 2}) - 3"
    writer.argument("e", f"({writer.choose(*edges)}).astype({writer.choose(dtype, dtype, 'f8', 'i2')!r})")
    if writer.integer(0, 3) == 0:
        special = ("np.nan", "-np.inf") if writer.names["e"].dtype.kind == "f" else ()
        writer.make(f"e[{writer.integer(0, count)}] = {writer.choose('e[0]', '9', *special)}")
    writer.argument("q", f"{random}.integers({writer.choose(0, 0, 0, -1)}, {size}, {size})")
    if writer.integer(0, 1):
        writer.make(f"q %= {writer.choose(count, count, count + 2)}")
    writer.argument(
        "rows", f"np.arange({count + 2} * 8).reshape({count + 2}, 8) // {writer.choose(12, 5)} - 2.0"
    )
    writer.argument("d", writer.choose("1.0", "0.5", "0.0", "-1.0"))
    writer.lines(f"out = np.zeros(({count + 2}, 3))", "c = 0", "s = 0.0")
    body = [f"m = {writer.choose(*ROUND_MASKS)}"]
    arrays = writer.choose(("x", "w"), ("w", "x"))
    for place in ("out[k]", "out[k]", "out[k, 1]")[: writer.integer(1, 3)]:
        body.append(f"v = {writer.choose(*ROUND_VALUES).format(*arrays)}")
        body.append(f"{place} {writer.choose('=', '=', '+=')} v")
        if writer.integer(0, 3) == 0:
            body.append(writer.choose(*ROUND_CHANGES))
        if writer.integer(0, 5) == 0:
            body.append(f"m = {writer.choose(*ROUND_MASKS)}")
    head = writer.choose(
        f"range({count})", f"range({count})", f"range(1, {count})", f"range({count - 1}, -1, -1)"
    )
    writer.lines(f"for k in {head}:", *(INDENT + line for line in body))
    writer.line("v93 = out")
    writer.line("v94 = x + w")


STARTS = ("k", "k", "k * k", "2 * k + 1", "5", "c", "700 - 9 * k", "-7 * k", "3 - k", "n - 3 * k")
STOPS = ("", "", "", "", "40 * k", "c", "900 - 3 * k", "700", "-k", "n - k * k")
STRIDING = (
    *("{a} = k", "{a} = k * 2 - c", "{a} = w[k]", "{a} = {b}[0] + 1") * 3,
    "{a} += 1",
    "{a} = {a} * 2 - k",
    "{a} = {b} + k",
    "{a} = np.where({a} > 2, {b}, k)",
    "{a}, {b} = k, c",
    "{a} = {a}[::-1]",
    "{a} += w[: len({a})]",
)


def strides(writer: Writer) -> None:
    """Each step writes every so many cells of large arrays."""
    shape = (writer.choose(900, 1024, 1801), *writer.choose((), (), (2,)))
    dtype = writer.choose("f8", "i8", "i4", "u1", "?", "f4")
    for name in "xy":
        whole_numbers(writer, name, shape, dtype)
    whole_numbers(writer, "w", shape, "i8" if dtype == "?" else dtype)
    writer.argument("n", str(shape[0]))
    writer.argument("c", str(writer.choose(3, 0, 600, -4, 5000)))
    body: list[str] = []
    for _ in range(writer.choose(1, 1, 1, 2)):
        step = writer.choose("k", "k", "k", "k", "2 * k", "k + 1", "3", "-k")
        where = f"{writer.choose(*STARTS)} : {writer.choose(*STOPS)} : {step}"
        arrays = writer.choose("xy", "yx")
        cells = {name: f"{array}[{where}]" for name, array in zip("ab", arrays, strict=True)}
        body.append(writer.choose(*STRIDING).format(**cells))
        if writer.integer(0, 7) == 0:
            body.append(writer.choose("c = c + 1", "x[k] = 2", "c = k * 2", "w[k] += c"))
    head = writer.choose("1, 9", "2, 14", "2, 14", "8, 0, -1")
    writer.lines(f"for k in range({head}):", *(INDENT + line for line in body))
    writer.line("v95 = x + w")
