"""What the LLVM target promises of loops, locals and branches, shown on kernels made by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from handmade import at, call, f64, launch, link, loop, put, run, static, tensor_like, vector

import arrayjit
from arrayjit.errors import CompilerBug
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.dtype import BOOL, F32, F64, I64
from arrayjit.ir.expr import Cast, Const, Index, Local, Variable
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.loops import (
    Barrier,
    Bind,
    Comment,
    Define,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Stay,
    Update,
    While,
)
from arrayjit.ir.ops import op
from arrayjit.ir.references import fma
from arrayjit.ir.tensor import Tensor
from arrayjit.targets.llvm import LlvmTarget
from arrayjit.targets.llvm_loops import is_short, widths

SIZES = (0, 1, 7, 8, 9, 1000)


def lane_order(combine, start, values, lanes, neutral):
    """The documented order of an accumulating vector loop, one addition at a time."""
    whole = len(values) // lanes * lanes
    total = start
    if whole:
        partial = np.full(lanes, neutral, values.dtype)
        for first in range(0, whole, lanes):
            partial = combine(partial, values[first : first + lanes])
        while len(partial) > 1:
            half = len(partial) // 2
            partial = combine(partial[:half], partial[half:])
        total = combine(total, partial[0])
    for value in values[whole:]:
        total = combine(total, value)
    return total


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lanes", [1, 2, 8, 64])
def test_vector_loop_visits_every_element_once(size, lanes):
    x, out, i = f64("x", size), f64("out", size), Symbol("i")
    source, result = np.arange(size, dtype=float), np.full(size, -1.0)
    body = vector(i, size, put(out, i, value=call("add", at(x, i), at(out, i))), lanes=lanes)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, source - 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "fmin"])
@pytest.mark.parametrize("lanes", [4, 16, 64])
def test_accumulating_vector_loop_combines_in_the_documented_order(size, name, lanes):
    source = np.random.default_rng(0).normal(1, 0.3, size).astype(np.float32)
    if size > 9:
        source[5] = np.nan if name == "fmin" else source[5]
    x, out, i, acc = (
        Tensor.of("x", (size,), F32),
        Tensor.of("out", (), F32),
        Symbol("i"),
        Variable("acc", F32),
    )
    result = np.empty((), np.float32)
    row = op(name)
    body = [
        Define(acc, Const(-0.5, F32)),
        vector(i, size, Update(acc, at(x, i), row), lanes=lanes),
        put(out, value=Local(acc)),
    ]
    run(body, [(x, source)], [(out, result)])
    expected = lane_order(row.ref, np.float32(-0.5), source, lanes, row.identity(F32))
    assert result.tobytes() == np.float32(expected).tobytes()


@pytest.mark.parametrize("size", [0, 3, 8, 21, 70])
@pytest.mark.parametrize("lanes", [4, 16])
def test_a_loop_in_lockstep_adds_up_in_the_order_of_its_iterations(size, lanes):
    source = np.random.default_rng(2).normal(1, 0.3, size)
    x, out, i, acc = f64("x", size), f64("out"), Symbol("i"), Variable("acc", F64)
    result = np.empty(())
    total = loop(i, size, Update(acc, at(x, i), op("add")), kind=LoopKind.LOCKSTEP, lanes=lanes)
    run(
        [Define(acc, Const(0.1, F64)), total, put(out, value=Local(acc))],
        [(x, source)],
        [(out, result)],
    )
    assert result == sum(source.tolist(), 0.1)


def test_lanes_that_add_up_in_order_are_read_from_memory():
    x, out, i, acc = f64("x", 64), f64("out"), Symbol("i"), Variable("acc", F64)
    total = loop(i, 64, Update(acc, at(x, i), op("add")), kind=LoopKind.LOCKSTEP, lanes=8)
    body = (Define(acc, Const(0.1, F64)), total, put(out, value=Local(acc)))
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    text = LlvmTarget("sync_llvm").emit(Kernel("total", params, body)).payload
    assert len(re.findall("store volatile <8 x double>", text)) == 1
    assert "extractelement" not in text


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 16, 31, 70])
@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_roots_left_of_vectors_in_lockstep_are_taken_in_pairs(size, lanes):
    source = np.random.default_rng(2).uniform(1, 2, size)
    x, y, out = f64("x", size), f64("y", size), f64("out")
    i, acc, root = Symbol("i"), Variable("acc", F64), Variable("root", F64)
    roots, result = np.empty(size), np.empty(())
    body = [
        Define(root, call("sqrt", at(x, i))),
        put(y, i, value=Local(root)),
        Update(acc, Local(root), op("add")),
    ]
    total = loop(i, size, *body, kind=LoopKind.LOCKSTEP, lanes=lanes)
    run(
        [Define(acc, Const(0.1, F64)), total, put(out, value=Local(acc))],
        [(x, source)],
        [(y, roots), (out, result)],
    )
    assert roots.tobytes() == np.sqrt(source).tobytes()
    assert result == sum(roots.tolist(), 0.1)
    rest = {4: (), 16: (8, 4, 2), 32: (16, 8, 2)}[lanes]
    assert widths(total, ()) == (lanes, *rest)
    assert widths(total, (acc,)) == (rest or (lanes,))


@pytest.mark.parametrize("size", [0, 3, 8, 21])
def test_contracted_update_rounds_once(size):
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=size), rng.normal(size=size)
    a, b, out, i, acc = f64("a", size), f64("b", size), f64("out"), Symbol("i"), Variable("acc", F64)
    result = np.empty(())
    product = call("multiply", at(a, i), at(b, i))
    body = [
        Define(acc, Const(0.0, F64)),
        loop(i, size, Update(acc, product, op("add"), contract=True)),
        put(out, value=Local(acc)),
    ]
    run(body, [(a, left), (b, right)], [(out, result)])
    expected = np.float64(0)
    for x, y in zip(left, right, strict=True):
        expected = fma(x, y, expected)
    assert result == expected


def test_contracted_update_in_lanes():
    left, right = np.full(20, 1 + 2.0**-30), np.full(20, 1 - 2.0**-30)
    a, b, out, i, acc = f64("a", 20), f64("b", 20), f64("out"), Symbol("i"), Variable("acc", F64)
    result = np.empty(())
    update = Update(acc, call("multiply", at(a, i), at(b, i)), op("add"), contract=True)
    body = [Define(acc, Const(-20.0, F64)), vector(i, 20, update), put(out, value=Local(acc))]
    run(body, [(a, left), (b, right)], [(out, result)])
    # Each exact product is 1 - 2**-60; rounded it would be 1, and the partial sums lose it after the first.
    lanes = np.zeros(8)
    for _ in range(2):
        lanes = fma(left[:8], right[:8], lanes)
    expected = -20.0 + np.add.reduce(lanes)
    for x, y in zip(left[16:], right[16:], strict=True):
        expected = fma(x, y, expected)
    assert result == expected


@pytest.mark.parametrize("size", [5, 13, 31, 95])
def test_remainder_of_a_wide_loop_is_in_order(size):
    """The remainder may be computed in narrower vectors; each lane still counts, the same for all or not."""
    source = np.random.default_rng(10).normal(size=size).astype(np.float32)
    x, out, i = Tensor.of("x", (size,), F32), Tensor.of("out", (3,), F32), Symbol("i")
    total, squares, count = (Variable(name, F32) for name in ("total", "squares", "count"))
    value = call("add", at(x, i), Const(1.0, F32))
    body = [
        *(Define(variable, Const(0.0, F32)) for variable in (total, squares, count)),
        vector(
            i,
            size,
            Update(total, value, op("add")),
            Update(squares, call("multiply", at(x, i), at(x, i)), op("add"), contract=True),
            Update(count, Const(1.0, F32), op("add")),
            lanes=32,
        ),
        *(put(out, n, value=Local(variable)) for n, variable in enumerate((total, squares, count))),
    ]
    result = np.empty(3, np.float32)
    run(body, [(x, source)], [(out, result)])
    first = lane_order(np.add, np.float32(0), source + np.float32(1), 32, np.float32(-0.0))
    exact = np.float32(0)
    lanes = np.full(32, np.float32(-0.0))
    whole = size // 32 * 32
    for start in range(0, whole, 32):
        part = source[start : start + 32]
        lanes = fma(part, part, lanes)
    while whole and len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    exact = exact + lanes[0] if whole else exact
    for x_ in source[whole:]:
        exact = fma(x_, x_, exact)
    assert result.tobytes() == np.array([first, exact, size], np.float32).tobytes()


def test_outer_vector_loop_sums_columns():
    source = np.random.default_rng(2).normal(size=(13, 21))
    x, out = f64("x", 13, 21), f64("out", 21)
    i, j, acc = Symbol("i"), Symbol("j"), Variable("acc", F64)
    result = np.empty(21)
    columns = vector(
        j,
        21,
        Define(acc, Const(0.0, F64)),
        loop(i, 13, Update(acc, at(x, i, j), op("add"))),
        put(out, j, value=Local(acc)),
    )
    run([columns], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, np.add.accumulate(source)[-1])


def test_spans_that_fill_the_lanes_whatever_their_bounds_are_printed_once():
    x, out, i, again = f64("x", 21), f64("out", 21), Symbol("i"), Symbol("again")
    lo, hi = Affine.of(again) * 13, Affine.of(again) * 5 + 16
    body = vector(i, hi, put(out, i, value=call("sqrt", at(x, i))), lo=lo)
    kernel = Kernel("spans", (ArrayParam(x, "read"), ArrayParam(out, "write")), (loop(again, 2, body),))
    source, result = np.arange(21.0), np.full(21, -1.0)
    launch(kernel, "sync_llvm", [source, result])
    np.testing.assert_array_equal(result, np.sqrt(source))
    text = LlvmTarget("sync_llvm").emit(kernel).payload
    assert text.count("@llvm.sqrt") == 2, "the declaration and one call"


def test_lanes_accumulate_through_an_inner_loop():
    source = np.random.default_rng(3).normal(size=(11, 3))
    x, out, i, k, acc = f64("x", 11, 3), f64("out"), Symbol("i"), Symbol("k"), Variable("acc", F64)
    result = np.empty(())
    rows = vector(i, 11, loop(k, 3, Update(acc, at(x, i, k), op("add"))), lanes=4)
    run([Define(acc, Const(0.0, F64)), rows, put(out, value=Local(acc))], [(x, source)], [(out, result)])
    partial = np.zeros(4)
    for first in (0, 4):
        for column in range(3):
            partial = partial + source[first : first + 4, column]
    total = (partial[0] + partial[2]) + (partial[1] + partial[3])
    for value in source[8:].ravel():
        total = total + value
    assert result == total


@pytest.mark.parametrize(("lo", "hi", "step"), [(2, 50, 1), (1, 60, 3), (59, -1, -1), (50, 3, -4), (9, 4, 1)])
@pytest.mark.parametrize("kind", [LoopKind.SEQUENTIAL, LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.PARALLEL])
@pytest.mark.parametrize("known", [True, False])
def test_bounds_and_steps(lo, hi, step, kind, known):
    out, i, first, last = Tensor.of("out", (60,), I64), Symbol("i"), static("first"), static("last")
    result = np.zeros(60, np.int64)
    bounds = (lo, hi) if known else (first, last)
    lanes = 4 if kind is LoopKind.VECTOR else 1
    store = put(out, i, value=Index(Affine.of(i) * 2 + 1))
    body = loop(i, bounds[1], store, lo=bounds[0], kind=kind, step=step, lanes=lanes)
    run([body], writes=[(out, result)], bindings=[(first, lo), (last, hi)])
    expected = np.zeros(60, np.int64)
    for n in range(lo, hi, step):
        expected[n] = 2 * n + 1
    np.testing.assert_array_equal(result, expected)


def test_inner_bound_depends_on_the_outer_loop():
    source = np.random.default_rng(4).normal(size=(9, 9))
    x, out, i, j = tensor_like("x", source), f64("out", 9, 9), Symbol("i"), Symbol("j")
    result = np.zeros((9, 9))
    triangle = loop(i, 9, vector(j, Affine.of(i) + 1, put(out, i, j, value=at(x, i, j)), lanes=4))
    run([triangle], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, np.tril(source))


def test_locals_are_carried_together():
    """Two locals that change places in each iteration."""
    out, n, i = Tensor.of("out", (), I64), static("n"), Symbol("i")
    a, b, following = Variable("a", I64), Variable("b", I64), Variable("following", I64)
    result = np.empty((), np.int64)
    body = [
        Define(a, Const(0, I64)),
        Define(b, Const(1, I64)),
        loop(
            i,
            n,
            Define(following, call("add", Local(a), Local(b))),
            Update(a, Local(b)),
            Update(b, Local(following)),
        ),
        put(out, value=Local(a)),
    ]
    for number, expected in ((0, 0), (1, 1), (10, 55), (50, 12586269025)):
        run(body, writes=[(out, result)], bindings=[(n, number)])
        assert result == expected


@pytest.mark.parametrize("steps", [1, 2, 9, 1000])
def test_a_loop_is_left_when_no_lane_is_to_stay(steps):
    """A value is doubled until it is beyond 100; the last vector has lanes that stay to the end."""
    source = np.r_[np.arange(1.0, 17.0), np.zeros(5)]
    x, out, i, k = f64("x", 21), f64("out", 21), Symbol("i"), Symbol("k")
    value, near, n = Variable("value", F64), Variable("near", BOOL), Variable("n", I64)
    body = vector(
        i,
        21,
        Define(value, at(x, i)),
        Define(n, Const(0, I64)),
        loop(
            k,
            steps,
            Define(near, call("less", Local(value), Const(100.0, F64))),
            Stay(Local(near)),
            Update(value, call("where", Local(near), call("add", Local(value), Local(value)), Local(value))),
            Update(n, call("where", Local(near), call("add", Local(n), Const(1, I64)), Local(n))),
        ),
        put(out, i, value=call("add", Local(value), Cast(Local(n), F64))),
    )
    result = np.empty(21)
    run([body], [(x, source)], [(out, result)])
    doubled = [min(steps, next((n for n in range(9) if v * 2**n >= 100), steps)) for v in source]
    np.testing.assert_array_equal(result, source * 2.0 ** np.minimum(doubled, 9) + doubled)


def test_branches_join_locals():
    source = np.arange(-4.0, 5.0)
    x, out, i, value = f64("x", 9), f64("out", 9), Symbol("i"), Variable("value", F64)
    negative = call("less", at(x, i), Const(0.0, F64))
    large = call("less", Const(2.0, F64), at(x, i))
    body = loop(
        i,
        9,
        Define(value, at(x, i)),
        If(
            negative,
            (Update(value, Const(0.0, F64)),),
            (If(large, (Update(value, Const(10.0, F64), op("multiply")),)),),
        ),
        put(out, i, value=Local(value)),
    )
    result = np.empty(9)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, [0, 0, 0, 0, 0, 1, 2, 30, 40])


@pytest.mark.parametrize("seldom", [False, True])
def test_a_branch_that_is_seldom_taken_is_laid_out_so(seldom):
    x, out, i, value = f64("x", 9), f64("out", 9), Symbol("i"), Variable("value", F64)
    root = If(
        call("less", Const(2.0, F64), at(x, i)), (Update(value, call("sqrt", at(x, i))),), seldom=seldom
    )
    body = loop(i, 9, Define(value, at(x, i)), root, put(out, i, value=Local(value)))
    kernel = Kernel("seldom", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,))
    source, result = np.arange(9.0), np.empty(9)
    launch(kernel, "sync_llvm", [source, result])
    np.testing.assert_array_equal(result, np.where(source > 2, np.sqrt(source), source))
    assert ("branch_weights" in LlvmTarget("sync_llvm").emit(kernel).payload) == seldom


def test_how_long_a_branch_is_takes_no_notice_of_what_is_more_seldom_in_it():
    value = Variable("value", F64)
    steps = (Update(value, call("sqrt", Local(value))),) * 60
    inner = If(call("less", Const(2.0, F64), Local(value)), steps, seldom=True)
    assert is_short((*steps, inner))
    assert not is_short((*steps, *steps))


def test_a_branch_that_all_lanes_take_stands_in_a_vector_loop():
    out, flag, i, value = f64("out", 19), static("flag"), Symbol("i"), Variable("value", F64)
    chosen = call("less", Const(0, I64), Index(Affine.of(flag)))
    body = vector(
        i,
        19,
        Define(value, Const(1.0, F64)),
        If(chosen, (Update(value, Cast(Index(Affine.of(i)), F64)),)),
        put(out, i, value=Local(value)),
    )
    for number in (0, 1):
        result = np.empty(19)
        run([body], writes=[(out, result)], bindings=[(flag, number)])
        np.testing.assert_array_equal(result, np.arange(19.0) if number else np.ones(19))


@pytest.mark.parametrize("steps", [1, 60])
@pytest.mark.parametrize("lanes", [4, 8, 32])
def test_a_branch_that_some_lanes_take_changes_these_alone(lanes, steps):
    source = np.where(np.arange(75) % 21 == 3, 9.0, np.arange(75) % 3)
    x, out, i, value = f64("x", 75), f64("out", 75), Symbol("i"), Variable("value", F64)
    body = vector(
        i,
        75,
        Define(value, at(x, i)),
        If(
            call("less", Const(5.0, F64), at(x, i)),
            tuple(Update(value, Const(1.0, F64), op("add")) for _ in range(steps)),
        ),
        put(out, i, value=Local(value)),
        lanes=lanes,
    )
    result = np.empty(75)
    run([body], [(x, source)], [(out, result)])
    np.testing.assert_array_equal(result, np.where(source > 5, source + steps, source))


def test_a_bound_number_is_a_bound_and_an_index():
    starts, x, out = Tensor.of("starts", (4,), I64), f64("x", 9), f64("out", 3)
    i, k, first, last, total = (*map(Symbol, ("i", "k", "first", "last")), Variable("total", F64))
    body = loop(
        i,
        3,
        Bind(first, at(starts, i)),
        Bind(last, at(starts, Affine.of(i) + 1)),
        Define(total, at(x, first)),
        For(k, Affine.of(first), Affine.of(last), (Update(total, at(x, k), op("add")),)),
        put(out, i, value=Local(total)),
    )
    values, result = np.arange(9.0), np.empty(3)
    run([body], [(starts, np.array([2, 5, 5, 3])), (x, values)], [(out, result)])
    np.testing.assert_array_equal(result, [2 + 2 + 3 + 4, 5, 5])


def test_a_constant_is_bound_and_counts_in_a_vector_loop():
    out, n, i = f64("out", 40), Symbol("n"), Symbol("i")
    fill = put(out, i, value=Cast(Index(Affine.of(i) + n), F64))
    result = np.zeros(40)
    run([Bind(n, Const(21, I64)), vector(i, n, fill)], writes=[(out, result)])
    np.testing.assert_array_equal(result, np.where(np.arange(40) < 21, np.arange(40) + 21.0, 0))


@pytest.mark.parametrize("start", [0.5, 1.0, 100.0])
def test_a_loop_goes_on_as_long_as_its_condition_holds(start):
    """The locals afterwards are those that the last test has left."""
    x, out, turns, half = f64("x", 1), f64("out", 3), Variable("turns", F64), Variable("half", F64)
    tested = Variable("tested", F64)
    repeat = While(
        (Define(half, call("multiply", at(x, 0), Const(0.5, F64))), Update(tested, Local(half))),
        call("less", Const(1.0, F64), Local(half)),
        (put(x, 0, value=Local(half)), Update(turns, Const(1.0, F64), op("add"))),
    )
    body = [
        Define(turns, Const(0.0, F64)),
        Define(tested, Const(0.0, F64)),
        repeat,
        put(out, 0, value=Local(turns)),
        put(out, 1, value=Local(tested)),
        put(out, 2, value=at(x, 0)),
    ]
    result, cell = np.empty(3), np.array([start])
    run(body, writes=[(x, cell), (out, result)])
    halvings = 6 if start == 100 else 0
    np.testing.assert_array_equal(result, [halvings, start / 2 ** (halvings + 1), start / 2**halvings])


def test_loops_that_go_on_stand_in_branches_and_in_one_another():
    out, i, count, inner = f64("out", 6), Symbol("i"), Variable("count", F64), Variable("inner", F64)
    add = op("add")
    again = While((), call("less", Local(inner), Local(count)), (Update(inner, Const(2.0, F64), add),))
    repeat = While(
        (Define(inner, Const(0.0, F64)), again),
        call("less", Local(inner), Const(7.0, F64)),
        (Update(count, Const(1.0, F64), add),),
    )
    small = call("less", Index(Affine.of(i)), Const(4, I64))
    body = loop(
        i,
        6,
        Define(count, Cast(Index(Affine.of(i)), F64)),
        If(small, (repeat,), (Update(count, Const(-1.0, F64)),)),
        put(out, i, value=Local(count)),
    )
    result = np.empty(6)
    run([body], writes=[(out, result)])
    np.testing.assert_array_equal(result, [7, 7, 7, 7, -1, -1])


@pytest.mark.parametrize("dtype", [BOOL, F32, I64])
@pytest.mark.parametrize("size", [0, 5, 200])
def test_fill_writes_the_whole_tensor(dtype, size):
    out, n = Tensor.of("out", (size, 3), dtype), static("n")
    symbolic = Tensor("out", (Affine.of(n), Affine.of(3)), dtype)
    for tensor in (out, symbolic):
        result = np.zeros((size + 1, 3), dtype.numpy)
        run([Fill(tensor, Const(1, dtype))], writes=[(tensor, result)], bindings=[(n, size)])
        np.testing.assert_array_equal(result, np.arange(size + 1)[:, None] * np.ones(3) < size)


def _emit(*body, params=()):
    link(Kernel("wrong", params, body))


def test_what_the_passes_must_never_ask_for_is_a_bug_of_ours():
    x, i, j, acc = f64("x", 64), Symbol("i"), Symbol("j"), Variable("acc", F64)
    params = (ArrayParam(x, "update"),)
    varying = call("less", at(x, i), Const(0.0, F64))
    zero = Define(acc, Const(0.0, F64))
    wrong = {
        "a branch on what differs": [vector(i, 64, If(varying, (put(x, i, value=Const(1.0, F64)),)))],
        "all lanes store": [vector(i, 64, put(x, 0, value=at(x, i)))],
        "carry": [zero, vector(i, 64, Update(acc, at(x, i)))],
        "is read while": [
            zero,
            vector(i, 64, Update(acc, at(x, i), op("add")), put(x, i, value=Local(acc))),
        ],
        "inside another": [vector(i, 64, vector(j, 8, put(x, i, value=at(x, j))))],
        "differs from lane to lane": [vector(i, 64, loop(j, i, put(x, i, value=at(x, j))))],
        "the number bound to j": [vector(i, 64, Bind(j, Cast(at(x, i), I64)), put(x, i, value=at(x, j)))],
        "a Barrier on a CPU": [Barrier()],
        "a grid loop": [loop(i, 64, put(x, i, value=at(x, i)), kind=LoopKind.GRID)],
        "has no memory": [put(f64("lost", 4), 0, value=Const(1.0, F64))],
    }
    for message, body in wrong.items():
        with pytest.raises(CompilerBug, match=message):
            _emit(*body, params=params)


def test_long_bodies_and_deep_expressions():
    """Neither many statements nor deep nesting may meet Python's recursion limit."""
    x = f64("x", 4)
    deep = at(x, 0)
    for _ in range(3000):
        deep = call("add", deep, at(x, 1))
    shared = at(x, 2)
    for _ in range(60):
        shared = call("add", shared, shared)
    result = np.array([1.0, 2.0, 3.0, 4.0])
    body = (put(x, 0, value=deep), put(x, 3, value=shared), Comment("done\n"))
    launch(Kernel("deep", (ArrayParam(x, "update"),), body), "sync_llvm", [result])
    np.testing.assert_array_equal(result, [6001.0, 2.0, 3.0, 3 * 2.0**60])


