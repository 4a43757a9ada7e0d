"""What a routine depends on, and what has run.

A context carries its frontier: for each tensor the routine that last wrote it and the routines that read it
since. A routine linked there depends on the writers of what it touches and on the readers of what it writes
(rows CX-3 and CX-4 of the seeds' later interface). Siblings linked into one context are independent.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType

from ..frozen import frozen
from ..ir.tensor import Tensor

__all__ = ["Entry", "Frontier", "Ledger"]


@dataclass(eq=False)
class Entry:
    """A routine in the ledger. `has_run` once it was scheduled."""

    number: int
    name: str
    has_run: bool = False


@frozen
class Frontier:
    """By tensor, who wrote it last and who has read it since."""

    writer: Mapping[Tensor, Entry] = field(default_factory=lambda: MappingProxyType({}))
    readers: Mapping[Tensor, frozenset[Entry]] = field(default_factory=lambda: MappingProxyType({}))

    def dependencies(self, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> frozenset[Entry]:
        """The routines that one which reads and writes these has to follow."""
        outputs = tuple(outputs)
        writers = (self.writer.get(tensor) for tensor in (*inputs, *outputs))
        readers = (entry for tensor in outputs for entry in self.readers.get(tensor, ()))
        return frozenset(entry for entry in (*writers, *readers) if entry is not None)

    def after(self, routine: Entry, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> Frontier:
        """The frontier behind a routine that reads and writes these."""
        writer, readers = dict(self.writer), dict(self.readers)
        for tensor in inputs:
            readers[tensor] = readers.get(tensor, frozenset()) | {routine}
        for tensor in outputs:
            writer[tensor] = routine
            readers.pop(tensor, None)
        return Frontier(MappingProxyType(writer), MappingProxyType(readers))


class Ledger:
    """The routines of all contexts that descend from one, for as long as anything depends on them."""

    def __init__(self) -> None:
        self._numbers = count()
        self._entries: weakref.WeakSet[Entry] = weakref.WeakSet()

    def enter(self, name: str) -> Entry:
        """A new routine, which has not run."""
        entry = Entry(next(self._numbers), name)
        self._entries.add(entry)
        return entry

    def entries(self) -> tuple[Entry, ...]:
        """The routines in the order in which they were linked."""
        return tuple(sorted(self._entries, key=lambda entry: entry.number))
