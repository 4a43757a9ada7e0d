"""What the lanes of a warp do together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .faults import InactiveLane
from .races import WARP
from .site import Action, Reader, Site
from .threads import Threads
from .types import Array

__all__ = ["active_mask", "elect", "last_operand", "match", "reduce", "shuffle", "synchronise", "vote"]


def last_operand(site: Site) -> Reader:
    """The mask of the lanes that take part."""
    return site.read(len(site.operands) - 1, "b32")


def _members(site: Site) -> Callable[[Threads], Array]:
    """The mask for each active lane. Raises InactiveLane if a lane does not name itself."""
    read = last_operand(site)

    def run(threads: Threads) -> Array:
        mask = np.broadcast_to(read(threads), threads.count)
        own = mask >> (threads.numbers % WARP).astype(np.uint32) & np.uint32(1)
        if not own.all():
            lane = int(threads.numbers[own == 0][0])
            raise InactiveLane("a lane's own bit is not in the mask of those that take part", lane=lane)
        return mask

    return run


def _table(threads: Threads, values: Array, rest: int) -> Array:
    """Values by warp and lane; `rest` for lanes that are not active."""
    table = np.full(threads.size, rest, values.dtype)
    table[threads.lanes] = values
    return table.reshape(-1, WARP)


def synchronise(site: Site) -> Action:
    """`bar.warp.sync`: orders the memory accesses of the warp's lanes."""

    def run(threads: Threads) -> None:
        warps = np.unique(threads.numbers // WARP)
        clocks = threads.clocks
        block, warp = np.divmod(warps, threads.shape.warps)
        clocks.time[np.unique(block)] += 1
        clocks.known[block, warp, warp] = clocks.time[block]
        threads.synchronised()

    return run


def active_mask(site: Site) -> Action:
    """`activemask`."""
    store = site.write(0, "b32")
    return lambda threads: store(threads, _ballot(threads, np.ones(threads.count, bool)))


def _ballot(threads: Threads, values: Array) -> Array:
    """For each active lane the mask of the active lanes of its warp for which a value is true."""
    bits = np.where(values, np.uint32(1) << (threads.numbers % WARP).astype(np.uint32), np.uint32(0))
    masks = np.bitwise_or.reduce(_table(threads, bits, 0), axis=1)
    result: Array = masks[threads.numbers // WARP]
    return result


def vote(site: Site) -> Action:
    """`vote.sync`: `all`, `any`, `uni`, `ballot`."""
    kind = site.choice("all", "any", "uni", "ballot")
    store = site.write(0, "b32" if kind == "ballot" else "pred")
    read, members = site.read(1, "pred"), _members(site)

    def run(threads: Threads) -> None:
        mask = members(threads)
        chosen = _ballot(threads, np.broadcast_to(read(threads), threads.count)) & mask
        mask = mask & _ballot(threads, np.ones(threads.count, bool))
        results = {
            "ballot": chosen,
            "any": chosen != 0,
            "all": chosen == mask,
            "uni": (chosen == mask) | (chosen == 0),
        }
        store(threads, results[kind])

    return run


def match(site: Site) -> Action:
    """`match.any.sync`: the lanes that have the same value; `match.all.sync`: all of them, or none."""
    kind = f"b{site.type.bits}"
    store, store_all = site.write_pair("b32")
    read, members = site.read(1, kind), _members(site)

    def run(threads: Threads) -> None:
        mask = members(threads)
        values = np.broadcast_to(read(threads), threads.count)
        table = _table(threads, values, 0)
        equal = table[threads.numbers // WARP] == values[:, None]
        bits = (equal.astype(np.uint32) << np.arange(WARP, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
        here = mask & _ballot(threads, np.ones(threads.count, bool))
        bits &= here
        if site.has("all"):
            bits = np.where(bits == here, bits, np.uint32(0))
        store(threads, bits)
        if store_all is not None:
            store_all(threads, bits != 0)

    return run


_REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduce(site: Site) -> Action:
    """`redux.sync`."""
    function = _REDUCTIONS[site.choice(*_REDUCTIONS)]
    kind = site.type
    store, read, members = site.write(0, kind), site.read(1, kind), _members(site)

    def run(threads: Threads) -> None:
        mask = members(threads)
        values = np.broadcast_to(read(threads), threads.count)
        results = np.empty(threads.count, kind.dtype)
        keys = (threads.numbers // WARP).astype(np.uint64) << np.uint64(32) | mask
        for key in np.unique(keys):
            chosen = keys == key
            results[chosen] = function.reduce(values[chosen])  # type: ignore[attr-defined]
        store(threads, results)

    return run


def elect(site: Site) -> Action:
    """`elect.sync`: the lowest lane leads."""
    store, store_leads = site.write_pair("b32")
    members = _members(site)

    def run(threads: Threads) -> None:
        mask = members(threads) & _ballot(threads, np.ones(threads.count, bool))
        lowest = mask & (~mask + np.uint32(1))
        leader = np.log2(lowest.astype(np.float64)).astype(np.uint32)
        store(threads, leader)
        if store_leads is not None:
            store_leads(threads, leader == threads.numbers % WARP)

    return run


def shuffle(site: Site) -> Action:
    """`shfl.sync`: `up`, `down`, `bfly`, `idx`. A lane without a source keeps its own value."""
    store, store_valid = site.write_pair("b32")
    mode = site.choice("up", "down", "bfly", "idx")
    value, by, limits, members = site.read(1, "b32"), site.read(2, "b32"), site.read(3, "b32"), _members(site)

    def run(threads: Threads) -> None:
        members(threads)
        numbers = threads.numbers
        lane = numbers % WARP
        bound = limits(threads).astype(np.int64)
        segment, clamp = bound >> 8 & 31, bound & 31
        step = by(threads).astype(np.int64) & 31
        last = lane & segment | clamp & ~segment
        first = lane & segment
        source = {
            "up": lane - step,
            "down": lane + step,
            "bfly": lane ^ step,
            "idx": first | step & ~segment,
        }[mode]
        valid = source >= last if mode == "up" else source <= last
        source = numbers - lane + np.where(valid, source, lane)
        values = np.zeros(threads.size, np.uint32)
        values[threads.lanes] = value(threads)
        if threads.count != threads.size:
            here = np.zeros(threads.size, bool)
            here[threads.lanes] = True
            if not here[source].all():
                at = int(np.flatnonzero(~here[source])[0])
                what = f"lane {int(lane[at])} reads lane {int(source[at]) % WARP}, which does not take part"
                raise InactiveLane(what, lane=int(numbers[at]))
        store(threads, values[source])
        if store_valid is not None:
            store_valid(threads, np.broadcast_to(valid, threads.count))

    return run
