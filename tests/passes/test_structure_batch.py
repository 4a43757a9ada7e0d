"""Random loops of products with vectors: what goes before the loop leaves every bit as it was."""

from __future__ import annotations

from random import Random

import numpy as np

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.structure.batch import batch

PROGRAMS = 150
RESULTS = ("r", "s", "t")
HEAD = """\
def f(a: update[f64, 6, 4], b: update[f64, 6, 4], c: update[f64, 4, 4]):
    r: temporary[f64, 4]
    s: temporary[f64, 4]
    t: temporary[f64, 4]
"""


def product(random: Random, into: str, made: list[str]) -> str:
    """A vector, often that of the iteration, times a matrix."""
    row = random.choice(["k", "k", "k", "k + 1", "k - 1", "2"])
    vectors = [f"a[{row}, j]", f"a[{row}, j]", f"b[{row}, j]", *(f"{name}[j]" for name in made)]
    matrix = random.choice(["c[j, i]", "c[i, j]", "a[j, i]", "b[j + 1, i]"])
    factors = [random.choice(vectors), matrix]
    random.shuffle(factors)
    return f"""\
        for i in parallel(0, 4):
            p: f64 = f64(0.0)
            for j in parallel(0, 4):
                p = reduce(add, p, multiply[f64]({", ".join(factors)}), fused=True)
            {into}[i] = p
"""


def update(random: Random, made: list[str]) -> str:
    """A row of a matrix, computed from a product."""
    cell = random.choice(["a[k, i]", "b[k, i]", "a[k + 1, i]", "b[k - 1, i]", "c[1, i]"])
    return f"""\
        for i in parallel(0, 4):
            {cell} = multiply[f64]({random.choice(made)}[i], f64(0.125))
"""


def program(random: Random) -> Kernel:
    text, made = HEAD, ["t"]
    text += "    for i in parallel(0, 4):\n        t[i] = f64(1.0)\n    for k in sequential(1, 5):\n"
    for into in random.sample(RESULTS, 2):
        text += product(random, into, made)
        made.append(into)
        text += update(random, made) if random.randrange(3) else ""
    kernel = parse(text + update(random, made))
    assert isinstance(kernel, Kernel)
    return kernel


def outcome(kernel: Kernel) -> list[bytes]:
    generator = np.random.default_rng(3)
    params = [param for param in kernel.params if isinstance(param, ArrayParam)]
    arrays = {p.tensor: generator.random([extent.constant for extent in p.tensor.shape]) for p in params}
    run(kernel, arrays)
    return [array.tobytes() for array in arrays.values()]


def test_products_that_go_before_their_loop_change_no_bit() -> None:
    batched = 0
    for seed in range(PROGRAMS):
        before = program(Random(seed))
        after = batch(before, Caps())
        verify_kernel(after)
        assert outcome(after) == outcome(before), seed
        batched += after is not before
    assert PROGRAMS / 10 < batched < PROGRAMS
