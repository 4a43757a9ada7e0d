"""LLVM IR as text: operands, types, constants, instructions and blocks of one function.

The writer keeps single-assignment form as it goes: a value is named once, and a computation already
made where it is still visible is not printed again, so the text needs no cleaning passes.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import count, pairwise
from typing import Union

import numpy as np

from ..frozen import frozen
from ..ir.dtype import BOOL, I32, DType, named
from .llvm_ahead import Entry, entry_for, makes_ahead
from .llvm_lines import Lines

__all__ = [
    "ALWAYS",
    "BYTE",
    "LINE_BYTES",
    "PART",
    "SLOT",
    "Operand",
    "Value",
    "Writer",
    "constant",
    "vector_type",
]

# Instruction selection takes quadratic time in the memory accesses of a block. Blocks are cut after this many
# stores, by a branch that is always taken; only an argument of the function keeps LLVM from knowing that.
STORES_PER_BLOCK = 32
ALWAYS = "%always"
SELDOM = '!1 = !{!"branch_weights", i32 1, i32 2000}'
UNPREDICTABLE = "!2 = !{}"

BYTE = named("u8")
"""A bool in memory."""

SLOT = "align 16"
"""How a value on the stack is aligned. With more each function would have to align its own."""

LINE_BYTES = 64
"""What caches hold and fetch at once."""

PART = 16
"""Bytes within which all CPUs can interleave two vectors; larger vectors consist of such parts."""

_NAME = re.compile(r"%[\w.]+")

# What intrinsics are called after, where that is not the type's own name.
_SUFFIXES = {"float": "f32", "double": "f64"}

# An int64: known while printing, or the text of an operand.
Operand = Union[int, str]


def vector_type(element: str, lanes: int) -> str:
    """`double`, or `<4 x double>`."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@frozen
class Value:
    """An operand with its element type. One lane is a scalar, which is the same in every lane."""

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def type(self) -> str:
        return vector_type(self.dtype.llvm, self.lanes)

    @property
    def is_literal(self) -> bool:
        return not self.text.startswith("%")

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def constant(value: bool | int | float, dtype: DType) -> Value:
    """A literal scalar. Floats are printed by their bits."""
    if dtype.is_small:
        return Value(str(np.array(value, dtype.numpy).view(np.int16)), dtype)
    if dtype.is_float:
        return Value("0x" + struct.pack(">d", value).hex().upper(), dtype)
    if dtype is BOOL:
        return Value("true" if value else "false", dtype)
    return Value(str(int(value)), dtype)


