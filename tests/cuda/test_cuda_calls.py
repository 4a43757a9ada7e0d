"""Jitted functions with `target="cuda-sim"`, as a user calls them."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit
import arrayjit.devices
from arrayjit.errors import BackendUnavailable, DeviceMismatch, UnsupportedError

X = np.linspace(0.0, 1.0, 1000)


@arrayjit.jit
def wave(x, y):
    return np.sqrt(x) * y + 1


@arrayjit.jit
def smoothed(x, steps):
    for _ in range(steps):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    return x.sum()


@arrayjit.jit
def picked(x, i):
    return x[i]


def test_a_call_on_numpy_arrays_gives_an_array_on_the_gpu() -> None:
    result = wave(X, X, target="cuda-sim")
    assert result.device.name == "cuda-sim:0"
    np.testing.assert_array_equal(np.asarray(result), np.sqrt(X) * X + 1)


def test_arguments_are_written_in_place_by_the_time_that_the_call_returns() -> None:
    mine, numpys = X**2, X**2
    total = smoothed(mine, 5, target="cuda-sim")
    for _ in range(5):
        numpys[1:-1] = 0.5 * (numpys[:-2] + numpys[2:])
    np.testing.assert_array_equal(mine, numpys)
    np.testing.assert_allclose(float(total), numpys.sum(), rtol=1e-15)


def test_an_index_out_of_range_is_raised_by_the_call_at_its_line() -> None:
    np.testing.assert_array_equal(picked(X, np.array([1, 5]), target="cuda-sim").numpy(), X[[1, 5]])
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 1000") as raised:
        picked(X, np.array([1, 5000]), target="cuda-sim")
    assert "return x[i]" in str(raised.value)


def test_a_call_runs_where_its_arrays_are() -> None:
    there = arrayjit.asarray(X, device="cuda-sim:1")
    result = wave(there, there[::-1])
    assert result.device is there.device
    np.testing.assert_array_equal(result.numpy(), np.sqrt(X) * X[::-1] + 1)
    np.testing.assert_array_equal((there * 2).to("llvm").numpy(), X * 2)
    with pytest.raises(DeviceMismatch, match="cuda-sim:1, cuda-sim:0"):
        wave(there, arrayjit.asarray(X, device="cuda-sim:0"))


def test_a_target_without_hardware_says_so() -> None:
    """In the same words to who asks and to who calls."""
    said = arrayjit.devices.targets()["cuda"]
    if said != "available":
        with pytest.raises(BackendUnavailable) as raised:
            wave(X, X, target="cuda")
        assert said == f"not available: {raised.value.what}; {raised.value.fix}"
    assert arrayjit.devices.targets()["cuda-sim"] == "available"


def test_the_architecture_is_chosen() -> None:
    backend = arrayjit.devices.fresh_backend("cuda-sim", arch="sm_80", devices=3)
    assert backend.num_devices() == 3
    assert backend.get_device(2).static_properties["arch"] == "sm_80"
    backend.machine.unsafe_cleanup()
    with pytest.raises(UnsupportedError, match="no option 'architecture'"):
        arrayjit.devices.fresh_backend("cuda-sim", architecture="sm_80")
