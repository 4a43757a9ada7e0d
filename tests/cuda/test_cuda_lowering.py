"""Code for GPUs can be looked at where there is none; what runs it says what is missing, as before."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

import arrayjit
import arrayjit.devices
from arrayjit import backends
from arrayjit.errors import BackendUnavailable, SettingError
from arrayjit.runtime.cuda import driver

X = np.ones((512, 1024), np.float32)
MISSING = "libcuda.so.1 is missing"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def connected() -> NoReturn:
        raise BackendUnavailable(MISSING, details=("here",), fix="install NVIDIA's driver")

    monkeypatch.setattr(driver, "bindings", SimpleNamespace(connected=connected))
    backends._backend.cache_clear()
    yield
    backends._backend.cache_clear()


@arrayjit.jit(target="cuda")
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_every_stage_can_be_read_without_a_gpu() -> None:
    lowered = softmax.lower(arrayjit.spec((512, 1024), np.float32))
    assert "grid(" in lowered.as_text("optimized")
    assert "__global__" in lowered.as_text("cuda")
    assert ".target sm_90" in lowered.as_text("ptx")
    assert "EXIT" in lowered.as_text("sass")
    assert "offload" in lowered.explain()
    assert lowered.cost().read.low == X.nbytes


def test_code_is_planned_and_compiled_for_the_architecture_that_a_setting_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARRAYJIT_GPU", "sm_80")
    lowered = softmax.lower(X)
    assert lowered.build.code.payload.arch == "sm_80"
    assert ".target sm_80" in lowered.as_text("ptx")
    result = arrayjit.jit(lambda x: x * 2, target="cuda-sim")(X[0])
    assert result.device.static_properties["arch"] == "sm_80"


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_GPU", "volta")
    with pytest.raises(SettingError, match="knows no architecture 'volta'"):
        softmax.lower(X)


def test_what_runs_says_what_is_missing() -> None:
    said = f"not available: {MISSING}; install NVIDIA's driver"
    assert arrayjit.devices.targets()["cuda"] == said
    lowered = softmax.lower(X)
    for run in (
        lambda: softmax(X),
        lambda: softmax.profile(X),
        lowered.compile,
        lambda: lowered.build.backend.get_device(0),
    ):
        with pytest.raises(BackendUnavailable) as raised:
            run()
        assert raised.value.what == MISSING
        assert raised.value.details == ("here",)
        assert raised.value.fix == "install NVIDIA's driver"
