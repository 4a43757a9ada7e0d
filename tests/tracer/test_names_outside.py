"""What a trace depends on beyond the values of names, is noticed; what Python's own modules tell of the world
outside is refused."""

from __future__ import annotations

import builtins
import contextvars
import datetime
import enum
import functools
import importlib
import io
import math
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable
from os import environ, getenv
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from likeness import TARGETS

import arrayjit

FACTOR = 2.0
SETTING = contextvars.ContextVar("SETTING", default=2.0)
UNSET = contextvars.ContextVar[float]("UNSET")


def numbers() -> np.ndarray:
    return np.linspace(1.0, 2.0, 6)


def assert_noticed(program: Callable[..., Any], change: Callable[[], Any]) -> None:
    """Two calls before the change and two behind it are as in NumPy."""
    functions = [arrayjit.jit(program, target=target) for target in TARGETS]
    for happens in (lambda: None, change):
        happens()
        for jitted in functions:
            for _ in range(2):
                assert_same(jitted(numbers()), program(numbers()))
    assert [jitted.stats().compiles for jitted in functions] == [2, 2]


def made() -> Callable[..., Any]:
    def helper(x: np.ndarray, by: float = 1.0, *, times: float = 1.0) -> np.ndarray:
        return (x + by) * times

    return helper


def other(x: np.ndarray, by: float = 1.0, *, times: float = 1.0) -> np.ndarray:
    return x - by * times


PARTS = [("__code__", other.__code__), ("__defaults__", (5.0,)), ("__kwdefaults__", {"times": 5.0})]


@pytest.mark.parametrize(("part", "value"), PARTS, ids=[part for part, _ in PARTS])
@pytest.mark.parametrize(
    "of",
    [
        lambda helper: helper,
        lambda helper: lambda x: helper(x),
        lambda helper: lambda x: {"a": (helper,)}["a"][0](x),
        lambda helper: functools.partial(helper),
        lambda helper: functools.wraps(helper)(lambda x: helper(x) * 2),
        lambda helper: type("Made", (), {"run": staticmethod(helper)})().run,
    ],
    ids=["itself", "helper", "in a table", "partial", "decorator", "method"],
)
def test_code_that_is_reloaded_into_a_function_is_noticed(of: Any, part: str, value: Any) -> None:
    helper = made()
    assert_noticed(of(helper), lambda: setattr(helper, part, value))


def test_a_keyword_default_that_changes_in_place_is_noticed() -> None:
    helper: Any = made()
    assert_noticed(lambda x: helper(x), lambda: helper.__kwdefaults__.update(times=7.0))


class Colour(enum.Enum):
    """Its methods run with the real names."""

    RED = 1

    def of(self, x: np.ndarray) -> np.ndarray:
        return x * FACTOR


class Rows(list[float]):
    """A list of the user's."""

    def of(self, x: np.ndarray) -> np.ndarray:
        return x * FACTOR + self[0]


@functools.cache
def cached(n: int) -> float:
    return n * FACTOR


@pytest.mark.parametrize(
    "program",
    [lambda x: Colour.RED.of(x), lambda x: Rows([1.0]).of(x), lambda x: x + cached(3)],
    ids=["enumeration", "list", "cache"],
)
def test_what_plain_code_looks_at_is_noticed(monkeypatch: pytest.MonkeyPatch, program: Any) -> None:
    def change() -> None:
        monkeypatch.setitem(globals(), "FACTOR", 3.0)
        cached.cache_clear()

    cached.cache_clear()
    assert_noticed(program, change)


def test_names_that_appear_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: np.ndarray) -> Any:
        try:
            return x + LATER  # type: ignore[name-defined]
        except NameError:
            return x + abs(-1.0)

    assert_noticed(program, lambda: monkeypatch.setitem(globals(), "LATER", 4.0))
    monkeypatch.delitem(globals(), "LATER")
    assert_noticed(program, lambda: monkeypatch.setitem(globals(), "abs", lambda value: value))
    monkeypatch.delitem(globals(), "abs")
    assert_noticed(program, lambda: monkeypatch.setattr(builtins, "abs", lambda value: value * 2))


