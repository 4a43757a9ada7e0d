"""Measured data, summed up."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from .registry import EXACT, Kernel


def covariance(data):
    """How the columns vary together; the data are centred in place."""
    n, m = data.shape
    data -= data.mean(axis=0)
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i, i:] = cov[i:, i] = data[:, i] @ data[:, i:] / (n - 1)
    return cov


def make_covariance(random, n, m):
    return (random.standard_normal((n, m)) * random.uniform(1, 3, m) + random.uniform(-5, 5, m),)


def check_covariance(arguments, results):
    (data,) = arguments
    assert_allclose(results[0], np.cov(data, rowvar=False), atol=1e-10)
    assert_allclose(results[1].sum(axis=0), 0, atol=1e-9)


def azimuthal_integration(data, radius, bins):
    """The mean of the pixels in each of equally wide rings around the beam."""
    edge = radius.max()
    profile = np.zeros(bins, dtype=data.dtype)
    for i in range(bins):
        inner = edge * i / bins
        outer = edge * (i + 1) / bins
        ring = (inner <= radius) & (radius < outer)
        profile[i] = data[ring].mean()
    return profile


def make_azimuthal_integration(random, pixels, bins):
    spread = (np.arange(pixels) + random.uniform(0, 1, pixels)) / pixels
    radius = random.permutation(3.7 * np.sqrt(spread))
    return random.standard_normal(pixels) + radius, radius, bins


def check_azimuthal_integration(arguments, results):
    data, radius, bins = arguments
    ring = np.minimum(radius / radius.max() * bins, bins).astype(int)
    sums = np.bincount(ring, weights=data, minlength=bins + 1)
    assert_allclose(results[0], (sums / np.bincount(ring, minlength=bins + 1))[:bins], atol=1e-10)


def crc16(data, polynomial=0x8408):
    """The checksum of X.25, bit by bit."""
    crc = np.uint16(0xFFFF)
    for byte in data:
        crc = crc ^ byte
        for _ in range(8):
            crc = (crc >> 1) ^ (polynomial * (crc & 1))
    return ~crc


def make_crc16(random, size):
    return (random.integers(0, 256, size, dtype=np.uint8),)


def check_crc16(arguments, results):
    (data,) = arguments
    assert crc16(np.frombuffer(b"123456789", np.uint8)) == 0x906E
    # A message followed by its checksum, low byte first, always leaves the same remainder.
    low_first = np.array([results[0] & 0xFF, results[0] >> 8], np.uint8)
    assert crc16(np.concatenate([data, low_first])) == 0x0F47


OBSERVATIONS = (
    Kernel(
        "covariance",
        covariance,
        make_covariance,
        {"small": {"n": 13, "m": 9}, "medium": {"n": 1500, "m": 300}, "large": {"n": 4000, "m": 1000}},
        source="PolyBench",
        check=check_covariance,
    ),
    Kernel(
        "azimuthal_integration",
        azimuthal_integration,
        make_azimuthal_integration,
        {
            "small": {"pixels": 200, "bins": 7},
            "medium": {"pixels": 80_000, "bins": 200},
            "large": {"pixels": 800_000, "bins": 600},
        },
        source="NPBench",
        check=check_azimuthal_integration,
    ),
    Kernel(
        "crc16",
        crc16,
        make_crc16,
        {"small": {"size": 40}, "medium": {"size": 10_000}, "large": {"size": 300_000}},
        source="NPBench",
        check=check_crc16,
        tolerance=EXACT,
    ),
)
