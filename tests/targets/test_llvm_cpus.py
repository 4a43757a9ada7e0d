"""What the LLVM target makes for each kind of CPU: the same bits on all, and nothing that a CPU lacks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import arrayjit
from arrayjit.backends import backend, fresh_backend
from arrayjit.errors import BackendUnavailable, SettingError, UnsupportedError
from arrayjit.ir.assign import ArrayParam
from arrayjit.ir.interp import run as interpret
from arrayjit.passes.manager import optimize
from arrayjit.targets import host
from arrayjit.targets.host import CPUS, _linux_caches, cpu_named, host_caps, host_cpu
from arrayjit.targets.llvm import LlvmTarget, ParallelLlvmTarget
from arrayjit.tracer.calls.function import trace_function

HOST = llvm.get_host_cpu_features()
HERE = [cpu.name for cpu in CPUS if all(HOST.get(feature) for feature in cpu.features)]
every_cpu = pytest.mark.parametrize("cpu", [cpu.name for cpu in CPUS])


def elementary(x, y):
    y[:] = np.exp(x) + np.log(x) * np.sin(x) - np.tanh(x) ** 1.5


def rounding(x, y):
    y[:] = (
        np.where(x > 0.5, np.floor(5 * x), np.rint(7 * x)) + (100 * x).astype(np.int16) // 7 + np.hypot(x, 3)
    )


def integers(x, y):
    n = (1000 * x).astype(np.uint64) + 3
    y[:] = (n % 17 + (n << 3) // 5).astype(y.dtype) + np.minimum(n.astype(np.uint8), 9)


def sums(x, y):
    y[:] = x.sum(axis=0) + x.mean(axis=1)[: x.shape[1]] + x.max() + np.cumsum(x, axis=1)


def product(x, y):
    y[:] = np.maximum(x.T @ x @ x.T, 0.25).T


def sweep(x, y):
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i, ::-1]


def compiled(program, dtype, target):
    x = np.random.default_rng(5).random((23, 23)).astype(dtype)
    computation = trace_function(program, (x, np.zeros_like(x)), {}).computation
    return optimize(computation, target.caps(), verify=True).kernel, x


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("program", [elementary, rounding, integers, sums, product, sweep])
@pytest.mark.parametrize("name", HERE)
def test_the_bits_are_those_of_the_interpreter(name, program, dtype):
    made_for = fresh_backend("sync_llvm", cpu=name)
    kernel, x = compiled(program, dtype, made_for.target)
    procedure = made_for.get_device().load(made_for.target.emit(kernel))
    y, wanted = np.zeros_like(x), np.zeros_like(x)
    arrays = {"x": x, "y": y}
    procedure.launch([arrays[param.tensor.label].ctypes.data for param in kernel.params])
    arrays["y"] = wanted
    interpret(
        kernel, {p.tensor: arrays[p.tensor.label] for p in kernel.params if isinstance(p, ArrayParam)}, {}
    )
    assert y.tobytes() == wanted.tobytes()


def conversions(x, y, z, wide, back, rounded):
    wide[:] = x
    back[:] = wide
    rounded[:] = np.abs(y)
    z[:] = y


@pytest.mark.parametrize("name", HERE)
def test_float16_has_the_same_bits_with_and_without_instructions_for_it(name):
    """All numbers, what lies near them and between two, and what is no number."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    steps = np.arange(-3, 4) << 12
    near = (steps[:, None] + np.arange(-1, 2)).astype(np.uint32).ravel()
    y = (x.astype(np.float32).view(np.uint32)[:, None] + near).ravel()
    made = []
    for cpu in (name, "generic"):
        results = [np.zeros(len(y), "e"), np.zeros_like(x, "f"), np.zeros_like(x), np.zeros(len(y), "e")]
        arguments = (x, y.view(np.float32), *results)
        computation = trace_function(conversions, arguments, {}).computation
        made_for = fresh_backend("sync_llvm", cpu=cpu)
        kernel = optimize(computation, made_for.target.caps(), verify=True).kernel
        arrays = dict(zip(("x", "y", "z", "wide", "back", "rounded"), arguments, strict=True))
        procedure = made_for.get_device().load(made_for.target.emit(kernel))
        procedure.launch([arrays[param.tensor.label].ctypes.data for param in kernel.params])
        made.append([result.tobytes() for result in results])
    assert made[0] == made[1]


@every_cpu
def test_machine_code_can_be_made_for_a_cpu_that_is_not_here(cpu):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    kernel, _ = compiled(product, np.float32, LlvmTarget("sync_llvm", cpu))
    triple = "aarch64-unknown-linux-gnu" if cpu == "neon" else "x86_64-unknown-linux-gnu"
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
    module = llvm.parse_assembly(LlvmTarget("sync_llvm", cpu).emit(kernel).payload)
    text = machine.emit_assembly(module)
    widest = max(re.findall(r"%([xyz]mm)\d|(v\d+\.4s)", text))
    wanted = {
        "zen5": "zmm",
        "avx512fp16": "zmm",
        "avx512": "zmm",
        "avx2": "ymm",
        "avx": "ymm",
        "sse2": "xmm",
        "generic": "xmm",
    }
    assert widest[0] == wanted.get(cpu, "")
    fused = "fmla" if cpu == "neon" else "vfmadd"
    assert (fused in text) == cpu_named(cpu).caps.fma
    assert machine.emit_object(module)


