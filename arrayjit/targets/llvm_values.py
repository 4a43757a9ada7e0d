"""Scalar ops and conversions as LLVM instructions, one lane or many.

Ops are spelled by the `llvm` column of the op table. Conversions have the meaning of `astype` for every
value: a float that does not fit gives the smallest int32 or int64 on x86-64; on ARM64 the nearest integer of
the sign and of 32 or 64 bits, and zero for NaN. Either is cut down to a narrower type. (Where NumPy itself
disagrees between contiguous arrays and scalars, as for float to uint32 on x86-64 when the number is negative
beyond int32, the scalar's result is taken.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import CompilerBug
from ..frozen import replace
from ..ir.definitions.small import converted
from ..ir.dtype import BOOL, F16, F32, F64, I32, I64, DType, Kind, named
from ..ir.expr import constant as as_number
from ..ir.ops import OPS, Op
from ..ir.resolve import resolve
from ..processor import features, is_arm
from .llvm_tables import chosen
from .llvm_text import LINE_BYTES, SLOT, Value, Writer, constant, vector_type
from .llvm_truncated import truncated

__all__ = [
    "any_lane",
    "any_sign",
    "apply",
    "carried",
    "cast",
    "combined",
    "divided_count",
    "either",
    "fma",
    "from_carried",
    "halves",
    "identity",
    "mask_lanes",
    "select",
]

U64 = named("u64")
# Arguments that an intrinsic takes beside the op's own: "zero is poison", "smallest int is poison".
_FLAGS = {"@llvm.abs": ", i1 false", "@llvm.ctlz": ", i1 false", "@llvm.cttz": ", i1 false"}
# Intrinsics overloaded on the type of their second argument too.
_TWICE_OVERLOADED = frozenset({"@llvm.ldexp", "@llvm.powi"})
BITWISE = {OPS["logical_or"]: "or", OPS["logical_and"]: "and"}
"""What bytes that stand for bits are combined by."""
LEAST = {F32: 2.0**-149, F64: 2.0**-1074}
"""The numbers of which all bits but the last are zero."""
EXACT = 1 << 53
"""Integers less than this are float64s."""
CALLED_BYTES = 32
"""The vectors that functions of ops take."""
KEEPING = "coldcc ", "preserve_allcc "
"""How functions are called that leave what registers hold, of vectors their first 16 bytes, on x86 and on
ARM, for which LLVM ends the process where it meets the other's."""
MANY = 4
"""From so many lanes on they go through memory to be taken one by one."""
_LIBM_ATTRIBUTES = "nounwind willreturn nobuiltin memory(none)"

_AS_GROUPS = frozenset(("add", "subtract"))
"""What takes no longer for all parts of groups than to pick one part of another argument."""


def apply(writer: Writer, op: Op, args: tuple[Value, ...], dtype: DType) -> Value:
    """The op on its arguments; those of one lane are repeated where others have many.

    Parts of groups, as the real parts of complex numbers, are added as groups: lanes are picked of the sum
    instead of each term, and other parts are added by the same instructions.
    """
    wholes = writer.wholes(args) if op.name in _AS_GROUPS else None
    if wholes is not None:
        groups, numbers = wholes
        return writer.part(apply(writer, op, tuple(groups), dtype), numbers)
    lanes = max(arg.lanes for arg in args)
    args = tuple(writer.widen(arg, lanes) for arg in args)
    definition = None if _is_instruction(op, args[0]) else op.definition([arg.dtype for arg in args])
    if definition is None:
        return _primitive(writer, op, args, dtype)
    if op.apart and not op.llvm:
        return _called(writer, op, definition, args, dtype)
    expanded: Value = definition(_Expansion(writer), *args)
    return expanded


def divided_count(writer: Writer, args: tuple[Value, ...]) -> Value:
    """A number that is not negative divided by a positive one: by a power of two in one step."""
    count, size = (replace(arg, dtype=U64) for arg in args)
    return replace(apply(writer, OPS["raw_divide"], (count, size), U64), dtype=I64)


