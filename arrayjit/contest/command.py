"""`python -m arrayjit bench`: suites, or a function of the user's, timed beside what it could be run by
instead."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING

from .. import scripts
from ..errors import UserError
from ..late import Late
from ..settings import left_out, num_threads
from .callers import CALLERS
from .environment import environment, is_ready
from .plan import FOLDER, Plan, listed, suites
from .requirements import need
from .results import Results
from .runs import JOURNAL, Run
from .saved import changes, keep, kept
from .tasks import OURS
from .timing import Effort

if TYPE_CHECKING:
    from . import function, gpu, report, tables
else:
    gpu = Late("arrayjit.contest.gpu")
    function = Late("arrayjit.contest.function")
    report = Late("arrayjit.contest.report")
    tables = Late("arrayjit.contest.tables")

__all__ = ["main"]

QUICK_MINUTES, MINUTES = 1.75, 24.0


def parser() -> ArgumentParser:
    made = ArgumentParser(
        prog="python -m arrayjit bench",
        description="Time suites, or a function, beside what they could be run by instead.",
    )
    add = made.add_argument
    add("what", nargs="*", help="the names of suites, by default all; or SCRIPT:FUNCTION")
    add("--quick", action="store_true", help="a few rows of each suite, within two minutes")
    add("--threads", type=int, nargs="+", metavar="N", help="by default 1, then one for each core")
    add("--size", nargs="+", default=[], help="sizes of arrays, as docs/benchmarks.md lists them")
    add("--dtype", nargs="+", default=[], choices=["float32", "float64"], help="element types")
    add("--target", default="", metavar="NAME", help="a GPU: cuda, or cuda-sim, which simulates one")
    add("--only", nargs="+", default=[], metavar="NAME", help="only these rows")
    add("--peers", nargs="+", default=[], metavar="NAME", help="only these columns")
    add("--arg", action="append", default=[], metavar="EXPRESSION", help="an argument of the function")
    add("--suites", default=FOLDER, metavar="FOLDER", help="a folder with suites and peers of your own")
    add("--minutes", type=float, metavar="M", help=f"at most: {MINUTES:g}, or {QUICK_MINUTES:g} if quick")
    add("--patience", type=float, default=240, metavar="S", help="for an entry, in seconds: %(default)g")
    add("--output", type=Path, metavar="FOLDER", help="for the report; of suites by default bench-results")
    add("--resume", action="store_true", help="what the last run into that folder left, or took in a hurry")
    add("--save", metavar="NAME", help="keep the results under a name, or in a JSON file")
    add("--compare", metavar="NAME", help="say what is slower than in results that were saved")
    add("--threshold", type=float, default=1.15, metavar="X", help="times as long is slower: %(default)s")
    return made


def main(arguments: list[str]) -> int:
    """Run the command; the process's exit status: 1 where a result is wrong or has become slower, 2 where
    nothing could be measured as wanted."""
    chosen = parser().parse_args(arguments)
    try:
        need("rich", "matplotlib")
        if chosen.compare:
            kept(chosen.compare)  # before all the work
        if any(":" in word for word in chosen.what):
            return of_function(chosen, arguments)
        return of_suites(chosen)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; --resume measures the rest", file=sys.stderr)
        return 130


def of_suites(chosen: Namespace) -> int:
    """Measure suites, and write the report."""
    plan, folder = planned(chosen), chosen.output or Path("bench-results")
    begun(folder, JOURNAL, chosen.resume)
    minutes = chosen.minutes or (QUICK_MINUTES if plan.quick else MINUTES)
    console = tables.console()
    with tables.Watcher(console, len(plan.rows())) as watcher:
        results = Run(plan, folder, chosen.patience, watcher).results(minutes)
    tables.printed(console, results)
    for name in ("results.json", "results.md", "report.html"):
        report.write(results, folder / name)
    console.print(f"wrote {folder / 'report.html'}", soft_wrap=True)
    slower = judged(results, chosen)
    return int(bool(results.errors) or slower)


def planned(chosen: Namespace) -> Plan:
    """Raises UserError for names that nothing has, BackendUnavailable for a target that is not here."""
    table, target = suites(chosen.suites), chosen.target
    known(chosen.what, list(table), "suite")
    peers = [row for row in listed(chosen.suites) if target in row.targets]
    known(chosen.peers, [row.name for row in peers], "peer")
    here = [suite.name for suite in table.values() if target in suite.targets]
    if not here or not set(chosen.what) <= set(here):
        choices = sorted({name for suite in table.values() for name in suite.targets if name})
        place = f"--target {target}" if target else "the processor"
        raise UserError(
            f"{place} has {'other suites: ' + ', '.join(here) if here else 'no suites'}",
            fix=f"targets with suites are {', '.join(choices)}, and without --target the processor",
        )
    if target and chosen.threads:
        raise UserError("a GPU has no --threads", fix="leave it out")
    plan = Plan(
        suites=tuple(chosen.what or here),
        threads=(1,) if target else tuple(dict.fromkeys(chosen.threads or (1, num_threads()))),
        dtypes=tuple(chosen.dtype),
        sizes=tuple(chosen.size),
        only=tuple(chosen.only),
        peers=tuple(chosen.peers or (row.name for row in peers if not (row.slow and chosen.quick))),
        quick=chosen.quick,
        folder=chosen.suites,
        target=target,
        tiny=bool(target) and gpu.driver(target).is_simulated,
        effort=Effort(0.05, 5, 2) if chosen.quick else Effort(),
    )
    rows = replace(plan, only=()).rows()
    if not rows:
        raise UserError("there are no such rows", fix="name a --size and a --dtype that the suites have")
    known(chosen.only, list(dict.fromkeys(name for _, name, *_ in rows)), "row")
    return plan


def known(wanted: list[str], names: list[str], what: str) -> None:
    for name in wanted:
        if name not in names:
            raise UserError(f"there is no {what} {name!r}", fix=f"choose among {', '.join(names)}")


def begun(folder: Path, file: str, is_resumed: bool = False) -> None:
    """Make the folder ready, and that file in it. Raises UserError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / file).open("a" if is_resumed else "w"):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror}", fix="choose another --output"
        ) from error


