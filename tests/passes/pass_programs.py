"""Programs for the tests of the passes, written almost as in NumPy: one assignment per operation, the
same record that the tracer makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from arrayjit.errors import Location
from arrayjit.ir.assign import Access, ArrayParam, Assign, Check, Computation, Loop, Statement
from arrayjit.ir.code import Caps
from arrayjit.ir.dtype import BOOL, F64
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Load
from arrayjit.ir.index import Affine, Symbol, affine
from arrayjit.ir.interp import run, run_computation
from arrayjit.ir.loops import For, Kernel, Stmt, Store, walk_statements
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.ir.verify import verify_kernel
from arrayjit.ir.walk import expressions, walk

__all__ = [
    "CAPS",
    "Program",
    "View",
    "agrees",
    "count_loads",
    "count_loops",
    "count_stores",
    "inputs",
    "run_passes",
    "temporaries",
]

CAPS = Caps()
Position = tuple[Affine, ...]


@dataclass
class View:
    """A symbolic float64 array: a tensor and the map from a position to the tensor's index."""

    program: Program
    tensor: Tensor
    shape: tuple[int, ...]
    index: Callable[[Position], Position]

    def load(self, position: Position) -> Load:
        own = position[len(position) - len(self.shape) :]
        return Load(
            self.tensor,
            self.index(tuple(p if n != 1 else Affine.of(0) for p, n in zip(own, self.shape, strict=True))),
        )

    @property
    def T(self) -> View:
        return View(self.program, self.tensor, self.shape[::-1], lambda p: self.index(p[::-1]))

    def __getitem__(self, key: slice | int | Symbol | tuple) -> View:
        keys = list(key) if isinstance(key, tuple) else [key]
        keys += [slice(None)] * (len(self.shape) - len(keys))
        ranges = [range(n)[k] if isinstance(k, slice) else k for k, n in zip(keys, self.shape, strict=True)]
        shape = tuple(len(r) for r in ranges if isinstance(r, range))

        def index(position: Position) -> Position:
            rest = iter(position)
            return self.index(
                tuple(next(rest) * r.step + r.start if isinstance(r, range) else Affine.of(r) for r in ranges)
            )

        return View(self.program, self.tensor, shape, index)

    def __setitem__(self, key: slice | int | Symbol | tuple, value: View | float) -> None:
        self.program.store(self[key], value)

    def __add__(self, other: View | float) -> View:
        return self.program.apply("add", self, other)

    def __sub__(self, other: View | float) -> View:
        return self.program.apply("subtract", self, other)

    def __mul__(self, other: View | float) -> View:
        return self.program.apply("multiply", self, other)

    def __truediv__(self, other: View | float) -> View:
        return self.program.apply("divide", self, other)

    def sum(self, axis: int | None = None) -> View:
        return self.program.reduce("add", self, axis, 0.0)

    def max(self, axis: int | None = None) -> View:
        return self.program.reduce("maximum", self, axis, -np.inf)

    def flat(self) -> View:
        """The view of a whole C-ordered tensor as one axis."""
        flat = Tensor(self.tensor.label, affine([self.tensor.size]), F64, base=self.tensor)
        return View(self.program, flat, (self.tensor.size,), lambda p: p)


