"""Machine learning: networks with their gradients, clusters, neighbours, components, kernels."""

from __future__ import annotations

import numpy as np
from numpy import exp, log, maximum, sqrt
from numpy.testing import assert_allclose, assert_array_equal

from .registry import Kernel


def softmax(scores):
    shifted = exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def layer_norm(x, gain, bias, eps=1e-5):
    """Every row is shifted and scaled to mean 0 and variance 1, then by learnt numbers."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / sqrt(variance + eps) * gain + bias


def make_layer_norm(random, rows, width):
    x = random.normal(3, 2, (rows, width))
    return x, random.uniform(0.5, 2, width), random.standard_normal(width)


def check_layer_norm(arguments, results):
    _, gain, bias = arguments
    normal = (results[0] - bias) / gain
    assert_allclose(normal.sum(axis=1), 0, atol=1e-9)
    assert_allclose((normal**2).mean(axis=1), 1, atol=1e-4)


def multi_head_attention(x, wq, wk, wv, wo, heads=4):
    """Self-attention: every token mixes the values of those up to itself, in several heads."""
    length, width = x.shape
    size = width // heads

    def split(projected):
        return projected.reshape(length, heads, size).transpose(1, 0, 2)

    queries, keys, values = split(x @ wq), split(x @ wk), split(x @ wv)
    scores = queries @ keys.transpose(0, 2, 1) / sqrt(size)
    past = np.tril(np.ones((length, length), dtype=bool))
    weights = softmax(np.where(past, scores, -np.inf))
    mixed = (weights @ values).transpose(1, 0, 2).reshape(length, width)
    return mixed @ wo, weights


def make_multi_head_attention(random, length, width):
    weights = random.normal(0, width**-0.5, (4, width, width))
    return random.standard_normal((length, width)), *weights


def check_multi_head_attention(arguments, results):
    x, _, _, wv, wo = arguments
    mixed, weights = results[:2]
    assert_allclose(weights.sum(axis=-1), 1)
    assert not np.triu(weights, 1).any()
    assert_allclose(mixed[0], x[0] @ wv @ wo, atol=1e-9)


class Dense:
    """An affine layer, which remembers its input for the way back."""

    def __init__(self, weights, bias):
        self.weights = weights
        self.bias = bias

    def forward(self, x):
        self.x = x
        return x @ self.weights + self.bias

    def backward(self, gradient, rate):
        before = gradient @ self.weights.T
        self.weights -= rate * self.x.T @ gradient
        self.bias -= rate * gradient.sum(axis=0)
        return before


def mlp_training(x, labels, w1, b1, w2, b2, rate, steps):
    """Gradient descent on the cross-entropy of a network with one hidden layer."""
    rows = np.arange(len(x))
    first, second = Dense(w1, b1), Dense(w2, b2)
    losses = np.empty(steps)
    for step in range(steps):
        hidden = maximum(first.forward(x), 0)
        predicted = softmax(second.forward(hidden))
        losses[step] = -log(predicted[rows, labels]).mean()
        gradient = predicted.copy()
        gradient[rows, labels] -= 1
        gradient /= len(x)
        before = second.backward(gradient, rate)
        first.backward(before * (hidden > 0), rate)
    return losses


def make_mlp_training(random, rows, inputs, hidden, classes, steps):
    x = random.standard_normal((rows, inputs))
    labels = (x @ random.standard_normal((inputs, classes))).argmax(axis=1)
    w1 = random.normal(0, inputs**-0.5, (inputs, hidden))
    w2 = random.normal(0, hidden**-0.5, (hidden, classes))
    return x, labels, w1, 0.1 * random.standard_normal(hidden), w2, np.zeros(classes), 0.5, steps


def check_mlp_training(arguments, results):
    losses, _, _, w1, _, _, b2 = results[:7]
    assert (np.diff(losses) < 0).all()
    assert abs(b2.sum()) < 1e-9
    assert not np.array_equal(w1, arguments[2])


def k_means(points, centres, rounds):
    """Lloyd's iteration: every point joins its nearest centre, every centre moves to the mean."""
    for _ in range(rounds):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1)
        for k in range(len(centres)):
            centres[k] = points[nearest == k].mean(axis=0)
    return nearest


