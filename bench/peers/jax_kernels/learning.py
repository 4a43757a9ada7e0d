"""Machine learning, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["LEARNING"]


def layer_norm(x, gain, bias):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def multi_head_attention(x, wq, wk, wv, wo):
    heads = 4
    length, width = x.shape
    size = width // heads

    def split(projected):
        return projected.reshape(length, heads, size).transpose(1, 0, 2)

    queries, keys, values = split(x @ wq), split(x @ wk), split(x @ wv)
    scores = queries @ keys.transpose(0, 2, 1) / jnp.sqrt(size)
    weights = jax.nn.softmax(jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf), axis=-1)
    mixed = (weights @ values).transpose(1, 0, 2).reshape(length, width)
    return mixed @ wo, weights


def mlp_training(x, labels, w1, b1, w2, b2, rate, steps):
    def loss_of(parameters):
        w1, b1, w2, b2 = parameters
        scores = jnp.maximum(x @ w1 + b1, 0) @ w2 + b2
        likelihood = jax.nn.log_softmax(scores)
        return -jnp.take_along_axis(likelihood, labels[:, None], axis=1).mean()

    def step(parameters, _):
        loss, gradient = jax.value_and_grad(loss_of)(parameters)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, gradient), loss

    parameters, losses = jax.lax.scan(step, (w1, b1, w2, b2), length=steps)
    return losses, *parameters


def k_means(points, centres, rounds):
    clusters = len(centres)

    def step(_, state):
        centres, _ = state
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1)
        total = jax.ops.segment_sum(points, nearest, clusters)
        sizes = jax.ops.segment_sum(jnp.ones(len(points)), nearest, clusters)
        return total / sizes[:, None], nearest

    centres, nearest = jax.lax.fori_loop(0, rounds, step, (centres, jnp.zeros(len(points), dtype=int)))
    return nearest, centres


def nearest_neighbours(known, labels, asked):
    distance = ((asked[:, None, :] - known) ** 2).sum(axis=-1)
    _, nearest = jax.lax.top_k(-distance, 5)
    votes = jax.nn.one_hot(labels[nearest], 4, dtype=int).sum(axis=1)
    return votes.argmax(axis=1), votes


def principal_components(data, components, steps):
    centred = data - data.mean(axis=0)
    covariance = centred.T @ centred / (len(data) - 1)

    def component(covariance, _):
        def turn(_, v):
            v = covariance @ v
            return v / jnp.linalg.norm(v)

        v = jax.lax.fori_loop(0, steps, turn, jnp.ones(data.shape[1]))
        variance = v @ covariance @ v
        return covariance - variance * jnp.outer(v, v), (variance, v)

    return jax.lax.scan(component, covariance, length=components)[1]


def gaussian_process_kernel(x, amplitude, length, period, noise):
    square = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=-1)
    first = x[:, 0]
    wave = jnp.sin(jnp.pi * jnp.abs(jnp.subtract.outer(first, first)) / period)
    kernel = amplitude**2 * jnp.exp(-0.5 * square / length**2) * jnp.exp(-2 * wave**2)
    return kernel + noise**2 * jnp.eye(len(x))


def lstm(x, w, u, b, h, c):
    size = len(h)

    def step(state, inputs):
        h, c = state
        gates = inputs + u @ h
        forget, let_in, let_out = jax.nn.sigmoid(gates[: 3 * size]).reshape(3, size)
        c = forget * c + let_in * jnp.tanh(gates[3 * size :])
        h = let_out * jnp.tanh(c)
        return (h, c), h

    (_, c), states = jax.lax.scan(step, (h, c), x @ w.T + b)
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
