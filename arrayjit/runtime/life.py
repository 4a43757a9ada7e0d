"""How long the slabs of a context live."""

from __future__ import annotations

import os
from collections import deque
from threading import Lock

from .memory import Pool

__all__ = ["Life"]

_ended: deque[Life] = deque()
_burying = Lock()

# Nobody is at it while a process forks, so that the child can go on.
os.register_at_fork(
    before=_burying.acquire, after_in_parent=_burying.release, after_in_child=_burying.release
)


class Life:
    """Whether a context is in use, and the slabs that it brought: they are freed once neither it nor a
    context that descends from it is in use."""

    def __init__(self, parent: Life | None = None, pools: tuple[Pool, ...] = ()) -> None:
        self.is_over = False
        self.pools = pools
        self._is_freed = False
        self._parent = parent
        self._children = 0
        if parent is not None:
            with _burying:
                parent._children += 1
            _bury()

    def end(self) -> None:
        """The context was finalized, or is gone: the collector may say so at any moment, in any thread."""
        if not self.is_over:
            self.is_over = True
            _ended.append(self)
            _bury()

    def _let_go(self) -> None:
        life: Life | None = self
        while life is not None and life.is_over and not life._children and not life._is_freed:
            life._is_freed = True
            for pool in life.pools:
                pool.free()
            life = life._parent
            if life is not None:
                life._children -= 1


def _bury() -> None:
    """Let go of what ended; whoever is at it already does it all."""
    while _ended and _burying.acquire(blocking=False):
        try:
            while _ended:
                _ended.popleft()._let_go()
        finally:
            _burying.release()
