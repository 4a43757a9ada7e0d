"""place: each temporary gets a place to live in; most vanish.

    for i in parallel(0, 8):                        for i in parallel(0, 8):
        t[i] = multiply(a[i], b[i])                     t0 = multiply(a[i], b[i])
        u[i] = add(t[i], 1.0)                           u[i] = add(t0, 1.0)

An axis of a temporary is dropped where all its uses stand in one iteration of a loop and have the same
index along that axis: a temporary without axes left is a variable, one with axes left is a row (or a
slab) used again by the next iteration, whose loop is then sequential. So is a row along the first axis that
is read in a flat shape as well, if one loop is around all uses. What both sides of a branch write first is a
variable from before it on, and so is what a loop leaves after its last iteration. What remains goes to the
stack while there is room, else to the routine's arena.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import field

from ...frozen import frozen, replace, slotted
from ...ir.code import Caps
from ...ir.expr import Expr, Load, Local, Variable, constant
from ...ir.index import Affine, Symbol, SymbolKind
from ...ir.loops import Define, For, If, Kernel, LoopKind, Place, PlaceKind, Stmt, Store, Update
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, rewrite_expressions, transform
from ..analysis.access import Range
from ..analysis.trips import enter
from ..analysis.uses import Frame, Path, Use, common_path, makes_anew, uses_of_temporaries

__all__ = ["place"]


def place(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its temporaries contracted and placed."""
    uses = uses_of_temporaries(kernel)
    if not uses:
        return kernel
    plan = _Plan(caps.stack_bytes, caps.gpu is None)
    for storage, found in uses.items():
        plan.decide(storage, found)
    body = plan.rewritten(kernel.body)
    return replace(kernel, body=body, placement=plan.placement, notes=(*kernel.notes, *plan.notes))


