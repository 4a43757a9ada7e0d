"""The rows that the dispatcher reads: rows of 64-bit words, written here by Python.

A word is a number, the address of an object, or that of other rows. Whoever writes a row keeps alive what its
words name. `ROWS` says what each word means; the dispatcher's text refers to them by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

__all__ = ["CODES", "ROWS", "Words", "address", "code", "count_from", "hits", "offsets", "row", "words"]

ROWS: Mapping[str, tuple[str, ...]] = {
    # What a function points to: how many variants, which was called last, what must be so for any of them,
    # and how many values and pointers they need room for. The addresses of the variants follow.
    "TABLE": ("LAST", "COUNT", "GUARDS", "GUARD_COUNT", "ROOM"),
    # A variant: the calls that it answers, what it runs, what it returns.
    "VARIANT": (
        "POSITIONAL",
        "KEYWORDS",
        "GUARDS",
        "GUARD_COUNT",
        "STEPS",
        "STEP_COUNT",
        "FACTS",
        "FACT_COUNT",
        "RANGES",
        "KERNEL",
        "PARAMS",
        "POOL",
        "WORKSPACE",
        "NEEDS_WORKSPACE",
        "RELEASES",
        "OWNS",
        "FRESH",
        "FRESH_COUNT",
        "BUILD",
        "BUILD_COUNT",
        "FAILED",
        "HITS",
    ),
    # A place outside of the call, and what must be in it. NAME is the offset of a FIELD, the position of an
    # ITEM of a list. ENTRIES says how many a dict has, and each ENTRY behind it what the next one is. A
    # VERSION begins NAME rows about a dict, which hold where the dict has the version VALUE; SEEN ends them,
    # and notes it.
    "GUARD": ("KIND", "HOLDER", "NAME", "VALUE"),
    # How to come to one value of the call, and what it must be.
    "STEP": (
        "FETCH",
        "SOURCE",
        "INDEX",
        "KEY",
        "CHECK",
        "WANTED",
        "SIZE",
        "FLAGS",
        "EXTENTS",
        "STRIDES",
        "NUMBER",
        "OTHER_NUMBER",
        "PARAM",
        "RANGE",
        "LOW",
        "HIGH",
        "SHARED",
        "TWIN",
        "BEFORE",
        "PINNED",
        "PINNED_BYTES",
        "OWNED",
        # Of an array of any length: whether its first extent differs from call to call, between which ends,
        # where code is told of it, whether an earlier array had the same, and the bytes of a row, so many of
        # which its range has behind HIGH.
        "IS_OPEN",
        "LEAST",
        "MOST",
        "LENGTH",
        "AS_BEFORE",
        "ROW",
    ),
    # A fact about a sum of integers of the call. Its terms are rows of their own: of a step, or, in a sum of
    # lengths, of a parameter.
    "FACT": ("KIND", "TERMS", "TERM_COUNT", "START", "PERIOD", "EXPECTED"),
    "TERM": ("FACTOR", "PLACE"),
    # Memory for a result: an array, which Python makes where there is a maker, or (without a descr) 16 bytes
    # for a number. Extents that lengths tell are rows: the maker is told them, in that order.
    "FRESH": ("PARAM", "DESCR", "RANK", "EXTENTS", "STRIDES", "MAKER", "OPEN", "OPEN_COUNT"),
    # The extent along an axis: a sum of lengths, and an offset.
    "OPEN": ("AXIS", "TERMS", "TERM_COUNT", "OFFSET"),
    # A step of making the result, on a stack. Of a number in an array, VIEW is where, in bytes; of a CALL,
    # which has so many ARGUMENTs, DESCR is the class.
    "BUILD": ("KIND", "ARGUMENT", "DESCR", "VIEW"),
    # Cells of a result or an argument, which starts so many bytes before them. Of a sized one the extents are
    # rows.
    "VIEW": ("RANK", "EXTENTS", "STRIDES", "START", "FLAGS"),
    # An extent: that of a constant, or (with `counted`) the number in a parameter.
    "EXTENT": ("COUNTED", "NUMBER"),
}

CODES: Mapping[str, tuple[str, ...]] = {
    "GUARD": ("DICT", "CELL", "CONTEXT", "FIELD", "ITEM", "ENTRIES", "ENTRY", "VERSION", "SEEN"),
    "FETCH": ("ARGUMENT", "TUPLE", "LIST", "DICT", "ATTRIBUTE", "OBJECT"),
    "CHECK": ("ARRAY", "VALUE", "INT", "BOOL", "SAME", "CONTAINER", "DICT", "INSTANCE"),
    "FACT": ("POSITIVE", "REMAINDER"),
    "BUILD": (
        "ARRAY",
        "ARGUMENT",
        "OBJECT",
        "TUPLE",
        "LIST",
        "DICT",
        "CALL",
        "SCALAR",
        "FLOAT",
        "COMPLEX",
        "INT",
        "BOOL",
        "VIEW",
        "PART",
        "SIZED",
        "AGAIN",
    ),
}
"""The kinds of each, numbered from 0."""


Words = ctypes.Array[ctypes.c_int64]
"""Rows in memory of their own."""


def words(rows: Iterable[Sequence[int]], *owned: Any) -> Words:
    """Rows in memory, which keep alive what their words name."""
    flat = list(chain.from_iterable(rows))
    memory = _kind(len(flat))(*flat)
    memory.owned = owned
    return memory  # type: ignore[no-any-return]


def address(rows: Words) -> int:
    """Where rows are."""
    return ctypes.addressof(rows)


_HITS = ROWS["VARIANT"].index("HITS")


def hits(variant: Words) -> int:
    """How many calls a variant answered."""
    return variant[_HITS]


def count_from(variant: Words, answered: int) -> None:
    """Have a variant go on counting from there."""
    variant[_HITS] = answered


@cache
def _kind(count: int) -> Any:
    """A class of arrays that has room for attributes."""
    return type("Words", (ctypes.c_int64 * count,), {})


def row(kind: str, /, **words: int) -> list[int]:
    """A row of a kind; words that are not given are 0."""
    unknown = words.keys() - {field.lower() for field in ROWS[kind]}
    assert not unknown, unknown
    return [words.get(field.lower(), 0) for field in ROWS[kind]]


def code(name: str, kind: str) -> int:
    """The number of a kind."""
    return CODES[name].index(kind)


def offsets() -> dict[str, int]:
    """Where each word is in its row, in bytes, as `STEP_CHECK`; the sizes of rows, as `STEP_BYTES`; and the
    codes, as `CHECK_IS_ARRAY`."""
    offsets = {
        f"{name}_{field}": 8 * place for name, fields in ROWS.items() for place, field in enumerate(fields)
    }
    sizes = {f"{name}_BYTES": 8 * len(fields) for name, fields in ROWS.items()}
    codes = {
        f"{name}_IS_{code}": number for name, known in CODES.items() for number, code in enumerate(known)
    }
    return {**offsets, **sizes, **codes}
