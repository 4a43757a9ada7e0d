"""Layers of neural networks, in single precision."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import SINGLE, Kernel


def convolution(images, weights, bias):
    """Slides a stack of filters over images whose last axis is the channel."""
    k = weights.shape[0]
    n, height, width, _ = images.shape
    output = np.empty((n, height - k + 1, width - k + 1, weights.shape[3]), dtype=images.dtype)
    for i in range(height - k + 1):
        for j in range(width - k + 1):
            window = images[:, i : i + k, j : j + k, :, np.newaxis]
            output[:, i, j, :] = np.sum(window * weights[np.newaxis], axis=(1, 2, 3))
    return output + bias


def make_convolution(random, n, height, width, inputs, outputs, k):
    images = random.standard_normal((n, height, width, inputs), dtype=np.float32)
    weights = random.standard_normal((k, k, inputs, outputs), dtype=np.float32)
    return images, weights, random.standard_normal(outputs, dtype=np.float32)


def check_convolution(arguments, results):
    images, weights, bias = arguments
    windows = np.lib.stride_tricks.sliding_window_view(images, weights.shape[:2], axis=(1, 2))
    wanted = np.einsum("nijcab,abco->nijo", windows, weights) + bias
    assert_allclose(results[0], wanted, atol=1e-5 * np.abs(wanted).max())


def softmax(x):
    """Positive numbers that sum to one along the last axis."""
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def make_softmax(random, n, heads, length):
    return (5 * random.standard_normal((n, heads, length, length), dtype=np.float32) + 100,)


def check_softmax(arguments, results):
    (x,) = arguments
    assert_allclose(results[0].sum(axis=-1), 1, atol=1e-6)
    assert_allclose(np.log(results[0][..., 1:] / results[0][..., :1]), x[..., 1:] - x[..., :1], atol=1e-4)


LAYERS = (
    Kernel(
        "convolution",
        convolution,
        make_convolution,
        {
            "small": {"n": 2, "height": 6, "width": 7, "inputs": 3, "outputs": 4, "k": 2},
            "medium": {"n": 4, "height": 28, "width": 30, "inputs": 3, "outputs": 16, "k": 5},
            "large": {"n": 16, "height": 80, "width": 84, "inputs": 3, "outputs": 16, "k": 7},
        },
        source="NPBench",
        check=check_convolution,
        tolerance=SINGLE,
    ),
    Kernel(
        "softmax",
        softmax,
        make_softmax,
        {
            "small": {"n": 2, "heads": 3, "length": 9},
            "medium": {"n": 8, "heads": 8, "length": 256},
            "large": {"n": 16, "heads": 16, "length": 512},
        },
        source="NPBench",
        check=check_softmax,
        tolerance=SINGLE,
    ),
)
