"""Python's own functions as the traced function sees them: what they need of numbers, the compiled function
computes. Where nothing is traced they do what Python's do. Functions (`max`) are ours wherever the user's
code meets them, in tables and as arguments too; types (`float`) only where it calls them by name.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, reduce, wraps
from inspect import CO_OPTIMIZED
from types import BuiltinFunctionType, FrameType, GeneratorType
from typing import Any

from ...errors import ConcretizationError, DTypeError
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Expr, Index
from ...ir.index import Affine
from ...ir.ops import OPS
from ..loops.carries import kind_of
from ..loops.comprehensions import added, listed
from ..loops.growing import Growing
from ..loops.kinds import choose, memory, put, truth
from ..loops.ranges import STANDING, Range, counted
from ..loops.states import kind_in_state
from ..record.current import tracing
from ..record.registry import METHODS
from ..record.trace import current_trace
from ..record.view import View
from ..values.array import SymbolicArray
from ..values.conversions import CONVERSIONS, is_called, to_bool
from ..values.extents import greater, lesser
from ..values.integer import SymbolicInt, number, python_int
from ..values.numbers import as_affine
from ..values.rows import Rows, rows_of
from .stopping import asked

__all__ = ["PLAIN_FUNCTIONS", "Builtins", "as_called"]

_ABSENT: Any = object()
_FEW = 4


def length(sized: Any, /) -> Any:
    """`len`: a traced int where an extent is known only when the compiled function runs."""
    if type(sized) is SymbolicArray and sized.ndim:
        return sized.shape[0]
    if type(sized) is Growing:
        return python_int(sized.length(), current_trace())
    return len(sized)


def smallest(*args: Any, key: Any = None, default: Any = _ABSENT) -> Any:
    """`min`."""
    return _extreme(builtins.min, operator.lt, "minimum", args, key, default)


def largest(*args: Any, key: Any = None, default: Any = _ABSENT) -> Any:
    """`max`."""
    return _extreme(builtins.max, operator.gt, "maximum", args, key, default)


def _extreme(
    plain: Callable[..., Any],
    beats: Callable[[Any, Any], Any],
    op: str,
    args: tuple[Any, ...],
    key: Any,
    default: Any,
) -> Any:
    if key is None and len(args) == 1 and _is_long_row(args[0]):
        return _folded(args[0], plain.__name__, lambda best, item: _better(beats, item, best))
    if key is not None and tracing():
        return _extreme_by_key(plain, beats, args, named(key), default)
    items = listed(args[0]) if len(args) == 1 else list(args)
    rows = rows_of(items) if key is None else None
    if rows is not None:
        return reduce(partial(_added, lambda best, item: _better(beats, item, best)), rows, items[0])
    if not any(_is_traced(item) for item in items):
        options = {} if default is _ABSENT else {"default": default}
        return plain(items, key=key, **options)
    integers = _integers(items)
    if integers is not None:
        return python_int(reduce(greater if op == "maximum" else lesser, integers), current_trace())
    best = items[0]
    for item in items[1:]:
        best = _better(beats, item, best)
    return best


def _better(beats: Callable[[Any, Any], Any], item: Any, best: Any) -> Any:
    """The item if it beats the best so far, which stays where they are equal or either is NaN."""
    return _chosen(beats(item, best), item, best)


def _extreme_by_key(
    plain: Callable[..., Any],
    beats: Callable[[Any, Any], Any],
    args: tuple[Any, ...],
    key: Callable[[Any], Any],
    default: Any,
) -> Any:
    """The first item whose key no other key beats."""
    items = args[0] if len(args) == 1 else args
    items = items.numbers() if type(items) is Range else items
    if _has_rows(items):
        place = _extreme_by_key(plain, beats, (range(len(items)),), lambda k: key(items[k]), _ABSENT)
        return items[place]
    is_long = _is_long_row(items) or (type(items) is range and len(items) > _FEW)
    items = items if is_long else listed(items)
    if not is_long and not items:
        return plain(items) if default is _ABSENT else default
    best = items[0]
    highest = key(best)
    if is_long and _is_traced(highest):
        return _in_loops(_best_by_key)(best, highest, counted(items[1:]), key, beats)
    return _best_by_key(best, highest, items[1:], key, beats)


def _has_rows(items: Any) -> bool:
    """Whether the items are so many parts of an array, of which the best is a view."""
    return type(items) is SymbolicArray and items.ndim > 1 and type(len(items)) is int and len(items) > 0


def _best_by_key(
    best: Any, highest: Any, others: Any, key: Callable[[Any], Any], beats: Callable[[Any, Any], Any]
) -> Any:
    for item in others:
        height = key(item)
        is_better = beats(height, highest)
        best = _chosen(is_better, item, best)
        highest = _chosen(is_better, height, highest)
    return best


def _chosen(condition: Any, item: Any, best: Any) -> Any:
    """The one value or, where the condition does not hold, the other."""
    if not _is_traced(condition):
        return item if condition else best
    if type(item) is tuple and type(best) is tuple and len(item) == len(best):
        return tuple(map(partial(_chosen, condition), item, best))
    trace = current_trace()
    verdict = truth(condition, trace)
    if isinstance(verdict, bool):
        return item if verdict else best
    chosen = choose(verdict, item, best, trace)
    if chosen is None:
        raise DTypeError(
            f"the result is {kind_of(item)} or {kind_of(best)}, which depends on numbers",
            fix="convert both to one type, or use np.minimum(a, b) or np.maximum(a, b)",
        )
    return chosen


def _integers(items: list[Any]) -> list[Affine] | None:
    """The items as affine expressions, if all are Python ints."""
    trace = current_trace()
    if not all(type(item) in (int, SymbolicInt) or getattr(item, "weak", None) is int for item in items):
        return None
    found = [as_affine(item, trace) for item in items]
    return [value for value in found if value is not None]


def total(iterable: Any, /, start: Any = 0) -> Any:
    """`sum`: one item after another, as Python adds them."""
    if _is_long_row(iterable):
        return _summed(iterable, start)
    if type(iterable) is GeneratorType and tracing():
        return added(iterable, start)
    rows = rows_of(iterable) if type(iterable) in (list, tuple) else None
    if rows is not None:
        return reduce(partial(_added, operator.add), rows, start)
    return builtins.sum(iterable, start)


def is_any(iterable: Any, /) -> Any:
    """`any`."""
    return _decided(builtins.any, "logical_or", iterable)


def is_all(iterable: Any, /) -> Any:
    """`all`."""
    return _decided(builtins.all, "logical_and", iterable)


def _decided(plain: Callable[..., Any], op: str, iterable: Any) -> Any:
    """Whether any or all items are true. Of traced items all are asked, where Python stops early."""
    if type(iterable) is SymbolicArray:
        return to_bool(METHODS[plain.__name__](iterable)) if iterable.ndim == 1 else plain(iterable)
    decisive = plain is builtins.any

    def decides(item: Any) -> bool | None:
        return None if _is_traced(item) else bool(item) is decisive

    is_generator = type(iterable) is GeneratorType and tracing()
    items = asked(iterable, plain.__name__, decides) if is_generator else list(iterable)
    if not any(_is_traced(item) for item in items):
        return plain(items)
    together = METHODS[plain.__name__]
    items = [
        together(SymbolicArray(item.together.cells, item.together.record)) if type(item) is Rows else item
        for item in _rows_of_numbers(items)
    ]
    trace = current_trace()
    answer: View | None = None
    for item in items:
        verdict = truth(item, trace)
        if isinstance(verdict, bool):
            if verdict is decisive:
                return decisive
            continue
        joined = verdict if answer is None else Apply(OPS[op], (answer.load(()), verdict), BOOL)
        answer = trace.compute((), BOOL, partial(_always, joined))
    return not decisive if answer is None else SymbolicArray(answer, trace, weak=bool)


def _rows_of_numbers(items: list[Any]) -> list[Any]:
    """The items, many that are numbers in rows as one."""
    are_numbers = all(item.ndim == 0 for item in items if type(item) is SymbolicArray)
    return (rows_of(items) if are_numbers else None) or items


def _always(value: Expr, position: tuple[Affine, ...]) -> Expr:
    return value


def _added(step: Callable[[Any, Any], Any], result: Any, value: Any) -> Any:
    """`step(result, value)`, for many values in rows one after another."""
    if type(value) is not Rows:
        return step(result, value)
    trace = value.together.record
    first = step(result, value.item(Affine.of(0)))
    total = memory(kind_in_state(first), trace, first)
    put(total, first, trace)
    with trace.loop(1, value.count) as index:
        put(total, step(total, value.item(index)), trace)
    return total


def _folded(array: SymbolicArray, name: str, step: Callable[[Any, Any], Any]) -> Any:
    """`step(result, item)` for each item after the first, in order, for the function of this name."""
    trace, count = array.record, _count(array)
    at_least_one = Apply(OPS["greater"], (Index(count), Const(0, I64)), BOOL)
    trace.check((), lambda _: at_least_one, "ValueError", f"{name}() iterable argument is empty")
    return _continued(array, array[0], Affine.of(1), count, step)


def _summed(array: SymbolicArray, start: Any) -> Any:
    """The start and all items added up. What is no number begins with the first one, which there must be."""
    count = _count(array)
    if array.ndim > 1:
        number(count, array.record, "how many rows there are", "use x.sum(axis=0)")
    if count == Affine.of(0):
        return start
    if count.is_constant:
        return _continued(array, start + array[0], Affine.of(1), count, operator.add)
    first = start + array.dtype.type(0)
    return _continued(array, first, Affine.of(0), count, operator.add, start)


def _count(array: SymbolicArray) -> Affine:
    """How many items there are: compiled in if arguments tell, or what the run finds."""
    try:
        return Affine.of(number(array.cells.shape[0], array.record, "how many items there are"))
    except ConcretizationError:
        return array.cells.shape[0]


def _continued(
    array: SymbolicArray,
    like: Any,
    done: Affine,
    count: Affine,
    step: Callable[[Any, Any], Any],
    start: Any = _ABSENT,
) -> Any:
    """`step(result, item)` for each item that is not done, in order. The result is of the kind of `like`,
    with which it begins if there is no `start`."""
    trace = array.record
    result = memory(kind_in_state(like), trace, like)
    put(result, like if start is _ABSENT else start, trace)
    with trace.loop(done, count) as index:
        put(result, step(result, array[python_int(index, trace)]), trace)
    return result


def reduced(function: Any, iterable: Any, /, *start: Any) -> Any:
    """`functools.reduce`."""
    if not _is_long_row(iterable):
        return reduce(named(function), listed(iterable), *start)
    first, rest = (start[0], iterable) if start else (iterable[0], iterable[1:])
    return _in_loops(_reduce)(named(function), rest, first)


def _reduce(function: Callable[[Any, Any], Any], items: Any, result: Any) -> Any:
    for item in items:
        result = function(result, item)
    return result


def mapped(function: Any, /, *iterables: Any) -> Any:
    """`map`: of an array, what a generator would make of its items."""
    called = named(function)
    if not any(type(iterable) is SymbolicArray for iterable in iterables):
        return builtins.map(called, *iterables)
    if len(iterables) == 1:
        return _in_loops(_items)(called, iterables[0])
    return _in_loops(_items_together)(called, iterables)


def _items(function: Callable[..., Any], items: Any) -> Any:
    return (function(item) for item in items)


def _items_together(function: Callable[..., Any], iterables: Any) -> Any:
    return (function(*items) for items in zip(*iterables))  # noqa: B905


def _in_loops(code: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose loops become loops of the program."""
    found: Callable[..., Any] = current_trace().namespace.rebuilt(code)
    return found


