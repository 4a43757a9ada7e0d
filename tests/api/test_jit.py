"""`jit` as a user meets it: every way to decorate and to call, targets, stages, statistics."""

from __future__ import annotations

import functools
import inspect
import pickle
import threading
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import arrayjit


@dataclass(frozen=True, slots=True)
class Setting:
    number: object


pytestmark = pytest.mark.usefixtures("entry")

TARGETS = ("interp", "sync_llvm")


@arrayjit.jit
def axpy(a, x, y):
    """y = a x + y"""
    return a * x + y


@pytest.fixture
def x():
    return np.linspace(-1.0, 1.0, 11)


@pytest.mark.parametrize("target", TARGETS)
def test_bare_decorator(x, target):
    np.testing.assert_array_equal(axpy(2.0, x, x, target=target), 2.0 * x + x)


def test_decorator_with_arguments(x):
    @arrayjit.jit(target="interp")
    def f(v):
        return v + 1

    np.testing.assert_array_equal(f(x), x + 1)
    assert f.stats().reasons[0].target == "interp"


def test_lambda_partial_and_method(x):
    class Scale:
        factor = 3.0

        @arrayjit.jit
        def apply(self, v):
            return self.factor * v

        @staticmethod
        @arrayjit.jit
        def double(v):
            return v + v

    np.testing.assert_array_equal(arrayjit.jit(lambda v: v * v)(x), x * x)
    np.testing.assert_array_equal(arrayjit.jit(functools.partial(np.add, 1.0))(x), x + 1)
    np.testing.assert_array_equal(Scale().apply(x), 3.0 * x)
    np.testing.assert_array_equal(Scale.double(x), x + x)


def test_a_changed_attribute_of_self_is_noticed(x):
    class Model:
        def __init__(self):
            self.weights = np.ones(11)
            self.bias = 1.0

        @arrayjit.jit
        def predict(self, v):
            return self.weights * v + self.bias

    model = Model()
    np.testing.assert_array_equal(model.predict(x), x + 1)
    model.bias = 2.0
    np.testing.assert_array_equal(model.predict(x), x + 2)
    model.weights = np.full(11, 5.0)
    np.testing.assert_array_equal(model.predict(x), 5 * x + 2)
    model.weights[:] = 7.0
    np.testing.assert_array_equal(model.predict(x), 7 * x + 2)


class Slotted:
    __slots__ = ("gain",)

    def __init__(self, gain):
        self.gain = gain

    def scale(self, v):
        return self.gain * v

    __call__ = scale


class Plain:
    offset = 0.0

    def __init__(self, gain):
        self.gain = gain

    def scale(self, v):
        return self.gain * v + self.offset

    __call__ = scale


@pytest.mark.parametrize("kind", [Slotted, Plain])
@pytest.mark.parametrize(
    "make",
    [
        lambda model: arrayjit.jit(model.scale),
        lambda model: arrayjit.jit(model),
        lambda model: arrayjit.jit(functools.partial(type(model).scale, model)),
        lambda model: functools.partial(arrayjit.jit(lambda v, call: call(v)), call=model.scale),
        lambda model: functools.partial(arrayjit.jit(lambda v, m: m(v), static_argnames="m"), m=model),
    ],
    ids=["method", "object", "partial", "argument", "static"],
)
def test_a_changed_attribute_is_noticed_however_it_is_reached(x, kind, make):
    model = kind(2.0)
    f = make(model)
    np.testing.assert_array_equal(f(x), 2 * x)
    model.gain = 5.0
    np.testing.assert_array_equal(f(x), 5 * x)
    assert np.signbit(f(x)).tolist() == np.signbit(5 * x).tolist()


def test_a_changed_attribute_of_a_class_is_noticed(x, monkeypatch):
    f = arrayjit.jit(lambda v: v + Plain.offset)
    model = arrayjit.jit(Plain(1.0).scale)
    np.testing.assert_array_equal([f(x), model(x)], [x, x])
    monkeypatch.setattr(Plain, "offset", 2.0)
    np.testing.assert_array_equal([f(x), model(x)], [x + 2, x + 2])


def test_the_sign_of_zero_is_noticed(x):
    model = Plain(0.0)
    f = arrayjit.jit(lambda v: np.copysign(v, model.gain))
    assert f(x)[-1] == 1.0
    model.gain = -0.0
    assert f(x)[-1] == -1.0


def test_it_looks_like_the_function():
    assert axpy.__name__ == "axpy"
    assert axpy.__doc__ == "y = a x + y"
    assert list(inspect.signature(axpy).parameters) == ["a", "x", "y"]
    assert axpy.__wrapped__ is not axpy
    assert pickle.loads(pickle.dumps(axpy)) is axpy


def test_keywords_and_defaults(x):
    @arrayjit.jit
    def f(v, *, scale=2.0, shift=None):
        return v * scale if shift is None else v * scale + shift

    np.testing.assert_array_equal(f(x), x * 2)
    np.testing.assert_array_equal(f(v=x, scale=3.0), x * 3)
    np.testing.assert_array_equal(f(x, shift=x), x * 2 + x)


