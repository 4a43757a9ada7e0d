"""Starting a trace again with more known.

The user's code sometimes needs a number where it holds a traced one: a list index, an `if`, a shape. Where
the number comes from the indices of loops, these are unrolled, or recorded in stretches where that answers an
`if` (see `turns`); where it comes from arguments that are Python or NumPy scalars, their values are compiled
in. All this is found only while tracing, so the run is left by a `Retrace` and started again under the
`Decisions` so far. Numbers out of arrays are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import CodeType
from typing import Any, NoReturn, Protocol, Union

import numpy as np

from ...errors import ConcretizationError, Location
from ...frozen import frozen
from ...ir.expr import Cast, Expr, Gather, Index, Load
from ...ir.index import Affine, Symbol, symbols_of
from ...ir.tensor import Tensor
from ...ir.walk import walk
from .facts import Argument, Fact, Positive, Remainder

__all__ = [
    "Decisions",
    "Fix",
    "Line",
    "Origin",
    "Reason",
    "Retrace",
    "Site",
    "Turn",
    "number_needed",
    "positive",
    "remainder",
    "roots",
    "told",
]


@frozen
class Site:
    """A `for` statement: its code and the offset of its FOR_ITER instruction."""

    code: CodeType
    offset: int


Line = tuple[str, int]
"""A file and the number of a line."""

Origin = Union[Site, Argument, Expr]
"""What the value of a symbol or of a scalar tensor depends on; what has none holds data."""


Fix = Union[str, Callable[[], str]]
"""What to write instead; or how to find that out, which takes reading the user's file."""


def told(fix: Fix) -> str:
    """The words for the user."""
    return fix if isinstance(fix, str) else fix()


@frozen
class Reason:
    """Why a loop is unrolled or an argument compiled in; with `site`, why that loop will be if need be."""

    what: str
    loc: Location | None
    fix: Fix = ""
    site: Site | None = None

    def why(self) -> str:
        """The words about a line elsewhere."""
        return self.what if self.loc is None else self.what.replace("this line", f"line {self.loc.line}")

    def unroll(self) -> None:
        """Raise Retrace if a loop can be unrolled for this reason."""
        if self.site is not None:
            raise Retrace({self.site: self})


@frozen
class Turn:
    """From which index on a loop goes on otherwise: `offset` and multiples of the indices of loops around,
    altogether divided by `divisor` and rounded down."""

    terms: tuple[tuple[int, Site], ...]
    offset: int
    divisor: int = 1


@frozen
class Decisions:
    """The loops to unroll, where others turn, how many iterations of them to record together, and the facts
    about arguments to compile in, each with its reason; and what to make of arrays that are made in part.
    Those that are `rolled` have few iterations, and are unrolled only if something needs it. Whether arrays
    lie `as_numpys_lie` where others would take less. `conditions` are the lines at which the run decides
    which side of a condition is taken."""

    unrolled: Mapping[Site, Reason] = field(default_factory=dict)
    baked: Mapping[Fact, Reason] = field(default_factory=dict)
    turns: Mapping[Site, Mapping[Turn, Reason]] = field(default_factory=dict)
    together: Mapping[Site, tuple[int, Reason]] = field(default_factory=dict)
    portions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    rolled: frozenset[Site] = frozenset()
    as_numpys_lie: bool = False
    conditions: frozenset[Line] = frozenset()

    def with_more(self, retrace: Retrace) -> Decisions:
        return Decisions(
            {**retrace.unroll, **self.unrolled},
            {**retrace.bake, **self.baked},
            {
                **self.turns,
                **{site: {**self.turns.get(site, {}), **new} for site, new in retrace.turns.items()},
            },
            {**self.together, **retrace.together},
            {**self.portions, **retrace.portions},
            self.rolled | retrace.rolled,
            self.as_numpys_lie or retrace.as_numpys_lie,
            self.conditions | retrace.conditions,
        )

    def without_rolled(self) -> Decisions:
        """As if the loops of few iterations had to be unrolled."""
        reason = Reason("it has few iterations", None)
        return replace(
            self, unrolled={**dict.fromkeys(self.rolled, reason), **self.unrolled}, rolled=frozenset()
        )


class Retrace(BaseException):
    """Leaves a run of the user's function, whose `except Exception` does not see it."""

    def __init__(
        self,
        unroll: Mapping[Site, Reason] | None = None,
        bake: Mapping[Fact, Reason] | None = None,
        turns: Mapping[Site, Mapping[Turn, Reason]] | None = None,
        together: Mapping[Site, tuple[int, Reason]] | None = None,
        portions: Mapping[int, tuple[int, int]] | None = None,
        rolled: frozenset[Site] = frozenset(),
        as_numpys_lie: bool = False,
        conditions: frozenset[Line] = frozenset(),
    ) -> None:
        super().__init__()
        self.unroll = unroll or {}
        self.bake = bake or {}
        self.turns = turns or {}
        self.together = together or {}
        self.portions = portions or {}
        self.rolled = rolled
        self.as_numpys_lie = as_numpys_lie
        self.conditions = conditions


