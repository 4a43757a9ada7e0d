"""What `contract` promises for any size, layout and machine: the bits of the chain of every cell."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrayjit
from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.code import Ahead, Caps, Pipes
from arrayjit.ir.interp import run
from arrayjit.ir.loops import For, LoopKind, Prefetch, walk_statements
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.manager import optimize
from arrayjit.passes.products.contract import contract
from arrayjit.runtime.cpu import CpuDriver
from arrayjit.runtime.threads import ThreadPool
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.tracer.calls.function import trace_function

SIZES = st.integers(2, 40)

MACHINES = (
    Caps(vector_bytes=16),
    Caps(vector_bytes=32, l1_bytes=512, l2_bytes=512, l3_bytes=2048),
    Caps(vector_bytes=64, registers=32, l1_bytes=1024, l2_bytes=256, l3_bytes=1024, threads=3),
    Caps(vector_bytes=16, l1_bytes=512, l2_bytes=4096),
    Caps(vector_bytes=16, l1_bytes=128, l2_bytes=2048),
    Caps(vector_bytes=16, l1_bytes=512, l2_bytes=1024, ahead=Ahead(rows=True)),
    Caps(vector_bytes=16, l1_bytes=512, l2_bytes=1024, pipes=Pipes(ahead=190)),
    Caps(vector_bytes=16, l1_bytes=512, transposes=True, pipes=Pipes(ahead=190)),
)
"""With small caches small products are cut in every way."""

LAYOUTS = {"a": ("a[i, k]", "a[k, i]"), "b": ("b[k, j]", "b[j, k]"), "y": ("y[i, j]", "y[j, i]")}

ENDINGS = ("c", "maximum[f32](add[f32](c, d[j]), f32(1.0))", "add[f32]({y}, c)")


def product(extents, layouts, ending, ranges=()):
    """A product with its factors and its result in these layouts; the extents that only the run knows are
    names, and have `ranges`."""
    cells = {name: LAYOUTS[name][number] for name, number in zip("aby", layouts, strict=True)}
    shapes = {
        name: ", ".join(str(extents[axis]) for axis in cell[2:-1].split(", ")) for name, cell in cells.items()
    }
    parameters = ", ".join(f"{name}: read[f32, {shapes[name]}]" for name in "ab")
    parameters += f", d: read[f32, {extents['j']}], y: update[f32, {shapes['y']}]"
    value = ENDINGS[ending].format(y=cells["y"])
    for name, (least, most) in dict(ranges).items():
        parameters = f"{name}: index[{least}, {most + 1}], {parameters}"
    return parse(
        f"""
def f({parameters}):
    for i in parallel(0, {extents["i"]}):
        for j in parallel(0, {extents["j"]}):
            c: f32 = f32(0.0)
            for k in parallel(0, {extents["k"]}):
                c = reduce(add, c, multiply[f32]({cells["a"]}, {cells["b"]}), fused=True)
            {cells["y"]} = {value}
"""
    )


def outcome(kernel, values=()):
    """What a product leaves in all arrays, with such values of what only the run knows."""
    generator, values = np.random.default_rng(5), dict(values)
    symbols = (param.symbol for param in kernel.params if isinstance(param, IndexParam))
    bindings = {symbol: values[symbol.hint] for symbol in symbols}
    arrays = {
        param.tensor: generator.standard_normal(
            [extent.evaluate(bindings) for extent in param.tensor.shape]
        ).astype("f")
        for param in kernel.params
        if isinstance(param, ArrayParam)
    }
    run(kernel, arrays, bindings)
    return [array.tobytes() for array in arrays.values()]


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries({"i": SIZES, "j": SIZES, "k": SIZES}),
    st.tuples(*3 * (st.integers(0, 1),)),
    st.sampled_from(range(len(ENDINGS))),
    st.sampled_from(MACHINES),
)
def test_the_bits_are_those_of_the_loops_before(extents, layouts, ending, caps):
    before = product(extents, layouts, ending)
    after = contract(before, caps)
    verify_kernel(after)
    assert after is not before
    assert outcome(after) == outcome(before)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 20), st.integers(2, 30), st.integers(2, 30), st.integers(1, 20), st.sampled_from(MACHINES)
)
def test_so_it_is_where_terms_of_rows_lie_apart_and_are_read_again(rows, columns, terms, apart, caps):
    parameters = f"a: read[f32, {rows}, {terms}, {apart}], b: read[f32, 7, {terms}, {columns}]"
    parameters += f", y: write[f32, 7, {rows}, {columns}]"
    before = parse(
        f"""
