"""Measured data, summed up, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["OBSERVATIONS"]


def covariance(data):
    data = data - data.mean(axis=0)
    return data.T @ data / (len(data) - 1), data


def azimuthal_integration(data, radius, bins):
    edge = radius.max()
    borders = jnp.append(edge * jnp.arange(bins) / bins, edge)
    ring = jnp.searchsorted(borders, radius, side="right") - 1
    total = jax.ops.segment_sum(data, ring, bins + 1)
    return (total / jax.ops.segment_sum(jnp.ones_like(data), ring, bins + 1))[:bins]


def crc16(data):
    def step(i, crc):
        crc = crc ^ data[i].astype(jnp.uint16)
        for _ in range(8):
            crc = (crc >> 1) ^ (jnp.uint16(0x8408) * (crc & 1))
        return crc

    return ~jax.lax.fori_loop(0, len(data), step, jnp.uint16(0xFFFF))


OBSERVATIONS = {
    "covariance": covariance,
    "azimuthal_integration": azimuthal_integration,
    "crc16": crc16,
}
