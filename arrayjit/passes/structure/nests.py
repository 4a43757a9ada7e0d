"""Nests of loops as `fuse` joins them: loops around a body, and what one iteration does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...frozen import frozen, slotted
from ...ir.index import Affine, Symbol
from ...ir.loops import For, Stmt, Update, nested, walk_statements
from ...ir.tensor import Tensor
from ...ir.walk import substitute_statements
from ..analysis.access import Effects, Range, Ranges, Region, effects, mentioned
from ..analysis.strides import parallel_nest
from ..analysis.trips import enter

__all__ = ["Nest", "Streams", "View", "nest_of", "ranges_inside"]

Streams = frozenset[Tensor]


@slotted
class Nest:
    """A statement, or several nests joined.

    `band` are the perfectly nested parallel loops from the outermost in (none for other statements),
    `body` what stands inside them, `effects` what one iteration of the whole band does; `flat` if no
    loop is among it, `in_order` if the outermost loop is no longer parallel. `prelude` stands right before
    the nest, `before` is its effect. `numbers` are those bound in the same body that the nest and its prelude
    mention. `streams` are the arrays of the caller's of which iterations of the outermost loop touch
    different cells. `original` is the statement, until another one joins.
    """

    prelude: list[Stmt]
    band: tuple[For, ...]
    body: list[Stmt]
    effects: Effects
    before: Effects
    flat: bool
    contracts: bool
    streams: set[Tensor]
    numbers: frozenset[Symbol]
    original: Stmt | None
    in_order: bool = False

    def goes_by_rows(self) -> bool:
        """Whether loops in it go through one row of arrays after the other, in any order."""
        plain = len(self.band) == 1 and not self.flat and not self.in_order
        return plain and self.effects.in_rows(self.band[0].symbol)

    def view(self, depth: int, ranges: Ranges) -> View:
        """The nest as its outermost `depth` loops see it."""
        if depth == len(self.band):
            return View(self.effects, {}, {})
        inside = ranges_inside(self.band, ranges)
        return View(self.effects, {}, {loop.symbol: inside.get(loop.symbol) for loop in self.band[depth:]})

    def join(self, other: Nest, depth: int, names: Mapping[Symbol, Affine], ranges: Ranges) -> None:
        """Take another nest into the outermost `depth` loops."""
        self.flat &= other.flat and depth == len(self.band) == len(other.band)
        theirs = other.view(depth, ranges)
        inner = substitute_statements(nested(other.band[depth:], tuple(other.body)), names)
        if depth < len(self.band):
            self.effects = self.effects.without(self.view(depth, ranges).inner)
            self.body = list(nested(self.band[depth:], tuple(self.body)))
            self.band = self.band[:depth]
        self.body.extend(inner)
        self.effects.add(other.effects.renamed(names).without(theirs.inner))
        if other.prelude:
            self.prelude.extend(other.prelude)
            self.before.add(other.before)
        self.in_order |= other.in_order
        self.contracts |= other.contracts
        self.streams |= other.streams
        self.numbers |= other.numbers
        self.original = None

    def add_before(self, other: Nest) -> None:
        """Take a single statement into the prelude."""
        self.prelude.extend(other.body)
        self.before.add(other.effects)
        self.numbers |= other.numbers


@frozen
class View:
    """Effects seen from outside the loops of `inner`, over the symbols that `names` gives."""

    effects: Effects
    names: Mapping[Symbol, Affine]
    inner: Mapping[Symbol, Range | None]

    def regions(self, touched: Mapping[Tensor, Iterable[Region]], storage: Tensor) -> list[Region]:
        """What is touched of one storage, each region once."""
        seen = (item.renamed(self.names).without(self.inner) for item in touched.get(storage, ()))
        return list(dict.fromkeys(seen)) if self.inner else list(seen)


def nest_of(
    prelude: list[Stmt], stmt: Stmt, ranges: Ranges, streams: Streams, bound: frozenset[Symbol]
) -> Nest:
    band = tuple(parallel_nest(stmt))
    body = band[-1].body if band else (stmt,)
    found = effects(body, ranges_inside(band, ranges))
    return Nest(
        prelude,
        band,
        list(body),
        found,
        effects(prelude, ranges) if prelude else Effects(),
        not any(isinstance(inner, For) for inner in body),
        any(isinstance(inner, Update) and inner.contract for inner in walk_statements(body)),
        {
            storage
            for touched in (found.reads, found.writes)
            for storage, regions in touched.items()
            if storage in streams and _is_gone_through(regions, band)
        },
        bound & set(mentioned((*prelude, stmt))) if bound else bound,
        stmt,
    )


def _is_gone_through(regions: Iterable[Region], band: Sequence[For]) -> bool:
    """Whether iterations of the outermost loop touch different cells."""
    return not band or any(
        span is None or band[0].symbol in span.base.symbols for region in regions for span in region.spans
    )


def ranges_inside(band: Iterable[For], ranges: Ranges) -> dict[Symbol, Range]:
    inside = dict(ranges)
    for loop in band:
        enter(loop, inside)
    return inside
