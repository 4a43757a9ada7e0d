"""The view of names: what a traced function sees of globals, closures, modules and NumPy."""

from __future__ import annotations

import functools
import itertools
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from random import random as drawn
from time import perf_counter
from types import MethodType, ModuleType
from typing import Any

import numpy as np
import numpy.linalg as la
import pytest
from harness import assert_like_numpy, assert_same, trace_and_interpret
from numpy import hanning
from numpy import sin as sine

from arrayjit.errors import ReadOnlyError, UnsupportedError
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.record.guards import guards_hold
from arrayjit.tracer.record.registry import CREATION

TABLE = np.arange(4.0)
SCALE = 3.0
COUNT = 0
GENERATOR = np.random.default_rng(0)
PYTHON_GENERATOR = random.Random(0)
COUNTING = itertools.count()
ROW = iter([1.0, 2.0])
GENERATED = (float(i) for i in range(9))
USER_MODULE = """
import numpy as np
factor = 2.0
def window(x):
    w = np.hanning(4)
    w[0] = x[0]
    return w * factor
"""


def numbers() -> np.ndarray:
    return np.arange(4.0)


def scaled(x: np.ndarray) -> np.ndarray:
    return x * TABLE + SCALE


def filled(n: int) -> np.ndarray:
    window = hanning(n)
    window[0] = SCALE
    return window


@pytest.fixture
def user_module() -> Iterator[ModuleType]:
    module = ModuleType("user_module")
    module.__file__ = "user_module.py"
    exec(compile(USER_MODULE, module.__file__, "exec"), vars(module))
    sys.modules["user_module"] = module
    yield module
    del sys.modules["user_module"]


def test_helpers_are_traced_with_their_own_globals() -> None:
    assert_like_numpy(lambda x: scaled(x) + filled(4), lambda: (numbers(),))


def test_arrays_that_numpy_makes_are_symbolic() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        window = hanning(4)
        window[1:3] += x[1:3]
        return window * np.bartlett(4)

    assert_like_numpy(program, lambda: (numbers(),))


def test_creation_functions_come_from_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CREATION, np.zeros, lambda *args: "ours")
    monkeypatch.setitem(CREATION, np.ndarray, lambda *args: "made by ndarray")

    def program() -> Any:
        from numpy import zeros

        kinds = isinstance(TABLE, np.ndarray), isinstance(3, np.ndarray)
        return np.zeros(3), zeros(3), np.ndarray((2,)), *kinds

    assert trace_and_interpret(program) == ("ours", "ours", "made by ndarray", True, False)
    assert type(np.zeros(3)) is np.ndarray


def test_imports_inside_the_function(user_module: ModuleType) -> None:
    def program(x: np.ndarray) -> Any:
        import numpy
        from user_module import window

        return window(x) + numpy.hanning(4) + numpy.linalg.norm([3.0, 4.0]) + math.pi + la.norm([1.0])

    x = numbers()
    assert_same(trace_and_interpret(program, x), program(x))


def test_modules_of_the_user(user_module: ModuleType) -> None:
    x = numbers()
    assert_same(trace_and_interpret(lambda x: user_module.window(x), x), user_module.window(x))


def test_global_arrays_are_read_when_the_function_runs() -> None:
    table = numbers()

    def program(x: np.ndarray) -> Any:
        return x + table, table[1] + 1

    traced = trace_function(program, (numbers(),), {})
    names = [source.array for source in traced.sources if hasattr(source, "array")]
    assert any(array is table for array in names)


def test_global_arrays_are_written_in_place() -> None:
    memory = np.zeros(4)

    def program(x: np.ndarray) -> None:
        memory[1:] += x[1:]

    trace_and_interpret(program, numbers())
    assert_same(memory, np.array([0.0, 1, 2, 3]))


def test_closures_may_refer_to_themselves() -> None:
    offset = numbers()

    def repeated(x: np.ndarray, depth: int) -> np.ndarray:
        return x if depth == 0 else repeated(x + offset, depth - 1) * 2

    assert_like_numpy(lambda x: repeated(x, 3), lambda: (numbers(),))


def test_defaults_of_the_function_are_constants() -> None:
    def program(x: np.ndarray, n: int = 2, table: np.ndarray = TABLE, *, k: int = 3) -> Any:
        return [x + i for i in range(n)], table[:k]

    got = trace_and_interpret(program, numbers())
    assert_same(got, program(numbers()))


def test_assigned_globals_and_outer_variables_are_refused_and_put_back() -> None:
    seen = 0

    def counts(x: np.ndarray) -> np.ndarray:
        global COUNT
        COUNT += 1
        return x * COUNT

    def sees(x: np.ndarray) -> np.ndarray:
        nonlocal seen
        seen += 2
        return x + seen

    def fills(x: np.ndarray) -> np.ndarray:
        nonlocal empty
        empty = x
        return x

    for program, name in ((counts, "COUNT"), (sees, "seen"), (fills, "empty")):
        with pytest.raises(UnsupportedError, match=f"assigns {name}"):
            trace_and_interpret(program, numbers())
    assert (COUNT, seen) == (0, 0)
    assert "empty" not in locals()
    empty = None


def test_variables_of_functions_made_inside_are_assigned() -> None:
    def program(x: np.ndarray) -> np.ndarray:
        total = x

        def add(value: np.ndarray) -> None:
            nonlocal total
            total = total + value

        add(x * 2)
        add(x * 3)
        return total

    assert_same(trace_and_interpret(program, numbers()), numbers() * 6)


class Model:
    shift = numbers()

    def __init__(self) -> None:
        self.weights = numbers() * 2

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * self.weights + self.shift

    def method(self, x: np.ndarray, n: int = 2) -> np.ndarray:
        return self(x) * n

    @staticmethod
    def static(x: np.ndarray) -> np.ndarray:
        return sine(x) + TABLE

    @classmethod
    def of_class(cls, x: np.ndarray) -> np.ndarray:
        return x + cls.shift


