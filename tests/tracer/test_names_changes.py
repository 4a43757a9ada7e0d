"""What a jitted function does to objects, and what is done to objects that it reads."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import threading
import weakref
from array import array
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness import assert_same
from likeness import TARGETS, assert_runs_as_in_numpy
from numpy.polynomial import Chebyshev, Polynomial

import arrayjit


def numbers() -> np.ndarray:
    return np.linspace(1.0, 2.0, 6)


class Model:
    count = 0
    registry: list[Any] = []  # noqa: RUF012
    table = np.arange(6.0)

    def __init__(self) -> None:
        self.w = numbers()
        self.parts = {"a": [numbers(), numbers() * 2]}
        self.gain = 2.0
        self.child: Any = None

    def update(self, x: np.ndarray) -> None:
        self.w -= 0.5 * x
        self.w[0] = x[1]
        self.parts["a"][1][1:] += x[1:]
        for part in self.parts["a"]:
            part *= 2

    def scaled(self, x: np.ndarray) -> np.ndarray:
        return x * self.gain + self.w + self.table

    def rebinds(self, x: np.ndarray) -> np.ndarray:
        self.w = x + 1
        return self.w

    def counts(self, x: np.ndarray) -> np.ndarray:
        type(self).count += 1
        return x

    def appends(self, x: np.ndarray) -> np.ndarray:
        self.parts["a"].append(x)
        return x

    def registers(self, x: np.ndarray) -> np.ndarray:
        self.registry.append(x)
        return x

    def deletes(self, x: np.ndarray) -> np.ndarray:
        del self.gain
        return x

    def fills(self, x: np.ndarray) -> np.ndarray:
        vars(self)["extra"] = x
        return x

    @functools.cached_property
    def norm(self) -> Any:
        return np.sqrt((self.w**2).sum()) + np.zeros(1)

    def steps(self, x: np.ndarray) -> np.ndarray:
        for i in range(2000):
            self.gain = self.gain + x[i % 6]
        return x


def test_arrays_that_objects_hold_are_written_in_place() -> None:
    def make() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Model().update, (numbers(),)

    assert_runs_as_in_numpy(make, lambda method: (method.__self__.w, method.__self__.parts))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("rebinds", "changes a Model"),
        ("counts", "changes the class Model"),
        ("appends", "changes a list"),
        ("registers", "changes a list"),
        ("deletes", "changes a Model"),
        ("fills", "changes a Model"),
        ("steps", "changes a Model"),
    ],
)
def test_changes_of_outside_objects_are_refused_and_not_made(method: str, words: str) -> None:
    model = Model()
    before = dict(vars(model)), list(model.parts["a"])
    for target in TARGETS:
        with pytest.raises(arrayjit.UnsupportedError, match=words) as caught:
            arrayjit.jit(getattr(model, method), target=target)(numbers())
        code = getattr(Model, method).__code__
        lines = {code.co_firstlineno, *(line for _, _, line in code.co_lines())}
        assert caught.value.loc is not None
        assert caught.value.loc.file == code.co_filename
        assert caught.value.loc.line in lines
        assert "arrays may be written in place" in str(caught.value)
    assert all(now is old for now, old in zip(vars(model).values(), before[0].values(), strict=True))
    assert all(now is old for now, old in zip(model.parts["a"], before[1], strict=True))
    assert (Model.count, Model.registry, list(vars(model))) == (0, [], list(before[0]))


def test_the_line_of_an_assignment_is_named() -> None:
    with pytest.raises(arrayjit.UnsupportedError) as caught:
        arrayjit.jit(Model().rebinds)(numbers())
    assert caught.value.loc is not None
    assert caught.value.loc.source() == "self.w = x + 1"


def test_a_warning_while_tracing_is_no_assignment() -> None:
    def wrapped(x: np.ndarray) -> Any:
        return (
            x + np.array([2**31, 2**31 + 1], np.uint32).sum(dtype=np.uint32) + np.uint32(2**31) * np.uint32(2)
        )

    x = np.arange(3, dtype=np.uint32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        wanted = wrapped(x)
    with pytest.warns(RuntimeWarning, match="overflow"):
        got = arrayjit.jit(wrapped)(x)
    np.testing.assert_array_equal(got, wanted, strict=True)


def test_an_attribute_may_be_assigned_what_it_holds() -> None:
    def program(model: Any) -> Callable[..., Any]:
        def run(x: np.ndarray) -> Any:
            model.gain = 2.0
            model.w = model.w
            model.child, child = None, model.child
            return x * model.gain, child

        return run

    assert_runs_as_in_numpy(lambda: (program(Model()), (numbers(),)))


def test_objects_made_inside_are_changed_freely() -> None:
    def program(x: np.ndarray) -> Any:
        model = Model()
        model.w = x
        model.parts["a"].append(x * 2)
        model.update(x)
        model.child = Model()
        model.child.w = model.w + 1
        del model.gain
        return model.w, model.parts, model.child.w

    assert_runs_as_in_numpy(lambda: (program, (numbers(),)))


@dataclasses.dataclass
class State:
    x: Any
    n: int
    inner: Any = None


def test_objects_made_inside_are_returned() -> None:
    def program(x: np.ndarray) -> Any:
        model = Model()
        model.rebinds(x)
        return model, State(x * 2, 3, [model]), SimpleNamespace

    jitted = arrayjit.jit(program)
    model, state, kind = jitted(numbers())
    other, _, _ = jitted(numbers() + 1)
    assert type(model) is Model
    assert type(state) is State
    assert kind is SimpleNamespace
    assert vars(model).keys() == vars(Model()).keys()
    assert_same((model.w, state.x, state.n, other.w), (numbers() + 1, numbers() * 2, 3, numbers() + 2))
    assert type(state.inner[0]) is Model
    assert model is not other
    assert_same(model.scaled(numbers()), numbers() * 2 + numbers() + 1 + np.arange(6.0))


def test_outside_objects_are_returned_themselves() -> None:
    model = Model()
    config = {"model": model, "w": model.w}

    def program(x: np.ndarray) -> Any:
        return x + 1, model, [model], config, Model, np.zeros

    for target in TARGETS:
        got = arrayjit.jit(program, target=target)(numbers())
        assert got[1] is model
        assert got[2][0] is model
        assert got[3] is config
        assert got[4] is Model
        assert got[5] is np.zeros


class Row(list[float]):
    """A list of the user's."""


