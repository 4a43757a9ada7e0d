"""Compiled functions as C files: they compile without a warning and compute what the function computes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import NumberError, UnsupportedError
from arrayjit.runtime.c_compiler import c_compiler

# GCC takes cells for unset that are written under one condition and read under the same one.
STRICT = (
    *("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-maybe-uninitialized"),
    "-ffp-contract=off",
)


def built(folder: Path, name: str, main: str, symbol: str) -> str:
    """What a program prints whose `main` has the body."""
    head = f'#include "{name}.h"\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{\n'
    (folder / "main.c").write_text(f"{head}{main}\n    return 0;\n}}\n")
    command = [*c_compiler().command, *STRICT, "-o", str(folder / "program"), "main.c", f"{name}.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run([folder / "program"], check=True, capture_output=True, text=True).stdout


def test_a_program_in_c_computes_what_the_function_does(tmp_path: Path) -> None:
    @arrayjit.jit(target="sync_c")
    def heat(x: Any, steps: int) -> Any:
        for _ in range(steps):
            x[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
        return np.exp(x) @ np.arange(40.0).reshape(20, 2)

    def start() -> Any:
        return np.where(np.arange(20) % 3 == 0, 1.0, 0.125)

    header, source = heat.lower(start(), 5).export(tmp_path / "new" / "folder")
    assert (header.name, source.name) == ("heat.h", "heat.c")
    text = header.read_text()
    assert "// x: float64 of shape (20), read and written" in text
    workspace = "aligned_alloc(64, (HEAT_WORKSPACE_BYTES + 63) / 64 * 64)"
    argument = f", {workspace}" if "WORKSPACE" in text else ""
    main = f"""
    double x[20], product[2];
    const int64_t steps = 5;
    for (int i = 0; i < 20; ++i) x[i] = i % 3 == 0 ? 1.0 : 0.125;
    printf("%d", (int)heat_kernel(x, &steps, product{argument}));
    for (int i = 0; i < 20; ++i) printf(" %a", x[i]);
    printf(" %a %a", product[0], product[1]);"""
    status, *numbers = built(header.parent, "heat", main, "heat_kernel").split()
    x = start()
    wanted = heat(x, 5)
    assert status == "0"
    assert [float.fromhex(number) for number in numbers] == [*x, *wanted]


def test_a_failure_has_a_status_and_words(tmp_path: Path) -> None:
    @arrayjit.jit(target="c")
    def chosen(x: Any, which: Any) -> Any:
        return x[which]

    chosen.lower(np.ones(3, np.float32), np.array([0, 2])).export(tmp_path, name="pick")
    main = """
    const float x[3] = {1, 2, 3};
    const int64_t good[2] = {2, -3}, bad[2] = {0, 3};
    float found[2];
    int32_t status = pick_kernel(x, good, found);
    printf("%d %g %g\\n", (int)status, found[0], found[1]);
    status = pick_kernel(x, bad, found);
    printf("%d %s\\n", status != 0, pick_kernel_failure(status));
    printf("%s\\n", pick_kernel_failure(0));"""
    lines = built(tmp_path, "pick", main, "pick_kernel").splitlines()
    assert lines[0] == "0 3 1"
    assert lines[1].startswith("1 IndexError: ")
    assert __file__ in lines[1]
    assert lines[2] == ""


def everything(x: Any, mask: Any, small: Any, n: int) -> Any:
    total = np.cumsum(np.sort(x, axis=1)[:, ::-1], axis=0)
    return np.where(mask, total, small[:, None]), np.argmax(x), x.T @ x, np.sin(x * 1e9).sum() * n


@pytest.mark.parametrize("target", ["c", "sync_c"])
def test_the_files_say_what_they_take_and_compile_without_a_warning(tmp_path: Path, target: str) -> None:
    function = arrayjit.jit(everything, target=target)
    x = np.ones((300, 200)).T
    arguments = x, np.ones((200, 300), bool), np.ones(200, np.float16), 3
    header, _ = function.lower(*arguments).export(tmp_path)
    text = header.read_text()
    for line in (
        "// x: float64 of shape (200, 300), read, with elements (1, 200) apart",
        "// mask: bool (0 or 1) of shape (200, 300), read, in C order",
        "// small: float16 (its bits) of shape (200), read",
        "// workspace: ",
        "#define EVERYTHING_WORKSPACE_BYTES ",
    ):
        assert line in text
    built(tmp_path, "everything", "(void)everything_kernel;", "everything_kernel")
    command = [*c_compiler().command, "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", str(header)]
    subprocess.run(command, check=True)


def test_the_default_name_is_one_in_c(tmp_path: Path) -> None:
    def größe(x: Any) -> Any:
        return x + 1

    lowered = arrayjit.jit(größe, target="sync_c").lower(np.ones(3))
    assert [file.name for file in lowered.export(tmp_path)] == ["gr__e.h", "gr__e.c"]


def refusals() -> Sequence[tuple[Callable[[Path], object], type[Exception], str]]:
    lowered = arrayjit.jit(lambda x: x + 1).on("sync_c").lower(np.ones(3))
    other = arrayjit.jit(lambda x: x + 1).on("sync_llvm").lower(np.ones(3))
    return (
        (lambda folder: lowered.export(folder, name="two words"), NumberError, "'two words' is no name in C"),
        (lambda folder: lowered.export(folder, name="../up"), NumberError, "no name in C"),
        (lambda folder: lowered.export(folder, name="2nd"), NumberError, "no name in C"),
        (
            lambda folder: other.export(folder),
            UnsupportedError,
            'emits no C.*\n  fix: lower .* target "sync_c"',
        ),
    )


@pytest.mark.parametrize("number", range(4))
def test_what_cannot_be_exported_is_refused(tmp_path: Path, number: int) -> None:
    act, error, words = refusals()[number]
    with pytest.raises(error, match=words):
        act(tmp_path)
    assert list(tmp_path.iterdir()) == []
