"""Work of earlier processes, kept in the cache: what tracing made of a call, and what passes and emitter made
of a computation.

    call            its fingerprint                -> how code is called for it, and the key of that code
    computation     its text                       -> code

Each key has also what the passes may know of the machine, the CPU that was asked for, whether a debugger is
to know lines, and the package itself, so that another version finds nothing. The text of a computation
includes the user's lines, which stand in its errors. Only code that is text is kept, and programs for GPUs.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .cache import key_for, recall, remember
from .ir.code import Caps, Code, Failure, Schedule
from .ir.index import Symbol
from .ir.params import IndexParam, Param
from .late import Late
from .settings import cache_bytes, debugger_wanted
from .tracer.calls.binding import CapturedSource
from .tracer.calls.convention import Convention
from .tracer.calls.fingerprint import Fingerprint, fingerprint_of
from .tracer.record.facts import Fact
from .tracer.record.guards import ArrayGuard, guards_hold
from .tracer.record.resident import layout_of
from .tracer.record.tree import statics

if TYPE_CHECKING:
    import json

    from .ir import launches, text
    from .ir.assign import Computation
    from .ir.launches import DeviceProgram
else:
    json, text = Late("json"), Late("arrayjit.ir.text")
    launches = Late("arrayjit.ir.launches")

__all__ = ["Call", "code_key", "recall_code", "remember_code"]

_CALL, _CODE = "call", "code"
_BESIDE = {"payload", "params", "prior", "threads", "opt"}
"""What is not kept with the other facts of code: the caller knows it, or it stands elsewhere."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""Parts of a result that are as good as the very objects that the traced function gave back."""

_MOST_BYTES = 1 << 20
"""Of an array that the trace made."""


def code_key(computation: Computation, target: str, cpu: str, caps: Caps, schedule: Schedule) -> str:
    """What the code depends on; `cpu` is the one that the target was asked to emit for. "" where nothing is
    kept: to print a long computation takes as long as some passes over it."""
    if not cache_bytes():
        return ""
    printed = text.print_computation(computation, locations=True)
    return key_for(printed, target, cpu, caps, schedule, debugger_wanted(), _package_identity())


def recall_code(key: str, params: tuple[Param, ...]) -> Code | None:
    """The code of a key, for these parameters and all threads; None for none."""
    content = recall(_CODE, key)
    if content is None:
        return None
    head, _, payload = content.partition(b"\n")
    facts = json.loads(head)
    failures = tuple(Failure(**failure) for failure in facts.pop("failures"))
    needs = tuple(facts.pop("needs"))
    known = payload.decode() if facts.pop("is_text") else _unpacked(payload, params)
    return Code(payload=known, params=params, failures=failures, needs=needs, **facts)


def remember_code(key: str, params: tuple[Param, ...], code: Code) -> None:
    """Keep code for later processes, if it is of a kind that they can read."""
    if _is_kept(code) and code.params == params:
        facts = asdict(replace(code, payload=None, params=(), prior=frozenset()))
        kept = {name: facts[name] for name in facts.keys() - _BESIDE}
        kept["is_text"] = isinstance(code.payload, str)
        payload = code.payload.encode() if isinstance(code.payload, str) else _packed(code.payload, params)
        remember(_CODE, key, json.dumps(kept).encode() + b"\n" + payload)


def _is_kept(code: Code) -> bool:
    """Whether later processes can read the payload."""
    return isinstance(code.payload, (str, launches.DeviceProgram))


def _packed(program: DeviceProgram, params: tuple[Param, ...]) -> bytes:
    """A program, in which symbols of the parameters are told by their places."""
    places = {symbol: number for number, symbol in enumerate(_symbols(params))}
    packed = io.BytesIO()
    _Packer(packed, places).dump(program)
    return packed.getvalue()


def _unpacked(packed: bytes, params: tuple[Param, ...]) -> DeviceProgram:
    """The program, for these parameters."""
    program: DeviceProgram = _Unpacker(io.BytesIO(packed), _symbols(params)).load()
    return program


