"""Programs that are refused, compiled as their messages say: they compute what Python does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from mistakes import MISTAKES

import arrayjit

MESSAGES = re.split(r"^\[(\w+)\]\n", (Path(__file__).parent / "messages.txt").read_text(), flags=re.MULTILINE)
AS_THEY_STAND = [
    name for name, text in zip(MESSAGES[1::2], MESSAGES[2::2], strict=True) if "branches=True" in text
]
ARGUMENTS = (
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    [-2.0, 7.0, 0.0, 9.0, 1e300, 3.0],
    [5.0, 4.0, 1e-12, -4.0, 8.0, 2.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
)


def outcome(function, cells):
    """What a call gives or raises, and what its argument is then."""
    x = np.array(cells)
    try:
        return function(x), x
    except Exception as error:
        return type(error).__mro__[-3], x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", AS_THEY_STAND)
def test_a_program_that_its_message_says_to_compile_as_it_stands_is_as_in_python(name: str) -> None:
    mistake = MISTAKES[name]
    jitted = arrayjit.jit(mistake.function, branches=True, **mistake.options)
    arguments = mistake.arguments()
    assert len(arguments) == 1
    for cells in ARGUMENTS:
        got, wanted = outcome(jitted, cells), outcome(mistake.function, cells)
        np.testing.assert_equal(got, wanted)
