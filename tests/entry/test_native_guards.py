"""What calls without Python notice of names, functions, the environment and context variables."""

from __future__ import annotations

import contextvars
import os

import numpy as np
import pytest

import arrayjit
from arrayjit.entry import layout, variants

FACTOR = 2.0
SETTING = contextvars.ContextVar("SETTING", default=2.0)


def stores(value):
    global FACTOR
    FACTOR = value


@pytest.fixture
def x():
    return np.arange(4.0)


@pytest.fixture(params=[True, False], ids=["by version", "by name"])
def by_version(request, monkeypatch):
    """Guards of dicts with their versions, where there are any, and without."""
    if not request.param:
        monkeypatch.setattr(variants, "has_dict_versions", lambda: False)


def test_every_way_to_rebind_a_global_is_noticed(native, monkeypatch, by_version, x):
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    jitted = arrayjit.jit(lambda x: np.multiply(x, FACTOR) + abs(-1.0))
    ways = [
        stores,
        lambda value: globals().update(FACTOR=value),
        lambda value: exec(f"FACTOR = {value}", globals()),
    ]
    for value in range(60):
        ways[value % 3](float(value % 7))
        np.testing.assert_array_equal(jitted(x), x * (value % 7) + 1)
        np.testing.assert_array_equal(native(jitted, x), x * (value % 7) + 1)


def test_other_names_of_a_module_may_change(native, monkeypatch, by_version, x):
    jitted = arrayjit.jit(lambda x: x * FACTOR)
    native(jitted, x)
    hits = jitted._entries.hits
    for value in range(50):
        monkeypatch.setitem(globals(), "UNRELATED", value)
        jitted(x)
    assert jitted._entries.hits == hits + 50


def test_what_was_not_there_is_noticed(native, monkeypatch, by_version, x):
    jitted = arrayjit.jit(lambda x: x + abs(-1.0))
    native(jitted, x)
    monkeypatch.setitem(globals(), "abs", lambda value: 5.0)
    np.testing.assert_array_equal(jitted(x), x + 5.0)


@pytest.mark.parametrize("part", ["__code__", "__defaults__", "__kwdefaults__"])
def test_parts_of_functions_are_noticed(native, part, x):
    def helper(x, by=1.0, *, times=2.0):
        return (x + by) * times

    def other(x, by=3.0, *, times=4.0):
        return x - by * times

    jitted = arrayjit.jit(lambda x: helper(x))
    native(jitted, x)
    setattr(helper, part, getattr(other, part))
    np.testing.assert_array_equal(jitted(x), helper(x))
    np.testing.assert_array_equal(native(jitted, x), helper(x))


def test_the_environment_and_context_variables_are_noticed(native, monkeypatch, x):
    monkeypatch.setenv("ARRAY_TEST", "3")
    jitted = arrayjit.jit(lambda x: x * float(os.environ["ARRAY_TEST"]) + SETTING.get())
    np.testing.assert_array_equal(native(jitted, x), x * 3 + 2)
    monkeypatch.setenv("ARRAY_TEST", "4")
    np.testing.assert_array_equal(jitted(x), x * 4 + 2)
    np.testing.assert_array_equal(native(jitted, x), x * 4 + 2)

    def other_context():
        SETTING.set(5.0)
        np.testing.assert_array_equal(native(jitted, x), x * 4 + 5)

    contextvars.copy_context().run(other_context)
    np.testing.assert_array_equal(jitted(x), x * 4 + 2)


def test_functions_are_looked_into_where_their_parts_are():
    assert len(layout.function_fields()) == 3
