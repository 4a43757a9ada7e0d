"""Is a program valid? Every broken rule has its own message.

For both IRs:
- a symbol is used inside the loop that introduces it, or after it is bound in the same body, or is a static
  or dimension symbol, or a parameter; a bound number is an int64;
- an index has one position per axis; where loops have constant bounds and nothing guards the access (an
  earlier check may have left the program), it stays inside constant extents;
- an expression's dtypes fit: an op has the arguments and the result that NumPy gives it, a constant is one
  that its dtype holds, a condition is a bool, a stored value has the tensor's dtype, an initial value too;
- an op that accumulates has an identity, `contract` needs a float multiply under `accum=add`;
- a parameter that is only read is not written; steps are not 0; a tensor is a parameter once; a merge buffer
  holds the values of one tensor, of its own shape and dtype;
- the flat form of a tensor has one axis and the tensor's dtype, its real form one more axis, of two parts.

For a Computation: without `accum`, every loop symbol of an assignment occurs in its index.
For a Kernel: a variable is defined once, before its use, in an enclosing body; an iteration of a parallel or
vector loop changes an outer variable only by accumulating; no `Raise`, `Barrier` or `Store` with `accum`
stands inside a vector loop, and a `Stay` directly in a loop; a vector loop has a power of two of lanes,
stores to another cell in each iteration, and accumulates onto a variable with one op without reading it; so
does a block loop. A grid loop stands in sequential loops only; a block loop stands in a grid loop with one
lane, and in no other loop whose iterations are independent; block loops of one grid have the same number of
lanes, and what it stores is stored in them; a `Barrier` stands outside of them; what threads own is reached
by the number of the thread. A sequential loop with lanes appends. A filled tensor is in C order; once
anything is placed, every temporary is. Tensors for tensor cores fit one another; only copies reach them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from typing_extensions import assert_never

from ..errors import DTypeError, InvalidProgram
from ..frozen import slotted
from .appending import may_append
from .assign import Assign, Bind, Branch, Check, Computation, Loop, Note, Statement, While
from .boundaries import lying_alike
from .cuts import may_be_cut
from .dtype import BOOL, I64, DType
from .expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from .index import Affine, Symbol, SymbolKind, symbols_of
from .loops import (
    Barrier,
    Comment,
    Copy,
    Define,
    Fill,
    For,
    If,
    Kernel,
    Lap,
    LoopKind,
    Multiply,
    Place,
    PlaceKind,
    Prefetch,
    Raise,
    Stay,
    Stmt,
    Store,
    Update,
    bypasses,
)
from .loops import While as WhileStmt
from .matrices import block_sizes, factors, misfit, tile_ends
from .ops import OPS, Op
from .params import ArrayParam, IndexParam, Param
from .resolve import resolve
from .tensor import Tensor
from .walk import walk

__all__ = ["verify_computation", "verify_kernel"]


def verify_computation(computation: Computation) -> None:
    """Raises InvalidProgram for the first broken rule."""
    _check_statements(computation.body, _Rules.of(computation.name, computation.params, {}))


def verify_kernel(kernel: Kernel) -> None:
    """Raises InvalidProgram for the first broken rule."""
    rules = _Rules.of(kernel.name, kernel.params, kernel.placement)
    rules.factors = factors(kernel.body)
    _check_body(kernel.body, rules)


@slotted
class _Vector:
    """A vector loop: how deep it stands, what it accumulates from outside and which variables it reads."""

    symbol: Symbol
    depth: int
    accumulated: dict[Variable, Op] = field(default_factory=dict)
    read: set[Variable] = field(default_factory=set)


@slotted
class _Rules:
    """What is in force at a statement, and the rules about expressions and cells.

    `ranges` has the first and last value of each symbol in scope, None where they are not known;
    `guards` counts the enclosing statements that may never run, `depth` the enclosing loops whose
    iterations are independent; `variables` has the depth at which each variable in scope is defined;
    `shared` is the depth of the loop that threads share; `together`: the threads of a block run the
    statement, outside of their loops; `thread` is the number of the thread that does; `host`: in nothing but
    sequential loops; `factors` are the tensors that tensor cores read.
    """

    program: str
    access: Mapping[Tensor, str]
    placement: Mapping[Tensor, Place]
    ranges: dict[Symbol, tuple[int, int] | None]
    guards: int = 0
    variables: dict[Variable, int] = field(default_factory=dict)
    depth: int = 0
    vector: _Vector | None = None
    block: _Vector | None = None
    shared: int | None = None
    together: bool = False
    thread: Symbol | None = None
    host: bool = True
    factors: frozenset[Tensor] = frozenset()

    @staticmethod
    def of(name: str, params: Sequence[Param], placement: Mapping[Tensor, Place]) -> _Rules:
        rules = _Rules(name, {}, placement, {})
        access: dict[Tensor, str] = {}
        buffers: dict[int, Tensor | None] = {}
        for param in params:
            match param:
                case ArrayParam(tensor=tensor):
                    rules.require(tensor not in access, f"{tensor} is a parameter twice")
                    rules.require(
                        tensor.wish is None, f"{tensor} is a parameter, and somebody wishes it were not"
                    )
                    rules.merge(param, buffers)
                    access[tensor] = param.access
                case IndexParam(symbol=symbol):
                    rules.ranges[symbol] = None
                case _:
                    assert_never(param)
        rules.access = access
        return rules

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise InvalidProgram(f"{self.program}: {message}")

    def merge(self, param: ArrayParam, buffers: dict[int, Tensor | None]) -> None:
        """What a parameter says of merge buffers fits it and what others have said: the source by slot."""
        tensor, source, slot = param.tensor, param.source, param.slot
        if param.access != "merge":
            self.require(
                source is None and slot == 0, f"{tensor} is no merge buffer, and has a source or a slot"
            )
            return
        self.require(slot >= 0, f"{tensor} is merge buffer {slot}")
        if source is not None:
            fits = (source.shape, source.dtype) == (tensor.shape, tensor.dtype)
            self.require(fits, f"{tensor} does not hold the values of {source}")
        known = buffers.setdefault(slot, source)
        self.require(
            known is source, f"merge buffer {slot} holds the values of {known} and those of {source}"
        )

    # symbols and cells

    def enter(self, symbol: Symbol, lo: Affine, hi: Affine, step: int = 1) -> None:
        """Bring a loop's symbol into scope."""
        self.affine(lo)
        self.affine(hi)
        self.require(step != 0, f"loop {symbol.hint} has step 0")
        self.require(symbol not in self.ranges, f"symbol {symbol.hint} is introduced by two nested loops")
        values = range(lo.offset, hi.offset, step) if lo.is_constant and hi.is_constant else range(0)
        self.ranges[symbol] = (min(values[0], values[-1]), max(values[0], values[-1])) if values else None
        self.guards += not values

    def leave(self, symbol: Symbol) -> None:
        self.guards -= self.ranges.pop(symbol) is None

    def bind(self, bind: Bind) -> Symbol:
        """Bring a bound number into scope."""
        symbol = bind.symbol
        self.same(self.expression(bind.value), I64, f"the number bound to {symbol.hint}")
        self.require(symbol not in self.ranges, f"symbol {symbol.hint} is bound where it is in scope already")
        self.ranges[symbol] = None
        return symbol

    def forget(self, names: Iterable[Symbol | Variable]) -> None:
        """Stay the body in which numbers were bound and variables defined."""
        for name in names:
            if isinstance(name, Symbol):
                del self.ranges[name]
            else:
                del self.variables[name]

    def affine(self, value: Affine) -> None:
        for symbol in value.symbols:
            known = symbol in self.ranges or symbol.kind is not SymbolKind.LOOP
            self.require(known, f"symbol {symbol.hint} is used outside its loop")

    def cell(self, tensor: Tensor, index: Sequence[Affine]) -> None:
        self.require(tensor not in self.factors, f"{tensor} is for tensor cores, and reached by its cells")
        self.inside(tensor, index)

    def inside(self, tensor: Tensor, index: Sequence[Affine]) -> None:
        """The cell is one of the tensor's."""
        self.indexed(tensor, index)
        strided = tensor.base is not None and tensor.storage.strides is not None
        for position, extent in zip(index, tensor.shape, strict=True):
            ends = self.bounds(position)
            if ends is not None and extent.is_constant and not self.guards and not strided:
                inside = ends[0] >= 0 and ends[1] < extent.offset
                self.require(inside, f"{tensor} is indexed from {ends[0]} to {ends[1]}")

    def indexed(self, tensor: Tensor, index: Sequence[Affine]) -> None:
        """A cell that may lie outside."""
        rank = tensor.rank
        self.require(len(index) == rank, f"{tensor} has {rank} axes and is indexed with {len(index)}")
        self.storage(tensor)
        for position in index:
            self.affine(position)
        if self.is_own(tensor):
            by_thread = self.thread is not None and index[:1] == (Affine.of(self.thread),)
            self.require(by_thread and tensor.base is None, f"{tensor} is not reached by the thread's number")

    def is_own(self, tensor: Tensor) -> bool:
        """Does every thread of a block have cells of its own?"""
        place = self.placement.get(tensor.storage)
        return place is not None and place.kind is PlaceKind.OWN

    def bounds(self, position: Affine) -> tuple[int, int] | None:
        """The least and the greatest value of an index, if it takes them: symbols other than those of loops
        may depend on one another."""
        ends = {symbol: self.ranges.get(symbol) for symbol in position.symbols}
        known = {symbol: span for symbol, span in ends.items() if span is not None}
        return position.bounds(known) if len(known) == len(ends) else None

    def storage(self, tensor: Tensor) -> None:
        owner = tensor.storage
        placed = owner in self.access or not self.placement or owner in self.placement
        self.require(placed, f"temporary {owner} has no place")
        if tensor.base is not None:
            form = "real" if tensor.is_real_form else "flat"
            self.require(_is_form(tensor, tensor.base), f"{tensor} is no {form} form of {tensor.base}")

    def written(self, tensor: Tensor) -> None:
        allowed = self.access.get(tensor.storage, "write") in ("write", "update", "journal")
        self.require(allowed, f"{tensor} is a parameter that may only be read, and is written")

    # expressions

    def same(self, dtype: DType, expected: DType, what: str) -> None:
        self.require(dtype is expected, f"{what} is {dtype}, {expected} is needed")

    def accumulates(self, op: Op, value: Expr, contract: bool) -> None:
        self.require(op.identity is not None, f"{op} cannot accumulate: it has no identity")
        if contract:
            fits = isinstance(value, Apply) and value.op.name == "multiply" and value.dtype.is_inexact
            self.require(fits and op.name == "add", "contract needs a float multiply accumulated by add")

    def expression(self, expr: Expr) -> DType:
        for node in walk(expr):
            match node:
                case Const():
                    self.constant(node)
                case Load(tensor=tensor, index=index):
                    self.cell(tensor, index)
                case Gather(tensor=tensor, index=parts):
                    self.require(len(parts) == tensor.rank, f"{tensor} is gathered with {len(parts)} indices")
                    self.storage(tensor)
                    self.require(not self.is_own(tensor), f"{tensor} is gathered, and is the threads' own")
                    for part in parts:
                        self.same(dtype_of(part), I64, f"an index of {tensor}")
                case Local(variable=variable):
                    seen = variable in self.variables
                    self.require(seen, f"variable {variable.hint} is used where it is not defined")
                    for lanes in (self.vector, self.block):
                        if lanes is not None:
                            lanes.read.add(variable)
                case Index(value=value):
                    self.affine(value)
                case Apply():
                    self.apply(node)
                case Cast():
                    pass
                case _:
                    assert_never(node)
        return dtype_of(expr)

    def constant(self, const: Const) -> None:
        try:
            held = const.dtype.numpy.type(const.value).item()
            exact = held == const.value or held != held
        except OverflowError:
            exact = False
        self.require(exact, f"{const.dtype} does not hold the constant {const.value}")

    def apply(self, node: Apply) -> None:
        op = node.op
        self.require(len(node.args) == op.arity, f"{op} takes {op.arity} arguments, not {len(node.args)}")
        if OPS.get(op.name) is not op:
            return
        args = tuple(dtype_of(arg) for arg in node.args)
        listed = ", ".join(str(dtype) for dtype in args)
        try:
            wanted, result = resolve(op, args)
        except DTypeError as error:
            raise InvalidProgram(f"{self.program}: {op} of {listed}: {error.what}") from None
        needed = ", ".join(str(dtype) for dtype in wanted)
        self.require(args == wanted, f"{op} is given {listed}, and computes in {needed}")
        self.same(node.dtype, result, f"the result of {op} of {listed}")


