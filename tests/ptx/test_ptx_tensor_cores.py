"""Products of small floats, and of float32s, by tensor cores: what the compiler makes of programs, as
NVIDIA's own compiler and the simulated GPU see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import arrayjit
from arrayjit.ir.launches import DeviceProgram, Launch
from arrayjit.passes.manager import optimize
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.runtime.ptx import faults
from arrayjit.targets.cuda import ARCHITECTURES, CudaTarget

Run = Callable[..., None]

TILES = {64: "32 by 32", 1024: "64 by 64", 4096: "128 by 128"}
"""Of square products, on a GPU of 108 processors."""


def product(x, w):
    return x @ w


def layer(x, w, b):
    y = (x @ w).astype(np.float32) + b
    return (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))).astype(x.dtype)


def compiled(function: Callable[..., Any], *arguments: np.ndarray, arch: str = "sm_80"):
    """The program, and the notes of the passes."""
    target = CudaTarget("cuda", arch)
    computation = arrayjit.jit(function, target="interp").lower(*arguments).build.computation
    made = optimize(computation, replace(target.caps(), fast=("tf32",)), verify=True)
    program: DeviceProgram = target.emit(made.kernel).payload
    return program, made.notes


def square(size: int, dtype: Any = np.float16) -> np.ndarray:
    return np.ones((size, size), dtype)


@pytest.mark.parametrize("size", TILES)
def test_tiles_are_large_where_there_are_enough_for_all_processors(size: int) -> None:
    _, notes = compiled(product, square(size), square(size))
    assert any(note.endswith(f"a block for each tile of {TILES[size]}") for note in notes)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_machine_code_is_that_of_tensor_cores(arch: str) -> None:
    """Matrices are loaded by `ldmatrix` and copied by `cp.async`, and nothing spills. A slice of 32 terms is
    multiplied by 32 instructions, for which 12 load matrices, after one barrier."""
    program, _ = compiled(layer, *(square(4096, bfloat16),) * 2, np.ones(4096, np.float32), arch=arch)
    code = nvrtc.compiled(program.source, arch, "program")
    (usage,) = nvrtc.usage(code.log).values()
    assert usage.spilled_bytes == usage.stack_bytes == 0
    assert usage.registers <= 168
    found = disassembled(code.cubin)
    slices = len(re.findall(r"\bBAR\.SYNC", found))
    assert slices == 5
    assert len(re.findall(r"\bHMMA\.16816\.F32\.BF16", found)) == 32 * slices
    assert len(re.findall(r"\bLDSM\.16\.MT?88\.4", found)) == 12 * slices
    assert len(re.findall(r"\bLDGSTS\.E\.BYPASS\.128", found)) == 4 * slices


LOADS = {"nn": (8, 16), "nt": (12, 0), "tn": (0, 48), "tt": (4, 32)}
"""Of a slice of float32s: by `ldmatrix`, and of single cells where the depth is not along memory."""


@pytest.mark.parametrize("turned", LOADS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_machine_code_for_float32_is_that_of_tensor_cores(arch: str, turned: str) -> None:
    """A slice of 16 terms is multiplied by 32 instructions. Pieces of which the rest does not lie at 16 bytes
    are copied cell by cell, all the same without waiting."""

    def biased(x, w, b):
        return (x if turned[0] == "n" else x.T) @ (w if turned[1] == "n" else w.T) + b

    program, notes = compiled(biased, *(square(4096, np.float32),) * 2, np.ones(4096, np.float32), arch=arch)
    assert any("tensor cores multiply float32 as tf32, a block for each tile" in note for note in notes)
    code = nvrtc.compiled(program.source, arch, "program")
    (usage,) = nvrtc.usage(code.log).values()
    assert usage.spilled_bytes == usage.stack_bytes == 0
    found = disassembled(code.cubin)
    slices = len(re.findall(r"\bBAR\.SYNC", found))
    assert slices == 7
    assert len(re.findall(r"\bHMMA\.1688\.F32\.TF32", found)) == 32 * slices
    matrices, cells = LOADS[turned]
    assert len(re.findall(r"\bLDSM\.16\.M88\.4", found)) == matrices * slices
    assert len(re.findall(r"\bLDS R\d", found)) == cells * slices
    assert len(re.findall(r"\bLDGSTS\.E\.BYPASS\.128", found)) == 4 * slices
    assert len(re.findall(r"\bLDGSTS\.E ", found)) == 16 * slices


def test_neighbouring_sums_are_stored_at_once() -> None:
    program, _ = compiled(product, square(256), square(256))
    assert "store_f16x2(" in program.source
    odd, _ = compiled(product, square(256), np.ones((256, 255), np.float16))
    assert "store_f16x2(" not in odd.source


SLICES = 5


def factors(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of five slices."""
    depth = 64 // np.dtype(dtype).itemsize * SLICES
    x = np.random.default_rng(0).normal(size=(32, depth)).astype(dtype)
    return x, x[::-1].T.copy()


