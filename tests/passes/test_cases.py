"""Every case of `cases/<pass>.txt`: the pass turns the first text into the second and keeps its meaning.

[a name that says what the case shows]
IR text
[out]
IR text

A program that the pass leaves as it is has no second text:

[a name that says what the case shows]
IR text
[same]

With `--update` the second text becomes what the pass makes of the first, where it is another or missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pass_programs import CAPS

from arrayjit import processor
from arrayjit.ir.assign import ArrayParam, Computation, IndexParam, Param
from arrayjit.ir.code import Ahead, Caps, GpuCaps
from arrayjit.ir.dtype import BOOL, DType
from arrayjit.ir.index import Symbol
from arrayjit.ir.interp import KernelRaise, run, run_computation
from arrayjit.ir.journal import given
from arrayjit.ir.loops import Kernel
from arrayjit.ir.parse import parse
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.text import print_computation, print_kernel
from arrayjit.ir.verify import verify_computation, verify_kernel
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS

PASSES = {row.name: row.run for row in (*ON_ASSIGNMENTS, LOWERING, *ON_LOOPS)}
OF_LOOPS = {row.name for row in ON_LOOPS}

MACHINES = {
    "along": Caps(l2_bytes=5248),
    "append": Caps(vector_bytes=64, registers=32, packed=(4, 8)),
    "atomics": Caps(gpu=GpuCaps(processors=4)),
    "attend": Caps(gpu=GpuCaps(processors=1, tensor_cores=True)),
    "barriers": Caps(gpu=GpuCaps()),
    "braid": Caps(vector_bytes=64, registers=32),
    "broaden": Caps(vector_bytes=64, registers=32),
    "bypass": Caps(l3_bytes=40960),
    "cascade": Caps(threads=4, thread_work=1000),
    "contract": Caps(vector_bytes=16, l1_bytes=2048, l2_bytes=4096, l3_bytes=16384),
    "distant": Caps(ends_masked=True),
    "down": Caps(l1_bytes=1024, l2_bytes=2048),
    "foresee": Caps(l2_bytes=1024, ahead=Ahead(further=512, chosen=True)),
    "fragments": Caps(gpu=GpuCaps(processors=4, tensor_cores=True), fast=("tf32",)),
    "house": Caps(gpu=GpuCaps(shared_bytes=9 * 1024)),
    "inline": Caps(l2_bytes=1024),
    "jam": Caps(ahead=Ahead(chosen=True)),
    "keep": Caps(gpu=GpuCaps()),
    "lag": Caps(l1_bytes=256, stack_bytes=64),
    "offload": Caps(gpu=GpuCaps(processors=4, busy_threads=512, wide=256, wide_again=512)),
    "overlap": Caps(vector_bytes=64, registers=32),
    "pad": Caps(pads=True, l1_bytes=1024),
    "panels": Caps(l1_bytes=1024),
    "portion": Caps(l1_bytes=768),
    "prefetch": Caps(l1_bytes=4096, l2_bytes=32 * 1024, l3_bytes=192 * 1024),
    "ragged": Caps(ends_masked=True),
    "retain": Caps(l1_bytes=1024, l2_bytes=4096),
    "ring": Caps(l1_bytes=1024),
    "scan": Caps(gpu=GpuCaps()),
    "sections": Caps(l1_bytes=256, l2_bytes=1024),
    "segments": Caps(threads=4),
    "sweep": Caps(l1_bytes=256, l2_bytes=2048, l3_bytes=4096),
    "tile": Caps(vector_bytes=64, registers=32),
    "alternate": Caps(l1_bytes=1024, l2_bytes=1536, threads=2),
    "trail": Caps(threads=2, thread_work=10_000, l2_bytes=64 * 1024, l3_bytes=256 * 1024),
    "widen": Caps(gpu=GpuCaps(busy_threads=8)),
    "threads": Caps(threads=4, thread_work=64),
    "unison": Caps(vector_bytes=32),
    "unordered": Caps(vector_bytes=64, registers=32),
}
"""The passes whose cases need other hardware."""

ROUNDS = {
    "ascend",
    "attend",
    "fragments",
    "group",
    "vectorise",
    "quarters",
    "cascade",
    "offload",
    "keep",
    "scan",
    "segments",
    "reals",
    "crosswise",
}
"""Passes that add floats in another (documented) order, or multiply complex numbers as NumPy does on some
processors only: equal up to rounding."""


def cases() -> Iterator[tuple[str, str, str, str | None]]:
    """Pass, name, text before and text after of each case; no text where the program stays as it is."""
    for file in sorted(Path(__file__).parent.glob("cases/*.txt")):
        parts = re.split(r"^\[(.+)\]\n", file.read_text(), flags=re.MULTILINE)
        for position in range(1, len(parts), 4):
            name, before, out, after = parts[position : position + 4]
            assert out in ("out", "same"), f"{file.name}: [out] or [same] must follow [{name}], not [{out}]"
            assert out == "out" or not after.strip(), f"{file.name}: [same] ends [{name}]"
            yield file.stem, name, before, after if out == "out" else None


def update(step: str, name: str, result: str | None) -> None:
    """Make a text what comes out of a case."""
    file = Path(__file__).parent / "cases" / f"{step}.txt"
    text = file.read_text()
    start = text.index(f"[{name}]\n") + len(f"[{name}]\n")
    before, _, rest = re.split(r"^\[(out|same)\]\n", text[start:], maxsplit=1, flags=re.MULTILINE)
    behind = re.search(r"^\[.*", rest, re.MULTILINE | re.DOTALL)
    came_out = "[same]\n" if result is None else f"[out]\n{result.rstrip()}\n"
    file.write_text(f"{text[:start]}{before}{came_out}" + (f"\n{behind[0]}" if behind else ""))


def printed(program: Computation | Kernel) -> str:
    return print_computation(program) if isinstance(program, Computation) else print_kernel(program)


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Numbers; complex ones are those of an array of their parts."""
    if dtype is BOOL:
        return random.random(shape) < 0.5
    if not dtype.is_complex:
        return (1 + 3 * random.random(shape)).astype(dtype.numpy)
    parts = _drawn(random, (*shape, 2), dtype.part)
    return parts.view(dtype.numpy).reshape(shape)


