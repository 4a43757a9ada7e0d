"""Every feature file is imported here, because importing it is what fills the tables of `registry`: a feature
that nothing else names would otherwise be missing.
"""

from ..functions import (
    adopted,
    contractions,
    coordinates,
    counting,
    creation,
    einsum,
    factorisations,
    finding,
    index_tricks,
    joining,
    mapping,
    methods,
    norms,
    padding,
    parts,
    positions,
    putting,
    questions,
    ranking,
    reductions,
    reshaping,
    rounding,
    sampling,
    scans,
    selecting,
    shaping,
    sorting,
    statistics,
)
from ..indices import (
    indexing,
)
from ..loops import (
    ranges,
)
from ..record.registry import METHODS
from ..values import (
    operators,
    protocols,
)

__all__ = [
    "METHODS",
    "adopted",
    "contractions",
    "coordinates",
    "counting",
    "creation",
    "einsum",
    "factorisations",
    "finding",
    "index_tricks",
    "indexing",
    "joining",
    "mapping",
    "methods",
    "norms",
    "operators",
    "padding",
    "parts",
    "positions",
    "protocols",
    "putting",
    "questions",
    "ranges",
    "ranking",
    "reductions",
    "reshaping",
    "rounding",
    "sampling",
    "scans",
    "selecting",
    "shaping",
    "sorting",
    "statistics",
]
