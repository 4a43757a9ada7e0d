"""CUDA C from a Kernel, without headers, and the plan of launches.

    extern "C" __global__ void __launch_bounds__(256) name_0(const float *__restrict__ x, ..., int64_t n)

There is a function for each grid. It gets the arrays that it reaches, from the caller or the workspace, the
symbols that it mentions and, in a program that may raise, the status word: it looks there first. Arithmetic
is the IR's: the source must be compiled without contraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import gcd

from ..errors import CompilerBug, Location
from ..frozen import slotted
from ..ir.dtype import BF16, BOOL, DTYPES, F16, F32, F64
from ..ir.expr import Expr, Gather, Index, Load
from ..ir.index import Affine, Symbol
from ..ir.launches import (
    Argument,
    Blocks,
    DeviceProgram,
    Launch,
    Number,
    Pointer,
    Repeat,
    RepeatWhile,
    StatusWord,
    Step,
    Workspace,
)
from ..ir.loops import (
    Bind,
    Comment,
    Copy,
    Fill,
    For,
    Kernel,
    LoopKind,
    Multiply,
    PlaceKind,
    Prefetch,
    Raise,
    Stmt,
    Store,
    While,
    walk_statements,
    written,
)
from ..ir.params import ArrayParam
from ..ir.tensor import Tensor
from ..ir.walk import expressions, nodes_in, walk
from .c_body import Body, LoopPrinter
from .c_memory import Memory
from .c_text import Dialect, Operand, Writer, commented
from .cuda_atomics import accumulate
from .cuda_loops import COUNTED, block_loop, count_type, counted_loop, dealt_body, unrolled_loop
from .cuda_matrices import tensor_cores
from .cuda_rounds import is_branch, is_guarded
from .cuda_wide import wide_loop
from .failures import raises

__all__ = ["CUDA", "has_tensor_cores", "program"]

_HEAD = """\
#pragma nv_diag_suppress 177
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
"""

CUDA = Dialect(
    name="CUDA C",
    types={dtype: "uint8_t" if dtype is BOOL else dtype.c for dtype in DTYPES},
    flag="bool",
    local="static __device__ __forceinline__",
    restrict="__restrict__",
    specials={
        F32: ("__int_as_float(0x7f800000)", "__int_as_float(0x7fc00000)"),
        F64: ("__longlong_as_double(0x7ff0000000000000LL)", "__longlong_as_double(0x7ff8000000000000LL)"),
    },
    reinterpreted=lambda source, target: f"union {{ {source} from; {target} to; }} u = {{x}}; return u.to;",
    functions={"popcount": "__popcll"},
    leave=lambda status: f"{{ if (threadIdx.x == 0) *status = {status}; return; }}",
    barrier="__syncthreads();",
    prefetch="",
    converted={
        (F16, F32): 'float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y;',
        (F32, F16): 'uint16_t y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y;',
        (BF16, F32): "return __uint_as_float((uint32_t)x << 16);",
        (F32, BF16): 'uint16_t y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y;',
    },
)


BUSY_THREADS = 512
"""So many threads keep a processor busy; each may have 128 of its registers."""

OWN_BYTES = 384
"""What a thread may own of these, which leaves 32 for what it computes with."""

_LOOPS: Mapping[LoopKind, LoopPrinter] = {
    LoopKind.BLOCK: block_loop,
    LoopKind.VECTOR: wide_loop,
    **dict.fromkeys(COUNTED, counted_loop),
    LoopKind.UNROLLED: unrolled_loop,
}

SHARED_ALIGNMENT = 16
"""Of arrays that threads share, in bytes: they are read and written so many at once."""

_OF_A_BLOCK = (PlaceKind.SHARED, PlaceKind.STACK, PlaceKind.OWN)
"""Memory that the host does not know."""


def has_tensor_cores(kernel: Kernel) -> bool:
    """Whether tensor cores form some of its products."""
    return any(isinstance(stmt, Multiply) for stmt in walk_statements(kernel.body))


def program(kernel: Kernel, arch: str) -> DeviceProgram:
    """The source of a kernel's launches, and their plan."""
    emission = _Emission(kernel, Writer(CUDA), bool(raises(kernel)))
    plan = emission.steps(kernel.body)
    prelude = [f"{text}\n" for text in emission.writer.prelude.values()]
    return DeviceProgram("\n".join([_HEAD, *prelude, *emission.functions]), arch, plan)


