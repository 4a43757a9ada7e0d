"""The driver of the host's CPU with devices that work on their own: each stream has a worker thread."""

from __future__ import annotations

from collections.abc import Mapping

from .cpu import CpuDriver
from .queues import WorkerQueue

__all__ = ["WorkerDriver"]


class WorkerDriver(CpuDriver):
    """So many devices, which share the host's cores: one has them all, several have their part of them."""

    def __init__(self, name: str, devices: int = 1) -> None:
        super().__init__(name)
        self._devices = devices

    def num_devices(self) -> int:
        return self._devices

    def queue(self, ordinal: int, name: str) -> WorkerQueue:
        return WorkerQueue(name)

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {**super().static_properties(ordinal), "devices": self._devices}
