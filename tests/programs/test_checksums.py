"""Checksums of long messages, which are looked up byte by byte, have NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit

MESSAGE = np.random.default_rng(0).integers(0, 256, 2063).astype(np.uint8)


def x25(data: Any) -> Any:
    crc = np.uint16(0xFFFF)
    for byte in data:
        crc = crc ^ byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x8408 * (crc & 1))
    return ~crc


def ethernet(data: Any) -> Any:
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = crc ^ byte
        for _ in range(8):
            crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(0xEDB88320), crc >> 1)
    return ~crc


def highest_bit_first(data: Any) -> Any:
    crc = np.uint16(0x1D0F)
    for byte in data:
        crc = crc ^ (byte.astype(np.uint16) << 8)
        for _ in range(8):
            crc = np.where(crc & 0x8000, (crc << 1) ^ 0x1021, crc << 1)
    return crc


def in_python_s_integers(data: Any) -> Any:
    crc = 0
    for byte in data:
        crc ^= int(byte)
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 & -(crc & 1))
    return crc


def of_the_last_bytes_first(data: Any) -> Any:
    crc = np.int32(-77)
    for k in range(len(data)):
        crc = crc ^ data[len(data) - 1 - k].astype(np.int32)
        for _ in range(4):
            crc = (crc << 3) ^ (crc >> 5)
    return crc


def with_sums(data: Any) -> Any:
    crc = np.uint32(1)
    for byte in data:
        for _ in range(8):
            crc = (crc ^ byte) + (crc >> 3)
    return crc


@pytest.mark.parametrize("target", ["sync_llvm", "sync_c", "interp"])
@pytest.mark.parametrize(
    "checksum", [x25, ethernet, highest_bit_first, in_python_s_integers, of_the_last_bytes_first]
)
def test_a_checksum_is_looked_up_byte_by_byte(checksum: Callable[[Any], Any], target: str) -> None:
    jitted = arrayjit.jit(checksum, target=target)
    assert "bytewise: " in jitted.lower(MESSAGE).explain()
    assert jitted(MESSAGE) == checksum(MESSAGE)


def test_what_adds_is_not() -> None:
    jitted = arrayjit.jit(with_sums)
    assert "bytewise: " not in jitted.lower(MESSAGE).explain()
    with np.errstate(over="ignore"):
        assert jitted(MESSAGE) == with_sums(MESSAGE)
