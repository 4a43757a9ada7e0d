"""What functions of the user's take and return when they become a part of the program: a state, which is an
array, a number, or nested containers of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import DTypeError, UnsupportedError, UserError
from ...frozen import frozen
from ...ir.assign import Statement
from ...ir.tensor import Tensor
from ..record.scopes import Mark
from ..record.trace import Trace
from ..record.tree import Leaf, Node, Static, Structure, flatten, statics, unflatten
from ..values.array import SymbolicArray
from ..values.elementwise import as_operand
from .carries import Kind, is_array, kind_of, same
from .kinds import put, stand_in
from .places import MISSING, Name, Places

__all__ = [
    "Record",
    "Said",
    "State",
    "call",
    "kind_in_state",
    "leaves_in",
    "numbers_and_arrays",
    "places_in",
    "put_all",
    "rebound",
    "record",
    "require_functions",
    "require_one_structure",
    "standing_in",
    "storages_of",
]

T = TypeVar("T")

State = tuple[list[Any], Structure]
"""The leaves of a state, and how they are put together."""


@frozen
class Said:
    """How messages speak of what decides in the run: the function that the user calls or the statement; what
    becomes of its functions or blocks; how values get out of them; and, of what `is_statement`, the variables
    that it changes, unless it returns."""

    caller: str
    parts: str
    outwards: str
    names: tuple[str, ...] | None = None
    is_statement: bool = False


@frozen
class Record(Generic[T]):
    """What a function gave and the statements that it made since the mark."""

    result: T
    body: tuple[Statement, ...]
    mark: Mark


def record(trace: Trace, run: Callable[[], T]) -> Record[T]:
    """Run with what is recorded set apart."""
    mark = trace.begin()
    body: tuple[Statement, ...] = ()
    try:
        result = run()
    finally:
        body = trace.end()
    return Record(result, body, mark)


def require_functions(name: str, *functions: Any) -> None:
    """Raise DTypeError for what cannot be called."""
    for value in functions:
        if not callable(value):
            raise DTypeError(
                f"{name} takes functions, not an object of type {value.__class__.__name__}",
                fix="give functions that return it: lambda: value",
            )


def call(function: Callable[..., T], arguments: tuple[Any, ...], said: Said) -> T:
    """The result of a function that runs any number of times. Raises UnsupportedError if it changes a
    variable, a container or an object, which happens once while tracing."""
    name = said.caller if said.is_statement else getattr(function, "__name__", "a function")
    places = Places({**_named(arguments, function, said), name: function})
    before = places.read()
    try:
        result = function(*arguments)
    except Exception as error:
        if not isinstance(error, UserError):
            _require_unchanged(name, places, before)
        raise
    _require_unchanged(name, places, before)
    return result


def _named(arguments: tuple[Any, ...], function: Callable[..., Any], said: Said) -> dict[str, Any]:
    """What a function takes; sides of statements take variables of their own names."""
    code = getattr(function, "__code__", None)
    if not said.is_statement or code is None or code.co_argcount != len(arguments):
        return {"its argument": arguments}
    return dict(zip(code.co_varnames, arguments, strict=False))


def _require_unchanged(name: str, places: Places, before: Mapping[Name, Any]) -> None:
    after = places.read()
    changes = [f"changes {place}" for place in rebound(before, after)] or ["may advance an iterator"] * len(
        places.iterators
    )
    if changes:
        raise UnsupportedError(
            f"{name} {changes[0]}, but it is traced once, however often the compiled function runs it",
            fix="return the new value instead; arrays may be written in place",
        )


def rebound(before: Mapping[Name, Any], after: Mapping[Name, Any]) -> Iterator[Name]:
    """The places that hold something else than before."""
    for name in {**before, **after}:
        if not same(before.get(name, MISSING), after.get(name, MISSING)):
            yield name


def leaves_in(state: Any) -> State:
    """The arrays and numbers of a state and how they are put together."""
    leaves, structure = flatten(state, lambda part: kind_of(part) is not None or isinstance(part, np.ndarray))
    return [as_operand(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves], structure


def standing_in(trace: Trace, state: Any) -> Any:
    """A state of the kind of another one that nothing reads."""
    leaves, structure = numbers_and_arrays(state)
    return unflatten(structure, [stand_in(leaf, trace) for leaf in leaves])


def numbers_and_arrays(state: Any) -> State:
    """The leaves of a state, which may have ended."""
    return flatten(state, lambda part: kind_of(part) is not None)


def storages_of(trace: Trace, leaf: Any) -> set[Tensor]:
    """What memory a leaf of a state may show; none for numbers."""
    if not is_array(leaf):
        return set()
    storage = leaf.cells.tensor.storage
    return {storage, *trace.sameness.of(storage)}


def kind_in_state(leaf: Any) -> Kind:
    """The kind of a leaf of a state."""
    kind = kind_of(leaf)
    assert kind is not None
    return kind


def put_all(trace: Trace, memories: dict[int, SymbolicArray], values: list[Any]) -> None:
    """Write the values into the memories of their places."""
    for place, target in memories.items():
        put(target, values[place], trace)


def require_one_structure(what: str, before: Structure, after: Structure) -> None:
    """Raise DTypeError, in the words `what`, if two states are put together in different ways."""
    if before != after:
        are_objects = any(map(_is_object, (*statics(before), *statics(after))))
        same_containers = "return the same containers with the same keys from both"
        raise DTypeError(
            f"{what}: {_shown(before)} and {_shown(after)}",
            fix="make the class a dataclass" if are_objects else same_containers,
        )


def _is_object(value: Any) -> bool:
    shown: Any = type(value).__repr__
    return shown is object.__repr__


def _shown(structure: Structure) -> str:
    match structure:
        case Leaf():
            return "value"
        case Static(value=value):
            return f"a {type(value).__name__}" if _is_object(value) else repr(value)
        case Node(kind=kind, keys=keys, children=children):
            parts = [_shown(child) for child in children]
            if keys:
                parts = [f"{key}={part}" for key, part in zip(keys, parts, strict=True)]
            return f"{kind.__name__}({', '.join(parts)})"


def places_in(structure: Structure, prefix: str, names: Sequence[str] | None = None) -> list[str]:
    """How the user's code reaches each leaf of a state, which may be a tuple of the variables `names`."""
    if names is not None and isinstance(structure, Node):
        variables = zip(names, structure.children, strict=True)
        return [place for name, child in variables for place in places_in(child, name)]
    match structure:
        case Leaf():
            return [prefix]
        case Static():
            return []
        case Node(kind=kind, keys=keys, children=children):
            named = keys if issubclass(kind, dict) else range(len(children))
            pairs = zip(named, children, strict=True)
            return [place for key, child in pairs for place in places_in(child, f"{prefix}[{key!r}]")]
