"""Passes that are a rule about one loop.

A rule says what stands in place of a loop, or None where it has nothing to say; then it is asked about the
loops inside. What it needs of the kernel, and leaves beside statements, is in its `Site`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import wraps

from ...frozen import slotted
from ...ir.code import Caps
from ...ir.index import Symbol
from ...ir.loops import For, Kernel, Place, Stmt
from ...ir.tensor import Tensor
from ...ir.walk import rewrite_loops
from .access import Range
from .trips import enter

__all__ = ["Site", "loopwise"]


@slotted
class Site:
    """Where a rule is asked: `ranges` are those of the symbols of all loops that it was asked about so far.
    To `placement` and `notes` it adds."""

    kernel: Kernel
    caps: Caps
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def loopwise(rule: Callable[[For, Site], Iterable[Stmt] | None]) -> Callable[[Kernel, Caps], Kernel]:
    """The pass that asks a rule about every loop, outer ones first."""

    @wraps(rule)
    def asked_everywhere(kernel: Kernel, caps: Caps) -> Kernel:
        site = Site(kernel, caps)

        def asked(loop: For) -> Iterable[Stmt] | None:
            enter(loop, site.ranges)
            return rule(loop, site)

        return kernel.with_body(rewrite_loops(kernel.body, asked), site.notes, site.placement)

    return asked_everywhere
