"""What tensor cores compute: the meaning of `Multiply`, in NumPy, and whether its tensors fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .dtype import F32
from .frame import Array
from .index import Affine, affine
from .loops import Copy, For, LoopKind, Multiply, Place, PlaceKind, Stmt, walk_statements
from .tensor import Tensor

__all__ = ["block_sizes", "factors", "misfit", "multiplied", "tile_ends"]

WARP = 32


def multiplied(product: Multiply, sums: Array, left: Array, right: Array) -> Array:
    """The sums of the threads, and the product of two matrices added to them. What threads own is put in rows
    and columns for that, and back."""
    if product.owns_left:
        left = _by_place(product, left).reshape(-1, len(right.T if product.turned[1] else right))
    left, right = (
        _exact(factor.T if turned else factor)
        for factor, turned in zip((left, right), product.turned, strict=True)
    )
    by_place = _by_place(product, sums)
    total = by_place.reshape(len(left), right.shape[1])
    for k in range(0, len(right), product.terms):
        products = left[:, k : k + product.terms] @ right[k : k + product.terms]
        total = (total + products).astype(sums.dtype)
    result: Array = total.reshape(by_place.shape).transpose(0, 4, 3, 6, 1, 5, 2, 7).reshape(sums.shape)
    return result


def _by_place(product: Multiply, own: Array) -> Array:
    """What threads own, along axes that are rows one after the other, then columns."""
    _, down, across, _, _ = own.shape
    by_thread: Array = own.reshape(*product.warps, 8, 4, down, across, 2, 2)
    by_place: Array = by_thread.transpose(0, 4, 6, 2, 1, 5, 3, 7)
    return by_place


def _exact(factor: Array) -> Array:
    """What tensor cores make of a factor, as float64: of float32 TF32, by a carry out of the half below the
    last bit that is kept."""
    if factor.dtype == np.float32:
        bits = np.ascontiguousarray(factor).view(np.uint32)
        kept = (bits + np.uint32(0x1000) & np.uint32(0xFFFF_E000)).view(np.float32)
        factor = np.where(np.isfinite(factor), kept, factor)
    return factor.astype(np.float64)


def factors(body: tuple[Stmt, ...]) -> frozenset[Tensor]:
    """The tensors that tensor cores read in shared memory."""
    products = (stmt for stmt in walk_statements(body) if isinstance(stmt, Multiply))
    return frozenset(factor for product in products for factor, _ in product.factors)


def block_sizes(body: tuple[Stmt, ...]) -> set[int]:
    """How many threads a grid's body says that a block has."""
    sizes: set[int] = set()
    for stmt in walk_statements(body):
        match stmt:
            case For(kind=LoopKind.BLOCK, lanes=lanes):
                sizes.add(lanes)
            case Multiply(warps=(down, across)):
                sizes.add(WARP * down * across)
            case _:
                pass
    return sizes


def tile_ends(stmt: Copy | Multiply) -> Iterator[tuple[Tensor, tuple[Affine, ...]]]:
    """Cells at the ends of what a statement reaches of tensors for tensor cores."""
    match stmt:
        case Copy(into=into, index=(*before, last), cells=cells):
            yield from ((into, (*before, position)) for position in (last, last + (cells - 1)))
        case Multiply():
            yield from stmt.factors


def misfit(stmt: Copy | Multiply, placement: Mapping[Tensor, Place]) -> str | None:
    """What is wrong with the tensors of a statement, if anything is."""
    match stmt:
        case Copy(into=into, source=source):
            if source.dtype is not into.dtype:
                return f"{source} is copied into {into}"
            along = source.element_strides()[-1:] == (Affine.of(1),)
            return None if along else f"{source} is copied, and its last axis is not along memory"
        case Multiply():
            wrong = _mismatch(stmt)
            places = {stmt.total: PlaceKind.OWN, stmt.left: PlaceKind.OWN}
            places |= {tile: PlaceKind.SHARED for tile, _ in stmt.factors}
            for tensor, kind in places.items():
                if placement and placement[tensor].kind is not kind:
                    wrong = wrong or f"{tensor} is not {kind.value}"
            return wrong


def _mismatch(product: Multiply) -> str | None:
    """What does not fit in the shapes and the dtypes of a product."""
    total, left, right = product.total, product.left, product.right
    for factor, _ in product.factors:
        fixed = factor.rank == 3 and factor.has_fixed_shape
        if not fixed or not (factor.dtype.is_small or factor.dtype is F32):
            return f"{factor} is no stages of matrices of small floats or float32s"
    if left.dtype is not right.dtype or total.dtype is not F32:
        return f"{left} and {right} are added to {total}"
    rows, columns, depth = product.extents
    down, across = product.warps
    tile = rows // (16 * down), columns // (8 * across)
    if (16 * down * tile[0], 8 * across * tile[1]) != (rows, columns) or tile[1] % 2 or depth % product.terms:
        return f"{left} and {right} are no whole tiles of {down} by {across} warps"
    if total.shape != _owned(product, columns):
        return f"{total} is not what {down} by {across} warps keep of {rows} by {columns} sums"
    if product.owns_left:
        fits = left.shape == _owned(product, depth) and left.dtype.is_small
        return None if fits and across == 1 and not product.turned[0] else f"{left} does not lie as sums do"
    return (
        None
        if left.shape[1 if product.turned[0] else 2] == Affine.of(depth)
        else (f"{left} and {right} differ in their depths")
    )


def _owned(product: Multiply, columns: int) -> tuple[Affine, ...]:
    """The shape of what the threads own that has the rows of a product, and so many columns."""
    down, across = product.warps
    return affine((WARP * down * across, product.extents[0] // (16 * down), columns // (8 * across), 2, 2))
