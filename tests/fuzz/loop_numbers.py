"""Numbers in loops: indices, counters, Python's arithmetic, bounds that are arguments."""

# ruff: noqa: B007, B020 (what those rules warn of is what is tested)

from __future__ import annotations

from typing import Any

import numpy as np
from cases import POSITIONS, Cases, counts

programs = case = Cases()


@case()
def notflag(x: Any) -> Any:
    f = True
    for i in range(9):
        f = not f
        x[i] += f
    return (f,)


@case()
def flags(x: Any) -> Any:
    f = True
    for i in range(9):
        f = f ^ True
        x[i] += f
    return (f,)


@case()
def fact(x: Any) -> Any:
    p = 1
    for i in range(1, 21):
        p *= i
    return (p,)


@case()
def zerodiv(x: Any) -> Any:
    h = 1.0
    for i in range(9):
        h = h / (i - 4)
    return (h,)


@case()
def zerodivint(x: Any) -> Any:
    h = 1
    for i in range(9):
        h = h + 10 // (i - 4)
    return (h,)


@case()
def zeromod(x: Any) -> Any:
    h = 1
    for i in range(9):
        h = h + 10 % (i - 4)
    return (h,)


@case()
def intops(x: Any) -> Any:
    for i in range(8, -1, -1):
        j = i - 5
        x[i] = (
            j // 2
            + 10 * (j % 3)
            + 100 * (j / 4)
            + (j & 3)
            + (j ^ 5)
            + (j | 2)
            + ~j
            + abs(j)
            + (j >> 1)
            + (i << 2)
            + j**2
            + 2**i
        )
    return ()


@case()
def minmax(x: Any) -> Any:
    for i in range(9):
        x[min(i, 4)] += max(i, 3)
        x[max(0, i - 2)] *= 2
        x[min(i + 1, len(x) - 1)] += divmod(i, 4)[1] + sum((i, 1)) + round(i / 4) + int(i / 2) + float(i)
    return ()


@case()
def powneg(x: Any) -> Any:
    for i in range(1, 9):
        x[i] = i ** (-1) + 2.0**i + i**0.5
    return ()


@case(lambda: (np.zeros(3, "i1"),))
def weak_overflow(x: Any) -> Any:
    for i in range(200):
        x[0] = (x + i)[0] * 0
    return ()


@case(lambda: (np.zeros(3, "u1"),))
def weak_negative_store(x: Any) -> Any:
    for i in range(5, -5, -1):
        x[1] = i
    return ()


@case(lambda: (np.zeros(300, "u1"),))
def weak_fits(x: Any) -> Any:
    for i in range(256):
        x[i] = i
        x[i] += x[i] * 0 + 1
    return ()


@case()
def f32start(x: Any) -> Any:
    s = np.float32(0)
    for i in range(9):
        s = s + x[i]
    return (s,)


