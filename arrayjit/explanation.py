"""What the compiler made of a program and why: as text, and as a drawing of assignments and loop nests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .compile import Build
from .drawing import Box, drawn
from .frozen import frozen_by_identity
from .ir.assign import Assign, Computation, assigned, statements
from .ir.code import Caps
from .ir.expr import Apply, Gather, Load
from .ir.index import Affine
from .ir.loops import (
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Stmt,
    Store,
    While,
    walk_statements,
    written_in,
)
from .ir.tensor import Tensor
from .ir.walk import walk
from .pages import page, save
from .passes.analysis.accounts import locations, nests_of
from .passes.manager import Program
from .passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS
from .passes.table import Pass

__all__ = ["Explanation", "Nest", "explained"]


@frozen_by_identity
class Nest:
    """Loops over which some assignments are done together: `around` are the loops of the user's that they
    stand in, `stored` what they write to memory, `outline` the loops that the code has, indented."""

    around: tuple[str, ...]
    assignments: tuple[Assign, ...]
    stored: frozenset[Tensor]
    outline: tuple[str, ...] = ()

    def title(self, number: int) -> str:
        return f"nest {number}" + "".join(f", in {loop}" for loop in self.around)


class Explanation(str):
    """The text; `save` draws it. `nests` are what the assignments became, `elsewhere` those that are in no
    nest, with what became of them."""

    nests: tuple[Nest, ...]
    elsewhere: tuple[tuple[Assign, str], ...]
    name: str

    @staticmethod
    def of(
        name: str,
        nests: Sequence[Nest],
        elsewhere: Sequence[tuple[Assign, str]],
        sections: Iterable[Sequence[str]],
    ) -> Explanation:
        made = Explanation("\n\n".join("\n".join(section) for section in sections if section))
        made.name, made.nests, made.elsewhere = name, tuple(nests), tuple(elsewhere)
        return made

    def svg(self) -> str:
        """The drawing: assignments on the left, the loop nests that they became on the right."""
        return drawn(*self._boxes())

    def html(self) -> str:
        """A page with the drawing and the text, which needs no other file."""
        title = f"{self.name}, as arrayjit compiles it"
        drawing, text = f'<div class="wide">{self.svg()}</div>', f'<pre class="wide">{escape(self)}</pre>'
        return page(title, f"<h1>{escape(title)}</h1>\n{drawing}\n{text}")

    def save(self, file: str | Path) -> None:
        """Write a `.svg`, a `.html` or a `.txt`. Raises UnsupportedError for another ending, OSError where
        the file cannot be written."""
        save(file, "an explanation", {".svg": self.svg, ".html": self.html, ".txt": lambda: f"{self}\n"})

    def _boxes(self) -> tuple[list[Box], list[Box]]:
        """Those of the assignments, each with the numbers of its nests, and those of the nests."""
        members = {id(one): one for nest in self.nests for one in nest.assignments}
        nests: dict[int, list[int]] = {key: [] for key in members}
        for number, nest in enumerate(self.nests):
            for one in nest.assignments:
                nests[id(one)].append(number)
        left = [Box((_described(one), _source(one)), tuple(nests[key])) for key, one in members.items()]
        left += [Box((_described(one), f"{_source(one)} ({fate})")) for one, fate in self.elsewhere]
        right = [Box((nest.title(n + 1), *nest.outline), (n,)) for n, nest in enumerate(self.nests)]
        return left, right


def explained(build: Build, lines: Sequence[str]) -> Explanation:
    """Everything about one build; `lines` are the user's with what became of their loops and arguments."""
    told: dict[str, list[str]] = {}
    programs: dict[str, Program] = {}
    inputs: dict[str, Program] = {}

    def watch(step: Pass[Any, Any], before: Program, after: Program, caps: Caps) -> None:
        inputs[step.name], programs[step.name] = before, after
        if step.explained is not None:
            told.setdefault(step.name, []).extend(step.explained(before, after, caps))

    optimized = build.rerun(watch)
    joined = programs.get("fuse", optimized.loops)
    assert isinstance(joined, Kernel)
    recorded = inputs.get("inline", optimized.computation)
    assert isinstance(recorded, Computation)
    assignments = [one for one in statements(recorded.body) if isinstance(one, Assign)]
    nests = _with_outlines(list(_nests(joined, assignments)), optimized.kernel)
    elsewhere = _elsewhere(assignments, nests, optimized.computation)
    sections = (
        lines,
        _overview(len(assignments), nests, elsewhere),
        *_shown(nests),
        ("what is in memory", *_memory(optimized.kernel)),
        ("decisions, pass by pass", *_decisions(optimized.notes, told, build.remarks)),
    )
    return Explanation.of(build.computation.name, nests, elsewhere, sections)


