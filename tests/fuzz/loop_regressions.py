"""What random programs found in loops; each was once broken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from cases import Cases, counts, matrix

programs = case = Cases()

names = {str(n): float(n) for n in range(9)}


@case()
def a_tuple_among_the_constants_of_a_body(x: Any) -> Any:
    for i in range(9):
        x[i] += np.zeros((2, 3)).sum()
    return (x,)


@case()
def the_index_and_what_it_indexes_are_returned(x: Any) -> Any:
    for i in range(len(x)):
        x[i] += 1
    return i, x[i]


@case()
def an_index_repeats_sequences(x: Any) -> Any:
    for i in range(len(x)):
        x[i] += len("*" * i) + len([0] * i) + len((1, 2) * i)
    return ()


@case()
def an_index_becomes_text(x: Any) -> Any:
    for i in range(9):
        x[i] += names[str(i)] + names[repr(i)] + names[f"{i}"]
    return ()


@case(*counts(0, 6))
def writes_through_the_name_that_a_loop_may_rebind(x: Any, k: int) -> Any:
    u = x
    for _ in range(k):
        u = u + 1
    u[0] = 100
    return (u.sum(),)


@case(*counts(0, 6))
def writes_through_the_alias_of_a_name_that_a_loop_may_rebind(x: Any, k: int) -> Any:
    u = x.copy()
    v = u
    for _ in range(k):
        u = u * 2
    v[0] = 100
    return (u.sum(),)


@case(lambda: (np.zeros(0), 0))
def a_mistake_in_a_body_that_an_argument_keeps_from_running(x: Any, k: int) -> Any:
    for _ in range(k):
        x[0] += 1
    return (x,)


@case(lambda: (np.ones((1, 1)), 1), lambda: (np.ones((1, 1)), 0))
def a_mistake_in_the_second_iteration_that_does_not_come(a: Any, k: int) -> Any:
    best = None
    for i in range(k):
        best = 1.0 if best is None else np.maximum(best, 2.0)
        a[:, i] += best
    return (best,)


@case(*((lambda n=n: (np.ones(n), n)) for n in (1, 2)))  # type: ignore[misc]
def rows_of_which_there_is_one_at_most(x: Any, k: int) -> Any:
    greatest = 1.0
    for cell in x[k:]:
        greatest = np.maximum(greatest, cell)
    last = 3
    for j in range(1, len(x[k - 1 :])):
        last = last + x[j]
    return greatest * 1.0, last * 1.0


@case(lambda: (np.zeros((0, 0)), 1))
def an_inner_loop_of_an_empty_array(a: Any, k: int) -> Any:
    n = len(a)
    for i in range(k):
        for j in range(i, n):
            a[:, -1 - i] = j
    return ()


@case(lambda: (np.ones((2, 2)), 3))
def an_index_out_of_range_where_the_inner_loop_has_ended(a: Any, k: int) -> Any:
    n, u = len(a), a[0]
    for i in range(k):
        for j in range(n - i):
            u[j] += a[-1 - i, j]
        u = a[n - 1 - i]
    return ()


@case(lambda: (np.arange(36.0).reshape(6, 6), 0), lambda: (np.arange(36.0).reshape(6, 6), 6))
def arrays_change_places_beside_indices_that_wrap_around(a: Any, k: int) -> Any:
    n, m, copied = len(a), a.copy(), a * 2
    for i in range(k, n):
        m, copied = copied, m
        a[n - 1 - i, i], a[i - 1, -1] = a[i - 1, -1], a[n - 1 - i, i]
    return (m, copied)


@case(*counts(7, 0))
def the_last_index_of_a_loop_in_loops(x: Any, k: int) -> Any:
    n, last, u = len(x), 0, x
    for i in range(1, n):
        for j, cell in enumerate(x):
            for _ in range(k):
                last = j
            for m in range(i, n):
                u = x[m] + x + cell
    return last - 2, u


@case(*counts(0, 6))
def a_name_of_another_path(x: Any, k: int) -> Any:
    for i in range(k):
        x[i] += 1
    if len(x) > 3:
        return (x,)
    return (i,)


@case(matrix)
def indices_in_lists(a: Any) -> Any:
    for i in range(9):
        a[[i, 0]] += 1
        a[:, [i]] -= 1
        a[np.array([i, 0])] *= 2
        a[0] += np.array([i, a[0, 1]]).sum()
    return ()


@case()
def lists_of_traced_numbers_as_arguments(x: Any) -> Any:
    for i in range(9):
        x[i] += np.sum([x[j] + 1 for j in range(3)]) + np.max([x[i], x[0]])
    return (np.maximum([x[0], x[1]], 2), np.mean([x, x], axis=0))


@case()
def an_inner_loop_that_may_not_run_rebinds_an_array(x: Any) -> Any:
    u = x * 2
    for i in range(9):
        for j in range(i):
            u = u + x[j]
    return (u,)


@case()
def an_array_is_written_that_an_inner_loop_may_have_rebound(x: Any) -> Any:
    u = x + 1
    for i in range(9):
        for _ in range(i):
            u = x.copy()
        u[i - 1] += 1
    return (u,)


@case()
def a_view_of_an_array_of_the_last_iteration(x: Any) -> Any:
    for i in range(9):
        m = np.outer(x, x + i)
        column = m[:, -1]
    column[0] = 50
    return m, column


@case()
def an_attribute_that_the_body_adds(x: Any) -> Any:
    found = SimpleNamespace()
    for i in range(len(x)):
        found.last = x[i]
    return (found.last,)


@case(*((lambda k=k: (np.zeros(4), np.ones((4, 4)), k)) for k in (3, 5)))  # type: ignore[misc]
def an_index_out_of_range_in_an_inner_loop(x: Any, a: Any, k: int) -> Any:
    u, v = np.zeros_like(x), np.zeros_like(x)
    for i in range(1, len(x)):
        for j in range(k):
            v[0] += v[: len(x) - i] @ u[i:] + 0
            u = a[j]
    return (u,)


@case(lambda: (np.ones(5), np.arange(25.0).reshape(5, 5)), lambda: (np.ones(2), np.ones((2, 2))))
def names_of_one_view_after_loops(x: Any, a: Any) -> Any:
    u, v = x, np.zeros_like(x)
    for i in range(len(x)):
        v = a[:, -1 - i] * 0.5
        u = a[:, i]
        for _ in range(len(x) - 1, 0, -2):
            u, v = v, u
            u = v
    return (u, v)


@case(*((lambda n=n: (np.ones((n, n)), np.zeros(n), np.ones(n), n)) for n in (2, 1, 4, 5)))  # type: ignore[misc]
def an_index_out_of_range_after_the_only_step(a: Any, x: Any, y: Any, n: int) -> Any:
    for k in range(0, n, 2):
        x[k] += a[k, 0]
        x = y + a[k]
    for k in range(n - 1, -1, -3):
        x[k] += a[k, 0]
        x = y + a[k]
    return (x,)


@case(lambda: (np.zeros(3, "i4"), np.array([2**40, 1, 2])), lambda: (np.zeros(3, "i4"), np.arange(3)))
def a_number_that_the_cell_cannot_hold(x: Any, y: Any) -> Any:
    for i in range(3):
        x[i] = y.sum()
    return ()


@case(*((lambda k=k: (np.ones((4, 4)), np.array([2, 3, 0, k]))) for k in (0, 1)))  # type: ignore[misc]
def an_index_surely_out_of_range_in_an_inner_loop_that_may_not_run(a: Any, counts: Any) -> Any:
    for i in range(len(counts) - 1, 0, -2):
        for j in range(counts[i]):
            a[-1 - j, i + 1] += 1.0
    return ()


@case(*((lambda n=n: (np.ones((n, n)), np.zeros(n), n)) for n in (5, 1, 0, 2)))  # type: ignore[misc]
def an_index_out_of_range_in_an_inner_loop_that_never_runs(a: Any, x: Any, n: int) -> Any:
    for k in range(n):
        for j in range(k + 1, n):
            x[j] += a[k, j]
    return ()
