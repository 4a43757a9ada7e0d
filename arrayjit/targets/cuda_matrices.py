"""Tensor cores in CUDA C: copies that go on by themselves, and warps that multiply matrices, as inline PTX.

    copy_8_of_16(tile + place_of_32(row, column), x + offset, count);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    multiply_f16_64x64x32(total, left, right);

Matrices lie in shared memory by rows, in pieces of 16 bytes, which change places so that eight rows at one
column lie in different banks: that is how `ldmatrix` reads them (PTX ISA, "Warp-level matrix instructions").
It turns matrices of small floats, not of float32s, of which a warp then reads four rows of eight neighbours:
these lie in different banks as well. Float32s are rounded to TF32 in registers.
"""

from __future__ import annotations

from typing_extensions import assert_never

from ..errors import CompilerBug
from ..ir.dtype import F32
from ..ir.loops import Barrier, Copy, For, Multiply, walk_statements
from ..ir.tensor import Tensor
from .c_body import Body
from .c_text import Writer, added, multiplied

__all__ = ["commits", "tensor_cores"]

PIECE = 16
"""Bytes that are copied at once."""

BANKS = 8
"""Pieces that are read at once, each from banks of its own."""

_INSTRUCTIONS = {
    "load_matrices": r"""
void load_matrices(uint32_t *to, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row)) : "memory");
}""",
    "load_turned": r"""
void load_turned(uint32_t *to, const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row)) : "memory");
}""",
    "pair_up": r"""
void pair_up(uint32_t *to, const uint16_t *cells) {
    #pragma unroll
    for (int pair = 0; pair < 4; pair++) to[pair] = cells[2 * pair] | (uint32_t)cells[2 * pair + 1] << 16;
}""",
    "copy_8_of_16": r"""
void copy_8_of_16(uint16_t *to, const uint16_t *from, int64_t count) {
    const int cells = count < 0 ? 0 : count > 8 ? 8 : (int)count;
    if (((uint64_t)from & 15) == 0) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(2 * cells) : "memory");
    } else {
        uint32_t pairs[4];
        #pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            const uint32_t low = 2 * pair < cells ? from[2 * pair] : 0;
            const uint32_t high = 2 * pair + 1 < cells ? from[2 * pair + 1] : 0;
            pairs[pair] = low | high << 16;
        }
        *(uint4 *)to = uint4{pairs[0], pairs[1], pairs[2], pairs[3]};
    }
}""",
    "copy_4_of_32": r"""
void copy_4_of_32(float *to, const float *from, int64_t count) {
    const int cells = count < 0 ? 0 : count > 4 ? 4 : (int)count;
    if (((uint64_t)from & 15) == 0) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(4 * cells) : "memory");
    } else {
        #pragma unroll
        for (int cell = 0; cell < 4; cell++)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                         :: "r"((uint32_t)__cvta_generic_to_shared(to + cell)), "l"(from + cell),
                            "r"(cell < cells ? 4 : 0) : "memory");
    }
}""",
    "round_to_tf32": r"""
void round_to_tf32(uint32_t *cells) {
    #pragma unroll
    for (int cell = 0; cell < 4; cell++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(cells[cell]) : "f"(__uint_as_float(cells[cell])));
}""",
}


def tensor_cores(body: Body, stmt: Copy | Multiply | Barrier) -> None:
    """What is for tensor cores, or has to do with copies."""
    writer = body.writer
    match stmt:
        case Copy():
            _copy(body, stmt)
        case Multiply():
            _multiply(body, stmt)
        case Barrier(pending=pending):
            writer.emit(f'asm volatile("cp.async.wait_group {pending};" ::: "memory");')
            writer.emit(writer.dialect.barrier)
        case _:
            assert_never(stmt)


def commits(loop: For) -> bool:
    """Does a block loop begin copies, that are waited for together?"""
    return any(isinstance(stmt, Copy) for stmt in walk_statements(loop.body))


def _copy(body: Body, copy: Copy) -> None:
    memory, into = body.memory, copy.into
    if copy.cells != _cells(into):
        raise CompilerBug(f"a copy of {copy.cells} cells at once", stage="targets/cuda")
    stage, row, column = (memory.affine(position) for position in copy.index)
    first = multiplied(stage, into.shape[1].constant * into.shape[2].constant)
    place = f"{_place(body.writer, into)}({row}, {column})"
    source = memory.address(copy.source, copy.at)
    count = body.value(copy.count).text
    function = _helper(body.writer, f"copy_{copy.cells}_of_{into.dtype.bits}")
    body.writer.emit(f"{function}({memory.pointer(into)} + {added(first, place)}, {source}, {count});")


def _multiply(body: Body, product: Multiply) -> None:
    memory = body.memory
    factors = [memory.pointer(product.left)] if product.owns_left else []
    for factor, _ in product.factors:
        stage = multiplied(memory.affine(product.stage), factor.shape[1].constant * factor.shape[2].constant)
        factors.append(f"{memory.pointer(factor)} + {stage}")
    function = _product(body.writer, product)
    body.writer.emit(f"{function}({memory.pointer(product.total)}, {', '.join(factors)});")


