"""How fast a call is and each of its parts, on processors and on GPUs: work that was counted, in times that
were measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .amounts import Number
from .cost import Cost
from .measure import Spread

__all__ = ["CallRates", "PartRates", "weighed"]


class PartRates:
    """A part that takes `seconds` of a call and does `flops` by kind, on so many bytes. `bound` is what
    limits it, `fraction` how much of that limit it reaches, None where none is known."""

    __slots__ = ()

    seconds: Spread
    flops: Mapping[str, Number]
    nbytes: Number
    bound: str
    fraction: float | None

    @property
    def flops_per_second(self) -> float:
        return per_second(sum(self.flops.values()), self.seconds)

    @property
    def bytes_per_second(self) -> float:
        return per_second(self.nbytes, self.seconds)

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte."""
        return sum(self.flops.values()) / self.nbytes if self.nbytes else 0.0


class CallRates:
    """A call that costs so much and takes `native` without all that Python does for it."""

    __slots__ = ()

    native: Spread
    cost: Cost

    @property
    def flops_per_second(self) -> float:
        """What the program asks for, in the time of the native code, at least."""
        return per_second(self.cost.flops.low, self.native)

    @property
    def bytes_per_second(self) -> float:
        """Bytes of the call's arrays, each once, in the time of the native code, at least."""
        return per_second(self.cost.read.low + self.cost.written.low, self.native)


def weighed(parts: Iterable[PartRates]) -> float | None:
    """How much of their limits parts reach, weighed by their times; None where there are none."""
    known = [(part.fraction, part.seconds.median) for part in parts if part.fraction is not None]
    total = sum(seconds for _, seconds in known)
    return sum(fraction * seconds for fraction, seconds in known) / total if total else None


def per_second(amount: Number, seconds: Spread) -> float:
    """0 where nothing is done, which takes no time."""
    return amount / seconds.median if seconds.median else 0.0
