"""Recording one run of the user's function as a Computation.

A `Trace` is open while the user's function runs; symbolic arrays append assignments to it in program
order. It is found through a context variable, so several threads may trace at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np

from ...errors import RAISED, LeakedArrayError, Location, UnsupportedError, UserError
from ...ir.assign import (
    ArrayParam,
    Assign,
    Bind,
    Check,
    Computation,
    IndexParam,
    Loop,
    Param,
    Statement,
    statements,
)
from ...ir.dtype import DType, of_any_order
from ...ir.expr import Expr, Gather, Index, Load
from ...ir.index import Affine, Extent, Symbol, SymbolKind, affine
from ...ir.ops import Op
from ...ir.tensor import Tensor
from ...ir.walk import walk
from .current import CURRENT_TRACE, location_of, tracing, user_location
from .facts import Argument
from .foreign import element_strides
from .handling import require_goes_on
from .knowledge import Knowledge
from .layouts import Layouts
from .lengths import Lengths
from .limits import Limits
from .resident import Resident, layout_of
from .retrace import Decisions, Origin, Reason, Retrace, Site, number_needed, positive, told
from .sameness import Sameness
from .scopes import Mark, Scope
from .selections import Selection
from .state import Watch, has_state
from .view import View

__all__ = [
    "CURRENT_TRACE",
    "TEMPORARY",
    "Body",
    "Trace",
    "current_trace",
    "location_of",
    "recording",
    "tensor_like",
    "tracing",
    "user_location",
]

TEMPORARY = "t"
"""The label of arrays that the user did not name."""

MOST_STATEMENTS = 100_000
"""Longer records would take minutes to compile."""

_LOOP_NAMES = "ijklmnpq"
_UNDECIDED = Decisions()

Body = Callable[[tuple[Affine, ...]], Expr]


class Trace:
    """The record of one run.

    `captured` are arrays of the user's that the function met by other ways than its arguments (globals,
    closures): parameters that read and write the user's own memory. `namespace` is the view of names that
    the function runs with. `leaves` are those of the traced call. `running` has the number of iterations and
    the place of each loop that is being recorded, `recorders` what records them, `indices` where they stand,
    `copies` how often those that are unrolled are written out; `spans` tells of numbers of steps how far they
    lead together, and how far each does; `swapped` are the user's arrays of foreign byte order, `selections`
    the loops that collect cells, `portions` arrays that may be made in part; `learned` is what `while` loops
    have shown. With `unchecked` the program's own indices are taken to be in bounds.

    `decisions` are what earlier runs of the same trace found; `pending` is a reason to start again that could
    not be raised where it was found, `wanted` one that was, but may have been caught, as may have been what
    else was `raised`. `kept` tells of lines on which conditions are not left to the run why that is so.
    """

    def __init__(
        self, name: str, decisions: Decisions = _UNDECIDED, unchecked: bool = False, branches: bool = False
    ) -> None:
        self.name = name
        self.decisions = decisions
        self.unchecked = unchecked
        self.branches = branches
        self.kept: dict[tuple[str, int], str] = {}
        self.pending: Retrace | None = None
        self.wanted: Retrace | None = None
        self.raised: list[UserError] = []
        self.leaves: Sequence[Any] = ()
        self.running: list[tuple[Affine, Site]] = []
        self.recorders: list[Any] = []
        self.indices: dict[Site, Affine] = {}
        self.copies: dict[Site, int] = {}
        self.spans: dict[Affine, tuple[Affine, int]] = {}
        self.limits = Limits()
        self.is_open = True
        self.notes: list[tuple[Location | None, str]] = []
        self.selections: dict[int, Selection] = {}
        self.portions: list[Any] = []
        self._scopes = [Scope()]
        self._recorded = 0
        self._origins: dict[Symbol | Tensor, Origin] = {}
        self.lengths = Lengths()
        self.layouts = Layouts(decisions.as_numpys_lie)
        self._extents: dict[Tensor, tuple[Affine, ...]] = {}
        self._ends: dict[Symbol, tuple[Affine, Affine]] = {}
        self._gone: dict[Symbol | Tensor, Site | Reason] = {}
        self.sameness = Sameness()
        self.learned: dict[Any, Any] = {}
        self._perhaps_written: list[Tensor] = []
        self.captured: list[tuple[Tensor, np.ndarray | Resident]] = []
        self.swapped: set[Tensor] = set()
        self.namespace: Any = None
        self._fingerprints: list[int] = []
        self._constants: dict[tuple[np.dtype[Any], tuple[int, ...], bytes], np.ndarray] = {}
        self._fresh: dict[Tensor, int] = {}
        self._rewritten: list[Tensor] = []
        self._written: set[Tensor] = set()
        self._flat: dict[Tensor, Tensor] = {}
        self._real: dict[Tensor, Tensor] = {}
        self.knowledge = Knowledge(lambda: self._scopes[-1].fresh)
        self._watched: list[Watch] = []
        self._handling = np.geterr()

    @property
    def statements(self) -> list[Statement]:
        """The body that is being recorded."""
        return self._scopes[-1].statements

    @property
    def depth(self) -> int:
        """How many bodies, one within the other, are being recorded."""
        return len(self._scopes)

    @property
    def may_not_run(self) -> bool:
        """Is a body of its own being recorded, as of a loop, that may run not once?"""
        return len(self._scopes) > 1

    def emit(self, statement: Statement) -> None:
        if self.pending is not None:
            raise self.pending
        self._recorded += 1
        if self._recorded > MOST_STATEMENTS:
            raise UnsupportedError(
                f"the function makes more than {MOST_STATEMENTS:,} operations on arrays",
                loc=user_location(),
                details=("loops that have to be unrolled count with each iteration; see explain()",),
                fix="let loops run over range(...) or arrays, with bodies that do the same in each iteration",
            )
        self.statements.append(statement)
        if isinstance(statement, Assign):
            storage = statement.into.storage
            self._written.add(storage)
            self._separate(storage)
            self.layouts.written(statement)
            made = self._fresh.get(storage, -1)
            is_own = made >= self._scopes[-1].fresh
            has_decided = self.knowledge.has_decided(storage)
            before = self.knowledge.written(storage, is_own)
            if self._origins.pop(storage, None) is not None or has_decided:
                self._rewritten.append(storage)
            if is_own and before is not None:
                self.knowledge.follow(statement, before, made)

    def watch(self, value: Any) -> None:
        """Remember the state of an object of the user's, of a method that of its object."""
        value = value.__self__ if type(value) in (MethodType, BuiltinMethodType) else value
        if has_state(value):
            self._watched.append(Watch(value))

    def restore_watched(self) -> list[Any]:
        """The objects that the run changed, each put back."""
        changed = [watch for watch in self._watched if watch.changed()]
        for watch in changed:
            watch.restore()
        return [watch.value for watch in changed]

    def is_written(self, tensor: Tensor) -> bool:
        """Whether the record so far writes the tensor's memory."""
        return tensor.storage in self._written

    def capture(self, array: np.ndarray | Resident) -> Tensor:
        """The parameter that stands for an array of the user's, one for each array object."""
        for tensor, known in self.captured:
            if known is array:
                return tensor
        layout = layout_of(array)
        tensor = tensor_like(layout, f"captured{len(self.captured)}")
        self.captured.append((tensor, array))
        if not layout.dtype.isnative:
            self.swapped.add(tensor)
        self._fingerprints.append(_fingerprint(array))
        return tensor

    def constant(self, numbers: np.ndarray) -> Tensor:
        """The parameter that holds numbers which the trace made and nobody changes, one for equal arrays."""
        key = (numbers.dtype, numbers.shape, numbers.tobytes())
        return self.capture(self._constants.setdefault(key, numbers))

    def known(self, view: View) -> np.ndarray | None:
        """The numbers of a view that are known while tracing, usable as an index; else None."""
        return self.knowledge.of(view)

    def flat(self, tensor: Tensor) -> Tensor:
        """The flat form of a tensor: its memory as one row-major axis."""
        if tensor.base is not None and not tensor.is_real_form:
            return tensor
        if tensor not in self._flat:
            self._flat[tensor] = tensor.flat_form()
        return self._flat[tensor]

    def is_seen_flat(self, storage: Tensor) -> bool:
        """Whether memory is read or written as one row-major axis."""
        return any(tensor.storage is storage for tensor in self._flat)

    def parts(self, tensor: Tensor) -> Tensor:
        """The real form of a complex tensor."""
        if tensor not in self._real:
            self._real[tensor] = tensor.real_form()
        return self._real[tensor]

    def bind(self, value: Expr, lower: int | None = None, upper: int | None = None) -> Affine:
        """An int64 that the program computes, `lower <= value < upper` where these are given, as a symbol
        for bounds, extents and indices."""
        is_constant = self._is_constant(value)
        known = next((scope.bound[value] for scope in self._scopes if value in scope.bound), None)
        if is_constant and known is not None:
            return known
        symbol = Symbol("n", SymbolKind.LOOP, lower, upper)
        self._origins[symbol] = value
        self.emit(Bind(symbol, value, user_location()))
        scope = self._scopes[-1]
        scope.symbols.append(symbol)
        if is_constant:
            scope.bound[value] = Affine.of(symbol)
        return Affine.of(symbol)

    def _is_constant(self, value: Expr) -> bool:
        """Whether nothing that the expression reads is ever written again."""
        for node in walk(value):
            if isinstance(node, Gather) or (isinstance(node, Load) and node.tensor not in self._origins):
                return False
        return True

    def runs_between(self, symbol: Symbol, ends: tuple[Affine, Affine]) -> None:
        """Note the bounds of a loop's symbol."""
        self._ends[symbol] = ends

    def _require_ranges(self, extent: Affine) -> None:
        """Raise Retrace where arguments that bound loops, once known, tell how large the extent may be."""
        bounds = [end for symbol in extent.symbols for end in self._ends.get(symbol, ())]
        facts = {
            Argument(leaf)
            for end in bounds
            for fact in (positive(self, end),)
            if fact
            for _, leaf in fact.terms
        }
        if facts:
            words = "the size of an array depends on a loop that it bounds"
            raise Retrace(bake=dict.fromkeys(facts, Reason(words, user_location())))

    def came_from(self, of: Symbol | Tensor, origin: Origin) -> None:
        """Note what the value of a symbol or of a scalar depends on."""
        self._origins[of] = origin

    def origin(self, of: Symbol | Tensor) -> Origin | None:
        return self._origins.get(of)

    def begin(self) -> Mark:
        """Record a body of its own from here on."""
        self._scopes.append(Scope(fresh=len(self._fresh)))
        return self.mark()

    def mark(self) -> Mark:
        """What is known at this point."""
        return Mark(
            len(self._scopes),
            frozenset(self._written),
            dict(self.knowledge.held),
            len(self._fresh),
            len(self._rewritten),
            len(self._perhaps_written),
            len(self.notes),
        )

    def end(self, site: Site | None = None) -> tuple[Statement, ...]:
        """The body since `begin`. What its symbols stand for is gone, and the loop at `site` must be
        unrolled for code that still needs it."""
        scope = self._scopes.pop()
        self.knowledge.end(scope.fresh)
        if site is not None:
            self._gone.update(dict.fromkeys(scope.symbols, site))
        return tuple(scope.statements)

    @contextmanager
    def in_front(self) -> Iterator[None]:
        """What is recorded inside stands before the body that is being recorded."""
        scope = self._scopes.pop()
        try:
            yield
        finally:
            self._scopes.append(scope)

    def discard(self, mark: Mark, cause: Site | Reason) -> set[Tensor]:
        """Forget all that was recorded since the mark, but what it wrote: the numbers in that are no longer
        known. Returns the storages that were written and had been there before."""
        del self._scopes[mark.depth :]
        return self.forget(mark, tuple(self._scopes.pop().statements), cause)

    def forget(self, mark: Mark, body: tuple[Statement, ...], cause: Site | Reason) -> set[Tensor]:
        """`discard` of a body that has ended."""
        written = self.bury(mark, body, cause)
        del self.notes[mark.notes :]
        self._written = set(mark.written)
        self.knowledge.restore(mark.known, written)
        return written

    def bury(self, mark: Mark, body: tuple[Statement, ...], cause: Site | Reason) -> set[Tensor]:
        """What the body made since the mark is gone. Returns the storages that it wrote and that had been
        there before."""
        written: set[Tensor] = set()
        for statement in statements(body):
            match statement:
                case Assign(into=into):
                    written.add(into.storage)
                case Bind(symbol=symbol) | Loop(symbol=symbol):
                    self._gone[symbol] = cause
                case _:
                    pass
        made = {tensor for tensor in written if self.is_new(tensor, mark)}
        self._gone.update(dict.fromkeys(made, cause))
        return written - made

    def anew(self, storage: Tensor) -> None:
        """From here on the storage holds another array of the user's than before."""
        self._gone.pop(storage, None)
        self.sameness.renew(storage)

    def _separate(self, written: Tensor) -> None:
        for other, reason in self.sameness.of(written).items():
            if not self.is_made_here(other):
                reason.unroll()
                raise UnsupportedError(reason.what, loc=user_location(), fix=told(reason.fix))
            if other not in self._gone:
                self._rewritten.append(other)
            self._gone[other] = reason
            self._perhaps_written.append(other)

    def perhaps_written_since(self, mark: Mark) -> set[Tensor]:
        """The storages that may be the same arrays as some that were written since the mark."""
        return set(self._perhaps_written[mark.perhaps_written :])

    def is_made_here(self, tensor: Tensor) -> bool:
        """Whether the tensor was made by the traced function, and is no array of the caller's."""
        return tensor in self._fresh

    def written_since(self, mark: Mark) -> set[Tensor]:
        """The storages that the record writes since the mark."""
        bodies = (tuple(scope.statements) for scope in self._scopes[mark.depth - 1 :])
        return {
            statement.into.storage
            for body in bodies
            for statement in statements(body)
            if isinstance(statement, Assign)
        }

    def statements_since(self, mark: Mark) -> int:
        """How many statements were recorded since the mark, those in loops and branches too."""
        bodies = (tuple(scope.statements) for scope in self._scopes[mark.depth - 1 :])
        return sum(1 for body in bodies for _ in statements(body))

    def symbols_since(self, mark: Mark) -> set[Symbol]:
        """The symbols that were bound since the mark, and are not gone."""
        return {symbol for scope in self._scopes[mark.depth - 1 :] for symbol in scope.symbols}

    def note(self, loc: Location | None, what: str) -> None:
        """Remember what was decided about a line, for whoever asks."""
        self.notes.append((loc, what))

    def assumed_too_much(self, mark: Mark, apart_from: Collection[Tensor] = ()) -> bool:
        """Whether something was rewritten since the mark whose value was taken for known before it."""
        rewritten = self._rewritten[mark.rewritten :]
        return any(not self.is_new(tensor, mark) and tensor not in apart_from for tensor in rewritten)

    def is_new(self, tensor: Tensor, mark: Mark) -> bool:
        """Whether the tensor was made since the mark."""
        return self._fresh.get(tensor, -1) >= mark.fresh

    def gone(self, part: Symbol | Tensor, cause: Site | Reason) -> None:
        """The symbol or the tensor has no value any more."""
        self._gone[part] = cause

    def is_gone(self, part: Symbol | Tensor) -> bool:
        return part in self._gone

    def require_alive(self, parts: Iterable[Symbol | Tensor]) -> None:
        """Raise if a value is used that has ended: Retrace where it ended with a loop, which is then
        unrolled, else UnsupportedError."""
        if not self._gone:
            return
        for part in parts:
            match self._gone.get(part):
                case Site() as site:
                    words = "a value that a loop made is used after it, out of an object or a container"
                    raise Retrace({site: Reason(words, user_location())})
                case Reason(what=what, fix=fix) as reason:
                    reason.unroll()
                    raise UnsupportedError(what, loc=user_location(), fix=told(fix))
                case None:
                    pass

    @contextmanager
    def loop(self, lo: Extent, hi: Extent) -> Iterator[Affine]:
        """Statements recorded inside stand in a loop over the index that this yields."""
        low, high = Affine.of(lo), Affine.of(hi)
        symbol = Symbol("k", SymbolKind.LOOP, self.limits.least(low), self.limits.most(high))
        self.limits.note(symbol, low, high)
        self.begin()
        body: tuple[Statement, ...] = ()
        try:
            yield Affine.of(symbol)
        finally:
            body = self.end()
        self.emit(Loop(symbol, low, high, 1, body, user_location()))

    def changed_while_recorded(self) -> list[np.ndarray]:
        """The captured NumPy arrays whose numbers plain Python code changed during the run: the record cannot
        tell which reads came before."""
        pairs = zip(self.captured, self._fingerprints, strict=True)
        return [layout_of(array) for (_, array), before in pairs if _fingerprint(array) != before]

    def compute(
        self,
        shape: Sequence[Extent],
        dtype: DType,
        body: Body,
        *,
        label: str = TEMPORARY,
        over: Sequence[Extent] = (),
        accum: Op | None = None,
        initial: Expr | None = None,
        contract: bool = False,
        order: Sequence[int] | None = None,
    ) -> View:
        """A fresh tensor whose cell at `p` is `body(p)`, or with `accum` the reduction of `body(p + q)`
        for `q` over the extents `over`, starting from `initial`. Returns the view of the cells, whose axes
        lie in memory in `order` (None: C's)."""
        target = self.window(shape, dtype, label, order)
        self.store(target, body, over=over, accum=accum, initial=initial, contract=contract)
        made = self.statements[-1] if self.statements else None
        if isinstance(made, Assign) and made.into is target.tensor:
            self.knowledge.follow(made, None, self._fresh[target.tensor])
            if not target.shape and accum is None:
                self._origins[target.tensor] = made.value
        return target

    def window(
        self,
        shape: Sequence[Extent],
        dtype: DType,
        label: str = TEMPORARY,
        order: Sequence[int] | None = None,
    ) -> View:
        """A fresh array that holds nothing yet: a tensor, of which symbolic extents take a window, since it
        has the room that they need at most."""
        extents = affine(shape)
        room = affine(self._room(extent) for extent in extents)
        target = View.fresh(label, room, dtype, order)
        self._fresh[target.tensor] = len(self._fresh)
        if room == extents:
            return target
        target = target.remap(extents, target.axes, affine(target.axes))
        self._extents[target.tensor] = tuple(extents[axis] for axis in target.axis_order())
        return target

    def made_for(self, tensor: Tensor) -> tuple[Affine, ...]:
        """The extents of the array that the tensor was made for, in the order of its axes."""
        return self._extents.get(tensor, tensor.shape)

    def _room(self, extent: Affine) -> int:
        """The most that an extent can be. Raises Retrace or ConcretizationError where it is not known."""
        largest = self.limits.most(extent)
        if largest is not None:
            return max(largest, 0)
        self._require_ranges(extent)
        words = "the size of an array depends on a number that is known only when the compiled function runs"
        fix = "make the array as large as it may become, and use a slice of it"
        number_needed(self, [Index(extent)], words, user_location(), fix=fix)

    def store(
        self,
        target: View,
        body: Body,
        *,
        over: Sequence[Extent] = (),
        accum: Op | None = None,
        initial: Expr | None = None,
        contract: bool = False,
        regroup: bool = False,
    ) -> None:
        """Write every cell of a view: `target[p] = body(p)`; reductions as in `compute`. With `regroup`, a
        step of a scan, as in `Assign`."""
        if any([not extent.terms and not extent.offset for extent in target.shape]):
            return
        order = target.axis_order()
        loops = _loops((*(target.shape[axis] for axis in order), *affine(over)))
        symbols = [symbol for symbol, _ in loops]
        position = affine(
            (*(symbols[order.index(axis)] for axis in range(target.rank)), *symbols[target.rank :])
        )
        index = target.at(position[: target.rank])
        value = body(position)
        loc = user_location()
        assign = Assign(loops, target.tensor, index, value, accum, initial, contract, loc, regroup)
        require_goes_on(assign, self._handling)
        self.emit(assign)

    def check(self, shape: Sequence[Extent], condition: Body, exception: str, message: str) -> None:
        """Leave with `exception` at run time unless `condition` holds for every position in `shape`. Of an
        `unchecked` trace, indices are not checked."""
        if self.unchecked and exception == "IndexError":
            return
        loops = _loops(affine(shape))
        position = affine(symbol for symbol, _ in loops)
        words = self.lengths.as_in_python(message)
        self.emit(Check(loops, condition(position), exception, words, user_location()))

    def finish(self, params: Sequence[Param], lengths: Sequence[Symbol] = ()) -> Computation:
        """The record as a Computation: the arguments' parameters, the captured arrays', then lengths."""
        captured = tuple(
            ArrayParam(tensor, "update" if self.is_written(tensor) else "read") for tensor, _ in self.captured
        )
        if self.pending is not None:
            raise self.pending
        numbers = map(IndexParam, lengths)
        return Computation(self.name, (*params, *captured, *numbers), tuple(self.statements))


