"""Computations by hand: arrays, statements over index symbols, and programs made of them, without tracing.

    a, b, c = Node("a", (64, 32)), Node("b", (32, 16)), Node("c", (64, 16))
    i, j, k = axes("i j k")
    matmul = program(reduce("add", c[i, j], a[i, k] * b[k, j]), name="matmul")

The user's view is docs/assignments.md.
"""

from .modes import Decision, Mode
from .nodes import Node, live_nodes, merge
from .program import Program, program
from .recomputation import OptimizationContext
from .statements import (
    NOOP,
    accumulate,
    assign,
    axes,
    axis,
    block,
    concat,
    einsum,
    fill,
    fill_bits,
    fill_each,
    fill_range,
    is_noop,
    name_of,
    reduce,
    sequence,
    static,
)
from .values import apply, number

__all__ = [
    "NOOP",
    "Decision",
    "Mode",
    "Node",
    "OptimizationContext",
    "Program",
    "accumulate",
    "apply",
    "assign",
    "axes",
    "axis",
    "block",
    "concat",
    "einsum",
    "fill",
    "fill_bits",
    "fill_each",
    "fill_range",
    "is_noop",
    "live_nodes",
    "merge",
    "name_of",
    "number",
    "program",
    "reduce",
    "sequence",
    "static",
]