def f({parameters}):
    for n in parallel(0, 7):
        for i in parallel(0, {rows}):
            for j in parallel(0, {columns}):
                c: f32 = f32(0.0)
                for k in parallel(0, {terms}):
                    c = reduce(add, c, multiply[f32](a[i, k, 0], b[n, k, j]), fused=True)
                y[n, i, j] = c
"""
    )
    after = contract(before, caps)
    verify_kernel(after)
    assert outcome(after) == outcome(before)


@settings(max_examples=30, deadline=None)
@given(st.tuples(*5 * (st.integers(1, 14),)), st.booleans(), st.booleans(), st.sampled_from(MACHINES))
def test_so_it_is_where_iterations_around_rows_share_their_columns(extents, transposed, differ, caps):
    outer, inner, rows, columns, terms = (extent + 1 for extent in extents)
    shape, right = ((columns, terms), "j, k") if transposed else ((terms, columns), "k, j")
    some, which = ((outer, *shape), f"m, {right}") if differ else (shape, right)
    parameters = f"a: read[f32, {outer}, {inner}, {rows}, {terms}], b: read[f32, {', '.join(map(str, some))}]"
    before = parse(
        f"""
def f({parameters}, y: write[f32, {outer}, {inner}, {rows}, {columns}]):
    for m in parallel(0, {outer}):
        for n in parallel(0, {inner}):
            for i in parallel(0, {rows}):
                for j in parallel(0, {columns}):
                    c: f32 = f32(0.0)
                    for k in parallel(0, {terms}):
                        c = reduce(add, c, multiply[f32](a[m, n, i, k], b[{which}]), fused=True)
                    y[m, n, i, j] = c
"""
    )
    after = contract(before, caps)
    verify_kernel(after)
    assert outcome(after) == outcome(before)


@pytest.mark.parametrize("number", [2, 3, 9, 16])
@pytest.mark.parametrize("caps", MACHINES)
def test_so_it_is_where_the_run_counts_rows_of_pictures_that_share_columns(number, caps):
    before = parse(
        """
def f(N: index[2, 17], a: read[f32, 5, N, 9], b: read[f32, 20, 9], y: write[f32, 5, N, 20]):
    for n in parallel(0, 5):
        for i in parallel(0, N):
            for j in parallel(0, 20):
                c: f32 = f32(0.0)
                for k in parallel(0, 9):
                    c = reduce(add, c, multiply[f32](a[n, i, k], b[j, k]), fused=True)
                y[n, i, j] = c
