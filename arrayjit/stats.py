"""What a jitted function's cache did: hits, misses, compiles, and why each miss happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from .errors import Location
from .frozen import frozen
from .tracer.calls.parameters import positional_names
from .tracer.calls.signature import PYTHON_SCALARS, Spec, StaticArguments, is_leaf
from .tracer.record.resident import Resident
from .tracer.record.retrace import Argument, Fact, Positive, Reason, Remainder
from .tracer.record.tree import flatten, paths

__all__ = ["Description", "Miss", "Stats", "describe_call", "explain_miss"]

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


@frozen
class Stats:
    """Counts since the function was decorated; `reasons` has the latest misses, oldest first."""

    hits: int
    misses: int
    compiles: int
    reasons: tuple[Miss, ...]


def describe_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    static: StaticArguments,
    baked: Mapping[Fact, Reason],
) -> Description:
    """What a compilation depends on, by argument; `baked` is what was compiled in about numbers."""
    described: dict[str, str] = {}
    count = 0
    for position, (name, value) in enumerate(
        [*zip(positional_names(function, len(args)), args, strict=True), *kwargs.items()]
    ):
        if name in static.names or (position < len(args) and position in static.positions):
            described[name] = f"static {value!r}"
            continue
        leaves, structure = flatten(value, is_leaf)
        names = paths(structure, name)
        for leaf_name, leaf in zip(names, leaves, strict=True):
            described[leaf_name] = _described(leaf)
            for fact in baked:
                if fact == Argument(count):
                    described[leaf_name] += f" {leaf!r}, compiled in because {baked[fact].what}"
                elif isinstance(fact, (Positive, Remainder)) and any(
                    place == count for _, place in fact.terms
                ):
                    described[leaf_name] += f" {leaf!r}; compiled in is {fact}"
            count += 1
        if not (len(names) == 1 and names[0] == name):
            described[f"structure of {name}"] = f"{type(value).__name__} of {len(leaves)} leaves"
    return described


def explain_miss(new: Description, earlier: Sequence[Description]) -> str:
    """What differs from the most similar of the signatures compiled before."""
    if not earlier:
        return "first call"
    changes = min((_changes(old, new) for old in earlier), key=len)
    return "; ".join(changes) or "the overlap, the values or the order of arguments changed"


def _changes(old: Description, new: Description) -> list[str]:
    names = [*new, *(name for name in old if name not in new)]
    return [
        f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _described(leaf: Any) -> str:
    if isinstance(leaf, Resident):
        return f"{_described(leaf.layout)} on {leaf.place}"
    if isinstance(leaf, Spec):
        return f"{leaf.dtype}{list(leaf.shape)}"
    if isinstance(leaf, np.ndarray):
        flags = "" if leaf.flags.c_contiguous else f" strides {leaf.strides}"
        flags += "" if leaf.flags.writeable else " read-only"
        return f"{leaf.dtype}{list(leaf.shape)}{flags}"
    return type(leaf).__name__ if type(leaf) in PYTHON_SCALARS else f"{type(leaf).__name__} scalar"
