"""Arrays on GPUs, shared with other libraries: DLPack and the CUDA array interface, without copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import DeviceError, DTypeError, UnsupportedError
from arrayjit.runtime.cuda.driver import SimulatedDriver
from arrayjit.runtime.device import Device, Machine

VALUES = np.arange(24.0).reshape(4, 6)


class SharedSimulation(SimulatedDriver):
    """Simulated GPUs that say of themselves what real ones say."""

    def dlpack_device(self, ordinal: int) -> tuple[int, int]:
        return 2, ordinal


@pytest.fixture(params=range(3))
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    machine = Machine(lambda: SharedSimulation("cuda-sim", seed=request.param, memory_bytes=1 << 24))
    yield machine.get_device(0)
    machine.unsafe_cleanup()


class ByInterface:
    """Another library's array, which only has the CUDA array interface."""

    def __init__(self, array: arrayjit.Array, **changed: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}
        self.kept = array


class ByDlpack:
    """Another library's array, which only has DLPack, of the first version."""

    def __init__(self, array: arrayjit.Array) -> None:
        self.array = array
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)


class ByNewDlpack(ByDlpack):
    """As of the second."""

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, max_version=max_version)


LIBRARIES = [ByInterface, ByDlpack, ByNewDlpack]


def address(array: arrayjit.Array) -> int:
    where: int = array.__cuda_array_interface__["data"][0]
    return where


@pytest.mark.parametrize("library", LIBRARIES)
def test_memory_is_shared_both_ways(device: Device, library: Any) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    shared = arrayjit.asarray(library(own), device=device)
    assert address(shared) == address(own)
    assert (shared.shape, shared.dtype, shared.device) == (own.shape, own.dtype, device)
    np.testing.assert_array_equal(shared.numpy(), VALUES)
    device.upload(own.storage.buffer, -VALUES).sync()
    np.testing.assert_array_equal(shared.numpy(), -VALUES)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "part", [np.s_[::2], np.s_[:, 1::2], np.s_[::-1, ::-2], np.s_[1], np.s_[2:2], np.s_[..., None]]
)
def test_arrays_need_not_be_contiguous(device: Device, library: Any, part: Any) -> None:
    shared = arrayjit.asarray(library(arrayjit.asarray(VALUES, device=device)[part]), device=device)
    np.testing.assert_array_equal(shared.numpy(), VALUES[part])


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f4", "f8"])
def test_dtypes_survive(device: Device, dtype: str) -> None:
    values = np.arange(6).astype(dtype)
    own = arrayjit.asarray(values, device=device)
    for library in LIBRARIES:
        shared = arrayjit.asarray(library(own), device=device)
        assert shared.dtype == values.dtype
        np.testing.assert_array_equal(shared.numpy(), values)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_shares_memory_keeps_it(device: Device, library: Any) -> None:
    shared = arrayjit.asarray(library(arrayjit.asarray(VALUES, device=device)), device=device)
    for _ in range(3):
        arrayjit.asarray(-VALUES, device=device)
    np.testing.assert_array_equal(shared.numpy(), VALUES)
    used = device.get_used_memory()
    del shared
    assert device.get_used_memory() < used


def test_the_interface_is_version_3(device: Device) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    interface = own.__cuda_array_interface__
    assert interface["version"] == 3
    assert (interface["shape"], interface["typestr"]) == ((4, 6), "<f8")
    assert interface["strides"] is None
    assert interface["stream"] is None  # the values are there
    assert interface["data"][1] is False
    assert own[:, ::2].__cuda_array_interface__["strides"] == (48, 16)
    assert own[:0].__cuda_array_interface__["data"][0] == 0
    assert own.__dlpack_device__() == (2, 0)


def test_work_of_another_librarys_stream_comes_first(device: Device) -> None:
    own = arrayjit.asarray(np.zeros(8), device=device)
    api = device.driver.api
    api.use(0)
    stream, pinned = api.stream(), api.pinned_alloc(64)
    api.memset(address(own), 0, 64, stream)
    api.d2d(address(own), address(arrayjit.asarray(np.arange(8.0), device=device)), 64, stream)
    shared = arrayjit.asarray(ByInterface(own, stream=stream), device=device)
    np.testing.assert_array_equal(shared.numpy(), np.arange(8.0))
    api.pinned_free(pinned)


def test_dlpack_is_given_the_stream_that_will_read(device: Device) -> None:
    library = ByDlpack(arrayjit.asarray(VALUES, device=device))
    arrayjit.from_dlpack(library, device=device)
    assert library.streams == [device.driver.lend(0)]


def test_read_only_memory_stays_so(device: Device) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    shared = arrayjit.asarray(ByInterface(own, data=(address(own), True)), device=device)
    assert shared.__cuda_array_interface__["data"][1] is True


def test_a_copy_is_made_where_it_is_asked_for(device: Device) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    with pytest.raises(ValueError, match="without a copy"):
        arrayjit.asarray(ByInterface(own), dtype=np.float32, device=device, copy=False)


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"mask": 1}, UnsupportedError), ({"typestr": ">f8"}, DTypeError), ({"typestr": "<M8[s]"}, DTypeError)],
)
def test_what_cannot_be_used_is_refused(device: Device, changed: dict[str, Any], error: type) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    with pytest.raises(error):
        arrayjit.asarray(ByInterface(own, **changed), device=device)


def test_memory_of_no_device_is_refused(device: Device) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    with pytest.raises(DeviceError, match="is no address of a device"):
        arrayjit.asarray(ByInterface(own, data=(64, False)), device=device)


def test_exports_that_cannot_be_are_refused(device: Device) -> None:
    own = arrayjit.asarray(VALUES, device=device)
    for options in ({"dl_device": (1, 0)}, {"dl_device": (2, 1)}, {"copy": True}):
        with pytest.raises(BufferError):
            own.__dlpack__(**options)


def test_simulated_memory_is_for_nobody_else() -> None:
    machine = Machine(lambda: SimulatedDriver("cuda-sim", memory_bytes=1 << 24))
    own = arrayjit.asarray(VALUES, device=machine.get_device(0))
    assert not hasattr(own, "__cuda_array_interface__")
    assert not hasattr(own, "__array_interface__")
    with pytest.raises(BufferError, match="in no memory that other libraries can use"):
        own.__dlpack__()
    np.testing.assert_array_equal(np.asarray(own), VALUES)
    machine.unsafe_cleanup()
