"""Random loops that may accumulate give the same bits when they do."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pass_programs import CAPS

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.interp import run
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.passes.bodies import totals as totals_module
from arrayjit.passes.bodies.totals import totals

OPS = {
    "i8": ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"),
    "bool": ("logical_and", "logical_or", "logical_xor"),
    "f64": ("add", "maximum", "minimum"),
}
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


class Author:
    """Writes a nest of two loops whose steps mostly accumulate in the cells `p` and `q`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = self.random.choice(("i8", "i8", "i8", "i8", "bool", "bool", "f64"))
        self.op = self.random.choice(OPS[self.dtype])
        self.lines: list[str] = []

    def term(self) -> str:
        return self.random.choice(("x[k, l]", "y[l]", "y[k]", "x[l, k]"))

    def condition(self, total: str) -> str:
        left, right = self.random.sample([self.term(), self.term(), "y[0]"], 2)
        if self.random.random() < 0.03:
            left = total
        return f"{self.random.choice(COMPARISONS)}[bool]({left}, {right})"

    def step(self, total: str, depth: int = 2) -> str:
        """The total after a step."""
        choice, dtype = self.random.random(), self.dtype
        before = self.step(total, depth - 1) if depth > 1 else total
        if depth == 1 or choice < 0.5:
            op = self.op if self.random.random() < 0.98 else self.random.choice(OPS[dtype])
            operands = [before, self.term()]
            if self.random.random() < 0.3:
                operands.reverse()
            return f"{op}[{dtype}]({', '.join(operands)})"
        if choice < (0.7 if dtype == "i8" else 0.95) and self.op in ("maximum", "minimum"):
            value = self.random.choice(("x[k, l]", "y[l]"))
            pair = self.random.sample([value, total], 2)
            chosen = self.random.sample([value, total], 2)
            condition = f"{self.random.choice(COMPARISONS)}[bool]({', '.join(pair)})"
            return f"where[{dtype}]({condition}, {', '.join(chosen)})"
        other = "bool(True)" if dtype == "bool" and choice < 0.8 else self.random.choice((total, before))
        chosen = self.random.sample([before, other], 2)
        return f"where[{dtype}]({self.condition(total)}, {', '.join(chosen)})"

    def steps(self, total: str, indent: str) -> None:
        name = f"{total[0]}{len(self.lines)}"
        self.lines.append(f"{indent}{name}: {self.dtype} = {self.step(total)}")
        if self.random.random() < 0.05:
            self.lines.append(f"{indent}y[l] = {self.term()}")
        self.lines.append(f"{indent}{total} = {name}")
        if self.random.random() < 0.05:
            self.lines.append(f"{indent}x[k, l] = {total}")

    def program(self) -> Kernel:
        d = self.dtype
        self.lines.append(f"def f(x: update[{d}, 9, 9], y: update[{d}, 9], p: update[{d}], q: update[{d}]):")
        self.lines.append("    for k in sequential(0, 9):")
        copied = self.random.random() < 0.5
        self.lines += [f"        c: {d} = p[()]"] if copied else []
        self.lines.append(f"        for l in sequential({self.random.choice(('0, 9', '8, -1, -1'))}):")
        self.steps("c" if copied else "p[()]", " " * 12)
        if self.random.random() < 0.5:
            self.steps("q[()]", " " * 12)
        if self.random.random() < 0.3:
            self.steps("c" if copied else "p[()]", " " * 12)
        self.lines += ["        p[()] = c"] if copied else []
        return parse("\n".join(self.lines) + "\n")


class TriangleAuthor(Author):
    """Writes loops whose steps mostly accumulate in a cell from others of the same array."""

    def term(self) -> str:
        return self.random.choice(("x[k, l]", "y[l]", "y[l]", "x[l, k]", "y[8 - l]"))

    def program(self) -> Kernel:
        d = self.dtype
        bounds = self.random.choice(
            ("0, k", "0, k", "k + 1, 9", "k - 1, -1, -1", "8, k, -1", "0, k + 1", "k, 9", "0, k, 2")
        )
        self.lines.append(f"def f(x: update[{d}, 9, 9], y: update[{d}, 9]):")
        self.lines.append("    for k in sequential(0, 9):")
        self.lines.append(f"        for l in sequential({bounds}):")
        self.steps("y[k]", " " * 12)
        return parse("\n".join(self.lines) + "\n")


class CountAuthor(Author):
    """Writes loops in which float64s mostly count, from a whole number on."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.dtype, self.op = "f64", "add"

    def term(self) -> str:
        return self.random.choice(
            ("cast(b[k, l], f64)", "cast(n[l], f64)", "f64(-0.0)", "f64(2.0)", "f64(-1.0)")
        )

    def condition(self, total: str) -> str:
        return self.random.choice(("less[bool](n[k], n[l])", "b[l, k]", "less[bool](x[l], f64(1.0))"))

    def program(self) -> Kernel:
        self.lines.append("def f(b: read[bool, 9, 9], n: read[i8, 9], x: read[f64, 9], p: write[f64, 9]):")
        self.lines.append("    for k in sequential(0, 9):")
        self.lines.append(
            f"        c: f64 = f64({self.random.choice(('0.0', '7.0', '-0.0', '0.5', '9e15'))})"
        )
        self.lines.append("        for l in sequential(0, 9):")
        self.steps("c", " " * 12)
        self.lines.append("        p[k] = c")
        return parse("\n".join(self.lines) + "\n")

    def steps(self, total: str, indent: str) -> None:
        self.lines.append(f"{indent}t: f64 = {self.step(total)}")
        self.lines.append(f"{indent}{total} = t")


def outcome(kernel: Kernel, seed: int) -> list[bytes]:
    drawn = np.random.default_rng(seed)
    arrays = {}
    for param in kernel.params:
        assert isinstance(param, ArrayParam)
        shape = tuple(extent.constant for extent in param.tensor.shape)
        values = drawn.integers(-128, 128, shape) if drawn.random() < 0.7 else drawn.integers(-1, 2, shape)
        arrays[param.tensor] = np.array(values.astype(param.tensor.dtype.numpy))
        if arrays[param.tensor].dtype.kind == "f" and drawn.random() < 0.8:
            arrays[param.tensor][...] = drawn.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0], shape)
            if drawn.random() < 0.6:
                arrays[param.tensor][...] = drawn.choice([0.0, -0.0], shape)
    run(kernel, arrays, {})
    return [array.tobytes() for array in arrays.values()]


@pytest.mark.parametrize("author", [Author, TriangleAuthor, CountAuthor])
@pytest.mark.parametrize("seed", range(0, 400, 50))
def test_random_steps_do_the_same(seed: int, author: type[Author], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals_module, "MANY", 0)
    accumulating = 0
    for number in range(seed, seed + 50):
        before = author(number).program()
        after = totals(before, CAPS)
        accumulating += after is not before
        assert outcome(after, number) == outcome(before, number), print_kernel(before)
    assert accumulating > 4
