"""Runs a program plainly and through `arrayjit.jit`, and says whether anybody could tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import arrayjit
from arrayjit.backends import backend
from arrayjit.errors import CompilerBug
from arrayjit.ir.assign import ArrayParam, Computation
from arrayjit.ir.interp import run, run_computation
from arrayjit.passes.pipeline import LOWERING, ON_ASSIGNMENTS, ON_LOOPS
from arrayjit.tracer.calls.binding import Binding
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.calls.signature import Declared, key_of
from arrayjit.tracer.record.tree import unflatten

__all__ = ["TARGETS", "Difference", "Rules", "assert_calls_like_numpy", "assert_like_numpy"]

TARGETS = ("interp", "sync_llvm")
# What arrayjit says it does not do, where NumPy does it; nothing else may be refused.
REFUSALS = (
    "elements may share memory with one another",
    "shares memory with another argument of another element layout",
    "selecting by a mask gives an array whose shape depends on values",
    "writing an array through a mask needs to know how many cells the mask selects",
)

Program = Callable[..., Any]
Maker = Callable[[], tuple[Any, ...]]
Tolerances = Mapping[int, Any]


class Difference(AssertionError):
    """The program does not do what it does in NumPy."""


def _says_so(error: Exception) -> bool:
    return isinstance(error, arrayjit.UnsupportedError) and any(text in str(error) for text in REFUSALS)


@dataclass(frozen=True)
class Rules:
    """What may differ: `tolerances` of the results by their places, and what arrayjit `refuses`. Where a
    loop `may_not_run`, a NumPy number may stand for a Python number of its value, and a copy for a shared
    array."""

    tolerances: Tolerances = field(default_factory=dict)
    refuses: Callable[[Exception], bool] = _says_so
    may_not_run: bool = False


def assert_like_numpy(
    program: Program, make: Maker, approximate: Tolerances | None = None, targets: tuple[str, ...] = TARGETS
) -> str:
    """Raises Difference unless results, arguments, shared memory and exceptions are NumPy's, on each target
    and at the second call too. Says how it went: "same", "raised" or "refused"."""
    return assert_calls_like_numpy(program, [make], Rules(approximate or {}), targets)[-1]


def assert_calls_like_numpy(
    program: Program, makers: Sequence[Maker], rules: Rules, targets: tuple[str, ...] = TARGETS
) -> list[str]:
    """The same for one function called with the arguments of each maker in turn, twice."""
    jitted = arrayjit.jit(program)
    verdicts: list[str] = []
    for target in targets:
        ours = jitted.on(target)
        for make in makers:
            try:
                verdicts.append(_compare(program, make, ours, rules))
                misses = jitted.stats().misses
                _compare(program, make, ours, rules)
            except (Difference, CompilerBug) as error:
                stage = _first_wrong_stage(program, make, rules, target)
                raise Difference(f"target {target}, first wrong stage {stage}\n{error}") from error
            if verdicts[-1] == "same" and jitted.stats().misses != misses:
                raise Difference(f"target {target}: the second call compiled again: {jitted.stats().reasons}")
    return verdicts


def _compare(program: Program, make: Maker, ours: Program, rules: Rules) -> str:
    plain, traced = make(), make()
    with np.errstate(all="ignore"):
        wanted, error = _outcome(program, plain)
    got, our_error = _outcome(ours, traced)
    if our_error is not None and rules.refuses(our_error):
        return "refused"
    if error is not None or our_error is not None:
        if error is None or not isinstance(our_error, _caught_as(error)):
            raise Difference(f"NumPy: {error!r}\narrayjit: {our_error!r}") from our_error
        return "raised"
    _require_same(got, wanted, rules)
    _require_same(traced, plain, Rules())
    _require_same_memory([*got, *traced], [*wanted, *plain], rules)
    return "same"


def _outcome(program: Program, args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return program(*args), None
    except CompilerBug:
        raise
    except Exception as error:
        return None, error


def _caught_as(error: Exception) -> type[Exception]:
    """The exception class that people catch: Python's own, since NumPy's are often private."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def _require_same(got: Any, wanted: Any, rules: Rules) -> None:
    if type(got) is not type(wanted) or len(got) != len(wanted):
        raise Difference(f"NumPy: {wanted!r}\narrayjit: {got!r}")
    for place, (left, right) in enumerate(zip(got, wanted, strict=True)):
        if rules.may_not_run and _is_number(left) and _is_number(right) and type(left) is not type(right):
            left, right = float(left), float(right)
        _require_same_value(left, right, rules.tolerances.get(place), f"value {place}")


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float) or issubclass(type(value), np.generic)


