"""What `Code.payload` is for GPUs: the source of kernels, and the plan of launches that runs them.

    DeviceProgram(
        source='extern "C" __global__ void scale(double *x, long long n, ...) {...}',
        arch="sm_90",
        plan=(
            Repeat(step, Affine.of(0), steps, body=(
                Launch("scale", grid=(Blocks(n, 256),), threads=(256,), arguments=(Pointer(0), Number(n))),
            )),
        ),
    )

A kernel is `extern "C"` and takes its arguments in their order, each of 8 bytes: a pointer or a `long long`.
Launches run in the order of the plan, each after all of the one before. A launch whose grid is empty is left
out.

Programs that may raise have a *status word*: 8 bytes, aligned, 0 at the start. A kernel that gets it looks
at it first, and changes no memory where it is not 0. Who fails writes it: the lower 32 bits are the status
(`k` stands for entry `k - 1` of `Code.failures`); the upper 32 are the kernels' own, say to order failures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Union

from ..errors import Location
from ..frozen import frozen
from .index import Affine, Symbol

__all__ = [
    "Argument",
    "Blocks",
    "DeviceProgram",
    "Launch",
    "Number",
    "Pointer",
    "Repeat",
    "RepeatWhile",
    "StatusWord",
    "Step",
    "Workspace",
    "walk_steps",
]


@frozen
class Pointer:
    """The address of the first cell of array parameter `number`: array parameters alone are counted, from
    0."""

    number: int


@frozen
class Workspace:
    """The address `offset` bytes into the workspace, of which there are `Code.arena_bytes`."""

    offset: int = 0


@frozen
class Number:
    """An int64, over static symbols and those of the Repeats around."""

    value: Affine


@frozen
class StatusWord:
    """The address of the status word."""


Argument = Union[Pointer, Workspace, Number, StatusWord]


@frozen
class Blocks:
    """As many blocks along an axis of a grid as it takes for `cells`, if each does up to `each` of them; none
    where there is no cell."""

    cells: Affine
    each: int = 1

    def count(self, symbols: Mapping[Symbol, int]) -> int:
        """The number of blocks, given every symbol's value."""
        return max(0, -(-self.cells.evaluate(symbols) // self.each))


@frozen
class Launch:
    """Run a kernel. `grid` has the blocks along x, y and z, `threads` those of a block; what is left out
    is 1. `shared_bytes` is the dynamic shared memory of a block; `loc` the user's line, for errors."""

    kernel: str
    grid: tuple[Blocks, ...]
    threads: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0
    loc: Location | None = field(default=None, compare=False)


@frozen
class Repeat:
    """The host's loop: `for symbol in range(lo, hi, step)`."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    body: tuple[Step, ...]
    step: int = 1


@frozen
class RepeatWhile:
    """Run `test`; if the byte at `condition` is then not 0, run `body` and start again. It also ends once the
    status is not 0. The host waits for each test, but where the loop `is_guarded`: then its kernels do
    nothing while the byte is 0, so it is set before the first test, and the host need not look at it each
    time."""

    test: tuple[Step, ...]
    condition: Pointer | Workspace
    body: tuple[Step, ...]
    is_guarded: bool = False


Step = Union[Launch, Repeat, RepeatWhile]


@frozen
class DeviceProgram:
    """The CUDA C of a routine's kernels, without headers, and the plan that runs them. `arch` is the
    architecture that was planned for, such as "sm_90"; code is made for the device's own.

    A comment `// at FILE:LINE` says of which line of the user's the lines behind it are."""

    source: str
    arch: str
    plan: tuple[Step, ...]

    @property
    def may_fail(self) -> bool:
        """Whether it has a status word."""
        return any(
            isinstance(argument, StatusWord) for step in walk_steps(self.plan) for argument in step.arguments
        )


def walk_steps(plan: tuple[Step, ...]) -> Iterator[Launch]:
    """Every launch of a plan, in order."""
    for step in plan:
        match step:
            case Launch():
                yield step
            case Repeat(body=body):
                yield from walk_steps(body)
            case RepeatWhile(test=test, body=body):
                yield from walk_steps(test)
                yield from walk_steps(body)
