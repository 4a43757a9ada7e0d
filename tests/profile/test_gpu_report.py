"""Profiles of GPUs as text, JSON and a page: golden files of one that was written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arrayjit.errors import Location, UnsupportedError
from arrayjit.profile.amounts import NONE, Amount
from arrayjit.profile.cost import Cost, Traffic
from arrayjit.profile.counters import Refused
from arrayjit.profile.gpu.machine import GpuLimits
from arrayjit.profile.gpu.occupancy import occupancy
from arrayjit.profile.gpu.profiled import GpuProfile, KernelProfile
from arrayjit.profile.gpu.roofline import GpuRoofline
from arrayjit.profile.lines import Line, by_time
from arrayjit.profile.measure import Spread
from arrayjit.profile.operations import Operations

Golden = Callable[[str, str], None]

LINES = (Line(Location("model.py", 4), 0.75), Line(Location("model.py", 5), 0.25))


def operations(flops: int) -> Operations:
    return Operations({"float32": Amount(flops, flops)}, {}, NONE, NONE, NONE, NONE, NONE, NONE)


def spread(median: float) -> Spread:
    return Spread(median, 0.9 * median, 1.1 * median, 0.8 * median, 40)


KERNELS = (
    KernelProfile(
        1, "step_0", spread(400e-6), 1, (4096, 1, 1), (256, 1, 1), 40, 0, 0, 2048,
        occupancy("sm_90", 256, 40, 2048), 5.17, 4, {"float32": 10**9}, 10**9, "memory", 0.625, LINES,
    ),
    KernelProfile(
        2, "step_1", spread(100e-6), 10, (64, 8, 1), (128, 1, 1), 255, 96, 96, 0,
        occupancy("sm_90", 128, 255, 0), 1.94, 1, {"tensor float16": 10**10}, 10**6, "arithmetic", 0.5,
        LINES[1:],
    ),
    KernelProfile(
        3, "step_2", spread(0.0), 0, (0, 0, 0), (1, 1, 1), 16, None, 0, 0, None, None, 1, {}, 0, "", None, (),
    ),
)  # fmt: skip

FOUND = GpuProfile(
    "step",
    "cuda",
    "NVIDIA H200",
    "sm_90",
    132,
    False,
    spread(520e-6),
    spread(550e-6),
    1.5e-6,
    KERNELS,
    by_time(KERNELS),
    Cost("step", "cuda", operations(10**9), operations(2 * 10**9),
         (Traffic("x", Amount(10**6, 10**6), NONE),), 64, 0, 0),
    GpuRoofline("NVIDIA H200", GpuLimits(60e12, 30e12, 600e12, 4e12)),
)  # fmt: skip

SIMULATED = GpuProfile(
    "step", "cuda-sim", "simulated sm_90", "sm_90", 4, True, spread(0.5), Refused("no whole calls"), 2e-6,
    KERNELS[2:], (), FOUND.cost, None,
)  # fmt: skip


def test_as_text(golden: Golden) -> None:
    golden("gpu_profile.txt", f"{FOUND}\n")
    golden("gpu_profile_simulated.txt", f"{SIMULATED}\n")


def test_as_json(golden: Golden) -> None:
    golden("gpu_profile.json", f"{FOUND.as_json()}\n")
    read = json.loads(FOUND.as_json())
    assert read["kernels"][0]["occupancy"]["fraction"] == 0.75
    assert read["fraction"] == pytest.approx(0.6)


def test_as_a_page(golden: Golden, tmp_path: Path) -> None:
    FOUND.save(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    golden("gpu_profile.html", text)
    assert text.count("<svg") == 2
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    SIMULATED.save(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert text.count("<svg") == 1
    assert "say nothing about a GPU" in text


def test_what_is_between_kernels_is_by_the_least_of_each() -> None:
    assert FOUND.between == pytest.approx(0.8 * (520e-6 - 500e-6))


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"a profile is no \.pdf"):
        FOUND.save(tmp_path / "p.pdf")
