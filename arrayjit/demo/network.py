"""A small network that learns to read digits: forward and backward pass written by hand in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import arrayjit

__all__ = ["Digits", "Network", "Step", "accuracy", "batches", "train", "train_step"]

Array = npt.NDArray[np.float32]


class Network(NamedTuple):
    """Two layers: 64 pixels, 32 hidden numbers, 10 digits."""

    weights1: Array
    bias1: Array
    weights2: Array
    bias2: Array

    @staticmethod
    def random(seed: int) -> Network:
        draw = np.random.default_rng(seed)
        return Network(
            (draw.standard_normal((64, 32)) / 8).astype(np.float32),
            np.zeros(32, np.float32),
            (draw.standard_normal((32, 10)) / 6).astype(np.float32),
            np.zeros(10, np.float32),
        )

    def zeros(self) -> Network:
        """A network of zeros: the velocity to start from."""
        return Network(*(np.zeros_like(parameter) for parameter in self))


class Digits(NamedTuple):
    """Pictures as rows of 64 pixels from 0 to 1, and for each its digit, one-hot."""

    pixels: Array
    targets: Array

    @staticmethod
    def of(pixels: npt.NDArray[Any], digits: npt.NDArray[Any]) -> Digits:
        return Digits((pixels / 16).astype(np.float32), np.eye(10, dtype=np.float32)[digits])


Step = Callable[[Network, Network, Digits], np.float32]


@arrayjit.jit
def train_step(
    network: Network, velocity: Network, batch: Digits, rate: float = 0.05, momentum: float = 0.9
) -> np.float32:
    """One step of gradient descent with momentum, in place; the batch's loss."""
    pixels, targets = batch
    hidden = np.maximum(pixels @ network.weights1 + network.bias1, 0)
    scores = hidden @ network.weights2 + network.bias2
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    loss: np.float32 = -np.log((chances * targets).sum(axis=1)).mean()

    to_scores = (chances - targets) / len(pixels)
    to_hidden = (to_scores @ network.weights2.T) * (hidden > 0)
    slopes = (pixels.T @ to_hidden, to_hidden.sum(axis=0), hidden.T @ to_scores, to_scores.sum(axis=0))
    for parameter, speed, slope in zip(network, velocity, slopes, strict=True):
        speed *= momentum
        speed -= rate * slope
        parameter += speed
    return loss


def batches(data: Digits, size: int, epochs: int, seed: int) -> Iterator[Digits]:
    """Batches of equal size, in a new order in each epoch."""
    draw = np.random.default_rng(seed)
    for _ in range(epochs):
        order = draw.permutation(len(data.pixels))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield Digits(data.pixels[chosen], data.targets[chosen])


def train(step: Step, network: Network, course: Iterable[Digits]) -> float:
    """Run `step` over all batches, changing `network`; the last loss."""
    velocity = network.zeros()
    loss = np.float32(np.nan)
    for batch in course:
        loss = step(network, velocity, batch)
    return float(loss)


def accuracy(network: Network, data: Digits) -> float:
    """The share of pictures that are read right."""
    hidden = np.maximum(data.pixels @ network.weights1 + network.bias1, 0)
    scores = hidden @ network.weights2 + network.bias2
    return float((scores.argmax(axis=1) == data.targets.argmax(axis=1)).mean())
