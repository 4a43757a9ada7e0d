"""Programs with a mistake each. `# here` marks the line that the message must name."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import arrayjit


@dataclass(frozen=True)
class Mistake:
    """A function that a call of it with these arguments shows to be wrong."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any]


MISTAKES: dict[str, Mistake] = {}


def x6() -> np.ndarray:
    return np.arange(6.0) - 2


def n6() -> np.ndarray:
    return np.array([5, 0, 3, 1, 4, 2])


def x34() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)


def called_with(*makers: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function, to be called with these arguments; functions make theirs anew."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def arguments() -> tuple[Any, ...]:
            return tuple(maker() if callable(maker) else maker for maker in makers)

        MISTAKES[function.__name__] = Mistake(function, arguments, options)
        return function

    return register


# ---- indices, slices, masks --------------------------------------------------------------------------


@called_with(x6)
def index_beyond_the_end(x):
    return x[6]  # here


@called_with(x6)
def index_beyond_the_end_in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i + 1]  # here
    return total


@called_with(x6, 6)
def index_argument_beyond_the_end(x, k):
    return x[k]  # here


@called_with(x6, lambda: np.array([0, 7]))
def index_array_beyond_the_end(x, positions):
    return x[positions].sum()  # here


@called_with(x6, lambda: np.array([0, 7]))
def take_beyond_the_end(x, positions):
    return np.take(x, positions)  # here


@called_with(x6, lambda: np.array([0, -7]))
def scatter_before_the_start(x, positions):
    x[positions] = 0.0  # here
    return x


@called_with(x34)
def too_many_indices(a):
    return a[0, 1, 2]  # here


@called_with(x6)
def float_as_index(x):
    return x[len(x) / 2]  # here


@called_with(x6, x6)
def floats_as_positions(x, y):
    x[y] = 0.0  # here


@called_with(x6, 0)
def slice_without_a_step(x, step):
    return x[::step]  # here


@called_with(x6)
def mask_of_another_shape(x):
    x[x[:-1] > 0] = 0.0  # here
    return x


@called_with(x34)
def mask_of_another_axis(a):
    return a[a[0] > 1].sum()  # here


@called_with(x6)
def values_for_a_mask_that_do_not_fit(x):
    x[x > 0] = np.array([1.0, 2.0])  # here
    return x


@called_with(x6, lambda: np.array([0, 0, 2]))
def scatter_of_too_many_values(x, positions):
    x[positions] = x[:4]  # here
    return x


@called_with(x6, n6)
def scatter_of_text(x, positions):
    x[positions] = "text"  # here
    return x


@called_with(x34)
def filling_with_a_row(a):
    a.fill(a[1])  # here


@called_with(x6)
def assignment_of_another_shape(x):
    x[1:4] = x[:2]  # here
    return x


# ---- loops -------------------------------------------------------------------------------------------


@called_with(x6)
def arrays_to_join_that_are_in_no_list(x):
    return np.concatenate(x, x)  # here


@called_with(x6)
def list_that_grows_at_its_front_in_a_long_loop(x):
    history = []
    for i in range(5000):
        x = x * 0.5 + i
        history.insert(0, x)  # here
    return history[0]


@called_with(x6)
def array_that_grows_by_more_each_time_in_a_long_loop(x):
    for i in range(5000):  # here
        x = np.concatenate((x, x[: i + 1]))
    return x


@called_with(x6)
def index_that_decides_in_a_long_loop(x):
    for i in range(5000):
        if i * i > 50:  # here
            x = x + i
    return x


@called_with(x6)
def break_in_a_long_loop(x):
    for i in range(5000):
        x = x * 0.5
        if i * i == 4000:  # here
            break
    return x


@called_with(x6)
def break_where_a_sum_is_small(x):
    for _ in range(50):
        x = x * 0.5
        if abs(x).sum() < 1e-3:  # here
            break
    return x


@called_with(x6)
def return_out_of_a_loop(x):
    for i in range(50):
        if x[i % 6] > 3:  # here
            return i
    return -1


@called_with(x6)
def list_index_in_a_long_loop(x):
    weights = [0.5, 0.25, 0.125]
    for i in range(5000):
        x = x * weights[i % 3]  # here
    return x


@called_with(x6)
def key_from_an_index_in_a_long_loop(x):
    parts = {f"part{k}": k for k in range(5000)}
    for i in range(5000):
        x = x + parts[f"part{i}"]  # here
    return x