MODEL = Model()


@pytest.mark.parametrize(
    "function",
    [
        MODEL,
        MODEL.method,
        Model.static,
        Model.of_class,
        functools.partial(MODEL.method, n=5),
        functools.partial(lambda y, x: y * x, TABLE),
        lambda x: functools.reduce(np.add, [x, x, x]),
        np.sin,
        lambda x: sum([x, x + 1]),
        lambda x: list(map(lambda part: part * 2, [x, TABLE])),
    ],
)
def test_any_callable(function: Callable[..., Any]) -> None:
    assert_same(trace_and_interpret(function, numbers()), function(numbers()))


def test_functions_passed_as_arguments() -> None:
    def program(update: Callable[..., Any], x: np.ndarray) -> Any:
        return update(x)

    assert_same(trace_and_interpret(program, lambda x: filled(4) * x, numbers()), filled(4) * numbers())


def test_read_only_global_arrays_are_not_written() -> None:
    constant = numbers()
    constant.flags.writeable = False

    def program(x: np.ndarray) -> None:
        constant[0] = x[0]

    with pytest.raises(ReadOnlyError):
        trace_and_interpret(program, numbers())


def test_guards_hold_until_a_name_is_rebound(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 2.0

    def program(x: np.ndarray) -> np.ndarray:
        return scaled(x) * factor

    traced = trace_function(program, (numbers(),), {})
    assert guards_hold(traced.guards)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "SCALE", 4.0)
        assert not guards_hold(traced.guards)
    assert guards_hold(traced.guards)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "scaled", numbers)
        assert not guards_hold(traced.guards)
    factor = 3.0
    assert not guards_hold(traced.guards)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.rand(4),
        lambda: np.random.default_rng(),
        lambda: GENERATOR.normal(size=4),
        lambda: random.random(),
        lambda: PYTHON_GENERATOR.gauss(0, 1),
        lambda: drawn(),
        lambda: PYTHON_GENERATOR.random(),
    ],
)
def test_random_numbers_are_refused(draw: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedError, match="same numbers at each call"):
        trace_and_interpret(lambda x: x + draw(), numbers())


@pytest.mark.parametrize(
    ("ask", "given"),
    [
        (lambda: time.time(), "time"),
        (lambda: perf_counter(), "time"),
        (lambda: next(COUNTING), "items"),
        (lambda: sum(ROW), "items"),
        (lambda: next(GENERATED), "items"),
    ],
)
def test_clocks_and_iterators_from_outside_are_refused(ask: Callable[[], Any], given: str) -> None:
    with pytest.raises(UnsupportedError, match=f"same {given} at each call"):
        trace_and_interpret(lambda x: x + ask(), numbers())


def test_iterators_made_inside_are_gone_through() -> None:
    def program(x: np.ndarray) -> Any:
        counting, row = itertools.count(3), iter([1.0, 2.0])
        return x * next(counting) + next(counting) + next(row), sum(row)

    assert_like_numpy(program, lambda: (numbers(),))


class Box:
    def __init__(self, held: Any) -> None:
        self.held = held


@pytest.mark.parametrize("wrap", [iter, lambda x: {"rows": iter(x)}, lambda x: (v for v in x)])
def test_results_that_hide_traced_values_are_refused(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="holds traced values"):
        trace_and_interpret(wrap, numbers())


def test_an_object_that_the_function_changes_is_put_back() -> None:
    kept: list[Any] = [1]

    def program(x: np.ndarray) -> np.ndarray:
        kept.append(x + 1)
        return x

    with pytest.raises(UnsupportedError, match="changes a list, which it did not make"):
        trace_and_interpret(program, numbers())
    assert kept == [1]


def test_an_object_inside_an_object_is_put_back() -> None:
    outer = Box([Box(1), {"a": 2}])

    def program(x: np.ndarray) -> np.ndarray:
        outer.held[0].held = x
        outer.held[1]["a"] = x
        outer.held.append(x)
        return x

    def rebind(box: Box, x: np.ndarray) -> np.ndarray:
        box.held = x
        return x

    for change in (program, MethodType(rebind, outer)):
        with pytest.raises(UnsupportedError, match="changes a Box"):
            trace_and_interpret(change, numbers())
    assert len(outer.held) == 2
    assert outer.held[0].held == 1
    assert outer.held[1] == {"a": 2}


def test_an_array_that_plain_code_changes_while_tracing_is_refused() -> None:
    class NotViewed(type):
        """Classes of other metaclasses are left as they are."""

    class Buffer(metaclass=NotViewed):
        def __init__(self) -> None:
            self.memory = numbers()

        def add_to(self, x: np.ndarray) -> np.ndarray:
            total = x + self.memory
            self.memory[0] += 1
            return total

    with pytest.raises(UnsupportedError, match="changed by plain code"):
        trace_and_interpret(Buffer().add_to, numbers())


def test_an_array_met_twice_may_only_be_read() -> None:
    shared = numbers()
    assert_same(trace_and_interpret(lambda x: x + shared, shared), shared * 2)

    def program(x: np.ndarray) -> None:
        x += shared

    with pytest.raises(UnsupportedError, match="meets twice"):
        trace_and_interpret(program, shared)
    with pytest.raises(UnsupportedError, match="meets twice"):
        trace_and_interpret(program, shared[::-1])


def test_numpy_itself_is_never_changed() -> None:
    before = dict(vars(np))
    trace_and_interpret(lambda x: np.hanning(4) + x, numbers())
    assert {name: value for name, value in vars(np).items() if name in before} == before
