"""NVRTC in a process of its own, and a launcher that takes NumPy arrays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from arrayjit.runtime.ptx import GlobalMemory, Loaded, Module, parse

Triple = tuple[int, int, int]


@pytest.fixture(scope="session")
def compile_ptx() -> Iterator[Callable[..., str]]:
    """`compile_ptx(source, "sm_80", "--fmad=false")` gives the PTX that NVRTC makes."""
    script = Path(__file__).with_name("nvrtc_process.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        @cache
        def compiled(source: str, architecture: str = "sm_80", *options: str) -> str:
            process.stdin.write(json.dumps([source, architecture, options]) + "\n")
            process.stdin.flush()
            complaint, ptx = json.loads(process.stdout.readline())
            assert not complaint, complaint
            return ptx

        yield compiled
        process.stdin.close()


def packed(module: Module, kernel: str, values: list[np.generic]) -> bytes:
    """Arguments as the kernel's parameters lie."""
    function = module.functions[kernel]
    block = bytearray(function.argument_bytes)
    assert len(values) == len(function.parameters)
    for parameter, value in zip(function.parameters, values, strict=True):
        assert value.nbytes == parameter.nbytes, f"{parameter.name} has {parameter.nbytes} bytes"
        block[parameter.offset : parameter.offset + parameter.nbytes] = value.tobytes()
    return bytes(block)


def three(extents: int | tuple[int, ...]) -> Triple:
    return ((extents, 1, 1) if isinstance(extents, int) else (*extents, 1, 1))[:3]


def launch(
    ptx: str,
    kernel: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: np.ndarray | np.generic,
    shared_bytes: int = 0,
    **options: int,
) -> None:
    """Run a kernel on copies of the arrays, which then take what it has made of them."""
    module = parsed(ptx)
    memory = GlobalMemory()
    loaded = Loaded(module, memory)
    values: list[np.generic] = []
    arrays: list[tuple[np.ndarray, int]] = []
    for number, each in enumerate(arguments):
        if isinstance(each, np.ndarray):
            address = memory.allocate(each.nbytes, f"argument {number}")
            memory.view(address, each.nbytes)[:] = np.ascontiguousarray(each).reshape(-1).view(np.uint8)
            arrays.append((each, address))
            each = np.uint64(address)
        values.append(each)
    block_of_arguments = packed(module, kernel, values)
    try:
        loaded.launch(kernel, three(grid), three(block), shared_bytes, block_of_arguments, **options)
    finally:
        for array, address in arrays:
            array[...] = memory.view(address, array.nbytes).view(array.dtype).reshape(array.shape)


@cache
def parsed(ptx: str) -> Module:
    return parse(ptx)


@pytest.fixture(scope="session")
def run(compile_ptx: Callable[..., str]) -> Callable[..., None]:
    """`run(source, kernel, grid, block, *arguments, arch="sm_80", options=(), shared_bytes=0)`."""

    def compile_and_launch(
        source: str,
        *launched: object,
        arch: str = "sm_80",
        options: tuple[str, ...] = (),
        **others: int,
    ) -> None:
        launch(compile_ptx(source, arch, *options), *launched, **others)

    return compile_and_launch


@pytest.fixture(scope="session")
def run_ptx() -> Callable[..., None]:
    """`run_ptx(body, block, *arrays)` runs instructions written by hand as kernel `k`; see `assembled`."""

    def assembled_and_launched(
        body: str, block: int, *arrays: np.ndarray, grid: int = 1, scope: str = "", **others: int
    ) -> None:
        launch(assembled(body, len(arrays), scope), "k", grid, block, *arrays, **others)

    return assembled_and_launched


def assembled(body: str, arrays: int, scope: str = "") -> str:
    """A kernel around a body, which finds the arrays' addresses in %rd1, %rd2, ... and its thread in %r1."""
    parameters = ", ".join(f".param .u64 p{number}" for number in range(1, arrays + 1))
    loads = "\n".join(f"ld.param.u64 %rd{number}, [p{number}];" for number in range(1, arrays + 1))
    return f"""
.version 8.8
.target sm_90
.address_size 64
{scope}
.visible .entry k({parameters})
{{
.reg .pred %p<10>;
.reg .b16 %h<40>;
.reg .b32 %r<40>;
.reg .f32 %f<40>;
.reg .b64 %rd<40>;
.reg .f64 %d<40>;
{loads}
mov.u32 %r1, %tid.x;
{body}
ret;
}}
"""


@pytest.fixture(scope="session")
def compute() -> Callable[..., np.ndarray]:
    """`compute("add.s32 d, a, b;", np.int32, x, y)`: d for each element of the arrays a, b, c, e.

    The registers d, a, b, c, e have the widths of the elements, at least 16 bits; q, r, s are predicates.
    """

    def computed(text: str, dtype: type | np.dtype, *operands: np.ndarray) -> np.ndarray:
        operands = tuple(map(np.ascontiguousarray, np.broadcast_arrays(*operands)))
        result = np.zeros(operands[0].size, dtype)
        body = [".reg .pred q, r, s;"]
        for name, array in zip("dabce", (result, *operands), strict=False):
            body.append(f".reg .b{max(16, 8 * array.itemsize)} {name};")
        for number, (name, array) in enumerate(zip("abce", operands, strict=False), 1):
            body.append(f"mad.wide.u32 %rd20, %r1, {array.itemsize}, %rd{number};")
            kind = (
                "s8"
                if array.dtype == np.int8
                else f"{'u' if array.itemsize == 1 else 'b'}{8 * array.itemsize}"
            )
            body.append(f"ld.global.{kind} {name}, [%rd20];")
        place = f"mad.wide.u32 %rd20, %r1, {result.itemsize}, %rd{len(operands) + 1};"
        body += ["{", text, "}", place, f"st.global.b{8 * result.itemsize} [%rd20], d;"]
        arrays = [array.reshape(-1).view(f"u{array.itemsize}") for array in (*operands, result)]
        launch(assembled("\n".join(body), len(arrays)), "k", 1, result.size, *arrays)
        return result

    return computed