def _nests(joined: Kernel, assignments: Sequence[Assign]) -> Iterator[Nest]:
    """The nests after they were joined: each assignment still stores what it makes."""
    latest: Nest | None = None
    for around, nest in nests_of(joined.body):
        stores = [stmt for stmt in walk_statements((nest,)) if isinstance(stmt, (Store, Fill))]
        made = {(stmt.tensor.storage, stmt.loc) for stmt in stores}
        members = tuple(one for one in assignments if (one.into.storage, one.loc) in made)
        here = tuple(map(_around, around))
        stored = frozenset(stmt.tensor.storage for stmt in stores)
        known = [] if latest is None else [id(one) for one in latest.assignments]
        if latest is not None and latest.around == here and any(id(one) in known for one in members):
            more = (one for one in members if id(one) not in known)
            latest = Nest(here, (*latest.assignments, *more), latest.stored | stored)
        elif members:
            if latest is not None:
                yield latest
            latest = Nest(here, members, stored)
    if latest is not None:
        yield latest


def _with_outlines(nests: Sequence[Nest], kernel: Kernel) -> tuple[Nest, ...]:
    """The nests with the loops that stand for them in the end: those that write the same memory for the same
    lines, and what is prepared before them."""
    outlines: list[list[str]] = [[] for _ in nests]
    lines = [{one.loc for one in nest.assignments} for nest in nests]
    waiting: list[str] = []
    for _, stmt in nests_of(kernel.body):
        if not isinstance(stmt, For):
            continue
        written = written_in(walk_statements((stmt,)))
        here = set(locations((stmt,)))
        ranks = [(len(here & lines[n]), len(written & nest.stored), -n) for n, nest in enumerate(nests)]
        best = max(ranks, default=(0, 0, 0))
        waiting += _outline(stmt, 0)
        if best[0] or best[1]:
            outlines[-best[2]] += waiting
            waiting = []
    out: list[Nest] = []
    for nest, outline in zip(nests, outlines, strict=True):
        if out and not outline and not out[-1].outline and out[-1].around == nest.around:
            last = out.pop()  # neighbours without loops, which are numbers, are told as one
            out.append(Nest(last.around, last.assignments + nest.assignments, last.stored | nest.stored))
        else:
            out.append(Nest(nest.around, nest.assignments, nest.stored, tuple(_squeezed(outline))))
    return tuple(out)


_NUMBER, _WHERE_READ = "a single number", "computed where it is read"
_SEVERAL = {_NUMBER: "single numbers", _WHERE_READ: "computed where they are read"}


def _elsewhere(
    assignments: Sequence[Assign], nests: Sequence[Nest], inlined: Computation
) -> list[tuple[Assign, str]]:
    """The assignments of no nest, and what became of them."""
    members = {id(one) for nest in nests for one in nest.assignments}
    left = assigned(inlined.body)
    return [
        (one, _NUMBER if one.into.storage in left else _WHERE_READ)
        for one in assignments
        if id(one) not in members
    ]


def _outline(stmt: Stmt, depth: int) -> Iterator[str]:
    """The loops of a statement, one a line."""
    match stmt:
        case For(body=body):
            yield "  " * depth + _loop(stmt)
            inner, depth = body, depth + 1
        case If(body=body, orelse=other) | While(test=body, body=other):
            inner = (*body, *other)
        case _:
            return
    for one in inner:
        yield from _outline(one, depth)


def _squeezed(outline: Iterable[str]) -> Iterator[str]:
    """The lines, equal neighbours as one."""
    counts: list[tuple[str, int]] = []
    for line in outline:
        if counts and counts[-1][0] == line:
            counts[-1] = line, counts[-1][1] + 1
        else:
            counts.append((line, 1))
    return (line if count == 1 else f"{line} ({count} of them)" for line, count in counts)


