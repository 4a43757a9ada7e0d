"""The stages of one signature of a function, each readable: `Lowered`, then `Compiled`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .compile import Build, Emitted
from .errors import UserError
from .frozen import frozen_by_identity
from .ir.params import ArrayParam
from .late import Late
from .runtime.device import Device
from .runtime.host import addresses_of
from .runtime.procedure import Procedure
from .runtime.results import least_of_blocks, results
from .tracer.calls.binding import Binding, ScalarSource, made_by
from .tracer.calls.convention import Convention
from .tracer.calls.signature import Spec
from .tracer.record.guards import guards_hold
from .tracer.record.tree import unflatten

if TYPE_CHECKING:
    from pathlib import Path

    from . import exporting
    from .explanation import Explanation
    from .ir.tensor import Tensor
    from .profile import cost
    from .tracer.calls.function import Traced
else:
    cost, exporting = Late("arrayjit.profile.cost"), Late("arrayjit.exporting")
explanation: Any = Late("arrayjit.explanation")
placed: Any = Late("arrayjit.arrays.placed")  # which imports `api`, which imports this file

__all__ = ["Compiled", "CompiledForOther", "Linked", "Lowered", "Variant", "integers_among"]


class Linked(Protocol):
    """Code that is ready for the calls of one signature: a Variant, or on a device's arrays a Placed."""

    convention: Convention
    emitted: Emitted
    procedure: Procedure

    @property
    def device(self) -> Device | None: ...

    def is_valid(self) -> bool:
        """Whether the names outside the function that the trace baked in are bound as they were."""

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run on the leaves of a call's arguments."""


class Variant:
    """A traced function linked for one target: the whole of a warm call."""

    __slots__ = ("__weakref__", "_binding", "_guards", "convention", "emitted", "procedure")

    device = None

    def __init__(self, convention: Convention, emitted: Emitted) -> None:
        self.convention = convention
        self.emitted = emitted
        self.procedure: Procedure = emitted.load()
        made = made_by(convention.sources, convention.outputs)
        allocator = partial(results().maker, least=least_of_blocks(made))
        self._binding = Binding(convention.sources, convention.outputs, allocator)
        self._guards = convention.guards

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
        return unflatten(self.convention.results, self._binding.results(leaves, arrays))


@frozen_by_identity
class Compiled:
    """Native code for one signature. Calling it with arguments of another signature is an error."""

    variant: Linked
    build: Build
    leaves_of: Callable[[tuple[Any, ...], Mapping[str, Any]], Sequence[Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.variant(self.leaves_of(args, kwargs))

    def as_text(self, stage: str = "asm") -> str:
        """The text of a stage; see `Lowered.as_text`."""
        return self.build.as_text(stage)


@frozen_by_identity
class Lowered:
    """One signature traced, optimised and emitted, not yet linked. `numbers` are the integers among the
    arguments that it was lowered for, by their parameters."""

    traced: Traced
    build: Build
    leaves_of: Callable[[tuple[Any, ...], Mapping[str, Any]], Sequence[Any]]
    device: Device | None = None
    numbers: Mapping[Tensor, int] = field(default_factory=dict)

    def as_text(self, stage: str = "optimized") -> str:
        """The text of a stage: `"assignments"` (as traced), `"loops"` (right after lowering),
        `"optimized"` (after all passes), `"llvm"` or `"c"`, by target, and `"asm"`."""
        return self.build.as_text(stage)

    def explain(self) -> Explanation:
        """What was decided: the user's lines with what became of loops and what about arguments was compiled
        in; which assignments became which loops, and how these run; what is in memory; what each pass did and
        what it left undone, and why. A string, which `save("x.svg")` or `save("x.html")` draws."""
        made: Explanation = explanation.explained(self.build, self.traced.notes)
        return made

    def cost(self) -> cost.Cost:
        """What a call costs: operations, bytes read and written, temporaries, each exactly or within bounds.
        Integer arguments count as those that `lower` was given."""
        return cost.cost(self.build, self.numbers)

    def export(self, folder: str | Path, name: str = "") -> tuple[Path, ...]:
        """Write the code as C, for programs without Python, and give the files: `NAME.h` says what the
        arguments are, `NAME.c` needs nothing but a C11 compiler. The name is by default the function's.
        Raises UnsupportedError for targets other than "c" and "sync_c", NumberError for a name that cannot be
        one in C, OSError where nothing can be written."""
        return exporting.export(self.build, self.traced.notes, folder, name)

    def compile(self) -> Compiled:
        device = self.device
        variant: Linked
        if device is None:
            variant = Variant(self.traced, self.build)
        else:
            variant = placed.Placed(self.traced, self.build, device)
        return Compiled(variant, self.build, self.leaves_of)


class CompiledForOther(UserError, TypeError):
    """Arguments of another signature than the one compiled for."""


def integers_among(traced: Traced, leaves: Sequence[Any]) -> dict[Tensor, int]:
    """The integers among the arguments, by the parameters that code reads them from."""
    return {
        param.tensor: int(leaves[source.leaf])
        for param, source in zip(traced.computation.params, traced.sources, strict=True)
        if isinstance(param, ArrayParam) and isinstance(source, ScalarSource)
        if source.dtype.kind in "iu" and not isinstance(leaves[source.leaf], Spec)
    }
