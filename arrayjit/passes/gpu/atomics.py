"""atomics: on a GPU many threads scatter together, by stores that combine.

    for k in sequential(0, 100000):                  for k in parallel(0, 100000):
        n: index = p[k]                                  n: index = p[k]
        h[n] = add(h[n], v[k])          ->               h[n] = reduce(add, h[n], v[k])

Which cell an iteration reaches is known only when it runs, and others may reach the same one. So the order of
iterations is left open where it does not change a bit: integers and bools, by ops that are associative and
commutative. Where `fast` has "atomics", that goes for floats too, whose last bits then are others in every
run. Where positions are assigned to, the last iteration that reaches a cell counts: all tell their number to
the cell of another array, the greatest remains, and only that one writes. All else stays in order, and a note
says why.

Hardware combines 32 or 64 bits. Smaller cells are combined in a copy of wider ones, small floats in float32.
A small array that is reached often would have all threads wait for one another: the threads of each block
combine in a copy of their own, in the memory that they share, and then add that to the array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps, GpuCaps
from ...ir.conditions import compare
from ...ir.dtype import BOOL, F32, I32, I64, DType, Kind, named
from ...ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Local,
    Variable,
    convert,
    dtype_of,
    neutral,
)
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Comment,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    PlaceKind,
    Raise,
    Stmt,
    Store,
    Update,
    walk_statements,
    written,
)
from ...ir.ops import OPS, Op
from ...ir.tensor import Tensor
from ...ir.walk import expressions, kept, locals_read, rewrite_bodies, storages_read
from ..analysis.access import Range, reads
from ..analysis.carriers import carriers
from ..analysis.copies import copy_body, each_cell
from ..analysis.lockstep import added
from ..analysis.trips import enter
from .columns import limits
from .nests import flat, nest_of, width

__all__ = ["atomics"]

FEW = 8
"""So few iterations are not worth a second thread."""

THREADS = 256

EACH = 16
"""A thread takes so many iterations, or more, before its block adds up what it has to the array."""

PRIVATE_BYTES = 16 * 1024
"""Of a block's copy of an array: three of these leave room for others on a processor."""

CELLS = 1000
"""So many cells are copied in the time of one iteration in order."""

ZERO = Affine.of(0)

_WRAPPING = ("add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor")
"""Integers have the same low bits, whether numbers are cut off before or after these."""

_OF_BOOLS: Mapping[str, str] = {
    **dict.fromkeys(("add", "maximum", "fmax", "logical_or", "bitwise_or"), "bitwise_or"),
    **dict.fromkeys(("multiply", "minimum", "fmin", "logical_and", "bitwise_and"), "bitwise_and"),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), "bitwise_xor"),
}
"""What ops do to bools."""


