"""C11 text from a Kernel.

    static int32_t name(float *restrict x, ..., int64_t n, ..., char *restrict arena, void *pool)
    int32_t name_kernel(void *const *table)     one pointer per parameter, the workspace, the thread pool

The entry unpacks the table. The pointers are `restrict`: the caller promises that a written array overlaps no
other array of the call. The result is 0, or the status of a Raise.
"""

from __future__ import annotations

import time

from ..ir.dtype import BOOL, DTYPES, F32, F64
from ..ir.index import Symbol
from ..ir.loops import Kernel, LoopKind
from ..ir.params import ArrayParam, IndexParam
from ..ir.tensor import Tensor
from .c_body import Body
from .c_memory import Memory
from .c_parallel import SHARE, shared_loop
from .c_text import Dialect, Operand, Writer, added
from .c_vectors import vector_loop

__all__ = ["C11", "module"]

_INCLUDES = """\
#include <math.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)0)
#endif
"""

_LAP = f"""\
void measure_lap(int64_t *times, int64_t number) {{
    extern int clock_gettime(int, void *);
    struct {{ int64_t seconds, nanoseconds; }} read;
    clock_gettime({time.CLOCK_MONOTONIC}, &read);
    const int64_t now = read.seconds * 1000000000 + read.nanoseconds;
    times[number] += now - times[0];
    times[0] = now;
}}"""

C11 = Dialect(
    name="C11",
    types={dtype: "uint8_t" if dtype is BOOL else dtype.c for dtype in DTYPES},
    flag="_Bool",
    local="static inline",
    restrict="restrict",
    specials={F32: ("INFINITY", "NAN"), F64: ("((double)INFINITY)", "((double)NAN)")},
    reinterpreted=lambda source, target: f"union {{ {source} from; {target} to; }} u = {{x}}; return u.to;",
    functions={},
    leave=lambda status: f"return {status};",
    barrier="",
    prefetch="PREFETCH",
    lap=_LAP,
)


def module(kernel: Kernel, symbol: str) -> str:
    """The text of a module with the function `symbol`."""
    writer = Writer(C11)
    pointers: dict[Tensor, str] = {}
    symbols: dict[Symbol, Operand] = {}
    heads: dict[str, str] = {}
    arguments = []
    for number, param in enumerate(kernel.params):
        match param:
            case ArrayParam(tensor=tensor, access=access):
                name = pointers[tensor] = writer.fresh(tensor.label)
                const = "const " if access in ("read", "merge") else ""
                heads[name] = f"{const}{C11.types[tensor.dtype]} *restrict {name}"
                arguments.append(f"table[{number}]")
            case IndexParam(symbol=static):
                symbols[static] = name = writer.fresh(static.hint)
                heads[name] = f"int64_t {name}"
                arguments.append(f"*(const int64_t *)table[{number}]")
    memory = Memory(writer, kernel, pointers)
    memory.symbols.update(symbols)
    memory.declarations.update(heads)
    slots = {"arena": "char *restrict arena", "scratch": "char *restrict scratch", "pool": "void *pool"}
    memory.declarations.update(slots)
    body = Body(writer, memory, kernel, {LoopKind.VECTOR: vector_loop}, shared_loop)
    if kernel.scratch_bytes:
        start = added("arena", kernel.arena_bytes - kernel.scratch_bytes)
        writer.frame.append(f"char *scratch = {start};")
    body.statements(kernel.body)
    writer.emit("return 0;")
    used = writer.mentioned()
    for position, slot in enumerate(("arena", "pool"), len(kernel.params)):
        if slot in used:
            heads[slot] = slots[slot]
            arguments.append(f"table[{position}]")
    inner = writer.fresh(kernel.name, lasting=True)
    return "\n".join(
        [
            _INCLUDES,
            *([SHARE] if "pool" in used else []),
            *(f"{text}\n" for text in writer.prelude.values()),
            *writer.functions,
            *writer.function(f"static int32_t {inner}({', '.join(heads.values()) or 'void'})"),
            f"int32_t {symbol}(void *const *table) {{",
            f"    return {inner}({', '.join(arguments)});",
            "}",
            "",
        ]
    )
