"""The demo's programs are plain NumPy that gives the same jitted, and they do what they say."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from arrayjit.demo import network, pictures
from arrayjit.demo.measure import largest_difference
from arrayjit.demo.network import Digits, Network


def photo() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (31, 37, 3), np.uint8)


def digits() -> Digits:
    draw = np.random.default_rng(1)
    answers = draw.integers(0, 10, 200)
    return Digits.of(np.eye(64)[6 * answers] * 12 + draw.random((200, 64)), answers)


def test_the_developed_picture_is_numpys() -> None:
    jitted, plain = pictures.develop(photo()), inspect.unwrap(pictures.develop)(photo())
    assert [(image.shape, image.dtype) for image in jitted] == [((31, 37, 3), "f4"), ((31, 37), "f4")]
    assert largest_difference(jitted, plain) < 1e-5


def test_a_blur_keeps_a_flat_picture_and_edges_find_nothing_in_it() -> None:
    flat = np.full((20, 30), 0.25, np.float32)
    np.testing.assert_allclose(pictures.blur(flat, 4, 1.5), flat, rtol=1e-6)
    np.testing.assert_array_equal(pictures.edges(flat), 0)
    np.testing.assert_allclose(pictures.local_contrast(flat, 3), 0, atol=1e-4)


def test_edges_measure_the_slope() -> None:
    ramp = np.tile(np.arange(10, dtype=np.float32), (6, 1))
    np.testing.assert_array_equal(pictures.edges(ramp)[:, 1:-1], 8)


def test_the_local_mean_is_that_of_the_window() -> None:
    image = np.random.default_rng(0).random((12, 15))
    assert pictures.local_mean(image, 2)[5, 7] == pytest.approx(image[3:8, 5:10].mean())


def test_a_training_step_changes_the_network_as_numpy_does() -> None:
    batch = next(network.batches(digits(), 32, 1, 0))
    ours, theirs = Network.random(0), Network.random(0)
    loss = network.train_step(ours, ours.zeros(), batch)
    wanted = inspect.unwrap(network.train_step)(theirs, theirs.zeros(), batch)
    assert largest_difference((loss, *ours), (wanted, *theirs)) < 1e-5
    assert not np.array_equal(ours.weights1, Network.random(0).weights1)


def test_the_slopes_are_those_of_the_loss() -> None:
    """Along each parameter's own slope, the loss falls as steeply as the slope is long."""
    step = inspect.unwrap(network.train_step)
    batch = Digits(*(array.astype(np.float64) for array in digits()))
    start = Network(*(parameter.astype(np.float64) for parameter in Network.random(0)))
    moved, velocity = Network(*map(np.copy, start)), start.zeros()
    before = step(moved, velocity, batch, 1e-6, 0.0)
    after = step(moved, velocity, batch, 0.0, 0.0)
    slopes = [(old - new) / 1e-6 for old, new in zip(start, moved, strict=True)]
    assert (before - after) / 1e-6 == pytest.approx(sum((slope**2).sum() for slope in slopes), rel=1e-3)


def test_training_learns() -> None:
    state = Network.random(0)
    course = network.batches(digits(), 32, 40, 0)
    untrained = network.accuracy(state, digits())
    loss = network.train(network.train_step, state, course)
    assert untrained < 0.5 < 0.95 < network.accuracy(state, digits())
    assert loss < 0.3


def test_batches_are_whole_and_in_a_new_order_in_each_epoch() -> None:
    course = list(network.batches(digits(), 64, 2, 0))
    assert [len(batch.pixels) for batch in course] == [64] * 6
    assert not np.array_equal(course[0].pixels, course[3].pixels)
