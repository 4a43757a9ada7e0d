"""Results as files: numbers (`.json`), a page in Markdown (`.md`), or an HTML page with drawings that needs
no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..late import Late
from ..pages import page
from .requirements import need
from .results import Results, Row
from .standings import (
    BEST,
    answers,
    ceilings,
    columns,
    groups,
    losses,
    means,
    named,
    of,
    ordered,
    peers,
    summary,
    where,
)

if TYPE_CHECKING:
    from . import charts
else:
    charts = Late("arrayjit.contest.charts")

__all__ = ["html", "markdown", "write"]

METHOD = (
    "Every entry is compared with NumPy before it is timed; what differs is reported and left out. Those "
    "of a row are timed in turn; a number is the median of samples, ± half the distance between the "
    "quartiles. One thread is measured by the time that the processor spends, several by that which passes, "
    "after a pause in which the threads of the entry before go to sleep, and calls in which its own wake. "
    "A ratio is how many times as fast arrayjit is: below 1 it has lost. Its first call compiles. "
    "The limit is what the machine's arithmetic and memory allow for the operations that our own code does "
    "and the bytes that have to be moved. What several threads take depends on how long a core waits for "
    "another one's answer, which is measured after each row: cores that share no cache take several times as "
    "long."
)
ON_GPU = (
    "On a GPU, arguments and results lie in its memory, and a call is measured by the time that passes until "
    "the GPU is done. Operations are those that the program asks for."
)


def write(results: Results, path: Path) -> None:
    """Write results to a file, in the form that its name asks for. Raises UserError where that cannot be
    written."""
    match path.suffix:
        case ".json":
            text = results.as_json()
        case ".md":
            text = markdown(results)
        case ".html":
            need("matplotlib")
            text = html(results)
        case _:
            raise UserError(f"{path} is no kind of report", fix="end its name in .html, .md or .json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", fix="choose another place") from error


def markdown(results: Results) -> str:
    """Tables that are read where files are shown."""
    lines = [
        "# Benchmarks",
        "",
        f"{METHOD} {ON_GPU}" if results.gpu else METHOD,
        "",
        *(f"- {name}: {value}" for name, value in results.machine.items()),
    ]
    lines += [f"- {words}" for words in (*ceilings(results), *answers(results), *results.remarks)]
    for (suite, threads), rows in groups(results).items():
        lost = [f"{row.title} ({row.ratio(row.best):.2f}, {row.best})" for row in losses(rows)]
        shown = columns(results, rows)
        lines += [
            "",
            f"## {suite}, {where(results, threads)}",
            "",
            f"{summary(rows)}.",
            "",
            f"Losses: {', '.join(lost) or 'none'}.",
        ]
        lines += ["", line(["", *(heading for heading, _ in shown)]), "|---" + "|--:" * len(shown) + "|"]
        lines += [line([row.title, *(cell(row) for _, cell in shown)]) for row in rows]
    lines += [f"- {named(results, row)}, {peer}: {error}" for row, peer, error in results.errors]
    return "\n".join([*lines, *left(results), ""])


def line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def left(results: Results) -> list[str]:
    return [f"{len(results.left)} rows were not measured, for want of time."] if results.left else []


def html(results: Results) -> str:
    """The page."""
    return page("arrayjit beside its peers", "\n".join(filter(None, body(results))))


def body(results: Results) -> Iterator[str]:
    """From what matters most to what explains it."""
    machine = results.machine
    lost = losses(results.rows)
    yield "<h1>arrayjit beside its peers</h1>"
    yield f'<p class="quiet">{escape(machine["processor"])}, {escape(machine["date"])}</p>'
    yield (
        f'<p>{len(results.rows)} rows; in <span class="loss">{len(lost)}</span> of them somebody else is '
        f"faster, and in {len(results.errors)} entries something is wrong.</p>"
    )
    yield section("In the geometric mean", charts.overview(results), means_table(results))
    yield section("Losses, the worst first", losses_table(results, lost)) if lost else ""
    yield section("What is wrong", failures(results)) if results.errors or results.left else ""
    for (suite, threads), rows in groups(results).items():
        name = f"{suite}, {where(results, threads)}"
        yield section(name, charts.ratios(name, rows), charts.sizes(name, rows), folded(results, rows))
    yield section("More threads", charts.threads(results))
    yield section("Compiling", charts.compiling(results))
    for threads, roof in results.rooflines.items():
        rows = [row for row in results.rows if row.threads == threads]
        yield section(f"The roofline of {of(threads)}", charts.roofline(roof, rows))
    yield section(
        "The machine",
        listed(
            [
                *machine.items(),
                *(("ceiling", words) for words in ceilings(results)),
                *(("cores", words) for words in answers(results)),
                *(("remark", remark) for remark in results.remarks),
            ]
        ),
    )
    yield section(
        "How this was measured", f"<p>{escape(f'{METHOD} {ON_GPU}' if results.gpu else METHOD)}</p>"
    )


def section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{''.join(parts)}\n</section>" if any(parts) else ""


def means_table(results: Results) -> str:
    names = [*peers(results.rows), BEST]
    rows = []
    for (suite, threads), taken in groups(results).items():
        found = means(taken)
        ratios = (ratio(found.get(name)) for name in names)
        rows.append(
            [escape(f"{suite}, {where(results, threads)}"), str(len(taken)), *ratios, str(len(losses(taken)))]
        )
    return tabled(["", "rows", *names, "lost"], rows)


def ratio(value: float | None) -> str:
    if value is None:
        return ""
    return f'<span class="{"win" if value >= 1 else "loss"}">{value:.2f}</span>'


def losses_table(results: Results, lost: Sequence[Row]) -> str:
    rows = [[escape(named(results, row)), escape(row.best), ratio(row.ratio(row.best))] for row in lost]
    return tabled(["", "faster", "ratio"], rows)


def failures(results: Results) -> str:
    found = [(f"{named(results, row)}, {peer}", error) for row, peer, error in results.errors]
    return listed(found) + "".join(f"<p>{words}</p>" for words in left(results))


def folded(results: Results, rows: Sequence[Row]) -> str:
    """All numbers of a suite, unless somebody asks for them out of sight."""
    shown = columns(results, rows)
    cells = [[escape(row.title), *(escape(cell(row)) for _, cell in shown)] for row in ordered(rows)]
    table = tabled(["", *(heading for heading, _ in shown)], cells)
    return f"<details><summary>all {len(rows)} rows in numbers</summary>{table}</details>"


def tabled(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The cells are HTML."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" for cells in rows)
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'


def listed(pairs: Sequence[tuple[str, str]]) -> str:
    return (
        "<dl>"
        + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
        + "</dl>"
    )
