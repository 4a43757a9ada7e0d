"""Scalar ops and conversions as C-like expressions.

Ops are spelled by the `c` column of the op table. Arithmetic of integers is done without a sign, where it
wraps around. Conversions have the meaning of `astype` for every value, as `llvm_values` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CompilerBug
from ..ir.dtype import BOOL, F32, F64, I32, I64, DType, Kind, named
from ..ir.expr import constant as as_number
from ..ir.ops import OPS, Op
from ..ir.resolve import resolve
from ..processor import is_arm
from .c_text import Value, Writer, constant

__all__ = ["apply", "cast", "fma", "identity"]

_U32, _U64 = named("u32"), named("u64")
_WRAPPING = ("+", "-", "*", "<<")
_SIGNS = (*_WRAPPING, "/", "%", "&", "|", "^", ">>", "<", "<=", ">", ">=", "==", "!=")

_POPCOUNT = """int32_t popcount(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555ULL;
    x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return (int32_t)((x * 0x0101010101010101ULL) >> 56);
}"""
"""How many bits are set: Warren, Hacker's Delight, figure 5-2. Compilers know it."""


def apply(writer: Writer, op: Op, args: tuple[Value, ...], dtype: DType) -> Value:
    """The op on its arguments."""
    definition = op.definition([arg.dtype for arg in args])
    if definition is not None:
        if op.apart:
            return _called(writer, op, definition, args, dtype)
        expanded: Value = definition(_Expansion(writer), *args)
        return expanded
    spelling = op.c.get(args[0].dtype.kind)
    match spelling, args:
        case None, _:
            raise CompilerBug(f"op {op.name} on {args[0].dtype} has no C spelling", stage="targets/c")
        case "?:", (condition, then, otherwise):
            text = f"{condition.operand} ? {then.operand} : {otherwise.operand}"
            return Value(text, dtype, is_atom=False)
        case "bits", (value,):
            return Value(f"{_reinterpretation(writer, value.dtype, dtype)}({value.text})", dtype)
        case "table", (index,):
            return Value(f"{_table(writer, op, dtype)}({index.text})", dtype)
        case "popcount", (value,):
            return _popcount(writer, value, dtype)
        case "extreme", (left, right):
            return Value(f"{_extreme(writer, op, dtype)}({left.text}, {right.text})", dtype)
        case "-", (value,):
            return Value(f"-{value.operand}", dtype, is_atom=False)
        case _, (left, right) if spelling in _SIGNS:
            return _binary(writer, spelling, left, right, dtype)
        case _ if "{f}" in spelling:
            name = spelling.format(f="f" if dtype is F32 else "")
            name = writer.dialect.functions.get(name, name)
            return Value(f"{name}({', '.join(arg.text for arg in args)})", dtype)
        case _:
            raise CompilerBug(f"op {op.name}: unknown spelling {spelling!r}", stage="targets/c")