def named(value: Any) -> Any:
    """What stands for a function that another one calls, as if it were called by its name."""
    return _CALLED.get(value, value) if type(value) in _REPLACED else value


def type_of(*arguments: Any, **options: Any) -> Any:
    """`type`: of a traced value, the type that it has when the function runs, as its code sees this."""
    if len(arguments) == 1 and type(arguments[0]) is Growing:
        return list
    if len(arguments) == 1 and builtins.type(arguments[0].__class__) is builtins.type:
        standing = STANDING.get(arguments[0].__class__)
        if standing is not None:
            return standing
    if len(arguments) == 1 and _is_traced(arguments[0]):
        return arguments[0].record.namespace.of(arguments[0].__class__)
    return builtins.type(*arguments, **options)


def is_instance(value: Any, kinds: Any, /) -> bool:
    """`isinstance`: of a traced value, whether what it stands for is one. Classes that ask for methods, as
    `Iterable` does, would look at those of the traced value as well."""
    if _is_traced(value):
        with suppress(TypeError):
            return issubclass(value.__class__, kinds)
    return builtins.isinstance(value, kinds)


def has_attribute(value: Any, name: Any, /) -> bool:
    """`hasattr`: of a traced value, whether what it stands for has it."""
    return builtins.hasattr(value.__class__ if _is_traced(value) else value, name)


