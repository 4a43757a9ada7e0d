"""Arrays that lie in memory otherwise than NumPy's, until the program can tell.

    y = x[:, [0, 1]]        NumPy lays the chosen columns one behind the other, we lay rows, which takes less
    v = y.reshape(-1)       a copy in NumPy and a view of rows: the same until one of the two is written
    v[0] = 1                now it shows

What asks for the layout itself, such as `y.strides`, shows it at once. The trace then starts again and lays
such arrays as NumPy does. What is computed from one of them lies as it does, and counts as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...ir.assign import Assign
from ...ir.tensor import Tensor
from ...ir.walk import storages_read
from .retrace import Retrace
from .view import View

__all__ = ["Layouts"]


class Layouts:
    """Which arrays NumPy lays otherwise, none if `are_numpys`; and which of them NumPy may make one of where
    we make two, or two where we make one."""

    def __init__(self, are_numpys: bool) -> None:
        self.are_numpys = are_numpys
        self._others: set[Tensor] = set()
        self._pairs: dict[tuple[Tensor, Tensor], None] = {}
        self._in_doubt: set[Tensor] = set()

    def differ(self, array: View) -> None:
        """NumPy lays this array otherwise."""
        self._others.add(array.tensor.storage)

    def follow(self, array: View, like: View) -> None:
        """NumPy lays this array as the other one lies there."""
        if like.tensor.storage in self._others:
            self.differ(array)

    def require_numpys(self, array: View) -> None:
        """Raise Retrace if the program sees how an array lies that NumPy lays otherwise."""
        if array.tensor.storage in self._others:
            raise Retrace(as_numpys_lie=True)

    def doubt(self, array: View, result: View) -> None:
        """How the array lies decides whether the result is a copy or a view of it."""
        one, other = array.tensor.storage, result.tensor.storage
        if one in self._others:
            self._pairs[one, other] = None
            self._in_doubt |= {one, other}

    def written(self, assign: Assign) -> None:
        """Raise Retrace if an array is written that may not be the one that NumPy writes."""
        storage = assign.into.storage
        if storage in self._in_doubt:
            raise Retrace(as_numpys_lie=True)
        if self._others and storage.rank > 1 and not self._others.isdisjoint(storages_read([assign.value])):
            self._others.add(storage)

    def require_sharing(self, results: Sequence[View]) -> None:
        """Raise Retrace if both of two arrays are handed out that share memory in NumPy alone, or here alone:
        the caller may write one of them."""
        shown = Counter(view.tensor.storage for view in results)
        for one, other in self._pairs:
            if shown[one] > 1 if one is other else shown[one] and shown[other]:
                raise Retrace(as_numpys_lie=True)