def _is_form(tensor: Tensor, base: Tensor) -> bool:
    """Whether a tensor is what its base says: the base's flat or its real form."""
    if tensor.is_real_form:
        return tensor.dtype is base.dtype.part and tensor.shape == (*base.shape, Affine.of(2))
    return tensor.rank == 1 and tensor.dtype is base.dtype


# ---- statements of a Computation ---------------------------------------------------------------------


def _check_statements(body: Iterable[Statement], rules: _Rules) -> None:
    rules.forget(_checked_statements(body, rules))


def _checked_statements(body: Iterable[Statement], rules: _Rules) -> list[Symbol]:
    """The symbols that a body has bound at its end."""
    bound = []
    for statement in body:
        match statement:
            case Assign():
                _check_assign(statement, rules)
            case Bind():
                bound.append(rules.bind(statement))
            case Branch(condition=condition, body=inner, orelse=orelse):
                rules.same(rules.expression(condition), BOOL, "a condition")
                rules.guards += 1
                _check_statements(inner, rules)
                _check_statements(orelse, rules)
                rules.guards -= 1
            case While(test=test, condition=condition, body=inner):
                tested = _checked_statements(test, rules)
                rules.same(rules.expression(condition), BOOL, "a condition")
                rules.guards += 1
                _check_statements(inner, rules)
                rules.guards -= 1
                rules.forget(tested)
            case Check(loops=loops, condition=condition):
                _enter_all(loops, rules)
                rules.same(rules.expression(condition), BOOL, "a checked condition")
                _leave_all(loops, rules)
                rules.guards += 1
            case Loop(symbol=symbol, lo=lo, hi=hi, step=step, body=inner):
                rules.enter(symbol, lo, hi, step)
                _check_statements(inner, rules)
                rules.leave(symbol)
            case Note():
                pass
            case _:
                assert_never(statement)
    return bound