@called_with(x6)
def dict_key_from_an_index_in_a_long_loop(x):
    parts = {k: k * 0.5 for k in range(5000)}
    for i in range(5000):
        x = x + parts[i]  # here
    return x


@called_with(x6)
def generator_in_a_long_loop(x):
    halves = (0.5**k for k in range(5000))
    for _ in range(5000):  # here
        x = x + next(halves)
    return x


@called_with(x6)
def recursion_until_a_value_is_small(x):
    def halved(y):
        return y if y[0] * y[0] < 1 else halved(y / 2)  # here

    return halved(x)


@called_with(x6)
def explicit_range_that_needs_its_index(x):
    for i in arrayjit.range(10):
        x = x + [1.0, 2.0][i % 2]  # here
    return x


@called_with(x6, n6)
def loop_over_data_that_must_be_unrolled(x, n):
    parts = []
    for i in range(n[0]):  # here
        parts.append(x[i])
    return parts


@called_with(x6, n6)
def value_of_another_kind_where_the_loop_may_not_run(x, n):
    best = None
    for i in range(n[0]):  # here
        best = x[i]
    return best


@called_with(x6, lambda: np.zeros(6, int))
def array_of_no_axes_that_becomes_a_number(x, n):
    total = np.where(x[0] > 0, x[0], 0.0)
    for i in range(n[0]):  # here
        total = total * 0.5 + x[i]
    return total


@called_with(x6, lambda: np.zeros(6, int))
def name_of_a_loop_that_did_not_run(x, n):
    for i in range(n[0]):  # here
        last = x[i] * 2
    return last


@called_with(x6)
def range_of_a_float(x):
    for i in range(len(x) / 2):  # here
        x[i] = 0.0
    return x


@called_with(x6)
def range_of_an_element_that_is_a_float(x):
    total = 0.0
    for i in range(x[3]):  # here
        total += x[i]
    return total


@called_with(x6)
def range_of_an_array(x):
    for i in range(x):  # here
        x[i] = 0.0
    return x


@called_with(x6)
def range_without_a_step(x):
    for i in range(0, 6, 0):  # here
        x[i] = 0.0
    return x


@called_with(x6, x6)
def zip_of_arrays_of_different_length(x, y):
    total = 0.0
    for a, b in zip(x, y[1:], strict=True):  # here
        total += a * b
    return total


# ---- conditions --------------------------------------------------------------------------------------


@called_with(x6)
def if_on_an_element(x):
    if x[0] > 0:  # noqa: SIM108  # here
        y = x * 2
    else:
        y = x - 1
    return y


@called_with(x6)
def if_after_a_long_sum(x):
    total = 0
    for _ in range(500):
        total += x[0]
    if total > 0:  # here
        x[0] = 1.0
        x[1] = total
    return x


@called_with(x6)
def if_on_an_array(x):
    if x > 0:  # here
        x = -x
    return x


@called_with(x6)
def if_with_statements(x):
    if x.sum() > 0 and not x[0] > 3:  # here
        x[0] = 1.0
        x[1] = 2.0
    return x


@called_with(x6)
def if_that_counts(x):
    count = 0
    for i in range(6):
        if x[i] > 0:  # here
            count += 1
    return count


@called_with(x6)
def if_on_an_element_that_is_written(x):
    for i in range(1, 6):
        if x[i] > 3:  # here
            x[i] = 3
        elif x[i] < x[i - 1]:
            x[i] = x[i - 1]
        else:
            x[i] = 0
    return x


def halved(x):
    x /= 2
    return x


@called_with(x6)
def if_that_calls_what_may_write(x):
    if x.sum() > 0:  # here
        x = halved(x)
    return x


@called_with(x6)
def if_that_assigns_two_names(x):
    best, where = x[0], 0
    for i in range(1, 6):
        if x[i] > best:  # here
            doubled = 2 * x[i]
            best, where = doubled / 2, i
    return best, where


@called_with(x6)
def if_with_two_sides(x):
    count = 0
    for i in range(6):
        if x[i] > 0:  # here
            value = np.sqrt(x[i])
            count += 1
        else:
            value = 0.0
        x[i] = value
    return count


@called_with(x6)
def if_whose_sides_change_what_they_find(x):
    low, high, found = 0.0, 0.0, False
    for i in range(6):
        if x[i] > 0:  # here
            high += 1 / x[i]
            if i == 3:
                found = True
        else:
            high -= 1
            found = False
    return low, high, found


