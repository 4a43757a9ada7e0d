"""The scientific programs of `bench/kernels` as CUDA C: the simulated GPU, which finds races and missing
barriers, does what NumPy does, and NVIDIA's assembler finds registers for all. On one kind of GPU even they
make grids, on the other a block runs nearly everything."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels import KERNELS, Kernel, difference, results_of

import arrayjit
from arrayjit import backends
from arrayjit.devices import fresh_backend
from arrayjit.ir.code import GpuCaps
from arrayjit.ir.launches import DeviceProgram, walk_steps
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

SIMULATED = ("sm_80", "sm_90")

GRIDS = GpuCaps(wide=16, wide_again=16, busy_threads=64, shared_bytes=9000, processors=4)
"""As if GPUs were so small that these arguments fill them."""

SIZED = {"grids": GRIDS, "one block": None}

every_case = pytest.mark.parametrize(
    ("kernel", "small"),
    [
        pytest.param(kernel, small, id=f"{kernel.name}-{name}")
        for kernel in KERNELS
        for name, small in SIZED.items()
    ],
)

Choose = Callable[[str, GpuCaps | None], None]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Choose:
    """`choose("sm_80", caps)` makes `cuda-sim` a GPU of that architecture, planned for as `caps` say."""
    known = backends._backend
    fresh = {arch: fresh_backend("cuda-sim", devices=1, arch=arch) for arch in SIMULATED}
    plain = CudaTarget.caps

    def chosen(arch: str, small: GpuCaps | None) -> None:
        monkeypatch.setattr(
            backends, "_backend", lambda name: fresh[arch] if name == "cuda-sim" else known(name)
        )
        if small is not None:
            monkeypatch.setattr(CudaTarget, "caps", lambda self: replace(plain(self), gpu=small))

    return chosen


def on_host(got: Any, wanted: Any) -> Any:
    """A result as NumPy has it."""
    if not isinstance(got, arrayjit.Array):
        return got
    array = got.numpy()
    return array if isinstance(wanted, np.ndarray) else array[()]


def without_target(ptx: str) -> str:
    return re.sub(r"^\.target .*$", "", ptx, flags=re.MULTILINE)


@every_case
def test_a_kernel_does_what_it_does_in_numpy(kernel: Kernel, small: GpuCaps | None, choose: Choose) -> None:
    """What is launched in the same way, and is the same PTX but for the architecture's name, runs once."""
    wanted = results_of(kernel.plain or kernel.function, kernel.arguments("small"))
    proved = set()
    for arch in SIMULATED:
        choose(arch, small)
        made = arrayjit.jit(kernel.function, target="cuda-sim").lower(*kernel.arguments("small"))
        program = made.as_text("optimized"), without_target(made.as_text("ptx"))
        if program not in proved:
            got = results_of(made.compile(), kernel.arguments("small"))
            got = tuple(on_host(ours, theirs) for ours, theirs in zip(got, wanted, strict=True))
            assert difference(got, wanted) <= kernel.tolerance
            proved.add(program)


@every_case
def test_a_kernel_is_compiled_without_spills(kernel: Kernel, small: GpuCaps | None) -> None:
    computation = (
        arrayjit.jit(kernel.function, target="interp").lower(*kernel.arguments("small")).build.computation
    )
    for arch in ARCHITECTURES:
        target = CudaTarget("cuda", arch)
        caps = target.caps() if small is None else replace(target.caps(), gpu=small)
        made: DeviceProgram = target.emit(optimize(computation, caps).kernel).payload
        usage = nvrtc.usage(nvrtc.compiled(made.source, arch, kernel.name).log)
        assert set(usage) == {launch.kernel for launch in walk_steps(made.plan)}
        assert not [name for name, used in usage.items() if used.spilled_bytes]
