"""Which lines of the user's a part of the final kernel is for, and how much of its work.

Passes join, split and remove loops, but an array that is written keeps its name. A line of the program as
lowered belongs to the parts that write what it writes; where nothing does any more, to the parts of the lines
that read it. The work of a line is what it counts on the program as lowered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from ..errors import Location
from ..frozen import frozen_by_identity
from ..ir.expr import Gather, Load
from ..ir.loops import Fill, Kernel, Store, walk_statements
from ..ir.ops import OPS
from ..ir.tensor import Tensor
from ..ir.walk import expressions, walk
from .cells import accesses
from .laps import Part
from .operations import counted
from .visits import Visit, visits

__all__ = ["shares"]


@frozen_by_identity
class Written:
    """An assignment of the program: where it stands, what it writes and reads, and its work in additions."""

    loc: Location | None
    tensor: Tensor
    reads: frozenset[Tensor]
    work: float


def shares(
    program: Kernel, numbers: Mapping[Tensor, int], parts: Sequence[Part]
) -> list[Mapping[Location, float]]:
    """For each part the lines that it is for, with their shares of its work, the greatest first."""
    assignments = _assignments(program, numbers)
    writers: dict[Tensor, set[int]] = {}
    for number, part in enumerate(parts):
        for stmt in walk_statements(part.body):
            if isinstance(stmt, (Store, Fill)):
                writers.setdefault(stmt.tensor.storage, set()).add(number)
    homes = _homes(assignments, writers)
    for number, part in enumerate(parts):
        _settle(assignments, writers, homes, number, part)
    found: list[Counter[Location]] = [Counter() for _ in parts]
    for one in assignments:
        for number in homes.get(one.tensor, ()):
            if one.loc is not None:
                found[number][one.loc] += one.work  # type: ignore[assignment]
    shared = [_normalised(each) for each in found]
    for number in reversed(range(len(parts))):
        if not shared[number]:
            shared[number] = _of_reader(parts, shared, number)
    return shared


def _assignments(program: Kernel, numbers: Mapping[Tensor, int]) -> list[Written]:
    """What the program says, store by store; what is computed before a store is for that."""
    found: list[Written] = []
    work, reads = 0.0, set[Tensor]()
    for visit in visits(program.body, numbers):
        work += _work(visit)
        reads.update(access.tensor.storage for access in accesses(visit) if not access.is_store)
        stmt = visit.stmt
        if isinstance(stmt, (Store, Fill)):
            found.append(Written(stmt.loc, stmt.tensor.storage, frozenset(reads), work))
            work, reads = 0.0, set()
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
    number: int,
    part: Part,
) -> None:
    """A part that writes no array makes single numbers: it is for the lines that make them out of what it
    reads."""
    if any(isinstance(stmt, (Store, Fill)) for stmt in walk_statements(part.body)):
        return
    read = _read(part)
    for one in assignments:
        if one.tensor not in writers and not one.tensor.shape and one.reads & read:
            homes[one.tensor] = {number}


def _of_reader(
    parts: Sequence[Part], shared: Sequence[Mapping[Location, float]], number: int
) -> Mapping[Location, float]:
    """The lines of the first part that reads what this one prepares, such as a packed factor of a product."""
    made = {
        stmt.tensor.storage for stmt in walk_statements(parts[number].body) if isinstance(stmt, (Store, Fill))
    }
    readers = (lines for part, lines in zip(parts, shared, strict=True) if lines and _read(part) & made)
    return next(readers, {})


def _read(part: Part) -> set[Tensor]:
    """The arrays that a part loads from."""
    return {
        node.tensor.storage
        for stmt in walk_statements(part.body)
        for expr in expressions(stmt)
        for node in walk(expr)
        if isinstance(node, (Load, Gather))
    }


def _normalised(work: Counter[Location]) -> Mapping[Location, float]:
    total = sum(work.values())
    return {loc: amount / total for loc, amount in work.most_common()} if total else {}
