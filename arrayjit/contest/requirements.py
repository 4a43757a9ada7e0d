"""The packages that showing results takes, which arrayjit itself does without."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import MissingPackage

__all__ = ["need"]


def need(*packages: str) -> None:
    """Raises MissingPackage if one of them is not installed."""
    missing = [package for package in packages if not find_spec(package)]
    if missing:
        raise MissingPackage(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix="pip install 'arrayjit[report]'",
        )
