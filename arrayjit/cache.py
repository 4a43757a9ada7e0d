"""What was made once and is kept in files for later processes: bytes, under keys that are hashes.

    FOLDER/machine/5f0c...    one file an entry, its folder says what it is

A file is written beside its place and renamed, so nobody ever reads half of one, whoever else writes and
whatever is killed. Its first line has the checksum of its place and of the rest: an entry that is damaged, as
one may be that had not reached the disk when the machine stopped, or another's, is as good as none, is
counted and goes. So nobody waits for the disk. Above the size that the setting
allows, the entries that were not used for longest go. Where nothing can be written, the log says so once, and
work goes on without.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from .frozen import frozen, slotted
from .late import Late
from .locks import lock
from .settings import cache_bytes, cache_folder

if TYPE_CHECKING:
    import hashlib
    import logging
    import pathlib
    import tempfile
else:
    hashlib, pathlib = Late("hashlib"), Late("pathlib")
    logging, tempfile = Late("logging"), Late("tempfile")

__all__ = ["Contents", "clear", "contents", "counters", "key_for", "recall", "remember", "verify"]

_HEAD = b"arrayjit 2 "
_PARTIAL = "partial-"
_ABANDONED = 3600
"""Seconds after which nobody is still writing a file."""

_WRITTEN = f"written-{getattr(os, 'getuid', int)()}"
"""The file with a byte for each page that this user's processes wrote since one of them last looked how many
bytes there are in all. To look at a folder of a gibibyte takes longer than the first call of a process."""

_PAGE = 4096

_EVERY = 16 << 20
"""After so many bytes, and at the first, they look again."""

_KEPT = 0.9
"""Of the bytes that are allowed, once there are more."""


@slotted
class Counters:
    """What this process has done: entries found, not found, found damaged, written, and not written."""

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    written: int = 0
    refused: int = 0


counters = Counters()
_lock = lock()


@frozen
class Contents:
    """How many entries there are of each kind, and their bytes."""

    folder: pathlib.Path
    entries: dict[str, int]
    nbytes: int


def key_for(*parts: object) -> str:
    """The same for the same parts, in any process."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def recall(kind: str, key: str) -> bytes | None:
    """The content of an entry; None for none."""
    if not cache_bytes():
        return None
    place = cache_folder() / kind / key
    try:
        found = place.read_bytes()
    except OSError:
        _count("misses")
        return None
    content = _content(place, found)
    if content is None:
        _count("damaged")
        _removed(place)
        return None
    _count("hits")
    with suppress(OSError):
        os.utime(place)
    return content


def remember(kind: str, key: str, content: bytes) -> None:
    """Keep an entry for later processes, as far as there is room."""
    if not cache_bytes():
        return
    place = cache_folder() / kind / key
    try:
        _write(place, b"%s%s\n%s" % (_HEAD, _checksum(place, content), content))
    except OSError as error:
        if _count("refused") == 1:
            logging.getLogger("arrayjit").warning("nothing is kept in %s: %s", cache_folder(), error)
        return
    _count("written")
    _make_room(len(content))


def contents() -> Contents:
    """What there is now."""
    entries: dict[str, int] = {}
    nbytes = 0
    for place, status in _entries():
        entries[place.parent.name] = entries.get(place.parent.name, 0) + 1
        nbytes += status.st_size
    return Contents(cache_folder(), entries, nbytes)


def clear() -> int:
    """Forget everything; how many entries there were."""
    removed = 0
    for place, _ in _entries(partial=True):
        removed += _removed(place) and not place.name.startswith(_PARTIAL)
    return removed


def verify() -> tuple[int, int]:
    """Read every entry and remove those that are damaged; how many there are left and how many went."""
    good = bad = 0
    for place, _ in _entries():
        try:
            is_good = _content(place, place.read_bytes()) is not None
        except OSError:
            continue
        good += is_good
        bad += not is_good and _removed(place)
    return good, bad


def _checksum(place: pathlib.Path, content: bytes) -> bytes:
    return hashlib.sha256(f"{place.parent.name}/{place.name}\n".encode() + content).hexdigest().encode()


def _content(place: pathlib.Path, found: bytes) -> bytes | None:
    """What is behind the first line; None if that does not say so."""
    head, _, content = found.partition(b"\n")
    return content if head == _HEAD + _checksum(place, content) else None


def _removed(place: pathlib.Path) -> bool:
    """Whether a file could be removed: it may be another user's."""
    try:
        place.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _write(place: pathlib.Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=_PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, place)
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise


def _entries(*, partial: bool = False) -> Iterator[tuple[pathlib.Path, os.stat_result]]:
    """Every entry, with its size and the time of its last use; with `partial`, incomplete files too."""
    try:
        kinds = [entry.path for entry in os.scandir(cache_folder()) if entry.is_dir()]
    except OSError:
        return
    for kind in kinds:
        with suppress(OSError), os.scandir(kind) as files:
            for file in files:
                if partial or not file.name.startswith(_PARTIAL):
                    with suppress(OSError):
                        yield pathlib.Path(file.path), file.stat()


def _make_room(nbytes: int) -> None:
    """Now and then, remove what is too much."""
    try:
        if not _is_due(nbytes):
            return
    except OSError:
        return
    entries = []
    for place, status in _entries(partial=True):
        if not place.name.startswith(_PARTIAL):
            entries.append((status.st_mtime, status.st_size, place))
        elif time.time() - status.st_mtime > _ABANDONED:
            _removed(place)
    total, allowed = sum(size for _, size, _ in entries), cache_bytes()
    if total > allowed:
        for _, size, place in sorted(entries):
            if total <= _KEPT * allowed:
                break
            total -= size * _removed(place)


def _is_due(nbytes: int) -> bool:
    """Note so many bytes more; whether they are many, or the first of which there is a note."""
    place = cache_folder() / _WRITTEN
    is_first = not place.exists()
    with place.open("ab", buffering=0) as file:
        file.write(bytes(-(-nbytes // _PAGE)))
        is_due = is_first or file.tell() * _PAGE >= min(_EVERY, cache_bytes() * (1 - _KEPT))
        if is_due:
            file.truncate(0)
    return is_due


def _count(name: str) -> int:
    with _lock:
        value: int = getattr(counters, name) + 1
        setattr(counters, name, value)
    return value
