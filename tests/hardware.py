"""Which targets tests run on: those of the table, and with `-m gpu` the ones that need a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from arrayjit.backends import BACKENDS

__all__ = ["ANYWHERE", "HOSTS", "TARGETS"]

_ON_GPUS = {"cuda"}
_REMOTE = {"cuda-sim"}

ANYWHERE = [name for name in BACKENDS if name not in _ON_GPUS]
"""Targets that run on any machine."""

HOSTS = [name for name in ANYWHERE if name not in _REMOTE]
"""Those whose memory is the host's."""

TARGETS: list[Any] = [
    pytest.param(name, marks=pytest.mark.gpu) if name in _ON_GPUS else name for name in BACKENDS
]
"""All of them, as parameters of tests."""