class _Packer(pickle.Pickler):
    """Tells symbols by their places."""

    def __init__(self, file: io.BytesIO, places: Mapping[Symbol, int]) -> None:
        super().__init__(file)
        self._places = places

    def persistent_id(self, obj: Any) -> int | None:
        return self._places.get(obj) if isinstance(obj, Symbol) else None


class _Unpacker(pickle.Unpickler):
    """Finds symbols at their places."""

    def __init__(self, file: io.BytesIO, symbols: Sequence[Symbol]) -> None:
        super().__init__(file)
        self._symbols = symbols

    def persistent_load(self, pid: int) -> Symbol:
        return self._symbols[pid]


def _symbols(params: tuple[Param, ...]) -> list[Symbol]:
    return [param.symbol for param in params if isinstance(param, IndexParam)]


class Call:
    """A call of a function that a later process can recognise.

    What it keeps is how code is called, the parameters of the code, and its key. Where tracing compiled in
    facts about the call's numbers, that is kept for each of their values, and for the call the facts.
    """

    def __init__(self, fingerprint: Fingerprint, key: str) -> None:
        self._fingerprint = fingerprint
        self._key = key

    @staticmethod
    def of(function: Callable[..., Any], signature: Hashable, *others: object) -> Call | None:
        """None for a call that cannot be told from all others; `others` is what its code depends on
        besides."""
        fingerprint = fingerprint_of(function, signature) if cache_bytes() else None
        if fingerprint is None:
            return None
        versions = sys.version, np.__version__, debugger_wanted(), _package_identity()
        return Call(fingerprint, key_for(fingerprint.text, *others, *versions))

    def recall(self, leaves: Sequence[Any]) -> tuple[Convention, tuple[Param, ...], str] | None:
        """What an earlier process kept of this call; None for nothing."""
        content = recall(_CALL, self._key)
        facts, kept = ((), None) if content is None else pickle.loads(content)
        if facts:
            content = recall(_CALL, self._key_of(facts, leaves))
            kept = None if content is None else pickle.loads(content)
        if kept is None:
            return None
        sources, results, outputs, places, baked, params, code = kept
        guards = [self._fingerprint.places[number].guard() for number in places]
        made = [ArrayGuard.of(layout_of(s.array)) for s in sources if isinstance(s, CapturedSource)]
        return Convention(sources, results, outputs, (*guards, *made), baked), params, code

    def remember(self, traced: Convention, code: Code, key: str, leaves: Sequence[Any]) -> None:
        """Keep how the code is called, and its key, if later processes would make the same of the call."""
        names = [guard for guard in traced.guards if not isinstance(guard, ArrayGuard)]
        places = self._fingerprint.numbers(names)
        if places is None or not guards_hold(traced.guards) or not _is_plain(traced, code):
            return
        kept = traced.sources, traced.results, traced.outputs, places, traced.baked, code.params, key
        facts = tuple(traced.baked)
        if facts:
            remember(_CALL, self._key_of(facts, leaves), pickle.dumps(kept))
        remember(_CALL, self._key, pickle.dumps((facts, None if facts else kept)))

    def _key_of(self, facts: Sequence[Fact], leaves: Sequence[Any]) -> str:
        return key_for(self._key, facts, [fact.read(leaves) for fact in facts])


def _is_plain(traced: Convention, code: Code) -> bool:
    """Whether the code is kept, and a copy of all that belongs to calls is as good as what the trace met. The
    arrays are its own, such as `np.arange(9)`: a function that has another one outside of its arguments has
    no fingerprint."""
    if not _is_kept(code) or any(type(part) not in _PLAIN for part in statics(traced.results)):
        return False
    return all(
        type(source.array) is np.ndarray
        and source.array.flags.carray
        and source.array.nbytes <= _MOST_BYTES
        and not source.written
        for source in traced.sources
        if isinstance(source, CapturedSource)
    )


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
