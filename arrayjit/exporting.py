"""Compiled functions as C files, for programs without Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .compile import Build
from .errors import NumberError, UnsupportedError
from .targets.c_export import exported

__all__ = ["export"]


def export(build: Build, notes: Sequence[str], folder: str | Path, name: str = "") -> tuple[Path, ...]:
    """Write `NAME.h` and `NAME.c`; `notes` are what tracing decided. Raises UnsupportedError for a target
    that emits no C, NumberError for a name that C does not take, OSError where nothing can be written."""
    target = build.backend.name
    if build.backend.target.language != "c":
        raise UnsupportedError(
            f"target {target!r} emits no C that could be exported",
            fix='lower the function for target "sync_c", as f.on("sync_c").lower(...).export(folder) does',
        )
    name = name or re.sub(r"\W|^(?=\d)", "_", build.code.name, flags=re.ASCII)
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise NumberError(f"{name!r} is no name in C", fix="give one of letters, digits and underscores")
    about = (f"{build.code.name}, as arrayjit compiled it.", *notes)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for file, text in exported(build.optimized.kernel, name, f"{name}_kernel", about).items():
        (place / file).write_text(text, encoding="utf-8")
        written.append(place / file)
    return tuple(written)