CHANGING = [deque([1]), {1, 2}, defaultdict(list), array("d", [1.0]), bytearray(b"a"), Row([1.0]), iter([1])]


@pytest.mark.parametrize("kept", CHANGING, ids=lambda kept: type(kept).__name__)
def test_outside_containers_are_returned_themselves(kept: Any) -> None:
    for target in TARGETS:
        jitted = arrayjit.jit(lambda x: (x + 1, kept), target=target)
        assert jitted(numbers())[1] is jitted(numbers())[1] is kept


async def awaited(x: np.ndarray) -> int:
    return 1


@pytest.mark.filterwarnings("ignore:coroutine 'awaited' was never awaited")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: deque([1]),
        lambda x: [{1, 2}],
        lambda x: defaultdict(list, a=[1]),
        lambda x: bytearray(3),
        lambda x: Row([1.0]),
        lambda x: SimpleNamespace(n=1),
        lambda x: zip([1], [2], strict=True),
        lambda x: (x, map(str, [1, 2])),
        lambda x: awaited(x),
    ],
)
def test_what_each_call_would_have_to_make_anew_is_not_returned(program: Callable[..., Any]) -> None:
    with pytest.raises(arrayjit.UnsupportedError, match="the same one after each call") as caught:
        arrayjit.jit(program)(numbers())
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


@pytest.mark.parametrize("packed", [array("d", [1.0, 2.0]), bytearray(b"ab")])
def test_packed_numbers_that_change_are_noticed(packed: Any) -> None:
    jitted = arrayjit.jit(lambda x: x + packed[0])
    for _ in range(3):
        assert_same(jitted(numbers()), numbers() + packed[0])
    packed[0] = 9
    assert_same(jitted(numbers()), numbers() + 9)


@pytest.mark.parametrize(
    "held",
    [(ctypes.c_double * 2)(1, 2), memoryview(bytearray(b"ab")), memoryview(np.ones(2))],
    ids=["ctypes", "bytes", "floats"],
)
def test_buffers_that_change_are_noticed(held: Any) -> None:
    test_packed_numbers_that_change_are_noticed(held)


