"""A loop that threads may share, as a function of its own.

    share(pool, shared, &context, trips, grain, scratch, bytes);        where the loop stood

    static void shared(const void *context, int64_t first, int64_t last, char *scratch)
    static void shared_part(float *restrict x, ..., int64_t first, int64_t last, char *restrict scratch)

`shared` does the iterations from `first` to before `last`. What the loop uses of the function around it is
in the context; the part takes it as arguments of the same names. `scratch` is memory of the thread's own.
Without a pool, or with few iterations, the calling thread does them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.index import Affine, Symbol
from ..ir.loops import For
from .bodies import fills_lanes
from .c_text import Operand, Writer, added, multiplied

if TYPE_CHECKING:
    from .c_body import Body

__all__ = ["SHARE", "iterations", "shared_loop"]

SHARE = """\
typedef void loop_part(const void *context, int64_t first, int64_t last, char *scratch);
typedef void pool_run(void *pool, loop_part *part, const void *context,
                      int64_t trips, int64_t grain, char *scratch, int64_t bytes);

static void share(void *pool, loop_part *part, const void *context,
                  int64_t trips, int64_t grain, char *scratch, int64_t bytes) {
    if (pool == 0 || trips < 2 * grain) {
        part(context, 0, trips, scratch);
    } else {
        (*(pool_run **)pool)(pool, part, context, trips, grain, scratch, bytes);
    }
}
"""
"""What a module with shared loops needs. A pool starts with the address of the function that shares."""


def shared_loop(body: Body, loop: For) -> None:
    """Print the loop as a function, and the call."""
    writer, memory = body.writer, body.memory
    unit = loop.lanes if loop.step > 0 else 1
    name = writer.fresh("shared", lasting=True)
    part = body.part()
    with writer.scope():
        heads = _print_part(part, loop, unit)
    used = _captured(part.writer, body, loop)
    part_heads = [*used.values(), *heads, f"char *{writer.dialect.restrict} scratch"]
    writer.functions += part.writer.function(f"static void {name}_part({', '.join(part_heads)})")
    writer.functions += _entry(name, used, writer.dialect.restrict)
    trips = iterations(memory.affine(loop.lo), memory.affine(loop.hi), loop.step * unit)
    enough = memory.affine(loop.grain or Affine.of(1))
    enough = -(-enough // unit) if isinstance(enough, int) else f"({enough} + {unit - 1}) / {unit}"
    size = body.kernel.scratch_bytes
    scratch = "scratch" if size else "0"
    with writer.block():
        context = writer.fresh("context")
        writer.emit(f"const struct {name} {context} = {{{', '.join(used) or '0'}}};")
        writer.emit(f"share(pool, {name}, &{context}, {trips}, {enough}, {scratch}, {size});")


def iterations(lo: Operand, hi: Operand, step: int) -> Operand:
    """How often a loop runs."""
    if isinstance(lo, int) and isinstance(hi, int):
        return len(range(lo, hi, step))
    first, last = (lo, hi) if step > 0 else (hi, lo)
    distance = added(_operand(last), multiplied(_operand(first), -1))
    span = added(distance, abs(step) - 1)
    return f"({last} > {first} ? ({span}) / {abs(step)} : 0)"


def _operand(number: Operand) -> Operand:
    return number if isinstance(number, int) or number.isidentifier() else f"({number})"


def _print_part(part: Body, loop: For, unit: int) -> list[str]:
    """The iterations from one unit to another, which are the function's arguments."""
    writer, memory = part.writer, part.memory
    first, last, end = Symbol("first"), Symbol("last"), Symbol("end")
    names = [writer.fresh(edge.hint) for edge in (first, last)]
    memory.symbols.update(zip((first, last), names, strict=True))
    lo, hi = (loop.lo + Affine.of(edge) * (loop.step * unit) for edge in (first, last))
    if not fills_lanes(loop) and unit > 1:
        ends = [writer.number(memory.affine(edge), "end") for edge in (hi, loop.hi)]
        memory.symbols[end] = writer.number(f"{ends[0]} < {ends[1]} ? {ends[0]} : {ends[1]}", "end")
        hi = Affine.of(end)
    part.statement(replace(loop, lo=lo, hi=hi, grain=None))
    return [f"int64_t {name}" for name in names]


def _captured(part: Writer, body: Body, loop: For) -> dict[str, str]:
    """What the function uses of the one around it, each name with its declaration. Memory that is met for the
    first time in the function may be called as a local of an earlier block in it was, whose name was free."""
    own = part.own - body.memory.declarations.keys()
    used = part.mentioned() - {*own, "scratch"}
    return {name: text for name, text in body.declarations(loop).items() if name in used}


def _entry(name: str, used: Mapping[str, str], restrict: str) -> list[str]:
    """The function that takes what is used from a context."""
    fields = [f"    {text.replace(restrict + ' ', '')};" for text in used.values()] or ["    char nothing;"]
    arguments = ", ".join([*(f"c->{field}" for field in used), "first", "last", "scratch"])
    return [
        f"struct {name} {{",
        *fields,
        "};",
        "",
        f"static void {name}(const void *context, int64_t first, int64_t last, char *scratch) {{",
        f"    const struct {name} *c = context;",
        *(["    (void)c;"] if not used else []),
        f"    {name}_part({arguments});",
        "}",
        "",
    ]
