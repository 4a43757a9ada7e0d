"""A pool without threads, for tests of what may be shared among them."""

from __future__ import annotations

import ctypes
import random

import numpy as np

__all__ = ["Shuffled"]

_POOL = ctypes.CFUNCTYPE(
    None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Shuffled:
    """A pool that hands out every grain for itself, the last one first or in any order, with scratch memory
    that is full of rubbish."""

    def __init__(self, seed: int = 0) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self._random = random.Random(seed)
        self._run = _POOL(self._share)
        self._word = ctypes.c_void_p(ctypes.cast(self._run, ctypes.c_void_p).value)
        self.address = ctypes.addressof(self._word)

    def _share(
        self, pool: int, loop: int, context: int, trips: int, grain: int, own: int | None, size: int
    ) -> None:
        self.calls.append((trips, grain, size))
        starts = list(range(0, trips, grain))
        self._random.shuffle(starts)
        for start in starts:
            scratch = np.full(size + 64, self._random.randrange(256), np.uint8)
            place = scratch.ctypes.data
            _LOOP(loop)(context, start, min(start + grain, trips), place + -place % 64)
