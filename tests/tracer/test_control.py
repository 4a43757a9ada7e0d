"""`arrayjit.cond` and `arrayjit.while_loop`: jitted as in plain Python, on both targets; docs/control.md."""

from __future__ import annotations

import re
from collections import namedtuple
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness import assert_same

import arrayjit
from arrayjit import DTypeError, ShapeError, UnsupportedError

HERE = Path(__file__).parent
TARGETS = ("interp", "sync_llvm")
State = namedtuple("State", "x steps")


@dataclass
class Particle:
    place: float
    speed: float


def same_as_python(function, *calls):
    """One jitted function per target gives what Python gives for each of the calls, compiled once."""
    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target)
        for args in calls:
            plain, traced = deepcopy(args), deepcopy(args)
            with np.errstate(all="ignore"):
                wanted = function(*plain)
            assert_same(jitted(*traced), wanted)
            assert_same(traced, plain)
        assert jitted.stats().compiles == 1
    return jitted


def refused(function, *args, error=UnsupportedError):
    """The message of the error with which a function is refused while tracing."""
    with pytest.raises(error) as caught:
        arrayjit.jit(function)(*args)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert caught.value.fix
    return str(caught.value)


HIGH, LOW = np.array([3.0, 4.0, 5.0]), np.array([-3.0, -4.0, 1.0])


# cond


def test_cond_runs_the_side_that_the_condition_chooses():
    def function(x):
        return arrayjit.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)

    same_as_python(function, (HIGH,), (LOW,))


def test_cond_passes_operands():
    def function(x, y):
        return arrayjit.cond(x[0] > y[0], np.add, np.subtract, x, y)

    same_as_python(function, (HIGH, LOW), (LOW, HIGH))


@pytest.mark.parametrize("value", [True, False, 0, 3, 0.0, np.float64(2.0), np.bool_(False)])
def test_a_condition_that_is_known_calls_one_function(value):
    def function(x):
        return arrayjit.cond(value, lambda: x * 2, lambda: "text")

    result = arrayjit.jit(function)(HIGH)
    assert_same(result, function(HIGH))


@pytest.mark.parametrize("pick", [np.sum, np.max, lambda x: x[2], lambda x: x[2] - 1, lambda x: x[0] != x[0]])
def test_conditions_are_true_as_in_python(pick):
    def function(x):
        return arrayjit.cond(pick(x), lambda: 1, lambda: 2)

    same_as_python(function, (HIGH,), (LOW,), (np.zeros(3),), (np.array([np.nan, 1, 2]),))


def test_cond_outside_a_jitted_function_is_python():
    seen = []
    assert arrayjit.cond([0], seen.append, print, 3) is None
    assert seen == [3]


def test_sides_write_arrays_in_place():
    def grow(x, y):
        x[1:] += y[:-1]
        y[0] = 7

    def shrink(x, y):
        x *= 0.5

    def function(x, y):
        arrayjit.cond(x.sum() > y.sum(), grow, shrink, x, y)
        return x + y

    same_as_python(function, (HIGH, LOW), (LOW, HIGH))


def test_writes_before_between_and_after():
    def function(x):
        x[0] = 10
        total = arrayjit.cond(x.sum() > 9, lambda: x[0] + x[1], lambda: x[2])
        x[0] = total

        def double():
            x[1] *= 2

        arrayjit.cond(total > 5, double, lambda: None)
        x[2] += x[1]
        return total

    same_as_python(function, (HIGH,), (LOW,))


def test_nested_values_come_out():
    def function(x):
        return arrayjit.cond(
            x[0] > 0,
            lambda: (x.sum(), {"a": x * 2, "b": [1, 2.5]}, State(x + 1, 3), None),
            lambda: (x[0], {"a": x, "b": [4, 5.5]}, State(x - 1, 6), None),
        )

    same_as_python(function, (HIGH,), (LOW,))


