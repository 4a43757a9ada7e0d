"""What a traced `for` runs over: `range`, `enumerate`, `zip` and `reversed` as the traced function sees them.

Each is a `Counted`: so many items, each known from its index, which may be symbolic. In a `for` statement
it becomes a loop of the program (see `loops`); anywhere else its items are taken one by one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from ...errors import DTypeError, ShapeError
from ...ir.dtype import I64
from ...ir.expr import Cast
from ...ir.index import Affine
from ..record.registry import method
from ..record.trace import Trace, current_trace, tracing
from ..values.array import SymbolicArray
from ..values.extents import ONE, ZERO, is_at_least, lesser, product, steps_between
from ..values.integer import number, python_int
from ..values.numbers import as_affine
from .loops import Counted, Once, iterate

__all__ = ["STANDING", "Range", "Rows", "counted", "explicit_range"]


class _Standing(type):
    """The type of a class that stands for a type of Python's, which calls of it make no instances of."""

    of: type
    made: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.made(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.of)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.of)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.of, name)


def _standing(of: type, made: Callable[..., Any]) -> type:
    """What the traced function sees in place of a type of Python's: calls of it give what `made` does."""
    names = {"of": of, "made": staticmethod(made), "__module__": of.__module__, "__doc__": of.__doc__}
    return _Standing(of.__name__, (), names)


class Range(Counted):
    """`range` as the traced function sees it. Steps other than 1 and -1 are counted from 0; one that is known
    only at run time is positive."""

    def __init__(self, trace: Trace, start: Affine, stop: Affine, step: Affine, rolled: bool = False) -> None:
        self.trace = trace
        self.first, self.last, self.stride = start, stop, step
        self.rolled = rolled
        if step in (ONE, -ONE):
            self.lo, self.hi, self.pace = start, stop, step.offset
        else:
            self.lo, self.hi, self.pace = Affine.of(0), _steps(start, stop, step), 1

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return builtins.range

    @property
    def start(self) -> Any:
        return python_int(self.first, self.trace)

    @property
    def stop(self) -> Any:
        return python_int(self.last, self.trace)

    @property
    def step(self) -> Any:
        return python_int(self.stride, self.trace)

    def item(self, index: Affine) -> Any:
        place = index if self.stride in (ONE, -ONE) else self.first + product((index, self.stride))
        return python_int(place, self.trace)

    def numbers(self) -> builtins.range:
        """The range itself, whose bounds must be known while tracing."""
        purpose = "the bounds of a range that is used as a sequence"
        return builtins.range(
            *(number(end, self.trace, purpose) for end in (self.first, self.last, self.stride))
        )

    def __len__(self) -> int:
        return len(self.numbers())

    def __getitem__(self, key: Any) -> Any:
        return self.numbers()[key]

    def __contains__(self, value: object) -> bool:
        return value in self.numbers()

    def __reversed__(self) -> Iterator[Any]:
        return iter(reversed(self.numbers()))

    def __eq__(self, other: object) -> bool:
        return self.numbers() == (other.numbers() if type(other) is Range else other)

    def __hash__(self) -> int:
        return hash(self.numbers())

    def __repr__(self) -> str:
        return f"range({self.start}, {self.stop}" + (")" if self.stride == ONE else f", {self.step})")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numbers(), name)


class Rows(Counted):
    """The items of an array along its first axis."""

    def __init__(self, array: SymbolicArray) -> None:
        self.trace = array.record
        self.array = array
        self.lo, self.hi, self.pace = Affine.of(0), array.cells.shape[0], 1

    def item(self, index: Affine) -> Any:
        return self.array[python_int(index, self.trace)]


class Numbered(Once):
    """`enumerate(items, start)`."""

    kind = builtins.enumerate

    def __init__(self, items: Counted, start: Affine) -> None:
        self.trace, self.lo, self.hi, self.pace = items.trace, items.lo, items.hi, items.pace
        self.of, self.start, self.first = items, start, items.lo

    def item(self, index: Affine) -> Any:
        place = self.start + (index - self.first) * self.pace
        return python_int(place, self.trace), self.of.item(index)


class Zipped(Once):
    """`zip` of counted items, as many as the fewest."""

    kind = builtins.zip

    def __init__(self, parts: list[Counted], strict: bool) -> None:
        self.trace = parts[0].trace
        self.parts = parts
        counts = [part.times for part in parts]
        self.lo, self.hi, self.pace = Affine.of(0), _fewest(counts, strict), 1

    def item(self, index: Affine) -> Any:
        return tuple(part.item(part.lo + index * part.pace) for part in self.parts)


