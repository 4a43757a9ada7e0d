"""The user's `for` statement becomes a loop of the program: its body runs with a symbolic index.

The iterator sees the local variables of the frame that asks it for items, and may assign them. It yields
the symbolic index, and when it is asked again compares the locals: the names that changed and are read again
are carried from one iteration to the next (see `carries`). If there are any, what was recorded is discarded,
the locals are put back, each carried name is bound to what stands for it at the start of any iteration, and
the index is yielded once more. Nothing is guessed: what the second record gives must be of the kind that
was assumed. Otherwise the first iteration is recorded by itself, where a value changes its kind in it; or
several iterations make one of the recorded loop, where arrays change places (`u, v = v, u`); or the trace
starts again with this loop unrolled. (Carries through frames: our own; loop peeling: Bacon, Graham, Sharp,
Compiler Transformations for High-Performance Computing, 1994.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Literal, NoReturn, Protocol

from ...errors import Location, UserError
from ...ir.index import Affine, Symbol
from ..record.deciding import (
    is_positive,
    not_negative,
    one_if_positive,
    quotient,
    require_decided,
    rest,
)
from ..record.retrace import Reason, Retrace, Site
from ..record.scopes import Mark
from ..record.trace import Trace, user_location
from ..values.array import SymbolicArray
from ..values.integer import number, python_int
from .bytecode import Liveness, breaks_off, goes_on_as_ended, liveness
from .carries import (
    Carry,
    Cell,
    Count,
    Leaf,
    Moving,
    Planner,
    Unfit,
    is_array,
    is_number,
    rotation,
    same,
    shows,
)
from .comprehensions import Built, Collecting, Held
from .exits import Exit
from .growing import Growing, Growth
from .iterations import Iterations
from .places import MISSING, Name, Place, Places
from .steps import moved
from .stretches import Stretch
from .unsure import Unsure

__all__ = ["Rolled"]

_FEW_STATEMENTS = 128
"""Comprehensions that are no more statements than these are unrolled: what their items become part of can be
computed together with them."""

_MOST_PEELED = 2
_MOST_ATTEMPTS = 12


class Items(Protocol):
    """What a loop runs over: items at the indices `range(lo, hi, pace)`, as in `loops`."""

    trace: Trace
    lo: Affine
    hi: Affine
    pace: int
    rolled: bool
    taken: Literal["not", "partly", "all"]

    @property
    def times(self) -> Affine: ...

    def item(self, index: Affine) -> Any: ...

    def items(self) -> Iterator[Any]: ...


Names = dict[Name, Any]


class Rolled:
    """One `for` statement, or a comprehension whose items go `into` something, while its body is recorded; an
    *attempt* records it once.

    `before` has the values before an iteration that may not run was recorded by itself; from there on the
    record stands under that condition.
    """

    places: Places
    live: Liveness
    entry: Names
    bound: Names
    mark: Mark

    def __init__(
        self,
        items: Items,
        site: Site,
        into: Collecting | None = None,
        stretch: Stretch | None = None,
        is_last: bool = True,
        unsure: Unsure | None = None,
    ) -> None:
        self.items = items
        self.stretch = stretch or Stretch(items.lo, items.hi, items.pace)
        self.is_last = is_last
        self.unsure = Unsure(items.trace, items.times) if unsure is None else unsure
        self.site = site
        self.into = into
        self.built = into if isinstance(into, Built) else None
        self.trace = items.trace
        self.loc: Location | None = user_location()
        self.iterations = self._named(self.stretch.iterations())
        self.carries: dict[Name, Carry] = {}
        self.before: Names | None = None
        self.peeled = 0
        self.may_leave = False

    def run(self, frame: FrameType) -> Iterator[Any]:
        """The items for the user's loop."""
        self.enter(frame)
        self.live = liveness(self.site.code, self.site.offset)
        if not self.is_last:
            self.live = self.live.of_part()
        self.take_together()
        self.trace.recorders.append(self)
        try:
            for _ in range(_MOST_ATTEMPTS):
                self.attempt()
                self.trace.running.append((self.iterations.count, self.site))
                for index in self.iterations.indices():
                    yield self.at(index)
                self.trace.running.pop()
                if self.into is not None and not self.peeled and self.is_short():
                    self.put_back()
                    self.forget()
                    self.may_leave = True
                    yield from self.items.items()
                    return
                try:
                    if self.is_right():
                        break
                except Unfit as unfit:
                    yield from self.first(unfit)
                    self.enter(frame)
                    if self.is_over(unfit):
                        return
            else:
                self.unroll("what it changes is of another kind in each iteration")
            self.exit()
            self.items.taken = "all"
            self.may_leave = True
            for index in self.iterations.remainder():
                yield self.at(index)
        except GeneratorExit:
            self.leave(frame)
            raise
        finally:
            self.trace.indices.pop(self.site, None)
            if self in self.trace.recorders:
                self.trace.recorders.remove(self)

    def first(self, unfit: Unfit) -> Iterator[Any]:
        """The items of the first iteration, which is recorded by itself."""
        indices = self.peel(unfit)
        self.may_leave = self.before is None
        for index in indices:
            yield self.at(index)
        self.may_leave = False

    def is_over(self, unfit: Unfit) -> bool:
        """Whether no iteration is left after the first one."""
        if is_positive(self.iterations.groups, self.trace) is not False:
            return False
        if self.before is not None or self.iterations.rest:
            self.unroll(unfit.what, unfit.fix)
        return True

    def at(self, index: Affine) -> Any:
        """The item at an index."""
        self.trace.indices[self.site] = index
        return self.items.item(index)

    @property
    def symbol(self) -> Symbol:
        return self.iterations.symbol

    @property
    def may_turn(self) -> bool:
        """Whether the loop may be recorded in stretches: it is a statement."""
        return self.into is None

    def is_at_most(self, iterations: int) -> bool:
        """Whether the loop surely has no more iterations, and may be unrolled."""
        count = self.items.times
        return count.is_constant and count.offset <= iterations and not self.items.rolled

    def take_together(self) -> None:
        """Record as many iterations in a row as the body's rests of indices ask for."""
        together, reason = self.trace.decisions.together.get(self.site, (1, None))
        if reason is not None and self.stretch.times is None:
            self.trace.note(self.loc, f"{together} iterations are recorded together, because {reason.why()}")
            self.group(together, reason.what)

    def leave(self, frame: FrameType) -> None:
        """The body left the loop in the middle: the loop is to unroll, but where that is as it should be, or
        where the first iteration does so. Nothing can be raised here."""
        if not self.trace.is_open or self.may_leave:
            return
        why = Retrace({self.site: Reason("its body leaves the loop", self.loc)})
        if any(carry.changes(self.iterations.symbol) for carry in self.carries.values()):
            # What was raised may come of extents that were assumed and are not so.
            self.trace.pending = self.trace.wanted = why
        elif not self.is_left_at_once(frame):
            self.trace.pending = why
        else:
            try:
                self.end_at_once()
            except Retrace as retrace:
                self.trace.pending = retrace
            except (Unfit, UserError):
                self.trace.pending = why

    def is_left_at_once(self, frame: FrameType) -> bool:
        """Whether the body left the loop in the first iteration, and what follows is the same if there is
        none; the code does not tell for which of them the body was recorded first."""
        is_first = not self.carries and not self.peeled and self.into is None and self.iterations.period == 1
        if not is_first or self.trace.depth != self.mark.depth or not breaks_off(frame):
            return False
        return self.runs_surely() or (self.stretch.decides and goes_on_as_ended(frame, self.site.offset))

    def end_at_once(self) -> None:
        """End a loop that its body leaves in the first iteration, if there is one. Raises Unfit where the
        body makes lists longer, or what it changes cannot be left as it was."""
        is_sure = self.runs_surely()
        self.trace.running.pop()
        self.live = liveness(self.site.code, self.site.offset)
        after = self.places.read()
        with self.trace.in_front():
            self.iterations = self.iterations.begun(one_if_positive(self.iterations.count, self.trace))
            planner = Planner(self.trace, self.mark, self.iterations, (), self.places.has)
        for name, now in after.items():
            if name not in self.entry and isinstance(name, Place):
                raise Unfit(f"{name} is new")
            if is_sure or name not in self.entry or not (isinstance(name, Place) or name in self.live.after):
                continue
            if not same(self.entry[name], now):
                if self.is_object(now):
                    raise Unfit(f"{name} becomes another object")
                self.carries[name] = planner.carry(name, self.entry[name], now)
        self.note_origins(self.carries)
        self.require_unshared(after)
        self.trace.note(self.loc, "left in its first iteration")
        self.exit()

    def enter(self, frame: FrameType) -> None:
        """Take note of what there is before the recorded loop."""
        self.places = Places.of(frame, {"sum": self.into.values} if isinstance(self.into, Held) else {})
        self.places.grown = {
            number: Growth(part, number, label)
            for number, (label, part) in self.places.lists().items()
            if type(part) is Growing
        }
        self.entry = self.places.read()
        if self.built is not None:
            self.built.enter()

    def attempt(self) -> None:
        """Begin to record the body, with the carried names bound to what any iteration starts with."""
        for name in self.places.iterators:
            if name in self.live.head:
                self.unroll(f"its body may advance the iterator {name}")
        self.mark = self.trace.begin()
        self.stand_in()
        self.bound = {name: carry.value(self.at_start) for name, carry in self.carries.items()}
        self.places.write(self.bound)

    def stand_in(self) -> None:
        """Put what stands for a list that grows in its place."""
        for growth in self.places.grown.values():
            growth.forget_stand()
            growth.stand = Growing(growth, self.trace, self.site, self.iterations)
            self.places.exchange(growth.whole, growth.stand)
            for recorder in self.trace.recorders:
                recorder.places.refresh()
            held = sum(recorder.holds(growth.whole) for recorder in self.trace.recorders)
            if growth.has_strangers(held + self.overwritten(growth.whole)):
                self.unroll(f"it appends to the list {growth.label}, which something else refers to")

    def holds(self, value: Any) -> int:
        """How often the value is referred to from here."""
        names = (*self.entry.values(), *(self.before or {}).values())
        lists = [held for growth in self.places.grown.values() for held in (growth.whole, growth.stand)]
        return sum(held is value for held in (*names, *lists)) + self.places.references(value)

    def overwritten(self, value: Any) -> int:
        """How often frames keep the value besides their variables."""
        return Places.overwritten(value, (recorder.places for recorder in self.trace.recorders))

    def put_back(self) -> None:
        """Put the lists that grow back in their places, and take off what a comprehension's has got."""
        if self.built is not None:
            self.built.take()
        for growth in self.places.grown.values():
            self.places.exchange(growth.stand, growth.whole)
        for growth in self.places.grown.values():
            if growth.stand_has_strangers(self.overwritten(growth.stand)):
                self.unroll(f"it appends to the list {growth.label} and refers to it anew")

    def forget_stands(self) -> None:
        """Drop what stood for lists, which would keep them alive."""
        for growth in self.places.grown.values():
            growth.forget_stand()

    def grows(self, after: Names) -> bool:
        """Whether lists grow in another way than was assumed."""
        lists = self.places.lists()
        grown = self.places.grown
        for name in after:
            if name in self.entry or not isinstance(name, Place):
                continue
            if name.part in lists and name.part not in grown:
                label, part = lists[name.part]
                known = (str(name) for name, value in self.entry.items() if value is part)
                grown[name.part] = Growth(part, name.part, next(known, label))
        news = [growth for growth in self.growths() if growth.is_news()]
        if news:
            fix = "write into an array made before the loop: out[i] = ..."
            number(self.iterations.count, self.trace, "how many items a loop appends to a list", fix)
        for growth in news:
            growth.learn()
        return bool(news)

    def growths(self) -> list[Growth | Built]:
        """The lists that the loop appends to."""
        return [*self.places.grown.values(), *(() if self.built is None else (self.built,))]

    def at_start(self, leaf: Leaf, before: Any) -> Any:
        """A carried leaf at the start of an iteration."""
        match leaf:
            case Count(start=start, stride=stride):
                return python_int(start + self.iterations.number * stride, self.trace)
            case Moving(view=view):
                symbol = self.iterations.symbol
                earlier = {symbol: Affine.of(symbol) - self.iterations.shift}
                return SymbolicArray(moved(view, earlier), self.trace)
            case Cell(kind=kind, view=view):
                return SymbolicArray(view, self.trace, kind.weak, kind.is_scalar)
            case None:
                return before

    def is_short(self) -> bool:
        """Whether a comprehension is few statements when it is unrolled."""
        return self.trace.statements_since(self.mark) * self.items.times.constant <= _FEW_STATEMENTS

    def forget(self) -> None:
        """Discard the attempt for the items one by one, for which nothing may be less known than before."""
        if self.trace.discard(self.mark, self.site):
            self.unroll("few statements do what it does")
        self.places.restore(self.entry)

    def is_right(self) -> bool:
        """Whether the recorded body is that of every iteration. If not, the record is discarded, and what to
        assume in the next attempt is noted. Raises Unfit where nothing can be assumed."""
        self.put_back()
        after = self.places.read()
        period = rotation(self.entry, after, lambda value: is_array(value) or self.is_object(value))
        if period > 1 and self.iterations.period == 1 and not self.carries:
            self.discard()
            self.group(period, "arrays change places from iteration to iteration")
            return False
        if self.grows(after):
            self.discard()
            self.entry |= self.places.last_items()
            return False
        planned = self.planned(after)
        if planned is None and not self.trace.assumed_too_much(self.mark):
            self.require_unshared(after)
            return True
        self.discard()
        if planned is not None:
            self.note_origins(planned)
            self.carries = planned
        return False

    def note_origins(self, carries: Mapping[Name, Carry]) -> None:
        """Numbers that are carried depend on how often the loop runs."""
        for carry in carries.values():
            for leaf in carry.leaves:
                if isinstance(leaf, Cell) and not leaf.kind.is_array:
                    self.trace.came_from(leaf.view.tensor, self.site)

    def planned(self, after: Names) -> dict[Name, Carry] | None:
        """How to carry each name that changed; None where that is how they are carried already."""
        planner = Planner(self.trace, self.mark, self.iterations, self.carries.values(), self.places.has)
        found: dict[Name, Carry] = {}
        followers: list[Name] = []
        for name in after:
            if name not in self.entry and isinstance(name, Place):
                raise Unfit(f"{name} is new")
        for name, entry in self.entry.items():
            now = after.get(name, MISSING)
            if name in self.carries:
                found[name] = planner.checked(name, self.carries[name], now)
            elif self.is_handed_on(name) and not self.is_unchanged(entry, now):
                if self.is_object(now):
                    followers.append(name)
                else:
                    found[name] = planner.carry(name, entry, now)
        self.follow(planner, followers, after, found)
        self.require_led(followers, after, found)
        return None if all(found[name] is self.carries.get(name) for name in found) else found

    def follow(self, planner: Planner, followers: list[Name], after: Names, found: dict[Name, Carry]) -> None:
        """Carry the names that become an array whose extents are to change: theirs change with it."""
        for _ in followers:
            symbol = self.iterations.symbol
            leaders = [self.entry[name] for name, carry in found.items() if carry.changes(symbol)]
            for name in followers:
                entry, now = self.entry[name], after[name]
                if name in found or not (is_array(entry) and is_array(now) and _is_one_of(now, leaders)):
                    continue
                if (carry := planner.following(name, entry, now)) is not None:
                    found[name] = carry

    def is_object(self, value: Any) -> bool:
        """Whether the value is an object from before the iteration that may be told from one that is equal: a
        number may not."""
        return self.places.has(value) and not is_number(value)

    def is_unchanged(self, entry: Any, now: Any) -> bool:
        """Whether a name stands for what it did: equal views of an array are two objects."""
        return same(entry, now) and (entry is now or not (is_array(now) and self.is_object(now)))

    def require_led(self, followers: list[Name], after: Names, found: Mapping[Name, Carry]) -> None:
        """Raise Unfit unless each of these names becomes an array that another one stood for, and this one is
        carried from the next attempt on (`before, now = now, 2 * now - before`): then the first one becomes
        what is carried, and can be carried itself."""
        leaders = [self.entry[name] for name in found if name not in self.carries]
        for _ in followers:
            leaders += [self.entry[name] for name in followers if _is_one_of(after[name], leaders)]
        for name in followers:
            if name not in found and not (is_array(after[name]) and _is_one_of(after[name], leaders)):
                raise Unfit(f"{name} becomes another object")

    def is_handed_on(self, name: Name) -> bool:
        """Whether the next iteration, or what follows a loop that perhaps did not run, may read the name."""
        surely_runs = self.runs_surely() and self.before is None
        return (
            isinstance(name, Place) or name in self.live.body or (name in self.live.head and not surely_runs)
        )

    def runs_surely(self) -> bool:
        """Whether the recorded loop has at least one iteration."""
        return is_positive(self.iterations.groups, self.trace) is True

    def require_unshared(self, after: Names) -> None:
        """Raise Unfit where an array that is carried by copying is written and may be seen by another name.

        Its first value must come from an iteration recorded by itself: of an older array, callers and
        containers may know. Containers that the body changes are excluded anyway."""
        written = self.trace.written_since(self.mark) | self.trace.perhaps_written_since(self.mark)
        for name, carry in self.carries.items():
            news, _ = carry.leaves_of(after[name])
            for leaf, entry, now in zip(carry.leaves, carry.entry, news, strict=True):
                if not isinstance(leaf, Cell) or not leaf.kind.is_array:
                    continue
                storage = entry.cells.tensor.storage
                if storage in written:
                    raise Unfit(f"its body writes the array that {name} stands for at first")
                if leaf.view.tensor not in written:
                    continue
                is_old = not self.peeled or not self.trace.is_made_here(storage)
                if is_old or self.is_shared(name, entry, self.entry) or self.is_shared(name, now, after):
                    raise Unfit(f"its body writes into the array {name} and rebinds the name")

    def is_shared(self, name: Name, array: SymbolicArray, names: Names) -> bool:
        """Whether another name that is read again leads to the array's memory, or may do so."""
        storage = array.cells.tensor.storage
        alike = (storage, *self.trace.sameness.of(storage))
        others = [
            value
            for other, value in names.items()
            if other != name and (isinstance(other, Place) or other in self.live.head)
        ]
        return any(shows(value, one) for value in others for one in alike)

    def discard(self) -> None:
        """Forget the attempt and put everything back."""
        self.trace.discard(self.mark, self.site)
        self.places.restore(self.entry)

    def group(self, period: int, what: str) -> None:
        """From now on `period` iterations of the user's make one of the recorded loop, because of `what`."""
        count = self.iterations.count
        left = rest(count, period, self.trace, what)
        if left is None or (count.is_constant and count.offset < period):
            self.unroll(what)
        groups = quotient(not_negative(count, self.trace), period, self.trace)
        self.iterations = self._named(
            self.iterations.grouped(period, groups, left, self.trace.limits.most(groups))
        )

    def peel(self, unfit: Unfit) -> list[Affine]:
        """Prepare to record the first iteration by itself, under a condition if it may not run; the user's
        indices in it."""
        is_sure = self.runs_surely()
        if not is_sure:
            require_decided(self.iterations.count, self.trace, unfit.what)
        if self.peeled == _MOST_PEELED or (self.before is not None and not is_sure):
            self.unroll(unfit.what, unfit.fix)
        self.discard()
        self.forget_stands()
        self.peeled += 1
        self.carries = {}
        row = self.iterations
        if is_sure or not row.rest:
            indices, left = (
                row.firsts(len(row.indices())),
                row.after_one(self.trace.limits.most(row.groups - 1)),
            )
        else:
            indices, left = row.firsts(1), Iterations.of(row.first + row.step, row.stop, row.step)
        self.iterations = self._named(left)
        if left.period == 1:
            self.take_together()
        if not is_sure:
            self.before = dict(self.entry)
            self.trace.begin()
        return indices

    def exit(self) -> None:
        """End the recorded loop."""
        if self.built is not None and not self.built.each:
            self.unroll("it keeps none of its items")
        leaving = Exit(
            self.trace, self.site, self.iterations, self.carries, self.live, self.loc, self.peeled,
            self.places, self.growths(), self.unsure, self.is_last,
        )  # fmt: skip
        try:
            finals = leaving.close(self.mark, self.entry, self.places.read(), self.before)
        except Unfit as unfit:
            self.unroll(unfit.what, unfit.fix)
        self.places.write(finals)
        self.forget_stands()

    def unroll(self, what: str, fix: str = "") -> NoReturn:
        raise Retrace({self.site: Reason(what, self.loc, fix)})

    def _named(self, iterations: Iterations) -> Iterations:
        self.trace.limits.note(iterations.symbol, *iterations.limits())
        self.trace.came_from(iterations.symbol, self.site)
        self.trace.runs_between(iterations.symbol, (iterations.first, iterations.stop))
        self.stretch.note(iterations, self.trace)
        return iterations


def _is_one_of(value: Any, others: list[Any]) -> bool:
    return any(value is other for other in others)
