"""Recording one run of the user's function as a Computation.

A `Trace` is open while the user's function runs; symbolic arrays append assignments to it in program
order. It is found through a context variable, so several threads may trace at once.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import LeakedArrayError, Location
from ..ir.assign import ArrayParam, Assign, Check, Computation, Loop, Param, Statement
from ..ir.dtype import DType, from_numpy
from ..ir.expr import Expr
from ..ir.index import Affine, Extent, Symbol, affine
from ..ir.ops import Op
from ..ir.tensor import Tensor
from .foreign import element_strides
from .state import Watch, has_state
from .view import View

__all__ = [
    "TEMPORARY",
    "Trace",
    "current_trace",
    "location_of",
    "recording",
    "tensor_like",
    "tracing",
    "user_location",
]

_NOT_THE_USERS = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.dirname(np.__file__) + os.sep,
    "<frozen ",  # the interpreter's own start-up and import code
)
TEMPORARY = "t"
"""The label of arrays that the user did not name."""

_LOOP_NAMES = "ijklmnpq"

Body = Callable[[tuple[Affine, ...]], Expr]


def user_location() -> Location | None:
    """The innermost line that is neither arrayjit's nor NumPy's."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USERS):
            return Location(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def location_of(error: BaseException) -> Location | None:
    """The innermost line, neither arrayjit's nor NumPy's, that an exception passed through."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_NOT_THE_USERS):
            found = Location(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next
    return found


class Trace:
    """The record of one run. `captured` are arrays of the user's that the function met by other ways
    than its arguments (globals, closures): parameters that read and write the user's own memory.
    `namespace` is the view of names that the function runs with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_open = True
        self.statements: list[Statement] = []
        self.captured: list[tuple[Tensor, np.ndarray]] = []
        self.namespace: Any = None
        self._fingerprints: list[int] = []
        self._written: set[Tensor] = set()
        self._flat: dict[Tensor, Tensor] = {}
        self._known: dict[Tensor, np.ndarray] = {}
        self._watched: list[Watch] = []

    def emit(self, statement: Statement) -> None:
        self.statements.append(statement)
        if isinstance(statement, Assign):
            self._written.add(statement.into.storage)
            self._known.pop(statement.into.storage, None)

    def watch(self, value: Any) -> None:
        """Remember the state of an object of the user's, of a method that of its object."""
        value = getattr(value, "__self__", value)
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

    def capture(self, array: np.ndarray) -> Tensor:
        """The parameter that stands for an array of the user's, one for each array object."""
        for tensor, known in self.captured:
            if known is array:
                return tensor
        tensor = tensor_like(array, f"captured{len(self.captured)}")
        self.captured.append((tensor, array))
        self._fingerprints.append(_fingerprint(array))
        return tensor

    def know(self, tensor: Tensor, numbers: np.ndarray) -> None:
        """Note that the tensor holds these numbers until it is written again."""
        self._known[tensor] = numbers

    def known(self, view: View) -> np.ndarray | None:
        """The numbers of a view of a constant that the function made, usable as an index; else None."""
        numbers = self._known.get(view.tensor.storage)
        if numbers is None:
            return None
        if view.tensor.base is not None:
            numbers = numbers.reshape(-1)
        shape = tuple(extent.constant for extent in view.shape)
        places = dict(zip(view.axes, np.indices(shape, sparse=True), strict=True))
        index = tuple(part.offset + sum(c * places[s] for c, s in part.terms) for part in view.index)
        return np.broadcast_to(numbers[index], shape)

    def flat(self, tensor: Tensor) -> Tensor:
        """The flat form of a tensor: its memory as one row-major axis."""
        if tensor.base is not None:
            return tensor
        if tensor not in self._flat:
            strides = zip(tensor.shape, tensor.element_strides(), strict=True)
            cells = 1 + sum((extent.constant - 1) * abs(stride.constant) for extent, stride in strides)
            self._flat[tensor] = Tensor(tensor.label, affine((cells,)), tensor.dtype, base=tensor)
        return self._flat[tensor]

    @contextmanager
    def loop(self, lo: Extent, hi: Extent) -> Iterator[Affine]:
        """Statements recorded inside stand in a loop over the index that this yields."""
        symbol = Symbol("k")
        outer, self.statements = self.statements, []
        try:
            yield Affine.of(symbol)
            body = tuple(self.statements)
        finally:
            self.statements = outer
        self.emit(Loop(symbol, Affine.of(lo), Affine.of(hi), 1, body, user_location()))

    def changed_while_recorded(self) -> list[np.ndarray]:
        """The captured arrays whose numbers plain Python code changed during the run: the record cannot
        tell which reads came before."""
        pairs = zip(self.captured, self._fingerprints, strict=True)
        return [array for (_, array), before in pairs if _fingerprint(array) != before]

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
        for `q` over the extents `over`, starting from `initial`. Returns the whole tensor's view, whose
        axes lie in memory in `order` (None: C's)."""
        target = View.fresh(label, shape, dtype, order)
        self.store(target, body, over=over, accum=accum, initial=initial, contract=contract)
        return target

    def store(
        self,
        target: View,
        body: Body,
        *,
        over: Sequence[Extent] = (),
        accum: Op | None = None,
        initial: Expr | None = None,
        contract: bool = False,
    ) -> None:
        """Write every cell of a view: `target[p] = body(p)`; reductions as in `compute`."""
        if Affine.of(0) in target.shape:
            return
        order = target.axis_order()
        loops = _loops((*(target.shape[axis] for axis in order), *affine(over)))
        symbols = [symbol for symbol, _ in loops]
        position = affine(
            (*(symbols[order.index(axis)] for axis in range(target.rank)), *symbols[target.rank :])
        )
        index = target.at(position[: target.rank])
        value = body(position)
        self.emit(Assign(loops, target.tensor, index, value, accum, initial, contract, user_location()))

    def check(self, shape: Sequence[Extent], condition: Body, exception: str, message: str) -> None:
        """Leave with `exception` at run time unless `condition` holds for every position in `shape`."""
        loops = _loops(affine(shape))
        position = affine(symbol for symbol, _ in loops)
        self.emit(Check(loops, condition(position), exception, message, user_location()))

    def finish(self, params: Sequence[Param]) -> Computation:
        """The record as a Computation: the arguments' parameters, then the captured arrays'."""
        captured = tuple(
            ArrayParam(tensor, "update" if self.is_written(tensor) else "read") for tensor, _ in self.captured
        )
        return Computation(self.name, (*params, *captured), tuple(self.statements))


def _fingerprint(array: np.ndarray) -> int:
    return zlib.crc32(array.tobytes())


def tensor_like(array: np.ndarray, label: str) -> Tensor:
    """A parameter with the array's shape, dtype and layout."""
    dtype, shape = from_numpy(array.dtype), affine(array.shape)
    if array.flags.c_contiguous:
        return Tensor(label, shape, dtype)
    return Tensor(label, shape, dtype, affine(element_strides(array)))


def _loops(extents: tuple[Affine, ...]) -> tuple[tuple[Symbol, Affine], ...]:
    return tuple(
        (Symbol(_LOOP_NAMES[position] if position < len(_LOOP_NAMES) else f"i{position}"), extent)
        for position, extent in enumerate(extents)
    )


_current: ContextVar[Trace | None] = ContextVar("arrayjit_trace", default=None)


def current_trace() -> Trace:
    """The open trace. Raises LeakedArrayError when none is open."""
    trace = _current.get()
    if trace is None or not trace.is_open:
        raise LeakedArrayError(
            "a symbolic array was used outside the jitted function that made it",
            loc=user_location(),
            fix="return it from the function, or keep np.asarray(result) of a finished call",
        )
    return trace


def tracing() -> bool:
    """Whether a trace is open in this context."""
    trace = _current.get()
    return trace is not None and trace.is_open


@contextmanager
def recording(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one while the user's function runs."""
    token = _current.set(trace)
    try:
        yield trace
    finally:
        trace.is_open = False
        _current.reset(token)