def _enter_all(loops: Iterable[tuple[Symbol, Affine]], rules: _Rules) -> None:
    for symbol, extent in loops:
        rules.enter(symbol, Affine.of(0), extent)


def _leave_all(loops: Iterable[tuple[Symbol, Affine]], rules: _Rules) -> None:
    for symbol, _ in loops:
        rules.leave(symbol)


def _check_assign(assign: Assign, rules: _Rules) -> None:
    _enter_all(assign.loops, rules)
    dtype = rules.expression(assign.value)
    rules.same(dtype, assign.into.dtype, f"the value assigned to {assign.into}")
    rules.cell(assign.into, assign.index)
    rules.written(assign.into)
    if assign.accum is not None:
        rules.accumulates(assign.accum, assign.value, assign.contract)
        if assign.initial is not None:
            initial = rules.expression(assign.initial)
            rules.same(initial, assign.into.dtype, f"the initial value of {assign.into}")
    else:
        used = set(symbols_of(assign.index))
        for symbol, extent in assign.loops:
            once = symbol in used or (extent.is_constant and extent.offset <= 1)
            rules.require(once, f"loop {symbol.hint} assigns the same cells of {assign.into} again")
    _leave_all(assign.loops, rules)


# ---- statements of a Kernel --------------------------------------------------------------------------


