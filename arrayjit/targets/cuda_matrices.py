"""Tensor cores in CUDA C: copies that go on by themselves, and warps that multiply matrices, as inline PTX.

    copy_8_of_16(tile + place_of_32(row, column), x + offset, count);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    multiply_f16_64x64x32(total, left, right);

Matrices lie in shared memory by rows, in pieces of 16 bytes, which change places so that eight rows at one
column lie in different banks: that is how `ldmatrix` reads them (PTX ISA, "Warp-level matrix instructions").
"""

from __future__ import annotations

from typing_extensions import assert_never

from ..errors import CompilerBug
from ..ir.loops import Barrier, Copy, For, Multiply, walk_statements
from ..ir.tensor import Tensor
from .c_body import Body
from .c_text import Writer, added, multiplied

__all__ = ["commits", "tensor_cores"]

PIECE = 8
"""Small floats that are copied at once."""

_INSTRUCTIONS = {
    "load_matrices": r"""
void load_matrices(uint32_t *to, const uint16_t *row) {
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
    if copy.cells != PIECE:
        raise CompilerBug(f"a copy of {copy.cells} cells at once", stage="targets/cuda")
    stage, row, column = (memory.affine(position) for position in copy.index)
    first = multiplied(stage, into.shape[1].constant * into.shape[2].constant)
    place = f"{_place(body.writer, into)}({row}, {column})"
    source = memory.address(copy.source, copy.at)
    count = body.value(copy.count).text
    function = _helper(body.writer, "copy_8_of_16")
    body.writer.emit(f"{function}({memory.pointer(into)} + {added(first, place)}, {source}, {count});")


def _multiply(body: Body, product: Multiply) -> None:
    memory = body.memory
    factors = []
    for factor in (product.left, product.right):
        stage = multiplied(memory.affine(product.stage), factor.shape[1].constant * factor.shape[2].constant)
        factors.append(f"{memory.pointer(factor)} + {stage}")
    function = _product(body.writer, product)
    body.writer.emit(f"{function}({memory.pointer(product.total)}, {', '.join(factors)});")


def _helper(writer: Writer, name: str) -> str:
    return writer.helper(name, _INSTRUCTIONS[name].strip())


def _place(writer: Writer, tile: Tensor) -> str:
    """The function that says where the cell of a matrix lies."""
    width = tile.shape[2].constant
    pieces = width // PIECE
    row = "row" if pieces >= PIECE else f"row / {PIECE // pieces}"
    piece = f"(column / {PIECE} ^ {row} % {min(pieces, PIECE)})"
    name = f"place_of_{width}"
    return writer.helper(
        name,
        f"int {name}(int row, int column) {{\n"
        f"    return {width} * row + {PIECE} * {piece} + column % {PIECE};\n}}",
    )


def _product(writer: Writer, product: Multiply) -> str:
    """The function that adds the product of two matrices to the sums of a thread."""
    rows, columns, depth = product.extents
    down, across = product.total.shape[1].constant, product.total.shape[2].constant
    kind = product.left.dtype.short
    accumulate = _accumulate(writer, kind)
    layout = "".join("nt"[turned] for turned in product.turned)
    name = f"multiply_{kind}_{rows}x{columns}x{depth}_{layout}"
    left = _loaded(
        writer,
        product.left,
        product.turned[0],
        "row + 16 * m",
        by_row=("lane % 16", "lane / 16 * 8"),
        turned=("lane % 8 + lane / 16 * 8", "lane / 8 % 2 * 8"),
    )
    right = _loaded(
        writer,
        product.right,
        not product.turned[1],
        "column + 8 * n",
        by_row=("lane % 8 + lane / 16 * 8", "lane / 8 % 2 * 8"),
        turned=("lane % 16", "lane / 16 * 8"),
    )
    return writer.helper(
        name,
        f"""
void {name}(float *total, const uint16_t *left, const uint16_t *right) {{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / {product.warps[1]} * {16 * down};
    const int column = warp % {product.warps[1]} * {8 * across};
    #pragma unroll
    for (int k = 0; k < {depth}; k += 16) {{
        uint32_t a[{down}][4], b[{across}][2];
        #pragma unroll
        for (int m = 0; m < {down}; m++) {left.format("a[m]", "left")}
        #pragma unroll
        for (int n = 0; n < {across}; n += 2) {right.format("b[n]", "right")}
        #pragma unroll
        for (int m = 0; m < {down}; m++)
            #pragma unroll
            for (int n = 0; n < {across}; n++) {accumulate}(total + ({across} * m + n) * 4, a[m], b[n]);
    }}
}}""".strip(),
    )


def _loaded(
    writer: Writer,
    tile: Tensor,
    is_turned: bool,
    first: str,
    by_row: tuple[str, str],
    turned: tuple[str, str],
) -> str:
    """How four matrices of 8 by 8 are loaded, from rows of `{1}` that lie along the depth, or across it if it
    is turned; each lane has the row that is so far beyond the first one, and the column."""
    place = _place(writer, tile)
    if is_turned:
        function = _helper(writer, "load_turned")
        at = f"k + {turned[0]}, {first} + {turned[1]}"
    else:
        function = _helper(writer, "load_matrices")
        at = f"{first} + {by_row[0]}, k + {by_row[1]}"
    return f"{function}({{0}}, {{1}} + {place}({at}));"


def _accumulate(writer: Writer, kind: str) -> str:
    """The function that does one instruction of a tensor core."""
    name = f"multiply_{kind}"
    return writer.helper(
        name,
        f"""
void {name}(float *sums, const uint32_t *a, const uint32_t *b) {{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}""".strip(),
    )
