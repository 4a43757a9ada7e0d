"""Devices: the same plain object for every driver, and the machine, which is all devices of one driver."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from itertools import count

import numpy as np

from ..errors import BackendUnavailable, DeviceError, LinkError, OutOfMemory
from ..ir.code import Code
from ..ir.tensor import Tensor
from ..locks import reentrant_lock
from .driver import Driver
from .memory import Pool, Purpose
from .merge import MergeBuffers
from .procedure import Procedure, Workspaces
from .stream import Buffer, Event, Events, Stream

__all__ = ["Device", "Machine"]

_device_ids = count()


class Device:
    """A device of a driver, or a virtual one: another that shares the hardware of device `ordinal`, with
    streams, memory and merge buffers of its own.

    `limit` bounds the bytes in its pools.
    """

    def __init__(self, driver: Driver, ordinal: int, subordinal: int = 0, limit: int | None = None) -> None:
        self.driver = driver
        self.ordinal = ordinal
        self.subordinal = subordinal
        self.device_id = next(_device_ids)
        self.limit = limit
        self.is_alive = True
        self._lock = reentrant_lock()
        self._pool_numbers = count()
        self._stream_numbers = count()
        self._bytes = dict.fromkeys(Purpose, 0)
        self._constants: weakref.WeakValueDictionary[Tensor, Buffer] = weakref.WeakValueDictionary()
        self._workspaces = Workspaces(
            lambda nbytes: self.alloc_buffer(nbytes, Purpose.WORKSPACE, zeroed=False), driver.order
        )
        self._merge_buffers: weakref.WeakKeyDictionary[Stream, MergeBuffers] = weakref.WeakKeyDictionary()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self.stream = self.new_stream()

    @property
    def name(self) -> str:
        """`llvm:0`; of virtual devices `llvm:0.1`."""
        return f"{self.driver.name}:{self.ordinal}" + (f".{self.subordinal}" if self.subordinal else "")

    @property
    def static_properties(self) -> Mapping[str, str | int]:
        """What is known of the hardware without running anything."""
        return self.driver.static_properties(self.ordinal)

    def reaches(self, other: Device) -> bool:
        """Whether code on this device can use the other's memory: on hosts, on one hardware, and on GPUs that
        have peer access, which `enable_access` asks for."""
        if self.driver is other.driver:
            return self.ordinal == other.ordinal or self.driver.reaches(self.ordinal, other.ordinal)
        return self.driver.is_host and other.driver.is_host

    def enable_access(self, other: Device) -> None:
        """Let code on this device use the memory of the other, which it reaches."""
        if self.driver is other.driver and self.ordinal != other.ordinal:
            self.driver.enable_access(self.ordinal, other.ordinal)

    def new_stream(self) -> Stream:
        """Another queue of work. `stream` is the device's first, which work is on by default."""
        self.check_alive()
        number = next(self._stream_numbers)
        name = f"{self.name}" + (f" stream {number}" if number else "")
        stream = Stream(name, number, self.driver.queue(self.ordinal, name))
        self._streams.add(stream)
        return stream

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams in use, the oldest first."""
        return tuple(sorted(self._streams, key=lambda stream: stream.number))

    def all_work(self) -> Events:
        """The event of everything submitted so far, on all streams."""
        return Events(tuple(stream.record() for stream in self.streams))

    def await_(self) -> None:
        """Block until all submitted work is over. Raises what a task raised."""
        for stream in self.streams:
            stream.await_()

    def sync_device(self) -> None:
        """As `await_`. Bookkeeping about finished work needs no clearing: it does not grow."""
        self.await_()

    def is_idle(self) -> bool:
        """Whether no submitted work is left."""
        return all(stream.is_idle() for stream in self.streams)

    def load(self, code: Code) -> Procedure:
        """Code ready to be launched. Raises LinkError for another target's."""
        self.check_alive()
        threads = self.driver.threads(self.ordinal, code.threads)
        return Procedure(code, self.driver.load(code, self.ordinal), threads, self._workspaces, self._read)

    def _read(self, buffer: Buffer, start: int, array: np.ndarray) -> np.ndarray:
        """A part of a buffer, copied into the array, which is returned."""
        self.driver.download(buffer.pool.memory, buffer.offset + start, array)
        return array

    def alloc_pool(self, nbytes: int, purpose: Purpose, what: str = "", *, zeroed: bool = True) -> Pool:
        """A slab, aligned to 64 bytes. Raises OutOfMemory, which says for `what`; the device stays usable."""
        self.check_alive()
        pool = self._new_pool(nbytes, purpose)
        if pool is None:
            self._workspaces.drop_idle()
            gc.collect()
            pool = self._new_pool(nbytes, purpose)
        if pool is None:
            used = ", ".join(f"{p.value} {n:,}" for p, n in self._bytes.items() if n) or "nothing"
            raise OutOfMemory(
                f"{self.name} has no room for the {nbytes:,} bytes of {what or purpose.value}",
                details=(f"in use: {used}",),
                fix="finalize contexts that are not needed, or use smaller arrays",
            )
        if zeroed:
            self.driver.memset_zero(pool.memory, 0, nbytes)
        return pool

    def alloc_buffer(self, nbytes: int, purpose: Purpose, what: str = "", *, zeroed: bool = True) -> Buffer:
        """A buffer in a slab of its own."""
        return Buffer(self.alloc_pool(nbytes, purpose, what, zeroed=zeroed), 0, nbytes)

    def borrow(self, address: int, nbytes: int, owner: object) -> Buffer:
        """A buffer in memory that is the owner's, not the device's to count or to free."""
        self.check_alive()
        memory = self.driver.borrow(self.ordinal, address, nbytes, owner)
        with self._lock:
            number = next(self._pool_numbers)
        return Buffer(Pool(self.device_id, number, memory, nbytes, Purpose.ARRAY, lambda *_: None), 0, nbytes)

    def constant(self, tensor: Tensor, array: np.ndarray) -> Buffer:
        """The device's one buffer of a constant tensor, for as long as any context has it. Raises LinkError
        if it has other values there."""
        with self._lock:
            buffer = self._constants.get(tensor)
            if buffer is None:
                buffer = self.alloc_buffer(array.nbytes, Purpose.CONSTANT, tensor.label, zeroed=False)
                self.fill(buffer, array)
                self._constants[tensor] = buffer
                return buffer
        held = np.empty(array.shape, array.dtype)
        self.driver.download(buffer.pool.memory, buffer.offset, held)
        if held.tobytes() != array.tobytes():
            raise LinkError(
                f"the constant {tensor.label} has other values on {self.name}",
                fix="give it as initial instead: then each context has its own",
            )
        return buffer

    def fill(self, buffer: Buffer, array: np.ndarray) -> None:
        """Copy an array into a new buffer, which nothing else knows yet, at once."""
        self.driver.upload(buffer.pool.memory, buffer.offset, np.ascontiguousarray(array))
        buffer.is_filled = True

    def upload(self, buffer: Buffer, array: np.ndarray, stream: Stream | None = None) -> Event:
        """Copy a C-ordered host array, which must stay as it is until the event, into a buffer."""
        memory, offset = buffer.pool.memory, buffer.offset
        return (stream or self.stream).submit(
            lambda: self.driver.upload(memory, offset, array), "upload", writes=(buffer,)
        )

    def download(self, buffer: Buffer, array: np.ndarray, stream: Stream | None = None) -> Event:
        """Copy a buffer into a C-ordered host array, which has the values at the event."""
        memory, offset = buffer.pool.memory, buffer.offset
        return (stream or self.stream).submit(
            lambda: self.driver.download(memory, offset, array), "download", reads=(buffer,)
        )

    def merge_buffers(self, stream: Stream) -> MergeBuffers:
        """The merge buffers of one of the device's streams."""
        with self._lock:
            found = self._merge_buffers.get(stream)
            if found is None:
                found = self._merge_buffers[stream] = MergeBuffers(
                    lambda nbytes: self.alloc_buffer(nbytes, Purpose.MERGE, zeroed=False)
                )
            return found

    def get_used_memory(self) -> int:
        """Bytes in pools."""
        return sum(self._bytes.values())

    def memory_by_purpose(self) -> Mapping[Purpose, int]:
        """Bytes in pools, by what they are for."""
        return dict(self._bytes)

    def get_debug_info(self) -> Mapping[str, object]:
        """The state of the device now."""
        return {
            **self.driver.debug_info(self.ordinal),
            "name": self.name,
            "streams": {stream.name: stream.submitted - stream.queue.done for stream in self.streams},
            "bytes": {purpose.value: nbytes for purpose, nbytes in self._bytes.items()},
        }

    def check_alive(self) -> None:
        """Raises DeviceError after the machine was cleaned up."""
        if not self.is_alive:
            raise DeviceError(f"{self.name} is closed", fix="get the device anew, after reinitialize()")

    def close(self) -> None:
        """Finish all work; from then on the device is dead."""
        self.is_alive = False
        for stream in self.streams:
            stream.queue.close()

    def _freed(self, nbytes: int, purpose: Purpose) -> None:
        with self._lock:
            self._bytes[purpose] -= nbytes

    def _new_pool(self, nbytes: int, purpose: Purpose) -> Pool | None:
        """None when there is no room."""
        with self._lock:
            if self.limit is not None and self.get_used_memory() + nbytes > self.limit:
                return None
            try:
                memory = self.driver.allocate(self.ordinal, nbytes)
            except MemoryError:
                return None
            self._bytes[purpose] += nbytes
            return Pool(self.device_id, next(self._pool_numbers), memory, nbytes, purpose, self._freed)

    def __repr__(self) -> str:
        return f"Device({self.name})"