class Backwards(Once):
    """`reversed` of counted items."""

    kind = builtins.reversed

    def __init__(self, items: Counted) -> None:
        self.trace, self.of = items.trace, items
        last = items.lo + (items.times - 1) * items.pace
        self.lo, self.hi, self.pace = last, items.lo - items.pace, -items.pace

    def item(self, index: Affine) -> Any:
        return self.of.item(index)


@method("__iter__")
def rows(array: SymbolicArray, frame: FrameType) -> Iterator[Any]:
    """The rows of an array, for the frame that asks for them."""
    return iterate(Rows(array), frame)


def counted(value: Any) -> Counted | None:
    """A value as counted items; None where it has none that an index tells."""
    if isinstance(value, Counted) or type(value) is Range:
        return value
    if type(value) is SymbolicArray and value.ndim and value.weak is None:
        return Rows(value)
    if type(value) is builtins.range:
        return Range(current_trace(), Affine.of(value.start), Affine.of(value.stop), Affine.of(value.step))
    return None


def traced_range(*bounds: Any, rolled: bool = False) -> Any:
    """`range` inside a traced function."""
    trace = current_trace()
    if not 1 <= len(bounds) <= 3:
        return builtins.range(*bounds)
    ends = [_bound(bound, trace) for bound in bounds]
    start, stop = (Affine.of(0), ends[0]) if len(ends) == 1 else ends[:2]
    step = ends[2] if len(ends) == 3 else ONE
    if not is_at_least(step, 1):
        step = Affine.of(number(step, trace, "the step of a range that may go backwards"))
    if step == ZERO:
        raise ShapeError("range() arg 3 must not be zero", fix="use a step other than 0")
    return Range(trace, start, stop, step, rolled)


def explicit_range(*bounds: Any) -> Any:
    """`range` for loops that must be recorded once: inside a jitted function such a loop is never unrolled,
    and what would need unrolling is an error. Outside it is Python's `range`."""
    return traced_range(*bounds, rolled=True) if tracing() else builtins.range(*bounds)


def traced_enumerate(iterable: Any, start: Any = 0) -> Any:
    """`enumerate` inside a traced function."""
    items = counted(iterable)
    if items is None:
        return builtins.enumerate(iterable, start)
    return Numbered(items.handed_on(), _bound(start, items.trace))


def traced_zip(*iterables: Any, strict: bool = False) -> Any:
    """`zip` inside a traced function; beside a list or a generator the items are taken one by one."""
    parts = [counted(iterable) for iterable in iterables]
    if not parts or any(part is None for part in parts):
        return builtins.zip(*iterables, strict=strict)
    return Zipped([part.handed_on() for part in parts if part is not None], strict)


def traced_reversed(sequence: Any) -> Any:
    """`reversed` inside a traced function."""
    items = counted(sequence)
    return builtins.reversed(sequence) if items is None or isinstance(items, Once) else Backwards(items)


def _bound(value: Any, trace: Trace) -> Affine:
    found = as_affine(value, trace)
    if found is None and type(value) is not SymbolicArray and hasattr(value, "__index__"):
        found = as_affine(value.__index__(), trace)
    if type(value) is SymbolicArray and value.weak is bool:
        found = trace.bind(Cast(value.load(()), I64), 0, 2)
    if found is None:
        raise DTypeError(
            f"'{value.__class__.__name__}' object cannot be interpreted as an integer",
            fix="use integers as bounds: n // 2, len(x), int(x[0])",
        )
    return found


def _steps(start: Affine, stop: Affine, step: Affine) -> Affine:
    """How many steps lead from `start` to `stop`."""
    low, high, size = (start, stop, step) if is_at_least(step, 1) else (stop, start, -step)
    count = steps_between(low, high, size)
    if size.is_constant:
        current_trace().spans[count] = high - low, size.offset
    return count


def _fewest(counts: list[Affine], strict: bool) -> Affine:
    """The least of some counts. Raises ShapeError where `strict` and they differ."""
    least = counts[0]
    for number_, count in enumerate(counts[1:], 2):
        if strict and count != least:
            raise ShapeError(
                f"zip() argument {number_} is not as long as the others",
                fix="give zip arrays of one length, or leave out strict=True",
            )
        least = lesser(least, count)
    return least


STANDING: Mapping[type, type] = {
    builtins.range: _standing(builtins.range, traced_range),
    builtins.enumerate: _standing(builtins.enumerate, traced_enumerate),
    builtins.zip: _standing(builtins.zip, traced_zip),
    builtins.reversed: _standing(builtins.reversed, traced_reversed),
}
"""Python's types that a traced function sees others in place of."""
