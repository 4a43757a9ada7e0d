"""What all tests share: reproducible hypothesis runs, golden files rewritten by `--update`, a cache, and
processes for tests that need one of their own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "arrayjit",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a matter of what else the machine does
)
settings.load_profile("arrayjit")


_FOLDER = "ARRAYJIT_CACHE_DIR"


def pytest_configure(config: pytest.Config) -> None:
    """Tests keep what they compile in a folder of this run, which its processes share."""
    if _FOLDER not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="arrayjit-tests-")
        os.environ[_FOLDER] = folder.name
        config.add_cleanup(folder.cleanup)


_VERIFIED = ("fuzz", "programs", "tracer")
"""Folders of tests whose programs are verified after every pass."""


@pytest.fixture(autouse=True, scope="module")
def verify_every_pass(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in _VERIFIED:
            patch.setenv("ARRAYJIT_VERIFY", "1")
        yield


_ALONE = "ARRAYJIT_TEST_ALONE"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is marked `alone` runs in a process of its own. It counts what all of a process has, its
    objects, references or pages; where thousands of tests were before, these also come and go by what those
    have left: threads that end, garbage, memory in pieces."""
    if pyfuncitem.get_closest_marker("alone") is None or _ALONE in os.environ:
        return None
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid],
        cwd=pyfuncitem.config.rootpath,
        env={**outside, _ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
    return True


def pytest_collection_finish() -> None:
    """What tests are made of stays to the end: those that collect garbage, hundreds of times, look at what is
    newer alone."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("name.txt", text)` compares `text` with the file of that name beside the test."""
    update = request.config.getoption("--update")

    def check(name: str, text: str) -> None:
        path: Path = request.path.parent / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; run pytest with --update and read what it writes"
        assert text == path.read_text(), f"{name} differs; if that is right, run pytest with --update"

    return check
