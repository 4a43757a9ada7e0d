"""Computations of a few cells, built by hand, and what tests do with all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from arrayjit.devices import Backend, Code, Context, Stream, compile
from arrayjit.errors import Location
from arrayjit.ir.assign import ArrayParam, Assign, Check, Computation, IndexParam, Note
from arrayjit.ir.dtype import BOOL, F64
from arrayjit.ir.expr import Apply, Cast, Const, Expr, Index, Load
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.queues import WorkerQueue

N = 8

WORKERS = ("llvm", "c")
"""Targets whose devices work on their own."""


def vector(label: str, size: int = N) -> Tensor:
    return Tensor.of(label, (size,), F64)


def add(one: Expr, two: Expr) -> Expr:
    return Apply(op("add"), (one, two), F64)


def cells(into: Tensor, *operands: Tensor | float) -> Assign:
    """`into = the sum of the operands`, cell by cell."""
    i = Symbol("i")
    terms = [Load(x, (Affine.of(i),)) if isinstance(x, Tensor) else Const(x, F64) for x in operands]
    value: Expr = terms[0]
    for term in terms[1:]:
        value = add(value, term)
    return Assign(((i, into.shape[0]),), into, (Affine.of(i),), value)


def incremented(x: Tensor, by: float = 1.0, name: str = "incremented") -> Computation:
    """`x += by`."""
    return Computation(name, (ArrayParam(x, "update"),), (cells(x, x, by),))


def summed(out: Tensor, *operands: Tensor, name: str = "summed") -> Computation:
    """`out = the sum of the operands`."""
    params = (*(ArrayParam(x, "read") for x in operands), ArrayParam(out, "write"))
    return Computation(name, params, (cells(out, *operands),))


def merged(x: Tensor, slots: int = 1, name: str = "merged") -> Computation:
    """`x += what the merge buffers hold`, each of which must be of `x`."""
    buffers = [Tensor.of(f"{x.label}_{slot}", (x.size,), F64) for slot in range(slots)]
    params = (
        ArrayParam(x, "update"),
        *(ArrayParam(m, "merge", x, slot) for slot, m in enumerate(buffers)),
    )
    return Computation(name, params, (cells(x, x, *buffers),))


def stamped(out: Tensor, low: int = 0, high: int = 100) -> tuple[Symbol, Computation]:
    """`out = step`, a static symbol."""
    step, i = Symbol("step", SymbolKind.STATIC, low, high), Symbol("i")
    value = Cast(Index(Affine.of(step)), F64)
    body = Assign(((i, out.shape[0]),), out, (Affine.of(i),), value)
    return step, Computation("stamped", (ArrayParam(out, "write"), IndexParam(step)), (body,))


def guarded(x: Tensor) -> Computation:
    """`x += 1`, or IndexError when a cell is negative."""
    i = Symbol("i")
    is_fine = Apply(op("greater_equal"), (Load(x, (Affine.of(i),)), Const(0.0, F64)), BOOL)
    check = Check(((i, x.shape[0]),), is_fine, "IndexError", "a negative cell", Location(__file__, 1))
    return Computation("guarded", (ArrayParam(x, "update"),), (Note("guarded"), check, cells(x, x, 1.0)))


def code(backend: Backend, computation: Computation) -> Code:
    made = compile(backend, computation, shared=True)
    assert isinstance(made, Code)
    return made


def value(context: Context, tensor: Tensor) -> np.ndarray:
    """The tensor's values, once all work on the context's stream is over."""
    result = np.full(tensor.size, np.nan)
    assert context.to_host(tensor, result)
    context.stream.await_()
    return result


class Failed(Exception):
    """What a test's own task raises."""


def fail() -> None:
    raise Failed("as the test asked")


def set_when_awaited(gate: threading.Event, queue: WorkerQueue) -> None:
    """Set the gate once somebody waits for the queue's work."""

    def watch() -> None:
        while not queue._watchers:
            time.sleep(0.001)
        gate.set()

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def held_up(*streams: Stream) -> Iterator[threading.Event]:
    """The streams do nothing inside, unless the event is set. Only for streams that work on their own."""
    gate = threading.Event()
    for stream in streams:
        stream.submit(gate.wait, "gate")
    try:
        yield gate
    finally:
        gate.set()