class Writer:
    """The text of one function while it is written.

    `frame` is the start of the entry block (stack arrays, slices of the workspace); `block` is the label
    of the block being written. A function that `is_cut` needs an argument `ALWAYS` and a block `never`. What
    is written `beside` another function is of the same module: `functions` and `declarations` are what it
    calls, and no name is given twice. `called` are the ops that have become functions. `handed_on` are the
    bytes that loops hand on for masks. Where it `takes_turns`, no branch may come between instructions that
    stand beside others'. `origin` are the
    user's lines, `features` those of the CPU, as LLVM calls them.
    """

    def __init__(self, beside: Writer | None = None, features: Sequence[str] = ()) -> None:
        self.features: Sequence[str] = beside.features if beside else features
        self.frame: list[str] = []
        self.lines: list[str] = []
        self.functions: list[str] = beside.functions if beside else []
        self.declarations: dict[str, None] = beside.declarations if beside else {}
        self.called: set[str] = beside.called if beside else set()
        self.origin: Lines = beside.origin.part() if beside else Lines()
        self.block = "entry"
        self.is_cut = False
        self.bypasses = False
        self.takes_turns = False
        self._stores = 0
        self._slots: dict[str, str] = {}
        self._put_off: deque[str] = deque()
        self._names: Iterator[int] = beside._names if beside else count(1)
        self._known: list[dict[str, str]] = [{}]
        self._entries: list[Entry] = []
        self._parts: dict[str, tuple[Value, Sequence[int]]] = {}
        self.handed_on: dict[str, Value] = {}

    def function(
        self,
        name: str,
        arguments: Sequence[str],
        leave: str,
        attributes: str = "#0",
        convention: str = "",
    ) -> list[str]:
        """What has been written as a function, which ends with `leave`, a return; a `convention` of calls
        ends with a blank."""
        always, never = ([f"i1 {ALWAYS}"], ["never:", f"  {leave}"]) if self.is_cut else ([], [])
        heads, result = ", ".join((*arguments, *always)), leave.split()[1]
        return [
            f'define internal {convention}{result} @"{name}"({heads}) {attributes}'
            f"{self.origin.declared(name)} {{",
            "entry:",
            *(f"  {slot} = alloca {kind}, {SLOT}" for kind, slot in self._slots.items()),
            *self.frame,
            *self.lines,
            f"  {leave}",
            *never,
            "}",
            "",
        ]

    def call(self, name: str, arguments: Sequence[str], status: str = "") -> list[str]:
        """A call of that function, after which others see all that it has stored: what went past the caches
        is ordered by nothing else. It returns nothing, or an i32, which is then called `status`."""
        always = ["i1 true"] if self.is_cut else []
        call = f'call {"i32" if status else "void"} @"{name}"({", ".join((*arguments, *always))})'
        lines = [f"  {status} = {call}" if status else f"  {call}"]
        return [*lines, "  fence seq_cst"] if self.bypasses else lines

    def slot(self, kind: str) -> str:
        """Where on the stack a value of that type may be for a moment."""
        return self._slots.setdefault(kind, f"%{self.fresh('slot')}")

    def captured(self, visible: Mapping[str, str]) -> dict[str, str]:
        """Of the names that the function may use of another one, each with its type, those that it uses."""
        used = set(_NAME.findall("\n".join((*self.frame, *self.lines))))
        return {name: kind for name, kind in visible.items() if name in used}

    def fresh(self, hint: str = "t") -> str:
        """A new name, without a sigil."""
        return f"{hint}{next(self._names)}"

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}{self.origin.suffix}")

    def put_off(self, line: str) -> None:
        """A line that stands behind others of its block, at its end at the latest."""
        self._put_off.append(line)

    def catch_up(self, most: int = 1 << 30) -> None:
        """Write so many lines that were put off."""
        for _ in range(min(most, len(self._put_off))):
            self.emit(self._put_off.popleft())

    def reserve(self) -> int:
        """The number of a line that is filled in later through `fill`."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, position: int, line: str) -> None:
        self.lines[position] = "  " + line

    def let(self, instruction: str) -> str:
        """The name of the instruction's result."""
        name = "%" + self.fresh()
        self.emit(f"{name} = {instruction}")
        return name

    def phi(self, values: Mapping[str, Value]) -> Value:
        """The value of the block that this one is reached from."""
        incoming = ", ".join(f"[ {value.text}, %{block} ]" for block, value in values.items())
        first = next(iter(values.values()))
        return Value(self.let(f"phi {first.type} {incoming}"), first.dtype, first.lanes)

    def fill_phi(self, position: int, value: Value, incoming: Mapping[str, Operand]) -> None:
        """The value of the block that this one is reached from, where a line was reserved for it."""
        found = ", ".join(f"[ {text}, %{block} ]" for block, text in incoming.items())
        self.fill(position, f"{value.text} = phi {value.type} {found}")

    def pure(self, instruction: str) -> str:
        """As `let`, for an instruction that gives the same result wherever it stands: printed once."""
        name = self.found(instruction)
        if name is None:
            name = self.let(instruction)
            self.remember(instruction, name)
        return name

    def found(self, instruction: str) -> str | None:
        """The name of what a pure instruction gives, if it is known here."""
        for known in reversed(self._known):
            if instruction in known:
                return known[instruction]
        return None

    def remember(self, instruction: str, name: str) -> None:
        """What gives the same result as a pure instruction has that name from here on."""
        self._known[-1][instruction] = name

    def made(self, name: str) -> str:
        """The pure instruction whose result has a name; "" where it is another's."""
        found = (text for known in self._known for text, result in known.items() if result == name)
        return next(found, "")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not visible after."""
        self._known.append({})
        yield
        self._known.pop()

    def entry(self) -> Entry | None:
        """Where a loop is entered, right before the jump to it, if something is made ahead there."""
        if not makes_ahead(self.features):
            return None
        self.catch_up()
        return Entry(self.reserve(), next(self._names))

    @contextmanager
    def looping(self, entry: Entry | None) -> Iterator[None]:
        """As `scope`, for the body of a loop, which is entered there."""
        with self.scope():
            if entry is None:
                yield
                return
            entry.start = self.reserve()
            self._entries.append(entry)
            yield
            self._entries.pop()
            self.lines[entry.place(len(self.lines))] = "\n".join(entry.lines)

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label
        self._stores = 0

    def store(self, value: str, pointer: str, alignment: int, bypass: bool = False) -> None:
        """Write a value, given with its type; with `bypass` past the caches."""
        self.emit(f"store {value}, ptr {pointer}, align {alignment}{', !nontemporal !0' if bypass else ''}")
        if bypass:
            self.declare("!0 = !{i32 1}")
            self.bypasses = True
        self._stores += 1
        if self._stores == STORES_PER_BLOCK:
            self.is_cut = True
            following = self.fresh("next")
            self.branch(ALWAYS, following, "never")
            self.start(following)

    def masked_load(self, kind: str, pointer: str, alignment: int, mask: str) -> str:
        """What memory has for the lanes for which the mask is true, and zeros for the others."""
        count, element = kind.strip("<>").split(" x ")
        name = f"@llvm.masked.load.v{count}{_SUFFIXES.get(element, element)}.p0"
        self.declare(f"declare {kind} {name}(ptr, i32, <{count} x i1>, {kind})")
        rest = f"i32 {alignment}, <{count} x i1> {mask}, {kind} zeroinitializer"
        return self.let(f"call {kind} {name}(ptr {pointer}, {rest})")

    def masked_store(self, kind: str, value: str, pointer: str, alignment: int, mask: str) -> None:
        """Write the lanes of a vector for which the mask is true."""
        count, element = kind.strip("<>").split(" x ")
        name = f"@llvm.masked.store.v{count}{_SUFFIXES.get(element, element)}.p0"
        self.declare(f"declare void {name}({kind}, ptr, i32, <{count} x i1>)")
        self.emit(f"call void {name}({kind} {value}, ptr {pointer}, i32 {alignment}, <{count} x i1> {mask})")

    def gathered(self, kind: str, pointers: str, alignment: int) -> str:
        """What memory has at each of some addresses, of which there are as many as lanes."""
        count, element = kind.strip("<>").split(" x ")
        name = f"@llvm.masked.gather.v{count}{_SUFFIXES.get(element, element)}.v{count}p0"
        self.declare(f"declare {kind} {name}(<{count} x ptr>, i32, <{count} x i1>, {kind})")
        all_lanes = ", ".join(["i1 true"] * int(count))
        rest = f"i32 {alignment}, <{count} x i1> <{all_lanes}>, {kind} poison"
        return self.let(f"call {kind} {name}(<{count} x ptr> {pointers}, {rest})")

    def compressed(self, value: Value, mask: str) -> Value:
        """The lanes for which a mask is true, side by side from the first one on."""
        element = value.dtype.llvm
        name = f"@llvm.experimental.vector.compress.v{value.lanes}{_SUFFIXES.get(element, element)}"
        lanes = f"<{value.lanes} x i1>"
        self.declare(f"declare {value.type} {name}({value.type}, {lanes}, {value.type})")
        text = self.pure(f"call {value.type} {name}({value}, {lanes} {mask}, {value.type} poison)")
        return Value(text, value.dtype, value.lanes)

    def x86(self, name: str, *args: Value) -> Value:
        """What an instruction makes of registers: a value like the first of them."""
        result = args[0]
        self.declare(f"declare {result.type} @llvm.x86.{name}({', '.join(arg.type for arg in args)})")
        call = f"call {result.type} @llvm.x86.{name}({', '.join(map(str, args))})"
        return Value(self.pure(call), result.dtype, result.lanes)

    def jump(self, label: str) -> None:
        self.catch_up()
        self.emit(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, seldom: bool = False) -> None:
        """To `yes` where the condition holds, which may be known to be seldom."""
        self.catch_up()
        if seldom:
            self.declare(SELDOM)
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}{', !prof !1' if seldom else ''}")

    def choose(self, condition: Value, yes: Value, no: Value) -> str:
        """One of two values, without a branch: where a guess is worth its price the program has one."""
        chosen = f"select {condition}, {yes}, {no}"
        if condition.lanes > 1:
            return self.pure(chosen)
        self.declare(UNPREDICTABLE)
        return self.pure(f"{chosen}, !unpredictable !2")

    def declare(self, declaration: str) -> None:
        self.declarations[declaration] = None

    def add(self, left: Operand, right: Operand) -> Operand:
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0:
            return right
        if right == 0:
            return left
        return self.pure(f"add i64 {left}, {right}")

    def multiply(self, left: Operand, right: Operand) -> Operand:
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 1 or right == 0:
            return right
        if right == 1 or left == 0:
            return left
        return self.pure(f"mul i64 {left}, {right}")

    def compare(self, predicate: str, left: Operand, right: Operand) -> str | bool:
        """`left < right` for predicate "slt", `left > right` for "sgt"."""
        if isinstance(left, int) and isinstance(right, int):
            return left < right if predicate == "slt" else left > right
        return self.pure(f"icmp {predicate} i64 {left}, {right}")

    def first_lanes(self, count: Operand, lanes: int) -> str:
        """A mask: true in so many lanes from the first one on. They are numbered in 32 bits: masks of wider
        ones are packed by forty instructions more."""
        numbers = f"<{', '.join(f'i32 {lane}' for lane in range(lanes))}>"
        until = self.widen(Value(self.pure(f"trunc i64 {count} to i32"), I32), lanes).text
        return self.pure(f"icmp slt {vector_type('i32', lanes)} {numbers}, {until}")

    def all(self, conditions: Sequence[str]) -> str | bool:
        """Whether all of them hold."""
        if not conditions:
            return True
        return reduce(lambda one, other: self.pure(f"and i1 {one}, {other}"), conditions)

    def widen(self, value: Value, lanes: int) -> Value:
        """The value in every lane."""
        if value.lanes == lanes:
            return value
        kind = vector_type(value.dtype.llvm, lanes)
        if value.is_literal:
            return Value(f"splat ({value})", value.dtype, lanes)
        entry = entry_for(self._entries, value.text) if value.dtype.is_float else None
        first = self._ahead(f"insertelement {kind} poison, {value}, i64 0", entry)
        copies = f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return Value(self._ahead(copies, entry), value.dtype, lanes)

    def _ahead(self, instruction: str, entry: Entry | None) -> str:
        """As `pure`, where a loop is entered."""
        if entry is None:
            return self.pure(instruction)
        name = entry.made.get(instruction)
        if name is None:
            name = entry.made[instruction] = "%" + self.fresh()
            entry.lines.append(f"  {name} = {instruction}{self.origin.suffix}")
        return name

    def lane(self, value: Value, lane: Operand) -> Value:
        """One lane as a scalar."""
        if value.lanes == 1:
            return value
        return Value(self.pure(f"extractelement {value}, i64 {lane}"), value.dtype)

    def with_lane(self, value: Value, lane: Operand, part: Value) -> Value:
        """The value with another scalar in one lane."""
        return Value(self.pure(f"insertelement {value}, {part}, i64 {lane}"), value.dtype, value.lanes)

    def join(self, parts: list[Value]) -> Value:
        """Scalars as the lanes of one vector."""
        if len(parts) == 1:
            return parts[0]
        kind = vector_type(parts[0].dtype.llvm, len(parts))
        text = "poison"
        for lane, part in enumerate(parts):
            text = self.let(f"insertelement {kind} {text}, {part}, i64 {lane}")
        return Value(text, parts[0].dtype, len(parts))

    def shuffle(self, value: Value, lanes: Sequence[int], other: Value | None = None) -> Value:
        """The chosen lanes, in the given order; at least two. Those of the other value follow the first's."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        second = other or Value("poison", value.dtype, value.lanes)
        if value.dtype is BOOL and any(after != before + 1 for before, after in pairwise(lanes)):
            # Bits in a register of masks are moved one by one, bytes together.
            chosen = self.shuffle(self._as_bytes(value), lanes, other and self._as_bytes(other))
            return Value(self.pure(f"icmp ne {chosen}, zeroinitializer"), BOOL, len(lanes))
        text = self.pure(f"shufflevector {value}, {second}, <{len(lanes)} x i32> <{mask}>")
        return Value(text, value.dtype, len(lanes))

    def _as_bytes(self, value: Value) -> Value:
        """Bools as they are in memory."""
        kind = vector_type(BYTE.llvm, value.lanes)
        return Value(self.pure(f"zext {value} to {kind}"), BYTE, value.lanes)

    def concatenated(self, parts: Sequence[Value]) -> Value:
        """Vectors one after the other; a power of two of them."""
        while len(parts) > 1:
            both = range(2 * parts[0].lanes)
            parts = [
                self.shuffle(*pair)
                for pair in ((parts[n], both, parts[n + 1]) for n in range(0, len(parts), 2))
            ]
        return parts[0]

    def groups(self, vectors: Sequence[Value], numbers: Sequence[int] = ()) -> Value:
        """The lanes of two, three or four vectors in turn, by their numbers if they have others."""
        count, lanes = len(vectors), vectors[0].lanes
        if count == 4:
            return self.groups([self.groups(vectors[::2]), self.groups(vectors[1::2])])
        in_order = sorted(range(lanes), key=numbers.__getitem__) if numbers else range(lanes)
        order = [vector * lanes + lane for lane in in_order for vector in range(count)]
        first, second, *third = vectors
        if not third:
            return self.shuffle(first, order, second)
        return self.shuffle(self.concatenated((first, second)), order, self.concatenated((*third, *third)))

    def part_of_groups(self, groups: Value, count: int, part: int, numbers: Sequence[int]) -> Value:
        """Of so many vectors whose lanes take turns, one."""
        numbers = numbers or range(groups.lanes // count)
        return self.part(groups, [count * number + part for number in numbers])

    def part(self, groups: Value, lanes: Sequence[int]) -> Value:
        """Chosen lanes of groups; see `wholes`."""
        made = self.shuffle(groups, lanes)
        self._parts[made.text] = groups, lanes
        return made

    def wholes(self, parts: Sequence[Value]) -> tuple[Sequence[Value], Sequence[int]] | None:
        """The groups of which all of these are the same part, and its lanes."""
        found = [self._parts.get(part.text) for part in parts]
        groups = [one[0] for one in found if one is not None]
        lanes = [one[1] for one in found if one is not None]
        same = len(groups) == len(parts) and all(one == lanes[0] for one in lanes)
        return (groups, lanes[0]) if same else None