@called_with(x6)
def if_whose_sides_read_what_they_have_made(x):
    if x.sum() > 0:  # here
        scale = x.max()
        y = x / scale
    else:
        scale = 1.0
        y = x
    return y, scale


@called_with(x6)
def continue_where_an_element_is_zero(x):
    total = 0.0
    for i in range(6):
        if x[i] == 0:  # here
            continue
        total += 1 / x[i]
    return total


@called_with(x6)
def continue_after_counting(x):
    total, left_out = 0.0, 0
    for i in range(6):
        if x[i] == 0:  # here
            left_out += 1
            continue
        total += 1 / x[i]
    return total, left_out


@called_with(x6)
def if_with_a_loop_inside(x):
    y = 0.0
    for i in range(6):
        if x[i] < 0:  # here
            root = 0.0
        else:
            half = x[i]
            for j in range(3):
                half = half / (j + 1)
            root = half
        y += root
    return y


@called_with(x6)
def if_on_a_position_that_may_not_be_there(x):
    places = x.astype(int)
    for i in range(6):
        if 0 <= places[i] < 6:  # here
            x[places[i]] = 0.0
    return x


@called_with(x6)
def conditional_expression_of_a_cell(x):
    for i in range(6):
        x[i] = x[i] if x[i] > 0 else 0.0  # here
    return x


@called_with(x6)
def return_of_a_cell_that_may_not_be_there(x):
    k = np.searchsorted(np.sort(x), 3.0)
    if k < 6:  # here
        return x[k]
    return np.inf


@called_with(x6)
def return_on_a_condition(x):
    if x.sum() > 0:  # here
        return x
    return -x


@called_with(x6)
def return_on_several_conditions(x):
    if x.sum() < 0 and x[0] < 0:  # here
        return 0.0
    elif x.max() == 0:
        return 1.0
    if x.min() == 0:
        return 2.0
    return x.sum() / x.max()


@called_with(x6)
def return_of_two_results_on_a_condition(x):
    if x.max() == 0:  # here
        return x, 0.0
    return x / x.max(), x.max()


@called_with(x6)
def return_before_other_statements(x):
    if x.max() == 0:  # here
        return x
    x = x / x.max()
    return x - x.mean()


@called_with(x6)
def return_of_two_results_before_other_statements(x):
    if x.max() == 0:  # here
        return x, 0.0
    x = x / x.max()
    return x, x.mean()


@called_with(x6)
def conditional_expression(x):
    return np.sqrt(x) if x.min() >= 0 else np.zeros(6)  # here


@called_with(x6)
def conditional_expression_for_what_has_no_cells(x):
    found = np.flatnonzero(x > 2)
    return found.max() if found.size else -1  # here


@called_with(x6)
def while_on_a_residual(x):
    change, steps = 1.0, 0
    while change > 1e-6 and steps < 100:  # here
        y = 0.5 * (x + 1)
        change = np.abs(y - x).max()
        x = y
        steps += 1
    return x, steps


@called_with(x6)
def while_whose_last_step_is_read(x):
    change = np.inf
    while change > 1e-6:  # here
        for i in range(6):
            half = x[i] / 2
            x[i] = half
        step = x / 2
        change = np.abs(step).max()
    return x + step


@called_with(x6)
def while_at_a_position_that_may_not_be_there(x):
    k = 0
    while k < 6 and x[k] < 9:  # here
        k += 1
    return k


@called_with(x6)
def break_out_of_a_range_that_the_body_changes(x):
    count = 6
    for k in range(1, count):
        if x[k] > 3:  # here
            count = k
            break
    return count


@called_with(x6)
def break_before_the_step(x):
    for k in range(5, -1, -1):
        slope = 2 * x[k]
        if abs(slope) < 1e-9:  # here
            break
        x[k] -= 1 / slope
    return x, k


@called_with(x6)
def return_of_what_the_loop_finds(x):
    for i in range(1, 6):
        rise = x[i] - x[i - 1]
        if rise > 3:  # here
            return rise / 2
    return 0.0


@called_with(x6)
def while_on_an_array(x):
    while x > 1:  # here
        x = x / 2
    return x


@called_with(x6)
def while_without_end(x):
    while True:
        x = x / 2
        if x.max() < 1e-3:  # here
            break
    return x


@called_with(x6)
def chained_comparison(x):
    inside = 0 < x.mean() < 1  # here
    return inside


@called_with(x6)
def assertion_on_values(x):
    assert np.isfinite(x).all()  # here
    return x