def attribute(value: Any, name: Any, /, *default: Any) -> Any:
    """`getattr`, which finds no more than `hasattr`."""
    if _is_traced(value) and default and not has_attribute(value, name):
        return default[0]
    return builtins.getattr(value, name, *default)


def collected(kind: Callable[..., Any], *iterables: Any) -> Any:
    """`list` or `tuple`: of a generator, what a comprehension would have made."""
    is_generator = len(iterables) == 1 and type(iterables[0]) is GeneratorType
    return kind(listed(*iterables)) if is_generator else kind(*iterables)


def queue(iterable: Any = (), maxlen: Any = None) -> Any:
    """`collections.deque`, whose `maxlen` must be one of Python's own ints."""
    return deque(iterable, operator.index(maxlen) if _is_traced(maxlen) else maxlen)


def _is_traced(value: Any) -> bool:
    return type(value) in (SymbolicArray, SymbolicInt)


def _is_long_row(value: Any) -> bool:
    """Whether to take the items of an array in a loop of the program."""
    if type(value) is not SymbolicArray or value.ndim == 0:
        return False
    extent = value.cells.shape[0]
    return not extent.is_constant or extent.offset > _FEW


_CALLED: Mapping[Any, Callable[..., Any]] = {
    **CONVERSIONS,
    builtins.all: is_all,
    builtins.any: is_any,
    builtins.getattr: attribute,
    builtins.hasattr: has_attribute,
    builtins.isinstance: is_instance,
    builtins.len: length,
    builtins.map: mapped,
    builtins.list: partial(collected, builtins.list),
    builtins.max: largest,
    builtins.min: smallest,
    builtins.sum: total,
    builtins.tuple: partial(collected, builtins.tuple),
    builtins.type: type_of,
    deque: queue,
    reduce: reduced,
}


def as_called(value: Any, frame: FrameType) -> Any:
    """What the frame gets for a value that it loads by name: a type may be replaced that it is about to call.
    So `float(x)` converts a traced number, and `x.dtype == float` compares with Python's type."""
    if type(value) not in _REPLACED:
        return value
    ours = _CALLED.get(value)
    if ours is None:
        return value
    return ours if value in PLAIN_FUNCTIONS or is_called(frame) else value


_REPLACED = {type(value) for value in _CALLED}

PLAIN_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    value: wraps(value)(ours) for value, ours in _CALLED.items() if type(value) is BuiltinFunctionType
}
"""Python's functions that are no types, and ours."""


class Builtins(dict[str, Any]):
    """The builtin names of a traced function. Before Python 3.13 the body of a class looks for its globals in
    the dict itself, past `__getitem__`, and comes here for all of them."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        frame = sys._getframe(1)
        if not frame.f_code.co_flags & CO_OPTIMIZED:
            try:
                return as_called(frame.f_globals[name], frame)
            except KeyError:
                pass
        return as_called(super().__getitem__(name), frame)
