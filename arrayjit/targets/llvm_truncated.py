"""Floats become integers a register at a time, by x86's own instructions.

    %t1 = call <8 x i32> @llvm.x86.avx.cvtt.ps2dq.256(<8 x float> %t)

They give the smallest integer for NaN and for what is out of range, as casts are meant to. LLVM's own
conversion leaves those open, so that all numbers would have to be compared and some replaced.
"""

from __future__ import annotations

from ..frozen import frozen
from ..ir.dtype import F32, F64, I32, I64, DType
from .llvm_text import Value, Writer

__all__ = ["truncated"]

AS_IT_IS = ", i32 4"
"""The way of rounding that is set stays: these instructions do without one."""


@frozen
class _Instruction:
    """One that takes so many lanes of a type, of processors with one of these features; those with masks are
    told what other lanes hold."""

    name: str
    source: DType
    target: DType
    lanes: int
    needs: tuple[str, ...]
    is_masked: bool = False

    @property
    def rest(self) -> str:
        if not self.is_masked:
            return ""
        result = Value("zeroinitializer", self.target, self.lanes)
        return f", {result}, i{max(self.lanes, 8)} -1{AS_IT_IS}"


_AVX = "avx", "avx2"
_INSTRUCTIONS = (
    _Instruction("avx512.mask.cvttps2dq.512", F32, I32, 16, ("avx512f",), is_masked=True),
    _Instruction("avx512.mask.cvttpd2dq.512", F64, I32, 8, ("avx512f",), is_masked=True),
    _Instruction("avx512.mask.cvttps2qq.512", F32, I64, 8, ("avx512dq",), is_masked=True),
    _Instruction("avx512.mask.cvttpd2qq.512", F64, I64, 8, ("avx512dq",), is_masked=True),
    _Instruction("avx.cvtt.ps2dq.256", F32, I32, 8, _AVX),
    _Instruction("avx.cvtt.pd2dq.256", F64, I32, 4, _AVX),
    _Instruction("sse2.cvttps2dq", F32, I32, 4, ("sse2", *_AVX)),
)
"""The wider ones first."""


def truncated(writer: Writer, value: Value, dtype: DType) -> Value | None:
    """The lanes of a vector as int32 or int64, cut off towards zero; None where no instruction does it."""
    for instruction in _INSTRUCTIONS:
        parts, rest = divmod(value.lanes, instruction.lanes)
        suits = instruction.source is value.dtype and instruction.target is dtype
        is_there = any(feature in writer.features for feature in instruction.needs)
        if suits and is_there and parts.bit_count() == 1 and not rest:
            lanes = instruction.lanes
            cut = (range(first, first + lanes) for first in range(0, value.lanes, lanes))
            values = [value] if parts == 1 else [writer.shuffle(value, each) for each in cut]
            return writer.concatenated([_called(writer, instruction, each) for each in values])
    return None


def _called(writer: Writer, instruction: _Instruction, value: Value) -> Value:
    result = Value("", instruction.target, instruction.lanes)
    name, lanes = f"@llvm.x86.{instruction.name}", instruction.lanes
    kinds = f", {result.type}, i{max(lanes, 8)}, i32" if instruction.is_masked else ""
    writer.declare(f"declare {result.type} {name}({value.type}{kinds})")
    text = writer.pure(f"call {result.type} {name}({value}{instruction.rest})")
    return Value(text, instruction.target, instruction.lanes)
