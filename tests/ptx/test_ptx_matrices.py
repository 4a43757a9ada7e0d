"""Tensor cores: each shape of `mma.sync` that is simulated, and `ldmatrix`, against whole matrices."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

Run = Callable[..., None]

LANE = np.arange(32)
GROUP, WITHIN = LANE // 4, LANE % 4

DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "s32": np.int32,
}


def places(name: str, kind: str, rows: int, columns: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of the fragment's elements, for all lanes, in the order of the PTX manual.

    Of A and of B transposed: a lane holds neighbours of a row, `per` of them in a register, then eight rows
    below, then further to the right. Of C: two neighbours, then eight rows below.
    """
    per = 2 if name == "c" else {"f16": 2, "bf16": 2, "s8": 4, "u8": 4}.get(kind, 1)
    found = []
    for right in range(0, columns, 4 * per):
        for below in range(0, rows, 8):
            found += [(GROUP + below, right + per * WITHIN + element) for element in range(per)]
    return found


def fragment(matrix: np.ndarray, name: str, kind: str) -> np.ndarray:
    """A matrix as each lane holds it: shape (32, elements)."""
    return np.ascontiguousarray([matrix[place] for place in places(name, kind, *matrix.shape)]).T.copy()


def test_the_layout_is_that_of_the_manual() -> None:
    """For m16n8k16 with 16-bit elements: a0, a2, a4 and a6 of lane 5."""
    found = places("a", "f16", 16, 16)
    assert [(int(rows[5]), int(columns[5])) for rows, columns in found[::2]] == [
        (1, 2),
        (9, 2),
        (1, 10),
        (9, 10),
    ]


SHAPES = [
    ("m16n8k16", "f32", "f16"),
    ("m16n8k16", "f16", "f16"),
    ("m16n8k16", "f32", "bf16"),
    ("m16n8k8", "f32", "f16"),
    ("m16n8k8", "f32", "bf16"),
    ("m16n8k8", "f32", "tf32"),
    ("m16n8k4", "f32", "tf32"),
    ("m8n8k4", "f64", "f64"),
    ("m16n8k4", "f64", "f64"),
    ("m16n8k8", "f64", "f64"),
    ("m16n8k16", "f64", "f64"),
    ("m16n8k16", "s32", "s8"),
    ("m16n8k32", "s32", "u8"),
]


@pytest.mark.parametrize(("shape", "total", "kind"), SHAPES)
def test_products(run_ptx: Run, shape: str, total: str, kind: str) -> None:
    rows, depth = int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(0 if kind == "u8" else -8, 8, extents).astype(DTYPES[each])
        for extents, each in (((rows, depth), kind), ((8, depth), kind), ((rows, 8), total))
    )
    held = [fragment(*each) for each in ((a, "a", kind), (b, "b", kind), (c, "c", total))]
    pieces = [each.view(np.uint64 if each.dtype == np.float64 else np.uint32) for each in held]
    pieces.append(np.zeros_like(pieces[2]))
    body, names = [], {}
    for number, (piece, name) in enumerate(zip(pieces, "abcd", strict=True), 1):
        bits = 8 * piece.itemsize
        names[name] = [f"{name}{at}" for at in range(piece.shape[1])]
        body.append(f".reg .b{bits} {', '.join(names[name])};")
        body.append(f"mad.wide.u32 %rd{10 + number}, %r1, {piece.strides[0]}, %rd{number};")
        places_ = [f"[%rd{10 + number}+{at * piece.itemsize}]" for at in range(piece.shape[1])]
        if name != "d":
            body += [
                f"ld.global.b{bits} {r}, {place};" for r, place in zip(names[name], places_, strict=True)
            ]
    text = ", ".join(f"{{{', '.join(names[name])}}}" for name in "dabc")
    body.append(f"mma.sync.aligned.{shape}.row.col.{total}.{kind}.{kind}.{total} {text};")
    body += [f"st.global.b{bits} {place}, {r};" for r, place in zip(names["d"], places_, strict=True)]
    run_ptx("\n".join(body), 32, *pieces)
    wide = np.int64 if total == "s32" else np.float64
    expected = (a.astype(wide) @ b.astype(wide).T + c.astype(wide)).astype(DTYPES[total])
    np.testing.assert_array_equal(pieces[3].view(DTYPES[total]), fragment(expected, "c", total))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_from_shared_memory(run_ptx: Run, count: int, transposed: bool) -> None:
    """Rows of 16 bytes, 24 apart, whose addresses come from lanes 0 to 7, 8 to 15, ..."""
    x = np.arange(8 * count * 8, dtype=np.uint16).reshape(count, 8, 8)
    y = np.zeros((32, count, 2), np.uint16)
    registers = ", ".join(f"%r{10 + number}" for number in range(count))
    stores = "".join(f"st.global.b32 [%rd5+{4 * number}], %r{10 + number};" for number in range(count))
    body = f"""
    .shared .align 16 .b8 tile[{32 * 48}];
    mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 48, %r2;
    setp.lt.u32 %p1, %r1, {8 * count};
    mad.wide.u32 %rd3, %r1, 16, %rd1;
    @%p1 ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];
    @%p1 st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}};
    bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.m8n8.x{count}{".trans" if transposed else ""}.shared.b16 {{{registers}}}, [%r3];
    mad.wide.u32 %rd5, %r1, {4 * count}, %rd2;
    {stores}"""
    run_ptx(body, 32, x, y)
    matrices = x.swapaxes(1, 2) if transposed else x
    for lane in range(32):
        for number in range(count):
            pair = matrices[number, lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
            np.testing.assert_array_equal(y[lane, number], pair)
