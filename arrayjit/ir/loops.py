"""The low-level IR: loops over scalars.

    def saxpy(x: read[f32, 1024], y: update[f32, 1024]):
        for i in vector(0, 1024, lanes=16):
            t0 = mul(2.0, x[i])
            y[i] = add(y[i], t0)

Loop kinds say what may be assumed, never what a target must do:

- `sequential`: iterations in order.
- `parallel`: iterations are independent (no iteration reads or writes what another writes, apart from
  an `Update` or a `Store` with `accum`); any order gives the same result, up to rounding.
- `vector`: as `parallel`, taken `lanes` at a time. An `Update` with `accum` of a variable defined
  outside the loop has **one documented meaning**, so that every target and width gives the same bits:
  `lanes` partial values start from the op's identity, lane `l` combines iterations `l, l + lanes, ...` of
  the first `lanes * (n // lanes)`; then the lanes are folded in half repeatedly (lane `l` with lane
  `l + width / 2`), the result is combined onto the variable, and the remaining iterations follow in order.
  With fewer than `lanes` iterations the variable is combined with the iterations in order and nothing else.
- `lockstep`: iterations in order; or successive ones, at most `lanes` from the first iteration on, side by
  side, each statement done for all of them before the next (`x[i] = x[i + 1]`). Taken `lanes` at a time; a
  variable of outside accumulates by one op, in the order of the iterations.
- `unrolled`: sequential, and the target should print the copies.

A `parallel` or `vector` loop may have a *grain*: threads may share its iterations, and so many are worth
waking a thread for. It accumulates in no variable of outside and holds no other loop with a grain.

- `grid`: as `parallel`; a launch on a GPU, so it stands in sequential loops only, which are the host's. A
  block of threads takes `lanes` successive iterations, a thread each; or, with `block` loops inside, one
  iteration, and `lanes` is 1. Then all threads run what is outside of those loops, each for itself with the
  same outcome, and only inside of them they store.
- `block`: as `parallel`, in a `grid` loop; the `lanes` threads of a block take the iterations in turns. An
  `Update` with `accum` of a variable defined outside has one meaning: thread `l` combines iterations `l`,
  `l + lanes`, ... onto the op's identity; then the partial values of the threads are folded in half
  repeatedly, as those of a `vector` loop, and the result is combined onto the variable. Such a loop ends with
  a barrier.

What a thread of a block keeps from one `block` loop to the next is a tensor whose place is `own`: its first
axis counts the threads, and is indexed by the symbol of a `block` loop in which thread `l` takes iteration
`l`, from 0, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, Union

from ..errors import Location
from ..frozen import frozen, replace
from .assign import Bind, Param
from .expr import Expr, Variable
from .index import Affine, Symbol
from .journal import Logged
from .ops import Op
from .tensor import Tensor

__all__ = [
    "Barrier",
    "Bind",
    "Comment",
    "Copy",
    "Define",
    "Fill",
    "For",
    "If",
    "Kernel",
    "Lap",
    "LoopKind",
    "Multiply",
    "Place",
    "PlaceKind",
    "Prefetch",
    "Raise",
    "Stay",
    "Stmt",
    "Store",
    "Update",
    "Used",
    "While",
    "bypasses",
    "go_in_order",
    "nested",
    "touched",
    "walk_statements",
    "written",
    "written_in",
]


class LoopKind(Enum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    VECTOR = "vector"
    LOCKSTEP = "lockstep"
    UNROLLED = "unrolled"
    GRID = "grid"
    BLOCK = "block"


class Nesting:
    """What holds other statements. `inside` are all of them, in the order of `walk_statements`, once somebody
    has asked."""

    __slots__ = ("inside",)
    inside: tuple[Stmt, ...]


@frozen
class For(Nesting):
    """`for symbol in range(lo, hi, step)`; `lanes` counts for `vector` and `lockstep` loops, and for `grid`
    and `block`; `grain` is None where threads may not share the iterations.

    A `sequential` loop with lanes appends, which a target may do for so many iterations at once: what its
    body defines is followed by branches, each of which binds a number of outside to a symbol, stores there,
    at neighbours, and adds one to the number.

    The vectors of a loop that is `aligned`, to so many bytes, may start where most cells that it reaches lie
    on boundaries of memory, and the first and the last of them overlap those beside them: iterations may be
    repeated, which changes nothing. It adds up nothing.

    What whole vectors leave of a loop that is `masked` goes under masks, where the target has them: the last
    lanes, and of one that is aligned, too, those before the first boundary. No iteration is repeated.

    The `cuts` of a vector loop are positions in its body, before the first `Store`: what stands before one
    may be done for a vector while the rest is done for those before it, and for the last one again."""

    symbol: Symbol
    lo: Affine
    hi: Affine
    body: tuple[Stmt, ...]
    kind: LoopKind = LoopKind.SEQUENTIAL
    step: int = 1
    lanes: int = 1
    grain: Affine | None = None
    aligned: int | None = None
    masked: bool = False
    cuts: tuple[int, ...] = ()

    @property
    def bounds(self) -> tuple[Affine, Affine, int]:
        """From where its symbol goes, to before where, and by which steps."""
        return self.lo, self.hi, self.step

    @property
    def bound_by(self) -> tuple[Symbol, ...]:
        """The symbols that its ends depend on."""
        return (*self.lo.symbols, *self.hi.symbols)

    @property
    def trips(self) -> int | None:
        """How often the body runs, when that is a constant."""
        if self.lo.terms or self.hi.terms:
            span = self.hi - self.lo
            return len(range(0, span.offset, self.step)) if span.is_constant else None
        return len(range(self.lo.offset, self.hi.offset, self.step))


@frozen
class Store:
    """`tensor[index] = value`. With `bypass`, in a vector loop and there in unrolled loops at most, the lanes
    are neighbours, and no cache shall keep the value: iterations may be repeated to write whole lines. With
    `regroup`, as in an `Assign`.

    With `accum`, `tensor[index] = accum(tensor[index], value)`, and nothing comes between: independent
    iterations may do so to one cell, by one op, in any order. Never inside a vector loop."""

    tensor: Tensor
    index: tuple[Affine, ...]
    value: Expr
    loc: Location | None = field(default=None, compare=False)
    bypass: bool = False
    regroup: bool = False
    accum: Op | None = None


@frozen
class Fill:
    """Every cell of a contiguous tensor gets the constant `value`."""

    tensor: Tensor
    value: Expr
    loc: Location | None = field(default=None, compare=False)


@frozen
class Define:
    """Declare a local variable, visible to the end of the body it stands in."""

    variable: Variable
    value: Expr


@frozen
class Update:
    """`variable = value`, or `variable = accum(variable, value)`; with `contract`, where `value` is
    `multiply(x, y)` and `accum` is add, `variable = fma(x, y, variable)`."""

    variable: Variable
    value: Expr
    accum: Op | None = None
    contract: bool = False


@frozen
class While(Nesting):
    """Run `test`; if the bool `condition` then holds, run `body` and start again. What `test` defines is
    visible to its end, in `condition` and in `body`."""

    test: tuple[Stmt, ...]
    condition: Expr
    body: tuple[Stmt, ...]


@frozen
class If(Nesting):
    """In a vector loop, where the condition differs from lane to lane, there is no `orelse`, and `body` only
    defines and updates locals. With `seldom`, the condition holds seldom."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    seldom: bool = False


