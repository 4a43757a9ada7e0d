"""Arrays that the function met by other ways than its arguments: hidden parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import UnsupportedError
from ...ir.assign import Assign, Statement, expressions, statements
from ...ir.tensor import Tensor
from ...ir.walk import storages_read
from ..record.foreign import needs_copy
from ..record.resident import layout_of
from ..record.trace import Trace
from ..values.array import SymbolicArray
from .binding import CapturedSource
from .parameters import may_overlap_itself

__all__ = ["captured_sources", "forget_unused"]


def forget_unused(trace: Trace, leaves: Sequence[SymbolicArray]) -> None:
    """Keep of the captured arrays those that the program uses: the items of a list are captured together."""
    used = {leaf.cells.tensor.storage for leaf in leaves}
    used.update(storage for statement in statements(tuple(trace.statements)) for storage in _used(statement))
    trace.captured = [(tensor, array) for tensor, array in trace.captured if tensor in used]


def captured_sources(trace: Trace) -> Iterator[CapturedSource]:
    """Where the memory of each captured array comes from."""
    for tensor, array in trace.captured:
        written = trace.is_written(tensor)
        layout = layout_of(array)
        if written and may_overlap_itself(layout):
            raise UnsupportedError(
                "an array is written whose elements may share memory with one another",
                fix="write into a copy of it",
            )
        yield CapturedSource(array, needs_copy(layout), written)


def _used(statement: Statement) -> Iterator[Tensor]:
    """The storages that a statement writes or reads itself."""
    if isinstance(statement, Assign):
        yield statement.into.storage
    yield from storages_read(expressions(statement))