def test_blocks_of_many_stores_are_cut():
    """What is computed before a cut is still known after it, in branches and loops too."""
    x, out, i, acc = f64("x", 4), f64("out", 100), Symbol("i"), Variable("acc", F64)
    base = call("add", at(x, 1), at(x, 2))
    spread = [put(out, n, value=call("add", base, Const(float(n), F64))) for n in range(100)]
    again = [put(out, n, value=call("add", at(out, n), Local(acc))) for n in range(100)]
    body = [
        Define(acc, Const(0.0, F64)),
        *spread,
        loop(i, 3, Update(acc, at(x, i), op("add")), *again, Update(acc, at(x, 3), op("add"))),
    ]
    result = np.empty(100)
    run(body, [(x, np.array([1.0, 2.0, 3.0, 4.0]))], [(out, result)])
    np.testing.assert_array_equal(result, np.arange(100.0) + 5 + (1 + 7 + 14))


@pytest.mark.parametrize(("accum", "words"), [("logical_or", "or"), ("logical_and", "and")])
def test_what_lanes_found_out_is_handed_on_in_a_vector_of_bytes(accum, words):
    values = np.zeros(1000)
    x, found, i = tensor_like("x", values), Variable("found", BOOL), Symbol("i")
    result = np.zeros(1, np.bool_)
    y = tensor_like("y", result)
    is_any = accum == "logical_or"
    test = call("greater" if is_any else "less", at(x, i), Const(2.0, F64))
    search = vector(i, 1000, Update(found, test, op(accum)), lanes=64)
    body = [Define(found, Const(not is_any, BOOL)), search, put(y, 0, value=Local(found))]
    kernel = Kernel("search", (ArrayParam(x, "read"), ArrayParam(y, "write")), tuple(body))
    text = LlvmTarget("sync_llvm").emit(kernel).payload
    assert "phi <64 x i8>" in text
    assert "phi <64 x i1>" not in text
    handed_on = re.search(r"(%\w+) = phi <64 x i8>", text)
    assert handed_on is not None
    assert re.search(rf" = {words} <64 x i8> {handed_on[1]}, ", text), (
        "an iteration waits for bits to become bytes"
    )
    for place in (None, 0, 77, 999):
        values[:] = 0
        if place is not None:
            values[place] = 3
        run(body, [(x, values)], [(y, result)])
        assert result[0] == ((place is not None) == is_any)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_all_lanes_take_a_branch_of_some_length(name):
    """Logarithms of subnormals have one loop for each width of vectors, and none over lanes."""
    ufunc = getattr(np, name)
    x = np.full(24, 5e-310)  # too few to go in turns, which have a loop for what is whole
    function = arrayjit.jit(lambda x: ufunc(x), threads=1)
    np.testing.assert_allclose(function(x), ufunc(x), rtol=1e-15)
    assert len(re.findall(r"^loop\d+:", function.lower(x).as_text("llvm"), re.M)) == 1
