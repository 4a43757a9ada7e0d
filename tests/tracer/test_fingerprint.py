"""A fingerprint tells apart whatever a trace may tell apart, and is the same in another process; what cannot
be told has none."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from arrayjit.tracer.calls.fingerprint import fingerprint_of
from arrayjit.tracer.calls.function import trace_function
from arrayjit.tracer.calls.names import declared
from arrayjit.tracer.calls.signature import key_of


def module(monkeypatch, name, source, **names):
    """A module of this text, which stands in a file of the same name in each process."""
    made = ModuleType(name)
    vars(made).update(names, __file__=os.path.abspath(f"{name}.py"))
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, f"{name}.py", "exec"), vars(made))
    return made


def fingerprint(monkeypatch, source, **helpers):
    """Of the function `f` of a program that may import `helper`."""
    for name, text in helpers.items():
        module(monkeypatch, name, text)
    return fingerprint_of(module(monkeypatch, "program", "import numpy as np\n" + source).f)


HELPER = "scale = 2.0\ndef twice(x): return x * scale\n"

CHANGES = {
    "the code": ("def f(x): return x + 1", "def f(x): return x - 1"),
    "a constant": ("def f(x): return x + 1", "def f(x): return x + 2"),
    "the end of a slice": ("def f(x): return x[1:3]", "def f(x): return x[1:4]"),
    "an item of a set": ("def f(x): return x in {'p', 'q'}", "def f(x): return x in {'p', 'r'}"),
    "the sign of a zero": ("def f(x): return x + 0.0", "def f(x): return x + -0.0"),
    "the type of a number": ("a = 1\ndef f(x): return x + a", "a = 1.0\ndef f(x): return x + a"),
    "the line": ("def f(x): return x", "\ndef f(x): return x"),
    "a global": ("a = 1\ndef f(x): return x + a", "a = 2\ndef f(x): return x + a"),
    "a global that goes": ("def f(x): return x + sum", "sum = 1\ndef f(x): return x + sum"),
    "a list": ("a = [1, 2]\ndef f(x): return x + a[1]", "a = [1, 3]\ndef f(x): return x + a[1]"),
    "a dict": ("a = {'b': 1}\ndef f(x): return x + a['b']", "a = {'b': 2}\ndef f(x): return x + a['b']"),
    "a dtype": ("a = np.float32\ndef f(x): return x + a(1)", "a = np.float64\ndef f(x): return x + a(1)"),
    "a NumPy number": (
        "a = np.float32(1)\ndef f(x): return x + a",
        "a = np.float64(1)\ndef f(x): return x + a",
    ),
    "a default": ("def f(x, a=1): return x + a", "def f(x, a=2): return x + a"),
    "a keyword's default": ("def f(x, *, a=1): return x + a", "def f(x, *, a=2): return x + a"),
    "a closure": (
        "def g(a):\n  def f(x): return x + a\n  return f\nf = g(1)",
        "def g(a):\n  def f(x): return x + a\n  return f\nf = g(2)",
    ),
    "another function": (
        "def g(x): return x + 1\ndef f(x): return g(x)",
        "def g(x): return x + 2\ndef f(x): return g(x)",
    ),
    "a function of a function": (
        "def h(x): return x + 1\ndef g(x): return h(x)\ndef f(x): return g(x)",
        "def h(x): return x + 2\ndef g(x): return h(x)\ndef f(x): return g(x)",
    ),
    "which function a name means": (
        "g, h = np.sin, np.cos\ndef f(x): return g(x)",
        "g, h = np.cos, np.sin\ndef f(x): return g(x)",
    ),
    "a function in a list": (
        "a = [np.sin]\ndef f(x): return a[0](x)",
        "a = [np.cos]\ndef f(x): return a[0](x)",
    ),
    "which module a name means": (
        "import math as m\ndef f(x): return x * m.pi",
        "import numpy as m\ndef f(x): return x * m.pi",
    ),
    "a function that calls itself": (
        "def g(x, n): return x if n == 0 else g(x, n - 1) + 1\ndef f(x): return g(x, 2)",
        "def g(x, n): return x if n == 0 else g(x, n - 1) + 2\ndef f(x): return g(x, 2)",
    ),
    "a method": (
        "class A:\n  def m(self, x): return x + 1\ndef f(x): return A().m(x)",
        "class A:\n  def m(self, x): return x + 2\ndef f(x): return A().m(x)",
    ),
    "a number of a class": (
        "class A:\n  a = 1\ndef f(x): return x + A.a",
        "class A:\n  a = 2\ndef f(x): return x + A.a",
    ),
    "a base class": (
        "class B:\n  a = 1\nclass A(B): pass\ndef f(x): return x + A.a",
        "class B:\n  a = 2\nclass A(B): pass\ndef f(x): return x + A.a",
    ),
    "a property": (
        "class A:\n  @property\n  def a(self): return 1\ndef f(x): return x + A().a",
        "class A:\n  @property\n  def a(self): return 2\ndef f(x): return x + A().a",
    ),
    "code inside of the code": (
        "def f(x): return (lambda y: y + a)(x)\na = 1",
        "def f(x): return (lambda y: y + a)(x)\na = 2",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of(change, monkeypatch):
    before, again, after = (fingerprint(monkeypatch, CHANGES[change][n]) for n in (0, 0, 1))
    assert None not in (before, after)
    assert before.text == again.text != after.text


@pytest.mark.parametrize(
    "program",
    [
        "import helper\ndef f(x): return helper.twice(x)",
        "from helper import twice\ndef f(x): return twice(x)",
        "import helper as h\ndef g(x): return h.twice(x)\ndef f(x): return g(x)",
        "import helper as h\ndef g(m, x): return m.twice(x)\ndef f(x): return g(h, x)",
        "import helper as h\ndef g(x, m=h): return m.twice(x)\ndef f(x): return g(x)",
    ],
)
@pytest.mark.parametrize("changed", [HELPER.replace("2.0", "3.0"), HELPER.replace("*", "/")])
def test_a_change_in_another_module(monkeypatch, program, changed):
    before, after = (fingerprint(monkeypatch, program, helper=text) for text in (HELPER, changed))
    assert before.text != after.text


def test_what_no_name_in_the_code_leads_to_changes_nothing(monkeypatch):
    program = "import helper\nb = 1\ndef g(x): return x\ndef f(x): return helper.twice(x)"
    changed = program.replace("b = 1", "b = 2").replace("return x\n", "return 5\n")
    texts = [
        fingerprint(monkeypatch, text, helper=helper).text
        for text, helper in ((program, HELPER), (changed, HELPER + "other = 1\n"))
    ]
    assert texts[0] == texts[1]


UNTOLD = {
    "an array": "a = np.ones(3)\ndef f(x): return x + a",
    "an array in a list": "a = [np.ones(3)]\ndef f(x): return x + a[0]",
    "an array in a closure": "def g(a): return lambda x: x + a\nf = g(np.ones(3))",
    "an array as a default": "def f(x, a=np.ones(3)): return x + a",
    "an object": "class A:\n  a = 1\na = A()\ndef f(x): return x + a.a",
    "a bound method": "class A:\n  def m(self, x): return x\nm = A().m\ndef f(x): return m(x)",
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n  a: int\ndef f(x): return x + A(1).a"
    ),
    "a class with a metaclass": "from abc import ABC\nclass A(ABC):\n  a = 1\ndef f(x): return x + A.a",
    "an import": "def f(x):\n  import math\n  return x * math.pi",
    "an import within": "def f(x):\n  def g():\n    import math\n    return math.pi\n  return x * g()",
    "a name by text": "def f(x): return getattr(np, 'sin')(x)",
    "all names": "def f(x): return x + globals()['a']\na = 1",
    "code by text": "def f(x): return eval('x + a')\na = 1",
    "a name in another module by text": "import helper\ndef f(x): return x + vars(helper)['scale']",
    "a module's own dict": "import helper\ndef f(x): return x + helper.__dict__['scale']",
    "an attribute by text": (
        "import operator, helper\ndef f(x): return x + operator.attrgetter('scale')(helper)"
    ),
    "a file": "def f(x): return x + len(open('data').read())",
    "a file of numbers": "def f(x): return x + np.loadtxt('data')",
    "a mapped file": "def f(x): return x + np.memmap('data')",
    "a setting of NumPy's": "def f(x): return x + (np.geterr()['over'] == 'warn')",
    "the environment": "import os\ndef f(x): return x + int(os.environ.get('N', 1))",
    "the clock": "import time\ndef f(x): return x + time.time()",
    "a clock of its own name": "from time import time\ndef f(x): return x + time()",
    "something printed": "def f(x):\n  print('traced')\n  return x",
    "chance": "import random\ndef f(x): return x + random.random()",
    "what was computed before": (
        "from functools import cache\n@cache\ndef g(n): return n\ndef f(x): return x + g(1)"
    ),
    "a part of a call": ("from functools import partial\ng = partial(np.add, 1)\ndef f(x): return g(x)"),
    "an empty closure": "def g():\n  def f(x): return x + a\n  return f\n  a = 1\nf = g()",
}


@pytest.mark.parametrize("what", UNTOLD)
def test_has_no_fingerprint_for(what, monkeypatch):
    assert fingerprint(monkeypatch, UNTOLD[what], helper=HELPER) is None


def test_a_function_that_says_to_be_numpys_is_told_by_its_code(monkeypatch):
    program = "def g(x): return x + {}\ng.__module__, g.__qualname__ = 'numpy', 'sin'\ndef f(x): return g(x)"
    one, two = (fingerprint(monkeypatch, program.format(n)) for n in (1, 2))
    assert one.text != two.text


def test_lists_that_hold_themselves_are_told(monkeypatch):
    assert fingerprint(monkeypatch, "a = [1]\na.append(a)\ndef f(x): return x + a[0]") is not None


def f(x, n):
    return np.sqrt(x) * n


SIGNATURES = {
    "the same": ((np.ones(3), 2), {}),
    "another shape": ((np.ones(4), 2), {}),
    "another dtype": ((np.ones(3, "f4"), 2), {}),
    "other strides": ((np.ones(6)[::2], 2), {}),
    "another type of number": ((np.ones(3), 2.0), {}),
    "by keyword": ((np.ones(3),), {"n": 2}),
    "in a list": (([np.ones(3)], 2), {}),
    "in a dict": (({"a": np.ones(3)}, 2), {}),
    "a NumPy number": ((np.ones(3), np.int64(2)), {}),
    "none": ((np.ones(3), None), {}),
}


def test_signatures_are_told_apart():
    static = declared(f)
    texts = {
        name: fingerprint_of(f, key_of(args, kwargs, static)[0]).text
        for name, (args, kwargs) in SIGNATURES.items()
    }
    assert len(set(texts.values())) == len(SIGNATURES)


def test_static_values_are_told_apart():
    static = declared(f, ["n"])
    values = (1, 1.0, True, -0.0, 0.0, "1", None, (1,), np.int64(1), np.sin, np.cos, int, float)
    texts = {fingerprint_of(f, key_of((np.ones(3), value), {}, static)[0]).text for value in values}
    assert len(texts) == len(values)


def vars_of(guard):
    return [getattr(guard, name, None) for name in ("name", "value", "state", "code", "defaults")]


def test_the_guards_of_a_trace_are_among_the_places(monkeypatch):
    program = (
        "import helper\nb = 2\nclass A:\n  def m(self, x): return x * b\n"
        "def f(x): return A().m(x) + helper.twice(x)"
    )
    module(monkeypatch, "helper", HELPER)
    function = module(monkeypatch, "program", program).f
    told, guards = fingerprint_of(function), trace_function(function, (np.ones(3),), {}).guards
    numbers = told.numbers(guards)
    assert {guard.name for guard in guards} == {"A", "b", "f", "helper", "m", "scale", "twice"}
    for number, guard in zip(numbers, guards, strict=True):
        again = told.places[number].guard()
        assert vars_of(again) == vars_of(guard)


def test_guards_of_what_was_not_told_have_no_numbers(monkeypatch):
    program = module(
        monkeypatch, "program", "a, b = 1, 2\ndef f(x): return x + a\ndef g(x): return x + a + b"
    )
    guards = trace_function(program.g, (np.ones(3),), {}).guards
    assert {guard.name for guard in guards} == {"a", "b", "g"}
    assert fingerprint_of(program.f).numbers(guards) is None


PROGRAM = """
import numpy as np
from arrayjit.tracer.calls.fingerprint import fingerprint_of

class A:
    a, b = 1, {"x": (1, 2.5)}
    def m(self, x):
        return x in {"p", "q", "r"}

def g(x, y=np.float32(1)):
    return A().m(x[1:]) + np.linalg.norm(y) + len({"a": 1, "b": 2})

def f(x):
    return [g(y) for y in x] or np.sin(x)

print(fingerprint_of(f, (np.dtype("f4"), (3, 4), int, "name")).text)
"""


def test_another_process_tells_the_same(tmp_path):
    file = tmp_path / "told.py"
    file.write_text(PROGRAM)
    told = set()
    for seed in "123":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(file)]
        told.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(told) == 1
