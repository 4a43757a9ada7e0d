"""The driver of the host's CPU with devices that work on their own: each stream has a worker thread."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import NumberError
from ..settings import num_threads
from .cpu import CpuDriver
from .queues import WorkerQueue
from .threads import ThreadPool

__all__ = ["WorkerDriver"]


class WorkerDriver(CpuDriver):
    """So many devices, which share the host's cores: one has them all, several have their part of them."""

    def __init__(self, name: str, devices: int = 1) -> None:
        if devices < 1:
            raise NumberError(f"target {name!r} cannot have {devices} devices", fix="ask for 1 or more")
        super().__init__(name)
        self._devices = devices
        self._most = max(1, num_threads() // devices)
        self._pools: dict[tuple[int, int], ThreadPool] = {}

    def num_devices(self) -> int:
        return self._devices

    def queue(self, ordinal: int, name: str) -> WorkerQueue:
        return WorkerQueue(name)

    def threads(self, ordinal: int, most: int | None = None) -> int:
        """A device has a pool for each number of threads that code asks for; those without work sleep."""
        count = self._most if most is None else min(most, self._most)
        pool = self._pools.get((ordinal, count))
        if pool is None:
            pool = self._pools.setdefault((ordinal, count), ThreadPool(count))
        return pool.address

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {**super().static_properties(ordinal), "devices": self._devices}

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
