"""Integers in loops: counted, combined, divided by powers of two, and made of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

TARGETS = [{"threads": 1}, {"threads": 2}, {"target": "c"}, {"target": "cuda-sim"}, {"target": "interp"}]
random = np.random.default_rng(7)


def darts(x, y):
    inside = 0
    for i in range(len(x)):
        inside += x[i] ** 2 + y[i] ** 2 < 1.0
    return 4.0 * inside / len(x)


def counted_beside_what_is_stored(x, y):
    near, far, out = np.int64(0), np.int32(7), np.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] * y[i]
        near = near + (x[i] < y[i])
        far -= np.int32(x[i] > 0.9)
    return near, far, out


def read_before_it_is_cleared(x, y):
    bits = (x * 1000).astype(np.int64)
    total, mask = np.int64(0), np.int64(-1)
    for i in range(len(bits)):
        step = bits[i]
        bits[i] = 0
        total ^= step
        mask &= step | 3
    return total, mask, bits


def seen_between_its_steps(x, y):
    count, places = np.int64(0), np.zeros(len(x), np.int64)
    for i in range(len(x)):
        count += x[i] < y[i]
        places[i] = count
    return count, places


def in_rows(x, y):
    counts, total = np.zeros(7, np.int64), np.uint8(250)
    for r in range(7):
        count = np.int64(0)
        for i in range(len(x)):
            count += x[i] * r < y[i]
            total += np.uint8(x[i] > 0.5)
        counts[r] = count
    return counts, total


def chosen(x, y):
    count, total = 0, np.int64(0)
    for i in range(len(x)):
        count += int(x[i] > 0.25)
        total = np.where(y[i] < x[i], total + np.int64(y[i] * 100), total)
        count = np.where(y[i] < 0.5, count + 2, count)
    return count, total


def compared(x, y):
    numbers = (x * 1000).astype(np.int64)
    least, most, is_any, are_all = numbers[0], numbers[0], False, True
    for i in range(1, len(numbers)):
        least = min(least, numbers[i])
        most = np.where(numbers[i] > most, numbers[i], most)
        is_any |= x[i] > y[i]
        are_all = np.where(x[i] < 2.0, are_all, False)
    return least, most, is_any, are_all


def counted_in_floats(x, y):
    both, either, apart, none = 0.0, np.float64(3), 0.0, 0.0
    for i in range(len(x)):
        first, second = x[i] > 0.3, y[i] > 0.6
        both += np.logical_and(first, second)
        either = np.where(np.logical_or(first, second), either + 2.0, either)
        apart += first != second
    for i in range(len(x)):
        for j in range(i):
            none = arrayjit.cond(x[i] + y[j] < 0.7, lambda n: n + 1.0, lambda n: n, none)
    return both, either, apart, none


def counted_from_anywhere(x, y):
    less, some, half = x[0], -0.0, 0.0
    for i in range(len(x)):
        less += x[i] < y[i]
        some += x[i] > 2.0
        half += np.where(x[i] < y[i], 0.1, 0.0)
    return less, some, half


def in_a_triangle(x, y):
    count = 0
    for i in range(len(x)):
        for j in range(i):
            count += int(x[i] < y[j])
    return count


def in_branches(x, y):
    count, total = 0, np.int64(5)
    for i in range(len(x)):
        count = arrayjit.cond(x[i] > 0.5, lambda c: c + 1, lambda c: c, count)
        count, total = arrayjit.cond(
            x[i] < y[i],
            lambda c, t: (c, t + np.int64(7)),
            lambda c, t: (c - 1, t),
            *(count, total),
        )
    return count, total


def first_of_the_greatest(x, y):
    numbers = (x * 20).astype(np.int32)
    most, place, least, last = numbers[0], 0, np.int32(5), np.int64(-1)
    for i in range(1, len(numbers)):
        place = np.where(numbers[i] > most, i, place)
        most = np.where(numbers[i] > most, numbers[i], most)
    for i in range(len(numbers) - 1, -1, -1):
        least, last = arrayjit.cond(
            numbers[i] < least, lambda m, p, i=i: (numbers[i], i), lambda m, p: (m, p), *(least, last)
        )
    return most, place, least, last


def first_in_a_table(x, y):
    table = (x[:90] * 20).astype(np.int64).reshape(9, 10)
    most, row, column = np.int64(3), 0, 0
    for i in range(9):
        for j in range(10):
            is_more = table[i, j] > most
            row = np.where(is_more, i, row)
            column = np.where(is_more, j, column)
            most = np.where(is_more, table[i, j], most)
    return most, row, column


COUNTING = [
    *(darts, counted_beside_what_is_stored, read_before_it_is_cleared, seen_between_its_steps, in_rows),
    *(
        chosen,
        compared,
        counted_in_floats,
        counted_from_anywhere,
        in_a_triangle,
        in_branches,
        first_of_the_greatest,
        first_in_a_table,
    ),
]


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("program", COUNTING)
def test_what_a_loop_counts(program: Callable[..., Any], options: dict[str, Any]) -> None:
    x, y = random.random(101), random.random(101)
    with np.errstate(over="ignore"):
        wanted = program(x.copy(), y.copy())
    results = arrayjit.jit(program, **options)(x.copy(), y.copy())
    wanted, results = (given if isinstance(given, tuple) else (given,) for given in (wanted, results))
    for result, one in zip(results, wanted, strict=True):
        assert np.asarray(result).dtype == np.asarray(one).dtype
        np.testing.assert_array_equal(result, one)


@pytest.mark.parametrize("program", [darts, chosen, compared, counted_in_floats, in_a_triangle, in_branches])
def test_what_is_accumulated_goes_in_vectors(program: Callable[..., Any]) -> None:
    x = random.random(1000)
    text = arrayjit.jit(program, threads=1).lower(x, x).as_text("optimized")
    assert "reduce(" in text
    assert "lanes=" in text
    assert "raise_" not in text


def luminance(red, green, blue):
    return (
        (red.astype(np.int64) * 77 + green.astype(np.int64) * 150 + blue.astype(np.int64) * 29) >> 8
    ).astype(np.uint8)


def brighter_neighbours(red, green, blue):
    out = np.zeros(len(red), np.uint8)
    for i in range(1, len(red) - 1):
        one = (red[i - 1] >= red[i]) * 1 | (green[i] >= red[i]) * 64
        out[i] = one | (red[i + 1] > blue[i]) * 128
    return out


def mixed(red, green, blue):
    half = (red.astype(np.int32) + green) // 2
    signed = red.astype(np.int64) - green
    return (
        half.astype(np.uint8),
        (signed * signed - blue).astype(np.int8),
        (signed >> 3).astype(np.int16),
        ((signed ^ blue) % 64).astype(np.uint16),
        np.where(red > blue, signed, -300).astype(np.int8),
        (red.astype(np.uint64) * 255 - green).astype(np.uint32) >> 24,
        (signed // 3).astype(np.int8),
        signed + half,
    )


def slopes(red, green, blue):
    out = np.zeros(len(red), np.uint8)
    for i in range(1, len(red) - 1):
        across = int(red[i + 1]) + 2 * int(green[i + 1]) - int(red[i - 1]) - 2 * int(green[i - 1])
        out[i] = min(abs(across) + abs(int(blue[i]) - int(red[i])), 255)
    return out


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("program", [luminance, brighter_neighbours, mixed, slopes])
def test_pixels(program: Callable[..., Any], options: dict[str, Any]) -> None:
    images = [random.integers(0, 256, 301).astype(np.uint8) for _ in range(3)]
    wanted, results = program(*images), arrayjit.jit(program, **options)(*images)
    wanted, results = (given if isinstance(given, tuple) else (given,) for given in (wanted, results))
    for result, one in zip(results, wanted, strict=True):
        assert np.asarray(result).dtype == one.dtype
        np.testing.assert_array_equal(result, one)


def test_sizes_of_differences_fit_where_they_are_stored() -> None:
    image = np.zeros(100, np.uint8)
    text = arrayjit.jit(slopes).lower(image, image, image).as_text("optimized")
    assert "raise_" not in text
    assert "lanes=" in text


def test_pixels_are_computed_in_16_bits() -> None:
    image = np.zeros(100, np.uint8)
    text = arrayjit.jit(luminance).lower(image, image, image).as_text("optimized")
    assert "i64" not in text
    assert "multiply[i16]" in text


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_divisions_by_known_numbers(dtype: type, options: dict[str, Any]) -> None:
    limits = np.iinfo(dtype)

    def divided(x):
        return [f(x, dtype(d)) for d in (1, 2, 3, 16, 64, 100) for f in (np.floor_divide, np.remainder)] + [
            x // dtype(limits.max),
            x % dtype(limits.max),
            x // dtype(limits.min),
            x % dtype(limits.min),
        ]

    numbers = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1], dtype)
    small = np.arange(max(limits.min, -70), 70).astype(dtype)
    x = np.concatenate([numbers, small])
    with np.errstate(divide="ignore"):
        wanted = divided(x)
    for result, one in zip(arrayjit.jit(divided, **options)(x), wanted, strict=True):
        np.testing.assert_array_equal(result, one)
        assert result.dtype == one.dtype


LAST, FIRST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("operation", "left", "right"),
    [
        (operation, left, right)
        for operation in (lambda x, y: x + y, lambda x, y: x - y)
        for left in (LAST, LAST - 1, FIRST, FIRST + 1, 0, -1, 5)
        for right in (LAST, FIRST, 0, 1, -1, -5)
    ],
)
def test_ints_of_python_s_end_where_64_bits_do(
    operation: Callable[[int, int], int], left: int, right: int
) -> None:
    """Both operands known late, and either of them a constant."""
    wanted = operation(left, right)

    def both(x):
        return operation(int(x[0]), int(x[1]))

    def constant_right(x):
        return operation(int(x[0]), right)

    def constant_left(x):
        return operation(left, int(x[1]))

    for program in (both, constant_right, constant_left):
        jitted = arrayjit.jit(program)
        x = np.array([left, right])
        if FIRST <= wanted <= LAST:
            assert jitted(x) == wanted
        else:
            with pytest.raises(OverflowError):
                jitted(x)


@pytest.mark.parametrize("options", TARGETS, ids=str)
def test_floats_become_ints_up_to_the_ends_of_64_bits(options: dict[str, Any]) -> None:
    whole = arrayjit.jit(lambda x: int(x[0]), **options)
    for number in (-0.9, 2.9, -(2.0**63), np.nextafter(2.0**63, 0), -1e300, 1e300, 2.0**63, np.nan, np.inf):
        x = np.array([number])
        try:
            wanted = int(number)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                whole(x)
            continue
        if FIRST <= wanted <= LAST:
            assert whole(x) == wanted
        else:
            with pytest.raises(OverflowError):
                whole(x)


def counted_by_their_whole_parts(x, y, counts):
    for i in range(len(x)):
        counts[int(x[i]), int(y[i])] += 1.0
    return counts


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((np.nan, np.nan), "NaN"),
        ((1.0, np.nan), "NaN"),
        ((-(2.0**63), np.nan), "NaN"),
        ((np.inf, np.nan), "for int64"),
        ((2.0, 2.0**63), "for int64"),
        ((-9.0, -1e300), "for int64"),
        ((-9.0, 7.0), "axis 0"),
        ((8.0, -8.0), "axis 0"),
        ((-(2.0**63), 7.0), "axis 0"),
        ((7.9, -(2.0**63)), "axis 1"),
        ((7.9, -8.0), "axis 1"),
        ((-8.9, -7.9), ""),
    ],
)
def test_of_several_exceptions_the_first_of_a_line_is_raised(
    options: dict[str, Any], pair: tuple[float, float], message: str
) -> None:
    """The steps before it are done, and it is raised at the user's line."""
    x, y = random.uniform(-8, 8, 400), random.uniform(-7, 7, 400)
    x[-3], y[-3] = pair
    counted = arrayjit.jit(counted_by_their_whole_parts, **options)
    wanted, found = np.zeros((8, 7)), np.zeros((8, 7))
    if not message:
        np.testing.assert_array_equal(counted(x, y, found), counted_by_their_whole_parts(x, y, wanted))
        return
    with pytest.raises((ValueError, OverflowError, IndexError), match=message) as caught:
        counted(x, y, found)
    assert "counts[int(x[i]), int(y[i])] += 1.0" in str(caught.value)
    counted_by_their_whole_parts(x[:-3], y[:-3], wanted)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_floats_that_an_integer_type_holds_once_they_are_whole(dtype: type) -> None:
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def converted(x):
        out = np.zeros(1, dtype)
        out[0] = float(x[0])
        return out[0]

    converted = arrayjit.jit(converted)
    numbers = [least - 0.5, most + 0.5] if most < 2**53 else [-0.5 if least == 0 else float(least)]
    for number in (*numbers, 3.7):
        assert converted(np.array([number])) == int(number)
    for number in (float(least) * 3 - 3, float(most) * 3, np.nan):
        with pytest.raises((OverflowError, ValueError)):
            converted(np.array([number]))