def _check_body(body: Iterable[Stmt], rules: _Rules, in_loop: bool = False) -> None:
    rules.forget(_checked_body(body, rules, in_loop))


def _checked_body(body: Iterable[Stmt], rules: _Rules, in_loop: bool = False) -> list[Symbol | Variable]:
    """The symbols that a body has bound and the variables that it has defined at its end."""
    names: list[Symbol | Variable] = []
    for stmt in body:
        match stmt:
            case For():
                _check_loop(stmt, rules)
            case Store() | Fill():
                _check_write(stmt, rules)
            case Define(variable=variable, value=value):
                dtype = rules.expression(value)
                rules.same(dtype, variable.dtype, f"the value of variable {variable.hint}")
                new = variable not in rules.variables
                rules.require(new, f"variable {variable.hint} is defined twice")
                rules.variables[variable] = rules.depth
                names.append(variable)
            case Bind():
                names.append(rules.bind(stmt))
            case Update():
                _check_update(stmt, rules)
            case If(condition=condition, body=inner, orelse=orelse):
                rules.same(rules.expression(condition), BOOL, "a condition")
                host, rules.host = rules.host, False
                rules.guards += 1
                _check_body(inner, rules)
                _check_body(orelse, rules)
                rules.guards -= 1
                rules.host = host
            case WhileStmt(test=test, condition=condition, body=inner):
                tested = _checked_body(test, rules)
                rules.same(rules.expression(condition), BOOL, "a condition")
                rules.guards += 1
                _check_body(inner, rules)
                rules.guards -= 1
                rules.forget(tested)
            case Raise(condition=condition) | Stay(condition=condition):
                rules.same(rules.expression(condition), BOOL, "a condition")
                _check_exit(stmt, rules, in_loop)
            case Copy() | Multiply():
                _check_tiles(stmt, rules)
            case Prefetch() | Lap() | Barrier() | Comment():
                _check_aside(stmt, rules)
            case _:
                assert_never(stmt)
    return names


