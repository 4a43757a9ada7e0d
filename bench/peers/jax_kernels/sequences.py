"""Sequences, for JAX: recurrences along the rows are cumulative maxima and minima.

There is no sieve, whose slices have as many lengths as there are primes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["SEQUENCES"]


def smith_waterman(first, second, substitution):
    gap = 4
    place = gap * jnp.arange(len(second) + 1)

    def row(above, letter):
        paired = above[:-1] + substitution[letter][second]
        best = jnp.maximum(0, jnp.maximum(paired, above[1:] - gap))
        best = jnp.concatenate([jnp.zeros(1, best.dtype), best])
        best = jax.lax.cummax(best + place) - place
        return best, best

    top = jnp.zeros(len(second) + 1, dtype=int)
    score = jnp.concatenate([top[None], jax.lax.scan(row, top, first)[1]])
    return score, score.max(), jnp.unravel_index(score.argmax(), score.shape)


def needleman_wunsch(first, second):
    gap = -2.0
    place = gap * jnp.arange(len(second) + 1)

    def row(above, letter):
        paired = above[:-1] + jnp.where(letter == second, 2, -1)
        best = jnp.maximum(paired, above[1:] + gap)
        best = jnp.concatenate([above[:1] + gap, best])
        best = jax.lax.cummax(best - place) + place
        return best, best

    return jnp.concatenate([place[None], jax.lax.scan(row, place, first)[1]])


def dynamic_time_warping(x, y):
    top = jnp.full(len(y) + 1, jnp.inf).at[0].set(0)

    def row(above, a):
        total = jnp.cumsum(jnp.abs(a - y))
        before = jnp.concatenate([jnp.zeros(1), total[:-1]])
        nearest = jax.lax.cummin(jnp.minimum(above[1:], above[:-1]) - before)
        cost = total + nearest
        return jnp.concatenate([jnp.full(1, jnp.inf), cost]), cost

    cost = jax.lax.scan(row, top, x)[1]
    return cost[-1, -1], cost


def viterbi(observed, start, transition, emission):
    moves, sends = jnp.log(transition), jnp.log(emission)

    def forwards(score, seen):
        paths = score[:, None] + moves
        return paths.max(axis=0) + sends[:, seen], paths.argmax(axis=0)

    def backwards(state, back):
        return back[state], state

    score, back = jax.lax.scan(forwards, jnp.log(start) + sends[:, observed[0]], observed[1:])
    first, path = jax.lax.scan(backwards, score.argmax(), back, reverse=True)
    return jnp.concatenate([first[None], path]), score.max()


def kalman_filter(measured, x, p, moves, drift, sees, noise):
    identity = jnp.eye(len(x))

    def step(state, seen):
        x, p = state
        x = moves @ x
        p = moves @ p @ moves.T + drift
        gain = p @ sees / (sees @ p @ sees + noise)
        x = x + gain * (seen - sees @ x)
        return (x, (identity - jnp.outer(gain, sees)) @ p), x

    (_, p), states = jax.lax.scan(step, (x, p), measured)
    return states, p


def moving_average_crossings(prices):
    short, long = 5, 12
    n = len(prices)

    def running(span):
        total = sum(prices[long - 1 - k : n - k] for k in range(span))
        return jnp.concatenate([jnp.full(long - 1, jnp.nan), total / span])

    fast, slow = running(short), running(long)
    above = fast > slow
    crossed = jnp.concatenate([jnp.zeros(1, bool), above[1:] != above[:-1]]).at[: long + 1].set(False)
    return fast, slow, crossed, jnp.count_nonzero(crossed)


def knapsack(weights, values, capacity):
    room = jnp.arange(capacity + 1)

    def put_in(best, thing):
        weight, value = thing
        filled = jnp.where(room >= weight, best[room - weight] + value, 0)
        return jnp.maximum(best, filled), None

    empty = jnp.zeros(capacity + 1, dtype=int)
    return jax.lax.scan(put_in, empty, (weights, values))[0]


def fewest_coins(coins, amount):
    def one_more(total, fewest):
        before = jnp.where(coins <= total, fewest[total - coins], amount)
        return fewest.at[total].set(before.min() + 1)

    return jax.lax.fori_loop(1, amount + 1, one_more, jnp.zeros(amount + 1, dtype=int))


SEQUENCES = {
    "smith_waterman": smith_waterman,
    "needleman_wunsch": needleman_wunsch,
    "dynamic_time_warping": dynamic_time_warping,
    "viterbi": viterbi,
    "kalman_filter": kalman_filter,
    "moving_average_crossings": moving_average_crossings,
    "knapsack": knapsack,
    "fewest_coins": fewest_coins,
}
