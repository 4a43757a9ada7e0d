"""`@jit(branches=True)`: `if` and `while` on computed values, as in plain Python; docs/control.md."""

from __future__ import annotations

import ast
import importlib.util
from copy import deepcopy

import numpy as np
import pytest
from harness import assert_same

import arrayjit
from arrayjit import ConcretizationError, UnsupportedError
from arrayjit.tracer.loops.repeating import Repeating
from arrayjit.tracer.source.conditions import rewritten

TARGETS = ("interp", "sync_llvm")
NOISE = np.random.default_rng(0).uniform(-1.0, 1.0, 60)
GRID = np.arange(20).reshape(4, 5)


def same_as_python(function, *calls, compiles=1):
    """One jitted function per target gives what Python gives for each of the calls."""
    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target, branches=True)
        for args in calls:
            plain, traced = deepcopy(args), deepcopy(args)
            assert_same(jitted(*traced), function(*plain))
            assert_same(traced, plain)
        assert jitted.stats().compiles == compiles


def refused(function, *args, error=UnsupportedError):
    """The message of the error with which a function is refused while tracing."""
    with pytest.raises(error) as caught:
        arrayjit.jit(function, branches=True)(*args)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert caught.value.fix
    return str(caught.value)


def imported(file, text):
    """A module of this text, which pytest does not rewrite."""
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# statements


def largest(x):
    most, where = x[0], 0
    for i in range(len(x)):
        if x[i] > most:
            most = x[i]
            where = i
    return most, where


def doubled_above(x, limit):
    out, count = np.empty_like(x), 0
    for i in range(len(x)):
        if x[i] > limit:
            out[count] = x[i] * 2
            count += 1
    return out[:count].copy(), count


def levels(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        if x[i] < -0.5:
            out[i] = 0.0
            continue
        elif x[i] > 0.5:
            out[i] = 1.0
        else:
            out[i] = x[i]
        out[i] += 1.0
    return out


def insertion_sort(x):
    x = x.copy()
    for i in range(1, len(x)):
        value, j = x[i], i - 1
        while j >= 0 and x[j] > value:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = value
    return x


def collatz_steps(n):
    out = np.zeros(n, np.int64)
    for i in range(1, n):
        value, steps = i, 0
        while value != 1:
            if value % 2 == 0:
                value //= 2
            else:
                value = 3 * value + 1
            steps += 1
        out[i] = steps
    return out


def mean_of_positive(x):
    total, count = 0.0, 0
    for value in x:
        if not value > 0:
            continue
        total += value
        count += 1
    return total / count


@pytest.mark.parametrize("function", [largest, levels, insertion_sort, mean_of_positive])
def test_sides_and_loops_are_decided_in_the_run(function):
    same_as_python(function, (NOISE,), (NOISE[::-1].copy(),), (np.abs(NOISE),))


def test_sides_store_and_count():
    same_as_python(doubled_above, (NOISE, 0.25), (NOISE, 2.0))


def test_loops_inside_loops_end_by_themselves():
    same_as_python(collatz_steps, (30,))


# what leaves a loop or a function


def first_place(x, value):
    for i in range(len(x)):
        if x[i] == value:
            return i
    return -1


def first_place_in_a_grid(x, value):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] == value:
                return i, j
    return -1, -1


def sum_until(x, limit):
    total = 0.0
    for value in x:
        if value > limit:
            break
        total += value
    else:
        total = -total
    return total


def square_root(a):
    x = a
    while True:
        better = (x + a / x) / 2
        if abs(better - x) < 1e-12:
            break
        x = better
    return better


def sign(value):
    if value > 0:
        return 1.0
    if value < 0:
        return -1.0
    return 0.0


