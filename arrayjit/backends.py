"""THE table of backends: what a target's name stands for. A row is loaded when it is first asked for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import BackendUnavailable, NumberError, UnknownTarget, UnsupportedError
from .frozen import frozen
from .late import Late
from .locks import lock
from .runtime.device import Device, Machine
from .runtime.driver import Driver
from .runtime.stream import Stream
from .targets.target import Target

if TYPE_CHECKING:
    from .runtime import context
    from .runtime.context import Context
else:
    context = Late("arrayjit.runtime.context")

__all__ = [
    "BACKENDS",
    "TARGET_IN_USE",
    "Backend",
    "backend",
    "device_named",
    "fresh_backend",
    "lowering_backend",
    "require_target",
    "target_in_use",
    "targets",
    "use",
]

# name: (the emitter's class, the driver's class). Both are made with the name.
BACKENDS: dict[str, tuple[str, str]] = {
    "llvm": ("targets.llvm.ParallelLlvmTarget", "runtime.workers.WorkerDriver"),
    "sync_llvm": ("targets.llvm.LlvmTarget", "runtime.cpu.CpuDriver"),
    "c": ("targets.c.ParallelCTarget", "runtime.c.ParallelCDriver"),
    "sync_c": ("targets.c.CTarget", "runtime.c.CDriver"),
    "cuda": ("targets.cuda.CudaTarget", "runtime.cuda.driver.CudaDriver"),
    "cuda-sim": ("targets.cuda.CudaTarget", "runtime.cuda.driver.SimulatedDriver"),
    "interp": ("targets.interp.InterpTarget", "runtime.interp.InterpDriver"),
}

_LOWERING = {"cuda": "runtime.cuda.driver.LoweringDriver"}
"""Drivers in place of those that find no hardware: they show code, which needs none. They are made with the
name and the reason."""


@frozen
class Backend:
    """A target that emits code, and the machine that runs it: all devices of one driver. Code is planned for
    the first of them, and that of `fitted(device)` for another."""

    name: str
    target: Target
    machine: Machine

    @property
    def driver(self) -> Driver:
        return self.machine.driver

    def num_devices(self) -> int:
        """How many physical devices there are."""
        return self.machine.num_devices()

    def get_device(self, ordinal: int = 0) -> Device:
        """The device, always the same object. Raises BackendUnavailable when there is none."""
        return self.machine.get_device(ordinal)

    def fitted(self, device: Device) -> Backend:
        """The backend with code that is planned for a device of its target: GPUs of a machine may differ.
        Raises BackendUnavailable for a device that is too old."""
        target = self.target.fitted(device.static_properties)
        return self if target is self.target else replace(self, target=target)

    def init(self, device: Device | None = None, stream: Stream | None = None) -> Context:
        """A context without tensors, by default on the first device's first stream."""
        device = device or self.get_device()
        return context.Context(device, stream or device.stream)

    def static_properties(self) -> Mapping[str, Mapping[str, str | int]]:
        """What is known of all devices without running anything."""
        driver = self.driver
        return {
            f"{self.name}:{ordinal}": driver.static_properties(ordinal)
            for ordinal in range(driver.num_devices())
        }


_loading = lock()


def backend(name: str) -> Backend:
    """The process's backend of a name, always the same object. Raises UnknownTarget for a name that is not in
    the table, BackendUnavailable when a package it needs is missing."""
    with _loading:
        return _backend(require_target(name))


def lowering_backend(name: str) -> Backend:
    """As `backend`; where hardware is missing that code can be made without, one that has no devices: whoever
    asks for them is told what `backend` raises."""
    try:
        return backend(name)
    except BackendUnavailable as error:
        name, reason = require_target(name), error
        if name not in _LOWERING:
            raise
    emitter, _ = _classes(name)
    driver = _load(_LOWERING[name])
    return Backend(name, emitter(name), Machine(lambda: driver(name, reason)))


