"""Vectors that lie across cache lines, put together from whole lines.

for l in vector(0, 32, lanes=32):             ; where x starts behind a boundary, each line is loaded once,
    for i in sequential(0, 13):          ->   ; and one instruction takes a register out of a line and the one
        s = reduce(add, s, x[l + 32*i])       ; before, which the loop hands on

A register as wide as a line that is loaded from anywhere takes two accesses, and each waits for the second
cache. What is stored may start on a boundary (`tails`), but sums have an order, and NumPy's large arrays
start 16 bytes behind one. In the second cache sums take 0.6 of the time so, products of vectors 0.65; in the
first, where moving lanes takes as long as the other access, the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations

from ..frozen import frozen
from ..ir.dtype import BOOL, I32, I64
from ..ir.expr import Apply, Load, Variable
from ..ir.loops import Define, For, Stmt, Update, walk_statements
from ..ir.walk import nodes_in
from .llvm_memory import Lanes, Memory
from .llvm_text import LINE_BYTES, Operand, Value, Writer, vector_type

__all__ = ["Across", "across"]

FEATURE, SECOND_CACHE = "avx512fp16", 1 << 21
"""What processors have on which this was measured, Intel's from Sapphire Rapids on, and the bytes of their
second cache: of what is farther away the hardware fetches less ahead then, for up to 1.25 of the time."""

PERMUTED = {"float": "ps", "double": "pd", "i32": "d", "i64": "q"}
"""The cells of which one instruction takes any out of two registers, as it calls them."""

FEW = 32
"""Registers, of fewer of which it is not worth it to find out how they lie."""

LIGHT_COST = 4.0
"""The work for each vector that is loaded, in additions, at most: a loop that does more waits for that."""


@frozen
class Across:
    """What a loop loads from a cell on, vector after vector, by all `loads` of the same: its `line` is handed
    on. The first cell, at the `pointer`, lies so many cells `behind` the start of a line, which are as many
    as a line has where it starts one: then the line before is meant. By the `order` of lanes registers are
    taken out of two lines."""

    loads: tuple[Load, ...]
    line: Variable
    pointer: str
    behind: str
    order: Value

    @staticmethod
    def of(loads: Sequence[Load], lanes: Lanes, memory: Memory, writer: Writer) -> Across:
        """Of loads whose symbols have the values of the first iteration."""
        tensor = loads[0].tensor
        size = tensor.dtype.itemsize
        pointer = memory.address(tensor, loads[0].index, lanes)
        last = writer.pure(f"sub i64 {writer.pure(f'ptrtoint ptr {pointer} to i64')}, {size}")
        cells = writer.pure(f"udiv i64 {writer.pure(f'and i64 {last}, {LINE_BYTES - 1}')}, {size}")
        behind = writer.pure(f"add i64 {cells}, 1")
        number, count = I64 if size == I64.itemsize else I32, LINE_BYTES // size
        start = behind if number is I64 else writer.pure(f"trunc i64 {behind} to i32")
        numbers = ", ".join(f"{number.llvm} {lane}" for lane in range(count))
        order = writer.pure(f"add {writer.widen(Value(start, number), count)}, <{numbers}>")
        line = Variable("line", tensor.dtype)
        return Across(tuple(loads), line, pointer, behind, Value(order, number, count))

    def starts_line(self, writer: Writer) -> str:
        """Whether all vectors are whole lines."""
        return writer.pure(f"icmp eq i64 {self.behind}, {self.order.lanes}")

    def first(self, writer: Writer) -> Value:
        """The line before the second one that is loaded. Of what is before the first cell nothing is read."""
        count, dtype = self.order.lanes, self.line.dtype
        place = writer.pure(f"sub i64 0, {self.behind}")
        start = writer.pure(f"getelementptr {dtype.llvm}, ptr {self.pointer}, i64 {place}")
        mask = writer.pure(f"xor <{count} x i1> {writer.first_lanes(self.behind, count)}, splat (i1 true)")
        kind = vector_type(dtype.llvm, count)
        return Value(writer.masked_load(kind, start, dtype.itemsize, mask), dtype, count)

    def load(self, memory: Memory, lanes: Lanes, writer: Writer, line: Value) -> tuple[Value, Value]:
        """The lanes of an iteration, and the last line that these reach into, given the one before's."""
        load, count, dtype = self.loads[0], line.lanes, line.dtype
        pointer = memory.address(load.tensor, load.index, lanes)
        place = writer.pure(f"sub i64 {count}, {self.behind}")
        start = writer.pure(f"getelementptr {dtype.llvm}, ptr {pointer}, i64 {place}")
        taken = []
        for register in range(lanes.count // count):
            further = writer.pure(f"getelementptr {line.type}, ptr {start}, i64 {register}")
            following = replace(line, text=writer.let(f"load {line.type}, ptr {further}, align {LINE_BYTES}"))
            name = f"avx512.vpermi2var.{PERMUTED[dtype.llvm]}.512"
            taken.append(writer.x86(name, line, self.order, following))
            line = following
        return writer.concatenated(taken), line


def across(loop: For, step: int, lo: Operand, lanes: Lanes, memory: Memory, writer: Writer) -> list[Across]:
    """What a loop loads that goes `step` further each time, from `lo` on, if it is worth it."""
    following = _following(loop, step, lanes, writer.features)
    same = [loads for loads in following if memory.is_given(loads[0].tensor)]
    if same:
        memory.symbols[loop.symbol] = lo
    return [Across.of(loads, lanes, memory, writer) for loads in same]


def _following(loop: For, step: int, lanes: Lanes, features: Collection[str]) -> list[list[Load]]:
    """The loads of a loop that does little else, each of which begins where it ended an iteration before;
    those of the same cells together."""
    if FEATURE not in features or lanes.count == 1 or lanes.numbers or lanes.present is not None:
        return []
    if loop.trips is None or not all(map(_is_plain, loop.body)):
        return []
    vectors = loop.trips * loop.step // step
    found: dict[Load, list[Load]] = {}
    for load in (node for node in nodes_in(walk_statements(loop.body)) if isinstance(node, Load)):
        tensor, index = load.tensor, load.index
        registers, rest = divmod(lanes.count * tensor.dtype.itemsize, LINE_BYTES)
        is_vector = lanes.step_in(tensor, index) == 1 and tensor.dtype.llvm_memory in PERMUTED and not rest
        follows = Lanes(loop.symbol, step).step_in(tensor, index) == lanes.count
        if is_vector and follows and vectors * registers >= FEW:
            found.setdefault(load, []).append(load)
    work = sum(node.op.cost for node in nodes_in(walk_statements(loop.body)) if isinstance(node, Apply))
    if work > LIGHT_COST * len(found) or any(_overlap(*pair, lanes.count) for pair in combinations(found, 2)):
        return []
    arrays = {load.tensor for load in found}
    if not all(tensor.has_fixed_shape for tensor in arrays) or sum(a.nbytes for a in arrays) > SECOND_CACHE:
        return []
    return list(found.values())


def _is_plain(stmt: Stmt) -> bool:
    """Does it only compute? Nor are bits of lanes changed, which are slow to join behind one of two loops."""
    return isinstance(stmt, Define) or (isinstance(stmt, Update) and stmt.variable.dtype is not BOOL)


def _overlap(one: Load, other: Load, count: int) -> bool:
    """Have two loads of so many cells some in common, which are not loaded twice?"""
    if one.tensor is not other.tensor or one.index[:-1] != other.index[:-1]:
        return False
    distance = one.index[-1] - other.index[-1]
    return distance.is_constant and abs(distance.offset) < count