"""
    )
    after = contract(before, caps)
    verify_kernel(after)
    assert outcome(after, {"N": number}) == outcome(before, {"N": number})


RANGES = st.integers(16, 40).flatmap(
    lambda most: st.integers(16, most).flatmap(
        lambda least: st.tuples(st.just((least, most)), st.integers(least, most))
    )
)
"""The least and the most that an extent may be, and what it is."""


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries({"i": RANGES, "j": RANGES, "k": RANGES}),
    st.sets(st.sampled_from("ijk"), min_size=1),
    st.tuples(*3 * (st.integers(0, 1),)),
    st.sampled_from(range(len(ENDINGS))),
    st.sampled_from(MACHINES),
)
def test_so_it_is_where_only_the_run_knows_extents(ranges, counted, layouts, ending, caps):
    extents = {axis: axis.upper() if axis in counted else value for axis, (_, value) in ranges.items()}
    before = product(extents, layouts, ending, {axis.upper(): ranges[axis][0] for axis in sorted(counted)})
    after = contract(before, caps)
    verify_kernel(after)
    assert after is not before
    values = {axis.upper(): value for axis, (_, value) in ranges.items()}
    assert outcome(after, values) == outcome(before, values)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 16),
    st.integers(1, 2),
    st.booleans(),
    st.tuples(*3 * (st.integers(0, 1),)),
    st.sampled_from(range(len(ENDINGS))),
    st.sampled_from(MACHINES),
)
def test_so_it_is_where_the_run_counts_few_rows(number, least, are_columns, layouts, ending, caps):
    extents = {"i": 20, "j": "N", "k": 9} if are_columns else {"i": "N", "j": 20, "k": 9}
    before = product(extents, layouts, ending, {"N": (least, 16)})
    after = contract(before, caps)
    verify_kernel(after)
    assert are_columns or after is not before
    assert outcome(after, {"N": number}) == outcome(before, {"N": number})


@settings(max_examples=15, deadline=None)
@given(RANGES, RANGES, st.booleans(), st.sampled_from(MACHINES))
def test_so_it_is_of_an_array_with_itself_where_only_the_run_knows_extents(rows, terms, transposed, caps):
    shape, left, right = ("N, K", "a[i, k]", "a[j, k]") if transposed else ("K, N", "a[k, i]", "a[k, j]")
    ends = ", ".join(
        f"{name}: index[{least}, {most + 1}]" for name, ((least, most), _) in (("N", rows), ("K", terms))
    )
    before = parse(
        f"""
def f({ends}, a: read[f32, {shape}], y: write[f32, N, N]):
    for i in parallel(0, N):
        for j in parallel(0, N):
            c: f32 = f32(0.0)
            for k in parallel(0, K):
                c = reduce(add, c, multiply[f32]({left}, {right}), fused=True)
            y[i, j] = c
"""
    )
    after = contract(before, caps)
    verify_kernel(after)
    assert after is not before
    values = {"N": rows[1], "K": terms[1]}
    assert outcome(after, values) == outcome(before, values)


ROWS = {
    "lower": ("0", "i + 1", "j"),
    "upper": ("i", "{n}", "j"),
    "from the diagonal on": ("0", "-i + {n}", "i + j"),
    "up to the other diagonal": ("0", "-i + {n}", "j"),
    "beyond the other diagonal": ("-i + {n} - 1", "{n}", "j"),
    "a band": ("i", "i + 3", "j"),
}
"""Which columns rows have: from where, up to where, and where these lie."""


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(2, 40),
    st.sampled_from(sorted(ROWS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(MACHINES),
)
def test_so_it_is_where_rows_have_columns_of_their_own(n, terms, which, in_cells, transposed, caps):
    start, end, column = (text.format(n=n) for text in ROWS[which])
    left, right, shape = "a[i, k]", f"a[{column}, k]", f"{n + 3}, {terms}"
    if transposed:
        left, right, shape = "a[k, i]", f"a[k, {column}]", f"{terms}, {n + 3}"
    cell = f"y[i, {column}]"
    sums = f"""
            {cell} = multiply[f32]({cell}, f32(3.0))
            for k in sequential(0, {terms}):
                {cell} = add[f32]({cell}, multiply[f32]({left}, {right}))
"""
    if not in_cells:
        sums = f"""
            c: f32 = f32(0.0)
            for k in parallel(0, {terms}):
                c = reduce(add, c, multiply[f32]({left}, {right}), fused=True)
            {cell} = maximum[f32](c, f32(0.5))
"""
    before = parse(
        f"""
def f(a: read[f32, {shape}], y: update[f32, {n}, {n + 3}]):
    for i in parallel(0, {n}):
        for j in parallel({start}, {end}):{sums}"""
    )
    after = contract(before, caps)
    verify_kernel(after)
    assert after is not before
    assert outcome(after) == outcome(before)


WITH_ITSELF = """
def f(a: read[f32, {shape}], y: write[f32, {n}, {n}], z: write[f32, {n}, {n}]):
    for i in parallel(0, {n}):
        for j in parallel(0, {n}):
            c: f32 = f32(0.0)
            for k in parallel(0, {terms}):
                c = reduce(add, c, multiply[f32]({left}, {right}), fused=True)
            d: f32 = divide[f32](c, f32(3.0))
            y[i, j] = c
            z[{cell}] = maximum[f32](d, f32(0.5))
