"""Loops whose arrays change their extents by the same number in each iteration, kept as one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from rolling import assert_kept, assert_like_numpy, assert_unrolled, length

import arrayjit

x10 = np.linspace(0.5, 3.2, 10)


def binomial(s: Any) -> Any:
    v = np.maximum(1.5 - s, 0)
    for _ in range(len(s) - 1):
        v = 0.99 * (0.6 * v[1:] + (1 - 0.6) * v[:-1])
    return v


def american(s: Any) -> Any:
    v = np.maximum(1.5 - s, 0)
    for i in range(len(s) - 2, -1, -1):
        s = s[: i + 1] * 1.01
        v = np.maximum(1.5 - s, 0.99 * (0.6 * v[1:] + 0.4 * v[:-1]))
    return v[0], s


def exercised(s: Any) -> Any:
    v = np.maximum(1.5 - s, 0)
    for i in range(len(s) - 1, 0, -1):
        s = s[1:]
        v = np.maximum(1.5 - s, 0.99 * (0.6 * v[1 : i + 1] + 0.4 * v[:i]))
    return v, s


def richardson(t: Any) -> Any:
    factor = 1.0
    for _ in range(len(t) - 1):
        factor *= 1.25
        t = (factor * t[1:] - t[:-1]) / (factor - 1)
    return t


def neville(x: Any) -> Any:
    p = np.sqrt(x)
    for m in range(1, len(x)):
        p = ((0.3 - x[m:]) * p[:-1] + (x[:-m] - 0.3) * p[1:]) / (x[:-m] - x[m:])
    return p


def differences(d: Any) -> Any:
    firsts = []
    for _ in range(len(d) - 1):
        d = np.diff(d)
        firsts.append(d[0])
    return d, np.array(firsts)


def pyramid(x: Any) -> Any:
    image = np.outer(x, x[::-1])
    for _ in range((len(x) - 1) // 2):
        image = image[1:-1, 1:-1] + image[:-2, 1:-1] / 2 - image[1:-1, 2:] / 4
    return image


def schur(x: Any) -> Any:
    a = np.outer(x, x) + np.eye(len(x)) * 9
    pivots = np.empty(len(x) - 2)
    for i in range(len(x) - 2):
        pivots[i] = a[0, 0]
        a = a[1:, 1:] - np.outer(a[1:, 0], a[0, 1:]) / a[0, 0]
    return pivots, a


def pascal(x: Any) -> Any:
    row = np.array([1.0])
    for _ in range(len(x)):
        row = np.concatenate([[1], row[1:] + row[:-1], [1]])
    return row


def appended(x: Any) -> Any:
    y = np.array([])
    for value in x:
        y = np.append(y, value * 2)
    return y


def deleted(x: Any) -> Any:
    y = x[::-1]
    for _ in range(len(x) - 3):
        x = np.delete(x, 0) * 1.5
        y = np.delete(y, -2) + np.delete(x, 2)[-1]
    return x, y


def inserted(x: Any) -> Any:
    y, table = x[:2], np.ones((2, 1))
    for value in x:
        y = np.insert(y, 0, value + y[0])
        y = np.insert(y, -1, [value, value * 2])
        table = np.insert(table, 1, value + table[:, -1], axis=1)
    return y, table


def polynomial(roots: Any) -> Any:
    p = np.ones(1)
    for i in range(len(roots)):
        q = np.zeros(len(p) + 1)
        q[:-1] += p
        q[1:] -= roots[i] * p
        p = q
    return p


def two_together(x: Any) -> Any:
    w, total = x * 2, np.float64(0)
    for _ in range(len(x) - 2):
        x, w = x[1:] - w[:-1] / 8, w[1:] * 0.5 + x[:-1]
        total += x.max() + w[-1] + len(x)
    return x, w, total


def one_grows(x: Any) -> Any:
    y = x[:1]
    for _ in range(len(x) - 1):
        x = x[1:] - x[0]
        y = np.append(y, x[-1] + y[-1])
    return x, y


def before_and_now(x: Any) -> Any:
    before, now = x, (x[1:] + x[:-1]) / 2
    for _ in range(len(x) - 3):
        before, now = now, (now[1:] + before[1:-1]) / 2
    return before, now


def three_in_turn(x: Any) -> Any:
    a, b, c = x, x[1:] * 1.0, (x[2:] + x[:-2]) / 2
    for _ in range(len(x) - 4):
        a, b, c = b, c, (c[1:] + b[1:-1]) / 2 + a[2:-1]
    return a, b, c


def exchanged(x: Any) -> Any:
    u, v, y = x * 2, x * 3, x
    for i in range(len(x) - 2):
        y = y[1:] + u[i] * y[:-1]
        u[0] = y[-1]
        u, v = v, u
    return u, v, y


def rewritten(x: Any) -> Any:
    for i in range(len(x) - 2):
        x = 0.5 * x[1:]
        x[0] = x[-1] + i
        x *= 1.5
    return x


def written_in_place(x: Any) -> Any:
    y = x
    for _ in range(len(x) - 2):
        y[:-1] += y[1:]
        y = y[:-1]
    y[0] = 4.0
    return y, x


def taken_off(x: Any) -> Any:
    y, head = x, 0.0
    for _ in range(len(x) - 2):
        head = y[0] - head
        y = y[1:]
    return y, head


def converted(x: Any) -> Any:
    v = np.arange(len(x))
    for _ in range(len(x) - 1):
        v = (v[1:] + v[:-1]) / 2
    return v


def nested(x: Any) -> Any:
    out = np.zeros(len(x) - 2)
    for i in range(len(x) - 2):
        t = x[: i + 2] * 1.0
        for _ in range(i + 1):
            t = (t[1:] + t[:-1]) / 2
        out[i] = t[0]
    return out


def nested_again(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        t = x * (i + 1)
        for _ in range(len(x) - 1):
            t = (t[1:] + t[:-1]) / 2
        out[i] = t.sum()
    return out


def read_afterwards(x: Any) -> Any:
    for _ in range(len(x) - 2):
        half = x[1:] * 0.5
        x = half + x[:-1] * 0.5
        other = x
    other[0] = 7
    return x, half, other


def rearranged_afterwards(x: Any) -> Any:
    a = np.outer(x, x)
    for _ in range(len(x) - 3):
        a = a[:, 1:] - a[:, :-1]
    flat = a.reshape(-1)
    flat[1] = 3
    return a, flat


PROGRAMS = (
    binomial, american, exercised, richardson, neville, differences, pyramid, schur, pascal, appended,
    deleted, inserted, polynomial, two_together, one_grows, before_and_now, three_in_turn, exchanged,
    rewritten, written_in_place, taken_off, converted, nested, nested_again, read_afterwards,
    rearranged_afterwards,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_extents_that_change_by_a_number_are_as_in_numpy(program: Callable[..., Any]) -> None:
    shorter = [x10[:n] for n in (4, 5, 7)]
    assert_like_numpy(program, (x10,), *((x,) for x in shorter))


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in (pyramid,)])
def test_extents_that_change_by_a_number_are_kept(program: Callable[..., Any]) -> None:
    assert_kept(program)


@pytest.mark.parametrize("target", ["c", "llvm"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [american, pyramid, pascal, before_and_now, written_in_place, nested])
def test_targets_and_threads(program: Callable[..., Any], target: str, threads: int) -> None:
    x = np.linspace(0.1, 0.9, 41)
    assert_same(arrayjit.jit(program, threads=threads).on(target)(x.copy()), program(x.copy()))


@pytest.mark.parametrize("dtype", ["f4", "i8", "i4"])
@pytest.mark.parametrize("program", [binomial, american, differences, pascal, appended, rewritten, nested])
def test_dtypes(program: Callable[..., Any], dtype: str) -> None:
    assert_like_numpy(program, ((x10 * 3).astype(dtype),))


def test_the_number_of_iterations_is_compiled_in() -> None:
    def halved(x: Any, n: int) -> Any:
        for _ in range(n):
            x = (x[1:] + x[:-1]) / 2
        return x

    jitted = assert_like_numpy(halved, (x10, 0), (x10, 1), (x10, 2), (x10, 8), (x10, 9))
    told = str(jitted.explain(x10, 8))
    assert "one loop of 8 iterations; carries x; the extents of x change by the same number in each" in told
    assert "n, its value is compiled in" in told
    assert length(halved, x10, 8) == length(halved, np.ones(501), 500)


def test_extents_that_change_otherwise_unroll_the_loop() -> None:
    def triangular(x: Any) -> Any:
        y = x[:1]
        for i in range(len(x)):
            y = np.append(y, x[:i] + y[-1])
        return y

    def halved(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x[::2] + x[1::2]
        return x

    def exhausted(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x[2:]
        return x

    def kept_apart(x: Any, n: int) -> Any:
        rows = []
        for _ in range(n):
            x = x[1:] + x[:-1]
            rows.append(x)
        return rows

    assert_unrolled(triangular)
    assert_like_numpy(triangular, (x10,))
    assert_like_numpy(halved, (np.arange(64.0), 5), (np.arange(64.0), 6))
    assert_like_numpy(exhausted, (x10, 5), (x10, 7))
    assert_like_numpy(kept_apart, (x10, 6))


def test_what_needs_an_extent_as_a_number_unrolls_the_loop() -> None:
    def asked(x: Any) -> Any:
        for _ in range(len(x) - 2):
            x = x[1:] + x[:-1] if len(x) % 2 else x[1:]
        return x

    def rearranged(x: Any) -> Any:
        a = np.outer(x, x)
        for _ in range(len(x) - 2):
            a = (a[1:, 1:] * 2).reshape(-1).reshape(len(a) - 1, -1)
        return a

    def named(x: Any) -> Any:
        sizes = {}
        for _ in range(len(x) - 2):
            x = x[1:] * 2
            sizes[str(len(x))] = x[0]
        return sizes

    for program in (asked, rearranged, named):
        assert_like_numpy(program, (x10,))


def test_a_loop_that_is_left_or_may_not_run() -> None:
    def left(x: Any, n: int) -> Any:
        for i in range(n):
            x = x[1:] + x[:-1]
            if i == 5:
                break
        return x

    def writes_what_was_there(x: Any) -> Any:
        for i in range(3):
            t = x
            for _ in range(i):
                t = t[1:] + t[:-1]
            t[0] = 9.0
        return t, x

    def writes_what_was_passed(x: Any, n: int) -> Any:
        y = x
        for _ in range(n):
            y = y[1:] + y[:-1]
        x[2] = 5.0
        y[0] = 9.0
        return y, x

    assert_like_numpy(left, (x10, 4), (x10, 8))
    assert_like_numpy(writes_what_was_there, (x10,))
    assert_like_numpy(writes_what_was_passed, (x10, 0), (x10, 1), (x10, 6))


def test_arrays_from_before_the_loop_stay_as_they_were() -> None:
    def kept(x: Any) -> Any:
        first, y = x, x
        for i in range(len(x) - 2):
            y = y[1:] * 2
            y[0] = i
            x[i] += y[-1]
        return y, x, first

    def written_first(x: Any) -> Any:
        y = x
        for i in range(len(x) - 2):
            y[0] = i
            y = y[1:] + y[0]
        return y, x

    assert_like_numpy(kept, (x10,))
    assert_like_numpy(written_first, (x10,))


def test_powers_of_more_than_64_bits_unroll_the_loop() -> None:
    def romberg(t: Any) -> Any:
        for j in range(1, len(t)):
            t = (4**j * t[1:] - t[:-1]) / (4**j - 1)
        return t

    for n in (12, 31, 36):
        assert_like_numpy(romberg, (np.linspace(1.0, 2.0, n),))
    assert length(romberg, np.ones(12)) == length(romberg, np.ones(30)) < length(romberg, np.ones(36))


def test_mistakes_are_found() -> None:
    def mismatched(x: Any) -> Any:
        y = x
        for _ in range(len(x) - 2):
            y = y[1:] + x[1:]
        return y

    def used_up(x: Any) -> Any:
        for _ in range(len(x) - 1):
            x = np.delete(x, 3)
        return x

    with pytest.raises(ValueError, match="broadcast"):
        arrayjit.jit(mismatched)(x10)
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        arrayjit.jit(used_up)(x10)
