"""THE table of backends: what a target's name stands for. A row is loaded when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from .errors import UnknownTarget
from .runtime.device import Driver
from .targets.target import Target

__all__ = ["BACKENDS", "Backend", "backend"]

# name: (the emitter's class, the driver's class). Both are made with the name.
BACKENDS: dict[str, tuple[str, str]] = {
    "sync_llvm": ("targets.llvm.LlvmTarget", "runtime.cpu.CpuDriver"),
    "interp": ("targets.interp.InterpTarget", "runtime.interp.InterpDriver"),
}


@dataclass(frozen=True, slots=True)
class Backend:
    """A target that emits code and the driver that runs it."""

    name: str
    target: Target
    driver: Driver


@cache
def backend(name: str) -> Backend:
    """The backend of a name. Raises UnknownTarget, or BackendUnavailable when what it needs is missing."""
    row = BACKENDS.get(name)
    if row is None:
        raise UnknownTarget(f"unknown target {name!r}", fix=f"choose one of {', '.join(BACKENDS)}")
    emitter, driver = (_load(path) for path in row)
    return Backend(name, emitter(name), driver(name))


def _load(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f".{module}", __package__), name)
