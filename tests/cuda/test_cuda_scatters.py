"""Scatters on a GPU: many threads, NumPy's bits; floats in any order only where that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from planted import BARRIER, RACE, UNWRITTEN, pieces_of, run_with
from test_cuda_emitter import program

import arrayjit
from arrayjit.errors import DeviceError, SettingError
from arrayjit.ir.code import Caps, GpuCaps
from arrayjit.ir.parse import parse
from arrayjit.passes.gpu.atomics import atomics
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled
from arrayjit.targets.cuda import ARCHITECTURES

CELLS, MANY = 50, 9000


def scattered(ufunc: np.ufunc) -> Callable[..., Any]:
    def scatter(a, p, v):
        ufunc.at(a, p, v)
        return a

    return scatter


def drawn(dtype: str, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array, positions in it, many of them several times, and values."""
    random = np.random.default_rng(0)
    positions = random.integers(-CELLS, CELLS, count)
    if dtype[0] == "f":
        return random.normal(size=CELLS).astype(dtype), positions, random.normal(size=count).astype(dtype)
    most = 2 if dtype == "?" else 100
    return (
        random.integers(0, most, CELLS).astype(dtype),
        positions,
        random.integers(0, most, count).astype(dtype),
    )


def result(function: Callable[..., Any], *arguments: np.ndarray, fast: str = "") -> np.ndarray:
    return np.asarray(arrayjit.jit(function, target="cuda-sim", fast=fast)(*arguments))


def notes(function: Callable[..., Any], *arguments: Any, fast: str = "") -> str:
    told = str(arrayjit.jit(function, target="cuda", fast=fast).explain(*arguments))
    return "\n".join(line for line in told.splitlines() if "atomics:" in line)


EXACT = [
    *(("add", dtype) for dtype in ("i1", "u2", "i4", "u4", "i8", "u8", "?")),
    *((name, dtype) for name in ("minimum", "maximum") for dtype in ("i2", "i4", "u4", "i8", "u8")),
    *((name, "i8") for name in ("subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "fmax")),
    *(("logical_and", "?"), ("logical_or", "?"), ("logical_xor", "?")),
]


@pytest.mark.parametrize(("name", "dtype"), EXACT)
def test_integers_and_bools_are_numpy_s(name: str, dtype: str) -> None:
    function = scattered(getattr(np, name))
    a, p, v = drawn(dtype, 300)
    assert "combines in memory" in notes(function, a, p, v)
    np.testing.assert_array_equal(result(function, a.copy(), p, v), function(a.copy(), p, v), strict=True)


@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "?"])
def test_blocks_have_copies_of_a_small_array(dtype: str) -> None:
    function = scattered(np.add)
    a, p, v = drawn(dtype, MANY)
    assert "2 blocks combine in copies of their own" in notes(function, a, p, v)
    np.testing.assert_array_equal(result(function, a.copy(), p, v), function(a.copy(), p, v), strict=True)


def test_a_number_has_a_type_of_its_own() -> None:
    def count(h, p):
        np.add.at(h, p, 1)
        return h

    _, p, _ = drawn("i4", 300)
    h = np.zeros(CELLS, np.int32)
    assert "combines in memory" in notes(count, h, p)
    np.testing.assert_array_equal(result(count, h.copy(), p), count(h.copy(), p))


def histogram(x):
    return np.histogram(x, bins=10, range=(0.0, 1.0))[0]


def counts(x):
    return np.bincount((x * 10).astype(np.int64), minlength=11)


@pytest.mark.parametrize("function", [histogram, counts])
def test_counts(function: Callable[..., Any]) -> None:
    for size in (0, 5, 1000, MANY):
        x = np.random.default_rng(0).random(size)
        np.testing.assert_array_equal(result(function, x), function(x))
    assert "blocks combine" in notes(function, np.ones(1 << 20))


def test_rows_are_scattered_to_rows() -> None:
    random = np.random.default_rng(0)
    p = random.integers(-20, 20, (11, 9))
    for width in (3, 64):
        a, v = random.integers(0, 9, (20, width)), random.integers(0, 9, (11, 9, width))
        function = scattered(np.add)
        assert "in any order" in notes(function, a, p, v)
        np.testing.assert_array_equal(result(function, a.copy(), p, v), function(a.copy(), p, v))


def test_positions_along_two_axes() -> None:
    def scatter(a, p, q, v):
        np.maximum.at(a, (p, q), v)
        return a

    random = np.random.default_rng(0)
    a, v = random.integers(0, 99, (7, 8)), random.integers(0, 99, 500)
    p, q = random.integers(0, 7, 500), random.integers(-8, 8, 500)
    np.testing.assert_array_equal(result(scatter, a.copy(), p, q, v), scatter(a.copy(), p, q, v))


