"""`f.explain(...)` shows the user's lines with what became of them, which assignments became which loops,
what is in memory, and what each pass did and left undone; `save` draws it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import arrayjit

x10 = np.arange(1.0, 11.0)


def lines(function: Callable[..., Any], *args: Any) -> list[tuple[str, str]]:
    """The lines of this file that are explained, each with what is said of it."""
    told = arrayjit.jit(function).explain(*args).splitlines()
    found = [re.fullmatch(rf"{re.escape(__file__)}:\d+: (.*)  # (.*)", line) for line in told]
    return [(match[1], match[2]) for match in found if match]


def test_outer_loops_come_before_inner_ones() -> None:
    def program(x: Any) -> Any:
        total = x[0]
        for i in range(len(x)):
            for j in range(i):
                total += x[j]
        return total

    assert lines(program, x10) == [
        ("for i in range(len(x)):", "one loop of 10 iterations; carries total"),
        ("for j in range(i):", "one loop; carries total"),
    ]


def test_what_an_attempt_recorded_is_said_only_if_it_was_kept() -> None:
    def program(x: Any, y: Any) -> Any:
        for _ in range(9):
            x, y = y, x
            for i in range(5):
                x[i] += y[i]
        return x, y

    assert lines(program, x10, -x10) == [
        (
            "for _ in range(9):",
            "one loop of 4 iterations; each does 2 iterations of this one, after which arrays are back at "
            "their names",
        ),
        ("for i in range(5):", "one loop of 5 iterations"),
    ]


def test_what_is_compiled_in_of_an_argument() -> None:
    def program(x: Any, k: int) -> Any:
        return x[:k] * 2

    ((line, what),) = lines(program, x10, 3)
    assert line == "def program(x: Any, k: int) -> Any:"
    assert what.startswith("of k, its value is compiled in, because ")


def test_loops_over_conditions() -> None:
    def program(x: Any) -> Any:
        return arrayjit.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    ((_, what),) = lines(program, x10)
    assert what == "one loop until its condition is false; carries state"


def test_what_a_pass_does_often_is_said_once() -> None:
    def program(x: Any) -> Any:
        for i in range(9):
            half, root = x[i] / 2, np.sqrt(x[i + 1])
            x[i], x[i + 1] = half + root, half - root
        return x

    told = section(arrayjit.jit(program).explain(x10), "decisions")
    assert len(set(told)) == len(told)
    assert any(re.search(r" \(\d times\)$", line) for line in told)


def section(told: str, title: str) -> list[str]:
    """The lines below a heading that begins so."""
    (found,) = (part for part in told.split("\n\n") if part.startswith(title))
    return found.splitlines()[1:]


def decided(function: Callable[..., Any], *args: Any) -> str:
    """What the passes decided, with lines of this file by their numbers from the function's first."""
    told = "\n".join(section(arrayjit.jit(function, threads=2).explain(*args), "decisions"))
    first = function.__code__.co_firstlineno
    return re.sub(rf"{re.escape(__file__)}:(\d+)", lambda match: f"+{int(match[1]) - first}", told)


def stencil(x: Any) -> Any:
    y = x[1:] * x[:-1]
    z = np.exp(y)
    return z[1:] - z[:-1]


def test_assignments_are_shown_with_the_loops_that_they_became() -> None:
    told = arrayjit.jit(stencil, threads=1).explain(x10)
    assert "3 assignments became 2 loop nests" in told
    first = section(told, "nest 1")
    at = stencil.__code__.co_firstlineno
    assert first[:2] == [
        f"  t: f64[9] = multiply(x)  at {__file__}:{at + 1}",
        f"  t: f64[9] = exp(t)  at {__file__}:{at + 2}",
    ]
    assert re.fullmatch(r"    loop i of \d, in vectors of 8", first[2])
    assert [nest.title(n) for n, nest in enumerate(told.nests, 1)] == ["nest 1", "nest 2"]


def test_parts_of_complex_numbers_are_assignments_of_their_own() -> None:
    told = arrayjit.jit(lambda x: x * x).explain(x10 + 1j)
    assert re.search(r"assignments? became 1 loop nest\n", told)


def test_what_is_in_memory_is_told_with_the_reason() -> None:
    kept = section(arrayjit.jit(stencil, threads=1).explain(x10), "what is in memory")
    assert kept == ["  t: f64[9]: 72 bytes in the stack: loops that could not be joined use it"]
    plain = section(arrayjit.jit(lambda x: x + 1).explain(x10), "what is in memory")
    assert plain == ["  arguments and results only"]


