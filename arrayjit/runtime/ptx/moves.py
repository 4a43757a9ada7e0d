"""Moves between registers and memories, and between kinds of addresses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .memory import FIRST_ADDRESS
from .module import Vector, Word
from .site import Action, Site
from .spaces import WINDOW, WINDOWS
from .threads import Threads, Use
from .types import TYPES, Array, unsigned

__all__ = [
    "convert_address",
    "fence",
    "fetched",
    "is_in_space",
    "lanes_of",
    "load",
    "move",
    "nothing",
    "policy",
    "space_of",
    "store",
]

_SPACES = ("global", "shared", "local", "const", "param")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def space_of(site: Site) -> str:
    """The space that the modifiers name."""
    for modifier in site.instruction.modifiers:
        name = modifier.partition("::")[0]
        if name in _SPACES:
            return {"const": "global"}.get(name, name)
    return "generic"


def fetched(threads: Threads, space: str, addresses: Array, nbytes: int, use: Use) -> Array:
    """The bytes at the active lanes' addresses as words: shape (lanes, words)."""
    pieces = list(threads.spaces[space].locate(threads, addresses, nbytes, use))
    if len(pieces) == 1:
        memory, rows, _ = pieces[0]
        return memory[rows]
    found = np.empty((threads.count, pieces[0][0].shape[1]), pieces[0][0].dtype)
    for memory, rows, which in pieces:
        found[which] = memory[rows]
    return found


def put(threads: Threads, space: str, addresses: Array, values: Array, use: Use) -> None:
    """Store rows of words, shape (lanes, words)."""
    nbytes = values.shape[1] * values.dtype.itemsize
    for memory, rows, which in threads.spaces[space].locate(threads, addresses, nbytes, use):
        memory[rows] = values[which]


def lanes_of(site: Site) -> int:
    """How many elements a vector access has."""
    return next((int(each[1:]) for each in site.instruction.modifiers if each in ("v2", "v4", "v8")), 1)


def load(site: Site) -> Action:
    """`ld`, `ldu`."""
    kind, count = site.type, lanes_of(site)
    space, address = site.address(1, space_of(site))
    shown = TYPES[f"s{kind.bits}"] if kind.kind == "s" else TYPES[f"b{kind.bits}"]
    write = site.write_parts(0, shown, count)
    use = Use.STRONG_READ if site.has(*_STRONG) else Use.READ
    acquires = site.has("acquire")

    def run(threads: Threads) -> None:
        values = fetched(threads, space, address(threads), kind.nbytes * count, use)
        write(threads, values.view(shown.dtype))
        if acquires:
            threads.fence()

    return run


def store(site: Site) -> Action:
    """`st`."""
    kind, count = site.type, lanes_of(site)
    space, address = site.address(0, space_of(site))
    read = site.read_parts(1, kind.bits, count)
    word = unsigned(8 * min(kind.nbytes * count, 8))
    use = Use.STRONG_WRITE if site.has(*_STRONG) else Use.WRITE
    releases = site.has("release")

    def run(threads: Threads) -> None:
        if releases:
            threads.fence()
        put(threads, space, address(threads), read(threads).view(word), use)

    return run


def move(site: Site) -> Action:
    """`mov`: a value, or the parts of one to several registers, or several to one."""
    target, source = site.operands[0], site.operands[1]
    if isinstance(target, Vector):
        bits = site.type.bits // len(target.parts)
        whole, write_parts = site.read(1, f"b{site.type.bits}"), site.write_parts(0, f"b{bits}")
        part = unsigned(bits)
        return lambda threads: write_parts(threads, np.array(whole(threads)).reshape(-1, 1).view(part))
    if isinstance(source, Vector):
        parts = site.read_parts(1, site.type.bits // len(source.parts))
        write, joined = site.write(0, f"b{site.type.bits}"), unsigned(site.type.bits)
        return lambda threads: write(threads, parts(threads).view(joined).reshape(-1))
    kind = site.type if site.type.name == "pred" or not site.type.is_float else TYPES[f"b{site.type.bits}"]
    read, write = site.read(source, kind), site.write(0, kind)
    return lambda threads: write(threads, read(threads))


def convert_address(site: Site) -> Action:
    """`cvta`: to a generic address, or `.to` a space's own."""
    start = np.uint64(WINDOWS.get(space_of(site), 0))
    bits = site.type.bits
    read, write = site.read(1, f"u{bits}"), site.write(0, f"u{bits}")
    change: Callable[[Array, np.uint64], Array] = np.subtract if site.has("to") else np.add
    return lambda threads: write(
        threads, change(read(threads).astype(np.uint64), start).astype(f"u{bits // 8}")
    )


def is_in_space(site: Site) -> Action:
    """`isspacep`: does a generic address lead into a space?"""
    name = space_of(site)
    bits = 64
    operand = site.operands[1]
    if isinstance(operand, Word) and site.names.slot(operand.name) is not None:
        bits = site.names.types[operand.name].bits
    read, write = site.read(1, f"u{bits}"), site.write(0, "pred")
    if name == "global":
        return lambda threads: write(threads, read(threads) >= FIRST_ADDRESS)
    window = WINDOWS.get(name, 0) // WINDOW
    return lambda threads: write(threads, read(threads) // WINDOW == window)


def nothing(site: Site) -> Action:
    """What only hints or waits: `prefetch`, `nanosleep`, `pragma`."""
    return lambda threads: None


def policy(site: Site) -> Action:
    """`createpolicy`: a register for hints to caches."""
    write, value = site.write(0, "b64"), np.zeros(1, np.uint64)
    return lambda threads: write(threads, value)


def fence(site: Site) -> Action:
    """`membar`, `fence`: what came before is seen by other blocks, where the scope reaches them."""
    if site.has("cta"):
        return lambda threads: None
    return lambda threads: threads.fence()
