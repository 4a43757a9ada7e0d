"""Programs that NumPy refuses, refused by arrayjit in NumPy's words."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from harness import assert_same

import arrayjit

__all__ = ["assert_raises_like_numpy"]


def assert_raises_like_numpy(program: Callable[..., Any], words: str, *arguments: Any) -> None:
    """NumPy's exception, which says `words` and where, after the same has been done to the arguments."""
    plain = deepcopy(arguments)
    with pytest.raises((IndexError, OverflowError, TypeError, ValueError)) as theirs:
        program(*plain)
    kind = next(base for base in type(theirs.value).__mro__ if base.__module__ == "builtins")
    for target in ("interp", "sync_llvm"):
        traced = deepcopy(arguments)
        with pytest.raises(kind) as ours:
            arrayjit.jit(program, target=target)(*traced)
        assert isinstance(ours.value, arrayjit.UserError)
        assert words in str(ours.value)
        assert ours.value.loc is not None
        lines = {line for _, _, line in program.__code__.co_lines()}
        assert (ours.value.loc.file, ours.value.loc.line in lines) == (program.__code__.co_filename, True)
        assert_same(traced, plain)
