"""reals: complex numbers become pairs of real ones.

    def f(z: read[c128, 8], y: write[c128, 8]):     def f(z: read[f64, 8, 2], y: write[f64, 8, 2]):
        y[i] = multiply(z[i], z[i])         ->          y[i, 0] = subtract(multiply(z[i, 0], z[i, 0]), ...)
                                                        y[i, 1] = add(multiply(z[i, 0], z[i, 1]), ...)

A parameter is the caller's memory, in which the two parts of a number are neighbours: they are one more axis.
A temporary is two tensors. Where one part is needed to compute the other one and is overwritten first, it
goes through a temporary, since an assignment reads everything before it writes. A product of matrices is one
of reals (`real_products`), one of vectors is four; a factor that was conjugated before is read as it was.
A product with an imaginary number has a real part that is 0 or NaN, whose exponential is one more.
Sums down columns are those of both parts at once, which lie side by side. What cannot be accumulated part by
part, such as products, is taken in order, in a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...errors import CompilerBug
from ...ir.assign import (
    ArrayParam,
    Assign,
    Computation,
    Loop,
    Param,
    Statement,
    expressions,
    rewrite_bodies,
    rewrite_expressions,
    statements,
)
from ...ir.code import Caps
from ...ir.conditions import compare
from ...ir.definitions.complexes import PARTS, phase
from ...ir.definitions.terms import Term
from ...ir.dtype import BOOL, I64, DType
from ...ir.expr import Apply, Cast, Const, Expr, ExprBuilder, Gather, Index, Load, Local, constant, dtype_of
from ...ir.index import Affine, Symbol
from ...ir.ops import OPS, PART_OPS
from ...ir.resolve import resolve
from ...ir.tensor import Tensor
from ...ir.walk import children, rebuild, substitute, substitute_assignments, walk
from .hermitian import hermitian_product
from .real_products import Matrix, RealProduct, real_product

__all__ = ["reals"]

REAL, IMAGINARY = 0, 1
CONJUGATE = OPS["conjugate"]

_OF_NOTHING = {OPS[name] for name in ("add", "subtract", "negative", "positive")}
"""What gives 0 or NaN for nothing else."""

Pair = tuple[Expr, Expr]


def reals(computation: Computation, caps: Caps) -> Computation:
    """The computation without complex numbers."""
    if not _has_complex(computation):
        return computation
    splitting = _Splitting(computation)
    params = tuple(splitting.param(param) for param in computation.params)
    return replace(computation, params=params, body=splitting.body(computation.body))


def _has_complex(computation: Computation) -> bool:
    tensors = (param.tensor for param in computation.params if isinstance(param, ArrayParam))
    if any(tensor.dtype.is_complex for tensor in tensors):
        return True
    for statement in statements(computation.body):
        if isinstance(statement, Assign) and statement.into.storage.dtype.is_complex:
            return True
        # Without complex parameters, complex cells are those of temporaries that were assigned, or literals.
        nodes = (node for expression in expressions(statement) for node in walk(expression))
        if any(isinstance(node, (Apply, Cast)) and node.dtype.is_complex for node in nodes):
            return True
    return False


def _conjugates(assigns: Sequence[Assign], writes: Mapping[Tensor, int]) -> dict[Tensor, Assign]:
    """What makes the temporaries that are conjugates, number by number, of arrays that nothing writes to."""
    found: dict[Tensor, Assign] = {}
    for stmt in assigns:
        match stmt:
            case Assign(accum=None, into=into, value=Apply(op=op, args=(Load(tensor=source) as load,))):
                own = {symbol for symbol, _ in stmt.loops}
                is_plain = stmt.index == stmt.point
                settled = writes[into.storage] == 1 and source.storage not in writes
                if (
                    op is CONJUGATE
                    and is_plain
                    and settled
                    and own.issuperset(symbol for position in load.index for symbol in position.symbols)
                ):
                    found[into] = stmt
            case _:
                pass
    return found


class _Splitting:
    """What stands for each complex tensor, and for each expression; which temporaries, written once, hold
    nothing but 0 and NaN."""

    def __init__(self, computation: Computation) -> None:
        assigns = [stmt for stmt in statements(computation.body) if isinstance(stmt, Assign)]
        self._writes = Counter(stmt.into.storage for stmt in assigns)
        self._conjugates = _conjugates(assigns, self._writes)
        self._given = {param.tensor for param in computation.params if isinstance(param, ArrayParam)}
        self._nothing: set[Tensor] = set()
        self._beside: dict[Tensor, Tensor] = {}
        self._apart: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self._flat: dict[tuple[Tensor, int], Tensor] = {}

    def param(self, param: Param) -> Param:
        if not (isinstance(param, ArrayParam) and param.tensor.dtype.is_complex):
            return param
        source = param.source and self._with_parts(param.source)
        return replace(param, tensor=self._with_parts(param.tensor), source=source)

    # tensors

    def _with_parts(self, tensor: Tensor) -> Tensor:
        """A tensor of the caller's, whose last axis has the parts."""
        if tensor not in self._beside:
            self._beside[tensor] = replace(tensor.real_form(), base=None, wish=tensor.wish)
        return self._beside[tensor]

    def _part(self, tensor: Tensor, part: int) -> Tensor:
        """One part of a temporary."""
        if tensor not in self._apart:
            real, imaginary = (
                replace(tensor, label=f"{tensor.label}_{name}", dtype=tensor.dtype.part)
                for name in ("real", "imag")
            )
            self._apart[tensor] = real, imaginary
        return self._apart[tensor][part]

    def _flat_of(self, storage: Tensor, cells: Affine, part: int) -> Tensor:
        """The flat form of what holds a part of a tensor of so many cells."""
        key = storage, 0 if storage in self._given else part
        if key not in self._flat:
            given = storage in self._given
            base = self._with_parts(storage) if given else self._part(storage, part)
            self._flat[key] = Tensor(base.label, (cells * (2 if given else 1),), base.dtype, base=base)
        return self._flat[key]

    def given(self, factor: Expr) -> Matrix | None:
        """A factor that is an array of the caller's, or its conjugate."""
        match factor:
            case Apply(op=op, args=(arg,)) if op is CONJUGATE:
                found = self.given(arg)
                return found and replace(found, is_conjugate=not found.is_conjugate)
            case Load(tensor=tensor, index=index) if tensor.storage in self._given:
                return Matrix(*self.cell(tensor, index, REAL))
            case _:
                return None

    def cell(self, tensor: Tensor, index: tuple[Affine, ...], part: int) -> tuple[Tensor, tuple[Affine, ...]]:
        """Where a part of a complex tensor's cell is."""
        storage = tensor.storage
        given = storage in self._given
        if tensor is storage:
            if given:
                return self._with_parts(tensor), (*index, Affine.of(part))
            return self._part(tensor, part), index
        flat = self._flat_of(storage, tensor.shape[0], part)
        return flat, (index[0] * 2 + part,) if given else index

    def place(self, tensor: Tensor, index: tuple[Affine, ...]) -> tuple[Tensor, tuple[Affine, ...]]:
        """Where the cell of a real tensor is, which may be a form of a complex one."""
        base = tensor.base
        if base is None or not tensor.storage.dtype.is_complex:
            return tensor, index
        if tensor.is_real_form:
            return self.cell(base, index[:-1], _known_part(index[-1]))
        # The flat form of a real form: parts take turns.
        (position,) = index
        half, part = _half_and_part(position)
        storage = tensor.storage
        flat = self._flat_of(storage, Affine.of(tensor.shape[0].constant // 2), part)
        return flat, index if storage in self._given else (half,)

    # expressions

    def pair(self, expr: Expr) -> Pair:
        """The parts of a complex expression."""
        match expr:
            case Load(tensor=tensor, index=index):
                return (
                    Load(*self.cell(tensor, index, REAL)),
                    Load(*self.cell(tensor, index, IMAGINARY)),
                )
            case Gather(tensor=tensor, index=index):
                index = tuple(self.real(part) for part in index)
                return self._gathered(tensor, index, REAL), self._gathered(tensor, index, IMAGINARY)
            case Cast(arg=arg, dtype=dtype) if dtype_of(arg).is_complex:
                real, imaginary = self.pair(arg)
                return _cast(real, dtype.part), _cast(imaginary, dtype.part)
            case Cast(arg=arg, dtype=dtype):
                return _cast(self.real(arg), dtype.part), constant(0.0, dtype.part)
            case Apply(op=op, args=(real, imaginary)) if op is PART_OPS["complex"]:
                return self.real(real), self.real(imaginary)
            case Apply():
                real, imaginary = self._applied(expr)
                return real.value, imaginary.value
            case Const() | Local() | Index():
                raise CompilerBug(f"a complex {type(expr).__name__}", stage="reals")

    def real(self, expr: Expr) -> Expr:
        """A real expression over what stands for its operands."""
        match expr:
            case Load(tensor=tensor, index=index):
                return Load(*self.place(tensor, index))
            case Gather(tensor=tensor, index=index) if tensor.storage.dtype.is_complex:
                return self._part_gathered(tensor, tuple(self.real(position) for position in index))
            case Cast(arg=arg, dtype=dtype) if dtype_of(arg).is_complex:
                real, imaginary = self.pair(arg)
                if dtype is BOOL:
                    zero = constant(0.0, dtype_of(real))
                    unequal = (compare("not_equal", part, zero) for part in (real, imaginary))
                    return Apply(OPS["logical_or"], tuple(unequal), BOOL)
                return _cast(real, dtype)
            case Apply(args=args) if any(dtype_of(arg).is_complex for arg in args):
                value: Expr = self._applied(expr).value
                return value
            case _:
                return rebuild(expr, tuple(self.real(child) for child in children(expr)))

    def _applied(self, expr: Apply) -> Any:
        arguments = [self._argument(arg) for arg in expr.args]
        match expr.op, arguments:
            case op, [(real, imaginary)] if op is OPS["exp"] and self._is_nothing(real.value):
                return phase((real, imaginary))
            case _:
                return PARTS[expr.op.name](*arguments)

    def _is_nothing(self, value: Expr) -> bool:
        """Whether a real number is 0 or NaN, whatever it is computed from."""
        match value:
            case Const(value=number):
                return number == 0
            case Load(tensor=tensor):
                return tensor.storage in self._nothing
            case Cast(arg=arg):
                return dtype_of(arg).is_float and self._is_nothing(arg)
            case Apply(op=op, args=args) if op is OPS["multiply"]:
                return any(map(self._is_nothing, args))
            case Apply(op=op, args=args) if op in _OF_NOTHING:
                return all(map(self._is_nothing, args))
            case Apply(op=op, args=(real, imaginary, Const(value=divisor), Const(value=0))) if divisor != 0:
                part = {PART_OPS["divide_real"]: real, PART_OPS["divide_imag"]: imaginary}.get(op)
                return part is not None and self._is_nothing(part)
            case _:
                return False

    def _argument(self, arg: Expr) -> Term | tuple[Term, ...]:
        builder = _Builder()
        if dtype_of(arg).is_complex:
            return tuple(Term(builder, part) for part in self.pair(arg))
        return Term(builder, self.real(arg))

    def _gathered(self, tensor: Tensor, index: tuple[Expr, ...], part: int) -> Gather:
        storage = tensor.storage
        given = storage in self._given
        if tensor is not storage:
            flat = self._flat_of(storage, tensor.shape[0], part)
            return Gather(flat, (_twice_plus(index[0], part),) if given else index)
        if given:
            return Gather(self._with_parts(tensor), (*index, Const(part, I64)))
        return Gather(self._part(tensor, part), index)

    def _part_gathered(self, tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
        """A gather from a real tensor that is a form of a complex one."""
        base = tensor.base
        assert base is not None
        if tensor.is_real_form:
            _, part = _halved(index[-1])
            return self._gathered(base, index[:-1], part)
        # The flat form of a real form: parts take turns.
        half, part = _halved(index[0])
        storage = tensor.storage
        flat = self._flat_of(storage, Affine.of(tensor.shape[0].constant // 2), part)
        return Gather(flat, index if storage in self._given else (half,))

    # statements

    def body(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Statement) -> Iterator[Statement]:
        match statement:
            case Assign(into=into) if into.dtype.is_complex:
                for number, part in enumerate(self._assign(statement)):
                    yield _renewed(part) if number and isinstance(part, Assign) else part
            case Assign(into=into, index=index):
                into, index = self.place(into, index)
                yield rewrite_expressions(replace(statement, into=into, index=index), self.real)
            case _:
                yield rewrite_bodies(rewrite_expressions(statement, self.real), self.body)

    def _assign(self, assign: Assign) -> Iterator[Assign | Loop]:
        """An assignment to complex cells."""
        if assign.contract:
            yield from self._contracted(assign)
        elif (sums := self._column_sums(assign)) is not None:
            yield sums
        elif assign.accum is None or assign.accum is OPS["add"]:
            starts: tuple[Expr | None, Expr | None] = (None, None)
            if assign.initial is not None:
                starts = self.pair(assign.initial)
            parts = zip(self.pair(assign.value), starts, (REAL, IMAGINARY), strict=True)
            yield from self._in_order([self._stored(assign, *part) for part in parts])
        else:
            yield from self._folded(assign)

    def _column_sums(self, assign: Assign) -> Assign | None:
        """Sums down columns of the caller's numbers, in memory of the caller's: those of rows of twice as
        many reals, which are read once."""
        into, given = assign.into, self._given
        match assign:
            case Assign(accum=op, value=Load(tensor=rows, index=(*_, place) as row), index=(*_, last)):
                is_sum = op is OPS["add"] and assign.index == assign.point[: len(assign.index)]
                if not (is_sum and place == last and given.issuperset((rows, into)) and rows is not into):
                    return None
            case _:
                return None
        if assign.initial is None:
            return None
        start, of_imaginary = self.pair(assign.initial)
        if start != of_imaginary:
            return None
        part = Symbol("part")
        rows, (*cells, _) = self.cell(rows, row, REAL)
        into, (*sums, _) = self.cell(into, assign.index, REAL)
        value = Load(rows, (*cells, Affine.of(part)))
        loops = (*assign.cell_loops, (part, Affine.of(2)), *assign.reduced_loops)
        return replace(
            assign, loops=loops, into=into, index=(*sums, Affine.of(part)), value=value, initial=start
        )

    def _stored(self, assign: Assign, value: Expr, initial: Expr | None, part: int) -> Assign:
        into, index = self.cell(assign.into, assign.index, part)
        is_made = into.base is None and assign.into not in self._given and self._writes[assign.into] == 1
        if is_made and assign.accum is None and self._is_nothing(value):
            self._nothing.add(into)
        return replace(assign, into=into, index=index, value=value, initial=initial)

    def _in_order(self, parts: Sequence[Assign]) -> Iterator[Assign]:
        """The assignments of both parts, such that neither reads what the other one has written."""
        real, imaginary = parts
        if not _reads(imaginary, real):
            yield from (real, imaginary)
        elif not _reads(real, imaginary):
            yield from (imaginary, real)
        else:
            into = real.into
            held = Tensor(f"{into.label}_held", into.shape, into.dtype)
            start = real.initial
            if real.accum is not None and start is None:
                start = Load(into, real.index)
            yield replace(real, into=held, initial=start)
            yield imaginary
            yield Assign(real.cell_loops, into, real.index, Load(held, real.index), loc=real.loc)

    def _contracted(self, assign: Assign) -> Iterator[Assign]:
        """Sums of products, with a matrix as it lies in memory if one factor is such."""
        assert isinstance(assign.value, Apply)
        left, right = map(self._unstored, assign.value.args)
        orders = (left, right), (right, left)
        ways = (
            partial(way, assign, *order) for way in (self._hermitian, self._in_memory) for order in orders
        )
        product = next((found for way in ways if (found := way()) is not None), None)
        if product is None:
            yield from self._in_four(assign, left, right)
        else:
            yield from product.statements
            if product.parts is not None:
                yield from self._added(assign, product.parts)

    def _hermitian(self, assign: Assign, factor: Expr, other: Expr) -> RealProduct | None:
        """Sums of products of a matrix with its own adjoint, if the other factor is that."""
        (factor, sign), (other, other_sign) = _sign(factor), _sign(other)
        if sign != 1:
            return None
        return hermitian_product(assign, factor, other, self.given(factor), self.pair, other_sign == -1)

    def _in_memory(self, assign: Assign, factor: Expr, other: Expr) -> RealProduct | None:
        """Sums of products of a matrix as it lies in memory, if the factor is such."""
        matrix = self.given(factor)
        if matrix is None:
            return None
        return real_product(assign, matrix, factor, other, self.pair, self._result(assign))

    def _result(self, assign: Assign) -> Matrix | None:
        """Where sums are formed that start from 0, if that is the caller's memory, which they do not read."""
        storage, initial = assign.into.storage, assign.initial
        if storage not in self._given or initial is None:
            return None
        is_read = any(
            node.tensor.storage is storage for node in walk(assign.value) if isinstance(node, (Load, Gather))
        )
        starts = self.pair(initial)
        if is_read or not all(isinstance(start, Const) and start.value == 0 for start in starts):
            return None
        return Matrix(*self.cell(assign.into, assign.index, REAL))

    def _unstored(self, factor: Expr) -> Expr:
        """A factor whose conjugate was stored, as what it is the conjugate of."""
        match factor:
            case Load(tensor=tensor, index=index) if tensor in self._conjugates:
                made = self._conjugates[tensor]
                symbols = (symbol for symbol, _ in made.loops)
                return substitute(made.value, dict(zip(symbols, index, strict=True)))
            case Apply(op=op, args=(arg,)) if op is CONJUGATE:
                return rebuild(factor, (self._unstored(arg),))
            case _:
                return factor

    def _in_four(self, assign: Assign, *factors: Expr) -> Iterator[Assign]:
        """Sums of products of the parts, then their difference and their sum."""
        dtype, into = assign.into.dtype.part, assign.into
        sums: list[Expr] = []
        signs = [_sign(factor) for factor in factors]
        left, right = (self.pair(factor) for factor, _ in signs)
        for one, other in ((REAL, REAL), (REAL, IMAGINARY), (IMAGINARY, IMAGINARY), (IMAGINARY, REAL)):
            total = Tensor(f"{into.label}_sum", into.shape, dtype)
            product = Apply(OPS["multiply"], (left[one], right[other]), dtype)
            start = constant(0.0, dtype)
            yield replace(assign, into=total, value=product, initial=start)
            sums.append(Load(total, assign.index))
        yield from self._added(assign, _parts_of_product(sums, *(sign for _, sign in signs)))

    def _added(self, assign: Assign, parts: Pair) -> Iterator[Assign]:
        """The parts of a product added to what the cells start from."""
        values, into = list(parts), assign.into
        start_of = Load(into, assign.index) if assign.initial is None else assign.initial
        starts = self.pair(start_of)
        if not all(isinstance(start, Const) and start.value == 0 for start in starts):
            values = [_apply("add", start, value) for start, value in zip(starts, values, strict=True)]
        plain = Assign(assign.cell_loops, into, assign.index, assign.value, loc=assign.loc)
        stored = [self._stored(plain, value, None, part) for part, value in enumerate(values)]
        yield from self._in_order(stored)

    def _folded(self, assign: Assign) -> Iterator[Assign | Loop]:
        """An accumulation in the order of the points, which overlap in no cell that they read."""
        assert assign.accum is not None
        kept = assign.cell_loops
        if assign.initial is not None:
            yield from self._assign(Assign(kept, assign.into, assign.index, assign.initial, loc=assign.loc))
        value = Apply(assign.accum, (Load(assign.into, assign.index), assign.value), assign.into.dtype)
        steps: Sequence[Assign | Loop] = list(
            self._assign(Assign(kept, assign.into, assign.index, value, loc=assign.loc))
        )
        steps = [_renewed(step) if isinstance(step, Assign) else step for step in steps]
        for symbol, extent in reversed(assign.reduced_loops):
            steps = [Loop(symbol, Affine.of(0), extent, 1, tuple(steps), assign.loc)]
        yield from steps


def _sign(factor: Expr) -> tuple[Expr, int]:
    """A factor, or what it is the conjugate of; and the sign with which its imaginary part counts."""
    match factor:
        case Apply(op=op, args=(arg,)) if op is CONJUGATE:
            inner, sign = _sign(arg)
            return inner, -sign
        case _:
            return factor, 1


def _parts_of_product(sums: Sequence[Expr], left: int, right: int) -> Pair:
    """The parts of a sum of products, by the sums of real by real parts, real by imaginary, imaginary by
    imaginary, and imaginary by real parts, of factors whose imaginary parts have signs."""
    rr, ri, ii, ir = sums
    real = _apply("subtract" if left == right else "add", rr, ii)
    match left, right:
        case 1, 1:
            return real, _apply("add", ri, ir)
        case 1, -1:
            return real, _apply("subtract", ir, ri)
        case -1, 1:
            return real, _apply("subtract", ri, ir)
        case _:
            return real, _apply("negative", _apply("add", ri, ir))


def _renewed(assign: Assign) -> Assign:
    """The assignment over symbols of its own."""
    symbols = {
        symbol: Symbol(symbol.hint, symbol.kind, symbol.lower, symbol.upper) for symbol, _ in assign.loops
    }
    values = {symbol: Affine.of(new) for symbol, new in symbols.items()}
    (other,) = substitute_assignments((assign,), values)
    assert isinstance(other, Assign)
    return replace(other, loops=tuple((symbols[symbol], extent) for symbol, extent in other.loops))


class _Builder(ExprBuilder):
    """Definitions over expressions."""

    def op(self, name: str, *args: Expr) -> Expr:
        if name in PART_OPS:
            return Apply(PART_OPS[name], args, dtype_of(args[0]))
        return _apply(name, *args)

    def cast(self, value: Expr, dtype: DType) -> Expr:
        return _cast(value, dtype)


def _apply(name: str, *args: Expr) -> Apply:
    _, dtype = resolve(OPS[name], [dtype_of(arg) for arg in args])
    return Apply(OPS[name], args, dtype)


def _cast(value: Expr, dtype: DType) -> Expr:
    if dtype_of(value) is dtype:
        return value
    return constant(value.value, dtype) if isinstance(value, Const) else Cast(value, dtype)


def _twice_plus(index: Expr, part: int) -> Expr:
    twice = Apply(OPS["multiply"], (index, Const(2, I64)), I64)
    return Apply(OPS["add"], (twice, Const(part, I64)), I64)


def _halved(position: Expr) -> tuple[Expr, int]:
    """Which cell and which of its parts a computed position is, where parts take turns: what chooses the
    cell is multiplied by an even number."""
    match position:
        case Const(value=value):
            return Const(value // 2, I64), int(value % 2)
        case Index(value=value):
            half, part = _half_and_part(value)
            return Index(half), part
        case Apply(op=op, args=(one, other)) if op is OPS["add"]:
            (cell, part), (more, other_part) = _halved(one), _halved(other)
            return Apply(op, (cell, more), I64), _known_part(Affine.of(part + other_part))
        case Apply(op=op, args=(arg, Const(value=factor))) if op is OPS["multiply"] and factor % 2 == 0:
            return Apply(op, (arg, Const(factor // 2, I64)), I64), REAL
        case _:
            raise CompilerBug("a computed part of complex numbers", stage="reals")


def _half_and_part(position: Affine) -> tuple[Affine, int]:
    half = Affine(tuple((factor // 2, symbol) for factor, symbol in position.terms), position.offset // 2)
    return half, _known_part(position - half * 2)


def _known_part(position: Affine) -> int:
    if not position.is_constant or position.offset not in (REAL, IMAGINARY):
        raise CompilerBug("a part of complex numbers that is not known", stage="reals")
    return position.offset


def _reads(reader: Assign, written: Assign) -> bool:
    """Whether the one may read what the other one writes."""
    nodes = (node for expression in expressions(reader) for node in walk(expression))
    cells = (node for node in nodes if isinstance(node, (Load, Gather)))
    return any(
        cell.tensor.storage is written.into.storage and not _are_apart(cell, written) for cell in cells
    )


def _are_apart(node: Load | Gather, written: Assign) -> bool:
    """Whether cells differ from written ones by their last positions: those of other parts."""
    if isinstance(node, Gather) or node.tensor is not written.into:
        return False
    here, there = node.index[-1:], written.index[-1:]
    if node.tensor.base is not None:
        return bool(here) and _parity(here[0]) not in (None, _parity(there[0]))
    return bool(here) and here[0].is_constant and there[0].is_constant and here != there


def _parity(position: Affine) -> int | None:
    even = all(factor % 2 == 0 for factor, _ in position.terms)
    return position.offset % 2 if even else None
