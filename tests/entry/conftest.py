"""What the tests of calls without Python share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from arrayjit.entry import entries


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variants are published by the second call."""
    monkeypatch.setattr(entries, "WORTH", 1)


@pytest.fixture
def native() -> Callable[..., Any]:
    """`native(f, *args)` is the result of a call that was answered without Python."""

    def answered(function: Any, *args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        function(*args, **kwargs)
        before = function._entries.hits
        result = function(*args, **kwargs)
        assert function._entries.hits == before + 1, function._entries._reasons.values()
        return result

    return answered


@pytest.fixture
def through_python() -> Callable[..., Any]:
    """`through_python(f, *args)` is the result of a call that Python answered, as ever."""

    def answered(function: Any, *args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        function(*args, **kwargs)
        before = function._entries.hits
        result = function(*args, **kwargs)
        assert function._entries.hits == before
        return result

    return answered
