"""What a call costs, from the program alone: `f.lower(x).cost()`.

Two kernels are counted. The *program* is the one right after lowering, without what nothing needs: what the
user's lines ask for, the same on every machine. *Executed* is the final one: elementary functions as the
arithmetic of their definitions, and what passes add (iterations that are repeated to fill vectors, sums that
are combined) or save (what is shared or moved out of loops). For a GPU it is the program again, with the
arithmetic of elementary functions: how iterations are dealt out to threads is too much to count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..compile import Build
from ..frozen import frozen
from ..ir.code import Caps
from ..ir.loops import Kernel, PlaceKind, Stmt
from ..ir.params import ArrayParam
from ..ir.tensor import Tensor
from ..passes.structure.prune import prune
from .amounts import NONE, Amount
from .cells import Access, accesses, distinct
from .columns import columns
from .operations import Operations, operations
from .visits import Visit, visits

__all__ = ["Cost", "Traffic", "cost", "moved", "touched", "traffic"]


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
    is_gpu = build.backend.target.caps().gpu is not None
    seen = list(visits(program.body, numbers))
    return Cost(
        program.name,
        build.backend.name,
        operations(seen),
        operations(seen, written_out=True) if is_gpu else operations(visits(kernel.body, numbers)),
        traffic(program, seen),
        kernel.arena_bytes,
        kernel.scratch_bytes,
        kernel.stack_bytes,
    )


def traffic(kernel: Kernel, seen: Sequence[Visit], extra: Sequence[Tensor] = ()) -> tuple[Traffic, ...]:
    """What the visited statements read and write of the kernel's parameters and of other arrays."""
    nbytes = touched(seen)
    given = [param for param in kernel.params if isinstance(param, ArrayParam)]
    made = {param.tensor for param in given if param.access == "write"}

    rows = (
        Traffic(
            tensor.label,
            NONE if tensor in made else nbytes.get((tensor, False), NONE),
            nbytes.get((tensor, True), NONE),
        )
        for tensor in (*(param.tensor for param in given), *extra)
    )
    return tuple(row for row in rows if row.read.high or row.written.high)


def touched(seen: Sequence[Visit]) -> Mapping[tuple[Tensor, bool], Amount]:
    """The bytes of each array that the visited statements load, and of each that they store to (True), each
    once."""
    touching: dict[tuple[Tensor, bool], list[Access]] = {}
    for visit in seen:
        for access in accesses(visit):
            touching.setdefault((access.tensor.storage, access.is_store), []).append(access)
    found: dict[tuple[Tensor, bool], Amount] = {}
    for key, together in touching.items():
        cells, itemsize = distinct(together), key[0].dtype.itemsize
        found[key] = Amount(cells.low * itemsize, cells.high * itemsize)
    return found


def moved(
    kernel: Kernel, body: tuple[Stmt, ...], seen: Sequence[Visit], runs: float, without: Sequence[Tensor] = ()
) -> tuple[int, int]:
    """The bytes that a part of a kernel, of which these are all visits, reads and writes in a call, and those
    that it goes through in one of its runs. In a loop of the user's it touches the same memory in each run,
    or other memory. Arrays of `without` do not count."""
    arena = kernel.placed(PlaceKind.ARENA)
    uncounted = {tensor.label for tensor in without}

    def bytes_of(visited: Sequence[Visit]) -> tuple[int, int]:
        rows = [row for row in traffic(kernel, visited, arena) if row.label not in uncounted]
        touched = sum(row.read.low + row.written.low for row in rows)
        return touched, sum(max(row.read.low, row.written.low) for row in rows)

    total, footprint = bytes_of(seen)
    if runs > 1:
        again, at_once = bytes_of(list(visits(body, {}, kernel.body)))
        return max(total, int(again * runs)), at_once or int(footprint / runs)
    return total, footprint


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