@frozen
class _Row:
    """A smaller tensor in place of a temporary; `axes` are those that it keeps. Its cells start at `start`
    of a flat one."""

    tensor: Tensor
    axes: tuple[int, ...]
    start: Affine = Affine.of(0)

    def cell(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        if self.tensor.base is not None:
            return (index[0] - self.start,)
        return tuple(index[axis] for axis in self.axes)


@slotted
class _Plan:
    """The decisions: variables and rows by the temporary that they replace. Variables are defined by the
    statements of `definitions`, before the branches that have those of `sides`, or before `loops`. On GPUs
    the threads of a block share rows, and flat shapes stay."""

    stack_left: int
    takes_flat_rows: bool
    variables: dict[Tensor, Variable] = field(default_factory=dict)
    definitions: set[int] = field(default_factory=set)
    sides: set[int] = field(default_factory=set)
    loops: dict[int, list[Variable]] = field(default_factory=dict)
    rows: dict[Tensor, _Row] = field(default_factory=dict)
    sequential: set[Symbol] = field(default_factory=set)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def decide(self, storage: Tensor, uses: Sequence[Use]) -> None:
        """Where the temporary `storage` lives."""
        common = common_path(use.path for use in uses)
        around = _rows_around(storage, uses, common) if self.takes_flat_rows else None
        if around is not None:
            axes, reason = tuple(range(1, storage.rank)), _of_iterations([around])
        else:
            axes, reason = _kept_axes(uses, common)
        if not axes and self.is_variable(storage, uses, common):
            self.notes.append(f"place: {storage.label} is a variable: {reason}")
            return
        home = storage
        if len(axes) < storage.rank:
            home = Tensor(storage.label, tuple(storage.shape[axis] for axis in axes), storage.dtype)
            self.rows[storage] = _Row(home, axes)
            if around is not None:
                flat, start = home.flat_form(), Affine.of(around) * home.size
                self.rows |= {use.tensor: _Row(flat, (), start) for use in uses if use.tensor is not storage}
            self.sequential.update(frame.loop.symbol for frame in common if frame.loop)
        kind = self.memory(home)
        self.placement[home] = Place(kind, reason)
        self.notes.append(f"place: {home} is in {kind.words}: {reason}")

    def is_variable(self, storage: Tensor, uses: Sequence[Use], common: Path) -> bool:
        """Whether a temporary without axes can be a variable, which it then is."""
        first = uses[0]
        variable = Variable(storage.label, storage.dtype)
        if first.writes and first.path == common and first.index is not None:
            self.definitions.add(id(first.stmt))
        elif _is_written_on_both_sides(uses, common):
            self.sides.add(id(first.stmt))
        elif _is_left_by_loops(uses, common):
            self.loops.setdefault(id(first.path[len(common)].loop), []).append(variable)
        else:
            return False
        self.variables[storage] = variable
        return True

    def memory(self, tensor: Tensor) -> PlaceKind:
        """The stack while it lasts, else the arena."""
        if not tensor.has_fixed_shape or tensor.nbytes > self.stack_left:
            return PlaceKind.ARENA
        self.stack_left -= tensor.nbytes
        return PlaceKind.STACK

    def rewritten(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [part for stmt in body for part in (*self.before(stmt), self.statement(stmt))])

    def before(self, stmt: Stmt) -> Iterator[Define]:
        """The variables that both sides of a branch write first, or that a loop leaves."""
        for variable in self.loops.get(id(stmt), ()):
            yield Define(variable, constant(0, variable.dtype))
        for line in stmt.body if isinstance(stmt, If) else ():
            if isinstance(line, Store) and id(line) in self.sides:
                variable = self.variables[line.tensor.storage]
                yield Define(variable, constant(0, variable.dtype))

    def statement(self, stmt: Stmt) -> Stmt:
        moved = rewrite_expressions(stmt, lambda expr: transform(expr, self.read))
        match moved:
            case Store(tensor=tensor, value=value) if tensor.storage in self.variables:
                variable = self.variables[tensor.storage]
                return Define(variable, value) if id(stmt) in self.definitions else Update(variable, value)
            case Store(tensor=tensor, index=index) if tensor in self.rows:
                row = self.rows[tensor]
                return replace(moved, tensor=row.tensor, index=row.cell(index))
            case For(symbol=symbol) if symbol in self.sequential:
                return replace(moved, body=self.rewritten(moved.body), kind=LoopKind.SEQUENTIAL)
            case _:
                return rewrite_bodies(moved, self.rewritten)

    def read(self, expr: Expr) -> Expr:
        match expr:
            case Load(tensor=tensor) if tensor.storage in self.variables:
                return Local(self.variables[tensor.storage])
            case Load(tensor=tensor, index=index) if tensor in self.rows:
                row = self.rows[tensor]
                return Load(row.tensor, row.cell(index))
            case _:
                return expr


def _kept_axes(uses: Sequence[Use], common: Path) -> tuple[tuple[int, ...], str]:
    """The axes that a temporary must keep, and why."""
    tensor = uses[0].tensor
    every = tuple(range(uses[0].tensor.storage.rank))
    if any(use.tensor is not tensor for use in uses):
        return every, "it is used in two shapes"
    indices = [use.index for use in uses if use.index is not None]
    if len(indices) < len(uses):
        return every, "it is used at an index that is computed at run time"
    around = {frame.loop.symbol: frame.loop for frame in common if frame.loop}
    axes = tuple(axis for axis in range(tensor.rank) if not _is_fixed(axis, indices, around))
    if axes and (len(axes) == tensor.rank or not around):
        return every, "loops that could not be joined use it"
    if not _is_fresh(uses, common, axes) and (axes or not _is_written_on_both_sides(uses, common)):
        return every, "it carries values from one iteration to another"
    if not axes:
        return (), "each value is used only in the iteration that makes it"
    if tensor.base is not None:
        return every, "it is used in a flat shape"
    return axes, _of_iterations(around)


def _of_iterations(around: Iterable[Symbol]) -> str:
    return f"each iteration of {', '.join(symbol.hint for symbol in around)} makes and uses its part"


def _rows_around(storage: Tensor, uses: Sequence[Use], common: Path) -> Symbol | None:
    """The loop that is around all uses of a temporary in its own shape and a flat one, if each of its
    iterations uses one row: the cells at its own number along the first axis. The stages of a Fourier
    transform of many rows are so: 1,000 of 1,000 numbers take half the time."""
    if len(common) != 1 or storage.strides is not None or not storage.has_fixed_shape or storage.rank < 2:
        return None
    loop = common[0].loop
    if loop is None or all(use.tensor is storage for use in uses):
        return None
    here, cells = Affine.of(loop.symbol), storage.element_strides()[0].constant
    for use in uses:
        if use.index is None or use.tensor.base not in (None, storage):
            return None
        if use.tensor is storage:
            if use.index[0] != here:
                return None
            continue
        ranges: dict[Symbol, Range] = {}
        for frame in use.path:
            if frame.loop is not None:
                enter(frame.loop, ranges)
        between = (use.tensor.linear(use.index) - here * cells).bounds(ranges)
        if between is None or between[0] < 0 or between[1] >= cells:
            return None
    return loop.symbol


def _is_fixed(axis: int, indices: Sequence[tuple[Affine, ...]], around: Container[Symbol]) -> bool:
    """Whether all uses stand at one position along an axis while the loops `around` stand."""
    position = indices[0][axis]
    return all(index[axis] == position for index in indices) and all(
        symbol in around or symbol.kind is not SymbolKind.LOOP for symbol in position.symbols
    )


def _is_fresh(uses: Sequence[Use], common: Path, axes: tuple[int, ...]) -> bool:
    """Whether an iteration of the common loops finds only values that it made itself: each iteration
    has cells of its own, or writes all that is left of the tensor first."""
    tensor, index = uses[0].tensor, uses[0].index
    if axes and index is not None:
        dropped = {index[axis].symbol for axis in range(tensor.rank) if axis not in axes}
        if all(frame.loop is not None and frame.loop.symbol in dropped for frame in common):
            return True
    return makes_anew(uses, common, axes)


def _is_left_by_loops(uses: Sequence[Use], common: Path) -> bool:
    """Whether loops that go in order and run at least once write a cell before anything else uses it."""
    inner = [frame.loop for use in uses if use.writes for frame in use.path[len(common) :]]
    in_order = all(loop is None or loop.kind is LoopKind.SEQUENTIAL for loop in inner)
    return in_order and makes_anew(uses, common, ()) and all(use.index is not None for use in uses)


def _is_written_on_both_sides(uses: Sequence[Use], common: Path) -> bool:
    """Whether the first that is done with a cell is that either side of one branch writes it."""
    depth = len(common)
    if len(uses[0].path) != depth + 1 or uses[0].path[depth].loop is not None:
        return False
    branch = uses[0].path[depth].first
    sides: dict[Frame, Use] = {}
    for use in uses:
        if len(use.path) > depth and use.path[depth].first == branch:
            sides.setdefault(use.path[depth], use)
    return len(sides) == 2 and all(
        use.writes and use.index is not None and len(use.path) == depth + 1 for use in sides.values()
    )
