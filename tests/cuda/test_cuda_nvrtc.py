"""From CUDA C to images: architectures, errors at the user's line, what is kept, what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_written import SOURCE

from arrayjit import cache
from arrayjit.errors import BackendUnavailable, CompilerBug
from arrayjit.runtime.cuda import nvrtc
from arrayjit.runtime.cuda.sass import disassembled

SPILLING = """
extern "C" __global__ void __launch_bounds__(1024) many(double *x) {
  double held[96];
  for (int i = 0; i < 96; i++) held[i] = x[i * 7 + threadIdx.x];
  for (int j = 0; j < 50; j++)
    #pragma unroll
    for (int i = 0; i < 96; i++) held[i] = held[i] * held[(i + 37) % 96] + 1.0;
  for (int i = 0; i < 96; i++) x[i * 7 + threadIdx.x] = held[i];
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARRAYJIT_CACHE_BYTES", raising=False)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100"])
def test_machine_code_and_ptx_for_an_architecture(arch: str) -> None:
    image = nvrtc.compiled(SOURCE, arch, "hand_written")
    assert f".target {arch}" in image.ptx
    assert image.cubin.startswith(b"\x7fELF")
    assert ".entry scale" in image.ptx


def test_the_assembler_reports_on_each_kernel() -> None:
    used = nvrtc.usage(nvrtc.compiled(SOURCE, "sm_90", "hand_written").log)
    assert sorted(used) == ["add", "below", "check", "grow", "scale"]
    assert all(0 < each.registers < 64 for each in used.values())
    assert not any(each.spilled_bytes or each.stack_bytes for each in used.values())


def test_spills_are_seen() -> None:
    used = nvrtc.usage(nvrtc.compiled(SPILLING, "sm_90", "spilling").log)["many"]
    assert used.spilled_bytes > 0
    assert used.stack_bytes > 0


def test_multiplications_are_not_fused_with_additions() -> None:
    source = 'extern "C" __global__ void f(double *x) { x[0] = x[1] * x[2] + x[3]; }'
    assert "fma" not in nvrtc.compiled(source, "sm_90", "f").ptx


def test_an_error_names_the_users_line() -> None:
    broken = SOURCE.replace("y[i] += x[i]", "z[i] += x[i]")
    with pytest.raises(CompilerBug) as raised:
        nvrtc.compiled(broken, "sm_90", "broken")
    said = str(raised.value)
    assert said.startswith("arrayjit bug in NVRTC, compiling 'broken' for sm_90: at model.py:12\n")
    assert 'identifier "z" is undefined' in said
    assert said.rstrip().endswith("if (i < n) z[i] += x[i];")


@pytest.mark.parametrize(
    ("device", "chosen"),
    [
        ("sm_90", "sm_90"),  # the device's own
        ("sm_90a", "sm_90a"),  # with what only it has
        ("sm_88", "sm_86"),  # machine code of the generation runs on its later devices
        ("sm_130", "compute_121"),  # of a later generation: PTX, which the driver compiles
    ],
)
def test_what_is_compiled_for_a_device(device: str, chosen: str) -> None:
    assert nvrtc.choose(device, ("sm_75", "sm_80", "sm_86", "sm_90", "sm_121")) == chosen


@pytest.mark.parametrize("device", ["sm_52", "hopper", "sm_"])
def test_unsupported_architectures_are_refused(device: str) -> None:
    with pytest.raises(BackendUnavailable, match="fix: "):
        nvrtc.choose(device, ("sm_75", "sm_90"))


def test_an_image_without_machine_code_has_ptx() -> None:
    newest = nvrtc.supported()[-1]
    image = nvrtc.compiled(SOURCE, f"sm_{int(newest[3:]) + 200}", "hand_written")
    assert image.cubin == b""
    assert ".entry scale" in image.ptx


def test_what_python_shares_is_not_written_to() -> None:
    """An empty log is one byte, and bytes of length one are objects that all code has in common."""
    newest = nvrtc.supported()[-1]
    assert nvrtc.compiled(SOURCE, f"sm_{int(newest[3:]) + 200}", "hand_written").log == ""
    everything = bytes(range(256))
    assert all(everything[code : code + 1].hex() == f"{code:02x}" for code in range(256))


def test_images_are_kept_for_later_processes() -> None:
    written = cache.counters.written
    first = nvrtc.compiled(SOURCE, "sm_90", "hand_written")
    assert cache.counters.written == written + 1
    hits = cache.counters.hits
    assert nvrtc.compiled(SOURCE, "sm_90", "hand_written") == first
    assert cache.counters.hits == hits + 1
    assert nvrtc.compiled(SOURCE, "sm_80", "hand_written") != first


def test_machine_code_is_shown() -> None:
    image = nvrtc.compiled(SOURCE, "sm_90", "hand_written")
    assert "DMUL" in disassembled(image.cubin) or "DADD" in disassembled(image.cubin)