@slotted
class _Emission:
    """`functions` are the lines of what has been printed."""

    kernel: Kernel
    writer: Writer
    may_fail: bool
    functions: list[str] = field(default_factory=list)
    count: int = 0

    def steps(self, body: tuple[Stmt, ...], guards: tuple[Tensor, ...] = ()) -> tuple[Step, ...]:
        """What the host does. Kernels do nothing unless all `guards` hold."""
        found: list[Step] = []
        for stmt in body:
            match stmt:
                case For(kind=LoopKind.GRID):
                    found.append(self.launch(stmt, guards))
                case For(symbol=symbol, lo=lo, hi=hi, step=step):
                    found.append(Repeat(symbol, lo, hi, self.steps(stmt.body, guards), step))
                case While(condition=Load(tensor=cell)):
                    found.extend(self.repeated(stmt, cell, guards))
                case Comment():
                    pass
                case _:
                    raise CompilerBug(f"the host cannot run a {type(stmt).__name__}", stage="targets/cuda")
        return tuple(found)

    def repeated(self, loop: While, cell: Tensor, guards: tuple[Tensor, ...]) -> tuple[Step, ...]:
        """A loop that ends once a cell is false."""
        guarded = is_guarded(loop, self.kernel.placement)
        if guarded:
            guards = (*guards, cell)
        body = self.steps(loop.body, guards)
        if is_branch(loop, self.kernel.placement):
            return body
        where = self.address(cell)
        assert isinstance(where, (Pointer, Workspace))
        return (RepeatWhile(self.steps(loop.test, guards), where, body, is_guarded=guarded),)

    def address(self, storage: Tensor) -> Argument:
        """Where a storage begins."""
        arrays = [param.tensor for param in self.kernel.params if isinstance(param, ArrayParam)]
        if storage in arrays:
            return Pointer(arrays.index(storage))
        place = self.kernel.placement[storage]
        if place.kind is not PlaceKind.ARENA:
            raise CompilerBug(f"{storage} is not in memory that all blocks see", stage="targets/cuda")
        return Workspace(place.offset)

    def launch(self, grid: For, guards: tuple[Tensor, ...]) -> Launch:
        """A grid as a function of its own."""
        number, self.count = self.count, self.count + 1
        name = self.writer.fresh(f"{self.kernel.name}_{number}", lasting=True)
        function = _Function(self, grid, guards)
        if function.loc is not None:
            self.functions.append(commented(f"at {function.loc}"))
        threads = function.threads
        count = grid.hi - grid.lo
        each = grid.step * grid.lanes
        # A block that is alone has a processor's registers to itself, which NVRTC takes only where told.
        is_alone = count.is_constant and count.offset <= each
        together = 1 if is_alone else BUSY_THREADS // threads if function.shares_a_processor else None
        bounds = f"__launch_bounds__({threads}{f', {together}' if together else ''})"
        self.functions += function.writer.function(
            f'extern "C" __global__ void {bounds} {name}({", ".join(function.heads)})'
        )
        return Launch(name, (Blocks(count, each),), (threads,), tuple(function.arguments), loc=function.loc)


