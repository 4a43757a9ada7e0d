"""Traced programs run by the reference interpreter and compared with NumPy."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.interp import KernelRaise, run_computation
from arrayjit.tracer.calls.binding import Binding
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.calls.names import declared
from arrayjit.tracer.calls.signature import key_of
from arrayjit.tracer.record.tree import flatten, unflatten


def trace_and_interpret(
    function: Callable[..., Any], *args: Any, static: tuple[str, ...] = (), **kwargs: Any
) -> Any:
    """What a jitted `function` returns for these arguments, which it may write."""
    statics = declared(function, static)
    _, leaves = key_of(args, kwargs, statics)
    traced = trace_function(function, args, kwargs, statics)
    binding = Binding(traced.sources, traced.outputs)
    arrays = binding.arrays(leaves)
    tensors = [param.tensor for param in traced.computation.params if isinstance(param, ArrayParam)]
    try:
        run_computation(traced.computation, dict(zip(tensors, arrays, strict=True)))
    except KernelRaise as raised:
        raise getattr(builtins, raised.stmt.exception)(raised.stmt.message) from None
    binding.write_back(leaves, arrays)
    return unflatten(traced.results, binding.results(leaves, arrays))


def assert_like_numpy(
    function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], **options: Any
) -> None:
    """`function` gives the same results and leaves its arguments the same, traced and plain.

    `make` makes the arguments anew, so that both runs may write them and keep their aliasing. Then each
    array of the result is written through, which shows whether it is a view of the same memory.
    """
    plain, traced = make(), make()
    with np.errstate(all="ignore"):
        wanted = function(*plain)
    got = trace_and_interpret(function, *traced, **options)
    assert_same(got, wanted)
    assert_same(traced, plain)
    for ours, theirs in zip(_arrays(got), _arrays(wanted), strict=True):
        assert ours.flags.writeable == theirs.flags.writeable
        if theirs.flags.writeable:
            ours[...] = theirs[...] = theirs.dtype.type(1)
    assert_same(got, wanted)
    assert_same(traced, plain)


def assert_same(got: Any, wanted: Any) -> None:
    """Equal structure, types, dtypes, shapes and bits (any NaN equals any NaN)."""
    ours, structure = flatten(got, _is_leaf)
    theirs, expected = flatten(wanted, _is_leaf)
    assert structure == expected
    for left, right in zip(ours, theirs, strict=True):
        assert type(left) is type(right)
        np.testing.assert_array_equal(left, right, strict=True)
        np.testing.assert_array_equal(_is_negative(left), _is_negative(right))


def _is_negative(value: Any) -> Any:
    """The sign of each number, or of its parts, zeros included; NaN has none that NumPy promises."""
    parts = [value.real, value.imag] if np.iscomplexobj(value) else [value]
    return [np.signbit(part) & np.equal(part, part) for part in parts]


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, int, float))


def _arrays(value: Any) -> list[np.ndarray]:
    return [leaf for leaf in flatten(value, _is_leaf)[0] if isinstance(leaf, np.ndarray)]
