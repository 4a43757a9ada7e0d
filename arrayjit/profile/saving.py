"""Profiles as files, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import UnsupportedError
from .amounts import Amount
from .counters import Refused

__all__ = ["as_json", "save"]


def save(file: str | Path, makers: Mapping[str, Callable[[], str]]) -> None:
    """Write what the maker for the file's ending gives, such as that for ".json". Raises UnsupportedError for
    another ending, OSError where the file cannot be written."""
    make = makers.get(Path(file).suffix.lower())
    if make is None:
        raise UnsupportedError(
            f"a profile is no {Path(file).suffix or 'file without an ending'}",
            fix=f"name a file that ends in {', '.join(makers)}",
        )
    Path(file).write_text(make(), encoding="utf-8")


def as_json(found: Any) -> str:
    """All of a profile; an Amount is a number or, within bounds, [low, high], where no high one is null."""
    return json.dumps(_plain(found), indent=1)


def _plain(value: Any) -> Any:
    match value:
        case Amount():
            return value.low if value.is_exact else [value.low, _plain(value.high)]
        case float() if not math.isfinite(value):
            return None
        case Refused(why=why):
            return {"refused": why}
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case tuple() | list():
            return [_plain(one) for one in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            fields = {name: _plain(getattr(value, name)) for name in _names(value)}
            return fields


def _names(value: Any) -> list[str]:
    """The fields and the properties of a row of data."""
    kind = type(value)
    fields = list(kind.__dataclass_fields__)
    return [*fields, *(name for name, one in vars(kind).items() if isinstance(one, property))]