def test_attributes_that_appear_are_noticed() -> None:
    class Base:
        def run(self, x: np.ndarray) -> Any:
            return x + getattr(self, "extra", 0.0)

    class Derived(Base):
        pass

    held, again = Derived(), Derived()
    assert_noticed(lambda x: held.run(x), lambda: setattr(held, "extra", 3.0))
    assert_noticed(lambda x: again.run(x), lambda: setattr(Derived, "extra", 4.0))
    assert_noticed(lambda x: again.run(x), lambda: setattr(Derived, "run", lambda self, x: x * 9))


def test_a_class_that_makes_up_attributes() -> None:
    class Table:
        def __init__(self) -> None:
            self.held = {"gain": 2.0}

        def __getattr__(self, name: str) -> float:
            return self.held[name]

    table = Table()
    assert_noticed(lambda x: x * table.gain, lambda: table.held.update(gain=3.0))
    assert_noticed(lambda x: x * table.gain, lambda: setattr(table, "gain", 4.0))


@pytest.mark.parametrize(
    ("module", "name", "program"),
    [
        (np, "sum", lambda x: x + np.sum(x)),
        (np, "pi", lambda x: x + np.pi),
        (np.linalg, "norm", lambda x: x + np.linalg.norm(x)),
        (math, "sqrt", lambda x: x + math.sqrt(4.0)),
        (functools, "reduce", lambda x: x + functools.reduce(lambda a, b: a + b, [1.0, 2.0])),
    ],
)
def test_modules_that_are_patched_are_noticed(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, program: Any
) -> None:
    value = 3.0 if name == "pi" else lambda *args: 100.0
    assert_noticed(program, lambda: monkeypatch.setattr(module, name, value))
    assert_noticed(program, monkeypatch.undo)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's."""
    (tmp_path / "own_module.py").write_text("K = 2.0\ndef scaled(x):\n    return x * K\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("own_module")
    sys.modules.pop("own_module")


def test_modules_that_are_reloaded_or_replaced_are_noticed(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def imports(x: np.ndarray) -> Any:
        import own_module  # type: ignore[import-not-found]

        return x * own_module.K

    def reload() -> None:
        Path(own.__file__).write_text("K = 10.0\ndef scaled(x):\n    return x - K\n\n")
        importlib.reload(own)

    assert_noticed(lambda x: own.scaled(x), reload)
    assert_noticed(lambda x: x + getattr(own, "NEW", 0.0), lambda: setattr(own, "NEW", 1.0))
    assert_noticed(lambda x: x + vars(own)["K"], lambda: setattr(own, "K", 11.0))
    another: Any = ModuleType("own_module")
    another.K, another.__file__ = 12.0, own.__file__
    assert_noticed(imports, lambda: monkeypatch.setitem(sys.modules, "own_module", another))
    held = [own]

    def change() -> None:
        held[0] = another

    assert_noticed(lambda x: x * held[0].K, change)


def test_what_a_module_makes_up_is_noticed(own: Any) -> None:
    own.scale, own.__getattr__ = 3.0, lambda name: {"made": 5.0}[name]
    jitted = arrayjit.jit(lambda x: x * own.made)
    for _ in range(3):
        assert_same(jitted(numbers()), numbers() * 5.0)
    assert jitted.stats().compiles == 1
    assert_noticed(lambda x: x * own.made, lambda: setattr(own, "made", 6.0))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + float(os.environ["ARRAY_TEST"]),
        lambda x: x + float(environ.get("ARRAY_TEST", "0")),
        lambda x: x + float(os.getenv("ARRAY_TEST") or 0),
        lambda x: x + float(getenv("ARRAY_TEST", "0")),
        lambda x: x + (float(os.environ["ARRAY_TEST"]) if "ARRAY_TEST" in os.environ else 7.0),
    ],
)
def test_variables_of_the_environment_are_noticed(monkeypatch: pytest.MonkeyPatch, program: Any) -> None:
    monkeypatch.setenv("ARRAY_TEST", "1")
    assert_noticed(program, lambda: monkeypatch.setenv("ARRAY_TEST", "2"))


