"""The memory of Arrays on a device."""

from __future__ import annotations

import numpy as np

from ..errors import DeletedArray, DeviceError
from ..runtime.device import Device
from ..runtime.memory import Purpose
from ..runtime.stream import Buffer

__all__ = ["Storage", "Values", "address_of", "bounds"]


class Values:
    """What memory holds: once `are_computed`, what it should."""

    __slots__ = ("are_computed",)

    def __init__(self, are_computed: bool = True) -> None:
        self.are_computed = are_computed

    def require(self) -> None:
        """Raises DeviceError where the call that should have computed them was stopped by an error."""
        if not self.are_computed:
            raise DeviceError(
                "an array has no values: the call that computes them, or one before it, was stopped",
                fix="mend the error that was raised, and call again",
            )


class Storage:
    """Memory of a device that Arrays, `shown` of them so far, show; `gone` says why there is none any more.
    With `is_donated` the next call may write a result there; with `is_borrowed` somebody else made it."""

    __slots__ = ("_buffer", "device", "gone", "is_borrowed", "is_donated", "shown", "values")

    def __init__(
        self, device: Device, buffer: Buffer, values: Values | None = None, is_borrowed: bool = False
    ) -> None:
        self.device = device
        self.is_borrowed = is_borrowed
        self.is_donated = False
        self.shown = 0
        self.values = values or Values()
        self.gone = ""
        self._buffer: Buffer | None = buffer

    @staticmethod
    def new(device: Device, nbytes: int, values: Values | None = None) -> Storage:
        """Memory with any contents."""
        return Storage(device, device.alloc_buffer(nbytes, Purpose.ARRAY, zeroed=False), values)

    @staticmethod
    def borrowed(device: Device, array: np.ndarray) -> Storage:
        """The memory of an array that somebody else made, and may use: NumPy, where the device's memory is
        the host's, or another library."""
        low, high = bounds(array)
        return Storage(device, device.borrow(low, high - low, array), is_borrowed=True)

    @property
    def buffer(self) -> Buffer:
        """Raises DeletedArray or DeviceError where there is none any more."""
        self.device.check_alive()
        if self._buffer is None:
            raise DeletedArray(f"the array was {self.gone}", fix="use a copy made before: x.copy()")
        return self._buffer

    def wait(self) -> None:
        """Block until nothing that was submitted uses the memory. Raises what work on it raised."""
        buffer = self.buffer
        if self.is_borrowed:
            # Other buffers may stand for the same memory.
            self.device.await_()
        buffer.sync()
        self.values.require()

    def donated(self) -> Storage:
        """The same memory, for one call."""
        storage = Storage(self.device, self.buffer, self.values, self.is_borrowed)
        storage.is_donated = not self.is_borrowed
        self.drop("donated")
        return storage

    def taken(self) -> Storage:
        """The memory that was donated, for the results of the call that takes it."""
        storage = Storage(self.device, self.buffer, Values(are_computed=False))
        self.drop("donated")
        return storage

    def drop(self, why: str) -> None:
        """Give the memory back, once nothing that was submitted uses it."""
        self.gone = why
        self._buffer = None


def address_of(layout: np.ndarray) -> int:
    """Where the first element is."""
    address: int = layout.__array_interface__["data"][0]
    return address


def bounds(layout: np.ndarray) -> tuple[int, int]:
    """The addresses of the lowest byte, and after the highest."""
    if layout.size == 0:
        return address_of(layout), address_of(layout)
    low, high = np.lib.array_utils.byte_bounds(layout)
    return int(low), int(high)
