"""A list of the user's that a recorded loop appends to: what stands for it while the body is recorded.

The body runs once, on a symbolic index, so the list itself would tell how long it is after the first
iteration. In its place, wherever the loop finds the list, the body sees a `Growing`, which knows what is the
same in each iteration: what has been appended since the iteration began, the last items from before
(`xs[-1]`), and the length as a number that grows with the loop. Any other use starts the trace again with the
loop unrolled. Whether the loop finds every name of the list is asked of Python's count of references.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ...frozen import slotted
from ...ir.index import Affine
from ..record.retrace import Reason, Retrace, Site
from ..record.state import Standing
from ..record.trace import Trace, user_location
from .iterations import Iterations

__all__ = ["Growing", "Growth", "known_length"]

_MOST_BACK = 16
"""Items further from the end are not carried from iteration to iteration."""

_REFUSED = (
    "add", "radd", "mul", "rmul", "imul", "contains", "delitem", "setitem", "iter", "reversed", "len", "eq",
    "ne", "lt", "le", "gt", "ge", "repr", "array", "reduce_ex", "copy", "deepcopy",
)  # fmt: skip


@slotted
class Growth:
    """A list that a loop appends to, or that stands for one: the number of its part among the places and its
    name, how many items an iteration appends, and how many from before it reads."""

    whole: Any
    part: int
    label: str
    each: int = 0
    back: int = 0
    stand: Growing | None = None

    def is_news(self) -> bool:
        """Whether the iteration did otherwise than was assumed."""
        return self.stand is None or self._told() != (self.each, self.back)

    def learn(self) -> None:
        """Assume what the iteration did."""
        self.each, self.back = self._told()
        self.forget_stand()

    def forget_stand(self) -> None:
        """Drop what stood for the list, and have it drop the list: frames may keep what variables held."""
        if self.stand is not None:
            self.stand.retire()
            self.stand = None

    @property
    def items(self) -> list[Any]:
        """What the iteration has appended."""
        return [] if self.stand is None else self.stand.items

    def _told(self) -> tuple[int, int]:
        if self.stand is None:
            return 0, 0
        return len(self.stand.items), max(self.back, self.stand.reach)

    def last_items(self) -> dict[int, Any]:
        """The items that the loop reads from the end, by how far from it they are: now."""
        end = self.whole if self.stand is None else self.stand
        found: dict[int, Any] = {}
        for back in range(1, self.back + 1):
            try:
                found[back] = end[-back]
            except IndexError:
                break
        return found

    def carry(self, back: int, item: Any) -> None:
        """An item from before the iteration is carried."""
        if self.stand is not None:
            self.stand.earlier[back] = item

    def add(self, item: Any) -> None:
        """Append an item when the loop is over."""
        (self.whole.items if type(self.whole) is Growing else self.whole).append(item)

    def has_strangers(self, held: int) -> bool:
        """Whether something else refers to the list besides this and so many known places."""
        return sys.getrefcount(self.whole) > held + 1

    def stand_has_strangers(self, held: int) -> bool:
        """Whether something refers to what stood for the list besides this and so many known places."""
        return sys.getrefcount(self.stand) > held + 2


class Growing(Standing):
    """Stands for `growth.whole` in an iteration that has appended `items`. `earlier` has items from before
    it that are carried, by how far from its end they were when it began; `reach` is how far was asked for."""

    __slots__ = ("_depth", "_growth", "_iterations", "_site", "_trace", "earlier", "reach")

    def __init__(self, growth: Growth, trace: Trace, site: Site, iterations: Iterations) -> None:
        self.items: list[Any] = []
        self.earlier: dict[int, Any] = {}
        self.reach = 0
        self._growth = growth
        self._trace = trace
        self._site = site
        self._iterations = iterations
        self._depth = trace.depth

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return list

    def retire(self) -> None:
        """Stand for nothing."""
        self._growth = Growth([], self._growth.part, self._growth.label)

    def append(self, item: Any) -> None:
        if self._trace.depth != self._depth:
            self.refuse("appends under a computed condition to")
        self.items.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        for item in list(items):
            self.append(item)

    def __iadd__(self, items: Iterable[Any]) -> Growing:
        self.extend(items)
        return self

    def __bool__(self) -> bool:
        if not self.items and not self._growth.whole:
            self.refuse("needs to know the length of")
        return True

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice and key.stop is None and key.step is None and self._has(key.start):
            return [self[place] for place in range(key.start, 0)]
        if type(key) is not int or not -_MOST_BACK <= key < 0:
            self.refuse("reads another item than the last ones of")
        if -key <= len(self.items):
            return self.items[key]
        back = -key - len(self.items)
        self.reach = max(self.reach, back)
        return self.earlier[back] if back in self.earlier else self._growth.whole[-back]

    def _has(self, start: Any) -> bool:
        """Whether a slice from there on has as many items in the first iteration as in each."""
        if type(start) is not int or not -_MOST_BACK <= start < 0 or type(self._growth.whole) is Growing:
            return False
        return len(self._growth.whole) + len(self.items) >= -start

    def length(self) -> Affine:
        """How many items there are at this moment of any iteration."""
        done = self._iterations.number * self._growth.each
        return known_length(self._growth.whole) + done + len(self.items)

    def refuse(self, what: str) -> NoReturn:
        """Start again with the loop unrolled."""
        words = f"this line {what} {self._growth.label}, a list that the loop appends to"
        self._trace.wanted = Retrace({self._site: Reason(words, user_location())})
        raise self._trace.wanted

    def __getattr__(self, name: str) -> Any:
        self.refuse(f"uses .{name} of")

    __hash__ = None  # type: ignore[assignment]


def _refused(name: str) -> Any:
    def refuse(self: Growing, *arguments: Any) -> NoReturn:
        self.refuse("uses the whole of")

    refuse.__name__ = refuse.__qualname__ = f"__{name}__"
    return refuse


for _name in _REFUSED:
    setattr(Growing, f"__{_name}__", _refused(_name))
Sequence.register(Growing)


def known_length(value: Any) -> Affine:
    """The length of a list or of what stands for one."""
    return value.length() if type(value) is Growing else Affine.of(len(value))
