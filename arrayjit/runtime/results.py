"""Arrays for results: large ones in memory that earlier results have left.

Writing to new pages takes longer than most programs compute for what they write there: the kernel has to
find and clear them first. A large array is therefore a plain `np.ndarray` on a block that it keeps alive, as
its views do, and whatever else is made of it (a tensor of another library, a memoryview). When the last of
them is gone, the block waits for the next array of about its size.

There is no lock, so a fork cannot leave one locked, and an array may die at any moment, in the middle of
`take` too. What is idle is one list, and each step is one operation of it, which is atomic: of two threads
that want the same block, one removes it and the other finds that out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from .host import HostMemory

__all__ = ["LARGE", "LARGE_TOGETHER", "Results", "least_of_blocks", "results"]

LARGE = 1 << 20
"""Bytes from which on an array has a block. The C library gives pages back to the system where several such
arrays go at once, and new ones take longer than what most programs compute. To lend a block takes 3
microseconds more than to allocate: a tenth at most of what one operation takes for so many bytes."""

LARGE_TOGETHER = 1 << 18
"""Bytes from which on each of several arrays of one call has a block: the C library gives pages back where
twice as many bytes go at once as it has ever found pages for."""

IDLE = 1 << 29
"""Bytes that blocks have together, at most, while nothing uses them."""


class Results:
    """Blocks, of which those that nothing uses have `limit` bytes together at most."""

    def __init__(self, limit: int = IDLE) -> None:
        self._limit = limit
        self._idle: list[HostMemory] = []

    @property
    def idle_bytes(self) -> int:
        """What waits for later arrays."""
        return sum(block.nbytes for block in tuple(self._idle))

    def maker(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
        least: int = LARGE,
    ) -> Callable[[], np.ndarray]:
        """What makes arrays with any content, on blocks if they have at least so many bytes; `strides`, where
        given, leave no gaps."""
        nbytes = prod(shape) * dtype.itemsize
        if nbytes >= least:
            return lambda: np.asarray(_Loan(self, self.take(nbytes), shape, dtype, strides))
        if strides is None:
            return partial(np.empty, shape, dtype)
        return partial(np.ndarray, shape, dtype, strides=strides)

    def take(self, nbytes: int) -> HostMemory:
        """The idle block used last that is an eighth too large at most; else a new one."""
        for block in reversed(tuple(self._idle)):
            if nbytes <= block.nbytes <= nbytes + nbytes // 8:
                try:
                    self._idle.remove(block)
                except ValueError:
                    continue
                return block
        try:
            return HostMemory(nbytes)
        except MemoryError:
            self._idle.clear()
            return HostMemory(nbytes)

    def give_back(self, block: HostMemory) -> None:
        """Nothing uses the block any more. Those that have waited longest make room for it."""
        self._idle.append(block)
        while self.idle_bytes > self._limit:
            try:
                self._idle.pop(0)
            except IndexError:
                return


def least_of_blocks(sizes: Iterable[int]) -> int:
    """From how many bytes on arrays have blocks if a call makes arrays of so many each."""
    return LARGE if sum(nbytes >= LARGE_TOGETHER for nbytes in sizes) < 2 else LARGE_TOGETHER


@cache
def results() -> Results:
    """The blocks of this process."""
    return Results()


class _Loan:
    """The base of an array: a block's memory, described by NumPy's array interface."""

    __slots__ = ("__array_interface__", "_block", "_results")

    def __init__(
        self,
        results: Results,
        block: HostMemory,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None,
    ) -> None:
        self._results = results
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "data": (block.address, False),
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        self._results.give_back(self._block)