def _primitive(writer: Writer, op: Op, args: tuple[Value, ...], dtype: DType) -> Value:
    """The op by its spelling, on arguments of as many lanes each."""
    lanes = args[0].lanes
    spelling = op.llvm.get(args[0].dtype.kind)
    if spelling is None:
        raise CompilerBug(f"op {op.name} on {args[0].dtype} has no LLVM spelling", stage="targets/llvm")
    operands = ", ".join([str(args[0]), *(arg.text for arg in args[1:])])
    match spelling.split():
        case ["libm", name]:
            return _libm(writer, name, args, dtype)
        case ["upper"]:
            text = _upper_half(writer, args)
        case ["table"]:
            return chosen(writer, op.name, op.tables[dtype], args[0], dtype)
        case ["select"]:
            text = writer.choose(*args)
        case ["bitcast"]:
            text = writer.pure(f"bitcast {args[0]} to {Value('', dtype, lanes).type}")
        case [name] if name.startswith("@"):
            text = _intrinsic(writer, name, args, dtype)
        case ["sdiv" | "udiv"] if lanes == 1 and not args[1].is_literal:
            text = _opaque_quotient(writer, f"{spelling} {operands}", dtype)
        case ["sdiv" | "udiv" | "srem" | "urem"] if lanes > 1 and _has_float_quotient(args):
            text = _by_float_quotient(writer, spelling, args)
        case ["sdiv" | "udiv" | "srem" | "urem"] if lanes > 1 and _may_have_float_quotient(writer, args):
            text = _by_usual_quotient(writer, spelling, args)
        case [_] | ["icmp" | "fcmp", _]:
            text = writer.pure(f"{spelling} {operands}")
        case _:
            raise CompilerBug(f"op {op.name}: unknown spelling {spelling!r}", stage="targets/llvm")
    return Value(text, dtype, lanes)


def _is_instruction(op: Op, arg: Value) -> bool:
    """Whether a spelling is better than the definition: vectors have no products of 128 bits."""
    return op.apart and bool(op.llvm) and (arg.lanes == 1 or arg.dtype.bits < 64)


def _upper_half(writer: Writer, args: Sequence[Value]) -> str:
    """Out of a product of twice as many bits."""
    dtype, result = args[0].dtype, args[0].type
    wide = result.replace(dtype.llvm, f"i{2 * dtype.bits}")
    extend, shift = ("sext", "ashr") if dtype.kind is Kind.INT else ("zext", "lshr")
    left, right = (writer.pure(f"{extend} {arg} to {wide}") for arg in args)
    places = str(dtype.bits) if args[0].lanes == 1 else f"splat (i{2 * dtype.bits} {dtype.bits})"
    upper = writer.pure(f"{shift} {wide} {writer.pure(f'mul {wide} {left}, {right}')}, {places}")
    return writer.pure(f"trunc {wide} {upper} to {result}")


def _opaque_quotient(writer: Writer, division: str, dtype: DType) -> str:
    """A quotient by a number that varies. LLVM, which looks for the cheapest way to count through a loop,
    would divide again for that; it does not look through this."""
    return writer.pure(f"freeze {dtype.llvm} {writer.pure(division)}")


def _has_float_quotient(args: Sequence[Value]) -> bool:
    return args[0].dtype.bits <= 32 and not args[1].is_literal


def _by_float_quotient(writer: Writer, spelling: str, args: Sequence[Value]) -> str:
    """A quotient or remainder of integers in vectors, by numbers that vary: processors divide floats in
    vectors, integers one by one, for 4 to 20 times as long. Of 32 bits the quotient of float64s is right, of
    16 that of float32s: it is rounded by less than a fraction's distance to the next integer. Fewer bits are
    converted as 32, for which there are instructions."""
    dtype, lanes, sign = args[0].dtype, args[0].lanes, spelling[0]
    wide = vector_type("float" if dtype.bits <= 16 else "double", lanes)
    size = dtype if dtype.bits >= 32 else I32
    given = [_convert(writer, _instruction(dtype, size), arg, size) for arg in args]
    sign = sign if size is dtype else "s"
    left, right = (writer.pure(f"{sign}itofp {arg} to {wide}") for arg in given)
    quotient = writer.pure(
        f"fpto{sign}i {wide} {writer.pure(f'fdiv {wide} {left}, {right}')} to {given[0].type}"
    )
    quotient = _convert(writer, _instruction(size, dtype), Value(quotient, size, lanes), dtype).text
    return quotient if spelling.endswith("div") else _left_by(writer, quotient, args)


