"""Random steps of random cells, taken cell by cell, in registers and vectors, leave every bit as it was."""

from __future__ import annotations

from random import Random

import numpy as np

from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.bodies.carry import carry
from arrayjit.passes.schedule.tails import tails
from arrayjit.passes.schedule.vectorise import vectorise
from arrayjit.passes.structure.invert import invert

PROGRAMS = 150
HEAD = (
    "def f(n: index[0, 5], x: update[f64, 21], y: update[f64, 21], z: update[f64, 21], w: update[f64, 5]):\n"
)
VALUES = ("add[f64]({0}, {1})", "multiply[f64]({0}, {1})", "multiply[f64]({0}, f64(0.125))", "{0}")


def value(random: Random, written: str) -> str:
    """Computed from cells: those of the iteration in arrays that are written, any in others."""
    operands = []
    for array in random.choices("xyz", k=2):
        own = random.randrange(6) or array in written
        operands.append(f"{array}[{'i' if own else random.choice(['i + 1', '3'])}]")
    operands[1] = random.choice([operands[1], operands[1], "w[k]"])
    return random.choice(VALUES).format(*operands)


def program(random: Random) -> Kernel:
    steps = random.choice(["sequential(0, n)", "sequential(0, 4)", "sequential(4, -1, -1)"])
    text = f"{HEAD}    for k in {steps}:\n"
    names = ["", "t"][: random.randint(1, 2)]
    if "t" in names:
        text += f"        t: f64 = multiply[f64]({random.choice(['w[k]', 'w[2]'])}, f64(0.5))\n"
    text += f"        for i in parallel(0, {random.choice([4, 8, 13, 20])}):\n"
    written = random.choice(["x", "xy", "xz", "xyz"])
    for number in range(random.randint(1, 4)):
        if not random.randrange(4):
            text += f"            s{number}: f64 = {value(random, written)}\n"
            names.append(f"s{number}")
        else:
            other = f"add[f64]({random.choice(written)}[i], {names[-1] or 'w[k]'})"
            right = random.choice([other, value(random, written), value(random, written)])
            text += f"            {random.choice(written)}[i] = {right}\n"
    kernel = parse(text)
    assert isinstance(kernel, Kernel)
    return kernel


def outcome(kernel: Kernel) -> list[bytes]:
    generator = np.random.default_rng(3)
    arrays = {p.tensor: generator.random(p.tensor.size) for p in kernel.params if isinstance(p, ArrayParam)}
    run(kernel, arrays, {p.symbol: 4 for p in kernel.params if isinstance(p, IndexParam)})
    return [array.tobytes() for array in arrays.values()]


def test_steps_taken_cell_by_cell_change_no_bit() -> None:
    inverted = 0
    for seed in range(PROGRAMS):
        before = program(Random(seed))
        after = invert(before, Caps())
        inverted += after is not before
        for step in (vectorise, carry, tails):
            after = step(after, Caps())
            verify_kernel(after)
        assert outcome(after) == outcome(before), seed
    assert inverted == PROGRAMS
