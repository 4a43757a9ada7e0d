"""How the kernels are compiled: `SUMS` lets Numba add in any order, without which sums are not vectorised."""

from __future__ import annotations

__all__ = ["SUMS"]

SUMS = {"reassoc", "nsz", "contract"}