def test_use_chooses_a_target_and_the_call_overrides_it(x):
    @arrayjit.jit
    def f(v):
        return v - 1

    with arrayjit.use(target="interp"):
        f(x)
        f(x, target="sync_llvm")
    assert [miss.target for miss in f.stats().reasons] == ["interp", "sync_llvm"]


def test_a_parameter_called_target_belongs_to_the_function(x):
    @arrayjit.jit
    def loss(prediction, target):
        return ((prediction - target) ** 2).sum()

    assert loss(x, target=x) == 0
    assert loss.on("interp")(x, x) == 0
    assert {miss.target for miss in loss.stats().reasons} == {"llvm", "interp"}


def test_nested_containers_come_and_go(x):
    Pair = namedtuple("Pair", "left right")

    @dataclass
    class State:
        position: np.ndarray
        step: int

    @arrayjit.jit
    def f(pair, table, state):
        moved = State(state.position + table["v"][0], state.step)
        return Pair(pair.left * 2, [pair.right, None]), {"moved": moved, "text": "as it was"}

    pair, result = f(Pair(x, x + 1), {"v": (x,)}, State(x, 3))
    np.testing.assert_array_equal(pair.left, x * 2)
    np.testing.assert_array_equal(pair.right[0], x + 1)
    assert pair.right[1] is None
    np.testing.assert_array_equal(result["moved"].position, x + x)
    assert result["moved"].step == 3
    assert result["text"] == "as it was"


def test_static_arguments_are_compiled_in(x):
    @arrayjit.jit(static_argnames=("steps", "flag"))
    def f(v, steps, flag=False):
        for _ in range(steps):
            v = v + 1
        return -v if flag else v

    np.testing.assert_array_equal(f(x, 3), x + 3)
    np.testing.assert_array_equal(f(x, steps=2, flag=True), -(x + 2))
    assert f.stats().compiles == 2


@pytest.mark.parametrize(
    "values",
    [[(1,), (1.0,), (True,)], [0.0, -0.0], [Setting(1), Setting(1.0)], [frozenset({1}), frozenset({1.0})]],
    ids=repr,
)
def test_static_arguments_that_equal_one_another_and_differ(x, values):
    @arrayjit.jit(static_argnames="value")
    def f(v, value):
        number = value
        if isinstance(value, Setting):
            number = value.number
        elif not isinstance(value, float):
            (number,) = value
        return np.copysign(np.int8(1), np.float32(number)) * np.asarray(number)

    for value in values:
        got, wanted = f(x, value), f.__wrapped__(x, value)
        assert (got.dtype, repr(got)) == (wanted.dtype, repr(wanted))
    assert f.stats().compiles == len(values)
    f(x, values[0])
    assert f.stats().hits == 1


def test_python_scalars_are_arguments(x):
    assert [axpy(a, x, x)[0] for a in (1.0, 2.0, 3.0)] == [-2.0, -3.0, -4.0]
    misses = axpy.stats().misses
    axpy(17.5, x, x)
    assert axpy.stats().misses == misses


def test_stats_say_why_each_miss_happened(x):
    @arrayjit.jit
    def f(v, w):
        return v * w

    f(x, 2.0)
    f(x, 3.0)
    f(x.astype(np.float32), 3.0)
    f(x[:5], 3.0)
    stats = f.stats()
    assert (stats.hits, stats.misses, stats.compiles) == (1, 3, 3)
    first, dtype, shape = (miss.reason for miss in stats.reasons)
    assert first == "first call"
    assert dtype == "v: float64[11] -> float32[11]"
    assert shape == "v: float64[11] -> float64[5]"
    assert all(miss.milliseconds > 0 and miss.loc.file == __file__ for miss in stats.reasons)


def test_old_variants_are_dropped(x, monkeypatch):
    monkeypatch.setattr("arrayjit.variants.MOST", 2)
    f = arrayjit.jit(lambda v: v + 1)
    for size in (1, 2, 3, 3, 2, 1):
        f(x[:size])
    assert (f.stats().hits, f.stats().compiles) == (2, 4)


def test_every_stage_can_be_read(x):
    lowered = axpy.lower(2.0, x, x)
    assert "each(11)" in lowered.as_text("assignments")
    assert "parallel(0, 11)" in lowered.as_text("loops")
    assert "vector(" in lowered.as_text("optimized")
    assert "define" in lowered.as_text("llvm")
    assert "ret" in lowered.as_text("asm")
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(3.0, x, x), 3 * x + x)
    with pytest.raises(TypeError, match=r"differ from those[^$]*x: float64\[11\] -> float64\[4\]"):
        compiled(3.0, x[:4], x[:4])


def test_what_is_said_of_a_call_holds_for_all_its_stages(x):
    chosen = axpy.on("interp", threads=1)
    assert repr(chosen) == "<jitted axpy with target='interp', threads=1>"
    assert str(chosen.explain(2.0, x, x)) == str(axpy.explain(2.0, x, x, target="interp"))


