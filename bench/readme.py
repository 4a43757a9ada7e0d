"""The README's table and docs/kernels.md, made of the committed results: `python bench/readme.py`.

`python -m arrayjit bench --output bench/results` makes the results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kernels import KERNELS

from arrayjit.contest.results import Results, Row, Time
from arrayjit.contest.standings import BEST, groups, losses, means, of, seconds
from arrayjit.contest.tasks import OURS

__all__ = ["RESULTS", "kernels_page", "placed", "table"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "results.json"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "kernels.md"
SHOWN = ("numpy", "numba", "jax", "torch.compile", BEST)
MARKS = ("<!-- made by bench/readme.py -->\n", "<!-- until here -->")

KERNELS_PAGE = """\
# The kernels

{count} scientific programs in plain NumPy, `bench/kernels`, with the decorator alone; {changed} had to be
changed.

On one thread of {machine}, {date}. "First" is the first call, which compiles; "ratio" is how
many times as fast as NumPy arrayjit is, "best peer" the same for who of the others is fastest; "differs" is
how far the result is from NumPy's, as a fraction of its largest number. Written by `python bench/readme.py`.

## Changed

{changes}

"""


def table(results: Results) -> str:
    """How many times as fast as others we are in each suite, and how often we are not."""
    lines = [line(["suite", "rows", *SHOWN, "lost"]), "|---|" + "--:|" * (len(SHOWN) + 2)]
    for (suite, threads), rows in groups(results).items():
        found = means(rows)
        cells = (f"{found[name]:.2f}" if name in found else "" for name in SHOWN)
        lines.append(line([f"{suite}, {of(threads)}", str(len(rows)), *cells, str(len(losses(rows)))]))
    machine = results.machine
    return "\n".join([f"On {machine['processor']}, {machine['date']}:", "", *lines, "", ""])


def line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def placed(readme: str, made: str) -> str:
    """The README with the table between its marks."""
    begin, end = MARKS
    before, _, rest = readme.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{README} lacks the marks {begin.strip()} and {end}")
    return f"{before}{begin}{made}{end}{after}"


def kernels_page(results: Results) -> str:
    """docs/kernels.md: what each kernel is, and its times at the sizes that were measured."""
    changes = [f"- `{kernel.name}`: {kernel.changed}" for kernel in KERNELS if kernel.changed]
    page = KERNELS_PAGE.format(
        count=len(KERNELS),
        changed=len(changes),
        machine=results.machine["processor"],
        date=results.machine["date"],
        changes="\n".join(changes),
    )
    rows = [row for row in results.rows if row.suite == "kernels" and row.threads == 1]
    return page + "\n".join(sections(rows))


def sections(rows: Sequence[Row]) -> Iterator[str]:
    for size in dict.fromkeys(row.size for row in rows):
        known = {row.name: row for row in rows if row.size == size}
        yield f"## {size.capitalize()}\n"
        yield line(["kernel", "from", "first", "NumPy", "arrayjit", "ratio", "best peer", "differs"])
        yield "|---|---|" + "--:|" * 6
        for kernel in KERNELS:
            yield line([kernel.name, kernel.source, *cells(known.get(kernel.name))])
        yield ""


def cells(row: Row | None) -> list[str]:
    """Under the headings after the second."""
    if row is None:
        return [""] * 6
    ours, numpy = row.times.get(OURS, Time()), row.times.get("numpy", Time())
    times = [seconds(ours.first), seconds(numpy.median), ours.error or seconds(ours.median)]
    best = replace(row, times={peer: time for peer, time in row.times.items() if peer != "numpy"}).best
    apart = f"{ours.difference:.0e}" if ours.difference else "0"
    return [*times, against(row, "numpy"), f"{best} {against(row, best)}".strip(), apart.replace("nan", "")]


def against(row: Row, peer: str) -> str:
    ratio = row.ratio(peer)
    return f"{ratio:.2f}" if ratio else ""


def main() -> int:
    results = Results.from_json(RESULTS.read_text())
    README.write_text(placed(README.read_text(), table(results)))
    PAGE.write_text(kernels_page(results))
    print(f"{README.relative_to(ROOT)} and {PAGE.relative_to(ROOT)} show {RESULTS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
