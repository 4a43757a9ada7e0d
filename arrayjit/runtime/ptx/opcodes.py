"""The table of opcodes: how each is decoded, and the modifiers that it may have besides types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from . import (
    atomics,
    bits,
    comparisons,
    conversions,
    copies,
    floats,
    integers,
    matrices,
    moves,
    rounding,
    warps,
)
from .elementwise import plain
from .site import Maker, Reader, Site
from .types import TYPES

__all__ = ["OPCODES", "Opcode"]


@frozen
class Opcode:
    """One row. `members`, of a warp's operations, reads which lanes take part."""

    make: Maker
    modifiers: frozenset[str]
    members: Callable[[Site], Reader | None] | None = None

    def check(self, site: Site) -> None:
        """Raises UnknownInstruction for a modifier that has no meaning here."""
        unknown = [each for each in site.instruction.modifiers if each not in TYPES and not self.takes(each)]
        if unknown:
            raise site.unknown(", ".join(f".{each}" for each in unknown))

    def takes(self, modifier: str) -> bool:
        """Is it one of the modifiers, or a hint to caches that has a number or a place in it?"""
        if modifier in self.modifiers:
            return True
        return "L1" in self.modifiers and modifier.startswith(("L1::", "L2::"))


def _row(make: Maker, modifiers: str = "", members: Callable[[Site], Reader | None] | None = None) -> Opcode:
    return Opcode(make, frozenset(modifiers.split()), members)


def _all_lanes(site: Site) -> None:
    """Of operations that whole warps do."""


def _by_kind(integer: Maker, floating: Maker) -> Maker:
    return lambda site: floating(site) if site.type.is_float else integer(site)


_ROUNDING = "rn rz rm rp ftz sat "
_ACCESS = (
    "global shared local const param shared::cta param::entry volatile relaxed acquire release weak "
    "mmio cta cluster gpu sys nc ca cg cs lu cv wb wt v2 v4 v8 L1 L2::cache_hint unified "
)
_ATOMIC = (
    "global shared shared::cta relaxed acquire release acq_rel cta cluster gpu sys add min max and or xor "
    "exch cas inc dec noftz v2 v4 v8 "
)
_COPY = "async ca cg shared shared::cta global commit_group wait_group wait_all L1 L2::cache_hint"
_MATRIX = "sync aligned "
_SHAPES = "m8n8k4 m16n8k4 m16n8k8 m16n8k16 m16n8k32 "
_ORDERS = " ".join(comparisons.ORDERS)
_FUSED = floats.rounded(rounding.fused, 3)

