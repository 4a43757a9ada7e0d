"""Instructions that compute each lane's result from that lane's operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .site import Action, Maker, Site
from .threads import Threads
from .types import TYPES, Array, Type

__all__ = ["elementwise", "kind_named", "plain"]


def kind_named(name: str, bits: int) -> Type:
    """`kind_named("u", 32)` is .u32."""
    return TYPES[f"{name}{bits}"]


def elementwise(
    site: Site,
    function: Callable[..., Array],
    kinds: Sequence[Type | str],
    result: Type | str | None = None,
) -> Action:
    """The first operand is `function` of the others, which have these types; the result has the first's."""
    store = site.write(0, result or kinds[0])
    reads = [site.read(number, kind) for number, kind in enumerate(kinds, 1)]
    if len(reads) == 1:
        (first,) = reads
        return lambda threads: store(threads, function(first(threads)))
    if len(reads) == 2:
        first, second = reads
        return lambda threads: store(threads, function(first(threads), second(threads)))

    def run(threads: Threads) -> None:
        store(threads, function(*(read(threads) for read in reads)))

    return run


def plain(function: Callable[..., Array], count: int) -> Maker:
    """Makes the first operand `function` of so many others, all of the instruction's type."""
    return lambda site: elementwise(site, function, [site.type] * count)
