"""What all tests share: reproducible hypothesis runs, golden files rewritten by `--update`, a cache."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("arrayjit", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("arrayjit")


_FOLDER = "ARRAYJIT_CACHE_DIR"


def pytest_configure(config: pytest.Config) -> None:
    """Tests keep what they compile in a folder of this run, which its processes share."""
    if _FOLDER not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="arrayjit-tests-")
        os.environ[_FOLDER] = folder.name
        config.add_cleanup(folder.cleanup)


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