def _helper(writer: Writer, name: str) -> str:
    return writer.helper(name, _INSTRUCTIONS[name].strip())


def _cells(tile: Tensor) -> int:
    """Of a piece."""
    return PIECE // tile.dtype.itemsize


def _place(writer: Writer, tile: Tensor) -> str:
    """The function that says where the cell of a matrix lies."""
    width, cells = tile.shape[2].constant, _cells(tile)
    pieces = width // cells
    if pieces < BANKS:
        change = f"row / {BANKS // pieces} % {pieces}"
    elif tile.dtype is F32:  # four rows of two pieces are read at once, as are eight of one
        change = "(row % 4 * 2 + row / 4 % 2)"
    else:
        change = f"row % {BANKS}"
    name = f"place_of_{width}_{tile.dtype.short}"
    return writer.helper(
        name,
        f"int {name}(int row, int column) {{\n"
        f"    return {width} * row + {cells} * (column / {cells} ^ {change}) + column % {cells};\n}}",
    )


def _product(writer: Writer, product: Multiply) -> str:
    """The function that adds the product of two matrices to the sums of a thread."""
    rows, columns, depth = product.extents
    down, across = product.total.shape[1].constant, product.total.shape[2].constant
    dtype = product.left.dtype
    kind = "tf32" if dtype is F32 else dtype.short
    accumulate = _accumulate(writer, kind, product.terms)
    layout = "".join("nt"[turned] for turned in product.turned)
    layout = f"o{layout[1:]}" if product.owns_left else layout
    name = f"multiply_{kind}_{rows}x{columns}x{depth}_{layout}"
    turned = product.turned[0], not product.turned[1]
    if product.owns_left:
        left = f"{_helper(writer, 'pair_up')}(a[m], left + ({depth // 8} * m + k / 8) * 4);"
    else:
        left = _loaded(writer, product.left, turned[0], "a[m]", "left", "row + 16 * m")
    right = _loaded(writer, product.right, turned[1], "b[n]", "right", "column + 8 * n")
    return writer.helper(
        name,
        f"""
void {name}(float *total, const {dtype.c} *left, const {dtype.c} *right) {{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / {product.warps[1]} * {16 * down};
    const int column = warp % {product.warps[1]} * {8 * across};
    #pragma unroll
    for (int k = 0; k < {depth}; k += {product.terms}) {{
        uint32_t a[{down}][4], b[{across}][2];
        #pragma unroll
        for (int m = 0; m < {down}; m++) {left}
        #pragma unroll
        for (int n = 0; n < {across}; n += 2) {right}
        #pragma unroll
        for (int m = 0; m < {down}; m++)
            #pragma unroll
            for (int n = 0; n < {across}; n++) {accumulate}(total + ({across} * m + n) * 4, a[m], b[n]);
    }}
}}""".strip(),
    )


def _loaded(writer: Writer, tile: Tensor, is_turned: bool, to: str, source: str, first: str) -> str:
    """How a lane gets its cells of the four matrices at `k` and, across the depth, at `first`. They lie in
    rows along the depth, or across it if they are turned."""
    place = _place(writer, tile)
    halves = "lane % 16", f"lane / 16 * {_cells(tile)}"
    quarters = "lane % 8 + lane / 16 * 8", f"lane / 8 % 2 * {_cells(tile)}"
    row, column = halves if (source == "left") is not is_turned else quarters
    if not is_turned:
        load = f"{_helper(writer, 'load_matrices')}({to}, {source} + {place}({first} + {row}, k + {column}));"
    elif tile.dtype is F32:
        load = f"{_gathered(writer, tile, source)}({to}, {source}, k + lane % 4, {first} + lane / 4);"
    else:
        load = f"{_helper(writer, 'load_turned')}({to}, {source} + {place}(k + {row}, {first} + {column}));"
    return load if tile.dtype is not F32 else f"{{ {load} {_helper(writer, 'round_to_tf32')}({to}); }}"


def _gathered(writer: Writer, tile: Tensor, source: str) -> str:
    """The function that does for turned matrices of float32s what `ldmatrix` does for others."""
    along, across = ("/ 2", "% 2") if source == "left" else ("% 2", "/ 2")
    place = _place(writer, tile)
    name = f"load_{source}_of_{tile.shape[2].constant}"
    return writer.helper(
        name,
        f"""
void {name}(uint32_t *to, const float *tile, int row, int column) {{
    #pragma unroll
    for (int n = 0; n < 4; n++)
        to[n] = __float_as_uint(tile[{place}(row + n {along} * 4, column + n {across} * 8)]);
}}""".strip(),
    )


def _accumulate(writer: Writer, kind: str, terms: int) -> str:
    """The function that does one instruction of a tensor core."""
    name = f"multiply_{kind}"
    return writer.helper(
        name,
        f"""
void {name}(float *sums, const uint32_t *a, const uint32_t *b) {{
    asm volatile("mma.sync.aligned.m16n8k{terms}.row.col.f32.{kind}.{kind}.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}""".strip(),
    )