@case()
def compare_chain(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        if 0 < i < 5:
            s = s + x[i]
        if i in (1, 7):
            s = s * 2
        s = s + (x[i] if i else 3)
        s = s + x[i if i < 3 else 0]
    return (s,)


@case()
def asserts2(x: Any) -> Any:
    for i in range(9):
        assert i < 5
        x[i] += 1
    return ()


@case()
def changed_index(x: Any) -> Any:
    s = 0
    for i in range(9):
        i = i * 2
        s = s + i
        i += 1
    return (s, i)


@case()
def alternating(x: Any) -> Any:
    a, b = (1, 0.5)
    for _i in range(9):
        a, b = (b, a)
    return (a, b)


@case()
def alternating8(x: Any) -> Any:
    a, b = (1, 0.5)
    for _i in range(8):
        a, b = (b, a)
    return (a, b, a * x[0])


@case()
def count_alias(x: Any) -> Any:
    c = d = 0
    for _i in range(9):
        d = c
        c = c + 2
    return (c, d)


@case()
def count_mixed(x: Any) -> Any:
    c, d = (0, 10)
    for _i in range(9):
        c, d = (d, c)
    return (c, d)


@case()
def count_cross(x: Any) -> Any:
    c, d = (0, 10)
    for _i in range(5):
        c, d = (d - 1, c + 1)
    return (c, d, x[c % 9])


@case()
def count_float(x: Any) -> Any:
    c = 0
    for _i in range(9):
        c += 0.5
    return (c,)


@case()
def count_stop(x: Any) -> Any:
    c = 0
    for _i in range(9):
        if c < 4:
            c += 1
        x[c] += 1
    return (c,)


@case()
def count_reset(x: Any) -> Any:
    for i in range(9):
        c = 0
        for _j in range(i):
            c += 1
        x[c] += 1
    return (c,)


@case()
def count_nested(x: Any) -> Any:
    c = 0
    for i in range(6):
        for j in range(i):
            c += 1
    y = np.zeros(16)
    c = 0
    for i in range(6):
        for j in range(i):
            y[c] = i * 10 + j
            c += 1
    return (c, y)


@case()
def count_two_levels(x: Any) -> Any:
    c = 0
    y = np.zeros(40)
    for i in range(6):
        y[c] = i
        c += 1
        for j in range(5):
            y[c] = j
            c += 1
    return (c, y)


@case(lambda: (np.zeros(9), POSITIONS.copy()))
def cond_counter(x: Any, idx: Any) -> Any:
    c = 0
    for i in range(9):
        x[c] = i
        c += i % 2
    return (c,)


@case(lambda: (np.zeros(9), POSITIONS.copy()))
def data_counter(x: Any, idx: Any) -> Any:
    c = idx[0]
    for i in range(5):
        x[c] = i
        c += 1
    return (c,)


@case(lambda: (np.zeros(9), POSITIONS.copy()))
def chasing(x: Any, idx: Any) -> Any:
    c = 0
    for i in range(12):
        x[c] += i
        c = idx[c]
    return (c,)


@case(lambda: (np.zeros(9), POSITIONS.copy()))
def chasing2(x: Any, idx: Any) -> Any:
    c, d = (0, 3)
    for i in range(12):
        x[c:d] += i
        c, d = (idx[d], c)
    return (c, d)


@case(
    lambda: (np.arange(9.0), np.int64(4)),
    lambda: (np.arange(9.0), np.int64(0)),
    lambda: (np.arange(9.0), np.int64(9)),
)
def npk(x: Any, k: Any) -> Any:
    s = 0.0
    for i in range(k):
        s = s + x[i] + k
    return (s, k)


@case(*counts(8, 0, -1, 1, 5))
def backk(x: Any, k: Any) -> Any:
    s = 0.0
    for i in range(k, -1, -2):
        s = s * 2 + x[i]
    return (s,)


@case(*counts(8, 0, -1, 1, 5))
def enumk(x: Any, k: Any) -> Any:
    s = 0.0
    for j, i in enumerate(range(k), start=k):
        s = s * 2 + x[i] * j
    for v, i in zip(x, range(k), strict=False):
        s = s + v * i
    for i in reversed(range(k, 9)):
        s = s * 2 + x[i]
    for i in range(0, k, 3):
        s = s + x[i]
    return (s,)


@case(*counts(6, 0, 1, 2, 9))
def k_fib(x: Any, k: Any) -> Any:
    a, b = (0, 1)
    for _ in range(k):
        a, b = (b, a + b)
    return (a, b, x * a)


@case(*counts(6, 0, 1, 2, 9))
def k_kinds(x: Any, k: Any) -> Any:
    a, b = (0, 1.5)
    for _ in range(k):
        a, b = (b, a)
    return (a, b, x * a)


@case(*counts(6, 0, 1, 2, 9))
def k_counter(x: Any, k: Any) -> Any:
    c = 0
    for _i in range(0, 9, 2):
        c += k
    return (c, x[c % 9])


@case(*counts(6, 0, 1, 2, 9))
def k_mulcount(x: Any, k: Any) -> Any:
    c = 1
    for _i in range(k):
        c = c * 2 % 9
    return (c, x[c])


@case(*counts(6, 0, 1, 2, 9))
def k_whilek(x: Any, k: Any) -> Any:
    n = k
    while n > 0:
        x[n - 1] += 1
        n -= 1
    return (n,)


@case(*counts(6, 0, 1, 2, 9))
def k_bool(x: Any, k: Any) -> Any:
    f = False
    for i in range(k):
        f = f or bool(i > 3)
    return (f,)


@case()
def np_scalars(x: Any) -> Any:
    s = np.float64(0)
    c = np.int64(0)
    b = np.bool_(False)
    for i in range(9):
        s = s + x[i]
        c = c + 1
        b = b | (x[i] > 2)
    return (s, c, b)


@case()
def weak_to_np(x: Any) -> Any:
    s, c = (0.0, 0)
    for _i in range(9):
        s = s + np.float32(1.5)
        c = c + np.int8(1)
    return (s, c)


@case(lambda: (np.arange(9, dtype="f4"),))
def f4carry(x: Any) -> Any:
    s, t = (0.0, 1)
    for i in range(9):
        s = s + x[i]
        t = t * x[i] + 0.5
    return (s, t)


@case(lambda: (np.arange(9, dtype="i2"),))
def i2carry(x: Any) -> Any:
    s, t = (0, x[0])
    for i in range(9):
        s = s + x[i]
        t = t + i
    return (s, t)


@case(lambda: (np.arange(9, dtype="i4"), np.arange(9) / 2))
def promote_array(x: Any, y: Any) -> Any:
    u = x
    for _i in range(9):
        u = u + y
    return (u,)


@case()
def same_names(x: Any) -> Any:
    s = 0.0
    for i in range(6):
        for i in range(i, 8):
            s = s + x[i]
        s = s * 2 + i
    return (s, i)


@case()
def rebind_n(x: Any) -> Any:
    n = len(x)
    s = 0.0
    for _i in range(n):
        n = n - 1
        s = s + x[n]
    return (s, n)


@case(*counts(6, 0, 1, 2, 9))
def k_last(x: Any, k: Any) -> Any:
    i = -1
    for i in range(k):
        x[i] += 1
    return (i, x[i])


@case(*counts(6, 0, 1, 2, 9))
def k_last2(x: Any, k: Any) -> Any:
    j = 7
    for i in range(k):
        j = i * 2
    return (j,)


@case(*counts(6, 0, 1, 2, 9))
def k_nested(x: Any, k: Any) -> Any:
    s = 0
    for i in range(k):
        for j in range(k):
            s = s + i * j
    return (s,)


@case()
def first_flag(x: Any) -> Any:
    first = True
    m = 0.0
    for i in range(9):
        if first:
            m = x[i]
            first = False
        else:
            m = np.maximum(m, x[i])
    return (m,)


@case(*counts(6, 0, 1, 2, 9))
def k_slices(x: Any, k: Any) -> Any:
    for i in range(k, 9):
        x[i:] += x[: 9 - i]
        x[k:i] *= 2
        x[:k] -= x[i]
    return (x[k:].sum(), x[:-k].sum() if k else 0)


@case(*counts(6, 0, 1, 2, 9))
def k_window(x: Any, k: Any) -> Any:
    y = np.zeros(9)
    for i in range(9 - k):
        y[i] = x[i : i + k].sum()
    return (y,)
