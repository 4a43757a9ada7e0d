"""convert: what a CPU has no instruction for is converted by arithmetic.

    y[i] = cast(h, f32)
->
    t0 = bits[i16](h)
    t1 = bitwise_and[i32](cast(t0, i32), 32767)
    t2 = raw_left_shift[i32](t1, 13)
    ...
    y[i] = from_bits[f32](t9)

`expand` leaves float16 and float32 to be converted into one another, which one instruction does on most CPUs.
On the others, and in C, which has no word for it, the definition is written out here: by then lanes, and with
them the order of sums, are chosen on all CPUs alike.
"""

from __future__ import annotations

from ...ir.code import Caps
from ...ir.expr import Cast
from ...ir.loops import Kernel, Update, walk_statements
from ...ir.walk import nodes_in
from .expand import expanded

__all__ = ["convert"]


def convert(kernel: Kernel, caps: Caps) -> Kernel:
    """Every conversion that the CPU does not know replaced by its definition."""
    inside = walk_statements(kernel.body)
    converts = any(type(node) is Cast for node in nodes_in(inside))
    if not converts and not any(isinstance(stmt, Update) and stmt.variable.dtype.is_small for stmt in inside):
        return kernel
    return kernel.with_body(expanded(kernel.body, caps.small_floats, (Cast,)))
