"""Random programs of integers do the same without the tests whose outcome is certain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from pass_programs import CAPS
from work import calls_in

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.code import Caps
from arrayjit.ir.expr import Apply
from arrayjit.ir.interp import KernelRaise, run
from arrayjit.ir.loops import Kernel, Raise, walk_statements
from arrayjit.ir.ops import OPS
from arrayjit.ir.parse import parse
from arrayjit.ir.walk import expressions, walk
from arrayjit.passes.bodies.certain import certain
from arrayjit.passes.bodies.short_circuit import short_circuit

NUMBERS = (0, 1, 2, 3, 7, -1, -5, 40, 2**31, 2**62, 2**63 - 1, -(2**63))
RESULTS = (
    "add",
    "subtract",
    "multiply",
    "minimum",
    "maximum",
    "bitwise_and",
    "bitwise_xor",
    "floor_divide",
    "remainder",
)
TESTS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")

SPANS = (
    ("u8", "cast({}, u8)"),
    ("i8", "cast({}, i8)"),
    ("i32", "cast(cast({}, i16), i32)"),
    ("f64", "cast(cast({}, u8), f64)"),
    ("f64", "divide[f64](cast({}, f64), f64(3.0))"),
    ("f64", "sqrt[f64](absolute[f64](cast({}, f64)))"),
    ("f64", "floor[f64](multiply[f64](cast(cast({}, i8), f64), f64(0.3)))"),
)
"""What is between known ends, of an integer."""


class Author:
    """Writes a program over three integers that change, in loops that end; of some programs one integer is
    in memory."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.integers = ("a", "b", "memory[()]" if seed % 2 else "c")

    def fresh(self, hint: str) -> str:
        self.names += 1
        return f"{hint}{self.names}"

    def number(self, depth: int = 2) -> str:
        choice = self.random.random()
        if depth == 0 or choice < 0.4:
            return self.random.choice(self.integers)
        if choice < 0.55:
            return f"i64({self.random.choice(NUMBERS)})"
        if choice < 0.65:
            return f"where[i64]({self.test(depth - 1)}, {self.number(depth - 1)}, {self.number(depth - 1)})"
        op = self.random.choice(RESULTS)
        right = f"i64({self.random.choice((2, 3, 10))})" if op in RESULTS[-2:] else self.number(depth - 1)
        return f"{op}[i64]({self.number(depth - 1)}, {right})"

    def test(self, depth: int = 1) -> str:
        choice = self.random.random()
        if depth and choice < 0.2:
            return f"logical_not[bool]({self.test(depth - 1)})"
        if depth and choice < 0.5:
            op = self.random.choice(("logical_and", "logical_or", "bitwise_and", "bitwise_or"))
            return f"{op}[bool]({self.test(depth - 1)}, {self.test(depth - 1)})"
        if choice > 0.95:
            return self.growing()
        return f"{self.random.choice(TESTS)}[bool]({self.number(depth)}, {self.number(depth)})"

    def body(self, depth: int, indent: str) -> None:
        for _ in range(self.random.randint(2, 5)):
            self.statement(depth, indent)

    def growing(self) -> str:
        """Whether a product is small, as the size of one of floats tells."""
        product = f"multiply[f64](cast({self.number(1)}, f64), cast({self.number(1)}, f64))"
        return f"less[bool](absolute[f64]({product}), f64({self.random.choice((9.0, 2.0**40, 2.0**63))}))"

    def statement(self, depth: int, indent: str) -> None:
        kinds = ("update", "probe", "probe", "probe", "raise", "position", "span")
        loops = ("if", "for", "while", "relation")
        match self.random.choice((*kinds, "relation", *loops * 2) if depth else (*kinds, "relation")):
            case "update":
                self.put(f"{indent}{self.random.choice(self.integers)} = {self.number()}")
            case "probe":
                told = f"where[i64]({self.test()}, i64(1), i64(2))"
                self.put(f"{indent}y[5] = add[i64](multiply[i64](y[5], i64(3)), {told})")
            case "raise" if self.random.random() < 0.3:
                self.put(f"{indent}raise_({self.test()}, 'ValueError', '{len(self.lines)}')")
            case "raise":
                self.put(f"{indent}if {self.test()}:")
                exception = f"'ValueError', '{len(self.lines)}'"
                self.put(f"{indent}    raise_(less[bool](i64(9), {self.number(1)}), {exception})")
            case "position":
                self.position(indent)
            case "span":
                self.span(indent)
            case "relation":
                self.relation(depth, indent)
            case "if":
                self.put(f"{indent}if {self.test()}:")
                self.body(depth - 1, indent + "    ")
                self.put(f"{indent}else:")
                self.body(depth - 1, indent + "    ")
            case "for":
                lo, hi = sorted(self.random.sample(range(-3, 9), 2))
                symbol = self.fresh("i")
                ends = f"{lo}, {hi}" if self.random.random() < 0.5 else f"{hi}, {lo}, -1"
                self.put(f"{indent}for {symbol} in sequential({ends}):")
                changed = self.random.choice(self.integers)
                self.put(f"{indent}    {changed} = add[i64](index({symbol}), {self.number(1)})")
                self.body(depth - 1, indent + "    ")
            case "while":
                left = self.fresh("left")
                self.put(f"{indent}{left}: i64 = i64({self.random.randint(1, 6)})")
                self.put(f"{indent}while logical_and[bool](greater[bool]({left}, i64(0)), {self.test()}):")
                self.put(f"{indent}    {left} = subtract[i64]({left}, i64(1))")
                self.body(depth - 1, indent + "    ")

    def span(self, indent: str) -> None:
        """A narrow integer or a float of which the ends are known, and what is asked of it."""
        name, number = self.fresh("t"), self.number(1)
        dtype, value = self.random.choice(SPANS)
        self.put(f"{indent}{name}: {dtype} = {value.format(number)}")
        another, most = (
            f"{dtype}({self.random.choice((0, 1, 100))})",
            f"{dtype}({self.random.choice((9, 127))})",
        )
        op = self.random.choice(("add", "subtract", "multiply", "minimum", "maximum"))
        result = f"{op}[{dtype}]({name}, {another})"
        asked = [f"{self.random.choice(TESTS)}[bool]({result}, {most})", f"equal[bool]({name}, {name})"]
        if dtype == "f64":
            asked += [f"{question}[bool]({result})" for question in ("isnan", "isinf", "isfinite")]
        told = f"where[i64]({self.random.choice(asked)}, i64(1), i64(2))"
        self.put(f"{indent}y[5] = add[i64](multiply[i64](y[5], i64(3)), {told})")
        self.put(
            f"{indent}{self.random.choice(self.integers)} = cast({self.random.choice((name, result))}, i64)"
        )

    def relation(self, depth: int, indent: str) -> None:
        """What tells how numbers lie to one another."""
        match self.random.choice(("stays", "square", "flag", "counted") if depth else ("stays", "square")):
            case "stays":
                stays = f"logical_not[bool]({self.staying()})"
                self.put(f"{indent}raise_({stays}, 'OverflowError', '{len(self.lines)}')")
            case "square":
                self.square(indent)
            case "flag":
                self.flag(depth, indent)
            case "counted":
                n, symbol = self.fresh("n"), self.fresh("i")
                self.put(f"{indent}{n}: index[None, None] = minimum[i64](i64(7), {self.number(1)})")
                ends = self.random.choice((f"0, {n}", f"{n} - 6, {n}", f"{n}, {n} - 6, -1"))
                self.put(f"{indent}for {symbol} in sequential({ends}):")
                self.put(f"{indent}    {self.random.choice(self.integers)} = index({n} - {symbol})")
                self.body(depth - 1, indent + "    ")

    def staying(self) -> str:
        """Whether a sum or difference stays within 64 bits, in the forms of the tracer, or nearly so."""
        left, right = self.random.choice(self.integers), self.random.choice(self.integers)
        op, by = self.random.choice(("add", "subtract")), self.random.choice((-(2**62), -3, 1, 2**63 - 1))
        if self.random.random() < 0.5:
            test = self.random.choice(("less_equal", "greater_equal"))
            return f"{test}[bool]({op}[i64]({left}, i64({by})), {left})"
        result = f"{op}[i64]({left}, {right})"
        across = self.random.choice((result, left))
        turned = f"bitwise_xor[i64]({left}, {result}), bitwise_xor[i64]({right}, {across})"
        return f"greater_equal[bool](bitwise_and[i64]({turned}), i64(0))"

    def square(self, indent: str) -> None:
        """Two numbers, often one, whose product is small, or not more than another number."""
        one, other = self.random.choice(self.integers), self.random.choice((*self.integers, "i64(-3)"))
        other = one if self.random.random() < 0.5 else other
        product = f"multiply[f64](cast({one}, f64), cast({other}, f64))"
        most = self.random.choice((9.0, 2.0**40, float(2**63 - 2**12)))
        self.put(f"{indent}if less[bool](absolute[f64]({product}), f64({most})):")
        bound = self.random.choice((self.number(1), f"i64({self.random.choice((4, 30, 2**40))})"))
        self.put(f"{indent}    if less_equal[bool](multiply[i64]({one}, {other}), {bound}):")
        told = f"where[i64]({self.test()}, i64(1), i64(2))"
        self.put(f"{indent}        y[5] = add[i64](multiply[i64](y[5], i64(3)), {told})")
        self.put(f"{indent}        {one} = {self.number(1)}")

    def flag(self, depth: int, indent: str) -> None:
        """A condition that is asked where another one holds, and what follows where both do, or not."""
        name, first = self.fresh("flag"), self.random.choice((True, False))
        self.put(f"{indent}{name}: bool = bool({first})")
        self.put(f"{indent}if {self.test()}:")
        self.statement(0, indent + "    ")
        self.put(f"{indent}    {name} = {self.test()}")
        if self.random.random() < 0.5:
            self.put(f"{indent}else:")
            self.statement(0, indent + "    ")
            if self.random.random() < 0.5:
                self.put(f"{indent}    {name} = bool({self.random.choice((True, False))})")
        self.put(f"{indent}if {name}:")
        self.body(depth - 1, indent + "    ")
        self.put(f"{indent}else:")
        self.body(depth - 1, indent + "    ")

    def position(self, indent: str) -> None:
        """A position, tested as those of an axis of six are, or for one that is further."""
        n, at = self.fresh("n"), self.fresh("p")
        number = f"maximum[i64](i64(-6), minimum[i64](i64(5), {self.number(1)}))"
        self.put(
            f"{indent}{n}: index[None, None] = {self.number(1) if self.random.random() < 0.2 else number}"
        )
        outside = f"greater[bool](cast(index({n} + 6), u64), u64(11))"
        self.put(f"{indent}raise_({outside}, 'IndexError', '{len(self.lines)}')")
        chosen = f"where[i64](less[bool](index({n}), i64(0)), index({n} + 6), index({n}))"
        self.put(f"{indent}{at}: index[0, 6] = {chosen}")
        self.put(f"{indent}y[{at}] = {self.number(1)}")
        self.put(f"{indent}{self.random.choice(self.integers)} = index({n})")

    def put(self, line: str) -> None:
        self.lines.append(line)

    def program(self) -> Kernel:
        self.put("def f(x: read[i64, 3], y: update[i64, 6], memory: update[i64]):")
        for at, name in enumerate(self.integers):
            declared = name if name == "memory[()]" else f"{name}: i64"
            self.put(f"    {declared} = x[{at}]")
            self.put(f"    {name} = {name}")
        bounds = self.random.choice((6, 50, 2**40, 2**40))
        for name in self.integers:
            self.put(f"    raise_(less[bool]({name}, i64({-bounds})), 'ValueError', 'low {name}')")
            self.put(f"    raise_(greater[bool]({name}, i64({bounds})), 'ValueError', 'high {name}')")
        self.body(3, "    ")
        self.body(2, "    ")
        for at, name in enumerate(self.integers):
            self.put(f"    y[{at}] = {name}")
        return parse("\n".join(self.lines) + "\n")


