"""A kernel with the device functions it calls written into it: one list of instructions.

Each call gets its own copy of the callee, whose names are made distinct. The callee's parameters stand for
the arrays that the caller has filled, and `ret` becomes a branch behind the call.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...frozen import frozen
from .faults import UnknownInstruction
from .module import Address, Function, Instruction, Operand, Pair, Parameter, Variable, Vector, Word
from .types import Type

__all__ = ["Flat", "flatten"]


@frozen
class Flat:
    """A kernel without calls, except of functions that have no body."""

    kernel: Function
    body: tuple[Instruction, ...]
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    registers: Mapping[str, Type]
    variables: tuple[Variable, ...]


def flatten(kernel: Function, functions: Mapping[str, Function]) -> Flat:
    """Raises UnknownInstruction for recursion and for calls of functions that a register names."""
    writer = _Writer(functions)
    writer.write(kernel, "", {}, None, ())
    return Flat(
        kernel,
        tuple(writer.body),
        writer.labels,
        writer.tables,
        writer.registers,
        tuple(writer.variables),
    )


class _Writer:
    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.body: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.registers: dict[str, Type] = {}
        self.variables: list[Variable] = []
        self.calls = 0

    def write(
        self,
        function: Function,
        prefix: str,
        actual: Mapping[str, str],
        end: str | None,
        callers: tuple[str, ...],
    ) -> None:
        """A function's body. `actual`: the caller's names for its parameters; `end`: where `ret` leads."""
        own = [
            *function.registers,
            *(each.name for each in function.variables),
            *function.labels,
            *function.tables,
        ]
        names = {**{name: prefix + name for name in own}, **actual}
        self.registers.update((names[name], kind) for name, kind in function.registers.items())
        for each in function.variables:
            self.variables.append(
                Variable(
                    names[each.name],
                    each.space,
                    each.type,
                    each.count,
                    each.align,
                    each.initial,
                    each.is_dynamic,
                )
            )
        for name, targets in function.tables.items():
            self.tables[names[name]] = tuple(names[target] for target in targets)
        places: dict[int, list[str]] = {}
        for name, position in function.labels.items():
            places.setdefault(position, []).append(names[name])
        for position, instruction in enumerate((*function.body, None)):
            self.labels.update((name, len(self.body)) for name in places.get(position, ()))
            if instruction is not None:
                self.instruction(instruction, names, end, (*callers, function.name))

    def instruction(
        self, plain: Instruction, names: Mapping[str, str], end: str | None, callers: tuple[str, ...]
    ) -> None:
        renamed = Instruction(
            plain.opcode,
            plain.modifiers,
            tuple(_renamed(each, names) for each in plain.operands),
            None if plain.guard is None else Word(names[plain.guard.name], plain.guard.negated),
            plain.line,
            plain.text,
            plain.loc,
        )
        if plain.opcode == "ret" and end is not None:
            self.body.append(_branch(renamed, Word(end), renamed.guard))
        elif plain.opcode == "call":
            self.call(renamed, callers)
        else:
            self.body.append(renamed)

    def call(self, call: Instruction, callers: tuple[str, ...]) -> None:
        results, name, arguments = _parts(call)
        callee = self.functions.get(name)
        if callee is None or name in callers:
            why = "itself, through others or directly" if callee else "a function that a register names"
            raise UnknownInstruction(
                f"line {call.line}: {call.text}: {name} calls {why}, which is not simulated"
            )
        if not callee.body:
            self.body.append(call)
            return
        self.calls += 1
        prefix = f"{name}#{self.calls}."
        end = f"{prefix}end"
        formal: tuple[Parameter, ...] = (*callee.results, *callee.parameters)
        actual = dict(zip((each.name for each in formal), (*results, *arguments), strict=True))
        if call.guard is not None:
            self.body.append(_branch(call, Word(end), Word(call.guard.name, not call.guard.negated)))
        self.write(callee, prefix, actual, end, callers)
        self.labels[end] = len(self.body)


def _branch(at: Instruction, target: Word, guard: Word | None) -> Instruction:
    return Instruction("bra", (), (target,), guard, at.line, at.text, at.loc)


def _parts(call: Instruction) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Where a call's results go, the function, its arguments."""
    operands = list(call.operands)
    results = _names(operands.pop(0)) if isinstance(operands[0], Vector) else ()
    function = operands.pop(0)
    assert isinstance(function, Word)
    return results, function.name, _names(operands[0]) if operands else ()


def _names(operand: Operand) -> tuple[str, ...]:
    assert isinstance(operand, Vector)
    return tuple(part.name for part in operand.parts if isinstance(part, Word))


def _renamed(operand: Operand, names: Mapping[str, str]) -> Operand:
    match operand:
        case Word(name, negated):
            return Word(names.get(name, name), negated)
        case Address(Word() as start, offset):
            return Address(Word(names.get(start.name, start.name)), offset)
        case Vector(parts):
            return Vector(tuple(_renamed(part, names) for part in parts))
        case Pair(first, second):
            return Pair(Word(names.get(first.name, first.name)), Word(names.get(second.name, second.name)))
        case _:
            return operand