@pytest.mark.parametrize("made", [np.poly1d, Polynomial, Chebyshev], ids=lambda made: made.__name__)
def test_polynomials_that_change_are_noticed(made: Any) -> None:
    held = made([1.0, 2.0])
    jitted = arrayjit.jit(lambda x: x * held(2.0) + held.coef[0])
    for change in (lambda: None, lambda: held.coef.__setitem__(0, 9.0), lambda: None):
        change()
        assert_same(jitted(numbers()), numbers() * held(2.0) + held.coef[0])
    assert jitted.stats().compiles == 2
    if made is not np.poly1d:
        held.coef = np.array([5.0, 6.0])
        assert_same(jitted(numbers()), numbers() * held(2.0) + held.coef[0])


def test_what_weak_references_lead_to_is_noticed() -> None:
    model = Model()
    reference, by_name = weakref.ref(model), weakref.WeakValueDictionary(model=model)

    def program(x: np.ndarray) -> Any:
        return x * reference().gain + by_name["model"].gain  # type: ignore[union-attr]

    jitted = arrayjit.jit(program)
    for gain in (2.0, 3.0, 3.0):
        model.gain = gain
        assert_same(jitted(numbers()), program(numbers()))
    assert jitted.stats().compiles == 2


def test_files_are_read_before_the_call(tmp_path: Path) -> None:
    np.save(tmp_path / "kept.npy", numbers())
    with pytest.raises(arrayjit.UnsupportedError, match=r"np\.load in a jitted .* would give the same"):
        arrayjit.jit(lambda x: x + np.load(tmp_path / "kept.npy"))(numbers())


class Tagged(np.ndarray):
    """An array of a class of its own."""


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(
    "held",
    [
        lambda: np.ma.array(numbers()),
        lambda: np.matrix(numbers()),
        lambda: numbers().view(Tagged),
        lambda: np.zeros(2, [("a", "f8")]).view(np.recarray),
        lambda: np.zeros(2, [("a", "f8")])[0],
    ],
    ids=["masked", "matrix", "subclass", "records", "record"],
)
def test_arrays_of_other_classes_are_refused_where_they_are_met(held: Callable[[], Any]) -> None:
    value = held()
    with pytest.raises(arrayjit.UnsupportedError, match="is not supported"):
        arrayjit.jit(lambda x: x + (value["a"] if value.dtype.names else value.sum()))(numbers())
    beside = [value, 2.0]
    assert_same(arrayjit.jit(lambda x: x * beside[1])(numbers()), numbers() * 2.0)


def test_an_object_that_holds_itself_is_not_returned() -> None:
    def program(x: np.ndarray) -> Any:
        model = Model()
        model.child = [model]
        return model

    with pytest.raises(arrayjit.UnsupportedError, match="holds itself"):
        arrayjit.jit(program)(numbers())


def test_a_cached_property_is_cached_before_the_call() -> None:
    model = Model()

    def program(x: np.ndarray) -> Any:
        return x * model.norm

    with pytest.raises(arrayjit.UnsupportedError, match="caches norm in a Model") as caught:
        arrayjit.jit(program)(numbers())
    assert "read .norm once before the call" in str(caught.value)
    assert caught.value.loc is not None
    assert caught.value.loc.source() == "return x * model.norm"
    assert "norm" not in vars(model)
    assert model.norm.shape == (1,)
    model.w[:] = 0
    for target in TARGETS:
        assert_same(arrayjit.jit(program, target=target)(numbers()), program(numbers()))
    assert_same(arrayjit.jit(lambda x: Model().norm + x)(numbers()), Model().norm + numbers())


def test_exceptions_of_the_user_keep_their_class() -> None:
    class WrongShape(ValueError):
        def __init__(self, shape: Any) -> None:
            super().__init__(f"shape {shape}")

    def program(x: np.ndarray) -> np.ndarray:
        if x.ndim != 2:
            raise WrongShape(x.shape)
        return x

    with pytest.raises(WrongShape, match=r"shape \(6,\)"):
        arrayjit.jit(program)(numbers())


def changed_gain(model: Model) -> None:
    model.gain = 5.0


def changed_array(model: Model) -> None:
    model.w = numbers() * 3


def changed_elements(model: Model) -> None:
    model.w[:] = 7


def changed_list(model: Model) -> None:
    model.parts["a"][0] = numbers() * 4


def changed_dict(model: Model) -> None:
    model.parts = {"a": [numbers() * 5, numbers()]}


def changed_child(model: Model) -> None:
    model.child = 2.0