def test_a_loop_of_the_user_s_that_cannot_raise() -> None:
    def count(h, p):
        for i in range(p.shape[0]):
            h[p[i]] += 2
        return h

    p = np.random.default_rng(0).integers(0, CELLS, 300)
    h = np.zeros(CELLS, np.int64)
    unchecked = arrayjit.jit(count, target="cuda-sim", unchecked=True)
    assert "combines in memory" in str(unchecked.explain(h, p))
    assert "may raise an exception" in notes(count, h, p)
    for function in (unchecked, arrayjit.jit(count, target="cuda-sim")):
        np.testing.assert_array_equal(np.asarray(function(h.copy(), p)), count(h.copy(), p))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_floats_are_added_in_order(dtype: str) -> None:
    function = scattered(np.add)
    a, p, v = drawn(dtype, 300)
    assert 'jit(fast="atomics")' in notes(function, a, p, v)
    np.testing.assert_array_equal(result(function, a.copy(), p, v), function(a.copy(), p, v), strict=True)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("count", [300, MANY])
def test_floats_are_added_in_any_order_where_asked(dtype: str, count: int) -> None:
    a, p, v = drawn(dtype, count)
    for ufunc in (np.add, np.subtract):
        function = scattered(ufunc)
        assert "in order" not in notes(function, a, p, v, fast="atomics")
        got = result(function, a.copy(), p, v, fast="atomics")
        assert got.dtype == a.dtype
        exact, size = (
            scattered(ufunc)(a.astype("f8"), p, v),
            scattered(np.add)(abs(a), p, abs(v).astype("f8")),
        )
        assert (abs(got - exact) <= np.finfo(dtype).eps * size * 8).all()


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "multiply"])
def test_what_hardware_has_no_operation_for(name: str) -> None:
    function = scattered(getattr(np, name))
    for dtype in ("f4", "f8"):
        a, p, v = drawn(dtype, 300)
        v[5] = np.nan
        got = result(function, a.copy(), p, v, fast="atomics")
        with np.errstate(invalid="ignore"):
            wanted = function(a.copy(), p, v)
        np.testing.assert_allclose(got, wanted, rtol=1e-5 if name == "multiply" else 0)


def test_complex_numbers_are_added_by_their_parts() -> None:
    function = scattered(np.add)
    random = np.random.default_rng(0)
    a, p, v = (
        np.zeros(CELLS, complex),
        random.integers(0, CELLS, 300),
        random.normal(size=(300, 2)).view(complex),
    )
    got = result(function, a.copy(), p, v[:, 0], fast="atomics")
    assert "any order" in notes(function, a, p, v[:, 0], fast="atomics")
    np.testing.assert_allclose(got, function(a.copy(), p, v[:, 0]), rtol=1e-12)


def assigned(a, p, v):
    a[p] = v
    return a


@pytest.mark.parametrize("dtype", ["i1", "?", "f4", "i8", "f8"])
@pytest.mark.parametrize("count", [20, 300, MANY])
def test_the_last_of_repeated_positions_counts(dtype: str, count: int) -> None:
    a, p, v = drawn(dtype, count)
    v = (np.arange(count) % 101).astype(dtype)
    assert "the last iteration to reach a cell writes it" in notes(assigned, a, p, v)
    np.testing.assert_array_equal(result(assigned, a.copy(), p, v), assigned(a.copy(), p, v), strict=True)


def test_rows_are_assigned_to_repeated_positions() -> None:
    p = np.random.default_rng(0).integers(-20, 20, 130)
    for width in (3, 64):
        a, v = np.zeros((20, width)), np.arange(130.0 * width).reshape(130, width)
        assert "the last iteration" in notes(assigned, a, p, v)
        np.testing.assert_array_equal(result(assigned, a.copy(), p, v), assigned(a.copy(), p, v))


def test_what_stays_in_order_says_why() -> None:
    def divided(a, p, v):
        np.divide.at(a, p, v)
        return a

    def both(a, p, q):
        for i in range(300):
            a[p[i]] = a[q[i]]
        return a

    a, p, v = drawn("f8", 300)
    assert "do not combine" in notes(divided, a, p, v, fast="atomics")
    np.testing.assert_array_equal(result(divided, a.copy(), p, v, fast="atomics"), divided(a.copy(), p, v))
    q = p[::-1].copy()
    told = str(arrayjit.jit(both, target="cuda", unchecked=True).explain(a, p, q))
    assert "loop i is in order" in told or "loop k is in order" in told
    np.testing.assert_array_equal(result(both, a.copy(), p, q), both(a.copy(), p, q))


@pytest.mark.parametrize(
    ("narrow", "wide", "combines"),
    [
        *(("i8", "i64", False), ("u32", "i64", False), ("f32", "f64", False), ("f16", "bf16", False)),
        *(("i64", "i8", True), ("u64", "i64", True), ("f64", "f32", True)),
    ],
)
def test_what_is_cut_off_before_it_is_stored_stays_in_order(narrow: str, wide: str, combines: bool) -> None:
    """A cell has bits then that no sum of values has."""
    kernel = parse(f"""
def f(p: read[i64, 100], v: read[{narrow}, 100], h: update[{wide}, 50]):
    for k in sequential(0, 100):
        n: index[0, 50] = p[k]
        h[n] = cast(add[{narrow}](cast(h[n], {narrow}), v[k]), {wide})
""")
    changed = atomics(kernel, Caps(gpu=GpuCaps(), fast=("atomics",)))
    assert (changed.body is not kernel.body) == combines
    assert combines or f"add is done in {narrow}, and its result is converted" in str(changed.notes)