@called_with(x6)
def maximum_of_arrays(x):
    return max(x, x[::-1])  # here


@called_with(x6)
def asked_whether_an_array_has_a_number(x):
    return 2.0 in x  # here


@called_with(x6)
def chosen_by_whether_an_array_lacks_a_number(x):
    if 2.0 not in x:  # here
        x = x + 1
    return x


@called_with(x6)
def multiplied_by_a_function_that_knows_no_traced_arrays(x):
    return np.polynomial.polynomial.polymul(x, x)  # here


@called_with(x6)
def sorted_array(x):
    return sorted(x)  # here


@called_with(x6)
def comprehension_with_a_condition(x):
    return sum([v for v in x if v > 0])  # here


# ---- numbers -----------------------------------------------------------------------------------------


@called_with(x6)
def float_of_an_array(x):
    return float(x)  # here


@called_with(x6)
def int_of_an_array(x):
    return int(x * 2)  # here


@called_with(x6)
def math_of_an_array(x):
    return math.sqrt(x)  # here


@called_with(x6)
def math_outside_its_domain(x):
    return math.sqrt(x[0])  # here


@called_with(x6)
def int_of_nan(x):
    return int(x[0] * np.nan)  # here


@called_with(3, 0)
def division_of_python_numbers(a, b):
    return a / b  # here


@called_with(2**40, 2**30)
def python_integer_beyond_64_bits(a, b):
    return a * b  # here


@called_with(x6)
def constant_beyond_its_type(x):
    return x.astype(np.uint8) + 300  # here


@called_with(n6)
def element_as_a_list_index(n):
    return ["a", "b", "c"][n[1]]  # here


@called_with(x6)
def element_as_a_key(x):
    return {x[0]: 1}  # here


@called_with(x6)
def element_as_text(x):
    return f"{x[0]:.3f}"  # here


@called_with(n6)
def size_out_of_an_array(n):
    return np.zeros(n[0]) + 1  # here


@called_with(x6)
def largest_of_two_types(x):
    return max(x[0], x.astype(np.float32)[1])  # here


# ---- cond and while_loop -----------------------------------------------------------------------------


@called_with(x6)
def sides_of_different_dtype(x):
    return arrayjit.cond(x[0] > 0, lambda: x, lambda: x.astype(np.float32))  # here


@called_with(x6)
def sides_of_different_shape(x):
    return arrayjit.cond(x[0] > 0, lambda: {"y": x}, lambda: {"y": x[1:]})  # here


@called_with(x6)
def sides_of_different_structure(x):
    return arrayjit.cond(x[0] > 0, lambda: (x, 1), lambda: x)  # here


@called_with(x6)
def sides_that_make_objects(x):
    class Sum:
        def __init__(self, total):
            self.total = total

    return arrayjit.cond(x[0] > 0, lambda: Sum(x), lambda: Sum(x + 1)).total  # here


@called_with(x6)
def side_that_appends(x):
    seen = []
    arrayjit.cond(x[0] > 0, lambda: seen.append(1), lambda: None)  # here
    return len(seen)


@called_with(x6)
def condition_that_is_an_array(x):
    return arrayjit.cond(x > 0, lambda: 1, lambda: 2)  # here


@called_with(x6)
def sides_that_are_values(x):
    return arrayjit.cond(x[0] > 0, x, -x)  # here


@called_with(x6)
def body_that_is_a_value(x):
    return arrayjit.while_loop(lambda y: y.max() > 1, 3, x)  # here


@called_with(x6)
def result_of_one_side_that_is_written(x):
    y = arrayjit.cond(x[0] > 0, lambda: x, lambda: x * 2)
    y[0] = 1.0  # here
    return y


@called_with(x6)
def state_that_changes_its_dtype(x):
    def body(state):
        y, k = state
        return y.astype(np.float32) / 2, k + 1

    return arrayjit.while_loop(lambda s: s[1] < 9, body, (x, 0))  # here


@called_with(x6)
def state_that_changes_its_shape(x):
    return arrayjit.while_loop(lambda y: y[0] < 9, lambda y: y[1:], x)  # here


@called_with(x6)
def state_that_changes_its_structure(x):
    return arrayjit.while_loop(lambda s: s[1] < 9, lambda s: (s[0] + 1, s[1] + 1, s[0]), (x, 0))  # here


@called_with(x6)
def condition_that_never_changes(x):
    return arrayjit.while_loop(lambda y: True, lambda y: y + 1, x)  # here


