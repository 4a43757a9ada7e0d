"""Who takes part: a table has a row for each peer, and says which of them are here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec

from ..frozen import frozen_by_identity
from .tasks import Peer

__all__ = ["Listed", "installed"]


@frozen_by_identity
class Listed:
    """A row: the column's name, the package that it needs, the module and the name of its `Peer`. `missing`
    says what else it needs and does not find. Who is `slow` to compile is left out where time is short.
    `targets` are where it computes: "" is the processor."""

    name: str
    package: str
    module: str
    entry: str = "entry"
    missing: Callable[[], str] = lambda: ""
    slow: bool = False
    targets: tuple[str, ...] = ("",)


def installed(
    rows: Sequence[Listed], wanted: Sequence[str] = (), target: str = ""
) -> tuple[dict[str, Peer], list[str]]:
    """The peers of a target by name, and for each that is not here the reason. Only those `wanted`, if any
    are named."""
    found, reasons = {}, []
    for row in rows:
        if target not in row.targets or (wanted and row.name not in wanted):
            continue
        reason = row.missing() if find_spec(row.package) else f"{row.package} is not installed"
        if reason:
            reasons.append(f"without {row.name}: {reason}")
        else:
            found[row.name] = getattr(import_module(row.module), row.entry)
    return found, reasons
