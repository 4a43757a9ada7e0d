"""Code as it stands in scientific packages: image and audio processing, coding, statistics, point clouds,
objects that dispatch on classes, tapes of derivatives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatchmethod
from typing import Any, NamedTuple

import numpy as np
from catalogue import Program, program

PACKAGES: list[Program] = []
packaged = partial(program, PACKAGES)


# ---- images and sounds -------------------------------------------------------------------------------


@packaged(lambda draw: (draw.uniform(0, 256, draw.n, draw.n + 2),))
def error_diffusion(image):
    """Floyd and Steinberg's dithering."""
    out = image.copy()
    height, width = out.shape
    for y in range(height):
        for x in range(width):
            old = out[y, x]
            out[y, x] = np.where(old < 128, 0.0, 255.0)
            error = old - out[y, x]
            if x + 1 < width:
                out[y, x + 1] += error * 7 / 16
            if y + 1 < height:
                if x > 0:
                    out[y + 1, x - 1] += error * 3 / 16
                out[y + 1, x] += error * 5 / 16
                if x + 1 < width:
                    out[y + 1, x + 1] += error * 1 / 16
    return out.astype(np.uint8)


@packaged(lambda draw: (draw.normal(20 * draw.n), 5))
def moving_median(signal, width):
    """What came last is in a queue."""
    last = deque([0.0] * width, maxlen=width)
    out = np.empty_like(signal)
    for n, value in enumerate(signal[:40]):
        last.append(value)
        out[n] = np.median(last)
    out[40:] = np.mean(last)
    return out


STEPS = np.array([7, 8, 10, 12, 14, 17, 21, 25, 31, 37, 45, 55, 66, 80, 97, 118, 143, 173, 209, 253])


@packaged(lambda draw: ((300 * draw.normal(20 * draw.n)).astype(np.int16),))
def adaptive_differences(samples):
    """Four bits for each sample; how much a bit means follows from the bits before."""
    changes = np.array([-1, -1, -1, -1, 1, 2, 3, 4])
    predicted, index = 0, 0
    codes, decoded = np.empty(len(samples), np.uint8), np.empty_like(samples)
    for n in range(len(samples)):
        step = STEPS[index]
        difference = int(samples[n]) - predicted
        sign = np.where(difference < 0, 8, 0)
        difference, change, bits = abs(difference), step >> 3, 0
        for bit in (4, 2, 1):
            holds = difference >= step
            bits |= np.where(holds, bit, 0)
            difference = difference - np.where(holds, step, 0)
            change += np.where(holds, step, 0)
            step >>= 1
        predicted = np.clip(np.where(sign > 0, predicted - change, predicted + change), -32768, 32767)
        index = np.clip(index + changes[bits], 0, len(STEPS) - 1)
        codes[n], decoded[n] = bits | sign, predicted
    return codes, decoded


# ---- coding ------------------------------------------------------------------------------------------


def _powers_and_logarithms():
    powers, logarithms, value = np.zeros(510, np.int64), np.zeros(256, np.int64), 1
    for n in range(255):
        powers[n] = powers[n + 255] = value
        logarithms[value] = n
        value = (value << 1) ^ (0x11D if value & 0x80 else 0)
    return powers, logarithms


POWERS, LOGARITHMS = _powers_and_logarithms()


@packaged(lambda draw: (draw.integers(256, 2 * draw.n).astype(np.uint8), 6))
def reed_solomon(message, count):
    """The code word, and its syndromes, which are 0."""

    def times(a, b):
        return np.where((a == 0) | (b == 0), 0, POWERS[LOGARITHMS[a] + LOGARITHMS[b]])

    generator = np.array([1])
    for n in range(count):
        longer = np.zeros(len(generator) + 1, np.int64)
        longer[:-1] ^= generator
        longer[1:] ^= times(generator, POWERS[n])
        generator = longer
    word = np.concatenate([message.astype(np.int64), np.zeros(count, np.int64)])
    for n in range(len(message)):
        word[n + 1 : n + 1 + count] ^= times(generator[1:], word[n])
    word[: len(message)] = message
    syndromes = []
    for n in range(count):
        value = word[0]
        for part in word[1:]:
            value = times(value, POWERS[n]) ^ part
        syndromes.append(value)
    return word, np.array(syndromes)


@packaged(lambda draw: (1 + draw.integers(50, draw.n),))
def huffman_lengths(frequencies):
    count = len(frequencies)
    weights, members = frequencies.astype(float), np.eye(count, dtype=bool)
    lengths = np.zeros(count, np.uint8)
    for _ in range(count - 1):
        first = weights.argmin()
        weight, weights[first] = weights[first], np.inf
        second = weights.argmin()
        lengths[members[first] | members[second]] += 1
        members[second] |= members[first]
        weights[second] += weight
    return lengths, (frequencies * lengths).sum()


# ---- statistics --------------------------------------------------------------------------------------


@packaged(lambda draw: (draw.normal(draw.n), draw.integers(draw.n, 30, draw.n), np.array([5.0, 50.0, 95.0])))
def bootstrap(sample, drawn, levels):
    """Which percentiles are wanted is an argument."""
    means = sample[drawn].mean(axis=1)
    rest = np.array([np.delete(sample, n).mean() for n in range(len(sample))])
    skew = ((rest.mean() - rest) ** 3).sum() / (6 * ((rest.mean() - rest) ** 2).sum() ** 1.5)
    return np.percentile(means, levels), np.quantile(sample[drawn], levels / 100, axis=0).max(axis=1), skew


