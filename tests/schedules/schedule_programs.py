"""The tensors and the programs of the schedules: each program as a computation and as a NumPy function.

All of them are `into = sum of factor * operand + constant`, summed from left to right, so that every target
computes the same bits; and which of two came first is seen in the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from arrayjit.ir.assign import ArrayParam, Assign, Check, Computation, IndexParam
from arrayjit.ir.code import Code
from arrayjit.ir.dtype import BOOL, F64
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Load
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor

__all__ = ["CONSTANTS", "FAILING", "PLANNED", "PROGRAMS", "STEP", "TENSORS", "VARIABLES", "Program"]

X, Y, Z = (Tensor.of(label, (4,), F64) for label in "xyz")
BIG = Tensor.of("big", (7,), F64)
WEIGHTS = Tensor.of("weights", (4,), F64)
VARIABLES = (X, Y, Z, BIG)
TENSORS = (*VARIABLES, WEIGHTS)
CONSTANTS = {WEIGHTS: np.array([0.5, -1.0, 2.0, 0.25])}
STEP = Symbol("step", SymbolKind.STATIC, 0, 100)
PLANNED = "a planned failure"


@dataclass(frozen=True)
class Program:
    """`into = sum of terms + constant`, plus the number of the launch where it `has_step`.

    A term is a factor and a tensor, or the number of a merge buffer and the tensor that it must hold.
    """

    name: str
    into: Tensor
    terms: tuple[tuple[float, Tensor], ...] = ()
    merged: tuple[tuple[float, Tensor, int], ...] = ()
    constant: float = 0.0
    has_step: bool = False
    fails: bool = False

    @cached_property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors of a context that it reads."""
        return tuple(tensor for _, tensor in self.terms)

    @cached_property
    def merges(self) -> Mapping[int, Tensor]:
        """What it reads from merge buffers, by slot."""
        return {slot: tensor for _, tensor, slot in self.merged}

    @property
    def is_update(self) -> bool:
        return self.into in self.operands

    @cached_property
    def params(self) -> tuple[ArrayParam | IndexParam, ...]:
        """First what it writes, then what it reads, then merge buffers."""
        others = [tensor for tensor in self.operands if tensor is not self.into]
        return (
            ArrayParam(self.into, "update" if self.is_update else "write"),
            *(ArrayParam(tensor, "read") for tensor in others),
            *(
                ArrayParam(Tensor(f"{tensor.label}_{slot}", tensor.shape, F64), "merge", tensor, slot)
                for slot, tensor in self.merges.items()
            ),
            *((IndexParam(STEP),) if self.has_step else ()),
        )

    def run(self, *arguments: np.ndarray | int) -> None:
        """In NumPy, on the values of the parameters."""
        into, *rest = arguments
        assert isinstance(into, np.ndarray)
        if self.fails:
            raise RuntimeError(PLANNED)
        operands = [into, *rest] if self.is_update else rest
        factors = [factor for factor, *_ in (*self.terms, *self.merged)]
        total = np.full(into.shape, self.constant)
        for factor, operand in zip(factors, operands, strict=False):
            total = total + factor * operand
        into[:] = total + operands[-1] if self.has_step else total

    @cached_property
    def computation(self) -> Computation:
        i = Symbol("i")
        at, loops = (Affine.of(i),), ((i, self.into.shape[0]),)
        sources = {param.slot: param.tensor for param in self.params if _is_merge(param)}
        read = [
            *((factor, Load(tensor, at)) for factor, tensor in self.terms),
            *((factor, Load(sources[slot], at)) for factor, _, slot in self.merged),
        ]
        values = [_apply("multiply", Const(factor, F64), load) for factor, load in read]
        if self.has_step:
            values.append(Cast(Index(Affine.of(STEP)), F64))
        value = reduce(lambda total, one: _apply("add", total, one), values, Const(self.constant, F64))
        check = Check((), Const(False, BOOL), "ValueError", PLANNED)
        return Computation(
            self.name, self.params, (*((check,) if self.fails else ()), Assign(loops, self.into, at, value))
        )

    @cached_property
    def lazy(self) -> Code:
        return Code("lazy", self.name, self.run, self.params)


def _is_merge(param: ArrayParam | IndexParam) -> bool:
    return isinstance(param, ArrayParam) and param.access == "merge"


def _apply(name: str, left: Expr, right: Expr) -> Expr:
    return Apply(op(name), (left, right), F64)


PROGRAMS = (
    *(Program(f"fill_{tensor.label}", tensor, constant=3.0, has_step=True) for tensor in VARIABLES),
    *(Program(f"decay_{tensor.label}", tensor, ((0.5, tensor),), constant=1.0) for tensor in VARIABLES),
    Program("step_x", X, ((0.25, X),), has_step=True),
    Program("mix_z", Z, ((1.0, X), (-0.5, Y))),
    Program("blend_x", X, ((0.5, X), (0.25, Y))),
    Program("weigh_y", Y, ((0.5, Y), (0.25, WEIGHTS))),
    Program("turn_y", Y, ((-0.75, Z),), constant=2.0),
    Program("merge_x", X, ((0.5, X),), merged=((0.25, X, 0),)),
    Program("merge_y", Y, merged=((-0.5, X, 1),)),
    Program("merge_z", Z, ((0.5, Y),), merged=((0.5, X, 0), (0.25, Y, 1))),
    Program("merge_big", BIG, ((0.5, BIG),), merged=((0.25, BIG, 0),)),
)
FAILING = Program("fail_y", Y, ((1.0, X),), fails=True)