def atomics(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with its scatters in the hands of many threads."""
    if caps.gpu is None:
        return kernel
    work = _Scattering(caps.gpu, "atomics" in caps.fast)
    body = work.body(kernel.body)
    placement = {**kernel.placement, **work.placement}
    notes = (*kernel.notes, *(f"atomics: {text}" for text in work.notes))
    if body is kernel.body and len(notes) == len(kernel.notes):
        return kernel
    return replace(kernel, body=body, placement=placement, notes=notes)


# what there is


class _InOrder(Exception):
    """Why a scatter has to stay in order."""


@frozen
class _Scatter:
    """A `loop` whose iterations combine values onto cells of the storages in `ops`, each by its op."""

    loop: For
    ops: Mapping[Tensor, Op]

    @property
    def stores(self) -> list[Store]:
        """Those that combine."""
        return [store for store in _stores(self.loop.body) if store.accum is not None]


def _targets(loop: For) -> set[Tensor]:
    """The storages that are written at positions which an iteration computes."""
    inside = list(walk_statements(loop.body))
    bound = {stmt.symbol for stmt in inside if isinstance(stmt, Bind)}
    return {
        stmt.tensor.storage
        for stmt in inside
        if isinstance(stmt, Store) and any(s in bound for position in stmt.index for s in position.symbols)
    }


def _stores(body: tuple[Stmt, ...]) -> list[Store]:
    return [stmt for stmt in walk_statements(body) if isinstance(stmt, Store)]


def _assigns(loop: For, targets: Set[Tensor]) -> bool:
    """Does an iteration nothing but to store a value in each of the targets, or in independent cells of it,
    and read none?"""
    inside = list(walk_statements(loop.body))
    read = {tensor.storage for stmt in inside for tensor, _ in reads(stmt)}
    stored = [store.tensor.storage for store in _stores(loop.body)]
    plain = all(
        isinstance(stmt, (Define, Bind, Comment, Store))
        or (isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL)
        for stmt in inside
    )
    return (
        plain
        and loop.step == 1
        and len(stored) == len(targets) == len(set(stored))
        and read.isdisjoint(stored)
    )


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _InOrder(otherwise)


@slotted
class _Combining:
    """The stores to `targets` as stores that combine, if they do: `ops` are those so far. `uses` says how
    often locals are read; with `free`, floats may be combined in any order."""

    targets: Set[Tensor]
    uses: Counter[Variable]
    free: bool
    ops: dict[Tensor, Op] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Store) and stmt.tensor.storage in self.targets:
                out.append(self.store(self.with_value(stmt, out)))
            else:
                out.append(rewrite_bodies(stmt, self.body))
        return tuple(out)

    def with_value(self, store: Store, before: list[Stmt]) -> Store:
        """The store with its value, which is taken out of the statements before it if it has a name."""
        named = store.value.arg if isinstance(store.value, Cast) else store.value
        if not isinstance(named, Local) or self.uses[named.variable] != 1:
            return store
        for number in reversed(range(len(before))):
            match before[number]:
                case Define(variable=variable, value=value) if variable == named.variable:
                    del before[number]
                    value = Cast(value, store.value.dtype) if isinstance(store.value, Cast) else value
                    return replace(store, value=value)
                case Define() | Bind() | Comment() | Store(accum=Op()):
                    pass
                case _:
                    break
        return store

    def store(self, store: Store) -> Store:
        """A store that combines."""
        op, value = _combined(store)
        tensor, dtype = store.tensor, store.tensor.dtype
        if dtype.is_float:
            _require(self.free, 'floats are combined in order, which jit(fast="atomics") leaves open')
        known = self.ops.setdefault(tensor.storage, op)
        _require(known is op, "two ops change its cells")
        return replace(store, value=value, accum=op)


def _combined(store: Store) -> tuple[Op, Expr]:
    """By which op what is combined with the cell that a store writes."""
    dtype, value = store.tensor.dtype, store.value
    place: Expr = Load(store.tensor, store.index)
    if isinstance(value, Cast):
        value = value.arg
        place = Cast(place, dtype_of(value))
    match value:
        case Apply(op=op, args=(first, second)) if op.name == "subtract" and first == place:
            minus = Apply(OPS["negative"], (second,), value.dtype)
            found: tuple[Expr, Op] | None = (minus, OPS["add"])
        case _:
            found = added(place, value)
    if found is None:
        raise _InOrder("its values do not combine, and where positions repeat, the last one counts")
    value, op = found
    if dtype is BOOL and op.name in _OF_BOOLS:
        op = OPS[_OF_BOOLS[op.name]]
    _require(op.associative and op.commutative, f"{op.name} depends on the order")
    done_in = dtype_of(value)
    if done_in is not dtype:
        cut = dtype.is_integer and done_in.is_integer and done_in.bits >= dtype.bits and op.name in _WRAPPING
        rounded = dtype.is_float and done_in.is_float and done_in.bits > dtype.bits
        _require(cut or rounded, f"{op.name} is done in {done_in}, and its result is converted")
        value = Cast(value, dtype)
    return op, value


# what becomes of it


@slotted
class _Scattering:
    """`free`: floats may be combined in any order. `alone` says that only loops in order are around."""

    gpu: GpuCaps
    free: bool
    alone: bool = True
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return kept(body, [new for stmt in body for new in self.statement(stmt)])

    def statement(self, stmt: Stmt) -> list[Stmt]:
        if not isinstance(stmt, For):
            return [self.inside(stmt, False)]
        if stmt.kind is LoopKind.GRID:
            return [stmt]
        enter(stmt, self.ranges)
        targets = _targets(stmt) if stmt.kind is LoopKind.SEQUENTIAL else set()
        disturbed = carriers(stmt, self.ranges) if targets else None
        if disturbed is not None and targets.isdisjoint(disturbed):
            targets = set()
        if targets and width((replace(stmt, kind=LoopKind.PARALLEL),), self.ranges) >= FEW:
            names = ", ".join(sorted(tensor.label for tensor in targets))
            try:
                if _assigns(stmt, targets):
                    return self.assignment(stmt, names)
                return self.scatter(stmt, targets)
            except _InOrder as reason:
                self.notes.append(f"{names}: loop {stmt.symbol.hint} is in order: {reason}")
        return [self.inside(stmt, stmt.kind is LoopKind.SEQUENTIAL)]

    def inside(self, stmt: Stmt, alone: bool) -> Stmt:
        """A statement with the scatters in it."""
        outside, self.alone = self.alone, self.alone and alone
        stmt = rewrite_bodies(stmt, self.body)
        self.alone = outside
        return stmt

    def scatter(self, loop: For, targets: Set[Tensor]) -> list[Stmt]:
        """What a loop becomes that changes the targets at positions which it computes."""
        inside = list(walk_statements(loop.body))
        leaves = any(isinstance(stmt, Raise) for stmt in inside)
        _require(not leaves, "an iteration may raise an exception, and nothing that follows then is done")
        _require(loop.step == 1, "it does not count up by one")
        combining = _Combining(targets, _uses(inside), self.free)
        found = _Scatter(replace(loop, body=combining.body(loop.body)), combining.ops)
        for stmt in walk_statements(found.loop.body):
            read = set(storages_read(expressions(stmt)))
            _require(targets.isdisjoint(read), "it reads what it changes")
            combines = isinstance(stmt, Store) and stmt.accum is not None
            _require(combines or written(stmt) not in targets, "it overwrites what it changes")
        disturbed = carriers(found.loop, self.ranges)
        _require(disturbed is not None and disturbed <= targets, "iterations hand on other values, too")
        found = replace(found, loop=self.independent(found.loop, targets))
        before, found, after = self.widened(found)
        return [*before, *self.shared_out(found), *after]

    def independent(self, loop: For, targets: Set[Tensor]) -> For:
        """The loop, and those in it that are as free, as loops in any order."""

        def statement(stmt: Stmt) -> Stmt:
            if isinstance(stmt, For):
                enter(stmt, self.ranges)
                disturbed = carriers(stmt, self.ranges)
                free = disturbed is not None and disturbed <= targets
                if stmt.kind is LoopKind.SEQUENTIAL and stmt.step == 1 and free:
                    stmt = replace(stmt, kind=LoopKind.PARALLEL)
            return rewrite_bodies(stmt, body)

        def body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return kept(body, [statement(stmt) for stmt in body])

        changed = statement(loop)
        assert isinstance(changed, For)
        return changed

    # the last one counts

    def assignment(self, loop: For, names: str) -> list[Stmt]:
        """A loop that assigns to its targets, of which each cell is written by the last to reach it."""
        latest: dict[Tensor, Tensor] = {}
        before: list[Stmt] = []
        dtype = I32 if loop.trips is not None and loop.trips < 1 << 31 else I64
        for store in _stores(loop.body):
            fits = self.alone and self.is_worth_a_copy(store.tensor, loop)
            _require(fits, "where positions repeat, the last one counts, and there is no room to note which")
            latest[store.tensor] = tensor = Tensor("latest", store.tensor.shape, dtype)
            self.placement[tensor] = Place(PlaceKind.ARENA, "which iteration is the last to reach a cell")
            before.append(_stored(tensor, Const(-1, dtype)))
        number = Cast(Index(loop.symbol - loop.lo), dtype) if dtype is I32 else Index(loop.symbol - loop.lo)

        def told(store: Store) -> Stmt:
            return replace(store, tensor=latest[store.tensor], value=number, accum=OPS["maximum"])

        def written_by_last(store: Store) -> Stmt:
            cell = Load(latest[store.tensor], store.index)
            return If(compare("equal", cell, number), (store,))

        self.notes.append(f"{names}: loop {loop.symbol.hint}: the last iteration to reach a cell writes it")
        (telling,) = copy_body((_stores_as(loop, told),), {}, {})
        assert isinstance(telling, For)
        ops = dict.fromkeys(latest.values(), OPS["maximum"])
        telling = replace(telling, kind=LoopKind.PARALLEL)
        writing = replace(_stores_as(loop, written_by_last), kind=LoopKind.PARALLEL)
        return [*before, *self.shared_out(_Scatter(telling, ops)), writing]

    def is_worth_a_copy(self, tensor: Tensor, loop: For) -> bool:
        """Is a tensor known to be small enough for something to be made for each of its cells?"""
        return tensor.has_fixed_shape and tensor.size <= CELLS * width((loop,), self.ranges)

    # cells that are too small

    def widened(self, scatter: _Scatter) -> tuple[list[Stmt], _Scatter, list[Stmt]]:
        """The scatter into wider copies of small cells, after what makes these and before what becomes of
        them."""
        before, after, wider = list[Stmt](), list[Stmt](), dict[Tensor, Tensor]()
        for store in scatter.stores:
            tensor = store.tensor
            if tensor.dtype.itemsize >= I32.itemsize or tensor in wider:
                continue
            _require(self.can_copy(tensor, scatter), f"cells of {tensor.dtype} are too small to combine")
            wider[tensor] = copy = Tensor(tensor.label, tensor.shape, _wider(tensor.dtype))
            self.placement[copy] = Place(PlaceKind.ARENA, "threads combine cells of 32 bits")
            before.append(_stored(copy, tensor))
            after.append(_stored(tensor, copy))
        if not wider:
            return [], scatter, []

        def moved(store: Store) -> Store:
            copy = wider.get(store.tensor)
            return store if copy is None else replace(store, tensor=copy, value=Cast(store.value, copy.dtype))

        ops = {wider.get(storage, storage): op for storage, op in scatter.ops.items()}
        return before, _Scatter(_stores_as(scatter.loop, moved), ops), after

    def can_copy(self, tensor: Tensor, scatter: _Scatter) -> bool:
        """Is a tensor known to be small enough for a copy, and all that the scatter reaches there?"""
        whole = all(
            store.tensor is tensor for store in scatter.stores if store.tensor.storage is tensor.storage
        )
        return self.alone and whole and tensor.base is None and self.is_worth_a_copy(tensor, scatter.loop)

    # small arrays

    def shared_out(self, scatter: _Scatter) -> list[Stmt]:
        """The scatter by threads, or first by blocks into copies of their own."""
        loop, names = scatter.loop, ", ".join(tensor.label for tensor in scatter.ops)
        tensors = dict.fromkeys(store.tensor for store in scatter.stores)
        nested = any(isinstance(stmt, For) for stmt in loop.body)
        count = min(2 * self.gpu.processors, (loop.trips or 0) // (EACH * THREADS))
        small = all(tensor.has_fixed_shape for tensor in tensors) and len(tensors) == len(scatter.ops)
        if nested or not self.alone or count < 2 or not small or not _fit(tensors):
            self.notes.append(f"{names}: loop {loop.symbol.hint} combines in memory, in any order")
            return [loop]
        how = f"{count} blocks combine in copies of their own first"
        self.notes.append(f"{names}: loop {loop.symbol.hint}: {how}")
        return [self.private(scatter, tensors, count)]

    def private(self, scatter: _Scatter, tensors: Iterable[Tensor], count: int) -> For:
        """So many blocks, each with a copy of the arrays for its part of the iterations."""
        copies = {tensor: Tensor(tensor.label, tensor.shape, tensor.dtype) for tensor in tensors}
        part = Symbol("p", lower=0, upper=count)
        first, last, numbers = limits(scatter.loop, part, count)
        own = _stores_as(
            scatter.loop, lambda store: replace(store, tensor=copies.get(store.tensor, store.tensor))
        )
        taking = replace(own, lo=first, hi=last, kind=LoopKind.BLOCK, lanes=THREADS)
        starts, ends = list[Stmt](), list[Stmt]()
        for tensor, copy in copies.items():
            op = scatter.ops[tensor.storage]
            none = neutral(op, tensor.dtype)
            self.placement[copy] = Place(PlaceKind.SCRATCH, "a block combines in memory of its own")
            starts.append(_by_threads(_stored(copy, none)))
            ends.append(_by_threads(_stored(tensor, copy, op)))
        body = (*starts, *numbers, taking, *ends)
        return For(part, ZERO, Affine.of(count), body, LoopKind.GRID)


def _uses(body: Iterable[Stmt]) -> Counter[Variable]:
    """How often locals are read, and once more where they change."""
    found = Counter(locals_read(body))
    found.update(stmt.variable for stmt in body if isinstance(stmt, Update))
    return found


def _wider(dtype: DType) -> DType:
    """The type of 32 bits in which small cells are combined."""
    if dtype.is_float:
        return F32
    return I32 if dtype.kind is Kind.INT else named("u32")


def _fit(tensors: Iterable[Tensor]) -> bool:
    """Can a block have copies of them, with no more cells than it takes iterations?"""
    sizes = [(tensor.size, tensor.size * tensor.dtype.itemsize) for tensor in tensors]
    cells, nbytes = map(sum, zip(*sizes, strict=True))
    return cells <= EACH * THREADS and nbytes <= PRIVATE_BYTES


def _stores_as(loop: For, rule: Callable[[Store], Stmt]) -> For:
    """The loop with something else for its stores."""

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return rule(stmt)
        return rewrite_bodies(stmt, lambda body: tuple(map(statement, body)))

    changed = statement(loop)
    assert isinstance(changed, For)
    return changed


def _stored(into: Tensor, value: Tensor | Const, accum: Op | None = None) -> Stmt:
    """A constant, or the cells of a tensor of the same shape, stored in each cell."""

    def store(cell: tuple[Affine, ...]) -> Store:
        stored = value if isinstance(value, Const) else Load(value, cell)
        cast = convert(stored, into.dtype)
        return Store(into, cell, cast, accum=accum)

    return each_cell(into, store)


def _by_threads(stmt: Stmt) -> For:
    """A nest over cells, dealt out to the threads of a block."""
    assert isinstance(stmt, For)
    return replace(flat(nest_of(stmt)), kind=LoopKind.BLOCK, lanes=THREADS)
