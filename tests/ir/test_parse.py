"""What is no program is refused with its line, and never with anything but InvalidProgram."""

from __future__ import annotations

import pytest
from corpus import COMPUTATIONS, KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

from arrayjit.errors import InvalidProgram
from arrayjit.ir.parse import parse

HEAD = "def f(x: read[f32, 8], y: write[f32, 8]):\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: one function definition"),
        ("x = 1", "line 1: one function definition"),
        (HEAD + "    y[0] = = 1", "line 2: invalid syntax"),
        ("def f(x: borrow[f32, 8]):\n    pass", "line 1: a parameter such as"),
        ("def f(x):\n    pass", "line 1: a parameter such as"),
        ("def f(x: merge(1, 0)[f32]):\n    pass", "line 1: a name or None"),
        ("def f(x: merge('y', 'z')[f32]):\n    pass", "line 1: an integer"),
        ("def f(x: merge('y')[f32]):\n    pass", "line 1: a parameter such as"),
        ("def f(x: read[f24, 8]):\n    pass", "line 1: a dtype"),
        (HEAD + "    while True:\n        pass", "line 2: a condition under which the loop is left"),
        (HEAD + "    y[0] = z[0]", "line 2: a declared tensor"),
        (HEAD + "    y[i] = x[0]", "line 2: a symbol in scope"),
        (HEAD + "    for i in parallel(0, 8):\n        y[i] = t", "line 3: a defined variable"),
        (HEAD + "    for i in parallel(0, 8):\n        y[i] = frobnicate[f32](x[i])", "line 3: an op of the"),
        (HEAD + "    for i in parallel(8):\n        y[i] = x[i]", "line 2: a lower and an upper bound"),
        (HEAD + "    for i in parallel(0, 8, step):\n        y[i] = x[i]", "line 2: an integer"),
        (HEAD + "    for i, j in each(8):\n        y[i] = x[i]", "line 2: 1 symbols"),
        (HEAD + "    for i in each(8):\n        y[i] = x[i]\n        y[i] = x[i]", "line 2: an assignment"),
        (HEAD + "    y[0] = u8(256)", "line 2: a number that u8 holds"),
        (HEAD + "    y[0] = 1.0", "line 2: an expression"),
        (HEAD + "    for i in parallel(0, 2):\n        y[i * i] = x[0]", "line 3: an integer"),
        (
            HEAD + "    t: temporary[f32, 8] = place('attic', 0, '')\n    fill(t, f32(1.0))",
            "line 2: one of stack",
        ),
        (HEAD + "    explode(x)\n    barrier()", "line 2: a statement"),
        (HEAD + "    check(x[0], 1, 2)", "line 2: a string"),
        (HEAD + "    a: f32 = x[0]\n    a = reduce(add, x, x[1])", "line 3: a defined variable"),
        (HEAD + "    a: f32 = x[0]\n    x[0] = reduce(add, x[1], a)", "line 3: the cell itself"),
        (HEAD + "    a: f32 = x[0]\n    a = reduce(add, a, x[1], fused=False)", "line 3: `fused=True`"),
        (HEAD + "    for i in vector(0, 8, width=4):\n        pass", "line 2: no other keyword"),
        (HEAD + "    y[0] = sqrt[f32](x[0], where=1)", "line 2: an expression without keywords"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        parse(text)
    assert message in str(caught.value)


def outcome(text: str) -> str:
    try:
        parse(text)
    except InvalidProgram as refused:
        return str(refused)
    return "read"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=300)
@given(st.sampled_from([*KERNELS.values(), *COMPUTATIONS.values()]), st.data())
def test_a_damaged_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 6))
    inserted = data.draw(
        st.sampled_from(["", "x", "0", "-", ", ", "()", "[0]", "i", "'s'", "f32", "reduce", "None"])
    )
    damaged = text[:at] + inserted + text[at + length :]
    verdict = outcome(damaged)
    assert verdict == "read" or verdict.startswith("line ")