def test_an_assignment_that_is_inlined_is_told() -> None:
    def program(x: Any) -> Any:
        shifted = x + 1
        return shifted[1:] * shifted[:-1]

    told = arrayjit.jit(program).explain(x10)
    assert "2 assignments became 1 loop nest; 1 is computed where it is read" in told
    assert "inline: t: f64[10] (at +1) is computed where it is read" in decided(program, x10)


def test_why_a_temporary_is_stored() -> None:
    def program(x: Any, i: Any) -> Any:
        return np.exp(x)[i] + x.sum()

    told = decided(program, x10, np.arange(3))
    assert "is stored: it is read at an index that is computed at run time, or in another shape" in told
    assert "inline: add: f64[] (at +1) is stored: its cells combine several values" in told


def test_why_loops_are_not_joined() -> None:
    apart = "fuse: t: f64[9] is made at +1 and read at +3 in loops of their own"
    assert f"{apart}: their outermost loops run differently" in decided(stencil, x10)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x[i + 1] = x[i] * x[i + 1] + 1", "an iteration needs what an earlier one made"),
        ("x[i] = arrayjit.while_loop(lambda v: v > 1, lambda v: v / 2, x[i])", "depends on a condition"),
    ],
)
def test_why_a_loop_is_not_in_vectors(line: str, why: str) -> None:
    scope: dict[str, Any] = {"np": np, "arrayjit": arrayjit}
    exec(f"def program(x):\n    for i in range(len(x) - 1):\n        {line}\n    return x", scope)
    told = decided(scope["program"], np.ones(99))
    assert re.search(f"vectorise: loop .* is not in vectors: .*{why}", told)
    assert "vectorise: loop i of 3 at +0 is not in vectors: it runs 3 times at most" in decided(
        lambda x: x * 2, np.ones(3)
    )


def test_why_nothing_is_shared_among_threads() -> None:
    def ordered(x: Any) -> Any:
        for i in range(1, len(x)):
            x[i] = np.sin(x[i - 1]) + x[i]
        return x

    told = decided(ordered, np.ones(100_000))
    assert "stays on one thread: an iteration hands a value on to the next" in told
    assert "stays on one thread: its iterations add up" in decided(lambda x: (x * x).sum(), np.ones(99))
    assert "stays on one thread: it does too little" in decided(lambda x: x + 1, np.ones(8))
    assert "2 loops do each too little to be worth waking" in decided(lambda x: x + 1, x10)
    alone = arrayjit.jit(lambda x: x + 1, target="sync_llvm").explain(x10)
    assert "threads: everything is done by one thread, since there is no other" in alone


def test_short_loops_that_are_written_out_are_told() -> None:
    def program(x: Any) -> Any:
        for t in range(99):
            x[t + 1] = x[t] * 0.5 + x[t + 1]
        return x

    assert "unroll: loop i of 3 is written out" in decided(program, np.ones((100, 3)))


def test_code_that_an_earlier_process_kept_is_explained_as_well() -> None:
    function = arrayjit.jit(stencil)
    assert function.explain(x10) == function.explain(x10)


def test_a_drawing_has_a_box_for_each_assignment_and_each_nest(tmp_path: Path) -> None:
    told = arrayjit.jit(stencil).explain(x10)
    told.save(tmp_path / "e.svg")
    drawing = ElementTree.parse(tmp_path / "e.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    words = [node.text for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert [word for word in words if word and word.startswith("nest")] == ["nest 1", "nest 2"]
    assert "t: f64[9] = exp(t)" in words
    curves = list(drawing.iter("{http://www.w3.org/2000/svg}path"))
    assert len(curves) == 3
    boxes = [node.attrib for node in drawing.iter("{http://www.w3.org/2000/svg}rect") if "rx" in node.attrib]
    width, height = int(drawing.attrib["width"]), int(drawing.attrib["height"])
    for box in boxes:
        x, y, w, h = (int(box[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height


def test_a_page_needs_no_other_file(tmp_path: Path) -> None:
    told = arrayjit.jit(stencil).explain(x10)
    told.save(tmp_path / "e.html")
    text = (tmp_path / "e.html").read_text()
    assert text.count("<svg") == 1
    assert html.escape(section(told, "decisions")[0]) in text
    assert not re.search(r"<(script|link|img)|@import|url\(", text)
    assert re.findall(r"https?://[^\s\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_a_drawing_of_another_kind_is_refused(tmp_path: Path) -> None:
    told = arrayjit.jit(stencil).explain(x10)
    with pytest.raises(arrayjit.UnsupportedError, match=r"no \.png") as raised:
        told.save(tmp_path / "e.png")
    assert ".svg, .html, .txt" in str(raised.value)
    with pytest.raises(FileNotFoundError):
        told.save(tmp_path / "nowhere" / "e.svg")
    told.save(str(tmp_path / "e.txt"))
    assert (tmp_path / "e.txt").read_text() == f"{told}\n"
