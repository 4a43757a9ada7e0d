"""Runs hand-written programs: by the meaning of the IR, and compiled for each target, which must agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from arrayjit.assignments import Node, Program
from arrayjit.compile import build
from arrayjit.compile import run as launch
from arrayjit.ir.assign import ArrayParam, Computation
from arrayjit.ir.index import Symbol
from arrayjit.ir.interp import run_computation
from arrayjit.ir.ops import Op
from arrayjit.ir.parse import parse
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.text import print_computation
from arrayjit.ir.verify import verify_computation

__all__ = ["TARGETS", "double_loop", "outcome", "text"]

TARGETS = ("interp", "sync_llvm")

Arrays = Mapping[Node, Any]


def text(program: Program) -> str:
    return print_computation(program.computation)


def outcome(
    program: Program,
    arrays: Arrays,
    bindings: Mapping[Symbol, int] | None = None,
    merged: Mapping[int, Any] | None = None,
) -> dict[Node, np.ndarray]:
    """What a program leaves in the nodes of the context. `arrays` has what they hold before (others are
    full of a number that nobody computes), `merged` what is in the merge buffers."""
    verify_computation(program.computation)
    again = print_computation(_computation(print_computation(program.computation)))
    assert print_computation(_computation(again)) == again
    results = [_run(program, arrays, bindings or {}, merged or {}, target) for target in ("", *TARGETS)]
    for other in results[1:]:
        for node, array in results[0].items():
            np.testing.assert_allclose(other[node], array, rtol=1e-6 if array.dtype == "f4" else 1e-13)
    return results[0]


def _computation(text: str) -> Computation:
    program = parse(text)
    assert isinstance(program, Computation)
    return program


def _run(
    program: Program, arrays: Arrays, bindings: Mapping[Symbol, int], merged: Mapping[int, Any], target: str
) -> dict[Node, np.ndarray]:
    found = {
        node: np.array(np.broadcast_to(arrays.get(node, 77), node.shape), node.dtype.numpy, order="C")
        for node in program.nodes
    }
    memory: dict[Tensor, np.ndarray] = {node.tensor: array for node, array in found.items()}
    params = []
    for param in program.computation.params:
        if isinstance(param, ArrayParam) and param.access == "merge":
            assert param.source is not None
            memory[param.tensor] = np.array(merged[param.slot], param.tensor.dtype.numpy)
            param = ArrayParam(param.tensor, "read")
        params.append(param)
    computation = replace(program.computation, params=tuple(params))
    if target:
        launch(build(computation, target).load(), memory, bindings)
    else:
        run_computation(computation, memory, bindings)
    return found


def double_loop(
    result: np.ndarray,
    extents: Sequence[int],
    cell: Any,
    value: Any,
    op: Op | None = None,
    neutral: Any = None,
) -> np.ndarray:
    """What a statement means: for each point in order, `result[cell(*point)] = op(.., value(*point))`."""
    before = result.copy()
    result = result.copy() if neutral is None else np.full_like(result, neutral)
    with np.errstate(all="ignore"):
        for point in product(*map(range, extents)):
            new = result.dtype.type(value(before, *point))
            where = cell(*point)
            result[where] = new if op is None else op.ref(result[where], new)
    return result
