"""`ARRAYJIT_GDB=1`: compiled functions have the user's lines, as a reader of DWARF finds them, and gdb stops
there."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import arrayjit
from arrayjit.errors import BackendUnavailable
from arrayjit.runtime import machine_code
from arrayjit.runtime.compiler import compiler


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_GDB", "1")


def stepped(x: Any) -> Any:
    smooth = np.cumsum(x)
    return np.sort(smooth) - smooth.sum()


FIRST = stepped.__code__.co_firstlineno


def text_of(function: Any, *args: Any, **options: Any) -> str:
    text: str = arrayjit.jit(function, target="sync_llvm", **options).lower(*args).as_text("llvm")
    return text


def lines_of(text: str) -> set[tuple[str, int]]:
    """The files and lines that the machine code is of."""
    dwarf = debugging(text)
    found = set()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        folders = ["", *(folder.decode() for folder in program["include_directory"])]
        files = [os.path.join(folders[e.dir_index], e.name.decode()) for e in program["file_entry"]]
        states = [entry.state for entry in program.get_entries() if entry.state is not None]
        found |= {(files[state.file - 1], state.line) for state in states if state.line}
    return found


def debugging(text: str) -> Any:
    content = compiler().object_file(text, "text").content
    return ELFFile(io.BytesIO(content)).get_dwarf_info()


def test_nothing_is_told_unless_somebody_asks() -> None:
    assert "!dbg" not in text_of(stepped, np.ones(100))


@pytest.mark.usefixtures("told")
def test_machine_code_has_the_lines_and_the_name_of_the_function() -> None:
    text = text_of(stepped, np.ones(30))
    assert lines_of(text) == {(__file__, FIRST + 1), (__file__, FIRST + 2)}
    (unit,) = debugging(text).iter_CUs()
    functions = [die for die in unit.iter_DIEs() if die.tag == "DW_TAG_subprogram"]
    assert [die.attributes["DW_AT_name"].value for die in functions] == [b"stepped_kernel"]
    assert functions[0].attributes["DW_AT_decl_line"].value == FIRST + 1


@pytest.mark.usefixtures("told")
def test_lines_of_several_files_whatever_they_are_called(tmp_path: Path) -> None:
    name = str(tmp_path / 'a "näme" \\of 1.py')
    found: dict[str, Any] = {"np": np}
    exec(
        compile("def inner(x):\n    out = np.zeros(100)\n    out += x\n    return out\n", name, "exec"), found
    )

    def outer(x: Any) -> Any:
        return np.sort(np.cumsum(found["inner"](x)))

    lines = lines_of(text_of(outer, np.ones(100)))
    assert {file for file, _ in lines} == {name, __file__}
    assert {line for file, line in lines if file == name} <= {2, 3}


def in_parts(x: Any) -> Any:
    """Loops that threads share, functions of a long body, and a test."""
    total = np.zeros(len(x))
    for k in range(40):
        total[k:] += np.cumsum(np.sqrt(x))[: len(x) - k] * np.sin(x)[0]
    return np.tanh(total) + x[int(x[0])]


@pytest.mark.usefixtures("told")
def test_functions_that_a_kernel_is_cut_into_have_lines_too() -> None:
    x = np.linspace(1, 2, 100_000)
    f = arrayjit.jit(in_parts, target="llvm")
    text = f.lower(x).as_text("llvm")
    names = {
        die.attributes["DW_AT_name"].value.decode()
        for unit in debugging(text).iter_CUs()
        for die in unit.iter_DIEs()
        if die.tag == "DW_TAG_subprogram"
    }
    assert "in_parts_kernel" in names
    assert any(name.startswith("shared") for name in names)
    np.testing.assert_allclose(f(x), in_parts(x))


@pytest.mark.usefixtures("told")
def test_results_are_those_without_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).random(1000)
    with_lines = arrayjit.jit(stepped, target="sync_llvm")(x)
    monkeypatch.delenv("ARRAYJIT_GDB")
    assert arrayjit.jit(stepped, target="sync_llvm")(x).tobytes() == with_lines.tobytes()
    assert "!dbg" not in text_of(stepped, x)


@pytest.mark.usefixtures("told")
def test_a_build_of_LLVM_that_gdb_finds_nothing_in_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripped = tmp_path / "libllvmlite.so"
    stripped.write_bytes(b"\x7fELF and nothing else")
    monkeypatch.setattr(machine_code, "_compiler_library", lambda: stripped)
    machine_code._require_debugger_symbols.cache_clear()
    with pytest.raises(BackendUnavailable, match="gdb cannot be told") as caught:
        arrayjit.jit(stepped, target="sync_llvm")(np.ones(10))
    assert "unset ARRAYJIT_GDB" in str(caught.value)
    machine_code._require_debugger_symbols.cache_clear()


PROGRAM = """\
import gc
import os
import numpy as np
import arrayjit
from arrayjit.cache import counters

@arrayjit.jit(target="llvm")
def blur(x):
    smooth = np.cumsum(x)
    return np.sqrt(smooth) + smooth.sum()

x = np.ones(200_000)
print("result", blur(x)[0], "recalled", counters.hits > 0, flush=True)
blur = None
gc.collect()
os.getppid()
"""

SESSION = """\
set debuginfod enabled off
set breakpoint pending on
break model.py:10
run
backtrace 2
info line model.py:9
delete
catch syscall getppid
continue
info functions -n ^blur_kernel
kill
"""


def gdb(folder: Path, commands: str, *command: str) -> str:
    script = folder / "session.gdb"
    script.write_text(commands)
    environment = {**os.environ, "ARRAYJIT_CACHE_DIR": str(folder / "cache")}
    session = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-x", str(script), "--args", *command]
    ran = subprocess.run(session, env=environment, capture_output=True, text=True, timeout=300)
    return ran.stdout + ran.stderr


@pytest.mark.usefixtures("told")
def test_gdb_stops_at_a_line_of_compiled_code_also_of_an_earlier_process(tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    if "exited normally" not in gdb(tmp_path, "run", "true"):
        pytest.skip("gdb may run nothing here")
    file = tmp_path / "model.py"
    file.write_text(PROGRAM)
    for is_recalled in (False, True):
        told = gdb(tmp_path, SESSION, sys.executable, str(file))
        before, _, after = told.partition("Catchpoint 2 (call")
        assert "blur_kernel () at" in before, told
        assert f"{file}:10" in before
        assert "10\t    return np.sqrt(smooth) + smooth.sum()" in before
        assert f'Line 9 of "{file}" starts at address' in before
        assert "#1" in before
        assert f"result 20000100001.0 recalled {is_recalled}" in told
        assert "blur_kernel" not in after.split("All functions matching", 1)[1].split("\n", 1)[1], after
