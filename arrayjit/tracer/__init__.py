"""Python function -> Computation.

Every feature file is imported here, because importing it is what fills the tables of `registry.py`: a
feature that nothing else names would otherwise be missing.
"""

from . import indexing, methods, operators, protocols

__all__ = ["indexing", "methods", "operators", "protocols"]
