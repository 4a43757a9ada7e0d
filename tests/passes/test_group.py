"""Rounds that meet only what counts in them: sums of groups, histograms, profiles over rings."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.code import Caps
from arrayjit.passes.manager import optimize
from arrayjit.tracer.calls.function import trace_function

ROUNDS, CELLS = 40, 2000
RANDOM = np.random.default_rng(11)
VALUES, WEIGHTS = RANDOM.standard_normal((2, CELLS))
LABELS = RANDOM.integers(-3, ROUNDS + 3, CELLS)
EDGES = np.linspace(-2, 2, ROUNDS + 1)


def sums(values, labels):
    total = np.zeros(ROUNDS, values.dtype)
    for k in range(ROUNDS):
        total[k] = np.sum(values[labels == k])
    return total


def sums_of_zeros(values, labels):
    total = np.zeros(ROUNDS, values.dtype)
    for k in range(ROUNDS):
        total[k] = np.where(k == labels, values, 0).sum()
    return total


def counts(values, labels):
    count = np.zeros(ROUNDS, np.int64)
    for k in range(ROUNDS):
        count[k] = np.sum(labels == k)
    return count


def greatest(values, labels):
    most = np.zeros(ROUNDS, values.dtype)
    for k in range(ROUNDS):
        most[k] = np.where(labels == k, values, -np.inf).max()
    return most


def moments(values, labels):
    found = np.zeros((ROUNDS, 3), values.dtype)
    for k in range(1, ROUNDS):
        mask = (labels + 1 == k) & (values > 0)
        found[k] = values[mask].mean(), (values[mask] ** 2).sum(), mask.sum()
    return found


def columns(values, labels):
    found = np.zeros((ROUNDS, 2), values.dtype)
    for k in range(ROUNDS):
        found[k] = np.where((labels[::2] == k)[:, None], values.reshape(-1, 2), 0).sum(axis=0)
    return found


def centres(values, labels):
    """Of points in two dimensions: rows are selected by their positions."""
    points, found = values.reshape(-1, 2), np.zeros((ROUNDS, 2), values.dtype)
    for k in range(ROUNDS):
        found[k] = points[(labels[::2] == k) & (points[:, 0] > -1)].mean(axis=0)
    return found


@pytest.mark.parametrize("function", [sums, sums_of_zeros, counts, greatest, moments, columns, centres])
@pytest.mark.parametrize(
    ("dtype", "labels"), [(np.float64, np.int64), (np.float32, np.int8), (np.float32, np.uint16)]
)
def test_groups(function, dtype, labels):
    values = np.where(VALUES > 2, np.nan, VALUES) if function is not greatest else VALUES
    agrees(function, values.astype(dtype), LABELS.astype(labels))


def kept(values, labels):
    """What one round selects is looked at by the next."""
    total, place = np.zeros(ROUNDS), np.zeros(len(values))
    for k in range(ROUNDS):
        total[k] = place[:100].sum()
        chosen = values[labels == k]
        place[: len(chosen)] = chosen
    return total


def test_selected_cells_that_later_rounds_look_at():
    agrees(kept, VALUES, LABELS)


def test_labels_beyond_all_rounds():
    labels = RANDOM.choice([np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 0, 39, 40], CELLS)
    agrees(sums, VALUES, labels)


def weighted(values, edges):
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = WEIGHTS[(values >= edges[k]) & (values < edges[k + 1])].sum()
    return total


def counted(values, edges):
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = ((edges[k] < values) & (values <= edges[k + 1])).sum()
    return total


def means(values, edges):
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = WEIGHTS[(edges[k] < values) & (edges[k + 1] > values)].mean()
    return total


BORDERS = {
    "even": EDGES,
    "uneven": np.sort(RANDOM.standard_normal(ROUNDS + 1) ** 3),
    "in decades": np.geomspace(1e-6, 3, ROUNDS + 1),
    "empty rounds": np.repeat(EDGES, 3)[: ROUNDS + 1],
    "one point": np.full(ROUNDS + 1, VALUES[7]),
    "infinite": np.concatenate([[-np.inf], EDGES[1:-1], [np.inf]]),
    "falling": EDGES[::-1],
    "not in order": RANDOM.permutation(EDGES),
    "not all numbers": np.where(np.arange(ROUNDS + 1) == 9, np.nan, EDGES),
}


@pytest.mark.parametrize("borders", BORDERS)
@pytest.mark.parametrize("function", [weighted, counted, means])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_borders(function, borders):
    values = VALUES.copy()
    values[:60] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300] * 10
    values[60 : 60 + ROUNDS] = BORDERS[borders][:ROUNDS]
    agrees(function, values, BORDERS[borders])


def test_borders_that_are_integers():
    values = RANDOM.integers(-300, 300, CELLS).astype(np.int16)
    values[:2] = np.iinfo(np.int16).min, np.iinfo(np.int16).max
    agrees(weighted, values, np.arange(-2 * ROUNDS, 2 * ROUNDS + 1, 4).astype(np.int16))


def rings(image, radius):
    profile = np.zeros(ROUNDS)
    edge = radius.max()
    for k in range(ROUNDS):
        ring = (edge * k / ROUNDS <= radius) & (radius < edge * (k + 1) / ROUNDS)
        profile[k] = image[ring].mean()
    return profile


def test_rings_of_an_image():
    radius = np.hypot(*np.ogrid[-30:40, -45:35])
    agrees(rings, RANDOM.standard_normal(radius.shape), radius)


def again_and_again(values, labels):
    """Groups that are others each time."""
    total = np.zeros(ROUNDS)
    for _ in range(3):
        for k in range(ROUNDS):
            total[k] += np.sum(values[labels == k])
        labels = (labels * 7 + 1) % ROUNDS
    return total


def test_groups_that_change():
    agrees(again_and_again, VALUES, LABELS)


def overlapping(values, edges):
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = WEIGHTS[(values >= edges[k]) & (values < edges[k] + 0.5)].sum()
    return total


def closed(values, edges):
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = WEIGHTS[(values >= edges[k]) & (values <= edges[k + 1])].sum()
    return total


def test_intervals_that_overlap():
    agrees(overlapping, VALUES, EDGES)
    agrees(closed, np.round(VALUES, 1), np.round(EDGES, 1), is_grouped=False)


def running(values, labels):
    """Each round changes what the next one looks at."""
    labels = labels.copy()
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = np.sum(values[labels == k])
        labels[k] = k + 1
    return total


def test_labels_that_rounds_change():
    agrees(running, VALUES, LABELS, is_grouped=False)


def least_to_greatest(values, rows):
    """Borders that each round finds out before it looks for what is between them."""
    total = np.zeros(ROUNDS)
    for k in range(ROUNDS):
        total[k] = WEIGHTS[(values >= rows[k].min()) & (values < rows[k].max())].sum()
    return total


def test_borders_that_rounds_find_out():
    agrees(least_to_greatest, VALUES, np.sort(RANDOM.standard_normal(9 * ROUNDS)).reshape(ROUNDS, 9), False)


MASKS = (
    lambda v, labels, edges, k: labels == k,
    lambda v, labels, edges, k: k + 2 == labels,
    lambda v, labels, edges, k: (labels == k - 1) & (v != 0),
    lambda v, labels, edges, k: (v >= edges[k]) & (v < edges[k + 1]),
    lambda v, labels, edges, k: (edges[k] < v) & (edges[k + 1] >= v) & (labels > 5),
    lambda v, labels, edges, k: (0.1 * k <= v * v) & (v * v < 0.1 * (k + 1)),
)
REDUCTIONS = (
    lambda v, mine, k: v[mine].sum(),
    lambda v, mine, k: np.where(mine, v, 0).sum(),
    lambda v, mine, k: np.where(mine, (v - k) ** 2, 0).sum(),
    lambda v, mine, k: mine.sum(),
    lambda v, mine, k: np.where(mine, v + k, -np.inf).max(),
    lambda v, mine, k: np.where(mine, v, np.inf).min(),
    lambda v, mine, k: (v[mine] * k).sum() / (1 + mine.sum()),
)


@pytest.mark.parametrize("seed", range(16))
def test_random_rounds(seed):
    random = np.random.default_rng(seed)
    rounds = int(random.integers(32, 80))
    shape = [(1500,), (30, 50), (3, 20, 25)][seed % 3]
    mask = MASKS[seed % len(MASKS)]
    chosen = [REDUCTIONS[n] for n in random.choice(len(REDUCTIONS), random.integers(1, 4), replace=False)]
    edges = np.sort(random.standard_normal(rounds + 1)) if seed % 4 else random.standard_normal(rounds + 1)

    def function(values, labels):
        found = np.zeros((rounds, len(chosen)))
        for k in range(rounds):
            mine = mask(values, labels, edges, k)
            for n, reduced in enumerate(chosen):
                found[k, n] = reduced(values, mine, k)
        return found

    values, labels = random.standard_normal(shape), random.integers(-2, rounds + 2, shape)
    agrees(function, values, labels)
    alone = arrayjit.jit(function, threads=1)(values, labels)
    np.testing.assert_array_equal(alone, arrayjit.jit(function)(values, labels))


def agrees(function, values, second, is_grouped=True):
    """Is the result NumPy's, and to the last bit that of the interpreter?"""
    computation = trace_function(function, (values, second), {}).computation
    kernel = optimize(computation, Caps(), verify=True).kernel
    assert any(note.startswith("group:") for note in kernel.notes) == is_grouped
    expected, actual = function(values, second), arrayjit.jit(function)(values, second)
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(actual, arrayjit.jit(function, target="interp")(values, second))
