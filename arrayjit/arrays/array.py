"""The user's array: a NumPy array that lives in a device's memory.

    a = arrayjit.asarray(x, device="llvm")
    b = np.sqrt(a) + a[::-1]            # runs on the device, compiled, in the background
    b.numpy()                           # waits

Views are made here, of the layout alone. Whatever computes is compiled: see `eager`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..backends import backend, device_named, target_in_use
from ..errors import DTypeError
from ..ir.dtype import from_numpy
from ..runtime.device import Device
from ..runtime.driver import SharedDriver
from ..runtime.stream import Buffer
from ..settings import default_target
from ..tracer.calls.binding import array_at
from ..tracer.record.foreign import needs_copy
from ..tracer.record.resident import Resident
from . import exchange
from .storage import Storage, Values, address_of, bounds

__all__ = ["Array", "Namespace", "as_device", "asarray", "donate", "from_dlpack"]


_MAKERS = frozenset(
    ("arange", "array", "empty", "eye", "full", "identity", "linspace", "ones", "tri", "zeros")
)
"""Functions that make arrays from none."""


class Array(NDArrayOperatorsMixin, Resident):
    """An array in the memory of a device. `arrayjit.asarray` makes it from NumPy's.

    It has ndarray's operators, methods and indexing; they run compiled, on the device, and give Arrays. What
    is a NumPy scalar in NumPy is a read-only Array of shape ().
    """

    __slots__ = ("__weakref__", "_exported", "storage")

    evaluate: ClassVar[Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]]
    """Call a function compiled. `eager` sets it: it needs the compiler, whose calls make Arrays."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The methods of ndarray that `eager` adds."""

    def __init__(self, storage: Storage, layout: np.ndarray) -> None:
        self.storage = storage
        storage.shown += 1
        self.layout = layout
        self._exported: Buffer | None = None

    @property
    def place(self) -> tuple[Device, bool]:
        storage = self.storage
        storage.buffer  # noqa: B018
        return storage.device, storage.is_donated

    @property
    def place_name(self) -> str:
        return f"{self.storage.device.name}{', donated' if self.storage.is_donated else ''}"

    @property
    def is_alone(self) -> bool:
        return self.storage.shown == 1 and not self.storage.is_borrowed

    @property
    def device(self) -> Device:
        """The device that has the array's memory."""
        return self.storage.device

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.layout.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self.layout.strides

    @property
    def ndim(self) -> int:
        return self.layout.ndim

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def itemsize(self) -> int:
        return self.layout.itemsize

    @property
    def nbytes(self) -> int:
        return self.layout.nbytes

    @property
    def T(self) -> Array:  # noqa: N802
        """The view with the axes reversed."""
        return self._view(self.layout.T)

    @property
    def mT(self) -> Array:  # noqa: N802
        """The view with the last two axes exchanged."""
        return self._view(self.layout.mT)

    @property
    def real(self) -> Array:
        """The real parts: a view; of a real array, itself."""
        return self._view(self.layout.real)

    @property
    def imag(self) -> Array:
        """The imaginary parts: a view; of a real array, zeros."""
        if self.dtype.kind == "c":
            return self._view(self.layout.imag)
        zeros: Array = Array.evaluate(np.imag, (self,), {})
        return zeros

    def block_until_ready(self) -> Array:
        """Wait for all work on the array's memory. Raises what that work raised."""
        self.storage.wait()
        return self

    def numpy(self) -> np.ndarray:
        """The values, once they are there: on devices of the host the memory itself, elsewhere a copy."""
        self.block_until_ready()
        layout, buffer = self.layout, self.storage.buffer
        if self.device.driver.is_host:
            return self._exported_layout()
        start = address_of(layout)
        low, high = bounds(layout)
        host = np.empty(high - low, np.uint8)
        read(self.device, buffer, low, host)
        values: np.ndarray = np.ndarray(layout.shape, layout.dtype, host, start - low, layout.strides)
        return values

    def to(self, device: Device | str) -> Array:
        """The array on another device: a copy in C's order; itself if it is there."""
        target = as_device(device)
        if target is self.device:
            return self
        return (self if self.layout.flags.c_contiguous else self.copy()).sent(target)

    def sent(self, target: Device) -> Array:
        """A copy in C's order on a device, also on this one, made of pieces that lie in a row."""
        layout, origin, source = self.layout, self.storage.buffer, self.device.driver
        needed, made = self.storage.values, Values(are_computed=False)
        storage = Storage.new(target, self.nbytes, made)
        buffer = storage.buffer
        depth = next(n for n in range(self.ndim + 1) if layout[(0,) * n + (...,)].flags.c_contiguous)
        places = [address_of(layout[index]) for index in np.ndindex(self.shape[:depth])]
        piece = self.nbytes // max(len(places), 1)

        def task() -> None:
            needed.require()
            for number, place in enumerate(places):
                at, start = buffer.offset + number * piece, place - origin.address + origin.offset
                target.driver.copy(buffer.pool.memory, at, source, origin.pool.memory, start, piece)
            made.are_computed = True

        target.stream.submit(task, f"copy from {self.device.name}", (origin,), (buffer,))
        return Array(storage, array_at(buffer.address, self.shape, self.dtype))

    def copy(self, order: str = "C") -> Array:
        """A copy on the same device."""
        copied: Array = Array.evaluate(np.copy, (self,), {"order": order})
        return copied

    def delete(self) -> None:
        """Give the memory back once the work on it is over; neither this array nor its views can be used."""
        self.storage.drop("deleted")

    def item(self, *index: Any) -> Any:
        """One element as a Python number."""
        return self.numpy().item(*index)

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return self.numpy().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' bytes."""
        return self.numpy().tobytes(order)

    def __getitem__(self, key: Any) -> Any:
        parts = _parts(key)
        if not _is_basic(parts):
            return Array.evaluate(_selected, (self, _traceable(parts)), {})
        view = self._view(self.layout[(*parts, ...) if Ellipsis not in parts else parts])
        return view if view.ndim or Ellipsis in parts else _as_scalar(view.copy())

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = _parts(key)
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.dtype if not value else None)
        if _is_basic(parts):
            part = self._view(self.layout[(*parts, ...) if Ellipsis not in parts else parts])
            Array.evaluate(_fill, (part, value), {})
        else:
            Array.evaluate(_write, (self, _traceable(parts), value), {})

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.get("out")
        if outs is not None and len(outs) == 1:
            kwargs["out"] = outs[0]
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return Array.evaluate(function, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return Array.evaluate(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and not self.device.driver.is_host:
            raise ValueError(f"an array on {self.device.name} cannot be a NumPy array without a copy")
        return np.array(self.numpy(), dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self.device.driver.is_host:
            raise AttributeError(f"an array on {self.device.name} is not in the host's memory")
        self.block_until_ready()
        # Who asks keeps this array alive, not the buffer.
        self._exported = self.storage.buffer
        return self.layout.__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if (self.device.driver.dlpack_device(self.device.ordinal) or (0,))[0] != exchange.CUDA:
            raise AttributeError(f"an array on {self.device.name} is not in a GPU's memory")
        return exchange.interface_of(self._exported_layout())

    def __dlpack__(self, **options: Any) -> Any:
        kind, ordinal = self.__dlpack_device__()
        if kind == exchange.CPU:
            return self.numpy().__dlpack__(**options)
        return exchange.capsule_of(self._exported_layout(), ordinal, options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device.driver.dlpack_device(self.device.ordinal)
        if device is None:
            raise BufferError(f"an array on {self.device.name} is in no memory that other libraries can use")
        return device

    def __array_namespace__(self, *, api_version: Any = None) -> Namespace:
        np.empty(0).__array_namespace__(api_version=api_version)
        return Namespace(self.device)

    def __len__(self) -> int:
        return len(self.layout)

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        return operator.index(self.numpy())

    def __format__(self, spec: str) -> str:
        return format(self.numpy()[()], spec)

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        place = f", device={self.device.name!r})"
        if self.storage.gone:
            return f"Array({self.storage.gone}, shape={self.shape}, dtype={self.dtype}{place}"
        return f"A{np.array_repr(self.numpy())[1:-1]}{place}"

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def __reduce__(self) -> Any:
        """On paper an array is its values; it comes back on the default device."""
        return asarray, (np.array(self.numpy()),)

    def _view(self, layout: np.ndarray) -> Array:
        return Array(self.storage, layout)

    def _exported_layout(self) -> np.ndarray:
        """The array as others are shown it, once it is computed; it keeps the memory alive."""
        self.block_until_ready()
        layout = self.layout
        return array_at(
            address_of(layout),
            layout.shape,
            layout.dtype,
            layout.strides,
            owner=self.storage.buffer,
            writeable=layout.flags.writeable,
        )


class Namespace:
    """NumPy's functions as the array API wants them: those that make arrays make them on the device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in _MAKERS:
            return function

        def make(*args: Any, device: Any = None, **kwargs: Any) -> Array:
            return asarray(function(*args, **kwargs), device=device or self._device)

        return make

    def asarray(self, x: Any, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        """`arrayjit.asarray`."""
        return asarray(x, dtype, device or self._device, copy)

    def from_dlpack(self, x: Any, device: Any = None) -> Array:
        """`arrayjit.from_dlpack`."""
        return from_dlpack(x, device or self._device)


def as_device(device: Device | str | None) -> Device:
    """A device by its name, "llvm" or "llvm:0"; None is the first of the target in use."""
    if isinstance(device, Device):
        return device
    in_use = target_in_use()
    return device_named(next((name for name in (device, in_use) if name is not None), default_target()))


def asarray(x: Any, dtype: Any = None, device: Device | str | None = None, copy: bool | None = None) -> Array:
    """An Array with the values of `x`, on the device that it is on, or else on the default target's first.

    As in NumPy, memory is shared where it can be, unless `copy` is true: with an Array that is there already,
    on devices of the host with a NumPy array, and on GPUs with arrays of other libraries, which show them by
    `__dlpack__` or `__cuda_array_interface__`. With `copy=False` ValueError is raised where it can't.
    """
    if type(x) is not np.ndarray and not isinstance(x, Array) and exchange.is_foreign(x):
        x = _on_gpu(x, device)
    if isinstance(x, Array):
        target = x.device if device is None else as_device(device)
        wanted = x.dtype if dtype is None else np.dtype(dtype)
        if x.dtype == wanted and target is x.device:
            return x.copy() if copy else x
        _require_copy(copy)
        return x.to(target) if x.dtype == wanted else x.astype(wanted).to(target)
    target = as_device(device)
    host = np.asarray(x, dtype)
    if not host.dtype.isnative:
        raise DTypeError(
            f"{host.dtype} numbers are not in the machine's byte order",
            fix="convert them: x.astype(x.dtype.newbyteorder('='))",
        )
    from_numpy(host.dtype)
    is_shared = target.driver.is_host and not copy and not needs_copy(host)
    if not is_shared or (host.base is not x and host is not x):
        _require_copy(copy)
    if is_shared:
        return Array(Storage.borrowed(target, host), host.view())
    storage = Storage.new(target, host.nbytes)
    target.upload(storage.buffer, np.ascontiguousarray(host)).sync()
    return Array(storage, array_at(storage.buffer.address, host.shape, host.dtype))


def from_dlpack(x: Any, device: Device | str | None = None) -> Array:
    """An Array that shares the memory of an array of any library, of a CPU or a GPU; a copy on a device with
    other memory."""
    return asarray(x if exchange.is_foreign(x) else np.from_dlpack(x), device=device)


def _on_gpu(x: Any, device: Device | str | None) -> Array:
    """An Array of the memory that another library has on a GPU."""
    wanted = None if device is None else as_device(device)
    if wanted is None or not isinstance(wanted.driver, SharedDriver):
        wanted = backend("cuda").get_device()
    driver = wanted.driver
    assert isinstance(driver, SharedDriver)
    found = exchange.foreign_array(x, driver.lend)
    ordinal = found.ordinal
    if ordinal is None:
        ordinal = driver.ordinal_of(address_of(found.layout)) if found.layout.size else wanted.ordinal
    if found.stream is not None:
        driver.follow(ordinal, found.stream)
    here = wanted if wanted.ordinal == ordinal else backend("cuda").get_device(ordinal)
    return Array(Storage.borrowed(here, found.layout), found.layout)


def donate(x: Array) -> Array:
    """The array for one call, which may write a result into its memory: `x` and its views are unusable from
    now on, and what is returned is so after the call."""
    if not isinstance(x, Array):
        raise TypeError(f"donate takes an Array, not {type(x).__name__}")
    return Array(x.storage.donated(), x.layout)


def read(device: Device, buffer: Buffer, start: int, host: np.ndarray) -> None:
    """Copy from an address in a buffer into a C-ordered host array, and wait."""
    memory, offset = buffer.pool.memory, start - buffer.address + buffer.offset
    device.stream.submit(
        lambda: device.driver.download(memory, offset, host), "download", reads=(buffer,)
    ).sync()


def _require_copy(copy: bool | None) -> None:
    if copy is False:
        raise ValueError("the values cannot be had without a copy")


def _as_scalar(array: Array) -> Array:
    """What is a NumPy scalar in NumPy: an array that cannot be written."""
    array.layout.flags.writeable = False
    return array


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_basic(parts: tuple[Any, ...]) -> bool:
    """Whether the key selects a view."""
    return all(
        part is None or part is Ellipsis or isinstance(part, (slice, np.integer)) or type(part) is int
        for part in parts
    )


def _traceable(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key as nested tuples, which the numbers of slices are arguments of."""
    return tuple(
        (part.start, part.stop, part.step)
        if isinstance(part, slice)
        else np.asarray(part)
        if isinstance(part, list)
        else part
        for part in parts
    )


def _key(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([slice(*part) if isinstance(part, tuple) else part for part in parts])


def _selected(array: Any, parts: tuple[Any, ...]) -> Any:
    return array[_key(parts)]


def _write(array: Any, parts: tuple[Any, ...], value: Any) -> None:
    array[_key(parts)] = value


def _fill(array: Any, value: Any) -> None:
    array[...] = value
