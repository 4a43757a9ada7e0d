"""Loads across memory, many at a time: lanes that are rows apart, for neighbouring columns.

for j in vector(0, 8, lanes=8):              ; 8 vectors, each of 8 neighbouring columns of a row,
    for i in unrolled(0, 8):         ->      ; transposed in registers: lane `j` of vector `i` is x[j, i]
        y[i, j] = x[j, i]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.dtype import BOOL
from ..ir.expr import Load
from ..ir.loops import For, walk_statements, written_in
from ..ir.tensor import Tensor
from ..ir.walk import nodes_in
from .llvm_memory import Lanes, Memory
from .llvm_text import PART, Value, Writer

__all__ = ["transposed_loads"]


def transposed_loads(writer: Writer, memory: Memory, loop: For, lanes: Lanes) -> dict[int, Sequence[Value]]:
    """Loads of an unrolled loop, by their `id`, with their values in all its iterations, loaded together."""
    count = loop.trips or 0
    if count < 2 or count & (count - 1) or loop.step != 1 or lanes.count % count:
        return {}
    first = memory.symbols[loop.symbol] = loop.lo.constant
    found: dict[int, Sequence[Value]] = {}
    columns = Lanes(loop.symbol, 1, count)
    for load in _loads(loop):
        part = PART // load.tensor.dtype.itemsize
        across = lanes.step_in(load.tensor, load.index) not in (0, 1, -1, None)
        if count >= part > 1 and across and columns.step_in(load.tensor, load.index) == 1:
            values: list[Value] = []
            for memory.symbols[loop.symbol] in range(first, first + count, part):
                values += _columns(writer, memory.rows(load, lanes, part))
            found[id(load)] = values
    return found


def _loads(loop: For) -> Iterator[Load]:
    """The loads of memory that the loop does not write."""
    inside = list(walk_statements(loop.body))
    written = written_in(inside)
    for stmt in inside:
        for node in nodes_in((stmt,)):
            # A bool is a byte in memory only.
            match node:
                case Load(tensor=Tensor(dtype=dtype) as tensor):
                    if tensor.storage not in written and dtype is not BOOL:
                        yield node
                case _:
                    pass


def _columns(writer: Writer, rows: Sequence[Value]) -> Sequence[Value]:
    """The columns of a matrix: lane `l` of column `c` is lane `c` of row `l`. The rows have a part each; as
    many as there are columns are transposed beside as many others, each in a part of wider vectors."""
    part = rows[0].lanes
    beside = [writer.concatenated(rows[row::part]) for row in range(part)]
    for _ in range(part.bit_length() - 1):
        beside = [
            _interleaved(writer, beside[row], beside[row + part // 2], part, half)
            for row in range(part // 2)
            for half in (0, 1)
        ]
    return beside


def _interleaved(writer: Writer, left: Value, right: Value, part: int, half: int) -> Value:
    """Of each part of two vectors, one half, lane by lane in turn."""
    lanes = [
        start + half * part // 2 + lane + side * left.lanes
        for start in range(0, left.lanes, part)
        for lane in range(part // 2)
        for side in (0, 1)
    ]
    return writer.shuffle(left, lanes, right)
