"""What a jitted function's cache did: hits, misses, compiles, and why each miss happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from reprlib import repr as short
from types import FunctionType
from typing import Any

import numpy as np

from .errors import Location
from .frozen import frozen
from .tracer.calls.names import positional_names
from .tracer.calls.signature import PYTHON_SCALARS, Declared, Spec, ends_of, is_leaf, length_of, overlaps
from .tracer.record.facts import Argument, Fact, Positive, Remainder
from .tracer.record.guards import ABSENT, ArrayGuard, FunctionGuard, Guard
from .tracer.record.resident import Resident
from .tracer.record.state import attributes_of
from .tracer.record.tree import contents

__all__ = ["COMPILED_IN", "Description", "Miss", "Stats", "describe_call", "describe_names", "explain_miss"]

MOST = 10
"""Changes that are told of one call."""

MOST_PARTS = 1000
"""Of what one name holds."""

COMPILED_IN = ", compiled in because "
"""What stands between a number and why it is part of the code."""

Description = Mapping[str, str]


@frozen
class Miss:
    """A call that had to compile: why, for how long, from where. `phases` has the seconds of each: `trace`,
    passes, `emit`, `codegen` and `link`; `recall text` and `recall code` of what an earlier process did."""

    reason: str
    target: str
    milliseconds: float
    loc: Location | None
    function: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        place = f"; called at {self.loc}" if self.loc else ""
        return f"{self.function} for {self.target}, {self.milliseconds:.1f} ms: {self.reason}{place}"


@frozen
class Stats:
    """Counts since the function was decorated; `reasons` has the latest misses, oldest first."""

    hits: int
    misses: int
    compiles: int
    reasons: tuple[Miss, ...]

    def __str__(self) -> str:
        """A line of counts, and one for each miss."""
        counts = f"hits: {self.hits}, misses: {self.misses}, compiles: {self.compiles}"
        return "\n".join((counts, *(f"  {miss}" for miss in self.reasons)))


def describe_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    declared: Declared,
    baked: Mapping[Fact, str],
) -> Description:
    """What a compilation depends on, by argument and part of it; `baked` is what was compiled in about
    numbers."""
    described: dict[str, str] = {}
    leaves: dict[str, Any] = {}
    lengths: dict[int, str] = {}
    for position, (name, value) in enumerate(
        [*zip(positional_names(function, len(args)), args, strict=True), *kwargs.items()]
    ):
        given = name if position >= len(args) else None
        any_length = declared.any_length.has(position, given)
        for path, part, is_argument in _parts(value, name, not declared.static.has(position, given), set()):
            described[path] = _kind(part, any_length) if is_argument else _shown(part)
            if is_argument:
                described[path] += _compiled_in(part, len(leaves), baked)
                leaves[path] = part
                if any_length and (length := length_of(part)) is not None:
                    lengths.setdefault(length, path)
    for leaf, (length, path) in enumerate(lengths.items(), len(leaves)):
        if known := _compiled_in(length, leaf, baked):
            described[f"len({path})"] = known.strip()
    paths = list(leaves)
    for overlap in overlaps(list(leaves.values())):
        names = " and ".join(paths[leaf] for leaf in overlap.leaves)
        described[f"memory of {names}"] = f"shared, at bytes {overlap.offsets} of {overlap.nbytes}"
    if kwargs:
        described["given by name"] = ", ".join(kwargs)
    return described


def describe_names(guards: Iterable[Guard]) -> Description:
    """What the names outside a function that its code depends on hold now."""
    described: dict[str, str] = {}
    for number, guard in enumerate(guards):
        if isinstance(guard, ArrayGuard):
            described[f"array {number} that is no argument"] = _kind(guard.array)
        elif isinstance(guard, FunctionGuard):
            described |= _described_function(guard.holder)
        else:
            parts = _parts(guard.held(), guard.name, False, set())
            described.update((f"rebound {path}", _shown(part)) for path, part, _ in islice(parts, MOST_PARTS))
    return described


def _described_function(function: FunctionType) -> Description:
    """What tells the code of a function, and its defaults."""
    code, name = function.__code__, f"rebound {function.__name__}"
    return {
        f"{name}.__code__": f"{code.co_name}, line {code.co_firstlineno}, {hash(code) & 0xFFFFFFFF:08x}",
        f"{name}.__defaults__": short(function.__defaults__),
        f"{name}.__kwdefaults__": short(function.__kwdefaults__),
    }


def _parts(value: Any, path: str, varies: bool, seen: set[int]) -> Iterator[tuple[str, Any, bool]]:
    """A value and all inside it, with how Python reaches it and whether it is an argument; what is not, is
    compiled in."""
    yield path, value, varies and is_leaf(value)
    if id(value) not in seen:
        seen.add(id(value))
        varies = varies and contents(value) is not None
        for key, part in _inside(value).items():
            yield from _parts(part, path + key, varies, seen)


def _inside(value: Any) -> dict[str, Any]:
    """The parts of a container, or the attributes of an object, as Python names them."""
    if is_leaf(value):
        return {}
    inner = contents(value)
    if inner is None:
        return {f".{name}": part for name, part in attributes_of(value).items()}
    keys, parts = inner
    if isinstance(value, dict) or not keys:
        return {f"[{key!r}]": part for key, part in zip(keys or range(len(parts)), parts, strict=True)}
    return {f".{key}": part for key, part in zip(keys, parts, strict=True)}


def _compiled_in(leaf: Any, position: int, baked: Mapping[Fact, str]) -> str:
    text = ""
    for fact, reason in baked.items():
        if fact == Argument(position):
            text += f" {leaf!r}{COMPILED_IN}{reason}"
        elif isinstance(fact, (Positive, Remainder)) and any(place == position for _, place in fact.terms):
            text += f" {leaf!r}; compiled in is {fact}"
    return text


def explain_miss(new: Description, earlier: Sequence[Description]) -> str:
    """What differs from the most similar of the signatures compiled before."""
    if not earlier:
        return "first call"
    changes = min((_changes(old, new) for old in earlier), key=len)
    more = [f"and {len(changes) - MOST} more"] if len(changes) > MOST else []
    return "; ".join(changes[:MOST] + more) or "an object or a value changed, or the order of arguments"


def _changes(old: Description, new: Description) -> list[str]:
    names = [*new, *(name for name in old if name not in new)]
    return [
        f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _kind(leaf: Any, any_length: bool = False) -> str:
    """What code depends on in an argument, which may be an array of any length."""
    if isinstance(leaf, Resident):
        return f"{_kind(leaf.layout)} on {leaf.place_name}"
    if isinstance(leaf, Spec):
        return f"{leaf.dtype}{_shape(leaf, any_length)}"
    if isinstance(leaf, np.ndarray):
        flags = "" if leaf.flags.c_contiguous else f" strides {leaf.strides}"
        flags += "" if leaf.flags.writeable else " read-only"
        flags += "" if leaf.flags.aligned else " unaligned"
        return f"{leaf.dtype}{_shape(leaf, any_length)}{flags}"
    return type(leaf).__name__ if type(leaf) in PYTHON_SCALARS else f"{type(leaf).__name__} scalar"


def _shape(array: np.ndarray | Spec, any_length: bool) -> str:
    """The extents, of a length that is left open between which ends it lies."""
    extents = [str(extent) for extent in array.shape]
    if any_length and (length := length_of(array)) is not None:
        least, most = ends_of(length)
        extents[0] = f"{least}..{most}"
    return f"[{', '.join(extents)}]"


def _shown(value: Any) -> str:
    """A value that is compiled in."""
    if value is ABSENT:
        return "absent"
    if isinstance(value, np.ndarray):
        return _kind(value)
    parts = _inside(value)
    return f"{type(value).__name__} of {len(parts)}" if parts else short(value)