def outcome(kernel: Kernel, numbers: list[int]) -> tuple[list[int], str]:
    tensors = [param.tensor for param in kernel.params if isinstance(param, ArrayParam)]
    arrays = dict(zip(tensors, (np.array(numbers), np.arange(6), np.array(0)), strict=True))
    try:
        run(kernel, arrays, {})
    except KernelRaise as error:
        return arrays[tensors[1]].tolist(), str(error)
    return arrays[tensors[1]].tolist(), ""


def decided_at_run_time(kernel: Kernel) -> int:
    """How many exceptions and choices it has."""
    statements = list(walk_statements(kernel.body))
    nodes = (node for stmt in statements for expr in expressions(stmt) for node in walk(expr))
    choices = sum(isinstance(node, Apply) and node.op is OPS["where"] for node in nodes)
    return choices + sum(isinstance(stmt, Raise) for stmt in statements)


def changed_alike(step: Callable[[Kernel, Caps], Kernel], seed: int) -> Iterator[tuple[Kernel, Kernel]]:
    """Ten random programs, and what a pass makes of them, which does the same."""
    for number in range(seed, seed + 10):
        before = Author(number).program()
        after = step(before, CAPS)
        drawn = random.Random(number)
        for _ in range(5):
            numbers = [drawn.choice((drawn.randint(-6, 6), drawn.randint(-50, 50), 2**40)) for _ in range(3)]
            assert outcome(after, numbers) == outcome(before, numbers), number
        yield before, after