def signs(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = sign(x[i])
    return out


def place_and_value(x):
    for i, value in enumerate(x):
        if value > 0.9:
            found = i * 10
            break
    else:
        found = -5
    return found


def test_return_leaves_a_loop():
    same_as_python(first_place, (np.arange(50), 37), (np.arange(50), 50))


def test_return_leaves_several_loops():
    same_as_python(first_place_in_a_grid, (GRID, 13), (GRID, 100))


def test_break_passes_by_what_follows_else():
    same_as_python(sum_until, (NOISE, 0.5), (NOISE, 2.0))


def test_a_variable_may_get_its_value_on_the_way_out_of_a_loop():
    same_as_python(place_and_value, (NOISE,), (NOISE / 2,))


def test_a_loop_that_surely_runs_gives_variables_their_values():
    def function(x):
        change = np.inf
        while change > 1e-3:
            step = x / 2
            x = x - step
            change = np.abs(step).max()
        for k in range(5, -1, -1):
            if 0.01 < np.abs(x[k]) * 1000 < 0.2:
                break
        return step, k

    same_as_python(function, (NOISE,), (np.ones(60),))


def test_a_condition_on_float_arguments_is_decided_in_the_run():
    same_as_python(square_root, (2.0,), (3.0,), (5.0,))


def test_functions_that_are_called_return_from_their_sides():
    same_as_python(signs, (NOISE,))


def place_from_behind(x, y, limit):
    for k in range(len(x) - 1, -1, -2):
        if x[k] > limit:
            return k
    return -1


def first_that_is_larger(x, y, limit):
    for one, other in zip(x, y, strict=True):
        if one > other + limit:
            return one
    return x[0]


def last_below(x, y, limit):
    for value in reversed(x):
        if value < limit:
            return value
    return y[0]


@pytest.mark.parametrize("function", [place_from_behind, first_that_is_larger, last_below])
def test_loops_of_many_kinds_are_left(function):
    same_as_python(function, (NOISE, NOISE - 1, 0.5), (NOISE, NOISE + 0.0, -2.0), (NOISE, NOISE + 0.0, 2.0))


def place_of_the_last_step(x, limit):
    for k in range(20):
        if x[k] > limit:
            break
    return k


def smoothed(x, limit):
    a, b, k = x.copy(), x.copy(), 0
    while True:
        b[1:-1] = (a[:-2] + a[2:]) / 2
        if abs(b - a).max() < limit:
            return b, k
        a[:] = b
        k += 1


def test_the_index_of_a_loop_that_surely_runs_is_there_after_it():
    same_as_python(place_of_the_last_step, (NOISE, 0.5), (NOISE, 2.0))


def test_an_endless_loop_ends_by_its_return_alone():
    same_as_python(smoothed, (NOISE, 0.125), (NOISE, 2.0))


# other statements in sides


def chosen_by_match(x, order):
    total = 0.0
    for value in x:
        match order:
            case 1:
                if value > 0:
                    total += value
            case (factor, _) | [factor]:
                step = factor * 2.0
                if value < step:
                    total -= step
            case other:
                total += other
    return total


def left_by_match(x, order):
    if x[0] > 0:
        match order:
            case 1:
                return x[1]
            case _:
                pass
        x = x + 1
    return x[2]


def steps_from_match(x, order):
    total = x[0]
    for value in x:
        if value > -0.5:
            match order:
                case 1:
                    break
                case 2:
                    if value > 0.5:
                        return total, value
                case _:
                    continue
            total += 1.0
        total += value
    return total, x[0]


def with_imports(x):
    if x[0] > 0:
        import math

        found = math.sqrt(x[0])
    else:
        from math import pi as found
    return found


def test_blocks_of_match_have_conditions():
    for order in (1, 3.0, (0.25, 1), [0.5]):
        same_as_python(chosen_by_match, (NOISE, order))


def test_match_is_left():
    same_as_python(left_by_match, (NOISE, 1), (-NOISE, 1), (NOISE, 2), (-NOISE, 2), compiles=2)
    for order in (1, 2, 3):
        same_as_python(steps_from_match, (NOISE, order), (NOISE - 2, order), (NOISE[::-1].copy(), order))


def test_sides_import():
    same_as_python(with_imports, (NOISE,), (-NOISE,))


# conditions


def between(x):
    count = 0
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] < x[i + 1] * 2 < 1:
            count += 1
    return count


def test_cells_stand_between_comparisons():
    same_as_python(between, (NOISE,))


def test_what_comes_later_is_looked_at_only_if_it_matters():
    def function(x, k):
        steps = 0
        while (k[0] < len(x) and x[k[0]] > 0) or steps < 2:
            k[0] += 1
            steps += 1
        return steps, x[0] if not (x[0] > 0 and x[1] > 0) else x[1], 0 < steps < 5

    same_as_python(function, (np.array([1.0, 1.0, -1.0, 1.0]), np.array([0])), (np.ones(4), np.array([2])))


def test_a_condition_that_is_known_takes_one_side():
    def function(x, order):
        if order == 2:
            return x[:2]
        if x[0] > 0:
            x = x + 1
        return x

    same_as_python(function, (NOISE, 2), (NOISE, 3), compiles=2)


RAISING = """
def function(x):
    for value in x:
        if value < 0:
            raise ValueError("negative")
    assert x[0] < 2, "large"
    return x.sum()
"""


def test_sides_raise(tmp_path):
    function = imported(tmp_path / "raising.py", RAISING).function
    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target, branches=True)
        assert jitted(np.ones(3)) == 3.0
        with pytest.raises(ValueError, match="negative"):
            jitted(np.array([1.0, -1.0, 1.0]))
        with pytest.raises(AssertionError, match="large"):
            jitted(np.array([2.0, 1.0, 1.0]))


