"""Names that loops rebind: who shares memory with whom, before, in and after the loop."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
from cases import Cases, counts, matrix

programs = case = Cases()


class Total:
    """An object whose attribute changes."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, value: Any) -> None:
        self.value = self.value + value


@case()
def nonlocal_far(x: Any) -> Any:
    s = 0.0

    def bump(q):
        nonlocal s
        s = s + q

    def loop():
        for i in range(9):
            bump(x[i])

    loop()
    return (s,)


@case()
def container_far(x: Any) -> Any:
    history = []

    def record(v):
        history.append(v)

    def loop(record):
        for i in range(9):
            record(x[i])

    loop(record)
    return (len(history), history[-1])


@case()
def object_far(x: Any) -> Any:
    acc = Total()

    def loop(add):
        for i in range(9):
            add(x[i])

    loop(acc.add)
    return (acc.value,)


@case()
def object_closure(x: Any) -> Any:
    acc = Total()

    def step(i):
        acc.add(x[i])

    def loop(f):
        for i in range(9):
            f(i)

    loop(step)
    return (acc.value,)


@case()
def iterator_far(x: Any) -> Any:
    it = iter(range(100))

    def nxt():
        return next(it)

    def loop():
        for i in range(9):
            x[i] = nxt()

    loop()
    return (x.sum(),)


@case()
def cached_attr(x: Any) -> Any:

    def f(q):
        f.total = f.total + q

    f.total = 0.0
    for i in range(9):
        f(x[i])
    return (f.total,)


@case(lambda: (np.arange(9.0), np.arange(9.0) + 5), lambda: (np.arange(9.0)[:6], np.arange(9.0)[3:]))
def pingpong_args(x: Any, y: Any) -> Any:
    for _i in range(7):
        y[1:-1] = x[:-2] + 1
        x, y = (y, x)
    return (x, y)


@case(*[lambda t=t: (np.arange(9.0), np.arange(9.0) + 5, t) for t in (5, 0, 1, 2, 6)])
def pingpong_args_k(x: Any, y: Any, t: Any) -> Any:
    for _i in range(t):
        y[1:-1] = x[:-2] + 1
        x, y = (y, x)
    x[0] = 50
    return (x.sum(), y.sum())


@case()
def zero_d(x: Any) -> Any:
    acc = np.array(0.0)
    same = acc
    for i in range(9):
        acc += x[i]
    return (acc, same)


@case()
def zero_d_rebind(x: Any) -> Any:
    acc = np.array(0.0)
    same = acc
    for i in range(9):
        acc = acc + x[i]
    return (acc, same)


@case()
def aliases(x: Any) -> Any:
    u = x.copy()
    w = u
    for i in range(9):
        u[i] += 1
        u = u + w
        w[0] += 1
    return (u, w)


@case()
def aliases2(x: Any) -> Any:
    u = x.copy()
    for _i in range(9):
        u = u + 1
        w = u
    w[0] = 50
    return (u, w)


@case()
def aliases3(x: Any) -> Any:
    u = x.copy()
    w = x
    for i in range(9):
        w = u
        u = u * 2
        w[i] = 7
    return (u, w)


@case()
def aliases4(x: Any) -> Any:
    u = w = x.copy()
    for _i in range(9):
        u = w = u + 1
    u[0] = 9
    return (u, w)


@case()
def aliases5(x: Any) -> Any:
    u, w = (x.copy(), x.copy())
    for i in range(9):
        u, w = (w + 1, w)
        w[i] = 3
    u[0] = 9
    return (u, w)


@case()
def aliases6(x: Any) -> Any:
    u = x.copy()
    v = u[2:5]
    for _i in range(9):
        v[0] += 1
        u = u * 2
        v = u[2:5]
    v[1] = 99
    return (u, v)


@case()
def aliases7(x: Any) -> Any:
    u = x.copy()
    held = [u]
    for i in range(9):
        held[0][i] += 1
        u = u + held[0]
    return (u, held[0])


