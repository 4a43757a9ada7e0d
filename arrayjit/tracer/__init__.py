"""Python function -> Computation.

Every feature file is imported here, because importing it is what fills the tables of `registry.py`: a
feature that nothing else names would otherwise be missing.
"""

from . import (
    adopted,
    contractions,
    creation,
    einsum,
    factorisations,
    finding,
    indexing,
    joining,
    methods,
    norms,
    operators,
    padding,
    positions,
    protocols,
    putting,
    questions,
    ranges,
    reductions,
    reshaping,
    rounding,
    scans,
    selecting,
    shaping,
    statistics,
)

__all__ = [
    "adopted",
    "contractions",
    "creation",
    "einsum",
    "factorisations",
    "finding",
    "indexing",
    "joining",
    "methods",
    "norms",
    "operators",
    "padding",
    "positions",
    "protocols",
    "putting",
    "questions",
    "ranges",
    "reductions",
    "reshaping",
    "rounding",
    "scans",
    "selecting",
    "shaping",
    "statistics",
]
