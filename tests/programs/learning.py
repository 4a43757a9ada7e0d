"""Programs of statistics and machine learning."""

from __future__ import annotations

from functools import partial

import numpy as np
from catalogue import Draw, Program, program

LEARNING: list[Program] = []
on_data = partial(program, LEARNING)


def table(draw: Draw) -> tuple[np.ndarray]:
    return (draw.normal(draw.n, 7),)


@on_data(lambda draw: (draw.normal(5, draw.n),))
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@on_data(lambda draw: (draw.normal(5, draw.n), draw.normal(draw.n), draw.normal(draw.n)))
def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


@on_data(lambda draw: (*table(draw), draw.normal(7), draw.uniform(1, 2, 7)))
def batch_norm(x, running_mean, running_var):
    mean, var = x.mean(axis=0), x.var(axis=0)
    running_mean *= 0.9
    running_mean += 0.1 * mean
    running_var[...] = 0.9 * running_var + 0.1 * var
    return (x - mean) / np.sqrt(var + 1e-5)


@on_data(lambda draw: tuple(draw.normal(2, draw.n, 8) for _ in range(3)))
def attention(queries, keys, values):
    scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(queries.shape[-1])
    scores = np.where(np.tri(queries.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ values


@on_data(lambda draw: (*table(draw), draw.normal(draw.n, 2), draw.normal(7, 9), draw.normal(9, 2), 0.01))
def perceptron_step(x, y, first, second, rate):
    hidden = np.maximum(x @ first, 0)
    error = hidden @ second - y
    back = (error @ second.T) * (hidden > 0)
    second -= rate * hidden.T @ error
    first -= rate * x.T @ back
    return 0.5 * np.sum(error * error)


@on_data(lambda draw: (*table(draw), draw.normal(4, 7)))
def k_means_step(points, centres):
    distances = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    members = (nearest[:, None] == np.arange(4)).astype(points.dtype)
    return nearest, members.T @ points / np.maximum(members.sum(axis=0), 1)[:, None]


@on_data(table)
def covariance(x):
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (len(x) - 1)


@on_data(lambda draw: (draw.normal(draw.n, 3), draw.normal(11, 3)))
def pairwise_distances(x, y):
    squares = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * x @ y.T
    return np.sqrt(np.maximum(squares, 0)), np.abs(x[:, None] - y).max(axis=-1)


@on_data(lambda draw: (draw.normal(draw.n, 3), 0.7))
def gaussian_kernel(x, width):
    squares = np.einsum("ij,ij->i", x, x)
    kernel = np.exp(-(squares[:, None] + squares - 2 * np.einsum("ik,jk->ij", x, x)) / (2 * width**2))
    return kernel, np.trace(kernel)


@on_data(table)
def standardise_in_place(x):
    x -= x.mean(axis=0)
    x /= x.std(axis=0)


@on_data(lambda draw: (*table(draw), draw.integers(2, draw.n), draw.normal(7), 0.1))
def logistic_regression_step(x, labels, weights, rate):
    probability = 1 / (1 + np.exp(-(x @ weights)))
    loss = -np.mean(labels * np.log(probability) + (1 - labels) * np.log1p(-probability))
    weights -= rate * x.T @ (probability - labels) / len(labels)
    return loss


@on_data(table)
def describe(x):
    mean, deviation = x.mean(axis=0), x.std(axis=0, ddof=1)
    scores = (x - mean) / deviation
    return {
        "mean": mean,
        "deviation": deviation,
        "skewness": (scores**3).mean(axis=0),
        "range": np.ptp(x, axis=0),
        "outside": np.count_nonzero(np.abs(scores) > 2),
        "largest": (x.argmax(axis=0), np.abs(x).max()),
    }


@on_data(lambda draw: (draw.normal(draw.n), draw.normal(draw.n), *table(draw)))
def momentum_and_adam(first, second, slopes):
    slope = slopes.sum(axis=1)
    first *= 0.9
    first += 0.1 * slope
    second[:] = 0.999 * np.abs(second) + 0.001 * slope**2
    return -0.01 * (first / (1 - 0.9)) / (np.sqrt(second / (1 - 0.999)) + 1e-8)


@on_data(lambda draw: (draw.normal(draw.n, 4), draw.normal(4, 5), draw.normal(5, 6)))
def three_factor_contraction(a, b, c):
    chained = np.einsum("ij,jk,kl->il", a, b, c)
    return chained, np.tensordot(a, b, axes=1) @ c, np.outer(a[0], c[0])


@on_data(lambda draw: (draw.integers(5, draw.n), draw.normal(5, 3)))
def embed_and_score(words, vectors):
    embedded = vectors[words]
    one_hot = np.eye(5, dtype=vectors.dtype)[words]
    return embedded @ vectors.T, (one_hot @ vectors - embedded).sum(), np.tanh(embedded).mean(axis=0)
