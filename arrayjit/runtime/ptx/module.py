"""What a PTX text says, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping

from ...frozen import frozen
from .types import Type

__all__ = [
    "Address",
    "Function",
    "Instruction",
    "Module",
    "Number",
    "Operand",
    "Pair",
    "Parameter",
    "Variable",
    "Vector",
    "Word",
]


@frozen
class Word:
    """A register, a variable, a label or a function; `negated` for `!%p1`."""

    name: str
    negated: bool = False


@frozen
class Number:
    """A literal; where `bits` is 32 or 64, the value is a float's bit pattern."""

    value: int | float
    bits: int = 0


@frozen
class Address:
    """`[start + offset]`."""

    start: Word | Number
    offset: int = 0


@frozen
class Vector:
    """`{a, b, ...}`, or the arguments of a call."""

    parts: tuple[Operand, ...]


@frozen
class Pair:
    """`p|q`: two results."""

    first: Word
    second: Word


Operand = Word | Number | Address | Vector | Pair


@frozen
class Instruction:
    """One instruction. `loc` is its line in the CUDA source, if the text tells (0: it does not)."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Word | None
    line: int
    text: str
    loc: int = 0


@frozen
class Variable:
    """An array. `space` is global, const, shared, local or param; a dynamic one takes the launch's bytes.

    Names among its initial values stand for addresses.
    """

    name: str
    space: str
    type: Type
    count: int
    align: int
    initial: tuple[Number | str, ...] = ()
    is_dynamic: bool = False

    @property
    def nbytes(self) -> int:
        return self.type.nbytes * self.count


@frozen
class Parameter:
    """An argument of a function: where it lies in the block of arguments."""

    name: str
    type: Type
    offset: int
    nbytes: int
    align: int


@frozen
class Function:
    """An entry or a device function. Names that inner scopes declare have been made distinct.

    `labels` are positions in `body`; `tables` are the lists of labels that `brx` chooses from.
    """

    name: str
    is_entry: bool
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    registers: Mapping[str, Type]
    variables: tuple[Variable, ...]
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    body: tuple[Instruction, ...]
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None

    @property
    def argument_bytes(self) -> int:
        """Of the block of arguments."""
        return max((each.offset + each.nbytes for each in self.parameters), default=0)

    @property
    def shared_bytes(self) -> int:
        """Of the shared arrays of its own, packed as hardware packs them."""
        end = 0
        for each in self.variables:
            if each.space == "shared" and not each.is_dynamic:
                end = -(-end // each.align) * each.align + each.nbytes
        return end


@frozen
class Module:
    """A whole text: its kernels and device functions by name, and the variables of its scope."""

    target: str
    version: str
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]

    @property
    def kernels(self) -> dict[str, Function]:
        """The entries, by name."""
        return {name: each for name, each in self.functions.items() if each.is_entry}
