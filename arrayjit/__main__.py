"""The command line: `python -m arrayjit`."""

from __future__ import annotations

import argparse
import subprocess
import sys

from . import __version__, cache
from .backends import BACKENDS, backend
from .demo.measure import environment_for_numpy
from .errors import BackendUnavailable
from .settings import cache_bytes

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m arrayjit", description="A compiler of NumPy programs.")
    parser.add_argument("--version", action="version", version=f"arrayjit {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser("demo", add_help=False, help="compile and time real programs (demo --help)")
    commands.add_parser("targets", help="what compiled code can run on, here")
    kept = commands.add_parser("cache", help="the compiled code that is kept in files")
    kept.add_argument("action", choices=CACHE_ACTIONS, help="what to do with it")
    options, rest = parser.parse_known_args(arguments)
    if options.command == "demo":
        return demo(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "targets":
        print(targets())
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
        backend(name)
    except BackendUnavailable as error:
        return f"not available: {error.what}; {error.fix}"
    return "available"


if __name__ == "__main__":
    sys.exit(main())
