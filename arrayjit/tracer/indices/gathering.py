"""Reading cells at positions that items of a key choose: views for points and slices, a gathered copy for
arrays of integers."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import IndexOutOfRange, ShapeError
from ...ir.dtype import I64
from ...ir.expr import Apply, Const, Expr, Gather, Index, Load
from ...ir.index import Affine, Extent, Symbol
from ...ir.ops import op
from ..record.trace import Trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.elementwise import broadcast, laid
from ..values.extents import ZERO
from ..values.layout import Order, copy_order, kept_order
from .keys import Item, Many, New, Point, Span, Steps

__all__ = ["chosen_shape", "gather", "gathered", "part"]


def gather(view: View, index: Sequence[Expr]) -> Expr:
    """The view's cell at an index that the program computes (int64, in bounds)."""
    known = [one.value for one in index if isinstance(one, Index)]
    if len(known) == len(index):
        return view.load(known)
    terms = dict(zip(view.axes, index, strict=True))
    if not any(symbol in terms for part in view.index for symbol in part.symbols):
        return Load(view.tensor, view.index)
    return Gather(view.tensor, tuple(_evaluated(part, terms) for part in view.index))


def _evaluated(part: Affine, terms: dict[Symbol, Expr]) -> Expr:
    """An affine expression as a number, some of whose symbols are computed."""
    fixed = Affine(tuple((c, s) for c, s in part.terms if s not in terms), part.offset)
    total: Expr | None = None if fixed == Affine.of(0) else Index(fixed)
    for coefficient, symbol in part.terms:
        if symbol not in terms:
            continue
        term = terms[symbol]
        if coefficient != 1:
            term = Apply(op("multiply"), (term, Const(coefficient, I64)), I64)
        total = term if total is None else Apply(op("add"), (total, term), I64)
    return Index(Affine.of(0)) if total is None else total


def part(view: View, items: Sequence[Item]) -> View:
    """The view that points, slices and new axes make of a view."""
    shape: list[Extent] = []
    axes: list[Symbol] = []
    position: list[Affine] = []
    for item in items:
        match item:
            case New():
                shape.append(1)
                axes.append(Symbol("i"))
            case Point(at=at):
                position.append(at)
            case Span(start=start, step=step, extent=extent):
                shape.append(extent)
                axes.append(Symbol("i"))
                position.append(start + Affine.of(axes[-1]) * step)
            case Steps() | Many():
                raise AssertionError("cells at computed positions are no view")
    return view.remap(shape, tuple(axes), position)


def chosen_shape(items: Sequence[Item]) -> tuple[tuple[Affine, ...], int, tuple[Affine, ...]]:
    """The shape that the integer arrays broadcast to, the axis where it stands in the result, and the
    result's shape: it replaces the arrays' axes where these are neighbours and comes first otherwise."""
    chosen = [n for n, item in enumerate(items) if isinstance(item, (Many, Point))]
    try:
        common = broadcast(*(item.shape for item in items if isinstance(item, Many)))
    except ShapeError as error:
        words = error.what.replace("operands could not", "shape mismatch: indexing arrays could not")
        raise IndexOutOfRange(
            words, loc=error.loc, fix="give the index arrays shapes that broadcast"
        ) from None
    kept = [(n, item) for n, item in enumerate(items) if isinstance(item, (Span, New))]
    first, last = (chosen[0], chosen[-1]) if chosen else (0, -1)
    neighbours = last - first + 1 == len(chosen)
    before = sum(1 for n, _ in kept if n < first) if neighbours else 0
    extents = [item.extent if isinstance(item, Span) else Affine.of(1) for _, item in kept]
    return common, before, (*extents[:before], *common, *extents[before:])


def gathered(array: SymbolicArray, items: Sequence[Item], trace: Trace) -> SymbolicArray:
    """Indexing with integer arrays: a fresh array."""
    common, before, shape = chosen_shape(items)

    def cell(position: tuple[Affine, ...]) -> Expr:
        picked = position[before : before + len(common)]
        free = iter((*position[:before], *position[before + len(common) :]))
        index: list[Expr] = []
        for item in items:
            match item:
                case New():
                    next(free)
                case Point(at=at):
                    index.append(Index(at))
                case Span(start=start, step=step):
                    index.append(Index(start + next(free) * step))
                case Steps():
                    raise AssertionError("a step that is not known is read one position at a time")
                case Many(at=at_place):
                    index.append(at_place(picked))
        return gather(array.cells, index)

    cells = trace.compute(shape, array.element_type, cell)
    result = SymbolicArray(cells, trace, is_scalar=not shape)
    return result if not shape else laid(result, _numpys_order(array, items, len(common), before))


def _numpys_order(array: SymbolicArray, items: Sequence[Item], chosen: int, before: int) -> Order:
    """The axes that are chosen, then the others in the order of the array. If there are no others, the chosen
    ones are in that of the arrays that choose."""
    kept = [item if isinstance(item, (Span, New)) else Point(ZERO) for item in items]
    others = copy_order(part(array.cells, kept), "K")
    choosing: Order = tuple(range(chosen))
    if not others:
        choosing = kept_order(chosen, [item.cells for item in items if isinstance(item, Many) and item.cells])
    return (
        *(before + axis for axis in choosing),
        *(axis if axis < before else axis + chosen for axis in others),
    )
