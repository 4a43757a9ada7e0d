"""offload: on a GPU a program becomes launches, one after the other.

    s = 0.0                                     for g in grid(0, 1):
    for i in parallel(0, 500):                      s = 0.0
        s = add(s, x[i])                            for i in block(0, 500, lanes=512):
    for i in parallel(0, 100000):       ->              s = add(s, x[i])
        y[i] = subtract(x[i], s)                    for t in block(0, 1, lanes=512):
                                                        cell[()] = s
                                                for i in grid(0, 100000, lanes=256):
                                                    s = cell[()]
                                                    y[i] = subtract(x[i], s)

What has enough independent iterations gets a grid of its own: a thread for each, or, where an iteration has
independent parts itself, a block for each (`blockwise`). All that stands between two of those is run by one
block. Loops of the program that hold grids stay with the host, which launches what they hold again and again.
A long sum is formed by many blocks, whose parts one block then adds. Values that several launches need are in
cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps, GpuCaps
from ...ir.conditions import opposite
from ...ir.dtype import BOOL, I64
from ...ir.expr import Apply, Const, Index, Load, Local, Variable
from ...ir.index import Affine, Symbol, SymbolKind, affine
from ...ir.loops import (
    Barrier,
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
    While,
    walk_statements,
)
from ...ir.ops import OPS
from ...ir.tensor import Tensor
from ...ir.walk import locals_read
from ..analysis.access import Range, given
from ..analysis.carriers import carriers
from ..analysis.copies import copy_body
from ..analysis.private import is_private
from ..analysis.trips import enter
from ..analysis.uses import counts
from .blockwise import FEW, block_of, threads_for
from .columns import by_columns, identity, limits
from .crossing import cross
from .gemm import tiled
from .nests import Nest, accumulated, contiguous, flat, nest_of, width
from .windows import by_windows

__all__ = ["offload"]

THREADS = 256
"""Of a block whose threads need nothing of one another."""

ROW = 32
"""So many independent parts are worth a block."""

AT_ONCE = 4
"""Neighbours that a thread may read at once."""

CHAIN = 64
"""A thread adds about so many terms of a long sum, or fewer."""

PRIVATE_BYTES = 256
"""What a thread may keep in arrays of its own."""

ZERO, ONE = Affine.of(0), Affine.of(1)


def offload(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel as grids, and the loops of the host around them."""
    if caps.gpu is None or not kernel.body:
        return kernel
    if _is_offloaded(kernel.body):
        return kernel
    plan = _Offloading(caps.gpu, given(kernel.params), counts(kernel.body), caps.gpu.wide)
    body, cells = cross(plan.body(kernel.body))
    return kernel.with_body(body, plan.notes, {**plan.placement, **cells})


def _is_offloaded(body: tuple[Stmt, ...]) -> bool:
    """Is all of it launches, and the host's loops around them?"""
    return all(
        isinstance(stmt, Comment)
        or (isinstance(stmt, For) and (stmt.kind is LoopKind.GRID or _is_offloaded(stmt.body)))
        or (isinstance(stmt, While) and _is_offloaded((*stmt.test, *stmt.body)))
        for stmt in body
    )


def _launches(body: tuple[Stmt, ...]) -> bool:
    """Does a body hold a grid?"""
    return any(isinstance(stmt, For) and stmt.kind is LoopKind.GRID for stmt in walk_statements(body))


@frozen
class _Wide:
    """A statement as launches; one block runs `before` ahead of them, and `after` then."""

    before: tuple[Stmt, ...] = ()
    launches: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()