def test_a_call_may_ask_for_it_and_each_has_code_of_its_own() -> None:
    a, p, v = drawn("f4", 300)
    function = arrayjit.jit(scattered(np.add), target="cuda-sim")
    assert function.lower(a, p, v).as_text("cuda") == function.lower(a, p, v, fast="").as_text("cuda")
    assert "atomicAdd" not in function.lower(a, p, v).as_text("cuda")
    assert "atomicAdd" in function.lower(a, p, v, fast="atomics").as_text("cuda")
    assert "atomicAdd" in function.on(fast="atomics").lower(a, p, v).as_text("cuda")
    eager = arrayjit.jit(scattered(np.add), target="cuda-sim", fast="atomics")
    assert "atomicAdd" not in eager.lower(a, p, v, fast="").as_text("cuda")
    function(a.copy(), p, v)
    function(a.copy(), p, v, fast="atomics")
    function(a.copy(), p, v, fast="")
    assert function.stats().compiles == 2


def test_other_targets_keep_the_order() -> None:
    a, p, v = drawn("f4", 300)
    function = scattered(np.add)
    for target in ("llvm", "interp"):
        got = arrayjit.jit(function, target=target, fast="atomics")(a.copy(), p, v)
        np.testing.assert_array_equal(got, function(a.copy(), p, v))


def test_nothing_else_is_fast() -> None:
    with pytest.raises(SettingError, match="fast has 'math'"):
        arrayjit.jit(scattered(np.add), fast="math")
    with pytest.raises(SettingError, match="fast has 'math'"):
        arrayjit.jit(scattered(np.add))(*drawn("f4", 3), fast=("atomics", "math"))
    with pytest.raises(SettingError, match=r"fast is True\s+fix: choose among atomics, tf32"):
        arrayjit.jit(scattered(np.add), fast=True)
    with pytest.raises(SettingError, match=r"fast has None, \[\]"):
        arrayjit.jit(scattered(np.add), fast=[None, [], "tf32"])


def test_several_names_in_any_order_are_the_same_code() -> None:
    function = arrayjit.jit(scattered(np.add), target="cuda-sim", fast="tf32, atomics")
    arguments = drawn("f4", 300)
    assert "atomicAdd" in function.lower(*arguments).as_text("cuda")
    function(*arguments)
    function(*arguments, fast=("atomics", "tf32"))
    function(*arguments, fast="atomics,tf32")
    assert function.stats().compiles == 1


ADDITION = r"atomicAdd\(\(int32_t \*\)\((.+)\), \(int32_t\)(.+)\);"


@pytest.mark.parametrize(("count", "addition"), [(300, 0), (MANY, 0), (MANY, 1)])
def test_a_plain_addition_is_found(count: int, addition: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the memory of all nor in that of a block may threads read a cell, add and write it."""
    function, arguments = scattered(np.add), drawn("i4", count)
    assert pieces_of(ADDITION, function, *arguments) == 2
    with pytest.raises(DeviceError, match=RACE):
        run_with(monkeypatch, (ADDITION, r"*(\1) += \2;", addition), function, *arguments)


@pytest.mark.parametrize("barrier", range(2))
def test_a_missing_barrier_around_copies_is_found(barrier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def added(a, p, v):
        a = a + 0
        np.add.at(a, p, v)
        return a

    arguments = drawn("i4", MANY)
    last = pieces_of(BARRIER, added, *arguments) - 2
    with pytest.raises(DeviceError, match=f"{RACE}|{UNWRITTEN}"):
        run_with(monkeypatch, (BARRIER, "", last + barrier), added, *arguments)


def test_an_assignment_by_all_who_reach_a_cell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=RACE):
        run_with(monkeypatch, (r"if \(latest\[.*\)", "if (true)", 0), assigned, *drawn("i4", 300))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("volatile ", ""), (r"= atomicCAS\((\w+), (\w+), (\w+)\);", r"= *\1; *\1 = \3;")],
    ids=["a plain read", "an exchange that others may come between"],
)
def test_mistakes_of_exchanges_are_found(right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=RACE):
        run_with(monkeypatch, (right, wrong, 0), scattered(np.maximum), *drawn("f4", 300), fast="atomics")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_hardware_adds_without_a_loop(arch: str) -> None:
    for dtype, count in (("i4", 3000), ("i8", 100_000)):
        image = nvrtc.compiled(
            program(scattered(np.add), *drawn(dtype, count), arch=arch).source, arch, "program"
        )
        assert all(kernel.spilled_bytes == 0 for kernel in nvrtc.usage(image.log).values())
        code = disassembled(image.cubin)
        assert re.search(r"\bREDG?\.E\.ADD", code)
        assert not re.search(r"\bATOMG?\.E\.CAS", code)
