"""The interpreter is the meaning of the IR, so it is compared with NumPy written out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from corpus import COMPUTATIONS, KERNELS, computation, kernel
from hypothesis import given
from hypothesis import strategies as st

from arrayjit.errors import CompilerBug, LinkError
from arrayjit.ir.assign import ArrayParam, Computation, IndexParam
from arrayjit.ir.dtype import BOOL, F64
from arrayjit.ir.expr import Apply, Const
from arrayjit.ir.index import Affine
from arrayjit.ir.interp import KernelRaise, run, run_computation
from arrayjit.ir.loops import For, If, Kernel, LoopKind, Raise, Stmt, Store, While
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor

RANDOM = np.random.default_rng(7)


def execute(program: Kernel | Computation, *values: np.ndarray | int) -> None:
    """Run on arrays and integers given in the order of the parameters."""
    arrays, bindings = {}, {}
    for param, value in zip(program.params, values, strict=True):
        if isinstance(param, ArrayParam):
            assert isinstance(value, np.ndarray)
            arrays[param.tensor] = value
            for extent, size in zip(param.tensor.shape, value.shape, strict=True):
                bindings.update({extent.symbol: size} if extent.symbol else {})
        else:
            assert isinstance(param, IndexParam)
            bindings[param.symbol] = int(value)
    (run if isinstance(program, Kernel) else run_computation)(program, arrays, bindings)


def shown(name: str) -> Kernel:
    return kernel(next(text for title, text in KERNELS.items() if title.startswith(name)))


def assigned(name: str) -> Computation:
    return computation(next(text for title, text in COMPUTATIONS.items() if title.startswith(name)))


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


# ---- kernels


def test_elementwise() -> None:
    x, y = floats(19), floats(19)
    expected = np.float32(2) * x + y
    execute(shown("saxpy"), x, y)
    np.testing.assert_array_equal(y, expected)


def test_steps_reversal_and_every_kind_of_loop() -> None:
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    expected = (x + 1) * 3
    expected[:, :2] = -5
    execute(shown("every kind of loop"), x)
    np.testing.assert_array_equal(x, expected)


def test_constants_and_casts() -> None:
    f, d = np.zeros(5, np.float32), np.zeros(5)
    b, u, s, o = np.zeros(1, bool), np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.int8)
    execute(shown("every dtype"), f, d, b, u, s, o)
    np.testing.assert_array_equal(f, np.float32([0.1, -0.0, 1e-45, 3.4028235e38, np.nan]))
    np.testing.assert_array_equal(d, [0.1, np.inf, -np.inf, np.nan, 5e-324])
    assert np.signbit(f[1])
    assert (b[0], u[0], s[0], o[0]) == (True, 2**64 - 1, -(2**63), -1)


def test_a_conditional_takes_each_iteration_its_own_way() -> None:
    x, y = np.array([0, 9, 2, 3, 40, 5, 8, 12]), np.zeros(8, np.int64)
    number = np.arange(8)
    execute(shown("a conditional"), x, y)
    np.testing.assert_array_equal(y, np.where(x < number + 2, x[x % 8], 3 - number))


def test_an_exception_leaves_the_kernel() -> None:
    program = shown("a conditional")
    y = np.zeros(8, np.int64)
    with pytest.raises(KernelRaise, match="IndexError: negative 'index'") as caught:
        execute(program, np.array([1, 1, -1, 1, 1, 1, 1, 1]), y)
    assert caught.value.stmt is next(stmt for stmt in program.body if isinstance(stmt, Raise))
    assert not y.any()


def test_a_value_carried_from_iteration_to_iteration() -> None:
    x, y = floats(9, dtype=np.float64), np.zeros(9)
    execute(shown("a variable carried"), x, y)
    sofar = 0.0
    for i in range(9):
        sofar = sofar * 0.5 + x[i]
        assert y[i] == sofar


def test_a_matrix_product_with_fused_multiply_add() -> None:
    a, b, c = floats(3, 5), floats(5, 7), np.zeros((3, 7), np.float32)
    execute(shown("a fused product"), a, b, c)
    sofar = np.zeros((3, 7), np.float32)
    for k in range(5):
        sofar = (a[:, k, None].astype(np.longdouble) * b[k] + sofar).astype(np.float32)
    np.testing.assert_array_equal(c, sofar)


def test_bounds_that_depend_on_an_outer_loop() -> None:
    x, y = floats(6, 6, dtype=np.float64), np.zeros(6)
    for kind in LoopKind:
        if kind is not LoopKind.VECTOR:
            execute(with_inner_kind(shown("a triangle"), kind), x, y)
            np.testing.assert_array_equal(y, [sum(x[i, i::-1], 0.0) for i in range(6)], err_msg=kind.value)
            y[:] = 0


def with_inner_kind(program: Kernel, kind: LoopKind) -> Kernel:
    (outer,) = program.body
    assert isinstance(outer, For)
    body = tuple(replace(stmt, kind=kind) if isinstance(stmt, For) else stmt for stmt in outer.body)
    return replace(program, body=(replace(outer, body=body),))


def test_strided_memory_has_a_flat_form() -> None:
    memory = np.arange(24, dtype=np.float32).reshape(3, 8)
    y = np.zeros(12, np.float32)
    execute(shown("strides of the caller"), memory[:, ::2], 2, y)
    np.testing.assert_array_equal(y, np.arange(0, 24, 2))
    np.testing.assert_array_equal(memory[:, 0], [1, 1, 16])


def test_the_flat_form_of_reversed_memory_reaches_below_its_first_cell() -> None:
    program = kernel("""
