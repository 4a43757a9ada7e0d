"""fuse: neighbouring loop nests over the same ranges become one nest.

    for i in parallel(0, 8):                        for i in parallel(0, 8):
        for j in parallel(0, 4):                        for j in parallel(0, 4):
            t[i, j] = multiply(a[i, j], b[i, j])            t[i, j] = multiply(a[i, j], b[i, j])
    for i in parallel(0, 8):                                u[i, j] = add(t[i, j], 1.0)
        for j in parallel(0, 4):
            u[i, j] = add(t[i, j], 1.0)

A nest joins the last earlier one that it depends on, or a later one over the same ranges, if
nothing between them is in its way and each iteration needs only what the same iteration of the other
made, so that parallel loops stay parallel. Chains of whole-array operations become one nest first, since to
cut one is to store what it hands on, and then other nests without loops in them; then nests join that go
through the same memory, and once more, when those that only gave arrays their first values are out of the
way. Nests that agree in their outer loops only are joined there, and so is in the end what that made; their
inner parts meet again one level down: a softmax becomes one loop over rows, and local variances do, in 0.7 of
the time. Last, what makes a large temporary is put off until what reads that has all else that it needs:
where `log(v) + (x - m) ** 2` is summed, and the logarithms are few, in 0.3 of the time. A short loop that
takes a temporary from another one, and overwrites what only earlier iterations of that read, goes along with
it in order. Single stores and bound numbers move up past nests that have nothing to do with them; so do
exceptions, past what neither the caller sees nor others ask.

Every nest is compared with few others, only through the memory that both touch and at a bounded number
of places, so that a thousand assignments take a thousand steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from itertools import islice, product
from typing import TypeVar

from ...frozen import replace, slotted
from ...ir.code import Caps
from ...ir.dtype import BOOL
from ...ir.expr import Variable
from ...ir.index import Affine, Symbol
from ...ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    LoopKind,
    Raise,
    Stmt,
    Store,
    Update,
    While,
    nested,
    walk_statements,
)
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_bodies, substitute_statements
from ..analysis.access import (
    Distance,
    Effects,
    Range,
    Ranges,
    Touched,
    distances,
    effects,
    given,
)
from ..analysis.accounts import locations, seen_loops
from ..analysis.carriers import disturb, meetings
from ..analysis.lockstep import in_lockstep
from .nests import Nest, Streams, View, nest_of, ranges_inside

__all__ = ["MAX_STREAMS", "explain_fuse", "fuse"]

MAX_STREAMS = 24
"""Arrays of the caller's that one nest may go through: more would fight for the first-level cache."""

MAX_REGIONS = 64
"""Places of one array that a nest is compared at: a nest that goes to more takes no other that meets it."""

MAX_TRIES = 4
"""Independent nests of the same ranges that are tried before a nest stays on its own."""

SHORT = 16_384
"""So many iterations are hardly worth sharing among threads, whatever they do."""

WORTH = 4096
"""So many bytes of a temporary are worth putting off what makes it: fewer cost little to store."""

Key = TypeVar("Key")


def fuse(kernel: Kernel, caps: Caps) -> Kernel:
    """The same program in fewer loop nests."""
    body = _fused(kernel.body, {}, given(kernel.params))
    if body is kernel.body:
        return kernel
    before, after = (sum(isinstance(stmt, For) for stmt in walk_statements(b)) for b in (kernel.body, body))
    return kernel.with_body(body, [f"fuse: {before} loops became {after}"])


def _fused(body: tuple[Stmt, ...], ranges: Ranges, streams: Streams) -> tuple[Stmt, ...]:
    """A body with its nests joined, and the same for the bodies in it."""
    if not any(isinstance(stmt, (For, If, While)) for stmt in body):
        return body
    if len(body) == 1:
        return kept(body, (_inside(body[0], ranges, streams),))
    nests = list(_nests(body, ranges, streams))
    for turn in Turn:
        schedule = _Schedule(ranges, streams, turn)
        for nest in nests:
            schedule.add(nest)
        joined = [nest for nest in schedule.nests if nest.body]
        is_settled = len(joined) == len(nests) and sum(bool(nest.band) for nest in nests) < 2
        nests = joined
        if is_settled:
            break
    return kept(body, [stmt for nest in nests for stmt in _rebuilt(nest, ranges, streams)])


def _inside(stmt: Stmt, ranges: Ranges, streams: Streams) -> Stmt:
    """A statement with the bodies in it fused."""
    within = ranges_inside((stmt,), ranges) if isinstance(stmt, For) else ranges
    return rewrite_bodies(stmt, lambda body: _fused(body, within, streams))


