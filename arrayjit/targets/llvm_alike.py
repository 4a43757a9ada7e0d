"""Nests that are alike but for their arrays, as one function.

    call void @nest4(ptr %p0, ptr %m7, i64 %s2, float %t3)      ; where each of them stood
    call void @nest4(ptr %p1, ptr %m8, i64 %s2, float %t9)

    define internal void @nest4(ptr noalias %a1, ptr noalias %a2, i64 %a3, float %a4) noinline

A product of complex matrices is four of real ones, steps that take arrays in turns are there for each turn,
and a loop that was run while it was traced leaves as many copies: LLVM has to compile one of them. Nests are
compared by what they say, with arrays, numbers and locals called by the order in which they are first
mentioned, and cells by how far they are from an array's first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import Enum
from functools import cache
from itertools import combinations
from typing import Any, Union

from ..frozen import frozen, slotted, slotted_by_identity
from ..ir.dtype import DType
from ..ir.expr import Apply, Const, Load, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import (
    Bind,
    Define,
    For,
    If,
    Kernel,
    Lap,
    LoopKind,
    PlaceKind,
    Raise,
    Stmt,
    Store,
    While,
    walk_statements,
)
from ..ir.ops import Op
from ..ir.tensor import GROUPS, Tensor
from .bodies import changes
from .llvm_chunks import heads, length
from .llvm_memory import Memory
from .llvm_text import Value, Writer

__all__ = ["Form", "Nests", "alike"]

LENGTH = 60
"""A nest of fewer nodes of expressions is not worth a call, unless threads share it."""

Given = Mapping[str, tuple[str, str]]
"""The arguments of a function by their names, each with its type and what it is called where the call is."""

_Name = Union[Symbol, Variable]


@frozen
class Form:
    """What a nest says, and what it uses that comes from outside: nests that say the same do the same, each
    with its own."""

    said: tuple[Hashable, ...]
    storages: tuple[Tensor, ...]
    symbols: tuple[Symbol, ...]
    variables: tuple[Variable, ...]

    def given(self, memory: Memory, values: Mapping[Variable, Value]) -> Given | None:
        """What the nest's function is called with, by the names of its arguments; None where some of it is
        known when it is printed, which is worth more."""
        numbers = [memory.symbols[symbol] for symbol in self.symbols]
        locals_ = [values[variable] for variable in self.variables]
        if any(isinstance(number, int) for number in numbers) or any(value.is_literal for value in locals_):
            return None
        operands = [
            *(("ptr", memory.pointer(storage)) for storage in self.storages),
            *(("i64", str(number)) for number in numbers),
            *((value.type, value.text) for value in locals_),
        ]
        return dict(zip(self._names(), operands, strict=True))

    def inside(
        self, writer: Writer, memory: Memory, values: Mapping[Variable, Value]
    ) -> tuple[Memory, dict[Variable, Value]]:
        """The memory and the locals of that function, which `writer` is to have."""
        names = iter(self._names())
        within = memory.apart(writer, {storage: next(names) for storage in self.storages})
        within.symbols.update((symbol, next(names)) for symbol in self.symbols)
        return within, {each: replace(values[each], text=next(names)) for each in self.variables}

    def _names(self) -> list[str]:
        """What arrays, numbers and locals from outside are called inside."""
        count = len(self.storages) + len(self.symbols) + len(self.variables)
        return [f"%given{number}" for number in range(count)]


@slotted_by_identity
class Nests:
    """The nests that are alike; and for what their forms say the functions that have been printed, each with
    its name, and what it needs of what has one name in all functions."""

    forms: Mapping[int, Form]
    printed: dict[tuple[Hashable, ...], tuple[Writer, str, Given]] = field(default_factory=dict)

    def print(self, form: Form, given: Given, writer: Writer) -> None:
        """The function whose text `writer` has."""
        name = writer.fresh("nest")
        needed = writer.captured({"%pool": "ptr", "%scratch": "ptr"})
        arguments = {each: kind for each, (kind, _) in given.items()} | needed
        writer.functions += writer.function(name, heads(arguments), "ret void", "noinline #0")
        self.printed[form.said] = writer, name, {each: (kind, each) for each, kind in needed.items()}

    def call(self, form: Form, given: Given, caller: Writer) -> None:
        """A call of it, where the caller has come to."""
        writer, name, needed = self.printed[form.said]
        operands = [f"{kind} {operand}" for kind, operand in (*given.values(), *needed.values())]
        for line in writer.call(name, operands):
            caller.emit(line.strip())


def alike(kernel: Kernel) -> Mapping[int, Form]:
    """The forms of the nests that are there several times, by the identity of the nest's outermost loop; not
    those of nests in such nests."""
    outlines = [(nest, _outline(nest)) for nest in _nests(kernel.body)]
    seen = Counter(outline for _, outline in outlines)
    likely = [nest for nest, outline in outlines if seen[outline] > 1 and _is_worth_a_call(nest)]
    forms = {id(nest): form for nest in likely if (form := _form(nest, kernel)) is not None}
    several = _several(forms)
    within = {id(stmt) for nest in likely if id(nest) in several for stmt in walk_statements(nest.body)}
    return _several({nest: form for nest, form in several.items() if nest not in within})


def _is_worth_a_call(nest: For) -> bool:
    """What threads share is: it is a function already, with a context that has to be filled and read."""
    return nest.grain is not None or length((nest,)) >= LENGTH


def _several(forms: Mapping[int, Form]) -> dict[int, Form]:
    """Those that say what others say."""
    said = Counter(form.said for form in forms.values())
    return {nest: form for nest, form in forms.items() if said[form.said] > 1}


def _nests(body: Iterable[Stmt]) -> Iterator[For]:
    """The nests of a body, and those of loops in order that are around them: what runs often is called by no
    one."""
    for stmt in body:
        match stmt:
            case For(body=inner, kind=LoopKind.SEQUENTIAL):
                yield stmt
                yield from _nests(inner)
            case For():
                yield stmt
            case If(body=inner, orelse=other):
                yield from _nests((*inner, *other))
            case While(test=test, body=inner):
                yield from _nests((*test, *inner))
            case _:
                pass


def _outline(nest: For) -> tuple[Hashable, ...]:
    """What is seen of a nest at a glance."""
    return tuple(
        (type(stmt), stmt.lanes if isinstance(stmt, For) else 0) for stmt in walk_statements((nest,))
    )


def _form(nest: For, kernel: Kernel) -> Form | None:
    """None for a nest that no function can be made of."""
    if changes((nest,)) or any(isinstance(stmt, (Raise, Lap)) for stmt in walk_statements((nest,))):
        return None
    reading = _Reading(kernel)
    reading.note(nest)
    if reading.overlap():
        return None
    outside = [name for name in reading.names if name not in reading.own]
    return Form(
        tuple(reading.said),
        tuple(reading.passed()),
        tuple(name for name in outside if isinstance(name, Symbol)),
        tuple(name for name in outside if isinstance(name, Variable)),
    )


@slotted
class _Reading:
    """A nest as it is read: what it says so far, the numbers of what it mentions, and the names that are its
    own."""

    kernel: Kernel
    said: list[Hashable] = field(default_factory=list)
    storages: dict[Tensor, int] = field(default_factory=dict)
    names: dict[_Name, int] = field(default_factory=dict)
    own: set[_Name] = field(default_factory=set)

    def note(self, part: Any) -> None:
        """A part of a statement, as words."""
        match part:
            case Apply(op=op, dtype=dtype, args=args):
                self.said += (op.name, dtype.name, len(args))
                for arg in args:
                    self.note(arg)
            case Symbol() | Variable():
                self.name(part)
            case Affine(terms=terms, offset=offset):
                self.said += (len(terms), offset)
                for coefficient, symbol in terms:
                    self.said.append(coefficient)
                    self.name(symbol)
            case Tensor():
                self.tensor(part)
            case tuple():
                self.said.append(len(part))
                for each in part:
                    self.note(each)
            case Const(value=value, dtype=dtype):
                self.said += (repr(value), dtype.name)
            case Op() | DType():
                self.said.append(part.name)
            case None | int() | str() | Enum():
                self.said.append(part)
            case _:
                self.node(part)

    def node(self, node: Any) -> None:
        """A statement or an expression."""
        kind: type = type(node)
        parts = _fields(kind)
        self.said.append(kind.__name__)
        match node:
            case For(symbol=name) | Bind(symbol=name) | Define(variable=name):
                self.own.add(name)
            case Load(tensor=tensor, index=index) | Store(tensor=tensor, index=index):
                self.cell(tensor, index)
                parts = parts[2:]
            case _:
                pass
        for each in parts:
            self.note(getattr(node, each))

    def name(self, name: _Name) -> None:
        self.said.append(self.names.setdefault(name, len(self.names)))
        if isinstance(name, Variable):
            self.said.append(name.dtype.name)

    def cell(self, tensor: Tensor, index: tuple[Affine, ...]) -> None:
        """One cell, by its distance where that is known, and by the neighbours that may be read with it."""
        if all(stride.is_constant for stride in tensor.element_strides()):
            self.storage(tensor)
            self.note(tensor.linear(index))
            self.said += (tensor.part_of(index, count) for count in GROUPS)
        else:
            self.tensor(tensor)
            self.note(index)

    def tensor(self, tensor: Tensor) -> None:
        """All cells."""
        self.storage(tensor)
        self.note(tensor.shape)
        self.note(tensor.element_strides())

    def storage(self, tensor: Tensor) -> None:
        """The memory of a tensor, by its number, as one of such elements."""
        storage = tensor.storage
        self.said += (self.storages.setdefault(storage, len(self.storages)), tensor.dtype.name)
        if self.is_scratch(storage):
            self.said.append(self.kernel.placement[storage].offset)

    def is_scratch(self, storage: Tensor) -> bool:
        """Whether a thread finds it in memory of its own, where nobody else can point to."""
        place = self.kernel.placement.get(storage)
        return place is not None and place.kind is PlaceKind.SCRATCH

    def passed(self) -> Iterator[Tensor]:
        """The storages whose first cells are arguments."""
        return (storage for storage in self.storages if not self.is_scratch(storage))

    def overlap(self) -> bool:
        """Whether two temporaries share memory, one after the other."""
        places = ((each, self.kernel.placement.get(each)) for each in self.passed())
        spans = [
            (place.offset, place.offset + each.nbytes)
            for each, place in places
            if place is not None and place.kind is PlaceKind.ARENA
        ]
        return any(one[0] < other[1] and other[0] < one[1] for one, other in combinations(spans, 2))


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """Those that make a difference."""
    return tuple(each.name for each in fields(kind) if each.compare)
