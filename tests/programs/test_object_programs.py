"""Whole programs written with classes, as their authors would write them, compared with NumPy."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pytest

import arrayjit

TARGETS = ("interp", "sync_llvm")


def assert_close(got: Any, wanted: Any) -> None:
    """The same dtypes and shapes, and numbers within rounding."""
    if isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted)
        for left, right in zip(got, wanted, strict=True):
            assert_close(left, right)
        return
    assert np.asarray(got).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13, strict=True)


class Layer(abc.ABC):
    @abc.abstractmethod
    def forward(self, x: np.ndarray) -> np.ndarray: ...

    @abc.abstractmethod
    def backward(self, grad: np.ndarray, rate: float) -> np.ndarray: ...

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.forward(x)


class Dense(Layer):
    def __init__(self, inputs: int, outputs: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.weights = random.standard_normal((inputs, outputs)) * 0.3
        self.bias = np.zeros(outputs)
        self.seen = np.zeros((8, inputs))

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.seen[...] = x
        return x @ self.weights + self.bias

    def backward(self, grad: np.ndarray, rate: float) -> np.ndarray:
        result = grad @ self.weights.T
        self.weights -= rate * (self.seen.T @ grad)
        self.bias -= rate * grad.sum(axis=0)
        return result


class Tanh(Layer):
    def __init__(self, size: int) -> None:
        self.out = np.zeros((8, size))

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.out[:] = np.tanh(x)
        return self.out.copy()

    def backward(self, grad: np.ndarray, rate: float) -> np.ndarray:
        return grad * (1.0 - self.out**2)


class Network:
    """Trained by gradient descent: every step writes the weights in place."""

    def __init__(self) -> None:
        self.layers: list[Layer] = [Dense(3, 5, 1), Tanh(5), Dense(5, 1, 2)]
        self.rate = 0.05

    def predict(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer(x)
        return x

    def train(self, x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
        losses = np.zeros(20)
        for step in range(steps):
            error = self.predict(x) - y
            losses[step] = (error**2).mean()
            grad = 2.0 * error / error.size
            for layer in reversed(self.layers):
                grad = layer.backward(grad, self.rate)
        return losses

    def parameters(self) -> list[np.ndarray]:
        return [array for layer in self.layers for array in vars(layer).values()]


def test_a_network_that_is_trained() -> None:
    random = np.random.default_rng(0)
    x, y = random.standard_normal((8, 3)), random.standard_normal((8, 1))
    plain = Network()
    wanted = plain.train(x, y, 20), plain.train(x, y, 7)
    trained, answer = [array.copy() for array in plain.parameters()], plain.predict(x)
    for target in TARGETS:
        network = Network()
        train = arrayjit.jit(network.train, target=target)
        assert_close((train(x, y, 20), train(x, y, 7)), wanted)
        assert_close(network.parameters(), trained)
        assert_close(arrayjit.jit(network.predict, target=target)(x), answer)


class Vector(NamedTuple):
    x: Any
    y: Any

    def dot(self, other: Vector) -> Any:
        return self.x * other.x + self.y * other.y


class Boundary(Enum):
    PERIODIC = "periodic"
    FIXED = "fixed"


@dataclass
class Domain:
    n: int
    length: float
    boundary: Boundary = Boundary.FIXED
    sources: list[tuple[int, float]] = field(default_factory=list)

    @property
    def spacing(self) -> float:
        return self.length / (self.n - 1)

    @cached_property
    def cells(self) -> np.ndarray:
        return np.linspace(0.0, self.length, self.n)


class Stepper:
    order = 1

    def __init__(self, slope: Callable[[np.ndarray], np.ndarray]) -> None:
        self.slope = slope

    def step(self, u: np.ndarray, dt: float) -> np.ndarray:
        return u + dt * self.slope(u)


class Heun(Stepper):
    order = 2

    def step(self, u: np.ndarray, dt: float) -> np.ndarray:
        guess = super().step(u, dt)
        return u + 0.5 * dt * (self.slope(u) + self.slope(guess))


class Heat:
    """Diffusion with sources; the method of time stepping is another object."""

    steppers = {"euler": Stepper, "heun": Heun}  # noqa: RUF012

    def __init__(self, domain: Domain, method: str) -> None:
        self.domain = domain
        self.stepper = self.steppers[method](self.slope)
        self.scratch = np.zeros(domain.n)

    @contextmanager
    def padded(self, u: np.ndarray) -> Iterator[np.ndarray]:
        wide = np.zeros(self.domain.n + 2)
        wide[1:-1] = u
        if self.domain.boundary is Boundary.PERIODIC:
            wide[0], wide[-1] = u[-1], u[0]
        yield wide

    def slope(self, u: np.ndarray) -> np.ndarray:
        with self.padded(u) as wide:
            self.scratch[:] = (wide[2:] - 2 * wide[1:-1] + wide[:-2]) / self.domain.spacing**2
        for place, strength in self.domain.sources:
            self.scratch[place] += strength
        return self.scratch.copy()

    def run(self, u: np.ndarray, steps: int) -> tuple[np.ndarray, Any]:
        dt = 0.2 * self.domain.spacing**2
        history = np.zeros(50)
        for k in range(steps):
            u = self.stepper.step(u, dt)
            history[k] = u.sum()
        return u, history


@pytest.mark.parametrize("method", ["euler", "heun"])
@pytest.mark.parametrize("boundary", list(Boundary))
def test_a_solver_of_many_objects(method: str, boundary: Boundary) -> None:
    domain = Domain(12, 1.0, boundary, [(3, 1.0), (7, -2.0)])
    u = np.sin(domain.cells * 3)
    wanted = Heat(domain, method).run(u, 50)
    for target in TARGETS:
        heat = Heat(domain, method)
        run = arrayjit.jit(heat.run, target=target)
        assert_close(run(u, 50), wanted)
        domain.sources.append((1, 0.5))
        assert_close(run(u, 9), Heat(domain, method).run(u, 9))
        domain.sources.pop()


class Particles:
    def __init__(self, position: Vector, velocity: Vector) -> None:
        self.position = position
        self.velocity = velocity

    def __add__(self, kick: Vector) -> Particles:
        x, y = self.velocity
        return type(self)(self.position, Vector(x + kick.x, y + kick.y))

    def moved(self, dt: float) -> Particles:
        (x, y), (u, v) = self.position, self.velocity
        return Particles(Vector(x + dt * u, y + dt * v), self.velocity)

    @property
    def energy(self) -> Any:
        return 0.5 * self.velocity.dot(self.velocity).sum()


def orbit(x: np.ndarray, y: np.ndarray, steps: int) -> Any:
    particles = Particles(Vector(x, y), Vector(-y, x))
    energies = []
    for _ in range(steps):
        (x, y), r2 = particles.position, particles.position.dot(particles.position)
        particles = (particles + Vector(-0.01 * x / r2, -0.01 * y / r2)).moved(0.01)
        energies.append(particles.energy)
    return particles, energies[-1]


def test_immutable_objects_made_in_every_step() -> None:
    x, y = np.cos(np.arange(5.0)) + 2, np.sin(np.arange(5.0))
    wanted, energy = orbit(x, y, 30)
    for target in TARGETS:
        got, found = arrayjit.jit(orbit, target=target, static_argnames="steps")(x, y, 30)
        assert type(got) is Particles
        assert type(got.position) is Vector
        assert_close([*got.position, *got.velocity, found], [*wanted.position, *wanted.velocity, energy])
        assert_close(got.energy, wanted.energy)


class Filter:
    """Decorated methods: each instance has code of its own, and they call one another."""

    def __init__(self, size: int, gain: float) -> None:
        self.size = size
        self.gain = gain
        self.state = np.zeros(size)

    @arrayjit.jit
    def smooth(self, x: np.ndarray) -> np.ndarray:
        result = np.empty_like(x)
        for i in range(len(x)):
            low, high = max(0, i - self.size), min(len(x), i + self.size + 1)
            result[i] = x[low:high].sum() / (high - low)
        return result

    @arrayjit.jit
    def push(self, x: np.ndarray) -> np.ndarray:
        self.state *= self.gain
        self.state += self.smooth(x)[: self.size]
        return self.state * 1


class LouderFilter(Filter):
    @arrayjit.jit
    def push(self, x: np.ndarray) -> np.ndarray:
        return super().push(x) * np.full(self.size, 2.0)


def plain_push(model: Filter, x: np.ndarray) -> np.ndarray:
    smooth = np.array([x[max(0, i - model.size) : i + model.size + 1].mean() for i in range(len(x))])
    model.state[:] = model.state * model.gain + smooth[: model.size]
    return model.state * (2 if isinstance(model, LouderFilter) else 1)


@pytest.mark.parametrize("target", TARGETS)
def test_jitted_methods_that_call_one_another(target: str) -> None:
    x = np.random.default_rng(3).standard_normal(9)
    with arrayjit.use(target=target):
        for make in (lambda: Filter(2, 0.5), lambda: Filter(3, 0.25), lambda: LouderFilter(2, 0.5)):
            ours, theirs = make(), make()
            for _ in range(2):
                assert_close(ours.push(x), plain_push(theirs, x))
            assert_close(ours.state, theirs.state)
            ours.gain = theirs.gain = 2.0
            assert_close(ours.push(x), plain_push(theirs, x))
