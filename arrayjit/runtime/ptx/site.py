"""What an instruction reads and writes, as closures over the registers: decoded once, run many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...frozen import frozen
from .encoding import bits_of, typed
from .faults import InvalidPtx, UnknownInstruction
from .module import Address, Instruction, Number, Operand, Pair, Vector, Word
from .threads import SPECIAL, Threads
from .types import TYPES, Array, Type, unsigned

__all__ = ["Action", "Maker", "Names", "Reader", "Site", "Writer"]

Action = Callable[[Threads], None]
Reader = Callable[[Threads], Array]
Writer = Callable[[Threads, Array], None]

_COUNTERS = {"%clock": "b32", "%clock_hi": "b32", "%clock64": "b64", "%globaltimer": "b64"}


class Names:
    """What the names in a kernel stand for: a register's slot, or an array's address in its space."""

    def __init__(self, registers: Mapping[str, Type], addresses: Mapping[str, tuple[str, int]]) -> None:
        self.types = dict(registers)
        self.slots = {name: slot for slot, name in enumerate(registers)}
        self.addresses = addresses
        self.specials: dict[str, int] = {}

    def slot(self, name: str) -> int | None:
        """The slot of a register. Special ones get theirs when they are first used."""
        if name in SPECIAL and name not in self.slots:
            self.slots[name] = self.specials[name] = len(self.slots)
            self.types[name] = TYPES[f"b{SPECIAL[name]}"]
        return self.slots.get(name)

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        """Of all registers, by slot."""
        kinds = (self.types[name] for name in self.slots)
        return [np.dtype(bool) if kind.name == "pred" else unsigned(kind.bits) for kind in kinds]


@frozen
class Site:
    """One instruction and what its names mean."""

    instruction: Instruction
    names: Names

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    @property
    def types(self) -> tuple[Type, ...]:
        """The types among the modifiers, in their order."""
        return tuple(TYPES[each] for each in self.instruction.modifiers if each in TYPES)

    @property
    def type(self) -> Type:
        """The last type among the modifiers."""
        if not self.types:
            raise self.unknown("it has no type")
        return self.types[-1]

    def has(self, *modifiers: str) -> bool:
        """Is one of these among the modifiers?"""
        return any(each in self.instruction.modifiers for each in modifiers)

    def choice(self, *modifiers: str) -> str:
        """The first of the modifiers that is one of these. Raises UnknownInstruction if none is."""
        for each in self.instruction.modifiers:
            if each in modifiers:
                return each
        raise self.unknown(f"it has none of {', '.join(modifiers)}")

    def unknown(self, why: str) -> UnknownInstruction:
        return UnknownInstruction(f"not simulated: {why}")

    def read(self, operand: int | Operand, kind: Type | str) -> Reader:
        """The values of an operand for the active lanes: shape (lanes,), or (1,) for a constant.

        Packed types have a second axis. Values are `kind.dtype`.
        """
        kind = TYPES[kind] if isinstance(kind, str) else kind
        operand = self.operands[operand] if isinstance(operand, int) else operand
        match operand:
            case Number():
                return _constant(_literal(operand, kind))
            case Word(name):
                return self._word(name, operand.negated, kind)
            case Address(Word(name), offset) if name in self.names.addresses:
                return _constant(
                    np.array([self.names.addresses[name][1] + offset], np.uint64).astype(kind.dtype)
                )
            case _:
                raise self.unknown(f"{operand} is no value")

    def _word(self, name: str, negated: bool, kind: Type) -> Reader:
        slot = self.names.slot(name)
        if slot is not None:
            held = self.names.types[name]
            if held.name == "pred":
                return _predicate(slot, negated)
            if held.bits < kind.bits:
                raise InvalidPtx(f"register {name} is too small for .{kind.name}")
            return _register(slot, held.bits, kind)
        if name in self.names.addresses:
            return _constant(np.array([self.names.addresses[name][1]], np.uint64).astype(kind.dtype))
        if name == "WARP_SZ":
            return _constant(np.array([32], kind.dtype))
        if name in _COUNTERS:
            shift = 32 if name == "%clock_hi" else 0
            return lambda threads: np.array([threads.steps >> shift]).astype(kind.dtype)
        raise InvalidPtx(f"{name!r} is not defined")

    def write(self, operand: int | Operand, kind: Type | str) -> Writer:
        """Stores values of `kind.dtype` for the active lanes. What is wider than the type wraps around."""
        kind = TYPES[kind] if isinstance(kind, str) else kind
        operand = self.operands[operand] if isinstance(operand, int) else operand
        if not isinstance(operand, Word):
            raise self.unknown(f"{operand} is no register")
        if operand.name == "_":
            return lambda threads, values: None
        slot = self.names.slot(operand.name)
        if slot is None or operand.name in SPECIAL:
            raise InvalidPtx(f"{operand.name!r} cannot be written")
        held = self.names.types[operand.name]
        if (held.name == "pred") != (kind.name == "pred") or held.bits < kind.bits:
            raise InvalidPtx(f".{kind.name} does not fit {operand.name}")
        return _writer(slot, kind)

    def write_pair(self, kind: Type | str) -> tuple[Writer, Writer | None]:
        """The registers of `a|b`, or of `a` alone, where results go; the second is a predicate."""
        both = self.operands[0]
        if isinstance(both, Pair):
            return self.write(both.first, kind), self.write(both.second, "pred")
        return self.write(both, kind), None

    def parts(self, operand: int) -> tuple[Operand, ...]:
        """The parts of `{a, b}`, or the operand alone."""
        found = self.operands[operand]
        return found.parts if isinstance(found, Vector) else (found,)

    def read_parts(self, operand: int, bits: int, count: int | None = None) -> Reader:
        """The bits of the operand's parts, of which there must be so many: shape (lanes, count)."""
        reads = [self.read(part, f"b{bits}") for part in self._counted(operand, count)]

        def read(threads: Threads) -> Array:
            values = np.empty((threads.count, len(reads)), unsigned(bits))
            for number, each in enumerate(reads):
                values[:, number] = each(threads)
            return values

        return read

    def write_parts(self, operand: int, kind: Type | str, count: int | None = None) -> Writer:
        """Stores values of shape (lanes, count) to the operand's parts."""
        writes = [self.write(part, kind) for part in self._counted(operand, count)]

        def write(threads: Threads, values: Array) -> None:
            for number, each in enumerate(writes):
                each(threads, values[:, number])

        return write

    def _counted(self, operand: int, count: int | None) -> tuple[Operand, ...]:
        parts = self.parts(operand)
        if count is not None and len(parts) != count:
            raise self.unknown(f"{len(parts)} registers for {count} elements")
        return parts

    def address(self, operand: int, space: str) -> tuple[str, Reader]:
        """The space that an address is in, and its value for each active lane: uint64, shape (lanes,)."""
        found = self.operands[operand]
        start, offset = (found.start, found.offset) if isinstance(found, Address) else (found, 0)
        if isinstance(start, Word) and start.name in self.names.addresses:
            home, place = self.names.addresses[start.name]
            constant = np.array([place + offset], np.uint64)
            return (home if space == "param" else space), lambda threads: np.broadcast_to(
                constant, threads.count
            )
        bits = 64
        if isinstance(start, Word) and self.names.slot(start.name) is not None:
            bits = self.names.types[start.name].bits
        base = self.read(start, f"u{bits}")
        added = np.uint64(offset % (1 << 64))
        return space, lambda threads: np.broadcast_to(base(threads).astype(np.uint64) + added, threads.count)