def test_mistakes_in_sides_point_at_their_lines():
    def function(x, k):
        if x[0] > 0:
            return x[k[0]]
        return x[0]

    jitted = arrayjit.jit(function, branches=True)
    assert jitted(-np.ones(3), np.array([7])) == -1.0
    with pytest.raises(IndexError) as caught:
        jitted(np.ones(3), np.array([7]))
    assert caught.value.loc.line == function.__code__.co_firstlineno + 2


# where functions stand


class Filter:
    __limit = 0.25

    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        count = 0
        for value in x:
            if value * self.factor > self.__limit:
                count += 1
        return count


def test_methods_and_closures():
    offset = 0.125

    def function(x):
        def above(value):
            if value > offset:
                return value
            return offset

        total = 0.0
        for value in x:
            total += above(value)
        return total

    same_as_python(function, (NOISE,))
    same_as_python(Filter(2.0).apply, (NOISE,))


def test_lines_of_a_function_that_need_no_condition_stay_as_they_are():
    def function(x):
        parts = []
        for k in range(3):
            if k != 1:
                parts.append(x * k)
        if x[0] > 0:
            x = -x
        return parts, x

    same_as_python(function, (np.ones(3),), (-np.ones(3),))


# refusals


def test_without_the_option_such_conditions_are_refused():
    with pytest.raises(ConcretizationError):
        arrayjit.jit(largest)(NOISE)


def test_the_option_of_the_outermost_function_counts():
    def outer(x):
        return inner(x[0]) + 1.0

    inner = arrayjit.jit(sign)
    assert arrayjit.jit(outer, branches=True)(-np.ones(3)) == 0.0
    inner = arrayjit.jit(sign, branches=True)
    with pytest.raises(ConcretizationError):
        arrayjit.jit(outer)(np.ones(3))


def test_without_its_source_a_function_stays_as_it_is(tmp_path):
    names = {}
    exec(compile("def function(x):\n    return x if x[0] > 0 else -x\n", "<nowhere>", "exec"), names)
    with pytest.raises(ConcretizationError):
        arrayjit.jit(names["function"], branches=True)(np.ones(3))


@pytest.mark.parametrize(
    ("old", "new"), [("x[1]", "-x[2]"), ("> 0", "> 1"), ("x[0]\n", "x[0]; y = x\n"), ("> 0", "> 0.0")]
)
def test_a_file_that_has_changed_since_its_import_is_not_that_function_s(tmp_path, old, new):
    text = "def function(x):\n    if x[0] > 0:\n        return x[0]\n    return x[1]\n"
    function = imported(tmp_path / "changing.py", text).function
    (tmp_path / "changing.py").write_text(text.replace(old, new))
    with pytest.raises(ConcretizationError):
        arrayjit.jit(function, branches=True)(np.ones(3))


def test_a_variable_without_a_value_on_one_way_is_refused():
    def function(x):
        if x[0] > 0:
            found = 1.0
        return found

    assert "found" in refused(function, np.ones(3))


def last_step(x):
    for step in range(2000):
        half = x / (2 + step)
        x = x - half
        if np.all(x < 0.01):
            break
    if step == 1999:
        raise ValueError("too far")
    return half, step


def test_a_loop_that_surely_runs_gives_its_variables_values():
    same_as_python(last_step, (NOISE[:3] + 1,), (np.ones(3) * 8,))


def series(x):
    total, term, n = 1.0, 1.0, 0
    while True:
        term = term * x[0] / (n + 1)
        before = total
        total += term
        if before == total:
            return total
        n += 1


def test_nothing_follows_an_endless_loop_that_returns():
    same_as_python(series, (NOISE[:1],), (np.ones(1),))


def bounded(x, low):
    count = 0
    for i in range(len(x)):
        if low < x[i] <= x[-1 - i] < x.max():
            count += 1
    return count


def test_what_stands_between_comparisons_is_looked_up():
    same_as_python(bounded, (NOISE, -0.5), (NOISE[::-1].copy(), 0.0))


def marked(x):
    table, place, k = np.zeros(3), 0, 0
    for i in range(3):
        if table[i] > 1:
            place = i
    while x[k] > 0:
        table[place] += x[k]
        k += 1
    return table


def test_known_numbers_that_have_decided_are_written_in_a_loop():
    same_as_python(marked, (np.array([2.0, 3.0, -1.0]),))


def bisected(x):
    low, middle = -1.0, 0.5
    while x[0] * middle < 2.0:
        low = middle
        middle = middle * 2 + 1.0 / middle * x[1]
    return low, middle


def test_numbers_of_python_join_those_of_numpy_in_any_iteration():
    same_as_python(bisected, (np.array([0.5, 0.1]),), (np.array([0.1, 0.2]),))


