"""Memory modes of nodes: decisions only get finer, and say who made them and where."""

from __future__ import annotations

from itertools import product

import pytest

from arrayjit.assignments import Mode, Node, program, reduce
from arrayjit.assignments.modes import common
from arrayjit.assignments.nodes import LOCAL_BYTES
from arrayjit.errors import LinkError

U, EC, V, NV = Mode.UNDECIDED, Mode.EFFECTIVELY_CONSTANT, Mode.VIRTUAL, Mode.NEVER_VIRTUAL
L, DO, OD, M = Mode.LOCAL, Mode.DEVICE_ONLY, Mode.ON_DEVICE, Mode.MATERIALIZED

MEETINGS = {
    (EC, V): V,
    (EC, NV): M,
    (EC, M): M,
    (EC, OD): OD,
    (EC, DO): OD,
    (EC, L): None,
    (V, NV): None,
    (V, L): None,
    (V, DO): None,
    (V, OD): None,
    (V, M): None,
    (NV, L): L,
    (NV, DO): DO,
    (NV, OD): OD,
    (NV, M): M,
    (DO, L): L,
    (DO, OD): OD,
    (DO, M): OD,
    (L, OD): None,
    (L, M): None,
    (OD, M): OD,
}
"""What two decisions come to, whichever is first; every mode meets itself, and undecided meets all."""


def refined(one: Mode, other: Mode) -> Mode | None:
    node = Node("n", 3)
    node.refine(one)
    try:
        node.refine(other)
    except LinkError:
        return None
    return node.mode


@pytest.mark.parametrize(("one", "other"), list(product(Mode, Mode)))
def test_TN_3_TN_5_two_decisions_meet(one: Mode, other: Mode) -> None:
    expected = MEETINGS.get((one, other), MEETINGS.get((other, one)))
    if one is other or U in (one, other):
        expected = other if one is U else one
    assert refined(one, other) is expected
    assert common(one, other) is expected


def met(*modes: Mode) -> Mode | None:
    found: Mode | None = Mode.UNDECIDED
    for mode in modes:
        found = None if found is None else common(found, mode)
    return found


def test_TN_5_the_order_of_decisions_does_not_matter() -> None:
    for one, other, last in product(Mode, repeat=3):
        assert met(one, other, last) is met(last, one, other) is met(other, last, one)


def test_TN_4_a_contradiction_names_both_decisions_and_the_lines() -> None:
    node = Node("weights", 3)
    node.refine(Mode.NEVER_VIRTUAL)
    with pytest.raises(LinkError) as caught:
        node.refine(Mode.VIRTUAL)
    message = str(caught.value)
    assert "weights is never virtual and cannot be virtual" in message
    assert message.count("test_assign_modes.py") == 3
    assert "never virtual: asked for" in message
    assert "virtual: asked for" in message


def test_TN_4_decisions_of_programs_have_reasons() -> None:
    x, s = Node("x", 3), Node("s")
    program(reduce("add", s[()], x[...]), name="total")
    assert [(step.mode, step.why) for step in x.provenance] == [
        (M, "'total' reads it and does not write it"),
        (OD, "contexts hold what is materialized"),
    ]
    assert s.provenance[0].why == "'total' writes it for others to read"
    assert {step.loc.function for step in x.provenance} == {"test_TN_4_decisions_of_programs_have_reasons"}


def test_TN_4_a_decision_that_says_nothing_new_leaves_no_trace() -> None:
    node = Node("n", 3, mode=Mode.LOCAL)
    node.refine(Mode.NEVER_VIRTUAL)
    assert [step.mode for step in node.provenance] == [L]


@pytest.mark.parametrize(
    ("mode", "cells", "settled"),
    [
        (U, 1, V),
        (EC, 1, V),
        (NV, LOCAL_BYTES // 8, L),
        (NV, LOCAL_BYTES // 8 + 1, OD),
        (DO, LOCAL_BYTES // 8, L),
        (DO, LOCAL_BYTES // 8 + 1, OD),
        (M, 1, OD),
        (V, 1, V),
        (L, LOCAL_BYTES, L),
        (OD, 1, OD),
    ],
)
def test_TN_6_what_is_left_open_is_settled(mode: Mode, cells: int, settled: Mode) -> None:
    node = Node("n", cells)
    node.refine(mode)
    assert node.settle() is settled is node.mode


def test_TN_7_questions_decide_nothing() -> None:
    node = Node("n", 3)
    assert not any(node.known(mode) for mode in Mode if mode is not U)
    assert not any(node.excludes(mode) for mode in Mode)
    node.refine(Mode.NEVER_VIRTUAL)
    assert node.known(NV)
    assert not node.known(L)
    assert node.excludes(V)
    assert not node.excludes(L)
    node.refine(Mode.DEVICE_ONLY)
    assert node.known(NV)
    assert [step.mode for step in node.provenance] == [NV, DO]
