"""Every feature file is imported here, because importing it is what fills the tables of `registry`: a feature
that nothing else names would otherwise be missing.
"""

# ruff: noqa: F401

from ..functions import (
    adopted,
    contractions,
    coordinates,
    counting,
    creation,
    diagonals,
    einsum,
    factorisations,
    finding,
    folds,
    index_tricks,
    inserting,
    joining,
    least_squares,
    mapping,
    methods,
    norms,
    packing,
    padding,
    parts,
    polynomials,
    positions,
    putting,
    questions,
    ranking,
    reductions,
    reinterpreting,
    reshaping,
    rounding,
    sampling,
    scans,
    selecting,
    shaping,
    sorting,
    spacing,
    spectra,
    statistics,
    strides,
    transforms,
)
from ..indices import indexing
from ..loops import ranges
from ..names import complex_mathematics
from ..record.registry import METHODS
from ..values import operators, protocols

__all__ = ["METHODS"]