def _check_tiles(stmt: Copy | Multiply, rules: _Rules) -> None:
    here = rules.block is not None if isinstance(stmt, Copy) else rules.together
    rules.require(here, f"a {type(stmt).__name__} stands where it is not for its threads to run it")
    wrong = misfit(stmt, rules.placement)
    rules.require(wrong is None, str(wrong))
    for tile, index in tile_ends(stmt):
        rules.require(tile in rules.factors, f"{tile} is copied into, and no tensor core reads it")
        rules.inside(tile, index)
    if isinstance(stmt, Copy):
        rules.same(rules.expression(stmt.count), I64, f"how many cells of {stmt.source} exist")
        rules.indexed(stmt.source, stmt.at)


def _check_exit(stmt: Raise | Stay, rules: _Rules, in_loop: bool) -> None:
    if isinstance(stmt, Stay):
        rules.require(in_loop, "a Stay stands in no loop, or not directly in one")
        return
    rules.require(rules.vector is None, "a Raise stands inside a vector loop")
    rules.require(rules.shared is None, "a Raise stands inside a loop that threads share")
    rules.guards += 1


def _check_aside(stmt: Prefetch | Lap | Barrier | Comment, rules: _Rules) -> None:
    """A statement that changes nothing."""
    match stmt:
        case Prefetch(tensor=tensor, index=index, cache=cache):
            rules.indexed(tensor, index)
            rules.require(cache in (1, 2), f"{tensor} cannot be brought into cache {cache}")
        case Lap(times=times):
            rules.require(rules.vector is None, "a Lap stands inside a vector loop")
            rules.require(rules.shared is None, "a Lap stands inside a loop that threads share")
            rules.require(times.dtype is I64 and times.rank == 1, f"a Lap cannot write to {times!r}")
        case Barrier():
            rules.require(rules.vector is None, "a Barrier stands inside a vector loop")
            rules.require(rules.block is None, "a Barrier stands inside a block loop")
        case Comment():
            pass


def _check_write(stmt: Store | Fill, rules: _Rules) -> None:
    tensor, dtype = stmt.tensor, rules.expression(stmt.value)
    rules.written(tensor)
    rules.require(not rules.together, f"{tensor} is stored by all threads of a block")
    if isinstance(stmt, Store):
        rules.same(dtype, tensor.dtype, f"the value stored in {tensor}")
        rules.cell(tensor, stmt.index)
        lanes = rules.vector is not None
        rules.require(lanes or not stmt.bypass, f"{tensor} is stored past the caches by single cells")
        if stmt.accum is not None:
            rules.accumulates(stmt.accum, stmt.value, False)
        if rules.vector is not None:
            rules.require(stmt.accum is None, f"{tensor} is accumulated into inside a vector loop")
            symbol = rules.vector.symbol
            moves = any(position.coefficient(symbol) for position in stmt.index)
            rules.require(moves, f"vector loop {symbol.hint} stores to the same cell of {tensor} again")
    else:
        rules.same(dtype, tensor.dtype, f"the value that fills {tensor}")
        rules.storage(tensor)
        rules.require(tensor.storage.strides is None, f"{tensor} is filled, and is not in C order")