@frozen
class Raise:
    """Stay the kernel with an exception when `condition` holds. Never inside a vector loop."""

    condition: Expr
    exception: str
    message: str
    loc: Location | None = field(default=None, compare=False)


@frozen
class Stay:
    """Where the condition does not hold, the rest of this iteration and those that follow would change
    nothing that is looked at after the loop which this stands in. A target may then leave that loop: in a
    vector loop when the condition holds in no lane."""

    condition: Expr


@frozen
class Prefetch:
    """The cell at the index, and in a vector loop those of all lanes, if they differ, its neighbours, will be
    read soon: a target may have them brought into that cache, 1 or 2, and need not. It may lie outside."""

    tensor: Tensor
    index: tuple[Affine, ...]
    cache: int = 1


@frozen
class Lap:
    """The nanoseconds since the last Lap are added to cell `number` of an int64 array of one axis, whose cell
    0 has the time of that Lap; number 0 starts the clock. Never inside a vector loop or one that threads
    share. No pass meets one: a profile puts them into the final kernel."""

    times: Tensor
    number: int


@frozen
class Barrier:
    """The threads of a block wait for one another; each then sees what the others have stored. With
    `pending`, each waits before that for its own copies, but for those of the last so many block loops that
    copy."""

    pending: int | None = None


