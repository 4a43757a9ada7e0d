"""Arrays that a jitted function finds in globals, closures, defaults, containers and classes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from likeness import TARGETS, assert_runs_as_in_numpy

import arrayjit

TABLE = np.arange(6.0)
TABLES = [np.arange(6.0), np.ones(6)]
PARAMS = {"w": np.arange(6.0), "b": [np.ones(6), 2.0], "name": np.array(["u", "v"])}
SCALE, STEPS, ON = 2.5, 3, True
COUNT = 0
MODE = "once"


class Constants:
    table = np.arange(6.0)
    limits = (np.zeros(6), np.full(6, 3.0))


def numbers() -> np.ndarray:
    return np.linspace(1.0, 2.0, 6)


def test_arrays_wherever_they_are() -> None:
    local = np.arange(6.0) * 2

    def program(x: np.ndarray, table: np.ndarray = TABLE, *, more: Any = TABLES) -> Any:
        low, high = Constants.limits
        clipped = np.clip(x * TABLE, low, high) + Constants.table
        inner = [TABLES[i][i] for i in range(2)]
        for row in TABLES:
            clipped += row
        return clipped + local + table + more[1] + PARAMS["w"] + PARAMS["b"][0] * PARAMS["b"][1], inner

    assert_runs_as_in_numpy(lambda: (program, (numbers(),)))


def writing() -> tuple[Callable[..., Any], dict[str, Any]]:
    held = {
        "array": np.arange(6.0),
        "list": [np.arange(6.0), np.arange(6.0)],
        "dict": {"inner": [np.arange(6.0)]},
        "zero": np.array(1.0),
        "strided": np.arange(12.0)[::2],
        "transposed": np.arange(6.0).reshape(2, 3).T,
    }
    array, table = held["array"], held["strided"]

    def program(x: np.ndarray, zero: np.ndarray = held["zero"]) -> Any:
        array[1:] += x[1:]
        held["list"][1] *= x
        for i in range(5):
            held["dict"]["inner"][0][i] = held["dict"]["inner"][0][i + 1] + x[i]
        zero[...] = x[0] + zero
        table[:] = x
        held["transposed"][1, 0] = x[2]
        return array, held["list"][0] + zero

    return program, held


def test_arrays_are_written_in_place() -> None:
    for target in TARGETS:
        (plain, theirs), (program, ours) = writing(), writing()
        jitted = arrayjit.jit(program, target=target)
        assert_same((jitted(numbers()), jitted(numbers())), (plain(numbers()), plain(numbers())))
        assert_same(ours, theirs)


def test_elements_of_a_memory_map(tmp_path: Path) -> None:
    memory = np.memmap(tmp_path / "memory", np.float64, "w+", shape=(6,))
    memory[:] = np.arange(6.0)

    def program(x: np.ndarray) -> Any:
        memory[0] = x[0]
        return memory * x

    for target in TARGETS:
        got = arrayjit.jit(program, target=target)(numbers())
        assert_same(np.asarray(got), np.asarray(memory) * numbers())
        assert memory[0] == 1.0
        memory[0] = 0


def resized(array: np.ndarray) -> None:
    array.resize((8,), refcheck=False)


def reshaped(array: np.ndarray) -> None:
    array.shape = (2, 3)


def retyped(array: np.ndarray) -> None:
    array.dtype = np.int64


def rewritten(array: np.ndarray) -> None:
    array[:] = np.arange(6.0)[::-1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", [resized, reshaped, retyped, rewritten])
@pytest.mark.parametrize("place", ["name", "list", "class"])
def test_a_changed_array_is_noticed(change: Callable[[np.ndarray], None], place: str) -> None:
    array = np.arange(6.0)

    class Holder:
        table = array

    held = [array]
    programs = {
        "name": lambda x: array + x,
        "list": lambda x: held[0] + x,
        "class": lambda x: Holder.table + x,
    }
    program = programs[place]
    for target in TARGETS:
        array = np.arange(6.0)
        Holder.table = held[0] = array
        jitted = arrayjit.jit(program, target=target)
        assert_same(jitted(np.ones(1)), program(np.ones(1)))
        change(array)
        assert_same(jitted(np.ones(1)), program(np.ones(1)))


def test_rebound_arrays_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: np.ndarray) -> Any:
        return TABLE * x + PARAMS["w"] + TABLES[0] + Constants.table

    jitted = arrayjit.jit(program)
    assert_same(jitted(numbers()), program(numbers()))
    monkeypatch.setitem(globals(), "TABLE", np.ones(6, np.float32))
    assert_same(jitted(numbers()), program(numbers()))
    monkeypatch.setitem(PARAMS, "w", np.ones(1))
    assert_same(jitted(numbers()), program(numbers()))
    monkeypatch.setattr(sys.modules[__name__], "TABLES", [np.ones((2, 1))])
    assert_same(jitted(numbers()), program(numbers()))
    TABLES[0] = np.ones((3, 1))
    assert_same(jitted(numbers()), program(numbers()))
    monkeypatch.setattr(Constants, "table", np.arange(6))
    assert_same(jitted(numbers()), program(numbers()))


def test_an_array_that_becomes_read_only_is_not_written() -> None:
    array = np.arange(6.0)

    def program(x: np.ndarray) -> None:
        array[0] = x[0]

    for target in TARGETS:
        jitted = arrayjit.jit(program, target=target)
        jitted(numbers())
        array.flags.writeable = False
        with pytest.raises(ValueError, match="read-only") as caught:
            jitted(numbers())
        assert isinstance(caught.value, arrayjit.UserError)
        assert caught.value.loc is not None
        assert caught.value.loc.source() == "array[0] = x[0]"
        array.flags.writeable = True


def test_items_that_are_not_used_do_not_matter() -> None:
    u = np.arange(6.0)
    fields = {"u": u, "names": np.array(["u"]), "when": np.ones(6, "M8[s]"), "v": np.ones(6)}

    def program(u: np.ndarray) -> Any:
        u += fields["v"]
        return u

    assert_same(arrayjit.jit(program)(u), np.arange(6.0) + 1)
    assert_same(u, np.arange(6.0) + 1)
    for used in (lambda x: x + fields["when"], lambda x: fields["when"].max() + x):
        with pytest.raises(arrayjit.DTypeError):
            arrayjit.jit(used)(u)


def test_numbers_are_compiled_in_and_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: np.ndarray) -> Any:
        for i in range(STEPS):
            x = x * SCALE + i
        return x if ON else -x

    jitted = arrayjit.jit(program)
    assert_same(jitted(numbers()), program(numbers()))
    for name, value in (("STEPS", 7), ("SCALE", -0.0), ("ON", False)):
        monkeypatch.setitem(globals(), name, value)
        assert_same(jitted(numbers()), program(numbers()))


def test_an_assigned_global_is_refused() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        global COUNT
        COUNT += 1
        return x

    for target in TARGETS:
        with pytest.raises(arrayjit.UnsupportedError, match="assigns COUNT"):
            arrayjit.jit(program, target=target)(numbers())
    assert COUNT == 0


def test_a_global_may_be_assigned_for_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: np.ndarray) -> np.ndarray:
        global COUNT, MODE
        before, MODE, COUNT = MODE, "twice", COUNT + 1
        try:
            return x * COUNT if MODE == "twice" else x
        finally:
            MODE, COUNT = "".join(before), COUNT - 1

    jitted = arrayjit.jit(program)
    for mode, count in (("once", 0), ("once", 4), ("more", 4)):
        monkeypatch.setitem(globals(), "MODE", mode)
        monkeypatch.setitem(globals(), "COUNT", count)
        assert_same(jitted(numbers()), program(numbers()))
        assert (mode, count) == (MODE, COUNT)


@pytest.mark.parametrize("change", ["append", "item", "update"])
def test_a_changed_global_container_is_refused(change: str) -> None:
    changes: dict[str, Callable[[np.ndarray], Any]] = {
        "append": lambda x: TABLES.append(x),
        "item": lambda x: TABLES.__setitem__(0, x),
        "update": lambda x: PARAMS.update(w=x),
    }
    before = list(TABLES), dict(PARAMS)
    with pytest.raises(arrayjit.UnsupportedError, match=r"changes a (list|dict), which it did not make"):
        arrayjit.jit(changes[change])(numbers())
    assert [*map(id, TABLES), *map(id, PARAMS.values())] == [
        *map(id, before[0]),
        *map(id, before[1].values()),
    ]