def f(x: read[f64, 4, strides(-2)], y: write[f64, 4]):
    x_flat: temporary[f64, 8, flat(x)]
    for i in parallel(0, 4):
        y[i] = x_flat[-2*i]
""")
    y = np.zeros(4)
    execute(program, np.arange(8.0)[7::-2], y)
    np.testing.assert_array_equal(y, [7, 5, 3, 1])


def test_sizes_that_are_known_at_the_call() -> None:
    x, y = np.array([4.0, 9.0, 16.0]), np.full(4, -1.0)
    execute(shown("extents that are dimension"), x, y)
    np.testing.assert_array_equal(y, [2, 3, 4, 0])


# ---- the documented order of sums


def sum_in_lanes(values: np.ndarray, start: np.generic, lanes: int) -> np.generic:
    """The meaning of an accumulating vector loop, word for word from `loops.py`."""
    whole = len(values) - len(values) % lanes
    total = start
    if whole:
        partial = np.zeros(lanes, values.dtype)
        for first in range(0, whole, lanes):
            partial = partial + values[first : first + lanes]
        while len(partial) > 1:
            partial = partial[: len(partial) // 2] + partial[len(partial) // 2 :]
        total = total + partial[0]
    for value in values[whole:]:
        total = total + value
    return total


@given(st.integers(0, 70), st.sampled_from([1, 2, 4, 16]), st.integers(0, 99))
def test_a_vector_loop_adds_lanes_then_folds_them_then_the_rest(n: int, lanes: int, seed: int) -> None:
    program = kernel(f"""
def f(x: read[f32, {n}], y: write[f32]):
    acc: f32 = f32(0.1)
    for i in vector(0, {n}, lanes={lanes}):
        acc = reduce(add, acc, x[i])
    y[()] = acc
""")
    x, y = np.random.default_rng(seed).standard_normal(n).astype(np.float32), np.zeros((), np.float32)
    execute(program, x, y)
    assert y[()] == sum_in_lanes(x, np.float32(0.1), lanes)


def test_a_vector_loop_with_a_loop_inside_adds_each_lane_in_order() -> None:
    program = kernel("""
def f(x: read[f32, 22, 3], y: write[f32, 5]):
    for r in parallel(0, 5):
        acc: f32 = f32(0.0)
        for i in vector(r, 22, lanes=4):
            for j in sequential(0, 3):
                acc = reduce(add, acc, x[i, j])
        y[r] = acc
