"""What a driver of GPUs needs: some forty operations, after CUDA's driver API, with handles that are
integers.

Two classes have them: `bindings` is the real thing, `sim` simulates it on the host. Everything else in this
folder knows only this file, so that what is tested on the one is what runs on the other.

Work is asynchronous and in the order of its stream. A failure of a kernel is noticed by whoever waits later;
then it is *sticky*: from then on, all that is asked of the device raises it again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Protocol

from ...frozen import frozen

__all__ = [
    "ALL_BITS",
    "Api",
    "ApiError",
    "Dims",
    "GpuInfo",
    "Image",
    "OutOfDeviceMemory",
    "Packed",
    "Resources",
]

Dims = tuple[int, int, int]
"""Along x, y and z."""


class ApiError(Exception):
    """An operation that failed: CUDA's name for it, and what it says."""

    def __init__(self, name: str, text: str, *, is_sticky: bool = False) -> None:
        super().__init__(f"{name} ({text})")
        self.name = name
        self.is_sticky = is_sticky


class OutOfDeviceMemory(ApiError, MemoryError):
    """There is no room; nothing has changed."""


@frozen
class GpuInfo:
    """What is known of a device. `arch` is such as "sm_90"; sizes are in bytes; `shared_bytes` is what a
    block may have at most; `l2_bytes` are cached for all multiprocessors; `version` is the driver's, such as
    (12, 9)."""

    name: str
    arch: str
    version: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int
    l2_bytes: int


@frozen
class Resources:
    """What a loaded kernel takes: `registers` of each thread, `local_bytes` of memory of each thread's own,
    and `shared_bytes` of a block beside what a launch adds."""

    registers: int
    local_bytes: int
    shared_bytes: int


@frozen
class Image:
    """Compiled kernels: machine code for one architecture, or none, the PTX that it was made of, and what the
    assembler reported."""

    cubin: bytes
    ptx: str
    log: str = ""


class Packed:
    """The arguments of a launch, each of 8 bytes, where the driver reads them: `address` is that of a table
    of pointers to them. They are read while the launch is submitted, and may be changed after it."""

    __slots__ = ("_table", "address", "values")

    def __init__(self, values: Sequence[int]) -> None:
        count = max(len(values), 1)
        self.values = (ctypes.c_uint64 * count)(*(value & ALL_BITS for value in values))
        first = ctypes.addressof(self.values)
        self._table = (ctypes.c_void_p * count)(*range(first, first + 8 * count, 8))
        self.address = ctypes.addressof(self._table)


ALL_BITS = (1 << 64) - 1


class Api(Protocol):
    """Handles are those of the device that is `use`d by the thread when they are made. Operations raise
    ApiError."""

    def device_count(self) -> int: ...

    def info(self, ordinal: int) -> GpuInfo: ...

    def use(self, ordinal: int) -> None:
        """What this thread asks for from now on is of this device."""

    def release(self, ordinal: int) -> None:
        """Give back all that the device holds; all its handles are invalid."""

    def can_access_peer(self, ordinal: int, other: int) -> bool:
        """Whether kernels of a device can be given access to the memory of another."""

    def enable_peer_access(self, ordinal: int, other: int) -> None:
        """Give kernels of a device access to all memory of another, also to what is allocated later."""

    def ordinal_of(self, address: int) -> int:
        """The device that has this memory."""

    def alloc(self, nbytes: int, stream: int) -> int:
        """The address of memory with any contents, there once the stream has come here. Raises
        OutOfDeviceMemory."""

    def free(self, address: int, stream: int) -> None:
        """Give memory back once the stream has come here."""

    def pinned_alloc(self, nbytes: int) -> int:
        """The address of host memory that devices copy from and to."""

    def pinned_free(self, address: int) -> None: ...

    def h2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from pinned memory, which is read when the stream comes here."""

    def d2h(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to pinned memory."""

    def d2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within the device."""

    def peer(
        self, target: int, target_ordinal: int, source: int, source_ordinal: int, nbytes: int, stream: int
    ) -> None:
        """Copy from one device to another."""

    def memset(self, address: int, byte: int, nbytes: int, stream: int) -> None: ...

    def stream(self) -> int: ...

    def destroy_stream(self, stream: int) -> None:
        """What was submitted is still done."""

    def event(self) -> int: ...

    def destroy_event(self, event: int) -> None: ...

    def record(self, event: int, stream: int) -> None:
        """From now on the event means what the stream was given so far."""

    def wait(self, stream: int, event: int) -> None:
        """What the stream is given from now on starts after what the event means now; of any device."""

    def is_done(self, event: int) -> bool: ...

    def sync_event(self, event: int) -> None:
        """Block until what the event means is over."""

    def sync_stream(self, stream: int) -> None: ...

    def sync_device(self) -> None: ...

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events that are done."""

    def load(self, image: Image) -> int: ...

    def unload(self, module: int) -> None: ...

    def function(self, module: int, name: str, shared_bytes: int) -> int:
        """A kernel of a module, which may be launched with so much dynamic shared memory."""

    def resources(self, function: int) -> Resources:
        """What a kernel takes."""

    def launch(
        self, function: int, grid: Dims, block: Dims, shared_bytes: int, stream: int, arguments: Packed
    ) -> None: ...

    def begin_capture(self, stream: int) -> None:
        """What the stream is given from now on is noted, not done."""

    def end_capture(self, stream: int) -> int:
        """What was noted, as a graph that can be launched."""

    def graph_launch(self, graph: int, stream: int) -> None: ...

    def destroy_graph(self, graph: int) -> None: ...
