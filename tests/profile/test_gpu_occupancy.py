"""Occupancy, against cases counted by hand by NVIDIA's rules."""

from __future__ import annotations

import pytest

from arrayjit.profile.gpu.occupancy import LIMITS, occupancy
from arrayjit.targets.cuda import ARCHITECTURES

# architecture, threads, registers, shared bytes: blocks, warps, what limits them
BY_HAND = [
    # 8 warps a block, of which 64 fit; 1024 registers a warp, of which 16 fit into a part: 64 as well.
    (("sm_90", 256, 32, 0), (8, 64, "warps")),
    # 54 * 32 = 1728 registers are 7 units, 1792: 9 warps in each of 4 parts, 36 for blocks of 16.
    (("sm_90", 512, 54, 4104), (2, 32, "registers")),
    # 48 KiB and the system's 1 KiB, 50,176 bytes, of 233,472.
    (("sm_90", 128, 16, 48 * 1024), (4, 16, "shared memory")),
    # Blocks of 2 warps: 16 of them are all that there may be.
    (("sm_86", 64, 16, 0), (16, 32, "blocks")),
    (("sm_89", 1024, 40, 0), (1, 32, "warps")),
    # 255 * 32 = 8160 registers are 8192: 2 warps in each part, 8 for blocks of 3.
    (("sm_80", 96, 255, 0), (2, 6, "registers")),
    # A block of 33 threads has 2 warps.
    (("sm_80", 33, 16, 0), (32, 64, "warps")),
    # 20,480 + 1,024 = 21,504 bytes of 102,400.
    (("sm_120", 256, 24, 20 * 1024), (4, 32, "shared memory")),
    # A byte takes a unit of 128 beside the system's: 1,152 bytes, 88 times in 102,400.
    (("sm_121", 32, 16, 1), (24, 24, "blocks")),
    # 8 warps of 128 registers each thread: 4096 a warp, 4 in each part, 16 in all.
    (("sm_100", 256, 128, 0), (2, 16, "registers")),
    (("sm_103", 1024, 65, 0), (0, 0, "registers")),
]


@pytest.mark.parametrize(("kernel", "counted"), BY_HAND)
def test_it_is_what_was_counted_by_hand(
    kernel: tuple[str, int, int, int], counted: tuple[int, int, str]
) -> None:
    found = occupancy(*kernel)
    assert found is not None
    assert (found.blocks, found.warps, found.limit) == counted
    assert found.fraction == counted[1] / LIMITS[kernel[0]].warps


def test_waves_are_how_often_the_gpu_is_filled() -> None:
    found = occupancy("sm_90", 256, 32, 0)
    assert found is not None
    assert found.waves(132 * 8, 132) == 1
    assert found.waves(132 * 4, 132) == 0.5


def test_of_other_architectures_nothing_is_said() -> None:
    assert occupancy("sm_75", 256, 32, 0) is None


def test_all_that_programs_are_planned_for_have_a_row() -> None:
    assert ARCHITECTURES.keys() <= LIMITS.keys()
