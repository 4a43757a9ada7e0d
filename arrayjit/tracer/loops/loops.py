"""What a `for` runs over, and what becomes of the loop: it is recorded once (see `rolled`), or once for each
of its stretches, or unrolled.

The frame that asks for items says in which statement it is, and what earlier runs of the trace decided says
which of the three it becomes. Whoever is no `for` statement takes the items one by one.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import FrameType
from typing import Any, Literal

from ...errors import UnsupportedError
from ...ir.assign import statements
from ...ir.index import Affine
from ..record.deciding import is_positive
from ..record.retrace import Reason, Retrace, Site, told
from ..record.trace import Trace, user_location
from ..record.turns import turns_of
from ..values.integer import number
from .bytecode import asks_early, for_statement, has_made_list
from .comprehensions import Collecting, Waiting
from .iterations import count_between
from .rolled import Rolled
from .stretches import Stretch, stretches_between
from .unsure import Unsure

__all__ = ["MOST_UNROLLED", "UNROLLED", "Counted", "Once", "iterate"]

UNROLLED = 4
"""Loops of so few iterations are unrolled, unless that makes more statements than `_MOST_STATEMENTS`."""

_MOST_STATEMENTS = 256
"""What a program gains by few iterations side by side it gains where they are small, and compiling takes
milliseconds for each statement."""

_FEW_ITEMS = 16
"""Comprehensions of so few items are unrolled, unless that makes more statements than `_MOST_STATEMENTS`."""

MOST_UNROLLED = 1024
"""Loops of more iterations are never unrolled."""


class Counted(ABC):
    """Items at the indices `range(lo, hi, pace)`, where `pace` is 1 or -1. With `rolled` they may only be
    taken by a recorded loop."""

    trace: Trace
    lo: Affine
    hi: Affine
    pace: int
    rolled: bool = False
    taken: Literal["not", "partly", "all"] = "not"

    @abstractmethod
    def item(self, index: Affine) -> Any:
        """The item at an index, which may be symbolic."""

    @property
    def times(self) -> Affine:
        """How many items there are."""
        return count_between(self.lo, self.hi, self.pace)

    def __iter__(self) -> Iterator[Any]:
        self.taken = "partly"
        return iterate(self, sys._getframe(1))

    def items(self) -> Iterator[Any]:
        """The items one by one; how many there are must be known while tracing."""
        for n in range(self.known_times()):
            yield self.item(self.lo + n * self.pace)
        self.taken = "all"

    def handed_on(self) -> Counted:
        """The items for another iterator, which is made of them."""
        return self

    def known_times(self) -> int:
        """How many items there are, which must be known while tracing."""
        fix = "take the number of items from the shape of an argument, or use a `for` statement"
        return number(self.times, self.trace, "how many items there are", fix)


class Once(Counted):
    """What is an iterator in Python, one of type `kind`: it gives its items only once."""

    kind: type

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.kind

    def __iter__(self) -> Iterator[Any]:
        if self.taken == "all":
            return iter(())
        self._require_whole()
        self.taken = "partly"
        return iterate(self, sys._getframe(1))

    def __next__(self) -> Any:
        if self.taken == "all" or self.known_times() <= 0:
            raise StopIteration
        self._require_whole()
        item = self.item(self.lo)
        self.lo += self.pace
        return item

    def handed_on(self) -> Counted:
        if self.taken == "all":
            self.hi = self.lo
        self._require_whole()
        self.taken = "partly"
        return self

    def _require_whole(self) -> None:
        if self.taken == "partly":
            raise UnsupportedError(
                "an iterator of which some items were taken is used again",
                fix=f"make a new one: call {self.kind.__name__} again",
            )


def iterate(items: Counted, frame: FrameType) -> Iterator[Any]:
    """An iterator for the frame: a loop of the program in a `for` statement, else the items one by one."""
    offset = for_statement(frame)
    if offset is None:
        has_list = has_made_list(frame)
        return _comprehended(items, has_list) if has_list or asks_early(frame) else items.items()
    count, trace = items.times, items.trace
    if is_positive(count, trace) is False:
        items.taken = "all"
        return iter(())
    site = Site(frame.f_code, offset)
    reason = trace.decisions.unrolled.get(site)
    if reason is not None:
        return _unrolled(items, site, reason)
    if site not in trace.decisions.turns and _is_short(count, items, site):
        trace.note(user_location(), f"unrolled, since {count.offset} iterations are few")
        return _sparingly(_all(items, site, count.offset), items.trace, site, count.offset)
    return _recorded(items, site, frame)


def _is_short(count: Affine, items: Counted, site: Site) -> bool:
    """Whether so many iterations are unrolled, as few or as too few to be recorded together."""
    decisions = items.trace.decisions
    together, _ = decisions.together.get(site, (1, None))
    must_be_rolled = items.rolled or site in decisions.rolled
    return count.is_constant and count.offset < max(together, 1 if must_be_rolled else UNROLLED + 1)


def _sparingly(items: Iterator[Any], trace: Trace, site: Site, count: int) -> Iterator[Any]:
    """So many items of a loop that has few. Raises Retrace where that makes very many statements: the loop is
    then recorded once, as others are."""
    start = len(trace.statements)
    for place, item in enumerate(items):
        if place == 1 and site not in trace.decisions.together:
            made = sum(1 for _ in statements(tuple(trace.statements[start:])))
            if made * count > _MOST_STATEMENTS:
                raise Retrace(rolled=frozenset((site,)))
        yield item


def _all(items: Counted, site: Site, count: int) -> Iterator[Any]:
    """All items of a loop that is unrolled."""
    yield from _singly(items, site, items.lo, count)
    items.taken = "all"


def _singly(items: Counted, site: Site, first: Affine, count: int) -> Iterator[Any]:
    """So many items of a loop, from an index on, one by one."""
    indices, copies = items.trace.indices, items.trace.copies
    copies[site] = count
    try:
        for n in range(count):
            indices[site] = first + n * items.pace
            yield items.item(indices[site])
    finally:
        indices.pop(site, None)
        copies.pop(site, None)


def _recorded(items: Counted, site: Site, frame: FrameType) -> Iterator[Any]:
    """The items for a loop that is recorded: in stretches, where its body asks on which side of its turns the
    index is."""
    trace = items.trace
    for why in dict.fromkeys(reason.why() for reason in trace.decisions.turns.get(site, {}).values()):
        trace.note(user_location(), f"recorded in stretches, because {why}")
    stretches, unsure = _stretches(items, site), Unsure(trace, items.times)
    try:
        for stretch in stretches:
            if is_positive(stretch.count, trace) is False:
                continue
            if len(stretches) > 1 and _is_short(stretch.count, items, site):
                held = unsure.held(frame.f_locals)
                yield from _singly(items, site, stretch.first, stretch.count.offset)
                variables = frame.f_locals
                rebound = (name for name, value in held.items() if variables.get(name) is not value)
                unsure.bound(rebound, stretch.count)
            else:
                yield from Rolled(items, site, None, stretch, stretch is stretches[-1], unsure).run(frame)
    except GeneratorExit:
        if unsure and trace.is_open:
            trace.pending = Retrace({site: Reason("its body leaves the loop", user_location())})
        raise
    unsure.require()
    items.taken = "all"


def _stretches(items: Counted, site: Site) -> list[Stretch]:
    trace = items.trace
    turns = turns_of(trace, site)
    found = stretches_between(items.lo, items.hi, items.pace, turns, trace)
    if site not in trace.decisions.together:
        return found
    together, reason = trace.decisions.together[site]
    return [part for stretch in found for part in stretch.in_rows(together, reason.what, trace)]


def _comprehended(items: Counted, has_list: bool) -> Iterator[Any]:
    """The items for a loop that has not begun: that of a list comprehension becomes one of the program."""

    def begin(frame: FrameType, offset: int, into: Collecting) -> Iterator[Any]:
        purpose, fix = "how many items a comprehension has", "use a `for` statement"
        count = number(items.times, items.trace, purpose, fix)
        site = Site(frame.f_code, offset)
        reason = items.trace.decisions.unrolled.get(site)
        if reason is not None:
            items.trace.note(user_location(), f"unrolled, because {reason.why()}")
        if reason is not None:
            return items.items()
        if count <= _FEW_ITEMS and site not in items.trace.decisions.rolled:
            return _sparingly(items.items(), items.trace, site, count)
        return Rolled(items, site, into).run(frame)

    return Waiting(items.items(), begin, has_list)


def _unrolled(items: Counted, site: Site, reason: Reason) -> Iterator[Any]:
    """A loop whose body needs more than a symbolic index."""
    fix = reason.fix or "take the number of iterations from the shape of an argument"
    purpose = f"this loop must be unrolled, because {reason.what}; how many iterations it has"
    count = number(items.times, items.trace, purpose, fix)
    if count > MOST_UNROLLED or items.rolled:
        limit = (
            "arrayjit.range is never unrolled" if items.rolled else f"at most {MOST_UNROLLED} are unrolled"
        )
        raise UnsupportedError(
            f"this loop cannot be recorded once, because {reason.what}",
            loc=reason.loc,
            details=(f"the loop at {user_location()} has {count} iterations; {limit}",),
            fix=told(reason.fix)
            or "do the same in each iteration, and keep results in an array made before: out[i] = ...",
        )
    items.trace.note(user_location(), f"unrolled, because {reason.why()}")
    return _all(items, site, count)
