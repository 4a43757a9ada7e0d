"""The type of functions that are called through the dispatcher: a class with a slot for machine code.

`native` derives it from a class written in Python, from which it has all but two words: the code that it is
called through (CPython's vectorcall), and the rows that the code reads. While the first is empty CPython
calls
`__call__` of the class, as ever. The type cannot be derived from: some versions would take the slot away.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, TypeVar

from .layout import reason_against

__all__ = ["ENTRY", "TABLE", "native", "table_offset"]

Class = TypeVar("Class", bound=type)

ENTRY, TABLE = "_entry", "_table"
"""Attributes: the address of the machine code, 0 at first; the rows that it reads."""

_WORD = 8
_TP_MEMBERS = 72
_SIZE, _OBJECT, _READ_ONLY = 19, 16, 1
_DEFAULT, _HAS_VECTORCALL, _IS_METHOD = 1 << 18, 1 << 11, 1 << 17


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


_lasting: list[Any] = []
"""What types refer to; CPython expects it to live as long as they do."""


def table_offset(base: type) -> int:
    """Where objects of the native class have the address of their rows."""
    return base.__basicsize__ + _WORD


@cache
def native(base: Class) -> Class:
    """The class with the slot; the class itself where layouts differ from what the dispatcher relies on."""
    if reason_against():
        return base
    start = base.__basicsize__
    members = (_Member * 4)(
        _Member(b"__vectorcalloffset__", _SIZE, start, _READ_ONLY, None),
        _Member(ENTRY.encode(), _SIZE, start, 0, None),
        _Member(TABLE.encode(), _OBJECT, table_offset(base), 0, None),
    )
    slots = (_Slot * 2)(_Slot(_TP_MEMBERS, ctypes.addressof(members)))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    flags = _DEFAULT | _HAS_VECTORCALL | _IS_METHOD
    spec = _Spec(name, start + 2 * _WORD, 0, flags, ctypes.addressof(slots))
    _lasting.extend((members, slots, spec, name))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)
    make = prototype(("PyType_FromSpecWithBases", ctypes.pythonapi))
    made: Class = make(ctypes.addressof(spec), (base,))
    return made
