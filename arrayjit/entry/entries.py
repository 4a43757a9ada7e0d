"""What a function has published for its calls: the rows of its variants, and what else must be as it was."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from ..late import Late
from ..locks import lock
from ..runtime.machine_code import loaded
from ..settings import environment
from ..stages import Variant
from ..timeline import RECORDER
from ..tracer.calls.signature import Declared, Key
from ..tracer.record.guards import ABSENT
from .callable import ENTRY, TABLE, table_offset
from .layout import symbols
from .rows import address, count_from, hits, row, words

if TYPE_CHECKING:
    from . import arguments, dispatcher, variants
else:
    arguments = Late("arrayjit.entry.arguments")
    dispatcher = Late("arrayjit.entry.dispatcher")
    variants = Late("arrayjit.entry.variants")

__all__ = ["MOST_VARIANTS", "Entry", "withdraw_all"]

MOST_VARIANTS = 100
"""Calls look through the variants one by one; further ones are found through Python."""

MOST_RENEWALS = 8
"""How often the rows of a variant are made again: attributes that are assigned before each call cost more so
than by way of Python."""

WORTH = 50
"""Calls through Python after which a process makes the dispatcher, once: that takes as long as hundreds of
them, found in a file, but what is called so often is usually called far more often."""


class Entry:
    """The variants of a function that its calls find without Python.

    `contexts` are the context variables that must be None, `variables` those of the environment that must
    stay as they are: what else chooses what a call runs. `shown` makes of an exception the one that the user
    sees.
    """

    def __init__(
        self,
        base: type,
        declared: Declared,
        contexts: Sequence[ContextVar[Any]],
        variables: Sequence[str],
        shown: Callable[[Exception], Exception],
    ) -> None:
        self._base = base
        self._declared = declared
        self._contexts = contexts
        self._variables = variables
        self._shown = shown
        self._lock = lock()
        self._published: dict[Variant, variants.Described] = {}
        self._renewals: dict[Variant, int] = {}
        self._reasons: dict[Variant, str] = {}
        self._held: tuple[Any, ...] = ()
        self._past_hits = 0
        self._offers = 0

    @property
    def hits(self) -> int:
        """How many calls were answered without Python."""
        return self._past_hits + sum(hits(each.rows) for each in tuple(self._published.values()))

    def hits_of(self, variant: Any) -> int:
        """How many calls of a variant were answered without Python since it was published."""
        published = self._published.get(variant)
        return 0 if published is None else hits(published.rows)

    def reason(self, variant: Variant) -> str | None:
        """Why calls of a variant go through Python; None if they don't, or it was never offered."""
        return self._reasons.get(variant)

    def offer(
        self,
        function: Any,
        variant: Variant,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        leaves: Sequence[Any],
        signature: Key,
    ) -> None:
        """Publish a variant that answered this call, if the dispatcher can do all that its calls need. One
        that has been published is once more, a few times, where objects may hold other, equal ones."""
        if type(function) is self._base or RECORDER.is_watching or variant in self._reasons:
            return
        published = self._published.get(variant)
        if published is None and len(self._published) == MOST_VARIANTS:
            return
        if published is not None and not (published.has_objects and self._may_renew(variant)):
            return
        self._offers += 1
        if self._offers < WORTH and not _dispatcher.cache_info().currsize:
            return
        if any(variable.get() is not None for variable in self._contexts):
            return
        with self._lock:
            held = tuple(_held(name) for name in self._variables)
            if self._published and not all(map(is_, held, self._held)):
                self._withdraw_all(function)
            self._held = held
            try:
                described = variants.described(
                    variant, args, kwargs, leaves, self._declared, signature, self._failed(variant)
                )
                if published is not None:
                    count_from(described.rows, hits(published.rows))
                self._published[variant] = described
                self._publish(function)
            except arguments.ThroughPython as reason:
                if published is None:
                    self._reasons[variant] = str(reason)

    def _may_renew(self, variant: Variant) -> bool:
        """Whether a variant may be published once more, and count that."""
        self._renewals[variant] = self._renewals.get(variant, 0) + 1
        return self._renewals[variant] <= MOST_RENEWALS

    def withdraw(self, function: Any, variant: Variant) -> None:
        """A variant is called no more."""
        with self._lock:
            self._reasons.pop(variant, None)
            self._renewals.pop(variant, None)
            published = self._published.pop(variant, None)
            if published is not None:
                self._past_hits += hits(published.rows)
                self._publish(function)

    def withdraw_all(self, function: Any) -> None:
        """All calls go through Python, until their variants are offered again."""
        with self._lock:
            if self._published:
                self._withdraw_all(function)

    def _withdraw_all(self, function: Any) -> None:
        self._past_hits = self.hits
        self._published.clear()
        self._publish(function)

    def _publish(self, function: Any) -> None:
        """Exchange the function's table, in one step: calls have the old one or the new one."""
        published = tuple(self._published.values())
        names = [environment()[1](name) for name in self._variables]
        guards = [variants.place("CONTEXT", variable, value=None) for variable in self._contexts]
        guards += [
            variants.place("DICT", environment()[0], name, value)
            for name, value in zip(names, self._held, strict=True)
        ]
        guards = variants.by_version(guards)
        guarded = words(guards, names, self._held, self._contexts)
        table = row(
            "TABLE",
            count=len(published),
            guards=address(guarded),
            guard_count=len(guards),
            room=max((each.room for each in published), default=0),
        )
        described = [address(each.rows) for each in published]
        setattr(function, TABLE, words([table, described], published, guarded))
        setattr(function, ENTRY, _dispatcher(self._base))
        _published[function] = self

    def _failed(self, variant: Variant) -> Callable[[int], NoReturn]:
        """What raises the exception of a status."""
        procedure, shown = variant.procedure, self._shown

        def failed(status: int) -> NoReturn:
            raise shown(procedure.exception(status))

        return failed


_published: WeakKeyDictionary[Any, Entry] = WeakKeyDictionary()
"""Functions that may be called without Python."""


def withdraw_all() -> None:
    """Calls of every function go through Python, until their variants are offered again."""
    for function, entry in list(_published.items()):
        entry.withdraw_all(function)


def _held(name: str) -> Any:
    """What a variable of the environment holds; ABSENT if there is none."""
    held, key_of = environment()
    return held.get(key_of(name), ABSENT)


@cache
def _dispatcher(base: type) -> int:
    """The address of the dispatcher for functions of a class, which stays until the process ends."""
    code = dispatcher.code(table_offset(base))
    addresses = {**symbols(), "rt.slow": id(base.__call__)}
    image = loaded(code.payload, code.name, lambda name: addresses.get(name, 0))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(image))
    return image.addresses[code.symbol]
