"""What a trace baked in about names and arrays outside the function, and whether it is still so."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from types import CellType, CodeType, FunctionType
from typing import Any, Union

import numpy as np

from ...errors import Location, UnsupportedError
from ...frozen import frozen_by_identity
from .state import state_of

__all__ = [
    "ABSENT",
    "ArrayGuard",
    "FunctionGuard",
    "Guard",
    "NameGuard",
    "content",
    "guards_hold",
    "once_for_many_calls",
    "set_in_context",
]

ABSENT = object()
"""In place of the content of an empty cell or of a missing name."""


@frozen_by_identity
class NameGuard:
    """A global, a closure variable, a member of a class or a context variable that the trace read: the trace
    is valid while it holds `value`, and that keeps its `state`. `value` is ABSENT where there was none."""

    holder: Union[Mapping[str, Any], CellType, ContextVar[Any]]
    name: str
    value: Any
    state: Hashable = None

    def held(self) -> Any:
        """What the name holds now; ABSENT if nothing."""
        if isinstance(self.holder, ContextVar):
            return set_in_context(self.holder)
        return (
            content(self.holder) if isinstance(self.holder, CellType) else self.holder.get(self.name, ABSENT)
        )

    def holds(self) -> bool:
        held = self.held()
        return held is self.value and (self.state is None or state_of(held) == self.state)


@frozen_by_identity
class FunctionGuard:
    """A function whose code the trace ran: it stays the same object where code is reloaded into it."""

    holder: Any  # a FunctionType, which mypy takes for a method
    code: CodeType
    defaults: Any
    keyword_defaults: Any

    @staticmethod
    def of(function: FunctionType) -> FunctionGuard:
        return FunctionGuard(function, function.__code__, function.__defaults__, function.__kwdefaults__)

    @property
    def name(self) -> str:
        return str(self.holder.__name__)

    def holds(self) -> bool:
        held = self.holder
        return (
            held.__code__ is self.code
            and held.__defaults__ is self.defaults
            and held.__kwdefaults__ is self.keyword_defaults
        )


@frozen_by_identity
class ArrayGuard:
    """An array that the function met by another way than its arguments: its elements may change, but it must
    stay what code was made for."""

    array: np.ndarray
    layout: Hashable

    @staticmethod
    def of(array: np.ndarray) -> ArrayGuard:
        return ArrayGuard(array, _layout(array))

    def holds(self) -> bool:
        return _layout(self.array) == self.layout


Guard = Union[NameGuard, FunctionGuard, ArrayGuard]


def guards_hold(guards: tuple[Guard, ...]) -> bool:
    """Whether all that a trace baked in is as it was."""
    return all(guard.holds() for guard in guards)


def content(cell: CellType) -> Any:
    """What a closure variable holds; ABSENT if nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def set_in_context(variable: ContextVar[Any]) -> Any:
    """What a context variable holds, or its default; ABSENT if nothing."""
    try:
        return variable.get()
    except LookupError:
        return ABSENT


def _layout(array: np.ndarray) -> Hashable:
    return array.dtype, array.shape, array.strides, array.flags.writeable, array.flags.aligned


def once_for_many_calls(
    what: str, loc: Location | None, fix: str = "return the new value instead; arrays may be written in place"
) -> UnsupportedError:
    """The error of a function that does `what` to something outside it."""
    return UnsupportedError(
        f"the function {what}, which it did not make",
        loc=loc,
        details=("its code runs once for many calls, so the change would be made once",),
        fix=fix,
    )