@case()
def aliases8(x: Any) -> Any:
    u = x
    for _i in range(9):
        u += 1
        u = u[::-1]
    return (u,)


@case()
def aliases9(x: Any) -> Any:
    u = x
    for _i in range(9):
        u[0] += 1
        u = u + 1
    return (u,)


@case()
def rot_mix(x: Any) -> Any:
    u, v, w = (x.copy(), x + 1, x + 2)
    for _i in range(9):
        u, v, w = (v, w, u + v)
    return (u, v, w)


@case()
def rot_views(x: Any) -> Any:
    u, v = (x[:4], x[4:8])
    for i in range(7):
        u[0] = v[1] + i
        u, v = (v, u)
    return (u, v)


@case(matrix)
def rot_rows(a: Any) -> Any:
    u, v = (a[0], a[1])
    for i in range(2, 9):
        a[i] = u + v
        u, v = (v, u)
    u[0] = 55
    return (u, v)


@case()
def unpack_star(x: Any) -> Any:
    s, *rest = (0.0, x, x + 1)
    for i in range(9):
        s, *rest = (s + x[i], rest[1], rest[0])
    return (s, *rest)


@case()
def attr(x: Any) -> Any:
    a = Total()
    for i in range(9):
        a.value += x[i]
    return (a.value,)


@case(*counts(6, 0, 1, 2, 9))
def k_alias1(x: Any, k: Any) -> Any:
    u = x.copy()
    v = u
    for _i in range(k):
        u = u + 1
        v = u
    v[0] = 50
    return (u, v)


@case(*counts(6, 0, 1, 2, 9))
def k_alias2(x: Any, k: Any) -> Any:
    u = x.copy()
    v = u
    for _i in range(k):
        v = u
        u = u + 1
    v[0] = 50
    return (u, v)


@case(*counts(6, 0, 1, 2, 9))
def k_alias3(x: Any, k: Any) -> Any:
    u = x
    v = x
    for _i in range(k):
        u, v = (v + 1, u)
    v[0] = 50
    u[1] = 60
    return (u, v)


@case(*counts(6, 0, 1, 2, 9))
def k_swap(x: Any, k: Any) -> Any:
    u, v = (x.copy(), x * 2)
    for _i in range(k):
        u[0] += 1
        u, v = (v, u)
    u[1] = 60
    return (u, v)


@case(*counts(6, 0, 1, 2, 9))
def k_swap_args(x: Any, k: Any) -> Any:
    u, v = (x[:4], x[5:])
    for _i in range(k):
        u[0] += v[1]
        u, v = (v, u)
    u[1] = 60
    return (u, v)


@case(*counts(6, 0, 1, 2, 9))
def k_three(x: Any, k: Any) -> Any:
    u, v, w = (x, x + 1, x + 2)
    for _i in range(k):
        u, v, w = (w, u, v)
        u[0] += 1
    w[2] = 5
    return (u, v, w)


@case()
def helper_returns_many(x: Any) -> Any:

    def step(a, b, i):
        return (b, a + x[i])

    a, b = (0.0, 1.0)
    for i in range(9):
        a, b = step(a, b, i)
    return (a, b)


@case()
def helper_inplace(x: Any) -> Any:

    def step(u, i):
        u[i] += 1
        return u

    u = x.copy()
    v = u
    for i in range(9):
        u = step(u, i)
    u[0] = 77
    return (u, v)


@case()
def helper_maybe(x: Any) -> Any:

    def step(u, i):
        return u if len(u) > 3 else u + 1

    u = x.copy()
    for i in range(9):
        u = step(u, i)
    u[0] = 77
    return (u,)


@case()
def dataclass_state(x: Any) -> Any:
    st = SimpleNamespace(a=0.0, u=x.copy())
    for i in range(9):
        st.a = st.a + x[i]
        st.u = st.u + st.a
    return (st.a, st.u)


