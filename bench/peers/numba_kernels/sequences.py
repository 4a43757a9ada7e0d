"""Sequences, for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["SEQUENCES"]


@njit
def smith_waterman(first, second, substitution):
    gap = 4
    score = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int64)
    best, row, column = 0, 0, 0
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            paired = score[i - 1, j - 1] + substitution[first[i - 1], second[j - 1]]
            skipped = max(score[i - 1, j], score[i, j - 1]) - gap
            score[i, j] = max(0, paired, skipped)
            if score[i, j] > best:
                best, row, column = score[i, j], i, j
    return score, best, (row, column)


@njit
def needleman_wunsch(first, second):
    gap = -2.0
    n, m = len(first), len(second)
    score = np.zeros((n + 1, m + 1))
    for j in range(m + 1):
        score[0, j] = gap * j
    for i in range(1, n + 1):
        score[i, 0] = gap * i
        for j in range(1, m + 1):
            similar = 2.0 if first[i - 1] == second[j - 1] else -1.0
            score[i, j] = max(score[i - 1, j - 1] + similar, score[i - 1, j] + gap, score[i, j - 1] + gap)
    return score


@njit
def dynamic_time_warping(x, y):
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            nearest = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = abs(x[i - 1] - y[j - 1]) + nearest
    return cost[-1, -1], cost[1:, 1:]


@njit
def viterbi(observed, start, transition, emission):
    n, states = len(observed), len(start)
    moves, sends = np.log(transition), np.log(emission)
    back = np.zeros((n, states), dtype=np.int64)
    score, following = np.log(start) + sends[:, observed[0]], np.empty(states)
    for t in range(1, n):
        for after in range(states):
            best, came = score[0] + moves[0, after], 0
            for before in range(1, states):
                paths = score[before] + moves[before, after]
                if paths > best:
                    best, came = paths, before
            back[t, after] = came
            following[after] = best + sends[after, observed[t]]
        score, following = following, score
    path = np.empty(n, dtype=np.int64)
    path[-1] = score.argmax()
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score.max()


@njit
def kalman_filter(measured, x, p, moves, drift, sees, noise):
    states = np.zeros((len(measured), len(x)))
    identity = np.eye(len(x))
    for t in range(len(measured)):
        x = moves @ x
        p = moves @ p @ moves.T + drift
        gain = p @ sees / (sees @ p @ sees + noise)
        x = x + gain * (measured[t] - sees @ x)
        p = (identity - np.outer(gain, sees)) @ p
        states[t] = x
    return states, p


@njit
def mean_of(prices, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += prices[i]
    return total / (stop - start)


@njit
def moving_average_crossings(prices):
    short, long = 5, 12
    n = len(prices)
    fast, slow = np.full(n, np.nan), np.full(n, np.nan)
    crossed = np.zeros(n, dtype=np.bool_)
    count = 0
    for t in range(long, n + 1):
        fast[t - 1] = mean_of(prices, t - short, t)
        slow[t - 1] = mean_of(prices, t - long, t)
        above, before = fast[t - 1] > slow[t - 1], fast[t - 2] > slow[t - 2]
        if t - 1 > long and above != before:
            crossed[t - 1] = True
            count += 1
    return fast, slow, crossed, count


@njit
def sieve(limit):
    prime = np.ones(limit + 1, dtype=np.bool_)
    prime[:2] = False
    for p in range(2, int(math.sqrt(limit)) + 1):
        if prime[p]:
            for multiple in range(p * p, limit + 1, p):
                prime[multiple] = False
    return prime, prime.sum()


@njit
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for k in range(len(weights)):
        for room in range(capacity, weights[k] - 1, -1):
            best[room] = max(best[room], best[room - weights[k]] + values[k])
    return best


@njit
def fewest_coins(coins, amount):
    fewest = np.full(amount + 1, amount + 1)
    fewest[0] = 0
    for coin in coins:
        for total in range(coin, amount + 1):
            fewest[total] = min(fewest[total], fewest[total - coin] + 1)
    return fewest


SEQUENCES = {
    "smith_waterman": smith_waterman,
    "needleman_wunsch": needleman_wunsch,
    "dynamic_time_warping": dynamic_time_warping,
    "viterbi": viterbi,
    "kalman_filter": kalman_filter,
    "moving_average_crossings": moving_average_crossings,
    "sieve": sieve,
    "knapsack": knapsack,
    "fewest_coins": fewest_coins,
}
