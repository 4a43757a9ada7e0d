"""The decorators do what the standard one does, but for the time that it takes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pytest

from arrayjit.frozen import frozen, frozen_by_identity, replace, slotted, slotted_by_identity

T = TypeVar("T")


@frozen
class Ours:
    """Has a bit of everything."""

    number: int
    items: tuple[int, ...] = ()
    made: list[int] = field(default_factory=list)
    place: str | None = field(default=None, compare=False)
    hidden: int = field(default=3, repr=False)

    @property
    def double(self) -> int:
        return 2 * self.number


@dataclass(frozen=True, slots=True)
class Theirs:
    """Has a bit of everything."""

    number: int
    items: tuple[int, ...] = ()
    made: list[int] = field(default_factory=list)
    place: str | None = field(default=None, compare=False)
    hidden: int = field(default=3, repr=False)

    @property
    def double(self) -> int:
        return 2 * self.number


@slotted
class Changing:
    """May change."""

    number: int
    items: list[object] = field(default_factory=list)
    place: str | None = field(default=None, compare=False)


@slotted_by_identity
class Changer:
    later: str = field(init=False)
    number: int = 0


@frozen_by_identity
class Node(Generic[T]):
    value: T

    def __post_init__(self) -> None:
        if self.value is None:
            raise ValueError("no value")


@frozen
class Shown:
    number: int

    def __repr__(self) -> str:
        return "shown"

    def __hash__(self) -> int:
        return 7


@frozen
class Empty:
    pass


KINDS = (Ours, Theirs)


def test_instances_are_made_and_shown_alike():
    texts = [
        [repr(kind(1)), repr(kind(1, (2,), place="x")), repr(kind(number=1, hidden=5)), kind(4).double]
        for kind in KINDS
    ]
    assert [str(text).replace("Ours", "Theirs") for text in texts[0]] == [str(text) for text in texts[1]]
    assert Ours(1).made is not Ours(1).made
    for kind in KINDS:
        with pytest.raises(TypeError, match="number"):
            kind()
        with pytest.raises(TypeError, match="wings"):
            kind(1, wings=2)


def test_instances_are_compared_and_hashed_alike():
    for kind in KINDS:
        one = kind(1, (2,), place="here")
        assert one == kind(1, (2,), place="there")
        assert one != kind(1, (3,))
        assert one != (1, (2,))
        assert one != kind(1, (2,), [4])
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
    assert Ours(1) != Theirs(1)
    nan = float("nan")
    assert Node(nan) != Node(nan)
    assert Ours(1, (nan,)) == Ours(1, (nan,))
    assert len({Node(1), Node(1)}) == 2
    assert hash(Empty()) == hash(())
    assert Empty() == Empty()


def test_instances_are_frozen_and_have_slots():
    for kind in KINDS:
        one = kind(1)
        with pytest.raises(dataclasses.FrozenInstanceError, match="'number'"):
            one.number = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="'number'"):
            del one.number
        assert not hasattr(one, "__dict__")


def test_instances_are_copied_replaced_matched_and_pickled_alike():
    for kind in KINDS:
        one = kind(1, (2,), [3], "here", 4)
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert (other, other.place, other.hidden) == (one, "here", 4)
        changed = dataclasses.replace(one, number=9)
        assert (changed.number, changed.place) == (9, "here")
        assert dataclasses.asdict(one) == {
            "number": 1,
            "items": (2,),
            "made": [3],
            "place": "here",
            "hidden": 4,
        }
        assert kind.__match_args__ == ("number", "items", "made", "place", "hidden")
        match one:
            case kind(number=1, items=(2,)):
                pass
            case _:
                pytest.fail("did not match")
        assert kind.__doc__ == "Has a bit of everything."


def test_what_a_class_defines_itself_stays():
    assert repr(Shown(1)) == "shown"
    assert hash(Shown(1)) == 7
    assert Shown(1) == Shown(1)
    with pytest.raises(ValueError, match="no value"):
        Node(None)


def test_what_may_change_is_a_dataclass_too():
    one, other = Changing(1), Changing(number=1, place="there")
    assert one == other
    other.items.append(2)
    other.number += 1
    assert repr(other) == "Changing(number=2, items=[2], place='there')"
    assert one != other
    assert one.items == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    for same in (copy.copy(other), copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        assert (same, same.place) == (other, "there")
    assert dataclasses.replace(other, number=7).items == [2]
    with pytest.raises(AttributeError):
        one.wings = 2
    one.items.append(one)
    assert repr(one) == "Changing(number=1, items=[...], place=None)"


def test_what_may_change_can_be_equal_only_to_itself():
    one = Changer()
    assert one != Changer()
    assert {one: 1}[one] == 1
    with pytest.raises(AttributeError):
        assert one.later
    one.number, one.later = 5, "now"
    assert repr(one) == "Changer(later='now', number=5)"


def test_replace_is_that_of_dataclasses() -> None:
    one = Ours(1, (2,), [3], "here", 4)
    for changes in ({}, {"number": 5}, {"made": [6], "place": None}, {"hidden": 0, "items": ()}):
        ours, theirs = replace(one, **changes), dataclasses.replace(one, **changes)
        assert ours is not one
        assert (ours, ours.place) == (theirs, theirs.place)
    assert replace(one).made is one.made
    with pytest.raises(TypeError, match="unexpected"):
        replace(one, missing=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="no value"):
        replace(Node(1), value=None)  # type: ignore[arg-type]
