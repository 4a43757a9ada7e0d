"""Code of earlier processes: what passes and emitter made of a computation, kept in the cache.

The key is the whole text of the computation, with the user's lines, which stand in its errors; what the
passes may know of the machine; the CPU that was asked for; the schedule; and the package itself, so that
another version finds nothing. Only code that is text is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache

from .cache import key_for, recall, remember
from .ir.assign import Computation
from .ir.code import Caps, Code, Failure, Schedule
from .ir.text import print_computation

__all__ = ["code_key", "recall_code", "remember_code"]

_KIND = "code"
_BESIDE = {"payload", "params", "prior", "threads", "opt"}
"""What is not kept with the other facts of code: the caller knows it, or it stands elsewhere."""


def code_key(computation: Computation, target: str, cpu: str, caps: Caps, schedule: Schedule) -> str:
    """What the code depends on; `cpu` is the one that the target was asked to emit for."""
    text = print_computation(computation, locations=True)
    return key_for(text, target, cpu, caps, schedule, _package_identity())


def recall_code(key: str, computation: Computation) -> Code | None:
    """The code of a key, for the tensors of this computation and all threads; None for none."""
    content = recall(_KIND, key)
    if content is None:
        return None
    head, _, payload = content.partition(b"\n")
    facts = json.loads(head)
    failures = tuple(Failure(**failure) for failure in facts.pop("failures"))
    needs = tuple(facts.pop("needs"))
    return Code(payload=payload.decode(), params=computation.params, failures=failures, needs=needs, **facts)


def remember_code(key: str, computation: Computation, code: Code) -> None:
    """Keep code for later processes, if it is text."""
    if isinstance(code.payload, str) and code.params == computation.params:
        facts = asdict(replace(code, payload=None, params=(), prior=frozenset()))
        kept = {name: facts[name] for name in facts.keys() - _BESIDE}
        remember(_KIND, key, json.dumps(kept).encode() + b"\n" + code.payload.encode())


@cache
def _package_identity() -> str:
    """Another one for another version, or for changed files."""
    return key_for(*sorted(_files(os.path.dirname(__file__))))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """The source files there and below, with what changes when they do."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
