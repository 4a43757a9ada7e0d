"""Machine learning, for Numba: products of matrices are left to BLAS, the rest are loops."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .flags import SUMS

__all__ = ["LEARNING"]


@njit(parallel=True, fastmath=SUMS)
def layer_norm(x, gain, bias):
    out = np.empty_like(x)
    width = x.shape[1]
    for i in prange(x.shape[0]):
        total = 0.0
        for j in range(width):
            total += x[i, j]
        mean = total / width
        squares = 0.0
        for j in range(width):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = 1 / math.sqrt(squares / width + 1e-5)
        for j in range(width):
            out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
    return out


@njit(parallel=True, fastmath=SUMS)
def multi_head_attention(x, wq, wk, wv, wo):
    heads = 4
    length, width = x.shape
    size = width // heads
    queries, keys, values = x @ wq, x @ wk, x @ wv
    weights = np.zeros((heads, length, length))
    mixed = np.empty((length, width))
    for head in range(heads):
        left, right = head * size, (head + 1) * size
        q = np.ascontiguousarray(queries[:, left:right])
        k = np.ascontiguousarray(keys[:, left:right])
        v = np.ascontiguousarray(values[:, left:right])
        scores = q @ k.T
        for i in prange(length):
            largest = scores[i, 0]
            for j in range(1, i + 1):
                largest = max(largest, scores[i, j])
            total = 0.0
            for j in range(i + 1):
                weights[head, i, j] = math.exp((scores[i, j] - largest) / math.sqrt(size))
                total += weights[head, i, j]
            for j in range(i + 1):
                weights[head, i, j] /= total
        mixed[:, left:right] = weights[head] @ v
    return mixed @ wo, weights


@njit(fastmath=SUMS)
def softmax(scores):
    """In place."""
    for i in range(scores.shape[0]):
        largest = scores[i, 0]
        for j in range(1, scores.shape[1]):
            largest = max(largest, scores[i, j])
        total = 0.0
        for j in range(scores.shape[1]):
            scores[i, j] = math.exp(scores[i, j] - largest)
            total += scores[i, j]
        for j in range(scores.shape[1]):
            scores[i, j] /= total


@njit
def mlp_training(x, labels, w1, b1, w2, b2, rate, steps):
    rows = len(x)
    losses = np.empty(steps)
    for step in range(steps):
        hidden = np.maximum(x @ w1 + b1, 0)
        gradient = hidden @ w2 + b2
        softmax(gradient)
        loss = 0.0
        for i in range(rows):
            loss -= math.log(gradient[i, labels[i]])
            gradient[i, labels[i]] -= 1
        losses[step] = loss / rows
        gradient /= rows
        before = gradient @ w2.T
        w2 -= rate * (hidden.T @ gradient)
        b2 -= rate * gradient.sum(axis=0)
        for i in range(rows):
            for j in range(hidden.shape[1]):
                if hidden[i, j] <= 0:
                    before[i, j] = 0
        w1 -= rate * (x.T @ before)
        b1 -= rate * before.sum(axis=0)
    return losses


@njit(parallel=True)
def k_means(points, centres, rounds):
    count, dimensions = points.shape
    clusters = len(centres)
    nearest = np.empty(count, dtype=np.int64)
    for _ in range(rounds):
        for i in prange(count):
            best = np.inf
            for k in range(clusters):
                distance = 0.0
                for d in range(dimensions):
                    distance += (points[i, d] - centres[k, d]) ** 2
                if distance < best:
                    best = distance
                    nearest[i] = k
        sizes = np.zeros(clusters)
        centres[:] = 0.0
        for i in range(count):
            sizes[nearest[i]] += 1
            for d in range(dimensions):
                centres[nearest[i], d] += points[i, d]
        for k in range(clusters):
            for d in range(dimensions):
                centres[k, d] /= sizes[k]
    return nearest


@njit(parallel=True)
def nearest_neighbours(known, labels, asked):
    k, classes = 5, 4
    votes = np.zeros((len(asked), classes), dtype=np.int64)
    chosen = np.empty(len(asked), dtype=np.int64)
    for i in prange(len(asked)):
        nearest, least = np.empty(k, dtype=np.int64), np.full(k, np.inf)
        for j in range(len(known)):
            distance = 0.0
            for d in range(known.shape[1]):
                distance += (asked[i, d] - known[j, d]) ** 2
            if distance < least[k - 1]:
                place = k - 1
                while place > 0 and distance < least[place - 1]:
                    least[place], nearest[place] = least[place - 1], nearest[place - 1]
                    place -= 1
                least[place], nearest[place] = distance, j
        for place in range(k):
            votes[i, labels[nearest[place]]] += 1
        chosen[i] = np.argmax(votes[i])
    return chosen, votes


@njit
def principal_components(data, components, steps):
    rows, columns = data.shape
    mean = np.zeros(columns)
    for i in range(rows):
        for j in range(columns):
            mean[j] += data[i, j]
    centred = data - mean / rows
    covariance = centred.T @ centred / (rows - 1)
    directions = np.zeros((components, columns))
    variances = np.zeros(components)
    for c in range(components):
        v = np.ones(columns)
        for _ in range(steps):
            v = covariance @ v
            v /= np.linalg.norm(v)
        variances[c] = v @ (covariance @ v)
        directions[c] = v
        covariance -= variances[c] * np.outer(v, v)
    return variances, directions


@njit(parallel=True)
def gaussian_process_kernel(x, amplitude, length, period, noise):
    n = len(x)
    kernel = np.empty((n, n))
    for i in prange(n):
        for j in range(n):
            square = 0.0
            for d in range(x.shape[1]):
                square += (x[i, d] - x[j, d]) ** 2
            wave = math.sin(math.pi * abs(x[i, 0] - x[j, 0]) / period)
            kernel[i, j] = amplitude**2 * math.exp(-0.5 * square / length**2 - 2 * wave * wave)
        kernel[i, i] += noise**2
    return kernel


@njit(inline="always")
def sigmoid(z):
    return 1 / (1 + math.exp(-z))


@njit
def lstm(x, w, u, b, h, c):
    size = len(h)
    h, c = h.copy(), c.copy()
    states = np.empty((len(x), size))
    inputs = x @ w.T
    for t in range(len(x)):
        gates = u @ h
        for i in range(4 * size):
            gates[i] += inputs[t, i] + b[i]
        for i in range(size):
            kept = sigmoid(gates[i]) * c[i]
            c[i] = kept + sigmoid(gates[size + i]) * math.tanh(gates[3 * size + i])
            h[i] = sigmoid(gates[2 * size + i]) * math.tanh(c[i])
            states[t, i] = h[i]
    return states, c


LEARNING = {
    "layer_norm": layer_norm,
    "multi_head_attention": multi_head_attention,
    "mlp_training": mlp_training,
    "k_means": k_means,
    "nearest_neighbours": nearest_neighbours,
    "principal_components": principal_components,
    "gaussian_process_kernel": gaussian_process_kernel,
    "lstm": lstm,
}
