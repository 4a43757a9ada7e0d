"""Waves, as complex numbers, for Numba: products with matrices are left to BLAS, the rest are loops."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["WAVES"]


@njit(parallel=True)
def stockham_fft(x, radix, digits):
    roots = np.exp(-2j * np.pi * np.arange(radix) / radix)
    y, out = x.copy(), np.empty_like(x)
    for i in range(digits):
        done, left = radix**i, radix ** (digits - i - 1)
        turns = np.exp(-2j * np.pi * np.arange(done * radix) / (done * radix))
        for a in prange(done):
            for r in range(radix):
                for m in range(left):
                    total = 0j
                    for s in range(radix):
                        turn = turns[s * a] * roots[r * s % radix]
                        total += turn * y[(a * radix + s) * left + m]
                    out[(r * done + a) * left + m] = total
        y, out = out, y
    return y


@njit(parallel=True)
def advance(out, now, before, potential, by):
    for i in prange(1, now.shape[0] - 1):
        for j in range(1, now.shape[1] - 1):
            around = now[i + 1, j] + now[i - 1, j] + now[i, j + 1] + now[i, j - 1]
            out[i, j] = before[i, j] - by * ((2 + potential[i, j]) * now[i, j] - 0.5 * around)


@njit
def schrodinger(psi, potential, dt, steps):
    before, now = psi.copy(), psi.copy()
    advance(now, psi, psi, potential, 1j * dt)
    for _ in range(steps):
        advance(before, now, before, potential, 2j * dt)
        before, now = now, before
    return before, now


@njit(parallel=True)
def beamforming(signals, positions, directions):
    covariance = signals @ signals.conj().T / signals.shape[1]
    steering = np.empty((len(positions), len(directions)), dtype=np.complex128)
    for i in prange(len(positions)):
        for j in range(len(directions)):
            steering[i, j] = np.exp(2j * np.pi * positions[i] * np.sin(directions[j]))
    received = covariance @ steering
    power = np.zeros(len(directions))
    for i in range(len(positions)):
        for j in range(len(directions)):
            power[j] += (steering[i, j].conjugate() * received[i, j]).real
    return power


WAVES = {"stockham_fft": stockham_fft, "schrodinger": schrodinger, "beamforming": beamforming}
