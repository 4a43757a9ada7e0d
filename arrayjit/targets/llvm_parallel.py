"""A loop that threads may share, as a function of its own.

    @share(%pool, @shared1, %context, trips, grain, %scratch, bytes)      ; where the loop stood

    %shared1.values = type { float, ... }
    define internal void @shared1(ptr %context, i64 %first, i64 %last, ptr %scratch)
    define internal void @shared1.body(ptr noalias %p0, ..., ptr noalias %context, i64 %first, i64 %last,
                                       ptr noalias %scratch)

`shared1` does the iterations from `%first` to before `%last`. What the loop uses of the function around it is
in the context. The body reads it there, under the same names; arrays it takes as arguments, to which nothing
else leads. `%scratch` is memory of the thread's own.
Without a pool, or with few iterations, the calling thread does them all.
"""

from __future__ import annotations

from collections.abc import Mapping

from .llvm_text import Operand, Writer

__all__ = ["FIRST", "LAST", "SHARE", "share"]

FIRST, LAST = "%first", "%last"

SHARE = """\
define internal void @share(ptr %pool, ptr %loop, ptr %context,
                            i64 %trips, i64 %grain, ptr %own, i64 %bytes) #0 {
  %none = icmp eq ptr %pool, null
  %two = mul i64 %grain, 2
  %few = icmp slt i64 %trips, %two
  %alone = or i1 %none, %few
  br i1 %alone, label %here, label %there
here:
  call void %loop(ptr %context, i64 0, i64 %trips, ptr %own)
  ret void
there:
  %run = load ptr, ptr %pool
  call void %run(ptr %pool, ptr %loop, ptr %context, i64 %trips, i64 %grain, ptr %own, i64 %bytes)
  ret void
}
"""
"""What a module with shared loops needs. A pool starts with the address of the function that shares."""


def share(
    writer: Writer, loop: Writer, visible: Mapping[str, str], trips: Operand, grain: Operand, scratch: str
) -> None:
    """The function whose text `loop` has, and the call where `writer` has come to. `visible` is what the loop
    may use, each name with its type; `scratch` are the last two arguments of the call."""
    captured = loop.captured(visible)
    name, context = writer.fresh("shared"), f"%{writer.fresh('context')}"
    layout = f"%{name}.values"
    writer.declare(f"{layout} = type {{ {', '.join(captured.values())} }}")
    writer.frame.append(f"  {context} = alloca {layout}")
    unpacking: list[str] = []
    for number, (value, kind) in enumerate(captured.items()):
        field = writer.let(f"getelementptr {layout}, ptr {context}, i32 0, i32 {number}")
        writer.emit(f"store {kind} {value}, ptr {field}")
        where = unpacking if kind == "ptr" else loop.frame
        where.append(f"  %field{number} = getelementptr {layout}, ptr %context, i32 0, i32 {number}")
        where.append(f"  {value} = load {kind}, ptr %field{number}")
    arguments = [f"ptr {value}" for value, kind in captured.items() if kind == "ptr"]
    arguments += ["ptr %context", f"i64 {FIRST}", f"i64 {LAST}", "ptr %scratch"]
    heads = [argument.replace("ptr ", "ptr noalias ") for argument in arguments]
    body = f"{name}.body"
    writer.functions += [
        f"define internal void @{name}(ptr %context, i64 {FIRST}, i64 {LAST}, ptr %scratch) #0 {{",
        *unpacking,
        *loop.call(body, arguments),
        "  ret void",
        "}",
        "",
        *loop.function(body, heads, "ret void"),
    ]
    writer.declare(SHARE)
    iterations = f"i64 {trips}, i64 {grain}"
    writer.emit(f"call void @share(ptr %pool, ptr @{name}, ptr {context}, {iterations}, {scratch})")
