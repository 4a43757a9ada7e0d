"""Loops of a Kernel as the blocks of one LLVM function, and with them all its statements.

Locals stay in registers: where a loop may change one, a phi joins its values. A vector loop is printed twice,
for whole vectors and for the remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial

from typing_extensions import assert_never

from ..errors import CompilerBug
from ..frozen import replace
from ..ir.dtype import I64, DType
from ..ir.expr import Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Fill,
    For,
    If,
    LoopKind,
    Raise,
    Store,
    While,
    bypasses,
    walk_statements,
)
from .bodies import accumulation, changes, conditions, fills_lanes
from .llvm_across import Across, across
from .llvm_alike import Form
from .llvm_chunks import Chunk, call_chunk
from .llvm_extremes import folds, forms_again, nothing_lost, were_lost
from .llvm_held import holding
from .llvm_interleaved import Item, lanes_of
from .llvm_loops import (
    Exit,
    Print,
    boundary_after,
    boundary_before,
    counts_at_once,
    edge_of,
    edges,
    filling,
    in_units,
    least,
    lesser,
    nearest,
    numbers,
    on_boundaries,
    part_of,
    until_boundary,
    whole_vectors,
    widths,
)
from .llvm_masked import ends_sums, masked_widths
from .llvm_memory import Lanes
from .llvm_overlapped import Overlapped, Vector
from .llvm_parallel import FIRST, LAST, share
from .llvm_statements import Statements
from .llvm_strings import fewest_cells, strings
from .llvm_text import Operand, Value, Writer
from .llvm_transposed import transposed_loads
from .llvm_values import any_lane, carried, from_carried, identity

__all__ = ["Body"]


class Body(Statements):
    """Prints the statements of one Kernel. Symbols and parameters are bound by the caller."""

    def _repeated(self, stmt: For | While | Fill) -> None:
        match stmt:
            case For() if id(stmt) in self._nests.forms:
                self._alike(stmt, self._nests.forms[id(stmt)])
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case Fill():
                self._vector(filling(stmt, self._memory))
            case _:
                assert_never(stmt)

    def _for(self, loop: For) -> None:
        match loop.kind:
            case _ if loop.grain is not None:
                self._shared(loop, loop.grain)
            case LoopKind.VECTOR | LoopKind.LOCKSTEP | LoopKind.SEQUENTIAL if loop.lanes > 1:
                self._vector(loop)
            case LoopKind.UNROLLED if loop.lo.is_constant and loop.hi.is_constant:
                self._unrolled(loop)
            case (
                LoopKind.SEQUENTIAL
                | LoopKind.PARALLEL
                | LoopKind.UNROLLED
                | LoopKind.VECTOR
                | LoopKind.LOCKSTEP
            ):
                self._sequential(loop, self._bound(loop.lo), self._bound(loop.hi))
            case LoopKind.GRID | LoopKind.BLOCK:
                raise CompilerBug(f"a {loop.kind.value} loop on a CPU", stage="targets/llvm")
            case _:
                assert_never(loop.kind)

    def _unrolled(self, loop: For) -> None:
        """The copies; what neighbouring ones load across memory is loaded for all of them at once."""
        columns = transposed_loads(self._writer, self._memory, loop, self._lanes)
        for column, number in enumerate(numbers(loop)):
            self._memory.symbols[loop.symbol] = number
            self._loaded.update({load: values[column] for load, values in columns.items()})
            self._inside(None, partial(self.statements, loop.body))
        for load in columns:
            del self._loaded[load]

    def _shared(self, loop: For, grain: Affine) -> None:
        """A loop that threads may share: a function for a part of it, in whole vectors."""
        if self._lanes.count > 1:
            raise CompilerBug("threads share a loop inside a vector loop", stage="targets/llvm")
        writer, memory = self._writer, self._memory
        unit = loop.lanes if loop.step > 0 else 1
        whole = whole_vectors(writer, self._bound(loop.lo), self._bound(loop.hi), loop.step, 1)
        inner = self._part()
        first, last, end = Symbol("first"), Symbol("last"), Symbol("end")
        inner._memory.symbols.update({first: FIRST, last: LAST})
        lo, hi = (loop.lo + Affine.of(edge) * (loop.step * unit) for edge in (first, last))
        if not fills_lanes(loop) and unit > 1:
            ends = (inner._memory.affine(edge) for edge in (hi, loop.hi))
            inner._memory.symbols[end] = least(inner._writer, *ends)
            hi = Affine.of(end)
        inner._for(replace(loop, lo=lo, hi=hi, grain=None))
        trips, enough = (in_units(writer, number, unit) for number in (whole, memory.affine(grain)))
        share(writer, inner._writer, memory.visible(self._values.values()), trips, enough, memory.scratch())

    def _chunk(self, body: Chunk) -> None:
        inner = self._part()
        for stmt in body:
            inner._statement(stmt)
        inner._writer.catch_up()
        failing = any(isinstance(stmt, Raise) for stmt in walk_statements(body))
        visible = self._memory.visible(self._values.values())
        given = {"%pool": "ptr", "%scratch": "ptr", **visible}
        call_chunk(self._writer, inner._writer, given, failing)

    def _alike(self, nest: For, form: Form) -> None:
        """One of several nests: a call of their function, which is printed for the first of them."""
        given = form.given(self._memory, self._values)
        if given is None:
            self._for(nest)
            return
        if form.said not in self._nests.printed:
            inner = self._part()
            inner._memory, inner._values = form.inside(inner._writer, self._memory, self._values)
            inner._for(nest)
            self._nests.print(form, given, inner._writer)
        self._nests.call(form, given, self._writer)

    def _part(self) -> Body:
        """For a function that stands for a part of this one."""
        part = copy(self)
        part._writer = Writer(beside=self._writer)
        part._memory = self._memory.part(part._writer)
        part._values = dict(self._values)
        part._exit = None
        return part

    def _bound(self, value: Affine) -> Operand:
        if self._lanes.stride(value) != 0:
            raise CompilerBug("a loop bound that differs from lane to lane", stage="targets/llvm")
        return self._memory.affine(value)

    def _sequential(self, loop: For, lo: Operand, hi: Operand) -> None:
        with holding(loop, self._writer, self._values, self._lanes) as changed:
            lanes, steps = self._lanes.count, partial(self._steps, loop, lo, hi, loop.step)
            dtypes = forms_again(loop, lanes) if self._in_order.isdisjoint(changed) else frozenset()
            if not dtypes:
                steps(changed)
                return
            before = {variable: self._values[variable] for variable in changed}

            def again() -> None:
                self._values.update(before)
                steps(changed)

            def once(*noted: Variable) -> None:
                self._met.update(dict.fromkeys(before.values()))
                self._look_for_nan()
                steps((*changed, *noted))

            self._guarded(self._among_numbers(dtypes, lanes, once), changed, again, seldom=True)

    def _steps(self, loop: For, lo: Operand, hi: Operand, step: int, changed: tuple[Variable, ...]) -> None:
        """One iteration after the other, each so much further; by lines where arrays lie across them."""
        writer, body = self._writer, partial(self.statements, loop.body)
        found = across(loop, step, lo, self._lanes, self._memory, writer)
        if not found:
            self._loop(loop.symbol, lo, hi, step, changed, body)
            return
        plain = partial(self._repeat, loop.symbol, lo, hi, step, changed, body)
        by_lines = partial(self._by_lines, loop, lo, hi, step, changed, found)
        on_lines = writer.all([each.starts_line(writer) for each in found])
        self._guarded(on_lines, changed, plain, by_lines)

    def _by_lines(
        self,
        loop: For,
        lo: Operand,
        hi: Operand,
        step: int,
        changed: tuple[Variable, ...],
        found: Sequence[Across],
    ) -> None:
        writer, values = self._writer, self._values
        values.update({each.line: each.first(writer) for each in found})

        def body() -> None:
            for each in found:
                vector, values[each.line] = each.load(self._memory, self._lanes, writer, values[each.line])
                self._loaded.update(dict.fromkeys(map(id, each.loads), vector))
            self.statements(loop.body)

        self._repeat(loop.symbol, lo, hi, step, (*changed, *(each.line for each in found)), body)
        for load in (load for each in found for load in each.loads):
            del self._loaded[id(load)]

    def _vector(self, loop: For) -> None:
        """Whole vectors; what remains in narrower ones if it may be long; then one by one, or all at once."""
        if self._lanes.count > 1 or loop.lanes & (loop.lanes - 1):
            raise CompilerBug(f"a vector loop of {loop.lanes} lanes inside another", stage="targets/llvm")
        fewest = fewest_cells(loop, self._writer.features)
        if fewest is None:
            self._in_vectors(loop)
            return
        lo, hi = self._bound(loop.lo), self._bound(loop.hi)
        count = self._writer.add(hi, self._writer.multiply(lo, -1))
        is_long = self._writer.compare("sgt", count, fewest - 1)
        self._guarded(is_long, (), partial(self._strings, loop, lo, count), partial(self._in_vectors, loop))

    def _strings(self, loop: For, lo: Operand, count: Operand) -> None:
        self._memory.symbols[loop.symbol] = lo
        strings(self._writer, self._memory, [stmt for stmt in loop.body if isinstance(stmt, Store)], count)

    def _in_vectors(self, loop: For) -> None:
        writer = self._writer
        lo, hi = self._bound(loop.lo), self._bound(loop.hi)
        changed = changes(loop.body)
        if loop.aligned is not None or (bypasses(loop.body) and not changed):
            vectors = self._past_caches if loop.aligned is None else self._aligned
            enough = writer.compare("slt", writer.add(lo, loop.lanes - 1), hi)
            self._guarded(enough, (), partial(vectors, loop, lo, hi), partial(self._sequential, loop, lo, hi))
            return
        here = on_boundaries(self._memory, loop, lo, writer) if bypasses(loop.body) else []
        self._if_alike(here, partial(self._in_widths, loop, lo, hi, changed), changed)

    def _in_widths(self, loop: For, lo: Operand, hi: Operand, changed: tuple[Variable, ...]) -> None:
        """All iterations, from the first on: what is added up has an order."""
        writer = self._writer
        if fills_lanes(loop) and not loop.masked:
            runs = writer.compare("slt" if loop.step > 0 else "sgt", lo, hi)
            self._guarded(runs, changed, partial(self._vectors, loop, loop.lanes, lo, hi, changed))
            return
        masked, self._of_rows = masked_widths(loop, writer.features), ends_sums(loop, writer.features)
        for lanes in masked or widths(loop, changed):
            whole = whole_vectors(writer, lo, hi, loop.step, lanes)
            middle = writer.add(lo, writer.multiply(whole, loop.step))
            span = partial(self._vectors, loop, lanes, lo, middle, changed)
            self._guarded(writer.compare("sgt", whole, 0), changed, span)
            lo = middle
        if self._of_rows:
            self._last_in_order(loop, lo, hi, changed)
        elif masked:
            self._memory.symbols[loop.symbol] = lo
            first = replace(lanes_of(loop, lanes), present=writer.add(hi, writer.multiply(lo, -1)))
            self._guarded(writer.compare("slt", lo, hi), changed, partial(self._lanes_of, loop, first))
        else:
            self._sequential(loop, lo, hi)

    def _last_in_order(self, loop: For, lo: Operand, hi: Operand, changed: tuple[Variable, ...]) -> None:
        """The lanes that are left of sums in order, if any, and others that add nothing: without a branch."""
        left = whole_vectors(self._writer, lo, hi, 1, 1)
        self._memory.symbols[loop.symbol] = lo
        self._accumulating = self._in_order = frozenset(changed)
        self._lanes_of(loop, replace(lanes_of(loop, loop.lanes), present=left))
        self._accumulating = self._in_order = frozenset()
        self._of_rows = False

    def _vectors(
        self, loop: For, lanes: int, lo: Operand, hi: Operand, changed: tuple[Variable, ...]
    ) -> None:
        """The iterations from `lo` to `hi`, at least one vector of them. The locals of `changed` accumulate
        lane by lane at the loop's own width; narrower vectors, and what appends, are in order."""
        writer = self._writer
        by_lane = lanes == loop.lanes and loop.kind is LoopKind.VECTOR
        at_once = counts_at_once(loop, changed, writer.features) if by_lane else frozenset()
        by_lanes = [variable for variable in changed if by_lane and variable not in at_once]
        accums = {variable: accumulation(variable, loop.body) for variable in by_lanes}
        totals = {variable: self._values[variable] for variable in accums}
        within = lanes_of(loop, lanes)

        def steps(*noted: Variable) -> None:
            for variable, op in accums.items():
                self._values[variable] = writer.widen(identity(op, variable.dtype), lanes)
            self._lanes = within
            self._accumulating = frozenset(changed if loop.kind is not LoopKind.SEQUENTIAL else ())
            self._in_order = at_once if by_lane else self._accumulating
            if loop.cuts and by_lane:
                self._overlapping(loop, lo, hi, partial(lesser, writer, writer.add(hi, -lanes)))
            else:
                self._steps(loop, lo, hi, loop.step * lanes, (*changed, *noted))
            self._lanes = Lanes()
            self._accumulating = self._in_order = frozenset()

        def folded(nans: bool | None) -> None:
            self._values.update(folds(writer, accums, totals, self._values, within.numbers, nans))

        def whole(nans: bool | None) -> None:
            steps()
            folded(nans)

        if dtypes := forms_again(loop, lanes) if by_lane else frozenset():
            condition = self._among_numbers(dtypes, lanes, steps)
            self._guarded(condition, changed, partial(whole, True), partial(folded, False), seldom=True)
        else:
            whole(None)

    def _among_numbers(self, dtypes: Iterable[DType], lanes: int, steps: Callable[..., None]) -> str:
        """Steps whose extremes of such dtypes take no notice of NaN; whether there was one."""
        nothing = {dtype: nothing_lost(self._writer, dtype, lanes) for dtype in dtypes}
        self._lost = {dtype: Variable("lost", value.dtype) for dtype, value in nothing.items()}
        noted = tuple(self._lost.values())
        self._values.update(zip(noted, nothing.values(), strict=True))
        steps(*noted)
        self._lost = {}
        return were_lost(self._writer, [self._values.pop(variable) for variable in noted])

    def _aligned(self, loop: For, lo: Operand, hi: Operand) -> None:
        """At least one vector: from one boundary to the next, but for the first and the last of them, which
        are moved to where the loop starts and ends, or go under masks."""
        if loop.masked:
            first, part = boundary_after(self._memory, loop, lo, hi, self._writer), Symbol("part")
            span = partial(part_of, self._writer, self._memory, part, lo, first, hi)
            self._loop(part, 0, 2, 1, (), lambda: self._in_widths(loop, *span(), ()))
            return
        start, counter = boundary_before(self._memory, loop, lo, self._writer), Symbol(loop.symbol.hint)
        symbols, last = self._memory.symbols, self._writer.add(hi, -loop.lanes)
        if loop.cuts:
            self._overlapping(loop, start, hi, lambda at: nearest(self._writer, at, lo, last))
            return

        def one() -> None:
            symbols[loop.symbol] = nearest(self._writer, symbols[counter], lo, last)
            self._lanes_of(loop)

        self._repeat(counter, start, hi, loop.lanes, (), one)

    def _overlapping(self, loop: For, lo: Operand, hi: Operand, place: Callable[[Operand], Operand]) -> None:
        """The vectors from `lo` to `hi`, at least one, parts of several at a time; `place` says where a
        vector is that would start there."""
        around, symbols, counter = self._values, self._memory.symbols, Symbol(loop.symbol.hint)
        self._lanes = lanes_of(loop, loop.lanes)

        def do(items: Iterable[Item], start: Operand, locals: dict[Variable, Value]) -> None:
            symbols[loop.symbol], self._values = start, locals
            self._items(items)
            self._values = around

        def wanted(stmt: If, start: Operand, locals: dict[Variable, Value]) -> str:
            symbols[loop.symbol], self._values = start, locals
            condition, self._values = self._value(stmt.condition), around
            return any_lane(self._writer, condition, [variable.dtype for variable in changes(stmt.body)])

        def repeat(lo: Operand, hi: Operand, held: tuple[Variable, ...], body: Vector) -> None:
            self._repeat(counter, lo, hi, loop.lanes, held, lambda: body(symbols[counter]))

        Overlapped(self._writer, loop, self._lanes, around, place, do, wanted, repeat).print(lo, hi)
        self._lanes = Lanes()

    def _past_caches(self, loop: For, lo: Operand, hi: Operand) -> None:
        """At least one vector: those that start on a boundary of the memory that is written past the caches;
        then, where cells are left before or behind these, the lanes for them of the first and the last vector
        of all: lines that are on their way to memory are not written again."""
        writer, memory, lanes, number = self._writer, self._memory, loop.lanes, Symbol("edge")
        if hi == writer.add(lo, lanes):
            self._if_alike(on_boundaries(memory, loop, lo, writer), partial(self._lanes_of, loop))
            return
        before, alike = until_boundary(memory, loop, lo, writer)
        start = writer.add(lo, before)
        end = writer.add(start, whole_vectors(writer, start, hi, 1, lanes))
        vectors = partial(self._repeat, loop.symbol, start, end, lanes, (), partial(self._lanes_of, loop))
        if loop.cuts:
            last = writer.add(end, -lanes)
            vectors = partial(self._overlapping, loop, start, end, partial(lesser, writer, last))
        self._guarded(writer.compare("slt", start, end), (), partial(self._if_alike, alike, vectors))

        def edge() -> None:
            which = memory.symbols[number]
            memory.symbols[loop.symbol], self._edge = edge_of(writer, which, (lo, start), (end, hi), lanes)
            self._lanes_of(loop)
            self._edge = None

        self._loop(number, *edges(writer, before, end, hi), 1, (), edge)

    def _if_alike(self, conditions: list[str], body: Print, changed: tuple[Variable, ...] = ()) -> None:
        """The body with its stores past the caches if all start on boundaries, else with plain ones."""

        def past_caches() -> None:
            self._bypassing = True
            body()
            self._bypassing = False

        self._guarded(self._writer.all(conditions), changed, past_caches, body)

    def _lanes_of(self, loop: For, lanes: Lanes | None = None) -> None:
        """One vector of the loop, from its symbol's value on."""
        self._lanes = lanes or lanes_of(loop, loop.lanes)
        self.statements(loop.body)
        self._lanes = Lanes()

    def _loop(
        self, symbol: Symbol, lo: Operand, hi: Operand, step: int, changed: tuple[Variable, ...], body: Print
    ) -> None:
        if isinstance(lo, int) and isinstance(hi, int) and len(range(lo, hi, step)) == 1:
            self._memory.symbols[symbol] = lo
            self._inside(None, body)
            return
        runs = self._writer.compare("slt" if step > 0 else "sgt", lo, hi)
        self._guarded(runs, changed, partial(self._repeat, symbol, lo, hi, step, changed, body))

    def _repeat(
        self, symbol: Symbol, lo: Operand, hi: Operand, step: int, changed: tuple[Variable, ...], body: Print
    ) -> None:
        """A loop that runs at least once, tested at its end."""
        writer = self._writer
        first = [Value(str(lo), I64), *(carried(writer, self._values[variable]) for variable in changed)]
        outside, header, leave = writer.block, writer.fresh("loop"), writer.fresh("done")
        entry = writer.entry()
        writer.jump(header)
        writer.start(header)
        lines = [writer.reserve() for _ in first]
        names = ["i", *["v"] * len(changed)]
        phis = [replace(v, text="%" + writer.fresh(name)) for v, name in zip(first, names, strict=True)]
        for variable, value in zip(changed, phis[1:], strict=True):
            self._values[variable] = from_carried(writer, value, variable.dtype)
        counter = phis[0].text
        self._memory.symbols[symbol] = counter
        early = Exit(leave, changed)
        with writer.looping(entry):
            self._inside(early, body)
            following = writer.let(f"add i64 {counter}, {step}")
            again = writer.let(f"icmp {'slt' if step > 0 else 'sgt'} i64 {following}, {hi}")
            latest = [following, *(carried(writer, self._values[variable]).text for variable in changed)]
        for line, phi, before, after in zip(lines, phis, first, latest, strict=True):
            writer.fill_phi(line, phi, {outside: before.text, writer.block: after})
        writer.branch(again, header, leave)
        early.join(writer, self._values)

    def _inside(self, exit: Exit | None, body: Print) -> None:
        """The body of a loop that is left to there, or cannot be left."""
        around, self._exit = self._exit, exit
        body()
        self._exit = around

    def _while(self, loop: While) -> None:
        """Test and body by turns. What the test leaves in the locals is what follows finds."""
        writer = self._writer
        changed = changes((*loop.test, *loop.body))
        outside, header, leave = writer.block, writer.fresh("while"), writer.fresh("done")
        before = {variable: self._values[variable] for variable in changed}
        writer.jump(header)
        writer.start(header)
        lines = [writer.reserve() for _ in changed]
        phis = [replace(before[variable], text="%" + writer.fresh("v")) for variable in changed]
        self._values.update(zip(changed, phis, strict=True))
        with writer.scope():
            for test, condition in conditions(loop.test, loop.condition):
                for stmt in test:
                    self._statement(stmt)
                body = writer.fresh("body")
                writer.branch(self._condition(condition), body, leave)
                writer.start(body)
            tested = {variable: self._values[variable] for variable in changed}
            self.statements(loop.body)
            writer.jump(header)
        for variable, line, phi in zip(changed, lines, phis, strict=True):
            latest = self._values[variable].text
            writer.fill_phi(line, phi, {outside: before[variable].text, writer.block: latest})
        self._values.update(tested)
        writer.start(leave)
