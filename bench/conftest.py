"""`pytest bench`: the rows of the suites under pytest-benchmark, in an environment made for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from arrayjit.contest.environment import environment, is_ready
from arrayjit.settings import num_threads


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("arrayjit")
    group.addoption("--suite", nargs="+", default=["calls"], help="of bench/suites.py")
    group.addoption("--size", nargs="+", default=[], help="of the arrays")
    group.addoption("--dtype", nargs="+", default=[], help="of the arrays")
    group.addoption("--peers", nargs="+", default=[], help="by default all that are installed")
    group.addoption("--threads", type=int, default=num_threads(), help="for every peer")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """NumPy and its peers read the environment when they are imported: another process has it by then."""
    threads = config.getoption("threads")
    if is_ready(threads):
        return None
    command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
    folder = config.invocation_params.dir
    return subprocess.run(command, env=environment(threads), cwd=folder, check=False).returncode


def pytest_report_header(config: pytest.Config) -> str:
    return f"arrayjit: {config.getoption('threads')} thread(s), {', '.join(config.getoption('suite'))}"
