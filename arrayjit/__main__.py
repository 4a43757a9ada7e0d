"""The command line: `python -m arrayjit`."""

from __future__ import annotations

import argparse
import subprocess
import sys

from . import __version__, cache, scripts
from .backends import BACKENDS, backend
from .demo.measure import environment_for_numpy
from .errors import BackendUnavailable, UserError
from .settings import cache_bytes

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m arrayjit", description="A compiler of NumPy programs.")
    parser.add_argument("--version", action="version", version=f"arrayjit {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser("demo", add_help=False, help="compile and time real programs (demo --help)")
    commands.add_parser("targets", help="what compiled code can run on, here")
    explain = commands.add_parser("explain", help="what the compiler makes of a function, and why")
    scripts.add_arguments(explain)
    explain.add_argument("--target", help="what it is compiled for")
    explain.add_argument("--save", metavar="FILE", help="draw it: a .svg, a .html or a .txt")
    kept = commands.add_parser("cache", help="the compiled code that is kept in files")
    kept.add_argument("action", choices=CACHE_ACTIONS, help="what to do with it")
    options, rest = parser.parse_known_args(arguments)
    if options.command == "demo":
        return demo(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "targets":
        print(targets())
    elif options.command == "explain":
        return explain_function(options)
    elif options.command == "cache":
        print(CACHE_ACTIONS[options.action]())
    else:
        parser.print_help()
    return 0


def demo(arguments: list[str]) -> int:
    """Run the demo in a process of its own; its exit status."""
    environment, dropped = environment_for_numpy()
    if dropped:
        print(f"without {' and '.join(dropped)}, which would slow NumPy down", flush=True)
    command = [sys.executable, "-m", "arrayjit.demo", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def explain_function(options: argparse.Namespace) -> int:
    """Explain a function of a script's; the exit status, 1 where that failed."""
    try:
        call = scripts.call_of(options.function, options.arg)
        told = call.function.on(options.target).lower(*call.args, **call.kwargs).explain()
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        scripts.print_error(error)
        return 1
    if not options.save:
        print(told)
        return 0
    try:
        told.save(options.save)
    except (OSError, UserError) as error:
        print(f"{options.save} cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


def targets() -> str:
    """A table: each target's name, and whether it can be used here or what it lacks."""
    width = max(map(len, BACKENDS))
    return "\n".join(f"{name:{width}}  {availability(name)}" for name in BACKENDS)


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


def availability(name: str) -> str:
    """What stands between a target and its use on this machine, if anything."""
    try:
        backend(name).driver.num_devices()
    except BackendUnavailable as error:
        return f"not available: {error.what}; {error.fix}"
    return "available"


if __name__ == "__main__":
    sys.exit(main())
