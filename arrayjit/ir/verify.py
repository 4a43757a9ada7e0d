"""Is a program valid? Every broken rule has its own message.

For both IRs:
- a symbol is used inside the loop that introduces it, or is a static or dimension symbol, or a parameter;
- an index has one position per axis, and stays inside constant extents;
- an expression's dtypes fit: an op has its number of arguments, a condition is a bool, a stored value has
  the tensor's dtype, an initial value too;
- an op that accumulates has an identity, `contract` needs a float multiply under `accum=add`;
- a parameter that is only read is not written; steps are not 0; a tensor is a parameter once.

For a Computation: without `accum`, every loop symbol of an assignment occurs in its index.
For a Kernel: a variable is defined once, before its use, in an enclosing body; an iteration of a parallel
or vector loop changes an outer variable only by accumulating; no `Raise` or `Barrier` stands inside a vector
loop; a vector loop has a power of two of lanes; once anything is placed, every temporary is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from typing_extensions import assert_never

from ..errors import InvalidProgram
from .assign import ArrayParam, Assign, Check, Computation, IndexParam, Loop, Note, Param, Statement
from .dtype import BOOL, I64, DType
from .expr import Apply, Cast, Const, Expr, Gather, Index, Load, Local, Variable, dtype_of
from .index import Affine, Symbol, SymbolKind
from .loops import (
    Barrier,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Place,
    Raise,
    Stmt,
    Store,
    Update,
)
from .ops import Op
from .tensor import Tensor
from .walk import walk

__all__ = ["verify_computation", "verify_kernel"]

Ranges = dict[Symbol, tuple[int, int] | None]


def verify_computation(computation: Computation) -> None:
    """Raises InvalidProgram for the first broken rule."""
    rules = _Rules(computation.name, _access(computation.params), _bound_symbols(computation.params), {})
    _check_statements(computation.body, rules)


def verify_kernel(kernel: Kernel) -> None:
    """Raises InvalidProgram for the first broken rule."""
    rules = _Rules(kernel.name, _access(kernel.params), _bound_symbols(kernel.params), kernel.placement)
    _check_body(kernel.body, rules, _Scope())


def _access(params: Sequence[Param]) -> dict[Tensor, str]:
    access: dict[Tensor, str] = {}
    for param in params:
        if isinstance(param, ArrayParam):
            if param.tensor in access:
                raise InvalidProgram(f"{param.tensor} is a parameter twice")
            access[param.tensor] = param.access
    return access


def _bound_symbols(params: Sequence[Param]) -> Ranges:
    return {param.symbol: None for param in params if isinstance(param, IndexParam)}


@dataclass(slots=True)
class _Rules:
    """The rules about expressions and cells; `ranges` has the first and last value of each symbol in
    scope, where they are known."""

    program: str
    access: Mapping[Tensor, str]
    ranges: Ranges
    placement: Mapping[Tensor, Place]

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise InvalidProgram(f"{self.program}: {message}")

    def affine(self, value: Affine) -> None:
        for symbol in value.symbols:
            known = symbol in self.ranges or symbol.kind is not SymbolKind.LOOP
            self.require(known, f"symbol {symbol.hint} is used outside its loop")

    def cell(self, tensor: Tensor, index: Sequence[Affine]) -> None:
        rank = tensor.rank
        self.require(len(index) == rank, f"{tensor} has {rank} axes and is indexed with {len(index)}")
        self.storage(tensor)
        for position, extent in zip(index, tensor.shape, strict=True):
            self.affine(position)
            ends = self.bounds(position)
            if ends is None or not extent.is_constant or tensor.base is not None:
                continue
            inside = ends[0] > ends[1] or (ends[0] >= 0 and ends[1] < extent.offset)
            self.require(inside, f"{tensor} is indexed from {ends[0]} to {ends[1]}")

    def bounds(self, position: Affine) -> tuple[int, int] | None:
        """The least and greatest value of an index, if known; an empty range where a loop never runs."""
        ranges: dict[Symbol, tuple[int, int]] = {}
        for symbol in position.symbols:
            ends = self.ranges.get(symbol)
            if ends is not None:
                if ends[0] > ends[1]:
                    return (0, -1)
                ranges[symbol] = ends
        return position.bounds(ranges)

    def storage(self, tensor: Tensor) -> None:
        owner = tensor.storage
        placed = owner in self.access or not self.placement or owner in self.placement
        self.require(placed, f"temporary {owner} has no place")

    def written(self, tensor: Tensor) -> None:
        allowed = self.access.get(tensor.storage, "write") in ("write", "update")
        self.require(allowed, f"{tensor} is a parameter that may only be read, and is written")

    def same(self, dtype: DType, expected: DType, what: str) -> None:
        self.require(dtype is expected, f"{what} is {dtype}, {expected} is needed")

    def accumulates(self, op: Op, value: Expr, contract: bool) -> None:
        self.require(op.identity is not None, f"{op} cannot accumulate: it has no identity")
        if contract:
            fits = isinstance(value, Apply) and value.op.name == "multiply" and value.dtype.is_float
            self.require(fits and op.name == "add", "contract needs a float multiply accumulated by add")

    def expression(self, expr: Expr, variables: _Scope | None) -> DType:
        for node in walk(expr):
            match node:
                case Load(tensor=tensor, index=index):
                    self.cell(tensor, index)
                case Gather(tensor=tensor, index=parts):
                    self.require(len(parts) == tensor.rank, f"{tensor} is gathered with {len(parts)} indices")
                    self.storage(tensor)
                    for part in parts:
                        self.same(dtype_of(part), I64, f"an index of {tensor}")
                case Local(variable=variable):
                    seen = variables is not None and variables.has(variable)
                    self.require(seen, f"variable {variable.hint} is used where it is not defined")
                case Index(value=value):
                    self.affine(value)
                case Apply(op=op, args=args):
                    self.require(len(args) == op.arity, f"{op} takes {op.arity} arguments, not {len(args)}")
                case Const() | Cast():
                    pass
                case _:
                    assert_never(node)
        return dtype_of(expr)

    def enter(self, symbol: Symbol, lo: Affine, hi: Affine, step: int = 1) -> None:
        """Bring a loop's symbol into scope."""
        self.affine(lo)
        self.affine(hi)
        self.require(step != 0, f"loop {symbol.hint} has step 0")
        self.require(symbol not in self.ranges, f"symbol {symbol.hint} is introduced by two nested loops")
        low, high = self.bounds(lo), self.bounds(hi)
        if low is None or high is None:
            self.ranges[symbol] = None
            return
        values = range(low[0], high[1], step) if step > 0 else range(low[1], high[0], step)
        self.ranges[symbol] = (min(values), max(values)) if values else (0, -1)

    def leave(self, symbol: Symbol) -> None:
        del self.ranges[symbol]


