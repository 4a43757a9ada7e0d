"""Results of which the lengths of arguments tell the size and the place: memory that is just as large is made
before code runs, and handed out as it is.

    def f(x: read[f64, length_of_x]):             def f(x: read[f64, length_of_x],
                                                        result: write[f64, length_of_x]):
        t: temporary[f64, 128]
        t[i] = exp(x[i])                              result[i] = exp(x[i])

While a function is traced, arrays have the room that they need at most. Those that results show are as large
as lengths tell, if they were made so large: along any axes, as long as strides are sums of lengths. Whoever
sees memory as one axis has counted with the room.
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

__all__ = [
    "comes_from_lengths",
    "has_told_place",
    "is_counted",
    "is_part_of_open_rows",
    "reckoned",
    "with_told_lengths",
]


def has_told_place(leaf: SymbolicArray) -> bool:
    """Whether lengths tell which cells a result shows, of memory of which they tell how large it is."""
    view, trace = leaf.cells, leaf.record
    return _are_told((*view.shape, *view.at((0,) * view.rank)), trace) and _has_told_shape(
        view.tensor.storage, trace
    )


def is_part_of_open_rows(leaf: SymbolicArray) -> bool:
    """Whether a result shows part of memory whose rows lengths tell the size of: Python would make it."""
    view, shape = leaf.cells, leaf.record.made_for(leaf.cells.tensor.storage)
    extents = dict(zip(map(Affine.of, view.axes), view.shape, strict=True))
    is_all = view.tensor is view.tensor.storage and tuple(map(extents.get, view.index)) == shape
    return not (is_all or all(extent.is_constant for extent in shape[1:]))


def _are_told(numbers: Sequence[Affine], trace: Trace) -> bool:
    return all(trace.lengths.terms(number) is not None for number in numbers)


def _has_told_shape(storage: Tensor, trace: Trace) -> bool:
    """Whether lengths tell all extents of memory, and strides are sums of them."""
    shape = trace.made_for(storage)
    inner = sum(not extent.is_constant for extent in shape[1:])
    return _are_told(shape, trace) and (inner == 0 or (inner == 1 and not trace.is_seen_flat(storage)))


def is_counted(leaf: SymbolicArray) -> bool:
    """Whether only the run tells how much of its memory a result is."""
    return not (all(extent.is_constant for extent in leaf.cells.shape) or has_told_place(leaf))


def comes_from_lengths(extent: Affine, trace: Trace) -> bool:
    """Whether lengths, and nothing else that is not known while tracing, tell how much it is."""
    facts: set[object] = {*trace.lengths.facts()}
    return not extent.is_constant and facts.issuperset(roots(trace, [Index(extent)]))


def with_told_lengths(leaves: Sequence[SymbolicArray], trace: Trace) -> list[SymbolicArray]:
    """The leaves of a result, with memory that is as large as lengths tell."""
    storages = dict.fromkeys(leaf.cells.tensor.storage for leaf in leaves)
    exact = {
        storage: replace(storage, shape=trace.made_for(storage))
        for storage in storages
        if storage.has_fixed_shape
        and trace.made_for(storage) != storage.shape
        and _has_told_shape(storage, trace)
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
