"""Arrays of any length: one compilation for all up to a power of two, and what NumPy gives for each."""

from __future__ import annotations

import ctypes
import mmap
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import IndexOutOfRange, NumberError, ShapeError, StaticArgumentError

LENGTHS = (0, 1, 2, 3, 16, 17, 30, 33, 60, 64, 65, 100, 128)
random = np.random.default_rng(0)


@pytest.fixture(params=["interp", "sync_llvm", "llvm", "c", "cuda-sim"])
def target(request):
    return request.param


def rows(length, *more, dtype="f8"):
    return random.integers(-9, 9, (length, *more)).astype(dtype)


def compared(f, *args):
    """Call with copies, in NumPy as well: what both return and write is the same, exactly."""
    ours, theirs = pickle.loads(pickle.dumps((args, args)))
    got, wanted = f(*ours), f.__wrapped__(*theirs)
    pairs = zip(leaves_of((got, ours)), leaves_of((wanted, theirs)), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.shape(one) == np.shape(other)
    return got


def leaves_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [leaf for part in value for leaf in leaves_of(part)] if isinstance(value, (tuple, list)) else [value]
    )


def elementwise(x, y):
    return 2 * x + y, np.where(x > y, x, 0), x[1:] - x[:-1], -y


def reduced(x, y):
    return x.sum(), x.max(initial=-99), (x * y).min(initial=99), np.count_nonzero(x > 1), len(x), x.size


def arranged(x, y):
    return (
        x[::-1],
        x[1:],
        x[::2] + 1,
        np.concatenate([x, y, x[:3]]),
        np.stack([x, y]),
        np.stack([x, y], axis=1),
    )


def chosen(x, y):
    return (
        x[x > 0],
        np.sort(x),
        np.argsort(y, kind="stable"),
        np.cumsum(x),
        np.unique(x),
        np.nonzero(y > 0)[0],
    )


def in_place(x, y):
    x += 1
    y[1:] = x[:-1]
    x[y > 3] = 0
    return x


def carried(x, y):
    total, out = 0.0, np.zeros_like(x)
    for i in range(len(x)):
        total = total / 2 + x[i]
        out[i] = total
    for value in y:
        total = total + value
    return out, total


def spread(x, y):
    squares = np.outer(x, y)
    squares[1:, ::2] += 1
    turned = np.ascontiguousarray(np.stack([x, y], axis=1).T)
    return squares, np.stack([x, y, x - y]), turned, turned[:, 1:], (x[:, None] > y).T, x + 1j * y[:, None]


PROGRAMS = [elementwise, reduced, arranged, chosen, in_place, carried, spread]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_vectors_of_all_lengths(program, target):
    f = arrayjit.jit(program, target=target, any_length=("x", "y"))
    for length in LENGTHS:
        compared(f, rows(length), rows(length))
    assert f.stats().compiles == 6


def of_rows(x, w):
    shifted = x - x.max(axis=1, keepdims=True)
    return np.maximum(x @ w, 0), x.sum(axis=0), x.sum(axis=1), shifted, x[:, 1], x.T, x.reshape(-1), x.T @ x


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c16"])
def test_matrices_of_all_lengths(dtype, target):
    if dtype == "c16":
        return_real = arrayjit.jit(lambda x, w: (x @ w, x.conj().T, x.real + x.imag), any_length="x")
        f = return_real
    else:
        f = arrayjit.jit(of_rows, target=target, any_length="x")
    for length in (1, 2, 5, 17, 20, 32):
        compared(f, rows(length, 6, dtype=dtype), rows(6, 4, dtype=dtype))
    assert f.stats().compiles == 3


def test_short_rows_of_all_numbers():
    largest = arrayjit.jit(lambda x: x.argmax(axis=1), any_length="x")
    turned = arrayjit.jit(lambda x: np.ascontiguousarray(x.T), any_length="x")
    for length in (33, 39, 40, 41, 63, 64, 1000, 1023, 1024):
        for x in (rows(length, 11), rows(length, 17, dtype="f4")):
            compared(largest, x), compared(turned, x)
    assert (largest.stats().compiles, turned.stats().compiles) == (4, 4)


