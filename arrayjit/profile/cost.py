"""What a call costs, from the program alone: `f.lower(x).cost()`.

Two kernels are counted. The *program* is the one right after lowering, without what nothing needs: what the
user's lines ask for, the same on every machine. *Executed* is the final one: elementary functions as the
arithmetic of their definitions, and what passes add (iterations that are repeated to fill vectors, sums that
are combined) or save (what is shared or moved out of loops).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..compile import Build
from ..frozen import frozen
from ..ir.code import Caps
from ..ir.loops import Kernel, PlaceKind
from ..ir.params import ArrayParam
from ..ir.tensor import Tensor
from ..passes.prune import prune
from .amounts import NONE, Amount
from .cells import Access, accesses, distinct
from .columns import columns
from .operations import Operations, operations
from .visits import Visit, visits

__all__ = ["Cost", "Traffic", "cost", "traffic"]


@frozen
class Traffic:
    """Bytes of one array that are read and written at least once; what the program itself wrote before is not
    read."""

    label: str
    read: Amount
    written: Amount


@frozen
class Cost:
    """What one call does. Exact, unless data decides: then bounds (`Amount`).

    `asked` is what the program says, `executed` what the final kernel does. `arrays` are the arrays of the
    call, each cell counted once: bytes that have to come from memory, and go there, if caches hold everything
    else. Temporaries, in bytes: `arena_bytes` of the routine, which include `scratch_bytes` of each thread,
    and `stack_bytes`.
    """

    name: str
    target: str
    asked: Operations
    executed: Operations
    arrays: tuple[Traffic, ...]
    arena_bytes: int
    scratch_bytes: int
    stack_bytes: int

    @property
    def flops(self) -> Amount:
        """Floating-point operations that the program asks for, without those inside elementary functions."""
        return self.asked.all_flops

    @property
    def functions(self) -> Mapping[str, Amount]:
        """How often the program asks for each elementary function."""
        return self.asked.functions

    @property
    def read(self) -> Amount:
        """Bytes of the call's arrays that are read, each once."""
        return sum((array.read for array in self.arrays), NONE)

    @property
    def written(self) -> Amount:
        """Bytes of the call's arrays that are written, each once."""
        return sum((array.written for array in self.arrays), NONE)

    @property
    def intensity(self) -> float:
        """Executed floating-point operations for each byte read or written, by the lower bounds; 0 where no
        bytes are."""
        moved = self.read.low + self.written.low
        return self.executed.all_flops.low / moved if moved else 0.0

    def __str__(self) -> str:
        return _text(self)


def cost(build: Build, numbers: Mapping[Tensor, int] | None = None) -> Cost:
    """The cost of a call; `numbers` are the values of its parameters that are integers of no dimensions."""
    numbers = numbers or {}
    program, kernel = prune(build.optimized.loops, Caps()), build.optimized.kernel
    seen = list(visits(program.body, numbers))
    return Cost(
        program.name,
        build.backend.name,
        operations(seen),
        operations(visits(kernel.body, numbers)),
        traffic(program, seen),
        kernel.arena_bytes,
        kernel.scratch_bytes,
        _stack_bytes(kernel),
    )


def traffic(kernel: Kernel, seen: Sequence[Visit], extra: Sequence[Tensor] = ()) -> tuple[Traffic, ...]:
    """What the visited statements read and write of the kernel's parameters and of other arrays."""
    touching: dict[tuple[Tensor, bool], list[Access]] = {}
    for visit in seen:
        for access in accesses(visit):
            touching.setdefault((access.tensor.storage, access.is_store), []).append(access)
    given = [param for param in kernel.params if isinstance(param, ArrayParam)]
    made = {param.tensor for param in given if param.access == "write"}

    def nbytes(tensor: Tensor, is_store: bool) -> Amount:
        found = touching.get((tensor, is_store), ())
        if not found or (tensor in made and not is_store):
            return NONE
        cells = distinct(found)
        return Amount(cells.low * tensor.dtype.itemsize, cells.high * tensor.dtype.itemsize)

    tensors = [*(param.tensor for param in given), *extra]
    rows = (Traffic(tensor.label, nbytes(tensor, False), nbytes(tensor, True)) for tensor in tensors)
    return tuple(row for row in rows if row.read.high or row.written.high)


def _stack_bytes(kernel: Kernel) -> int:
    return sum(tensor.nbytes for tensor, place in kernel.placement.items() if place.kind is PlaceKind.STACK)


def _text(cost: Cost) -> str:
    asked, executed = cost.asked, cost.executed
    rows: list[tuple[str, ...]] = [("", "asked for", "executed")]
    for name in sorted({*asked.flops, *executed.flops}):
        found = (str(side.flops.get(name, NONE)) for side in (asked, executed))
        rows.append((f"flops {name}", *found))
    rows += [(name, str(amount), "as arithmetic") for name, amount in asked.functions.items()]
    for name in ("integer", "other"):
        rows.append((f"{name} operations", str(getattr(asked, name)), str(getattr(executed, name))))
    for name in ("loads", "stores"):
        rows.append((name, str(getattr(asked, name)), str(getattr(executed, name))))
    lines = columns(rows)
    lines += ["", *columns([("array", "bytes read", "bytes written"), *map(_array_row, cost.arrays)])]
    lines += [
        "",
        f"temporaries: {cost.arena_bytes:,} bytes of workspace, {cost.scratch_bytes:,} of each thread's own, "
        f"{cost.stack_bytes:,} on the stack",
        f"arithmetic intensity: {cost.intensity:.3g} flops/byte",
    ]
    return "\n".join((f"{cost.name} for {cost.target}", *lines))


def _array_row(array: Traffic) -> tuple[str, str, str]:
    return array.label, str(array.read), str(array.written)