@pytest.mark.parametrize(
    "change",
    [changed_gain, changed_array, changed_elements, changed_list, changed_dict, changed_child],
)
def test_what_is_done_to_an_object_is_noticed(change: Callable[[Model], None]) -> None:
    model = Model()

    def program(x: np.ndarray) -> Any:
        return model.scaled(x) + model.parts["a"][0] + (model.child or 0)

    for target in TARGETS:
        jitted = arrayjit.jit(program, target=target)
        assert_same(jitted(numbers()), program(numbers()))
        change(model)
        assert_same(jitted(numbers()), program(numbers()))


def test_attributes_of_lists_and_what_is_behind_a_proxy_are_noticed() -> None:
    row, table = Row([1.0]), {"a": 1.0}
    proxy = MappingProxyType(table)
    row.scale = 2.0  # type: ignore[attr-defined]
    jitted = arrayjit.jit(lambda x: x * row.scale + proxy["a"] + row[0])  # type: ignore[attr-defined]
    assert_same(jitted(numbers()), numbers() * 2 + 2)
    row.scale = 3.0  # type: ignore[attr-defined]
    assert_same(jitted(numbers()), numbers() * 3 + 2)
    table["a"] = 4.0
    assert_same(jitted(numbers()), numbers() * 3 + 5)


def test_attributes_of_lists_are_not_assigned() -> None:
    row = Row([1.0])

    def program(x: np.ndarray) -> np.ndarray:
        row.seen = True  # type: ignore[attr-defined]
        return x

    with pytest.raises(arrayjit.UnsupportedError, match="changes a Row"):
        arrayjit.jit(program)(numbers())
    assert vars(row) == {}


def counted(x: np.ndarray) -> np.ndarray:
    return x * counted.factor  # type: ignore[attr-defined]


def counting(x: np.ndarray) -> np.ndarray:
    counting.calls += 1  # type: ignore[attr-defined]
    return x


def beginning(x: np.ndarray) -> np.ndarray:
    counted.seen = True  # type: ignore[attr-defined]
    return x


def test_attributes_of_functions_are_noticed() -> None:
    counted.note = np.array(["no dtype of ours"])  # type: ignore[attr-defined]
    for program in (counted, lambda x: counted(x), functools.wraps(counted)(lambda x: counted(x))):
        counted.factor = 2  # type: ignore[attr-defined]
        jitted = arrayjit.jit(program)
        for factor in (2, 3, np.full(6, 4.0)):
            counted.factor = factor  # type: ignore[attr-defined]
            for _ in range(3):
                assert_same(jitted(numbers()), numbers() * factor)


def test_attributes_of_functions_are_not_assigned() -> None:
    counting.calls = 0  # type: ignore[attr-defined]
    for program in (counting, beginning):
        with pytest.raises(arrayjit.UnsupportedError, match="changes a function"):
            arrayjit.jit(program)(numbers())
    assert counting.calls == 0  # type: ignore[attr-defined]
    assert not hasattr(counted, "seen")


def test_a_replaced_method_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    jitted = arrayjit.jit(lambda x: model.scaled(x))
    jitted(numbers())
    monkeypatch.setattr(Model, "scaled", lambda self, x: x * 9)
    assert_same(jitted(numbers()), numbers() * 9)


def test_a_changed_default_is_noticed() -> None:
    weights = [1.0, 2.0]

    def program(x: np.ndarray, weights: Any = weights) -> Any:
        return x * weights[0]

    jitted = arrayjit.jit(lambda x: program(x))
    assert_same(jitted(numbers()), numbers())
    weights[0] = 3.0
    assert_same(jitted(numbers()), numbers() * 3)


def test_other_threads_see_the_real_objects() -> None:
    model, tracing, seen = Model(), threading.Event(), threading.Event()
    found: list[Any] = []

    def look() -> None:
        tracing.wait(60)
        found.extend((type(model), model.w is w, np.zeros(2), list(range(2)), model.scaled(numbers())))
        seen.set()

    w = model.w

    def program(x: np.ndarray) -> Any:
        half = model.scaled(x)
        tracing.set()
        seen.wait(60)
        return half + np.zeros(6)

    wanted = model.scaled(numbers())
    thread = threading.Thread(target=look)
    thread.start()
    assert_same(arrayjit.jit(program)(numbers()), wanted)
    thread.join()
    assert found[:2] == [Model, True]
    assert_same(found[2:], [np.zeros(2), [0, 1], wanted])
