"""`f.profile(...)` on a GPU: where the time of a call goes, and how far each kernel is from what the GPU can
do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Union

from ...errors import CompilerBug, Location, UnsupportedError
from ...frozen import frozen
from ...ir.code import Caps
from ...ir.loops import For, LoopKind, walk_statements
from ...late import Late
from ...passes.structure.prune import prune
from ...runtime.cuda.api import Dims, GpuInfo
from ...runtime.cuda.driver import GpuDriver
from ...stages import Lowered
from ..amounts import Number
from ..cost import Cost, cost
from ..counters import Refused
from ..laps import Part
from ..lines import Line, assigned, by_time, shares
from ..measure import Spread
from ..profiled import required
from ..rates import CallRates, PartRates, weighed
from ..roofline import reached
from ..saving import Saved
from .measure import MeasuredKernel, measured
from .occupancy import Occupancy, occupancy
from .roofline import GpuRoofline, roofline
from .work import Work, grids, works

report: Any = Late("arrayjit.profile.gpu.report")  # which imports this file, as does `page`
page: Any = Late("arrayjit.profile.gpu.page")

__all__ = ["GpuProfile", "KernelProfile", "profile"]


@frozen
class KernelProfile(PartRates):
    """A launch of the plan: a kernel, and what it does in a call.

    `seconds` are of one call, in which it is launched `runs` times, in a grid of `grid` blocks of `block`
    threads at most. `registers` are each thread's, `spilled_bytes` what was moved out of them (None where no
    assembler has told), `local_bytes` its own memory, `shared_bytes` the block's. `lanes` is how many
    neighbours a thread takes at once. `flops` and `nbytes` are what it does: operations by dtype or by
    "tensor" and a dtype, and bytes of arrays, each counted once for each launch, at least.
    `bound` is what limits it at best, `fraction` how much of that limit it reaches, None where no limits are
    known; `occupancy` is None for architectures of which none are known.
    """

    number: int
    name: str
    seconds: Spread
    runs: int
    grid: Dims
    block: Dims
    registers: int
    spilled_bytes: int | None
    local_bytes: int
    shared_bytes: int
    occupancy: Occupancy | None
    waves: float | None
    lanes: int
    flops: Mapping[str, Number]
    nbytes: Number
    bound: str
    fraction: float | None
    lines: tuple[Line, ...]


@frozen
class GpuProfile(Saved, CallRates):
    """Where the time of one call goes on a GPU. Seconds are medians with quartiles, by events of CUDA's.

    `kernels` are the launches in the order of the plan, `lines` the user's lines with their shares of them.
    `native` is a run of all of them, on memory that is there, as calls make it; what that takes beside the
    kernels is `between`. `call` is a call as Python makes it, until the GPU is done. `clock` is what the
    events around a launch take themselves. With `is_simulated` all times are those of an interpreter of PTX
    on the host, which say nothing about hardware. `roofline` is None there.
    """

    name: str
    target: str
    gpu: str
    arch: str
    multiprocessors: int
    is_simulated: bool
    native: Spread
    call: Union[Spread, Refused]
    clock: float
    kernels: tuple[KernelProfile, ...]
    lines: tuple[Line, ...]
    cost: Cost
    roofline: GpuRoofline | None

    def __str__(self) -> str:
        """Tables: the call, the kernels, what they take, the user's lines."""
        text: str = report.as_text(self)
        return text

    def as_html(self) -> str:
        text: str = page.as_html(self)
        return text

    @property
    def between(self) -> float:
        """Seconds in which the GPU waits for launches, or for the host; by the least of each."""
        return max(0.0, self.native.least - sum(kernel.seconds.least for kernel in self.kernels))

    @property
    def fraction(self) -> float | None:
        """How much of the limits the kernels reach, weighed by their times; None where none are known."""
        return weighed(self.kernels)


def profile(
    lowered: Lowered,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[..., Any],
    seconds: float = 1.0,
) -> GpuProfile:
    """Profile a call of lowered code with these arguments, for about so many seconds, beside the one in which
    the GPU's limits are measured for the first time. Raises BackendUnavailable without a GPU, DeviceError
    where that fails, NumberError for arguments without values, and what the call raises."""
    required(lowered, args, kwargs, seconds)
    build, numbers = lowered.build, lowered.numbers
    device = lowered.device or build.backend.get_device(0)
    driver = device.driver
    if not isinstance(driver, GpuDriver):
        raise UnsupportedError(f"target {driver.name!r} is not profiled", fix="profile on llvm, c or cuda")
    info = driver.gpu(device.ordinal).info
    found = measured(lowered, device, info, args, kwargs, call, seconds, driver.is_simulated)
    limits = None if driver.is_simulated else roofline(device, info)
    kernel, program = build.optimized.kernel, prune(build.optimized.loops, Caps())
    parts = grids(kernel)
    if len(parts) != len(found.kernels):
        raise CompilerBug(f"{len(parts)} grids and {len(found.kernels)} launches", stage="profile")
    written = assigned(program, numbers, parts)
    done = works(kernel, program, parts, written, [one.runs for one in found.kernels])
    kernels = tuple(
        _kernel(part, one, work, lines, info, limits)
        for part, one, work, lines in zip(parts, found.kernels, done, shares(written), strict=True)
    )
    return GpuProfile(
        build.computation.name,
        build.backend.name,
        info.name,
        info.arch,
        info.multiprocessors,
        driver.is_simulated,
        found.native,
        found.call,
        found.clock,
        kernels,
        by_time(kernels),
        cost(build, numbers),
        limits,
    )


def _kernel(
    part: Part,
    found: MeasuredKernel,
    work: Work,
    lines: Mapping[Location, float],
    info: GpuInfo,
    limits: GpuRoofline | None,
) -> KernelProfile:
    """A launch by what was measured and what it does."""
    loaded, resources, seconds = found.kernel, found.kernel.resources, found.seconds
    flops, nbytes = work.flops, work.nbytes
    bound, fraction = "", None
    if limits is not None and seconds.median > 0:
        bound, fraction = reached(limits, flops, nbytes, nbytes, seconds.median)
    threads, blocks = (axes[0] * axes[1] * axes[2] for axes in (loaded.threads, found.grid))
    room = occupancy(info.arch, threads, resources.registers, loaded.shared_bytes)
    loops = (stmt for stmt in walk_statements(part.body) if isinstance(stmt, For))
    return KernelProfile(
        part.number,
        loaded.name,
        seconds,
        found.runs,
        found.grid,
        loaded.threads,
        resources.registers,
        loaded.spilled_bytes,
        resources.local_bytes,
        loaded.shared_bytes,
        room,
        None if room is None else room.waves(blocks, info.multiprocessors),
        max((loop.lanes for loop in loops if loop.kind is LoopKind.VECTOR), default=1),
        flops,
        nbytes,
        bound,
        fraction,
        tuple(Line(loc, share) for loc, share in lines.items()),
    )
