"""A context: which buffer of a device holds each tensor.

Contexts are values. Linking code gives a routine whose own context knows the buffers that the code added;
the context it was linked into stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ..errors import LinkError
from ..ir.assign import ArrayParam
from ..ir.code import Code
from ..ir.tensor import Tensor
from .device import Buffer, Device
from .routine import Routine

__all__ = ["Context"]


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The buffers of a device's tensors. `parent` is the context this one was derived from."""

    device: Device
    parent: Context | None = None
    buffers: Mapping[Tensor, Buffer] = field(default_factory=lambda: MappingProxyType({}))

    def link(self, code: Code) -> Routine:
        """Load the code and bind its tensors to buffers, new ones where this context has none.

        Raises LinkError when the code is for another target or reads a merge buffer.
        """
        if code.target != self.device.driver.name:
            raise LinkError(
                f"code of {code.name!r} is for target {code.target!r}, the device is {self.device.name}",
                fix=f"compile for {self.device.driver.name!r}, or link on a device of {code.target!r}",
            )
        added: dict[Tensor, Buffer] = {}
        for param in code.params:
            if not isinstance(param, ArrayParam):
                continue
            if param.access == "merge":
                raise LinkError(
                    f"{code.name!r} reads the merge buffer of {param.tensor}, and nothing fills it",
                    fix="link into the context of a transfer to the merge buffer",
                )
            if param.tensor not in self.buffers and _has_layout(param.tensor):
                added[param.tensor] = Buffer(self.device, param.tensor.nbytes)
        return Routine(code, self._child(added), self.device.driver.load(code))

    def init_from_host(self, tensor: Tensor, array: np.ndarray) -> Context:
        """A context that also has the tensor, with the array's values."""
        if tensor in self.buffers:
            raise LinkError(f"{tensor} already has a buffer", fix="use from_host to overwrite it")
        child = self._child({tensor: Buffer(self.device, tensor.nbytes)})
        child.from_host(tensor, array)
        return child

    def from_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        """Schedule a copy of the array into the tensor's buffer; False when there is none here."""
        buffer = self.buffers.get(tensor)
        if buffer is None:
            return False
        source = np.ascontiguousarray(_checked(tensor, array))
        self.device.stream.submit(lambda: self.device.driver.upload(buffer.memory, source))
        return True

    def to_host(self, tensor: Tensor, array: np.ndarray) -> bool:
        """Schedule a copy of the tensor's buffer into the array; False when there is none here.
        Read the array after `device.await_()`."""
        buffer = self.buffers.get(tensor)
        if buffer is None:
            return False
        if not _checked(tensor, array).flags.c_contiguous:
            raise LinkError(f"the array for {tensor} is not C-ordered", fix="copy out to np.empty(shape)")
        self.device.stream.submit(lambda: self.device.driver.download(buffer.memory, array))
        return True

    def _child(self, added: Mapping[Tensor, Buffer]) -> Context:
        return Context(self.device, self, MappingProxyType({**self.buffers, **added}))


def _has_layout(tensor: Tensor) -> bool:
    """Whether the layout is known and ours to choose; other arrays are the caller's, given at launch."""
    return tensor.strides is None and all(extent.is_constant for extent in tensor.shape)


def _checked(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    shape = tuple(extent.constant for extent in tensor.shape)
    if array.shape != shape or array.dtype != tensor.dtype.numpy:
        raise LinkError(
            f"{tensor} cannot be copied from or to an array of {array.dtype} {array.shape}",
            fix=f"give an array of {tensor.dtype.name} {shape}",
        )
    return array
