"""`while_loop` as a loop of the program, whose changing state lies in memory between iterations.

Both functions are recorded until nothing new is learned: first with every number of the state in memory, to
see which parts the body replaces; then with those. A number that the body turns into another kind (`err =
1.0` into a float64, or what `np.where` gives) is of that kind from the start, if the same program is recorded
so; otherwise the first iteration is recorded by itself, before the loop.

Arrays that the body returns as it got them stay where they are, and writes into them are the user's own. An
array that it replaces by another one is copied into memory, before the loop and after each iteration. That
this cannot be told from exchanging the arrays themselves is checked, and raises otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ...errors import DTypeError, UnsupportedError
from ...frozen import frozen
from ...ir.assign import Branch, Computation, Statement, While, assigned
from ...ir.dtype import BOOL
from ...ir.expr import Const, Expr
from ...ir.tensor import Tensor
from ...ir.text import print_computation
from ..record.retrace import Reason
from ..record.scopes import Mark
from ..record.trace import Trace, user_location
from ..record.tree import unflatten
from ..values.array import SymbolicArray
from ..values.elementwise import copy
from .carries import Kind, is_array, same
from .kinds import common_kind, memory, truth
from .states import (
    Said,
    call,
    kind_in_state,
    leaves_in,
    places_in,
    put_all,
    record,
    require_one_structure,
    storages_of,
)

__all__ = ["Repeating"]

_WHILE_LOOP = Said(
    "arrayjit.while_loop",
    "the body of arrayjit.while_loop returns",
    "make it a part of the state: return it from the body, and use what arrayjit.while_loop gives",
)
_FROM_A_COPY = "begin with a copy: x.copy()"

_COPY = "return a copy: x.copy()"


@frozen
class _Attempt:
    """One record of the loop: the state that it starts from, the one that an iteration gets, and what that
    makes of it."""

    mark: Mark
    start: list[Any]
    before: list[Any]
    puts: tuple[Statement, ...]
    test: tuple[Statement, ...]
    condition: bool | Expr
    body: tuple[Statement, ...]
    after: list[Any]
    perhaps_written: set[Tensor]

    @property
    def recorded(self) -> tuple[Statement, ...]:
        return (*self.test, *self.body)

    def loop(self, copies: tuple[Statement, ...] = ()) -> While:
        return While(self.test, _expression(self.condition), (*self.body, *copies), user_location())

    def text(self) -> str:
        return print_computation(Computation("loop", (), (self.loop(),)))


@frozen
class _Learned:
    """What records of a loop have shown: the kinds of its state, what is replaced and taken, and whether an
    iteration from the kinds of the entry does the same."""

    kinds: tuple[Kind, ...]
    replaced: frozenset[int]
    taken: frozenset[int]
    is_same: bool


class Repeating:
    """A `while_loop` while it is recorded. Of the parts of the state, `replaced` are those that an iteration
    exchanges, which lie in memory; `taken` are the arrays among them that it writes, too. Loops of one `key`
    differ in nothing that decides that: a loop in another one is recorded several times with it, and tried
    out once."""

    def __init__(
        self,
        trace: Trace,
        cond_fun: Callable[[Any], Any],
        body_fun: Callable[[Any], Any],
        init: Any,
        said: Said = _WHILE_LOOP,
        key: Hashable = None,
    ) -> None:
        self.trace = trace
        self.cond_fun = cond_fun
        self.body_fun = body_fun
        self.entry, self.structure = leaves_in(init)
        self.places = places_in(self.structure, "state", said.names)
        self.said = said
        self.key = key
        self.ended = Reason(
            f"a value that an iteration of {said.caller} made is used outside it", None, said.outwards
        )
        self.as_begun = Reason(
            f"{said.caller} gave either a new array or one that was there, and one of them was written since",
            None,
            _FROM_A_COPY,
        )
        self.taking = Reason(
            f"{said.caller} began with this array, which its body both writes and replaces by another",
            None,
            _FROM_A_COPY,
        )
        self.kinds = [kind_in_state(leaf) for leaf in self.entry]
        self.replaced = {n for n, leaf in enumerate(self.entry) if not is_array(leaf)}
        self.taken: set[int] = set()

    def run(self) -> Any:
        """Record the loop; the state after it."""
        began = list(self.kinds)
        known = self.recalled()
        attempt = None if known is not None and not known.is_same else self.settled(self.entry, known is None)
        if attempt is not None and attempt.condition is False:
            self.forget(attempt)
            return self.value(self.entry)
        if attempt is not None and (known is None or list(known.kinds) != self.kinds):
            known = self.learned(attempt, began)
        if attempt is not None and known is not None and known.is_same:
            for statement in (*attempt.puts, self.finished(attempt)):
                self.trace.emit(statement)
        else:
            if attempt is not None:
                self.forget(attempt)
            attempt = self.peeled()
        self.note_what_may_be_one(attempt)
        carried = ", ".join(self.places[n] for n in sorted(self.replaced))
        self.trace.note(
            user_location(), f"one loop until its condition is false; carries {carried or 'nothing'}"
        )
        return self.value(attempt.before)

    def recalled(self) -> _Learned | None:
        """What other records of the loop have shown, from which this one starts."""
        known: _Learned | None = None if self.key is None else self.trace.learned.get(self.key)
        if known is not None:
            self.kinds, self.replaced, self.taken = list(known.kinds), set(known.replaced), set(known.taken)
        return known

    def learned(self, attempt: _Attempt, began: list[Kind]) -> _Learned:
        """What this record has shown, for others of the loop that start as it `began`."""
        is_same = began == self.kinds or self.is_same_program(attempt, began)
        shown = _Learned(tuple(self.kinds), frozenset(self.replaced), frozenset(self.taken), is_same)
        if self.key is not None:
            self.trace.learned[self.key] = shown
        return shown

    def value(self, leaves: list[Any]) -> Any:
        return unflatten(self.structure, leaves)

    def settled(self, start: list[Any], is_survey: bool = False) -> _Attempt:
        """A record that disproves nothing of what it assumes."""
        attempt = self.attempt(start, self.kinds)
        while attempt.condition is not False and self.learns(attempt, is_survey):
            self.forget(attempt)
            attempt = self.attempt(start, self.kinds)
            is_survey = False
        if attempt.condition is True:
            raise UnsupportedError(
                f"the condition of {self.said.caller} is always true: it depends on nothing that changes",
                fix="compute it from the state, which the body returns anew",
            )
        return attempt

    def attempt(self, start: list[Any], kinds: list[Kind]) -> _Attempt:
        """Record both functions once. What is replaced begins as in `start`."""
        trace = self.trace
        memories = {n: memory(kinds[n], trace, self.entry[n]) for n in sorted(self.replaced)}
        before = [memories.get(n, leaf) for n, leaf in enumerate(self.entry)]
        puts = record(trace, lambda: put_all(trace, memories, start))
        for n in sorted(self.taken):
            self.take(n, start)
        test = record(trace, lambda: truth(call(self.cond_fun, (self.value(before),), self.said), trace))
        body = record(trace, lambda: self.iterate(before))
        perhaps = trace.perhaps_written_since(puts.mark)
        return _Attempt(
            puts.mark, start, before, puts.body, test.body, test.result, body.body, body.result, perhaps
        )

    def iterate(self, before: list[Any]) -> list[Any]:
        after, structure = leaves_in(call(self.body_fun, (self.value(before),), self.said))
        words = f"{self.said.parts} another structure than it gets"
        require_one_structure(words, self.structure, structure)
        return after

    def learns(self, attempt: _Attempt, is_survey: bool) -> bool:
        """Whether more is replaced, taken or of another kind than the record assumed."""
        exchanged = {n for n, before in enumerate(attempt.before) if not same(before, attempt.after[n])}
        replaced = exchanged if is_survey else exchanged | self.replaced
        written = self.written(attempt)
        taken = self.reaching({n for n in self.replaced if _storage(attempt.before[n]) in written}, attempt)
        kinds = [self.kind(n, attempt) if n in exchanged else kind for n, kind in enumerate(self.kinds)]
        news = (replaced, taken, kinds) != (self.replaced, self.taken, self.kinds)
        self.replaced, self.taken, self.kinds = replaced, taken, kinds
        memories = [attempt.before[n].cells.tensor for n in self.replaced_arrays()]
        return news or self.trace.assumed_too_much(attempt.mark, memories)

    def written(self, attempt: _Attempt) -> set[Tensor | None]:
        """The storages that an iteration writes, or may write."""
        return {*assigned(tuple(attempt.recorded)), *attempt.perhaps_written}

    def reaching(self, places: set[int], attempt: _Attempt) -> set[int]:
        """The places in memory from where an array comes to one of these, sooner or later."""
        found = set(places)
        waiting = list(places)
        while waiting:
            sources = storages_of(self.trace, attempt.after[waiting.pop()])
            more = {n for n in self.replaced - found if _storage(attempt.before[n]) in sources}
            found |= more
            waiting += more
        return {n for n in found if is_array(self.entry[n])}

    def kind(self, n: int, attempt: _Attempt) -> Kind:
        """The kind that a part has from the start: what the first iteration makes of it."""
        entry, before, after = self.entry[n], self.kinds[n], kind_in_state(attempt.after[n])
        is_first = before == kind_in_state(entry)
        if before.is_array:
            is_kept = not before.shape and after.is_scalar and after.dtype is before.dtype
        else:
            is_kept = common_kind(entry, attempt.after[n]) == after
        if after == before or (is_first and is_kept):
            return after
        if self.joins(n, attempt.after[n]):
            return before
        raise self.not_of_one_kind(n, before, after)

    def joins(self, n: int, leaf: Any) -> bool:
        """Whether a number of Python's becomes one of the kind in memory, as it does in a variable."""
        kind, number = self.kinds[n], kind_in_state(leaf)
        if self.said.names is None or number.weak is None:
            return False
        is_its_own = kind.weak is None and (number.shape, number.dtype) == (kind.shape, kind.dtype)
        return is_its_own or common_kind(self.entry[n], leaf) == kind

    def is_same_program(self, attempt: _Attempt, kinds: list[Kind]) -> bool:
        """Whether an iteration from the kinds of the entry does the same."""
        plain = self.attempt(self.entry, kinds)
        self.forget(plain)
        return plain.text() == attempt.text()

    def require_kinds(self, leaves: list[Any]) -> None:
        """Raise DTypeError unless the first iteration, recorded by itself, gives what it gave before."""
        for n, leaf in enumerate(leaves):
            self.replaced |= set() if same(self.entry[n], leaf) else {n}
            if n in self.replaced and kind_in_state(leaf) != self.kinds[n] and not self.joins(n, leaf):
                raise self.not_of_one_kind(n, self.kinds[n], kind_in_state(leaf))

    def not_of_one_kind(self, n: int, before: Kind, after: Kind) -> DTypeError:
        return DTypeError(
            f"{self.places[n]} of {self.said.caller} is {before} before an iteration and {after} after it",
            fix="begin with the dtype and shape that the body returns, or convert there: x.astype(...)",
        )

    def forget(self, attempt: _Attempt) -> None:
        self.trace.forget(attempt.mark, (*attempt.puts, *attempt.recorded), self.ended)

    def peeled(self) -> _Attempt:
        """The first iteration, if there is one, and then the loop."""
        trace = self.trace
        condition = truth(call(self.cond_fun, (self.value(self.entry),), self.said), trace)
        first = record(trace, lambda: self.iterate(self.entry))
        self.require_kinds(first.result)
        attempt = self.settled(first.result)
        body = (*first.body, *attempt.puts, self.finished(attempt))
        memories = {n: attempt.before[n] for n in sorted(self.replaced)}
        without = record(trace, lambda: put_all(trace, memories, self.entry))
        trace.emit(Branch(_expression(condition), body, without.body, user_location()))
        trace.bury(first.mark, first.body, self.ended)
        return attempt

    def finished(self, attempt: _Attempt) -> While:
        """The loop, with what an iteration hands to the next."""
        self.require_exact(attempt)
        copies = record(self.trace, lambda: self.hand_over(attempt))
        self.trace.bury(attempt.mark, (*attempt.recorded, *copies.body), self.ended)
        return attempt.loop(copies.body)

    def hand_over(self, attempt: _Attempt) -> None:
        """Write the new values over the old ones, of which nothing is read any more."""
        memories = {n: attempt.before[n] for n in sorted(self.replaced)}
        old = {_storage(target) for target in memories.values()}
        after = [copy(leaf) if _storage(leaf) in old else leaf for leaf in attempt.after]
        for target in memories.values():
            self.trace.anew(target.cells.tensor)
        put_all(self.trace, memories, after)

    def take(self, n: int, start: list[Any]) -> None:
        """The writes of the body go into memory, not into the array that the loop began with: it must not be
        seen again."""
        storages = storages_of(self.trace, start[n])
        holders = [leaf for leaf in start if storages & storages_of(self.trace, leaf)]
        if len(holders) > 1 or not all(map(self.trace.is_made_here, storages)):
            raise self.not_exact(n, self.taking.what, _FROM_A_COPY)
        for storage in storages:
            self.trace.gone(storage, self.taking)

    def require_exact(self, attempt: _Attempt) -> None:
        """Raise UnsupportedError if copying an array from iteration to iteration could be told from
        exchanging it: if what the user's program has as one array is written as one of two."""
        written = self.written(attempt)
        outside = self.outside(attempt)
        sources = [storages_of(self.trace, leaf) for leaf in attempt.after]
        for n in self.replaced_arrays():
            sharing = [m for m, others in enumerate(sources) if others & sources[n]]
            if len(sharing) > 1 and any(_storage(attempt.before[m]) in written for m in sharing):
                raise self.not_exact(n, "the body returns one array twice, and writes it", _COPY)
            if sources[n] & outside and (n in self.taken or sources[n] & outside & written):
                raise self.not_exact(n, "the body returns an array from outside, and writes it", _COPY)
            if n not in self.taken and storages_of(self.trace, attempt.start[n]) & written:
                raise self.not_exact(n, self.taking.what, _FROM_A_COPY)

    def replaced_arrays(self) -> list[int]:
        return [n for n in sorted(self.replaced) if self.kinds[n].is_array]

    def outside(self, attempt: _Attempt) -> set[Tensor]:
        """What replaced arrays become, but neither the body made nor the state holds."""
        arrays = self.replaced_arrays()
        sources = {storage for n in arrays for storage in storages_of(self.trace, attempt.after[n])}
        sources -= {attempt.before[n].cells.tensor for n in arrays}
        return {source for source in sources if not self.trace.is_new(source, attempt.mark)}

    def note_what_may_be_one(self, attempt: _Attempt) -> None:
        arrays = self.replaced_arrays()
        firsts = [leaf for n in arrays for leaf in (self.entry[n], attempt.start[n])]
        others = {storage for leaf in firsts for storage in storages_of(self.trace, leaf)}
        for n in arrays:
            for other in others | self.outside(attempt):
                self.trace.sameness.note(attempt.before[n].cells.tensor, other, self.as_begun)

    def not_exact(self, n: int, what: str, fix: str) -> UnsupportedError:
        return UnsupportedError(f"{self.places[n]}: {what}", fix=fix)


def _expression(condition: bool | Expr) -> Expr:
    return Const(condition, BOOL) if isinstance(condition, bool) else condition


def _storage(leaf: Any) -> Tensor | None:
    return leaf.cells.tensor.storage if type(leaf) is SymbolicArray else None
