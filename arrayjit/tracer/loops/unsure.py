"""Names that stretches of a loop bind which perhaps have no index: another one may bind them too.

    for i in range(n[0]):                range(0, n // 3 * 3, 3)        s is bound if n >= 3
        s = 7 if i % 3 == 0 else i  =>   one more, if any               s is bound if n % 3 >= 1
    return s                             one more, if any               s is bound if n % 3 == 2

After the loop, one of them must have had an index, or the compiled function raises UnboundLocalError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Index
from ...ir.index import Affine
from ...ir.ops import op
from ..record.deciding import is_positive
from ..record.trace import Trace
from ..values.array import SymbolicArray
from ..values.integer import SymbolicInt

__all__ = ["Unsure", "unbound"]


def unbound(name: object) -> str:
    """What Python says of a name that has no value."""
    return f"cannot access local variable '{name}' where it is not associated with a value"


class Unsure:
    """How many indices the stretches had that bound each of these names, which only what follows reads, in a
    loop of `count` indices altogether."""

    def __init__(self, trace: Trace, count: Affine) -> None:
        self.count = count
        self._trace = trace
        self._runs: dict[str, list[Affine]] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def held(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """What the names stand for."""
        return {name: variables[name] for name in self._runs}

    def bound(self, names: Iterable[object], runs: Affine) -> None:
        """A stretch of so many indices has bound names."""
        for name in [name for name in names if name in self._runs]:
            if is_positive(runs, self._trace):
                del self._runs[str(name)]
            else:
                self._runs[str(name)].append(runs)

    def left_open(self, names: Iterable[Any], values: Mapping[Any, Any], runs: Affine) -> Iterator[Any]:
        """Leave open whether a stretch of so many indices, the first that binds these names, has any. Gives
        those of which that is not possible, since another stretch may bind the same number unnoticed."""
        for name in names:
            if type(values[name]) in (SymbolicArray, SymbolicInt):
                self._runs[name] = [runs]
            else:
                yield name

    def require(self) -> None:
        """Raise UnboundLocalError in the run where no stretch that bound a name had an index."""
        for name, runs in self._runs.items():
            any_ran = [Apply(op("greater"), (Index(count), Const(0, I64)), BOOL) for count in runs]
            holds = reduce(lambda one, other: Apply(op("logical_or"), (one, other), BOOL), any_ran)
            self._trace.check((), lambda _, holds=holds: holds, "UnboundLocalError", unbound(name))  # type: ignore[misc]
        self._runs.clear()
