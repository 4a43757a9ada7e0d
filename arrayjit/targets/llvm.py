"""LLVM IR text from a Kernel.

    define i32 @name_kernel(ptr %table)          ; one pointer per parameter, the workspace, the thread pool
    define internal i32 @name_kernel.body(ptr noalias %p0, ..., i64 %s0, ..., ptr noalias %arena, ptr %pool)

The entry unpacks the table and calls the body. The body's pointers are `noalias`: the caller promises
that a written array overlaps no other array of the call. The result is 0, or the status of a Raise.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.assign import ArrayParam, IndexParam
from ..ir.code import Caps, Code
from ..ir.index import Symbol
from ..ir.loops import Kernel
from ..ir.tensor import Tensor
from ..settings import cpu_wanted, num_threads
from .host import Cpu, cpu_named, host_caps, host_cpu
from .llvm_body import Body
from .llvm_memory import Memory
from .llvm_parallel import SHARE
from .llvm_text import Operand, Writer
from .target import failures_of

__all__ = ["LlvmTarget", "ParallelLlvmTarget"]


class LlvmTarget:
    """Emits LLVM IR for one core: of the host's CPU, or of `cpu`, a row of the table in `host`. By default
    the setting decides. Raises SettingError for a CPU that is in no row."""

    def __init__(self, name: str, cpu: str = "") -> None:
        self.name = name
        wanted = cpu or cpu_wanted()
        self._cpu = cpu_named(wanted) if wanted else host_cpu()
        self._attributes = _attributes(self._cpu, is_host=not wanted)

    def caps(self) -> Caps:
        return host_caps(self._cpu)

    def emit(self, kernel: Kernel) -> Code:
        code = Code(self.name, kernel.name, None, kernel.params, kernel.arena_bytes, failures_of(kernel))
        text = _module(kernel, code.symbol, self._attributes)
        return replace(code, payload=text, needs=self._cpu.features)


class ParallelLlvmTarget(LlvmTarget):
    """Emits LLVM IR for all cores that the process may use."""

    def caps(self) -> Caps:
        return replace(super().caps(), threads=num_threads())


def _attributes(cpu: Cpu, is_host: bool) -> str:
    """Of every function. For the host itself the driver adds all that it can do, otherwise there is only what
    the row has."""
    width = f'"prefer-vector-width"="{8 * cpu.vector_bytes}"'
    if is_host:
        return f"nounwind {width}"
    features = ",".join(f"+{feature}" for feature in cpu.features)
    return f'nounwind {width} "target-cpu"="generic" "target-features"="{features}"'


def _module(kernel: Kernel, symbol: str, attributes: str) -> str:
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
    writer = Writer()
    memory = Memory(writer, kernel, pointers)
    memory.symbols.update(symbols)
    if kernel.scratch_bytes:
        start = kernel.arena_bytes - kernel.scratch_bytes
        writer.frame.append(f"  %scratch = getelementptr i8, ptr %arena, i64 {start}")
    Body(writer, memory, kernel).statements(kernel.body)
    slots = {"arena": ("ptr noalias align 64", kernel.arena_bytes), "pool": ("ptr", writer.functions)}
    for position, (name, (kind, needed)) in enumerate(slots.items(), len(kernel.params)):
        if needed:
            unpacking.append(f"  %f{position} = getelementptr ptr, ptr %table, i64 {position}")
            unpacking.append(f"  %{name} = load ptr, ptr %f{position}")
            heads.append(f"{kind} %{name}")
            arguments.append(f"ptr %{name}")
    body = f"{symbol}.body"
    return "\n".join(
        [
            f'define i32 @"{symbol}"(ptr %table) #0 {{',
            *unpacking,
            *writer.call(body, arguments, "i32"),
            "  ret i32 %status",
            "}",
            "",
            *writer.function(body, heads, "ret i32 0"),
            *writer.functions,
            *((SHARE,) if writer.functions else ()),
            *writer.declarations,
            f"attributes #0 = {{ {attributes} }}",
            "",
        ]
    )
