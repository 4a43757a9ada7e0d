"""C11 text from a Kernel.

    static int32_t name_body(float *restrict x, ..., int64_t n, ..., char *restrict arena, void *pool)
    int32_t name_kernel(void *const *table)     one pointer per parameter, the workspace, the thread pool

The entry unpacks the table. The pointers are `restrict`: the caller promises that a written array overlaps no
other array of the call. The result is 0, or the status of a Raise.
"""

from __future__ import annotations

import time

from ..ir.dtype import BOOL, DTYPES, F32, F64
from ..ir.loops import Kernel, LoopKind
from ..ir.params import ArrayParam, IndexParam
from .c_body import Body, LoopPrinter
from .c_memory import Memory
from .c_parallel import SHARE, shared_loop
from .c_text import Dialect, Writer, added
from .c_vectors import vector_loop

__all__ = ["C11", "Function", "module"]

INCLUDES = """\
#include <math.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PREFETCH(address, cache) __builtin_prefetch(address, 0, 4 - (cache))
#define KNOWN_TO_NONE(number) __asm__("" : "+r"(number))
#define IN_ORDER() __asm__ volatile("")
#else
#define PREFETCH(address, cache) ((void)0)
#define KNOWN_TO_NONE(number) ((void)0)
#define IN_ORDER() ((void)0)
#endif

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
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
    reads_first=True,
    known_to_none="KNOWN_TO_NONE",
    in_order="IN_ORDER();",
)


SLOTS = {"arena": "char *restrict arena", "scratch": "char *restrict scratch", "pool": "void *pool"}
"""What the function of a kernel has beside parameters, as arguments."""


class Function:
    """A kernel as a C function. `name` is what it is called, `params` has its parameters' declarations in
    order, by their names, `slots` those of `SLOTS` that follow them."""

    def __init__(self, kernel: Kernel, share: LoopPrinter | None) -> None:
        self.writer = writer = Writer(C11)
        self.params: dict[str, str] = {}
        memory = Memory(writer, kernel, {})
        for param in kernel.params:
            match param:
                case ArrayParam(tensor=tensor, access=access):
                    name = writer.fresh(tensor.label)
                    const = "const " if access in ("read", "merge") else ""
                    self.params[name] = f"{const}{C11.types[tensor.dtype]} *restrict {name}"
                    memory.params[tensor] = name
                case IndexParam(symbol=symbol):
                    memory.symbols[symbol] = name = writer.fresh(symbol.hint)
                    self.params[name] = f"int64_t {name}"
        memory.declarations |= self.params | SLOTS
        if kernel.scratch_bytes:
            start = added("arena", kernel.arena_bytes - kernel.scratch_bytes)
            writer.frame.append(f"char *scratch = {start};")
        Body(writer, memory, kernel, {LoopKind.VECTOR: vector_loop}, share).statements(kernel.body)
        writer.emit("return 0;")
        self.slots = tuple(slot for slot in ("arena", "pool") if slot in writer.mentioned())
        self.name = writer.fresh(f"{kernel.name}_body", lasting=True)

    def text(self) -> list[str]:
        """The function, and before it all that it needs."""
        arguments = [*self.params.values(), *(SLOTS[slot] for slot in self.slots)]
        return [
            INCLUDES,
            *([SHARE] if "pool" in self.slots else []),
            *(f"{text}\n" for text in self.writer.prelude.values()),
            *self.writer.functions,
            *self.writer.function(f"static int32_t {self.name}({', '.join(arguments) or 'void'})"),
        ]


def module(kernel: Kernel, symbol: str) -> str:
    """The text of a module with the function `symbol`."""
    function = Function(kernel, shared_loop)
    positions = {"arena": len(kernel.params), "pool": len(kernel.params) + 1}
    arguments = [
        f"table[{number}]" if isinstance(param, ArrayParam) else f"*(const int64_t *)table[{number}]"
        for number, param in enumerate(kernel.params)
    ]
    arguments += [f"table[{positions[slot]}]" for slot in function.slots]
    return "\n".join(
        [
            *function.text(),
            f"int32_t {symbol}(void *const *table) {{",
            f"    return {function.name}({', '.join(arguments)});",
            "}",
            "",
        ]
    )
