"""Long bodies as functions, each of some loops in a row.

    call void @chunk1(ptr %p0, i64 %s0, float %t3, ...)         ; where the statements stood

    define internal void @chunk1(ptr noalias %p0, i64 %s0, float %t3, ...) noinline

LLVM's code generator takes far more than twice as long for a function twice as long. What a chunk uses of the
function around it are its arguments, of the same names. One that may fail returns a status, as the kernel
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Union

from ..ir.expr import Variable
from ..ir.loops import (
    Comment,
    Define,
    Fill,
    For,
    If,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    Update,
    While,
    walk_statements,
)
from ..ir.walk import locals_read, nodes_in
from .bodies import changes, updated
from .llvm_text import Writer

__all__ = ["Chunk", "call_chunk", "cut", "heads", "length"]

LENGTH = 1000
"""How many nodes of expressions, as often as they are printed, make a chunk. One loop may have more."""

Chunk = tuple[Stmt, ...]

_MOVABLE = (For, Fill, Store, Define, Update, Prefetch, Comment)


def cut(body: tuple[Stmt, ...]) -> Sequence[Union[Stmt, Chunk]]:
    """The body in order. If it is long, its loops become parts of chunks, after which no local is needed that
    they define or change; other statements stay by themselves."""
    if sum(isinstance(stmt, For) for stmt in body) < 2:
        return body
    lengths = list(accumulate((length((stmt,)) for stmt in body), initial=0))
    if lengths[-1] < 2 * LENGTH:
        return body
    last = _last_needs(body)
    found: list[Stmt | Chunk] = []
    start = position = 0
    while position < len(body):
        end = _end(body, lengths, last, position)
        if end == position or lengths[position] - lengths[start] >= LENGTH:
            found += _chunk(body[start:position])
            start = position
        if end == position:
            found.append(body[position])
            start = end = position + 1
        position = end
    return [*found, *_chunk(body[start:])]


def _chunk(body: tuple[Stmt, ...]) -> Sequence[Stmt | Chunk]:
    return [body] if any(isinstance(stmt, For) for stmt in body) else body


def _end(body: tuple[Stmt, ...], lengths: list[int], last: list[int], start: int) -> int:
    """Where those end that must be in one chunk with the first; the start if it can be in none. `lengths` are
    those of all before a statement."""
    end = position = start
    while position <= end:
        fits = position == start or lengths[position + 1] - lengths[start] <= 2 * LENGTH
        end = max(end, last[position])
        if not (isinstance(body[position], _MOVABLE) and fits and end < len(body)):
            return start
        position += 1
    return position


def _last_needs(body: tuple[Stmt, ...]) -> list[int]:
    """For each statement the last one that mentions a local which it defines or changes; the end of the body
    where that is a local from outside."""
    last: dict[Variable, int] = {}
    for position, stmt in enumerate(body):
        mentioned = set(locals_read(walk_statements((stmt,))))
        last |= dict.fromkeys((*mentioned, *updated((stmt,))), position)
    last |= dict.fromkeys(changes(body), len(body))
    return [max((last.get(variable, 0) for variable in _given(stmt)), default=0) for stmt in body]


def _given(stmt: Stmt) -> tuple[Variable, ...]:
    return (stmt.variable,) if isinstance(stmt, Define) else changes((stmt,))


def length(body: tuple[Stmt, ...]) -> int:
    """How much is printed."""
    total = 0
    for stmt in body:
        total += len(nodes_in((stmt,)))
        match stmt:
            case For(kind=LoopKind.UNROLLED, body=inner, trips=int(trips)):
                total += trips * length(inner)
            case For(kind=LoopKind.VECTOR | LoopKind.LOCKSTEP, body=inner):
                total += 2 * length(inner)
            case For(body=inner):
                total += length(inner)
            case If(body=inner, orelse=other):
                total += length(inner) + length(other)
            case While(test=test, body=inner):
                total += length(test) + length(inner)
            case _:
                pass
    return total


def call_chunk(writer: Writer, chunk: Writer, visible: Mapping[str, str], failing: bool) -> None:
    """The function whose text `chunk` has, and the call where `writer` has come to. `visible` is what it may
    use, each name with its type; one that is `failing` may return a status."""
    captured = chunk.captured(visible)
    name, status = writer.fresh("chunk"), f"%{writer.fresh('status')}" if failing else ""
    leave = "ret i32 0" if failing else "ret void"
    writer.functions += chunk.function(name, heads(captured), leave, "noinline #0")
    for line in chunk.call(name, [f"{kind} {value}" for value, kind in captured.items()], status):
        writer.emit(line.strip())
    if failing:
        fail, on = writer.fresh("fail"), writer.fresh("on")
        writer.branch(writer.let(f"icmp ne i32 {status}, 0"), fail, on)
        writer.start(fail)
        writer.emit(f"ret i32 {status}")
        writer.start(on)


def heads(arguments: Mapping[str, str]) -> list[str]:
    """The arguments of a function, each with its type, to which each pointer is the only way."""
    return [
        f"{kind} noalias {name}" if kind == "ptr" else f"{kind} {name}" for name, kind in arguments.items()
    ]