def _require_same_value(got: Any, wanted: Any, tolerance: Any, what: str) -> None:
    if type(got) is not type(wanted):
        raise Difference(f"{what} is a {type(got).__name__}, in NumPy a {type(wanted).__name__}")
    if not isinstance(wanted, (np.ndarray, np.generic)):
        if got != wanted and not (got != got and wanted != wanted):
            raise Difference(f"{what} is {got!r}, in NumPy {wanted!r}")
        return
    native = wanted.dtype.newbyteorder("=")  # which arrayjit gives new arrays
    if got.dtype not in (wanted.dtype, native) or got.shape != wanted.shape:
        raise Difference(f"{what} is {got.dtype}{got.shape}, in NumPy {wanted.dtype}{wanted.shape}")
    if isinstance(wanted, np.ndarray) and got.flags.writeable != wanted.flags.writeable:
        raise Difference(f"{what} has writeable={got.flags.writeable}, unlike in NumPy")
    if tolerance is None:
        same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) if _signed(wanted) else got == wanted
    else:
        with np.errstate(all="ignore"):
            same = (got == wanted) | (np.abs(np.subtract(got, wanted, dtype=np.longdouble)) <= tolerance)
    if _signed(wanted):
        same = same | (np.isnan(got) & np.isnan(wanted))
    if not np.all(same):
        where = np.argwhere(~np.asarray(same))[0]
        ours, theirs = np.asarray(got)[tuple(where)], np.asarray(wanted)[tuple(where)]
        raise Difference(f"{what} at {where.tolist()} is {ours!r}, in NumPy {theirs!r}\n{got!r}\n{wanted!r}")


def _signed(value: Any) -> bool:
    return bool(value.dtype.kind == "f")


def _require_same_memory(got: list[Any], wanted: list[Any], rules: Rules) -> None:
    """The same pairs are one object or share memory, and writing through each shows in the same places."""
    ours = [value for value in got if isinstance(value, np.ndarray)]
    theirs = [value for value in wanted if isinstance(value, np.ndarray)]
    alike = True
    for n, k in combinations(range(len(theirs)), 2):
        ours_share = (ours[n] is ours[k], np.shares_memory(ours[n], ours[k]))
        theirs_share = (theirs[n] is theirs[k], _shares_memory(theirs[n], theirs[k]))
        alike = alike and ours_share == theirs_share
        if ours_share != theirs_share and not (rules.may_not_run and any(theirs_share)):
            words = ("one object", "sharing memory")
            raise Difference(f"arrays {n} and {k}: {words} is {ours_share}, in NumPy {theirs_share}")
    if not alike:
        return
    for number, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        if right.flags.writeable:
            mark = np.arange(right.size).reshape(right.shape) + number
            left[...] = right[...] = mark.astype(right.dtype)
    _require_same(ours, theirs, Rules())


def _shares_memory(left: np.ndarray, right: np.ndarray) -> bool:
    return np.may_share_memory(left, right) and np.shares_memory(left, right)


def _first_wrong_stage(program: Program, make: Maker, rules: Rules, target: str) -> str:
    """The first stage between trace and native code whose program, interpreted, differs from NumPy's."""
    statics = Declared()
    try:
        traced = trace_function(program, make(), {}, statics)
    except Exception as error:
        return f"trace ({type(error).__name__})"

    def interpreted(execute: Callable[[Any], None]) -> Program:
        def ours(*args: Any) -> Any:
            leaves = key_of(args, {}, statics)[1]
            binding = Binding(traced.sources, traced.outputs)
            arrays = binding.arrays(leaves)
            tensors = [p.tensor for p in traced.computation.params if isinstance(p, ArrayParam)]
            execute(dict(zip(tensors, arrays, strict=True)))
            binding.write_back(leaves, arrays)
            return unflatten(traced.results, binding.results(leaves, arrays))

        return ours

    try:
        for name, execute in _stages(traced.computation, target):
            try:
                _compare(program, make, interpreted(execute), rules)
            except (Difference, CompilerBug):
                return name
    except Exception as error:
        return f"after {name}: {type(error).__name__}: {error}"
    return "code generation or run"


def _stages(computation: Computation, target: str) -> Iterator[tuple[str, Callable[[Any], None]]]:
    caps = backend(target).target.caps()
    yield "trace", partial(run_computation, computation)
    for on_assignments in ON_ASSIGNMENTS:
        computation = on_assignments.run(computation, caps)
        yield on_assignments.name, partial(run_computation, computation)
    kernel = LOWERING.run(computation, caps)
    yield LOWERING.name, partial(run, kernel)
    for on_loops in ON_LOOPS:
        kernel = on_loops.run(kernel, caps)
        yield on_loops.name, partial(run, kernel)