Maker = Callable[[Site], Action]
"""Decodes an instruction."""


def _constant(value: Array) -> Reader:
    return lambda threads: value


def _literal(number: Number, kind: Type) -> Array:
    """A literal as one element of a type."""
    if number.bits:
        bits = np.array([number.value], unsigned(number.bits))
        if kind.is_float and kind.bits != number.bits:
            return bits.view(f"f{number.bits // 8}").astype(kind.dtype)
        return bits.view(kind.dtype) if kind.bits == number.bits else bits.astype(kind.dtype)
    if kind.is_float and isinstance(number.value, float):
        return np.array([number.value]).astype(kind.dtype)
    if kind.name == "pred":
        return np.array([number.value != 0])
    bits = np.array([int(number.value) % (1 << kind.bits)], np.uint64).astype(unsigned(kind.bits))
    return typed(bits, kind)


def _predicate(slot: int, negated: bool) -> Reader:
    if negated:
        return lambda threads: ~threads.registers[slot][threads.lanes]
    return lambda threads: threads.registers[slot][threads.lanes]


def _register(slot: int, held: int, kind: Type) -> Reader:
    bits = unsigned(kind.bits)
    dtype = kind.dtype
    if held != kind.bits:
        return lambda threads: typed(threads.registers[slot][threads.lanes].astype(bits), kind)
    if kind.packed > 1 or kind.is_widened:
        return lambda threads: typed(np.ascontiguousarray(threads.registers[slot][threads.lanes]), kind)
    if dtype == bits:
        return lambda threads: threads.registers[slot][threads.lanes]
    return lambda threads: threads.registers[slot][threads.lanes].view(dtype)


def _writer(slot: int, kind: Type) -> Writer:
    def store(threads: Threads, values: Array) -> None:
        threads.registers[slot][threads.lanes] = values.astype(dtype, copy=False)

    def store_bits(threads: Threads, values: Array) -> None:
        threads.registers[slot][threads.lanes] = values.astype(dtype, copy=False).view(bits)

    def store_packed(threads: Threads, values: Array) -> None:
        threads.registers[slot][threads.lanes] = bits_of(values, kind)

    dtype = kind.dtype
    bits = unsigned(kind.bits) if kind.name != "pred" else np.dtype(bool)
    if kind.packed > 1 or kind.is_widened:
        return store_packed
    return store_bits if kind.is_float else store