def fresh_backend(name: str, *, memory_limit: int | None = None, **options: int | str) -> Backend:
    """A backend that shares nothing with any other.

    `memory_limit` bounds the bytes in use on each device. `options` are those of the emitter and of the
    driver: `cpu`, for "llvm" and "c", is the CPU that code is made for, as `ARRAYJIT_CPU`, `plan_for`, for
    GPUs, the architecture that loops are planned for whatever is there; `devices`, for "llvm" and "c", is how
    many devices share the host's cores. Raises what `backend` raises, UnsupportedError
    for another option, NumberError for a number that makes no sense, SettingError for an unknown CPU.
    """
    name = require_target(name)
    emitter, driver = _classes(name)
    emitting, driving = (
        [option for option in inspect.signature(part).parameters if option != "name"]
        for part in (emitter, driver)
    )
    for option in options:
        if option not in emitting + driving:
            raise UnsupportedError(
                f"target {name!r} has no option {option!r}",
                fix=f"give {', '.join(('memory_limit', *emitting, *driving))} only",
            )
    if memory_limit is not None and memory_limit < 0:
        raise NumberError(f"target {name!r} cannot have {memory_limit} bytes", fix="give 0 or more")
    target = emitter(name, **{option: options[option] for option in emitting if option in options})
    given = {option: options[option] for option in driving if option in options}
    return _planned(name, target, Machine(lambda: driver(name, **given), memory_limit))


def device_named(name: str) -> Device:
    """A device of the process's own: "llvm" is the first of that target, "llvm:1" the second. Raises what
    `backend` and `get_device` raise."""
    if not isinstance(name, str):
        raise UnknownTarget(f"a device is named by a string, not by {name!r}", fix="write 'llvm' or 'llvm:1'")
    target, _, ordinal = name.partition(":")
    if not ordinal.isdigit() and ordinal:
        raise UnknownTarget(f"unknown device {name!r}", fix=f"write {target!r} or '{target}:0'")
    return backend(target).get_device(int(ordinal or 0))


def targets() -> dict[str, str]:
    """What each target of the table can be on this machine: "available", or what is missing and how to get
    it."""
    return {name: _availability(name) for name in BACKENDS}


def require_target(name: str) -> str:
    """The name as the table has it. Raises UnknownTarget for one that it lacks."""
    if not isinstance(name, str) or name.lower() not in BACKENDS:
        raise UnknownTarget(f"unknown target {name!r}", fix=f"choose one of {', '.join(BACKENDS)}")
    return name.lower()


TARGET_IN_USE: ContextVar[str | None] = ContextVar("arrayjit_target", default=None)
"""What `use` names here, if anything."""


@contextmanager
def use(*, target: str) -> Iterator[None]:
    """Within the block, jitted functions run on `target` unless the call names another. Raises UnknownTarget
    for a name that is none."""
    require_target(target)
    token = TARGET_IN_USE.set(target)
    try:
        yield
    finally:
        TARGET_IN_USE.reset(token)


def target_in_use() -> str | None:
    """The target that `use` names here."""
    return TARGET_IN_USE.get()


def _availability(name: str) -> str:
    try:
        backend(name)
    except BackendUnavailable as error:
        return f"not available: {error.what}; {error.fix}"
    return "available"


@cache
def _backend(name: str) -> Backend:
    emitter, driver = _classes(name)
    return _planned(name, emitter(name), Machine(lambda: driver(name)))


def _planned(name: str, target: Target, machine: Machine) -> Backend:
    """A backend for the first device of its machine."""
    driver = machine.driver
    return Backend(name, target if driver.is_host else target.fitted(driver.static_properties(0)), machine)


def _classes(name: str) -> tuple[Any, Any]:
    try:
        emitter, driver = (_load(path) for path in BACKENDS[name])
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"target {name!r} needs the package {error.name}", fix=f"pip install {error.name}"
        ) from error
    return emitter, driver


def _load(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f".{module}", __package__), name)