def _parts(array: np.ndarray) -> np.ndarray:
    """The parts of complex numbers along a last axis."""
    return array if array.dtype.kind != "c" else np.stack([array.real, array.imag], -1)


def _is_bool(param: Param) -> bool:
    return isinstance(param, ArrayParam) and param.tensor.dtype is BOOL


def is_left(program: Computation | Kernel, result: Computation | Kernel) -> bool:
    """Is the result the very object that a pass was given, or differs it in notes of what was not done?"""
    return result is program or (
        isinstance(result, Kernel)
        and isinstance(program, Kernel)
        and result.notes != program.notes
        and result == replace(program, notes=result.notes)
    )


BOUND = 3
"""The value of every static symbol that may be so small."""


def outcome(program: Computation | Kernel, before: Computation | Kernel) -> list[np.ndarray | str]:
    """What a program leaves in its array parameters; the exception, if it raises one. `before` a pass had its
    way they may have been bools, of which it sees bytes.

    Numbers go from 1 to 4: sums keep their relative accuracy, and integers serve as indices.
    """
    random = np.random.default_rng(0)
    arrays: dict[Tensor, np.ndarray] = {}
    bindings: dict[Symbol, int] = {}
    bools = {number for number, param in enumerate(before.params) if _is_bool(param)}
    for number, param in enumerate(program.params):
        match param:
            case ArrayParam(tensor=tensor):
                shape = tuple(extent.evaluate(bindings) for extent in tensor.shape)
                drawn = _drawn(random, shape, BOOL if number in bools else tensor.dtype)
                arrays[tensor] = drawn.astype(tensor.dtype.numpy) if number in bools else drawn
            case IndexParam(symbol=symbol):
                bindings[symbol] = max(BOUND, symbol.lower or 0)
    try:
        (run if isinstance(program, Kernel) else run_computation)(program, arrays, bindings)
    except KernelRaise as error:
        return [str(error)]
    return [_parts(arrays[param.tensor]) for param in given(program.params) if isinstance(param, ArrayParam)]


@pytest.fixture(autouse=True)
def on_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases show extremes of floats as comparisons, where ARM64 has instructions for them."""
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")


@pytest.mark.parametrize(
    ("step", "name", "before", "after"),
    [pytest.param(*case, id=f"{case[0]}: {case[1]}") for case in cases()],
)
def test_case(step: str, name: str, before: str, after: str | None, request: pytest.FixtureRequest) -> None:
    program = parse(before)
    assert isinstance(program, Kernel) == (step in OF_LOOPS), "a kernel without loops is told by `-> kernel`"
    result = PASSES[step](program, MACHINES.get(step, CAPS))
    (verify_kernel if isinstance(result, Kernel) else verify_computation)(result)
    came_out = None if is_left(program, result) else printed(result)
    wanted = printed(parse(after)) if after and after.strip() else after
    if came_out != wanted and request.config.getoption("--update"):
        update(step, name, came_out)
    else:
        assert came_out == wanted
    if came_out is None:
        return
    for expected, actual in zip(outcome(program, program), outcome(result, program), strict=True):
        if step in ROUNDS and not isinstance(expected, str):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
        else:
            np.testing.assert_array_equal(actual, expected)
