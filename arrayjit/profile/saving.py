"""Profiles as files, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..pages import save
from .amounts import Amount
from .counters import Refused

__all__ = ["Saved"]


class Saved:
    """A profile, whose text is its `str`."""

    __slots__ = ()

    def as_html(self) -> str:
        """A page that needs no other file."""
        raise NotImplementedError

    def as_json(self) -> str:
        """All of it. An amount is a number or, within bounds, [low, high], where no high one is null."""
        return json.dumps(_plain(self), indent=1)

    def save(self, file: str | Path) -> None:
        """Write a `.html` page, a `.json` or a `.txt`. Raises UnsupportedError for another ending, OSError
        where the file cannot be written."""
        forms: Mapping[str, Callable[[], str]] = {
            ".html": self.as_html,
            ".json": lambda: f"{self.as_json()}\n",
            ".txt": lambda: f"{self}\n",
        }
        save(file, "a profile", forms)


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
            return {name: _plain(getattr(value, name)) for name in _names(value)}


def _names(value: Any) -> list[str]:
    """The fields and the properties of a row of data."""
    members = (vars(kind).items() for kind in reversed(type(value).mro()))
    properties = (name for own in members for name, member in own if isinstance(member, property))
    return [*(each.name for each in fields(value)), *properties]