def test_functions_that_call_super_stay_as_they_are():
    class Inner(Filter):
        def apply(self, x):
            if x[0] > super().apply(x):
                return x[0]
            return x[1]

    message = refused(Inner(2.0).apply, np.ones(3), error=ConcretizationError)
    assert "branches=True leaves this line as it is: the function calls super()" in message


def test_the_index_of_a_loop_that_may_not_run_is_refused():
    def function(x, n):
        for i in range(n):
            if x[i] > 2:
                break
        return i

    assert "local variable 'i'" in refused(function, np.ones(3), 2)


def test_loops_over_lists_are_not_left():
    def function(x, y):
        for array in [x, y]:
            if array[0] > 0:
                return array
        return x

    assert "this loop over a list" in refused(function, np.ones(3), np.ones(3))


def test_sides_that_do_not_agree_are_refused_in_words_of_statements():
    def function(x):
        y = x
        if x[0] > 0:
            y = x[:2].copy()
        return y * 2

    message = refused(function, np.ones(3), error=arrayjit.DTypeError)
    assert "y of this condition is an array of float64 and shape (2,) from one side" in message
    assert "arrayjit.cond" not in message


def test_lists_that_sides_change_are_refused():
    def function(x):
        parts = []
        if x[0] > 0:
            parts.append(x)
        return x * len(parts)

    assert "this condition changes parts[0]" in refused(function, np.ones(3))


def test_sides_have_the_name_of_their_function():
    def function(x):
        seen = {}
        for value in x:
            if value > 2:
                seen["value"] = 1
                return value
        return x[0]

    message = refused(function, np.ones(3))
    assert "this condition changes seen['value']" in message
    assert " in function" in message


def leaves_a_context(x):
    with np.errstate(all="ignore"):
        if x[0] > 0:
            return x
    return -x


def continues_from_a_context(x):
    total = 0.0
    for value in x:
        if value > 0:
            with np.errstate(all="ignore"):
                continue
        total += value
    return total


@pytest.mark.parametrize("function", [leaves_a_context, continues_from_a_context])
def test_statements_with_contexts_are_not_left(function):
    assert "statement is left where a condition decides" in refused(
        function, np.ones(3), error=ConcretizationError
    )


def read_after_a_side(x):
    limit = 1.0

    def above():
        return x > limit

    if x[0] > 0:
        limit = 2.0
    return above()


def read_in_a_side(x):
    limit = 1.0
    above = lambda: x > limit  # noqa: E731
    if x[0] > 0:
        limit = 2.0
        return above()
    return x < limit


def read_in_a_loop(x):
    step, total = 1.0, 0.0

    def doubled():
        return step * 2

    while step < x[0]:
        step += 1.0
        total += doubled()
    return total


@pytest.mark.parametrize("function", [read_after_a_side, read_in_a_side, read_in_a_loop])
def test_what_inner_functions_read_does_not_change_in_a_side(function):
    assert "an inner function reads" in refused(function, np.ones(3), error=ConcretizationError)


def test_functions_that_are_called_where_they_stand_read_what_sides_change():
    def function(x):
        scale, place = 1.0, 0
        for i in range(len(x)):
            if x[i] > 0:
                scale += 1.0
                place = max(range(4), key=lambda j: x[j] * scale)
        return place, sum(value * scale for value in x[:3])

    same_as_python(function, (NOISE,), (-NOISE,))


@pytest.mark.parametrize("leave", ["continue", "return total"])
def test_what_follows_conditions_stands_once(leave):
    """However many conditions may be left on one of two ways that go on."""

    def size(count):
        one = "  if x[k]:\n   total += 1\n   if x[k + 1]: LEAVE\n  total += 1\n".replace("LEAVE", leave)
        text = f"def function(x):\n total = 0\n for k in range(9):\n{one * count} return total\n"
        made = rewritten(ast.parse(text).body[0], range(1, text.count("\n") + 1))
        return sum(1 for _ in ast.walk(made))

    assert size(12) <= 2.5 * size(6)


def test_loops_in_loops_are_tried_out_once(monkeypatch):
    """What a loop carries, and of which kinds, is found out in the first record of the loop around it."""
    attempts = []
    plain = Repeating.attempt
    monkeypatch.setattr(Repeating, "attempt", lambda *given: attempts.append(1) or plain(*given))

    def function(x):
        total = 0.0
        for value in x:
            a = value
            while a > 0.1:
                b = a
                while b > 0.1:
                    c = 1.0
                    while c > b:
                        c = c * value / (value + 1)
                    b = b - c
                    total += c
                a = a * 0.5 + 0 / value
        return total

    same_as_python(function, (np.abs(NOISE[:8]),))
    assert len(attempts) <= len(TARGETS) * 30
