"""An Api that simulates GPUs on the host, to find what is wrong with programs that happen to work.

Nothing is done before somebody waits for something; then other streams come first, as far as the events
allow, in an order that a seed chooses. Host memory of a copy is looked at when the copy is done. Memory is
full of NaN when it is handed out, which is when the stream comes to that, and again when it is given back.
Kernels are run by the interpreter of their PTX, which notices much that hardware does not. A fault is raised
by whoever waits, and by all that is asked of the device from then on."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import prod
from random import Random
from threading import RLock, local
from typing import Any, Union

import numpy as np

from ...errors import CompilerBug
from ...ir.gpus import ARCHITECTURES, GpuModel
from ..ptx.faults import BadAddress, Fault
from ..ptx.launch import Loaded
from ..ptx.memory import POISON, GlobalMemory
from ..ptx.parse import parse
from . import nvrtc
from .api import ApiError, Dims, GpuInfo, Image, OutOfDeviceMemory, Packed, Resources

__all__ = ["Kernel", "Loader", "SimulatedApi", "interpreted"]

_SPACE = 1 << 40
"""Addresses of each device."""

_SMALL = GpuModel("sm_86", processors=84, shared_bytes=101_376, l2_bytes=6 << 20)
"""What architectures have that are in no row of the table."""

_MOST_THREADS = 1024
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)

_CAPACITY = 1024
"""What a stream holds; who submits more waits."""

Act = Callable[[], object]

Kernel = Callable[[Dims, Dims, int, bytes], None]
"""Runs a grid of blocks with so much dynamic shared memory, and these arguments."""

Loader = Callable[[Image, GlobalMemory], Mapping[str, Kernel]]


@dataclass(eq=False)
class _Record:
    """A point in a stream, and when it was reached."""

    time: float | None = None

    def __call__(self) -> None:
        self.time = time.perf_counter()


@dataclass(eq=False)
class _Event:
    """`record` is the point that it means now."""

    device: _Device
    record: _Record | None = None

    @property
    def is_reached(self) -> bool:
        return self.record is None or self.record.time is not None


@dataclass(eq=False)
class _Wait:
    """What a stream cannot go past."""

    record: _Record

    @property
    def is_over(self) -> bool:
        return self.record.time is not None


@dataclass(eq=False)
class _Stream:
    """Its work, and while it is captured, the graph that the work goes to instead."""

    device: _Device
    entries: deque[Union[Act, _Wait]] = field(default_factory=deque)
    captured: list[Act] | None = None
    is_left: bool = False

    def step(self) -> bool:
        """Do the next work, if it can be done; whether there was any."""
        entries = self.entries
        while entries:
            entry = entries[0]
            if isinstance(entry, _Wait) and not entry.is_over:
                return False
            entries.popleft()
            if not isinstance(entry, _Wait):
                self.device.do(entry)
                return True
        return False


@dataclass(eq=False)
class _Device:
    """`error` is what has become of it."""

    ordinal: int
    memory: GlobalMemory
    sizes: dict[int, int] = field(default_factory=dict)
    error: ApiError | None = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def do(self, act: Act) -> None:
        """Work of a stream. On a device that has failed, none is done, but nobody waits for it in vain."""
        if self.error is not None and not isinstance(act, _Record):
            return
        try:
            act()
        except Fault as fault:
            is_address = isinstance(fault, BadAddress)
            name = "CUDA_ERROR_ILLEGAL_ADDRESS" if is_address else "CUDA_ERROR_LAUNCH_FAILED"
            self.error = ApiError(name, _said(fault), is_sticky=True)
            self.error.__cause__ = fault


@dataclass(eq=False)
class _Kernel:
    """A kernel of a module, loaded on a device."""

    device: _Device
    name: str
    run: Kernel
    resources: Resources


@dataclass(eq=False)
class _Module:
    """Kernels by name, what the assembler said of them, and the handles of those that were asked for."""

    device: _Device
    kernels: Mapping[str, Kernel]
    usage: Mapping[str, nvrtc.Usage]
    functions: list[int] = field(default_factory=list)


class SimulatedApi:
    """The functions of `Api`, whose docstrings say what they do. Devices have the architectures in turn, and
    access to the memory of one another with `peer_access`. `load` makes the kernels of an Image, for the
    memory of a device."""

    def __init__(
        self,
        devices: int,
        archs: Sequence[str],
        seed: int,
        memory_bytes: int,
        load: Loader,
        peer_access: bool = True,
    ) -> None:
        self._archs = tuple(archs)
        self._peer_access = peer_access
        self._load = load
        self._memory_bytes = memory_bytes
        self._random = Random(seed)
        self._devices = [_Device(n, GlobalMemory((n + 1) * _SPACE)) for n in range(devices)]
        self._streams: list[_Stream] = []
        self._handles: dict[int, Any] = {}
        self._numbers = count(1)
        self._thread = local()
        self._lock = RLock()

    def device_count(self) -> int:
        return len(self._devices)

    def info(self, ordinal: int) -> GpuInfo:
        arch = self._archs[ordinal % len(self._archs)]
        model = ARCHITECTURES.get(arch, _SMALL)
        return GpuInfo(
            name=f"simulated {arch}",
            arch=arch,
            version=nvrtc.version(),
            multiprocessors=model.processors,
            memory_bytes=self._memory_bytes,
            shared_bytes=model.shared_bytes,
            l2_bytes=model.l2_bytes,
        )

    def use(self, ordinal: int) -> None:
        self._thread.device = self._devices[ordinal]

    def release(self, ordinal: int) -> None:
        device = self._devices[ordinal]
        with self._lock:
            self._streams = [stream for stream in self._streams if stream.device is not device]
            self._devices[ordinal] = _Device(ordinal, GlobalMemory((ordinal + 1) * _SPACE))
            for other in self._devices:
                other.memory.peers.discard(device.memory)

    def can_access_peer(self, ordinal: int, other: int) -> bool:
        return self._peer_access and ordinal != other

    def enable_peer_access(self, ordinal: int, other: int) -> None:
        if not self.can_access_peer(ordinal, other):
            raise ApiError("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", f"of device {ordinal} to device {other}")
        self._devices[ordinal].memory.peers.add(self._devices[other].memory)

    def ordinal_of(self, address: int) -> int:
        ordinal = address // _SPACE - 1
        if not 0 <= ordinal < len(self._devices):
            raise ApiError("CUDA_ERROR_INVALID_VALUE", f"{address:#x} is no address of a device")
        return ordinal

    def alloc(self, nbytes: int, stream: int) -> int:
        at = self._at(stream)
        device = at.device
        with self._lock:
            device.check()
            if sum(device.sizes.values()) + nbytes > self._memory_bytes:
                raise OutOfDeviceMemory("CUDA_ERROR_OUT_OF_MEMORY", "out of memory")
            address = device.memory.allocate(nbytes)
            device.sizes[address] = nbytes
        self._put(at, lambda: device.memory.view(address, nbytes).fill(POISON))
        return address

    def free(self, address: int, stream: int) -> None:
        at = self._at(stream)

        def free() -> None:
            at.device.memory.free(address)
            del at.device.sizes[address]

        self._put(at, free)

    def pinned_alloc(self, nbytes: int) -> int:
        block = np.full(nbytes, POISON, np.uint8)
        address = block.ctypes.data
        self._handles[address] = block
        return address

    def pinned_free(self, address: int) -> None:
        del self._handles[address]

    def h2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        at = self._at(stream)
        memory = at.device.memory
        self._put(at, lambda: ctypes.memmove(_host(memory, target, nbytes), source, nbytes))

    def d2h(self, target: int, source: int, nbytes: int, stream: int) -> None:
        at = self._at(stream)
        memory = at.device.memory
        self._put(at, lambda: ctypes.memmove(target, _host(memory, source, nbytes), nbytes))

    def d2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        at = self._at(stream)
        self.peer(target, at.device.ordinal, source, at.device.ordinal, nbytes, stream)

    def peer(
        self, target: int, target_ordinal: int, source: int, source_ordinal: int, nbytes: int, stream: int
    ) -> None:
        into, out_of = self._devices[target_ordinal].memory, self._devices[source_ordinal].memory

        def copy() -> None:
            ctypes.memmove(_host(into, target, nbytes), _host(out_of, source, nbytes), nbytes)

        self._put(self._at(stream), copy)

    def memset(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        at = self._at(stream)
        self._put(at, lambda: at.device.memory.view(address, nbytes).fill(byte))

    def stream(self) -> int:
        with self._lock:
            made = _Stream(self._device())
            self._streams.append(made)
            return self._handle(made)

    def destroy_stream(self, stream: int) -> None:
        with self._lock:
            self._at(stream).is_left = True
            del self._handles[stream]

    def event(self) -> int:
        return self._handle(_Event(self._device()))

    def destroy_event(self, event: int) -> None:
        del self._handles[event]

    def record(self, event: int, stream: int) -> None:
        recorded, record = self._event(event), _Record()
        self._put(self._at(stream), record)
        recorded.record = record

    def wait(self, stream: int, event: int) -> None:
        at, awaited = self._at(stream), self._event(event)
        with self._lock:
            at.device.check()
            if awaited.record is not None:
                at.entries.append(_Wait(awaited.record))

    def is_done(self, event: int) -> bool:
        asked = self._event(event)
        with self._lock:
            self._step(self._shuffled())
            asked.device.check()
            return asked.is_reached

    def sync_event(self, event: int) -> None:
        asked = self._event(event)
        record = asked.record
        self._run_until(asked.device, lambda: record is None or record.time is not None)

    def sync_stream(self, stream: int) -> None:
        at = self._at(stream)
        self._run_until(at.device, lambda: not at.entries)

    def sync_device(self) -> None:
        device = self._device()
        own = [stream for stream in self._streams if stream.device is device]
        self._run_until(device, lambda: not any(stream.entries for stream in own))

    def elapsed(self, start: int, end: int) -> float:
        first, last = (self._event(event).record for event in (start, end))
        if first is None or last is None or first.time is None or last.time is None:
            raise ApiError("CUDA_ERROR_NOT_READY", "the events are not done")
        return 1e3 * (last.time - first.time)

    def load(self, image: Image) -> int:
        device = self._device()
        with self._lock:
            device.check()
            return self._handle(_Module(device, self._load(image, device.memory), nvrtc.usage(image.log)))

    def unload(self, module: int) -> None:
        for function in self._handles.pop(module).functions:
            del self._handles[function]

    def function(self, module: int, name: str, shared_bytes: int) -> int:
        found: _Module = self._handles[module]
        device = found.device
        if name not in found.kernels:
            raise ApiError("CUDA_ERROR_NOT_FOUND", f"named symbol not found: {name}")
        if shared_bytes > self.info(device.ordinal).shared_bytes:
            raise ApiError("CUDA_ERROR_INVALID_VALUE", f"{shared_bytes} bytes of shared memory for {name}")
        used = found.usage.get(name, nvrtc.UNKNOWN)
        resources = Resources(used.registers, used.stack_bytes, used.shared_bytes)
        function = self._handle(_Kernel(device, name, found.kernels[name], resources))
        found.functions.append(function)
        return function

    def resources(self, function: int) -> Resources:
        kernel: _Kernel = self._handles[function]
        return kernel.resources

    def launch(
        self, function: int, grid: Dims, block: Dims, shared_bytes: int, stream: int, arguments: Packed
    ) -> None:
        kernel: _Kernel = self._handles[function]
        at, values = self._at(stream), bytes(arguments.values)
        if prod(block) > _MOST_THREADS or not all(map(int.__le__, grid, _MOST_BLOCKS)) or 0 in grid + block:
            raise ApiError("CUDA_ERROR_INVALID_VALUE", f"{kernel.name} in blocks {grid} of threads {block}")
        if kernel.device is not at.device:
            raise ApiError("CUDA_ERROR_INVALID_CONTEXT", f"{kernel.name} is loaded on another device")
        self._put(at, lambda: kernel.run(grid, block, shared_bytes, values))

    def begin_capture(self, stream: int) -> None:
        self._at(stream).captured = []

    def end_capture(self, stream: int) -> int:
        at = self._at(stream)
        graph, at.captured = at.captured, None
        return self._handle(graph)

    def graph_launch(self, graph: int, stream: int) -> None:
        at = self._at(stream)
        for act in self._handles[graph]:
            self._put(at, act)

    def destroy_graph(self, graph: int) -> None:
        del self._handles[graph]

    def _handle(self, thing: object) -> int:
        number = next(self._numbers)
        self._handles[number] = thing
        return number

    def _at(self, stream: int) -> _Stream:
        found = self._handles.get(stream)
        if not isinstance(found, _Stream):
            raise ApiError("CUDA_ERROR_INVALID_HANDLE", "no such stream")
        return found

    def _event(self, event: int) -> _Event:
        found = self._handles.get(event)
        if not isinstance(found, _Event):
            raise ApiError("CUDA_ERROR_INVALID_HANDLE", "no such event")
        return found

    def _device(self) -> _Device:
        device: _Device | None = getattr(self._thread, "device", None)
        if device is None:
            raise ApiError("CUDA_ERROR_INVALID_CONTEXT", "the thread uses no device")
        device.check()
        return device

    def _put(self, stream: _Stream, act: Act) -> None:
        with self._lock:
            stream.device.check()
            if stream.captured is not None:
                stream.captured.append(act)
                return
            stream.entries.append(act)
            if len(stream.entries) > _CAPACITY:
                order = self._shuffled()
                while len(stream.entries) > _CAPACITY // 2 and self._step(order):
                    pass

    def _run_until(self, device: _Device, is_over: Callable[[], bool]) -> None:
        """Do work until something is over: of each stream as much as can be done before that of the next."""
        order = self._shuffled()
        while True:
            with self._lock:
                device.check()
                if is_over():
                    return
                if not self._step(order):
                    order = self._shuffled()
                    if not self._step(order) and not is_over():
                        raise CompilerBug("streams wait for one another", stage="the simulated GPUs")

    def _step(self, order: Sequence[_Stream]) -> bool:
        """Do the next work of the first stream that can do some; whether there was any."""
        return any(stream.step() for stream in order)

    def _shuffled(self) -> list[_Stream]:
        """The streams in any order, without those that were left and have no work."""
        with self._lock:
            self._streams = [stream for stream in self._streams if stream.entries or not stream.is_left]
            return self._random.sample(self._streams, len(self._streams))


def _said(fault: Fault) -> str:
    """What happened, and where."""
    return fault.what if fault.place is None else f"{fault.what}, at {fault.place}"


def _host(memory: GlobalMemory, address: int, nbytes: int) -> int:
    """Where the host has memory of a device."""
    where: int = memory.view(address, nbytes).ctypes.data
    return where


def interpreted(image: Image, memory: GlobalMemory) -> Mapping[str, Kernel]:
    """The kernels of an Image, each run by the interpreter of its PTX."""
    loaded = Loaded(parse(image.ptx), memory)
    return {name: partial(loaded.launch, name) for name in loaded.module.kernels}
