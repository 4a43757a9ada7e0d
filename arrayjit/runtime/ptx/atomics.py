"""Atomic operations on global and shared memory. Lanes that name one address take turns, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .encoding import bits_of, typed
from .moves import lanes_of, space_of
from .rounding import added
from .site import Action, Site, Writer
from .threads import Threads, Use
from .types import Array, Type, unsigned

__all__ = ["change", "change_silently"]

Update = Callable[..., Array]


def _updates(kind: Type) -> dict[str, Update]:
    one = kind.dtype.type(1)
    return {
        "add": (lambda old, value: added(old, value, kind, "rn")) if kind.is_float else np.add,
        "min": np.fmin if kind.is_float else np.minimum,
        "max": np.fmax if kind.is_float else np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda old, value: value,
        "cas": _exchanged,
        "inc": lambda old, limit: np.where(old >= limit, old * 0, old + one),
        "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - one),
    }


def _exchanged(old: Array, expected: Array, value: Array) -> Array:
    return np.where(old == expected, value, old)


def change(site: Site) -> Action:
    """`atom`: the old value goes to a register."""
    return _atomic(site, site.write_parts(0, f"b{site.type.bits}"), 1)


def change_silently(site: Site) -> Action:
    """`red`."""
    return _atomic(site, lambda threads, values: None, 0)


def _atomic(site: Site, store: Writer, place: int) -> Action:
    """`place` is the operand that is the address; values follow it."""
    kind, count = site.type, lanes_of(site)
    updates = _updates(kind)
    name = site.choice(*updates)
    update = updates[name]
    operands = range(place + 1, place + (3 if name == "cas" else 2))
    reads = [site.read_parts(operand, kind.bits, count) for operand in operands]
    space, address = site.address(place, space_of(site))
    orders = site.has("acquire", "release", "acq_rel", "sc")
    plain = unsigned(kind.bits)

    def run(threads: Threads) -> None:
        if orders:
            threads.fence()
        values = [read(threads) for read in reads]
        old = np.empty((threads.count, count), plain)
        for memory, rows, which in threads.spaces[space].locate(
            threads, address(threads), kind.nbytes * count, Use.ATOMIC
        ):
            cells = memory.view(plain)
            lanes = threads.every[: threads.count][which]
            for turn in _turns(rows):
                chosen, at = lanes[turn], rows[turn]
                before = cells[at]
                old[chosen] = before
                operands = (typed(each[chosen].reshape(-1), kind) for each in values)
                after = update(typed(before.reshape(-1), kind), *operands)
                cells[at] = bits_of(after, kind).reshape(-1, count)
        store(threads, old)

    return run


def _turns(rows: Array) -> Iterator[Array]:
    """Indices into `rows`, each time of distinct rows; equal rows come in their order."""
    order = np.argsort(rows, kind="stable")
    sorted_ = rows[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = sorted_[1:] != sorted_[:-1]
    counted = np.arange(len(rows))
    rank = counted - np.maximum.accumulate(np.where(is_first, counted, 0))
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
