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

from collections.abc import Iterable, Iterator, Mapping

from ...ir.index import Affine, Symbol
from ...ir.loops import For, If, Stmt, walk_statements
from ...ir.tensor import Tensor
from .access import Range, Ranges
from .strides import affine_accesses, stride
from .trips import about, enter
from .work import REGISTER_BYTES, UNKNOWN_TRIPS

__all__ = ["handed_on", "touched_alone"]

ASKED = 32.0
"""A line that is asked for takes so long, in additions of one register: on Zen 4 7 to 9 ns, prefetched
or not."""


def touched_alone(body: Iterable[Stmt], ranges: Ranges) -> Mapping[Tensor, float]:
    """How many lines of each array any one statement touches that threads do not share."""
    most: dict[Tensor, float] = {}
    for stmt in _alone(body):
        for storage, count, _ in _lines((stmt,), ranges):
            most[storage] = max(most.get(storage, 0.0), count)
    return most


def _alone(body: Iterable[Stmt]) -> Iterator[Stmt]:
    for stmt in body:
        loops = (inner for inner in walk_statements((stmt,)) if isinstance(inner, For))
        is_shared = any(loop.grain is not None for loop in loops)
        match stmt:
            case For(grain=None, body=inside) if is_shared:
                yield from _alone(inside)
            case If(body=inside, orelse=other) if is_shared:
                yield from _alone((*inside, *other))
            case _ if not is_shared:
                yield stmt
            case _:
                pass


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