def _check_statements(body: Iterable[Statement], rules: _Rules) -> None:
    for statement in body:
        match statement:
            case Assign():
                _check_assign(statement, rules)
            case Check(loops=loops, condition=condition):
                _enter_all(loops, rules)
                rules.same(rules.expression(condition, None), BOOL, "a checked condition")
                _leave_all(loops, rules)
            case Loop(symbol=symbol, lo=lo, hi=hi, step=step, body=inner):
                rules.enter(symbol, lo, hi, step)
                _check_statements(inner, rules)
                rules.leave(symbol)
            case Note():
                pass
            case _:
                assert_never(statement)


def _enter_all(loops: Iterable[tuple[Symbol, Affine]], rules: _Rules) -> None:
    for symbol, extent in loops:
        rules.enter(symbol, Affine.of(0), extent)


def _leave_all(loops: Iterable[tuple[Symbol, Affine]], rules: _Rules) -> None:
    for symbol, _ in loops:
        rules.leave(symbol)


def _check_assign(assign: Assign, rules: _Rules) -> None:
    _enter_all(assign.loops, rules)
    dtype = rules.expression(assign.value, None)
    rules.same(dtype, assign.into.dtype, f"the value assigned to {assign.into}")
    rules.cell(assign.into, assign.index)
    rules.written(assign.into)
    if assign.accum is not None:
        rules.accumulates(assign.accum, assign.value, assign.contract)
        if assign.initial is not None:
            initial = rules.expression(assign.initial, None)
            rules.same(initial, assign.into.dtype, f"the initial value of {assign.into}")
    else:
        used = {symbol for position in assign.index for symbol in position.symbols}
        for symbol, extent in assign.loops:
            once = symbol in used or (extent.is_constant and extent.offset <= 1)
            rules.require(once, f"loop {symbol.hint} assigns the same cells of {assign.into} again")
    _leave_all(assign.loops, rules)