_KINDS: Mapping[LoopKind, str] = {
    LoopKind.SEQUENTIAL: "in order",
    LoopKind.PARALLEL: "in any order",
    LoopKind.VECTOR: "in vectors of {}",
    LoopKind.LOCKSTEP: "in order, {} side by side",
    LoopKind.UNROLLED: "written out",
    LoopKind.GRID: "over the blocks of the grid",
    LoopKind.BLOCK: "over the threads of a block",
}


def _loop(loop: For) -> str:
    """A loop in words."""
    count = "" if loop.trips is None else f" of {loop.trips}"
    shared = "" if loop.grain is None else f", shared by threads, {_amount(loop.grain)} at least for each"
    return f"loop {loop.symbol.hint}{count}, {_KINDS[loop.kind].format(loop.lanes)}{shared}"


def _amount(value: Affine) -> str:
    return str(value.offset) if value.is_constant else "a computed number"


def _around(stmt: Stmt) -> str:
    match stmt:
        case For():
            return f"loop {stmt.symbol.hint}" + ("" if stmt.trips is None else f" of {stmt.trips}")
        case While():
            return "a loop until its condition is false"
        case _:
            return "a branch"


def _overview(count: int, nests: Sequence[Nest], elsewhere: Sequence[tuple[Assign, str]]) -> Sequence[str]:
    fates = Counter(fate for _, fate in elsewhere)
    rest = "".join(
        f"; {number} is {fate}" if number == 1 else f"; {number} are {_SEVERAL[fate]}"
        for fate, number in fates.items()
    )
    return (f"{_counted(count, 'assignment')} became {_counted(len(nests), 'loop nest')}{rest}",)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _shown(nests: Sequence[Nest]) -> Iterator[Sequence[str]]:
    for number, nest in enumerate(nests, 1):
        assignments = Counter(f"  {_described(one)}  {_place(one)}".rstrip() for one in nest.assignments)
        yield (nest.title(number), *_times(assignments), *(f"    {line}" for line in nest.outline))


def _times(counts: Mapping[str, int]) -> Iterator[str]:
    return (line if count == 1 else f"{line} ({count} times)" for line, count in counts.items())


def _described(assign: Assign) -> str:
    """What an assignment makes, with its shape, by which operations, of what."""
    nodes = list(walk(assign.value))
    ops = dict.fromkeys(node.op.name for node in nodes if isinstance(node, Apply))
    reads = dict.fromkeys(node.tensor.label for node in nodes if isinstance(node, (Load, Gather)))
    how = " of ".join(([f"reduce {assign.accum}"] if assign.accum else []) + [", ".join(ops)] * bool(ops))
    what = f"{how}({', '.join(reads)})" if how else ", ".join(reads) or "a constant"
    return f"{assign.into} = {what}"


def _source(assign: Assign) -> str:
    return f"{assign.loc.line}: {assign.loc.source()}" if assign.loc else ""


def _place(assign: Assign) -> str:
    return f"at {assign.loc}" if assign.loc else ""


def _memory(kernel: Kernel) -> Iterator[str]:
    """What is stored that nobody outside sees, and why."""
    places: Counter[str] = Counter()
    for tensor, place in kernel.placement.items():
        places[f"  {tensor}: {tensor.nbytes} bytes in {place.kind.words}: {place.reason}"] += 1
    yield from _times(places) if places else ("  arguments and results only",)
    if kernel.arena_bytes:
        yield f"  the workspace has {kernel.arena_bytes} bytes"


def _decisions(
    notes: Sequence[str], told: Mapping[str, Sequence[str]], remarks: Sequence[str]
) -> Iterator[str]:
    """All notes in the order of the passes, what is said several times once."""
    found: Counter[str] = Counter()
    for name in [
        *(step.name for step in ON_ASSIGNMENTS),
        LOWERING.name,
        *(step.name for step in ON_LOOPS),
    ]:
        found.update(note for note in notes if note.startswith(f"{name}:"))
        found.update(told.get(name, ()))
    found.update(note for note in notes if note not in found)
    found.update(remarks)
    return _times(found)
