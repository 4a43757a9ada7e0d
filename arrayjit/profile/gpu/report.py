"""A profile of a GPU's kernels as text."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.cuda.api import Dims
from ..columns import columns
from ..counters import Refused
from ..report import SPEED, aligned, duration, line_rows, rate, share, speed, spread, title
from .profiled import GpuProfile, KernelProfile

__all__ = ["SIMULATED", "as_text", "kernel_rows", "machine", "resource_rows"]

SIMULATED = "these times are those of a simulation on the host: they say nothing about a GPU"


def as_text(found: GpuProfile) -> str:
    """Tables: the call, the kernels, what they take, the lines."""
    sections = [
        [f"{found.name} for {found.target} on {machine(found)}"],
        [SIMULATED] if found.is_simulated else [],
        _call(found),
        columns(kernel_rows(found)),
        columns(resource_rows(found)),
        line_rows(found.lines),
        _notes(found),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def machine(found: GpuProfile) -> str:
    """The GPU in words."""
    return f"{found.gpu} ({found.arch}, {found.multiprocessors} multiprocessors)"


def _call(found: GpuProfile) -> list[str]:
    call, native = found.call, found.native
    flops, moved = rate(found.flops_per_second, "FLOP/s"), rate(found.bytes_per_second, "B/s")
    functions = " and elementary functions" if found.cost.functions else ""
    return aligned(
        [
            ("a call", "", call.why)
            if isinstance(call, Refused)
            else ("a call", duration(call.median), spread(call)),
            ("  on the GPU", duration(native.median), spread(native)),
            ("", "", f"{flops}{functions}, {moved} of arguments and results"),
            ("    between", duration(found.between), "waiting for launches and for the host"),
        ]
    )


def kernel_rows(found: GpuProfile) -> list[tuple[str, ...]]:
    """The table of the kernels' times, its head first; nothing where there are none."""
    total = sum(kernel.seconds.median for kernel in found.kernels)
    rows: list[tuple[str, ...]] = [("kernel", "time", "share", "launches", *SPEED)]
    rows += ((_title(one), *share(one, total), f"{one.runs:,}", *speed(one)) for one in found.kernels)
    return rows if found.kernels else []


def resource_rows(found: GpuProfile) -> list[tuple[str, ...]]:
    """The table of what the kernels take, its head first; nothing where there are none."""
    head = (
        "kernel",
        "grid",
        "block",
        "lanes",
        "registers",
        "spilled",
        "local B",
        "shared B",
        "occupancy",
        "by",
        "waves",
    )
    rows: list[tuple[str, ...]] = [head]
    for kernel in found.kernels:
        room = kernel.occupancy
        rows.append(
            (
                _title(kernel),
                _axes(kernel.grid),
                _axes(kernel.block),
                str(kernel.lanes),
                str(kernel.registers),
                "unknown" if kernel.spilled_bytes is None else f"{kernel.spilled_bytes:,}",
                f"{kernel.local_bytes:,}",
                f"{kernel.shared_bytes:,}",
                "unknown" if room is None else f"{room.fraction:.0%}",
                "" if room is None else room.limit,
                "" if kernel.waves is None else f"{kernel.waves:.2f}",
            )
        )
    return rows if found.kernels else []


def _title(kernel: KernelProfile) -> str:
    return title(kernel.number, kernel.lines, kernel.name)


def _axes(dims: Dims) -> str:
    """Without the axes of 1 at the end."""
    x, y, z = dims
    return "x".join(map(str, (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)))


def _notes(found: GpuProfile) -> Sequence[str]:
    if found.is_simulated:
        return []
    notes = [f"events of a launch take {duration(found.clock)}, which is part of the kernels' times"]
    if any(kernel.fraction is not None and kernel.fraction > 1.1 for kernel in found.kernels):
        notes.append("more than a limit: the GPU's second cache had what a kernel before it left there")
    return notes
