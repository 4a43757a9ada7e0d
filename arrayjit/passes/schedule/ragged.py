"""ragged: sums of rows of which only the run knows how short they are end under a mask.

    for k in parallel(0, 90000):                    for k in parallel(0, 90000):
        m = starts[k]                                   m = starts[k]
        n = starts[k + 1]                               n = starts[k + 1]
        s = 0.0                                         s = 0.0
        for i in sequential(m, n):          ->          prefetch(x[m + 256])
            s = add(s, x[i])                            for i in lockstep(m, n, lanes=8, masked=True):
        y[k] = s                                            s = add(s, x[i])
                                                        y[k] = s

Where rows have a few cells, here more and there less, a processor guesses wrong where each one ends, and
waits for as long as twenty additions take. Under a mask all lanes of a register are added, in order, those
behind the end as what adds nothing. Few rows are left alone: whoever goes through them again has learnt where
they end. What is loaded under masks the hardware does not ask for ahead: it is asked for here.

All that is added is made of neighbours and of what stays: what is looked up takes as long as it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.expr import Apply, Expr, Gather, Index, Load, Local, Variable
from ...ir.index import Symbol
from ...ir.loops import Bind, Define, For, Kernel, LoopKind, Prefetch, Stmt, Update
from ...ir.ops import OPS, divides_integers, is_of_library
from ...ir.walk import kept, locals_read, nodes_in, rewrite_bodies, substitute_statements, walk
from ..analysis.strides import stride

__all__ = ["ragged"]

CELLS = (4, 8)
"""The bytes of cells of which a mask chooses lanes."""

LANES = 8
"""So many are added one after the other at once: of more float32s, too, most would add nothing."""

MANY = 20_000
"""Of so many rows a processor does not learn the ends, however often it goes through them."""

SLICE = 65
"""What is known to stay below is a slice of a known length, which nearly all of them have."""

AHEAD = 2048
"""So many bytes ahead neighbours are asked for."""

ADD = OPS["add"]


def ragged(kernel: Kernel, caps: Caps) -> Kernel:
    """Every such sum under masks."""
    if not caps.ends_masked:
        return kernel
    bodies = _Bodies()
    return kernel.with_body(bodies.body(kernel.body, 1), bodies.notes)


@slotted
class _Bodies:
    """Bodies on the way through a kernel, and what of their locals and symbols is found in memory."""

    found: set[Variable | Symbol] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...], rows: int | None) -> tuple[Stmt, ...]:
        """A body, and how often loops lead to it; None where the run knows."""
        return kept(body, [new for stmt in body for new in self.statement(stmt, rows)])

    def statement(self, stmt: Stmt, rows: int | None) -> Iterable[Stmt]:
        match stmt:
            case Define(variable=name, value=value) | Update(variable=name, value=value):
                self.note(name, value)
            case Bind(symbol=name, value=value):
                self.note(name, value)
            case For(kind=LoopKind.VECTOR | LoopKind.LOCKSTEP):
                return (stmt,)
            case For(trips=trips):
                row = _Row.of(stmt) if self.are_ragged(stmt, rows) else None
                if row is not None:
                    self.notes.append(f"ragged: loop {stmt.symbol.hint} ends under a mask")
                    return row.under_masks()
                rows = None if rows is None or trips is None else rows * trips
            case _:
                pass
        return (rewrite_bodies(stmt, lambda inner: self.body(inner, rows)),)

    def note(self, name: Variable | Symbol, value: Expr) -> None:
        """Whether what a name stands for is, or follows from what is found in memory."""
        for node in walk(value):
            names = node.value.symbols if isinstance(node, Index) else ()
            known = isinstance(node, Local) and node.variable in self.found
            if known or isinstance(node, (Load, Gather)) or not self.found.isdisjoint(names):
                self.found.add(name)

    def are_ragged(self, row: For, rows: int | None) -> bool:
        """Whether the ends of so many rows are found in memory, too many to be learnt."""
        end = row.hi.symbol
        if end is not None and end.upper is not None and end.upper <= SLICE:
            return False
        is_found = not self.found.isdisjoint((*row.lo.symbols, *row.hi.symbols))
        return is_found and (rows is None or rows >= MANY)


@frozen
class _Row:
    """A loop that adds up what its `body` says, and what it reads of memory, all neighbours."""

    loop: For
    body: tuple[Stmt, ...]
    cells: tuple[Load, ...]

    @staticmethod
    def of(loop: For) -> _Row | None:
        """None where the loop does something else."""
        if (
            loop.kind is not LoopKind.SEQUENTIAL
            or loop.trips is not None
            or (loop.step, loop.lanes) != (1, 1)
        ):
            return None
        body = _accumulating(loop.body)
        nodes = nodes_in(body)
        sums = {stmt.variable for stmt in body if isinstance(stmt, Update)}
        cells = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Load)))
        is_sum = sums and all(isinstance(stmt, Define) or _adds(stmt) for stmt in body)
        if not is_sum or not sums.isdisjoint(locals_read(body)) or not all(map(_goes_in_lanes, nodes)):
            return None
        are_near = all(
            stride(cell.tensor, cell.index, loop.symbol) == 1 and cell.tensor.dtype.itemsize in CELLS
            for cell in cells
        )
        return _Row(loop, body, cells) if cells and are_near else None

    def under_masks(self) -> Iterator[Stmt]:
        """The loop, after requests for what comes later in its arrays."""
        first = {self.loop.symbol: self.loop.lo}
        for cell in self.cells:
            *before, last = (at.substitute(first) for at in cell.index)
            yield Prefetch(cell.tensor, (*before, last + AHEAD // cell.tensor.dtype.itemsize))
        yield replace(self.loop, body=self.body, kind=LoopKind.LOCKSTEP, lanes=LANES, masked=True)


def _accumulating(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A body in which numbers that follow from the loop's own have no name, and what is assigned after an
    addition to it is added at once."""
    names = {
        stmt.symbol: stmt.value.value
        for stmt in body
        if isinstance(stmt, Bind) and isinstance(stmt.value, Index)
    }
    left = tuple(stmt for stmt in body if not (isinstance(stmt, Bind) and stmt.symbol in names))
    body = substitute_statements(left, names) if names else body
    reads = Counter(locals_read(body))
    added = {
        stmt.variable: stmt.value.args
        for stmt in body
        if isinstance(stmt, Define) and isinstance(stmt.value, Apply) and stmt.value.op is ADD
        if reads[stmt.variable] == 1
    }
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Update(variable=total, value=Local(variable=sum), accum=None) if sum in added:
                (old, new) = added.pop(sum)
                out = [one for one in out if not (isinstance(one, Define) and one.variable is sum)]
                stmt = replace(stmt, value=new, accum=ADD) if old == Local(total) else stmt
        out.append(stmt)
    return tuple(out)


def _adds(stmt: Stmt) -> bool:
    return isinstance(stmt, Update) and stmt.accum is ADD and stmt.variable.dtype.is_float


def _goes_in_lanes(node: Expr) -> bool:
    match node:
        case Apply(op=op, dtype=dtype):
            return not is_of_library(op) and not divides_integers(op, dtype)
        case _:
            return not isinstance(node, Gather)