class Origins(Protocol):
    """What knows where numbers come from: a Trace."""

    def origin(self, of: Symbol | Tensor) -> Origin | None: ...


class Deciding(Origins, Protocol):
    """A Trace, which starts again for what is `wanted` even where code
    between the user's and ours has turned the Retrace into another exception. With `branches` conditions
    are left to the run where their lines can be written so; `kept` tells why others cannot."""

    wanted: Retrace | None
    branches: bool
    kept: dict[Line, str]
    decisions: Decisions
    leaves: Sequence[Any]


def number_needed(
    origins: Deciding,
    needed: Iterable[Expr],
    what: str,
    loc: Location | None,
    *,
    details: tuple[str, ...] = (),
    fix: Fix,
    is_condition: bool = False,
) -> NoReturn:
    """Leave the run so that the values `needed` are numbers in the next one; or so that the compiled function
    decides a condition, where that is wanted and its line can be written so. Raises ConcretizationError where
    they depend on the elements of arrays."""
    reason = Reason(what, loc, fix)
    found = tuple(roots(origins, needed))
    if is_condition and loc is not None and not all(_is_compiled_in(root, origins.leaves) for root in found):
        details += _leave_to_the_run(origins, (loc.file, loc.line))
    if None in found or not found:
        raise ConcretizationError(what, loc=loc, details=details, fix=told(fix))
    unroll = {root: reason for root in found if isinstance(root, Site)}
    origins.wanted = Retrace(unroll, {root: reason for root in found if isinstance(root, Argument)})
    raise origins.wanted


def _is_compiled_in(root: Site | Argument | None, leaves: Sequence[Any]) -> bool:
    """Whether a condition on what depends on this alone is answered while tracing, once for each value: on
    integers and bools, of which sizes depend, too."""
    return isinstance(root, Argument) and not isinstance(leaves[root.leaf], (float, complex, np.inexact))


def _leave_to_the_run(origins: Deciding, line: Line) -> tuple[str, ...]:
    """Leave this run, unless that has been tried with this line: then it says why that does not help."""
    if not origins.branches:
        return ()
    if line not in origins.decisions.conditions:
        origins.wanted = Retrace(conditions=frozenset({line}))
        raise origins.wanted
    return (f"branches=True leaves this line as it is: {origins.kept.get(line, _KEPT)}",)


_KEPT = "it stands in a lambda, a class or a filter of a comprehension, or chains comparisons of calls"


def roots(origins: Origins, needed: Iterable[Expr]) -> Iterator[Site | Argument | None]:
    """The loops and the arguments that values depend on; None for what holds data."""
    waiting = list(needed)
    seen: set[Symbol | Tensor] = set()
    while waiting:
        for part in _sources(waiting.pop()):
            if part in seen:
                continue
            seen.add(part)
            origin = origins.origin(part)
            if origin is None or isinstance(origin, (Site, Argument)):
                yield origin
            else:
                waiting.append(origin)


def _sources(expr: Expr) -> Iterator[Symbol | Tensor]:
    """The symbols and tensors that an expression reads."""
    for node in walk(expr):
        match node:
            case Index(value=value):
                yield from value.symbols
            case Load(tensor=tensor, index=index):
                yield tensor.storage
                yield from symbols_of(index)
            case Gather(tensor=tensor):
                yield tensor.storage
            case _:
                pass


def positive(origins: Origins, value: Affine) -> Positive | None:
    """The question whether a sum of integer arguments is more than 0; None for what is no such sum."""
    terms = _arguments(origins, value)
    return Positive(terms, value.offset) if terms else None


def remainder(origins: Origins, value: Affine, period: int) -> Remainder | None:
    """The question for the rest of a sum of integer arguments; None for what is no such sum."""
    terms = _arguments(origins, value)
    return Remainder(terms, value.offset, period) if terms else None


def _arguments(origins: Origins, value: Affine) -> tuple[tuple[int, int], ...] | None:
    """The coefficients and the leaves of a sum of integer arguments."""
    terms: list[tuple[int, int]] = []
    for coefficient, symbol in value.terms:
        origin = origins.origin(symbol)
        while isinstance(origin, (Cast, Load)):
            origin = origin.arg if isinstance(origin, Cast) else origins.origin(origin.tensor)
        if not isinstance(origin, Argument):
            return None
        terms.append((coefficient, origin.leaf))
    return tuple(terms)
