"""What users read when they make a mistake: the text of each message is kept in `messages.txt`."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mistakes import MISTAKES

import arrayjit
from arrayjit.errors import MAX_LINES

HERE = Path(__file__).parent
ABOUT_THE_CALL = {"text_in_an_array", "static_list"}


@pytest.fixture(scope="module")
def errors() -> dict[str, arrayjit.UserError]:
    """The error of each program; every program raises one, and none of ours breaks."""
    return {name: error_of(name) for name in MISTAKES}


def error_of(name: str) -> arrayjit.UserError:
    mistake = MISTAKES[name]
    with pytest.raises(arrayjit.UserError) as caught:
        arrayjit.jit(mistake.function, **mistake.options)(*mistake.arguments())
    return caught.value


def text_of(name: str, error: arrayjit.UserError) -> str:
    """The message of a mistake, with the type that Python's handlers know it by, files by their names, and no
    line numbers, which another test checks. A comprehension is a function of its own until CPython 3.11."""
    known = [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"]
    kind = f"{type(error).__name__} ({known[0] if known[0] != 'Exception' else known[1]})"
    text = f"{kind}\n{error}".replace("in <listcomp>", f"in {name}")
    return re.sub(rf"{re.escape(str(HERE))}/(\w+\.py):\d+", r"\1:#", text)


def test_the_messages(errors: dict[str, arrayjit.UserError], golden: Callable[[str, str], None]) -> None:
    golden("messages.txt", "\n".join(f"[{name}]\n{text_of(name, error)}\n" for name, error in errors.items()))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_message_is_short_names_the_line_and_says_what_to_do(
    name: str, errors: dict[str, arrayjit.UserError]
) -> None:
    error = errors[name]
    assert len(str(error).splitlines()) <= MAX_LINES
    assert error.fix
    assert error.loc is not None
    marked = "# here" in linecache.getline(error.loc.file, error.loc.line)
    assert marked is (name not in ABOUT_THE_CALL)
    assert f"at {error.loc}" in str(error)
    assert error.loc.source() in str(error)


def test_a_mistake_leaves_nothing_behind() -> None:
    """The program after a mistake is traced as if nothing had happened."""
    mistake = MISTAKES["if_on_an_element"]
    jitted = arrayjit.jit(mistake.function)
    for _ in range(2):
        with pytest.raises(arrayjit.ConcretizationError):
            jitted(*mistake.arguments())
    assert jitted.stats().compiles == 0
    assert arrayjit.jit(lambda x: x + 1)(1.5) == 2.5
