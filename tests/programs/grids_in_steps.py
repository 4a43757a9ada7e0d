"""Grids that are stepped through time, for tests of what becomes of the steps."""

import numpy as np

__all__ = ["back_and_forth", "fields", "rows_between"]


def back_and_forth(a, b):
    for _ in range(7):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


def rows_between(a, b):
    for k in range(6):
        a[0, :] = b[1, :] * k
        b[2:-2, 1:-1] = 0.25 * (a[4:, 1:-1] + a[:-4, 1:-1]) - a[2:-2, :-2]
        b[-1, :] = a[-2, :]
        a[1:-1, :] = b[:-2, :] - b[2:, :]
        a[7, :] = b[7, :]
        a[:, 0] = 1.0


def fields(a, b):
    c = np.ones_like(a)
    for k in range(6):
        c[0, :] = k
        c[1:, :] -= 0.5 * (a[1:, :] - a[:-1, :])
        b[:, 1:] -= 0.5 * (a[:, 1:] - a[:, :-1])
        a[:-1, :-1] -= 0.7 * (b[:-1, 1:] - b[:-1, :-1] + c[1:, :-1] - c[:-1, :-1])
    b += c