"""


@settings(max_examples=15, deadline=None)
@given(
    st.integers(24, 40),
    st.integers(32, 40),
    st.booleans(),
    st.sampled_from(("i, j", "j, i")),
    st.sampled_from(MACHINES),
)
def test_so_it_is_where_one_half_of_a_product_is_the_other(n, terms, transposed, cell, caps):
    left, right, shape = (
        ("a[k, i]", "a[k, j]", f"{terms}, {n}") if transposed else ("a[i, k]", "a[j, k]", f"{n}, {terms}")
    )
    before = parse(WITH_ITSELF.format(n=n, terms=terms, shape=shape, left=left, right=right, cell=cell))
    after = contract(before, caps)
    verify_kernel(after)
    assert after is not before
    assert outcome(after) == outcome(before)


@pytest.mark.parametrize(
    ("n", "terms", "right", "value", "halved"),
    [
        (64, 64, "a[j, k]", "c", True),
        (64, 64, "b[j, k]", "c", False),
        (64, 64, "a[j + 1, k]", "c", False),
        (64, 64, "a[j, k]", "add[f32](c, b[i, j])", False),
        (16, 64, "a[j, k]", "c", False),  # few slivers lie below the diagonal
        (64, 16, "a[j, k]", "c", False),  # it is not worth storing sums across memory
    ],
)
def test_one_half_is_computed_where_that_is_the_other_and_much_less(n, terms, right, value, halved):
    before = parse(
        f"""
def f(a: read[f32, 65, 64], b: read[f32, 64, 64], y: write[f32, {n}, {n}]):
    for i in parallel(0, {n}):
        for j in parallel(0, {n}):
            c: f32 = f32(0.0)
            for k in parallel(0, {terms}):
                c = reduce(add, c, multiply[f32](a[i, k], {right}), fused=True)
            y[i, j] = {value}
