"""Sequences: alignments, hidden states, filters, primes, sums that come out even."""

from __future__ import annotations

import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from .registry import EXACT, Kernel


def smith_waterman(first, second, substitution, gap=4):
    """The scores of the best local alignments that end at each pair of letters, and the best of them."""
    score = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int64)
    for i in range(1, len(first) + 1):
        row = substitution[first[i - 1]]
        for j in range(1, len(second) + 1):
            paired = score[i - 1, j - 1] + row[second[j - 1]]
            skipped = np.maximum(score[i - 1, j], score[i, j - 1]) - gap
            score[i, j] = np.maximum(0, np.maximum(paired, skipped))
    return score, score.max(), np.unravel_index(score.argmax(), score.shape)


def make_smith_waterman(random, first, second):
    substitution = random.integers(-4, 2, (20, 20))
    substitution = np.minimum(substitution, substitution.T) + np.diag(random.integers(5, 9, 20))
    letters = random.integers(20, size=first)
    other = random.integers(20, size=second)
    shared = min(first, second) // 2
    other[2 : 2 + shared] = letters[1 : 1 + shared]
    return letters, other, substitution


def check_smith_waterman(arguments, results):
    letters, other, substitution = arguments
    score, best, (i, j) = results[:3]
    shared = min(len(letters), len(other)) // 2
    assert score[i, j] == best >= np.diag(substitution)[letters[1 : 1 + shared]].sum()
    assert not score[0].any()
    assert not score[:, 0].any()
    assert score.min() == 0
    assert_array_equal(smith_waterman(other, letters, substitution)[0], score.T)


def needleman_wunsch(first, second, match=2, mismatch=-1, gap=-2):
    """The scores of the best global alignments of all pairs of prefixes."""
    n, m = len(first), len(second)
    score = np.zeros((n + 1, m + 1))
    score[0, :] = gap * np.arange(m + 1)
    score[:, 0] = gap * np.arange(n + 1)
    similar = np.where(first[:, None] == second[None, :], match, mismatch)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            score[i, j] = max(
                score[i - 1, j - 1] + similar[i - 1, j - 1], score[i - 1, j] + gap, score[i, j - 1] + gap
            )
    return score


def make_needleman_wunsch(random, first, second):
    letters = random.integers(4, size=first)
    kept = np.sort(random.choice(first, size=min(second, first - 1), replace=False))
    return letters, letters[kept]


def check_needleman_wunsch(arguments, results):
    first, second = arguments
    score = results[0]
    dropped = len(first) - len(second)
    assert score[-1, -1] == 2 * len(second) - 2 * dropped
    assert (np.abs(np.diff(score, axis=0)) <= 4).all()


def dynamic_time_warping(x, y):
    """The least sum of distances over all ways to run through two signals together."""
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0
    for i, a in enumerate(x, start=1):
        for j, b in enumerate(y, start=1):
            nearest = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = abs(a - b) + nearest
    return cost[-1, -1], cost[1:, 1:]


def make_dynamic_time_warping(random, first, second):
    times = np.sort(random.uniform(0, 1, second)) ** 1.5
    x = np.sin(np.linspace(0, 9, first)) + random.normal(0, 0.05, first)
    return x, np.sin(9 * times) + random.normal(0, 0.05, second)


