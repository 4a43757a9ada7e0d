"""The rows of a variant, for the dispatcher: everything that its call through Python checks and does.

`described` says it for one call that the variant answered, or raises ThroughPython with what the dispatcher
cannot do: such calls stay as they are, right and slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import CellType
from typing import Any, NoReturn

import numpy as np

from ..frozen import frozen_by_identity
from ..runtime.driver import NativeExecutable
from ..runtime.host import HostMemory
from ..runtime.procedure import Procedure
from ..stages import Variant
from ..tracer.calls.binding import CapturedSource, ScalarSource, Source
from ..tracer.calls.signature import Declared, Key, key_of, overlaps
from ..tracer.record.facts import Argument, Fact, Positive, Remainder
from ..tracer.record.guards import ABSENT, ArrayGuard, FunctionGuard, Guard, NameGuard
from ..tracer.record.resident import Resident
from .arguments import Steps, ThroughPython
from .layout import function_fields, has_dict_versions
from .objects import dict_of, guards_of, under_version
from .outcomes import Outcome
from .rows import ROWS, Words, address, code, row, words

__all__ = ["Described", "by_version", "described", "place"]

MOST_WORKSPACE = 1 << 20
"""Bytes that a variant may keep for its temporaries. Larger ones share theirs, through Python."""

_LARGE = 1 << 62


@frozen_by_identity
class Described:
    """The rows of a variant, how many values or pointers it needs room for, and whether it depends on what
    objects hold."""

    rows: Words
    room: int
    has_objects: bool


def described(
    variant: Variant,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    leaves: Sequence[Any],
    declared: Declared,
    signature: Key,
    failed: Callable[[int], NoReturn],
) -> Described:
    """The rows of a variant that answered a call with that signature. `failed` raises the exception of a
    status."""
    convention, procedure = variant.convention, variant.procedure
    executable = _native(procedure)
    pinned = [fact.leaf for fact in convention.baked if isinstance(fact, Argument)]
    lengths = {
        leaves[source.leaf]: param
        for param, source in enumerate(convention.sources)
        if isinstance(source, ScalarSource) and source.is_length
    }
    steps = Steps(convention.sources, pinned, overlaps(leaves), lengths)
    steps.add_call(args, kwargs, declared)
    captured = _add_captured(convention.sources, steps)
    outcome = Outcome(convention.sources, convention.outputs, convention.results, leaves, steps)
    releases = not variant.emitted.code.is_short
    workspace = HostMemory(procedure.arena_bytes) if procedure.arena_bytes else None
    names = tuple(kwargs) or None
    outside = [each for each in convention.guards if isinstance(each, NameGuard) and each.state is not None]
    watched = [*(guard.value for guard in outside), *steps.objects]
    objects, kept = guards_of(watched)
    if watched and not (variant.is_valid() and key_of(args, kwargs, declared)[0] == signature):
        raise ThroughPython("an object changed during a call")
    guards = [*by_version(list(_guards(convention.guards, captured))), *objects]
    owned: list[Any] = [variant, failed, workspace, names, steps.owned, outcome.owned, kept]

    def section(name: str, count: str, rows: Sequence[Sequence[int]]) -> dict[str, int]:
        memory = words(rows)
        owned.append(memory)
        return {name: address(memory), count: len(rows)}

    facts = [_fact(fact, leaves, steps) for fact in convention.baked if not isinstance(fact, Argument)]
    described = row(
        "VARIANT",
        positional=len(args),
        keywords=0 if names is None else id(names),
        ranges=len(steps.ranges),
        kernel=executable.address,
        params=len(procedure.params),
        pool=procedure.threads,
        workspace=0 if workspace is None else workspace.address,
        needs_workspace=int(workspace is not None),
        releases=int(releases),
        owns=int(releases or outcome.asks_python or len(outcome.build) > 0),
        failed=id(failed),
        **section("guards", "guard_count", guards),
        **section("facts", "fact_count", facts),
        **section("steps", "step_count", steps.rows),
        **section("fresh", "fresh_count", outcome.fresh),
        **section("build", "build_count", outcome.build),
    )
    room = max(len(steps.rows), len(procedure.params) + 2)
    return Described(words([described], owned), room, bool(watched))


def _native(procedure: Procedure) -> NativeExecutable:
    """The code, if calls need no Python for it."""
    if not isinstance(procedure.executable, NativeExecutable):
        raise ThroughPython("the code is no native code")
    if procedure.journal is not None:
        raise ThroughPython("the code has a journal")
    if procedure.arena_bytes > MOST_WORKSPACE:
        raise ThroughPython("the workspace is large")
    return procedure.executable


def _add_captured(sources: Sequence[Source], steps: Steps) -> list[np.ndarray]:
    """Add the arrays that the function met by other ways than its arguments."""
    captured: list[np.ndarray] = []
    for number, source in enumerate(sources):
        if isinstance(source, CapturedSource):
            if isinstance(source.array, Resident):
                raise ThroughPython("an array lies on a device")
            steps.add_captured(source.array, number)
            captured.append(source.array)
    return captured


def _guards(guards: Sequence[Guard], captured: Sequence[np.ndarray]) -> Iterator[list[int]]:
    """What names must hold. Captured arrays are checked as arguments are."""
    for guard in guards:
        match guard:
            case ArrayGuard(array=array) if any(array is known for known in captured):
                pass
            case NameGuard(holder=CellType() as cell, value=value):
                yield place("CELL", cell, value=value)
            case NameGuard(holder=ContextVar() as variable, value=value):
                yield place("CONTEXT", variable, value=value)
            case NameGuard(holder=holder, name=name, value=value):
                yield place("DICT", dict_of(holder), name, value)
            case FunctionGuard(holder=function, code=held, defaults=defaults, keyword_defaults=keywords):
                for offset, part in zip(function_fields(), (held, defaults, keywords), strict=True):
                    yield _field(function, offset, part)
            case ArrayGuard():
                raise ThroughPython("the code depends on what may change and stay the same object")


def place(kind: str, holder: Any, name: Any = None, value: Any = ABSENT) -> list[int]:
    """A guard: a place, and what must be in it. Whoever has the row keeps all three alive."""
    found = 0 if value is ABSENT else id(value)
    return row("GUARD", kind=code("GUARD", kind), holder=id(holder), name=id(name), value=found)


def _field(function: Any, offset: int, part: Any) -> list[int]:
    """A guard of a part of a function, which has no None."""
    found = 0 if part is None else id(part)
    return row("GUARD", kind=code("GUARD", "FIELD"), holder=id(function), name=offset, value=found)


def by_version(guards: Sequence[list[int]]) -> list[list[int]]:
    """Guards with those of a dict together: while it is as it was they hold, and are not looked at."""
    if not has_dict_versions():
        return list(guards)
    kind, about = code("GUARD", "DICT"), ROWS["GUARD"].index("HOLDER")
    dicts: dict[int, list[list[int]]] = {}
    for guard in guards:
        if guard[0] == kind:
            dicts.setdefault(guard[about], []).append(guard)
    grouped = [guard for guard in guards if guard[0] != kind]
    for holder, inside in dicts.items():
        grouped += under_version(holder, inside)
    return grouped


def _fact(fact: Fact, leaves: Sequence[Any], steps: Steps) -> list[int]:
    """A fact about the integers of a call."""
    assert isinstance(fact, (Positive, Remainder))
    if any(leaf >= len(steps.leaves) for _, leaf in fact.terms):
        raise ThroughPython("a fact is about a length")
    if not all(type(leaves[leaf]) in (int, bool) for _, leaf in fact.terms):
        raise ThroughPython("a fact is about numbers that are no Python integers")
    period = fact.period if isinstance(fact, Remainder) else 0
    if not all(-_LARGE < number < _LARGE for number in (*(c for c, _ in fact.terms), fact.offset, period)):
        raise ThroughPython("a fact has large numbers")
    terms = words([row("TERM", factor=factor, place=steps.leaves[leaf]) for factor, leaf in fact.terms])
    steps.owned.append(terms)
    return row(
        "FACT",
        kind=code("FACT", "REMAINDER" if period else "POSITIVE"),
        terms=address(terms),
        term_count=len(fact.terms),
        start=fact.offset,
        period=period,
        expected=int(fact.read(leaves)),
    )
