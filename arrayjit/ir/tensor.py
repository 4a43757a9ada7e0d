"""A named array of the program: a shape and an element type, no memory.

Where a tensor lives is decided by the pass `place` and kept on the Kernel; which buffer holds it, by
a Context. Two tensors share memory only if they have the same `storage`.
"""

from __future__ import annotations

from typing import Literal

from ..frozen import frozen, frozen_by_identity
from .dtype import DType
from .index import Affine, Extent, affine, row_major_strides

__all__ = ["GROUPS", "Tensor", "Wish"]

GROUPS = (2, 3, 4)
"""So many neighbours in memory may be a group, of which vectors of each part are read and written at once."""


@frozen
class Wish:
    """How a temporary has to be held: a `virtual` one is computed where it is read, a `local` one once,
    before it is read. `why` is for the error when that cannot be."""

    kind: Literal["virtual", "local"]
    why: str = ""


class Laid:
    """What lies in C order. `row_major` are its strides, once somebody has asked."""

    __slots__ = ("row_major",)
    row_major: tuple[Affine, ...]


@frozen_by_identity
class Tensor(Laid):
    """An array of the program; compares by identity.

    `strides` are in elements, for arrays whose layout the caller chose; None means C order. `base` is
    set on the flat form of another tensor: the same memory read as one row-major axis, which is how
    reshaped views are expressed; and on the real form of a complex one: its real and imaginary parts along
    one more axis, the last. `wish` restricts the choice of where a temporary lives.
    """

    label: str
    shape: tuple[Affine, ...]
    dtype: DType
    strides: tuple[Affine, ...] | None = None
    base: Tensor | None = None
    wish: Wish | None = None

    @staticmethod
    def of(label: str, shape: tuple[Extent, ...], dtype: DType) -> Tensor:
        return Tensor(label, affine(shape), dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def storage(self) -> Tensor:
        """The tensor that owns the memory: two tensors alias exactly when it is the same."""
        base = self.base
        return self if base is None else base.storage

    @property
    def is_real_form(self) -> bool:
        """Whether this is the parts of a complex tensor."""
        return self.base is not None and self.base.dtype.is_complex and not self.dtype.is_complex

    def real_form(self) -> Tensor:
        """The parts of a complex tensor's cells along a last axis."""
        strides = None if self.strides is None else (*(2 * stride for stride in self.strides), Affine.of(1))
        return Tensor(self.label, (*self.shape, Affine.of(2)), self.dtype.part, strides, self)

    def flat_form(self) -> Tensor:
        """The memory from the first to the last cell as one row-major axis."""
        cells = Affine.of(1)
        for extent, stride in zip(self.shape, self.element_strides(), strict=True):
            cells += (extent - 1) * abs(stride.constant)
        return Tensor(self.label, (cells,), self.dtype, base=self)

    @property
    def has_fixed_shape(self) -> bool:
        """Whether its shape is known before the program runs."""
        return all(extent.is_constant for extent in self.shape)

    @property
    def size(self) -> int:
        """Number of elements, at most where extents are symbolic. Raises ValueError where nothing is known of
        an extent."""
        total = 1
        for extent in self.shape:
            total *= extent.offset if extent.is_constant else _most(extent)
        return total

    @property
    def nbytes(self) -> int:
        """The bytes of so many elements."""
        return self.size * self.dtype.itemsize

    def element_strides(self) -> tuple[Affine, ...]:
        """Strides in elements, whatever the layout."""
        if self.strides is not None:
            return self.strides
        try:
            return self.row_major
        except AttributeError:
            _keep_row_major(self, row_major_strides(self.shape))
            return self.row_major

    def linear(self, index: tuple[Affine, ...]) -> Affine:
        """The offset in elements of the cell at `index` from the tensor's first cell."""
        return Affine.total(
            (position, stride.offset) if stride.is_constant else (stride, position.constant)
            for position, stride in zip(index, self.element_strides(), strict=True)
        )

    def part_of(self, index: tuple[Affine, ...], count: int) -> int | None:
        """Which part of a group the cell at `index` is, where the last axis consists of groups of `count`
        neighbours; None where that is not known."""
        if not self.shape or self.element_strides()[-1] != Affine.of(1):
            return None
        extent, position = self.shape[-1], index[-1]
        whole = (*(factor for factor, _ in (*extent.terms, *position.terms)), extent.offset)
        return None if any(number % count for number in whole) else position.offset % count

    def __repr__(self) -> str:
        extents = ", ".join(str(extent) for extent in self.shape)
        return f"{self.label}: {self.dtype.short}[{extents}]"


_keep_row_major = vars(Laid)["row_major"].__set__


def _most(extent: Affine) -> int:
    """The greatest value of an extent."""
    ends = extent.bounds({})
    if ends is None:
        raise ValueError(f"nothing is known of the extent {extent}")
    return max(ends[1], 0)