""")
    x, y = floats(22, 3), np.zeros(5, np.float32)
    execute(program, x, y)
    for row in range(5):
        values = x[row:]
        whole = len(values) - len(values) % 4
        partial = np.zeros(4, np.float32)
        for first in range(0, whole, 4):
            for j in range(3):
                partial = partial + values[first : first + 4, j]
        total = np.float32(0) + ((partial[0] + partial[2]) + (partial[1] + partial[3]))
        for value in values[whole:].reshape(-1):
            total = total + value
        assert y[row] == total


def test_a_parallel_loop_adds_in_order() -> None:
    program = kernel("""
def f(x: read[f32, 7, 1000], y: write[f32, 7]):
    for i in parallel(0, 7):
        acc: f32 = f32(0.0)
        for j in parallel(0, 1000):
            acc = reduce(add, acc, x[i, j])
        y[i] = acc
""")
    x, y = floats(7, 1000), np.zeros(7, np.float32)
    execute(program, x, y)
    np.testing.assert_array_equal(y, np.add.accumulate(x, axis=1)[:, -1])


def test_stores_that_combine_may_reach_one_cell() -> None:
    program = kernel("""
def f(p: read[i64, 3000], x: read[f32, 3000], y: update[f32, 7, 2]):
    for i in parallel(0, 3000):
        n: index[0, 7] = p[i]
        y[n, 1] = reduce(add, y[n, 1], x[i])
        y[3, 0] = reduce(maximum, y[3, 0], x[i])
""")
    p, x, y = np.random.default_rng(0).integers(0, 7, 3000), floats(3000), floats(7, 2)
    wanted = y.copy()
    np.add.at(wanted[:, 1], p, x)
    wanted[3, 0] = max(wanted[3, 0], x.max())
    execute(program, p, x, y)
    np.testing.assert_array_equal(y, wanted)


def test_two_sums_onto_one_variable_alternate() -> None:
    program = kernel("""
def f(x: read[f32, 50], y: write[f32]):
    acc: f32 = f32(0.0)
    for j in parallel(0, 50):
        acc = reduce(add, acc, x[j])
        acc = reduce(add, acc, f32(0.1))
    y[()] = acc
""")
    x, y = floats(50), np.zeros((), np.float32)
    execute(program, x, y)
    total = np.float32(0)
    for value in x:
        total = total + value + np.float32(0.1)
    assert y[()] == total


# ---- memory


def test_a_row_that_every_iteration_uses_again_is_its_own() -> None:
    program = kernel("""
def f(x: read[f64, 4, 5], y: write[f64, 4, 5]):
    row: temporary[f64, 5] = place('stack', 0, 'a row')
    for i in parallel(0, 4):
        for j in parallel(0, 5):
            row[j] = add[f64](x[i, j], f64(1.0))
        for j1 in parallel(0, 5):
            y[i, j1] = row[-j1 + 4]
""")
    x, y = floats(4, 5, dtype=np.float64), np.zeros((4, 5))
    execute(program, x, y)
    np.testing.assert_array_equal(y, x[:, ::-1] + 1)


@pytest.mark.parametrize(
    ("dtype", "poison"), [("f32", np.nan), ("i16", -(2**15)), ("u8", 255), ("bool", True)]
)
def test_reading_before_writing_shows(dtype: str, poison: float) -> None:
    program = kernel(f"""
def f(y: write[{dtype}, 2]) -> kernel:
    t: temporary[{dtype}, 2]
    y[0] = t[0]
    y[1] = t[1]
""")
    (param,) = program.params
    assert isinstance(param, ArrayParam)
    y = np.zeros(2, param.tensor.dtype.numpy)
    execute(program, y)
    np.testing.assert_array_equal(y, [poison, poison])


def test_temporaries_share_the_bytes_that_their_places_share() -> None:
    program = kernel("""
