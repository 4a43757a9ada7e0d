"""THE table of backends: what a target's name stands for. A row is loaded when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

from .errors import BackendUnavailable, UnknownTarget
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


_loading = Lock()


def backend(name: str) -> Backend:
    """The backend of a name, always the same object. Raises UnknownTarget for a name that is not in the
    table, BackendUnavailable when a package it needs is missing."""
    if name not in BACKENDS:
        raise UnknownTarget(f"unknown target {name!r}", fix=f"choose one of {', '.join(BACKENDS)}")
    with _loading:
        return _backend(name)


@cache
def _backend(name: str) -> Backend:
    try:
        emitter, driver = (_load(path) for path in BACKENDS[name])
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"target {name!r} needs the package {error.name}", fix=f"pip install {error.name}"
        ) from error
    return Backend(name, emitter(name), driver(name))


def _load(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f".{module}", __package__), name)
