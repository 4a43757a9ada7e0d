"""The stages of one signature of a function, each readable: `Lowered`, then `Compiled`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .compile import Build
from .errors import UserError
from .frozen import frozen_by_identity
from .ir.assign import ArrayParam
from .placed import Placed
from .runtime.device import Device
from .runtime.host import addresses_of
from .runtime.procedure import Procedure
from .runtime.results import results
from .tracer.calls.binding import Binding
from .tracer.calls.function import Traced
from .tracer.record.guards import guards_hold
from .tracer.record.tree import unflatten

__all__ = ["Compiled", "Lowered", "Variant"]


class Variant:
    """A traced function linked for one target: the whole of a warm call."""

    __slots__ = ("__weakref__", "_binding", "_guards", "build", "procedure", "traced")

    device = None

    def __init__(self, traced: Traced, build: Build) -> None:
        self.traced = traced
        self.build = build
        self.procedure: Procedure = build.load()
        self._binding = Binding(traced.sources, traced.outputs, results().maker)
        self._guards = traced.guards

    def is_valid(self) -> bool:
        """Whether the names outside the function that the trace baked in are bound as they were."""
        return not self._guards or guards_hold(self._guards)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run on the leaves of a call's arguments. What was written before an exception stays written."""
        arrays = self._binding.arrays(leaves)
        try:
            self.procedure.launch(addresses_of(arrays))
        finally:
            self._binding.write_back(leaves, arrays)
        return unflatten(self.traced.results, self._binding.results(leaves, arrays))


@frozen_by_identity
class Compiled:
    """Native code for one signature. Calling it with arguments of another signature is an error."""

    variant: Variant | Placed
    leaves_of: Callable[[tuple[Any, ...], Mapping[str, Any]], Sequence[Any] | None]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self.leaves_of(args, kwargs)
        if leaves is None:
            params = self.variant.traced.computation.params
            raise CompiledForOther(
                "the arguments differ from those that this code was compiled for",
                details=tuple(repr(p.tensor) for p in params if isinstance(p, ArrayParam)),
                fix="call the jitted function itself, which compiles for any arguments",
            )
        return self.variant(leaves)

    def as_text(self, stage: str = "asm") -> str:
        """The text of a stage; see `Lowered.as_text`."""
        return self.variant.build.as_text(stage)


@frozen_by_identity
class Lowered:
    """One signature traced, optimised and emitted, not yet linked."""

    traced: Traced
    build: Build
    leaves_of: Callable[[tuple[Any, ...], Mapping[str, Any]], Sequence[Any] | None]
    device: Device | None = None

    def as_text(self, stage: str = "optimized") -> str:
        """The text of a stage: `"assignments"` (as traced), `"loops"` (right after lowering),
        `"optimized"` (after all passes), `"llvm"`, `"asm"`."""
        return self.build.as_text(stage)

    def explain(self) -> str:
        """What was decided: the user's lines with what became of loops and what about arguments was compiled
        in, then what the passes did and why."""
        counts = Counter((*self.build.optimized.notes, *self.build.remarks))
        passes = (note if count == 1 else f"{note} ({count} times)" for note, count in counts.items())
        return "\n".join((*self.traced.notes, *passes))

    def compile(self) -> Compiled:
        device = self.device
        variant = (
            Variant(self.traced, self.build) if device is None else Placed(self.traced, self.build, device)
        )
        return Compiled(variant, self.leaves_of)


class CompiledForOther(UserError, TypeError):
    """Arguments of another signature than the one compiled for."""