def multiplied(
    run: Run, right: str, wrong: str, occurrence: int = 0, dtype: Any = np.float16
) -> tuple[np.ndarray, np.ndarray]:
    """A product of five slices by a program in which a piece is replaced, and the right one."""
    x, w = factors(dtype)
    program, _ = compiled(product, x, w)
    pieces = program.source.split(right)
    assert len(pieces) > occurrence + 1, f"{right!r} is not in the source"
    text = right.join(pieces[: occurrence + 1]) + wrong + right.join(pieces[occurrence + 1 :])
    (launch,) = program.plan
    assert isinstance(launch, Launch)
    result = np.zeros((32, 32), dtype)
    run(text, launch.kernel, launch.grid[0].count({}), launch.threads, x, w, result, options=nvrtc.OPTIONS)
    return result, x.astype(np.float32) @ w.astype(np.float32)


def test_the_program_is_right_as_it_is(run: Run) -> None:
    got, wanted = multiplied(run, "__syncthreads();", "__syncthreads();")
    np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=2**-11, atol=2**-12)


@pytest.mark.parametrize("slice_", range(SLICES))
def test_each_missing_barrier_is_found(run: Run, slice_: int) -> None:
    with pytest.raises((faults.SharedRace, faults.UninitialisedRead, faults.UnfinishedCopy)):
        multiplied(run, "__syncthreads();", "", slice_)


@pytest.mark.parametrize("slice_", range(SLICES - 1))
def test_each_wait_for_too_few_copies_is_found(run: Run, slice_: int) -> None:
    with pytest.raises(faults.UnfinishedCopy):
        multiplied(run, "cp.async.wait_group 1;", "cp.async.wait_group 2;", slice_)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;"),
        ('asm volatile("cp.async.commit_group;");', ""),
    ],
    ids=["the last wait", "a forgotten group"],
)
def test_copies_that_nothing_waits_for_are_found(run: Run, right: str, wrong: str) -> None:
    with pytest.raises(faults.UnfinishedCopy):
        multiplied(run, right, wrong)


def test_a_product_of_float32_is_as_exact_as_its_factors(run: Run) -> None:
    """Rounding to 11 bits leaves an error of 2**-11 of a factor, 2**-10 of a product. Cutting leaves more."""
    got, wanted = multiplied(run, "__syncthreads();", "__syncthreads();", dtype=np.float32)
    x, w = factors(np.float32)
    error = np.abs(got - wanted)
    assert (error <= 2.0**-10 * (np.abs(x) @ np.abs(w))).all()
    cut, _ = multiplied(run, "cvt.rna.tf32.f32 %0, %1;", "mov.b32 %0, %1;", dtype=np.float32)
    assert np.abs(cut - wanted).max() > 2 * error.max()


@pytest.mark.parametrize("slice_", range(SLICES))
def test_each_barrier_missing_for_float32_is_found(run: Run, slice_: int) -> None:
    with pytest.raises((faults.SharedRace, faults.UninitialisedRead, faults.UnfinishedCopy)):
        multiplied(run, "__syncthreads();", "", slice_, np.float32)


@pytest.mark.parametrize("right", ["column + n / 2 * 8", "row + n % 2 * 4"])
def test_each_wrong_place_of_a_float32_is_found(run: Run, right: str) -> None:
    got, wanted = multiplied(run, right, right.replace("% 2", "* 0").replace("/ 2", "* 0"), dtype=np.float32)
    assert np.abs(got - wanted).max() > 1
