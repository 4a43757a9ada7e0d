"""A NumPy view as an affine map: cell `v[p]` of the view is cell `tensor[index(p)]`.

Slices, transposes, broadcasts, flips and integer indices compose by substitution and never copy. A
reshape that NumPy makes without a copy is a view of the tensor's flat form.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...frozen import frozen
from ...ir.dtype import DType
from ...ir.expr import Load
from ...ir.index import Affine, Extent, Symbol, affine
from ...ir.tensor import Tensor

__all__ = ["View", "same_cells"]


@frozen
class View:
    """`shape` and, per axis, a symbol; `index` is the tensor's index in terms of those symbols."""

    tensor: Tensor
    shape: tuple[Affine, ...]
    axes: tuple[Symbol, ...]
    index: tuple[Affine, ...]
    writeable: bool = True

    @staticmethod
    def whole(tensor: Tensor, writeable: bool = True) -> View:
        """The view of a whole tensor."""
        axes = tuple(Symbol("i") for _ in tensor.shape)
        return View(tensor, tensor.shape, axes, affine(axes), writeable)

    @staticmethod
    def fresh(label: str, shape: Sequence[Extent], dtype: DType, order: Sequence[int] | None = None) -> View:
        """The view of a new tensor whose axes lie in memory in `order`, the farthest apart first."""
        extents = affine(shape)
        if order is None:
            return View.whole(Tensor(label, extents, dtype))
        whole = View.whole(Tensor(label, tuple(extents[axis] for axis in order), dtype))
        return whole.transpose([order.index(axis) for axis in range(len(order))])

    @property
    def rank(self) -> int:
        return len(self.shape)

    def at(self, position: Sequence[Extent]) -> tuple[Affine, ...]:
        """The tensor's index of the view's cell at `position`."""
        values = dict(zip(self.axes, affine(position), strict=True))
        return tuple([part.substitute(values) for part in self.index])

    def load(self, position: Sequence[Extent]) -> Load:
        return Load(self.tensor, self.at(position))

    def remap(self, shape: Sequence[Extent], axes: tuple[Symbol, ...], position: Sequence[Extent]) -> View:
        """The view whose cell at `axes` is this view's cell at `position` (expressions in `axes`)."""
        return View(self.tensor, affine(shape), axes, self.at(position), self.writeable)

    def part(self, place: Extent) -> View:
        """What stands at one place of the first axis."""
        return self.remap(self.shape[1:], self.axes[1:], (place, *self.axes[1:]))

    def transpose(self, order: Sequence[int]) -> View:
        return View(
            self.tensor,
            tuple(self.shape[axis] for axis in order),
            tuple(self.axes[axis] for axis in order),
            self.index,
            self.writeable,
        )

    def is_whole(self) -> bool:
        """Whether this is the tensor itself, cell for cell."""
        return self.shape == self.tensor.shape and self.index == affine(self.axes)

    def is_fixed(self) -> bool:
        """Whether it shows the same cells each time: no symbols but those of its axes stand in it."""
        fixed = all(symbol in self.axes for part in self.index for symbol in part.symbols)
        return fixed and all(extent.is_constant for extent in self.shape)

    def transposition(self) -> tuple[int, ...] | None:
        """The view's axis for each axis of the tensor, if it is the whole tensor, transposed or not."""
        order = self.axis_order()
        return order if len(order) == self.tensor.rank and self.transpose(order).is_whole() else None

    def axis_order(self) -> tuple[int, ...]:
        """The axes in the order in which the tensor's index mentions them."""
        first = {s: at for at in range(len(self.index) - 1, -1, -1) for s in self.index[at].symbols}
        return tuple(sorted(range(self.rank), key=lambda axis: first.get(self.axes[axis], len(first))))

    def element_strides(self) -> tuple[Affine, ...] | None:
        """Strides in elements per axis of the view; None when the tensor's strides are symbolic."""
        strides = self.tensor.element_strides()
        if not all(stride.is_constant for stride in strides):
            return None
        steps = dict.fromkeys(self.axes, 0)
        for part, stride in zip(self.index, strides, strict=True):
            for coefficient, symbol in part.terms:
                if symbol in steps:
                    steps[symbol] += coefficient * stride.offset
        return affine([steps[axis] for axis in self.axes])


def same_cells(left: View, right: View) -> bool:
    """Whether two views show the same cells in the same places."""
    return (
        left.tensor is right.tensor
        and left.shape == right.shape
        and left.at(right.axes) == right.at(right.axes)
    )
