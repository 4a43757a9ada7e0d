"""LLVM IR text from a Kernel.

    define i32 @name_kernel(ptr %table)          ; one pointer per parameter, the workspace, the thread pool
    define internal i32 @name_kernel.body(ptr noalias %p0, ..., i64 %s0, ..., ptr noalias %arena, ptr %pool)

The entry unpacks the table and calls the body. The body's pointers are `noalias`: the caller promises
that a written array overlaps no other array of the call. The result is 0, or the status of a Raise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.assign import ArrayParam, IndexParam
from ..ir.index import Symbol
from ..ir.loops import Kernel
from ..ir.tensor import Tensor
from .llvm_alike import Nests, alike
from .llvm_body import Body
from .llvm_lines import lines_of
from .llvm_memory import Memory
from .llvm_parallel import SHARE
from .llvm_text import Operand, Writer

__all__ = ["module"]


def module(
    kernel: Kernel, symbol: str, attributes: str, features: Sequence[str], *, has_lines: bool = False
) -> str:
    """The text of a module: the function `symbol`, with these attributes, for a CPU that has these features
    at least, and with the user's lines if a debugger is to know them."""
    pointers: dict[Tensor, str] = {}
    symbols: dict[Symbol, Operand] = {}
    heads, arguments, unpacking = [], [], []
    for number, param in enumerate(kernel.params):
        unpacking.append(f"  %f{number} = getelementptr ptr, ptr %table, i64 {number}")
        unpacking.append(f"  %p{number} = load ptr, ptr %f{number}")
        match param:
            case ArrayParam(tensor=tensor, access=access):
                pointers[tensor] = f"%p{number}"
                readonly = " readonly" if access in ("read", "merge") else ""
                heads.append(f"ptr noalias{readonly} %p{number}")
                arguments.append(f"ptr %p{number}")
            case IndexParam(symbol=static):
                unpacking.append(f"  %s{number} = load i64, ptr %p{number}")
                symbols[static] = f"%s{number}"
                heads.append(f"i64 %s{number}")
                arguments.append(f"i64 %s{number}")
    writer = Writer(features=features)
    if has_lines:
        writer.origin = lines_of(kernel, writer.declarations)
    memory = Memory(writer, kernel, pointers)
    memory.symbols.update(symbols)
    if kernel.scratch_bytes:
        start = kernel.arena_bytes - kernel.scratch_bytes
        writer.frame.append(f"  %scratch = getelementptr i8, ptr %arena, i64 {start}")
    nests = Nests({} if has_lines else alike(kernel))
    Body(writer, memory, kernel, nests).statements(kernel.body)
    slots = {
        "arena": ("ptr noalias align 64", kernel.arena_bytes),
        "pool": ("ptr", SHARE in writer.declarations),
    }
    for position, (name, (kind, needed)) in enumerate(slots.items(), len(kernel.params)):
        if needed:
            unpacking.append(f"  %f{position} = getelementptr ptr, ptr %table, i64 {position}")
            unpacking.append(f"  %{name} = load ptr, ptr %f{position}")
            heads.append(f"{kind} %{name}")
            arguments.append(f"ptr %{name}")
    body = f"{symbol}.body"
    text = writer.function(body, heads, "ret i32 0")
    return "\n".join(
        [
            *writer.declarations,
            f'define i32 @"{symbol}"(ptr %table) #0 {{',
            *unpacking,
            *writer.call(body, arguments, "%status"),
            "  ret i32 %status",
            "}",
            "",
            *text,
            *writer.functions,
            f"attributes #0 = {{ {attributes} }}",
            "",
        ]
    )