@slotted
class _Offloading:
    """`given` comes from the caller, `uses` says how often each storage is used; `wide` is how many
    iterations are worth a grid here; `host` are the symbols that the host knows, beside those of the caller.
    `placement` is where the cells and parts of sums live that launches hand to one another."""

    gpu: GpuCaps
    given: frozenset[Tensor]
    uses: Counter[Tensor]
    wide: int
    host: set[Symbol] = field(default_factory=set)
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    placement: dict[Tensor, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def body(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """Statements of the host."""
        out: list[Stmt] = []
        narrow: list[Stmt] = []
        for stmt in body:
            wide = self.widely(stmt)
            if wide is None:
                narrow.append(stmt)
                continue
            later = _postponed(narrow, wide)
            out.extend(self.one_block([*narrow, *wide.before]))
            out.extend(wide.launches)
            narrow = [*later, *wide.after]
        return (*out, *self.one_block(narrow))

    def one_block(self, body: Sequence[Stmt]) -> list[Stmt]:
        """What is not wide enough for a grid."""
        if all(isinstance(stmt, Comment) for stmt in body):
            return []
        threads = threads_for(width(body, self.ranges), self.gpu)
        self.note(f"one block of {threads} runs {len(body)} statements")
        inside = block_of(tuple(body), threads, self.ranges)
        return [For(Symbol("g", lower=0, upper=1), ZERO, ONE, inside, LoopKind.GRID)]

    def note(self, text: str) -> None:
        self.notes.append(f"offload: {text}")

    def widely(self, stmt: Stmt) -> _Wide | None:
        """The statement as launches of its own, if it is wide enough."""
        match stmt:
            case For(kind=LoopKind.GRID):
                return _Wide(launches=(stmt,))
            case For() if _launches(stmt.body):
                enter(stmt, self.ranges)
                return self.loop(stmt)
            case For():
                enter(stmt, self.ranges)
                sums = accumulated(stmt)
                own = self.own(stmt) if sums == () else None
                independent = own is not None or (sums and stmt.kind is LoopKind.PARALLEL and stmt.step == 1)
                if not independent:
                    return self.loop(stmt)
                if width((replace(stmt, kind=LoopKind.PARALLEL),), self.ranges) < self.wide:
                    return None
                return self.sum(stmt, sums) if own is None else self.grid(stmt, own)
            case While():
                return self.repeated(stmt)
            case If():
                return self.branch(stmt)
            case _:
                return None

    def own(self, loop: For) -> frozenset[Tensor] | None:
        """The temporaries that each iteration of the loop needs for itself to be independent of the others;
        None if it is not even so."""
        if any(isinstance(stmt, (Raise, Barrier)) for stmt in walk_statements(loop.body)):
            return None
        if loop.kind is LoopKind.PARALLEL:
            return frozenset()
        found = carriers(loop, self.ranges)
        if found is None or not found.isdisjoint(self.given):
            return None
        here = counts(loop.body)
        private = all(here[tensor] == self.uses[tensor] and is_private(tensor, loop.body) for tensor in found)
        return found if private else None

    # grids

    def grid(self, loop: For, own: frozenset[Tensor]) -> _Wide | None:
        """A loop of independent iterations: a thread for each, or a block."""
        product = None if own else self.product(loop)
        if product is not None:
            return product
        nest = nest_of(loop) if not own else Nest((loop,), loop.body)
        if any(tensor.base is not None for tensor in own) or loop.step != 1:
            return None
        parts = width(nest.body, self.ranges)
        points = nest.points(self.ranges)
        for tensor in own:
            self.placement[tensor] = Place(PlaceKind.SCRATCH, "each iteration makes and uses its own")
        known = not own and all(map(self.is_known, nest.loops))
        grids = (by_columns(nest, self.gpu, self.ranges) or by_windows(nest, self.gpu)) if known else None
        if grids is not None:
            self.placement |= grids.placement
            self.note(f"loop {loop.symbol.hint}: {grids.reason}")
            return _Wide(launches=grids.loops)
        if self.by_blocks(nest, points, parts, own):
            return _Wide(launches=(self.blocks(flat(nest), threads_for(parts, self.gpu)),))
        self.note(f"loop {loop.symbol.hint}: a thread for each of {points} iterations")
        return _Wide(launches=(self.threads(flat(nest), points),))

    def product(self, loop: For) -> _Wide | None:
        """A product in tiles, a block for each, if that pays."""
        found = tiled(loop, self.gpu, self.ranges)
        if found is None or not self.is_known(found.loop):
            return None
        for tensor in found.temporaries:
            self.placement[tensor] = Place(PlaceKind.SCRATCH, "each iteration makes and uses its own")
        self.note(found.reason)
        return _Wide(launches=(replace(found.loop, kind=LoopKind.GRID),))

    def by_blocks(self, nest: Nest, points: int, parts: int, own: frozenset[Tensor]) -> bool:
        """Shall a block run an iteration of the nest, and not a thread?"""
        if parts >= FEW and sum(tensor.nbytes for tensor in own) > PRIVATE_BYTES:
            return True
        if points < self.gpu.wide:
            return parts >= FEW
        if parts < ROW or (
            points >= self.gpu.busy_threads
            and any(isinstance(stmt, Update) and stmt.contract for stmt in walk_statements(nest.body))
        ):
            return False
        repeated = tuple(stmt for stmt in nest.body if isinstance(stmt, For))
        inner = [stmt.symbol for stmt in walk_statements(nest.body) if isinstance(stmt, For)]
        far = max(contiguous(repeated, loop.symbol) for loop in nest.loops)
        return sum(contiguous(repeated, symbol) for symbol in inner) >= far

    def threads(self, loop: For, points: int) -> For:
        lanes = THREADS if points >= THREADS * self.gpu.processors else self.gpu.warp * 2
        if self.is_known(loop):
            return replace(loop, kind=LoopKind.GRID, lanes=lanes)
        return self.strided(loop, self.gpu.busy_threads, lambda body: body, lanes)

    def blocks(self, loop: For, threads: int) -> For:
        self.note(f"loop {loop.symbol.hint}: a block of {threads} for each iteration")
        if self.is_known(loop):
            enter(loop, self.ranges)
            return replace(loop, kind=LoopKind.GRID, body=block_of(loop.body, threads, self.ranges))
        count = 8 * self.gpu.processors
        return self.strided(loop, count, lambda body: block_of(body, threads, self.ranges))

    def strided(
        self, loop: For, count: int, run: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]], lanes: int = 1
    ) -> For:
        """A loop whose extent only the GPU knows: so many take its iterations in turns."""
        first = Symbol("g", lower=0, upper=count)
        turns = replace(loop, lo=loop.lo + first, kind=LoopKind.SEQUENTIAL, step=count, body=run(loop.body))
        return For(first, ZERO, Affine.of(count), (turns,), LoopKind.GRID, lanes=lanes)

    def is_known(self, loop: For) -> bool:
        """Does the host know from where to where the loop runs?"""
        symbols = loop.bound_by
        return all(symbol.kind is not SymbolKind.LOOP or symbol in self.host for symbol in symbols)

    # sums

    def sum(self, loop: For, sums: Sequence[Update] | None) -> _Wide:
        """A long sum, formed by many blocks, each of which adds up a part."""
        assert sums
        rows = self.rows(loop, sums)
        if rows is not None:
            return rows
        whole = flat(nest_of(loop))
        partials = {update.variable: Variable(update.variable.hint, update.variable.dtype) for update in sums}
        identities = {update.variable: identity(update) for update in sums}
        parts = _parts_of(whole, self.parts(whole.hi - whole.lo), partials)
        count = parts.count
        tensors = {
            variable: Tensor(f"{variable.hint}s", affine((count,)), variable.dtype) for variable in partials
        }
        starts = [Define(partials[variable], identities[variable]) for variable in partials]
        ends = [Store(tensors[v], affine((parts.symbol,)), Local(partials[v])) for v in partials]
        keeping = For(Symbol("t", lower=0, upper=1), ZERO, ONE, tuple(ends), LoopKind.BLOCK, lanes=THREADS)
        body = (*parts.limits, *starts, parts.loop, keeping)
        making = For(parts.symbol, ZERO, Affine.of(count), body, LoopKind.GRID)
        again = Symbol("p", lower=0, upper=count)
        accums = {update.variable: update.accum for update in sums}
        total = [Update(v, Load(tensors[v], affine((again,))), accums[v]) for v in partials]
        for tensor in tensors.values():
            self.placement[tensor] = Place(PlaceKind.ARENA, "blocks form parts of a sum")
        self.note(f"loop {loop.symbol.hint}: {count} blocks form parts of a sum")
        adding = For(again, ZERO, Affine.of(count), tuple(total), LoopKind.PARALLEL)
        return _Wide(launches=(making,), after=(adding, *parts.rest))

    def rows(self, loop: For, sums: Sequence[Update]) -> _Wide | None:
        """A sum over rows along which memory lies: what is added for each is formed by a block."""
        outside = all(any(stmt is update for stmt in loop.body) for update in sums)
        if loop.trips is None or not outside or any(update.contract for update in sums):
            return None
        repeated = tuple(stmt for stmt in loop.body if isinstance(stmt, For))
        inner = [stmt.symbol for stmt in walk_statements(repeated) if isinstance(stmt, For)]
        near = sum(contiguous(repeated, symbol) for symbol in inner)
        if width(loop.body, self.ranges) < ROW or near <= contiguous(repeated, loop.symbol):
            return None
        row = loop.symbol - loop.lo
        tensors = {
            id(one): Tensor(one.variable.hint, affine((loop.trips,)), one.variable.dtype) for one in sums
        }
        body = tuple(
            Store(tensors[id(stmt)], (row,), stmt.value)
            if isinstance(stmt, Update) and id(stmt) in tensors
            else stmt
            for stmt in loop.body
        )
        for tensor in tensors.values():
            self.placement[tensor] = Place(PlaceKind.ARENA, "rows are added up when all are there")
        making = self.grid(replace(loop, body=body), frozenset())
        assert making is not None, "the iterations of a sum have no memory of their own"
        again = Symbol(loop.symbol.hint, lower=0, upper=loop.trips)
        terms = [Update(one.variable, Load(tensors[id(one)], affine((again,))), one.accum) for one in sums]
        adding = For(again, ZERO, Affine.of(loop.trips), tuple(terms), LoopKind.PARALLEL)
        if loop.trips < self.wide:
            return _Wide(launches=making.launches, after=(adding,))
        total = self.sum(adding, terms)
        return replace(total, launches=(*making.launches, *total.launches))

    def parts(self, extent: Affine) -> int:
        """How many parts a sum has."""
        most = 8 * self.gpu.processors
        if not extent.is_constant:
            return most
        return min(max(extent.offset // (16 * THREADS), 2), max(most, extent.offset // (CHAIN * THREADS)))

    # what the host repeats

    def inside(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """The body of a statement that is the host's."""
        self.wide, outside = max(self.wide, self.gpu.wide_again), self.wide
        inside = self.body(body)
        self.wide = outside
        return inside

    def is_worth(self, body: Iterable[Stmt]) -> bool:
        """Is a body that runs again and again wide enough for grids?"""
        held = tuple(body)
        return _launches(held) or width(held, self.ranges) >= max(self.wide, self.gpu.wide_again)

    def loop(self, loop: For) -> _Wide | None:
        """A loop in order."""
        if not self.is_worth(loop.body):
            return None
        if self.is_known(loop):
            self.host.add(loop.symbol)
            self.note(f"loop {loop.symbol.hint} is the host's")
            return _Wide(launches=(replace(loop, body=self.inside(loop.body), kind=LoopKind.SEQUENTIAL),))
        number = Variable(loop.symbol.hint, I64)
        end = "less" if loop.step > 0 else "greater"
        goes_on = Apply(OPS[end], (Local(number), Index(loop.hi)), BOOL)
        step = Apply(OPS["add"], (Local(number), Const(loop.step, I64)), I64)
        body = (Bind(loop.symbol, Local(number)), *loop.body, Update(number, step))
        wide = self.repeated(While((), goes_on, body))
        return wide and replace(wide, before=(Define(number, Index(loop.lo)), *wide.before))

    def repeated(self, loop: While) -> _Wide | None:
        """A loop that ends when the GPU says so."""
        if not self.is_worth((*loop.test, *loop.body)):
            return None
        goes_on = self.condition("goes_on")
        self.note("a while loop is the host's")
        test = self.inside((*loop.test, Store(goes_on, (), loop.condition)))
        return _Wide(launches=(While(test, Load(goes_on, ()), self.inside(loop.body)),))

    def branch(self, branch: If) -> _Wide | None:
        """A branch that the GPU chooses: loops that run once or never."""
        if not self.is_worth((*branch.body, *branch.orelse)):
            return None
        before: list[Stmt] = []
        launches: list[Stmt] = []
        negated = opposite(branch.condition)
        for name, condition, body in (
            ("chosen", branch.condition, branch.body),
            ("other", negated, branch.orelse),
        ):
            if body:
                chosen = self.condition(name)
                before.append(Store(chosen, (), condition))
                once = (*body, Store(chosen, (), Const(False, BOOL)))
                launches.append(While((), Load(chosen, ()), self.inside(once)))
        self.note("a branch is the host's")
        return _Wide(tuple(before), tuple(launches))

    def condition(self, name: str) -> Tensor:
        cell = Tensor(name, (), BOOL)
        self.placement[cell] = Place(PlaceKind.ARENA, "the host reads it")
        return cell


@frozen
class _Parts:
    """A long loop in `count` parts: part number `symbol` is a `loop` of a block, within `limits` that it
    computes; the `rest` is left."""

    symbol: Symbol
    count: int
    limits: tuple[Stmt, ...]
    loop: For
    rest: tuple[Stmt, ...] = ()


def _parts_of(whole: For, count: int, variables: Mapping[Variable, Variable]) -> _Parts:
    """About so many parts, with other variables; all of one size, a multiple of what threads read at once,
    if the extent is known."""
    extent = whole.hi - whole.lo
    if not extent.is_constant:
        part = Symbol("p", lower=0, upper=count)
        first, last, numbers = limits(whole, part, count)
        body = copy_body(whole.body, {}, variables)
        loop = replace(whole, lo=first, hi=last, body=body, kind=LoopKind.BLOCK, lanes=THREADS)
        return _Parts(part, count, tuple(numbers), loop)
    size = max(extent.offset // count // AT_ONCE * AT_ONCE, 1)
    count, left = divmod(extent.offset, size)
    part, number = Symbol("p", lower=0, upper=count), Symbol(whole.symbol.hint)
    place = whole.lo + Affine.of(part) * size + number
    body = copy_body(whole.body, {whole.symbol: place}, variables)
    loop = For(number, ZERO, Affine.of(size), body, LoopKind.BLOCK, lanes=THREADS)
    rest = (replace(whole, lo=whole.hi - left),) if left else ()
    return _Parts(part, count, (), loop, rest)


def _postponed(narrow: list[Stmt], wide: _Wide) -> list[Stmt]:
    """Take from the end of what one block does the definitions that launches do not need."""
    inside = list(walk_statements((*wide.before, *wide.launches)))
    needed = set(locals_read(inside))
    needed.update(stmt.variable for stmt in inside if isinstance(stmt, Update))
    later: list[Stmt] = []
    while narrow:
        last = narrow[-1]
        if not isinstance(last, Define) or not isinstance(last.value, Const) or last.variable in needed:
            break
        later.insert(0, narrow.pop())
    return later
