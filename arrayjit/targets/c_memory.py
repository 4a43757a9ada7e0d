"""Where a tensor's cells are, in C-like text."""

from __future__ import annotations

from ..errors import CompilerBug
from ..ir.dtype import BOOL, I64
from ..ir.index import Affine, Symbol
from ..ir.loops import Kernel, PlaceKind
from ..ir.tensor import Tensor
from .c_text import Operand, Value, Writer, added, constant, multiplied

__all__ = ["Memory"]


class Memory:
    """Numbers and cells of one function. `symbols` has what symbols are, `params` the names of parameters'
    first cells. With `outside`, the function stands for a part of another one, whose symbols, parameters and
    arrays on the stack it uses. `declarations` has the names that such a function may use, as it would
    declare them."""

    def __init__(
        self, writer: Writer, kernel: Kernel, params: dict[Tensor, str], outside: Memory | None = None
    ) -> None:
        self.symbols: dict[Symbol, Operand] = dict(outside.symbols) if outside else {}
        self.params = params
        self.declarations: dict[str, str] = outside.declarations if outside else {}
        self._writer = writer
        self._kernel = kernel
        self._temporaries: dict[Tensor, str] = {}
        self._outside = outside

    def part(self, writer: Writer) -> Memory:
        """The memory of a function that stands for a part of this one."""
        return Memory(writer, self._kernel, self.params, self)

    def affine(self, value: Affine) -> Operand:
        """The expression's number."""
        known = value.offset
        computed: Operand = 0
        for coefficient, symbol in value.terms:
            number = self.symbols[symbol]
            if isinstance(number, int):
                known += coefficient * number
            else:
                computed = added(computed, multiplied(number, coefficient))
        return added(computed, known)

    def index(self, value: Affine) -> Value:
        """The expression as an int64, which wraps around."""
        known = value.offset
        text = ""
        for coefficient, symbol in value.terms:
            number = self.symbols[symbol]
            if isinstance(number, int):
                known += coefficient * number
            else:
                factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}ULL * "
                text += f" {'-' if coefficient < 0 else '+'} {factor}(uint64_t){number}"
        if not text:
            return constant(self._writer.dialect, (known + 2**63) % 2**64 - 2**63, I64)
        if known:
            text += f" {'-' if known < 0 else '+'} {abs(known) % 2**64}ULL"
        sole = text.removeprefix(" + (uint64_t)")
        if sole.isidentifier():
            return Value(sole, I64)
        text = text[3:] if text.startswith(" +") else f"0{text}"
        return Value(f"(int64_t)({text})", I64, is_atom=False)

    def load(self, tensor: Tensor, index: tuple[Affine, ...]) -> Value:
        """The cell at the index."""
        return self._read(tensor, self._cell(tensor, index))

    def gather(self, tensor: Tensor, index: tuple[Value, ...]) -> Value:
        """The cell at a computed index."""
        offset: Operand = 0
        for position, stride in zip(index, tensor.element_strides(), strict=True):
            offset = added(offset, multiplied(position.operand, self.affine(stride)))
        return self._read(tensor, f"{self.pointer(tensor)}[{offset}]")

    def store(self, tensor: Tensor, index: tuple[Affine, ...], value: Value) -> None:
        """Write the cell at the index."""
        self._writer.emit(f"{self._cell(tensor, index)} = {value.text};")

    def prefetch(self, tensor: Tensor, index: tuple[Affine, ...], cache: int, beyond: int = 0) -> None:
        """Have the cell that lies so far beyond the one at the index brought into that cache, if the language
        can. It may lie outside."""
        name = self._writer.dialect.prefetch
        if name:
            offset = added(self._offset(tensor, index), beyond)
            self._writer.emit(f"{name}({self.pointer(tensor)} + ({offset}), {cache});")

    def address(self, tensor: Tensor, index: tuple[Affine, ...]) -> str:
        """Of the cell at the index."""
        return f"{self.pointer(tensor)} + {self._offset(tensor, index)}"

    def _cell(self, tensor: Tensor, index: tuple[Affine, ...]) -> str:
        return f"{self.pointer(tensor)}[{self._offset(tensor, index)}]"

    def _offset(self, tensor: Tensor, index: tuple[Affine, ...]) -> Operand:
        """The elements from the tensor's first cell to the one at the index."""
        fixed = Affine.of(0)
        offset: Operand = 0
        strides = tensor.element_strides()
        if self.is_own(tensor):
            index, strides = index[1:], strides[1:]
        for position, step in zip(index, strides, strict=True):
            if step.is_constant:
                fixed = fixed + position * step.offset
            elif position.is_constant:
                fixed = fixed + step * position.offset
            else:
                offset = added(offset, multiplied(self.affine(position), self.affine(step)))
        return added(offset, self.affine(fixed))

    def is_own(self, tensor: Tensor) -> bool:
        """Has each thread of a block cells of its own?"""
        place = self._kernel.placement.get(tensor.storage)
        return place is not None and place.kind is PlaceKind.OWN

    def is_shared(self, tensor: Tensor) -> bool:
        """Do the threads of a block share the memory?"""
        place = self._kernel.placement.get(tensor.storage)
        return place is not None and place.kind is PlaceKind.SHARED

    def _read(self, tensor: Tensor, cell: str) -> Value:
        """A byte is true that is not zero."""
        return (
            Value(f"{cell} != 0", BOOL, is_atom=False) if tensor.dtype is BOOL else Value(cell, tensor.dtype)
        )

    def pointer(self, tensor: Tensor) -> str:
        """The name of the first cell of the memory that the tensor lies in."""
        storage = tensor.storage
        pointer = self.params.get(storage) or self._temporaries.get(storage)
        if pointer is None:
            pointer = self._temporaries[storage] = self._allot(storage)
        return pointer

    def _allot(self, tensor: Tensor) -> str:
        """A temporary's first cell, declared at the function's start."""
        place = self._kernel.placement.get(tensor)
        kind = self._writer.dialect.types[tensor.dtype]
        match place.kind if place else None:
            case PlaceKind.ARENA | PlaceKind.SCRATCH if place:
                name = self._writer.fresh(tensor.label, lasting=True)
                start = place.kind.value
                start = f"({start} + {place.offset})" if place.offset else start
                self._writer.frame.append(f"{kind} *{name} = ({kind} *){start};")
            case PlaceKind.STACK if self._outside:
                return self._outside.pointer(tensor)
            case PlaceKind.STACK:
                name = self._writer.fresh(tensor.label, lasting=True)
                self._writer.frame.append(f"_Alignas(64) {kind} {name}[{max(tensor.size, 1)}];")
                self.declarations[name] = f"{kind} *{self._writer.dialect.restrict} {name}"
            case _:
                raise CompilerBug(f"{tensor} has no memory", stage="targets/c")
        return name
