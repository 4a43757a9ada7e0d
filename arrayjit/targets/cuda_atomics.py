"""Stores that combine, as CUDA C: many threads may reach one cell.

atomicAdd(h + n, 1);

What the hardware has no operation for is computed, and put to the cell if that still holds what was read.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CompilerBug
from ..ir.dtype import I64, DType, named
from ..ir.loops import Store
from ..ir.ops import OPS, Op
from .c_body import Body
from .c_text import Value
from .c_values import apply, cast

__all__ = ["accumulate"]

FUNCTIONS: Mapping[str, str] = {
    "add": "atomicAdd",
    "minimum": "atomicMin",
    "fmin": "atomicMin",
    "maximum": "atomicMax",
    "fmax": "atomicMax",
    "bitwise_and": "atomicAnd",
    "bitwise_or": "atomicOr",
    "bitwise_xor": "atomicXor",
}
"""CUDA's, for integers of 32 and 64 bits; the first one for floats too (NVIDIA, CUDA C++ Programming Guide,
Atomic Functions)."""

U32, U64 = named("u32"), named("u64")

_SIGNED = ("atomicMin", "atomicMax")
"""Those that tell signed integers of 64 bits from others."""


def accumulate(body: Body, store: Store) -> None:
    """A store with `accum`, into cells of 32 or 64 bits."""
    accum, dtype = store.accum, store.tensor.dtype
    assert accum is not None
    if dtype.bits not in (32, 64):
        raise CompilerBug(f"threads cannot combine {dtype} in memory", stage="targets/cuda")
    cell, value = body.memory.address(store.tensor, store.index), body.value(store.value)
    function = FUNCTIONS.get(accum.name)
    if function is None or (dtype.is_float and accum.name != "add"):
        _exchange(body, accum, cell, value)
        return
    held = U64 if dtype is I64 and function not in _SIGNED else dtype
    kind = body.writer.dialect.types[held]
    body.writer.emit(f"{function}(({kind} *)({cell}), ({kind}){value.operand});")


def _exchange(body: Body, accum: Op, cell: str, value: Value) -> None:
    """The new value goes to the cell if nothing has come between, and is computed again otherwise."""
    writer, dtype = body.writer, value.dtype
    bits = U64 if dtype.bits == 64 else U32
    kind = writer.dialect.types[bits]
    with writer.block():
        value = writer.let(value)
        place, held, seen = (writer.fresh(hint) for hint in ("cell", "held", "seen"))
        writer.emit(f"{kind} *const {place} = ({kind} *)({cell});")
        writer.emit(f"{kind} {held} = *(volatile {kind} *){place};")
        with writer.block("for (;;)"):
            old = _reinterpreted(body, Value(held, bits), dtype)
            new = _reinterpreted(body, apply(writer, accum, (old, value), dtype), bits)
            writer.emit(f"const {kind} {seen} = atomicCAS({place}, {held}, {new.text});")
            writer.emit(f"if ({seen} == {held}) break;")
            writer.emit(f"{held} = {seen};")


def _reinterpreted(body: Body, value: Value, dtype: DType) -> Value:
    """The same bits as another type, under a name."""
    if value.dtype.is_float == dtype.is_float:
        return body.writer.let(cast(body.writer, value, dtype))
    name = "bits" if value.dtype.is_float else "from_bits"
    return body.writer.let(apply(body.writer, OPS[name], (value,), dtype))