OPCODES: dict[str, Opcode] = {
    "abs": _row(_by_kind(plain(np.abs, 1), floats.exact(np.abs)), "ftz"),
    "add": _row(_by_kind(integers.add, floats.rounded(rounding.added, 2)), _ROUNDING + "cc"),
    "activemask": _row(warps.active_mask),
    "addc": _row(integers.add, "cc"),
    "and": _row(plain(np.bitwise_and, 2)),
    "atom": _row(atomics.change, _ATOMIC),
    "bar.warp": _row(warps.synchronise, "warp sync", warps.last_operand),
    "bfe": _row(bits.extract_field),
    "bfi": _row(bits.insert_field),
    "bfind": _row(bits.find_leading, "shiftamt"),
    "bmsk": _row(bits.bit_mask, "clamp wrap"),
    "brev": _row(bits.reverse),
    "clz": _row(bits.count_zeros),
    "cnot": _row(plain(lambda x: (x == 0).astype(x.dtype), 1)),
    "copysign": _row(plain(lambda x, y: np.copysign(y, x), 2)),
    "cos": _row(floats.approximation, "approx ftz"),
    "cp": _row(copies.asynchronous, _COPY),
    "createpolicy": _row(moves.policy, "fractional L1"),
    "cvt": _row(conversions.convert, _ROUNDING + "rni rzi rmi rpi rna tf32 relu satfinite pack"),
    "cvta": _row(moves.convert_address, "to global shared local const param shared::cta"),
    "applypriority": _row(moves.nothing, "global L1"),
    "discard": _row(moves.nothing, "global L1 L2"),
    "div": _row(
        _by_kind(plain(integers.quotient, 2), floats.rounded(rounding.divided, 2)), _ROUNDING + "approx full"
    ),
    "dp2a": _row(integers.dot_product, "lo hi"),
    "dp4a": _row(integers.dot_product),
    "elect": _row(warps.elect, "sync", warps.last_operand),
    "ex2": _row(floats.approximation, "approx ftz"),
    "fence": _row(moves.fence, "sc acq_rel acquire release cta gpu sys cluster"),
    "fma": _row(_FUSED, _ROUNDING + "relu"),
    "ld": _row(moves.load, _ACCESS),
    "ldu": _row(moves.load, "global v2 v4"),
    "ldmatrix": _row(matrices.load_matrices, _MATRIX + "m8n8 x1 x2 x4 trans shared shared::cta", _all_lanes),
    "lg2": _row(floats.approximation, "approx ftz"),
    "lop3": _row(bits.logic),
    "mad": _row(_by_kind(integers.multiply_add, _FUSED), _ROUNDING + "lo hi wide cc"),
    "mad24": _row(integers.multiply_add_24, "lo hi sat"),
    "madc": _row(integers.multiply_add, "lo hi cc"),
    "match": _row(warps.match, "any all sync", warps.last_operand),
    "max": _row(_by_kind(integers.extreme(np.maximum), floats.maximum), "ftz NaN xorsign abs relu"),
    "membar": _row(moves.fence, "cta gl sys"),
    "min": _row(_by_kind(integers.extreme(np.minimum), floats.minimum), "ftz NaN xorsign abs relu"),
    "mma": _row(matrices.multiply_accumulate, _MATRIX + _SHAPES + "row col tf32 satfinite", _all_lanes),
    "mov": _row(moves.move),
    "mul": _row(
        _by_kind(integers.multiply, floats.rounded(rounding.multiplied, 2)), _ROUNDING + "lo hi wide"
    ),
    "mul24": _row(integers.multiply_24, "lo hi"),
    "nanosleep": _row(moves.nothing),
    "neg": _row(_by_kind(plain(np.negative, 1), floats.exact(np.negative)), "ftz"),
    "not": _row(plain(np.invert, 1)),
    "or": _row(plain(np.bitwise_or, 2)),
    "popc": _row(bits.count_ones),
    "prefetch": _row(
        moves.nothing, "global local const param L1 L2 L2::evict_last L2::evict_normal tensormap"
    ),
    "prefetchu": _row(moves.nothing, "L1"),
    "prmt": _row(bits.permute_bytes, "f4e b4e rc8 ecl ecr rc16"),
    "rcp": _row(floats.reciprocal, _ROUNDING + "approx"),
    "red": _row(atomics.change_silently, _ATOMIC),
    "redux": _row(warps.reduce, "sync add min max and or xor", warps.last_operand),
    "rem": _row(plain(integers.rest, 2)),
    "rsqrt": _row(floats.approximation, "approx ftz"),
    "sad": _row(plain(lambda x, y, z: np.maximum(x, y) - np.minimum(x, y) + z, 3)),
    "selp": _row(comparisons.choose),
    "set": _row(comparisons.set_register, _ORDERS + " and or xor ftz"),
    "setp": _row(comparisons.set_predicate, _ORDERS + " and or xor ftz"),
    "shf": _row(bits.funnel_shift, "l r clamp wrap"),
    "shfl": _row(warps.shuffle, "sync up down bfly idx", warps.last_operand),
    "shl": _row(bits.shift_left),
    "shr": _row(bits.shift_right),
    "sin": _row(floats.approximation, "approx ftz"),
    "slct": _row(comparisons.choose_by_sign, "ftz"),
    "sqrt": _row(floats.rounded(rounding.square_root, 1), _ROUNDING + "approx"),
    "st": _row(moves.store, _ACCESS),
    "sub": _row(_by_kind(integers.subtract, floats.rounded(rounding.subtracted, 2)), _ROUNDING + "cc"),
    "subc": _row(integers.subtract, "cc"),
    "szext": _row(bits.sign_extend, "clamp wrap"),
    "tanh": _row(floats.approximation, "approx"),
    "testp": _row(comparisons.is_of_class, "finite infinite number notanumber normal subnormal"),
    "vote": _row(warps.vote, "sync all any uni ballot", warps.last_operand),
    "xor": _row(plain(np.bitwise_xor, 2)),
    "isspacep": _row(moves.is_in_space, "global shared local const param shared::cta"),
}
