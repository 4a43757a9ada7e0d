"""Results of which the lengths of arguments tell the size and the place: memory that is just as large is made
before code runs, and handed out as it is.

    def f(x: read[f64, length_of_x]):             def f(x: read[f64, length_of_x],
                                                        result: write[f64, length_of_x]):
        t: temporary[f64, 128]
        t[i] = exp(x[i])                              result[i] = exp(x[i])

While a function is traced, arrays have the room that they need at most. Those that results show have as many
rows as lengths tell, if they had so many from the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.expr import Index
from ...ir.index import Affine
from ...ir.tensor import Tensor
from ..record.retrace import roots
from ..record.trace import Trace
from ..values.array import SymbolicArray
from .binding import Number, Reckoned
from .renaming import Renaming

__all__ = ["comes_from_lengths", "has_told_place", "is_counted", "reckoned", "with_told_lengths"]


def has_told_place(leaf: SymbolicArray) -> bool:
    """Whether lengths tell which cells a result shows, of memory of which they tell how many rows it has."""
    view, lengths = leaf.cells, leaf.record.lengths
    numbers = (*view.shape, *view.at((0,) * view.rank))
    return all(lengths.terms(number) is not None for number in numbers) and _has_told_rows(
        view.tensor.storage, leaf.record
    )


def _has_told_rows(storage: Tensor, trace: Trace) -> bool:
    rows, *rest = trace.made_for(storage) or (Affine.of(1),)
    return trace.lengths.terms(rows) is not None and all(extent.is_constant for extent in rest)


def is_counted(leaf: SymbolicArray) -> bool:
    """Whether only the run tells how much of its memory a result is."""
    return not (all(extent.is_constant for extent in leaf.cells.shape) or has_told_place(leaf))


def comes_from_lengths(extent: Affine, trace: Trace) -> bool:
    """Whether lengths, and nothing else that is not known while tracing, tell how much it is."""
    facts: set[object] = {*trace.lengths.facts()}
    return not extent.is_constant and facts.issuperset(roots(trace, [Index(extent)]))


def with_told_lengths(leaves: Sequence[SymbolicArray], trace: Trace) -> list[SymbolicArray]:
    """The leaves of a result, with memory that has as many rows as lengths tell."""
    storages = dict.fromkeys(leaf.cells.tensor.storage for leaf in leaves)
    exact = {
        storage: replace(storage, shape=trace.made_for(storage))
        for storage in storages
        if storage.has_fixed_shape
        and trace.made_for(storage) != storage.shape
        and _has_told_rows(storage, trace)
    }
    if not exact:
        return list(leaves)
    renaming = Renaming(exact)
    trace.statements[:] = renaming.body(trace.statements)
    found: dict[int, SymbolicArray] = {}
    for leaf in leaves:
        tensor = renaming.tensor(leaf.cells.tensor)
        if tensor is leaf.cells.tensor:
            found[id(leaf)] = leaf
        elif id(leaf) not in found:
            cells = replace(leaf.cells, tensor=tensor)
            found[id(leaf)] = SymbolicArray(cells, trace, leaf.weak, leaf.is_scalar)
    return [found[id(leaf)] for leaf in leaves]


def reckoned(number: Affine, trace: Trace) -> Number:
    """An extent or a place of a result, as a call tells it before code runs."""
    if number.is_constant:
        return number.offset
    terms = trace.lengths.terms(number)
    assert terms is not None
    return Reckoned(terms, number.offset)