"""
    )
    (note,) = contract(before, Caps()).notes
    assert note.endswith("which are stored on both sides of the diagonal") is halved


def dense(x, w, b, y):
    y[...] = np.maximum(x @ w + b, 0)


def added(x, w, b, y):
    y += x @ w


def transposed(x, w, b, y):
    y[...] = (w.T @ x.T).T


def of_scaled(x, w, b, y):
    y[...] = (2 * x) @ (w + b)


@pytest.fixture(scope="module")
def pool():
    pool = ThreadPool(3)
    yield pool
    pool.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("program", [dense, added, transposed, of_scaled])
@pytest.mark.parametrize(("m", "k", "n"), [(7, 5, 9), (61, 70, 130), (230, 33, 17), (390, 3, 64)])
def test_the_bits_are_the_same_for_any_blocks_and_threads(pool, program, m, k, n, dtype):
    generator = np.random.default_rng(3)
    x, w, b, y = ((9 * generator.random(shape)).astype(dtype) for shape in ((m, k), (k, n), (n,), (m, n)))
    computation = trace_function(program, (x, w, b, y), {}).computation
    expected = y.copy()
    program(x, w, b, expected)
    found = set()
    for caps in (Caps(), *MACHINES[1:], Caps(threads=2, thread_work=1, l1_bytes=1024, l2_bytes=1024)):
        kernel = optimize(computation, caps, verify=True).kernel
        assert any(note.startswith("contract: ") for note in kernel.notes)
        loaded = CpuDriver("sync_llvm").load(LlvmTarget("sync_llvm").emit(kernel))
        workspace = np.empty(kernel.arena_bytes + 64, np.uint8)
        for address in (0, pool.address):
            result = y.copy()
            place = workspace.ctypes.data
            arrays = {"x": x, "w": w, "b": b, "y": result}
            pointers = [
                arrays[param.tensor.label].ctypes.data
                for param in kernel.params
                if isinstance(param, ArrayParam)
            ]
            loaded.launch(pointers, [], place + -place % 64, address)
            np.testing.assert_allclose(result, expected, rtol=1e-4 if dtype is np.float32 else 1e-12)
            found.add(result.tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(400, 90), (90, 33)])
def test_an_array_s_product_with_itself_has_the_bits_of_that_with_a_copy(shape, threads, dtype):
    x = (9 * np.random.default_rng(3).standard_normal(shape)).astype(dtype)

    @arrayjit.jit(threads=threads)
    def products(x, y):
        return x.T @ y, (x @ y.T) / 7

    @arrayjit.jit(threads=threads)
    def squares(x):
        return x.T @ x, (x @ x.T) / 7

    assert any("both sides of the diagonal" in line for line in str(squares.explain(x)).splitlines())
    for square, product in zip(squares(x), products(x, x.copy()), strict=True):
        np.testing.assert_array_equal(square, product)
        np.testing.assert_array_equal(square, square.T)


def test_the_decision_is_explained():
    kernel = contract(product({"i": 24, "j": 32, "k": 20}, (0, 0, 0), 1), MACHINES[1])
    assert kernel.notes == ("contract: c: 6 x 16 sums at once, 1 panels at a time, columns packed",)


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "asks", "requests"),
    [
        (32, 4096, 1024, True, 2),
        (32, 4096, 1024, False, 0),
        (32, 250, 1000, True, 0),  # the second cache holds them
        (4, 4096, 1024, True, 0),  # a sliver would ask for too many
        (1024, 1024, 1024, True, 0),  # many rows take longer than what is packed
        (512, 512, 512, True, 0),  # sums leave off for that alone, and the last cache is near
        (400, 1024, 4096, True, 0),  # they leave off for that alone, of many rows
        (380, 1024, 4096, True, 1),
        (96, 128, 3000, True, 2),  # none of these leave off either way
    ],
)
def test_few_rows_ask_for_what_is_packed_next(rows, terms, columns, asks, requests):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, ahead=Ahead(rows=asks))
    kernel = contract(product({"i": rows, "j": columns, "k": terms}, (0, 0, 0), 0), caps)
    verify_kernel(kernel)
    asked = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, Prefetch)]
    assert len(asked) == requests
    assert {stmt.tensor.label for stmt in asked} <= {"b"}
    assert ("asked for ahead" in kernel.notes[0]) is bool(requests)


@pytest.mark.parametrize(
    ("rows", "columns", "sees", "packed"),
    [
        (15, 300, 0, False),
        (64, 300, 0, True),
        (64, 300, 190, False),
        (96, 300, 190, True),
        (40, 1024, 190, False),
        (64, 1024, 190, True),
    ],
)
def test_rows_that_a_processor_fetches_by_itself_pay_for_a_copy_where_they_are_many(
    rows, columns, sees, packed
):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=sees))
    kernel = contract(product({"i": rows, "j": columns, "k": 200}, (0, 0, 0), 0), caps)
    verify_kernel(kernel)
    assert any(tensor.label.startswith("b_panel") for tensor in kernel.placement) is packed


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "sees", "padded"),
    [
        (64, 26, 100, 190, True),
        (64, 26, 100, 95, False),
        (40, 26, 100, 190, False),  # too few rows to make up for a copy
        (64, 26, 30, 190, False),  # too few terms to be stored twice
        (64, 24, 100, 190, False),
    ],
)
def test_two_vectors_may_be_wider_than_all_columns(rows, columns, terms, sees, padded):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=sees))
    kernel = contract(product({"i": rows, "j": columns, "k": terms}, (0, 0, 0), 0), caps)
    verify_kernel(kernel)
    turned = any("few columns are taken for rows" in note for note in kernel.notes)
    assert ("x 32 sums" in kernel.notes[-1] and not turned) is padded


@pytest.mark.parametrize(
    ("rows", "terms", "sums"),
    [(6, 1000, "6 x 64"), (8, 1000, "8 x 32"), (12, 1000, "12 x 32"), (10, 1024, "5 x 64")],
)
def test_few_rows_are_one_sliver_where_they_do_not_push_one_another_out(rows, terms, sums):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=190))
    kernel = contract(product({"i": rows, "j": 1000, "k": terms}, (0, 0, 0), 0), caps)
    verify_kernel(kernel)
    assert f"{sums} sums" in kernel.notes[-1]


def test_rows_that_only_the_run_counts_are_no_columns_where_they_may_be_fewer_than_a_vector():
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=190))
    kernel = contract(product({"i": "N", "j": 1000, "k": 1000}, (0, 1, 0), 0, {"N": (13, 16)}), caps)
    verify_kernel(kernel)
    assert "8 x 32 sums" in kernel.notes[-1]


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "sees", "packed"),
    [
        (8, 768, 3072, 190, False),
        (8, 768, 3072, 95, True),
        (16, 1500, 900, 190, False),
        (16, 768, 3072, 190, True),  # a panel is read again, and has been pushed out by then
        (25, 1500, 900, 190, True),
        (8, 768, 40, 190, False),  # the second cache holds them
    ],
)
def test_few_rows_read_in_place_what_a_processor_fetches_by_itself(rows, terms, columns, sees, packed):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=sees))
    kernel = contract(product({"i": rows, "j": columns, "k": terms}, (0, 0, 0), 0), caps)
    verify_kernel(kernel)
    assert any(tensor.label == "b_panel" for tensor in kernel.placement) is packed


@pytest.mark.parametrize("ending", range(len(ENDINGS)))
@pytest.mark.parametrize(
    ("rows", "terms", "layouts", "sees", "turned"),
    [
        (2, 60, (0, 1, 0), 190, True),
        (2, 60, (0, 1, 0), 95, False),
        (2, 60, (0, 0, 0), 190, False),  # vectors of columns are read in place
        (3, 60, (0, 1, 0), 190, False),  # of more rows results take longer to turn than columns
        (2, 60, (1, 1, 0), 190, True),
    ],
)
def test_columns_that_lie_term_by_term_are_rows_where_rows_are_few(
    rows, terms, layouts, sees, turned, ending
):
    caps = Caps(vector_bytes=16, l1_bytes=512, l2_bytes=1024, pipes=Pipes(ahead=sees))
    before = product({"i": rows, "j": 42, "k": terms}, layouts, ending)
    after = contract(before, caps)
    verify_kernel(after)
    assert any("term by term" in note for note in after.notes) is turned
    assert outcome(after) == outcome(before)


@pytest.mark.parametrize("ending", range(len(ENDINGS)))
@pytest.mark.parametrize(
    ("rows", "terms", "layouts", "transposes", "in_place"),
    [
        (3, 30, (0, 1, 0), True, True),
        (3, 30, (0, 1, 0), False, False),  # each column would be read a term at a time
        (12, 33, (0, 1, 0), True, True),
        (13, 30, (0, 1, 0), True, False),  # two slivers would transpose them twice
        (3, 3, (0, 1, 0), True, False),  # no four terms
        (3, 200, (1, 1, 0), True, True),  # the second cache holds all rows, which lie side by side
        (3, 500, (1, 1, 0), True, False),
    ],
)
def test_columns_that_lie_term_by_term_are_transposed_in_registers_where_rows_are_few(
    rows, terms, layouts, transposes, in_place, ending
):
    caps = Caps(vector_bytes=16, registers=32, l1_bytes=2048, l2_bytes=4096, transposes=transposes)
    before = product({"i": rows, "j": 42, "k": terms}, layouts, ending)
    after = contract(before, caps)
    verify_kernel(after)
    assert any(tensor.label.startswith("b_") for tensor in after.placement) is not in_place
    assert outcome(after) == outcome(before)


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "turned"),
    [
        (16, 784, 100, True),
        (17, 784, 100, False),  # two vectors where one is nearly enough
        (16, 128, 100, False),  # few terms for so much of a result that is stored across rows
        (16, 300, 512, False),  # whose rows push one another out
        (16, 16, 16, False),  # or terms that are few
    ],
)
def test_rows_that_fill_vectors_are_columns_where_these_lie_term_by_term(rows, terms, columns, turned):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, pipes=Pipes(ahead=190))
    before = product({"i": rows, "j": columns, "k": terms}, (0, 1, 0), 0)
    after = contract(before, caps)
    verify_kernel(after)
    assert any("term by term" in note for note in after.notes) is turned


@pytest.mark.parametrize(
    ("terms", "columns", "turned"),
    [
        (64, 4, True),
        (8, 8, False),  # results would be stored across rows all the time
    ],
)
def test_columns_that_are_few_are_rows_where_their_terms_are_transposed_in_registers(terms, columns, turned):
    caps = Caps(vector_bytes=64, registers=32, l1_bytes=48 << 10, l2_bytes=1 << 20, transposes=True)
    kernel = contract(product({"i": 500, "j": columns, "k": terms}, (0, 1, 0), 0), caps)
    verify_kernel(kernel)
    assert any("few columns" in note for note in kernel.notes) is turned


@pytest.mark.parametrize(
    ("rows", "terms", "leaves_off"),
    [
        (768, 1024, False),  # half of the second cache holds two panels of them
        (768, 4096, True),  # or half of one
        (32, 1024, True),  # few rows do not make up for short runs
    ],
)
def test_sums_of_many_rows_leave_off_only_where_the_second_cache_is_too_small(rows, terms, leaves_off):
    caps = Caps(vector_bytes=64, registers=32)
    kernel = contract(product({"i": rows, "j": 4096, "k": terms}, (0, 0, 0), 0), caps)
    assert ("c_tile" in {tensor.label for tensor in kernel.placement}) is leaves_off


@pytest.mark.parametrize(
    ("columns", "threads", "order"),
    [
        (4096, 1, "panels at a time"),
        (256, 2, "panels at a time"),
        (256, 4, "in blocks of 128 rows"),  # too few panels for the threads
    ],
)
def test_rows_that_the_last_cache_holds_are_read_for_every_panel(columns, threads, order):
    before = product({"i": 2048, "j": columns, "k": 2048}, (0, 0, 0), 0)
    kernel = contract(before, Caps(vector_bytes=64, registers=32, threads=threads))
    assert order in kernel.notes[0]
    smaller = Caps(vector_bytes=64, registers=32, threads=threads, l3_bytes=8 << 20)
    assert "in blocks of" in contract(before, smaller).notes[0]


@pytest.mark.parametrize(
    ("columns", "lanes"),
    [
        (100, {32, 4}),  # three panels of 32, and what they leave
        (65, {32, 2}),
        (90, {32}),  # 26 columns are as good as 32
        (1000, {32}),  # that would save little
    ],
)
def test_the_last_panel_is_as_narrow_as_what_is_left(columns, lanes):
    before = product({"i": 40, "j": columns, "k": 30}, (0, 0, 0), 1)
    kernel = contract(before, Caps(vector_bytes=64, registers=32))
    loops = (stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For))
    assert {loop.lanes for loop in loops if loop.kind is LoopKind.VECTOR} == lanes


IN_AN_ARRAY = """
def f(a: read[f64, 96, 120], b: read[f64, 120, 96], y: update[f64, 96, 96]):
    for i in parallel(0, 96):
        for j in parallel(0, 96):
            for k in sequential(0, 120):
                y[i, j] = add[f64](y[i, j], multiply[f64](a[i, k], b[k, j]))