def test_the_same_array_from_both_sides_stays_itself():
    def function(x, y):
        def write():
            x[0] = 1
            return x

        z = arrayjit.cond(y[0] > 0, write, lambda: x)
        z[1] = 5
        return z

    for target in TARGETS:
        x = LOW.copy()
        assert arrayjit.jit(function, target=target)(x, HIGH) is x
        assert x.tolist() == [1, 5, 1]


def test_python_numbers_take_the_kind_of_the_other_side():
    def function(x):
        return (
            arrayjit.cond(x[0] > 0, lambda: 1, lambda: 2.5),
            arrayjit.cond(x[0] > 0, lambda: x.sum(), lambda: 0),
            arrayjit.cond(x[0] > 0, lambda: 0.5, lambda: x.astype("f4")[0]),
            arrayjit.cond(x[0] > 0, lambda: np.where(x[1] > 4, x[1], x[2]), lambda: 0),
            arrayjit.cond(x[0] > 0, lambda: x.sum(), lambda: np.where(x[1] > 4, x[1], x[2])),
        )

    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target)
        high = (1.0, np.float64(12.0), np.float32(0.5), np.array(5.0), np.array(12.0))
        assert_same(jitted(HIGH), high)
        low = (2.5, np.float64(0.0), np.float32(-3.0), np.array(0.0), np.array(1.0))
        assert_same(jitted(LOW), low)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x[:2],
        lambda x: x.astype("f4"),
        lambda x: x.sum(),
        lambda x: (x, x),
        lambda x: None,
        lambda x: 2.0,
        lambda x: "text",
    ],
)
def test_sides_that_do_not_agree_are_refused(other):
    words = refused(
        lambda x: arrayjit.cond(x[0] > 0, lambda: x * 2, lambda: other(x)), HIGH, error=DTypeError
    )
    assert "arrayjit.cond" in words


def test_numbers_of_different_types_are_refused():
    def function(x):
        return arrayjit.cond(x[0] > 0, lambda: x[0], lambda: x.astype("f4")[0])

    words = refused(function, HIGH, error=DTypeError)
    assert "a NumPy float64 from one side and a NumPy float32 from the other" in words


def test_a_number_that_the_other_side_cannot_hold_is_refused():
    refused(lambda x: arrayjit.cond(x[0] > 0, lambda: 0.1, lambda: x.astype("f4")[0]), HIGH, error=DTypeError)


def test_dicts_with_other_keys_are_refused():
    function = lambda x: arrayjit.cond(x[0] > 0, lambda: {"a": x}, lambda: {"b": x})  # noqa: E731
    assert "dict(a=value) and dict(b=value)" in refused(function, HIGH, error=DTypeError)


def test_an_array_has_no_truth_value():
    words = refused(lambda x: arrayjit.cond(x > 0, lambda: 1, lambda: 2), HIGH, error=ShapeError)
    assert "use x.any() or x.all()" in words
    same_as_python(lambda x: arrayjit.cond(x[:1] > 0, lambda: 1, lambda: 2), (HIGH,), (LOW,))


def test_a_side_must_not_change_what_is_outside():
    def function(x):
        seen = []
        arrayjit.cond(x[0] > 0, lambda: seen.append(1), lambda: None)
        return len(seen)

    assert "changes seen" in refused(function, HIGH)

    def rebinding(x):
        count = 0

        def count_up():
            nonlocal count
            count += 1

        arrayjit.cond(x[0] > 0, count_up, lambda: None)
        return count

    assert "count_up changes count" in refused(rebinding, HIGH)


def test_an_argument_s_container_must_not_change():
    def function(x):
        return arrayjit.cond(x[0] > 0, lambda parts: parts.pop(), lambda parts: parts[0], [x, x + 1])

    refused(function, HIGH)


def test_what_a_side_made_ends_with_it():
    def function(x):
        class Box:
            value = x

        def side():
            Box.value = x * 2
            return 1

        arrayjit.cond(x[0] > 0, side, lambda: 2)
        return Box.value

    refused(function, HIGH)