def f(y: write[f64, 4]):
    arena(64)
    a: temporary[f64, 4] = place('arena', 0, '')
    b: temporary[f64, 4] = place('arena', 16, '')
    fill(a, f64(1.0))
    fill(b, f64(2.0))
    for i in parallel(0, 4):
        y[i] = a[i]
""")
    y = np.zeros(4)
    execute(program, y)
    np.testing.assert_array_equal(y, [1, 1, 2, 2])


@pytest.mark.parametrize("cell", ["x[-1]", "x[8]", "x.at(i64(-1))", "x.at(i64(8))"])
def test_a_cell_outside_its_array_is_never_read(cell: str) -> None:
    program = kernel(f"def f(x: read[f32, 8], y: write[f32, 1]) -> kernel:\n    y[0] = {cell}\n")
    with pytest.raises(CompilerBug, match="lies outside 8 cells"):
        execute(program, floats(8), floats(1))


def test_arrays_that_do_not_fit_are_refused() -> None:
    program = shown("saxpy")
    with pytest.raises(LinkError, match="was given an array of float64"):
        execute(program, floats(19, dtype=np.float64), floats(19))
    with pytest.raises(LinkError, match=r"and shape \(18,\)"):
        execute(program, floats(18), floats(19))


def test_an_op_gives_the_dtype_that_the_program_states() -> None:
    y = Tensor.of("y", (1,), BOOL)
    store = Store(y, (Affine.of(0),), Apply(op("sqrt"), (Const(2.0, F64),), BOOL))
    with pytest.raises(CompilerBug, match="sqrt gives float64, not bool"):
        execute(Kernel("f", (ArrayParam(y, "write"),), (store,)), np.zeros(1, bool))


def test_bound_numbers_are_bounds_and_indices() -> None:
    starts, columns = np.array([0, 3, 3, 7]), RANDOM.integers(0, 9, 9)
    x, y = floats(9, dtype=np.float64), np.zeros(3)
    execute(shown("bound numbers"), starts, columns, x, y)
    np.testing.assert_allclose(y, [x[columns[a:b]].sum() for a, b in pairwise(starts)])


def test_iterations_leave_a_loop_one_after_the_other() -> None:
    x, turns = np.array([0.5, 9.0, 2.0, 100.0]), np.zeros(4, np.int64)
    execute(shown("a loop that goes on"), x, turns)
    np.testing.assert_array_equal(x, [0.5, 9 / 8, 2.0, 100 / 64])
    np.testing.assert_array_equal(turns, [0, 3, 0, 6])


def test_a_number_outside_the_range_it_is_bound_with_is_a_bug_of_ours() -> None:
    k, y = np.array([4, 0, 0, 0]), np.zeros(4)
    with pytest.raises(CompilerBug, match="a number bound to n lies outside its range"):
        execute(shown("statements that both"), k, y)


# ---- taking iterations together changes nothing


def in_order(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The same statements with every parallel loop sequential."""
    return tuple(one_by_one(stmt) for stmt in body)


def one_by_one(stmt: Stmt) -> Stmt:
    match stmt:
        case For(kind=kind, body=body):
            kept = kind if kind is LoopKind.VECTOR else LoopKind.SEQUENTIAL
            return replace(stmt, kind=kept, body=in_order(body))
        case If(body=body, orelse=orelse):
            return replace(stmt, body=in_order(body), orelse=in_order(orelse))
        case While(test=test, body=body):
            return replace(stmt, test=in_order(test), body=in_order(body))
        case _:
            return stmt


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_iterations_together_or_one_by_one(text: str) -> None:
    program = kernel(text)
    outcomes = []
    for body in (program.body, in_order(program.body)):
        random = np.random.default_rng(3)
        values: list[np.ndarray | int] = []
        for param in program.params:
            if isinstance(param, ArrayParam):
                shape = [
                    extent.offset if extent.is_constant else 4 + extent.offset
                    for extent in param.tensor.shape
                ]
                array = np.asarray(9 * random.random(shape)).astype(param.tensor.dtype.numpy)
                values.append(np.repeat(array, 2, axis=1)[:, ::2] if param.tensor.strides else array)
            else:
                values.append(2)
        execute(replace(program, body=body), *values)
        outcomes.append(values)
    np.testing.assert_equal(*outcomes)