@pytest.mark.parametrize("name", ["", 3, b"llvm"])
def test_a_name_that_is_none_is_an_unknown_target(x, name):
    with pytest.raises(arrayjit.UnknownTarget):
        axpy(2.0, x, x, target=name)
    with pytest.raises(arrayjit.UnknownTarget):
        arrayjit.jit(lambda v: v, target=name)(x)
    with pytest.raises(arrayjit.UnknownTarget):
        arrayjit.asarray(x, device=name)


@pytest.mark.parametrize("names", [3, None])
def test_static_names_are_names(names):
    with pytest.raises(arrayjit.StaticArgumentError, match="static_argnames is"):
        arrayjit.jit(lambda v: v, static_argnames=names)


@pytest.mark.parametrize(
    "wrapper", [classmethod, staticmethod, property, functools.cached_property, functools.partialmethod]
)
@pytest.mark.parametrize("decorator", [arrayjit.jit, arrayjit.jit(threads=1)])
def test_what_wraps_functions_goes_above(wrapper, decorator):
    with pytest.raises(TypeError, match=f"write @{wrapper.__name__} above @jit"):
        decorator(wrapper(lambda held: 1))


def test_functions_that_give_no_result_when_they_are_called_are_refused():
    async def awaited(v):
        return v + 1

    async def several_awaited(v):
        yield v

    def several(v):
        yield v

    for function in (awaited, several_awaited):
        with pytest.raises(arrayjit.UnsupportedError, match="an async function is not compiled"):
            arrayjit.jit(function)
    for function in (several, functools.partial(several, 1.0)):
        with pytest.raises(arrayjit.UnsupportedError, match="a function with yield is not compiled"):
            arrayjit.jit(threads=1)(function)


def test_a_target_that_is_none_is_told_where_it_is_named(x):
    with pytest.raises(arrayjit.UnknownTarget, match="unknown target 'lvm'"):
        arrayjit.jit(lambda v: v, target="lvm")
    with pytest.raises(arrayjit.UnknownTarget, match="choose one of llvm"), arrayjit.use(target="lvm"):
        pass


def test_a_vectorized_function_is_one(x):
    np.testing.assert_array_equal(arrayjit.jit(np.vectorize(lambda v: v + 1))(x), x + 1)


def test_a_size_may_be_one_of_numpys():
    assert arrayjit.spec(np.int64(3)) == arrayjit.spec(3) == arrayjit.spec((3,))


def test_a_stage_that_the_target_lacks(x):
    lowered = axpy.lower(2.0, x, x, target="interp")
    with pytest.raises(arrayjit.UnsupportedError, match="no stage 'llvm'"):
        lowered.as_text("llvm")
    with pytest.raises(arrayjit.UnsupportedError, match="no stage 'nonsense'"):
        lowered.as_text("nonsense")


def test_lowering_needs_shapes_and_dtypes_only():
    lowered = axpy.lower(2.0, arrayjit.spec((3, 4), "f4"), arrayjit.spec(4, np.float32))
    ones = np.ones((3, 4), np.float32)
    row = np.ones(4, np.float32)
    np.testing.assert_array_equal(lowered.compile()(1.0, ones, row), ones * 2)


def test_shapes_are_sizes():
    assert arrayjit.spec([np.int64(3), 0]).shape == (3, 0)
    with pytest.raises(arrayjit.ShapeError, match="negative"):
        arrayjit.spec((3, -1))
    for shape in ("ab", (3, 2.5)):
        with pytest.raises(TypeError, match="as an integer"):
            arrayjit.spec(shape)


def test_jitted_functions_call_one_another(x):
    @arrayjit.jit
    def outer(v):
        return axpy(2.0, v, v) + 1

    np.testing.assert_array_equal(outer(x), 3 * x + 1)


def test_sixteen_threads_that_make_the_same_first_call_compile_once(x):
    @arrayjit.jit
    def f(v):
        return np.sqrt(np.abs(v)) + v

    barrier = threading.Barrier(16)
    results = []

    def work():
        barrier.wait()
        results.append(f(x))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert f.stats().compiles == 1
    assert f.stats().hits == 15
    assert len(results) == 16
    for result in results:
        np.testing.assert_array_equal(result, np.sqrt(np.abs(x)) + x)


def test_a_rebound_global_is_noticed(x, monkeypatch):
    @arrayjit.jit
    def f(v):
        return v * FACTOR

    np.testing.assert_array_equal(f(x), x * 2)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    np.testing.assert_array_equal(f(x), x * 5)
    assert "rebound" in f.stats().reasons[-1].reason


FACTOR = 2.0


def test_functions_may_be_called_like_the_libraries_they_use(x):
    @arrayjit.jit
    def sin(v):
        return np.sin(v) + np.tan(v)

    np.testing.assert_allclose(sin(x), np.sin(x) + np.tan(x), rtol=1e-15)
    np.testing.assert_allclose(arrayjit.jit(np.arcsin)(x), np.arcsin(x), rtol=1e-15)