def make_k_means(random, points, dimensions, clusters, rounds):
    homes = 6 * random.standard_normal((clusters, dimensions))
    drawn = homes[random.integers(clusters, size=points)] + random.standard_normal((points, dimensions))
    return drawn, drawn[:: points // clusters][:clusters].copy(), rounds


def check_k_means(arguments, results):
    points, before, _ = arguments
    nearest, _, after, _ = results
    assert_array_equal(np.unique(nearest), np.arange(len(before)))
    spread = [((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum() for centres in (before, after)]
    assert spread[1] < spread[0]
    assert_allclose(after[2], points[nearest == 2].mean(axis=0))


def nearest_neighbours(known, labels, asked, k=5, classes=4):
    """The class that most of the k nearest known points have, for every point asked about."""
    everyone = np.arange(len(asked))
    distance = ((asked[:, None, :] - known) ** 2).sum(axis=-1)
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    for _ in range(k):
        nearest = np.argmin(distance, axis=1)
        votes[everyone, labels[nearest]] += 1
        distance[everyone, nearest] = np.inf
    return votes.argmax(axis=1), votes


def make_nearest_neighbours(random, known, asked, dimensions):
    homes = 2 * random.standard_normal((4, dimensions))
    labels = random.integers(4, size=known)
    points = homes[labels] + random.standard_normal((known, dimensions))
    return points, labels, random.normal(0, 2, (asked, dimensions))


def check_nearest_neighbours(arguments, results):
    known, labels, asked = arguments
    votes = results[1]
    distance = np.linalg.norm(asked[:, None] - known, axis=2)
    nearest = np.argsort(distance, axis=1)[:, :5]
    assert_array_equal(votes, np.stack([(labels[nearest] == c).sum(axis=1) for c in range(4)], axis=1))


def principal_components(data, components, steps):
    """Power iteration on the covariance, which is deflated by every direction found."""
    centred = data - data.mean(axis=0)
    covariance = centred.T @ centred / (len(data) - 1)
    directions = np.zeros((components, data.shape[1]))
    variances = np.zeros(components)
    for c in range(components):
        v = np.ones(data.shape[1])
        for _ in range(steps):
            v = covariance @ v
            v /= np.linalg.norm(v)
        variances[c] = v @ covariance @ v
        directions[c] = v
        covariance -= variances[c] * np.outer(v, v)
    return variances, directions


def make_principal_components(random, rows, columns, components, steps):
    turned, _ = np.linalg.qr(random.standard_normal((columns, columns)))
    scales = 0.8 ** np.arange(columns)
    return random.standard_normal((rows, columns)) * scales @ turned + 1, components, steps


def check_principal_components(arguments, results):
    data, components, _ = arguments
    variances, directions = results[:2]
    wanted = np.linalg.eigvalsh(np.cov(data.T))[::-1][:components]
    assert_allclose(variances, wanted, rtol=1e-6)
    assert_allclose(directions @ directions.T, np.eye(components), atol=1e-4)


def squared_distances(x, y):
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)


def gaussian_process_kernel(x, amplitude, length, period, noise):
    """The covariance of a process that is smooth, nearly periodic in its first variable, and noisy."""
    smooth = exp(-0.5 * squared_distances(x, x) / length**2)
    first = x[:, 0]
    periodic = exp(-2 * np.sin(np.pi * np.abs(np.subtract.outer(first, first)) / period) ** 2)
    kernel = amplitude**2 * smooth * periodic
    kernel[np.diag_indices(len(x))] += noise**2
    return kernel


def make_gaussian_process_kernel(random, points, dimensions):
    return random.standard_normal((points, dimensions)), 1.7, 0.8, 2.5, 0.1


def check_gaussian_process_kernel(arguments, results):
    kernel = results[0]
    assert_allclose(kernel, kernel.T)
    assert_allclose(np.diag(kernel), 1.7**2 + 0.1**2)
    assert np.linalg.eigvalsh(kernel[:60, :60]).min() > 0.9 * 0.1**2


def lstm(x, w, u, b, h, c):
    """A recurrent network with gates, run over a sequence; all hidden states."""

    def sigmoid(z):
        return 1 / (1 + exp(-z))

    size = len(h)
    states = np.zeros((len(x), size))
    for t in range(len(x)):
        gates = w @ x[t] + u @ h + b
        forget = sigmoid(gates[:size])
        let_in = sigmoid(gates[size : 2 * size])
        let_out = sigmoid(gates[2 * size : 3 * size])
        c = forget * c + let_in * np.tanh(gates[3 * size :])
        h = let_out * np.tanh(c)
        states[t] = h
    return states, c


def make_lstm(random, length, inputs, size):
    x = random.standard_normal((length, inputs))
    w, u = random.normal(0, 0.4, (4 * size, inputs)), random.normal(0, size**-0.5, (4 * size, size))
    return x, w, u, random.standard_normal(4 * size), *random.standard_normal((2, size))


def check_lstm(arguments, results):
    x, w, u, b, _, _ = arguments
    states, c = results[:2]
    assert np.abs(states).max() < 1
    out = (w @ x[-1] + u @ states[-2] + b)[2 * len(c) : 3 * len(c)]
    assert_allclose(states[-1] * (1 + exp(-out)), np.tanh(c), rtol=1e-9)


LEARNING = (
    Kernel(
        "layer_norm",
        layer_norm,
        make_layer_norm,
        {
            "small": {"rows": 7, "width": 33},
            "medium": {"rows": 2048, "width": 512},
            "large": {"rows": 8192, "width": 2048},
        },
        "own",
        check_layer_norm,
    ),
    Kernel(
        "multi_head_attention",
        multi_head_attention,
        make_multi_head_attention,
        {
            "small": {"length": 9, "width": 16},
            "medium": {"length": 384, "width": 256},
            "large": {"length": 2048, "width": 512},
        },
        "own",
        check_multi_head_attention,
    ),
    Kernel(
        "mlp_training",
        mlp_training,
        make_mlp_training,
        {
            "small": {"rows": 30, "inputs": 6, "hidden": 9, "classes": 3, "steps": 7},
            "medium": {"rows": 1000, "inputs": 64, "hidden": 96, "classes": 10, "steps": 20},
            "large": {"rows": 4000, "inputs": 256, "hidden": 256, "classes": 10, "steps": 20},
        },
        "own",
        check_mlp_training,
    ),
    Kernel(
        "k_means",
        k_means,
        make_k_means,
        {
            "small": {"points": 60, "dimensions": 3, "clusters": 4, "rounds": 6},
            "medium": {"points": 5000, "dimensions": 8, "clusters": 12, "rounds": 8},
            "large": {"points": 40000, "dimensions": 8, "clusters": 20, "rounds": 10},
        },
        "own",
        check_k_means,
    ),
    Kernel(
        "nearest_neighbours",
        nearest_neighbours,
        make_nearest_neighbours,
        {
            "small": {"known": 40, "asked": 11, "dimensions": 3},
            "medium": {"known": 3000, "asked": 300, "dimensions": 8},
            "large": {"known": 8000, "asked": 800, "dimensions": 8},
        },
        "own",
        check_nearest_neighbours,
    ),
    Kernel(
        "principal_components",
        principal_components,
        make_principal_components,
        {
            "small": {"rows": 50, "columns": 6, "components": 3, "steps": 60},
            "medium": {"rows": 20000, "columns": 40, "components": 6, "steps": 400},
            "large": {"rows": 100000, "columns": 160, "components": 12, "steps": 4000},
        },
        "own",
        check_principal_components,
    ),
    Kernel(
        "gaussian_process_kernel",
        gaussian_process_kernel,
        make_gaussian_process_kernel,
        {
            "small": {"points": 20, "dimensions": 2},
            "medium": {"points": 700, "dimensions": 4},
            "large": {"points": 4000, "dimensions": 4},
        },
        "own",
        check_gaussian_process_kernel,
    ),
    Kernel(
        "lstm",
        lstm,
        make_lstm,
        {
            "small": {"length": 13, "inputs": 3, "size": 5},
            "medium": {"length": 1000, "inputs": 32, "size": 48},
            "large": {"length": 6000, "inputs": 96, "size": 160},
        },
        "own",
        check_lstm,
    ),
)
