"""The pages that show results: self-contained, with a drawing for each question, losses as open as wins."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from arrayjit.contest import charts
from arrayjit.contest.report import html, markdown, write
from arrayjit.contest.results import Results, Row, Time
from arrayjit.contest.tables import text
from arrayjit.contest.tasks import OURS
from arrayjit.errors import MissingPackage, UserError
from arrayjit.profile.machine import Limits
from arrayjit.profile.roofline import Level, Roofline


def time(median: float) -> Time:
    return Time(1.0 + median, median, median * 0.9, median * 1.1, median * 0.8, 7, 1e-16)


def row(name: str, size: str = "100", threads: int = 1, **medians: float) -> Row:
    times = {peer: time(median) for peer, median in medians.items()}
    return Row("vector", name, size, "float32", threads, times, {"float32": 10**9}, 10**8)


def roof(threads: int) -> Roofline:
    levels = (Level("L1", 32768, 200e9), Level("memory", 0, 20e9))
    return Roofline(threads, Limits(100e9, 50e9, 20e9, 10e9, 12e9), levels)


ROWS = [
    row("won & done", arrayjit=0.1, numpy=1.0),
    row("lost", arrayjit=0.2, numpy=0.1),
    replace(row("failed"), times={OURS: time(0.1), "jax": Time(error="differs by 1e+00")}),
    *(row("growing", size, arrayjit=0.1, numpy=0.2) for size in ("10", "1000", "10000")),
    replace(row("won & done", threads=2, arrayjit=0.05, numpy=0.9), answer=63e-9),
    replace(row("lost", threads=2, arrayjit=0.2, numpy=0.9), answer=460e-9),
    replace(row("failed", threads=2, arrayjit=0.2, numpy=0.9), answer=68e-9),
]
SOME = Results(
    {"processor": "a <fine> CPU", "date": "today"},
    {1: roof(1), 2: roof(2)},
    ROWS,
    ("without torch: torch is not installed",),
    [("vector", "late", "", "", 2)],
)
PAGE = html(SOME)


def test_the_page_needs_no_other_file() -> None:
    assert PAGE.startswith("<!doctype html>")
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!#)([^"\')\s>]+)', PAGE)
    assert outside == []
    assert "<script" not in PAGE


def test_the_page_has_a_drawing_for_each_question() -> None:
    for heading in (
        "In the geometric mean",
        "vector, 1 thread",
        "vector, 2 threads",
        "More threads",
        "Compiling",
    ):
        section = PAGE.split(f"<h2>{heading}</h2>")[1].split("</section>")[0]
        assert "<svg" in section, heading
    for threads in ("1 thread", "2 threads"):
        assert f"<h2>The roofline of {threads}</h2>\n<svg" in PAGE
    assert PAGE.split("<h2>vector, 1 thread</h2>")[1].split("</section>")[0].count("<svg") == 2


def test_the_page_shows_losses_and_what_is_wrong() -> None:
    lost = PAGE.split("<h2>Losses, the worst first</h2>")[1].split("</section>")[0]
    assert "vector: lost 100 f32, 1 thread" in lost
    assert '<span class="loss">0.50</span>' in lost
    wrong = PAGE.split("<h2>What is wrong</h2>")[1].split("</section>")[0]
    assert "failed 100 f32, 1 thread, jax" in wrong
    assert "differs by 1e+00" in wrong
    assert "1 rows were not measured" in wrong


def test_words_are_escaped() -> None:
    assert "a &lt;fine&gt; CPU" in PAGE
    assert "won &amp; done" in PAGE


def test_drawings_have_the_page_s_colours_and_are_the_same_again() -> None:
    drawn = charts.overview(SOME)
    assert "var(--ink)" in drawn
    assert not set(charts.PAGE_COLOURS) & set(re.findall(r"#\w{6}", drawn))
    assert drawn == charts.overview(SOME)


def test_names_inside_drawings_are_not_shared() -> None:
    names = re.findall(r' id="([^"]+)"', "".join(re.findall(r"<clipPath[^>]*>", PAGE)))
    assert len(names) == len(set(names)) > 3


@pytest.mark.filterwarnings("error")
def test_what_computes_nothing_is_no_point_under_the_roofline() -> None:
    moving = replace(row("copy", arrayjit=0.1), flops={"float32": 0})
    assert charts.roofline(roof(1), [moving]) == ""
    assert charts.roofline(roof(1), [moving, *ROWS]) == charts.roofline(roof(1), ROWS)


def test_what_has_nothing_to_show_has_no_drawing() -> None:
    alone = Results(SOME.machine, {}, [row("alone", arrayjit=1.0)])
    assert charts.overview(alone) == charts.threads(alone) == charts.ratios("vector", alone.rows) == ""
    assert "<h2>More threads</h2>" not in html(alone)


def test_the_markdown_has_losses_first_and_every_number() -> None:
    page = markdown(SOME)
    assert "Losses: lost 100 f32 (0.50, numpy)." in page
    assert "| lost 100 f32 | 1.2 s | 200 ms | 10%, 7 | 5% | 0.50 | 100 ms (0.50) |  |" in page
    assert "- vector: failed 100 f32, 1 thread, jax: differs by 1e+00" in page


def test_the_terminal_shows_the_same() -> None:
    shown = text(SOME)
    assert shown.index("lost 100 f32") < shown.index("won & done 100 f32")
    assert "vector: failed 100 f32, 1 thread, jax: differs by 1e+00" in shown
    assert "without torch: torch is not installed" in shown


def test_names_with_brackets_are_shown_whole() -> None:
    shown = text(replace(SOME, rows=[row("a[a > 5]", arrayjit=0.1, numpy=0.2)]))
    assert "a[a > 5] 100 f32" in shown


def test_rows_of_several_threads_say_how_near_the_cores_were() -> None:
    near = "2 threads: a core answers another in 68 ns, in single rows in 63 ns to 460 ns"
    page = markdown(SOME)
    assert f"- {near}" in page
    assert near in text(SOME)
    assert near in PAGE
    (one, two) = (line for line in page.splitlines() if line.startswith("|  |"))
    assert "answer |" not in one
    assert "| of the limit | answer | ratio to best |" in two
    assert "| lost 100 f32 | 1.2 s | 200 ms | 10%, 7 | 5% | 460 ns | 4.50 | 900 ms (4.50) |" in page


@pytest.mark.parametrize("name", ["page.html", "page.md", "page.json"])
def test_a_report_is_written_as_its_name_says(tmp_path: Path, name: str) -> None:
    write(SOME, tmp_path / "new" / name)
    assert (tmp_path / "new" / name).stat().st_size > 500


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write(SOME, tmp_path / "file" / "page.md")
    with pytest.raises(UserError, match="is no kind of report"):
        write(SOME, tmp_path / "page.pdf")


def test_without_matplotlib_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arrayjit.contest.requirements.find_spec", lambda name: None)
    with pytest.raises(
        MissingPackage, match=r"matplotlib is not installed\n  fix: pip install 'arrayjit\[report\]'"
    ):
        write(SOME, tmp_path / "page.html")
