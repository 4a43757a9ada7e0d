"""The device layer: what a program uses that places, schedules and moves things itself.

backend = fresh_backend("llvm", devices=2)
context = backend.init(backend.get_device(0)).init_from_host(x, array)
routine = context.link(compile(backend, program))
routine.bindings[step] = 1
routine.schedule().sync()
routine.context.to_host(y, result)
"""

from __future__ import annotations

from .backends import Backend, backend, fresh_backend, targets
from .compile import compile, compile_batch
from .ir.code import Code, Postponed
from .runtime.context import Context
from .runtime.device import Device
from .runtime.memory import Location, Purpose
from .runtime.merge import MergeUse
from .runtime.routine import Routine
from .runtime.stream import Event, Events, Stream
from .runtime.transfer import device_to_device, init_from_device

__all__ = [
    "Backend",
    "Code",
    "Context",
    "Device",
    "Event",
    "Events",
    "Location",
    "MergeUse",
    "Postponed",
    "Purpose",
    "Routine",
    "Stream",
    "backend",
    "compile",
    "compile_batch",
    "device_to_device",
    "fresh_backend",
    "init_from_device",
    "targets",
]