@packaged(lambda draw: (draw.normal(30 * draw.n),))
def longest_rises(prices):
    """The longest run of gains, the deepest fall, and where it ended."""
    run = longest = 0
    peak, deepest, at = prices[0], 0.0, 0
    for n in range(1, len(prices)):
        run = np.where(prices[n] > prices[n - 1], run + 1, 0)
        longest = max(longest, run)
        peak = max(peak, prices[n])
        at = np.where(peak - prices[n] > deepest, n, at)
        deepest = max(deepest, peak - prices[n])
    return longest, deepest, at


class Belief(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True)
class Walk:
    """Position and speed, of which the position is seen."""

    step: float = 0.1
    noise: float = 0.2

    @property
    def motion(self):
        return np.array([[1, self.step], [0, 1]])

    def predicted(self, belief):
        covariance = self.motion @ belief.covariance @ self.motion.T + 0.01 * np.eye(2)
        return Belief(self.motion @ belief.mean, covariance)

    def corrected(self, belief, seen):
        gain = belief.covariance[:, 0] / (belief.covariance[0, 0] + self.noise)
        mean = belief.mean + gain * (seen - belief.mean[0])
        return Belief(mean, belief.covariance - np.outer(gain, belief.covariance[0]))


@packaged(lambda draw: (draw.normal(draw.n), Walk()))
def smoothed_walk(seen, model):
    """Rauch, Tung and Striebel's smoother."""
    belief, forwards = Belief(np.zeros(2), np.eye(2)), []
    for value in seen:
        ahead = model.predicted(belief)
        belief = model.corrected(ahead, value)
        forwards.append((belief, ahead))
    backwards = [belief]
    for (belief, _), (_, ahead) in zip(forwards[-2::-1], forwards[:0:-1], strict=True):
        gain = np.linalg.solve(ahead.covariance, model.motion @ belief.covariance).T
        after = backwards[-1]
        covariance = belief.covariance + gain @ (after.covariance - ahead.covariance) @ gain.T
        backwards.append(Belief(belief.mean + gain @ (after.mean - ahead.mean), covariance))
    return np.array([belief.mean for belief in backwards[::-1]]), backwards[-1].covariance


# ---- geometry and objects ----------------------------------------------------------------------------


@packaged(lambda draw: (draw.uniform(0, 3, 4 * draw.n, 3), 1.0))
def thinned_cloud(points, size):
    """One point for each box that has any: their mean."""
    boxes = np.floor(points / size).astype(np.int64)
    corners, which, counts = np.unique(boxes, axis=0, return_inverse=True, return_counts=True)
    sums = np.zeros((len(points), 3))
    np.add.at(sums, which, points)
    return corners, counts, sums[: len(counts)] / counts[:, None]


@dataclass
class Disc:
    centre: np.ndarray
    radius: float


@dataclass
class Square:
    centre: np.ndarray
    side: float


class Canvas:
    def __init__(self, cells):
        self.y, self.x = np.indices((cells, cells)) / cells
        self.covered = np.zeros((cells, cells))

    @singledispatchmethod
    def draw(self, shape):
        raise TypeError(shape)

    @draw.register
    def _(self, shape: Disc):
        self.covered += (self.x - shape.centre[0]) ** 2 + (self.y - shape.centre[1]) ** 2 < shape.radius**2

    @draw.register
    def _(self, shape: Square):
        away = np.maximum(np.abs(self.x - shape.centre[0]), np.abs(self.y - shape.centre[1]))
        self.covered += 2 * (away < shape.side / 2)

    @draw.register
    def _(self, shape: list):
        for part in shape:
            self.draw(part)


@packaged(lambda draw: (draw.uniform(0.2, 0.8, 4, 2), draw.n))
def drawing(centres, cells):
    canvas = Canvas(cells)
    canvas.draw(Disc(centres[0], 0.3))
    canvas.draw([Square(centres[1], 0.4), [Disc(centres[2], 0.1), Square(centres[3], 0.7)]])
    bearing = math.dist(centres[0], centres[1]), math.hypot(*centres[2], 1.0)
    return canvas.covered, bearing, math.isclose(*bearing)


class Node:
    """A value, what it was made of, and how its derivative reaches these."""

    def __init__(self, value: Any, parents: tuple = (), back: Callable[..., tuple] = lambda d: ()) -> None:
        self.value, self.parents, self.back, self.derivative = value, parents, back, None

    def __add__(self, other):
        return Node(self.value + other.value, (self, other), lambda d: (d, d))

    def __mul__(self, other):
        return Node(self.value * other.value, (self, other), lambda d: (d * other.value, d * self.value))

    def __matmul__(self, other):
        parts = (self, other)
        return Node(self.value @ other.value, parts, lambda d: (d @ other.value.T, self.value.T @ d))

    def tanh(self):
        value = np.tanh(self.value)
        return Node(value, (self,), lambda d: (d * (1 - value * value),))

    def differentiate(self):
        order: list[Node] = []

        def visit(node):
            if node not in order:
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.derivative = np.ones_like(self.value)
        for node in reversed(order):
            for parent, part in zip(node.parents, node.back(node.derivative), strict=True):
                parent.derivative = part if parent.derivative is None else parent.derivative + part


@packaged(lambda draw: (draw.normal(draw.n, 3), draw.normal(3, 3)))
def tape_of_derivatives(x, w):
    inputs, weights = Node(x), Node(w)
    hidden = (inputs @ weights).tanh()
    loss = hidden * hidden + hidden @ weights
    loss.differentiate()
    return loss.value, inputs.derivative, weights.derivative
