"""The rules of docs/loops.md: what an iteration hands to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rolling import TARGETS, assert_kept, assert_like_numpy, assert_unrolled, length

import arrayjit
from arrayjit.errors import ConcretizationError, UnsupportedError

x10 = np.arange(10.0) - 3
square = np.arange(36.0).reshape(6, 6)


def fibonacci(x: Any) -> Any:
    a, b = x[0], x[1]
    for _ in range(len(x)):
        a, b = b, a + b
    return a, b


def rebound_array(x: Any) -> Any:
    y = x * 0
    for i in range(len(x)):
        y = y[::-1] * 2 - x[i]
    return y


def rebound_bool(x: Any) -> Any:
    found = False
    for i in range(len(x)):
        found = found | (x[i] > 4)
    return found


def polynomial(x: Any) -> Any:
    value, power = 0.0, 1.0
    for coefficient in x:
        value = value + coefficient * power
        power = power * 0.5
    return value


@pytest.mark.parametrize("program", [fibonacci, rebound_array, rebound_bool, polynomial])
def test_rebound_names_are_carried(program: Callable[[Any], Any]) -> None:
    assert_kept(program)
    assert_like_numpy(program, (x10,))


def test_names_in_a_tuple_are_carried() -> None:
    def program(x: Any) -> Any:
        state = (x[0] * 0, (x[:2] * 0, 1.0))
        for i in range(len(x)):
            total, (pair, factor) = state
            state = (total + x[i] * factor, (pair[::-1] + total, factor * 2))
        return state

    assert_kept(program)
    assert_like_numpy(program, (x10,))


def test_names_of_enclosing_functions_are_carried() -> None:
    def program(x: Any) -> Any:
        total = x[0] * 0

        def plus(value: Any) -> Any:
            return total + value

        for i in range(len(x)):
            total = plus(x[i]) * 2
        return total

    assert_kept(program)
    assert_like_numpy(program, (x10,))


def in_a_dict(x: Any) -> Any:
    state = {"total": x[0]}
    for i in range(len(x)):
        state["total"] = state["total"] * 2 + x[i]
    return state


def in_a_list(x: Any) -> Any:
    state = [x[0], 1.0]
    for i in range(len(x)):
        state[0], state[1] = state[1], state[0] + x[i]
    return state


class Particle:
    """An object whose attributes change."""

    def __init__(self, place: Any) -> None:
        self.place = place

    def move(self, by: Any) -> None:
        self.place = self.place + by


def in_an_object(x: Any) -> Any:
    particle = Particle(x[0])
    for i in range(len(x)):
        particle.move(x[i] * particle.place)
    return particle.place


def in_a_function(x: Any) -> Any:
    total = x[0]

    def add(value: Any) -> None:
        nonlocal total
        total = total * 2 + value

    def add_all() -> None:
        for i in range(len(x)):
            add(x[i])

    add_all()
    return total


@pytest.mark.parametrize("program", [in_a_dict, in_a_list, in_an_object, in_a_function])
def test_what_containers_hold_is_carried(program: Callable[[Any], Any]) -> None:
    assert_kept(program)
    assert_like_numpy(program, (x10,))


def kept_number(x: Any) -> Any:
    total = x[0]
    first = total
    before = total
    for i in range(1, len(x)):
        before = total
        total = total * 2 + x[i] - first
    return total, before, first


def kept_array(x: Any) -> Any:
    state = x + 1
    start, before = state, state
    for i in range(len(x)):
        before, state = state, state * 2 - start
        before[i] = 7
    return state, before, start


@pytest.mark.parametrize("program", [kept_number, kept_array])
def test_another_name_keeps_the_old_value(program: Callable[[Any], Any]) -> None:
    assert_kept(program)
    assert_like_numpy(program, (x10,))


def ping_pong(x: Any) -> Any:
    u, v = x.copy(), x * 0
    for _ in range(len(x)):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u, v


def three_in_turn(x: Any) -> Any:
    u, v, w = x + 1, x + 2, x + 3
    for i in range(len(x)):
        u[i] = v[0] + w[-1]
        u, v, w = v, w, u
    return u, v, w


@pytest.mark.parametrize("program", [ping_pong, three_in_turn])
@pytest.mark.parametrize("size", [1, 5, 6, 7, 12])
def test_names_that_exchange_arrays(program: Callable[[Any], Any], size: int) -> None:
    assert_kept(program)
    assert_like_numpy(program, (np.arange(float(size)),))


def test_names_that_exchange_arrays_are_not_copied() -> None:
    text = arrayjit.jit(ping_pong).lower(np.ones(100)).as_text("assignments")
    kept = text[text.index("in range(0, 50):") :]
    assert kept.count("for ") == 4  # a sum and a store in each of two iterations


def two_levels(x: Any) -> Any:
    before, now = x, x / 2
    for _ in range(len(x)):
        before, now = now, now / 2 - before
    return before, now


def three_levels(x: Any) -> Any:
    first, second, third = x, x / 2, x + 1
    for i in range(len(x)):
        new = third - second + first / 2
        new[i] = 3
        first = second
        second = third
        third = new
    return first, second, third


def levels_in_a_list(x: Any) -> Any:
    levels = [x, x / 2]
    for _ in range(len(x)):
        levels[0], levels[1] = levels[1], levels[1] / 2 - levels[0]
    return levels


def a_level_that_another_name_keeps(x: Any) -> Any:
    before, now = x, x / 2
    for _ in range(len(x)):
        oldest, kept = before, now
        before, now = now, now / 2 - before
    oldest[0], kept[0] = 5, 7
    return before, now, oldest, kept


LEVELS = [two_levels, three_levels, levels_in_a_list, a_level_that_another_name_keeps]


@pytest.mark.parametrize("program", LEVELS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 12])
def test_names_that_take_over_the_arrays_of_others(program: Callable[[Any], Any], size: int) -> None:
    assert_kept(program)
    assert_like_numpy(program, (np.arange(float(size)),))


def numbers_of_an_array(x: Any) -> Any:
    a, b = x[0], x[1]
    for i in range(len(x)):
        a, b = b, a / 2 + x[i]
    return a, b


def numbers_by_an_argument(x: Any) -> Any:
    a, b, c = 0, np.int64(1), x[0]
    for _ in range(len(x)):
        new = (a + b) % np.int64(len(x))
        a = b
        b = new
        c = c + a
    return a, b, c


def numbers_in_turn(x: Any) -> Any:
    a, b, c, pair = x[0], x[1], x[2], [x[3], x[0]]
    for _ in range(len(x)):
        a, b, c = b, c, a
        pair[0], pair[1] = pair[1], pair[0] - a
    return a, b, c, pair


@pytest.mark.parametrize("program", [numbers_of_an_array, numbers_by_an_argument, numbers_in_turn])
@pytest.mark.parametrize("size", [5, 6, 7, 12])
def test_names_that_exchange_numbers(program: Callable[[Any], Any], size: int) -> None:
    assert_kept(program)
    assert_like_numpy(program, (np.arange(float(size)),))


def grown(x: Any, counts: Any) -> Any:
    """No iteration makes another array unless a loop in it runs."""
    best = x
    for i in range(len(counts)):
        for _ in range(counts[i]):
            best = best + 1
    return best, x


def nearest_pair(x: Any, counts: Any) -> Any:
    distance, first, second = np.inf, -1, -1
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            other = np.abs(counts[i] - counts[j] + x[0])
            is_nearer = other < distance
            distance = np.where(is_nearer, other, distance)
            first, second = np.where(is_nearer, i, first), np.where(is_nearer, j, second)
    return distance, first, second


def changed_by_each(x: Any, counts: Any) -> Any:
    y, other = x * 1, x * 2
    for i in range(len(counts)):
        other = y
        for _ in range(counts[i]):
            y = y + 1
        y = y * 2
    other[0] = 5
    return y, other


def chosen_by_a_condition(x: Any, counts: Any) -> Any:
    y = x * 1
    for i in range(len(counts)):
        y = arrayjit.cond(counts[i] > 0, lambda y=y: y * 2, lambda y=y: y)
    return y


STAYING = [grown, nearest_pair, changed_by_each, chosen_by_a_condition]
COUNTS = [[0] * 8, [1] * 8, [0, 1, 0, 2, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 2, 0, 1, 1, 0, 3]]


@pytest.mark.parametrize("program", STAYING)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_an_array_may_stay_what_it_was_for_an_iteration(program: Callable[..., Any], counts: list) -> None:
    assert_like_numpy(program, (np.arange(4.0), np.array(counts)))


def test_which_array_it_is_must_be_known_where_it_is_written() -> None:
    def written_afterwards(x: Any, counts: Any) -> Any:
        best = grown(x, counts)[0]
        best[0] = 7
        return best

    def written_under_another_name(x: Any, counts: Any) -> Any:
        best, before = x * 1, x * 2
        for i in range(len(counts)):
            before = best
            for _ in range(counts[i]):
                best = best + 1
        before[1] = 9
        return best, before

    def written_in_the_next_iteration(x: Any, counts: Any) -> Any:
        best, before = x * 1, x * 2
        for i in range(len(counts)):
            before[0] += 5
            before = best
            for _ in range(counts[i]):
                best = best + 1
        return best, before

    def written_meanwhile(x: Any, counts: Any) -> Any:
        best = x
        for i in range(len(counts)):
            for _ in range(counts[i]):
                best = best + 1
            x[0] += 1
        return best

    programs = (
        written_afterwards,
        written_under_another_name,
        written_in_the_next_iteration,
        written_meanwhile,
    )
    for program in programs:
        with pytest.raises(ConcretizationError, match="take a copy of it in the loop"):
            arrayjit.jit(program)(np.arange(4.0), np.array(COUNTS[2]))


def test_a_remainder_of_the_count_is_compiled_in() -> None:
    def program(x: Any, k: int) -> Any:
        u, v = x.copy(), x * 0
        for _ in range(k):
            v[1:-1] = u[:-2] + u[2:]
            u, v = v, u
        return u

    jitted = assert_like_numpy(program, *((x10, k) for k in (4, 5, 6, 7, 100, 101)))
    assert jitted.stats().compiles == 2 * len(TARGETS)


def test_a_view_that_moves_stays_a_view() -> None:
    def program(m: Any) -> Any:
        before = m[0]
        for i in range(1, len(m)):
            before += m[i, ::-1]
            before = m[i]
        before[0] = 100
        return before

    assert length(program, np.ones((9, 9))) == length(program, np.ones((50, 50)))
    assert_like_numpy(program, (square,))


def test_a_counter_moves_with_the_loop() -> None:
    def program(x: Any) -> Any:
        at, last = 1, len(x)
        for i in range(len(x) // 2):
            x[at] += x[last - 1] + i
            x[at:last] *= 2
            at += 1
            last -= 1
        return at, last

    assert length(program, np.ones(10)) == length(program, np.ones(100))
    assert_like_numpy(program, (x10,))


def test_writes_are_seen_by_the_next_iteration() -> None:
    def program(x: Any) -> Any:
        y = np.zeros_like(x)
        z = y[::-1]
        for i in range(1, len(x)):
            y[i] = y[i - 1] + z[i - 1] + x[i]
            x[i:] += x[:-i] - z[i]
        return y, z

    assert_kept(program)
    assert_like_numpy(program, (x10,))


def test_a_value_may_change_its_kind_in_the_first_iteration() -> None:
    def program(x: Any) -> Any:
        total, best, row = 0, None, [0] * len(x)
        for i in range(len(x)):
            total += x[i]
            best = x[i] if best is None else np.maximum(best, x[i])
            row = x * total - row
        return total, best, row

    assert_kept(program)
    assert_like_numpy(program, (x10,))


def summed(x: Any, k: int) -> Any:
    total = 0
    for i in range(k):
        total += x[i]
    return total


def greatest(x: Any, k: int) -> Any:
    best = None
    for i in range(k):
        best = x[i] if best is None else np.maximum(best, x[i])
    return best


def doubled(x: Any, k: int) -> Any:
    for _ in range(k):
        x = x * 2
    return x


@pytest.mark.parametrize("program", [summed, greatest, doubled])
def test_whether_a_loop_runs_is_compiled_in(program: Callable[[Any, int], Any]) -> None:
    jitted = assert_like_numpy(program, (x10, 7), (x10, 0), (x10, 8), (x10, -1))
    assert jitted.stats().compiles <= 2 * len(TARGETS)


def test_an_array_that_is_not_rebound_is_itself() -> None:
    assert arrayjit.jit(doubled)(x10, 0) is x10


def test_equal_views_are_two_objects_until_one_name_becomes_the_other() -> None:
    def program(x: Any, k: int) -> Any:
        one, other = x[::-1], x[::-1]
        for _ in range(k):
            other = one
        return one, other

    ours = arrayjit.jit(program)
    for times in (0, 1, 2, 0):
        one, other = ours(x10, times)
        assert (one is other) == (times > 0)


def counted(x: Any, counts: Any) -> Any:
    total = 0.0
    for i in range(counts[0]):
        total += x[i]
    return total


def test_a_number_is_converted_where_the_loop_may_not_run() -> None:
    ours = arrayjit.jit(counted)
    for count in (0, 9):
        assert counted(x10, [count]) == ours(x10, np.array([count]))
        assert type(ours(x10, np.array([count]))) is np.float64
    assert type(counted(x10, [0])) is float


def test_a_number_of_numpy_s_keeps_its_dtype_where_the_loop_may_not_run() -> None:
    def last(x: Any, counts: Any) -> Any:
        found = np.float64(1.5)
        for i in range(counts[0]):
            found = x[i]
        return found

    assert type(arrayjit.jit(last)(x10, np.array([0]))) is np.float64
    with pytest.raises((ConcretizationError, UnsupportedError), match="fix:"):
        arrayjit.jit(last)(x10.astype(np.float32), np.array([0]))


def test_none_cannot_change_where_the_loop_may_not_run() -> None:
    def program(x: Any, counts: Any) -> Any:
        return greatest(x, counts[0])

    with pytest.raises((ConcretizationError, UnsupportedError), match="fix:"):
        arrayjit.jit(program)(x10, np.array([3]))


def test_writes_reach_the_array_that_a_loop_of_zero_iterations_left() -> None:
    def through_the_name(x: Any, k: int) -> Any:
        y = x
        for _ in range(k):
            y = y * 2
        y[0] = 100
        return y.sum()

    def through_the_array(x: Any, k: int) -> Any:
        y = x
        for _ in range(k):
            y = y * 2
        x[0] = 100
        return y.sum()

    for program in (through_the_name, through_the_array):
        assert_like_numpy(program, (x10, 0), (x10, 6))


def test_a_shape_that_grows_unrolls_the_loop() -> None:
    def grown(x: Any) -> Any:
        y = x[:1]
        for i in range(len(x)):
            y = np.append(y, x[:i] + y[-1])
        return y

    def widened(x: Any) -> Any:
        y = np.arange(3, dtype="i2")
        for i in range(6):
            y = y[None] + np.ones(1, "i4" if i == 3 else "i2")
        return y

    assert_unrolled(grown)
    assert_like_numpy(grown, (x10,))
    assert_like_numpy(widened, (x10,))


class Plain:
    def __init__(self, v: Any, steps: int = 0) -> None:
        self.v = v
        self.steps = steps

    def smoother(self) -> Plain:
        return type(self)((self.v + self.v[::-1] * 2) / 3, self.steps + 1)


class Slotted:
    __slots__ = ("steps", "v")

    def __init__(self, v: Any, steps: int = 0) -> None:
        self.v = v
        self.steps = steps

    smoother = Plain.smoother


class Positive:
    """A descriptor that looks at what it is given."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return instance.__dict__[self.name]

    def __set__(self, instance: Any, value: Any) -> None:
        if value.ndim != 1:
            raise ValueError
        instance.__dict__[self.name] = np.abs(value)


