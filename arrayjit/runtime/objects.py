"""Machine code in memory: object files as LLVM makes them for x86-64 Linux, placed and linked by ourselves.

    object file -> its sections in pages -> relocations -> pages protected -> addresses of its functions

So a process whose code is all in the cache never loads LLVM, which takes longer than everything else
together. LLVM compiles code that is loaded in place for any distances (its large model), so what is left to
link is nearly always a 64-bit address. Pages that can be written are never executable. All are given back
with the `Image`. The format is that of the System V ABI, chapter 4, and its supplement for AMD64.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING

from ..errors import CompilerBug
from ..frozen import frozen
from ..late import Late

if TYPE_CHECKING:
    import json
else:
    json = Late("json")

__all__ = ["Image", "ObjectFile", "can_load", "found", "load", "placed"]

_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_SECTION_TABLE, _SECTION_COUNT = Struct("<Q"), Struct("<H")
_TABLE_AT, _COUNT_AT = 40, 60

_SYMBOLS, _RELOCATIONS, _EMPTY, _UNWINDING = 2, 4, 8, 0x70000001
_WRITTEN, _LOADED, _EXECUTED = 1, 2, 4
_GLOBAL, _FUNCTION = 1, 2

_READ_ONLY, _READ_WRITE, _READ_EXECUTE = 1, 3, 5
_ADDRESS, _DISTANCE, _CALL, _SMALL, _LONG_DISTANCE = 1, 2, 4, 11, 24
"""Relocations: R_X86_64_64, _PC32, _PLT32, _32S and _PC64."""


@frozen
class ObjectFile:
    """What a compiler makes: the functions that others may call, the names that others must define, and the
    bytes of the file."""

    functions: tuple[str, ...]
    needs: tuple[str, ...]
    content: bytes

    def packed(self) -> bytes:
        """All of it as bytes, for `unpacked`."""
        return json.dumps([self.functions, self.needs]).encode() + b"\n" + self.content

    @staticmethod
    def unpacked(packed: bytes) -> ObjectFile:
        head, _, content = packed.partition(b"\n")
        functions, needs = json.loads(head)
        return ObjectFile(tuple(functions), tuple(needs), content)


@frozen
class Image:
    """Code that can be called: the addresses of its functions. It lives as long as `memory`. `functions` are
    all that it has, each with its address and size, where somebody asked for them."""

    addresses: Mapping[str, int]
    memory: object
    functions: Sequence[tuple[str, int, int]] = ()


@frozen
class _Section:
    kind: int
    flags: int
    start: int
    size: int
    link: int
    target: int
    alignment: int


def can_load() -> bool:
    """Whether this is a machine for whose object files this is made."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 2**32


def found(name: str, resolve: Callable[[str], int]) -> int:
    """The address of a name. Raises CompilerBug where it is 0."""
    address = resolve(name)
    if not address:
        raise CompilerBug(f"code calls {name}, which is not here", stage="runtime/objects")
    return address


