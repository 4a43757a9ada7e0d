"""NumPy's protocols: how `np.` functions in the user's code reach the tracer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ...errors import Location, UnsupportedError
from ...ir.ops import OPS, Op
from ..record.registry import FUNCTIONS, UFUNC_METHODS, AnyCallable, method
from ..record.trace import current_trace, user_location
from .array import SymbolicArray
from .elementwise import copy, elementwise, store
from .layout import contiguity, order_named

__all__ = ["ops_of", "unsupported"]

_IGNORED = {"subok": (True, False)}


def _table() -> dict[np.ufunc, tuple[Op, ...]]:
    """Each ufunc and the ops that give its outputs, in their order."""
    outputs: dict[np.ufunc, list[Op]] = {}
    for row in OPS.values():
        if row.ufunc:
            outputs.setdefault(getattr(np, row.ufunc), []).append(row)
    return {ufunc: tuple(sorted(rows, key=lambda row: row.output)) for ufunc, rows in outputs.items()}


_OPS = _table()
_OF_SCIPY = {name: (OPS[name],) for name in ("erf", "erfc")}


def ops_of(ufunc: np.ufunc) -> tuple[Op, ...]:
    """The ops that give the outputs of a ufunc. Raises UnsupportedError for one outside the table."""
    ops = _OPS.get(ufunc) or _of_scipy(ufunc)
    if ops is None:
        _refuse(f"the ufunc {ufunc.__name__}")
    return ops


def _of_scipy(ufunc: np.ufunc) -> tuple[Op, ...] | None:
    """The op that gives a ufunc of `scipy.special`, which there is only if the program imported it."""
    special = sys.modules.get("scipy.special")
    return next((_OF_SCIPY[name] for name in _OF_SCIPY if getattr(special, name, None) is ufunc), None)


@method("__array_ufunc__")
def array_ufunc(self: SymbolicArray, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
    """A ufunc, or a method of one, called with a symbolic array among its operands."""
    if how != "__call__":
        function = UFUNC_METHODS.get(how)
        if function is None:
            _refuse(f"{ufunc.__name__}.{how}")
        return _called(function, f"{ufunc.__name__}.{how}", (ufunc, *inputs), options)
    if ufunc in FUNCTIONS:
        if "out" in options:
            options["out"] = options["out"][0]
        return _called(FUNCTIONS[ufunc], ufunc.__name__, inputs, options)
    ops = ops_of(ufunc)
    outs = options.pop("out", None) or (None,) * len(ops)
    where, dtype = options.pop("where", None), options.pop("dtype", None)
    casting = options.pop("casting", "same_kind")
    order = _order(options.pop("order", "K"), inputs)
    for name, value in options.items():
        if value not in _IGNORED.get(name, ()):
            _refuse(f"{ufunc.__name__}({name}={value!r})")
    if len(ops) == 1:
        result = elementwise(ops[0], *inputs, out=outs[0], where=where, dtype=dtype, casting=casting)
        return result if outs[0] is not None else _laid_out(result, order)
    results = [
        _laid_out(elementwise(op, *inputs, where=where, dtype=dtype, casting=casting), order) for op in ops
    ]
    return tuple(
        result if out is None else _moved(ufunc.__name__, result, out, where, casting)
        for result, out in zip(results, outs, strict=True)
    )


@method("__array_function__")
def array_function(
    self: SymbolicArray, function: AnyCallable, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A NumPy function called with a symbolic array among its arguments."""
    ours = FUNCTIONS.get(function)
    name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
    if ours is None:
        _refuse(name)
    return _called(ours, name, args, kwargs)


def _order(order: Any, inputs: Sequence[Any]) -> str:
    """In which order a fresh result lies in memory: C's, Fortran's, or that of the operands (K)."""
    asked = order_named(order, "K")
    if asked != "A":
        return asked
    arrays = [value for value in inputs if isinstance(value, (SymbolicArray, np.ndarray)) and value.ndim]
    return "F" if all(_is_fortran(array) for array in arrays) else "C"


def _is_fortran(array: SymbolicArray | np.ndarray) -> bool:
    if isinstance(array, np.ndarray):
        return bool(array.flags.f_contiguous)
    array.record.layouts.require_numpys(array.cells)
    return contiguity(array.cells, "F") is True


def _laid_out(result: SymbolicArray, order: str) -> SymbolicArray:
    """A fresh result in the order that the program asks for."""
    is_there = order == "K" or result.ndim < 2 or contiguity(result.cells, order) is True
    return result if is_there else copy(result, order)


def _moved(name: str, result: SymbolicArray, out: SymbolicArray, where: Any, casting: str) -> SymbolicArray:
    """One of several outputs delivered to its `out`, after all of them were computed."""
    trace, kind = current_trace(), result.element_type
    return store(name, trace, result.cells.shape, kind, result.load, out, where, (), casting)


def _called(ours: AnyCallable, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        _signature(ours).bind(*args, **kwargs)
    except TypeError as error:
        raise UnsupportedError(
            f"{name}: {error}",
            details=(f"supported: {ours.__name__}{_signature(ours)}",),
            fix="leave the argument out, or compute this outside the jitted function",
        ) from None
    return ours(*args, **kwargs)


@cache
def _signature(function: AnyCallable) -> inspect.Signature:
    return inspect.signature(function)


_SYMMETRIC = {
    "eig": "use np.linalg.eigh where the matrix is symmetric, or else ",
    "eigvals": "use np.linalg.eigvalsh where the matrix is symmetric, or else ",
}


def _refuse(what: str) -> NoReturn:
    raise unsupported(what, user_location())


def unsupported(what: str, loc: Location | None, details: tuple[str, ...] = ()) -> UnsupportedError:
    """The error of a function of NumPy's that has no counterpart of ours."""
    name, reason = what.rpartition(".")[2], ""
    instead = _SYMMETRIC.get(name, "")
    if instead or name.endswith("roots"):
        reason = ": whether it gives real or complex numbers depends on values"
    return UnsupportedError(
        f"{what} is not supported in a jitted function{reason}",
        loc=loc,
        details=details,
        fix=instead + "call it outside the jitted function and pass the result as an argument",
    )