def _nests(body: tuple[Stmt, ...], ranges: Ranges, streams: Streams) -> Iterator[Nest]:
    """The statements of a body; what is defined right before a loop belongs to it."""
    bound = frozenset(stmt.symbol for stmt in body if isinstance(stmt, Bind))
    waiting: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Define):
            waiting.append(stmt)
            continue
        if not isinstance(stmt, For):
            yield from (nest_of([], define, ranges, streams, frozenset()) for define in waiting)
            waiting = []
        yield nest_of(waiting, stmt, ranges, streams, bound)
        waiting = []
    yield from (nest_of([], define, ranges, streams, frozenset()) for define in waiting)


def _rebuilt(nest: Nest, ranges: Ranges, streams: Streams) -> Iterator[Stmt]:
    """The statements of a nest, with the bodies inside fused."""
    yield from nest.prelude
    if not nest.band:
        yield _inside(nest.body[0], ranges, streams)
        return
    body = tuple(nest.body)
    inner = _fused(body, ranges_inside(nest.band, ranges), streams)
    if nest.original is not None and inner is body:
        yield nest.original
    else:
        outermost, *others = nest.band
        kind = LoopKind.SEQUENTIAL if nest.in_order else outermost.kind
        yield replace(outermost, kind=kind, body=nested(others, inner))


def explain_fuse(before: Kernel, after: Kernel, caps: Caps) -> Iterator[str]:
    """Why nests stay apart of which one reads a temporary that the other makes."""
    bodies: list[tuple[tuple[Stmt, ...], Ranges]] = [(after.body, {})]
    ranges: dict[Symbol, Range] = {}
    bodies += ((seen.loop.body, ranges) for seen in seen_loops(after.body, ranges))
    for body, known in bodies:
        schedule = _Schedule(known, given(after.params), Turn.ALL)
        for nest in _nests(body, known, schedule.streams):
            for storage in nest.effects.reads.keys() - schedule.streams if nest.band else ():
                maker = schedule.last_write.get(storage, -1) // 2
                if maker >= 0 and schedule.nests[maker].band:
                    why = schedule.refusal(maker, nest)
                    places = (locations(schedule.nests[maker].body), locations(nest.body))
                    made, read = (f" at {found[0]}" if found else "" for found in places)
                    yield f"fuse: {storage} is made{made} and read{read} in loops of their own: {why}"
            schedule.append(nest)


class Turn(Enum):
    """What is joined, one after the other."""

    CHAINS = "nests without loops in them, where one reads a temporary that the other makes"
    FLAT = "nests without loops in them that have all of theirs in common"
    ALL = "whatever may be joined"
    ROWS = "rows of nests that went on to the end of a row each"
    NESTS = "what that made, over the same rows"
    MAKERS = "nests with what makes a temporary for them, which may as well be done later"


class Relation(Enum):
    """Which iterations of two nests touch the same cells."""

    NONE = "no two do"
    IN_STEP = "equal ones only"
    OUT_OF_STEP = "one writes what another one touches"


