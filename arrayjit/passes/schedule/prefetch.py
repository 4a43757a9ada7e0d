"""prefetch: while a row is worked on, the next one is brought near.

    for i in sequential(0, 4096):                   for i in sequential(0, 4096):
        for j in vector(0, 512, lanes=8):               for j in vector(0, 512, lanes=8):
            s = reduce(add, s, x[i, j])                     s = reduce(add, s, x[i, j])
        for k in vector(0, 512, lanes=8):   ->          for k in vector(0, 512, lanes=8):
            y[i, k] = bypass(divide(x[i, k], s))            prefetch(x[i + 1, k])
                                                            y[i, k] = bypass(divide(x[i, k], s))

Where a row is gone through more than once, the first time waits for memory, and memory for all others, which
find the row in a cache: the hardware sees no further than what is asked for. So the busiest of the others
asks for the next row, line by line, which comes while it computes (`rows`): softmax of large arrays takes
0.65 to 0.9 of the time. The end of a row that is asked for in this way is needed at once. Where that was seen
to gain (Zen 5), a page beyond the same place of the next row is asked for instead (`beyond`), and a loop that
does little asks for what the first one adds up; one that adds up asks before one that stores, which waits for
lines of its results as well.

    for i in sequential(0, 4000):                   for i in sequential(0, 4000):
        s = 0.0                                         prefetch(x[i + 1, 0])
        for j in vector(0, i, lanes=8):       ->        prefetch(x[i + 1, 8])  ...
            s = reduce(add, s, x[i, j] * y[j])          s = 0.0
        y[i] = divide(s, x[i, i])                       for j in vector(0, i, lanes=8):  ...

Where rows are left before their end, as those of a triangle are, the hardware does not see where the next one
begins, and where they must be taken in order the processor is not ahead of itself: so the first lines of the
next row are asked for with the row before (`beginnings`).

    for i in vector(0, 9000000, lanes=16):          for i in vector(0, 9000000, lanes=16):
        y[i] = tanh(x[i])                     ->        prefetch(x[i + 256])
                                                        prefetch(y[i + 256])
                                                        y[i] = tanh(x[i])

Where much is computed between reading and writing, the processor sees too little of what comes to wait for
several lines at once, and the hardware that fetches ahead stops at the end of each page. So a loop that goes
along more than the last cache keeps for it asks for what it will read and write half a page later, or a page,
as it suits the processor (`further`). Behind the end of a row, however short, lies the next one; a part of a
row, as of the inside of a grid, is followed by the same part of a later one. A loop that does little asks for
what it reads alone, if it stores past the caches.

    for i in sequential(0, 5790):                   for i in sequential(0, 5790):
        for j in vector(0, 5790, lanes=32):             for j in vector(0, 5790, lanes=32):
            y[i, j] = add(x[i, j], x[i + 1, j])  ->         prefetch(x[i + 1, j + 512])
                                                            prefetch(x[i + 1, j + 2048], 2)
                                                            y[i, j] = add(x[i, j], x[i + 1, j])

Where the next rows read a row again, it waits for them in the second cache, and is brought there by two pages
ahead: the first cache has little room beside the rows that are gone through.

    for l in vector(0, 8, lanes=8):                 for l in vector(0, 8, lanes=8):
        for i in sequential(0, 31250):                  for i in sequential(0, 31250):
            s = reduce(add, s, x[l + 8*i])    ->            prefetch(x[l + 8*i + 32])
            t = reduce(add, t, x[... + 250000])             prefetch(x[l + 8*i + 250032])  ...
            ...                                             s = reduce(add, s, x[l + 8*i])  ...

Sums and extremes that go through several places of their arrays at once, such as quarters, or rows down a
column, ask for what comes some lines later at each (`added`, `abreast`, `down`): of so many places the
hardware is not far enough ahead. Those of rows ask for what lies half a page on, in the next row (`sums`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from ...frozen import frozen, slotted
from ...ir.code import Caps
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.loops import (
    Bind,
    Define,
    For,
    Kernel,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    Update,
    bypasses,
    walk_statements,
)
from ...ir.tensor import Tensor
from ...ir.walk import kept, rewrite_loops
from ..analysis.access import Range
from ..analysis.leading import FARTHEST, PLACES, Cell, are_at_places, chosen_bytes, fetched, latest, leading
from ..analysis.strides import affine_accesses
from ..analysis.trips import about, enter
from ..analysis.work import work

__all__ = ["prefetch"]

LINES, ROWS = 16, 4
"""Cache lines in a row, at least, and how many rows the second cache holds."""
BUSY, BUSIER = 4.0, 20.0
"""The work for each line that is asked for, in additions of one register each, at least: usually, and beside
results whose lines are fetched from memory."""
BEGINNING = 8
"""Cache lines after which the hardware has seen where a row goes."""
LONG, REST = 8192, 8
"""Bytes that a loop goes along at least which asks for what it reads and writes; or, where it asks far ahead,
all of a row but for one of so many parts: then the next row follows. Copies of shorter rows would take up to
1.08 times as long."""
SHORT, MOST = 512, 16384
"""Bytes of a part of a row at least, if a loop does little with it: to copy shorter ones would take up to 1.3
times as long; half as many, if it does more. And at most: stencils of longer ones would take up to 1.2."""
MORE = 4
"""Times as many iterations, or bytes of a row that a position chose, as lie between what is read and what is
asked for are there at least."""
COMPUTED = 8.0
"""The work for each line that a loop asks for half a page ahead, as above, at least."""
SOON, NEXT = 256, 512
"""Bytes from what a sum adds, or a light loop reads, to what is asked for: twice as far loses for one array
what it gains for two; and from what many rows have."""
ALONG, ROW = 1024, 4096
"""Bytes from what is compared or added down columns to what is asked for, and of a row at least: of rows of
1,200 bytes loops would take up to 1.3 times as long."""
ROOM = 1.5
"""First caches that may be full of this row, the next one, and what is read with both. Where they are twice
as full, such as by rows of 24 kB that are weighted, what is asked for a page sooner costs 1.07."""
KEPT = 3
"""Arrays that take more than one of so many parts of the last cache are not all found there."""


def prefetch(kernel: Kernel, caps: Caps) -> Kernel:
    """The kernel with rows brought near while those before them are worked on."""
    inside = walk_statements(kernel.body)
    ahead = _Ahead(caps, frozenset(stmt.symbol for stmt in inside if isinstance(stmt, Bind)))
    body = rewrite_loops(kernel.body, ahead.loop)
    return kernel.with_body(body, ahead.notes)


@frozen
class _Row:
    """Cells `tensor[place, ...]`."""

    tensor: Tensor
    place: tuple[Affine, ...]

    @property
    def nbytes(self) -> int:
        return self.tensor.shape[-1].offset * self.tensor.dtype.itemsize


@slotted
class _Ahead:
    caps: Caps
    bound: frozenset[Symbol]
    ranges: dict[Symbol, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def loop(self, loop: For) -> Sequence[For] | None:
        enter(loop, self.ranges)
        asking = self.rows(loop) or self.beginnings(loop) or self.further(loop) or self.added(loop)
        asking = asking or self.abreast(loop) or self.sums(loop) or self.down(loop)
        return None if asking is None else (asking,)

    def rows(self, loop: For) -> For | None:
        """The loop with what its next iteration reads brought near, if it goes through rows several times."""
        passes = [stmt for stmt in loop.body if isinstance(stmt, For)]
        if len(passes) < 2 or loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL):
            return None
        rows = self.rows_read(passes[0], loop)
        nbytes = sum(row.nbytes for row in rows)
        if not LINES * self.caps.line_bytes <= nbytes <= self.caps.l2_bytes // ROWS:
            return None
        busiest = max(passes[1:], key=self.work)
        if self.finishes_another(busiest):
            return None
        beyond = self.beyond(passes, rows)
        sums = [stmt for stmt in passes[1:] if beyond is not None and _adds_up(stmt)]
        chosen = max(sums or [busiest], key=self.work)
        asking = _asking(chosen, rows, beyond or 0)
        busy = BUSIER if self.waits_for_results(loop, rows) else BUSY
        is_busy = self.work(busiest) >= busy * nbytes / self.caps.line_bytes
        if asking is chosen or not (is_busy or self.gains_anyway(passes[0], busiest, nbytes, beyond)):
            return None
        names = ", ".join(dict.fromkeys(row.tensor.label for row in rows))
        self.notes.append(f"prefetch: while {chosen.symbol.hint} goes on, the next of {names} is fetched")
        return replace(loop, body=tuple(asking if stmt is chosen else stmt for stmt in loop.body))

    def beyond(self, passes: Sequence[For], rows: Sequence[_Row]) -> int | None:
        """How many bytes behind the same places of the next rows lies what is asked for: some for rows from
        memory. None where the processor gains nothing by that, where rows do not follow one another, and
        where the first cache has no room for them and all that is read again."""
        read = {tensor: None for tensor, _, is_store in affine_accesses(tuple(passes)) if not is_store}
        again = [tensor for tensor in read if tensor.has_fixed_shape and not self.is_large(tensor)]
        room = ROOM * self.caps.l1_bytes - sum(tensor.nbytes for tensor in again)
        arrays = {row.tensor: None for row in rows}
        fits = 2 * sum(row.nbytes for row in rows) <= room
        if not (self.caps.ahead.beyond and fits and all(tensor.strides is None for tensor in arrays)):
            return None
        is_far = KEPT * sum(tensor.nbytes for tensor in arrays) > self.caps.l3_bytes
        return self.caps.ahead.beyond if is_far else 0

    def gains_anyway(self, first: For, asking: For, nbytes: int, beyond: int | None) -> bool:
        """May a loop that does little ask for the next of rows which the first one adds up? From memory, if
        it asks beyond it; and sums, where all rows are in the caches and longer than what they ask ahead."""
        if beyond is None or not _adds_up(first):
            return False
        if not _adds_up(asking):
            return bool(beyond)
        return 2 * nbytes < self.caps.l1_bytes and (bool(beyond) or nbytes > self.caps.ahead.further)

    def finishes_another(self, loop: For) -> bool:
        """Does a loop that adds up a row store results as well (`trail`), whose lines are fetched first?"""
        inside = list(walk_statements(loop.body))
        return any(isinstance(stmt, Update) and stmt.accum is not None for stmt in inside) and any(
            isinstance(stmt, Store) and not stmt.bypass and self.is_large(stmt.tensor) for stmt in inside
        )

    def beginnings(self, loop: For) -> For | None:
        """The loop with the first lines of the rows that its next iteration reads brought near, if it goes
        along rows to an end that is not theirs."""
        first = next((stmt for stmt in loop.body if isinstance(stmt, For)), None)
        if first is None or first.hi.is_constant or loop.kind is not LoopKind.SEQUENTIAL:
            return None
        asked: list[Stmt] = []
        inside = _bound(loop.body)
        for row in self.rows_read(first, loop):
            cells = row.tensor.shape[-1]
            places = (_along(cells, stmt, first.symbol) for stmt in first.body if not isinstance(stmt, For))
            along = next((place for place in places if place is not None), None)
            line = self.caps.line_bytes // row.tensor.dtype.itemsize
            if along is not None and cells.constant >= LINES * line:
                start = along.substitute({first.symbol: first.lo})
                start = start.substitute({loop.symbol: Affine.of(loop.symbol) + loop.step})
                if not inside.isdisjoint(symbols_of((*row.place, start))):
                    continue  # what the body is about to compute is not known in front of it
                ask = (Prefetch(row.tensor, (*row.place, start + line * k)) for k in range(BEGINNING))
                asked.extend(ask)
                self.notes.append(f"prefetch: the beginning of the next row of {row.tensor.label} is fetched")
        return replace(loop, body=(*asked, *loop.body)) if asked else None

    def further(self, loop: For) -> For | None:
        """The vector loop with what it reads and writes half a page on brought near, if it computes much and
        goes along large arrays."""
        length, cells = about(loop, self.ranges), self.along(loop)
        if not cells or length is None:
            return None
        read = [length * tensor.dtype.itemsize for tensor, _ in cells]
        total = sum(tensor.nbytes for tensor in {tensor: None for tensor, _ in cells})
        if total * KEPT <= self.caps.l3_bytes:
            return None
        is_light = self.work(loop) < COMPUTED * sum(read) / self.caps.line_bytes
        goes_near = is_light and not any(cells.values())
        if min(read) < MOST and not self.goes_on(loop, cells, length):
            asking = self.rows_on(loop, cells, length, goes_near)
            if asking is not None or min(read) < LONG:
                return asking
        if (is_light and not bypasses(loop.body)) or (goes_near and min(read) < LONG):
            return None
        ahead = SOON if goes_near else self.caps.ahead.further
        asked = [_further(cell, ahead, 1) for cell in cells]
        for tensor, index in (cell for cell, is_again in cells.items() if is_again):
            asked.append(_further((tensor, index), FARTHEST, self.cache_of_row(tensor)))
        return self.asking(loop, asked, ahead)

    def rows_on(self, loop: For, cells: Iterable[Cell], length: int, goes_near: bool) -> For | None:
        """The loop, which stores along a part of each row, with the same part of a row further on brought
        near."""
        kinds = set(map(type, walk_statements(loop.body)))
        if not self.caps.ahead.rows or For in kinds or Store not in kinds or self.finishes_another(loop):
            return None
        first, last = self.ranges.get(loop.symbol, (1, length))
        length = max(length, last - first + 1)
        if goes_near and self.goes_on(loop, cells, length + loop.lanes):
            return None  # what is left of a row is its last vector (`tails`)
        least = SHORT if goes_near else SHORT // 2
        if any(length * tensor.dtype.itemsize < least for tensor, _ in cells):
            return None
        stored = {stmt.index for stmt in walk_statements(loop.body) if isinstance(stmt, Store)}
        asked: list[Prefetch] = []
        for cell in latest(cells, self.caps.l2_bytes // 2):
            rows = self.rows_further(cell, loop.symbol, length, len(stored))
            if not rows:
                return None
            asked.extend(rows)
        return self.asking(loop, asked, self.caps.ahead.further)

    def rows_further(self, cell: Cell, along: Symbol, length: int, stored: int) -> list[Prefetch]:
        """Asks for the same place in a later iteration of the loop from row to row, behind as many bytes of
        rows as are asked ahead, or in the next one, and for the rows before it if so many are stored at once;
        nothing if that loop does not go through many more. In a flat form it steps by a row, or by two
        (`retain`)."""
        tensor, index = cell
        at, least = (index[0], length) if len(index) == 1 else (index[-2], 1)
        steps = {at.coefficient(symbol): symbol for symbol in at.symbols if at.coefficient(symbol) >= least}
        if not steps or along in steps.values():
            return []
        step = min(steps)
        many = step if step == stored else 1
        rows = many if len(index) > 1 else 1 + (step >= 2 * length)
        ahead = max(1, self.caps.ahead.further // (rows * length * tensor.dtype.itemsize))
        first, last = self.ranges.get(steps[step], (0, 0))
        if last - first < MORE * ahead:
            return []
        later = at + ahead * step
        if len(index) == 1:
            return [Prefetch(tensor, (later,))]
        return [Prefetch(tensor, (*index[:-2], later - row, index[-1])) for row in range(many)]

    def goes_on(self, loop: For, cells: Iterable[Cell], length: int) -> bool:
        """Is what a loop of such a length comes to next what follows its rows, and nothing else?"""
        return not self.finishes_another(loop) and all(_fills_row(*cell, length) for cell in cells)

    def added(self, loop: For) -> For | None:
        """The vector loop with what it reads half a page on brought near, if it adds up large arrays."""
        if not all(isinstance(stmt, (Define, Update)) for stmt in loop.body):
            return None
        cells = list(dict.fromkeys(self.reached(loop)))
        if not cells:
            return None
        is_at_places = are_at_places(cells)
        ahead, cache = self.distance(cells, is_at_places)
        asked = cells if is_at_places else leading(cells)
        return self.asking(loop, [_further(cell, ahead, cache) for cell in asked], ahead)

    def distance(self, cells: Sequence[Cell], is_at_places: bool) -> tuple[int, int]:
        """How many bytes ahead loops ask that only add up or compare, and for which cache: those that are at
        several places of each array at once, or at one."""
        arrays, known = {tensor: None for tensor, _ in cells}, self.caps.ahead
        total = sum(tensor.nbytes for tensor in arrays)
        if not is_at_places:
            return known.further, 1
        if total > self.caps.l3_bytes and known.second:
            return known.further, 2
        is_near = len(arrays) == 1 and total * KEPT <= self.caps.l3_bytes
        return (known.one if is_near or total > self.caps.l3_bytes else SOON), 1

    def along(self, loop: For) -> dict[Cell, bool]:
        """The cells of large arrays that a vector loop comes to first, as `leading` finds them."""
        return leading(self.reached(loop))

    def reached(self, loop: For) -> Iterator[Cell]:
        """The cells of large arrays that a vector loop goes along, as often as they are named."""
        inside = _bound(loop.body)
        for tensor, index in fetched(loop) if loop.kind is LoopKind.VECTOR else ():
            is_along = self.is_large(tensor) and index[-1].coefficient(loop.symbol) == 1
            if is_along and inside.isdisjoint(symbols_of(index)) and self.lasts(tensor, index):
                yield tensor, index

    def lasts(self, tensor: Tensor, index: tuple[Affine, ...]) -> bool:
        """Does a loop read what it asks for from here on? Not behind a short row that a position chose."""
        if not self.caps.ahead.chosen:
            return True
        chosen = chosen_bytes(tensor, index, self.bound)
        return chosen is None or chosen > MORE * self.caps.ahead.further

    def asking(self, loop: For, asked: Sequence[Prefetch], ahead: int) -> For:
        """The loop, which first asks for some cells that lie so many bytes ahead."""
        names = ", ".join(dict.fromkeys(ask.tensor.label for ask in asked))
        self.notes.append(f"prefetch: {ahead:,} bytes ahead of {loop.symbol.hint}, {names} are fetched")
        return replace(loop, body=(*asked, *loop.body))

    def abreast(self, loop: For) -> For | None:
        """The loop with the next lines of rows brought near, if it goes along many at once: if one vector of
        it goes down them, and stores past the caches what it finds."""
        vector = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(vector, For) or vector.trips != vector.lanes or not bypasses(vector.body):
            return None
        inside = [stmt for stmt in walk_statements((vector,)) if isinstance(stmt, For)]
        if not all(stmt.lo.is_constant for stmt in inside):
            return None
        first = {stmt.symbol: stmt.lo for stmt in inside}
        asked: dict[Prefetch, None] = {}
        for tensor, index, is_store in affine_accesses((vector,)):
            down, along = index[:-1], index[-1:]
            goes = loop.symbol in symbols_of(along) and vector.symbol not in symbols_of(along)
            if not is_store and goes and vector.symbol in symbols_of(down) and self.is_large(tensor):
                for lane in range(vector.lanes):
                    places = {**first, vector.symbol: vector.lo + lane}
                    cell = tensor, tuple(position.substitute(places) for position in index)
                    asked[_further(cell, NEXT, 1)] = None
        if not asked:
            return None
        names = ", ".join(dict.fromkeys(ask.tensor.label for ask in asked))
        self.notes.append(
            f"prefetch: {NEXT:,} bytes ahead of {loop.symbol.hint}, rows of {names} are fetched"
        )
        return replace(loop, body=(*asked, vector))

    def down(self, loop: For) -> For | None:
        """The vector loop with what it reads some lines on brought near, if it goes through a few rows of a
        large array in a loop."""
        rows = next((stmt for stmt in loop.body if isinstance(stmt, For)), None)
        if (
            not self.caps.ahead.rows
            or loop.kind is not LoopKind.VECTOR
            or rows is None
            or rows.kind is LoopKind.UNROLLED  # the hardware follows each row
            or (rows.trips or 0) < 2
        ):
            return None
        adds = any(isinstance(stmt, Update) for stmt in rows.body)
        if not adds or not all(isinstance(stmt, (Define, Update, Store)) for stmt in rows.body):
            return None
        cells = {
            (tensor, index): None
            for tensor, index, _ in affine_accesses(rows.body)
            if self.is_large(tensor)
            and tensor.nbytes * 2 > self.caps.l3_bytes
            and tensor.shape[-1].offset * tensor.dtype.itemsize >= ROW
            and index[-1].coefficient(loop.symbol) == 1
            and rows.symbol in symbols_of(index[:-1])
            and rows.symbol not in symbols_of(index[-1:])
        }
        if not cells:
            return None
        asking = self.asking(rows, [_further(cell, ALONG, 1) for cell in cells], ALONG)
        return replace(loop, body=tuple(asking if stmt is rows else stmt for stmt in loop.body))

    def sums(self, loop: For) -> For | None:
        """The loop over lanes with what is soon added brought near, in those loops inside that go through
        large arrays."""

        def ahead(inside: For) -> Sequence[For] | None:
            asking = self.soon(inside, loop.lanes)
            return None if asking is None else (asking,)

        if loop.kind is not LoopKind.VECTOR or loop.trips != loop.lanes:
            return None
        body = rewrite_loops(loop.body, ahead)
        return None if body is loop.body else replace(loop, body=body)

    def soon(self, loop: For, lanes: int) -> For | None:
        """The loop, which asks for the cells that it adds up soon; nothing if it is not such a sum."""
        if not all(isinstance(stmt, (Define, Update)) for stmt in loop.body):
            return None
        cells = [(tensor, index) for tensor, index, _ in affine_accesses(loop.body)]
        is_sum = all(
            index
            and index[-1].coefficient(loop.symbol) == lanes
            and lanes * tensor.dtype.itemsize % self.caps.line_bytes == 0
            and self.is_large(tensor)
            and self.lasts(tensor, index)
            for tensor, index in cells
        )
        if not cells or not is_sum:
            return None
        places = Counter(tensor for tensor, _ in cells)
        ahead, cache = self.distance(cells, min(places.values()) >= PLACES)
        return self.asking(loop, [_further(cell, ahead, cache) for cell in dict.fromkeys(cells)], ahead)

    def work(self, loop: For) -> float:
        """What is known of it."""
        return work((loop,), (), self.ranges).get((), 0.0)

    def rows_read(self, first: For, around: For) -> list[_Row]:
        """The next rows of large arrays, of those that the first loop inside reads."""
        cells = ((tensor, index) for tensor, index, is_store in affine_accesses((first,)) if not is_store)
        return self.next_rows(cells, (first,), around)

    def waits_for_results(self, around: For, rows: Sequence[_Row]) -> bool:
        """Are lines of results fetched first, and from memory, since the last cache is too small for all?"""
        stores = (
            stmt for stmt in walk_statements(around.body) if isinstance(stmt, Store) and not stmt.bypass
        )
        written = self.next_rows(((store.tensor, store.index) for store in stores), around.body, around)
        arrays = {row.tensor: None for row in (*rows, *written)}
        return bool(written) and sum(tensor.nbytes for tensor in arrays) > self.caps.l3_bytes

    def next_rows(self, cells: Iterable[Cell], body: tuple[Stmt, ...], around: For) -> list[_Row]:
        """The rows of large arrays that cells which the body of a loop reaches have in its next iteration."""
        inside = _bound(body)
        following = {around.symbol: Affine.of(around.symbol) + around.step}
        rows: dict[_Row, None] = {}
        for tensor, index in cells:
            place, along = index[:-1], index[-1:]
            moves = around.symbol in symbols_of(place) and around.symbol not in symbols_of(along)
            if moves and inside.isdisjoint(symbols_of(place)) and self.is_large(tensor):
                rows[_Row(tensor, tuple(position.substitute(following) for position in place))] = None
        return list(rows)

    def cache_of_row(self, tensor: Tensor) -> int:
        """Which cache a row is asked for that is read again with the next one."""
        row = tensor.shape[-1].offset * tensor.dtype.itemsize
        return 2 if self.caps.ahead.second or row > self.caps.l1_bytes else 1

    def is_large(self, tensor: Tensor) -> bool:
        """Whether the second cache does not hold it, and its rows' cells are neighbours."""
        if not tensor.has_fixed_shape or tensor.nbytes <= self.caps.l2_bytes:
            return False
        return tensor.strides is None or tensor.strides[-1] == Affine.of(1)


