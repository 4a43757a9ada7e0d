"""Arrays that may be one: a loop that may not run, or a branch, leaves a name at one array or at another; or
that are one, as what a list holds and a name stands for."""

from __future__ import annotations

from collections.abc import Collection

from ...frozen import frozen
from ...ir.tensor import Tensor
from .retrace import Reason
from .view import View

__all__ = ["Held", "Sameness"]


@frozen
class Held:
    """A storage whose cells lie in the memory `rows` besides: there they are `cells`, if that is known."""

    rows: Tensor
    cells: View | None
    reason: Reason


class Sameness:
    """Which storages may be the same array of the user's, as the compiled function finds: once one of them is
    written, what the other holds is not known. Those that a list holds as well surely are."""

    def __init__(self) -> None:
        self._known: dict[Tensor, dict[Tensor, Reason]] = {}
        self._held: dict[Tensor, list[Held]] = {}
        self._chosen: dict[Tensor, set[Tensor]] = {}

    def note(self, one: Tensor, other: Tensor, reason: Reason) -> None:
        """These may be one array."""
        self._known.setdefault(one, {})[other] = reason
        self._known.setdefault(other, {})[one] = reason

    def note_choice(self, result: Tensor, candidate: Tensor, reason: Reason) -> None:
        """The result is one of several arrays, which do not become one by that."""
        self.note(result, candidate, reason)
        self._chosen.setdefault(candidate, set()).add(result)

    def hold(self, storage: Tensor, held: Held) -> None:
        """The storage is what a list holds."""
        self.note(held.rows, storage, held.reason)
        self._held.setdefault(storage, []).append(held)

    def held_in(self, storage: Tensor, memories: Collection[Tensor]) -> Held | None:
        """Where in one of these memories the cells of the storage are."""
        return next((held for held in self._held.get(storage, ()) if held.rows in memories), None)

    def renew(self, storage: Tensor) -> None:
        """The storage holds another array of the user's than before."""
        self._held.pop(storage, None)
        self._chosen.pop(storage, None)
        for other in self._known.pop(storage, {}):
            self._known[other].pop(storage, None)

    def of(self, storage: Tensor) -> dict[Tensor, Reason]:
        """The other storages that may be the same array, each with why."""
        found: dict[Tensor, Reason] = {}
        waiting = [storage]
        while waiting:
            for other, reason in self._known.get(waiting.pop(), {}).items():
                if other is not storage and other not in found:
                    found[other] = reason
                    waiting.append(other)
        return found

    def origins(self, storage: Tensor, start: Tensor) -> set[Tensor]:
        """Those of them without which the array is no other than that of `start`, or one of its own: a choice
        among arrays is one of them, and makes none of them another."""
        found = {start}
        waiting = [storage]
        while waiting:
            last = waiting.pop()
            others = self._known.get(last, {}).keys() - self._chosen.get(last, set()) - found
            found |= others
            waiting += others
        return found - {start, storage}