@slotted
class _Schedule:
    """The nests of one body so far, and when each array and variable was last read and written, and any array
    of the caller's or bool (`last_seen`): nest `n` runs at time `2 * n + 1`, its prelude at `2 * n`."""

    ranges: Ranges
    streams: Streams
    turn: Turn
    nests: list[Nest] = field(default_factory=list)
    last_read: dict[Tensor, int] = field(default_factory=dict)
    last_write: dict[Tensor, int] = field(default_factory=dict)
    last_use: dict[Variable, int] = field(default_factory=dict)
    last_set: dict[Variable | Symbol, int] = field(default_factory=dict)
    last_seen: int = -1
    last_exit: int = -1
    by_bounds: dict[tuple[Affine, Affine, int], list[int]] = field(default_factory=dict)

    def append(self, nest: Nest) -> None:
        position = len(self.nests)
        self.nests.append(nest)
        if nest.band:
            self.by_bounds.setdefault(nest.band[0].bounds, []).append(position)
        self.record(nest, position)

    def record(self, nest: Nest, position: int) -> None:
        if nest.prelude:
            self.note(nest.prelude, nest.before, 2 * position)
        self.note(() if nest.band else nest.body, nest.effects, 2 * position + 1)

    def note(self, body: Iterable[Stmt], effect: Effects, time: int) -> None:
        """Statements with this effect run at this time."""
        for storage in effect.reads:
            _advance(self.last_read, storage, time)
        for storage in effect.writes:
            _advance(self.last_write, storage, time)
        for variable in effect.uses:
            _advance(self.last_use, variable, time)
        for variable in effect.updates:
            _advance(self.last_set, variable, time)
        if not self.streams.isdisjoint(effect.writes) or any(v.dtype is BOOL for v in effect.updates):
            self.last_seen = max(self.last_seen, time)
        if effect.leaves:
            self.last_exit = max(self.last_exit, time)
        for stmt in body:
            match stmt:
                case Define(variable=name) | Bind(symbol=name):
                    _advance(self.last_set, name, time)
                case _:
                    pass

    def earliest(self, effect: Effects, numbers: Iterable[Symbol]) -> int:
        """The last time at which something ran that must come before this effect; -1 for never."""
        found = [self.last_exit, self.last_seen if effect.leaves else -1]
        found += [self.last_write.get(storage, -1) for storage in (*effect.reads, *effect.writes)]
        found += [self.last_read.get(storage, -1) for storage in effect.writes]
        found += [self.last_set.get(variable, -1) for variable in (*effect.uses, *effect.updates)]
        found += [self.last_set.get(number, -1) for number in numbers]
        found += [self.last_use.get(variable, -1) for variable in effect.updates]
        return max(found)

    def add(self, nest: Nest) -> None:
        """Join a nest to an earlier one, move a single statement up, or append it."""
        if self.turn is Turn.MAKERS:
            done = self.met(nest)
        elif nest.band:
            done = self.is_its_turn(nest) and (self.joined(nest) or self.joined_alone(nest))
        else:
            done = self.moved_up(nest)
        if not done:
            self.append(nest)

    def is_its_turn(self, nest: Nest) -> bool:
        """Whether this turn may be for a nest, whatever the others are."""
        match self.turn:
            case Turn.CHAINS | Turn.FLAT:
                return nest.flat
            case Turn.NESTS:
                return nest.flat or nest.goes_by_rows()
        return True

    def joined(self, nest: Nest) -> bool:
        """Join a nest to an earlier one, if there is one for it."""
        if nest.effects.leaves:
            return False
        least = self.earliest(nest.effects, nest.numbers) // 2
        after = _next(self.earliest(nest.before, nest.numbers))
        for position in self.candidates(nest, max(least, after)):
            target = self.nests[position]
            if not self.is_turn_of(target, nest) and not self.hands_on(target, nest):
                continue
            names = _names(target, nest)
            depth = self.joined_depth(target, nest, names)
            follows = not depth and self.may_follow(target, nest, names)
            if depth or follows:
                target.join(nest, depth or 1, _outermost(names, depth or 1), self.ranges)
                target.in_order |= follows
                self.record(nest, position)
                return True
        return False

    def joined_alone(self, nest: Nest) -> bool:
        """Join a nest without the single stores that moved up to it, if it has nothing to do with them: they
        follow."""
        stores = [stmt for stmt in nest.prelude if isinstance(stmt, Store)]
        others: list[Stmt] = [stmt for stmt in nest.prelude if isinstance(stmt, Define)]
        if not stores or len(stores) + len(others) < len(nest.prelude):
            return False
        before, after = effects(stores, self.ranges) if others else nest.before, nest.effects
        if disturb(before, after) or not self.joined(
            replace(nest, prelude=others, before=effects(others, self.ranges))
        ):
            return False
        for stmt in stores:
            self.add(nest_of([], stmt, self.ranges, self.streams, nest.numbers))
        return True

    def met(self, nest: Nest) -> bool:
        """Join a nest to one that makes a temporary for it, past what has nothing to do with that one but
        must come before this one."""
        if not nest.band or nest.effects.leaves or nest.contracts:
            return False
        makers = {
            self.last_write[storage] // 2
            for storage in nest.effects.reads.keys() & self.last_write.keys() - self.streams
            if storage.has_fixed_shape and storage.nbytes >= WORTH
        }
        for position in sorted(makers, reverse=True):
            maker = self.nests[position]
            names = _names(maker, nest) if self.may_wait(position) else {}
            depth = self.joined_depth(maker, nest, names)
            if depth:
                self.nests[position] = replace(maker, prelude=[], band=(), body=[], numbers=frozenset())
                self.by_bounds[maker.band[0].bounds].remove(position)
                maker.join(nest, depth, _outermost(names, depth), self.ranges)
                self.append(maker)
                return True
        return False

    def may_wait(self, position: int) -> bool:
        """Whether a nest without loops in it may be done after all that follows it so far."""
        nest, time = self.nests[position], 2 * position + 1
        if not nest.band or not nest.flat or nest.contracts or nest.effects.leaves:
            return False
        made = [stmt.variable for stmt in nest.prelude if isinstance(stmt, Define)]
        if len(made) < len(nest.prelude):
            return False
        later = [self.last_use.get(variable, -1) for variable in made]
        for effect in (nest.effects, nest.before):
            later += (self.last_write.get(storage, -1) for storage in (*effect.reads, *effect.writes))
            later += (self.last_read.get(storage, -1) for storage in effect.writes)
            later += (self.last_set.get(variable, -1) for variable in (*effect.uses, *effect.updates))
            later += (self.last_use.get(variable, -1) for variable in effect.updates)
            later.append(-1 if self.streams.isdisjoint(effect.writes) else self.last_exit)
        return max(later) <= time

    def moved_up(self, nest: Nest) -> bool:
        """Make a single statement part of an earlier prelude, if that is not too early."""
        (stmt,) = nest.body
        if nest.prelude or not isinstance(stmt, (Bind, Raise, Store, Update)):
            return False
        position = _next(self.earliest(nest.effects, nest.numbers))
        if position == len(self.nests):
            return False
        self.nests[position].add_before(nest)
        self.note(nest.body, nest.effects, 2 * position)
        return True

    def candidates(self, nest: Nest, least: int) -> Iterator[int]:
        """Nests with the same outermost bounds from position `least` on: it first, then the last ones."""
        same = self.by_bounds.get(nest.band[0].bounds, [])
        recent = [position for position in same[-MAX_TRIES:] if position > least]
        if 0 <= least < len(self.nests) and self.nests[least].band:
            yield least
        yield from reversed(recent)

    def joined_depth(self, target: Nest, nest: Nest, names: Mapping[Symbol, Affine]) -> int:
        """How many loops the two nests can have in common; 0 when they must or should stay apart."""
        if target.effects.leaves or not names or not self.is_turn_of(target, nest):
            return 0
        if (nest.contracts or (target.contracts and nest.effects.updates)) and not self.share_matrix(
            target, nest, names
        ):
            return 0
        if len(target.streams | nest.streams) > max(MAX_STREAMS, len(target.streams)):
            return 0
        if target.effects.shares_variables(nest.effects) or _has_many_regions(target.effects, nest.effects):
            return 0
        full = max(len(target.band), len(nest.band))
        whole = self.turn in (Turn.CHAINS, Turn.FLAT)
        if whole and len(names) < full:
            return 0
        most = min(len(target.band), len(nest.band)) - (self.turn is Turn.ROWS)
        for depth in range(min(len(names), most), 0, -1):
            if target.contracts and depth < full:
                return 0
            match self.relation(target, nest, _outermost(names, depth), depth):
                case Relation.IN_STEP:
                    return depth
                case Relation.NONE if depth == full and target.flat and nest.flat:
                    return depth
                case Relation.NONE | Relation.OUT_OF_STEP:
                    if whole:
                        return 0
        return 0

    def share_matrix(self, target: Nest, nest: Nest, names: Mapping[Symbol, Affine]) -> bool:
        """Whether both are sums of products with the same numbers, each of which both need in one iteration:
        those of a matrix and two vectors, or of a vector and two others."""
        if not (target.contracts and nest.contracts and target.flat == nest.flat):
            return False
        if not len(target.band) == len(nest.band) == len(names):
            return False
        inside, aligned = ranges_inside(target.band, self.ranges), [loop.symbol for loop in target.band]
        theirs = replace(nest.view(len(names), self.ranges), names=names)
        return _share_reads(target.view(len(names), self.ranges), theirs, aligned, inside)

    def refusal(self, position: int, nest: Nest) -> str:
        """Why a nest stays apart from an earlier one, of which it reads something."""
        target = self.nests[position]
        names = _names(target, nest)
        if nest.contracts or (target.contracts and nest.effects.updates):
            return "sums of products stay by themselves"
        if not names:
            return "their outermost loops run differently"
        if nest.effects.leaves or target.effects.leaves:
            return "one may end with an exception"
        if len(target.streams | nest.streams) > MAX_STREAMS:
            return f"together they go through more than {MAX_STREAMS} arrays"
        if self.earliest(nest.effects, nest.numbers) // 2 > position:
            return "what stands between them must come first"
        if self.relation(target, nest, _outermost(names, 1), 1) is Relation.OUT_OF_STEP:
            return "an iteration of the one reads what other iterations of the other write"
        return "they have only outer loops in common, which would not bring anything nearer"

    def may_follow(self, target: Nest, nest: Nest, names: Mapping[Symbol, Affine]) -> bool:
        """Whether a nest that takes a temporary from the target may go along with it, iterations in order,
        since it overwrites nothing that later iterations of the target read."""
        if not len(target.band) == len(nest.band) == len(names) == 1 or not self.hands_on(target, nest):
            return False
        loop = replace(target.band[0], kind=LoopKind.SEQUENTIAL)
        span = (loop.hi - loop.lo).bounds(self.ranges)
        if span is None or span[1] > SHORT:
            return False
        inside = ranges_inside((loop,), self.ranges)
        mine, theirs = target.effects.writes, nest.effects.renamed(names).reads
        apart = meetings(mine, theirs, (loop.symbol,), inside)
        if any(found[loop.symbol] != (0, 0) for found in apart):
            return False
        body = (*target.body, *substitute_statements(tuple(nest.body), names))
        return in_lockstep(replace(loop, body=body), inside)

    def is_turn_of(self, target: Nest, nest: Nest) -> bool:
        """Whether two nests are of the kind that this turn is for."""
        match self.turn:
            case Turn.CHAINS:
                return self.hands_on(target, nest)
            case Turn.FLAT:
                return target.flat and nest.flat
            case Turn.NESTS:
                return target.goes_by_rows() and nest.goes_by_rows()
        return True

    def hands_on(self, target: Nest, nest: Nest) -> bool:
        """Whether a nest without loops inside reads a temporary that the target, another such, makes."""
        made = target.effects.writes.keys() - self.streams
        return target.flat and nest.flat and not made.isdisjoint(nest.effects.reads)

    def relation(self, target: Nest, nest: Nest, names: Mapping[Symbol, Affine], depth: int) -> Relation:
        """How the iterations of the outermost `depth` loops of two nests meet in memory."""
        inside = ranges_inside(target.band, self.ranges)
        aligned = [loop.symbol for loop in target.band[:depth]]
        mine = target.view(depth, self.ranges)
        theirs = replace(nest.view(depth, self.ranges), names=names)
        one, other = target.effects, nest.effects
        meeting = False
        for first, second in (
            (one.writes, other.reads),
            (one.reads, other.writes),
            (one.writes, other.writes),
        ):
            for apart in _distances(mine, first, theirs, second, aligned, inside):
                if any(distance != (0, 0) for distance in apart.values()):
                    return Relation.OUT_OF_STEP
                meeting = True
        if meeting or _share_reads(mine, theirs, aligned, inside):
            return Relation.IN_STEP
        return Relation.NONE