def test_vectors_of_short_rows_are_shared_by_threads():
    largest = arrayjit.jit(lambda x: x.argmax(axis=1), any_length="x", threads=2)
    lowered = largest.lower(arrayjit.spec((100_000, 11)))
    assert re.search(r"for i in parallel\(0, many, grain=\d+\):", lowered.as_text("optimized"))
    compared(largest, rows(100_000, 11)), compared(largest, rows(70_001, 11))


def test_lengths_up_to_a_power_of_two_share_code():
    f = arrayjit.jit(elementwise, any_length=("x", "y"))
    for length in (*range(2, 17), *range(17, 33), *range(129, 257, 5)):
        compared(f, rows(length), rows(length))
    assert [miss.reason for miss in f.stats().reasons] == [
        "first call",
        "x: float64[2..16] -> float64[17..32]; y: float64[2..16] -> float64[17..32]",
        "x: float64[2..16] -> float64[129..256]; y: float64[2..16] -> float64[129..256]",
    ]


def test_without_the_option_each_length_has_code_of_its_own():
    f = arrayjit.jit(elementwise, any_length="x")
    for length in (20, 21, 22):
        compared(f, rows(length), rows(length))
    assert f.stats().compiles == 3


def test_lengths_that_differ_are_told_apart():
    f = arrayjit.jit(lambda x, y: (x.sum() + y.sum(), np.concatenate([x, y])), any_length=("x", "y"))
    for lengths in ((20, 20), (20, 30), (25, 19), (18, 18), (31, 32)):
        compared(f, *map(rows, lengths))
    assert f.stats().compiles == 2


def test_lengths_that_must_agree_and_do_not(target):
    f = arrayjit.jit(lambda x, y: x + y, target=target, any_length=("x", "y"))
    for _ in range(2):
        with pytest.raises(ValueError, match="could not be broadcast together") as raised:
            f(rows(20), rows(25))
    assert isinstance(raised.value, NumberError | arrayjit.errors.ShapeError)
    compared(f, rows(20), rows(1))
    compared(f, rows(20), rows(20))


def test_messages_say_how_long_arrays_are():
    x, y = np.ones(20), np.ones(25)
    differ = arrayjit.jit(lambda x, y: x + y, any_length=("x", "y"))
    for length in (25, 30):
        with pytest.raises(NumberError, match=re.escape("shapes (len(x),) (len(y),)")):
            differ(x, np.ones(length))
    never = arrayjit.jit(lambda x: x[1:] + x[: 2 * len(x) - 4], any_length="x")
    for length in (20, 30):
        with pytest.raises(ShapeError, match=re.escape(f"shapes ({length - 1},) ({length},)")):
            never(np.ones(length))
    beyond = arrayjit.jit(lambda batch: batch["x"][len(batch["x"])], any_length="batch")
    with pytest.raises(IndexOutOfRange, match="with size 25") as raised:
        beyond({"x": y})
    assert "use an index from -25 to 24" in str(raised.value)


def test_other_axes_are_of_one_shape():
    f = arrayjit.jit(lambda x: x * 2, any_length="x")
    compared(f, rows(20, 3)), compared(f, rows(25, 3)), compared(f, rows(20, 4))
    assert f.stats().compiles == 2


@dataclass
class Batch:
    points: np.ndarray
    labels: np.ndarray
    scale: float


def test_arrays_inside_of_containers():
    f = arrayjit.jit(
        lambda batch, more, k: {
            "p": batch.points * batch.scale,
            "s": more[0][batch.labels] + more[1]["weights"] * k,
        },
        any_length=("batch", "more"),
    )
    for length in (20, 30, 17):
        labels = random.integers(0, length, length)
        compared(f, Batch(rows(length, 2), labels, 2.0), [rows(length), {"weights": rows(length)}], 3)
    assert f.stats().compiles == 1


def test_by_keyword():
    f = arrayjit.jit(lambda *, x, y=1: x * y, any_length="x")
    for length in (20, 30):
        np.testing.assert_array_equal(f(x=np.ones(length), y=3), np.full(length, 3.0))
    assert f.stats().compiles == 1


