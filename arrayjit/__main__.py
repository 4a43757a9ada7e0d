"""The command line: `python -m arrayjit`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from . import __version__, backends, cache, scripts
from .errors import UserError
from .late import Late
from .settings import cache_bytes, environment_for_numpy, left_out

if TYPE_CHECKING:
    from .contest import command as bench
    from .profile import doctor as doctors
else:
    bench = Late("arrayjit.contest.command")
    doctors = Late("arrayjit.profile.doctor")

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the process's exit status, 1 where nobody reads on, as in `| head`."""
    try:
        status = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at the end, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def run(arguments: list[str] | None) -> int:
    """Run one command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m arrayjit", description="A compiler of NumPy programs.")
    parser.add_argument("--version", action="version", version=f"arrayjit {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser("demo", add_help=False, help="two real programs, compiled and timed")
    commands.add_parser("bench", add_help=False, help="suites, or your functions, timed beside others")

    def command(name: str, what: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=what, description=f"Show {what}.")

    command("targets", "what compiled code can run on here")
    explain = command("explain", "what the compiler makes of a function, and why")
    scripts.add_arguments(explain)
    explain.add_argument("--target", help="what it is compiled for: a name that `targets` lists")
    explain.add_argument("--save", metavar="FILE", help="write it to a file instead: .svg, .html or .txt")
    profile = command("profile", "where the time of a call goes")
    scripts.add_arguments(profile)
    profile.add_argument("--target", help="what it runs on: a name that `targets` lists")
    profile.add_argument("--threads", type=int, help="how many threads share its loops at most")
    profile.add_argument("--seconds", type=float, help="how long to measure: 1")
    profile.add_argument("--save", metavar="FILE", help="write it to a file instead: .html, .json or .txt")
    doctor = command("doctor", "whether this machine is set up well")
    doctor.add_argument("--limits", action="store_true", help="measure what the machine can do")
    kept = command("cache", "the compiled code that is kept in files, or remove it")
    kept.add_argument("action", choices=CACHE_ACTIONS, help="count it, remove all, or what is damaged")
    options, rest = parser.parse_known_args(arguments)
    if options.command == "demo":
        return demo(rest)
    if options.command == "bench":
        return bench.main(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "targets":
        print(targets())
    elif options.command == "explain":
        return shown(options, explained)
    elif options.command == "profile":
        return shown(options, profiled)
    elif options.command == "doctor":
        text, status = doctors.report(limits=options.limits)
        print(text)
        return status
    elif options.command == "cache":
        print(CACHE_ACTIONS[options.action]())
    else:
        parser.print_help()
    return 0


def demo(arguments: list[str]) -> int:
    """Run the demo in a process of its own; its exit status."""
    if remark := left_out():
        print(remark, flush=True)
    command = [sys.executable, "-m", "arrayjit.demo", *arguments]
    return subprocess.run(command, env=environment_for_numpy(), check=False).returncode


class Told(Protocol):
    """What is known of a call, as text."""

    def save(self, file: str) -> None:
        """Write it in the form that the file's ending names."""


def explained(call: scripts.Call, options: argparse.Namespace) -> Told:
    """What the compiler makes of a call."""
    found: Told = call.function.on(options.target).lower(*call.args, **call.kwargs).explain()
    return found


def profiled(call: scripts.Call, options: argparse.Namespace) -> Told:
    """Where the time of a call goes."""
    chosen = call.function.on(options.target, threads=options.threads)
    seconds = {} if options.seconds is None else {"seconds": options.seconds}
    found: Told = chosen.profile(*call.args, **{**seconds, **call.kwargs})
    return found


def shown(options: argparse.Namespace, told: Callable[[scripts.Call, argparse.Namespace], Told]) -> int:
    """Tell something of a call of a script's function; the exit status, 1 where that failed."""
    try:
        found = told(scripts.call_of(options.function, options.arg), options)
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        scripts.print_error(error)
        return 1
    if not options.save:
        print(found)
        return 0
    try:
        found.save(options.save)
    except (OSError, UserError) as error:
        print(f"{options.save} cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


def targets() -> str:
    """A table: each target's name, and whether it can be used here or what it lacks."""
    found = backends.targets()
    width = max(map(len, found))
    return "\n".join(f"{name:{width}}  {availability}" for name, availability in found.items())


def cache_stats() -> str:
    """A table of the kinds of entries, and how much room they take."""
    found = cache.contents()
    width = max(map(len, ("folder", *found.entries)))
    rows = {"folder": found.folder, **found.entries, "bytes": f"{found.nbytes:,} of {cache_bytes():,}"}
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


def cache_clear() -> str:
    return f"{cache.clear()} entries removed"


def cache_verify() -> str:
    good, bad = cache.verify()
    return f"{good} entries are good, {bad} were damaged and are removed"


CACHE_ACTIONS = {"stats": cache_stats, "clear": cache_clear, "verify": cache_verify}


if __name__ == "__main__":
    sys.exit(main())
