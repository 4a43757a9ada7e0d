"""Random programs that read and write where arrays say: positions, masks, and what NumPy builds on them.

`x` and `y` are rows, `A` is a matrix, `p` holds positions, `b` a mask. Numbers are small and whole, so that
every sum is exact in any order.
"""

from __future__ import annotations

from hypothesis import strategies as st
from written import Draw, Writer, Written

__all__ = ["selecting_programs"]

MOST = 7
DTYPES = ("f8", "f8", "i8", "f4", "i4")
LAYOUTS = ("{0}", "{0}", "{0}", "{0}[::-1]", "np.repeat({0}, 2, axis=0)[::2]")
MATRICES = ("{0}", "{0}", "np.asfortranarray({0})", "{0}.T", "{0}[:, ::-1]")
VALUES = (
    "5", "-1.0", "x[0]", "x.sum()", "A[0, 0]", "np.float32(2)", "True",
)  # fmt: skip
SUMS = (
    "{0}.sum()", "{0}.sum()", "{0}.size", "len({0})", "{0}.prod()", "{0}.max(initial=3)", "{0}[:2].sum()",
    "({0} * np.arange({0}.size)).sum()", "np.cumsum({0}).sum()", "{0}[::-1][:3].sum()", "{0}.any()",
    "({0} * {0}).sum()", "{0} @ {0}", "{0}.max()", "{0}[-1]", "np.count_nonzero({0})", "{0}.argmax()",
)  # fmt: skip
ROW_MASKS = (
    "x > {0}", "x >= y", "x == y", "~(x > {0})", "(x > {0}) & (y < 3)", "(p % 2) == 0", "y != x",
    "x.astype(bool)", "np.isin(x, [1, 2])", "A[:, 0] > {0}", "A.sum(axis=1) > {0}", "A.T[0] > y",
)  # fmt: skip
MATRIX_MASKS = ("A > {0}", "A < A.T", "A == x", "A > x[:, None]", "~(A > {0})", "(A > {0}) | (A < -1)")
POSITIONS = (
    "p", "p[::-1]", "-p - 1", "p % 2", "p[:2]", "p[:, None]", "np.flatnonzero(x > 0)",
    "np.argmax(A, axis=0)", "(p + 1) % n", "np.array([0, -1, 0])", "[0, 1]", "p.astype(np.uint8)",
    "np.searchsorted(np.arange(n), y) % n", "np.nonzero(A > 1)[0]", "np.where(y > 0)[0]", "p[p > 0]",
    "np.arange(n)[x > 0]",
)  # fmt: skip
"""Positions in an axis of length n, of any shape."""
ROW_KEYS = ("{p}", "{p}", "{p}", "{m}", "{m}", "..., {p}")
MATRIX_KEYS = (
    "{p}", "{p}", "{m}", "{p}, 0", "{p}, 1:", ":, {p}", "0, {p}", "{p}, {p}", "p[:, None], p", "{m}, 0",
    "{m}, :2", ":, {m}", "{M}", "{M}", "{m}, p[0]", "np.ix_(p, p)", "{p}, ..., None", "1:, {p}",
)  # fmt: skip
WRITES = (
    "{t}[{k}] = {v}", "{t}[{k}] = {v}", "{t}[{k}] += {v}", "{t}[{k}] *= 2", "{t}[{k}] -= {t}[{k}]",
    "{t}[{k}] = {t}[{k}] + {v}", "{t}[{k}] = -{t}[{k}]", "{t}[{k}] = {o}[{k}]",
    "{t}[{k}] = {o}[{k}] * 2 - {t}[{k}]", "{t}[{k}] = {t}[{k}][::-1]", "{t}[{k}] = np.abs({o}[{k}]) + {v}",
    "np.add.at({t}, np.s_[{k}], {v})", "np.add.at({t}, np.s_[{k}], {o}[{k}])",
    "np.maximum.at({t}, np.s_[{k}], {v})", "np.negative.at({t}, np.s_[{k}])",
    "{t}[{k}], {o}[{k}] = {o}[{k}] - 1, {t}[{k}] + {v}", "x[b], y[b] = x[b] - y[b], x[b] + y[b]",
    "A[A > y], x[b] = A[A > y] * 2, y[b] + x[b]",
)  # fmt: skip
FLAT_WRITES = (
    "np.put({t}, {p}, {v})", "np.put({t}, {p}, y)", "np.place({t}, {t} > {c}, [1, 2, 3])",
    "np.putmask({t}, {t} > {c}, y)", "np.putmask({t}, {t} > {c}, {t} * 2)",
    "np.copyto({t}, {v}, where={t} > {c})", "{t}.put([0, -1], [4, 5])", "np.put({t}, p, p, mode='wrap')",
)  # fmt: skip
READS = (
    "{o}[{k}]", "{o}[{k}]", "np.take({o}, {p})", "np.take({o}, {p}, axis=0)",
    "np.take_along_axis({o}, {o}.astype(int) % n, 0)", "np.bincount(p, minlength=9)",
    "np.bincount(p, x, minlength=9)", "np.searchsorted(np.arange(n), {o})", "np.choose(p % 2, [x, y])",
    "np.digitize({o}, [0, 2, 3])", "np.where({M}, A, x)", "np.select([x > 0, x > 2], [x, y], 7)",
)  # fmt: skip
LOOPS = (
    "for i in range(n):\n        x[p[i]] += y[i]",
    "for i in range(len(p)):\n        A[p[i]] = A[p[i - 1]] + i",
    "for i in range(n):\n        x[x > i] -= 1",
    "for i in range(n):\n        A[i, A[i] > x] = y[A[i] > x]",
    "for i in range(1, n):\n        x[:i][y[:i] > 0] += 1",
    "for i in range(n):\n        np.add.at(x, p[i:], 1)", "for r in A:\n        r[p] = r[p][::-1] + 1",
    "for i in range(n):\n        y[i] = x[p[: i + 1]].sum()",
    "for i in range(4):\n        b = x < y + i\n        x[b], y[b] = y[b], x[b] + 1",
    "for i in range(3):\n        b = y > i\n        y[b] = y[b] * 2 - x[b]\n        x[b] += 1",
)  # fmt: skip


