"""The system's C compiler: which one, what it may do wrong, and what becomes of what it makes."""

from __future__ import annotations

import gc
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from small_programs import N, incremented, vector

import arrayjit
from arrayjit import cache
from arrayjit.backends import fresh_backend, targets
from arrayjit.compile import compile, run
from arrayjit.errors import BackendUnavailable, CompilerBug
from arrayjit.ir.code import Code
from arrayjit.runtime import c_compiler
from arrayjit.runtime.device import Device


@pytest.fixture
def device() -> Device:
    return fresh_backend("sync_c").get_device()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", str(1 << 30))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def emitted(target: str = "sync_c", **options: str) -> Code:
    code = compile(fresh_backend(target, **options), incremented(vector("x")), shared=True)
    assert isinstance(code, Code)
    return code


def works(device: Device, code: Code) -> bool:
    (param,) = code.params
    array = np.arange(float(N))
    run(device.load(code), {param.tensor: array})
    return array.tolist() == np.arange(1.0, N + 1).tolist()


def test_CC_1_cc_names_the_compiler_and_its_arguments(
    monkeypatch: pytest.MonkeyPatch, device: Device
) -> None:
    monkeypatch.setenv("CC", "gcc -Wall -DWITH='one two'")
    assert c_compiler.c_compiler().command[1:] == ("-Wall", "-DWITH=one two")
    assert works(device, emitted())


def test_without_a_compiler_an_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        BackendUnavailable, match="there is no C compiler\n  fix: install gcc or clang, or set CC"
    ):
        fresh_backend("sync_c")
    monkeypatch.setenv("CC", "nonesuch -O3")
    with pytest.raises(BackendUnavailable, match="no C compiler 'nonesuch -O3', which CC names"):
        fresh_backend("c")


def test_the_list_of_targets_says_what_one_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arrayjit.backends.backend", fresh_backend)
    monkeypatch.setenv("CC", "nonesuch")
    found = targets()
    assert found["c"].startswith("not available: there is no C compiler 'nonesuch', which CC names; install")
    assert found["interp"] == "available"


@pytest.mark.parametrize("command", ["false", "true", "gcc --no-such-option"])
def test_a_compiler_that_does_not_work_is_not_our_fault(
    monkeypatch: pytest.MonkeyPatch, device: Device, folder: Path, command: str
) -> None:
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    monkeypatch.setenv("CC", command)
    with pytest.raises(BackendUnavailable, match=f"{command.split()[0]}.* does not work\n"):
        device.load(emitted())
    assert list(folder.iterdir()) == []


def test_a_compiler_that_is_no_program_is_not_our_fault(
    monkeypatch: pytest.MonkeyPatch, device: Device, tmp_path: Path
) -> None:
    place = tmp_path / "compiler"
    place.write_text("neither a script nor a program")
    place.chmod(0o755)
    monkeypatch.setenv("CC", str(place))
    with pytest.raises(BackendUnavailable, match="does not work"):
        device.load(emitted())


@pytest.mark.parametrize("is_careful", [True, False])
def test_a_compiler_that_breaks_tries_again_with_more_care(
    monkeypatch: pytest.MonkeyPatch, device: Device, tmp_path: Path, is_careful: bool
) -> None:
    place = tmp_path / "compiler"
    rest = f'case "$*" in *{"-O1" if is_careful else "none"}*) exec cc "$@";; esac'
    place.write_text(f"#!/bin/sh\n{rest}\necho 'internal compiler error: in extract_insn' >&2; exit 1\n")
    place.chmod(0o755)
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    monkeypatch.setenv("CC", str(place))
    if is_careful:
        assert works(device, emitted())
        return
    with pytest.raises(BackendUnavailable, match="does not work"):
        device.load(emitted())


def test_masked_maxima_of_small_integers_compile() -> None:
    x, y = np.arange(255, dtype=np.uint8), np.arange(255, dtype=np.uint8) % 3
    for function in (lambda x, y: np.roll(x, 1)[y < 1].max(initial=0), lambda x, y: x[y < 1].max(initial=0)):
        assert arrayjit.jit(function, target="sync_c")(x, y) == function(x, y)


def test_CC_1_text_that_is_rejected_is_a_bug_of_which_the_text_is_kept(device: Device, folder: Path) -> None:
    with pytest.raises(
        CompilerBug, match=r"(?s)targets/c.*rejects the text of 'broken'.*error.*reproducer"
    ) as caught:
        device.load(Code("sync_c", "broken", "int nonsense = ;", ()))
    assert Path(caught.value.reproducer).read_text() == "int nonsense = ;"
    assert [file.name for file in folder.iterdir()] == [Path(caught.value.reproducer).name]


def test_nothing_is_left_in_the_folder_for_temporary_files(device: Device, folder: Path) -> None:
    assert works(device, emitted())
    assert device.driver.assembly(emitted())
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(
    monkeypatch: pytest.MonkeyPatch, device: Device, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(
        BackendUnavailable, match=r"temporary folder, which cannot be made\n.*\n  fix: set TMPDIR"
    ):
        device.load(emitted())


def test_what_was_compiled_is_loaded_again_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch, device: Device, kept: Path
) -> None:
    code = emitted()
    assert device.load(code).executable.seconds.keys() == {"codegen", "link"}
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", None)
        assert device.load(code).executable.seconds.keys() == {"recall code", "link"}
        assert works(device, code)
    (entry,) = (kept / "shared-object").iterdir()
    entry.write_bytes(entry.read_bytes()[:-100])
    damaged = cache.counters.damaged
    assert works(device, code)
    assert cache.counters.damaged == damaged + 1


def test_other_flags_are_another_entry(monkeypatch: pytest.MonkeyPatch, device: Device, kept: Path) -> None:
    code = emitted()
    device.load(code)
    monkeypatch.setenv("CC", "gcc -g")
    device.load(code)
    assert len(list((kept / "shared-object").iterdir())) == 2


def test_CC_1_code_is_unloaded_with_the_last_procedure(device: Device, folder: Path) -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count(str(folder))

    procedures = [device.load(emitted()) for _ in range(3)]
    assert mapped() >= 3
    del procedures
    gc.collect()
    assert mapped() == 0


def test_code_for_another_cpu_has_its_instructions_only(device: Device) -> None:
    plain, wide = (emitted(cpu=cpu) for cpu in ("generic", "avx2"))
    texts = [
        fresh_backend("sync_c", cpu=cpu).get_device().driver.assembly(code)
        for cpu, code in (("generic", plain), ("avx2", wide))
    ]
    assert "ymm" not in texts[0]
    assert "ymm" in texts[1]
    assert works(device, plain)


def test_several_devices_share_the_cores() -> None:
    backend = fresh_backend("c", devices=2)
    assert all(works(backend.get_device(ordinal), emitted("c")) for ordinal in range(2))
    backend.machine.unsafe_cleanup()