class _Function:
    """The function of a grid: its `heads` declare what it gets as `arguments`."""

    def __init__(self, emission: _Emission, grid: For, guards: tuple[Tensor, ...]) -> None:
        self.kernel = emission.kernel
        self.grid = grid
        self.guards = guards
        self.writer = Writer(CUDA, beside=emission.writer)
        self.heads: list[str] = []
        self.arguments: list[Argument] = []
        self.own_bytes = 0
        inside = list(walk_statements(grid.body))
        blocks = [stmt.lanes for stmt in inside if isinstance(stmt, For) and stmt.kind is LoopKind.BLOCK]
        self.threads = max(blocks, default=grid.lanes)
        self.is_shared = bool(blocks)
        self.has_matrices = any(isinstance(stmt, Multiply) for stmt in inside)
        locs = [stmt.loc for stmt in inside if isinstance(stmt, (Store, Raise)) and stmt.loc is not None]
        self.loc: Location | None = locs[0] if locs else None
        with self.writer.scope():
            self.print(emission, inside)

    @property
    def shares_a_processor(self) -> bool:
        """Is what a thread owns so much that NVRTC might let too few of them share a processor, and so little
        that it need not? What tensor cores multiply is in registers as well."""
        few = 0 < self.own_bytes <= OWN_BYTES and not self.has_matrices
        return few and self.threads <= BUSY_THREADS

    def print(self, emission: _Emission, inside: Sequence[Stmt]) -> None:
        writer = self.writer
        pointers: dict[Tensor, str] = {}
        changed = set(map(written, inside))
        for storage in _storages(inside):
            pointers[storage] = self.memory_of(emission, storage, storage in changed)
        symbols: dict[Symbol, Operand] = {}
        for symbol in _outer_symbols(self.grid, inside):
            symbols[symbol] = name = writer.fresh(symbol.hint)
            self.heads.append(f"int64_t {name}")
            self.arguments.append(Number(Affine.of(symbol)))
        for guard in self.guards:
            self.look(emission, guard, pointers)
        if self.threads > 1 and not changed.isdisjoint(self.guards):
            writer.emit(CUDA.barrier)
        if emission.may_fail:
            self.heads.append("uint64_t *status")
            self.arguments.append(StatusWord())
            writer.emit("if (*status) return;")
            if self.threads > 1 and any(isinstance(stmt, Raise) for stmt in inside):
                writer.emit(CUDA.barrier)
        memory = Memory(writer, self.kernel, pointers)
        memory.symbols.update(symbols)
        body = Body(writer, memory, self.kernel, _LOOPS, tensor_cores=tensor_cores, accumulate=accumulate)
        self.body(body)

    def look(self, emission: _Emission, guard: Tensor, pointers: Mapping[Tensor, str]) -> None:
        """Leave where a guard does not hold."""
        name = pointers.get(guard)
        if name is None:
            name = self.writer.fresh(guard.label)
            self.heads.append(f"const uint8_t *{name}")
            self.arguments.append(emission.address(guard))
        self.writer.emit(f"if (!*{name}) return;")

    def memory_of(self, emission: _Emission, storage: Tensor, is_written: bool) -> str:
        """The name of a storage's first cell."""
        name = self.writer.fresh(storage.label)
        kind = CUDA.types[storage.dtype]
        place = self.kernel.placement.get(storage)
        if place is not None and place.kind in _OF_A_BLOCK:
            size = storage.size
            if place.kind is PlaceKind.OWN:
                size //= storage.shape[0].constant
                self.own_bytes += size * storage.dtype.itemsize
            where = ""
            if place.kind is PlaceKind.SHARED:
                # A compiler that knows of an alignment may read past an end that is not aligned so.
                where = f"__shared__ __align__({gcd(SHARED_ALIGNMENT, storage.nbytes)}) "
            self.writer.frame.append(f"{where}{kind} {name}[{max(size, 1)}];")
            return name
        self.arguments.append(emission.address(storage))
        # A compiler may move what is read by a restrict pointer over a barrier, behind which
        # another thread has stored it.
        alone = not is_written or not self.is_shared
        self.heads.append(f"{'' if is_written else 'const '}{kind} *{'__restrict__ ' if alone else ''}{name}")
        return name

    def body(self, body: Body) -> None:
        grid, writer, memory = self.grid, self.writer, body.memory
        lo, hi = memory.affine(grid.lo), memory.affine(grid.hi)
        kind = count_type(body, hi + grid.lanes * grid.step if isinstance(hi, int) else None)
        name = writer.fresh(grid.symbol.hint)
        number = "blockIdx.x" if grid.lanes == 1 else f"blockIdx.x * {grid.lanes} + threadIdx.x"
        if kind == "int64_t" and grid.lanes > 1:
            number = f"({kind})blockIdx.x * {grid.lanes} + threadIdx.x"
        first = f"({kind})({number})" if grid.step == 1 else f"({kind})({number}) * {grid.step}"
        memory.symbols[grid.symbol] = name
        start = f"{lo} + {first}" if lo != 0 else first
        writer.emit(f"const {kind} {name} = {start};")
        trips = grid.trips
        if grid.lanes > 1 and (trips is None or trips % grid.lanes):
            writer.emit(f"if ({name} >= {hi}) return;")
        dealt_body(body, grid.body)


def _storages(body: Sequence[Stmt]) -> list[Tensor]:
    """The storages that a body reaches, in order."""
    found: dict[Tensor, None] = {}
    for stmt in body:
        for node in nodes_in((stmt,)):
            if isinstance(node, (Load, Gather)):
                found[node.tensor.storage] = None
        match stmt:
            case Store(tensor=tensor) | Fill(tensor=tensor):
                found[tensor.storage] = None
            case Copy(into=into, source=source):
                found.update({into.storage: None, source.storage: None})
            case Multiply(total=total, left=left, right=right):
                found.update({total: None, left: None, right: None})
            case _:
                pass
    return list(found)


def _outer_symbols(grid: For, body: Sequence[Stmt]) -> list[Symbol]:
    """The symbols that a grid needs from outside, in order."""
    own = {grid.symbol, *(stmt.symbol for stmt in body if isinstance(stmt, (For, Bind)))}
    found: dict[Symbol, None] = {}

    def note(*values: Affine) -> None:
        found.update((symbol, None) for value in values for symbol in value.symbols if symbol not in own)

    note(grid.lo, grid.hi)
    for stmt in body:
        for expr in expressions(stmt):
            note(*_numbers(expr))
        match stmt:
            case Store(tensor=tensor, index=index) | Prefetch(tensor=tensor, index=index):
                note(*index, *_strides(tensor))
            case Copy(index=index, source=source, at=at):
                note(*index, *at, *_strides(source))
            case Multiply(stage=stage):
                note(stage)
            case Fill(tensor=tensor):
                note(*tensor.shape)
            case For(lo=lo, hi=hi):
                note(lo, hi)
            case _:
                pass
    return list(found)


def _numbers(expr: Expr) -> Iterator[Affine]:
    """What an expression computes of symbols."""
    for node in walk(expr):
        match node:
            case Load(tensor=tensor, index=index):
                yield from (*index, *_strides(tensor))
            case Gather(tensor=tensor):
                yield from _strides(tensor)
            case Index(value=value):
                yield value
            case _:
                pass


def _strides(tensor: Tensor) -> tuple[Affine, ...]:
    return tensor.element_strides()
