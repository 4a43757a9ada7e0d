"""How a jitted function gets at functions: imports, aliases, decorators, tables, caches, packages."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import numpy as np
import numpy.linalg as la
import pytest
from harness import assert_same
from likeness import TARGETS, assert_runs_as_in_numpy
from numpy import ndarray, zeros
from numpy.linalg import norm
from numpy.typing import NDArray

import arrayjit

try:
    import package_that_is_not_installed as xp
except ImportError:
    import numpy as xp

MAKERS = (np.zeros, np.ones, numpy.empty)
BY_NAME = {
    "zeros": np.zeros,
    "sum": np.sum,
    "norm": np.linalg.norm,
    "negative": np.negative,
    "largest": np.ndarray.max,
}
HALF = functools.partial(np.full, fill_value=0.5)


class Backend:
    zeros = np.zeros
    linspace = np.linspace
    add = np.add
    module = np


def numbers() -> np.ndarray:
    return np.linspace(1.0, 2.0, 6)


def filled(make: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    result = make(6)
    result[:] = 0.0
    result[1:] = x[:-1]
    return result


def imported_inside(x: np.ndarray) -> np.ndarray:
    import numpy as inner
    from numpy import ones
    from numpy.linalg import norm as length

    return filled(inner.zeros, x) + filled(ones, x) + length(x)


def allocated(x: np.ndarray) -> np.ndarray:
    result = ndarray((6,), np.float64)
    result[:] = x
    other = numpy.ndarray(shape=(6,), dtype=x.dtype)
    other[...] = result * 2
    return other


def with_default(x: np.ndarray, xp: Any = np) -> np.ndarray:
    return filled(xp.zeros, x)


def with_local(x: np.ndarray) -> np.ndarray:
    lib, make = np, np.zeros
    return filled(lib.ones, x) + filled(make, x) + lib.linalg.norm(x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: filled(zeros, x) + norm(x) + la.norm(x) + np.linalg.norm(x),
        imported_inside,
        allocated,
        with_default,
        with_local,
        lambda x: filled(xp.zeros, x),
        lambda x: filled(getattr(np, "zeros"), x),  # noqa: B009
        lambda x: sum(filled(make, x) for make in MAKERS),
        lambda x: filled(BY_NAME["zeros"], x) + BY_NAME["sum"](x) + BY_NAME["norm"](x),
        lambda x: BY_NAME["negative"](filled(HALF, x)),
        lambda x: filled(Backend.zeros, x) + Backend.module.zeros(6) + Backend.add(x, 1),
        lambda x: Backend.linspace(0.0, 1.0, 6) + x,
        lambda x: with_default(x, np),
        lambda x: with_default(x, xp=Backend),
        lambda x: sum(map(ndarray.mean, [x, 2 * x])) + np.ndarray.reshape(x, (2, 3)),
        lambda x: BY_NAME["largest"](x) + np.ndarray.__mul__(x, 2) + ndarray.astype(x, "f4"),
    ],
)
def test_numpy_however_it_is_reached(program: Callable[..., Any]) -> None:
    assert_runs_as_in_numpy(lambda: (program, (numbers(),)))


def test_numpy_as_an_argument() -> None:
    assert_runs_as_in_numpy(lambda: (with_default, (numbers(), np)))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of the user's with modules that import one another."""
    folder = tmp_path / "simulation"
    files = {
        "__init__.py": "from .grid import *\nfrom . import solver\nfrom .solver import step as advance\n",
        "grid.py": """
            from numpy import *
            __all__ = ["cells", "TABLE"]
            TABLE = arange(6.0)
            def cells(x):
                result = zeros(6)
                for i in range(6):
                    result[i] = x[i] + TABLE[i]
                return result
        """,
        "solver.py": """
            import numpy as np
            from .grid import cells
            from . import grid
            def step(x, depth=3):
                if depth == 0:
                    return cells(x)
                result = np.empty(6)
                result[:] = step(x, depth - 1) * 2 + grid.TABLE
                return result
            def late(x):
                from . import grid as later
                from .grid import cells as counted
                plain = __import__("simulation.grid", fromlist=["TABLE"])
                return counted(x) + later.TABLE * plain.TABLE
            class Solver:
                def __init__(self, x):
                    self.x = x
                def run(self):
                    return step(self.x) + grid.cells(self.x)
        """,
    }
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("simulation")
    for name in [name for name in sys.modules if name.partition(".")[0] == "simulation"]:
        del sys.modules[name]