class Machine:
    """All devices of one driver. Two machines share nothing."""

    def __init__(self, make_driver: Callable[[], Driver], limit: int | None = None) -> None:
        self._make_driver = make_driver
        self._limit = limit
        self._lock = reentrant_lock()
        self._devices: dict[tuple[int, int], Device] = {}
        self._driver: Driver | None = None
        self.initialize()

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            raise DeviceError("the backend was cleaned up", fix="call initialize()")
        return self._driver

    def initialize(self) -> None:
        """Make the driver; nothing if it is there."""
        with self._lock:
            if self._driver is None:
                self._driver = self._make_driver()

    def is_initialized(self) -> bool:
        return self._driver is not None

    def unsafe_cleanup(self) -> None:
        """Finish all work and give everything back. All devices, contexts and routines become invalid."""
        with self._lock:
            devices, self._devices = self._devices, {}
            for device in devices.values():
                device.close()
            if self._driver is not None:
                self._driver.close()
            self._driver = None

    def reinitialize(self) -> None:
        """As new."""
        self.unsafe_cleanup()
        gc.collect()
        self.initialize()

    def num_devices(self) -> int:
        """How many physical devices there are."""
        return self.driver.num_devices()

    def get_device(self, ordinal: int = 0) -> Device:
        """The device, always the same object. Raises BackendUnavailable when there is none."""
        there = self.num_devices()
        if not 0 <= ordinal < there:
            name = self.driver.name
            raise BackendUnavailable(f"{name} has no device {ordinal}", fix=f"choose one below {there}")
        with self._lock:
            device = self._devices.get((ordinal, 0))
            if device is None:
                device = self._devices[ordinal, 0] = Device(self.driver, ordinal, limit=self._limit)
            return device

    def new_virtual_device(self, device: Device) -> Device:
        """Another device on the hardware of this one."""
        device.check_alive()
        with self._lock:
            subordinal = sum(ordinal == device.ordinal for ordinal, _ in self._devices)
            made = Device(self.driver, device.ordinal, subordinal, limit=self._limit)
            self._devices[device.ordinal, subordinal] = made
            return made

    def devices(self) -> tuple[Device, ...]:
        """Every physical device."""
        return tuple(self.get_device(ordinal) for ordinal in range(self.num_devices()))

    def get_global_debug_info(self) -> Mapping[str, object]:
        """The state of all devices in use now."""
        return {device.name: device.get_debug_info() for device in self._devices.values()}