@frozen
class Copy:
    """`into[index] = source[at]`, and so for `cells` neighbours along both last axes, of which the first
    `count` exist: the others become 0, and are not read. It stands in a block loop, and is done at any time
    until a Barrier waits for it."""

    into: Tensor
    index: tuple[Affine, ...]
    source: Tensor
    at: tuple[Affine, ...]
    cells: int
    count: Expr


@frozen
class Multiply:
    """The warps of a block add a product of two matrices, of small floats or of float32s, to float32 sums
    that they own. Float32s are rounded to 10 bits of fraction for that (TF32), ties away from zero.

    `warps` of them, each of 32 threads, stand in rows and columns. `total[t, m, n, r, c]` is the sum that
    thread `t` keeps, lane `4 * g + q` of the warp in row `i` and column `j`, for row
    `16 * (M * i + m) + 8 * r + g` and column `8 * (N * j + n) + 2 * q + c`, where `total` has `M` and `N`
    along its middle axes: tensor cores leave it so. `left[stage]` is rows by depth and `right[stage]` depth
    by columns, or the other way round where `turned` says so. Of other statements only Copy reaches them.
    Where one column of warps shares the rows, `left` may be what threads own as well, small floats that lie
    as sums do: `left[t, m, n, r, c]`.

    `terms` products at a time, which are exact, are added to a sum, in order of the depth; how these are
    added up and rounded to float32 is the hardware's. (The interpreter rounds once.)"""

    total: Tensor
    left: Tensor
    right: Tensor
    stage: Affine
    turned: tuple[bool, bool]
    warps: tuple[int, int]

    @property
    def owns_left(self) -> bool:
        """Do threads own the left factor?"""
        return self.left.rank == 5

    @property
    def factors(self) -> tuple[tuple[Tensor, tuple[Affine, ...]], ...]:
        """Those in shared memory, each with the index of its first cell."""
        first = (self.stage, Affine.of(0), Affine.of(0))
        tiles = (self.right,) if self.owns_left else (self.left, self.right)
        return tuple((tile, first) for tile in tiles)

    @property
    def terms(self) -> int:
        """How many products an instruction adds to a sum: those of 32 bytes of each factor."""
        return 32 * 8 // self.left.dtype.bits

    @property
    def extents(self) -> tuple[int, int, int]:
        """Rows, columns and depth."""
        _, depth, columns = (extent.constant for extent in self.right.shape)
        if self.turned[1]:
            depth, columns = columns, depth
        if self.owns_left:
            return 16 * self.left.shape[1].constant * self.warps[0], columns, depth
        return self.left.shape[2 if self.turned[0] else 1].constant, columns, depth


@frozen
class Comment:
    text: str


Stmt = Union[
    For,
    Store,
    Fill,
    Define,
    Update,
    Bind,
    If,
    While,
    Raise,
    Stay,
    Copy,
    Multiply,
    Prefetch,
    Lap,
    Barrier,
    Comment,
]


class PlaceKind(Enum):
    """Where a tensor lives."""

    STACK = "stack"  # a small array in the kernel's frame
    SHARED = "shared"  # a GPU block's memory
    OWN = "own"  # registers of the threads of a GPU block, which the first axis counts
    ARENA = "arena"  # a slice of the routine's workspace
    SCRATCH = "scratch"  # memory of the thread that runs an iteration, which makes it anew
    BUFFER = "buffer"  # the context's buffer: parameters

    @property
    def words(self) -> str:
        """What users are told."""
        return _PLACES[self]


_PLACES = {
    PlaceKind.STACK: "the stack",
    PlaceKind.SHARED: "the memory of a block",
    PlaceKind.OWN: "registers of a block's threads",
    PlaceKind.ARENA: "the workspace",
    PlaceKind.SCRATCH: "each thread's workspace",
    PlaceKind.BUFFER: "a buffer",
}


@frozen
class Place:
    """A placement and the reason for it; `offset` in bytes, within the arena or a thread's scratch memory."""

    kind: PlaceKind
    reason: str
    offset: int = 0


class Used:
    """What has temporaries. `uses` are theirs, once a pass has asked: those that ask are neighbours, and most
    leave the kernel as it is."""

    __slots__ = ("uses",)
    uses: Any