def test_packages_of_the_user(package: Any) -> None:
    advance = package.advance

    def program(x: np.ndarray) -> Any:
        from simulation.solver import Solver

        whole = package.cells(x) + package.solver.step(x, 1) + package.TABLE + package.grid.TABLE
        return whole + advance(x) + Solver(x).run() + package.solver.Solver(x).run()

    assert_runs_as_in_numpy(lambda: (program, (numbers(),)))


def test_packages_import_their_own_modules_inside_functions(package: Any) -> None:
    assert_runs_as_in_numpy(lambda: (lambda x: package.solver.late(x), (numbers(),)))


def test_a_name_rebound_in_another_module_is_noticed(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = arrayjit.jit(lambda x: package.solver.step(x))
    jitted(numbers())
    monkeypatch.setattr(package.grid, "TABLE", np.ones(6))
    assert_same(jitted(numbers()), package.solver.step(numbers()))
    monkeypatch.setattr(package.solver, "cells", lambda x: x)
    assert_same(jitted(numbers()), package.solver.step(numbers()))


def test_a_module_attribute_is_not_assigned(package: Any) -> None:
    def program(x: np.ndarray) -> Any:
        package.grid.TABLE = x
        return x

    with pytest.raises(arrayjit.UnsupportedError, match=r"assigns simulation\.grid\.TABLE") as caught:
        arrayjit.jit(program)(numbers())
    assert caught.value.loc is not None
    assert caught.value.loc.source() == "package.grid.TABLE = x"
    assert_same(package.grid.TABLE, np.arange(6.0))


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        total = np.zeros(6)
        total += function(*args, **kwargs)
        return total * 2

    return wrapper


@doubled
def decorated(x: np.ndarray) -> np.ndarray:
    return filled(np.zeros, x)


@functools.lru_cache(maxsize=None)  # noqa: UP033
def window(n: int) -> np.ndarray:
    result = np.zeros(n)
    for i in range(n):
        result[i] = i
    return result


@functools.cache
def weight(x: Any) -> Any:
    return x * 2.0


@functools.singledispatch
def area(shape: Any) -> Any:
    return np.zeros(6)


@area.register
def _(shape: np.ndarray) -> Any:
    return filled(np.zeros, shape)


@area.register
def _(shape: Backend) -> Any:
    return filled(np.ones, np.arange(6.0))


class Disc:
    def __init__(self, radius: Any) -> None:
        self.radius = radius


@area.register
def _(shape: Disc) -> Any:
    return filled(np.ones, shape.radius)


class Painter:
    @functools.singledispatchmethod
    def colour(self, shape: Any) -> Any:
        return np.zeros(6)

    @colour.register
    def _(self, shape: np.ndarray) -> Any:
        return filled(np.zeros, shape)

    @colour.register
    def _(self, shape: Disc) -> Any:
        return filled(np.ones, shape.radius)

    @functools.singledispatchmethod
    @classmethod
    def of(cls, shape: Any) -> Any:
        return np.full(6, len(cls.__name__))

    @of.register
    @classmethod
    def _(cls, shape: np.ndarray) -> Any:
        return filled(np.ones, shape) * len(cls.__name__)


def disc_and_its_area(x: np.ndarray) -> Any:
    disc = Disc(x)
    return area(disc), Painter().colour(disc), Painter().colour(x), Painter().colour(1), Painter.of(x)


def rows(x: np.ndarray) -> Iterator[Any]:
    for i in range(3):
        part = np.zeros(6)
        part[i] = x[i]
        yield part


def outer(scale: float) -> Callable[..., Any]:
    memory = np.arange(6.0)

    def inner(x: np.ndarray) -> np.ndarray:
        result = np.zeros(6)
        result[:] = x * scale + memory
        return result

    return inner


INNER = outer(3.0)
TABLE = [lambda x: filled(np.zeros, x), lambda x: filled(np.ones, x) * 2, decorated, INNER, Backend.add]


@pytest.mark.parametrize(
    "program",
    [
        decorated,
        lambda x: decorated(x) + decorated(x=x),
        lambda x: x * window(6) + window(6)[2],
        lambda x: x * float(weight(2.0)) + weight(x[0]),
        lambda x: area(x) + area(Backend()) + area("other"),
        disc_and_its_area,
        lambda x: sum(rows(x)) + sum(part for part in rows(x)),
        lambda x: INNER(x) + outer(2.0)(x),
        lambda x: sum(function(x) for function in TABLE[:4]) + TABLE[4](x, 1),
        lambda x: functools.reduce(lambda a, f: f(a), TABLE[:3], x),
        lambda x: sum(map(TABLE[0], [x, x + 1])),
        lambda x: sorted([3, 1, 2], key=lambda n: -n)[0] * x,
    ],
)
def test_functions_however_they_are_wrapped(program: Callable[..., Any]) -> None:
    assert_runs_as_in_numpy(lambda: (program, (numbers(),)))


def test_a_cached_array_is_one_array() -> None:
    def program(x: np.ndarray) -> Any:
        memory = window(5)
        memory[1:] += x[1:5]
        return memory * 1

    for target in TARGETS:
        window.cache_clear()
        wanted = program(numbers()), program(numbers())
        window.cache_clear()
        jitted = arrayjit.jit(program, target=target)
        assert_same((jitted(numbers()), jitted(numbers())), wanted)
        assert_same(window(5), wanted[1])
    assert type(window(5)) is np.ndarray


def test_traced_values_do_not_stay_in_a_cache() -> None:
    weight.cache_clear()
    arrayjit.jit(lambda x: weight(x[0]) + x)(numbers())
    assert weight.cache_info().currsize == 0
    with pytest.raises(TypeError, match="unhashable"):
        arrayjit.jit(lambda x: weight(x))(numbers())


def test_numpy_is_the_same_afterwards() -> None:
    before = {name: dict(vars(module)) for name, module in sys.modules.items() if name.startswith("numpy")}
    arrayjit.jit(imported_inside)(numbers())
    for name, members in before.items():
        now = vars(sys.modules[name])
        assert all(
            now[member] is value for member, value in members.items() if not member.startswith("__warn")
        )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package that is not the user's."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = """
        import numpy as np
        OFFSETS = np.arange(6.0)
        def scaled(x):
            return np.sqrt(x) * OFFSETS + len(x)
        def windowed(x):
            result = np.zeros(6)
            result[:] = x
            return result
        class Window:
            def __init__(self):
                self.values = np.ones(6)
            def apply(self, x):
                return x * self.values
    """
    (folder / "installed_window.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("installed_window")
    del sys.modules["installed_window"]


def test_installed_packages_are_left_as_they_are(installed: Any) -> None:
    window = installed.Window()

    class Mine(installed.Window):  # type: ignore[misc]
        def twice(self, x: np.ndarray) -> np.ndarray:
            return filled(np.zeros, self.apply(x)) + self.values

    mine = Mine()
    assert_runs_as_in_numpy(
        lambda: (
            lambda x: installed.scaled(x) + window.apply(x) + mine.twice(x) + Mine().twice(x),
            (numbers(),),
        )
    )


def test_what_an_installed_package_cannot_do_is_an_error_at_its_line(installed: Any) -> None:
    with pytest.raises(arrayjit.ConcretizationError) as caught:
        arrayjit.jit(lambda x: installed.windowed(x))(numbers())
    assert caught.value.loc is not None
    assert caught.value.loc.source() == "result[:] = x"
    assert "create arrays inside the jitted function" in str(caught.value)


def by_types(x: Any) -> Any:
    @functools.singledispatch
    def of(value: Any) -> Any:
        return "something else"

    @of.register(np.ndarray)
    def _(value: Any) -> Any:
        return value * 3

    @of.register(range)
    def _(value: Any) -> int:
        return len(value)

    kinds = issubclass(type(x), np.ndarray), issubclass(float, np.ndarray), issubclass(range, object)
    return of(x), of(range(4)), of("text"), kinds


def types_with_parameters(x: Any) -> Any:
    kinds = NDArray[np.float64], np.ndarray[Any, np.dtype[Any]], np.ndarray | None
    return x * len(kinds)


@pytest.mark.parametrize("program", [by_types, types_with_parameters])
def test_arrays_and_ranges_are_types_for_dispatch_and_annotations(program: Callable[..., Any]) -> None:
    assert_runs_as_in_numpy(lambda: (program, (np.arange(4.0),)))


def test_every_test_that_the_rules_name_exists() -> None:
    here = Path(__file__).parent
    rules = (here.parents[1] / "docs" / "names.md").read_text()
    tests = "".join(path.read_text() for path in here.glob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", rules)
    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in tests] == []
