"""Vector loops as CUDA C: a thread takes a few neighbours, which it reads and writes at once.

    const f32x4 x1 = load_f32x4(x + 4 * w);
    f32x4 y1;
    {
        y1.lanes[0] = x1.lanes[0] + 1.0f;
    }
    ...
    store_f32x4(y + 4 * w, y1);

Memory that is not aligned for that is read and written cell by cell; what a thread owns is no memory.
"""

from __future__ import annotations

from ..ir.dtype import BOOL, DType
from ..ir.expr import Expr, Load, Local, Variable
from ..ir.index import Affine, Symbol
from ..ir.loops import Define, For, Stmt, Store, Update
from ..ir.ops import Op
from ..ir.tensor import Tensor
from ..ir.walk import rewrite_expressions, transform
from .bodies import accumulation, changes
from .c_body import Body
from .c_memory import Memory
from .c_text import Value, Writer
from .c_values import apply, identity

__all__ = ["wide_loop"]

_VECTORS = {
    "int8_t": "char",
    "uint8_t": "uchar",
    "int16_t": "short",
    "uint16_t": "ushort",
    "int32_t": "int",
    "uint32_t": "uint",
    "int64_t": "longlong",
    "uint64_t": "ulonglong",
    "float": "float",
    "double": "double",
}
"""What CUDA calls short vectors of a type, whose length follows: the compiler writes these at once."""

Cell = tuple[Tensor, tuple[Affine, ...]]


def wide_loop(body: Body, loop: For) -> None:
    """All iterations of a vector loop of as many as it has lanes."""
    wide = _Wide(loop, body.memory)
    stmts = tuple(wide.statement(stmt) for stmt in loop.body)
    writer, memory = body.writer, body.memory
    memory.symbols[loop.symbol] = memory.affine(loop.lo)

    def is_aligned(tensor: Tensor, index: tuple[Affine, ...]) -> bool:
        if not memory.is_shared(tensor) or tensor.storage.nbytes % (loop.lanes * tensor.dtype.itemsize):
            return False
        return _starts_a_vector(tensor.linear(index), loop)

    with writer.block():
        names: dict[Variable, str] = {}
        for variable, (tensor, index) in wide.read.items():
            kind = _kind(body, tensor.dtype, loop.lanes)
            names[variable] = writer.fresh(tensor.label)
            address = memory.address(tensor, index)
            if is_aligned(tensor, index):
                writer.emit(f"const {kind} {names[variable]} = *(const {kind} *)({address});")
            else:
                writer.emit(f"const {kind} {names[variable]} = load_{kind}({address});")
        for variable, (tensor, _) in wide.written.items():
            names[variable] = writer.fresh(tensor.label)
            writer.emit(f"{_kind(body, tensor.dtype, loop.lanes)} {names[variable]};")
        sums = {
            variable: (accumulation(variable, loop.body), body.values[variable])
            for variable in changes(loop.body)
        }
        parts: dict[Variable, list[Value]] = {variable: [] for variable in sums}
        for lane, number in enumerate(range(loop.lo.constant, loop.hi.constant)):
            memory.symbols[loop.symbol] = number
            for variable, (op, _) in sums.items():
                body.define(variable, identity(writer, op, variable.dtype))
                parts[variable].append(body.values[variable])
            for variable, name in names.items():
                body.values[variable] = _lane(name, lane, variable.dtype, variable in wide.read)
            with writer.block():
                body.inside(stmts)
        for variable, (op, old) in sums.items():
            total = _folded(writer, op, parts[variable])
            writer.emit(f"{old.text} = {apply(writer, op, (old, total), variable.dtype).text};")
            body.values[variable] = old
        memory.symbols[loop.symbol] = loop.lo.constant
        for variable, (tensor, index) in wide.written.items():
            kind = _kind(body, tensor.dtype, loop.lanes)
            how = "put" if is_aligned(tensor, index) else "store"
            writer.emit(f"{how}_{kind}({memory.address(tensor, index)}, {names[variable]});")