def test_arrays_of_another_layout_are_of_one_shape():
    f = arrayjit.jit(lambda x: x + x[::-1], any_length="x")
    for length in (20, 22):
        for x in (rows(length)[::2], np.asfortranarray(rows(length, 3))):
            np.testing.assert_array_equal(f(x), x + x[::-1])
    assert f.stats().compiles == 4


def test_arrays_that_share_memory():
    def f(x, y):
        x[1:] += y[:-1]
        return x.sum()

    jitted = arrayjit.jit(f, any_length=("x", "y"))
    for length in (20, 21, 22, 20):
        for start in (0, 1):
            ours, theirs = np.arange(float(length)), np.arange(float(length))
            assert jitted(ours[start:], ours[: length - start]) == f(theirs[start:], theirs[: length - start])
            np.testing.assert_array_equal(ours, theirs)
            assert jitted(ours, ours) == f(theirs, theirs)
            np.testing.assert_array_equal(ours, theirs)


def test_one_array_is_one_object():
    f = arrayjit.jit(lambda x: (x, x * 2, x), any_length="x")
    x = rows(20)
    first, _, last = f(x)
    assert first is x is last
    g = arrayjit.jit(lambda x: [x * 2] * 2, any_length="x")
    one, other = g(x)
    assert one is other


