"""Arrays on GPUs, shared with other libraries without a copy: by DLPack and by the CUDA array interface.

Both describe memory as NumPy describes its own, so that NumPy reads and writes the descriptions: here it is
told that the memory is a CPU's, and there others are told the truth. Nothing looks at the memory.

DLPack's structures: https://dmlc.github.io/dlpack/latest/c_api.html. The interface, version 3:
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..frozen import frozen_by_identity
from ..tracer.calls.binding import array_at

__all__ = ["CPU", "CUDA", "Foreign", "capsule_of", "foreign_array", "interface_of", "is_foreign"]

CPU, CUDA = 1, 2
"""Kinds of devices, in DLPack's words."""


@frozen_by_identity
class Foreign:
    """An array of another library, on GPU number `ordinal`, or on the one that its address is of. `stream` is
    a stream of CUDA's after whose work the values are there; None if they are there now."""

    layout: np.ndarray
    ordinal: int | None
    stream: int | None


def is_foreign(x: Any) -> bool:
    """Whether this is an array on a GPU, by one of the two protocols."""
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) == CUDA
    return hasattr(x, "__cuda_array_interface__")


def foreign_array(x: Any, stream_of: Callable[[int], int]) -> Foreign:
    """The array. By DLPack its library sees to it that the values are there for what the stream that is named
    for its GPU is given from now on."""
    if hasattr(x, "__dlpack__"):
        ordinal = int(x.__dlpack_device__()[1])
        passed = _Passed(x, stream_of(ordinal))
        layout = np.from_dlpack(passed)
        return Foreign(layout if passed.is_versioned else _writeable(layout), ordinal, None)
    return _described(x, x.__cuda_array_interface__)


def interface_of(layout: np.ndarray) -> dict[str, Any]:
    """The CUDA array interface of an array that is there now."""
    interface = layout.__array_interface__
    address, is_read_only = interface["data"]
    return {
        "version": 3,
        "shape": layout.shape,
        "typestr": interface["typestr"],
        "data": (address if layout.size else 0, is_read_only),
        "strides": None if layout.flags.c_contiguous else layout.strides,
        "stream": None,
    }


def capsule_of(layout: np.ndarray, ordinal: int, options: Mapping[str, Any]) -> Any:
    """DLPack's capsule of an array on GPU number `ordinal` that is there now. Raises BufferError for what
    DLPack has no words for."""
    wanted = options.get("dl_device")
    if wanted is not None and tuple(wanted) != (CUDA, ordinal):
        raise BufferError(f"the array is on device {(CUDA, ordinal)}, not on {tuple(wanted)}")
    if options.get("copy"):
        raise BufferError("the array is exported without a copy only")
    version = options.get("max_version")
    capsule = layout.__dlpack__() if version is None else layout.__dlpack__(max_version=version)
    _relabel(capsule, CUDA, ordinal)
    return capsule


class _Passed:
    """An array of another library, as NumPy is to see it."""

    def __init__(self, array: Any, stream: int) -> None:
        self._array = array
        self._stream = stream
        self.is_versioned = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, **options: Any) -> Any:
        version = options.get("max_version")
        try:
            capsule = self._array.__dlpack__(stream=self._stream, max_version=version)
        except TypeError:  # of a library that knows the first version only
            capsule = self._array.__dlpack__(stream=self._stream)
        self.is_versioned = bool(_is_valid(capsule, b"dltensor_versioned"))
        _relabel(capsule, CPU, 0)
        return capsule


def _described(x: Any, interface: Mapping[str, Any]) -> Foreign:
    """What the CUDA array interface says."""
    if interface.get("mask") is not None:
        raise UnsupportedError(
            "an array with a mask cannot be used", fix="fill what is masked, and pass that"
        )
    address, is_read_only = interface["data"]
    dtype = np.dtype(interface["typestr"])
    if not dtype.isnative or dtype.kind not in "biufc":
        raise DTypeError(f"{dtype} numbers cannot be used on a GPU", fix="convert them first")
    strides = interface.get("strides")
    layout = array_at(
        address,
        tuple(interface["shape"]),
        dtype,
        None if strides is None else tuple(strides),
        owner=x,
        writeable=not is_read_only,
    )
    return Foreign(layout, None, interface.get("stream"))


def _writeable(layout: np.ndarray) -> np.ndarray:
    """The first version of DLPack does not say whether memory may be written, which NumPy takes for a no."""
    address: int = layout.__array_interface__["data"][0]
    return array_at(address, layout.shape, layout.dtype, layout.strides, owner=layout)


def _relabel(capsule: Any, kind: int, ordinal: int) -> None:
    """Say of which device the memory of a capsule is."""
    for name, place in ((b"dltensor", 8), (b"dltensor_versioned", 40)):
        if _is_valid(capsule, name):
            device = (ctypes.c_int32 * 2).from_address(_pointer(capsule, name) + place)
            device[:] = [kind, ordinal]
            return
    raise BufferError("DLPack's capsule is of a kind that is not known")


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
