"""What was learnt, kept in files for later processes: small JSON values under keys that are hashes.

A file is written beside its place and then renamed, so a reader never sees half of one, and its first line is
the checksum of the rest. A record that cannot be read is as good as none, and one that cannot be written is
kept for this process only.
"""

from __future__ import annotations

import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from .settings import cache_folder

__all__ = ["key_for", "recall", "remember"]

_learnt: dict[str, Any] = {}


def key_for(*parts: object) -> str:
    """The same for the same parts, in any process."""
    return sha256("\0".join(map(str, parts)).encode()).hexdigest()


def recall(kind: str, key: str) -> Any:
    """The value of a key; None for none."""
    place = _place(kind, key)
    if str(place) in _learnt:
        return _learnt[str(place)]
    try:
        checksum, _, text = place.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return json.loads(text) if text and checksum == _checksum(text) else None


def remember(kind: str, key: str, value: Any) -> None:
    """Keep a value for this process and, if there is room for files, for others."""
    place, text = _place(kind, key), json.dumps(value)
    _learnt[str(place)] = value
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f"{key[:8]}-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{_checksum(text)}\n{text}")
        os.replace(name, place)
    except OSError:
        Path(name).unlink(missing_ok=True)


def _place(kind: str, key: str) -> Path:
    return cache_folder() / kind / f"{key}.json"


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