class Program:
    """A computation in the making."""

    def __init__(self) -> None:
        self.params: list[ArrayParam] = []
        self.body: list[Statement] = []
        self.line = 0

    def argument(self, label: str, *shape: int, access: Access = "read") -> View:
        tensor = Tensor.of(label, shape, F64)
        self.params.append(ArrayParam(tensor, access))
        return self.whole(tensor)

    def whole(self, tensor: Tensor) -> View:
        return View(self, tensor, tuple(extent.constant for extent in tensor.shape), lambda p: p)

    def temporary(self, shape: Sequence[int], label: str = "t") -> View:
        return self.whole(Tensor.of(label, tuple(shape), F64))

    def emit(self, loops: dict[Symbol, int], into: View, position: Position, value: Expr, **more) -> None:
        self.line += 1
        extents = tuple((symbol, Affine.of(extent)) for symbol, extent in loops.items())
        loc = Location("program.py", self.line)
        self.body.append(Assign(extents, into.tensor, into.index(position), value, loc=loc, **more))

    def fill(self, into: View, value: Callable[[Position], Expr]) -> None:
        loops = {Symbol("ijkl"[axis]): extent for axis, extent in enumerate(into.shape)}
        position = affine(loops)
        self.emit(loops, into, position, value(position))

    def store(self, into: View, value: View | float) -> None:
        self.fill(into, lambda position: _operand(value, position))

    def apply(self, name: str, *operands: View | float) -> View:
        shapes = [operand.shape for operand in operands if isinstance(operand, View)]
        result = self.temporary(np.broadcast_shapes(*shapes))
        self.combine(name, result, *operands)
        return result

    def combine(self, name: str, into: View, *operands: View | float) -> None:
        """`into[:] = op(operands)` in one assignment, as `np.add(a, b, out=into)` is."""
        self.fill(into, lambda p: Apply(op(name), tuple(_operand(o, p) for o in operands), F64))

    def arange(self, extent: int) -> View:
        """`0.5 * arange(extent)`, from the index itself."""
        result = self.temporary((extent,))
        self.fill(result, lambda p: Apply(op("multiply"), (Const(0.5, F64), Cast(Index(p[0]), F64)), F64))
        return result

    def reduce(self, name: str, value: View, axis: int | None, initial: float) -> View:
        """A reduction with keepdims."""
        symbols = [Symbol("ijkl"[a]) for a in range(len(value.shape))]
        reduced = [a for a in range(len(symbols)) if axis is None or a == axis]
        order = [a for a in range(len(symbols)) if a not in reduced] + reduced
        result = self.temporary([1 if a in reduced else n for a, n in enumerate(value.shape)])
        position = tuple(Affine.of(0 if a in reduced else s) for a, s in enumerate(symbols))
        self.emit(
            {symbols[a]: value.shape[a] for a in order},
            result,
            position,
            value.load(affine(symbols)),
            accum=op(name),
            initial=Const(initial, F64),
        )
        return result

    def matmul(self, one: View, other: View) -> View:
        i, j, k = Symbol("i"), Symbol("j"), Symbol("k")
        result = self.temporary((one.shape[0], other.shape[1]))
        product = Apply(op("multiply"), (one.load(affine((i, k))), other.load(affine((k, j)))), F64)
        loops = {i: one.shape[0], j: other.shape[1], k: one.shape[1]}
        start = Const(0.0, F64)
        self.emit(loops, result, affine((i, j)), product, accum=op("add"), initial=start, contract=True)
        return result

    def check_positive(self, value: View) -> None:
        loops = {Symbol("ijkl"[axis]): extent for axis, extent in enumerate(value.shape)}
        holds = Apply(op("less"), (Const(0.0, F64), value.load(affine(loops))), BOOL)
        extents = tuple((symbol, Affine.of(extent)) for symbol, extent in loops.items())
        self.body.append(Check(extents, holds, "ValueError", "not positive"))

    @contextmanager
    def loop(self, lo: int, hi: int):
        """Statements emitted in the block are repeated for each value of the symbol."""
        symbol, outside = Symbol("n"), self.body
        self.body = []
        yield symbol
        inside = tuple(self.body)
        self.body = [*outside, Loop(symbol, Affine.of(lo), Affine.of(hi), 1, inside)]

    def result(self, value: View) -> None:
        self.store(self.argument("out", *value.shape, access="write"), value)

    def done(self) -> Computation:
        return Computation("program", tuple(self.params), tuple(self.body))


def _operand(value: View | float, position: Position) -> Expr:
    return value.load(position) if isinstance(value, View) else Const(float(value), F64)


def run_passes(program: Computation | Kernel, *passes: Callable) -> Kernel:
    """The program after some passes."""
    for each in passes:
        program = each(program, CAPS)
    return program


def inputs(computation: Computation, seed: int = 0) -> dict[Tensor, np.ndarray]:
    """Numbers between 1 and 2 for every parameter."""
    random = np.random.default_rng(seed)
    return {
        param.tensor: 1 + random.random(tuple(extent.constant for extent in param.tensor.shape))
        for param in computation.params
    }


def agrees(computation: Computation, program: Computation | Kernel) -> bool:
    """Whether `program` leaves in every parameter the very bits that `computation` leaves."""
    given = inputs(computation)
    expected = {tensor: array.copy() for tensor, array in given.items()}
    run_computation(computation, expected)
    actual = {tensor: array.copy() for tensor, array in given.items()}
    if isinstance(program, Kernel):
        verify_kernel(program)
        run(program, actual)
    else:
        run_computation(program, actual)
    return all(actual[tensor].tobytes() == expected[tensor].tobytes() for tensor in given)


def count_loops(kernel: Kernel) -> int:
    return sum(isinstance(stmt, For) for stmt in walk_statements(kernel.body))


def count_stores(kernel: Kernel) -> int:
    return sum(isinstance(stmt, Store) for stmt in walk_statements(kernel.body))


def count_loads(kernel: Kernel) -> int:
    """Reads of memory in the text of the kernel."""
    return sum(_loads(stmt) for stmt in walk_statements(kernel.body))


def _loads(stmt: Stmt) -> int:
    return sum(isinstance(node, Load) for expr in expressions(stmt) for node in walk(expr))


def temporaries(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    """The shape of each temporary array that the kernel still has."""
    return {tensor.label: tuple(e.constant for e in tensor.shape) for tensor in kernel.placement}
