"""What calls without Python take and return: what the same calls through Python do."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import IndexOutOfRange, IntegerOverflow
from arrayjit.runtime.results import LARGE, Results, results

pytestmark = pytest.mark.filterwarnings("ignore::arrayjit.RecompilationWarning")

Pair = namedtuple("Pair", "left right")


@dataclass
class Point:
    x: np.ndarray
    y: np.ndarray


@arrayjit.jit
def add(a, b):
    return a + b


def leaves_of(result):
    """The arrays and numbers of a result, from left to right."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves_of(part)]
    return [result]


@pytest.mark.parametrize("shape", [(), (16,), (3, 5), (1, 1, 1), (0, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "i8", "?"])
def test_fresh_arrays(native, shape, dtype):
    a, b = np.ones(shape, dtype), np.full(shape, 2, dtype)
    result = native(add, a, b)
    expected = a + b
    np.testing.assert_array_equal(result, expected)
    assert type(result) is type(expected) or shape == ()
    assert result.dtype == expected.dtype
    if shape:
        assert result.flags.owndata
        assert result.flags.writeable
        assert result.flags.c_contiguous


def test_layouts(native):
    base = np.arange(48.0).reshape(6, 8)
    other = np.arange(48.0, 96.0).reshape(6, 8)
    for left, right in (
        (base.T, other.T),
        (base[::2], other[1::2]),
        (base[:, ::-1], other[:, ::-1]),
        (np.asfortranarray(base), other),
    ):
        np.testing.assert_array_equal(native(add, left, right), left + right)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u2", "i8", "?", "c8", "c16"])
def test_numbers_that_a_loop_appended(native, dtype):
    def totals(x):
        found, counts, pairs = [], [], []
        for row in x:
            found.append(row.max())
            counts.append(3)
            pairs.append((row.sum(), row[:2] + row[2:4]))
        return found, {"counts": counts, "pairs": pairs}, [float(len(found))], x.size

    x = (np.arange(60).reshape(15, 4) % 7).astype(dtype)
    result, expected = native(arrayjit.jit(totals), x), totals(x)
    ours, theirs = leaves_of(result), leaves_of(expected)
    assert [type(one) for one in ours] == [type(one) for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_an_array_of_no_axes_that_is_a_cell_of_another(native):
    def largest(x):
        return (2 * x).max(axis=0, keepdims=True).squeeze(0), (3 * x).reshape(2, -1)[1, 2, ...]

    x = np.arange(6.0)
    for result, expected in zip(native(arrayjit.jit(largest), x), largest(x), strict=True):
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, expected, strict=True)
        result += 1


def test_results_of_many_parts_go_through_python(through_python, monkeypatch):
    monkeypatch.setattr("arrayjit.entry.outcomes._MOST_STEPS", 20)

    def totals(x):
        return [row.sum() for row in x]

    x = np.arange(60.0).reshape(30, 2)
    assert through_python(arrayjit.jit(totals), x) == totals(x)


def test_a_result_that_is_handed_out_transposed(native):
    f = arrayjit.jit(lambda x: (x + 1).T)
    x = np.arange(12.0).reshape(3, 4)
    result = native(f, x)
    np.testing.assert_array_equal(result, (x + 1).T)
    assert result.strides == (x + 1).T.strides


@pytest.mark.parametrize(
    "of",
    [
        lambda t: t[1:, ::2],
        lambda t: t[::-1, -1],
        lambda t: t.T[2:],
        lambda t: t[None, :, 3],
        lambda t: t.reshape(4, 3)[1:],
        lambda t: t.T.reshape(-1)[5:9],
        lambda t: t[2, 3:],
        lambda t: np.broadcast_to(t[1], (2, 4)),
        lambda t: np.diagonal(t),
    ],
)
def test_views_of_results(native, of):
    plain = lambda x: of(x + 1)  # noqa: E731
    x = np.arange(12.0).reshape(3, 4)
    result, expected = native(arrayjit.jit(plain), x), plain(x)
    np.testing.assert_array_equal(result, expected)
    assert result.strides == expected.strides
    assert result.flags.writeable == expected.flags.writeable
    assert not result.flags.owndata


@pytest.mark.parametrize(
    "of",
    [
        lambda x: x.T,
        lambda x: x[::-1, 1:],
        lambda x: x[1],
        lambda x: x[:, None],
        lambda x: x[:],
        lambda x: np.diag(x),
        lambda x: np.broadcast_to(x[1], (2, 4)),
        lambda x: (x + 1, {"turned": x.T, "given": x}),
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        lambda: np.arange(12.0).reshape(3, 4),
        lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        lambda: np.arange(24.0).reshape(3, 8)[::-1, ::2],
        lambda: np.broadcast_to(np.arange(4.0), (3, 4)),
    ],
    ids=["in order", "by columns", "of a part", "read-only"],
)
def test_views_of_arguments(native, of, given):
    x = given()
    results, expected = native(arrayjit.jit(of), x), of(x)
    if type(results) is tuple:
        (results, expected) = ((part[0], *part[1].values()) for part in (results, expected))
    else:
        results, expected = (results,), (expected,)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
        assert result.strides == wanted.strides
        assert result.flags.writeable == wanted.flags.writeable
        assert np.shares_memory(result, x) == np.shares_memory(wanted, x)


def test_a_view_keeps_its_argument_alive(native):
    x = np.arange(5.0)
    rest = native(arrayjit.jit(lambda x: x[1:]), x)
    x[1] = 70
    assert rest.base is x
    died = weakref.ref(x)
    del x
    gc.collect()
    np.testing.assert_array_equal(rest, [70, 2, 3, 4])
    assert died() is not None
    del rest
    gc.collect()
    assert died() is None


@pytest.mark.parametrize(
    "of",
    [
        lambda t: (t.T, t),
        lambda t: (t.T, t[1:, ::2]),
        lambda t: (t.T, t[2, 1:], t[:, 1]),
        lambda t: (t.transpose(1, 0)[::-1], t.reshape(-1)[3:]),
    ],
)
def test_views_of_a_result_that_is_handed_out_transposed(native, of):
    plain = lambda x: of(x + 1)  # noqa: E731
    x = np.arange(12.0).reshape(3, 4)
    for result, expected in zip(native(arrayjit.jit(plain), x), plain(x), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.strides == expected.strides


@pytest.mark.parametrize(
    "of", [lambda x: (x + 1)[1:], lambda x: x[x > 1], lambda x: x.sum(), lambda x: len(x) + 0.5 * int(x.ndim)]
)
def test_what_is_returned_twice_is_one_object(native, of):
    f = arrayjit.jit(lambda x: [t := of(x), {"more": (t, x)}, t])
    first, rest, last = native(f, np.arange(5.0))
    np.testing.assert_array_equal(first, of(np.arange(5.0)))
    assert first is rest["more"][0]
    assert first is last


def test_views_of_one_result_are_of_one_array(native):
    f = arrayjit.jit(lambda x: ((t := x + 1)[1:], t, t[::2]))
    rest, whole, others = native(f, np.arange(5.0))
    rest[1] = 70
    whole[4] = 80
    np.testing.assert_array_equal(others, [1, 70, 80])
    del whole
    gc.collect()
    np.testing.assert_array_equal(rest, [2, 70, 4, 80])


@pytest.mark.parametrize(
    "of",
    [
        lambda x: x[x > 0],
        lambda x: x[x > 9],
        lambda x: x[x[:, 1] > 0],
        lambda x: x[:, x[2] > 0].T,
        lambda x: np.nonzero(x > 0),
        lambda x: np.argwhere(x > 0).T,
        lambda x: np.unique(np.rint(x), return_counts=True),
        lambda x: {
            "whole": x + 1,
            "part": x[x > 0],
            "count": np.count_nonzero(x > 0),
            "same": [x[x > 0]] * 2,
        },
    ],
)
def test_arrays_whose_size_the_kernel_counts(native, of):
    f, draw = arrayjit.jit(of), np.random.default_rng(0)
    for _ in range(5):
        x = draw.standard_normal((7, 5))
        result, expected = native(f, x), of(x)
        for ours, theirs in zip(leaves_of(result), leaves_of(expected), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)
            assert type(ours) is type(theirs)
            if isinstance(ours, np.ndarray):
                assert ours.flags.owndata
                assert ours.flags.writeable


def test_a_large_array_whose_size_is_counted_does_not_keep_what_it_was_cut_from(native):
    x = np.arange(LARGE // 4.0)
    f = arrayjit.jit(lambda x: x[x < 10])
    result = native(f, x)
    np.testing.assert_array_equal(result, np.arange(10.0))
    assert result.base is None


def test_signatures_take_turns(native):
    arrays = [np.arange(n, dtype=kind) for n in (1, 2, 3, 7) for kind in ("f4", "f8")]
    f = arrayjit.jit(lambda a, b: a * b)
    for array in arrays:
        native(f, array, array + 1)
    before = f._entries.hits
    for array in 3 * arrays:
        np.testing.assert_array_equal(f(array, array + 1), array * (array + 1))
    assert f._entries.hits == before + 24


def test_dtypes_that_are_equal_but_other_objects(native):
    a = np.arange(16.0)
    native(add, a, a + 1)
    before = add._entries.hits
    own = a.view(np.dtype("f8", metadata={"unit": "m"}))
    assert own.dtype is not a.dtype
    np.testing.assert_array_equal(add(own, a + 1), 2 * a + 1)
    assert add._entries.hits == before + 1
    long, longlong = np.arange(9), np.arange(9).astype(np.longlong)
    native(add, long, long + 1)
    np.testing.assert_array_equal(native(add, longlong, long + 1), 2 * long + 1)
    np.testing.assert_array_equal(add(a.astype(">f8"), a), 2 * a)


@pytest.mark.parametrize(
    "number",
    [2.5, -7, True, 2**40, np.float32(1.5), np.int8(-3), np.uint64(2**63), np.bool_(True)],
)
def test_numbers(native, number):
    f = arrayjit.jit(lambda x, n: x * n)
    x = np.arange(5.0)
    np.testing.assert_array_equal(native(f, x, number), x * number)


def test_an_integer_of_more_than_64_bits(native):
    f = arrayjit.jit(lambda x, n: x * n)
    x = np.arange(5.0)
    native(f, x, 3)
    with pytest.raises(IntegerOverflow):
        f(x, 2**70)
    np.testing.assert_array_equal(f(x, 4), x * 4)


def test_keywords_in_any_order(native):
    f = arrayjit.jit(lambda a, b, c=1.0: a * 100 + b * 10 + c)
    a, b = np.arange(3.0), np.arange(3.0) + 1
    np.testing.assert_array_equal(native(f, a, b=b), a * 100 + b * 10 + 1)
    np.testing.assert_array_equal(native(f, a, b=b, c=2.0), a * 100 + b * 10 + 2)
    np.testing.assert_array_equal(native(f, a, c=3.0, b=b), a * 100 + b * 10 + 3)
    np.testing.assert_array_equal(native(f, b=b, a=a), a * 100 + b * 10 + 1)
    with pytest.raises(TypeError):
        f(a)


def test_containers(native):
    f = arrayjit.jit(lambda p, q: p["w"] * q[0] + p["b"][1] * q[1][0] + q[1][1])
    one, two = np.arange(4.0), np.arange(4.0) + 5
    for scale in (2.0, 3.0):
        p, q = {"w": one, "b": [two, two + 1]}, (two + 2, (one + 1, scale))
        expected = one * q[0] + p["b"][1] * q[1][0] + scale
        np.testing.assert_array_equal(native(f, p, q), expected)


def test_namedtuples(native):
    f = arrayjit.jit(lambda p: p[0] - p[1])
    np.testing.assert_array_equal(native(f, Pair(np.arange(3.0), np.ones(3))), np.arange(3.0) - 1)


def test_results_of_classes_that_are_called(native):
    f = arrayjit.jit(lambda x: (Pair(x + 1, Pair(x[0], 2.5)), slice(1, x[1])))
    x = np.arange(3.0)
    (left, right), part = native(f, x)
    np.testing.assert_array_equal(left, x + 1)
    assert type(right) is Pair
    assert right == (0.0, 2.5)
    assert part == slice(1, 1.0, None)
    sign, logarithm = native(arrayjit.jit(np.linalg.slogdet), np.diag([2.0, -3.0]))
    assert (sign, round(logarithm, 12)) == (-1, round(np.log(6), 12))


def test_what_a_class_is_called_with_and_stands_again(native):
    class First(namedtuple("First", "cells")):
        def __new__(cls, cells):
            return super().__new__(cls, None)

    def f(x):
        y = x + 1
        return First(y), y

    jitted = arrayjit.jit(f)
    for _ in range(5):
        found, again = jitted(np.arange(100.0))
        assert found.cells is None
        np.testing.assert_array_equal(again, np.arange(100.0) + 1)


def test_dict_keys_are_compared_by_what_they_say(native):
    f = arrayjit.jit(lambda d: d["weight of it"] - d["bias of it"])
    x, y = np.arange(3.0), np.ones(3)
    native(f, {"weight of it": x, "bias of it": y})
    loaded = dict(zip(json.loads('["weight of it", "bias of it"]'), (x, y), strict=True))
    before = f._entries.hits
    np.testing.assert_array_equal(f(loaded), x - y)
    assert f._entries.hits == before + 1
    np.testing.assert_array_equal(f({"bias of it": y, "weight of it": x}), x - y)
    with pytest.raises(KeyError):
        f({"weight of it": x, "other": y})


def test_dicts_with_keys_of_other_types(native):
    f = arrayjit.jit(lambda d: sum(d.values()))
    x = np.arange(3.0)
    np.testing.assert_array_equal(native(f, {1: x, (2, 3): x + 1}), 2 * x + 1)


def test_a_key_that_runs_python_code_when_it_is_compared(native):
    log = []

    class Key:
        def __hash__(self):
            return hash("w")

        def __eq__(self, other):
            log.append(other)
            return other == "w"

    f = arrayjit.jit(lambda d: d["w"] + 1 if "w" in d else d)
    x = np.arange(3.0)
    native(f, {"w": x})
    np.testing.assert_array_equal(f({Key(): x}), x + 1)


def test_static_values_and_none(native):
    f = arrayjit.jit(lambda x, mode, bias: x if bias is None else x + 1, static_argnames="mode")
    x = np.arange(3.0)
    assert native(f, x, "same", None) is x
    flag = arrayjit.jit(lambda x, flag: x * 2 if flag else x * 3, static_argnames="flag")
    for value in (True, False, True):
        np.testing.assert_array_equal(native(flag, x, value), x * (2 if value else 3))
        np.testing.assert_array_equal(native(flag, x, flag=value), x * (2 if value else 3))


def test_results_of_every_kind(native):
    def everything(x, d):
        total = x.sum()
        y = x * 2
        return {
            "array": y,
            "again": y,
            "argument": x,
            "inside": d["v"],
            "scalar": total,
            "numbers": [len(x), 1.5, None, "text"],
            "nested": (total > 1, (y + 1, ()), []),
        }

    x, d = np.arange(4.0), {"v": np.ones(2)}
    result, expected = native(arrayjit.jit(everything), x, d), everything(x, d)
    assert list(result) == list(expected)
    assert result["array"] is result["again"]
    assert result["argument"] is x
    assert result["inside"] is d["v"]
    assert type(result["scalar"]) is type(expected["scalar"])
    assert result["scalar"] == expected["scalar"]
    assert result["numbers"] == expected["numbers"]
    assert [type(part) for part in result["numbers"]] == [type(part) for part in expected["numbers"]]
    assert type(result["nested"][0]) is np.bool_
    np.testing.assert_array_equal(result["nested"][1][0], y := x * 2 + 1)
    assert y is not result["nested"][1][0]
    assert result["nested"][1][1] == ()
    assert result["nested"][2] == []
    again = native(arrayjit.jit(everything), x, d)
    assert again["numbers"] is not result["numbers"]


def test_python_numbers_as_results(native):
    f = arrayjit.jit(lambda n, t, b: (n + 1, t * 2, not b, n / 2))
    assert native(f, 3, 1.5, True) == (4, 3.0, False, 1.5)
    assert [type(part) for part in f(3, 1.5, True)] == [int, float, bool, float]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "?"])
def test_numpy_scalars_as_results(native, dtype):
    x = np.ones(5, dtype)
    f = arrayjit.jit(lambda v: v.max())
    result = native(f, x)
    assert type(result) is np.dtype(dtype).type
    assert result == 1


def test_results_in_arguments(native):
    @arrayjit.jit
    def f(a, b, out):
        np.add(a, b, out=out)
        return out

    a, b, out = np.arange(4.0), np.ones(4), np.zeros(4)
    assert native(f, a, b, out) is out
    np.testing.assert_array_equal(out, a + b)
    f(a, b, a)
    np.testing.assert_array_equal(a, np.arange(4.0) + 1)
    memory = np.arange(8.0)
    expected = memory.copy()
    np.add(expected[:4], b, out=expected[2:6])
    f(memory[:4], b, memory[2:6])
    np.testing.assert_array_equal(memory, expected)
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(a, b, fixed)


def test_arrays_that_share_memory(native):
    x = np.arange(10.0)
    native(add, x[:9], np.ones(9))
    before = add._entries.hits
    np.testing.assert_array_equal(add(x[1:], x[:-1]), x[1:] + x[:-1])
    np.testing.assert_array_equal(add(x[1:], x[1:]), 2 * x[1:])
    assert add._entries.hits == before
    f = arrayjit.jit(lambda a, b: 1 if a is b else 2)
    y = x.copy()
    native(f, x, y)
    assert f(x, x) == 1
    assert f(x, y) == 2


def test_errors_of_the_kernel(native):
    @arrayjit.jit
    def take(x, i):
        x[0] = -1.0
        return x[i]

    x, good, bad = np.arange(4.0), np.array([1, 2]), np.array([1, 9])
    np.testing.assert_array_equal(native(take, x, good), [1.0, 2.0])
    x[0] = 5.0
    before = take._entries.hits
    for _ in range(3):
        with pytest.raises(IndexOutOfRange, match="out of bounds") as caught:
            take(x, bad)
        assert __file__ in str(caught.value)
    assert take._entries.hits == before + 3
    np.testing.assert_array_equal(native(take, x, good), [1.0, 2.0])


def test_temporaries_have_a_workspace(native):
    f = arrayjit.jit(lambda x: np.exp(x - x.max(axis=1, keepdims=True)).cumsum(axis=0).T @ x)
    x = np.linspace(0, 1, 2048).reshape(32, 64)
    expected = np.exp(x - x.max(axis=1, keepdims=True)).cumsum(axis=0).T @ x
    np.testing.assert_allclose(native(f, x), expected)


def test_large_results_lie_in_blocks_that_earlier_ones_have_left(native):
    x = np.arange(LARGE / 8).reshape(64, -1)
    for function in (
        lambda v: v + 1,
        lambda v: (v + 1).T,
        lambda v: {"a": v + 1, "b": [(v * 2)[1:], v.sum()]},
    ):
        f = arrayjit.jit(function)
        native(f, x)
        before = results().idle_bytes
        result = f(x)
        assert json.dumps(result, default=np.ndarray.tolist) == json.dumps(
            function(x), default=np.ndarray.tolist
        )
        assert results().idle_bytes <= before - LARGE
        del result
        assert results().idle_bytes == before


def test_a_large_result_without_memory_is_an_error(native, monkeypatch):
    f = arrayjit.jit(lambda x: x + 1)
    x = np.zeros(LARGE // 8)
    native(f, x)

    def exhausted(self, nbytes):
        raise MemoryError("none left")

    with monkeypatch.context() as patched:
        patched.setattr(Results, "take", exhausted)
        with pytest.raises(MemoryError, match="none left"):
            f(x)
    np.testing.assert_array_equal(native(f, x), x + 1)


def test_what_runs_while_a_large_result_is_made_has_a_workspace_of_its_own(native, monkeypatch):
    f = arrayjit.jit(lambda x, y: x + np.exp(y - y.max(axis=1, keepdims=True)).cumsum(axis=0).T @ y)
    x, y = np.zeros((LARGE // 512, 64, 64)), np.linspace(0, 1, 2048).reshape(32, 64)
    wanted, other = native(f, x, y), native(f, x, y * 2)
    lend, inside = Results.take, []

    def take(self, nbytes):
        if not inside:
            inside.append(None)
            inside[0] = f(x, y * 2)
        return lend(self, nbytes)

    monkeypatch.setattr(Results, "take", take)
    before = f._entries.hits
    np.testing.assert_array_equal(f(x, y), wanted)
    assert f._entries.hits == before + 1  # the call inside went through Python
    np.testing.assert_array_equal(inside[0], other)


def test_what_stays_with_python(through_python):
    x = np.arange(6.0)
    for function, args in (
        (lambda v: v[6:], (x,)),
        (lambda v: v.T, (x.astype(">f8").reshape(2, 3),)),
        (lambda v: v + 1, (np.frombuffer(bytearray(49), "u1")[1:].view("f8"),)),
        (lambda d: d["a"], (OrderedDict(a=x),)),
    ):
        expected = function(*args)
        np.testing.assert_array_equal(through_python(arrayjit.jit(function), *args), expected)


@pytest.mark.alone
def test_references_do_not_drift(native):
    add_once = arrayjit.jit(lambda a, b: a + b)
    inside = arrayjit.jit(lambda d, n: (d["w"] + d["b"][0], d["w"], {"n": n, "m": n * 2}))
    parts = arrayjit.jit(lambda a: (a + 1)[1:])
    chosen = arrayjit.jit(lambda a: a[a > 0])
    failing = arrayjit.jit(lambda x, i: x[i])
    a, b, bad = np.ones(4), np.ones(4), np.array([9])
    d, number = {"w": a, "b": [b]}, np.float32(2)
    native(add_once, a, b)
    native(inside, d, number)
    native(parts, a)
    native(chosen, a)
    native(failing, a, np.array([1]))
    watched = [
        a,
        b,
        bad,
        d,
        d["b"],
        number,
        a.dtype,
        number.dtype,
        np.ndarray,
        float,
        add_once,
        inside,
        parts,
        chosen,
        "w",
        IndexOutOfRange,
    ]

    def calls(count):
        for _ in range(count):
            add_once(a, b)
            inside(d, number)
            parts(a)
            chosen(a)
            with pytest.raises(IndexOutOfRange):
                failing(a, bad)

    calls(20)
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]
    calls(500)
    gc.collect()
    assert [sys.getrefcount(value) for value in watched] == before


SHARED = {
    "one twice": (lambda x: (x, x), lambda x: (x, x.copy())),
    "neighbours": (lambda x: (x[1:], x[:-1]), lambda x: (x[:-1], x[1:])),
    "two apart": (lambda x: (x[2:], x[:-2]), lambda x: (x[1:-1], x[:-2])),
    "backwards": (lambda x: (x[::-1], x), lambda x: (x, x[::-1])),
    "a matrix and its transpose": (
        lambda x: (x.reshape(8, 8), x.reshape(8, 8).T),
        lambda x: (x.reshape(8, 8), x.reshape(8, 8)),
    ),
    "other elements": (
        lambda x: (x.view("i8")[1:], x[:-1]),
        lambda x: (x.view("i8")[:-1], x[:-1]),
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_arguments_that_share_memory(native, name):
    """Each starts where it did within what they share; otherwise the call is another variant's."""
    shared, otherwise = SHARED[name]
    f = arrayjit.jit(lambda a, b: a + 2 * b)
    for start in (0.0, 100.0):
        args = shared(np.arange(start, start + 64))
        np.testing.assert_array_equal(native(f, *args), args[0] + 2 * args[1])
    for args in (otherwise(np.arange(64.0)), shared(np.arange(64.0))):
        np.testing.assert_array_equal(f(*args), args[0] + 2 * args[1])


def test_arguments_that_share_memory_are_written(native):
    def shift(a, b):
        a[...] = 2 * b
        b[0] = -1.0

    f = arrayjit.jit(shift)
    for size in (8, 8, 9):
        x, y = np.arange(float(size)), np.arange(float(size))
        shift(y[1:], y[:-1])
        f(x[1:], x[:-1])
        np.testing.assert_array_equal(x, y)
    x, y = np.arange(9.0), np.arange(9.0)
    for _ in range(3):
        shift(y[1:], y[:-1])
    native(f, x[1:], x[:-1])
    np.testing.assert_array_equal(x, y)


def test_more_arrays_beside_those_that_share_memory(native):
    f = arrayjit.jit(lambda a, b, c, d: a * b - c * d)
    x, y = np.arange(9.0), np.arange(20.0, 29.0)
    for args in ((x[1:], y[1:], x[:-1], y[:-1]), (x, y, x, y), (x, x, y, x)):
        np.testing.assert_array_equal(native(f, *args), args[0] * args[1] - args[2] * args[3])
    for args in ((x, y, x, x), (x, x, x, y), (y, x, y, x), (x, y, y.copy(), y)):
        np.testing.assert_array_equal(f(*args), args[0] * args[1] - args[2] * args[3])


@pytest.mark.parametrize("size", [0, 1, 4])
def test_which_arguments_are_the_same_object(native, size):
    f = arrayjit.jit(lambda a, b, c: (a is b, a is c, b is c))
    x, y = np.arange(float(size)), np.arange(float(size))
    calls = [(x, x, x), (x, x, y), (x, y, x), (y, x, x), (x, y, y.copy()), (x, x[:], x), (x[:], x, x)]
    calls += [(x, x[::-1], y), (x[::-1], x[::-1], x)]
    for call in (*calls, *calls, *reversed(calls)):
        assert f(*call) == (call[0] is call[1], call[0] is call[2], call[1] is call[2])
    if size:
        assert native(f, x, x, y) == (True, False, False)
        assert native(f, y, x, x) == (False, False, True)
    else:
        assert f._entries.hits > 0


@pytest.mark.parametrize(
    ("views", "reason"),
    [
        (lambda x: (x[::2], x[1::2]), "an array lies between the cells of another one"),
        (lambda x: (x, x[:]), "two arrays are views of the same cells"),
    ],
    ids=["cells between", "two views"],
)
def test_shared_memory_that_stays_with_python(through_python, views, reason):
    f = arrayjit.jit(lambda a, b: a + b)
    args = views(np.arange(64.0))
    np.testing.assert_array_equal(through_python(f, *args), args[0] + args[1])
    assert list(f._entries._reasons.values()) == [reason]
