"""The variants of a function: compiled code by choice and signature, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from .frozen import slotted_by_identity
from .stages import Linked
from .stats import Description, describe_names, explain_miss
from .tracer.calls.signature import Key

__all__ = ["Choice", "Known", "Variants"]


class Choice(NamedTuple):
    """What code is compiled for: a target, how many threads share its loops, None for all, and what may
    change bits."""

    target: str
    threads: int | None = None
    fast: tuple[str, ...] = ()


MOST = 1000
MOST_BYTES = 64 << 20
"""Of the text of their code."""

_clock = count()


@slotted_by_identity
class Known:
    """A variant, what it was compiled for, what the names outside it held then, and when it was last used: a
    number that grows."""

    variant: Linked
    described: Description
    outside: Description
    used: int = 0
    native_hits: int = 0

    def rebound(self) -> str:
        """Why it is not valid any more."""
        return explain_miss(describe_names(self.variant.convention.guards), [self.outside])

    @property
    def nbytes(self) -> int:
        payload = self.variant.emitted.code.payload
        return len(payload) if isinstance(payload, str) else 0


class Variants:
    """All that are known. Lookups need no lock; what changes them comes one at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Choice, Key], Known] = {}

    def get(self, choice: Choice, key: Key) -> Known | None:
        """A variant that is valid or has been, used now."""
        known = self._known.get((choice, key))
        if known is not None:
            known.used = next(_clock)
        return known

    def described(self, choice: Choice) -> list[Description]:
        """What there is code for, of one choice."""
        return [known.described for (other, _), known in self._known.items() if other == choice]

    def add(self, choice: Choice, key: Key, variant: Linked, described: Description) -> None:
        outside = describe_names(variant.convention.guards)
        self._known[choice, key] = Known(variant, described, outside, next(_clock))

    def remove(self, choice: Choice, key: Key) -> Linked | None:
        """A variant that is not there from now on, if it was."""
        known = self._known.pop((choice, key), None)
        return None if known is None else known.variant

    def surplus(self, native_hits: Callable[[Linked], int]) -> list[tuple[Choice, Key]]:
        """The names of those that were not used for longest, as far as there are too many; the latest stays.
        `native_hits` are the calls that came past `get`."""
        for known in self._known.values():
            now = native_hits(known.variant)
            if now > known.native_hits:
                known.used, known.native_hits = next(_clock), now
        oldest_first = sorted(self._known.items(), key=lambda item: item[1].used)
        nbytes = sum(known.nbytes for known in self._known.values())
        names: list[tuple[Choice, Key]] = []
        for name, known in oldest_first[:-1]:
            if len(self._known) - len(names) <= MOST and nbytes <= MOST_BYTES:
                break
            names.append(name)
            nbytes -= known.nbytes
        return names