class Checked(Plain):
    v = Positive()


@pytest.mark.parametrize("kind", [Plain, Slotted, Checked])
def test_another_object_of_a_class_is_carried(kind: Any) -> None:
    def smoothed(x: Any) -> Any:
        state = kind(x)
        for _ in range(len(x)):
            state = state.smoother()
        return state.v, state.steps

    assert_like_numpy(smoothed, (x10,))
    assert_kept(smoothed)


def test_objects_are_as_in_python() -> None:
    """What is one object stays one, and the one from before the loop stays what it was."""

    def written(x: Any) -> Any:
        state = first = Plain(x.copy())
        for i in range(20):
            state.v[0] += i
            state = Plain(state.v, state.steps + i)
        return state.v is first.v, state is first, state.v, first.steps, state.steps

    def inside_each_other(x: Any) -> Any:
        pair = Plain(Plain(x), 1)
        for _ in range(20):
            pair = Plain(Plain(pair.v.v * 0.5, pair.steps), pair.steps + pair.v.steps)
        return pair.v.v, pair.v.steps, pair.steps

    def one_after_the_other(x: Any) -> Any:
        a, b = Plain(x), Plain(x * 2)
        for _ in range(21):
            a, b = b, Plain(a.v * 0.5 + b.v * 0.25, b.steps + 1)
        return a.v, b.v, a.steps, b.steps

    def in_a_list(x: Any) -> Any:
        states = [Plain(x)]
        for _ in range(20):
            states.append(states[-1].smoother())
        return np.array([state.v for state in states]), states[-1].steps

    for program in (written, inside_each_other, one_after_the_other, in_a_list):
        assert_like_numpy(program, (x10,))


