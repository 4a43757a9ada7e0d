"""Settings, read from the environment at use and passed down; nothing else reads the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Settings", "default_target"]


def default_target() -> str:
    """`ARRAYJIT_TARGET`: where functions run unless the program says; asked for at each call."""
    return os.environ.get("ARRAYJIT_TARGET") or "sync_llvm"


@dataclass(frozen=True, slots=True)
class Settings:
    """`verify` checks the IR after every pass; `dump` is a folder for each stage's text, or "";
    `full_traceback` keeps arrayjit's own frames in tracebacks."""

    verify: bool = False
    dump: str = ""
    full_traceback: bool = False

    @staticmethod
    def from_environment() -> Settings:
        """`ARRAYJIT_VERIFY=1`, `ARRAYJIT_DUMP=dir`, `ARRAYJIT_TRACEBACK=full`."""
        env = os.environ
        return Settings(
            verify=env.get("ARRAYJIT_VERIFY", "") not in ("", "0"),
            dump=env.get("ARRAYJIT_DUMP", ""),
            full_traceback=env.get("ARRAYJIT_TRACEBACK", "") == "full",
        )
