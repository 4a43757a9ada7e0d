"""Loops that the threads of a block take, and sums that they form together, as CUDA C.

for (int j = threadIdx.x; j < 1000; j += 256) {...}
sum = add_f32(sum, add_f32_of_256(part));
"""

from __future__ import annotations

from ..ir.dtype import DType
from ..ir.expr import Apply, Const, Index
from ..ir.loops import Bind, For, LoopKind, Stmt, walk_statements
from ..ir.ops import Op
from ..ir.tensor import Tensor
from .bodies import accumulation, changes
from .c_body import Body
from .c_text import Value, Writer, added, multiplied
from .c_values import apply, identity
from .cuda_matrices import commits

__all__ = ["COUNTED", "bind", "block_loop", "count_type", "counted_loop", "dealt_body", "unrolled_loop"]

WARP = 32

PARTS = "PARTS"
"""The memory of a block in which its threads form sums: a number for each, and the sum."""

INT_MOST = 2**31 - 1

COUNTED = (LoopKind.SEQUENTIAL, LoopKind.PARALLEL)
"""Loops that a thread takes iteration by iteration."""

SHORT = 16
"""Iterations of a loop that may be written out."""


def count_type(body: Body, most: int | None) -> str:
    """The type of numbers that are not negative, and at most `most`; their multiples, which count cells of
    arrays, have to fit as well."""
    farthest = max(map(_reach, body.memory.params), default=0)
    return "int" if most is not None and max(most, farthest) <= INT_MOST else "int64_t"


def _reach(storage: Tensor) -> int:
    """How far the last cell lies from the first; 0 if extents are known only at run time, as numbers of 64
    bits."""
    if not storage.has_fixed_shape:
        return 0
    sides = zip(storage.shape, storage.element_strides(), strict=True)
    return sum(extent.offset * abs(stride.offset) for extent, stride in sides if stride.is_constant)


def block_loop(body: Body, loop: For) -> None:
    """The iterations dealt out to the threads of the block, in turns."""
    writer = body.writer
    outside = changes(loop.body)
    sums = {variable: body.values[variable] for variable in outside}
    ops = {variable: accumulation(variable, loop.body) for variable in outside}
    for variable, op in ops.items():
        part = writer.fresh(variable.hint)
        start = identity(writer, op, variable.dtype).text
        writer.emit(f"{writer.dialect.type(variable.dtype)} {part} = {start};")
        body.values[variable] = Value(part, variable.dtype)
    _dealt(body, loop)
    if commits(loop):
        writer.emit('asm volatile("cp.async.commit_group;");')
    for variable, old in sums.items():
        total = _folded(writer, ops[variable], body.values[variable], loop.lanes)
        writer.emit(f"{old.text} = {apply(writer, ops[variable], (old, total), variable.dtype).text};")
        body.values[variable] = old


def _dealt(body: Body, loop: For) -> None:
    writer, memory = body.writer, body.memory
    lo, hi = memory.affine(loop.lo), memory.affine(loop.hi)
    known = isinstance(lo, int) and isinstance(hi, int)
    kind = count_type(body, max(int(hi), 0) + loop.lanes * loop.step if known else None)
    with writer.scope():
        name = memory.symbols[loop.symbol] = writer.fresh(loop.symbol.hint)
        first = added(lo, multiplied("(int)threadIdx.x", loop.step))
        trips = loop.trips
        if trips is not None and trips <= loop.lanes:
            with writer.block("" if trips == loop.lanes else f"if (threadIdx.x < {trips})"):
                writer.emit(f"const {kind} {name} = {first};")
                dealt_body(body, loop.body)
        else:
            turn = f"{name} += {loop.lanes * loop.step}"
            with writer.block(f"for ({kind} {name} = {first}; {name} < {hi}; {turn})"):
                dealt_body(body, loop.body)


def dealt_body(body: Body, stmts: tuple[Stmt, ...], *, leaves: bool = False) -> None:
    """What one thread does of an iteration, in a loop that `break` leaves or not."""
    rest = list(stmts)
    while rest and isinstance(rest[0], Bind):
        bind(body, rest.pop(0))
    body.inside(tuple(rest), leaves=leaves)


