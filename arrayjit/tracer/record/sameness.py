"""Arrays that may be one: a loop that may not run, or a branch, leaves a name at one array or at another."""

from __future__ import annotations

from ...ir.tensor import Tensor
from .retrace import Reason

__all__ = ["Sameness"]


class Sameness:
    """Which storages may be the same array of the user's, as the compiled function finds: once one of them is
    written, what the other holds is not known."""

    def __init__(self) -> None:
        self._known: dict[Tensor, dict[Tensor, Reason]] = {}

    def note(self, one: Tensor, other: Tensor, reason: Reason) -> None:
        """These may be one array."""
        self._known.setdefault(one, {})[other] = reason
        self._known.setdefault(other, {})[one] = reason

    def renew(self, storage: Tensor) -> None:
        """The storage holds another array of the user's than before."""
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
