"""What each launch of a GPU does in a call: operations, and bytes of the GPU's memory.

It is counted on the program as lowered, where that takes milliseconds, by the assignments that a launch is
for (`lines`): how the final kernel deals iterations out to threads changes where they run, not what they do.
A launch moves the arrays that it loads and stores itself, each cell once, and with them what passes have put
between launches. The arithmetic of an assignment is done where what it is computed from is loaded: by the
launch that stores the array; else, if it accumulates, by those that prepare for others, or by those that do
the arithmetic of what uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ...frozen import frozen
from ...ir.index import Symbol
from ...ir.loops import For, Kernel, LoopKind, Multiply, PlaceKind, Stmt, Update, While, walk_statements
from ...ir.params import ArrayParam
from ...ir.tensor import Tensor
from ..amounts import NONE, Number
from ..cost import touched
from ..laps import Part
from ..lines import Written, loaded, stored
from ..operations import operations
from ..visits import Visit, visits

__all__ = ["Work", "by_kind", "grids", "works"]


@frozen
class Work:
    """In a call, at least: operations by dtype, those of tensor cores by "tensor" and the dtype of the
    factors; and bytes that are read and written."""

    flops: Mapping[str, Number]
    nbytes: int


def grids(kernel: Kernel) -> list[Part]:
    """What is launched, in the order of the plan."""
    found = (
        stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For) and stmt.kind is LoopKind.GRID
    )
    return [Part(number, (grid,)) for number, grid in enumerate(found, 1)]


def by_kind(flops: Mapping[str, int], body: tuple[Stmt, ...]) -> Mapping[str, int]:
    """Operations by dtype that are done there, by kind: where tensor cores form a product, nearly all are
    theirs."""
    factors = (stmt.left.dtype.name for stmt in walk_statements(body) if isinstance(stmt, Multiply))
    factor = next(factors, None)
    return flops if factor is None else {f"tensor {factor}": sum(flops.values())}


def works(
    kernel: Kernel,
    program: Kernel,
    parts: Sequence[Part],
    assigned: Sequence[Sequence[Written]],
    runs: Sequence[int],
) -> list[Work]:
    """What each grid of a kernel does that is launched so many times in a call."""
    computed = _computed(parts, assigned)
    around = dict(_around(kernel.body, ()))
    found: list[Work] = []
    for part, written, times in zip(parts, assigned, runs, strict=True):
        (grid,) = part.body
        work = _Counted(kernel, program, part, written, computed[part.number])
        at_once = work.of_all()
        if times > 1:
            again = work.of(_inner(program.body, around[id(grid)]))
            at_once = Work(
                {kind: max(n, again.flops.get(kind, 0) * times) for kind, n in at_once.flops.items()},
                max(at_once.nbytes, again.nbytes * times),
            )
        found.append(at_once if times else Work({}, 0))
    return found


class _Counted:
    """The work of one grid, which is for the assignments `written` and does the arithmetic of `computed`."""

    def __init__(
        self,
        kernel: Kernel,
        program: Kernel,
        part: Part,
        written: Sequence[Written],
        computed: Sequence[Written],
    ) -> None:
        self._program = program
        self._part = part
        self._written = written
        self._reads, self._stores = loaded(part), stored(part)
        self._computing = {id(visit.stmt) for one in computed for visit in one.visits}
        self._moving = {id(visit.stmt) for one in written for visit in one.visits}
        params = {param.tensor for param in kernel.params if isinstance(param, ArrayParam)}
        known = params | {one.tensor for one in written}.union(*(one.reads for one in written))
        arena = set(kernel.placed(PlaceKind.ARENA))
        between = [tensor for tensor in (*self._reads, *self._stores) if tensor in arena - known]
        self._between = sum(tensor.nbytes for tensor in between)

    def of_all(self) -> Work:
        """In a call."""
        return self._counted([visit for one in self._written for visit in one.visits])

    def of(self, body: tuple[Stmt, ...]) -> Work:
        """In one run of a part of the program."""
        return self._counted(list(visits(body, {}, self._program.body)))

    def _counted(self, seen: Sequence[Visit]) -> Work:
        computing = (visit for visit in seen if id(visit.stmt) in self._computing)
        flops = operations(computing, written_out=True).flops
        nbytes = touched([visit for visit in seen if id(visit.stmt) in self._moving])
        moved = sum(nbytes.get((tensor, False), NONE).low for tensor in self._reads)
        moved += sum(nbytes.get((tensor, True), NONE).low for tensor in self._stores)
        by_dtype = {name: n.low for name, n in flops.items()}
        return Work(by_kind(by_dtype, self._part.body), moved + self._between)


def _computed(
    parts: Sequence[Part], assigned: Sequence[Sequence[Written]]
) -> Mapping[int, Sequence[Written]]:
    """By the number of each part the assignments whose arithmetic it does."""
    everything = {id(one): one for written in assigned for one in written}
    sources = _sources(everything.values(), set().union(*map(stored, parts)))
    made = {one.tensor for one in everything.values()}
    preparing = {part.number for part in parts if not stored(part) & made}
    known: dict[int, set[int]] = {}

    def places(one: Written) -> set[int]:
        if id(one) in known:
            return known[id(one)]
        near = {
            part.number
            for part, written in zip(parts, assigned, strict=True)
            if one in written and (not sources[id(one)] or sources[id(one)] & loaded(part))
        }
        known[id(one)] = near  # while its users are asked, one of which may be itself
        storing = {part.number for part in parts if one.tensor in stored(part)}
        if storing & near:
            wanted = storing
        elif _accumulates(one):
            wanted = preparing
        else:
            users = (places(user) for user in everything.values() if one.tensor in user.reads)
            wanted = set().union(*users)
        known[id(one)] = near & wanted or near
        return known[id(one)]

    return {part.number: [one for one in everything.values() if part.number in places(one)] for part in parts}


def _accumulates(one: Written) -> bool:
    return any(isinstance(visit.stmt, Update) and visit.stmt.accum is not None for visit in one.visits)


def _sources(assignments: Collection[Written], made: set[Tensor]) -> Mapping[int, set[Tensor]]:
    """By the identity of each assignment the arrays in memory that it is computed from: what nothing stores
    is computed on the way."""
    writers: dict[Tensor, list[Written]] = {}
    for one in assignments:
        writers.setdefault(one.tensor, []).append(one)

    def sources(one: Written, passed: set[Tensor]) -> set[Tensor]:
        found: set[Tensor] = set()
        for tensor in one.reads - passed:
            if tensor in made or tensor not in writers:
                found.add(tensor)
            else:
                passed.add(tensor)
                found = found.union(*(sources(other, passed) for other in writers[tensor]))
        return found

    return {id(one): sources(one, set()) for one in assignments}


def _around(body: Sequence[Stmt], loops: tuple[Stmt, ...]) -> Iterator[tuple[int, tuple[Stmt, ...]]]:
    """The identity of each grid, with the loops of the host around it."""
    for stmt in body:
        match stmt:
            case For(kind=LoopKind.GRID):
                yield id(stmt), loops
            case For(body=inner):
                yield from _around(inner, (*loops, stmt))
            case While(test=test, body=inner):
                yield from _around((*test, *inner), (*loops, stmt))
            case _:
                pass


def _inner(body: tuple[Stmt, ...], loops: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """What the program runs in each turn of those of its loops that are the host's: a loop whose turns the
    GPU knows is a `while` loop there."""
    symbols: set[Symbol] = {loop.symbol for loop in loops if isinstance(loop, For)}
    turns = any(isinstance(loop, While) for loop in loops)
    found: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For(symbol=symbol, body=inner) if symbol in symbols:
                found += _inner(inner, loops)
            case For(kind=LoopKind.SEQUENTIAL, body=inner) if turns:
                found += _inner(inner, loops)
            case While(test=test, body=inner) if turns:
                found += _inner((*test, *inner), loops)
            case _:
                found.append(stmt)
    return tuple(found)
