"""What the emitter of LLVM IR asks about loops."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field

from ..errors import CompilerBug
from ..frozen import slotted
from ..ir.boundaries import lying_alike
from ..ir.expr import Apply, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Comment,
    Fill,
    For,
    If,
    Lap,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    bypasses,
    walk_statements,
)
from ..ir.tensor import Tensor
from ..ir.walk import nodes_in
from .bodies import counts, updated
from .llvm_appended import COUNTS
from .llvm_memory import Edge, Lanes, Memory
from .llvm_text import LINE_BYTES, Operand, Value, Writer

__all__ = [
    "Exit",
    "Print",
    "aside",
    "boundary_after",
    "boundary_before",
    "counts_at_once",
    "edge_of",
    "edges",
    "filling",
    "in_units",
    "is_short",
    "least",
    "lesser",
    "nearest",
    "numbers",
    "on_boundaries",
    "part_of",
    "until_boundary",
    "whole_vectors",
    "widths",
]

Print = Callable[[], None]
"""Prints something where it is called."""

SHORT = 80
"""Statements of a branch. Logarithms of subnormals have 50: of one number in a hundred they take half of the
time together that they take one by one, of all a tenth."""

FEW = 3
"""Of fewer whole vectors the lanes that count are not worth adding up."""

SLOW = 8.0
"""The cost of a division or a root."""


def aside(stmt: Stmt, writer: Writer, memory: Memory, lanes: Lanes) -> None:
    """A statement that changes nothing of the program's, or is for GPUs."""
    match stmt:
        case Prefetch(tensor=tensor, index=index, cache=cache):
            memory.prefetch(tensor, index, lanes, cache)
        case Lap(times=times, number=number):
            memory.lap(times, number)
        case Comment(text=text):
            writer.emit("; " + " ".join(text.split()))
        case _:
            raise CompilerBug(f"a {type(stmt).__name__} on a CPU", stage="targets/llvm")


@slotted
class Exit:
    """Where a loop is left to: the locals that it may change, and what they are when it is left early, by the
    block that it is left from."""

    label: str
    changed: tuple[Variable, ...]
    values: dict[str, list[Value]] = field(default_factory=dict)

    def join(self, writer: Writer, now: dict[Variable, Value]) -> None:
        """Where the loop has ended, at its end or early: what the locals are."""
        last = writer.block
        writer.start(self.label)
        if self.values:
            ends = {**self.values, last: [now[variable] for variable in self.changed]}
            for variable, *values in zip(self.changed, *ends.values(), strict=True):
                now[variable] = writer.phi(dict(zip(ends, values, strict=True)))


def numbers(loop: For) -> range:
    """The iterations of a loop between constants."""
    return range(loop.lo.constant, loop.hi.constant, loop.step)


def filling(fill: Fill, memory: Memory) -> For:
    """The vector loop that gives the value to all cells of a tensor's flat form."""
    cell, count, lanes = Symbol("cell"), Symbol("cells"), LINE_BYTES // fill.tensor.dtype.itemsize
    memory.symbols[count] = memory.size(fill.tensor)
    flat = Tensor(fill.tensor.label, (Affine.of(count),), fill.tensor.dtype, base=fill.tensor)
    store = Store(flat, (Affine.of(cell),), fill.value, fill.loc)
    return For(cell, Affine.of(0), Affine.of(count), (store,), LoopKind.VECTOR, lanes=lanes)


def is_short(branch: tuple[Stmt, ...]) -> bool:
    """Whether all lanes may take a branch that is seldom taken, instead of those lanes one by one. Branches
    in it, which are more seldom taken, are asked for themselves."""
    inner = sum(len(list(walk_statements(stmt.body))) for stmt in branch if isinstance(stmt, If))
    return len(list(walk_statements(branch))) - inner <= SHORT


def widths(loop: For, changed: tuple[Variable, ...]) -> tuple[int, ...]:
    """The widths in which a vector loop is printed. Narrower vectors cannot keep the order of what an
    inner loop accumulates. Two numbers are divided in the time of one, and in lockstep they go together: rows
    of a triangle, of which many end in part of a vector, take 0.95 of the time with half of one, too; 0.85
    with nothing more, if sums in order keep vectors from going beside others."""
    narrow = loop.lanes // 4
    inner = updated(tuple(stmt for stmt in walk_statements(loop.body) if isinstance(stmt, For)))
    if narrow < 4 or not inner.keys().isdisjoint(changed):
        return (loop.lanes,)
    slow = any(
        isinstance(node, Apply) and node.op.cost >= SLOW for node in nodes_in(walk_statements(loop.body))
    )
    in_pairs = slow and loop.kind is LoopKind.LOCKSTEP
    wide = () if in_pairs and changed else (loop.lanes,)
    return (*wide, 2 * narrow, narrow, 2) if in_pairs else (*wide, narrow)


def counts_at_once(
    loop: For, changed: Collection[Variable], features: Collection[str]
) -> frozenset[Variable]:
    """The integers among those changed in which a loop of a few vectors counts conditions: no lanes of them
    are added up in the end, for which what follows would wait."""
    is_short = loop.trips is not None and loop.trips < FEW * loop.lanes and not loop.cuts
    return counts(loop.body).intersection(changed) if is_short and COUNTS in features else frozenset()


def until_boundary(memory: Memory, loop: For, lo: Operand, writer: Writer) -> tuple[str, list[str]]:
    """How many iterations after `lo` the first store past the caches meets a boundary, and conditions: the
    other such stores meet theirs with it."""
    memory.symbols[loop.symbol] = lo
    before, *others = _until_aligned(memory, loop.body, loop.lanes)
    return before, [writer.pure(f"icmp eq i64 {other}, {before}") for other in others if other != before]


