"""`f.profile(...)`: where the time of a call goes, and how far from the machine's limits it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from ..errors import Location, NumberError, UnsupportedError
from ..frozen import frozen
from ..ir.code import Caps
from ..ir.loops import For, Kernel, Lap, LoopKind, walk_statements
from ..ir.tensor import Tensor
from ..late import Late
from ..passes.structure.prune import prune
from ..stages import Lowered
from ..tracer.calls.signature import Spec
from .amounts import Number
from .cost import Cost, cost, moved
from .counters import Refused
from .laps import Part
from .lines import Line, assigned, by_time, shares
from .machine import description
from .measure import Measured, Spread, measured
from .operations import operations
from .rates import CallRates, PartRates, weighed
from .roofline import Roofline, reached, roofline
from .saving import Saved
from .visits import Visit, visits

report: Any = Late("arrayjit.profile.report")  # which imports this file, as does `page`
page: Any = Late("arrayjit.profile.page")

__all__ = ["PartProfile", "Profile", "profile", "required"]

COMPILED = ("llvm", "sync_llvm", "c", "sync_c")
"""Targets whose code the machine's limits are limits of."""


@frozen
class PartProfile(PartRates):
    """A part of the kernel: a loop nest, or some that write the same.

    `seconds` are of one call, in which the part runs `runs` times (at least, where data decides). `flops` and
    `nbytes` are what it does in a call: operations of the final kernel by dtype, and bytes of arrays, each
    counted once for each run, at least. `bound` is what limits it at best, `"arithmetic"` or where its data
    has room; `fraction` how much of that limit it reaches, None where there is none.
    """

    number: int
    seconds: Spread
    runs: Number
    flops: Mapping[str, Number]
    nbytes: Number
    bound: str
    fraction: float | None
    threads: int
    lanes: int
    lines: tuple[Line, ...]


@frozen
class Profile(Saved, CallRates):
    """Where the time of one call goes. Seconds are medians with quartiles.

    `parts` are the loop nests of the final kernel, `lines` the user's lines with their shares of it. `native`
    is all parts together, on memory that is there, `allocation` what it takes to make memory for results and
    to touch it first. `call` is a call as Python makes it; what is left of that is `dispatch`.
    `clock_overhead` is how much longer the code takes with the clock by which the parts were measured, as a
    fraction. `counters` are the processor's, per run, of the calling thread. What could not be measured is a
    `Refused` with the reason.
    """

    name: str
    target: str
    machine: str
    threads: int
    vector_bytes: int
    native: Spread
    allocation: float
    call: Union[Spread, Refused]
    clock_overhead: float
    parts: tuple[PartProfile, ...]
    lines: tuple[Line, ...]
    cost: Cost
    counters: Union[Mapping[str, float], Refused]
    rooflines: tuple[Roofline, ...]

    def __str__(self) -> str:
        """Tables: the call, the parts, the user's lines."""
        text: str = report.as_text(self)
        return text

    def as_html(self) -> str:
        text: str = page.as_html(self)
        return text

    @property
    def dispatch(self) -> float | None:
        """Seconds of a call beside the native code and memory for results: finding the code, checking
        arguments. By the least of each; None where calls were not measured."""
        if isinstance(self.call, Refused):
            return None
        return max(0.0, self.call.least - self.native.least - self.allocation)

    @property
    def fraction(self) -> float | None:
        """How much of the limits the parts reach, weighed by their times; None where there are none."""
        return weighed(self.parts)


def profile(
    lowered: Lowered,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[..., Any],
    seconds: float = 1.0,
) -> Profile:
    """Profile a call of lowered code with these arguments, for about so many seconds, beside those in which
    the machine's limits are measured for the first time. Raises UnsupportedError for what runs elsewhere than
    on the host, NumberError for arguments without values, and what the call raises."""
    required(lowered, args, kwargs, seconds)
    if lowered.device is not None:
        raise UnsupportedError(
            f"a call for {lowered.build.backend.name!r} on arrays of a device is not profiled",
            fix="profile it on NumPy arrays",
        )
    build, numbers = lowered.build, lowered.numbers
    found = measured(lowered, args, kwargs, call, seconds)
    program = prune(build.optimized.loops, Caps())
    caps = build.backend.target.caps()
    threads = min(caps.threads, build.code.threads or caps.threads)
    seen = _by_part(found.clock.kernel, numbers)
    lines = shares(assigned(program, numbers, found.clock.parts))
    parts = tuple(
        _part(found, part, seen.get(part.number, []), line_shares, threads, build.backend.name)
        for part, line_shares in zip(found.clock.parts, lines, strict=True)
    )
    used = sorted({part.threads for part in parts if part.fraction is not None})
    return Profile(
        build.computation.name,
        build.backend.name,
        description(),
        max((part.threads for part in parts), default=1),
        caps.vector_bytes,
        found.total,
        found.allocation,
        found.call,
        found.overhead,
        parts,
        by_time(parts),
        cost(build, numbers),
        found.counters,
        tuple(roofline(number) for number in used),
    )


def required(lowered: Lowered, args: Sequence[Any], kwargs: Mapping[str, Any], seconds: float) -> None:
    """Raises NumberError for arguments that cannot be measured with, and for seconds that are none."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise NumberError(f"seconds is {seconds!r}", fix="give seconds to measure for, such as 1.0")
    leaves = lowered.leaves_of(tuple(args), kwargs)
    if any(isinstance(leaf, Spec) for leaf in leaves):
        raise NumberError(
            "an argument is a shape and a dtype only, and a profile runs the code",
            fix="give arrays, or ask f.lower(...).cost() for what needs none",
        )


def _by_part(kernel: Kernel, numbers: Mapping[Tensor, int]) -> dict[int, list[Visit]]:
    """The statements of each part: those since the lap before."""
    found: dict[int, list[Visit]] = {}
    latest: list[Visit] = []
    for visit in visits(kernel.body, numbers):
        latest.append(visit)
        if isinstance(visit.stmt, Lap):
            found.setdefault(visit.stmt.number, []).extend(latest)
            latest = []
    return found


def _part(
    found: Measured,
    part: Part,
    seen: Sequence[Visit],
    lines: Mapping[Location, float],
    threads: int,
    target: str,
) -> PartProfile:
    """A part by what was measured and what it does."""
    kernel, seconds = found.clock.kernel, found.parts[part.number - 1]
    loops = [stmt for stmt in walk_statements(part.body) if isinstance(stmt, For)]
    helped = threads if any(loop.grain is not None for loop in loops) else 1
    runs = max((visit.space.runs[0] for visit in seen if isinstance(visit.stmt, Lap)), default=1.0)
    flops = {name: amount.low for name, amount in operations(seen).flops.items()}
    nbytes, footprint = moved(kernel, part.body, seen, runs, (found.clock.times,))
    bound, fraction = "", None
    if target in COMPILED and seconds.median > 0:
        bound, fraction = reached(roofline(helped), flops, nbytes, footprint, seconds.median)
    return PartProfile(
        part.number,
        seconds,
        runs,
        flops,
        nbytes,
        bound,
        fraction,
        helped,
        max((loop.lanes for loop in loops if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP)), default=1),
        tuple(Line(loc, share) for loc, share in lines.items()),
    )