def test_what_python_decides_is_compiled_in():
    f = arrayjit.jit(lambda x: x * 2 if len(x) % 2 else x[: len(x) // 2].reshape(2, -1), any_length="x")
    for length in (20, 21, 24, 21, 20):
        compared(f, rows(length))
    assert f.stats().compiles == 3
    line = f.__wrapped__.__code__.co_firstlineno
    assert f"len(x): 20, compiled in because line {line} asks whether" in f.stats().reasons[1].reason


def test_results_with_open_columns_have_memory_of_just_their_size():
    def f(x, y):
        return (
            np.stack([x, x]),
            x[:, None] * y,
            (x[:, None] - y[:40]).T,
            np.ascontiguousarray(np.stack([y] * 3, 1).T),
        )

    jitted = arrayjit.jit(f, any_length=("x", "y"))
    for one, other in ((100, 70), (127, 66), (80, 80)):
        for result in compared(jitted, rows(one), rows(other)):
            assert result.flags.owndata
            assert result.nbytes == 8 * result.size


def test_memory_that_is_seen_as_one_axis_has_room():
    def f(x):
        both = np.stack([x, x + 1])
        return both, np.lib.stride_tricks.as_strided(both, (2, 3), (8, 8))

    jitted = arrayjit.jit(f, any_length="x")
    for length in (20, 30):
        compared(jitted, rows(length))


def test_results_have_memory_of_just_their_size():
    f = arrayjit.jit(lambda x: (np.exp(x), x[3:] + 1, (x[:, None] + x[:4]).T), any_length="x")
    for length in (100, 70):
        one, other, turned = f(np.ones(length))
        assert one.flags.owndata
        assert (one.nbytes, other.nbytes) == (8 * length, 8 * (length - 3))
        assert turned.shape == (4, length)
        assert turned.flags.f_contiguous


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mprotect")
@pytest.mark.parametrize("program", [*PROGRAMS, of_rows], ids=lambda program: program.__name__)
def test_nothing_beyond_the_ends_of_arrays_is_touched(program):
    is_of_rows = program is of_rows
    f = arrayjit.jit(program, target="sync_llvm", any_length="x" if is_of_rows else ("x", "y"))
    for length in (17, 31, 33, 1000):
        shapes = ((length, 6), (6, 4)) if is_of_rows else ((length,), (length,))
        for at_end in (True, False):
            f(*(fenced(rows(*shape), at_end) for shape in shapes))


def fenced(array, at_end):
    """A copy of the array that ends, or begins, where a page begins, or ends, that may not be touched."""
    page = mmap.PAGESIZE
    pages = -(-array.nbytes // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(start, page, 0) == 0
    assert protect(start + (pages + 1) * page, page, 0) == 0
    offset = page + (pages * page - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


def test_the_stages_are_readable():
    f = arrayjit.jit(elementwise, any_length=("x", "y"))
    lowered = f.lower(arrayjit.spec(20), arrayjit.spec(20))
    assert "x: read[f64, static('length_of_x', 17, 33)]" in lowered.as_text("assignments")
    np.testing.assert_array_equal(lowered.compile()(np.ones(25), np.ones(25))[0], np.full(25, 3.0))
    with pytest.raises(arrayjit.stages.CompiledForOther, match=r"17\.\.32"):
        lowered.compile()(np.ones(40), np.ones(40))
    assert "length_of_x" in str(f.explain(rows(20), rows(20)))
    assert re.fullmatch(r"\d+ to \d+", str(lowered.cost().flops))
    assert "native code" in str(f.profile(rows(20), rows(20), seconds=0.05))
    assert "arrayjit" in str(arrayjit.bench(f, rows(20), rows(20), seconds=0.05))


def test_the_next_process_finds_the_code(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, arrayjit\n"
        "@arrayjit.jit(any_length='x')\n"
        "def f(x):\n"
        "    return x * 2\n"
        "n = int(sys.argv[1])\n"
        "assert (f(np.ones(n)) == np.full(n, 2.0)).all()\n"
        "print(sorted(f.stats().reasons[0].phases))\n"
    )
    environment = {"ARRAYJIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    said = [
        subprocess.run(
            [sys.executable, str(program), length],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for length in ("20", "30")
    ]
    assert "trace" in said[0]
    assert said[1] == "['link', 'recall call', 'recall code']\n"


def test_with_other_options():
    x = rows(20)
    for options in ({"threads": 2}, {"tune": 0.2}, {"check": {"nan", "bounds"}}, {"opt": 0}, {"target": "c"}):
        f = arrayjit.jit(elementwise, any_length=("x", "y"), **options)
        compared(f, x, x.copy()), compared(f, rows(30), rows(30))
        assert f.stats().compiles == 1
    inner = arrayjit.jit(lambda x: x + 1, any_length="x")
    outer = arrayjit.jit(lambda x: inner(x) * 2, any_length="x")
    np.testing.assert_array_equal(outer(x), (x + 1) * 2)
    again = pickle.loads(pickle.dumps(arrayjit.jit(in_place, any_length="x")))
    assert again._declared.any_length.names == {"x"}


def test_arrays_on_devices_are_of_one_shape():
    f = arrayjit.jit(lambda x, y: x * 2 + y.sum(), any_length=("x", "y"))
    for length in (20, 30):
        x, y = np.arange(float(length)), np.ones(length + 2)
        there = arrayjit.asarray(x, device="llvm")
        np.testing.assert_array_equal(f(there, y).numpy(), x * 2 + y.sum())


def test_a_c_function_is_for_any_length(tmp_path):
    f = arrayjit.jit(lambda x: x * 2, any_length="x", target="sync_c")
    header, _ = f.lower(arrayjit.spec(100)).export(tmp_path, "twice")
    assert "length_of_x" in header.read_text()


def test_large_arrays_with_and_without_python():
    f = arrayjit.jit(lambda x: (x * 2, x[1:].reshape(-1, 1) + np.ones(2)), any_length="x")
    for length in (70_000, 100_000, 131_072, 66_000) * 20:
        x = np.arange(float(length))
        one, other = f(x)
        assert one.shape == (length,)
        assert other.shape == (length - 1, 2)
        assert one[-1] == 2 * x[-1]
        assert other[-1, 1] == x[-1] + 1


def test_names_that_cannot_be():
    with pytest.raises(StaticArgumentError, match="any_length names 'z', which is no parameter"):
        arrayjit.jit(elementwise, any_length="z")
    with pytest.raises(
        StaticArgumentError, match="'x' is static, and its arrays are said to have any length"
    ):
        arrayjit.jit(elementwise, static_argnames="x", any_length=("y", "x"))
    with pytest.raises(StaticArgumentError, match="any_length is 3"):
        arrayjit.jit(elementwise, any_length=3)


def test_the_warning_of_many_compilations_names_the_option():
    f = arrayjit.jit(lambda x: x + 1)
    for length in range(2, 9):
        f(np.ones(length))
    with pytest.warns(arrayjit.RecompilationWarning, match="name arrays of many lengths in any_length"):
        f(np.ones(9))
    g = arrayjit.jit(lambda x: x + 1, any_length="x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for length in range(60):
            g(np.ones(length))
