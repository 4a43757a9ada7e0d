"""What data parallelism compiles: a step on a shard of the batch, the sum of two shards' results, an update.

Each is a traced function, or none, with assignments behind it that put the results where they are wanted. A
program knows its tensors by the places of the leaves of its arguments and results; which buffers those are is
said when it is linked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np

from ..backends import backend
from ..compile import compile
from ..errors import DTypeError, ShapeError, UnsupportedError
from ..frozen import frozen, frozen_by_identity
from ..ir.assign import ArrayParam, Assign, Computation
from ..ir.code import Caps, Code
from ..ir.dtype import BOOL, F64, I64, real_from_numpy
from ..ir.expr import Apply, Cast, Expr, Load, constant, dtype_of
from ..ir.index import Affine, Symbol, affine
from ..ir.ops import op
from ..ir.tensor import Tensor
from ..runtime.device import Device
from ..tracer.calls.binding import (
    ArgumentOutput,
    ArgumentSource,
    CapturedSource,
    FreshSource,
    Output,
    RepeatedOutput,
    ScalarOutput,
    SizedOutput,
    ViewOutput,
    numbers_in,
)
from ..tracer.calls.function import Traced, trace_function
from ..tracer.calls.signature import Spec, is_leaf
from ..tracer.record.guards import guards_hold
from ..tracer.record.tree import Leaf, Node, Static, Structure, flatten, paths, statics, unflatten

__all__ = [
    "Layout",
    "Program",
    "Reduce",
    "arrays_of",
    "merge_program",
    "parts_of",
    "step_program",
    "update_program",
]

Reduce = Literal["mean", "sum"]


def arrays_of(value: Any) -> tuple[list[np.ndarray], Structure]:
    """The leaves of a nested value as arrays of native byte order, and its structure."""
    leaves, structure = flatten(value, is_leaf)
    for leaf in leaves:
        if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, np.memmap):
            raise UnsupportedError(
                f"a {type(leaf).__name__} is a subclass of ndarray that is not supported",
                fix="pass np.asarray(...) of it",
            )
    arrays = map(np.asarray, leaves)
    return [array.astype(array.dtype.newbyteorder("="), copy=False) for array in arrays], structure


@frozen
class Layout:
    """What a nested value is but for its numbers: its structure, and the shape and dtype of each leaf."""

    structure: Structure
    leaves: tuple[Spec, ...]

    @staticmethod
    def of(value: Any) -> Layout:
        """The layout of nested arrays and numbers."""
        arrays, structure = arrays_of(value)
        return Layout(structure, tuple(Spec(array.shape, array.dtype) for array in arrays))

    @staticmethod
    def tuple_of(parts: Sequence[Layout]) -> Layout:
        """The layout of a tuple of values."""
        structure = Node(tuple, (), tuple(part.structure for part in parts))
        return Layout(structure, tuple(leaf for part in parts for leaf in part.leaves))

    def tensors(self, label: str) -> tuple[Tensor, ...]:
        """A new tensor for each leaf."""
        labels = paths(self.structure, label)
        return tuple(
            Tensor.of(name, leaf.shape, real_from_numpy(leaf.dtype))
            for name, leaf in zip(labels, self.leaves, strict=True)
        )

    def value(self, leaves: Sequence[Any]) -> Any:
        """The value that has these leaves."""
        return unflatten(self.structure, leaves)


@frozen_by_identity
class Program:
    """A computation; `arguments` are the tensors of the leaves of the traced function's arguments, `results`
    and `layout` those of what it returns. `captured` are arrays that it met by another way."""

    computation: Computation
    arguments: tuple[Tensor, ...] = ()
    results: tuple[Tensor, ...] = ()
    layout: Layout = Layout(Static(None), ())
    captured: tuple[tuple[Tensor, np.ndarray], ...] = ()
    traced: Traced | None = None
    _codes: dict[tuple[str, str, Caps], Code] = field(default_factory=dict)

    def is_valid(self) -> bool:
        """Whether the names outside the function that the trace baked in are bound as they were."""
        return self.traced is None or guards_hold(self.traced.guards)

    def code(self, device: Device) -> Code:
        """The program emitted for a device, once for all that are alike."""
        chosen = backend(device.driver.name).fitted(device)
        kind = chosen.name, chosen.target.cpu, chosen.target.caps()
        code = self._codes.get(kind)
        if code is None:
            made = compile(chosen, self.computation, shared=True)
            assert isinstance(made, Code)
            code = self._codes[kind] = made
        return code


def step_program(
    step: Callable[..., Any], parameters: Layout, shard: Layout, reduce: Reduce, weight: float
) -> Program:
    """`step` on a shard, whose layout is that of a tuple; what is to be averaged is multiplied by `weight`.

    Raises UnsupportedError if it writes its arguments, ShapeError if it returns neither gradients nor a
    value and gradients.
    """
    assert isinstance(shard.structure, Node)
    given = Node(tuple, (), (parameters.structure, *shard.structure.children))
    traced, arguments = _traced(step, Layout(given, (*parameters.leaves, *shard.leaves)))
    for source in traced.sources:
        if isinstance(source, ArgumentSource) and source.written:
            raise UnsupportedError(
                f"step writes its argument {source.label}",
                fix="compute new arrays in step; what is to change is written by update",
            )
    leaves = [_leaf_of(output, traced) for output in traced.outputs]
    values = [_share(leaf.cell, reduce, weight) for leaf in leaves]
    specs = tuple(Spec(leaf.shape, dtype_of(value).numpy) for leaf, value in zip(leaves, values, strict=True))
    layout = Layout(traced.results, specs)
    _check_result(layout, parameters)
    results = layout.tensors("result")
    body = [leaf.assigned(value, to) for leaf, value, to in zip(leaves, values, results, strict=True)]
    return Program(
        _extended(traced, results, body), arguments, results, layout, _captured(traced, "step"), traced
    )


def merge_program(tensors: Sequence[Tensor]) -> Program:
    """Adds to each tensor what the merge buffer of its number holds."""
    params: list[ArrayParam] = []
    body: list[Assign] = []
    for slot, tensor in enumerate(tensors):
        merged = Tensor(f"{tensor.label}_merged", tensor.shape, tensor.dtype)
        axes = tuple(Symbol("i") for _ in tensor.shape)
        cells = affine(axes)
        total = Apply(op("add"), (Load(tensor, cells), Load(merged, cells)), tensor.dtype)
        params += ArrayParam(tensor, "update"), ArrayParam(merged, "merge", tensor, slot)
        body.append(Assign(tuple(zip(axes, tensor.shape, strict=True)), tensor, cells, total))
    return Program(Computation("merge", tuple(params), tuple(body)))


def update_program(
    update: Callable[..., Any], parameters: Layout, gradients: Layout, state: Sequence[Layout]
) -> Program:
    """`update`, with what it returns written into the parameters and the state that it was called with.

    Raises ShapeError or DTypeError if it returns anything else than those.
    """
    given = Layout.tuple_of((parameters, gradients, *state))
    traced, arguments = _traced(update, given)
    wanted = Layout.tuple_of((parameters, *state)) if state else parameters
    if traced.results != wanted.structure:
        raise ShapeError(
            "update returns something else than new parameters" + (" and state" if state else ""),
            details=(f"it returns {_shown(traced.results)}", f"it must return {_shown(wanted.structure)}"),
            fix="return the parameters" + (" and each part of the state, as a tuple" if state else ""),
        )
    first, last = len(parameters.leaves), len(parameters.leaves) + len(gradients.leaves)
    changed = (*arguments[:first], *arguments[last:])
    before: list[Assign] = []
    after: list[Assign] = []
    for output, to, name in zip(traced.outputs, changed, paths(wanted.structure, "new"), strict=True):
        leaf = _leaf_of(output, traced)
        _check_leaf(name, Spec(leaf.shape, dtype_of(leaf.cell).numpy), _spec_of(to))
        if isinstance(output, ArgumentOutput) and arguments[output.leaf] is to:
            continue
        # What is returned may be a view of what is about to be written.
        kept = Tensor(name, to.shape, to.dtype)
        before.append(leaf.assigned(leaf.cell, kept))
        after.append(leaf.assigned(Load(kept, leaf.axes), to))
    computation = _extended(traced, (), [*before, *after], changed)
    return Program(computation, arguments, captured=_captured(traced, "update"), traced=traced)


@frozen
class _Cells:
    """A leaf of a result: the cell at `axes`, for `axes` within `shape`."""

    shape: tuple[int, ...]
    symbols: tuple[Symbol, ...]
    cell: Load

    @property
    def axes(self) -> tuple[Affine, ...]:
        return affine(self.symbols)

    def assigned(self, value: Expr, to: Tensor) -> Assign:
        """`to[axes] = value` for all of them."""
        return Assign(tuple(zip(self.symbols, affine(self.shape), strict=True)), to, self.axes, value)


def _leaf_of(output: Output, traced: Traced) -> _Cells:
    """Where the cells of a leaf lie."""
    tensors = [param.tensor for param in traced.computation.params if isinstance(param, ArrayParam)]
    match output:
        case RepeatedOutput(leaf=leaf):
            return _leaf_of(traced.outputs[leaf], traced)
        case ArgumentOutput(leaf=leaf):
            sources = enumerate(traced.sources)
            return _whole(
                next(tensors[n] for n, s in sources if isinstance(s, ArgumentSource) and s.leaf == leaf)
            )
        case ScalarOutput(param=param, cell=cell):
            return _Cells((), (), Load(tensors[param], affine(cell)))
        case ViewOutput(param=param, shape=None):
            source = traced.sources[param]
            return _whole(tensors[param], source.order if isinstance(source, FreshSource) else None)
        case ViewOutput(param=param, corner=corner, steps=steps, flat=flat):
            tensor = tensors[param]
            if flat:
                tensor = Tensor(tensor.label, affine((tensor.size,)), tensor.dtype, base=tensor)
            symbols = tuple(Symbol("i") for _ in steps)
            index = [Affine.of(start) for start in numbers_in((), corner)]
            for symbol, step in zip(symbols, steps, strict=True):
                index = [place + symbol * by for place, by in zip(index, step, strict=True)]
            return _Cells(numbers_in((), output.shape or ()), symbols, Load(tensor, tuple(index)))
        case SizedOutput():
            raise UnsupportedError(
                "the function returns an array whose size only the run knows",
                fix="return arrays of a size that follows from the arguments' shapes",
            )


def _whole(tensor: Tensor, order: Sequence[int] | None = None) -> _Cells:
    """All of a tensor, whose axis `k` is axis `order[k]` of what is handed out; by default axis `k`."""
    order = range(tensor.rank) if order is None else order
    cells = tuple(Symbol("i") for _ in order)
    axes = [order.index(axis) for axis in range(len(order))]
    shape = tuple(tensor.shape[axis].constant for axis in axes)
    return _Cells(shape, tuple(cells[axis] for axis in axes), Load(tensor, affine(cells)))


def _share(cell: Load, reduce: Reduce, weight: float) -> Expr:
    """What a shard contributes to a result."""
    if reduce == "sum":
        return Cast(cell, I64) if cell.tensor.dtype is BOOL else cell
    number: Expr = cell if cell.tensor.dtype.is_float else Cast(cell, F64)
    dtype = dtype_of(number)
    return number if weight == 1 else Apply(op("multiply"), (number, constant(weight, dtype)), dtype)


def _traced(function: Callable[..., Any], given: Layout) -> tuple[Traced, tuple[Tensor, ...]]:
    """The function traced for arguments of a layout, and the tensor of each leaf of them."""
    traced = trace_function(function, given.value(given.leaves), {})
    tensors: dict[int, Tensor] = {}
    for param, source in zip(traced.computation.params, traced.sources, strict=True):
        if isinstance(param, ArrayParam) and isinstance(source, ArgumentSource):
            tensors[source.leaf] = param.tensor
    return traced, tuple(tensors[leaf] for leaf in range(len(given.leaves)))


def _captured(traced: Traced, role: str) -> tuple[tuple[Tensor, np.ndarray], ...]:
    """The arrays that a function met by another way than its arguments."""
    found: list[tuple[Tensor, np.ndarray]] = []
    for param, source in zip(traced.computation.params, traced.sources, strict=True):
        if isinstance(param, ArrayParam) and isinstance(source, CapturedSource):
            if not isinstance(source.array, np.ndarray):
                raise UnsupportedError(
                    f"{role} uses an array on a device that is no argument of it",
                    fix="pass it among the parameters, the batch or the state",
                )
            if source.written or param.tensor.strides is not None:
                raise UnsupportedError(
                    f"{role} {'writes' if source.written else 'reads'} an array that is no argument of it"
                    + ("" if source.written else " and not C-ordered"),
                    details=(f"{source.array.dtype} array of shape {source.array.shape}",),
                    fix="pass it among the parameters, the batch or the state",
                )
            found.append((param.tensor, source.array))
    return tuple(found)


def _extended(
    traced: Traced, results: Sequence[Tensor], body: Sequence[Assign], changed: Sequence[Tensor] = ()
) -> Computation:
    """The traced computation with more statements: what it made is temporary, `results` are the results, and
    `changed` among its arguments are written."""
    computation = traced.computation
    params = [
        ArrayParam(param.tensor, "update") if param.tensor in changed else param
        for param, source in zip(computation.params, traced.sources, strict=True)
        if isinstance(param, ArrayParam) and not isinstance(source, FreshSource)
    ]
    written = (ArrayParam(tensor, "write") for tensor in results)
    return Computation(computation.name, (*params, *written), (*computation.body, *body))


def parts_of(result: Layout, parameters: Layout) -> tuple[Layout, Layout]:
    """The value and the gradients in a step's result; the value is None where there is none. Raises
    ShapeError for any other result."""
    value: Structure = Static(None)
    match result.structure:
        case structure if structure == parameters.structure:
            pass
        case Node(children=(value, gradients)) as pair if (
            pair.kind is tuple and gradients == parameters.structure
        ):
            pass
        case other:
            raise ShapeError(
                "step returns neither gradients nor a value and gradients",
                details=(f"it returns {_shown(other)}", f"the parameters are {_shown(parameters.structure)}"),
                fix="return gradients nested as the parameters are, or (value, gradients)",
            )
    first = len(result.leaves) - len(parameters.leaves)
    return Layout(value, result.leaves[:first]), Layout(parameters.structure, result.leaves[first:])


def _check_result(result: Layout, parameters: Layout) -> None:
    """Raises ShapeError unless each gradient has its parameter's shape, and UnsupportedError for a value that
    cannot be merged."""
    value, gradients = parts_of(result, parameters)
    if any(type(constant) in (bool, int, float) for constant in statics(value.structure)):
        raise UnsupportedError(
            "the value that step returns has a number that is the same for every batch",
            fix="return what depends on the batch, as a NumPy number or array",
        )
    names = paths(parameters.structure, "parameters")
    for name, gradient, parameter in zip(names, gradients.leaves, parameters.leaves, strict=True):
        if gradient.shape != parameter.shape:
            raise ShapeError(
                f"the gradient of {name} has shape {gradient.shape}, the parameter {parameter.shape}",
                fix="return for each parameter a gradient of its shape",
            )


def _check_leaf(name: str, found: Spec, wanted: Spec) -> None:
    kind = ShapeError if found.shape != wanted.shape else DTypeError if found.dtype != wanted.dtype else None
    if kind is not None:
        raise kind(
            f"update returns {found.dtype} {found.shape} as {name}, which is {wanted.dtype} {wanted.shape}",
            fix="keep shapes and dtypes: x.astype(old.dtype)",
        )


def _spec_of(tensor: Tensor) -> Spec:
    return Spec(tuple(extent.constant for extent in tensor.shape), tensor.dtype.numpy)


def _shown(structure: Structure) -> str:
    """A structure in few words: `(array, Network(array, array))`."""
    match structure:
        case Leaf():
            return "array"
        case Static(value=value):
            return repr(value)
        case Node(kind=kind, keys=keys, children=children):
            parts = [_shown(child) for child in children]
            if kind is dict:
                return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(keys, parts, strict=True)) + "}"
            opening, closing = "[]" if kind is list else "()"
            return ("" if kind in (list, tuple) else kind.__name__) + opening + ", ".join(parts) + closing
