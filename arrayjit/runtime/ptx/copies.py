"""`cp.async`: copies from global to shared memory that are there when their group has been waited for.

Until then the bytes are poison, and touching them is a fault: hardware may copy at any time in between.
"""

from __future__ import annotations

import numpy as np

from .faults import UnfinishedCopy
from .module import Number, Word
from .moves import fetched
from .site import Action, Reader, Site
from .spaces import SharedSpace
from .threads import Copy, Threads, Use
from .types import Array

__all__ = ["asynchronous", "unfinished"]


def asynchronous(site: Site) -> Action:
    """`cp.async.ca.shared.global`, `cp.async.commit_group`, `cp.async.wait_group`, `cp.async.wait_all`."""
    if not site.has("async") or site.has("bulk", "mbarrier", "reduce"):
        raise site.unknown("of `cp`, cp.async with groups is")
    if site.has("commit_group"):
        return _commit
    if site.has("wait_group"):
        kept = site.operands[0]
        if not isinstance(kept, Number):
            raise site.unknown("the number of groups is no constant")
        count = int(kept.value)
        return lambda threads: _wait(threads, threads.groups[threads.lanes] - count)
    if site.has("wait_all"):
        return _wait_all
    return _begin(site)


def _begin(site: Site) -> Action:
    size = site.operands[2]
    if not isinstance(size, Number) or size.value not in (4, 8, 16):
        raise site.unknown("the size is not 4, 8 or 16")
    nbytes = int(size.value)
    _, target = site.address(0, "shared")
    _, source = site.address(1, "global")
    used = _used_bytes(site, nbytes)

    def run(threads: Threads) -> None:
        shared = threads.spaces["shared"]
        assert isinstance(shared, SharedSpace)
        count = np.minimum(np.broadcast_to(used(threads), threads.count), nbytes)
        values = _source(threads, source(threads), nbytes, count)
        offsets = shared.offsets(threads, target(threads), nbytes)
        shared.begin_copy(threads, offsets, target(threads), nbytes)
        copy = Copy(threads.numbers.copy(), offsets, values, threads.groups[threads.lanes].copy())
        threads.copies.append(copy)

    return run


def _used_bytes(site: Site, nbytes: int) -> Reader:
    """How many bytes are read; the rest becomes zero. A predicate says that none are."""
    if len(site.operands) < 4:
        constant = np.array([nbytes])
        return lambda threads: constant
    operand = site.operands[3]
    if isinstance(operand, Word) and site.names.types[operand.name].name == "pred":
        ignored = site.read(operand, "pred")
        return lambda threads: np.where(ignored(threads), 0, nbytes)
    return site.read(operand, "u32")


def _source(threads: Threads, addresses: Array, nbytes: int, count: Array) -> Array:
    """The bytes of each copy, as rows of words."""
    word = min(nbytes, 8)
    values = np.zeros((threads.count, nbytes // word), f"u{word}")
    lanes, numbers = threads.lanes, threads.numbers
    for size in np.unique(count):
        chosen = np.flatnonzero(count == size)
        if not size:
            continue
        threads.select(numbers[chosen])
        if size == nbytes:
            values[chosen] = fetched(threads, "global", addresses[chosen], nbytes, Use.READ)
        else:
            raw = np.zeros((len(chosen), nbytes), np.uint8)
            for byte in range(int(size)):
                at = addresses[chosen] + np.uint64(byte)
                raw[:, byte] = fetched(threads, "global", at, 1, Use.READ)[:, 0]
            values[chosen] = raw.view(f"u{word}")
        threads.lanes, threads.count = lanes, len(numbers)
    return values


def _commit(threads: Threads) -> None:
    threads.groups[threads.lanes] += 1


def _wait_all(threads: Threads) -> None:
    _commit(threads)
    _wait(threads, threads.groups[threads.lanes])


def _wait(threads: Threads, until: Array) -> None:
    """The active lanes' copies in groups before `until` are there from here on."""
    limit = np.zeros(threads.size, np.int64)
    limit[threads.lanes] = until
    shared = threads.spaces["shared"]
    assert isinstance(shared, SharedSpace)
    lanes, numbers = threads.lanes, threads.numbers
    left = []
    for copy in threads.copies:
        done = copy.groups < limit[copy.lanes]
        if done.any():
            threads.select(copy.lanes[done])
            shared.end_copy(threads, copy.offsets[done], copy.values[done])
        if not done.all():
            parts = (each[~done] for each in (copy.lanes, copy.offsets, copy.values, copy.groups))
            left.append(Copy(*parts))
    threads.copies = left
    threads.lanes, threads.count = lanes, len(numbers)


def unfinished(threads: Threads) -> None:
    """Raises UnfinishedCopy if a copy was never waited for."""
    if threads.copies:
        lane = int(threads.copies[0].lanes[0])
        raise UnfinishedCopy("the kernel ends and an asynchronous copy has not been waited for", lane=lane)
