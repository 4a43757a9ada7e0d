"""Measured data, summed up, for Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["OBSERVATIONS"]


@njit
def covariance(data):
    n, m = data.shape
    mean = np.zeros(m)
    for i in range(n):
        for j in range(m):
            mean[j] += data[i, j]
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j] / n
    return data.T @ data / (n - 1)


@njit
def azimuthal_integration(data, radius, bins):
    edge = radius.max()
    total, count = np.zeros(bins), np.zeros(bins)
    for i in range(data.size):
        ring = int(radius[i] / edge * bins)
        if ring < bins:
            # Rounding may put a pixel next to a border into the wrong ring.
            if radius[i] < edge * ring / bins:
                ring -= 1
            elif radius[i] >= edge * (ring + 1) / bins:
                ring += 1
        if ring < bins:
            total[ring] += data[i]
            count[ring] += 1
    return total / count


@njit
def crc16(data):
    crc = np.uint32(0xFFFF)
    for byte in data:
        crc ^= np.uint32(byte)
        for _ in range(8):
            crc = (crc >> np.uint32(1)) ^ (np.uint32(0x8408) * (crc & np.uint32(1)))
    return crc ^ np.uint32(0xFFFF)


OBSERVATIONS = {
    "covariance": covariance,
    "azimuthal_integration": azimuthal_integration,
    "crc16": crc16,
}
