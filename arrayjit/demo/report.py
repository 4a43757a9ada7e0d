"""The demo itself: real data in, a table and pictures out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits, load_sample_image

import arrayjit

from . import network, pictures
from .measure import Comparison, in_turn, largest_difference, seconds
from .network import Digits, Network

__all__ = ["show"]

SEED = 2
BATCH = 32
LEARNING_RATE = 0.05
MOMENTUM = 0.9


@dataclass(frozen=True, slots=True)
class Training:
    """One whole training run: how long it took, and the network's test accuracy."""

    name: str
    seconds: float
    loss: float
    accuracy: float


def show(out: Path, target: str, small: bool) -> None:
    """Run the demo on `target` and write its pictures to the folder `out`."""
    console = Console()
    photo = load_sample_image("china.jpg")
    photo = np.ascontiguousarray(photo[::4, ::4] if small else photo)
    learn, test = split(small)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, arrayjit.use(target=target):
        picture, outline, developed = develop_photo(photo, 3 if small else 15, progress)
        stepped = one_step(learn, 20 if small else 200, progress)
        runs = tuple(
            whole_training(name, step, learn, test, 5 if small else 40, progress)
            for name, step in (
                ("NumPy", network.train_step.__wrapped__),
                ("arrayjit", network.train_step),
            )
        )
    console.print(times_table((developed, stepped), target))
    console.print(training_table(runs))
    for path in save(out, {"before": photo, "after": picture, "outlines": outline}):
        console.print(f"wrote {path}")


def split(small: bool) -> tuple[Digits, Digits]:
    """The digits to learn from, and those to be tested on."""
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(pixels))[: 400 if small else None]
    cut = len(order) * 4 // 5
    learn, test = order[:cut], order[cut:]
    return Digits.of(pixels[learn], digits[learn]), Digits.of(pixels[test], digits[test])


def develop_photo(
    photo: npt.NDArray[np.uint8], runs: int, progress: Progress
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], Comparison]:
    """The pictures that arrayjit makes, and how that compares with NumPy."""
    task = progress.add_task("image pipeline: first call", total=runs + 1)
    results: list[Any] = []
    first = seconds(lambda: results.append(pictures.develop(photo)))
    progress.update(task, advance=1, description="image pipeline: measuring")
    plain = pictures.develop.__wrapped__
    difference = largest_difference(results[0], plain(photo))
    numpy, warm = in_turn(
        lambda: plain(photo), ticking(progress, task, lambda: pictures.develop(photo)), runs
    )
    height, width, _ = photo.shape
    row = Comparison(f"image pipeline, {width} x {height}", numpy, first, warm, difference)
    return (*results[0], row)


def one_step(learn: Digits, runs: int, progress: Progress) -> Comparison:
    """How one training step compares with NumPy."""
    task = progress.add_task("training step: first call", total=runs)
    batch = next(network.batches(learn, BATCH, 1, SEED))
    ours, theirs = Network.random(SEED), Network.random(SEED)
    states = {"ours": (ours, ours.zeros()), "theirs": (theirs, theirs.zeros())}
    losses: dict[str, Any] = {}

    def step(who: str, function: Callable[..., Any]) -> None:
        losses[who] = function(*states[who], batch, LEARNING_RATE, MOMENTUM)

    plain = network.train_step.__wrapped__
    first = seconds(lambda: step("ours", network.train_step))
    step("theirs", plain)
    difference = largest_difference((losses["ours"], *ours), (losses["theirs"], *theirs))
    progress.update(task, description="training step: measuring")
    numpy, warm = in_turn(
        lambda: step("theirs", plain),
        ticking(progress, task, lambda: step("ours", network.train_step)),
        runs,
    )
    return Comparison(f"training step, {BATCH} digits", numpy, first, warm, difference)


def whole_training(
    name: str, step: Callable[..., Any], learn: Digits, test: Digits, epochs: int, progress: Progress
) -> Training:
    """Train a fresh network by `step` and test it."""
    task = progress.add_task(f"training with {name}", total=epochs * (len(learn.pixels) // BATCH))
    state = Network.random(SEED)
    velocity = state.zeros()
    loss = np.float32(np.nan)
    spent = 0.0

    for batch in network.batches(learn, BATCH, epochs, SEED):

        def go(batch: Digits = batch) -> None:
            nonlocal loss
            loss = step(state, velocity, batch, LEARNING_RATE, MOMENTUM)

        spent += seconds(go)
        progress.advance(task)
    return Training(name, spent, float(loss), network.accuracy(state, test))
