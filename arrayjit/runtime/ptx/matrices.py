"""Tensor cores: `ldmatrix` and `mma.sync`.

Lane `4 g + t` of a warp holds, of a matrix in fragments with `e` elements a register (PTX ISA, "Warp-level
matrix instructions"): of A in register r rows `g + 8 (r & 1)`, columns `e t + 4 e (r >> 1)` on; of B rows
`e t + 4 e r` on, column `g`; of C and D two columns from `2 t` on, rows `g` and `g + 8`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .encoding import bfloat_values
from .moves import fetched
from .races import WARP
from .rounding import rounded
from .site import Action, Site
from .threads import Threads, Use
from .types import TYPES, Array, Type

__all__ = ["load_matrices", "multiply_accumulate"]

_LANE = np.arange(WARP)
_G, _T = _LANE // 4, _LANE % 4


def _by_warp(values: Array) -> Array:
    return values.reshape(-1, WARP)


def load_matrices(site: Site) -> Action:
    """`ldmatrix`: one, two or four 8 by 8 matrices of 16 bits; the lanes give the addresses of rows."""
    stores = [site.write(part, "b32") for part in site.parts(0)]
    if len(stores) != {"x1": 1, "x2": 2, "x4": 4}[site.choice("x1", "x2", "x4")] or not site.has("m8n8"):
        raise site.unknown("the number of registers, or the shape")
    space, address = site.address(1, "shared")
    transposed = site.has("trans")

    def run(threads: Threads) -> None:
        addresses = _by_warp(address(threads))
        lanes, numbers = threads.lanes, _by_warp(threads.numbers)
        used = numbers[:, : 8 * len(stores)].ravel()
        threads.select(used)
        rows = fetched(threads, space, addresses[:, : 8 * len(stores)].ravel(), 16, Use.READ).view(np.uint16)
        threads.lanes, threads.count = lanes, numbers.size
        matrices = rows.reshape(len(numbers), len(stores), 8, 8)
        if transposed:
            matrices = matrices.swapaxes(2, 3)
        for number, store in enumerate(stores):
            low, high = (matrices[:, number, _G, 2 * _T + half].astype(np.uint32) for half in (0, 1))
            store(threads, (low | high << np.uint32(16)).ravel())

    return run


_TENSOR_FLOAT = "tf32"


def _elements(name: str) -> tuple[int, Callable[[Array], Array]]:
    """How many elements a register holds, and bits, shape (warps, 32), as numbers with one more axis."""
    match name:
        case "f16":
            return 2, lambda bits: bits[..., None].view(np.float16).astype(np.float64)
        case "bf16":
            return 2, lambda bits: bfloat_values(bits[..., None].view(np.uint16)).astype(np.float64)
        case "tf32":
            cut = np.uint32(0xFFFF_E000)
            return 1, lambda bits: (bits & cut)[..., None].view(np.float32).astype(np.float64)
        case "f64":
            return 1, lambda bits: bits[..., None].view(np.float64)
        case "s8":
            return 4, lambda bits: bits[..., None].view(np.int8).astype(np.float64)
        case _:
            return 4, lambda bits: bits[..., None].view(np.uint8).astype(np.float64)


def multiply_accumulate(site: Site) -> Action:
    """`mma.sync`: D = A B + C. Products and sums are exact, or as float64 has them, and rounded once."""
    shape = next((each for each in site.instruction.modifiers if re.fullmatch(r"m\d+n8k\d+", each)), "")
    if not shape or not site.has("row") or not site.has("col") or site.has("sp"):
        raise site.unknown("its shape or its layout")
    rows, depth = (int(each) for each in re.findall(r"\d+", shape)[::2])
    names = [each for each in site.instruction.modifiers if each in TYPES or each == _TENSOR_FLOAT]
    if len(names) != 4 or names[1] not in ("f16", "bf16", "tf32", "f64", "s8", "u8"):
        raise site.unknown("its types")
    result, first, second, summand = names
    if result != summand or (rows, depth) not in _SHAPES[first]:
        raise site.unknown(f"{shape} of these types")
    left = _factor(site, 1, first, rows, depth, is_left=True)
    right = _factor(site, 2, second, 8, depth, is_left=False)
    read_sum, store_sum = _accumulator(site, TYPES[result], rows)

    def run(threads: Threads) -> None:
        total = read_sum(threads)
        store_sum(threads, total + left(threads) @ right(threads))

    return run


_SHAPES = {
    "f16": {(16, 8), (16, 16)},
    "bf16": {(16, 8), (16, 16)},
    "tf32": {(16, 4), (16, 8)},
    "f64": {(8, 4), (16, 4), (16, 8), (16, 16)},
    "s8": {(16, 16), (16, 32)},
    "u8": {(16, 16), (16, 32)},
}


def _factor(
    site: Site, operand: int, name: str, width: int, depth: int, *, is_left: bool
) -> Callable[[Threads], Array]:
    """A as (warps, width, depth), B as (warps, depth, width)."""
    count, numbers_of = _elements(name)
    bits = "b64" if name == "f64" else "b32"
    reads = [site.read(part, bits) for part in site.parts(operand)]
    if len(reads) * count * WARP != width * depth:
        raise site.unknown(f"{len(reads)} registers for {width} by {depth} elements")
    blocks = width // 8

    def run(threads: Threads) -> Array:
        matrix = np.empty((threads.count // WARP, width, depth))
        for number, read in enumerate(reads):
            bits = np.ascontiguousarray(np.broadcast_to(read(threads), threads.count)).reshape(-1, WARP)
            values = numbers_of(bits)
            along, across = divmod(number, blocks)
            for element in range(count):
                matrix[:, _G + 8 * across, count * _T + element + 4 * count * along] = values[..., element]
        return matrix if is_left else matrix.swapaxes(1, 2)

    return run


def _accumulator(
    site: Site, kind: Type, rows: int
) -> tuple[Callable[[Threads], Array], Callable[[Threads, Array], None]]:
    """How C is read, and D is stored, as (warps, rows, 8)."""
    packs = kind.name == "f16"
    register = "b32" if packs else kind
    reads = [site.read(part, register) for part in site.parts(3)]
    stores = [site.write(part, register) for part in site.parts(0)]
    if not len(reads) == len(stores) == rows // 8 * (1 if packs else 2):
        raise site.unknown(f"{len(reads)} registers for {rows} by 8 sums")

    def read(threads: Threads) -> Array:
        total = np.empty((threads.count // WARP, rows, 8))
        for number, each in enumerate(reads):
            values = _by_warp(np.ascontiguousarray(np.broadcast_to(each(threads), threads.count)))
            if packs:
                total[:, _G[:, None] + 8 * number, 2 * _T[:, None] + [0, 1]] = values[..., None].view(
                    np.float16
                )
            else:
                total[:, _G + 8 * (number >> 1), 2 * _T + (number & 1)] = values
        return total

    def store(threads: Threads, total: Array) -> None:
        for number, each in enumerate(stores):
            if packs:
                pairs = total[:, _G[:, None] + 8 * number, 2 * _T[:, None] + [0, 1]].astype(np.float16)
                each(threads, np.ascontiguousarray(pairs).view(np.uint32).ravel())
            else:
                values = total[:, _G + 8 * (number >> 1), 2 * _T + (number & 1)].ravel()
                if kind.is_float:
                    values = rounded(values, np.zeros_like(values), kind)
                each(threads, values.astype(kind.dtype) if kind.is_float else _wrapped(site, values))

    return read, store


def _wrapped(site: Site, values: Array) -> Array:
    """Sums of integers in 32 bits, clamped with `.satfinite`."""
    whole = values.astype(np.int64)
    if site.has("satfinite"):
        whole = np.clip(whole, -(1 << 31), (1 << 31) - 1)
    return whole.astype(np.int32)
