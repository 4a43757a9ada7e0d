"""The entries of the suite for GPUs compute what NumPy computes: arrayjit's on a simulated GPU, those of
libraries with their arrays in the processor's memory, CuPy's with NumPy in its place."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from peers import PEERS
from scipy.special import softmax
from suites import SUITES

from arrayjit.contest.checking import verdict
from arrayjit.contest.peers import Listed, installed
from arrayjit.contest.tasks import Choice, Task

TASKS = list(SUITES["gpu"].tasks(Choice(tiny=True)))


def label(task: Task) -> str:
    return f"{task.name} {task.dtype}"


def on(target: str, name: str) -> Listed:
    (row,) = (row for row in PEERS if row.name == name and target in row.targets)
    return row


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_arrayjit_agrees_on_a_simulated_gpu(task: Task) -> None:
    found, _ = installed(PEERS, target="cuda-sim")
    assert list(found) == ["arrayjit"]
    assert verdict(replace(task, target="cuda-sim"), found["arrayjit"]) == ""


@pytest.mark.gpu
@pytest.mark.parametrize("task", TASKS, ids=label)
def test_everybody_here_agrees_on_a_gpu(task: Task) -> None:
    found, _ = installed(PEERS, target="cuda")
    verdicts = {name: verdict(replace(task, target="cuda"), peer) for name, peer in found.items()}
    assert set(verdicts.values()) <= {"", "there is none"}, verdicts
    assert verdicts["arrayjit"] == ""


@pytest.mark.parametrize("task", TASKS, ids=label)
@pytest.mark.parametrize("name", ["torch", "torch.compile", "jax"])
def test_libraries_agree(name: str, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    row = on("cuda", name)
    pytest.importorskip(row.package)
    module = importlib.import_module(row.module)
    waits: list[None] = []
    if row.package == "torch":
        monkeypatch.setattr(module, "GPU", "cpu")
        monkeypatch.setattr(module.torch.cuda, "synchronize", lambda: waits.append(None))
    assert verdict(task, getattr(module, row.entry)) == ""
    assert len(waits) == (row.package == "torch")


class StandIn(ModuleType):
    """NumPy as CuPy."""

    fuse = staticmethod(lambda: lambda function: function)
    asnumpy = staticmethod(np.array)

    def __init__(self) -> None:
        super().__init__("cupy")
        self.waits = 0
        self.cuda = SimpleNamespace(
            is_available=lambda: False,
            get_current_stream=lambda: SimpleNamespace(synchronize=self._wait),
        )

    def _wait(self) -> None:
        self.waits += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    monkeypatch.setitem(sys.modules, "cupy", made)
    for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.special"):
        package = ModuleType(name)
        package.__dict__["softmax"] = softmax
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.delitem(sys.modules, "peers.with_cupy", raising=False)
    yield made
    sys.modules.pop("peers.with_cupy", None)


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_cupy_s_versions_are_those_programs(cupy: StandIn, task: Task) -> None:
    has_none = task.dtype == "bfloat16"
    entry = importlib.import_module("peers.with_cupy").entry
    assert verdict(task, entry) == ("there is none" if has_none else "")
    assert cupy.waits == (0 if has_none else 1)


def test_a_library_that_finds_no_gpu_says_so(cupy: StandIn) -> None:
    assert on("cuda", "cupy").missing() == "cupy finds no GPU"
