"""Arrays that lie in a device's memory, as far as the tracer sees them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

__all__ = ["Resident", "layout_of"]


class Resident:
    """An array in a device's memory. `layout` says where it lies and how: a NumPy array whose elements must
    not be touched."""

    __slots__ = ("layout",)

    layout: np.ndarray

    @property
    def place(self) -> Hashable:
        """What else code depends on, such as the device. Raises where there is no array any more."""
        raise NotImplementedError

    @property
    def place_name(self) -> str:
        """The same in words."""
        raise NotImplementedError

    @property
    def is_alone(self) -> bool:
        """Whether no other array shows the memory."""
        raise NotImplementedError


def layout_of(value: Any) -> Any:
    """An argument as NumPy describes it."""
    return value.layout if isinstance(value, Resident) else value
