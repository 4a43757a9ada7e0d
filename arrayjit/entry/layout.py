"""Where CPython and NumPy keep what the dispatcher reads, checked on live objects before it is used.

All of it is fixed by the public headers of both for a 64-bit build with the interpreter's lock; what they
leave to the version (the size of an object's head, where a tuple's items start) is asked here.
`reason_against` looks at this process and says what is different, if anything: then functions are called
through Python.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = [
    "C_CONTIGUOUS",
    "DICT_VERSION",
    "LAYOUT_FLAGS",
    "MOST_RANK",
    "OFFSETS",
    "WRITEABLE",
    "address_of",
    "bases_place",
    "declarations",
    "dict_place",
    "function_fields",
    "has_dict_versions",
    "has_object_versions",
    "reason_against",
    "slot_place",
    "symbols",
]

_HEAD = object.__basicsize__

OFFSETS: Mapping[str, int] = {
    "TYPE": _HEAD - 8,
    "SIZE": _HEAD,  # of a tuple, a list, a dict
    "SET_SIZE": _HEAD + 8,
    "TUPLE_ITEMS": tuple.__basicsize__,
    "LIST_ITEMS": _HEAD + 8,
    "VALUE": _HEAD,  # of a float, a complex, a NumPy scalar
    "CONTENT": _HEAD,  # of a cell
    "BUFFER": _HEAD,  # of a ctypes array
    "DATA": _HEAD,  # of an ndarray
    "RANK": _HEAD + 8,
    "EXTENTS": _HEAD + 16,
    "STRIDES": _HEAD + 24,
    "DESCR": _HEAD + 40,
    "FLAGS": _HEAD + 48,
    "BYTEORDER": _HEAD + 10,  # of a dtype
    "NUMBER": _HEAD + 12,
}
"""In bytes from the start of an object."""

DICT_VERSION = _HEAD + 8
"""Where a dict has its version, if `has_dict_versions`."""

_MANAGED_DICT = 1 << 4
"""What a class says whose objects have their dicts in front of them."""
_DEFINITION, _OBJECT_SLOTS = _HEAD + 24, (6, 16)
"""Where the descriptor of a slot has its definition, and the kinds of those that have objects."""
_MANY = 50

C_CONTIGUOUS, _ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
LAYOUT_FLAGS = C_CONTIGUOUS | _ALIGNED | WRITEABLE
"""The flags of an ndarray on which code depends."""

MOST_RANK = 64
"""Axes of an ndarray at most."""

_NUMPY = {
    "PyArray_Scalar": (60, "ptr (ptr, ptr, ptr)"),
    "PyArray_NewCopy": (85, "ptr (ptr, i32)"),
    "PyArray_NewFromDescr": (94, "ptr (ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)"),
    "PyArray_SetBaseObject": (282, "i32 (ptr, ptr)"),
}
"""Places in NumPy's table of functions, the same in 1.x and 2.x, and types."""

_NUMPY_ENTRIES = 283
_NUMPY_VERSION, _NUMPY_TYPES = 0, {2: np.ndarray, 3: np.dtype}
_FIRST_ADDRESS = 1 << 16
_NUMPY_ABIS = (0x01000009, 0x02000000)

_PYTHON = {
    "Py_IncRef": "void (ptr)",
    "Py_DecRef": "void (ptr)",
    "PyErr_Clear": "void ()",
    "PyEval_SaveThread": "ptr ()",
    "PyEval_RestoreThread": "void (ptr)",
    "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
    "PyDict_GetItemWithError": "ptr (ptr, ptr)",
    "PyDict_New": "ptr ()",
    "PyDict_Next": "i32 (ptr, ptr, ptr, ptr)",
    "PyDict_SetItem": "i32 (ptr, ptr, ptr)",
    "PyList_New": "ptr (i64)",
    "PyTuple_New": "ptr (i64)",
    "PyUnicode_Compare": "i32 (ptr, ptr)",
    "PyBool_FromLong": "ptr (i64)",
    "PyFloat_FromDouble": "ptr (double)",
    "PyComplex_FromDoubles": "ptr (double, double)",
    "PyLong_FromLongLong": "ptr (i64)",
    "PyObject_GenericGetAttr": "ptr (ptr, ptr)",
    "PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
}
_OBJECTS = {
    "rt.ndarray": np.ndarray,
    "rt.dict": dict,
    "rt.int": int,
    "rt.str": str,
    "rt.none": None,
    "rt.true": True,
    "rt.false": False,
}
# Exported by all versions only from 3.11 on; who is called so is always a function written in Python.
_CALL = "PyObject_Vectorcall" if sys.version_info >= (3, 11) else "_PyFunction_Vectorcall"