def _folded(writer: Writer, op: Op, parts: list[Value]) -> Value:
    """The values of all lanes as one: in halves, the upper one onto the lower one."""
    while len(parts) > 1:
        halves = zip(parts[: len(parts) // 2], parts[len(parts) // 2 :], strict=True)
        parts = [writer.let(apply(writer, op, pair, pair[0].dtype)) for pair in halves]
    return parts[0]


def _starts_a_vector(place: Affine, loop: For) -> bool:
    """Is the place of the first lane, of cells that start at a whole vector, that of a vector?"""
    parts = [place.offset + loop.lo.constant, *(c for c, symbol in place.terms if symbol is not loop.symbol)]
    return all(part % loop.lanes == 0 for part in parts)


def _lane(name: str, lane: int, dtype: DType, is_read: bool) -> Value:
    """A cell among the neighbours."""
    text = f"{name}.lanes[{lane}]"
    return Value(f"{text} != 0", BOOL, is_atom=False) if is_read and dtype is BOOL else Value(text, dtype)


class _Wide:
    """The cells that the statements of a loop reach for sure, with a variable in place of each: `read` before
    them, `written` after."""

    def __init__(self, loop: For, memory: Memory) -> None:
        self.read: dict[Variable, Cell] = {}
        self.written: dict[Variable, Cell] = {}
        self._symbol: Symbol = loop.symbol
        self._memory = memory
        self._known: dict[Cell, Variable] = {}

    def statement(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, (Define, Update, Store)):
            return stmt
        stmt = rewrite_expressions(stmt, lambda expr: transform(expr, self._node))
        if not isinstance(stmt, Store) or self._memory.is_own(stmt.tensor):
            return stmt
        variable = Variable(stmt.tensor.label, stmt.tensor.dtype)
        self.written[variable] = (stmt.tensor, stmt.index)
        return Update(variable, stmt.value)

    def _node(self, node: Expr) -> Expr:
        if not isinstance(node, Load) or not self._is_along(node):
            return node
        cell = (node.tensor, node.index)
        if cell not in self._known:
            variable = self._known[cell] = Variable(node.tensor.label, node.tensor.dtype)
            self.read[variable] = cell
        return Local(self._known[cell])

    def _is_along(self, load: Load) -> bool:
        """Do the lanes lie side by side in memory?"""
        if self._memory.is_own(load.tensor):
            return False
        try:
            place = load.tensor.linear(load.index)
        except ValueError:
            return False
        return place.coefficient(self._symbol) == 1


def _kind(body: Body, dtype: DType, lanes: int) -> str:
    """The type of so many neighbours, whose functions the module will have."""
    writer: Writer = body.writer
    kind = writer.dialect.types[dtype]
    name = f"{dtype.short}x{lanes}"
    if name not in writer.prelude:
        size = dtype.itemsize * lanes
        cells = ", ".join(f"from[{lane}]" for lane in range(lanes))
        values = ", ".join(f"x.lanes[{lane}]" for lane in range(lanes))
        vector = f"{_VECTORS[kind]}{lanes}"
        stores = " ".join(f"to[{lane}] = x.lanes[{lane}];" for lane in range(lanes))
        aligned = f"((uint64_t){{}} & {size - 1}) == 0"
        writer.prelude[name] = f"struct __align__({size}) {name} {{ {kind} lanes[{lanes}]; }};"
        writer.helper(
            f"load_{name}",
            f"{name} load_{name}(const {kind} *__restrict__ from) {{\n"
            f"    if ({aligned.format('from')}) return *(const {name} *)from;\n"
            f"    return {name}{{{{{cells}}}}};\n}}",
        )
        writer.helper(
            f"put_{name}",
            f"void put_{name}({kind} *to, {name} x) {{ *({vector} *)to = {vector}{{{values}}}; }}",
        )
        # Without the empty line of assembly the compiler joins the two ways to store, cell by cell.
        writer.helper(
            f"store_{name}",
            f"void store_{name}({kind} *to, {name} x) {{\n"
            f"    if ({aligned.format('to')}) *({vector} *)to = {vector}{{{values}}};\n"
            f'    else {{ {stores} asm volatile(""); }}\n}}',
        )
    return name