@case()
def tuple_state(x: Any) -> Any:
    st = (0.0, x.copy(), 3)
    for i in range(9):
        st = (st[0] + x[i], st[1][::-1] + 1, st[2] + 1)
    return st


@case()
def tuple_alias(x: Any) -> Any:
    st = (x.copy(), x * 2)
    a, b = st
    for i in range(9):
        a[i] += 1
        a, b = (b, a)
        st = (a, b)
    st[0][0] = 9
    return (a, b, *st)


@case()
def namedtup(x: Any) -> Any:
    S = namedtuple("S", "a u")
    st = S(0.0, x.copy())
    for i in range(9):
        st = st._replace(a=st.a + x[i])
        st = S(st.a, st.u * 2)
    return (st.a, st.u)


LEVELS = counts(0, 1, 2, 3, 6)


@case(*LEVELS)
def two_levels_written_afterwards(x: Any, k: int) -> Any:
    a, b = x, x * 2
    for _ in range(k):
        a, b = b, a - 2 * b
    a[0] = 100
    return a, b


@case(*LEVELS)
def two_levels_whose_first_arrays_have_other_names(x: Any, k: int) -> Any:
    a, b = x.copy(), x * 2
    first, second = a, b
    for _ in range(k):
        a, b = b, a - b
    a[0], b[1] = 100, 50
    return first, second, a, b


@case(*LEVELS)
def two_levels_that_begin_as_one_array(x: Any, k: int) -> Any:
    a = b = x
    for _ in range(k):
        a, b = b, a - b + 1
    a[0] = 100
    return a, b


@case(*LEVELS)
def two_levels_of_which_the_old_one_is_written(x: Any, k: int) -> Any:
    a, b = x, x * 2
    for _ in range(k):
        a[1] += 1
        a, b = b, a - b
    return a, b


@case(*LEVELS)
def three_levels_of_which_one_is_written(x: Any, k: int) -> Any:
    a, b, c = x, x * 2, x + 1
    for i in range(k):
        a, b, c = b, c, a - b + c / 2
        a[0] = i
    b[2] = 7
    return a, b, c


@case(*LEVELS)
def another_name_for_the_level_that_is_given_up(x: Any, k: int) -> Any:
    a, b, c, best = x, x * 2, x + 1, x
    for _ in range(k):
        best = a
        a, b, c = b, c, a - 2 * b + c
    best[0] = 9
    return a, b, c, best


@case(*LEVELS)
def another_name_for_the_level_that_is_taken_over(x: Any, k: int) -> Any:
    a, b, best = x, x * 2, x
    for _ in range(k):
        best = b
        a, b = b, a - 2 * b
    best[0] = 9
    return a, b, best


@case(*LEVELS)
def a_view_of_the_level_that_is_taken_over(x: Any, k: int) -> Any:
    a, b, best = x, x * 2, x
    for _ in range(k):
        best = b[1:]
        a, b = b, a - 2 * b
    best[0] = 9
    return a, b, best


@case(*LEVELS)
def two_names_for_the_level_that_is_taken_over(x: Any, k: int) -> Any:
    a, b, c = x, x * 2, x * 3
    for _ in range(k):
        a[0] += 1
        a = c
        b = c
        c = a + b / 2
    a[1] = 7
    return a, b, c


@case(*LEVELS)
def levels_in_the_closure(x: Any, k: int) -> Any:
    a, b = x, x * 2

    def new():
        return a + b

    for _ in range(k):
        a, b = b, new()
    return a, b


@case(*LEVELS)
def levels_that_an_inner_loop_hands_on(x: Any, k: int) -> Any:
    a, b = x, x * 2
    for _ in range(6):
        for _ in range(k):
            a, b = b, a / 2 - b
        a, b = b, a
    b[1] = 3
    return a, b