# ---- computations


def test_broadcasting() -> None:
    x, v, y = floats(4, 5), floats(5), np.zeros((4, 5), np.float32)
    execute(assigned("elementwise"), x, v, y)
    np.testing.assert_array_equal(y, x * v)


def test_reductions_in_order_onto_what_is_there_or_a_start() -> None:
    x, y, s = floats(3, 4, dtype=np.float64), floats(3, dtype=np.float64), np.zeros(())
    expected = y.copy()
    for j in range(4):
        expected = expected + x[:, j]
    squares = 0.0
    for value in x.reshape(-1):
        squares = float(Fraction(value) ** 2 + Fraction(squares))
    execute(assigned("a reduction"), x, y, s)
    np.testing.assert_array_equal(y, expected)
    assert s[()] == squares


def test_branches_and_loops_that_go_on() -> None:
    k, x, turns = np.array([2, 3, 0, 4]), np.array([1.0, 1.5, 7.0, 0.0, 5.0, 9.0]), np.array(0)
    execute(assigned("branches"), k, x, turns)
    expected = np.array([1.0, 1.5, 7.0, 0.0, 5.0, 9.0])
    expected[:2] += 1
    expected[:2] = expected[1:3]
    expected[:4] += 1
    halvings = 4
    np.testing.assert_array_equal(x, expected / 2**halvings)
    assert turns[()] == 3


def test_nothing_to_reduce_leaves_the_start() -> None:
    program = computation("""
def f(x: read[f64, 3, 0], y: write[f64, 3], z: update[f64, 3]):
    for i, j in each(3, 0):
        y[i] = reduce(add, x[i, j], f64(7.0))
    for i1, j1 in each(3, 0):
        z[i1] = reduce(add, x[i1, j1])
""")
    y, z = np.zeros(3), np.arange(3.0)
    execute(program, np.zeros((3, 0)), y, z)
    np.testing.assert_array_equal(y, [7, 7, 7])
    np.testing.assert_array_equal(z, [0, 1, 2])


def test_points_that_reach_one_cell_by_different_ways() -> None:
    program = computation("""
def f(x: read[i64, 3, 4], y: update[i64, 6]):
    for i, j in each(3, 4):
        y[i + j] = reduce(add, x[i, j])
""")
    x, y = RANDOM.integers(0, 99, (3, 4)), np.zeros(6, np.int64)
    execute(program, x, y)
    np.testing.assert_array_equal(y, [np.fliplr(x).trace(3 - k) for k in range(6)])


def test_an_assignment_reads_everything_before_it_writes() -> None:
    u, k = floats(9, dtype=np.float64), np.array(0.25)
    expected = u.copy()
    for _ in range(3):
        expected[1:8] = k * (expected[:7] + expected[2:])
    execute(assigned("a real loop"), u, 3, k)
    np.testing.assert_array_equal(u, expected)


def test_a_check_fails_at_any_point() -> None:
    u = np.zeros(9)
    with pytest.raises(KernelRaise, match="ValueError: unstable"):
        execute(assigned("a real loop"), u, 0, np.array(1.5))
    u[8] = np.nan
    with pytest.raises(KernelRaise, match="FloatingPointError: not finite"):
        execute(assigned("a real loop"), u, 0, np.array(0.5))


def test_flat_forms_and_computed_indices() -> None:
    x, y = RANDOM.integers(0, 99, (2, 3)), np.zeros(6, np.int64)
    t = (x + np.arange(6).reshape(2, 3)).reshape(-1)
    execute(assigned("a temporary"), x, y)
    np.testing.assert_array_equal(y, t[t % 6])
