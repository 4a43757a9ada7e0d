"""Vectors of memory that begin a few cells beside others, as the points of stencils do.

for j in vector(0, 64, lanes=16):                  ; x[j] is one cell that is loaded, and lanes of x[j + 1],
    y[j] = add(x[j + 1], x[j])             ->      ; which are moved by one

Where vectors are as wide as a line, one that starts anywhere lies in two of them, and loading it takes a
cache two accesses. To move lanes takes an instruction for each register, and the missing cells one access.
Lanes are moved of vectors only that were loaded themselves: memory gives a third of a long filter's taps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ..frozen import slotted
from ..ir.tensor import Tensor
from .llvm_text import LINE_BYTES, Value, Writer

__all__ = ["Neighbours"]

DISTANCES = (1, 2, 4)
"""By how many lanes vectors are moved: so many missing cells are one load, which fills a vector with copies
of them. A single register is moved only by one: then the load is part of the instruction that moves."""

ITEMS = (4, 8)
"""The bytes of cells that one instruction moves."""

Read = Callable[[int, int], Value]
"""Loads cells: from which one on, counted from a pointer, and how many."""


@slotted
class Neighbours:
    """What has been loaded for the lanes of one loop, in one block: vectors by the memory and the pointer in
    it that their places are counted from, and by these."""

    lanes: object = None
    block: str = ""
    loaded: dict[tuple[Tensor, str, int], dict[int, Value]] = field(default_factory=dict)

    def begin(self, lanes: object, block: str) -> None:
        """What was loaded for other lanes, or in another block, may have been written since."""
        if lanes is not self.lanes or block != self.block:
            self.lanes, self.block, self.loaded = lanes, block, {}

    def forget(self, storage: Tensor) -> None:
        """It is written."""
        for key in [key for key in self.loaded if key[0] is storage]:
            del self.loaded[key]

    def load(self, writer: Writer, tensor: Tensor, base: str, place: int, count: int, read: Read) -> Value:
        """So many cells of a tensor from a place on."""
        size = tensor.dtype.itemsize
        if "avx512f" not in writer.features or size not in ITEMS or count * size < LINE_BYTES:
            return read(place, count)
        known = self.loaded.setdefault((tensor.storage, base, size), {})
        for distance in DISTANCES if count * size > LINE_BYTES else DISTANCES[:1]:
            for by in (distance, -distance):
                near = known.get(place - by)
                if near is not None and (near.dtype, near.lanes) == (tensor.dtype, count):
                    missing = read(place - by + count if by > 0 else place, distance)
                    return _moved(writer, near, by, missing)
        known[place] = read(place, count)
        return known[place]


def _moved(writer: Writer, value: Value, by: int, missing: Value) -> Value:
    """A vector's lanes moved by so many, downwards if that is positive, with the missing ones beside them."""
    lanes = value.lanes
    if missing.lanes == 1:
        copies = writer.widen(missing, lanes)
    else:
        copies = writer.shuffle(missing, [lane % missing.lanes for lane in range(lanes)])
    if by > 0:
        return writer.shuffle(value, range(by, lanes + by), copies)
    return writer.shuffle(copies, range(lanes + by, 2 * lanes + by), value)