def of_function(chosen: Namespace, arguments: list[str]) -> int:
    """Measure a function of a script's, in a process whose environment is made for it."""
    (name,) = chosen.what
    if chosen.target:
        raise UserError(
            "functions are timed on the processor",
            fix="measure it on a GPU: FUNCTION.profile(..., target='cuda')",
        )
    threads = chosen.threads[0] if chosen.threads else num_threads()
    if not is_ready(threads):
        if remark := left_out():
            print(remark, flush=True)
        command = [sys.executable, "-m", "arrayjit", "bench", *arguments]
        return subprocess.run(command, env=environment(threads), check=False).returncode
    if chosen.output:
        begun(chosen.output, "report.html")
    try:
        call = scripts.call_of(name, chosen.arg)
        program = partial(unwrap(call.function), **call.kwargs) if call.kwargs else call.function
        peers = chosen.peers or [row.name for row in CALLERS if row.name != OURS]
        measured = function.bench(program, *call.args, peers=peers)
    except UserError:
        raise
    except Exception as error:
        scripts.print_error(error)
        return 1
    print(measured)
    results = measured.results
    if chosen.output:
        report.write(results, chosen.output / "report.html")
    slower = judged(results, chosen)
    return int(bool(results.rows[0].times[OURS].error) or slower)


def judged(results: Results, chosen: Namespace) -> bool:
    """Save the results and compare them, as far as that is wanted; whether something has become slower."""
    console = tables.console()
    before = kept(chosen.compare) if chosen.compare else None
    if chosen.save:
        console.print(f"saved as {keep(results, chosen.save)}", soft_wrap=True)
    return before is not None and tables.compared(console, changes(results, before), chosen.threshold)