def address_of(name: str) -> int:
    """The address of a function of CPython."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def symbols() -> Mapping[str, int]:
    """What machine code may name: functions of CPython and of NumPy, objects that live as long as they."""
    table = _numpy_table()
    return {
        **{name: address_of(name) for name in _PYTHON},
        **{name: table[place] for name, (place, _) in _NUMPY.items()},
        "PyObject_Vectorcall": address_of(_CALL),
        **{name: id(value) for name, value in _OBJECTS.items()},
    }


def declarations() -> str:
    """What `symbols` names, as LLVM IR declares it."""
    numpys = {name: kind for name, (_, kind) in _NUMPY.items()}
    kinds = {**_PYTHON, **numpys, "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)"}
    functions = (kind.replace(" (", f" @{name}(") for name, kind in kinds.items())
    objects = (f"@{name} = external global i8" for name in (*_OBJECTS, "rt.slow"))
    return "\n".join((*objects, *(f"declare {function}" for function in functions), ""))


@cache
def has_dict_versions() -> bool:
    """Whether a dict has a number that is another one after each change, as it has before CPython 3.14."""
    held = {"x": 1}
    version = ctypes.c_int64.from_address(id(held) + DICT_VERSION)
    versions = [version.value]
    for change in (lambda: held.update(x=2), lambda: held.update(y=2), lambda: held.pop("x"), held.clear):
        change()
        versions.append(version.value)
        held.get("y")
        if version.value != versions[-1]:
            return False
    return len({*versions, 0, -1}) == len(versions) + 2


@cache
def function_fields() -> tuple[int, ...]:
    """Where a function has its code, its defaults and those of keywords; fewer if that is not found."""

    def sample(x: int = 1, *, y: int = 2) -> None: ...

    held = _words_at(id(sample), FunctionType.__basicsize__ // 8)
    parts = (sample.__code__, sample.__defaults__, sample.__kwdefaults__)
    return tuple(8 * held.index(id(part)) for part in parts if id(part) in held)


@cache
def has_object_versions() -> bool:
    """Whether the dict of an object has another version after each assignment to an attribute of the object,
    however often the line has run that makes it."""

    class Sample:
        pass

    held: Any = Sample()
    held.x = held.y = -1
    version, seen = ctypes.c_int64.from_address(id(vars(held)) + DICT_VERSION), set()
    if not has_dict_versions():
        return False
    for number in range(_MANY):
        held.x = number
        seen.add(version.value)
        object.__setattr__(held, "y", number)
        seen.add(version.value)
        del held.x
        seen.add(version.value)
    return len(seen) == 3 * _MANY


@cache
def bases_place() -> int:
    """Where a class has its bases. Raises ValueError if that is not found."""

    class Sample(Mapping[int, int]):
        pass

    return 8 * _words_at(id(Sample), vars(type)["__basicsize__"].__get__(type) // 8).index(
        id(Sample.__bases__)
    )


def dict_place(value: Any) -> int | None:
    """Where an object has the dict of its attributes; None if that is not found."""
    kind, held = type(value), value.__dict__  # some objects have none before it is asked for
    place = -24 if kind.__flags__ & _MANAGED_DICT else kind.__dictoffset__
    is_known = place > 0 or kind.__flags__ & _MANAGED_DICT
    return place if is_known and _words_at(id(value) + place, 1) == [id(held)] else None


def slot_place(member: MemberDescriptorType) -> int | None:
    """Where an object has what is in a slot; None for what is no object."""
    definition = ctypes.c_void_p.from_address(id(member) + _DEFINITION).value or 0
    kind, place = ctypes.c_int.from_address(definition + 8), ctypes.c_ssize_t.from_address(definition + 16)
    return place.value if kind.value in _OBJECT_SLOTS else None


@cache
def reason_against() -> str:
    """What differs here from what the dispatcher relies on; "" if nothing does."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return "the interpreter is not a 64-bit CPython"
    if sys.byteorder != "little":
        return "the machine is not little-endian"
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sysconfig.get_config_var("Py_TRACE_REFS"):
        return "the interpreter has no lock, or traces references"
    if _HEAD != 16:
        return "objects have another head"
    missing = [name for name in (*_PYTHON, _CALL) if not hasattr(ctypes.pythonapi, name)]
    if missing:
        return f"the interpreter does not export {missing[0]}"
    return next(_differences(), "")


