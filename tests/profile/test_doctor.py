"""`python -m arrayjit doctor` says what it finds, what is missing with what to do, and by its exit status
whether something is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import arrayjit
from arrayjit import settings
from arrayjit.__main__ import main
from arrayjit.backends import BACKENDS
from arrayjit.errors import BackendUnavailable
from arrayjit.profile import doctor
from arrayjit.profile.doctor import Finding, Kind, findings
from arrayjit.profile.machine import Limits
from arrayjit.profile.roofline import Level, Roofline

LIMITS = Roofline(
    1, Limits(8e10, 4e10, 1e10, 1e10, 1e10), (Level("L1", 1 << 15, 1e11), Level("memory", 0, 1e10))
)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system without files, a cache of its own, an environment without surprises."""
    for name in [
        *doctor.UNFAIR,
        *(name for name in settings.variables() if name.startswith("ARRAYJIT_")),
    ]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor, "SYSTEM", tmp_path)
    monkeypatch.setattr(doctor, "kept", lambda threads: None)
    return tmp_path


def found(topic: str) -> list[Finding]:
    return list(findings(topic))


def put(machine: Path, name: str, text: str) -> None:
    file = machine / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_machine_that_is_well_has_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert f"arrayjit {arrayjit.__version__}" in text
    assert f"NumPy {np.__version__}" in text
    assert "0 problems (!)" in text


def test_every_target_computes_something() -> None:
    texts = [one.text for one in found("targets")]
    assert [text.split(":")[0].split()[0] for text in texts] == list(BACKENDS)
    assert {"llvm works", "sync_llvm works", "interp works"} <= set(texts)


def test_a_target_that_computes_wrong_numbers_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "jit", lambda function: arrayjit.jit(lambda x: function(x) + 1.0))
    assert [one.kind for one in found("targets") if one.text.startswith("llvm")] == [Kind.PROBLEM]
    assert main(["doctor"]) == 1
    assert "! " in capsys.readouterr().out


def test_a_target_that_is_not_available_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(function: Callable[..., object]) -> object:
        raise BackendUnavailable("it needs a card", fix="buy one")

    monkeypatch.setattr(doctor, "jit", unavailable)
    assert {(one.kind, one.fix) for one in found("targets")} == {(Kind.ADVICE, "buy one")}


def test_a_cache_that_cannot_be_written_is_a_problem(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(machine, "file", "")
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(machine / "file" / "cache"))
    last = found("cache")[-1]
    assert last.kind is Kind.PROBLEM
    assert "ARRAYJIT_CACHE_DIR" in last.fix


def test_a_cache_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    assert [one.kind for one in found("cache")] == [Kind.ADVICE]


def test_variables_that_mislead_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("ARRAYJIT_TRAGET", "c")
    advice = [one.text for one in found("environment") if one.kind is Kind.ADVICE]
    assert advice == ["OPENBLAS_CORETYPE=Haswell", "ARRAYJIT_TRAGET means nothing"]


def test_a_setting_that_makes_no_sense_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_ENTRY", "quick")
    last = found("environment")[-1]
    assert last.kind is Kind.PROBLEM
    assert last.fix == "set it to native or python"


def test_the_settings_that_it_knows_are_those_that_there_are() -> None:
    text = Path(settings.__file__).read_text()
    assert sorted(set(re.findall(r"ARRAYJIT_[A-Z_]+", text))) == sorted(doctor.SETTINGS)


def test_packages_that_are_not_here_come_with_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", {"demo": ("numpy", "no-such-package")})
    (one,) = found("packages")
    assert one.text == f"demo: numpy {np.__version__}; not here: no-such-package"
    assert one.fix == "for demo: pip install 'arrayjit[demo]'"


def test_the_extras_are_those_of_the_project() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    for extra, names in doctor.PACKAGES.items():
        declared = text.partition(f"\n{extra} = [")[2].partition("]\n")[0]
        assert set(names) <= set(re.findall(r'"([\w-]+)', declared)), extra


def test_memory_and_its_limits(machine: Path) -> None:
    put(machine, "proc/meminfo", "MemTotal:  2097152 kB\nMemAvailable:  1048576 kB\n")
    put(machine, "sys/fs/cgroup/memory.max", f"{512 << 20}\n")
    put(machine, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
    texts = [one.text for one in found("memory")]
    assert texts[:2] == ["2 GiB, of which 1 GiB are available", "a control group limits it to 512 MiB"]
    assert texts[2].startswith("huge pages are off")


def test_a_machine_without_a_gpu_says_so() -> None:
    assert [one.text for one in found("GPU")] == ["no NVIDIA driver is loaded"]


def test_gpus_are_told_and_what_uses_them(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        machine,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Kernel Module 580.1\nGCC version: 13\n",
    )
    put(machine, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    told = found("GPU")
    assert [one.text for one in told[:2]] == [
        "NVRM version: NVIDIA UNIX Kernel Module 580.1",
        "0000:01:00.0: NVIDIA H200",
    ]
    assert told[2].fix == "pip install 'arrayjit[cuda]'"


def test_more_threads_than_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_NUM_THREADS", "1000")
    assert any("1000 threads share" in one.text for one in found("cores"))


def test_a_machine_that_others_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    assert found("cores")[-1].kind is Kind.ADVICE


def test_limits_are_measured_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def measured(threads: int, *, again: bool = False) -> Roofline:
        asked.append(again)
        return LIMITS

    monkeypatch.setattr(doctor, "roofline", measured)
    assert [one.text for one in found("limits")] == [
        "not measured yet: the first profile does it, or doctor --limits"
    ]
    assert main(["doctor", "--limits"]) == 0
    assert asked
    assert all(asked)
    assert (
        "80 GFLOP/s in float32, 40 GFLOP/s in float64; L1 100 GB/s, memory 10 GB/s" in capsys.readouterr().out
    )


def test_a_topic_that_fails_is_a_problem_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(doctor, "c_compiler", broken)
    (one,) = found("C compiler")
    assert (one.kind, one.text) == (Kind.PROBLEM, "RuntimeError: no such thing")
    assert found("cache")