def check_dynamic_time_warping(arguments, results):
    x, y = arguments
    total, cost = results[:2]
    assert_allclose(cost[0], np.cumsum(np.abs(x[0] - y)))
    assert_allclose(cost[:, 0], np.cumsum(np.abs(x - y[0])))
    rows = np.arange(max(len(x), len(y)))
    stretched = np.abs(x[rows * len(x) // len(rows)] - y[rows * len(y) // len(rows)]).sum()
    assert 0 < total < stretched


def viterbi(observed, start, transition, emission):
    """The likeliest hidden states behind a sequence of observations."""
    n, states = len(observed), len(start)
    moves, sends = np.log(transition), np.log(emission)
    back = np.zeros((n, states), dtype=int)
    score = np.log(start) + sends[:, observed[0]]
    for t in range(1, n):
        paths = score[:, None] + moves
        back[t] = paths.argmax(axis=0)
        score = paths.max(axis=0) + sends[:, observed[t]]
    path = np.empty(n, dtype=int)
    path[-1] = score.argmax()
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score.max()


def make_viterbi(random, times, states, symbols):
    transition = random.dirichlet(np.ones(states), states) + 2 * np.eye(states)
    emission = random.dirichlet(np.full(symbols, 0.3), states) + 1e-3
    hidden = np.repeat(random.integers(states, size=times // 3 + 1), 3)[:times]
    observed = np.array([random.choice(symbols, p=emission[s] / emission[s].sum()) for s in hidden])
    rows = [table / table.sum(axis=1, keepdims=True) for table in (transition, emission)]
    return observed, random.dirichlet(np.ones(states)), *rows


def check_viterbi(arguments, results):
    observed, start, transition, emission = arguments
    path, score = results[:2]

    def likelihood(path):
        steps = np.log(transition[path[:-1], path[1:]]).sum()
        return np.log(start[path[0]]) + steps + np.log(emission[path, observed]).sum()

    assert_allclose(likelihood(path), score)
    for t in range(0, len(path), 1 + len(path) // 10):
        other = path.copy()
        other[t] = (other[t] + 1) % len(start)
        assert likelihood(other) < score


def kalman_filter(measured, x, p, moves, drift, sees, noise):
    """Position and speed of a body from noisy positions, one after the other."""
    states = np.zeros((len(measured), len(x)))
    identity = np.eye(len(x))
    for t, seen in enumerate(measured):
        x = moves @ x
        p = moves @ p @ moves.T + drift
        gain = p @ sees / (sees @ p @ sees + noise)
        x = x + gain * (seen - sees @ x)
        p = (identity - np.outer(gain, sees)) @ p
        states[t] = x
    return states, p


def make_kalman_filter(random, times):
    dt = 0.1
    moves = np.array([[1, dt, dt * dt / 2], [0, 1, dt], [0, 0, 1]])
    drift = 0.02 * np.outer(moves[:, 2], moves[:, 2])
    position = 3 * np.sin(0.3 * dt * np.arange(times))
    measured = position + random.normal(0, 0.5, times)
    return measured, random.standard_normal(3), np.eye(3), moves, drift, np.array([1.0, 0, 0]), 0.25


def check_kalman_filter(arguments, results):
    measured, _, _, moves, _, _, noise = arguments
    states, p = results[:2]
    assert_allclose(p, p.T, atol=1e-12)
    assert np.linalg.eigvalsh(p).min() > 0
    predicted = moves @ states[-2]
    ratio = (states[-1, 0] - predicted[0]) / (measured[-1] - predicted[0])
    assert_allclose(ratio, p[0, 0] / noise, rtol=0.1)


def moving_average_crossings(prices, short=5, long=12):
    """The running means of the latest prices, over two spans, and where one overtakes the other."""
    n = len(prices)
    fast, slow = np.full(n, np.nan), np.full(n, np.nan)
    for t in range(long, n + 1):
        fast[t - 1] = np.mean(prices[t - short : t])
        slow[t - 1] = np.mean(prices[t - long : t])
    above = fast > slow
    crossed = np.zeros(n, dtype=bool)
    crossed[1:] = above[1:] != above[:-1]
    crossed[: long + 1] = False
    return fast, slow, crossed, np.count_nonzero(crossed)


def make_moving_average_crossings(random, days):
    return (100 + np.cumsum(random.standard_normal(days)),)


def check_moving_average_crossings(arguments, results):
    (prices,) = arguments
    fast, slow, crossed, count = results[:4]
    assert_allclose(slow[11:], np.convolve(prices, np.ones(12) / 12, "valid"))
    assert np.isnan(fast[:11]).all()
    assert 0 < count == crossed.sum()


def sieve(limit):
    """Eratosthenes: which numbers up to a limit are prime."""
    prime = np.ones(limit + 1, dtype=bool)
    prime[:2] = False
    for p in range(2, math.isqrt(limit) + 1):
        prime[p * p :: p] = False
    return prime, prime.sum()


def make_sieve(_, limit):
    return (limit,)


def check_sieve(arguments, results):
    (limit,) = arguments
    prime = results[0]
    assert_array_equal(np.flatnonzero(prime)[:10], [2, 3, 5, 7, 11, 13, 17, 19, 23, 29])
    assert results[1] == {100: 25, 1_000_000: 78_498, 20_000_000: 1_270_607}[limit]


def knapsack(weights, values, capacity):
    """The greatest value of things that fit together into knapsacks of every size."""
    best = np.zeros(capacity + 1, dtype=np.int64)
    for weight, value in zip(weights, values, strict=True):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best


def make_knapsack(random, things, capacity):
    weights = random.integers(1, 2 + capacity // 10, things)
    return weights, weights + random.integers(1, 2 + capacity // 20, things), capacity


def check_knapsack(arguments, results):
    weights, values, capacity = arguments
    best = results[0]
    assert (np.diff(best) >= 0).all()
    densest = np.argsort(-values / weights)
    weight, value = (np.concatenate([[0], np.cumsum(kind[densest])]) for kind in (weights, values))
    fits = weight <= capacity
    assert (best[weight[fits]] >= value[fits]).all()
    assert (best <= np.interp(np.arange(capacity + 1), weight, value) + 1e-9).all()


def fewest_coins(coins, amount):
    """The fewest coins that make up each amount."""
    fewest = np.full(amount + 1, amount + 1)
    fewest[0] = 0
    for coin in coins:
        for total in range(coin, amount + 1):
            fewest[total] = min(fewest[total], fewest[total - coin] + 1)
    return fewest


def make_fewest_coins(random, amount):
    return random.permutation([1, 2, 5, 10, 20, 50, 100, 200]), amount


def check_fewest_coins(arguments, results):
    coins, amount = arguments
    count, rest = 0, np.arange(amount + 1)
    for coin in sorted(coins, reverse=True):
        count, rest = count + rest // coin, rest % coin
    assert_array_equal(results[0], count)


SEQUENCES = (
    Kernel(
        "smith_waterman",
        smith_waterman,
        make_smith_waterman,
        {
            "small": {"first": 11, "second": 14},
            "medium": {"first": 130, "second": 170},
            "large": {"first": 500, "second": 700},
        },
        "own",
        check_smith_waterman,
        tolerance=EXACT,
    ),
    Kernel(
        "needleman_wunsch",
        needleman_wunsch,
        make_needleman_wunsch,
        {
            "small": {"first": 13, "second": 10},
            "medium": {"first": 200, "second": 180},
            "large": {"first": 800, "second": 700},
        },
        "own",
        check_needleman_wunsch,
        tolerance=EXACT,
    ),
    Kernel(
        "dynamic_time_warping",
        dynamic_time_warping,
        make_dynamic_time_warping,
        {
            "small": {"first": 12, "second": 15},
            "medium": {"first": 200, "second": 240},
            "large": {"first": 900, "second": 1000},
        },
        "own",
        check_dynamic_time_warping,
        tolerance=EXACT,
    ),
    Kernel(
        "viterbi",
        viterbi,
        make_viterbi,
        {
            "small": {"times": 20, "states": 4, "symbols": 6},
            "medium": {"times": 3000, "states": 12, "symbols": 20},
            "large": {"times": 20000, "states": 64, "symbols": 20},
        },
        "own",
        check_viterbi,
    ),
    Kernel(
        "kalman_filter",
        kalman_filter,
        make_kalman_filter,
        {"small": {"times": 30}, "medium": {"times": 2000}, "large": {"times": 50000}},
        "own",
        check_kalman_filter,
    ),
    Kernel(
        "moving_average_crossings",
        moving_average_crossings,
        make_moving_average_crossings,
        {"small": {"days": 60}, "medium": {"days": 4000}, "large": {"days": 100000}},
        "own",
        check_moving_average_crossings,
    ),
    Kernel(
        "sieve",
        sieve,
        make_sieve,
        {"small": {"limit": 100}, "medium": {"limit": 1_000_000}, "large": {"limit": 20_000_000}},
        "own",
        check_sieve,
        tolerance=EXACT,
    ),
    Kernel(
        "knapsack",
        knapsack,
        make_knapsack,
        {
            "small": {"things": 7, "capacity": 50},
            "medium": {"things": 40, "capacity": 1000},
            "large": {"things": 100, "capacity": 10000},
        },
        "own",
        check_knapsack,
        tolerance=EXACT,
    ),
    Kernel(
        "fewest_coins",
        fewest_coins,
        make_fewest_coins,
        {"small": {"amount": 300}, "medium": {"amount": 5000}, "large": {"amount": 100000}},
        "own",
        check_fewest_coins,
        tolerance=EXACT,
    ),
)