def test_an_array_from_one_side_only_must_not_be_written_since():
    def write_result(x):
        y = arrayjit.cond(x[0] > 0, lambda: x, lambda: x * 2)
        y[0] = 1
        return y

    def write_operand(x):
        a = x + 1
        y = arrayjit.cond(x[0] > 0, lambda: a, lambda: x * 2)
        a[0] = 1
        return y

    def only_read(x):
        a = x + 1
        y = arrayjit.cond(x[0] > 0, lambda: a, lambda: x * 2)
        z = y + a
        a[0] = 1
        return z + a

    refused(write_result, HIGH)
    refused(write_operand, HIGH)
    same_as_python(only_read, (HIGH,), (LOW,))


def test_conds_nest():
    def sign(x):
        return arrayjit.cond(x > 0, lambda: 1, lambda: arrayjit.cond(x < 0, lambda: -1, lambda: 0))

    def function(x):
        return sign(x[0]), sign(x[1]), sign(x.sum())

    same_as_python(function, (HIGH,), (LOW,), (np.zeros(3),))


def test_errors_of_a_side_are_raised_only_if_it_runs():
    def function(x, i):
        return arrayjit.cond(i < 3, lambda: x[i], lambda: x[0] // 1)

    same_as_python(function, (HIGH, 1), (HIGH, 3), (HIGH, -2))
    with pytest.raises(IndexError):
        arrayjit.jit(function)(HIGH, -4)


def wrong_sign():
    raise ValueError("negative {0:i64}")


def roots(x):
    arrayjit.cond(np.any(x < 0), wrong_sign, lambda: None)
    return np.sqrt(x)


def rooted_otherwise(x):
    return arrayjit.cond(np.all(x > 0), lambda: np.sqrt(x), wrong_sign)


def root_or_nothing(x):
    def fails():
        x[0] = 7
        raise RuntimeError

    root = arrayjit.cond(x[2] < 0, fails, lambda: x)
    root += 1
    return root


def checked_in_a_loop(x):
    total = 0.0
    for i in range(len(x)):

        def fails():
            assert x.shape == (), f"of {x.shape}"

        total = arrayjit.cond(x[i] < -3.5, fails, lambda i=i, total=total: total + x[i])
        x[i] = 0
    return total


def singular(x):
    def fails():
        raise np.linalg.LinAlgError("no inverse")

    return arrayjit.cond(x[0] == 3, lambda: 1 / x, fails)


def raised_or_given(function, *args):
    """What a function gives, or raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


@pytest.mark.parametrize("target", [*TARGETS, "llvm", "c", "cuda-sim"])
@pytest.mark.parametrize("function", [roots, rooted_otherwise, root_or_nothing, checked_in_a_loop, singular])
def test_what_a_side_raises_is_raised_if_it_runs(function, target):
    jitted = arrayjit.jit(function, target=target)
    for argument in (HIGH, LOW, np.array([3.0, -3.0, -1.0])):
        plain, traced = argument.copy(), argument.copy()
        wanted, given = raised_or_given(function, plain), raised_or_given(jitted, traced)
        if isinstance(wanted, Exception):
            assert (type(given), given.args) == (type(wanted), wanted.args)
            assert re.fullmatch(rf"raised at {__file__}:\d+, in compiled code", given.__notes__[0])
        else:
            assert_same(np.asarray(given), np.asarray(wanted))
        assert_same(traced, plain)
    assert jitted.stats().compiles == 1


class Unknown(Exception):
    pass


def test_exceptions_that_compiled_code_cannot_raise_are_refused():
    seen = []

    def raising(make, other=lambda: None):
        def fails():
            raise make()

        return lambda x: arrayjit.cond(x[0] > 0, fails, other)

    assert "Unknown('a')" in refused(raising(lambda: Unknown("a")), HIGH)
    assert "KeyError(3)" in refused(raising(lambda: KeyError(3)), HIGH)
    assert "both sides" in refused(raising(lambda: KeyError("a"), wrong_sign), HIGH)
    assert "changes seen" in refused(raising(lambda: seen.append(1) or KeyError("a")), HIGH)
    assert not seen

    def shown(x):
        def fails():
            raise ValueError(f"of {x}")

        arrayjit.cond(x[0] > 0, fails, lambda: None)

    assert "the text of an exception" in refused(shown, HIGH)


def test_a_mistake_in_a_side_is_found_while_tracing():
    def function(x):
        return arrayjit.cond(x[0] > 0, lambda: x + [][0], lambda: x)

    with pytest.raises(IndexError):
        arrayjit.jit(function)(LOW)


# while_loop


def newton(x):
    def body(state):
        guess, _, steps = state
        better = 0.5 * (guess + x / guess)
        return better, np.abs(better - guess).max(), steps + 1

    return arrayjit.while_loop(lambda state: state[1] > 1e-12, body, (x, 1.0, 0))


def test_while_loop_runs_until_the_condition_fails():
    same_as_python(newton, (HIGH,), (np.ones(3),), (np.array([1e6, 2, 1e-6]),))


def test_zero_iterations_give_the_first_state():
    def function(x, n):
        return arrayjit.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 2, s[1] + 1), (x, 0))

    jitted = same_as_python(function, (HIGH, 0), (HIGH, -3), (HIGH, 1), (HIGH, 5))
    assert jitted.stats().misses == 1


def test_states_of_every_structure():
    def count(n):
        return arrayjit.while_loop(lambda k: k < n, lambda k: k + 2, 0)

    def tree(x, n):
        def body(state):
            inner = {"a": state["b"] + 1, "b": state["a"]}
            return {**state, **inner, "k": state["k"] + 1}

        return arrayjit.while_loop(lambda s: s["k"] < n, body, {"a": x, "b": x * 2, "k": 0, "name": "tree"})

    def named(x, n):
        return arrayjit.while_loop(lambda s: s.steps < n, lambda s: State(s.x / 2, s.steps + 1), State(x, 0))

    def data(n):
        def body(p):
            return Particle(p.place + p.speed, p.speed * 0.5)

        return arrayjit.while_loop(lambda p: p.place < n, body, Particle(0.0, 1.0))

    same_as_python(count, (5,), (0,), (6,))
    same_as_python(tree, (HIGH, 4), (HIGH, 0), (LOW, 7))
    same_as_python(named, (HIGH, 4), (HIGH, 0))
    same_as_python(data, (1.9,), (-1.0,))


def test_while_loop_outside_a_jitted_function_is_python():
    assert arrayjit.while_loop(lambda text: len(text) < 5, lambda text: text + "a", "") == "aaaaa"


def test_a_state_of_one_loop_is_one_piece_of_code():
    def function(x, n):
        return arrayjit.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 2, s[1] + 1), (x, 0))[0]

    jitted = arrayjit.jit(function)
    short, long = (jitted.lower(HIGH, n).as_text("assignments") for n in (3, 3000))
    assert short == long
    assert short.count("multiply") + short.count(" * ") <= 2


def test_parts_change_places():
    def swap(a, b, n):
        return arrayjit.while_loop(lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), (a, b, 0))

    def numbers(n):
        return arrayjit.while_loop(lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), (0, 1, 0))

    def turn(a, b, c, n):
        return arrayjit.while_loop(lambda s: s[3] < n, lambda s: (s[1], s[2], s[0], s[3] + 1), (a, b, c, 0))

    def flip(a, n):
        return arrayjit.while_loop(lambda s: s[1] < n, lambda s: (s[0][::-1], s[1] + 1), (a, 0))

    def transpose(a, n):
        return arrayjit.while_loop(lambda s: s[1] < n, lambda s: (s[0].T + s[0], s[1] + 1), (a, 0))

    same_as_python(swap, (HIGH, LOW, 5), (HIGH, LOW, 0), (HIGH, LOW, 2))
    same_as_python(numbers, (10,), (0,), (1,))
    same_as_python(turn, *((HIGH, LOW, HIGH + LOW, n) for n in range(5)))
    same_as_python(flip, *((HIGH, n) for n in range(4)))
    same_as_python(transpose, *((np.arange(9.0).reshape(3, 3), n) for n in range(4)))


def test_arrays_that_stay_are_written_in_place():
    def relax(u, tolerance):
        def body(state):
            u, _ = state
            before = u.copy()
            u[1:-1] = 0.5 * (u[:-2] + u[2:])
            return u, np.abs(u - before).max()

        return arrayjit.while_loop(lambda s: s[1] > tolerance, body, (u, np.inf))[1]

    same_as_python(relax, (np.array([1.0, 0, 0, 0, 5]), 1e-3), (np.zeros(5), 1e-3))


def test_arrays_of_the_closure_are_written_in_place():
    def function(x, n):
        total = np.zeros(3)

        def body(k):
            total[:] += x[k % 3]
            x[k % 3] += k
            return k + 1

        return arrayjit.while_loop(lambda k: (k < n) & (total[0] < 50), body, 0), total

    same_as_python(function, (HIGH, 7), (LOW, 0), (HIGH, 100))


def test_a_state_without_parts():
    def function(x):
        def body(_):
            x[...] = x * 2

        return arrayjit.while_loop(lambda _: x.sum() < 100, body, None)

    same_as_python(function, (HIGH,), (np.full(3, 100.0),))


def test_buffers_that_change_places_and_are_written():
    def smooth(x, n):
        def body(state):
            old, new, k = state
            new[1:-1] = 0.5 * (old[:-2] + old[2:])
            return new, old, k + 1

        return arrayjit.while_loop(lambda s: s[2] < n, body, (x.copy(), x.copy(), 0))

    same_as_python(smooth, *((np.array([1.0, 2, 4, 8, 16]), n) for n in range(5)))


def test_buffers_of_the_caller_must_not_change_places_and_be_written():
    def smooth(x, y):
        def body(state):
            old, new, k = state
            new[1:-1] = 0.5 * (old[:-2] + old[2:])
            return new, old, k + 1

        return arrayjit.while_loop(lambda s: s[2] < 3, body, (x, y, 0))[0]

    assert "x.copy()" in refused(smooth, HIGH, LOW)


def test_a_buffer_that_was_written_and_replaced_is_not_seen_again():
    def function(x):
        work = x.copy()

        def body(state):
            values, k = state
            values[0] = k
            return values * 2, k + 1

        result = arrayjit.while_loop(lambda s: s[1] < 3, body, (work, 0))
        return result[0] + work

    refused(function, HIGH)


def test_an_array_that_is_replaced_must_not_be_written_under_another_name():
    def function(x):
        def body(state):
            y, k = state
            x[0] = k
            return y + x, k + 1

        return arrayjit.while_loop(lambda s: s[1] < 3, body, (x, 0))

    refused(function, HIGH)


def test_one_array_twice_must_not_be_written():
    def function(x):
        def body(state):
            a, b, k = state
            a[0] = k
            c = a + b
            return c, c, k + 1

        return arrayjit.while_loop(lambda s: s[2] < 3, body, (x.copy(), x.copy(), 0))

    refused(function, HIGH)


def test_the_result_may_be_the_first_state_and_must_not_be_written_then():
    def function(x):
        y, _ = arrayjit.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] + 1), (x, 0))
        y[0] = 5
        return y

    assert "begin with a copy" in refused(function, HIGH)


def test_python_numbers_become_numpy_numbers_in_the_first_iteration():
    def function(x, n):
        def body(state):
            total, product, k = state
            return total + x[0], product * x.astype("f4")[1], k + 1

        return arrayjit.while_loop(lambda s: s[2] < n, body, (0, 1.0, 0))

    same_as_python(function, (HIGH, 3), (HIGH, 1), (LOW, 7))
    zero = arrayjit.jit(function)(HIGH, 0)
    assert_same(zero, (np.float64(0.0), np.float32(1.0), 0))


def test_arrays_of_no_axes_become_numbers_in_the_first_iteration():
    def advanced(x):
        k = np.where(x[0] > 0, 1, 2)
        return arrayjit.while_loop(lambda k: k * x[1] < 4, lambda k: k + 1, k)

    def told_apart(x):
        """The first iteration does something else than those after it."""
        first = np.where(x[0] > 0, 1.0, 2.0)
        return arrayjit.while_loop(
            lambda s: s < 40, lambda s: np.float64(s * 3 if isinstance(s, np.ndarray) else s + 1), first
        )

    def added_in_place(x):
        def body(state):
            k, total = state
            k += 1
            return k, total + x[0]

        return arrayjit.while_loop(lambda s: s[0] < 5, body, (np.where(x[0] > 0, 1, 2), np.float64(0.0)))

    same_as_python(advanced, (np.array([2.0, 1.0]),), (np.array([-1.0, 0.5]),))
    same_as_python(told_apart, (HIGH,), (LOW,))
    same_as_python(added_in_place, (HIGH,), (LOW,))
    assert_same(arrayjit.jit(advanced)(np.array([2.0, 9.0])), np.int64(1))


def test_numbers_become_arrays_of_no_axes_in_the_first_iteration():
    """As `np.where` gives them."""

    def collatz(n):
        def body(state):
            value, steps = state
            return np.where(value % 2 == 0, value // 2, 3 * value + 1), steps + 1

        return arrayjit.while_loop(lambda s: s[0] != 1, body, (n, 0))

    def clipped(x, start):
        def body(state):
            total, k = state
            return np.where(total > 5, total, total + x[0]), k + 1

        return arrayjit.while_loop(lambda s: s[1] < 4, body, (start, 0))

    same_as_python(collatz, (27,), (6,), (2,))
    same_as_python(collatz, (np.int64(27),))
    same_as_python(clipped, (HIGH, np.float64(0.0)), (LOW, np.float64(0.0)))
    assert_same(arrayjit.jit(collatz)(1), (np.array(1), 0))

    def narrowed(x):
        def body(state):
            return (np.where(x[0] > state[0], x[0], x[1]).astype("f4"),)

        return arrayjit.while_loop(lambda s: s[0] < 3, body, (np.float64(0.5),))

    assert "x.astype" in refused(narrowed, HIGH, error=DTypeError)


def test_an_array_of_no_axes_from_outside_is_not_both_returned_and_written():
    def function(x):
        kept = x.sum(keepdims=True).reshape(())

        def body(state):
            kept[...] += 1
            return kept, state[1] + 1

        return arrayjit.while_loop(lambda s: s[1] < 3, body, (0.0, 0))

    assert "return a copy" in refused(function, HIGH)


def test_a_first_iteration_that_differs_is_made_by_itself():
    """A Python float leaves float32 what it is; the float64 of later iterations does not."""

    def function(x, n):
        def body(state):
            scale, total, k = state
            return np.float64(scale) * 1.1, total + (x * scale).sum().astype("f8"), k + 1

        return arrayjit.while_loop(lambda s: s[2] < n, body, (0.1, 0.0, 0))

    same_as_python(function, (HIGH.astype("f4"), 1), (HIGH.astype("f4"), 4))


def test_integers_that_grow_too_large_raise():
    def function(n):
        return arrayjit.while_loop(lambda k: k < n, lambda k: k * k, 2)

    for target in TARGETS:
        jitted = arrayjit.jit(function, target=target)
        assert jitted(100) == 256
        with pytest.raises(OverflowError):
            jitted(2**63 - 1)


def test_loops_nest():
    def function(x, n):
        def outer(state):
            y, k = state

            def inner(state):
                z, j = state
                return z + k, j + 1

            y, _ = arrayjit.while_loop(lambda s: s[1] < k, inner, (y, 0))
            return y, k + 1

        return arrayjit.while_loop(lambda s: s[1] < n, outer, (x, 0))

    same_as_python(function, (HIGH, 4), (HIGH, 0))


def test_for_loops_and_conditions_inside():
    def function(x, n):
        def body(state):
            y, k = state
            y = y.copy()
            for i in range(1, len(x)):
                y[i] += y[i - 1]
            total = 0.0
            for value in y:
                total += value
            y = arrayjit.cond(total > 10, lambda: y / total, lambda: y + 1)
            return y, k + 1

        return arrayjit.while_loop(lambda s: s[1] < n, body, (x, 0))

    same_as_python(function, (np.arange(7.0), 5), (np.arange(7.0), 0), (np.ones(7), 1))


def test_inside_a_for_loop():
    def function(x, n):
        for i in range(n):
            value = x[i]
            k = arrayjit.while_loop(lambda k, value=value: value * k < 20, lambda k: k + 1, i + 1)
            x[i] = k
        return x.sum()

    same_as_python(function, (np.arange(1.0, 9), 8), (np.arange(1.0, 9), 3), (np.arange(1.0, 9), 5))


def test_what_cond_chooses_is_handed_on_by_a_loop():
    def chosen(x):
        y = x * 1
        for i in range(6):
            y = arrayjit.cond(x[0] < i, lambda y: y * 2, lambda y: y, y)
        return y

    def written(x):
        y = x * 1
        for i in range(6):
            y = arrayjit.cond(x[0] < i, lambda y: x, lambda y: y * 2, y)
        x[0] = 5
        return y

    same_as_python(chosen, (HIGH,), (LOW,))
    refused(written, HIGH)


def test_what_may_be_one_array_is_not_read_by_the_iteration_after_a_write():
    def in_a_for_loop(x):
        z = x + 0
        y = arrayjit.cond(x[0] < 0, lambda: z, lambda: z * 2)
        for i in range(5):
            z[i % 3] = y.sum()
        return z

    def in_a_while_loop(x):
        z = x + 0
        y = arrayjit.cond(x[0] < 0, lambda: z, lambda: z * 2)

        def body(k):
            z[k % 3] = y.sum()
            return k + 1

        arrayjit.while_loop(lambda k: k < 5, body, 0)
        return z

    refused(in_a_for_loop, HIGH)
    refused(in_a_while_loop, HIGH)


def test_a_loop_that_begins_with_what_may_be_the_caller_s_array_must_not_write_it():
    def function(x):
        y = arrayjit.cond(x[0] < 0, lambda: x, lambda: x * 2)

        def body(state):
            values, k = state
            values[0] = k
            return values * 2, k + 1

        return arrayjit.while_loop(lambda s: s[1] < 3, body, (y, 0))[0]

    refused(function, HIGH)


def test_an_array_that_comes_to_a_written_place_must_be_a_copy():
    def function(x, y):
        def body(state):
            first, second, k = state
            first += 1
            return second, first, k + 1

        return arrayjit.while_loop(lambda s: s[2] < 3, body, (x.copy(), y, 0))[0]

    refused(function, HIGH, LOW)


def test_what_may_be_a_part_of_the_state_is_written_as_one():
    def function(x, values):
        def body(state):
            y, k = state
            y = arrayjit.cond(y[0] > k, lambda: y[::-1], lambda: y)
            y[1:] = y[:-1] + k
            return y, k + 1

        return arrayjit.while_loop(lambda s: s[1] < 4, body, (values, 0))[0] + x

    same_as_python(lambda x: function(x, x.copy()), (HIGH,), (LOW,))
    refused(lambda x: function(x, x), HIGH)


def test_what_an_inner_loop_may_give_unchanged_is_followed():
    def function(x):
        def body(state):
            first, second, k = state
            second[0] = k
            third, _ = arrayjit.while_loop(lambda s: s[1] < k, lambda s: (s[0] + 1, s[1] + 1), (first, 0))
            return second, third, k + 1

        return arrayjit.while_loop(lambda s: s[2] < 3, body, (x[::-1], x.copy(), 0))[0]

    refused(function, HIGH)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda s: (s[0].astype("f4"), s[1] + 1), "state[0] of arrayjit.while_loop is an array of float64"),
        (lambda s: (s[0][1:], s[1] + 1), "shape (2,) after it"),
        (lambda s: (s[0].sum(), s[1] + 1), "a NumPy float64 after it"),
        (lambda s: (s[0], s[1] + 1, 0), "returns another structure than it gets"),
        (lambda s: [s[0], s[1] + 1], "tuple(value, value) and list(value, value)"),
        (lambda s: s[0], "another structure"),
    ],
)
def test_a_state_that_does_not_stay_of_a_kind_is_refused(body, words):
    text = refused(lambda x: arrayjit.while_loop(lambda s: s[1] < 3, body, (x, 0)), HIGH, error=DTypeError)
    assert words in text


def test_a_condition_that_never_changes_is_refused():
    refused(lambda x: arrayjit.while_loop(lambda s: True, lambda s: s + 1, x), HIGH)


def test_a_condition_that_is_false_from_the_start_runs_nothing():
    def function(x):
        return arrayjit.while_loop(lambda s: False, lambda s: s + 1, x)

    x = HIGH.copy()
    assert arrayjit.jit(function)(x) is x


def test_a_body_must_not_change_what_is_outside():
    def appending(x):
        seen = []

        def body(state):
            seen.append(state)
            return state + 1

        arrayjit.while_loop(lambda k: k < 3, body, 0)
        return len(seen)

    def counting(x):
        count = 0

        def body(state):
            nonlocal count
            count += 1
            return state + 1

        arrayjit.while_loop(lambda k: k < 3, body, 0)
        return count

    def taking(x):
        numbers = iter([1, 2, 3])
        return arrayjit.while_loop(lambda k: k < 3, lambda k: k + next(numbers), 0)

    assert "body changes seen" in refused(appending, HIGH)
    assert "body changes count" in refused(counting, HIGH)
    assert "iterator" in refused(taking, HIGH)


def test_a_body_must_not_change_the_state_s_container():
    def function(x):
        def body(state):
            state["x"] = state["x"] * 2
            return state

        return arrayjit.while_loop(lambda s: s["x"].sum() < 99, body, {"x": x})

    assert "body changes its argument" in refused(function, HIGH)


def test_shapes_of_carried_arrays_may_depend_on_arguments():
    def function(x, k):
        def body(state):
            y, j = state
            return y * 2 + x[:k].sum(), j + 1

        y, j = arrayjit.while_loop(lambda s: s[1] < 3, body, (x[:k] + 1, 0))
        return y.sum(), j

    same_as_python(function, (np.arange(6.0), 3), (np.arange(6.0), 0), (np.arange(6.0), 6))


def test_every_rule_of_the_document_names_its_test():
    rules = re.split(r"^\d+\. ", (HERE.parents[1] / "docs" / "control.md").read_text(), flags=re.MULTILINE)[
        1:
    ]
    quoted = [re.findall(r"`(test_\w+)`", rule) for rule in rules]
    assert [number for number, names in enumerate(quoted, 1) if not names] == []
    files = "branches", "control", "python_functions", "known_numbers"
    texts = [(HERE / f"test_{name}.py").read_text() for name in files]
    written = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert {name for names in quoted for name in names} - written == set()
