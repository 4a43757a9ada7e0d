"""What a target hands to the runtime, and what a pass may ask about the hardware: plain data, so that
`passes`, `targets` and `runtime` need not know one another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..frozen import frozen, frozen_by_identity
from .dtype import DType
from .journal import Logged
from .params import Param
from .tensor import Tensor

__all__ = [
    "DEFAULT_OPT",
    "DEFAULT_SCHEDULE",
    "Ahead",
    "Caps",
    "Code",
    "Failure",
    "GpuCaps",
    "Pipes",
    "Postponed",
    "Schedule",
]


@frozen
class GpuCaps:
    """What a GPU can do. A block has at most `block_threads` threads, which share `shared_bytes`; a warp is
    so many of them that run together. `processors` run blocks side by side; with `busy_threads` all of them
    are busy, whatever these wait for. A thread reads or writes `access_bytes` at once. So many independent
    iterations are worth a grid: `wide`, or `wide_again` where it is launched again and again, since a launch
    takes about as long as one block takes for these. `tensor_cores` multiply matrices of small floats and of
    float32s cut short, and copies go on by themselves. Those `small_floats` are converted from float32 and to
    it by an instruction."""

    warp: int = 32
    block_threads: int = 1024
    shared_bytes: int = 48 * 1024
    processors: int = 108
    busy_threads: int = 16 * 1024
    access_bytes: int = 16
    wide: int = 2048
    wide_again: int = 16 * 1024
    tensor_cores: bool = False
    small_floats: tuple[DType, ...] = ()

    @property
    def array_bytes(self) -> int:
        """What the arrays of a block may take of `shared_bytes`: threads form sums in the rest."""
        return self.shared_bytes - 8 * 1024


@frozen
class Ahead:
    """How many bytes ahead of a loop lines are asked for: `further` where it computes much or adds up rows,
    `one` where it is at several places of one array which the last cache has room for, or of what only memory
    holds. With `second`, lines may be asked for into the second cache alone; with `rows`, loops that go along
    many rows at once ask for them: products for what they pack next, sums down columns for what comes later
    in each; and loops along parts of rows for those of later rows. Loops that go through a row several times
    ask for what lies so many bytes `beyond` the same place of the next one. With `chosen`, loops over rows
    that positions choose go through a few at once and ask for those that later positions choose; without it,
    for what lies behind each, however short it is."""

    further: int = 2048
    one: int = 256
    second: bool = True
    rows: bool = False
    beyond: int = 0
    chosen: bool = False


@frozen
class Pipes:
    """What a processor computes registers of 64 bytes with: `at_once` operations are begun in a cycle, so
    many of which multiply (`multiplying`). A sum is there after `added` cycles. With `divides_apart`, a
    division keeps what multiplies no longer than a product does, beside a divider. `ahead` is how many
    operations the processor sees behind one that waits."""

    at_once: int = 2
    multiplying: int = 1
    added: int = 4
    divides_apart: bool = False
    ahead: int = 95


@frozen
class Caps:
    """What the hardware can do, as far as passes care. Sizes are in bytes; `registers` are those that hold a
    vector; the last cache, `l3_bytes`, is for all cores. More than one thread means that loops may be shared;
    `thread_work` is what is worth waking a thread for, in additions of one register each: about 10
    microseconds of them. With `gpu`, the code is for that one, and `fast` says what may change bits there:
    "atomics", that floats are accumulated in memory in any order; "tf32", that products of float32 are formed
    from factors with 10 bits of fraction. Of cells of `packed` bytes, one instruction puts the lanes of a
    register that a mask chooses side by side. `divisions` says as how many additions of a register of 64
    bytes one division lasts, of float32s and of float64s; `ahead` how far ahead lines are asked for, `pipes`
    what computes. With `pads`, grids that steps go through are copied to where their rows begin on
    boundaries. With `ends_masked`, to add lanes that a mask leaves out costs less than to guess wrong where a
    row ends, and steps that look back a few of them go under masks, too. With `transposes`, it costs less to
    transpose a few terms of rows in registers whenever they are multiplied, a few times, than to keep a copy.
    Those `small_floats` are converted from float32 and to it by instructions."""

    vector_bytes: int = 32
    registers: int = 16
    fma: bool = True
    line_bytes: int = 64
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    l3_bytes: int = 32 * 1024 * 1024
    stack_bytes: int = 16 * 1024
    threads: int = 1
    thread_work: int = 20_000
    gpu: GpuCaps | None = None
    fast: tuple[str, ...] = ()
    packed: tuple[int, ...] = ()
    divisions: tuple[float, float] = (6.0, 9.0)
    ahead: Ahead = Ahead()
    pipes: Pipes = Pipes()
    pads: bool = False
    ends_masked: bool = False
    transposes: bool = False
    small_floats: tuple[DType, ...] = ()


@frozen
class Schedule:
    """What passes are told instead of choosing it: `without` are optional passes that are left out, `sizes`
    are fields of Caps by which the others plan as if the hardware had them."""

    without: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    def seen_on(self, caps: Caps) -> Caps:
        """What passes may know about hardware."""
        sizes: dict[str, Any] = dict(self.sizes)
        return replace(caps, **sizes)

    def __str__(self) -> str:
        parts = [f"without {name}" for name in self.without]
        parts += [f"{name} {size:,}" for name, size in self.sizes]
        return ", ".join(parts) or "the default"


DEFAULT_SCHEDULE = Schedule()

DEFAULT_OPT = 2


@frozen
class Failure:
    """What a kernel's status means: status `k` is entry `k - 1` of `Code.failures`. The message may show
    numbers of the journal, and go on in further lines."""

    exception: str
    message: str
    file: str
    line: int


@frozen
class Code:
    """Emitted code of one routine.

    `payload` belongs to the driver of `target` (LLVM IR text, a Kernel for `interp`). `params` are in the
    order of the native call's pointer table; the workspace, if any, follows them. `prior` are the tensors
    that a context must have already. `needs` are the features, as LLVM calls them, without which the CPU
    must not run it; `threads` is how many may share its loops at most, by default all of the device's;
    `is_short` says that a call does little, for certain; `opt`, 0 to 3, how hard the code generator tries;
    `logged` are the statements of which the journal has values.
    """

    target: str
    name: str
    payload: Any
    params: tuple[Param, ...]
    arena_bytes: int = 0
    failures: tuple[Failure, ...] = ()
    prior: frozenset[Tensor] = frozenset()
    needs: tuple[str, ...] = ()
    threads: int | None = None
    is_short: bool = False
    opt: int = DEFAULT_OPT
    logged: tuple[Logged, ...] = ()

    @property
    def symbol(self) -> str:
        """The name of the native function, which any language takes. The suffix keeps it apart from library
        functions: a user may well call a function `sin`."""
        return re.sub(r"\W|^(?=\d)", "_", self.name, flags=re.ASCII) + "_kernel"


@frozen_by_identity
class Postponed:
    """A routine that is optimised and will be emitted once it is linked. The fields are those of its Code."""

    target: str
    name: str
    params: tuple[Param, ...]
    prior: frozenset[Tensor]
    emit: Callable[[], Code]