@called_with(x6)
def body_that_counts_outside(x):
    count = 0

    def body(y):
        nonlocal count
        count += 1
        return y / 2

    return arrayjit.while_loop(lambda y: y.max() > 1, body, x), count  # here


@called_with(x6, x6)
def buffers_of_the_caller_that_change_places(x, y):
    def body(state):
        old, new, k = state
        new[1:] = 0.5 * (old[1:] + old[:-1])
        return new, old, k + 1

    return arrayjit.while_loop(lambda s: s[2] < 9, body, (x, y, 0))[0]  # here


# ---- memory ------------------------------------------------------------------------------------------

TABLE = np.arange(6.0)
CALLS = []


FILL = TABLE.fill  # plain code: a function that is no Python function


def read_only() -> np.ndarray:
    values = x6()
    values.flags.writeable = False
    return values


@called_with(read_only)
def write_into_a_read_only_argument(x):
    x[0] = 1.0  # here


@called_with(x6)
def write_into_a_broadcast_view(x):
    a = np.broadcast_to(x, (3, 6))
    a[0, 0] = 1.0  # here
    return a


@called_with(x6)
def out_of_another_shape(x):
    return np.add(x, 1, out=np.zeros(5))  # here


@called_with(n6)
def floats_added_in_place_to_integers(n):
    n += 0.5  # here
    return n


@called_with(x6)
def captured_array_changed_by_plain_code(x):  # here
    y = x + TABLE
    FILL(1.0)
    return y


@called_with(x6)
def global_that_is_assigned(x):  # here
    global CALLS
    CALLS = [x]
    return x


@called_with(x6)
def global_list_that_is_changed(x):  # here
    CALLS.append(1)
    return x


@called_with(lambda: [x6(), x6()])
def argument_list_that_is_changed(parts):  # here
    parts.append(parts[0] + 1)
    return parts[2]


@called_with(x6)
def condition_that_a_handler_hides(x):
    try:
        if x[0] > 0:  # here
            return x
    except Exception:
        pass
    return -x


# ---- what is not supported ---------------------------------------------------------------------------


@called_with(x6)
def singular_values(x):
    return np.linalg.eigvals(x[None])  # here


@called_with(x6)
def sizes_one_by_one(x):
    return np.zeros(*x.reshape(2, 3).shape)  # here


@called_with(x6)
def roots_of_a_polynomial(x):
    return np.roots(x)  # here


@called_with(x6)
def the_environment_as_a_whole(x):
    return x + len(os.environ)  # here


@called_with(x6)
def a_file_that_is_read(x):
    return x + float(open("factor.txt").read())  # here


@called_with(x6)
def the_date(x):
    return x + datetime.date.today().day  # here


@called_with(x6)
def random_numbers(x):
    return x + np.random.rand(6)  # here


@called_with(x6)
def rest_of_complex_numbers(x):
    return x * 1j // 2  # here


@called_with(x6)
def quantile_of_a_selection_by_its_steps(x):
    return np.quantile(x[x > 0], 0.3, method="inverted_cdf")  # here


@called_with(x6)
def generic_iterator(x):
    return [v for v in np.nditer(x)]  # here


@called_with(x6)
def generator_as_a_result(x):  # here
    return (v * 2 for v in (x, x + 1))


@called_with(lambda: np.array(["a", "b"]))
def text_in_an_array(words):
    return words


@called_with(x6, [1, 2], static_argnames="sizes")
def static_list(x, sizes):
    return x


# ---- shapes ------------------------------------------------------------------------------------------


@called_with(x6)
def operands_that_do_not_fit(x):
    return x + x[1:]  # here


@called_with(x6, 4, 3)
def slices_that_do_not_fit(x, k, m):
    return (x[:k] + x[:m]).sum()  # here


@called_with(x34)
def product_of_matrices_that_do_not_fit(a):
    return a @ a  # here


@called_with(x34)
def axis_that_is_not_there(a):
    return a.sum(axis=2)  # here


@called_with(x6)
def reshape_to_another_size(x):
    return x.reshape(4, 2)  # here


@called_with(x6)
def windows_beyond_the_memory(x):
    return np.lib.stride_tricks.as_strided(x, (6, 2), x.strides * 2)  # here


@called_with(x6)
def windows_that_are_written(x):
    windows = np.lib.stride_tricks.as_strided(x, (5, 2), x.strides * 2)
    windows += 1  # here


@called_with(x6, 0)
def maximum_of_nothing(x, k):
    return x[:k].max()  # here
