"""The key of a call: what a compiled function depends on, and nested arguments and results."""

from __future__ import annotations

import array
import enum
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness import assert_same, trace_and_interpret

import arrayjit
from arrayjit.errors import StaticArgumentError, UnsupportedError
from arrayjit.tracer.calls.names import declared
from arrayjit.tracer.calls.signature import Declared, Spec, key_of
from arrayjit.tracer.record.tree import flatten, unflatten


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class State:
    position: Any
    name: str = "state"
    history: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checked:
    value: Any

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.value) >= 0):
            raise ValueError("negative")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def key(*args: Any, static: Declared = Declared(), **kwargs: Any) -> Any:  # noqa: B008
    return key_of(args, kwargs, static)[0]


def vector(size: int = 6, dtype: str = "f8") -> np.ndarray:
    return np.arange(size).astype(dtype)


EQUAL: dict[str, Callable[[], tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "other numbers in arrays": lambda: ((vector(),), (vector() + 1,)),
    "a contiguous view": lambda: ((vector(),), (vector(8)[1:7],)),
    "other Python scalars": lambda: ((1, 2.5, True), (7, -1.0, False)),
    "other NumPy scalars": lambda: ((np.float32(1),), (np.float32(2),)),
    "equal containers": lambda: (({"a": [vector(), 1]},), ({"a": [vector(), 2]},)),
    "equal statics": lambda: (("mode", Color.RED, None), ("mode", Color.RED, None)),
    "a description": lambda: ((vector(),), (Spec((6,), np.dtype("f8")),)),
    "equally shifted views": lambda: (
        (lambda x: (x[1:], x[:-1]))(vector()),
        (lambda x: (x[1:], x[:-1]))(vector()),
    ),
}


@pytest.mark.parametrize("calls", EQUAL.values(), ids=EQUAL)
def test_one_key(calls: Callable[[], tuple[tuple[Any, ...], tuple[Any, ...]]]) -> None:
    first, second = calls()
    assert key(*first) == key(*second)
    assert hash(key(*first)) == hash(key(*second))


def test_distinct_keys() -> None:
    x = vector()
    read_only = vector()
    read_only.flags.writeable = False
    calls: list[tuple[Any, ...]] = [
        (x,), (vector(7),), (vector(6, "f4"),), (x.reshape(2, 3),), (x.reshape(2, 3).T,), (vector(12)[::2],),
        (x[::-1],), (read_only,), (vector(6, ">f8"),), (1,), (1.0,), (True,), (np.float64(1),),
        (np.int64(1),),
        ("1",), ("2",), (None,), (), (x, x), (x, vector()), (x, x[::-1]), (x[1:], x[:-1]), (x[2:], x[:-2]),
        ([x],), ((x,),), ({"a": x},), ({"b": x},), (Pair(x, x),), ([x, [x]],), ([[x], x],), (Color.RED,),
        (Color.BLUE,), (State(x),), (State(x, "other"),), (len,), (1, 2), ((1, 2),),
    ]  # fmt: skip
    assert len({key(*call) for call in calls}) == len(calls)
    assert key(x, n=1) != key(x, m=1)


def test_static_arguments_count_by_value_and_type() -> None:
    statics = declared(lambda x, n: x, ["n"])
    keys = [key(1.0, value, static=statics) for value in (1, 2, True, 1.0, "1", (1, 2))]
    assert len(set(keys)) == len(keys)
    assert key(1.0, n=1, static=statics) == key(2.0, n=1, static=statics)
    with pytest.raises(StaticArgumentError, match="'n' is static, but a list cannot be hashed"):
        key(1.0, n=[1], static=statics)


@pytest.mark.parametrize("kept", [array.array("d", [1.0]), memoryview(bytearray(8)), bytearray(8)])
def test_memory_that_is_no_array_is_refused(kept: Any) -> None:
    with pytest.raises(StaticArgumentError, match=r"np\.asarray"):
        key(kept)


class Foreign:
    """An array of another library's: it has a hash, and numbers that nobody sees."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.ones(3)


def test_arrays_of_other_libraries_are_refused() -> None:
    with pytest.raises(StaticArgumentError, match=r"may change(.|\n)*np\.asarray"):
        key(Foreign())
    statics = declared(lambda x, n: x, ["n"])
    assert key(1.0, n=np.float64(2.0), static=statics)


def test_slices_are_arguments() -> None:
    """Their bounds are numbers like others: one compilation serves all of them."""

    def program(x: np.ndarray, part: slice) -> tuple[Any, ...]:
        x[part] *= 2
        return x[part].sum(), part

    jitted = arrayjit.jit(program)
    parts = [slice(1, 4), slice(0, 2), slice(-2, 5)]
    for part in [*parts, slice(None), slice(2, None), slice(None, None, -1), slice(1, 4, 2)]:
        mine, theirs = np.arange(5.0), np.arange(5.0)
        assert jitted(mine, part) == program(theirs, part)
        assert np.array_equal(mine, theirs)
        if part is parts[-1]:
            assert jitted.stats().compiles == 1


def test_static_names_must_be_parameters() -> None:
    with pytest.raises(StaticArgumentError, match="'m', which is no parameter"):
        declared(lambda x, n: x, ["m"])
    assert declared(lambda x, **rest: x, ["m"]).static.names == {"m"}


def test_static_arguments_are_numbers_in_the_function() -> None:
    def program(x: np.ndarray, n: int, *, flag: bool = False) -> np.ndarray:
        for _ in range(n):
            x = x * 2 if flag else x + 1
        return x

    assert_same(trace_and_interpret(program, vector(), 3, static=("n",)), vector() + 3)
    got = trace_and_interpret(program, vector(), 3, flag=True, static=("n", "flag"))
    assert_same(got, vector() * 8)


NESTED = [
    lambda x: (x, [x, {"a": x}]),
    lambda x: Pair(x, Pair(x, None)),
    lambda x: State(x, "name", [x]),
    lambda x: OrderedDict(b=x, a=1),
    lambda x: Checked(x),
    lambda x: ((), [], {}, None, "text", Color.RED, len),
    lambda x: [1, 2.0, True, np.float32(3)],
]


@pytest.mark.parametrize("make", NESTED)
def test_nested_values_pass_in_and_out(make: Callable[[Any], Any]) -> None:
    """What goes in comes out: the same arrays in a new container of the same type."""
    x = vector()
    got = trace_and_interpret(lambda value: value, make(x))
    leaves, structure = flatten(got, lambda part: isinstance(part, (np.ndarray, np.generic, int, float)))
    given, expected = flatten(make(x), lambda part: isinstance(part, (np.ndarray, np.generic, int, float)))
    assert structure == expected
    assert all(left is right for left, right in zip(leaves, given, strict=True) if left is x)
    assert_same(got, make(x))


@pytest.mark.parametrize("make", [make for make in NESTED if make(0) != Checked(0)])
def test_nested_values_are_made_by_the_function(make: Callable[[Any], Any]) -> None:
    assert_same(
        trace_and_interpret(lambda x: flatten_and_back(make(x + 1)), vector()),
        flatten_and_back(make(vector() + 1)),
    )


def flatten_and_back(value: Any) -> Any:
    leaves, structure = flatten(value, lambda part: not isinstance(part, (tuple, list, dict, State, Checked)))
    return unflatten(structure, leaves)


def test_attributes_of_dataclasses_are_traced() -> None:
    def program(state: State) -> State:
        state.position += 1
        return State(state.position * 2, state.name + "!")

    x = vector()
    assert_same(trace_and_interpret(program, State(x)), State((vector() + 1) * 2, "state!"))
    assert_same(x, vector() + 1)


def test_variadic_and_keyword_arguments() -> None:
    def program(first: Any, *rest: Any, scale: Any, **others: Any) -> Any:
        return first + sum(rest) * scale, {name: value + 1 for name, value in others.items()}

    args, kwargs = (vector(), vector(), 2), {"scale": 3.0, "a": vector(), "b": 1}
    assert_same(trace_and_interpret(program, *args, **kwargs), program(*args, **kwargs))


@pytest.mark.parametrize(
    "change",
    [
        lambda box: box["list"].append(1),
        lambda box: box.update(new=box["x"] + 1),
        lambda box: box.update(x=box["x"] * 2),
        lambda box: box["list"].clear(),
    ],
)
def test_containers_of_the_caller_may_not_be_changed(change: Callable[[dict[str, Any]], Any]) -> None:
    box = {"x": vector(), "list": [vector()]}
    with pytest.raises(UnsupportedError, match="changes a list, dict or object"):
        trace_and_interpret(change, box)
    assert list(box) == ["x", "list"]
    assert len(box["list"]) == 1