def bind(body: Body, stmt: Stmt) -> None:
    """A number of a place in a nest, in as few bits as hold it."""
    assert isinstance(stmt, Bind)
    match stmt.value:
        case Apply(op=op, args=(Index(value=dividend), Const(value=divisor))) if op.name == "raw_divide":
            most = stmt.symbol.upper
            quotient = f"({body.memory.affine(dividend)}) / {divisor}"
            name = body.writer.fresh(stmt.symbol.hint)
            body.writer.emit(f"const {count_type(body, most)} {name} = {quotient};")
            body.memory.symbols[stmt.symbol] = name
        case _:
            body.statement(stmt)


def counted_loop(body: Body, loop: For) -> None:
    """One iteration after the other. A loop around long ones is not written out: registers would run out."""
    is_around = any(
        isinstance(stmt, For) and stmt.kind in COUNTED and (stmt.trips is None or stmt.trips > SHORT)
        for stmt in walk_statements(loop.body)
    )
    body.counted(loop, body.inside, "#pragma unroll 1" if is_around else "")


def unrolled_loop(body: Body, loop: For) -> None:
    """A loop that NVRTC is to write out: so what a thread owns is at constant indices, in registers."""
    if loop.trips is None:
        body.counted(loop, body.inside)
        return
    writer = body.writer
    lo, hi = body.memory.affine(loop.lo), body.memory.affine(loop.hi)
    with writer.scope():
        name = body.memory.symbols[loop.symbol] = writer.fresh(loop.symbol.hint)
        writer.emit("#pragma unroll")
        sign = "<" if loop.step > 0 else ">"
        kind = count_type(body, max(abs(int(lo)), abs(int(hi))))
        with writer.block(f"for ({kind} {name} = {lo}; {name} {sign} {hi}; {name} += {loop.step})"):
            dealt_body(body, loop.body, leaves=True)


def _folded(writer: Writer, op: Op, part: Value, threads: int) -> Value:
    """What the parts of all threads come to, known to each of them."""
    dtype = part.dtype
    name = f"{op.name}_{dtype.short}_of_{threads}"
    if name not in writer.prelude:
        writer.helper(name, _fold(writer, name, op, dtype, threads))
    if threads == WARP:
        return writer.let(Value(f"{name}({part.text})", dtype))
    parts = f"__shared__ double {PARTS}[{threads + 1}];"
    if parts not in writer.frame:
        writer.frame.append(parts)
    return writer.let(Value(f"{name}({part.text}, {PARTS})", dtype))


def _fold(writer: Writer, name: str, op: Op, dtype: DType, threads: int) -> str:
    """The function: in halves, the upper one onto the lower one, until one part is left."""
    kind = writer.dialect.type(dtype)
    pair = _pair(writer, op, dtype)
    shuffles = [
        f"x = {pair}(x, ({kind})__shfl_down_sync(0xffffffffU, x, {distance}));"
        for distance in (16, 8, 4, 2, 1)
    ]
    if threads == WARP:
        lines = [*shuffles, f"x = ({kind})__shfl_sync(0xffffffffU, x, 0);", "__syncwarp();", "return x;"]
    else:
        parts = [f"parts[threadIdx.x + {number * WARP}]" for number in range(threads // WARP)]
        while len(parts) > 1:
            halves = zip(parts[: len(parts) // 2], parts[len(parts) // 2 :], strict=True)
            parts = [f"{pair}({left}, {right})" for left, right in halves]
        inside = [f"x = {parts[0]};", *shuffles, "if (threadIdx.x == 0) *whole = x;"]
        lines = [
            f"{kind} *const parts = ({kind} *){PARTS}, *const whole = ({kind} *)({PARTS} + {threads});",
            "parts[threadIdx.x] = x;",
            "__syncthreads();",
            f"if (threadIdx.x < {WARP}) {{",
            *(f"    {line}" for line in inside),
            "}",
            "__syncthreads();",
            "return *whole;",
        ]
    text = "\n".join(f"    {line}" for line in lines)
    memory = "" if threads == WARP else f", double *{PARTS}"
    return f"{kind} {name}({kind} x{memory}) {{\n{text}\n}}"


def _pair(writer: Writer, op: Op, dtype: DType) -> str:
    """A function that applies the op to two values."""
    name = f"{op.name}_{dtype.short}"
    if name not in writer.prelude:
        kind = writer.dialect.type(dtype)
        inner = Writer(writer.dialect, beside=writer)
        with inner.scope():
            result = apply(inner, op, (Value("x", dtype), Value("y", dtype)), dtype)
        inner.emit(f"return {result.text};")
        lines = "\n".join(inner.lines)
        writer.helper(name, f"{kind} {name}({kind} x, {kind} y) {{\n{lines}\n}}")
    return name
