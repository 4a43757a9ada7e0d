"""The end of a recorded loop: its statement, and what the user's names stand for after it.

Carried names have the value that the last iteration left, or if none ran the one from before. Other names
that are read again have their value of the last iteration; a name that only the body binds has none if no
iteration ran, and then the compiled function raises UnboundLocalError, as Python would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ...errors import Location, UnsupportedError
from ...frozen import slotted
from ...ir.assign import Branch, Loop
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine, Symbol
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ..record.deciding import is_positive, not_negative, require_decided
from ..record.retrace import Reason, Site
from ..record.scopes import Mark
from ..record.trace import Trace
from ..record.view import View, same_cells
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand, copy, operand_at
from ..values.extents import require_at_least
from ..values.integer import BEYOND, LARGEST, python_int
from .bytecode import Liveness, liveness, read_in_an_iteration
from .carries import (
    Carry,
    Cell,
    Count,
    Leaf,
    Moving,
    Unfit,
    fix_of,
    is_array,
    kind_of,
    leaves_of,
    lists_of,
    map_leaves,
    same,
    substituted,
    symbols_of,
)
from .comprehensions import Built
from .growing import Growth
from .items import Appended
from .iterations import Iterations
from .places import MISSING, Name, Place, Places, captured_by
from .steps import earliest, later, moved
from .unsure import Unsure, unbound

__all__ = ["Exit"]

Names = dict[Name, Any]


@slotted
class Exit:
    """What is known about a loop whose body has been recorded.

    Arrays that several names stand for stay one: `copies` are those of overwritten arrays, `alike` has the
    memory of the first of several names by the identity of a carried leaf or of a value, `finals` the array
    that stands for a memory after the loop. `nexts` are what carried arrays become in the body, `firsts` the
    ones from before the loop that they stand for: one before the first iteration and, where one becomes what
    another stood for, the other's after it, and so on. Whether one of them `stays` the array that it is for
    an iteration, only the run shows; and so it does whether `others`, which names that are not carried lead
    to, are carried ones, and whether two carried ones are `perhaps` one."""

    trace: Trace
    site: Site
    iterations: Iterations
    carries: Mapping[Name, Carry]
    live: Liveness
    loc: Location | None
    peeled: int
    places: Places
    growths: Sequence[Growth | Built]
    unsure: Unsure
    is_last: bool
    copies: list[tuple[View, SymbolicArray]] = field(default_factory=list)
    alike: dict[int, Cell] = field(default_factory=dict)
    finals: dict[int, SymbolicArray] = field(default_factory=dict)
    nexts: dict[Cell, SymbolicArray] = field(default_factory=dict)
    firsts: dict[Cell, list[SymbolicArray]] = field(default_factory=dict)
    stays: bool = False
    others: list[tuple[Tensor, Cell]] = field(default_factory=list)
    perhaps: list[tuple[Cell, Cell, Reason]] = field(default_factory=list)

    def close(self, mark: Mark, entry: Names, after: Names, before: Names | None) -> Names:
        """End the body and record the loop; the locals to assign. `before` has the locals before a first
        iteration that was recorded under the condition that it runs."""
        earlier = entry if before is None else before
        self.follow(after)
        self.require_one_name(after)
        last = self.leave_last_values(earlier, after)
        self.find_alike(mark, after, last)
        memory = self.leave_symbols(mark, last)
        appended = Appended(self.trace, mark, self.iterations, self.growths, self.nexts, self.firsts)
        appended.store([value for name, value in after.items() if self.is_read_later(name)], self.site)
        self.leave_next_values(after)
        body = self.trace.end(self.site)
        for name, carry in self.carries.items():
            for leaf, value in zip(carry.leaves, carry.entry, strict=True):
                self.start(leaf, value, earliest(self.iterations))
                if isinstance(leaf, Cell) and leaf.kind.is_array:
                    self.tell_apart(f"the array {name}", leaf.view.tensor, self.firsts[leaf])
        self.note_what_may_be_carried()
        self.trace.emit(Loop(self.iterations.symbol, *self.iterations.bounds(), body, self.loc))
        self.trace.gone(self.iterations.symbol, self.site)
        if before is not None:
            self.guard(before, last)
        values = self.values_after(last, memory, before is not None)
        self.require_bound(self.new_names(earlier, after, last), earlier, after, values, before is not None)
        self.note(str(appended))
        finals = {cell: self.final(cell).cells.tensor for cell in self.nexts}
        appended.tell_apart(finals, self.copies, self.site, self.loc)
        appended.give()
        return values

    def is_read_later(self, name: Name) -> bool:
        return self.is_read_after(name) or name in self.live.head

    def is_read_after(self, name: Name) -> bool:
        return isinstance(name, Place) or name in self.live.after

    # inside the body

    def follow(self, after: Names) -> None:
        """Note what the carried arrays become, and which they stand for at first."""
        starts: dict[Cell, SymbolicArray] = {}
        for name, carry in self.carries.items():
            news, _ = carry.leaves_of(after[name])
            for leaf, start, now in zip(carry.leaves, carry.entry, news, strict=True):
                if isinstance(leaf, Cell) and leaf.kind.is_array:
                    starts[leaf], self.nexts[leaf] = start, now
        for first in starts:
            chain = [first]
            for leaf in chain:
                now = self.nexts[leaf].cells
                chain += [cell for cell in starts if same_cells(now, cell.view) and cell not in chain]
            self.firsts[first] = [starts[leaf] for leaf in chain]
        self.stays = any(
            cell.view.tensor in self.trace.sameness.of(now.cells.tensor.storage)
            for cell, now in self.nexts.items()
        )

    def leave_last_values(self, earlier: Names, after: Names) -> Names:
        """The values of names that are read after the loop and are not carried, safe from what follows.
        A list or an object from before the loop is itself under each of its names."""
        made: dict[int, Any] = {}
        return {
            name: map_leaves(value, self.last_value, self.places.has, made)
            for name, value in after.items()
            if self.is_read_after(name)
            and name not in self.carries
            and not same(earlier.get(name, MISSING), value)
        }

    def last_value(self, leaf: Any) -> Any:
        """The leaf, rescued unless a carried array becomes the same one."""
        if not is_array(leaf):
            return self.rescued(leaf)
        storage = leaf.cells.tensor.storage
        if any(now.cells.tensor.storage is storage for now in self.nexts.values()):
            return leaf
        alike = self.trace.sameness.of(storage)
        self.others += [(storage, cell) for cell in self.nexts if cell.view.tensor in alike]
        return self.rescued(leaf)

    def rescued(self, leaf: Any) -> Any:
        """The leaf, copied where it lies in memory that the next values are about to overwrite."""
        if type(leaf) is not SymbolicArray:
            return leaf
        storage = leaf.cells.tensor.storage
        cells = [part for carry in self.carries.values() for part in carry.leaves if isinstance(part, Cell)]
        start = next((cell for cell in cells if cell.view.tensor is storage), None)
        if start is None:
            return leaf
        for view, known in self.copies:
            if same_cells(view, leaf.cells):
                return known
            if view.tensor.storage is storage and is_array(leaf):
                raise Unfit("several views of an array that it rebinds are used after it")
        copied = SymbolicArray(copy(leaf).cells, leaf.record, leaf.weak, leaf.is_scalar)
        self.copies.append((leaf.cells, copied))
        if is_array(leaf):
            self.others.append((copied.cells.tensor, start))
        return copied

    def tell_apart(self, what: str, array: Tensor, firsts: list[SymbolicArray], since: int = 0) -> None:
        """An array that the loop rebinds may be one from before: the first of these after `since` iterations,
        the second after one more. Which it is must be known where either is written later."""
        for times, first in enumerate(firsts, since):
            if self.stays:
                words = f"{what} is one from before the loop if no iteration makes another"
                reason = Reason(words, self.loc, "take a copy of it in the loop", self.site)
                self.trace.sameness.note(array, first.cells.tensor.storage, reason)
                continue
            more = self.iterations.groups - times
            if is_positive(more, self.trace):
                continue
            often = ("does not run", "runs once")[times] if times < 2 else f"runs {times} times"
            words = f"{what} is one from before the loop if the loop {often}"
            require_decided(more, self.trace, words)
            if times and is_positive(more, self.trace) is False:
                raise Unfit(words)
            reason = Reason(words, self.loc, "take a copy of it in the loop", self.site)
            self.trace.sameness.note(array, first.cells.tensor.storage, reason)

    def note_what_may_be_carried(self) -> None:
        """Arrays that have other names after the loop may be those that carried names stand for."""
        for one, other, reason in self.perhaps:
            self.trace.sameness.note(one.view.tensor, other.view.tensor, reason)
        for array, cell in self.others:
            self.tell_apart("an array", array, self.firsts[cell], since=1)
            if self.stays:
                words = "an array is one that the loop carries if its last iteration makes no other"
                reason = Reason(words, self.loc, "take a copy of it in the loop", self.site)
                self.trace.sameness.note(array, cell.view.tensor, reason)

    def find_alike(self, mark: Mark, after: Names, last: Names) -> None:
        """Note which names stand for one array at the end of an iteration: after the loop they still must."""
        found: list[tuple[Cell, SymbolicArray, Any]] = []
        for name, carry in self.carries.items():
            news, _ = carry.leaves_of(after[name])
            for leaf, now, entry in zip(carry.leaves, news, carry.entry, strict=True):
                if isinstance(leaf, Cell) and leaf.kind.is_array:
                    self.find_first(leaf, now, entry, found)
        for value in last.values():
            for leaf in leaves_of(value)[0]:
                if is_array(leaf):
                    self.find_first(None, leaf, None, found)

    def find_first(
        self, cell: Cell | None, now: SymbolicArray, entry: Any, found: list[tuple[Cell, SymbolicArray, Any]]
    ) -> None:
        """Look for a carried array that `now` shows too; else add it to `found`, if it is carried itself."""
        for first, other, start in found:
            if other.cells.tensor.storage is not now.cells.tensor.storage:
                continue
            if not same_cells(other.cells, now.cells):
                raise Unfit("several views of an array that it makes are used after it")
            count = self.iterations.count
            if cell is not None and not same(entry, start) and not is_positive(count, self.trace):
                words = "arrays are one after the loop if it runs"
                require_decided(count, self.trace, words)
                raise Unfit(words)
            self.alike[id(now) if cell is None else id(cell)] = first
            return
        if cell is not None:
            alike = self.trace.sameness.of(now.cells.tensor.storage)
            others = ((first, alike.get(other.cells.tensor.storage)) for first, other, _ in found)
            self.perhaps += [(cell, first, reason) for first, reason in others if reason is not None]
            found.append((cell, now, entry))

    def final(self, leaf: Cell) -> SymbolicArray:
        """What stands for a carried leaf after the loop, one object for names that stand for one array."""
        first = self.alike.get(id(leaf), leaf)
        if id(first) not in self.finals:
            weak, is_scalar = first.kind.weak, first.kind.is_scalar
            array = SymbolicArray(self.last_view(first), self.trace, weak, is_scalar)
            self.finals[id(first)] = copy(array) if self.is_known_part(first) else array
        return self.finals[id(first)]

    def last_view(self, leaf: Cell) -> View:
        """What a carried leaf shows after the loop."""
        if not leaf.changes(self.iterations.symbol):
            return leaf.view
        done = not_negative(self.iterations.groups, self.trace)
        return moved(leaf.view, {self.iterations.symbol: self.iterations.symbol_after(done + 1)})

    def is_known_part(self, leaf: Cell) -> bool:
        """Whether a leaf whose extents changed is surely an array that the loop made, of a shape that is
        known: it then is one by itself, and no part of a larger one."""
        if not leaf.changes(self.iterations.symbol):
            return False
        spare = self.iterations.groups - len(self.firsts[leaf])
        shape = self.last_view(leaf).shape
        return spare.is_constant and spare.offset >= 0 and all(extent.is_constant for extent in shape)

    def leave_symbols(self, mark: Mark, last: Names) -> dict[Symbol, View]:
        """Memory for the last values of the symbols that the body bound and that `last` mentions."""
        made = self.trace.symbols_since(mark)
        used = {
            symbol for value in last.values() for leaf in leaves_of(value)[0] for symbol in symbols_of(leaf)
        }
        memory: dict[Symbol, View] = {}
        for symbol in sorted(used & made, key=lambda symbol: symbol.order):
            memory[symbol] = self.trace.window((), I64, "last")
            value = Index(Affine.of(symbol))
            self.trace.store(memory[symbol], lambda _, value=value: value)  # type: ignore[misc]
            self.trace.came_from(memory[symbol].tensor, self.site)
        return memory

    def leave_next_values(self, after: Names) -> None:
        """Store what the next iteration starts with, all of it read before it is overwritten."""
        pairs: list[tuple[Cell, Any]] = []
        for name, carry in self.carries.items():
            news, _ = carry.leaves_of(after[name])
            for leaf, now in zip(carry.leaves, news, strict=True):
                if isinstance(leaf, Cell) and not (
                    type(now) is SymbolicArray and same_cells(now.cells, leaf.view)
                ):
                    pairs.append((leaf, now))
        while pairs:
            read = {leaf for leaf, _ in pairs if any(_lies_in(now, leaf) for _, now in pairs)}
            if len(read) == len(pairs):
                pairs, read = [(leaf, self.rescued(now)) for leaf, now in pairs], set()
            for leaf, now in pairs:
                if leaf not in read:
                    self.start(leaf, now, later(self.iterations))
            pairs = [(leaf, now) for leaf, now in pairs if leaf in read]

    # after the body

    def start(self, leaf: Leaf, value: Any, when: Mapping[Symbol, Affine]) -> None:
        """Store a value in the memory that a leaf is carried in, as it is for these values of symbols."""
        if not isinstance(leaf, Cell):
            return
        operand, dtype = as_operand(value, self.trace), leaf.kind.dtype
        self.trace.anew(leaf.view.tensor)
        self.trace.store(moved(leaf.view, when), lambda position: operand_at(operand, position, dtype))
        if not leaf.kind.is_array:
            self.trace.came_from(leaf.view.tensor, self.site)

    def guard(self, before: Names, last: Names) -> None:
        """Put the record since the first iteration under the condition that this one runs; carried names
        keep their value if it does not. Raises Unfit where they cannot."""
        body = self.trace.end(self.site)
        for name, carry in self.carries.items():
            if self.is_read_after(name) and name in before:
                self.guard_name(name, carry, before[name])
        for name in last:
            if name in before or isinstance(name, Place):
                raise Unfit(f"{name} would have the value from before if the loop ran zero times")
        self.trace.emit(Branch(self.runs(whole=True), body, (), self.loc))

    def guard_name(self, name: Name, carry: Carry, before: Any) -> None:
        """Give a carried name its value from before the first iteration."""
        olds, structure = carry.leaves_of(before)
        if structure != carry.structure:
            raise Unfit(f"{name} changes its structure in the first iteration, which may not run")
        for leaf, old, entry in zip(carry.leaves, olds, carry.entry, strict=True):
            match leaf:
                case Cell(kind=kind) if kind.holds(old):
                    self.start(leaf, old, earliest(self.iterations))
                case Count(start=start, stride=stride) if _is_number(old, start - stride):
                    pass
                case None if same(old, entry):
                    pass
                case _:
                    words = f"{name} would have a value of another kind if the loop ran zero times"
                    raise Unfit(words, fix_of(kind_of(old)))

    def runs(self, whole: bool) -> Expr:
        """Whether there is an iteration; with `whole`, counting the one recorded by itself."""
        count = self.iterations.count + int(whole)
        return Apply(OPS["greater"], (Index(count), Const(0, I64)), BOOL)

    def new_names(self, earlier: Names, after: Names, last: Names) -> list[Name]:
        """The names that only the body binds and that are read after the loop, by the code that follows or by
        a function that this has at hand."""
        at_hand = self.at_hand(after)
        return [
            name
            for name in dict.fromkeys((*self.carries, *last))
            if name not in earlier and (name in self.live.after_itself or name in at_hand)
        ]

    def at_hand(self, after: Names) -> set[str]:
        """The variables of functions that the code at hand calls after the loop."""
        return captured_by(value for name, value in after.items() if name in self.live.after_itself)

    def require_bound(
        self, names: list[Name], earlier: Names, after: Names, values: Names, guarded: bool
    ) -> None:
        """Names that only the body binds have no value if it did not run, unless another stretch of the loop
        binds those that only what follows all stretches reads, or nothing reads them."""
        runs = self.iterations.count + int(guarded)
        self.unsure.bound((n for n in after if after[n] is not earlier.get(n, MISSING)), runs)
        if not names or is_positive(runs, self.trace):
            return
        runs_again = any(site.code is self.site.code for _, site in self.trace.running)
        always = set(after) if self.is_last or runs_again else self.at_hand(after)
        now = [n for n in names if n in always or n in read_in_an_iteration(self.site.code, self.site.offset)]
        now += self.unsure.left_open([n for n in names if n not in now], values, runs)
        is_read = liveness(self.site.code, self.site.offset).after_itself | always
        self.require_run([n for n in now if n in is_read], guarded, self.runs(whole=guarded), runs_again)
        if now and is_read.isdisjoint(now):
            never = Apply(OPS["less_equal"], (Index(self.unsure.count), Const(0, I64)), BOOL)
            any_or_none = Apply(OPS["logical_or"], (self.runs(whole=guarded), never), BOOL)
            self.require_run(now, guarded, any_or_none, runs_again)

    def require_run(self, names: list[Name], guarded: bool, condition: Expr, runs_again: bool) -> None:
        """Require what says that the names are bound."""
        if not names:
            return
        runs = self.iterations.count + int(guarded)
        require_decided(runs, self.trace, f"the name {names[0]} has no value if the loop does not run")
        if runs_again:
            raise UnsupportedError(
                f"{names[0]} has its value from the last time that this loop ran, which may be long ago",
                loc=self.loc,
                fix=f"give {names[0]} a value before the outer loop",
            )
        self.trace.check((), lambda _: condition, "UnboundLocalError", unbound(names[0]))

    def values_after(self, last: Names, memory: Mapping[Symbol, View], guarded: bool) -> Names:
        """What the names stand for after the loop; where even the first iteration, recorded by itself, did
        not run, that is one iteration before the start."""
        done = not_negative(self.iterations.groups + int(guarded), self.trace) - int(guarded)
        ended = {self.iterations.symbol: self.iterations.symbol_after(done)}

        def at_end(leaf: Leaf, before: Any) -> Any:
            match leaf:
                case Count():
                    return python_int(self.reached(leaf, done), self.trace)
                case Moving(view=view):
                    return SymbolicArray(moved(view, ended), self.trace)
                case Cell():
                    return self.final(leaf)
                case None:
                    return before

        values = dict(ended)
        for symbol, view in memory.items():
            values[symbol] = self.trace.bind(view.load(()), symbol.lower, symbol.upper)
        names = {name: carry.value(at_end) for name, carry in self.carries.items()}
        ends: dict[int, Any] = {}

        def lasting(leaf: Any) -> Any:
            first = self.alike.get(id(leaf))
            if first is not None:
                return self.final(first)
            return ends.setdefault(id(leaf), substituted(leaf, values))

        made: dict[int, Any] = {}
        stays = self.places.has
        return names | {name: map_leaves(value, lasting, stays, made) for name, value in last.items()}

    def require_one_name(self, after: Names) -> None:
        """Raise Unfit where a list that the body makes is carried and has another name: each gets its own."""
        known: dict[int, Name] = {}
        for name, value in after.items():
            is_used = self.is_read_later(name) or name in self.carries
            for made in lists_of(value, self.places.has) if is_used else ():
                other = known.setdefault(id(made), name)
                if other != name and (name in self.carries or other in self.carries):
                    raise Unfit(f"{other} and {name} are one list that it makes")

    def reached(self, count: Count, done: Affine) -> Affine:
        """What an integer that grows by steps is after so many of them."""
        value = count.start + done * count.stride
        if not value.is_constant and abs(count.stride) > 1:
            # By steps of one, only a loop of more iterations than any run takes leaves 64 bits.
            ends = self.trace.limits.between(count.start) or (0, 0)
            room = LARGEST - ends[1] if count.stride > 0 else LARGEST + ends[0]
            require_at_least(room // abs(count.stride) - done, 0, "OverflowError", BEYOND)
        return value

    def note(self, appended: str) -> None:
        """Say what became of the loop, which `appended` to lists."""
        carried = ", ".join(str(name) for name, carry in self.carries.items() if any(carry.leaves))
        groups, period = self.iterations.groups, self.iterations.period
        parts = ["one loop" + (f" of {groups} iterations" if groups.is_constant else "")]
        if self.peeled:
            parts[0] += f", after {self.peeled} recorded apart"
        if period > 1 and not self.iterations.alone:
            is_asked = self.site in self.trace.decisions.together
            why = "" if is_asked else ", after which arrays are back at their names"
            parts.append(f"each does {period} iterations of this one{why}")
        if carried:
            parts.append(f"carries {carried}")
        symbol = self.iterations.symbol
        if changing := ", ".join(str(name) for name, carry in self.carries.items() if carry.changes(symbol)):
            parts.append(f"the extents of {changing} change by the same number in each")
        if appended:
            parts.append(f"appends to {appended}")
        self.trace.note(self.loc, "; ".join(parts))


def _is_number(value: Any, expected: Affine) -> bool:
    return value == expected.offset if type(value) is int else getattr(value, "value", None) == expected


def _lies_in(value: Any, leaf: Cell) -> bool:
    return type(value) is SymbolicArray and value.cells.tensor.storage is leaf.view.tensor
