"""How compiled code is called for a traced function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...frozen import frozen_by_identity
from ..record.facts import Fact
from ..record.guards import Guard
from ..record.tree import Structure
from .binding import CapturedSource, Output, Source

__all__ = ["Convention"]


@frozen_by_identity
class Convention:
    """`sources` say where the memory of each parameter of the code comes from; `results` with `outputs` in
    the places of its leaves is the value that the function returns. `guards` must hold for the code to be
    used, and the facts about arguments that are `baked` (with the reasons) must be as they were."""

    sources: tuple[Source, ...]
    results: Structure
    outputs: tuple[Output, ...]
    guards: tuple[Guard, ...]
    baked: Mapping[Fact, str]

    @property
    def captured(self) -> list[Any]:
        """The arrays that the function met by other ways than its arguments."""
        return [source.array for source in self.sources if isinstance(source, CapturedSource)]
