"""The GPU that a run is on, and what it can do at best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..backends import backend
from ..errors import UserError
from ..frozen import frozen
from ..profile.gpu.machine import GpuLimits
from ..profile.gpu.roofline import GpuRoofline, roofline
from ..runtime.cuda.driver import GpuDriver

__all__ = ["SIMULATION", "Gpu", "driver", "gpu"]

SIMULATION = "times are those of a simulation on the host, which say nothing about hardware"


@frozen
class Gpu:
    """A target's first GPU, by its name. `roofline` is None for a simulated one."""

    target: str
    name: str
    roofline: GpuRoofline | None

    @staticmethod
    def from_json(read: Mapping[str, Any]) -> Gpu:
        roof = read["roofline"]
        limits = roof and GpuRoofline(roof["gpu"], GpuLimits(**roof["limits"]))
        return Gpu(read["target"], read["name"], limits)


def driver(target: str) -> GpuDriver:
    """The target's. Raises BackendUnavailable without a GPU, UserError for targets that are none."""
    found = backend(target).driver
    if not isinstance(found, GpuDriver):
        raise UserError(f"target {target!r} is no GPU", fix="use cuda, or cuda-sim, which simulates one")
    return found


def gpu(target: str, *, again: bool = False) -> Gpu:
    """The target's, whose limits are measured, or were earlier unless they should be `again`. Raises
    what `driver` raises, DeviceError where the GPU fails."""
    device, is_simulated = backend(target).get_device(0), driver(target).is_simulated
    info = driver(target).gpu(device.ordinal).info
    return Gpu(target, info.name, None if is_simulated else roofline(device, info, again=again))