@pytest.mark.parametrize("seed", range(0, 80, 10))
def test_random_programs_do_the_same(seed: int) -> None:
    pairs = changed_alike(certain, seed)
    assert sum(decided_at_run_time(before) - decided_at_run_time(after) for before, after in pairs) > 20


@pytest.mark.parametrize("seed", range(0, 40, 10))
def test_random_programs_whose_conditions_are_one_after_the_other_do_the_same(seed: int) -> None:
    assert any([after is not before for before, after in changed_alike(short_circuit, seed)])


def nest(depth: int, head: str) -> Kernel:
    """So many loops in one another, each of which moves a number that has to stay within bounds."""
    lines = ["def f(h: update[i64, 64]):", "    a: i64 = h[0]"]
    for level in range(depth):
        indent = "    " * (level + 1)
        lines += [
            f"{indent}{head.format(level)}:",
            f"{indent}    raise_(less[bool](i64(63), a), 'ValueError', 'high')",
            f"{indent}    a = where[i64](less[bool](a, i64(60)), add[i64](a, i64({level + 1})), i64(0))",
        ]
    return parse("\n".join(lines) + "\n")


@pytest.mark.parametrize("head", ["for k{} in sequential(0, 9)", "while less[bool](a, h[0])"])
def test_loops_in_loops_are_not_walked_through_each_time_from_the_start(head: str) -> None:
    shallow, deep = (calls_in(partial(certain, nest(depth, head), CAPS)) for depth in (3, 9))
    assert deep < 10 * shallow


def sums(count: int) -> Kernel:
    """So many numbers added up, with a test of each sum."""
    lines = ["def f(x: read[i32, 200], h: update[i64]):", "    a0: i64 = i64(0)"]
    for at in range(count):
        lines += [
            f"    a{at + 1}: i64 = add[i64](a{at}, cast(x[{at}], i64))",
            f"    raise_(less[bool](a{at + 1}, i64(-9)), 'ValueError', 'low')",
        ]
    return parse("\n".join([*lines, f"    h[()] = a{count}"]) + "\n")


def test_long_sums_are_asked_once_for_all_that_they_add() -> None:
    shallow, deep = (calls_in(partial(certain, sums(count), CAPS)) for count in (40, 160))
    assert deep < 17 * shallow