def _left_by(writer: Writer, quotient: str, args: Sequence[Value]) -> str:
    """The remainder."""
    return writer.pure(f"sub {args[0]}, {writer.pure(f'mul {args[0].type} {quotient}, {args[1].text}')}")


def _may_have_float_quotient(writer: Writer, args: Sequence[Value]) -> bool:
    """Of 64 bits, which convert to float64s and back in vectors? Among the parts of vectors that take turns
    a branch would keep LLVM from having them one beside the other."""
    is_wide = args[0].dtype.bits == 64 and not args[1].is_literal
    return is_wide and "avx512dq" in writer.features and not writer.takes_turns


def _by_usual_quotient(writer: Writer, spelling: str, args: Sequence[Value]) -> str:
    """Likewise of 64 bits, where all lanes have as many as a float64's mantissa holds: the quotient of two
    such integers is right, for the next one is farther away than it is rounded by. Else one by one."""
    sign = spelling[0]
    division = f"{sign}div {args[0]}, {args[1].text}"
    quotient = writer.found(division)
    if quotient is None:
        quotient = _quotient_by_branch(writer, sign, division, args)
        writer.remember(division, quotient)
    return quotient if spelling.endswith("div") else _left_by(writer, quotient, args)


def _quotient_by_branch(writer: Writer, sign: str, division: str, args: Sequence[Value]) -> str:
    kind, dtype, lanes = args[0].type, args[0].dtype, args[0].lanes
    least, most = (-EXACT, 2 * EXACT) if sign == "s" else (0, EXACT)
    above = [writer.pure(f"sub {arg}, splat (i64 {least})") for arg in args]
    both = writer.pure(f"or {kind} {above[0]}, {above[1]}")
    beyond = Value(writer.pure(f"icmp uge {kind} {both}, splat (i64 {most})"), BOOL, lanes)
    long, usual, join = map(writer.fresh, ("long", "usual", "join"))
    writer.branch(any_lane(writer, beyond, (dtype,)), long, usual, seldom=True)
    ends = {}
    for label in (long, usual):
        writer.start(label)
        with writer.scope():
            text = writer.pure(division) if label == long else _by_float_quotient(writer, f"{sign}div", args)
        ends[writer.block] = Value(text, dtype, lanes)
        writer.jump(join)
    writer.start(join)
    return writer.phi(ends).text


def combined(
    writer: Writer,
    accum: Op,
    old: Value,
    operands: Sequence[Value],
    in_order: int = 0,
    through_memory: bool = True,
) -> Value:
    """One operand accumulated, or the product of two by fused multiply-add; so many lanes in order, which may
    go through memory to be taken one by one."""
    if in_order:
        lanes = [
            _one_by_one(writer, operand) if through_memory else partial(writer.lane, operand)
            for operand in operands
        ]
        for number in range(in_order):
            old = combined(writer, accum, old, [lane(number) for lane in lanes])
        return old
    if len(operands) == 2:
        return fma(writer, operands[0], operands[1], old)
    new = apply(writer, accum, (old, operands[0]), old.dtype)
    if accum in BITWISE and old.text in writer.handed_on:
        before, mine = writer.handed_on[old.text], carried(writer, writer.widen(operands[0], old.lanes))
        text = writer.let(f"{BITWISE[accum]} {before}, {mine.text}")
        writer.handed_on[new.text] = replace(before, text=text)
    return new


def _one_by_one(writer: Writer, value: Value) -> Callable[[int], Value]:
    """What gives a lane as a scalar, of a vector whose lanes are all asked for: from memory, which an
    addition reads by the way, where it takes one or two instructions more to move a lane to the front of a
    register. LLVM does not see what is stored."""
    if value.lanes < MANY or not value.dtype.is_float:
        return partial(writer.lane, value)
    slot, kind = f"%{writer.fresh('lanes')}", value.dtype.llvm
    writer.frame.append(f"  {slot} = alloca {value.type}, align {LINE_BYTES}")
    writer.emit(f"store volatile {value}, ptr {slot}, align {LINE_BYTES}")

    def lane(number: int) -> Value:
        place = writer.pure(f"getelementptr {kind}, ptr {slot}, i64 {number}")
        return Value(writer.let(f"load {kind}, ptr {place}"), value.dtype)

    return lane


