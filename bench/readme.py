"""The numbers that the README shows, measured here and now: `python bench/readme.py`.

Prints a Markdown table. Every ratio to NumPy is taken in one run, the two called in turn. NumPy runs
without the variables that would slow its OpenBLAS down, on one thread like arrayjit.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import arrayjit
from arrayjit.demo.measure import environment_for_numpy, in_turn, seconds

SMALL_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    lambda x, y: x * 2 + y,
    lambda x, y: np.sqrt(x * x + y * y),
    lambda x, y: np.where(x > y, x, y) - x.mean(),
    lambda x, y: (x - x.mean(axis=0)) / (x.std(axis=0) + 1),
    lambda x, y: np.exp(-np.abs(x)) * np.tanh(y),
    lambda x, y: np.maximum(x @ y.T, 0).sum(axis=1),
    lambda x, y: np.clip(x, 0, 1) ** 2 + np.log1p(np.abs(y)),
    lambda x, y: (x[1:] - x[:-1]) / (y[1:] + 3),
    lambda x, y: np.concatenate([x, y]).max(axis=1),
)


def fused(a: Any, b: Any, c: Any) -> Any:
    return a * b + c * a - b


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def tiny(x: Any, y: Any) -> Any:
    return x * 2 + y


def chain(length: int) -> Callable[[Any], Any]:
    """A function of `length` elementwise ops, one after another, each in a line: a loop would stay a loop."""

    lines = (f"    x = x * 0.999 + {step}" for step in range(length // 2))
    names: dict[str, Any] = {}
    exec("\n".join(("def run(x):", *lines, "    return x")), names)
    return names["run"]  # type: ignore[no-any-return]


def first_calls() -> Iterator[tuple[str, str]]:
    """What compiling costs, in a process that has compiled before."""
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((2, 64, 64))
    arrayjit.jit(tiny)(x, y)
    times = [seconds(lambda f=f: arrayjit.jit(f)(x, y))[0] for f in SMALL_FUNCTIONS]
    yield (
        f"first call of a function of up to 10 ops ({len(times)} functions)",
        f"median {statistics.median(times) * 1e3:.0f} ms, worst {max(times) * 1e3:.0f} ms",
    )
    vector = draw.standard_normal(1000)
    took = {length: seconds(lambda n=length: arrayjit.jit(chain(n))(vector))[0] for length in (100, 1000)}
    yield "first call of a chain of 100 elementwise ops", f"{took[100]:.3f} s"
    yield (
        "first call of a chain of 1,000 elementwise ops",
        f"{took[1000]:.3f} s, {took[1000] / took[100]:.1f} times as long",
    )


def warm_calls() -> Iterator[tuple[str, str]]:
    """How fast compiled code is, as a multiple of NumPy's speed."""
    draw = np.random.default_rng(0)
    big = draw.standard_normal((3, 10_000_000))
    yield compared("`a*b + c*a - b`, 10 million float64", fused, (big[0], big[1], big[2]), 9)
    rows = draw.standard_normal((4096, 1024), dtype=np.float32)
    yield compared("softmax over the last axis of 4096 x 1024 float32", softmax, (rows,), 15)
    few = draw.standard_normal((2, 10))
    yield compared("`x*2 + y`, 10 float64", tiny, (few[0], few[1]), 20_000)


def compared(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], runs: int
) -> tuple[str, str]:
    """A row: the same function by NumPy and by arrayjit."""
    jitted = arrayjit.jit(function)
    np.testing.assert_allclose(jitted(*arguments), function(*arguments), rtol=1e-5, atol=1e-7)
    numpy, warm = in_turn(lambda: function(*arguments), lambda: jitted(*arguments), range(runs))
    return name, f"NumPy {shown(numpy)}, arrayjit {shown(warm)}: {numpy / warm:.2f}x"


def shown(duration: float) -> str:
    return f"{duration * 1e3:.1f} ms" if duration > 1e-3 else f"{duration * 1e6:.1f} µs"


def main() -> int:
    environment, dropped = environment_for_numpy()
    wanted = {**environment, "OPENBLAS_NUM_THREADS": "1", "ARRAYJIT_CACHE_BYTES": "0"}
    if wanted != dict(os.environ):
        without = f", without {' and '.join(dropped)}" if dropped else ""
        print(f"NumPy on one thread{without}\n", flush=True)
        return subprocess.run([sys.executable, *sys.argv], env=wanted, check=False).returncode
    print("| what | measured |\n|---|---|")
    for measure in (first_calls, warm_calls):
        for name, value in measure():
            print(f"| {name} | {value} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
