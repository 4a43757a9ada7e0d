"""Where a tensor's cells are, and how lanes are loaded and stored.

The access is chosen by how far apart the cells of neighbouring lanes are: one scalar for all lanes, one
vector, one reversed vector, every other cell of two vectors, or a scalar per lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..errors import CompilerBug
from ..frozen import frozen
from ..ir.boundaries import ALONE
from ..ir.dtype import BOOL, I64, DType, Kind, named
from ..ir.expr import Gather, Index, Load
from ..ir.index import Affine, Symbol
from ..ir.loops import Kernel, PlaceKind
from ..ir.tensor import GROUPS, Tensor
from .llvm_clock import LAP
from .llvm_neighbours import Neighbours
from .llvm_text import BYTE, LINE_BYTES, SLOT, Operand, Value, Writer, vector_type

__all__ = ["MASKED", "Edge", "Lanes", "Memory"]

MASKED = (4, 8)
"""The bytes of cells of which one instruction stores those that a mask chooses."""


GATHERS, GATHERED_BYTES = "avx512fp16", 32
"""What processors have that gather cells in less time than they load and join them, and the bytes that are
worth it: Intel's from Sapphire Rapids on take two thirds to half of it."""

TOGETHER = "avx512dq", "sse4a"
"""What processors have that multiply positions along several axes in registers, and then take one number out
for each lane instead of several: on Zen 5 what is looked up in pictures takes 0.7 to 0.9 of the time; of
others it is not known."""

FAR_BYTES = 1 << 23
"""Arrays that are larger are read from so far away that single loads, more of which are under way at once,
take a tenth less."""


@frozen
class Lanes:
    """The vector loop being printed: lane `l` has `symbol` greater by `l * step`. One lane: none. With
    `numbers`, those are what the lanes count as instead. With `present`, only so many from the first one on
    touch memory, all of them neighbours there."""

    symbol: Symbol | None = None
    step: int = 1
    count: int = 1
    numbers: tuple[int, ...] = ()
    present: Operand | None = None

    @property
    def places(self) -> list[int]:
        """Which lane counts as the first, which as the second, and so on."""
        return sorted(range(self.count), key=self.numbers.__getitem__)

    def stride(self, value: Affine) -> int:
        """How much the expression grows from lane to lane."""
        return 0 if self.symbol is None else value.coefficient(self.symbol) * self.step

    def step_in(self, tensor: Tensor, index: tuple[Affine, ...]) -> int | None:
        """From how many cells further each lane takes its own, where that is known."""
        steps = [(self.stride(at), unit) for at, unit in zip(index, tensor.element_strides(), strict=True)]
        if any(step and not unit.is_constant for step, unit in steps):
            return None
        return sum(step * unit.offset for step, unit in steps if step)


@frozen
class _Cell:
    """A cell: its address in the first lane, and the elements from there to the next lane's; an address that
    many cells are counted from, and how many elements further it is."""

    pointer: str
    stride: Operand
    base: str
    place: int


@frozen
class Edge:
    """Lanes of a vector which alone are stored, `count` from `first` on, at least one. They are copied there
    from the stack, one by one and past the caches as whole vectors are: then a line that two rows share goes
    to memory at once. Stored otherwise it is fetched first, or waited for, which took a third of the time of
    rows of 23,000 bytes. What is too small for that is moved to the first lanes and stored under a mask:
    lines on their way to memory, in which the other lanes would lie, are waited for, too."""

    first: Operand
    count: Operand


