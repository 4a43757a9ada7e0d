"""What compiled code tells its caller beside its results: numbers in a buffer that comes with each launch.

A program that tells something has one parameter of access `journal`, the last one: int64 cells that whoever
launches it gives and reads. A failing check leaves its numbers at the start, before the status is returned;
its message refers to them: `index {0:i64} is out of bounds`, with the place of the cell and the dtype by
whose rules its 64 bits are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..errors import Location
from ..frozen import frozen
from .dtype import I64, DType, named
from .index import Affine
from .params import ArrayParam, Param
from .tensor import Tensor

__all__ = [
    "CAPACITY",
    "END",
    "FIELDS",
    "FIRST",
    "NEXT",
    "VALUES",
    "Logged",
    "filled",
    "from_cell",
    "given",
    "journal_of",
    "log_of",
    "new_journal",
    "shown_cell",
]

FIELDS = 16
"""Cells that a failing check may fill."""

VALUES = "values"
"""Among what a computation is to look for: all that it assigns."""

NEXT, FIRST = FIELDS, FIELDS + 1
"""The cell that says where the next record of a log goes, and where the first one is."""

CAPACITY = 1 << 18
"""Cells of a journal that has a log."""

END = -1
"""Instead of a statement's number: the record had no room."""

_FIELD = re.compile(r"\{(\d+):(\w+)\}")


def new_journal(cells: int = FIELDS) -> ArrayParam:
    """The parameter for a journal."""
    return ArrayParam(Tensor("told", (Affine.of(cells),), I64), "journal")


def journal_of(params: Sequence[Param]) -> Tensor | None:
    """The journal among parameters, if there is one."""
    last = params[-1] if params else None
    return last.tensor if isinstance(last, ArrayParam) and last.access == "journal" else None


def given(params: Sequence[Param]) -> tuple[Param, ...]:
    """The parameters that a caller passes."""
    return tuple(params) if journal_of(params) is None else tuple(params[:-1])


@frozen
class Logged:
    """A statement of which a log has values: what it assigns to, with the rank, and the user's line, None for
    an argument. A record is the number of the statement, the bits of a value, and the index of its cell."""

    label: str
    dtype: str
    rank: int
    loc: Location | None


def log_of(name: str, logged: Sequence[Logged], cells: np.ndarray) -> Iterator[str]:
    """The lines that a journal's log is shown as: the user's line, then the cells that it assigned to."""
    numbers: list[int] = cells.tolist()
    yield f"{name}:"
    place, end = FIRST, min(numbers[NEXT], CAPACITY)
    head, previous = "", [0]
    while place < end and numbers[place] != END:
        statement = logged[numbers[place]]
        after = place + 2 + statement.rank
        index = numbers[place + 2 : after]
        line = f"  {statement.loc}: {statement.loc.source()}" if statement.loc else "  arguments"
        if line != head or index <= previous:
            head = line
            yield head
        previous = index
        at = f"[{', '.join(map(str, index))}]" if index else ""
        value = str(from_cell(numbers[place + 1], named(statement.dtype)))
        yield f"    {statement.label}{at} = {value}"
        place = after
    if numbers[NEXT] > CAPACITY:
        yield "  the log has no room for what follows"


def from_cell(bits: int, dtype: DType) -> np.generic:
    """The number of a cell."""
    cell = np.int64(bits)
    number = cell.view(np.float64) if dtype.is_float else cell
    shown: np.generic = number.astype(dtype.numpy)
    return shown


def shown_cell(place: int, dtype: DType) -> str:
    """Where in a message a cell is to be shown."""
    return f"{{{place}:{dtype.short}}}"


def filled(message: str, cells: Callable[[], np.ndarray]) -> str:
    """A message with the numbers of a journal's cells, which are asked for only if it shows some."""
    if _FIELD.search(message) is None:
        return message
    numbers = cells()
    return _FIELD.sub(lambda match: str(from_cell(int(numbers[int(match[1])]), named(match[2]))), message)