@pytest.mark.parametrize("cpu", [cpu.name for cpu in CPUS if cpu.name not in HERE])
def test_code_for_features_that_this_cpu_lacks_is_not_run(cpu):
    made_for = fresh_backend("llvm", cpu=cpu)
    kernel, _ = compiled(sums, np.float64, made_for.target)
    code = made_for.target.emit(kernel)
    with pytest.raises(
        BackendUnavailable, match=f"'sums' is compiled for CPUs with {code.needs[0]}.*no "
    ) as found:
        made_for.get_device().load(code)
    assert "ARRAYJIT_CPU" in found.value.fix


def test_the_setting_names_the_cpu(monkeypatch):
    monkeypatch.setenv("ARRAYJIT_CPU", "SSE2")
    assert LlvmTarget("sync_llvm").caps().vector_bytes == 16
    assert LlvmTarget("sync_llvm", "avx512").caps().vector_bytes == 64
    assert ParallelLlvmTarget("llvm").caps().registers == 16


def test_by_default_it_is_the_best_row_that_the_host_fits():
    assert HERE[0] == host_cpu().name
    assert backend("sync_llvm").target.caps() == host_caps(host_cpu())
    x = np.ones(3)
    assert "target-features" not in arrayjit.jit(np.negative).lower(x).as_text("llvm")


def test_a_cpu_that_is_in_no_row_is_a_mistake(monkeypatch):
    with pytest.raises(SettingError, match="no CPU is called 'abacus'") as found:
        fresh_backend("llvm", cpu="abacus")
    assert all(cpu.name in found.value.fix for cpu in CPUS)
    with pytest.raises(UnsupportedError, match="target 'interp' has no option 'cpu'"):
        fresh_backend("interp", cpu="sse2")
    monkeypatch.setenv("ARRAYJIT_CPU", "abacus")
    with pytest.raises(SettingError, match="abacus"):
        LlvmTarget("sync_llvm")


def priced(x, y):
    y[:] = np.log(x) * np.tanh(np.sqrt(x) / (1 + np.exp(-x)))


def test_chains_are_cut_by_what_the_cpu_computes_with():
    x = np.ones(4000)
    computation = trace_function(priced, (x, x.copy()), {}).computation
    cuts = {}
    for name in ("zen5", "avx512fp16", "avx512"):
        notes = optimize(computation, host_caps(cpu_named(name)), verify=True).kernel.notes
        cuts[name] = [note for note in notes if note.startswith("overlap")]
    assert all(cuts.values())
    assert cuts["avx512"] == cuts["avx512fp16"] != cuts["zen5"]


def test_a_loop_that_waits_for_its_divider_alone_is_not_cut_where_that_is_apart():
    def lengths(x, y):
        y[:] = np.hypot(x, y)

    x = np.ones(4000)
    computation = trace_function(lengths, (x, x.copy()), {}).computation
    notes = optimize(computation, host_caps(cpu_named("zen5")), verify=True).kernel.notes
    assert not any(note.startswith("overlap") for note in notes)


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_a_row_is_found_before_those_that_it_includes(cpu):
    later = CPUS[CPUS.index(cpu) + 1 :]
    assert not any(set(cpu.features) <= set(other.features) for other in later)


def test_the_table_in_the_documents_is_this_one():
    text = (Path(__file__).parents[2] / "docs" / "cpus.md").read_text()
    rows = [
        (name, features.replace("none", ""), int(size.split()[0]), int(registers))
        for name, features, size, registers in re.findall(
            r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$", text, re.M
        )
    ]
    assert rows == [(c.name, ", ".join(c.features), c.caps.vector_bytes, c.caps.registers) for c in CPUS]


def write_cache(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def test_the_sizes_of_caches_are_read_from_the_system(tmp_path):
    write_cache(tmp_path / "index0", type="Data", level="1", size="48K", coherency_line_size="64")
    write_cache(tmp_path / "index1", type="Instruction", level="1", size="32K", coherency_line_size="64")
    write_cache(tmp_path / "index2", type="Unified", level="2", size="2M", coherency_line_size="128")
    write_cache(tmp_path / "index3", type="Unified", level="3")
    assert _linux_caches(tmp_path) == {"l1_bytes": 48 << 10, "l2_bytes": 2 << 20, "line_bytes": 128}
    assert _linux_caches(tmp_path / "none") == {}


def test_of_a_cache_that_unseen_processors_share_only_a_part_is_counted_on(monkeypatch):
    def told(**sizes):
        monkeypatch.setitem(host._READERS, sys.platform, lambda: sizes)
        return host._caches.__wrapped__()

    monkeypatch.setattr(host.os, "cpu_count", lambda: 2)
    assert told(l2_bytes=2 << 20, l3_bytes=300 << 20)["l3_bytes"] == 64 << 20
    assert told(l2_bytes=1 << 20, l3_bytes=32 << 20)["l3_bytes"] == 32 << 20
    assert told(l2_bytes=1 << 20)["l3_bytes"] == 1 << 20