def _distances(
    mine: View, first: Touched, theirs: View, second: Touched, aligned: list[Symbol], ranges: Ranges
) -> Iterator[dict[Symbol, Distance]]:
    """At which distances the one touches what the other does, wherever they meet."""
    for storage in second:
        if storage in first:
            pairs = product(mine.regions(first, storage), theirs.regions(second, storage))
            for one, other in pairs:
                apart = distances(one, other, aligned, ranges)
                if apart is not None:
                    yield apart


def _share_reads(mine: View, theirs: View, aligned: list[Symbol], ranges: Ranges) -> bool:
    """Whether equal iterations read the same cells, and only equal ones."""
    first, second = mine.effects.reads, theirs.effects.reads
    return any(
        all(distance == (0, 0) for distance in apart.values())
        for apart in _distances(mine, first, theirs, second, aligned, ranges)
    )


def _advance(times: dict[Key, int], key: Key, time: int) -> None:
    if times.get(key, -1) < time:
        times[key] = time


def _next(time: int) -> int:
    """The first nest whose prelude runs at this time or later."""
    return (time + 1) // 2


def _has_many_regions(effect: Effects, other: Effects) -> bool:
    """Whether there are too many places to compare of an array that both touch."""
    return any(
        len(touched.get(storage, ())) > MAX_REGIONS
        for storage in (*other.reads, *other.writes)
        for touched in (effect.reads, effect.writes)
    )


def _outermost(names: Mapping[Symbol, Affine], depth: int) -> dict[Symbol, Affine]:
    return dict(islice(names.items(), depth))


def _names(target: Nest, nest: Nest) -> dict[Symbol, Affine]:
    """The target's symbol for each of the nest's leading loops that has the same bounds."""
    names: dict[Symbol, Affine] = {}
    for mine, theirs in zip(target.band, nest.band, strict=False):
        bounds = (theirs.lo.substitute(names), theirs.hi.substitute(names), theirs.step)
        if bounds != mine.bounds:
            break
        names[theirs.symbol] = Affine.of(mine.symbol)
    return names