def test_context_variables_are_noticed() -> None:
    reset = contextvars.copy_context()
    reset.run(assert_noticed, lambda x: x * SETTING.get(), lambda: SETTING.set(3.0))
    reset.run(assert_noticed, lambda x: x * UNSET.get(5.0), lambda: UNSET.set(3.0))
    with pytest.raises(LookupError):
        arrayjit.jit(lambda x: x * UNSET.get())(numbers())
    with pytest.raises(arrayjit.UnsupportedError, match="sets the context variable SETTING"):
        arrayjit.jit(lambda x: (SETTING.set(3.0), x))(numbers())


def test_keys_and_views_of_dicts_and_methods_of_containers_are_noticed() -> None:
    class Key:
        value = 1.0

    table: dict[Any, float] = {Key(): 1.0}
    items = [1.0]
    view, get, at = table.values(), table.get, items.__getitem__
    assert_noticed(lambda x: x + next(iter(table)).value, lambda: setattr(next(iter(table)), "value", 2.0))
    assert_noticed(lambda x: x + len(view), lambda: table.update(a=2.0))
    assert_noticed(lambda x: x + get("a"), lambda: table.update(a=3.0))
    assert_noticed(lambda x: x + at(0), lambda: items.__setitem__(0, 4.0))


OPEN, PATH, LINES = io.StringIO("text"), Path(__file__), io.BytesIO(b"1")
REFUSED = {
    "time": [
        lambda x: x + time.localtime().tm_sec,
        lambda x: x + time.time(),
        lambda x: x + datetime.datetime.now().second,
        lambda x: x + datetime.date.today().day,
    ],
    "contents": [
        lambda x: x + float(open(PATH).read()),  # noqa: SIM115
        lambda x: x + len(PATH.read_text()),
        lambda x: x + len(Path("a").read_bytes()),
        lambda x: x + len(OPEN.getvalue()),
        lambda x: x + len(list(LINES)),
        lambda x: x + float(sys.stdin.readline()),
    ],
    "answer": [
        lambda x: x + float(input()),
        lambda x: x + os.path.exists(PATH),
        lambda x: x + PATH.exists(),
        lambda x: x + len(os.listdir(PATH.parent)),
        lambda x: x + len(Path.cwd().parts),
        lambda x: x + len(os.getcwd()),
        lambda x: x + len(np.geterr()),
        lambda x: x + len(os.environ),
    ],
    "numbers": [
        lambda x: x + uuid.uuid4().int,
        lambda x: x + secrets.randbelow(3),
        lambda x: x + secrets.choice([1, 2]),
        lambda x: x + os.urandom(1)[0],
        lambda x: x + random.Random().random(),
        lambda x: x + np.random.RandomState().rand(6),
    ],
}


@pytest.mark.parametrize(
    ("given", "program"), [(given, program) for given, programs in REFUSED.items() for program in programs]
)
def test_what_is_told_anew_at_each_call_is_refused(
    monkeypatch: pytest.MonkeyPatch, given: str, program: Any
) -> None:
    monkeypatch.setattr(sys, "stdin", OPEN)
    with pytest.raises(arrayjit.UnsupportedError, match=f"would give the same {given} at each") as caught:
        arrayjit.jit(program)(numbers())
    assert caught.value.loc is not None
    assert (caught.value.loc.file, caught.value.loc.line) == (__file__, program.__code__.co_firstlineno)
    assert "before the call" in str(caught.value)


def test_what_asks_nothing_of_the_world_outside_runs() -> None:
    started = datetime.datetime(2020, 1, 2)

    def program(x: np.ndarray) -> Any:
        day = datetime.date(2020, 1, 3)
        assert isinstance(started, datetime.datetime)
        assert issubclass(datetime.datetime, datetime.date)
        path = os.path.join("a", "b") + os.sep
        print("traced", file=sys.stderr)
        return x + day.day + started.day + len(path) + len(PATH.suffix) + (PATH / "c" == PATH), PATH

    for target in TARGETS:
        got = arrayjit.jit(program, target=target)(numbers())
        assert_same(got[0], program(numbers())[0])
        assert got[1] is PATH
