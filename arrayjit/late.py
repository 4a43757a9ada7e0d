"""Modules that are imported when something of them is first asked for, because most processes never do.

if TYPE_CHECKING:
    from . import compiler
else:
    compiler = Late("arrayjit.runtime.compiler")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Late"]


class Late:
    """Stands for a module. Attributes raise what its import raises."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value