@dataclass(slots=True)
class _Scope:
    """The variables of the enclosing bodies; `frozen` are those that may only accumulate here."""

    variables: set[Variable] = field(default_factory=set)
    frozen: frozenset[Variable] = frozenset()
    in_vector: bool = False

    def has(self, variable: Variable) -> bool:
        return variable in self.variables

    def inside(self, loop: For) -> _Scope:
        independent = loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.UNROLLED)
        frozen = self.frozen | self.variables if independent else self.frozen
        return _Scope(set(self.variables), frozenset(frozen), self.in_vector or loop.kind is LoopKind.VECTOR)

    def copy(self) -> _Scope:
        return _Scope(set(self.variables), self.frozen, self.in_vector)


def _check_body(body: Iterable[Stmt], rules: _Rules, scope: _Scope) -> None:
    for stmt in body:
        match stmt:
            case For():
                _check_loop(stmt, rules, scope)
            case Store(tensor=tensor, index=index, value=value):
                rules.same(rules.expression(value, scope), tensor.dtype, f"the value stored in {tensor}")
                rules.cell(tensor, index)
                rules.written(tensor)
            case Fill(tensor=tensor, value=value):
                rules.same(rules.expression(value, scope), tensor.dtype, f"the value that fills {tensor}")
                rules.storage(tensor)
                rules.written(tensor)
            case Define(variable=variable, value=value):
                dtype = rules.expression(value, scope)
                rules.same(dtype, variable.dtype, f"the value of variable {variable.hint}")
                rules.require(not scope.has(variable), f"variable {variable.hint} is defined twice")
                scope.variables.add(variable)
            case Update():
                _check_update(stmt, rules, scope)
            case If(condition=condition, body=inner, orelse=orelse):
                rules.same(rules.expression(condition, scope), BOOL, "a condition")
                _check_body(inner, rules, scope.copy())
                _check_body(orelse, rules, scope.copy())
            case Raise(condition=condition):
                rules.same(rules.expression(condition, scope), BOOL, "a condition")
                rules.require(not scope.in_vector, "a Raise stands inside a vector loop")
            case Barrier():
                rules.require(not scope.in_vector, "a Barrier stands inside a vector loop")
            case Comment():
                pass
            case _:
                assert_never(stmt)


def _check_update(stmt: Update, rules: _Rules, scope: _Scope) -> None:
    variable = stmt.variable
    dtype = rules.expression(stmt.value, scope)
    rules.same(dtype, variable.dtype, f"the value of variable {variable.hint}")
    rules.require(scope.has(variable), f"variable {variable.hint} is updated where it is not defined")
    if stmt.accum is None:
        rules.require(
            variable not in scope.frozen,
            f"variable {variable.hint} is carried by a loop whose iterations are independent",
        )
    else:
        rules.accumulates(stmt.accum, stmt.value, stmt.contract)


def _check_loop(loop: For, rules: _Rules, scope: _Scope) -> None:
    power = loop.lanes > 0 and loop.lanes & (loop.lanes - 1) == 0
    rules.require(power, f"loop {loop.symbol.hint} has {loop.lanes} lanes, which is no power of two")
    if loop.kind is LoopKind.VECTOR:
        rules.require(not scope.in_vector, f"vector loop {loop.symbol.hint} stands inside another")
    rules.enter(loop.symbol, loop.lo, loop.hi, loop.step)
    _check_body(loop.body, rules, scope.inside(loop))
    rules.leave(loop.symbol)
