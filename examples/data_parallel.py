"""Train the demo's digits network on one CPU device, and on four: the weights are the same, to rounding.

python examples/data_parallel.py        needs scikit-learn, for the digits
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from arrayjit.demo.network import Digits, Network, accuracy, batches
from arrayjit.parallel import data_parallel, devices

BATCH, EPOCHS, SEED = 50, 20, 0
RATE, MOMENTUM = 0.05, 0.9


def slopes(network: Network, pixels: np.ndarray, targets: np.ndarray) -> tuple[np.float32, Network]:
    """The loss of a batch, and its slope along every weight."""
    hidden = np.maximum(pixels @ network.weights1 + network.bias1, 0)
    scores = hidden @ network.weights2 + network.bias2
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    loss = -np.log((chances * targets).sum(axis=1)).mean()

    to_scores = (chances - targets) / len(pixels)
    to_hidden = (to_scores @ network.weights2.T) * (hidden > 0)
    return loss, Network(
        pixels.T @ to_hidden, to_hidden.sum(axis=0), hidden.T @ to_scores, to_scores.sum(axis=0)
    )


def descend(network: Network, slope: Network, velocity: Network) -> tuple[Network, Network]:
    """A step of gradient descent with momentum: the new weights, and the new velocity."""
    velocity = Network(*(MOMENTUM * v - RATE * s for v, s in zip(velocity, slope, strict=True)))
    return Network(*(w + v for w, v in zip(network, velocity, strict=True))), velocity


def trained(count: int, data: Digits, epochs: int, target: str = "llvm") -> tuple[Network, float]:
    """The network after a training on so many devices, and the last loss."""
    train = data_parallel(slopes, devices=devices(count, target), update=descend)
    start = Network.random(SEED)
    model = train.replicate(start, start.zeros())
    loss = np.float32(np.nan)
    for pixels, targets in batches(data, BATCH, epochs, SEED):
        loss = train(model, pixels, targets)
    return model.parameters(), float(loss)


def largest_difference(one: Network, other: Network) -> float:
    return max(float(np.abs(left - right).max()) for left, right in zip(one, other, strict=True))


def main() -> None:
    pixels, digits = load_digits(return_X_y=True)
    learn, test = Digits.of(pixels[:1500], digits[:1500]), Digits.of(pixels[1500:], digits[1500:])
    networks = []
    for count in (1, 4):
        network, loss = trained(count, learn, EPOCHS)
        networks.append(network)
        read = accuracy(network, test)
        print(f"devices: {count}   last loss: {loss:.6f}   unseen digits read: {read:.1%}")
    print(f"largest difference of a weight: {largest_difference(*networks):.1e}")


if __name__ == "__main__":
    main()