def selecting_programs() -> st.SearchStrategy[Written]:
    """Programs of a few statements."""
    return st.composite(_written)()


def _written(draw: Draw) -> Written:
    writer = _Writer(draw)
    writer.begin()
    for _ in range(writer.integer(1, MOST)):
        writer.statement()
    return writer.written()


class _Writer(Writer):
    """Writes one program."""

    def begin(self) -> None:
        n, dtype = self.choose(4, 3, 5, 2), self.choose(*DTYPES)
        other = self.choose(dtype, *DTYPES)
        shift = self.integer(0, 3)
        row = f"np.resize(np.array([2, -1, 0, 3, 1, -2]), {n}).astype({dtype!r})"
        second = f"np.resize(np.array([{shift}, 2, 3, -2, 0]), {n}).astype({other!r})"
        matrix = f"np.resize(np.array([{shift}, -1, 4, 0, 2, 1, -3]), ({n}, {n})).astype({dtype!r})"
        self.argument("x", self.choose(*LAYOUTS).format(row))
        self.argument("y", self.choose(second, second, second, "x", "x[::-1]"))
        self.argument("A", self.choose(*MATRICES).format(matrix))
        self.argument("p", f"np.resize(np.array([{shift}, 1, -1, 0, 1]) % {n}, {n})")
        self.argument("n", str(n))

    def statement(self) -> None:
        kind = self.integer(0, 11)
        if kind <= 4:
            self.write()
        elif kind <= 6:
            self.select()
        elif kind <= 8:
            self.line(f"{self.fresh()} = {self.filled(self.choose(*READS))}")
        elif kind == 9:
            self.line(self.filled(self.choose(*FLAT_WRITES)))
        elif kind == 10:
            self.line(self.choose(*LOOPS))
        else:
            self.line(f"b = {self.mask()}")

    def write(self) -> None:
        self.line(self.filled(self.choose(*WRITES)))

    def select(self) -> None:
        """Something that a mask selects, and a number made of it."""
        array, mask = self.choose(("x", "{m}"), ("y", "{m}"), ("A", "{M}"), ("A.T", "{M}"), ("A[0]", "{m}"))
        text = self.filled(
            self.choose("{0}[{1}]", "{0}[{1}]", "{0}[{1}] * 2 + 1", "np.abs({0}[{1}])").format(array, mask)
        )
        name = self.fresh()
        if self.line(f"{name} = {text}"):
            self.line(f"{self.fresh()} = {self.choose(*SUMS).format(name)}")

    def mask(self) -> str:
        return self.choose(*ROW_MASKS).format(self.integer(-1, 2))

    def filled(self, text: str) -> str:
        """A pattern with its parts chosen: a target `t`, another array `o`, a key `k`, a value `v`."""
        is_row = self.integer(0, 1) == 1
        keys = ROW_KEYS if is_row else MATRIX_KEYS
        masks = {
            "m": self.choose("b", f"({self.mask()})") if "b" in self.names else f"({self.mask()})",
            "M": f"({self.choose(*MATRIX_MASKS).format(self.integer(-1, 2))})",
            "p": self.choose(*POSITIONS),
            "c": self.integer(-1, 2),
        }
        parts = {
            **masks,
            "t": self.choose("x", "x", "y", "x[::-1]") if is_row else self.choose("A", "A", "A.T", "A[::-1]"),
            "o": self.choose("x", "y") if is_row else self.choose("A", "A.T"),
            "k": self.choose(*keys).format(**masks),
            "v": self.choose(*VALUES, *([] if is_row else ["x", "y[0]"])),
        }
        return text.format(**parts)
