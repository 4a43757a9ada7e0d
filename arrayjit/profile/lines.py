"""Which lines of the user's a part of the final kernel is for, and how much of its work.

Passes join, split and remove loops, but an array that is written keeps its name. A line of the program as
lowered belongs to the parts that write what it writes; where nothing does any more, to the parts of the lines
that read it. The work of a line is what it counts on the program as lowered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ..errors import Location
from ..frozen import frozen, frozen_by_identity
from ..ir.expr import Gather, Load
from ..ir.loops import Copy, Fill, Kernel, Store, walk_statements, written_in
from ..ir.ops import OPS
from ..ir.tensor import Tensor
from ..ir.walk import nodes_in
from .cells import accesses
from .laps import Part
from .measure import Spread
from .operations import counted
from .visits import Visit, visits

__all__ = ["Line", "Share", "Written", "assigned", "by_time", "loaded", "shares", "stored"]


@frozen
class Line:
    """A line of the user's and its share of the time of a part, or of the whole call."""

    loc: Location
    share: float

    @property
    def source(self) -> str:
        return self.loc.source()


class Share(Protocol):
    """A part that was measured, and the lines that it is for."""

    @property
    def seconds(self) -> Spread: ...

    @property
    def lines(self) -> tuple[Line, ...]: ...


def by_time(parts: Iterable[Share]) -> tuple[Line, ...]:
    """All lines with their shares of the time of all parts, the greatest first."""
    seconds: dict[Location, float] = {}
    total = 0.0
    for part in parts:
        total += part.seconds.median
        for line in part.lines:
            seconds[line.loc] = seconds.get(line.loc, 0.0) + line.share * part.seconds.median
    ordered = sorted(seconds.items(), key=lambda pair: -pair[1])
    return tuple(Line(loc, time / total) for loc, time in ordered) if total else ()


@frozen_by_identity
class Written:
    """An assignment of the program: where it stands, what it writes and reads, its work in additions, and the
    statements that do it."""

    loc: Location | None
    tensor: Tensor
    reads: frozenset[Tensor]
    work: float
    visits: tuple[Visit, ...]


def shares(assigned: Sequence[Sequence[Written]]) -> list[Mapping[Location, float]]:
    """For each part, by what it is for, the lines with their shares of its work, the greatest first."""
    found: list[Mapping[Location, float]] = []
    for written in assigned:
        work: Counter[Location] = Counter()
        for one in written:
            if one.loc is not None:
                work[one.loc] += one.work  # type: ignore[assignment]
        found.append(_normalised(work))
    return found


def assigned(
    program: Kernel, numbers: Mapping[Tensor, int], parts: Sequence[Part]
) -> list[Sequence[Written]]:
    """For each part the assignments that it is for. One that prepares something is for what its reader is
    for."""
    assignments = _assignments(program, numbers)
    writers: dict[Tensor, set[int]] = {}
    for number, part in enumerate(parts):
        for tensor in stored(part):
            writers.setdefault(tensor, set()).add(number)
    homes = _homes(assignments, writers)
    _settle(assignments, writers, homes, parts)
    found: list[list[Written]] = [[] for _ in parts]
    for one in assignments:
        for number in homes.get(one.tensor, ()):
            found[number].append(one)
    shared: list[Sequence[Written]] = list(found)
    for number in reversed(range(len(parts))):
        if not _is_told(shared[number]):
            shared[number] = _of_reader(parts, shared, number)
    return shared


def _is_told(written: Sequence[Written]) -> bool:
    """Whether any of it is at a line, and does something."""
    return any(one.loc is not None and one.work for one in written)


def _assignments(program: Kernel, numbers: Mapping[Tensor, int]) -> list[Written]:
    """What the program says, store by store; what is computed before a store is for that."""
    found: list[Written] = []
    work, reads, made = 0.0, set[Tensor](), list[Visit]()
    for visit in visits(program.body, numbers):
        work += _work(visit)
        reads.update(access.tensor.storage for access in accesses(visit) if not access.is_store)
        made.append(visit)
        stmt = visit.stmt
        if isinstance(stmt, (Store, Fill)):
            found.append(Written(stmt.loc, stmt.tensor.storage, frozenset(reads), work, tuple(made)))
            work, reads, made = 0.0, set(), []
    return found


def _work(visit: Visit) -> float:
    least, most = visit.space.runs
    runs = max(least, 1.0) if math.isinf(most) else (least + most) / 2
    amounts = counted(visit).items()
    return runs * sum(
        count * (OPS[name].cost if kind == "functions" else 1)
        for (kind, name), count in amounts
        if not kind.startswith("bytes")
    )


def _homes(assignments: Sequence[Written], writers: Mapping[Tensor, set[int]]) -> dict[Tensor, set[int]]:
    """The parts that each array is made in, or else used in. A reader mostly follows, so one way back through
    the program finds nearly all; it is gone again until nothing changes."""
    homes = {tensor: set(numbers) for tensor, numbers in writers.items()}
    changed = True
    while changed:
        changed = False
        for one in reversed(assignments):
            for tensor in one.reads - writers.keys():
                known = homes.setdefault(tensor, set())
                before = len(known)
                known |= homes.get(one.tensor, set())
                changed |= len(known) > before
    return homes


def _settle(
    assignments: Sequence[Written],
    writers: Mapping[Tensor, set[int]],
    homes: dict[Tensor, set[int]],
    parts: Sequence[Part],
) -> None:
    """A part that writes no array of the program's, nor one that another part reads, makes single numbers: it
    is for the lines that make them out of what it reads, or out of what parts read that prepare for it."""
    program = {one.tensor for one in assignments}
    made, read = list(map(stored, parts)), list(map(loaded, parts))
    for number in range(len(parts)):
        others = (read[other] for other in range(len(parts)) if other != number)
        if made[number] & program or any(made[number] & reading for reading in others):
            continue
        reads = set(read[number])
        for before in reversed(range(number)):
            if made[before] & reads and not made[before] & program:
                reads |= read[before]
        for one in assignments:
            if one.tensor not in writers and not one.tensor.shape and one.reads & reads:
                homes[one.tensor] = {number}


def _of_reader(parts: Sequence[Part], shared: Sequence[Sequence[Written]], number: int) -> Sequence[Written]:
    """What the first part is for that reads what this one prepares, such as a packed factor of a product."""
    made = stored(parts[number])
    readers = (
        written
        for part, written in zip(parts, shared, strict=True)
        if _is_told(written) and loaded(part) & made
    )
    return next(readers, ())


def stored(part: Part) -> set[Tensor]:
    """The arrays that a part stores to."""
    return written_in(walk_statements(part.body))


def loaded(part: Part) -> set[Tensor]:
    """The arrays that a part loads from."""
    found = {
        node.tensor.storage
        for node in nodes_in(walk_statements(part.body))
        if isinstance(node, (Load, Gather))
    }
    return found | {stmt.source.storage for stmt in walk_statements(part.body) if isinstance(stmt, Copy)}


def _normalised(work: Counter[Location]) -> Mapping[Location, float]:
    total = sum(work.values())
    return {loc: amount / total for loc, amount in work.most_common()} if total else {}
