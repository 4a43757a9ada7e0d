"""A contest on a GPU, or a simulated one: who takes part, what is told, what is refused."""

from __future__ import annotations

import json
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arrayjit.contest.checking import verdict
from arrayjit.contest.gpu import SIMULATION, Gpu, gpu
from arrayjit.contest.journal import Journal
from arrayjit.contest.peers import Listed, installed
from arrayjit.contest.report import html, markdown
from arrayjit.contest.results import Results, Row, Time
from arrayjit.contest.standings import ceilings
from arrayjit.contest.tables import text
from arrayjit.contest.tasks import Entry, Task
from arrayjit.contest.work import with_work
from arrayjit.errors import UserError
from arrayjit.profile.gpu.machine import GpuLimits
from arrayjit.profile.gpu.roofline import GpuRoofline

ROOT = Path(__file__).parents[2]
LIMITS = GpuLimits(float32=50e12, float64=25e12, tensor=800e12, copy=4e12)
FAST = Gpu("cuda", "a fast GPU", GpuRoofline("a fast GPU", LIMITS))
SIMULATED = Gpu("cuda-sim", "simulated sm_90", None)
NAMES = ("copy", "gelu", "softmax", "matmul", "matmul", "a + b", "ten_layers")


def bench(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder, where no GPU is seen."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "arrayjit", "bench", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


@pytest.fixture(scope="module")
def ran(folder: Path) -> subprocess.CompletedProcess[str]:
    return bench(folder, "--target", "cuda-sim", "--quick")


def test_it_runs_on_a_simulated_gpu_and_says_so(ran: Any, folder: Path) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert SIMULATION in ran.stdout
    assert "gpu on simulated sm_90" in ran.stdout
    assert "GB/s" not in ran.stdout
    results = Results.from_json((folder / "bench-results" / "results.json").read_text())
    assert results.gpu == SIMULATED
    assert results.machine["GPU"] == "simulated sm_90, target cuda-sim"
    assert [row.name for row in results.rows] == ["copy", "softmax", "a + b"]
    assert [row.moved for row in results.rows] == [2 * 4 * 4096, 2 * 4 * 4096, 3 * 4 * 16]
    for row in results.rows:
        assert list(row.times) == ["arrayjit"]
        assert row.times["arrayjit"].median > 0
    assert SIMULATION in (folder / "bench-results" / "report.html").read_text()


def test_a_run_goes_on_where_it_was(ran: Any, folder: Path) -> None:
    elsewhere = bench(folder, "--resume", "--quick")
    assert elsewhere.returncode == 2
    assert "the run in bench-results is one on cuda-sim\n  fix: resume it with --target" in elsewhere.stderr
    assert bench(folder, "--resume", "--quick", "--target", "cuda-sim").returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "cuda"), "fix: .* (cuda-sim|GPU)"),
        (
            ("--target", "llvm"),
            "--target llvm has no suites\n  fix: targets .* are cuda, cuda-sim",
        ),
        (("gpu",), "the processor has other suites: kernels, .*\n  fix: targets .* cuda, cuda-sim"),
        (("kernels", "--target", "cuda-sim"), "--target cuda-sim has other suites: gpu"),
        (("--target", "cuda-sim", "--peers", "torch"), "there is no peer 'torch'"),
        (("--target", "cuda-sim", "--threads", "2"), "a GPU has no --threads"),
        (("--target", "cuda-sim", "--size", "7"), "there are no such rows"),
        (("kernels", "--size", "7"), "there are no such rows"),
        (("kernels", "reductions", "--size", "small"), "the suite reductions has no --size small"),
        (("program.py:f", "--target", "cuda-sim"), "functions are timed on the processor"),
    ],
)
def test_a_mistake_is_said_before_anything_is_measured(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = bench(tmp_path, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert re.search(words, done.stderr)


def row(name: str, dtype: str, kind: str, flops: int, moved: int, **medians: float) -> Row:
    times = {peer: Time(1.0, median, median, median, median, 7) for peer, median in medians.items()}
    return Row("gpu", name, "large", dtype, 1, times, {kind: flops} if flops else {}, moved)


ROWS = [
    row("copy", "float32", "", 0, 10**9, arrayjit=0.5e-3, torch=0.25e-3),
    row("matmul", "float32", "float32", 10**12, 10**6, arrayjit=0.04, torch=0.025, jax=0.05),
    row("matmul", "bfloat16", "tensor bfloat16", 10**12, 10**6, arrayjit=0.0025, torch=0.002),
]
SOME = Results({"processor": "a CPU", "date": "today"}, {}, ROWS, gpu=FAST)


@pytest.mark.parametrize("show", [text, markdown, html])
def test_what_is_wrong_was_measured_on_the_gpu(show: Callable[[Results], str]) -> None:
    wrong = replace(ROWS[0], times={"arrayjit": Time(error="ValueError: no")})
    shown = show(replace(SOME, rows=[wrong]))
    assert "gpu: copy large f32, a fast GPU, arrayjit" in shown
    assert "1 thread" not in shown


@pytest.mark.parametrize("show", [text, markdown, html])
def test_rates_stand_beside_the_ceilings_of_the_run(show: Callable[[Results], str]) -> None:
    shown = show(SOME)
    for words in ("a fast GPU", "GB/s", "TFLOP/s", "2,000", *ceilings(SOME)):
        assert words in shown.replace("&#x27;", "'")


def test_ceilings_are_the_fastest_library_and_our_own_kernels() -> None:
    assert ceilings(SOME) == [
        "copy large f32 by torch: 4,000 GB/s",
        "matmul large f32 by torch: 40 TFLOP/s",
        "matmul large bf16 by torch: 500 TFLOP/s",
        "by arrayjit's own kernels, timed by events: copy 4,000 GB/s; TFLOP/s: float32 50, float64 25, "
        "tensor 800",
    ]
    alone = Results({}, {}, [row("copy", "float32", "", 0, 10**9, arrayjit=0.5e-3)], gpu=FAST)
    assert ceilings(alone) == ceilings(SOME)[-1:]
    assert ceilings(Results({}, {}, ROWS, gpu=SIMULATED)) == []
    assert ceilings(Results({}, {}, ROWS)) == []


def test_the_limit_of_a_row_is_the_gpu_s() -> None:
    assert [SOME.reached(each) for each in ROWS] == pytest.approx([0.5, 0.5, 0.5])
    assert Results({}, {}, ROWS, gpu=SIMULATED).reached(ROWS[0]) is None


@pytest.mark.parametrize("of", [FAST, SIMULATED, None])
def test_results_remember_the_gpu(of: Gpu | None) -> None:
    results = Results({}, {}, [], gpu=of)
    assert Results.from_json(results.as_json()) == Results({}, {}, [], [], [], of)
    before = json.loads(results.as_json())
    del before["gpu"]  # as files are that were written before there were GPUs
    assert Results.from_json(json.dumps(before)).gpu is None


def test_a_journal_remembers_the_gpu(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text(json.dumps({"gpu": json.loads(SOME.as_json())["gpu"]}) + "\n")
    journal = Journal(tmp_path / "journal")
    journal.follow()
    assert journal.gpu == FAST


def test_peers_are_those_of_the_target() -> None:
    rows = (
        Listed("same", "arrayjit", "operator", "add"),
        Listed("same", "arrayjit", "operator", "sub", targets=("cuda",)),
        Listed("blind", "arrayjit", "operator", "sub", missing=lambda: "it finds no GPU", targets=("cuda",)),
        Listed("absent", "no_such_package", "operator", "sub", targets=("cuda",)),
    )
    assert installed(rows) == ({"same": operator.add}, [])
    found, reasons = installed(rows, target="cuda")
    assert list(found) == ["same"]
    assert reasons == ["without blind: it finds no GPU", "without absent: no_such_package is not installed"]


def task(function: Callable[..., Any], *arguments: Any) -> Task:
    return Task("gpu", "task", "", "", function, lambda: arguments, 1e-6, target="cuda-sim")


class Far:
    """An array that NumPy does not see."""

    __array__ = None

    def __init__(self, values: Any) -> None:
        self.values = values


def test_an_entry_places_arguments_and_fetches_results_and_what_it_writes() -> None:
    def add_to(x: Any) -> Any:
        x += 1
        return (x * 2,)

    def far(x: Far) -> Any:
        x.values += 1
        return (Far(x.values * 2),)

    def place(arguments: Any) -> Any:
        return tuple(Far(one.copy()) for one in arguments)

    entry = Entry(lambda *arguments: far, place, fetch=lambda far: np.array(far.values))
    assert verdict(task(add_to, np.ones(3)), lambda task, written: entry) == ""
    wrong = Entry(lambda *arguments: far, place, fetch=lambda far: np.array(far.values + 1))
    assert "differs" in verdict(task(add_to, np.ones(3)), lambda task, written: wrong)


def test_arguments_that_have_no_room_are_an_error_of_the_entry() -> None:
    def full(arguments: Any) -> Any:
        raise MemoryError("the GPU is full")

    entry = Entry(lambda *arguments: np.negative, full)
    assert (
        verdict(task(np.negative, np.ones(3)), lambda task, written: entry) == "MemoryError: the GPU is full"
    )


def test_work_is_what_the_program_asks_for() -> None:
    def program(x, y):
        return np.tanh(x) @ y

    measured = with_work(Row("gpu", "", "", "", 1), task(program, np.ones((8, 4)), np.ones((4, 8))))
    assert measured.flops == {"float64": 2 * 8 * 4 * 8}
    assert measured.moved == 8 * (8 * 4 + 4 * 8 + 8 * 8)


def test_products_by_tensor_cores_are_told_apart() -> None:
    def product(a, b):
        return (a @ b).astype(np.float64) * 3

    halves = np.ones((32, 32), np.float16)
    measured = with_work(Row("gpu", "", "", "", 1), task(product, halves, halves.copy()))
    assert measured.flops == {"tensor float16": 2 * 32**3 + 32**2}


def test_a_target_that_is_no_gpu_is_refused() -> None:
    with pytest.raises(UserError, match="'llvm' is no GPU"):
        gpu("llvm")


def test_a_simulated_gpu_has_no_limits() -> None:
    assert gpu("cuda-sim") == SIMULATED


@pytest.mark.gpu
def test_a_gpu_s_rows_have_rates(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "arrayjit", "bench", "--target", "cuda", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = Results.from_json((tmp_path / "results.json").read_text())
    assert results.gpu is not None
    assert results.gpu.roofline is not None
    assert [row.name for row in results.rows] == list(NAMES)
    assert all(0 < (results.reached(row) or 0) < 1.1 for row in results.rows)
    for words in ceilings(results):
        assert words in " ".join(done.stdout.split())