def _fingerprint(array: np.ndarray | Resident) -> int:
    return 0 if isinstance(array, Resident) else zlib.crc32(array.tobytes())


def tensor_like(array: np.ndarray, label: str) -> Tensor:
    """A parameter with the array's shape, dtype and layout."""
    dtype, shape = of_any_order(array.dtype), affine(array.shape)
    if array.flags.c_contiguous:
        return Tensor(label, shape, dtype)
    return Tensor(label, shape, dtype, affine(element_strides(array)))


def _loops(extents: tuple[Affine, ...]) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple(
        (Symbol(_LOOP_NAMES[position] if position < len(_LOOP_NAMES) else f"i{position}"), extent)
        for position, extent in enumerate(extents)
    )


def current_trace() -> Trace:
    """The open trace. Raises LeakedArrayError when none is open."""
    trace: Trace | None = CURRENT_TRACE.get()
    if trace is None or not trace.is_open:
        raise LeakedArrayError(
            "a symbolic array was used outside the jitted function that made it",
            loc=user_location(),
            fix="return it from the function, or keep np.asarray(result) of a finished call",
        )
    return trace


@contextmanager
def recording(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one while the user's function runs. What is done about floating-point errors
    is then as it was before."""
    token, raised = CURRENT_TRACE.set(trace), RAISED.set(trace.raised)
    try:
        with np.errstate():
            yield trace
    finally:
        trace.is_open = False
        trace.raised.clear()
        RAISED.reset(raised)
        CURRENT_TRACE.reset(token)
