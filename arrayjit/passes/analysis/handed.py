"""Lines that threads hand to and fro, where a loop goes through nests that they share and others.

    for k in sequential(0, n):
        for i in parallel(0, 300, grain=40):
            for j in vector(0, 300, lanes=8):
                t[i, j] = ...
        for i in sequential(1, 300):
            for j in vector(0, 300, lanes=8):
                t[i, j] = ... t[i - 1, j] ...

Half of what the first nest stores to is in another core's cache, in every iteration of `k`, and goes back: a
core that stores to a line which another one has read since has to ask for it, and one question waits for the
next. Alternating directions took 1.05 to 1.1 times as long on two threads as on one, reflections up to 1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...ir.code import Caps
from ...ir.index import Affine, Symbol
from ...ir.loops import For, If, LoopKind, Stmt, walk_statements
from ...ir.tensor import Tensor
from .access import Range, Ranges
from .strides import affine_accesses, stride
from .trips import about, enter
from .work import REGISTER_BYTES, UNKNOWN_TRIPS, in_vectors

__all__ = ["handed_on", "threads_for", "touched_alone"]

ASKED = 32.0
"""A line that is asked for takes so long, in additions of one register: on Zen 4 7 to 9 ns, prefetched
or not."""


def threads_for(nests: Sequence[Stmt], around: Sequence[Stmt], ranges: Ranges, caps: Caps) -> int:
    """How many threads would share nests of `around`, the body of a loop that goes in order, or nothing: 1
    where each of them does too little, for certain, also for having what it stores to come from the thread
    that does the rest."""

    def does_enough(loop: For, asked: float = 0.0) -> bool:
        does = in_vectors(loop, ranges)
        return any(does) or does.get((), 0.0) - asked >= 2 * caps.thread_work

    if caps.threads == 1:
        return 1
    large = [nest for nest in nests if isinstance(nest, For) and does_enough(nest)]
    if not large:
        return 1
    alone = touched_alone(around, ranges, lambda loop: loop.kind is LoopKind.PARALLEL and does_enough(loop))
    asked = [handed_on(nest, alone, ranges) * (about(nest, ranges) or UNKNOWN_TRIPS) for nest in large]
    return caps.threads if any(map(does_enough, large, asked)) else 1


def touched_alone(
    body: Iterable[Stmt],
    ranges: Ranges,
    is_shared: Callable[[For], bool] = lambda loop: loop.grain is not None,
) -> Mapping[Tensor, float]:
    """How many lines of each array any one statement touches that threads do not share."""
    most: dict[Tensor, float] = {}
    for stmt in _alone(body, is_shared):
        for storage, count, _ in _lines((stmt,), ranges):
            most[storage] = max(most.get(storage, 0.0), count)
    return most


def _alone(body: Iterable[Stmt], is_shared: Callable[[For], bool]) -> Iterator[Stmt]:
    for stmt in body:
        if not any(is_shared(loop) for loop in walk_statements((stmt,)) if isinstance(loop, For)):
            yield stmt
        elif isinstance(stmt, For) and not is_shared(stmt):
            yield from _alone(stmt.body, is_shared)
        elif isinstance(stmt, If):
            yield from _alone((*stmt.body, *stmt.orelse), is_shared)


def handed_on(loop: For, alone: Mapping[Tensor, float], ranges: Ranges) -> float:
    """What an iteration of a shared loop takes for the lines that it stores to and that one thread by itself
    touches as well."""
    most: dict[Tensor, float] = {}
    for storage, count, stores in _lines(loop.body, ranges):
        if stores and storage in alone:
            most[storage] = max(most.get(storage, 0.0), count)
    times = about(loop, ranges) or UNKNOWN_TRIPS
    each = sum(min(count, alone[storage] / times) for storage, count in most.items())
    return ASKED * each


def _lines(body: tuple[Stmt, ...], ranges: Ranges) -> Iterator[tuple[Tensor, float, bool]]:
    """How many lines each access of a body touches, and whether it stores."""
    inside: dict[Symbol, Range] = dict(ranges)
    times: dict[Symbol, int] = {}
    for stmt in walk_statements(body):
        if isinstance(stmt, For):
            count = about(stmt, inside)
            times[stmt.symbol] = UNKNOWN_TRIPS if count is None else count
            enter(stmt, inside)
    for tensor, index, stores in affine_accesses(body):
        yield tensor.storage, _count(tensor, index, times), stores


def _count(tensor: Tensor, index: tuple[Affine, ...], times: Mapping[Symbol, int]) -> float:
    """How many lines the cells at `index` lie in."""
    count = 1.0
    for symbol in {symbol for position in index for symbol in position.symbols}:
        along = stride(tensor, index, symbol) in (1, -1)
        count *= times.get(symbol, 1)
        if along:
            count *= tensor.dtype.itemsize / REGISTER_BYTES
    return count