def load(file: ObjectFile, resolve: Callable[[str], int], *, listed: bool = False) -> Image:
    """Place and link an object file; `resolve` gives the address of what it does not define, 0 if there is
    none. With `listed` the image says which functions it has. Raises CompilerBug there, and for what LLVM is
    not expected to make."""
    content = file.content
    sections = list(_sections(content))
    places, ranges, total = _layout(sections)
    memory = mmap.mmap(-1, max(total, 1), prot=mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for number, place in places.items():
        section = sections[number]
        if section.kind != _EMPTY:
            memory[place : place + section.size] = content[section.start : section.start + section.size]
    addresses = {number: base + place for number, place in places.items()}
    symbols, exported = _symbols(content, sections, addresses, resolve)
    for section in sections:
        if section.kind == _RELOCATIONS and section.target in places:
            _relocate(content, section, memory, places[section.target], base, symbols)
    for start, size, protection in ranges:
        _protect(base + start, size, protection)
    public = {name: exported[name] for name in file.functions}
    return Image(public, memory, tuple(placed(file, public)) if listed else ())


def placed(file: ObjectFile, addresses: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Every function of a file, with its address and size, given the addresses of those that others may
    call."""
    defined = list(_defined(file.content, list(_sections(file.content))))
    starts = {section: addresses[name] - value for name, section, value, _ in defined if name in addresses}
    for name, section, value, size in defined:
        if section in starts:
            yield name, starts[section] + value, size


def _sections(content: bytes) -> Iterator[_Section]:
    (table,) = _SECTION_TABLE.unpack_from(content, _TABLE_AT)
    (count,) = _SECTION_COUNT.unpack_from(content, _COUNT_AT)
    for number in range(count):
        _, kind, flags, _, start, size, link, target, alignment, _ = _SECTION.unpack_from(
            content, table + number * _SECTION.size
        )
        yield _Section(kind, flags, start, size, link, target, max(alignment, 1))


def _layout(sections: list[_Section]) -> tuple[dict[int, int], list[tuple[int, int, int]], int]:
    """Where each section goes, the pages of each protection, and the size of all."""
    places: dict[int, int] = {}
    ranges: list[tuple[int, int, int]] = []
    end = 0
    for protection in (_READ_EXECUTE, _READ_ONLY, _READ_WRITE):
        start = end
        for number, section in enumerate(sections):
            if _protection(section) == protection:
                end += -end % section.alignment
                places[number] = end
                end += section.size
        end += -end % mmap.PAGESIZE
        if end > start:
            ranges.append((start, end - start, protection))
    return places, ranges, end


def _protection(section: _Section) -> int:
    """How a section is used in memory; 0 if it does not come there."""
    if not section.flags & _LOADED or not section.size or section.kind == _UNWINDING:
        return 0
    if section.flags & _EXECUTED:
        return _READ_EXECUTE
    return _READ_WRITE if section.flags & _WRITTEN else _READ_ONLY


def _symbols(
    content: bytes, sections: list[_Section], addresses: dict[int, int], resolve: Callable[[str], int]
) -> tuple[list[int], dict[str, int]]:
    """The addresses of all symbols by number, and those of the functions that others may call by name."""
    table = next(section for section in sections if section.kind == _SYMBOLS)
    names = sections[table.link].start
    values: list[int] = []
    exported: dict[str, int] = {}
    for place in range(table.start, table.start + table.size, _SYMBOL.size):
        name_at, info, _, section, value, _ = _SYMBOL.unpack_from(content, place)
        if section:
            address = addresses.get(section, 0) + value
            if info >> 4 == _GLOBAL:
                exported[_name(content, names + name_at)] = address
        else:
            address = found(_name(content, names + name_at), resolve) if name_at else 0
        values.append(address)
    return values, exported


def _defined(content: bytes, sections: list[_Section]) -> Iterator[tuple[str, int, int, int]]:
    """Every function, also those that only others of the file call: its name, section, place there and
    size."""
    table = next(section for section in sections if section.kind == _SYMBOLS)
    names = sections[table.link].start
    for place in range(table.start, table.start + table.size, _SYMBOL.size):
        name_at, info, _, section, value, size = _SYMBOL.unpack_from(content, place)
        if info & 15 == _FUNCTION and section:
            yield _name(content, names + name_at), section, value, size


def _name(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()


def _relocate(
    content: bytes, section: _Section, memory: mmap.mmap, place: int, base: int, symbols: list[int]
) -> None:
    for entry in range(section.start, section.start + section.size, _RELOCATION.size):
        offset, info, addend = _RELOCATION.unpack_from(content, entry)
        at = place + offset
        value = symbols[info >> 32] + addend
        kind = info & 0xFFFFFFFF
        if kind in (_DISTANCE, _CALL, _LONG_DISTANCE):
            value -= base + at
        if kind in (_ADDRESS, _LONG_DISTANCE):
            memory[at : at + 8] = (value % 2**64).to_bytes(8, "little")
        elif kind in (_DISTANCE, _CALL, _SMALL) and -(2**31) <= value < 2**31:
            memory[at : at + 4] = (value % 2**32).to_bytes(4, "little")
        else:
            raise CompilerBug(f"code has a relocation of kind {kind}", stage="runtime/objects")


@cache
def _c_library() -> ctypes.CDLL:
    """One for all, since each is a circle that only the collector of garbage would take away."""
    return ctypes.CDLL(None, use_errno=True)


def _protect(address: int, size: int, protection: int) -> None:
    change = _c_library().mprotect
    if change(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
        raise CompilerBug(
            f"memory cannot be made executable: error {ctypes.get_errno()}", stage="runtime/objects"
        )
