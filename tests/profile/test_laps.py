"""A kernel with a clock computes the same, in parts that a user knows again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit import spec
from arrayjit.ir.code import Caps
from arrayjit.ir.loops import For, Kernel, Lap, walk_statements
from arrayjit.ir.params import ArrayParam
from arrayjit.ir.parse import parse
from arrayjit.ir.text import print_kernel
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.structure.prune import prune
from arrayjit.profile.laps import Timed, timed
from arrayjit.profile.lines import assigned, shares
from arrayjit.stages import Lowered

N = 100_000


def lowered(function: Callable[..., Any], *args: Any, target: str = "llvm") -> Lowered:
    return arrayjit.jit(function, target=target).lower(*args)


def clock(function: Callable[..., Any], *args: Any, target: str = "llvm") -> Timed:
    return timed(lowered(function, *args, target=target).build.optimized.kernel)


def laps(found: Timed) -> list[int]:
    return [stmt.number for stmt in walk_statements(found.kernel.body) if isinstance(stmt, Lap)]


def twice(x: Any) -> Any:
    return np.cumsum(np.cumsum(x))


def steps(x: Any, n: int) -> Any:
    for _ in range(n):
        y = np.cumsum(np.exp(x))
        x[:] = y[::-1] / y.max()
    return x.sum()


def small_steps(x: Any, n: int) -> None:
    for _ in range(n):
        x[:] = np.cumsum(x)[::-1] / 2


def test_one_nest_is_one_part() -> None:
    assert laps(clock(lambda x: x * 2 + 1, spec(N))) == [0, 1]


def test_nests_that_write_different_arrays_are_parts() -> None:
    found = clock(twice, spec(N))
    assert laps(found) == list(range(len(found.parts) + 1))
    assert len(found.parts) >= 2


def test_whole_vectors_and_what_they_leave_are_one_part() -> None:
    """The sum of a number of cells that only the call knows is made in several loops."""
    assert laps(clock(lambda x, n: x[:n].sum(), spec(N), spec((), np.int64))) == [0, 1]


def test_parts_without_a_cell_of_their_own_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clock(steps, spec(N), spec((), np.int64))
    monkeypatch.setattr("arrayjit.profile.laps.MOST", 2)
    found = clock(steps, spec(N), spec((), np.int64))
    assert len(whole.parts) > 3
    assert [part.number for part in found.parts] == [1, 2, 3]
    assert set(laps(found)) == {0, 1, 2, 3}
    assert found.times.size == 4


def test_a_long_loop_of_the_user_s_is_measured_inside() -> None:
    found = clock(steps, spec(N), spec((), np.int64))
    (loop,) = [stmt for stmt in found.kernel.body if isinstance(stmt, For) and has_laps(stmt)]
    assert len([stmt for stmt in loop.body if isinstance(stmt, Lap)]) >= 3
    assert isinstance(found.kernel.body[-1], Lap)


def has_laps(loop: For) -> bool:
    return any(isinstance(stmt, Lap) for stmt in walk_statements(loop.body))


def test_a_short_one_is_measured_as_a_whole() -> None:
    found = clock(small_steps, spec(10), spec((), np.int64))
    assert not any(has_laps(stmt) for stmt in found.kernel.body if isinstance(stmt, For))


def test_how_long_a_loop_is_can_depend_on_an_argument() -> None:
    def sums(x: Any, n: int) -> None:
        for _ in range(50):
            x[:n] = np.cumsum(x[:n])[::-1] / 2

    kernel = lowered(sums, spec(N), spec((), np.int64)).build.optimized.kernel
    n = next(p.tensor for p in kernel.params if isinstance(p, ArrayParam) and p.tensor.label == "n")
    lengths = [len(timed(kernel, {n: count}).parts) for count in (10, N)]
    assert lengths[0] == 1
    assert lengths[1] > 1


def test_the_condition_of_a_loop_is_measured_too() -> None:
    def halve(x: Any) -> Any:
        return arrayjit.while_loop(lambda v: np.abs(v).sum() > 1, lambda v: v / 2, x)

    found = clock(halve, spec(N))
    assert len(found.parts) >= 2


@pytest.mark.parametrize("target", ["llvm", "sync_llvm", "c", "interp"])
@pytest.mark.parametrize("function", [steps, small_steps, twice])
def test_kernels_with_a_clock_are_kernels(function: Callable[..., Any], target: str) -> None:
    args = (spec(N),) if function is twice else (spec(N), spec((), np.int64))
    found = clock(function, *args, target=target)
    verify_kernel(found.kernel)
    text = print_kernel(found.kernel)
    assert "lap(times, 0)" in text
    parsed = parse(text)
    assert isinstance(parsed, Kernel)
    assert print_kernel(parsed) == text


@pytest.mark.parametrize("target", ["llvm", "sync_llvm", "c", "interp"])
def test_the_cells_have_the_time_of_each_part(target: str) -> None:
    """In order, each at least a little, together no more than the run took."""
    build = lowered(twice, spec(500), target=target).build
    found = timed(build.optimized.kernel)
    procedure = build.backend.get_device(0).load(build.backend.target.emit(found.kernel))
    tensors = [param.tensor for param in procedure.params if isinstance(param, ArrayParam)]
    arrays = [np.ones([e.constant for e in t.shape], t.dtype.numpy) for t in tensors]
    arrays[-1][:] = 0
    procedure.launch([array.ctypes.data for array in arrays])
    times, count = arrays[-1], len(found.parts)
    assert (times[1 : count + 1] > 0).all()
    assert not times[count + 1 :].any()
    np.testing.assert_array_equal(arrays[-2], np.cumsum(np.cumsum(np.ones(500))))


def lines_of(function: Callable[..., Any], *args: Any) -> list[dict[int, float]]:
    """For each part the lines, counted from the function's first, and their shares."""
    built = lowered(function, *args)
    found = timed(built.build.optimized.kernel)
    program = prune(built.build.optimized.loops, Caps())
    first = function.__code__.co_firstlineno
    parts = shares(assigned(program, built.numbers, found.parts))
    return [{loc.line - first: share for loc, share in part.items()} for part in parts]


def test_a_part_is_for_the_lines_that_write_what_it_writes() -> None:
    parts = lines_of(steps, spec(N), 3)
    assert [max(part, key=part.__getitem__) for part in parts][-2:] == [3, 4]
    assert all(abs(sum(part.values()) - 1) < 1e-9 for part in parts)
    assert {line for part in parts for line in part} == {2, 3, 4}


def test_lines_that_were_joined_share_by_their_work() -> None:
    def mixed(x: Any) -> Any:
        y = np.exp(x)
        z = y + 1.0
        return z * 2.0

    (part,) = lines_of(mixed, spec(N))
    assert part.keys() == {1, 2, 3}
    assert part[1] > part[2] > 0


def test_what_is_prepared_for_a_product_is_for_its_line() -> None:
    def product(a: Any, b: Any) -> Any:
        return a @ b

    parts = lines_of(product, spec((700, 700)), spec((700, 700)))
    assert [list(part) for part in parts] == [[1]] * len(parts)


def test_a_number_made_of_an_array_belongs_to_its_line() -> None:
    def scaled(x: Any) -> Any:
        top = x.max()
        return x / top

    parts = lines_of(scaled, spec(N))
    assert [list(part) for part in parts] == [[1], [2]]
