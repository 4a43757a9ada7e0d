"""What stands in the bodies of loops: statements, iterables, views that move, containers."""

# ruff: noqa: B020, B023 (what those rules warn of is what is tested)

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from cases import POSITIONS, Cases, counts, matrix

programs = case = Cases()


def products(x: Any) -> Any:
    for i in range(len(x)):
        yield x[i] * i


@case()
def deletes(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        t = x[i]
        s = s + t
        del t
    return (s,)


@case()
def walrus(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        x[i] = (s := (s + x[i]))
    return (s,)


@case()
def with_errstate(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        with np.errstate(all="ignore"):
            s = s + x[i]
    return (s,)


@case()
def tryfinally(x: Any) -> Any:
    s = 0.0
    for i in range(9):
        try:
            s = s + x[i]
        finally:
            x[i] = 1
    return (s,)


@case()
def generator(x: Any) -> Any:
    s = 0.0
    for v in products(x):
        s = s + v
    return (s,)


@case()
def lambdas(x: Any) -> Any:
    fs = []
    for i in range(9):
        fs.append(lambda: x[i])
    return (fs[0]() + fs[3](),)


@case()
def for_x_in_x(x: Any) -> Any:
    s = 0.0
    for x in x:
        s = s + x
    return (s, x)


@case()
def target_cell(x: Any) -> Any:
    s = 0.0
    for x[0] in range(1, 9):
        s = s + x[0]
    return (s,)


@case(matrix)
def rebinding_iterated(a: Any) -> Any:
    s = 0.0
    for row in a:
        a = a * 2
        s = s + row[0] + a[0, 1]
    return (s,)


@case()
def mixed_zip(x: Any) -> Any:
    s = 0.0
    for w, i in zip([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], range(9), strict=False):
        s = s + w * x[i]
    for n, w in enumerate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]):
        s = s + w * x[n]
    return (s,)


@case(lambda: (np.arange(18.0).reshape(9, 2),))
def unpack_rows(p: Any) -> Any:
    s = 0.0
    for a, b in p:
        s = s * 2 + a - b
    return (s,)


@case(lambda: (np.arange(9.0), np.arange(18).reshape(9, 2) % 9))
def unpack_index(x: Any, p: Any) -> Any:
    for i, j in p:
        x[i], x[j] = (x[j] + 1, x[i] * 2)
    return ()


@case(lambda: (np.arange(9.0), POSITIONS.copy()))
def iter_index(x: Any, idx: Any) -> Any:
    for i in idx:
        x[i] += x[i - 1]
        x[:i] += 1
    return ()


@case()
def arange_index(x: Any) -> Any:
    for i in np.arange(9):
        x[i] += i
    for i in np.arange(9)[::-2]:
        x[i] += i
    return ()


@case()
def iters(x: Any) -> Any:
    for i, j in itertools.product(range(3), range(3)):
        x[i] += x[j] * 2
    for i in np.ndindex(3, 3):
        x[i[0]] += i[1]
    for v in map(lambda i: x[i], range(9)):
        x[0] += v
    for i in itertools.count():
        if i > 3:
            break
        x[i] += 1
    return ()


@case()
def dead_after(x: Any) -> Any:
    for i in range(9):
        t = x[i] * 2
        u = x * i
    t = 1
    return (t, u[0])


@case()
def nested_carry(x: Any) -> Any:
    s = 0.0
    u = x.copy()
    for i in range(6):
        t = s
        for j in range(i, 8):
            t = t * 0.5 + x[j]
            u = u[::-1] + t
        s = s + t
    return (s, t, u, i, j)


@case()
def inner_zero(x: Any) -> Any:
    s = 0.0
    for i in range(6):
        last = -1.0
        for j in range(i - 2):
            last = x[j]
        s = s * 2 + last
    return (s, last)


@case()
def inner_zero_name(x: Any) -> Any:
    s, q = 0.0, -1.0
    for i in range(6):
        for j in range(3, i):
            q = x[j]
        s = s + i
    return (s, q)


@case()
def loop_in_helper_default(x: Any) -> Any:

    def h(v, start=x[0], n=5):
        t = start
        for i in range(n):
            t = t * 2 + v[i]
        return t

    s = 0.0
    for _i in range(5):
        s = s + h(x, s) + h(x[::-1]) + h(x, n=8)
    return (s,)


@case()
def recursion(x: Any) -> Any:

    def h(v, d):
        if d == 0:
            return v.sum()
        t = 0.0
        for i in range(len(v)):
            t = t + h(v[::-1], d - 1) * v[i]
        return t

    return (h(x[:5], 2),)


@case()
def while_inside(x: Any) -> Any:
    for i in range(9):
        j = i
        while j > 0 and j % 3:
            x[j] += 1
            j -= 1
    return (j,)


@case()
def dicts(x: Any) -> Any:
    d = {"a": x.copy(), "b": 0.0}
    for i in range(9):
        d["a"][i] += 1
        d["b"] += d["a"][i]
    return (d["b"], d["a"])


@case()
def nested_list(x: Any) -> Any:
    held = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            held[i][j] = x[i] * x[j]
    return (np.array(held),)


@case()
def none_first(x: Any) -> Any:
    prev = None
    for i in range(9):
        if prev is not None:
            x[i] += prev
        prev = x[i]
    return (prev,)


@case()
def growing_list_use(x: Any) -> Any:
    out = [x]
    for _i in range(5):
        out.append(out[-1] * 2 + out[0])
    return (out[-1], len(out))


@case()
def sorted_loop(x: Any) -> Any:
    for i in range(1, 9):
        for j in range(i, 0, -1):
            lo, hi = (np.minimum(x[j], x[j - 1]), np.maximum(x[j], x[j - 1]))
            x[j - 1], x[j] = (lo, hi)
    return ()


@case()
def else_last(x: Any) -> Any:
    for i in range(9):
        y = x[i]
    else:
        y = y + i
    return (y,)


@case()
def zero_iter_kept(x: Any) -> Any:
    s, u, n = (1.5, x, None)
    for i in range(5, 5):
        s, u, n = (s + 1, u + 1, i)
    return (s, u, n)


@case(*counts(6, 0, 1, 2, 9))
def k_break(x: Any, k: Any) -> Any:
    for i in range(k):
        if i == 3:
            break
        x[i] = 1
    else:
        x[8] = 100
    return (x.sum(),)


@case(*counts(6, 0, 1, 2, 9))
def k_list(x: Any, k: Any) -> Any:
    out = []
    for i in range(k):
        out.append(x[i])
    return (len(out), sum(out))


@case(*counts(6, 0, 1, 2, 9))
def k_nested2(x: Any, k: Any) -> Any:
    t = x
    for i in range(k):
        for j in range(i, k):
            t = t + x[j]
    return (t,)


@case(*counts(6, 0, 1, 2, 9))
def k_nested3(x: Any, k: Any) -> Any:
    s = 0.0
    for i in range(9):
        u = x
        for _j in range(k):
            u = u * 0.5
        s = s + u[i]
        u[0] += 1
    return (s,)


@case(*counts(6, 0, 1, 2, 9))
def k_none(x: Any, k: Any) -> Any:
    last = None
    for i in range(k):
        last = i
    if last is None:
        return (x,)
    return (x * last, last)


@case()
def closure_called(x: Any) -> Any:
    s = 0.0
    for i in range(9):

        def g(v):
            return v * i + s

        s = g(x[i])
    return (s, g(1.0))


@case()
def set_state(x: Any) -> Any:
    seen = set()
    for i in range(9):
        seen.add(i % 3)
    return (len(seen), x[0])


@case()
def dict_get(x: Any) -> Any:
    d = {}
    for i in range(9):
        d[i % 3] = d.get(i % 3, 0.0) + x[i]
    return (d[0], d[1], d[2])
