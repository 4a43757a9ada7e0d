"""All programs of these tests are verified after every pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def verify_every_pass() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARRAYJIT_VERIFY", "1")
        yield
