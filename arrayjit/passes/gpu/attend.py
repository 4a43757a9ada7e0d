"""attend: a product whose rows are weighed and multiplied again, as attention does, stays within the blocks.

    for i in parallel(0, 512):                      for g in grid(0, 8):
        for j in parallel(0, 512):                      for c in sequential(0, 8):
            ... s[i, j] = ...                               ...         a tile of scores and its weights
    for i in parallel(0, 512):              ->              ...         are made and used here
        ... p[i, j] = divide(e[j], a)                   for t in block(0, 256, lanes=256):
    for i in parallel(0, 512):                              y[64*g + ..., ...] = ...
        for d in parallel(0, 64):
            ... y[i, d] = ...

`weights` says which programs that are. Scores of float32 and float64 are gone through once, where `online`
says that this is enough, as `attention` does it; tensor cores sweep over those of small floats.
What stands between the three is done before; it must not change what they read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ir.code import Caps, GpuCaps
from ...ir.dtype import F32, F64
from ...ir.expr import Const, Variable
from ...ir.loops import For, Kernel, LoopKind, Place, Stmt
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies
from ..analysis.access import effects, loads
from ..analysis.uses import counts
from ..analysis.values import definitions
from .attention import RESULTS, Tiles, attending
from .online import OnePass, one_pass
from .sweeps import sweeping, sweeps
from .weights import Weighing, scored

__all__ = ["attend"]

ROWS = (64, 32)
"""Of a tile: more read the factors less often, fewer keep more processors busy."""


def attend(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with scores that no launch hands on."""
    gpu = caps.gpu
    if gpu is None:
        return kernel
    temporaries = frozenset(tensor for tensor in kernel.placement if tensor.storage is tensor)
    constants, uses = _constants(kernel.body), counts(kernel.body)
    placement = dict(kernel.placement)
    notes = list(kernel.notes)

    def visit(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        joined: dict[int, Stmt | None] = {}
        for number, stmt in enumerate(body):
            if id(stmt) in joined or not isinstance(stmt, For):
                continue
            if stmt.kind is LoopKind.SEQUENTIAL:
                joined[id(stmt)] = rewrite_bodies(stmt, visit)
                continue
            found = _found(body[number:], temporaries, constants)
            grid = join(found) if found is not None and found.is_all(uses) else None
            if found is not None and grid is not None:
                joined |= dict.fromkeys(map(id, found.statements)) | {id(found.statements[-1]): grid}
        new = [joined.get(id(stmt), stmt) for stmt in body]
        return kept(body, [stmt for stmt in new if stmt is not None])

    def join(found: _Found) -> For | None:
        name = found.weighing.stored.tensor.label
        made = _made(found.weighing, gpu)
        if isinstance(made, str):
            notes.append(f"attend: {name} goes through memory: {made}")
        if not isinstance(made, _Made):
            return None
        for tensor in found.tensors:
            placement.pop(tensor, None)
        placement.update(made.places)
        notes.append(f"attend: {name} stays in {made.note}")
        return made.grid

    body = visit(kernel.body)
    if body is kernel.body:
        return kernel if len(notes) == len(kernel.notes) else replace(kernel, notes=tuple(notes))
    return replace(kernel, body=body, placement=placement, notes=tuple(notes))


@frozen
class _Found:
    """The statements that a weighing is, with the temporaries that these have."""

    weighing: Weighing
    statements: tuple[Stmt, ...]
    tensors: frozenset[Tensor]

    def is_all(self, uses: Counter[Tensor]) -> bool:
        """Does nothing else need what will no longer be there?"""
        here = counts(self.statements)
        return all(here[tensor] == uses[tensor] for tensor in self.tensors)


@frozen
class _Made:
    """What is made of a weighing, with where its temporaries live."""

    grid: For
    places: dict[Tensor, Place]
    note: str


def _constants(body: tuple[Stmt, ...]) -> dict[Variable, Const]:
    """The variables that have one known value."""
    values = {variable: stmt.value for variable, stmt in definitions(body).items()}
    return {variable: value for variable, value in values.items() if isinstance(value, Const)}


def _found(
    body: Sequence[Stmt], temporaries: frozenset[Tensor], constants: Mapping[Variable, Const]
) -> _Found | None:
    """What starts with the first statement of a body."""
    first, *others = body
    rows = scored(first, temporaries, constants)
    if rows is None:
        return None
    mine, between = [first], list[Stmt]()
    for stmt in others:
        if not rows.reads(stmt):
            between.append(stmt)
            continue
        weighing = rows.result(stmt)
        if weighing is not None:
            mine.append(stmt)
            found = _Found(weighing, tuple(mine), frozenset(rows.cells))
            return found if _may_join(found, between) else None
        if not rows.takes(stmt):
            return None
        mine.append(stmt)
    return None


def _may_join(found: _Found, between: Sequence[Stmt]) -> bool:
    """May all be done where the last statement is, row by row?"""
    *others, last = found.statements
    reads, result, changes = effects(others, {}), effects((last,), {}), effects(between, {})
    return not (
        reads.reads.keys() & (changes.writes.keys() | result.writes.keys())
        or reads.uses & changes.updates
        or (reads.writes.keys() - found.tensors)
        or reads.updates
        or reads.leaves
    )


def _made(weighing: Weighing, gpu: GpuCaps) -> _Made | str | None:
    """The tiles of rows as a grid; or why they go through memory, if they are something like attention."""
    if _are_small(weighing):
        plan = sweeping(weighing, gpu)
        if isinstance(plan, str):
            return plan
        grid, places = sweeps(plan)
        tile = plan.tile
        return _Made(
            grid, places, f"blocks of {tile.threads} threads, {tile.rows} rows each, by tensor cores"
        )
    program = one_pass(weighing)
    if program is None:
        return None
    tiles = _chosen(program, gpu)
    if isinstance(tiles, str):
        return tiles
    grid, places = attending(program, tiles, gpu.access_bytes)
    scores = tiles.scores
    return _Made(grid, places, f"blocks of {scores.threads} threads, {scores.rows} rows each")


def _are_small(weighing: Weighing) -> bool:
    """Are scores made of small floats?"""
    (total,) = weighing.scores.sums
    return any(tensor.dtype.is_small for tensor, _ in loads(total.right))


def _chosen(program: OnePass, gpu: GpuCaps) -> Tiles | str:
    """The tiles that keep the processors busy; or why there are none."""
    scores, result = program.scores, program.result
    dtype, columns = program.stored.tensor.dtype, result.columns.trips or 0
    sums = {scores.sums[0].variable.dtype, result.sums[0].variable.dtype}
    if dtype not in (F32, F64) or sums != {dtype}:
        return f"scores are {dtype.name}"
    most = RESULTS[-1].columns
    if columns > most:
        return f"a block has no room for {columns} columns of the result, but for {most}"
    around = math.prod(loop.trips or 0 for loop in scores.around)
    fitting = [
        tiles
        for tiles in (Tiles.of(rows, columns) for rows in ROWS)
        if tiles.shared_bytes(dtype.itemsize, gpu.access_bytes) <= gpu.array_bytes
    ]
    if not fitting:
        return f"tiles of {dtype.name} do not fit into the memory of a block"
    for tiles in fitting:
        if around * -(-(scores.rows.trips or 0) // tiles.scores.rows) >= gpu.processors:
            return tiles
    return f"there are too few rows for {gpu.processors} processors"
