"""The demo itself: real data in, a table and pictures out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits, load_sample_image

import arrayjit

from ..frozen import frozen
from . import network, pictures
from .measure import Comparison, in_turn, largest_difference, seconds
from .network import Digits, Network

__all__ = ["show"]

SEED = 2
BATCH = 32


@frozen
class Training:
    """A whole training run: who computed it, how long it took, and how well it reads unseen digits."""

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
    epochs = 5 if small else 40
    with Progress(console=console, transient=True) as progress, arrayjit.use(target=target):
        picture, outline, developed = develop_photo(photo, 3 if small else 15, progress)
        stepped = one_step(learn, 20 if small else 300, progress)
        trainings = [
            whole_training("NumPy", inspect.unwrap(network.train_step), learn, test, epochs, progress),
            whole_training("arrayjit", network.train_step, learn, test, epochs, progress),
        ]
    console.print(times_table([developed, stepped], target))
    console.print(training_table(trainings, len(learn.pixels), len(test.pixels), epochs))
    for path in save(out, {"before": photo / np.float32(255), "after": picture, "outlines": outline}):
        console.print(f"wrote {path}", soft_wrap=True)


def split(small: bool) -> tuple[Digits, Digits]:
    """The digits to learn from, and those to be tested on."""
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(pixels))[: 400 if small else None]
    learn, test = np.split(order, [len(order) * 4 // 5])
    return Digits.of(pixels[learn], digits[learn]), Digits.of(pixels[test], digits[test])


def develop_photo(photo: npt.NDArray[np.uint8], runs: int, progress: Progress) -> tuple[Any, Any, Comparison]:
    """The two pictures that arrayjit makes, and how it compares with NumPy."""
    plain = inspect.unwrap(pictures.develop)
    compiling = progress.add_task("image pipeline: first call", total=None)
    first, ours = seconds(lambda: pictures.develop(photo))
    progress.remove_task(compiling)
    numpy, warm = in_turn(
        lambda: plain(photo),
        lambda: pictures.develop(photo),
        progress.track(range(runs), description="image pipeline: measuring"),
    )
    difference = largest_difference(ours, plain(photo))
    return (*ours, Comparison("image pipeline", numpy, first, warm, difference))


def one_step(learn: Digits, runs: int, progress: Progress) -> Comparison:
    """How one training step, in place, compares with NumPy."""
    plain = inspect.unwrap(network.train_step)
    batch = next(network.batches(learn, BATCH, 1, SEED))
    ours, theirs = Network.random(SEED), Network.random(SEED)
    our_velocity, their_velocity = ours.zeros(), theirs.zeros()
    compiling = progress.add_task("training step: first call", total=None)
    first, loss = seconds(lambda: network.train_step(ours, our_velocity, batch))
    progress.remove_task(compiling)
    difference = largest_difference((loss, *ours), (plain(theirs, their_velocity, batch), *theirs))
    numpy, warm = in_turn(
        lambda: plain(theirs, their_velocity, batch),
        lambda: network.train_step(ours, our_velocity, batch),
        progress.track(range(runs), description="training step: measuring"),
    )
    return Comparison("training step", numpy, first, warm, difference)


def whole_training(
    name: str, step: network.Step, learn: Digits, test: Digits, epochs: int, progress: Progress
) -> Training:
    """Train a fresh network by `step` and test it."""
    state = Network.random(SEED)
    course = progress.track(
        network.batches(learn, BATCH, epochs, SEED),
        total=epochs * (len(learn.pixels) // BATCH),
        description=f"training with {name}",
    )
    spent, loss = seconds(lambda: network.train(step, state, course))
    return Training(name, spent, loss, network.accuracy(state, test))


def times_table(rows: list[Comparison], target: str) -> Table:
    """One row per program."""
    table = Table(title=f"The same functions, by NumPy and by arrayjit ({target})", box=SIMPLE_HEAD)
    table.add_column("program", no_wrap=True)
    for column in ("NumPy", "first call", "warm call", "speed-up"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("largest\ndifference", justify="right", no_wrap=True)
    for row in rows:
        times = (milliseconds(value) for value in (row.numpy, row.first, row.warm))
        table.add_row(row.name, *times, f"{row.speedup:.2f}x", f"{row.difference:.1e}")
    return table


def milliseconds(seconds: float) -> str:
    """A time in three digits or more."""
    value = seconds * 1e3
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 3}f} ms"


def training_table(rows: list[Training], learned: int, tested: int, epochs: int) -> Table:
    """One row per run."""
    table = Table(title=f"Training: {learned} digits, {epochs} epochs, {tested} to test", box=SIMPLE_HEAD)
    table.add_column("run", no_wrap=True)
    for column in ("time", "last loss", "test accuracy"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.name, f"{row.seconds:.2f} s", f"{row.loss:.4f}", f"{row.accuracy:.1%}")
    return table


def save(out: Path, images: Mapping[str, npt.NDArray[np.float32]]) -> list[Path]:
    """Write each image, of numbers from 0 to 1, as a PNG file."""
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}.png" for name in images]
    for path, image in zip(paths, images.values(), strict=True):
        Image.fromarray(np.rint(image * 255).astype(np.uint8)).save(path)
    return paths
