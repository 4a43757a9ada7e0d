"""Every value that compiled programs assign, as text: for small runs, and for comparing two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TextIO

from .entry.entries import withdraw_all
from .errors import UserError
from .timeline import RECORDER

__all__ = ["LogInProgress", "log_values"]


class LogInProgress(UserError, RuntimeError):
    """A log of values that begins while another one is written."""


@contextmanager
def log_values(file: str | Path | TextIO) -> Iterator[None]:
    """Write what programs that run within the block assign, cell by cell in the program's order, each with
    the user's line, into a file or a stream of text. The text is the same on every target.

    Functions are compiled anew for that, and routines log that are compiled within the block; what a stream
    has not ended by its end is left out. A launch logs some 50,000 values at most. Raises LogInProgress, and
    OSError if the file cannot be written.
    """
    if RECORDER.values is not None:
        raise LogInProgress("values are being logged already", fix="let one block contain the other's work")
    if isinstance(file, (str, Path)):
        with open(file, "w", encoding="utf-8") as stream, log_values(stream):
            yield
        return
    lock = Lock()

    def write(lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        with lock:
            file.write(text)

    RECORDER.values = write
    withdraw_all()
    try:
        yield
    finally:
        RECORDER.values = None