def sums_of_digits(m, n):
    total = 0
    for i in range(n):
        digits, _ = arrayjit.while_loop(
            lambda state: state[1] > 0, lambda state: (state[0] + state[1] % 10, state[1] // 10), (0, m + i)
        )
        total += digits * digits
    return total


def common_divisors(m, n):
    total = 0
    for i in range(1, n):
        divisor, _ = arrayjit.while_loop(
            lambda state: state[1] != 0, lambda state: (state[1], state[0] % state[1]), (i, m)
        )
        total += divisor
    return total


def drawn_by_multiplying(m, n):
    seed, inside = m, 0
    for _ in range(n):
        seed = (1103515245 * seed + 12345) % 2147483648
        inside += np.where(seed % 1000 < 300, 1, 0)
    return seed, inside


@pytest.mark.parametrize("options", TARGETS, ids=str)
@pytest.mark.parametrize("program", [sums_of_digits, common_divisors, drawn_by_multiplying])
def test_numbers_without_a_sign_are_divided(program: Callable[..., Any], options: dict[str, Any]) -> None:
    jitted = arrayjit.jit(program, **options)
    for m, n in ((0, 30), (-17, 40), (3**20, 25), (-(2**31), 3)):
        np.testing.assert_array_equal(jitted(m, n), program(m, n))


def test_what_no_run_can_count_to_is_not_looked_out_for() -> None:
    def bits(x):
        count = 0
        for i in range(len(x)):
            count, _ = arrayjit.while_loop(
                lambda state: state[1] != 0,
                lambda state: (state[0] + 1, state[1] & (state[1] - 1)),
                (count, x[i]),
            )
        return count

    x = random.integers(0, 2**62, 50)
    jitted = arrayjit.jit(bits)
    assert jitted(x) == bits(x)
    assert "raise_" not in jitted.lower(x).as_text()


def test_a_counter_that_starts_at_the_end_is_looked_out_for() -> None:
    def steps(start, n):
        for _ in range(n):
            start += 1
        return start

    jitted = arrayjit.jit(steps)
    assert jitted(2**63 - 5, 4) == 2**63 - 1
    with pytest.raises(OverflowError):
        jitted(2**63 - 5, 5)


def counted_in_rows(x, y):
    place = 0
    for i in range(len(x)):
        for j in range(x.shape[1]):
            y[place] = x[i, j]
            place += 1
    return place


def asked_on_one_side(c, x):
    total = arrayjit.cond(x[0] > 0, lambda: x[c[()]], lambda: 2.0)
    total += x[c[()]]
    c[()] = 3
    return total


@pytest.mark.parametrize("options", TARGETS, ids=str)
def test_positions_that_are_outside_after_all_are_found(options: dict[str, Any]) -> None:
    rows = np.arange(63.0).reshape(7, 9)
    assert arrayjit.jit(counted_in_rows, **options)(rows, np.zeros(63)) == 63
    with pytest.raises(IndexError):
        arrayjit.jit(counted_in_rows, **options)(rows, np.zeros(50))
    for side, number in ((1.0, 4), (-1.0, 4), (1.0, -20), (-1.0, -20), (-1.0, 10)):
        cell, x = np.array(number), np.full(10, side)
        if number == 4:
            assert arrayjit.jit(asked_on_one_side, **options)(cell, x) == asked_on_one_side(np.array(4), x)
            continue
        with pytest.raises(IndexError):
            arrayjit.jit(asked_on_one_side, **options)(cell, x)