def test_objects_that_are_not_carried() -> None:
    def with_another_attribute(x: Any) -> Any:
        state = Plain(x)
        for i in range(len(x)):
            state = Plain(state.v + i)
            if i > 5:
                state.more = i
        return state.v, hasattr(state, "more")

    def leads_back_to_itself(x: Any) -> Any:
        state = Plain(x)
        for _ in range(len(x)):
            state = Plain(state.v + 1)
            state.itself = state
        return state.v, state.itself is state

    def linked(x: Any) -> Any:
        state = None
        for i in range(len(x)):
            state = Plain(x[i], state)
        return state.v, state.steps.steps.v

    for program in (with_another_attribute, leads_back_to_itself, linked):
        assert_unrolled(program)
        assert_like_numpy(program, (x10,))


def test_what_a_discarded_attempt_left_in_a_name_is_not_carried() -> None:
    """The first iteration is recorded by itself, after others were with the loop in it."""

    def program(x: Any, a: Any) -> Any:
        row = np.zeros(len(x))
        for i in range(len(x)):
            weighted = sum([x[j] * j for j in range(3)])
            for j in range(len(x) - i):
                plain = np.sum([x[n] + abs(j) for n in range(3)])
                row = a[j]
        return weighted, plain, row

    assert_like_numpy(program, (x10, np.outer(x10, x10)))