def _adds_up(loop: For) -> bool:
    """Does a loop nothing but add up or compare?"""
    return all(isinstance(stmt, (For, Define, Update)) for stmt in walk_statements((loop,)))


def _asking(
    loop: For,
    rows: Sequence[_Row],
    beyond: int,
    vector: Symbol | None = None,
    around: frozenset[Symbol] = frozenset(),
) -> For:
    """The loop, which at each step along rows, in lanes, asks for so much of the next ones, so many bytes
    behind the same place; not in loops over several rows, which would ask for it again in each."""
    vector = loop.symbol if loop.kind is LoopKind.VECTOR else vector
    if loop.kind in (LoopKind.SEQUENTIAL, LoopKind.PARALLEL):
        around |= {loop.symbol}
    body: list[Stmt] = []
    missing = list(rows)
    for stmt in loop.body:
        if isinstance(stmt, For):
            stmt = _asking(stmt, rows, beyond, vector, around)
        elif vector is not None and isinstance(stmt, (Define, Update, Store)):
            for row in tuple(missing):
                along = _along(row.tensor.shape[-1], stmt, vector)
                if along is not None and around.issubset(along.symbols):
                    body.append(_further((row.tensor, (*row.place, along)), beyond, 1))
                    missing.remove(row)
        body.append(stmt)
    new = kept(loop.body, body)
    return loop if new is loop.body else replace(loop, body=new)


def _along(extent: Affine, stmt: Stmt, vector: Symbol) -> Affine | None:
    """The cell of its row, of that extent, where a statement reads or writes neighbours."""
    for tensor, index, _ in affine_accesses((stmt,)):
        if index and tensor.shape[-1] == extent and index[-1].coefficient(vector) == 1:
            return index[-1]
    return None


def _fills_row(tensor: Tensor, index: tuple[Affine, ...], length: int) -> bool:
    """Does a loop of such a length go along nearly all of a row, after which the next one begins?"""
    if tensor.strides is not None or not any(at.symbols for at in index[-2:-1]):
        return False
    row = tensor.shape[-1].offset
    return (row - length) * REST <= row and any(index[-2].coefficient(s) == 1 for s in index[-2].symbols)


def _further(cell: Cell, distance: int, cache: int) -> Prefetch:
    """Asks for what lies so many bytes behind a cell."""
    tensor, index = cell
    return Prefetch(tensor, (*index[:-1], index[-1] + distance // tensor.dtype.itemsize), cache)


def _bound(body: tuple[Stmt, ...]) -> set[Symbol]:
    """The symbols that get their values in a body."""
    return {stmt.symbol for stmt in walk_statements(body) if isinstance(stmt, (For, Bind))}