def _differences() -> Iterator[str]:
    if any(_numpy_table()[place] != id(kind) for place, kind in _NUMPY_TYPES.items()):
        yield "NumPy's table of functions is another one"
        return
    if ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy_table()[_NUMPY_VERSION])() not in _NUMPY_ABIS:
        yield "NumPy has another binary interface"
    if not all(map(_is_as_expected, _samples())):
        yield "arrays have another layout"
    if not all(_containers()):
        yield "tuples, lists, dicts, cells or functions have another layout"
    if not all(_numbers()):
        yield "numbers have another layout"


def _numpy_table() -> Any:
    names = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
    module: Any = next(sys.modules[name] for name in names if name in sys.modules)
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    return (ctypes.c_void_p * _NUMPY_ENTRIES).from_address(pointer(module._ARRAY_API, None))


def _samples() -> Iterator[np.ndarray]:
    base = np.arange(7 * 5 * 6, dtype=np.float32).reshape(7, 5, 6)
    yield from (base, base[1:6:2, ::-1, 2:4], base.T, np.zeros(()), np.zeros((0, 3), np.int64))
    yield from (np.arange(3, dtype=">i4"), np.zeros(4, bool), as_strided(base, (3,), (6,), writeable=False))


def _is_as_expected(array: np.ndarray) -> bool:
    kind, flags = array.dtype, _read(array, "FLAGS", ctypes.c_int32)
    extents, strides = (
        tuple(_words_at(_read(array, name), array.ndim)) if array.ndim else ()
        for name in ("EXTENTS", "STRIDES")
    )
    told = array.flags
    return bool(
        _read(array, "TYPE") == id(np.ndarray)
        and _read(array, "DATA") == array.__array_interface__["data"][0]
        and _read(array, "RANK", ctypes.c_int32) == array.ndim
        and (extents, strides) == (array.shape, array.strides)
        and _read(array, "DESCR") == id(kind)
        and _read(kind, "NUMBER", ctypes.c_int32) == kind.num
        and _read(kind, "BYTEORDER", ctypes.c_char) == kind.byteorder.encode()
        and flags == told.num
        and told.c_contiguous == bool(flags & C_CONTIGUOUS)
        and told.aligned == bool(flags & _ALIGNED)
        and told.writeable == bool(flags & WRITEABLE)
    )


def _containers() -> Iterator[bool]:
    first, second = object(), object()
    several = (first, second, 3)
    yield _read(several, "SIZE", ctypes.c_int64) == 3
    yield _words_at(id(several) + OFFSETS["TUPLE_ITEMS"], 2) == [id(first), id(second)]
    items = [second, first]
    yield _read(items, "SIZE", ctypes.c_int64) == 2
    yield _words_at(_read(items, "LIST_ITEMS"), 2) == [id(second), id(first)]
    yield _read({"x": 1, "y": 2, "z": 3}, "SIZE", ctypes.c_int64) == 3
    yield all(_read(set(range(size)), "SET_SIZE", ctypes.c_int64) == size for size in (0, 1, 9))
    yield _read(CellType(first), "CONTENT") == id(first)
    yield len(function_fields()) == 3
    words = (ctypes.c_int64 * 3)()
    yield _read(words, "BUFFER") == ctypes.addressof(words)


def _numbers() -> Iterator[bool]:
    for value, kind in (
        (1.5e7, ctypes.c_double),
        (np.float32(2.5), ctypes.c_float),
        (np.float64(2.5), ctypes.c_double),
        (np.int64(-7), ctypes.c_int64),
        (np.uint8(200), ctypes.c_uint8),
        (np.bool_(True), ctypes.c_bool),
    ):
        yield _read(value, "VALUE", kind) == value
    for number, part in ((1.5 - 2j, ctypes.c_double), (np.complex128(3 - 4j), ctypes.c_double),
                         (np.complex64(5 - 6j), ctypes.c_float)):  # fmt: skip
        yield complex(*(part * 2).from_address(id(number) + OFFSETS["VALUE"])) == number
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    scalar, number = prototype(_numpy_table()[_NUMPY["PyArray_Scalar"][0]]), np.array([2.5, 3.5])
    made = scalar(number.__array_interface__["data"][0], number.dtype, None)
    yield type(made) is np.float64 and made == 2.5


def _read(value: Any, name: str, kind: Any = ctypes.c_void_p) -> Any:
    return kind.from_address(id(value) + OFFSETS[name]).value


def _words_at(address: int | None, count: int) -> list[int]:
    """What is at an address; nothing at what is none, as where an object has a size instead."""
    if address is None or address % 8 or address < _FIRST_ADDRESS:
        return []
    return list((ctypes.c_int64 * count).from_address(address))
