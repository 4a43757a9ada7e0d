"""What a routine depends on, and what has run.

A context carries its frontier: for each tensor the routine that last wrote it and the routines that read it
since. A routine linked there depends on the writers of what it touches and on the readers of what it writes
(rows CX-3 and CX-4 of the seeds' later interface). Siblings linked into one context are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from types import MappingProxyType

from ..ir.tensor import Tensor

__all__ = ["Frontier", "Ledger"]


@dataclass(frozen=True, slots=True)
class Frontier:
    """By tensor, numbers of routines."""

    writer: Mapping[Tensor, int] = field(default_factory=lambda: MappingProxyType({}))
    readers: Mapping[Tensor, frozenset[int]] = field(default_factory=lambda: MappingProxyType({}))

    def dependencies(self, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> frozenset[int]:
        """The routines that one which reads and writes these has to follow."""
        outputs = tuple(outputs)
        writers = (self.writer.get(tensor) for tensor in (*inputs, *outputs))
        readers = (number for tensor in outputs for number in self.readers.get(tensor, ()))
        return frozenset(number for number in (*writers, *readers) if number is not None)

    def after(self, routine: int, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> Frontier:
        """The frontier behind a routine that reads and writes these."""
        writer, readers = dict(self.writer), dict(self.readers)
        for tensor in inputs:
            readers[tensor] = readers.get(tensor, frozenset()) | {routine}
        for tensor in outputs:
            writer[tensor] = routine
            readers.pop(tensor, None)
        return Frontier(MappingProxyType(writer), MappingProxyType(readers))


class Ledger:
    """The routines of all contexts that descend from one: their names, and how often each has run."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._runs: dict[int, int] = {}
        self._numbers = count()
        self._lock = Lock()

    def enter(self, name: str) -> int:
        """The number of a new routine."""
        with self._lock:
            number = next(self._numbers)
            self._names[number], self._runs[number] = name, 0
            return number

    def ran(self, number: int) -> None:
        """The routine was scheduled."""
        with self._lock:
            self._runs[number] += 1

    def runs(self, number: int) -> int:
        return self._runs[number]

    def missing(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The names of those that never ran."""
        return tuple(self._names[number] for number in sorted(numbers) if not self._runs[number])