@frozen
class Kernel(Used):
    """A compiled unit. `placement` covers every temporary that the body still mentions; the arena ends
    with the scratch memory of the thread that calls; `notes` are the passes' decisions, one line each, for
    `explain`; `logged` are the statements of which its journal has values."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    placement: Mapping[Tensor, Place] = field(default_factory=dict)
    arena_bytes: int = 0
    notes: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()

    def with_body(
        self,
        body: tuple[Stmt, ...],
        notes: Iterable[str] = (),
        placement: Mapping[Tensor, Place] | None = None,
    ) -> Kernel:
        """The kernel with another body, and with notes and memory for temporaries beside its own; the very
        same one if the body is."""
        if body is self.body:
            return self
        placement = {**self.placement, **(placement or {})}
        return replace(self, body=body, placement=placement, notes=(*self.notes, *notes))

    def placed(self, kind: PlaceKind) -> list[Tensor]:
        """The temporaries that live in such a place."""
        return [tensor for tensor, place in self.placement.items() if place.kind is kind]

    @property
    def stack_bytes(self) -> int:
        """What lies in its frame."""
        return sum(tensor.nbytes for tensor in self.placed(PlaceKind.STACK))

    @property
    def scratch_bytes(self) -> int:
        """What each thread needs of its own; a multiple of a cache line."""
        ends = (self.placement[tensor].offset + tensor.nbytes for tensor in self.placed(PlaceKind.SCRATCH))
        return -(-max(ends, default=0) // 64) * 64


def nested(loops: Sequence[For], body: tuple[Stmt, ...], kind: LoopKind | None = None) -> tuple[Stmt, ...]:
    """A body in loops instead of theirs, the first of them outermost, all of one kind if one is given.
    Nothing if the body is nothing."""
    for loop in reversed(loops if body else ()):
        body = (replace(loop, body=body, kind=loop.kind if kind is None else kind),)
    return body


def bypasses(body: tuple[Stmt, ...]) -> bool:
    """Whether a body stores past the caches."""
    return any(isinstance(stmt, Store) and stmt.bypass for stmt in walk_statements(body))


def written(stmt: Stmt) -> Tensor | None:
    """The storage that a statement itself writes to."""
    match stmt:
        case Store(tensor=tensor) | Fill(tensor=tensor) | Copy(into=tensor) | Multiply(total=tensor):
            return tensor.storage
        case _:
            return None


def touched(stmt: Stmt) -> tuple[Tensor, ...]:
    """The tensors that a statement itself uses, beside those that its expressions read: first the one that it
    writes to."""
    match stmt:
        case Store(tensor=tensor) | Fill(tensor=tensor):
            return (tensor,)
        case Copy(into=into, source=source):
            return into, source
        case Multiply(total=total, left=left, right=right):
            return total, left, right
        case _:
            return ()


def written_in(stmts: Iterable[Stmt]) -> set[Tensor]:
    """The storages that statements write to; not those that the statements inside them do."""
    return {storage for stmt in stmts if (storage := written(stmt)) is not None}


def walk_statements(body: Iterable[Stmt]) -> list[Stmt]:
    """Every statement of a body, outer before inner, in program order."""
    found: list[Stmt] = []
    for stmt in body:
        found.append(stmt)
        if type(stmt) in _NESTING:
            found += _inside(stmt)
    return found


def go_in_order(body: Iterable[Stmt]) -> bool:
    """Whether there is a loop in a body whose iterations go one after the other: passes that are about those
    ask before they go through it."""
    return any([type(stmt) is For and stmt.kind is LoopKind.SEQUENTIAL for stmt in walk_statements(body)])


_NESTING = frozenset((For, If, While))
_keep_inside = vars(Nesting)["inside"].__set__


def _inside(stmt: Stmt) -> Sequence[Stmt]:
    """The statements that one holds."""
    try:
        return stmt.inside  # type: ignore[union-attr]
    except AttributeError:
        pass
    match stmt:
        case For(body=body):
            found = walk_statements(body)
        case If(body=body, orelse=orelse):
            found = walk_statements((*body, *orelse))
        case While(test=test, body=body):
            found = walk_statements((*test, *body))
        case _:
            return ()
    _keep_inside(stmt, tuple(found))
    return found
