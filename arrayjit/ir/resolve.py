"""Which dtypes an op computes in and which it gives, by NEP 50.

NumPy itself is asked: `ufunc.resolve_dtypes` takes the Python types of weak scalars. The few ops that no
ufunc describes have a rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Union

import numpy as np

from ..errors import DTypeError
from .definitions.complexes import PARTS
from .dtype import BF16, BOOL, F32, DType, from_numpy, named
from .ops import Op

__all__ = ["Argument", "resolve"]

Argument = Union[DType, type[bool], type[int], type[float], type[complex]]
Signature = tuple[tuple[DType, ...], DType]


def resolve(
    op: Op, args: Sequence[Argument], wanted: DType | None = None, casting: str = "same_kind"
) -> Signature:
    """The dtypes `op` computes in and the dtype of its result, which may be asked for, for arguments of these
    dtypes, which are converted by NumPy's rule `casting`; a Python type stands for a Python scalar. Raises
    DTypeError, naming the fix."""
    return _resolve(op, tuple(args), wanted, casting)


@cache
def _resolve(op: Op, args: tuple[Argument, ...], wanted: DType | None, casting: str) -> Signature:
    if len(args) != op.arity:
        raise DTypeError(f"{op.name} takes {op.arity} arguments, not {len(args)}")
    rule = _from_bits if op.tables else _RULES.get(op.name)
    try:
        dtypes = rule(_strong(args)) if rule else _by_ufunc(op, args, wanted, casting)
    except TypeError as error:
        words = str(error).splitlines()[0]
        if wanted is not None:
            raise DTypeError(words, fix="convert the operands with .astype, or pass no dtype=") from None
        raise _refusal(op, args, f"NumPy: {words}") from None
    if dtypes is None:
        raise _refusal(op, args, "arrayjit computes no such dtypes")
    try:
        rows = [from_numpy(dtype) for dtype in dtypes]
    except DTypeError:
        names = " and ".join(dict.fromkeys(dtype.name for dtype in dtypes))
        raise _refusal(op, args, f"NumPy computes it in {names}, which arrayjit does not have") from None
    inputs, result = tuple(rows[: op.arity]), rows[op.arity]
    primitive = [F32 if dtype.is_small else dtype for dtype in inputs]
    if any(dtype.is_complex for dtype in (*inputs, result)):
        if op.name not in PARTS:
            raise _refusal(op, args, "it is not defined on complex numbers")
    elif op.definition(primitive) is None and inputs[0].kind not in op.llvm:
        raise _refusal(op, args, f"it is not defined on {inputs[0].name}")
    return inputs, result


def _strong(args: tuple[Argument, ...]) -> tuple[np.dtype[Any], ...]:
    """NumPy dtypes, where a Python scalar yields to the arrays beside it."""
    arrays = [arg.numpy for arg in args if isinstance(arg, DType)]
    return tuple(arg.numpy if isinstance(arg, DType) else np.result_type(arg(0), *arrays) for arg in args)


def _by_ufunc(
    op: Op, args: tuple[Argument, ...], wanted: DType | None, casting: Any
) -> tuple[np.dtype[Any], ...]:
    ufunc: np.ufunc = getattr(np, op.ufunc or op.like)
    weak = not any(isinstance(arg, DType) for arg in args)
    inputs: list[Any] = []
    for arg in args:
        if isinstance(arg, DType):
            inputs.append(arg.numpy)
        else:
            inputs.append(np.dtype(arg) if weak or arg is bool else arg)
    outputs = [None] * ufunc.nout
    if casting == "equiv":
        casting = "no"  # the same of native dtypes; NumPy 2.4 crashes where "equiv" forbids a weak scalar
    if wanted is None:
        found = ufunc.resolve_dtypes((*inputs, *outputs), casting=casting)
    else:
        signature = (*[None] * ufunc.nin, *[wanted.numpy] * ufunc.nout)
        found = ufunc.resolve_dtypes((*inputs, *outputs), signature=signature, casting=casting)
    return (*found[: ufunc.nin], found[ufunc.nin + op.output])


def _where(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...] | None:
    condition, *choices = dtypes
    common = np.result_type(*choices)
    return (condition, common, common, common) if condition == BOOL.numpy else None


def _fma(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...] | None:
    common = np.result_type(*dtypes)
    return (common,) * 4 if common.kind == "f" and common.itemsize >= 4 else None


def _bits(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...] | None:
    (dtype,) = dtypes
    is_float = from_numpy(dtype).is_float
    return (dtype, named(f"i{dtype.itemsize * 8}").numpy) if is_float else None


def _from_bits(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...] | None:
    (dtype,) = dtypes
    known = dtype.kind == "i" and dtype.itemsize >= 2
    return (dtype, named(f"f{dtype.itemsize * 8}").numpy) if known else None


def _from_brain_bits(dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...] | None:
    (dtype,) = dtypes
    return (dtype, BF16.numpy) if dtype == np.int16 else None


_RULES: Mapping[str, Callable[[tuple[np.dtype[Any], ...]], tuple[np.dtype[Any], ...] | None]] = {
    "where": _where,
    "rarely": _where,
    "fma": _fma,
    "bits": _bits,
    "from_bits": _from_bits,
    "from_brain_bits": _from_brain_bits,
}


def _refusal(op: Op, args: tuple[Argument, ...], why: str) -> DTypeError:
    names = " and ".join(arg.name if isinstance(arg, DType) else f"a Python {arg.__name__}" for arg in args)
    return DTypeError(
        f"{op.name} of {names} is not supported",
        details=(why,),
        fix="convert the operands first, for example with .astype(np.float32)",
    )
