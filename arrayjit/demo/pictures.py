"""A picture developed in plain NumPy: gamma, blur, Sobel edges, local contrast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import arrayjit

__all__ = ["develop"]

Image = npt.NDArray[np.floating[Any]]

GAMMA = 2.2
LUMINANCE = (0.2126, 0.7152, 0.0722)


def gaussian(radius: int, sigma: float) -> list[float]:
    """The weights of a Gaussian window, adding up to one."""
    weights = [math.exp(-0.5 * (step / sigma) ** 2) for step in range(-radius, radius + 1)]
    return [weight / sum(weights) for weight in weights]


def blur(image: Image, radius: int, sigma: float) -> Image:
    """A Gaussian blur: one axis, then the other."""
    height, width = image.shape
    rows = np.zeros_like(image)
    tall = np.pad(image, ((radius, radius), (0, 0)), mode="edge")
    for step, weight in enumerate(gaussian(radius, sigma)):
        rows += weight * tall[step : step + height]
    smooth = np.zeros_like(image)
    wide = np.pad(rows, ((0, 0), (radius, radius)), mode="edge")
    for step, weight in enumerate(gaussian(radius, sigma)):
        smooth += weight * wide[:, step : step + width]
    return smooth


def edges(image: Image) -> Image:
    """The length of the Sobel gradient."""
    p = np.pad(image, 1, mode="edge")
    across = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    down = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    length: Image = np.sqrt(across**2 + down**2)
    return length


def local_mean(image: Image, radius: int) -> Image:
    """The mean over a square window, by running sums."""
    size = 2 * radius + 1
    total: Image = np.cumsum(np.pad(image, ((radius + 1, radius), (0, 0)), mode="edge"), axis=0)
    rows = (total[size:] - total[:-size]) / size
    total = np.cumsum(np.pad(rows, ((0, 0), (radius + 1, radius)), mode="edge"), axis=1)
    return (total[:, size:] - total[:, :-size]) / size


def local_contrast(image: Image, radius: int) -> Image:
    """How many local standard deviations each pixel is away from the local mean."""
    mean = local_mean(image, radius)
    variance = np.maximum(local_mean(image**2, radius) - mean**2, 0)
    deviation: Image = np.sqrt(variance)
    return (image - mean) / (deviation + 0.02)


@arrayjit.jit
def develop(photo: npt.NDArray[np.uint8]) -> tuple[Image, Image]:
    """The photograph with its details lifted and its outlines inked, and the outlines alone."""
    linear = (photo / np.float32(255)) ** GAMMA
    red, green, blue = LUMINANCE
    light = red * linear[..., 0] + green * linear[..., 1] + blue * linear[..., 2]
    smooth = blur(light, radius=4, sigma=1.5)
    outline = np.clip(edges(smooth) * 2, 0, 1)
    detail = np.tanh(local_contrast(smooth, radius=12))
    gain = (1 + 0.45 * detail) * (1 - 0.6 * outline)
    picture = np.clip(linear * gain[..., np.newaxis], 0, 1) ** (1 / GAMMA)
    return picture, outline