def on_boundaries(memory: Memory, loop: For, lo: Operand, writer: Writer) -> list[str]:
    """Conditions: at `lo` all stores past the caches are on boundaries."""
    before, alike = until_boundary(memory, loop, lo, writer)
    return [*alike, writer.pure(f"icmp eq i64 {before}, 0")]


def _until_aligned(memory: Memory, body: tuple[Stmt, ...], lanes: int) -> list[str]:
    """For each store past the caches, how many iterations later it meets a boundary."""
    found: list[str] = []
    for stmt in body:
        match stmt:
            case Store(tensor=tensor, index=index, bypass=True):
                found.append(memory.until_aligned(tensor, index, lanes))
            case For() if bypasses(stmt.body):
                for number in numbers(stmt):
                    memory.symbols[stmt.symbol] = number
                    found += _until_aligned(memory, stmt.body, lanes)
            case _:
                pass
    return found


def boundary_before(memory: Memory, loop: For, lo: Operand, writer: Writer) -> Operand:
    """The iteration at which an aligned loop meets the last boundary up to `lo`, if it starts before it."""
    memory.symbols[loop.symbol] = lo
    tensor, index = lying_alike(loop, loop.aligned or LINE_BYTES)[0]
    behind = memory.behind_boundary(tensor, index, loop.lanes)
    return writer.add(lo, writer.multiply(behind, -1))


def boundary_after(memory: Memory, loop: For, lo: Operand, hi: Operand, writer: Writer) -> Operand:
    """The iteration from `lo` on at which an aligned loop meets the first boundary, or its end."""
    memory.symbols[loop.symbol] = lo
    tensor, index = lying_alike(loop, loop.aligned or LINE_BYTES)[0]
    return lesser(writer, writer.add(lo, memory.until_aligned(tensor, index, loop.lanes)), hi)


def part_of(
    writer: Writer, memory: Memory, number: Symbol, lo: Operand, start: Operand, hi: Operand
) -> tuple[str, str]:
    """From where to where part 0, which ends at `start`, or part 1 of a loop goes."""
    first = writer.pure(f"icmp eq i64 {memory.symbols[number]}, 0")
    at, end = (
        writer.pure(f"select i1 {first}, i64 {one}, i64 {other}") for one, other in ((lo, start), (start, hi))
    )
    return at, end


def edge_of(
    writer: Writer,
    number: Operand,
    before: tuple[Operand, Operand],
    after: tuple[Operand, Operand],
    lanes: int,
) -> tuple[str, Edge]:
    """Where the first vector of a loop starts, for number 0, or its last one, for 1, and the lanes of that
    vector which lie `before` the vectors on boundaries, or `after` them, each given as a span."""
    at_end = writer.pure(f"icmp eq i64 {number}, 1")
    (lo, start), (end, hi) = before, after
    at, left, until = (
        writer.pure(f"select i1 {at_end}, i64 {second}, i64 {first}")
        for first, second in ((lo, writer.add(hi, -lanes)), (lo, end), (start, hi))
    )
    count = writer.add(until, writer.multiply(left, -1))
    return at, Edge(writer.add(left, writer.multiply(at, -1)), count)


def edges(writer: Writer, before: Operand, end: Operand, hi: Operand) -> tuple[str, str]:
    """From which to which number `edge_of` is asked: where cells are left before the vectors on boundaries,
    and where they are left after these, up to `hi`."""
    first = writer.pure(f"select i1 {writer.compare('sgt', before, 0)}, i64 0, i64 1")
    return first, writer.pure(f"select i1 {writer.compare('slt', end, hi)}, i64 2, i64 1")


def whole_vectors(writer: Writer, lo: Operand, hi: Operand, step: int, lanes: int) -> Operand:
    """The iterations that fill whole vectors."""
    if isinstance(lo, int) and isinstance(hi, int):
        return len(range(lo, hi, step)) // lanes * lanes
    distance = writer.add(hi, writer.multiply(lo, -1))
    rounded = writer.add(distance, step - 1 if step > 0 else step + 1)
    count: Operand = rounded if step == 1 else writer.pure(f"sdiv i64 {rounded}, {step}")
    writer.declare("declare i64 @llvm.smax.i64(i64, i64)")
    positive = writer.pure(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
    return writer.pure(f"and i64 {positive}, {-lanes}")


def in_units(writer: Writer, number: Operand, unit: int) -> Operand:
    """How many units make up the number."""
    if isinstance(number, int):
        return -(-number // unit)
    if unit == 1:
        return number
    return writer.pure(f"sdiv i64 {writer.add(number, unit - 1)}, {unit}")


def nearest(writer: Writer, number: Operand, lo: Operand, hi: Operand) -> str:
    """The number from `lo` to `hi` that is nearest to another one."""
    writer.declare("declare i64 @llvm.smax.i64(i64, i64)")
    return writer.pure(f"call i64 @llvm.smax.i64(i64 {least(writer, number, hi)}, i64 {lo})")


def least(writer: Writer, one: Operand, other: Operand) -> str:
    """The lesser of two numbers."""
    writer.declare("declare i64 @llvm.smin.i64(i64, i64)")
    return writer.pure(f"call i64 @llvm.smin.i64(i64 {one}, i64 {other})")


def lesser(writer: Writer, one: Operand, other: Operand) -> Operand:
    """As `least`, of numbers that may be known."""
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    return one if one == other else least(writer, one, other)
