"""List comprehensions, and generators given to `sum` and the like, as loops of the program.

    [f(row) for row in A]            =>            xs = []
    sum(f(row) for row in A)                       for row in A:
                                                       xs.append(f(row))
                                                   total = 0
                                                   for row in A:
                                                       total = total + f(row)

A comprehension asks for the iterator first and makes its list then, so which loop it is shows when it asks
for the first item. The list has no name: it lies on the stack of a frame that has made nothing since, and so
it is the newest one that Python's collector knows. From CPython 3.15 on it makes the list first. The body
does not see the list, so nothing has to stand for it: what an iteration has appended is taken off again. (One
that is not the comprehension's list would not grow.)
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from types import FrameType, GeneratorType
from typing import Any, Union

from ...frozen import slotted
from ...garbage import make_old
from .bytecode import comprehension, generator

__all__ = ["Built", "Collecting", "Held", "Waiting", "added", "listed"]


def _held_by_a_variable() -> int:
    lone: list[Any] = []
    return sys.getrefcount(lone)


MANY = 10_000
"""Objects that are gone through for each comprehension at most."""

_OF_A_VARIABLE = _held_by_a_variable()
"""References to a list that one variable holds: until CPython 3.13 calls hold another."""


@slotted
class Built:
    """A list that a comprehension builds: how many items an iteration appends, and which the last one did.
    The first `start` are those of iterations that were recorded by themselves."""

    whole: list[Any]
    label: str = "items"
    each: int = 0
    start: int = 0
    items: list[Any] = field(default_factory=list)

    def enter(self) -> None:
        """Take note of what there is before the recorded loop."""
        self.start = len(self.whole)
        self.each = 0

    def take(self) -> None:
        """Take off what the iteration has appended."""
        self.items = self.whole[self.start :]
        del self.whole[self.start :]

    def is_news(self) -> bool:
        """Whether the iteration did otherwise than was assumed."""
        return len(self.items) != self.each

    def learn(self) -> None:
        """Assume what the iteration did."""
        self.each = len(self.items)

    def add(self, item: Any) -> None:
        """Append an item when the loop is over."""
        self.whole.append(item)


@slotted
class Held:
    """What a generator's items are added to, in a list of one item."""

    values: list[Any]


Collecting = Union[Built, Held]
"""What becomes of the items that a comprehension or a generator makes."""


class Waiting:
    """An iterator of which it shows at the first item whether a comprehension asks for them: then `begin`
    says what it gets, for its frame, the offset of its FOR_ITER instruction and its list. Anything else gets
    the `items` one by one. A generator's items go `into` what somebody collects them in. Where the list has
    been made before, it is looked for in the beginning."""

    def __init__(
        self,
        items: Iterator[Any],
        begin: Callable[[FrameType, int, Collecting], Iterator[Any]],
        has_list: bool,
    ) -> None:
        self._built = _list_on_a_stack() if has_list else None
        self._items = items
        self._begin = begin
        self._has_begun = False
        self.into: Collecting | None = None

    def __iter__(self) -> Waiting:
        return self

    def __next__(self) -> Any:
        if not self._has_begun:
            self._has_begun = True
            frame = sys._getframe(1)
            offset = comprehension(frame) if self.into is None else generator(frame)
            into = self.into or self._built or (_newest_list() if offset is not None else None)
            if offset is not None and into is not None:
                self._items = self._begin(frame, offset, into)
        return next(self._items)


def _newest_list() -> Built | None:
    """The list that was made last, if it is empty and only a frame's stack refers to it. What is young is
    gone through for that: where the collector rests, all that was made, which is old the next time."""
    young = gc.get_objects(generation=0)
    newest = next((value for value in reversed(young) if type(value) is list), None)
    many = len(young) > MANY
    del young
    if many:
        make_old()
    if newest is None or newest or sys.getrefcount(newest) > _OF_A_VARIABLE + 1:
        return None
    return Built(newest)


def _list_on_a_stack() -> Built | None:
    """The list that was made last of those that are empty and that no object and no other name refers to."""
    young = gc.get_objects(generation=0)
    for value in reversed(young):
        is_new = type(value) is list and not value and sys.getrefcount(value) <= _OF_A_VARIABLE + 2
        if is_new and all(holder is young for holder in gc.get_referrers(value)):
            return Built(value)
    return None


def listed(iterable: Any, ends: Callable[[Any], bool | None] = lambda item: False) -> list[Any]:
    """The items of an iterable, up to the first one that `ends` it; a generator is run as the comprehension
    that it could be."""
    if type(iterable) is not GeneratorType:
        return list(iterable)
    found: list[Any] = []
    _collect(iterable, Built(found))
    # Whenever the next item is asked for, the list must have those before it: `extend` does not promise that.
    for item in iterable:
        found.append(item)
        if ends(item):
            break
    return found


def added(generator: GeneratorType[Any, Any, Any], start: Any) -> Any:
    """The sum of what a generator makes, as Python adds it."""
    total = [start]
    _collect(generator, Held(total))
    for item in generator:
        total[0] = total[0] + item
    return total[0]


def _collect(generator: GeneratorType[Any, Any, Any], into: Collecting) -> None:
    """Note what becomes of the items."""
    for source in gc.get_referents(generator, generator.gi_frame):
        if type(source) is Waiting:
            source.into = into