"""

IN_A_VARIABLE = """
def f(a: read[f64, 96, 120], b: read[f64, 120, 96], y: update[f64, 96, 96]):
    for i in parallel(0, 96):
        for j in parallel(0, 96):
            c: f64 = f64(0.0)
            for k in sequential(0, 120):
                c = reduce(add, c, multiply[f64](a[i, k], b[k, j]), fused=True)
            y[i, j] = c
"""


@pytest.mark.parametrize(
    ("text", "caps", "sums"),
    [
        (IN_AN_ARRAY, Caps(vector_bytes=64, registers=32), "12 x 8"),
        (IN_A_VARIABLE, Caps(vector_bytes=64, registers=32), "12 x 16"),
        (IN_AN_ARRAY, Caps(vector_bytes=32, registers=16), "6 x 8"),  # a plain load copies the factor
    ],
)
def test_additions_by_themselves_leave_the_widest_vectors_no_time_to_copy_a_factor(text, caps, sums):
    assert f"{sums} sums at once" in contract(parse(text), caps).notes[0]


@pytest.mark.parametrize(("rows", "threads"), [(2000, 1), (2000, 2), (2016, 1)])
def test_blocks_have_the_rows_of_whole_slivers_where_others_would_take_longer(rows, threads):
    before = product({"i": rows, "j": 30, "k": 2000}, (0, 0, 0), 0)
    kernel = contract(before, Caps(vector_bytes=64, registers=32, threads=threads))
    assert "c: 12 x 16 sums at once, in blocks of 72 rows" in kernel.notes[0]


@pytest.mark.parametrize(
    ("terms", "layout", "sums"),
    [
        (1040, 0, "12 x 32"),  # rows begin at 64 places of the first cache
        (1024, 0, "6 x 64"),  # at one, of eight lines
        (512, 0, "12 x 32"),  # at two
        (1040, 1, "12 x 32"),  # copies of rows that lie across memory
        (1024, 1, "6 x 64"),  # which begin so far apart
    ],
)
def test_rows_that_push_one_another_out_of_the_first_cache_are_fewer(terms, layout, sums):
    caps = Caps(vector_bytes=64, registers=32)
    kernel = contract(product({"i": 2400, "j": 128, "k": terms}, (layout, 0, 0), 0), caps)
    assert kernel.notes[0].startswith(f"contract: c: {sums} sums at once")


@settings(max_examples=10, deadline=None)
@given(
    st.integers(2, 14),
    st.integers(2, 10),
    st.integers(97, 140),
    st.sampled_from(range(len(ENDINGS))),
    st.sampled_from((1, 2)),
)
def test_so_it_is_where_terms_are_read_in_place_some_at_a_time(rows, columns, terms, ending, threads):
    before = product({"i": rows, "j": columns, "k": terms}, (1, 0, 0), ending)
    after = contract(before, Caps(vector_bytes=16, l1_bytes=4096, l2_bytes=1 << 18, threads=threads))
    verify_kernel(after)
    assert after is not before
    assert outcome(after) == outcome(before)


def test_slivers_go_through_all_panels_of_a_run_where_rows_take_more_than_half_of_the_second_cache():
    before = product({"i": 80, "j": 96, "k": 150}, (0, 0, 0), 0)
    across, down = (
        contract(before, Caps(vector_bytes=16, l1_bytes=1024, l2_bytes=size)) for size in (1 << 15, 1 << 17)
    )
    assert re.search(r"for q in sequential\(0, \d+\):\n +for p1 in sequential\(0, 3\)", print_kernel(across))
    assert not re.search(r"for q in .*\n +for p1 in", print_kernel(down))
    verify_kernel(across)
    assert outcome(across) == outcome(before)


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "threads", "order"),
    [
        (40, 40, 20000, 1, "2 panels at a time"),
        (40, 40, 20000, 2, "in blocks of 20 rows"),  # every thread reads all columns
        (40, 400, 20000, 2, "7 panels at a time"),  # or all rows
        (40, 512, 20000, 1, "16 panels at a time, columns packed"),  # lines a page apart
        (2000, 2000, 2000, 1, "1 panels at a time, rows and columns packed"),  # too much for the second cache
        (64, 784, 128, 1, "25 panels at a time"),
    ],
)
def test_few_rows_and_columns_that_lie_term_by_term_are_not_packed(rows, columns, terms, threads, order):
    caps = Caps(vector_bytes=64, registers=32, threads=threads)
    before = product({"i": rows, "j": columns, "k": terms}, (1, 0, 0), 0)
    kernel = contract(before, caps)
    assert kernel.notes[0].endswith(f"sums at once, {order}")
