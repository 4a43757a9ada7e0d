"""Views in loops: those that move with an index, those of arrays that are written meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import POSITIONS, Cases, counts, matrix

programs = case = Cases()


@case(matrix)
def two_delays(a: Any) -> Any:
    prev, cur = (a[0], a[1])
    for i in range(2, 9):
        a[i] += prev - cur
        prev[0] += 1
        prev, cur = (cur, a[i])
    return (prev, cur)


@case(matrix)
def start_zero_view(a: Any) -> Any:
    prev = np.zeros(9)
    for i in range(9):
        a[i] += prev
        prev = a[i]
    prev[1] = 77
    return (prev,)


@case(matrix)
def start_zero_view_written(a: Any) -> Any:
    prev = np.zeros(9)
    for i in range(9):
        prev[0] = 5
        a[i] += prev
        prev = a[i]
    return (prev,)


@case()
def scalar_is_value(x: Any) -> Any:
    prev = x[0]
    s = 0.0
    for i in range(1, 9):
        x[i - 1] = 100
        s = s + prev
        prev = x[i]
    return (s, prev)


@case()
def scalar_is_value2(x: Any) -> Any:
    for i in range(1, 9):
        v = x[i]
        x[i] = 50
    return (v,)


@case()
def shrinking(x: Any) -> Any:
    s = 0.0
    for _i in range(8):
        x = x[1:]
        s = s * 2 + x[0] + x.sum()
        x += 1
    return (s, x)


@case()
def flipping(x: Any) -> Any:
    for _i in range(9):
        x = x[::-1]
        x[0] += 1
    return (x,)


@case(matrix)
def transposing(a: Any) -> Any:
    for _i in range(9):
        a = a.T
        a[0, 1] += 1
    return (a,)


@case(matrix)
def moving_col(a: Any) -> Any:
    p = a[:, 0]
    for j in range(1, 9):
        a[:, j] += p
        p = a[:, j]
        p[0] = 1
    p[1] = 99
    return (p,)


@case(matrix)
def moving_block(a: Any) -> Any:
    b = a[0:2, 0:2]
    for j in range(1, 8):
        b += 1
        b = a[j : j + 2, j : j + 2]
    b[:] = 50
    return (b,)


@case(matrix)
def moving_back(a: Any) -> Any:
    p = a[8]
    for j in range(7, -1, -1):
        a[j] -= p
        p = a[j, ::-1]
    return (p,)


@case(matrix)
def moving_start_other(a: Any) -> Any:
    p = a[5]
    for j in range(9):
        a[j] += p
        p = a[j]
    p[0] = 1
    return (p,)


@case(matrix)
def moving_two_arrays(a: Any) -> Any:
    copied = a.copy()
    p, q = (a[0], copied[0])
    for j in range(1, 9):
        p, q = (q, p)
        p[j] += 1
        q[0] = 2
        p, q = (a[j], copied[j])
    return (p, q, copied)


@case(matrix)
def moving_size(a: Any) -> Any:
    p = a[0, :0]
    s = 0.0
    for j in range(1, 9):
        s = s + p.sum()
        p = a[j, :j]
    return (s, p)


@case(matrix)
def row_swap(a: Any) -> Any:
    for i in range(8):
        a[i], a[i + 1] = (a[i + 1].copy(), a[i].copy())
    for i in range(8):
        a[[i, i + 1]] = a[[i + 1, i]]
    return (a,)


@case()
def augment_view(x: Any) -> Any:
    v = x[2:5]
    for i in range(9):
        v += i
    return (v,)


@case()
def augment_scalar_array(x: Any) -> Any:
    s = x[0]
    for i in range(9):
        s += x[i]
    return (s, x[0])


@case(*counts(6, 0, 1, 2, 9))
def k_last_view(x: Any, k: Any) -> Any:
    v = x[7:]
    for i in range(k):
        v = x[i : i + 2]
    v[0] = 99
    return (v.sum(),)


@case(*counts(6, 0, 1, 2, 9))
def k_last_elem(x: Any, k: Any) -> Any:
    v = x[7]
    for i in range(k):
        v = x[i]
        x[i] = 0
    return (v,)


@case(*counts(6, 0, 1, 2, 9))
def k_reverse(x: Any, k: Any) -> Any:
    u = x
    for _i in range(k):
        u = u[::-1]
    u[0] = 44
    return (u,)


@case()
def slice_obj(x: Any) -> Any:
    for i in range(8):
        s = slice(i, i + 2)
        x[s] += 1
        sl = np.s_[i:]
        x[sl] *= 1.5
    return ()


@case(matrix)
def ellipsis(a: Any) -> Any:
    for i in range(8):
        a[..., i] += a[i, ...]
        a[i : i + 1] -= 1
        a[[i, 0]] += 1
        a[i, [0, 2]] = 5
        a[:, None, i][:, 0] += 2
    return ()


@case(matrix)
def where_masks(a: Any) -> Any:
    for i in range(9):
        a[i][a[i] > 3] -= 1
        a[a[:, i] > 2, i] += 1
        a[i, :i] = np.where(a[i, :i] > 1, 0, a[i, :i])
    return (a[a > 2].sum(),)


@case(lambda: (matrix()[0], POSITIONS.copy()))
def fancy(a: Any, idx: Any) -> Any:
    s = 0.0
    for i in range(9):
        a[idx[i]] += a[i]
        s = s + a[idx, i].sum() + a[idx[:i], i].sum()
        a[idx[i], idx[-1 - i]] = i
        a[i][idx] = a[idx[i]]
    return (s,)


@case()
def rollself(x: Any) -> Any:
    for i in range(9):
        x[:] = np.roll(x, 1)
        x[i] += 1
    return ()


@case()
def stackrows(x: Any) -> Any:
    a = np.zeros((9, 9))
    for i in range(9):
        a[i] = np.roll(x, 2) * i
        a[:, i] += np.stack([x, x])[1]
    return (a,)


@case()
def concat(x: Any) -> Any:
    for _i in range(9):
        x = np.concatenate([x[1:], x[:1]])
    return (x,)


@case()
def broadcast_grow(x: Any) -> Any:
    u = np.zeros(1)
    for _i in range(9):
        u = u + x
    return (u,)


@case()
def keepdims(x: Any) -> Any:
    u = x
    for _i in range(9):
        u = u * u.sum(keepdims=True) % 7
    return (u,)