class Memory:
    """Addresses, loads and stores of one function. `pointers` has the parameters' first cells; symbols
    have the value of the first lane. With `outside`, the function stands for a part of another one, whose
    symbols, parameters and stack it uses."""

    def __init__(
        self, writer: Writer, kernel: Kernel, pointers: Mapping[Tensor, str], outside: Memory | None = None
    ) -> None:
        self.symbols: dict[Symbol, Operand] = dict(outside.symbols) if outside else {}
        self._writer = writer
        self._kernel = kernel
        self._params = pointers
        self._pointers = dict(pointers)
        self._outside = outside
        self._neighbours = Neighbours()
        self._strides: dict[Tensor, tuple[Affine, ...]] = outside._strides if outside else {}

    def visible(self, values: Iterable[Value]) -> dict[str, str]:
        """What a function that stands for a part of this one may use, each name with its type: these values,
        what symbols have, and the first cells of the parameters and of the tensors that have been used."""
        found = {value.text: value.type for value in values}
        found |= {number: "i64" for number in self.symbols.values() if isinstance(number, str)}
        return found | dict.fromkeys(("%arena", *self._pointers.values()), "ptr")

    def part(self, writer: Writer) -> Memory:
        """The memory of a function that stands for a part of this one."""
        return Memory(writer, self._kernel, self._params, self)

    def apart(self, writer: Writer, pointers: Mapping[Tensor, str]) -> Memory:
        """The memory of a function that is given all that it uses."""
        return Memory(writer, self._kernel, pointers)

    def affine(self, value: Affine) -> Operand:
        """The expression's number in the first lane."""
        return self._writer.add(*self._parts(value))

    def _parts(self, value: Affine) -> tuple[Operand, int]:
        """What is computed of an expression's number, and what is known of it."""
        known = value.offset
        computed: Operand = 0
        for coefficient, symbol in value.terms:
            number = self.symbols[symbol]
            if isinstance(number, int):
                known += coefficient * number
            else:
                computed = self._writer.add(computed, self._writer.multiply(number, coefficient))
        return computed, known

    def index(self, value: Affine, lanes: Lanes) -> Value:
        """The expression as an int64, in every lane."""
        first = Value(str(self.affine(value)), I64)
        stride = lanes.stride(value)
        if stride == 0:
            return first
        steps = ", ".join(f"i64 {lane * stride}" for lane in lanes.numbers or range(lanes.count))
        wide = self._writer.widen(first, lanes.count)
        return Value(self._writer.pure(f"add {wide}, <{steps}>"), I64, lanes.count)

    def is_given(self, tensor: Tensor) -> bool:
        """Whether its memory is the caller's, which starts anywhere."""
        return tensor.storage in self._params

    def address(self, tensor: Tensor, index: tuple[Affine, ...], lanes: Lanes) -> str:
        """Where the cell at the index is, in the first lane."""
        return self._cell(tensor, index, lanes).pointer

    def load(self, tensor: Tensor, index: tuple[Affine, ...], lanes: Lanes) -> Value:
        """The cell at the index; one lane when it is the same cell for all."""
        cell = self._cell(tensor, index, lanes)
        if cell.stride == 0:
            return self._read(tensor, cell.pointer, 1)
        if lanes.present is not None:
            return self._read_first(tensor, cell.pointer, lanes.count, lanes.present)
        if cell.stride == 1:
            cells = self._neighbouring(tensor, cell, lanes, lanes.count)
            return self._writer.shuffle(cells, lanes.numbers) if lanes.numbers else cells
        if cell.stride == -1:
            lowest = self._offset(tensor, cell.pointer, 1 - lanes.count)
            return self._reversed(self._read(tensor, lowest, lanes.count))
        if cell.stride in GROUPS and (part := tensor.part_of(index, cell.stride)) is not None:
            groups = self._neighbouring(tensor, cell, lanes, cell.stride * lanes.count, part)
            return self._writer.part_of_groups(groups, cell.stride, part, lanes.numbers)
        for width, part in ((2, tensor.part_of(index, 2)), (1, 0)):
            if part is not None and self._picks(tensor, cell.stride, width):
                return self._picked(tensor, cell, lanes, width, part)
        return self._joined(tensor, self._lane_pointers(tensor, cell, lanes))

    def _picks(self, tensor: Tensor, stride: Operand, width: int) -> bool:
        """Are groups of so many cells picked out of vectors in less time than one by one?"""
        features, few = self._writer.features, [width * step for step in GROUPS]
        is_near = stride == few[0] or (tensor.dtype.itemsize <= 4 and stride in few and "avx2" in features)
        return is_near and (width == 1 or "avx512f" in features)

    def _picked(self, tensor: Tensor, cell: _Cell, lanes: Lanes, width: int, part: int) -> Value:
        """A part of groups, out of two vectors from the first group to the last and no further."""
        assert isinstance(cell.stride, int)
        count, dtype = -(-cell.stride // 2) * lanes.count, BYTE if tensor.dtype is BOOL else tensor.dtype
        apart = cell.stride * (lanes.count - 1) + width - count
        starts = [self._offset(tensor, cell.base, cell.place - part + at) for at in (0, apart)]
        first, last = (Value(self._loaded(tensor, start, count), dtype, count) for start in starts)
        places = [cell.stride * lane + at for lane in range(lanes.count) for at in range(width)]
        chosen = [place if place < count else place - apart + count for place in places]
        groups = self._writer.shuffle(first, chosen, last)
        cells = self._writer.part_of_groups(groups, width, part, lanes.numbers)
        return self._value(cells.type, cells.text, tensor.dtype, cells.lanes)

    def rows(self, load: Load, lanes: Lanes, count: int) -> list[Value]:
        """For each lane its cell and those that follow it, `count` of them."""
        pointers = self._lane_pointers(load.tensor, self._cell(load.tensor, load.index, lanes), lanes)
        return [self._read(load.tensor, pointer, count) for pointer in pointers]

    def gather(self, node: Gather, index: tuple[Value, ...], along: Lanes) -> Value:
        """The cell at a computed index; each lane has its own. Those of one row are read as neighbours."""
        tensor, lanes = node.tensor, max((position.lanes for position in index), default=1)
        if lanes > 1 and self._is_row(node, index, along):
            return self._row(node, index, along)
        if self._gathers(tensor, lanes):
            return self._gathered(tensor, index, lanes)
        strides = self._strides_of(tensor)
        several = sum(position.lanes > 1 for position in index) > 1
        if several and set(TOGETHER).issubset(self._writer.features):
            index, strides = (self._far(tensor, index, lanes),), (Affine.of(1),)
        pointers, index = [], tuple(_before_widened(self._writer, position) for position in index)
        for lane in range(lanes):
            offset: Operand = 0
            for position, stride in zip(index, strides, strict=True):
                number = _lane(self._writer, position, lane)
                offset = self._writer.add(offset, self._writer.multiply(number, self.affine(stride)))
            pointers.append(self._offset(tensor, self.pointer(tensor), offset))
        return self._joined(tensor, pointers)

    def _is_row(self, node: Gather, index: tuple[Value, ...], lanes: Lanes) -> bool:
        """Whether all lanes compute the same row, and go along it cell by cell."""
        parts = list(zip(node.index, index, strict=True))
        places = [part.value if isinstance(part, Index) else Affine.of(0) for part, _ in parts]
        alike = all(value.lanes == 1 for part, value in parts if not isinstance(part, Index))
        return alike and lanes.present is None and lanes.step_in(node.tensor, tuple(places)) == 1

    def _row(self, node: Gather, index: tuple[Value, ...], lanes: Lanes) -> Value:
        """The cells of such a row, from the first lane's on."""
        offset: Operand = 0
        for part, value, stride in zip(node.index, index, self._strides_of(node.tensor), strict=True):
            number = self.affine(part.value) if isinstance(part, Index) else value.text
            offset = self._writer.add(offset, self._writer.multiply(number, self.affine(stride)))
        first = self._offset(node.tensor, self.pointer(node.tensor), offset)
        cells = self._read(node.tensor, first, lanes.count)
        return self._writer.shuffle(cells, lanes.numbers) if lanes.numbers else cells

    def _gathers(self, tensor: Tensor, lanes: int) -> bool:
        """Is there an instruction that takes cells from anywhere faster than they are joined one by one?"""
        size = tensor.dtype.itemsize
        if GATHERS not in self._writer.features or size not in MASKED or lanes * size < GATHERED_BYTES:
            return False
        return not tensor.has_fixed_shape or tensor.nbytes <= FAR_BYTES

    def _gathered(self, tensor: Tensor, index: tuple[Value, ...], lanes: int) -> Value:
        """The cells of all lanes by one instruction for each register."""
        writer, dtype, offset = self._writer, tensor.dtype, self._far(tensor, index, lanes)
        memory, first = vector_type(dtype.llvm_memory, lanes), self.pointer(tensor)
        places = writer.pure(f"getelementptr {dtype.llvm_memory}, ptr {first}, {offset}")
        return Value(writer.gathered(memory, places, dtype.itemsize), dtype, lanes)

    def _far(self, tensor: Tensor, index: tuple[Value, ...], lanes: int) -> Value:
        """How many cells from the first one on each lane's is."""
        writer = self._writer
        parts = [
            position if stride == 1 else self._multiple(position, stride)
            for position, stride in zip(index, map(self.affine, self._strides_of(tensor)), strict=True)
        ]
        offset = writer.widen(parts[0], lanes)
        for part in parts[1:]:
            further = writer.widen(part, lanes)
            offset = Value(writer.pure(f"add {offset}, {further.text}"), I64, lanes)
        return offset

    def _multiple(self, position: Value, factor: Operand) -> Value:
        """So many times a position, in each of its lanes."""
        wide = self._writer.widen(Value(str(factor), I64), position.lanes)
        return Value(self._writer.pure(f"mul {position}, {wide.text}"), I64, position.lanes)

    def store(
        self,
        tensor: Tensor,
        index: tuple[Affine, ...],
        value: Value,
        lanes: Lanes,
        bypass: bool = False,
        edge: Edge | None = None,
    ) -> None:
        """Write the cell at the index; where lanes are neighbours, with `bypass` past the caches, or only the
        lanes of `edge`."""
        cell = self._cell(tensor, index, lanes)
        if lanes.count > 1 and cell.stride == 0:
            raise CompilerBug(f"all lanes store to one cell of {tensor}", stage="targets/llvm")
        writer = self._writer
        value = writer.widen(value, lanes.count) if lanes.count > 1 else writer.lane(value, 0)
        if lanes.present is not None:
            self._write_first(tensor, cell.pointer, value, lanes.present)
        elif lanes.count == 1 or cell.stride == 1:
            cells = self._writer.shuffle(value, lanes.places) if lanes.numbers else value
            self._write(tensor, cell.pointer, cells, bypass, edge)
        elif cell.stride == -1:
            self._write(tensor, self._offset(tensor, cell.pointer, 1 - lanes.count), self._reversed(value))
        elif isinstance(cell.stride, int) and self._spreads(tensor, cell.stride, lanes.count):
            self._store_apart(tensor, cell, cell.stride, value, lanes)
        else:
            for lane, pointer in enumerate(self._lane_pointers(tensor, cell, lanes)):
                self._write(tensor, pointer, self._writer.lane(value, lane))

    def store_first(self, tensor: Tensor, index: tuple[Affine, ...], value: Value, mask: str) -> None:
        """Write the lanes that a mask chooses, neighbours from the cell at the index on."""
        self._neighbours.forget(tensor.storage)
        pointer, dtype = self._cell(tensor, index, Lanes()).pointer, tensor.dtype
        memory = vector_type(dtype.llvm_memory, value.lanes)
        self._writer.masked_store(memory, value.text, pointer, dtype.itemsize, mask)

    def _spreads(self, tensor: Tensor, stride: int, lanes: int) -> bool:
        """Are lanes so far apart stored in fewer instructions as vectors under masks than one by one?"""
        size = tensor.dtype.itemsize
        masked = "avx512f" if size in MASKED else "avx512bw"
        together = min(lanes, LINE_BYTES // size)
        return masked in self._writer.features and (stride == 2 or 2 < stride <= together // 4)

    def _store_apart(self, tensor: Tensor, cell: _Cell, stride: int, value: Value, lanes: Lanes) -> None:
        """Write cells that are so far apart, as vectors from the first of them to the last and no further.
        Nothing is written between them: what is there may be another thread's."""
        self._neighbours.forget(tensor.storage)
        places = lanes.places if lanes.numbers else range(lanes.count)
        count = min(lanes.count, LINE_BYTES // tensor.dtype.itemsize)
        kind = vector_type(tensor.dtype.llvm_memory, count)
        last = stride * (lanes.count - 1)
        for new in range(0, last + 1, count):
            start = min(new, last + 1 - count)
            cells = range(start, start + count)
            spread = self._writer.shuffle(value, [places[at // stride] for at in cells])
            mask = ", ".join(f"i1 {at >= new and at % stride == 0}".lower() for at in cells)
            pointer = self._offset(tensor, cell.pointer, start)
            text = spread.text
            if tensor.dtype is BOOL:
                text = self._writer.pure(f"zext {spread} to {kind}")
            self._writer.masked_store(kind, text, pointer, tensor.dtype.itemsize, f"<{mask}>")

    def store_groups(
        self, tensor: Tensor, index: tuple[Affine, ...], parts: Sequence[Value], lanes: Lanes
    ) -> None:
        """Write for each lane a group of neighbours, the first of them at the index; groups follow one
        another."""
        pointer = self._cell(tensor, index, lanes).pointer
        wide = [self._writer.widen(part, lanes.count) for part in parts]
        groups = self._writer.groups(wide, lanes.numbers)
        self._write(tensor, pointer, groups)

    def prefetch(self, tensor: Tensor, index: tuple[Affine, ...], lanes: Lanes, cache: int) -> None:
        """Have the lines of the lanes' cells, which are neighbours, brought into that cache: one after each
        load that follows, the rest where the block ends. Two neighbours that were asked for one right after
        the other cost time: stencils of arrays in memory took 1.2 times as long."""
        first, writer = self._cell(tensor, index, lanes).pointer, self._writer
        writer.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        cells = lanes.count if lanes.step_in(tensor, index) else 1
        for start in range(0, cells * tensor.dtype.itemsize, LINE_BYTES):
            pointer = writer.pure(f"getelementptr i8, ptr {first}, i64 {start}") if start else first
            writer.put_off(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {4 - cache}, i32 1)")

    def lap(self, times: Tensor, number: int) -> None:
        """Add the time since the last lap to a cell."""
        first = self._cell(times, (Affine.of(0),), Lanes()).pointer
        self._writer.declare(LAP)
        self._writer.emit(f"call void @lap(ptr {first}, i64 {number})")

    def _cell(self, tensor: Tensor, index: tuple[Affine, ...], lanes: Lanes) -> _Cell:
        parts: list[tuple[Affine, int]] = []
        offset: Operand = 0
        stride: Operand = 0
        for position, step in zip(index, self._strides_of(tensor), strict=True):
            if step.is_constant:
                parts.append((position, step.offset))
            elif position.is_constant:
                parts.append((step, position.offset))
            else:
                distance = self.affine(step)
                offset = self._writer.add(offset, self._writer.multiply(self.affine(position), distance))
                stride = self._writer.add(stride, self._writer.multiply(distance, lanes.stride(position)))
        stride = self._writer.add(stride, lanes.stride(fixed := Affine.total(parts)))
        computed, known = self._parts(fixed)
        moving = self._writer.add(offset, computed)
        pointer = self._offset(tensor, self.pointer(tensor), moving)
        if moving != 0 and any(isinstance(self.symbols[symbol], int) for symbol in fixed.symbols):
            pointer = self._start(pointer)
        return _Cell(self._offset(tensor, pointer, known), stride, pointer, known)

    def _strides_of(self, tensor: Tensor) -> tuple[Affine, ...]:
        strides = self._strides.get(tensor)
        if strides is None:
            strides = self._strides[tensor] = tensor.element_strides()
        return strides

    def pointer(self, tensor: Tensor) -> str:
        """The first cell of what a tensor is kept in."""
        storage = tensor.storage
        pointer = self._pointers.get(storage)
        if pointer is None:
            pointer = self._pointers[storage] = self._allot(storage)
        return pointer

    def _allot(self, tensor: Tensor) -> str:
        """A temporary's first cell, printed at the function's start."""
        name = "%" + self._writer.fresh("m")
        place = self._kernel.placement.get(tensor)
        match place.kind if place else None:
            case PlaceKind.ARENA | PlaceKind.SCRATCH if place:
                start = f"%{place.kind.value}"
                self._writer.frame.append(f"  {name} = getelementptr i8, ptr {start}, i64 {place.offset}")
            case PlaceKind.STACK if self._outside:
                return self._outside.pointer(tensor)
            case PlaceKind.STACK:
                array = f"[{tensor.size} x {tensor.dtype.llvm_memory}]"
                self._writer.frame.append(f"  {name} = alloca {array}, align 64")
            case _:
                raise CompilerBug(f"{tensor} has no memory", stage="targets/llvm")
        return name

    def size(self, tensor: Tensor) -> Operand:
        """How many cells a tensor has."""
        cells: Operand = 1
        for extent in tensor.shape:
            cells = self._writer.multiply(cells, self.affine(extent))
        return cells

    def scratch(self) -> str:
        """Where the calling thread's scratch memory is, and how much of it a thread needs: two arguments."""
        size = self._kernel.scratch_bytes
        return f"ptr %scratch, i64 {size}" if size else "ptr null, i64 0"

    def _offset(self, tensor: Tensor, pointer: str, elements: Operand) -> str:
        if elements == 0:
            return pointer
        element = tensor.dtype.llvm_memory
        return self._writer.pure(f"getelementptr {element}, ptr {pointer}, i64 {elements}")

    def _lane_pointers(self, tensor: Tensor, cell: _Cell, lanes: Lanes) -> list[str]:
        start = self._start(cell.pointer)
        return [
            self._offset(tensor, start, self._writer.multiply(cell.stride, lane))
            for lane in range(lanes.count)
        ]

    def _start(self, pointer: str) -> str:
        """A pointer from which many cells are reached: by copies of a body, or by lanes. LLVM would look for
        other ways, over all of them together, for longer than the rest of its work takes; it does not look
        through this."""
        return self._writer.pure(f"freeze ptr {pointer}")

    def _joined(self, tensor: Tensor, pointers: Sequence[str]) -> Value:
        """The cells at these addresses, a lane each. Bools are joined as the bytes that they are in memory:
        bits are put into a register of masks one by one, each of which waits for the one before."""
        if tensor.dtype is not BOOL:
            return self._writer.join([self._read(tensor, pointer, 1) for pointer in pointers])
        cells = self._writer.join([Value(self._loaded(tensor, pointer, 1), BYTE) for pointer in pointers])
        return self._value(cells.type, cells.text, BOOL, cells.lanes)

    def _read(self, tensor: Tensor, pointer: str, lanes: int) -> Value:
        memory = vector_type(tensor.dtype.llvm_memory, lanes)
        return self._value(memory, self._loaded(tensor, pointer, lanes), tensor.dtype, lanes)

    def _loaded(self, tensor: Tensor, pointer: str, lanes: int) -> str:
        """What stands in memory."""
        memory = vector_type(tensor.dtype.llvm_memory, lanes)
        text = self._writer.let(f"load {memory}, ptr {pointer}, align {tensor.dtype.itemsize}")
        self._writer.catch_up(1)
        return text

    def _value(self, memory: str, text: str, dtype: DType, lanes: int) -> Value:
        """Of what was loaded."""
        if dtype is BOOL:
            text = self._writer.pure(f"icmp ne {memory} {text}, zeroinitializer")
        return Value(text, dtype, lanes)

    def _neighbouring(self, tensor: Tensor, cell: _Cell, lanes: Lanes, count: int, before: int = 0) -> Value:
        """So many neighbours, from so many cells before one on."""

        def read(place: int, count: int) -> Value:
            return self._read(tensor, self._offset(tensor, cell.base, place), count)

        self._neighbours.begin(lanes, self._writer.block)
        return self._neighbours.load(self._writer, tensor, cell.base, cell.place - before, count, read)

    def behind_boundary(self, tensor: Tensor, index: tuple[Affine, ...], lanes: int) -> str:
        """How many cells before this one a cache line starts, or the part of one that a vector fills. Cells
        that are whole lines apart have one answer, given in the same words."""
        size, alignment = tensor.dtype.itemsize, _whole_lines(tensor, lanes)
        cells, writer = alignment // size, self._writer
        nearest = tuple(
            _modulo(position, step, cells)
            for position, step in zip(index, self._strides_of(tensor), strict=True)
        )
        address = writer.pure(f"ptrtoint ptr {self.address(tensor, nearest, Lanes())} to i64")
        return writer.pure(f"udiv i64 {writer.pure(f'and i64 {address}, {alignment - 1}')}, {size}")

    def until_aligned(self, tensor: Tensor, index: tuple[Affine, ...], lanes: int) -> str:
        """How many cells further the first one is that a vector can be stored to past the caches."""
        behind, cells = self.behind_boundary(tensor, index, lanes), _whole_lines(tensor, lanes)
        missing = self._writer.pure(f"sub i64 0, {behind}")
        return self._writer.pure(f"and i64 {missing}, {cells // tensor.dtype.itemsize - 1}")

    def _write(
        self, tensor: Tensor, pointer: str, value: Value, bypass: bool = False, edge: Edge | None = None
    ) -> None:
        self._neighbours.forget(tensor.storage)
        dtype = tensor.dtype
        memory = vector_type(dtype.llvm_memory, value.lanes)
        text = value.text
        if dtype is BOOL:
            text = self._writer.pure(f"zext {value} to {memory}")
        alignment = _whole_lines(tensor, value.lanes) if bypass else dtype.itemsize
        if edge:
            slot = self._writer.slot(f"[2 x {memory}]")
            self._writer.emit(f"store {memory} {text}, ptr {slot}, {SLOT}")
            moved, pointer = (self._offset(tensor, place, edge.first) for place in (slot, pointer))
            if dtype.itemsize in ALONE:
                self._copy_past(tensor, moved, pointer, edge.count)
                return
            text = self._writer.let(f"load {memory}, ptr {moved}, align {dtype.itemsize}")
            mask = self._writer.first_lanes(edge.count, value.lanes)
            self._writer.masked_store(memory, text, pointer, alignment, mask)
        else:
            self._writer.store(f"{memory} {text}", pointer, alignment, bypass)

    def _copy_past(self, tensor: Tensor, source: str, target: str, count: Operand) -> None:
        """Copy so many cells, at least one, past the caches."""
        writer, size = self._writer, tensor.dtype.itemsize
        outside, header, leave = writer.block, writer.fresh("cell"), writer.fresh("done")
        number = Value("%" + writer.fresh("i"), I64)
        writer.jump(header)
        writer.start(header)
        phi = writer.reserve()
        with writer.scope():
            cell, place = (self._offset(tensor, pointer, number.text) for pointer in (source, target))
            word = writer.let(f"load i{8 * size}, ptr {cell}, align {size}")
            writer.store(f"i{8 * size} {word}", place, size, bypass=True)
            following = writer.let(f"add i64 {number.text}, 1")
            again = writer.let(f"icmp slt i64 {following}, {count}")
        writer.fill_phi(phi, number, {outside: 0, writer.block: following})
        writer.branch(again, header, leave)
        writer.start(leave)

    def _read_first(self, tensor: Tensor, pointer: str, lanes: int, present: Operand) -> Value:
        """The first cells of a vector, and zeros for the others."""
        writer, dtype = self._writer, tensor.dtype
        parts = []
        for start, count, mask in self._registers(tensor, lanes, present):
            memory = vector_type(dtype.llvm_memory, count)
            text = writer.masked_load(memory, self._offset(tensor, pointer, start), dtype.itemsize, mask)
            parts.append(self._value(memory, text, dtype, count))
        return writer.concatenated(parts)

    def _write_first(self, tensor: Tensor, pointer: str, value: Value, present: Operand) -> None:
        """Store the first lanes alone."""
        self._neighbours.forget(tensor.storage)
        writer, dtype = self._writer, tensor.dtype
        for start, count, mask in self._registers(tensor, value.lanes, present):
            part = value if count == value.lanes else writer.shuffle(value, range(start, start + count))
            memory = vector_type(dtype.llvm_memory, count)
            at = self._offset(tensor, pointer, start)
            writer.masked_store(memory, part.text, at, dtype.itemsize, mask)

    def _registers(self, tensor: Tensor, lanes: int, present: Operand) -> Iterator[tuple[int, int, str]]:
        """The registers that lanes fill: the first lane, how many there are, and the mask of those present.
        LLVM would take a mask of several registers apart anew wherever it is used."""
        count = min(lanes, LINE_BYTES // tensor.dtype.itemsize)
        for start in range(0, lanes, count):
            yield start, count, self._writer.first_lanes(self._writer.add(present, -start), count)

    def _reversed(self, value: Value) -> Value:
        return self._writer.shuffle(value, range(value.lanes - 1, -1, -1))


def _whole_lines(tensor: Tensor, lanes: int) -> int:
    """The boundary, in bytes, on which a vector fills whole cache lines, or its part of one."""
    return min(LINE_BYTES, lanes * tensor.dtype.itemsize)


def _modulo(position: Affine, stride: Affine, cells: int) -> Affine:
    """A position along an axis without what moves it by multiples of so many cells."""
    if not stride.is_constant:
        return position
    step = stride.offset
    terms = tuple((factor, symbol) for factor, symbol in position.terms if factor * step % cells)
    return Affine(terms, position.offset % cells if position.offset * step % cells else 0)


def _before_widened(writer: Writer, position: Value) -> Value:
    """What integers of memory were before they got as many bits as positions have: lanes that are only taken
    out one by one are loaded one by one, and get their bits by that. Bytes LLVM takes out of a register."""
    made = re.fullmatch(r"([sz])ext <\d+ x i(16|32)> ([^ ]+) to .*", writer.made(position.text))
    if made is None or writer.made(made[3]):
        return position
    return Value(made[3], named(("i" if made[1] == "s" else "u") + made[2]), position.lanes)


def _lane(writer: Writer, position: Value, lane: int) -> str:
    """A lane as a number of 64 bits."""
    one, dtype = writer.lane(position, lane), position.dtype
    if dtype.bits == 64:
        return one.text
    return writer.pure(f"{'sext' if dtype.kind is Kind.INT else 'zext'} {one} to i64")