def fma(writer: Writer, left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend`, rounded once."""
    lanes = max(left.lanes, right.lanes, addend.lanes)
    args = tuple(writer.widen(arg, lanes) for arg in (left, right, addend))
    return Value(_intrinsic(writer, "@llvm.fma", args, addend.dtype), addend.dtype, lanes)


def identity(op: Op, dtype: DType) -> Value:
    """The op's neutral element."""
    if op.identity is None:
        raise CompilerBug(f"op {op.name} does not accumulate", stage="targets/llvm")
    return constant(op.identity(dtype), dtype)


def halves(writer: Writer, value: Value) -> tuple[Value, Value]:
    """The first half of the lanes, and the second."""
    half = value.lanes // 2
    return writer.shuffle(value, range(half)), writer.shuffle(value, range(half, value.lanes))


def _called(
    writer: Writer, op: Op, definition: Callable[..., Value], args: tuple[Value, ...], dtype: DType
) -> Value:
    """The op by a function of the module's, which is written once for scalars and once for small vectors.

    It is called where it is seldom needed, and leaves what registers hold, lest LLVM keep that in memory on
    the usual way. So the result is not in a register, but on the stack.
    """
    lanes, part = args[0].lanes, CALLED_BYTES // args[0].dtype.itemsize
    if lanes > part:
        parts = [[writer.shuffle(arg, range(n, n + part)) for arg in args] for n in range(0, lanes, part)]
        return writer.concatenated([_called(writer, op, definition, tuple(some), dtype) for some in parts])
    name = ".".join((op.name, *map(_mangled, args)))
    convention = KEEPING[is_arm() or "neon" in writer.features] if lanes == 1 else ""
    if name not in writer.called:
        writer.called.add(name)
        function = Writer(beside=writer)
        given = [replace(arg, text=f"%a{number}") for number, arg in enumerate(args)]
        function.emit(f"store {definition(_Expansion(function), *given)}, ptr %result, {SLOT}")
        heads = ["ptr %result", *map(str, given)]
        writer.functions += function.function(name, heads, "ret void", "cold noinline #0", convention)
    result = Value("", dtype, lanes)
    slot = writer.slot(result.type)
    writer.emit(f'call {convention}void @"{name}"({", ".join((f"ptr {slot}", *map(str, args)))})')
    return replace(result, text=writer.let(f"load {result.type}, ptr {slot}, {SLOT}"))


class _Expansion:
    """`ops.Builder` over LLVM values: ops that accumulate, and functions, reach the emitter unexpanded."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def op(self, name: str, *args: Any) -> Value:
        row = OPS[name]
        _, dtype = resolve(row, [arg.dtype for arg in args])
        return apply(self._writer, row, args, dtype)

    def const(self, value: bool | int | float, dtype: DType) -> Value:
        return constant(as_number(value, dtype).value, dtype)

    def cast(self, value: Any, dtype: DType) -> Value:
        return cast(self._writer, value, dtype)

    def dtype(self, value: Any) -> DType:
        dtype: DType = value.dtype
        return dtype

    def known(self, value: Any) -> None:
        """No op that accumulates asks for it."""


def _intrinsic(writer: Writer, name: str, args: tuple[Value, ...], dtype: DType) -> str:
    result = Value("", dtype, args[0].lanes)
    overload = _mangled(result)
    if name in _TWICE_OVERLOADED:
        overload += "." + _mangled(args[1])
    flags = _FLAGS.get(name, "")
    types = ", ".join(arg.type for arg in args) + (", i1" if flags else "")
    writer.declare(f"declare {result.type} {name}.{overload}({types})")
    return writer.pure(f"call {result.type} {name}.{overload}({', '.join(map(str, args))}{flags})")


def _mangled(value: Value) -> str:
    element = f"f{value.dtype.bits}" if value.dtype.is_float else value.dtype.llvm
    return element if value.lanes == 1 else f"v{value.lanes}{element}"


def _libm(writer: Writer, name: str, args: tuple[Value, ...], dtype: DType) -> Value:
    symbol = name if args[0].dtype is F64 else name + "f"
    types = ", ".join(arg.dtype.llvm for arg in args)
    writer.declare(f"declare {dtype.llvm} @{symbol}({types}) {_LIBM_ATTRIBUTES}")
    parts = []
    for lane in range(args[0].lanes):
        scalars = ", ".join(str(writer.lane(arg, lane)) for arg in args)
        parts.append(Value(writer.pure(f"call {dtype.llvm} @{symbol}({scalars})"), dtype))
    return writer.join(parts)


def cast(writer: Writer, value: Value, dtype: DType) -> Value:
    """`value.astype(dtype)`."""
    if value.dtype is dtype:
        return value
    if "f16c" in writer.features and {value.dtype, dtype} == {F16, F32}:
        return _by_half(writer, value, dtype)
    if value.dtype.is_small or dtype.is_small:
        number: Value = converted(_Expansion(writer), value, dtype)
        return number
    if dtype is BOOL:
        return _nonzero(writer, value)
    if value.dtype.is_float and dtype.is_integer:
        return _float_to_integer(writer, value, dtype)
    if value.dtype is BOOL and value.lanes > 1 and dtype.bits >= 32:
        return _from_mask(writer, value, dtype)
    return _convert(writer, _instruction(value.dtype, dtype), value, dtype)


def _by_half(writer: Writer, value: Value, dtype: DType) -> Value:
    """Between float16 and float32 by the instruction for it. What is no number and is rounded is one NaN, as
    by the definition: the instruction would keep bits of it."""
    half, wide = (vector_type(kind, value.lanes) for kind in ("half", "float"))
    result = Value("", dtype, value.lanes)
    if dtype is F32:
        bits = writer.pure(f"bitcast {value} to {half}")
        return replace(result, text=writer.pure(f"fpext {half} {bits} to {wide}"))
    rounded = writer.pure(f"fptrunc {value} to {half}")
    near = replace(result, text=writer.pure(f"bitcast {half} {rounded} to {result.type}"))
    numbers = (constant(number, named("i16")) for number in (0x7FFF, 0x7C00, -0x8000, 0x7E00))
    most, infinite, sign, nan = (writer.widen(number, value.lanes).text for number in numbers)
    magnitude = writer.pure(f"and {near}, {most}")
    is_nan = writer.pure(f"icmp ugt {near.type} {magnitude}, {infinite}")
    signed = writer.pure(f"and {near}, {sign}")
    none = replace(result, text=writer.pure(f"or {near.type} {signed}, {nan}"))
    return select(writer, is_nan, none, near)


def _from_mask(writer: Writer, mask: Value, dtype: DType) -> Value:
    """One in the lanes in which a mask holds, zero in the others. Chosen as floats: integers LLVM would make
    of 16 bits each where a mask is made of several comparisons, in four times as many instructions."""
    real = dtype if dtype.is_float else F64 if dtype.bits == 64 else F32
    one = constant(1.0 if dtype.is_float else LEAST[real], real)
    zero = constant(0.0, real)
    chosen = select(writer, mask.text, writer.widen(one, mask.lanes), writer.widen(zero, mask.lanes))
    return chosen if dtype is real else apply(writer, OPS["bits"], (chosen,), dtype)


def _convert(writer: Writer, instruction: str, value: Value, dtype: DType) -> Value:
    if instruction == "":
        return Value(value.text, dtype, value.lanes)
    result = Value("", dtype, value.lanes)
    if instruction == "trunc" and dtype.bits == 16 and _may_lose_sign(writer, value.text):
        turned = replace(value, text=_intrinsic(writer, "@llvm.bswap", (value,), value.dtype))
        highest = writer.widen(constant(value.dtype.bits - 16, value.dtype), value.lanes)
        value = replace(value, text=writer.pure(f"lshr {turned}, {highest.text}"))
        cut = replace(result, text=writer.pure(f"trunc {value} to {result.type}"))
        return replace(result, text=_intrinsic(writer, "@llvm.bswap", (cut,), dtype))
    return replace(result, text=writer.pure(f"{instruction} {value} to {result.type}"))


def _may_lose_sign(writer: Writer, name: str) -> bool:
    """Is it a vector of 64 bits shifted down by more than 16, or cut from one? Of a product of two numbers of
    16 bits LLVM 22 loses the sign there (llvm/llvm-project#218844). It does not look through bytes that
    are turned around and back."""
    made = re.fullmatch(
        r"(trunc|[al]shr) <\d+ x i64> ([^ ,]+)(?:, splat \(i64 (\d+)\)| to .*)", writer.made(name)
    )
    if made is None or made[1] == "trunc":
        return made is not None and _may_lose_sign(writer, made[2])
    return int(made[3]) > 16


def _instruction(source: DType, target: DType) -> str:
    """The conversion between two types where every value has a result; "" when nothing changes."""
    if source.is_float:
        return "fpext" if target.bits > source.bits else "fptrunc"
    if target.is_float:
        return "sitofp" if source.kind is Kind.INT else "uitofp"
    if source is BOOL:
        return "zext"
    if source.bits == target.bits:
        return ""
    if source.bits > target.bits:
        return "trunc"
    return "sext" if source.kind is Kind.INT else "zext"


def _nonzero(writer: Writer, value: Value) -> Value:
    zero = writer.widen(constant(0, value.dtype), value.lanes)
    compare = "fcmp une" if value.dtype.is_float else "icmp ne"
    return Value(writer.pure(f"{compare} {value}, {zero.text}"), BOOL, value.lanes)


def _float_to_integer(writer: Writer, value: Value, dtype: DType) -> Value:
    if is_arm():
        return _saturated(writer, value, dtype)
    if dtype.kind is Kind.UINT and dtype.bits == 64:
        return _float_to_uint64(writer, value, dtype)
    wide = I64 if dtype.bits == 64 or (dtype.kind is Kind.UINT and dtype.bits == 32) else I32
    return _convert(writer, _instruction(wide, dtype), _truncated(writer, value, wide), dtype)


def _saturated(writer: Writer, value: Value, dtype: DType) -> Value:
    """Towards zero; the nearest integer of at least 32 bits for what is out of range, zero for NaN, as
    `fcvtzs` and `fcvtzu` give it; of that the lowest bits."""
    wide = dtype if dtype.bits >= 32 else named(f"{dtype.kind.value[0]}32")
    sign = "s" if dtype.kind is Kind.INT else "u"
    result = Value("", wide, value.lanes)
    name = f"@llvm.fpto{sign}i.sat.{_mangled(result)}.{_mangled(value)}"
    writer.declare(f"declare {result.type} {name}({value.type})")
    whole = replace(result, text=writer.pure(f"call {result.type} {name}({value})"))
    return _convert(writer, _instruction(wide, dtype), whole, dtype)


def _truncated(writer: Writer, value: Value, dtype: DType) -> Value:
    """Towards zero; the smallest integer for NaN and for what is out of range, as `cvttsd2si` gives it."""
    if value.lanes == 1 and "sse2" in features():
        return _cvtt(writer, value, dtype)
    if (vector := truncated(writer, value, dtype)) is not None:
        return vector
    magnitude = _intrinsic(writer, "@llvm.fabs", (value,), value.dtype)
    limit = writer.widen(constant(2.0 ** (dtype.bits - 1), value.dtype), value.lanes)
    fits = writer.pure(f"fcmp olt {value.type} {magnitude}, {limit.text}")
    smallest = writer.widen(constant(-(2 ** (dtype.bits - 1)), dtype), value.lanes)
    converted = _convert(writer, "fptosi", value, dtype)
    return select(writer, fits, converted, smallest)


def _cvtt(writer: Writer, value: Value, dtype: DType) -> Value:
    """That instruction of x86 itself, which takes the first number of a register."""
    extension, letter = ("sse2", "d") if value.dtype is F64 else ("sse", "s")
    register = vector_type(value.dtype.llvm, 16 // value.dtype.itemsize)
    name = f"@llvm.x86.{extension}.cvtts{letter}2si{'64' if dtype is I64 else ''}"
    writer.declare(f"declare {dtype.llvm} {name}({register})")
    argument = writer.pure(f"insertelement {register} poison, {value}, i64 0")
    return Value(writer.pure(f"call {dtype.llvm} {name}({register} {argument})"), dtype)


def _float_to_uint64(writer: Writer, value: Value, dtype: DType) -> Value:
    """As compilers do it from the signed conversion: the upper half of the range is shifted down."""
    half = writer.widen(constant(2.0**63, value.dtype), value.lanes)
    upper = writer.pure(f"fcmp oge {value}, {half.text}")
    lowered = Value(writer.pure(f"fsub {value}, {half.text}"), value.dtype, value.lanes)
    signed = _truncated(writer, select(writer, upper, lowered, value), I64)
    top = writer.widen(constant(-(2**63), I64), value.lanes)
    flipped = Value(writer.pure(f"xor {signed}, {top.text}"), I64, value.lanes)
    return Value(select(writer, upper, flipped, signed).text, dtype, value.lanes)


def any_lane(writer: Writer, condition: Value, dtypes: Sequence[DType]) -> str:
    """Whether a condition holds in any lane. The registers of a mask, which is as wide as the values that it
    is about, are combined; then all signs in the last one are asked for at once."""
    if condition.lanes == 1:
        return condition.text
    if lanes := mask_lanes(writer, dtypes):
        return _any_bit(writer, _narrowed(writer, condition, lanes))
    width = _widest(dtypes)
    mask = Value("", named(f"i{width}"), condition.lanes)
    mask = replace(mask, text=writer.pure(f"sext {condition} to {mask.type}"))
    return any_sign(writer, _narrowed(writer, mask, 256 // width))


def any_sign(writer: Writer, mask: Value) -> str:
    """Whether any of a few integers is negative."""
    return _any_bit(writer, Value(writer.pure(f"icmp slt {mask}, zeroinitializer"), BOOL, mask.lanes))


def mask_lanes(writer: Writer, dtypes: Sequence[DType]) -> int:
    """How many lanes a mask about one register has, where masks have registers of their own; else 0."""
    return 512 // _widest(dtypes) if "avx512f" in writer.features else 0


def either(writer: Writer, one: Value, other: Value) -> Value:
    """The lanes of masks in which a bit is set in one or the other."""
    return replace(one, text=writer.pure(f"or {one}, {other.text}"))


def _widest(dtypes: Sequence[DType]) -> int:
    return max((dtype.bits for dtype in dtypes), default=32)


def _narrowed(writer: Writer, mask: Value, lanes: int) -> Value:
    """What is set in any part of a mask, of so many lanes at most."""
    while mask.lanes > lanes:
        mask = either(writer, *halves(writer, mask))
    return mask


def _any_bit(writer: Writer, mask: Value) -> str:
    bits = f"i{mask.lanes}"
    return writer.pure(f"icmp ne {bits} {writer.pure(f'bitcast {mask} to {bits}')}, 0")


def carried(writer: Writer, value: Value) -> Value:
    """What a loop hands on of a value. Single bits of a vector would be handed on in a register each. Where
    bits are combined with those that were handed on, bytes are, so that an iteration does not wait for the
    one before to turn them into bits and back."""
    if value.dtype is not BOOL or value.lanes == 1:
        return value
    if value.text in writer.handed_on:
        return writer.handed_on[value.text]
    byte = named("i8")
    text = writer.pure(f"sext {value} to {vector_type(byte.llvm, value.lanes)}")
    return Value(text, byte, value.lanes)


def from_carried(writer: Writer, value: Value, dtype: DType) -> Value:
    """The value of that dtype again."""
    if value.dtype is dtype:
        return value
    mask = Value(writer.pure(f"icmp slt {value}, zeroinitializer"), BOOL, value.lanes)
    writer.handed_on[mask.text] = value
    return mask


def select(writer: Writer, condition: str, yes: Value, no: Value) -> Value:
    """`yes` in the lanes in which the condition, given without its type, holds."""
    mask = Value(condition, BOOL, yes.lanes)
    return Value(writer.choose(mask, yes, no), yes.dtype, yes.lanes)
