"""Results in the memory of arguments that the caller gave away.

def step(p: read, g: read, out: write):          def step(p: update, g: read):
    t[i] = mul(0.1, g[i])                            t[i] = mul(0.1, g[i])
    out[i] = sub(p[i], t[i])                         p[i] = sub(p[i], t[i])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...ir.assign import (
    ArrayParam,
    Assign,
    Computation,
    Param,
    Statement,
    assigned,
    expressions,
    statements,
)
from ...ir.tensor import Tensor
from ...ir.walk import storages_read
from .binding import (
    ArgumentOutput,
    ArgumentSource,
    Counted,
    FreshSource,
    Output,
    RepeatedOutput,
    ScalarOutput,
    SizedOutput,
    ViewOutput,
)
from .function import Traced
from .renaming import Renaming

__all__ = ["with_donated"]


def with_donated(traced: Traced, leaves: Collection[int]) -> Traced:
    """The trace with results in the memory of these leaves of the arguments, where they have the shape and
    the dtype, and nothing reads the argument once the result is written."""
    shown = {output.param for output in traced.outputs if isinstance(output, ViewOutput)}
    returned = {output.leaf for output in traced.outputs if isinstance(output, ArgumentOutput)}
    params = traced.computation.params
    free: list[int] = []
    places: dict[int, int] = {}
    for number, source in enumerate(traced.sources):
        match source:
            case ArgumentSource(leaf=leaf, written=False) if leaf in leaves and leaf not in returned:
                if number not in shown:
                    free.append(number)
            case FreshSource(is_transposed=False):
                body = traced.computation.body
                fitting = (place for place in free if _fits(params[place], params[number], body))
                place = next(fitting, None)
                if place is not None:
                    free.remove(place)
                    places[number] = place
    return _merged(traced, places) if places else traced


def _fits(argument: Param, result: Param, body: Sequence[Statement]) -> bool:
    """Whether the result can be where the argument is. An assignment reads everything before it writes; of a
    loop or a branch that is not known."""
    assert isinstance(argument, ArrayParam)
    assert isinstance(result, ArrayParam)
    old, new = argument.tensor, result.tensor
    if old.strides is not None or (old.shape, old.dtype) != (new.shape, new.dtype):
        return False
    read = [number for number, statement in enumerate(body) if old in _read(statement)]
    written = [number for number, statement in enumerate(body) if new in assigned((statement,))]
    if not read or not written or read[-1] < written[0]:
        return True
    return read[-1] == written[0] and isinstance(body[written[0]], Assign)


def _read(statement: Statement) -> set[Tensor]:
    return {storage for part in statements((statement,)) for storage in storages_read(expressions(part))}


def _merged(traced: Traced, places: Mapping[int, int]) -> Traced:
    """The trace in which each of the parameters `places` is the other one."""
    params = traced.computation.params
    tensors: dict[Tensor, Tensor] = {}
    for number, place in places.items():
        result, argument = params[number], params[place]
        assert isinstance(result, ArrayParam)
        assert isinstance(argument, ArrayParam)
        tensors[result.tensor] = argument.tensor
    left = [number for number in range(len(params)) if number not in places]
    moved = {number: left.index(places.get(number, number)) for number in range(len(params))}
    body = Renaming(tensors).body(traced.computation.body)
    kept = tuple(_updated(params[n]) if n in places.values() else params[n] for n in left)
    sources = tuple(
        replace(source, written=True)
        if n in places.values() and isinstance(source := traced.sources[n], ArgumentSource)
        else traced.sources[n]
        for n in left
    )
    return replace(
        traced,
        computation=Computation(traced.computation.name, kept, body),
        sources=sources,
        outputs=tuple(_output(output, moved) for output in traced.outputs),
    )


def _updated(param: Param) -> Param:
    assert isinstance(param, ArrayParam)
    return replace(param, access="update")


def _output(output: Output, moved: Mapping[int, int]) -> Output:
    match output:
        case ViewOutput(param=param) | ScalarOutput(param=param):
            return replace(output, param=moved[param])
        case SizedOutput(param=param, extents=extents):
            counted = (Counted(moved[e.param]) if isinstance(e, Counted) else e for e in extents)
            return replace(output, param=moved[param], extents=tuple(counted))
        case ArgumentOutput() | RepeatedOutput():
            return output