def fma(writer: Writer, left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend`, rounded once."""
    return apply(writer, OPS["fma"], (left, right, addend), addend.dtype)


def identity(writer: Writer, op: Op, dtype: DType) -> Value:
    """The op's neutral element."""
    if op.identity is None:
        raise CompilerBug(f"op {op.name} does not accumulate", stage="targets/c")
    return constant(writer.dialect, op.identity(dtype), dtype)


def _called(
    writer: Writer, op: Op, definition: Callable[..., Value], args: tuple[Value, ...], dtype: DType
) -> Value:
    """The op by a function of the module's, which is written once."""
    name = "_".join((op.name, *(arg.dtype.short for arg in args)))
    if name not in writer.prelude:
        function = Writer(writer.dialect, beside=writer)
        with function.scope():
            names = [Value(function.fresh("x"), arg.dtype) for arg in args]
            function.emit(f"return {definition(_Expansion(function), *names).text};")
        heads = ", ".join(f"{writer.dialect.type(value.dtype)} {value.text}" for value in names)
        text = function.function(f"{writer.dialect.type(dtype)} {name}({heads})")
        writer.helper(name, "\n".join(text).rstrip())
    return Value(f"{name}({', '.join(arg.text for arg in args)})", dtype)


class _Expansion:
    """`ops.Builder` over C text: ops that accumulate, and functions, reach the emitter unexpanded. Each value
    gets a name, since definitions use values as often as they like."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def op(self, name: str, *args: Any) -> Value:
        row = OPS[name]
        _, dtype = resolve(row, [arg.dtype for arg in args])
        return self._writer.let(apply(self._writer, row, args, dtype))

    def const(self, value: bool | int | float, dtype: DType) -> Value:
        return constant(self._writer.dialect, as_number(value, dtype).value, dtype)

    def cast(self, value: Any, dtype: DType) -> Value:
        return self._writer.let(cast(self._writer, value, dtype))

    def dtype(self, value: Any) -> DType:
        dtype: DType = value.dtype
        return dtype

    def known(self, value: Any) -> None:
        """No op that accumulates asks for it."""


def _binary(writer: Writer, sign: str, left: Value, right: Value, dtype: DType) -> Value:
    source = left.dtype
    if dtype is BOOL or source.is_float:
        return Value(f"{left.operand} {sign} {right.operand}", dtype, is_atom=False)
    types = writer.dialect.types
    wide = _U64 if source.bits == 64 else _U32
    first, second = left.operand, right.operand
    if sign in _WRAPPING and source is not wide:
        first = f"({types[wide]}){first}"
        second = second if sign == "<<" else f"({types[wide]}){second}"
    text = f"{first} {sign} {second}"
    if source is wide or (source.bits >= 32 and sign not in _WRAPPING):
        return Value(text, dtype, is_atom=False)
    return Value(f"({types[dtype]})({text})", dtype, is_atom=False)


def _popcount(writer: Writer, value: Value, dtype: DType) -> Value:
    types = writer.dialect.types
    name = writer.dialect.functions.get("popcount") or writer.helper("popcount", _POPCOUNT)
    unsigned = types[named(f"u{value.dtype.bits}")]
    text = f"{name}(({unsigned}){value.operand})"
    return Value(f"({types[dtype]}){text}", dtype, is_atom=False)


def _extreme(writer: Writer, op: Op, dtype: DType) -> str:
    """A function that chooses one of two floats, of zeros by their signs."""
    kind, name = writer.dialect.types[dtype], f"{op.name}_{dtype.short}"
    beyond, is_first = (">", "!signbit(x)") if op.name in ("maximum", "fmax") else ("<", "signbit(x)")
    nan = "x" if op.name in ("maximum", "minimum") else "y"
    body = f"return x {beyond} y || {nan} != {nan} ? x : x == y && {is_first} ? x : y;"
    return writer.helper(name, f"{kind} {name}({kind} x, {kind} y) {{ {body} }}")


def _table(writer: Writer, op: Op, dtype: DType) -> str:
    """A function that chooses one of the op's constants, by the lowest bits of an integer."""
    dialect, table = writer.dialect, op.tables[dtype]
    kind, name = dialect.types[dtype], f"{op.name}_{dtype.short}"
    entries = ", ".join(constant(dialect, entry, dtype).text for entry in table)
    body = f"static const {kind} entries[{len(table)}] = {{{entries}}}; return entries[i & {len(table) - 1}];"
    return writer.helper(name, f"{kind} {name}({dialect.types[named(f'i{dtype.bits}')]} i) {{ {body} }}")


def _reinterpretation(writer: Writer, source: DType, target: DType) -> str:
    """A function that leaves the bits as they are."""
    types = writer.dialect.types
    name = f"{source.short}_as_{target.short}"
    body = writer.dialect.reinterpreted(types[source], types[target])
    return writer.helper(name, f"{types[target]} {name}({types[source]} x) {{ {body} }}")


def cast(writer: Writer, value: Value, dtype: DType) -> Value:
    """`value.astype(dtype)`."""
    if value.dtype is dtype:
        return value
    if dtype is BOOL:
        return Value(f"{value.operand} != 0", BOOL, is_atom=False)
    if value.dtype.is_float and dtype.is_integer:
        return _float_to_integer(writer, value, dtype)
    body = writer.dialect.converted.get((value.dtype, dtype))
    if body is not None:
        types, name = writer.dialect.types, f"{value.dtype.short}_to_{dtype.short}"
        function = writer.helper(name, f"{types[dtype]} {name}({types[value.dtype]} x) {{ {body} }}")
        return Value(f"{function}({value.text})", dtype)
    return Value(f"({writer.dialect.types[dtype]}){value.operand}", dtype, is_atom=False)


def _float_to_integer(writer: Writer, value: Value, dtype: DType) -> Value:
    if is_arm():
        wide = dtype if dtype.bits >= 32 else I32 if dtype.kind is Kind.INT else _U32
        nearest = Value(f"{_to_nearest(writer, value.dtype, wide)}({value.text})", wide)
        return cast(writer, nearest, dtype)
    if dtype is _U64:
        return Value(f"{_to_uint64(writer, value.dtype)}({value.text})", dtype)
    wide = I64 if dtype.bits == 64 or (dtype.kind is Kind.UINT and dtype.bits == 32) else I32
    whole = Value(f"{_to_signed(writer, value.dtype, wide)}({value.text})", wide)
    return cast(writer, whole, dtype)


def _to_nearest(writer: Writer, source: DType, target: DType) -> str:
    """A function that rounds towards zero; it gives the nearest integer for what is out of range, zero for
    NaN."""
    dialect, is_signed = writer.dialect, target.kind is Kind.INT
    name, kind = f"{source.short}_to_{target.short}", dialect.types[target]
    most, least = 2 ** (target.bits - is_signed) - 1, -(2 ** (target.bits - 1)) if is_signed else 0
    beyond, lowest = (constant(dialect, float(limit), source).text for limit in (most + 1, least))
    greatest, smallest = (constant(dialect, limit, target).text for limit in (most, least))
    within = f"x < {lowest} ? {smallest} : x == x ? ({kind})x : 0"
    body = f"return x >= {beyond} ? {greatest} : {within};"
    return writer.helper(name, f"{kind} {name}({dialect.types[source]} x) {{ {body} }}")


def _to_signed(writer: Writer, source: DType, target: DType) -> str:
    """A function that rounds towards zero; it gives the smallest integer for NaN and for what is out of
    range."""
    dialect = writer.dialect
    name = f"{source.short}_to_{target.short}"
    limit = constant(dialect, 2.0 ** (target.bits - 1), source).text
    least = constant(dialect, -(2 ** (target.bits - 1)), target).text
    absolute = "fabsf" if source is F32 else "fabs"
    kind = dialect.types[target]
    body = f"return {absolute}(x) < {limit} ? ({kind})x : {least};"
    return writer.helper(name, f"{kind} {name}({dialect.types[source]} x) {{ {body} }}")


def _to_uint64(writer: Writer, source: DType) -> str:
    """A function that does it as compilers do it from the signed conversion: the upper half of the range is
    shifted down."""
    dialect = writer.dialect
    assert source in (F32, F64)
    name, signed = f"{source.short}_to_u64", _to_signed(writer, source, I64)
    half = constant(dialect, 2.0**63, source).text
    kind = dialect.types[_U64]
    upper = f"({kind}){signed}(x - {half}) ^ 0x8000000000000000ULL"
    body = f"return x >= {half} ? {upper} : ({kind}){signed}(x);"
    return writer.helper(name, f"{kind} {name}({dialect.types[source]} x) {{ {body} }}")
