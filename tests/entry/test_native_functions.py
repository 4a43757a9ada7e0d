"""A function that is called without Python is what it was: what it runs, how it looks, who may call it."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import inspect
import os
import pickle
import sys
import threading
import weakref
from contextvars import copy_context

import numpy as np
import pytest

import arrayjit
from arrayjit.entry import callable as entry_callable
from arrayjit.entry import entries, layout
from arrayjit.errors import SettingError

FACTOR = 2.0
WEIGHTS = np.arange(4.0)


@arrayjit.jit
def scaled(x):
    """x, scaled."""
    return x * FACTOR + WEIGHTS


@arrayjit.jit
def increased(x, by=1):
    return x + by


@pytest.fixture
def x():
    return np.arange(4.0)


def test_rebound_globals_are_noticed(native, monkeypatch, x):
    native(scaled, x)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_array_equal(scaled(x), x * 3.0 + WEIGHTS)
    np.testing.assert_array_equal(native(scaled, x), x * 3.0 + WEIGHTS)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    np.testing.assert_array_equal(scaled(x), x * 2.0 + WEIGHTS)


def test_captured_arrays_are_read_at_each_call(native, monkeypatch, x):
    native(scaled, x)
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones(4))
    np.testing.assert_array_equal(native(scaled, x), x * FACTOR + 1)
    WEIGHTS[1] = 7.0
    np.testing.assert_array_equal(native(scaled, x), x * FACTOR + WEIGHTS)
    np.testing.assert_array_equal(scaled(WEIGHTS), WEIGHTS * FACTOR + WEIGHTS)


def test_closure_variables_are_noticed(native, x):
    def made(factor):
        def f(v):
            return v * factor

        def change(to):
            nonlocal factor
            factor = to

        return arrayjit.jit(f), change

    f, change = made(2.0)
    np.testing.assert_array_equal(native(f, x), x * 2.0)
    change(5.0)
    np.testing.assert_array_equal(f(x), x * 5.0)
    np.testing.assert_array_equal(native(f, x), x * 5.0)


def test_methods(native, x):
    class Model:
        def __init__(self, weight):
            self.weight = weight

        @arrayjit.jit
        def predict(self, v):
            return self.weight * v

        @staticmethod
        @arrayjit.jit
        def doubled(v):
            return v + v

    model = Model(3.0)
    np.testing.assert_array_equal(native(model.predict.__func__, model, x), 3.0 * x)
    np.testing.assert_array_equal(model.predict(x), 3.0 * x)
    model.weight = 4.0
    np.testing.assert_array_equal(model.predict(x), 4.0 * x)
    np.testing.assert_array_equal(native(Model.doubled, x), x + x)
    np.testing.assert_array_equal(model.doubled(x), x + x)


def test_a_method_binds_as_that_of_a_function(native, x):
    class Shift(tuple):
        __slots__ = ()
        moved = increased

    bound = Shift().moved
    assert bound.__func__ is increased
    np.testing.assert_array_equal(
        functools.reduce(lambda total, _: native(increased, total), range(3), x), x + 3
    )


def test_values_that_are_compiled_in(native, x):
    @arrayjit.jit
    def power(v, n):
        for _ in range(n):
            v = v * 2
        return v

    for n in (0, 1, 3, 0, 40, -5, 2):
        np.testing.assert_array_equal(native(power, x, n), x * 2.0 ** max(n, 0))
    before = power._entries.hits
    for n in range(1, 12):
        np.testing.assert_array_equal(power(x, n), x * 2.0**n)
    assert power._entries.hits == before + 11
    pick = arrayjit.jit(lambda v, names, n: v + names[n])
    for n in (0, 1, 0, 1):
        np.testing.assert_array_equal(native(pick, x, (10.0, 20.0), n), x + (10.0, 20.0)[n])


def test_targets_of_a_call_of_a_block_and_of_the_environment(native, through_python, monkeypatch, x):
    f = arrayjit.jit(lambda v: v + 1)
    native(f, x)
    np.testing.assert_array_equal(through_python(f, x, target="interp"), x + 1)
    np.testing.assert_array_equal(f.on("interp")(x), x + 1)
    with arrayjit.use(target="interp"):
        np.testing.assert_array_equal(through_python(f, x), x + 1)
        context = copy_context()
    native(f, x)
    before = f._entries.hits
    np.testing.assert_array_equal(context.run(f, x), x + 1)
    assert f._entries.hits == before
    monkeypatch.setenv("ARRAYJIT_TARGET", "interp")
    np.testing.assert_array_equal(through_python(f, x), x + 1)
    monkeypatch.setenv("ARRAYJIT_TARGET", "sync_llvm")
    np.testing.assert_array_equal(native(f, x), x + 1)
    monkeypatch.delenv("ARRAYJIT_TARGET")
    np.testing.assert_array_equal(native(f, x), x + 1)
    assert [miss.target for miss in f.stats().reasons] == ["llvm", "interp", "sync_llvm"]


def test_a_target_of_its_own_needs_no_environment(native, monkeypatch, x):
    f = arrayjit.jit(lambda v: v + 1, target="sync_llvm")
    native(f, x)
    monkeypatch.setenv("ARRAYJIT_TARGET", "interp")
    before = f._entries.hits
    f(x)
    assert f._entries.hits == before + 1


def test_a_call_in_a_traced_function_becomes_part_of_it(native):
    native(increased, WEIGHTS)
    outer = arrayjit.jit(lambda v: v * increased(WEIGHTS))
    old = WEIGHTS.copy()
    np.testing.assert_array_equal(outer(np.ones(4)), old + 1)
    WEIGHTS[:] = 5.0
    np.testing.assert_array_equal(outer(np.ones(4)), np.full(4, 6.0))
    WEIGHTS[:] = old


def test_stats_count_every_call(x):
    f = arrayjit.jit(lambda v: v + 1)
    for _ in range(10):
        f(x)
    for _ in range(5):
        f(x[:2].copy())
    assert (f.stats().hits, f.stats().misses, f.stats().compiles) == (13, 2, 2)


def test_stats_count_calls_for_other_targets(monkeypatch, x):
    f = arrayjit.jit(lambda v: v + 1)
    for target in (None, "interp", None, "sync_llvm", None):
        monkeypatch.delenv("ARRAYJIT_TARGET", raising=False)
        if target:
            monkeypatch.setenv("ARRAYJIT_TARGET", target)
        for _ in range(4):
            f(x)
    assert (f.stats().hits, f.stats().misses) == (17, 3)


def test_further_variants_are_found_through_python(native, through_python, monkeypatch):
    monkeypatch.setattr(entries, "MOST_VARIANTS", 3)
    f = arrayjit.jit(lambda v: v + 1)
    for n in range(1, 4):
        native(f, np.ones(n))
    np.testing.assert_array_equal(through_python(f, np.ones(9)), np.full(9, 2.0))
    assert f.stats().hits + f.stats().misses == 12


def test_variants_that_are_forgotten_are_called_no_more(native, monkeypatch):
    monkeypatch.setattr("arrayjit.variants.MOST", 2)
    f = arrayjit.jit(lambda v: v + 1)
    for n in range(1, 6):
        native(f, np.ones(n))
    assert len(f._entries._published) == 2
    assert f.stats().hits == 10


def test_it_looks_like_the_function():
    assert inspect.signature(scaled) == inspect.signature(lambda x: x)
    assert scaled.__doc__ == "x, scaled."
    assert scaled.__name__ == "scaled"
    assert scaled.__wrapped__(np.ones(4))[0] == FACTOR + WEIGHTS[0]
    assert callable(scaled)
    assert isinstance(scaled, arrayjit.JitFunction)
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert copy.copy(scaled) is scaled
    assert copy.deepcopy(scaled) is scaled
    assert repr(scaled) == "<jitted scaled>"
    assert {scaled: 1}[scaled] == 1


def test_every_way_to_call(native, x):
    native(increased, x)
    native(increased, x, by=2)
    calls = [
        increased(x),
        increased(*[x]),
        increased(*[x], by=1),
        increased.__call__(x),
        next(map(increased, [x])),
        functools.partial(increased, x)(),
        type(increased).__call__(increased, x),
    ]
    for result in calls:
        np.testing.assert_array_equal(result, x + 1)
    with pytest.raises(TypeError):
        increased()
    with pytest.raises(TypeError):
        increased(x, 1, 2, 3)


def test_it_has_attributes_and_dies(x):
    f = arrayjit.jit(lambda v: v + 1)
    for _ in range(4):
        f(x)
    f.note = f
    alive = weakref.ref(f)
    table = weakref.ref(f._table)
    assert table() is not None
    del f
    gc.collect()
    assert alive() is None
    assert table() is None


def test_classes_are_not_derived_from_it():
    with pytest.raises(TypeError):
        type("Sub", (type(scaled),), {})


def test_the_python_entry(monkeypatch, x):
    monkeypatch.setenv("ARRAYJIT_ENTRY", "python")
    f = arrayjit.jit(lambda v: v + 1)
    assert type(f) is arrayjit.JitFunction
    for _ in range(4):
        np.testing.assert_array_equal(f(x), x + 1)
    assert (f.stats().hits, f._entries.hits) == (3, 0)
    monkeypatch.setenv("ARRAYJIT_ENTRY", "other")
    with pytest.raises(SettingError, match="native or python"):
        arrayjit.jit(lambda v: v + 1)


@pytest.mark.parametrize("place", sorted(layout.OFFSETS))
def test_another_layout_is_noticed(monkeypatch, place):
    monkeypatch.setattr(layout, "OFFSETS", {**layout.OFFSETS, place: layout.OFFSETS[place] + 8})
    assert next(layout._differences(), "")


def test_where_layouts_differ_the_class_is_the_python_one(monkeypatch):
    class Called:
        def __call__(self):
            return 1

    assert entry_callable.native(Called) is not Called
    entry_callable.native.cache_clear()
    monkeypatch.setattr(entry_callable, "reason_against", lambda: "arrays have another layout")
    assert entry_callable.native(Called) is Called
    entry_callable.native.cache_clear()


def test_threads_that_compile_and_call(x):
    f = arrayjit.jit(lambda d, n: (d["v"] * n, [d["w"][0] + n]))
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(60):
                v = random.standard_normal(int(random.integers(1, 6)))
                product, (total,) = f({"v": v, "w": [v + 1]}, 2.0)
                np.testing.assert_array_equal(product, v * 2.0)
                np.testing.assert_array_equal(total, v + 1 + 2.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert f.stats().compiles == 5


def test_long_kernels_run_without_the_lock(native):
    """Another thread gets ahead while a kernel runs, though nobody switches threads in between. The system
    may take a while to let it run: kernels are longer and longer until it does."""

    @arrayjit.jit
    def relaxed(v, sweeps):
        for _ in range(sweeps):
            v = v * 0.5 + 1.0
        return v

    v = np.zeros(4096)
    native(relaxed, v, 10)

    def gets_ahead(sweeps):
        """Whether a thread that may run since just before the call has run when the kernel is over."""
        gate, seen = threading.Lock(), []
        gate.acquire()
        thread = threading.Thread(target=lambda: (gate.acquire(), seen.append(1)))
        thread.start()
        gate.release()
        relaxed(v, sweeps)
        was_ahead = bool(seen)
        thread.join()
        return was_ahead

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100.0)
    try:
        assert any(gets_ahead(5_000 << doubled) for doubled in range(12))
    finally:
        sys.setswitchinterval(interval)


def test_the_table_may_be_exchanged_while_a_kernel_runs(native):
    @arrayjit.jit
    def relaxed(v, sweeps):
        for _ in range(sweeps):
            v = v * 0.5 + 1.0
        return (v, {"sweeps": sweeps})

    v = np.zeros(4096)
    native(relaxed, v, 10)
    results = []
    thread = threading.Thread(target=lambda: results.append(relaxed(v, 20_000)))
    thread.start()
    for n in range(1, 5):
        for _ in range(3):
            relaxed(np.zeros(n), 2)
        gc.collect()
    thread.join()
    np.testing.assert_array_equal(results[0][0], np.full(4096, 2.0))
    assert results[0][1] == {"sweeps": 20_000}


def test_a_child_process_calls_it(native, x):
    native(increased, x)
    child = os.fork()
    if child == 0:
        os._exit(0 if (increased(x) == x + 1).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_collection_in_the_middle_of_a_result(native):
    """Making containers may collect garbage, which may drop the very list that holds an argument."""
    f = arrayjit.jit(lambda values: (values[0] + 1, values[0], {"list": [values[0]]}))
    native(f, [np.arange(3.0)])

    class Emptying:
        def __init__(self, values):
            self.values, self.itself = values, self

        def __del__(self):
            self.values.clear()

    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            values = [np.arange(3.0)]
            Emptying(values)
            results = f(values)
            np.testing.assert_array_equal(results[1], np.arange(3.0))
            assert results[1] is results[2]["list"][0]
    finally:
        gc.set_threshold(*old)


@pytest.mark.alone
def test_no_memory_is_a_memory_error(native):
    f = arrayjit.jit(lambda v: v.reshape(-1, 1) + np.zeros((1, 8)))
    native(f, np.ones(8))
    fresh = f._entries._published
    variant = next(iter(fresh))
    sizes = [memory for memory in _words_of(fresh[variant].rows) if list(memory) == [8, 8]]
    assert sizes
    for memory in sizes:
        memory[0] = 1 << 50
    v, double = np.ones(8), np.dtype("f8")

    def fail():
        for _ in range(20):
            with pytest.raises(MemoryError):
                f(v)
        gc.collect()
        return sys.getrefcount(double), sys.getrefcount(v)

    assert fail() == fail()


def _words_of(owned):
    """All rows that rows own."""
    found = []
    waiting = [owned]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ctypes.Array):
            found.append(part)
            waiting += part.owned
        elif isinstance(part, (list, tuple)):
            waiting += part
    return found


@pytest.mark.parametrize("target", ["c", "sync_c"])
def test_code_by_way_of_c_is_called_without_python_too(native, target):
    @arrayjit.jit(target=target)
    def chosen(x, which):
        return x[which] * 2

    x = np.arange(9.0)
    np.testing.assert_array_equal(native(chosen, x, np.array([3, -1])), [6.0, 16.0])
    with pytest.raises(arrayjit.UserError, match="out of bounds"):
        chosen(x, np.array([3, 9]))
