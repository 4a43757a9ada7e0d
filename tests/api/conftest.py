"""What is said of calls is so for both ways of calling: through the dispatcher, and through Python."""

from __future__ import annotations

import pytest

from arrayjit.entry import entries


@pytest.fixture(params=["native", "python"])
def entry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How functions that the test makes are called; the dispatcher answers from the third call on."""
    monkeypatch.setenv("ARRAYJIT_ENTRY", request.param)
    monkeypatch.setattr(entries, "WORTH", 1)
    return str(request.param)