def _check_update(stmt: Update, rules: _Rules) -> None:
    variable, accum = stmt.variable, stmt.accum
    dtype = rules.expression(stmt.value)
    rules.same(dtype, variable.dtype, f"the value of variable {variable.hint}")
    depth = rules.variables.get(variable)
    if depth is None:
        raise InvalidProgram(f"{rules.program}: variable {variable.hint} is updated where it is not defined")
    own = rules.shared is None or depth >= rules.shared
    rules.require(own, f"variable {variable.hint} of outside is updated in a loop that threads share")
    if accum is None:
        rules.require(
            depth == rules.depth,
            f"variable {variable.hint} is carried by a loop whose iterations are independent",
        )
        return
    rules.accumulates(accum, stmt.value, stmt.contract)
    for lanes in (rules.vector, rules.block):
        if lanes is not None and depth <= lanes.depth:
            known = lanes.accumulated.setdefault(variable, accum)
            rules.require(known is accum, f"variable {variable.hint} accumulates by {known} and by {accum}")


def _check_loop(loop: For, rules: _Rules) -> None:
    hint = loop.symbol.hint
    power = loop.lanes > 0 and loop.lanes & (loop.lanes - 1) == 0
    rules.require(power, f"loop {hint} has {loop.lanes} lanes, which is no power of two")
    rules.enter(loop.symbol, loop.lo, loop.hi, loop.step)
    independent = loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.UNROLLED)
    rules.depth += independent
    shared = rules.shared
    if loop.grain is not None:
        rules.affine(loop.grain)
        rules.require(loop.kind in (LoopKind.PARALLEL, LoopKind.VECTOR), f"loop {hint} is not to be shared")
        rules.require(shared is None, f"loop {hint}, which threads share, stands inside another such loop")
        rules.shared = rules.depth
    if loop.aligned is not None:
        found = loop.kind is LoopKind.VECTOR and loop.step == 1 and lying_alike(loop, loop.aligned)
        rules.require(bool(found), f"loop {hint} has nothing to be aligned by")
    if loop.kind is LoopKind.SEQUENTIAL and loop.lanes > 1:
        rules.require(may_append(loop), f"loop {hint} has lanes, and does not append")
    if loop.cuts:
        rules.require(may_be_cut(loop), f"loop {hint} is cut where vectors cannot be done beside one another")
    host, together = rules.host, rules.together
    rules.host = host and loop.kind is LoopKind.SEQUENTIAL
    if loop.kind in (LoopKind.VECTOR, LoopKind.LOCKSTEP):
        rules.require(rules.vector is None, f"vector loop {hint} stands inside another")
        rules.vector = _Vector(loop.symbol, rules.depth - 1)
        _check_body(loop.body, rules, True)
        _check_accumulated(rules.vector, "vector", rules)
        rules.vector = None
    elif loop.kind is LoopKind.BLOCK:
        rules.require(together, f"block loop {hint} does not stand in a grid loop")
        rules.block, rules.together = _Vector(loop.symbol, rules.depth - 1), False
        rules.thread = loop.symbol if _numbers_threads(loop) else None
        _check_body(loop.body, rules, True)
        _check_accumulated(rules.block, "block", rules)
        rules.block = rules.thread = None
    elif loop.kind is LoopKind.GRID:
        rules.require(host, f"grid loop {hint} does not stand in sequential loops only")
        rules.together = _has_blocks(loop, rules)
        _check_body(loop.body, rules, True)
    else:
        varies = rules.vector is not None and not (loop.lo.is_constant and loop.hi.is_constant)
        rules.require(not (varies and bypasses(loop.body)), f"loop {hint} in lanes stores past the caches")
        _check_body(loop.body, rules, True)
    rules.host, rules.together = host, together
    rules.shared = shared
    rules.depth -= independent
    rules.leave(loop.symbol)


def _check_accumulated(lanes: _Vector, kind: str, rules: _Rules) -> None:
    for variable in lanes.accumulated:
        unread = variable not in lanes.read
        rules.require(unread, f"variable {variable.hint} is accumulated and read in one {kind} loop")


def _numbers_threads(loop: For) -> bool:
    """Whether each iteration of a block loop is that of the thread of its number."""
    return loop.lo == Affine.of(0) and loop.step == 1 and loop.trips is not None and loop.trips <= loop.lanes


def _has_blocks(grid: For, rules: _Rules) -> bool:
    """Whether the threads of a block take iterations of a grid together."""
    sizes = block_sizes(grid.body)
    rules.require(len(sizes) <= 1, f"block loops in grid loop {grid.symbol.hint} have several sizes")
    alone = not sizes or grid.lanes == 1
    rules.require(alone, f"grid loop {grid.symbol.hint} has {grid.lanes} lanes and block loops")
    return bool(sizes)
