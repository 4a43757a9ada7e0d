"""The roofline of this machine: arithmetic per second and bytes per second from each cache and from memory.

Measured once for a number of threads and kept in a file, which belongs to the processor, the sizes of its
caches and the loops that measure. The model is that of Williams, Waterman and Patterson, "Roofline: an
insightful visual performance model for multicore architectures", Communications of the ACM 52 (4), 2009: work
takes at least as long as its arithmetic at the peak, and as its bytes at the bandwidth of where they lie.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Protocol

from .. import processor
from ..cache import key_for, recall, remember
from ..frozen import frozen
from ..ir.code import Caps
from ..targets.host import host_caps, host_cpu
from .machine import Limits, best_of, cached_rate, limits

__all__ = ["Level", "Roofline", "kept", "reached", "roofline"]

_KIND = "roofline"
_FORMAT = 3
"""Another one when something else is measured."""


@frozen
class Level:
    """A cache, or memory: its bytes for all threads together, and the bytes per second that they reach."""

    name: str
    nbytes: int
    rate: float


@frozen
class Roofline:
    """Limits of the machine on some threads. `levels` are the caches from the nearest on, then memory, whose
    size counts as unlimited."""

    threads: int
    limits: Limits
    levels: tuple[Level, ...]

    def peak(self, dtype: str) -> float:
        """Floating-point operations per second; types smaller than float32 compute as that does."""
        return self.limits.float64 if dtype == "float64" else self.limits.float32

    def level(self, nbytes: int) -> Level:
        """Where so many bytes have room, that are used again and again."""
        return next((level for level in self.levels[:-1] if nbytes <= level.nbytes), self.levels[-1])

    def seconds(self, flops: Mapping[str, float], nbytes: float, footprint: int) -> float:
        """The least time for so many operations, by dtype, and so many bytes moved among `footprint`."""
        arithmetic = sum(count / self.peak(dtype) for dtype, count in flops.items())
        return max(arithmetic, nbytes / self.level(footprint).rate)


class Roof(Protocol):
    """What limits work: `seconds` is the least time for operations by kind and for bytes moved among
    `footprint`, `level` is where so many bytes have room."""

    def seconds(self, flops: Mapping[str, float], nbytes: float, footprint: int) -> float: ...

    def level(self, nbytes: int) -> Level: ...


def reached(
    roof: Roof, flops: Mapping[str, float], nbytes: float, footprint: int, seconds: float
) -> tuple[str, float]:
    """What limits such work at best, "arithmetic" or where its data has room, and how much of that limit it
    reaches in so many seconds."""
    arithmetic, moving = roof.seconds(flops, 0, footprint), roof.seconds({}, nbytes, footprint)
    bound = "arithmetic" if arithmetic >= moving else roof.level(footprint).name
    return bound, max(arithmetic, moving) / seconds


_known: dict[int, Roofline] = {}


def roofline(threads: int = 1, *, again: bool = False) -> Roofline:
    """The machine's, on so many threads: measured in about three seconds, or as it was measured earlier, by
    this process or another. `again` measures anyway. What one thread reaches, several do too, even if others
    needed the machine just then."""
    if again or threads not in _known:
        key = _key(threads)
        found = None if again else _recalled(key)
        if found is None:
            found = _measured(threads)
            if threads > 1:
                found = _at_least(roofline(1), found)
            remember(_KIND, key, json.dumps(asdict(found)).encode())
        _known[threads] = found
    return _known[threads]


def kept(threads: int = 1) -> Roofline | None:
    """The machine's, if it has been measured, by this process or another."""
    return _known.get(threads) or _recalled(_key(threads))


def _measured(threads: int) -> Roofline:
    caps = _caps()
    sizes = {"L1": caps.l1_bytes * threads, "L2": caps.l2_bytes * threads, "L3": caps.l3_bytes}
    levels: list[Level] = []
    for name, nbytes in sizes.items():
        nearer = levels[-1].nbytes if levels else 0
        if nbytes > nearer:
            at_best = min(nbytes // 2, 4 * nearer or nbytes)
            levels.append(Level(name, nbytes, cached_rate(threads, at_best // threads)))
    found = limits(threads)
    return Roofline(threads, found, (*levels, Level("memory", 0, max(found.memory, found.read))))


def _at_least(one: Roofline, several: Roofline) -> Roofline:
    """The limits of several threads, none of them below that of one."""
    rates = {level.name: level.rate for level in one.levels}
    levels = (replace(each, rate=max(each.rate, rates.get(each.name, 0.0))) for each in several.levels)
    return Roofline(several.threads, best_of(one.limits, several.limits), tuple(levels))


def _caps() -> Caps:
    return host_caps(host_cpu())


def _key(threads: int) -> str:
    return key_for(_FORMAT, processor.identity(), _caps(), threads)


def _recalled(key: str) -> Roofline | None:
    """What an earlier process measured; None if there is nothing that makes sense here."""
    content = recall(_KIND, key)
    if content is None:
        return None
    try:
        found = json.loads(content)
        levels = tuple(Level(**level) for level in found["levels"])
        return Roofline(int(found["threads"]), Limits(**found["limits"]), levels)
    except (KeyError, TypeError, ValueError):
        return None
