"""Several devices compute together what one computes: the step of a whole batch, update by update."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import arrayjit
from arrayjit.parallel import data_parallel, devices, programs
from arrayjit.parallel.replicas import pairs

TARGETS = ("llvm", "sync_llvm", "interp")
random = np.random.default_rng(0)


class Line(NamedTuple):
    slope: Any
    start: Any


def sums(line: Line, x: np.ndarray, y: np.ndarray) -> tuple[Any, Line]:
    """The squared error of `x @ slope + start` as a guess of y, and its slopes, summed over the batch."""
    gap = x @ line.slope + line.start - y
    return (gap * gap).sum(), Line(2 * (x.T @ gap), 2 * gap.sum(axis=0))


def means(line: Line, x: np.ndarray, y: np.ndarray) -> tuple[Any, Line]:
    loss, slopes = sums(line, x, y)
    return loss / len(x), Line(slopes.slope / len(x), slopes.start / len(x))


def descend(line: Line, slopes: Line) -> Line:
    return Line(line.slope - 0.125 * slopes.slope, line.start - 0.125 * slopes.start)


def whole(rows: int) -> tuple[Line, np.ndarray, np.ndarray]:
    """Whole numbers, of which float64 makes exact sums in any order."""
    draw = np.random.default_rng(rows)
    numbers = (draw.integers(-9, 9, shape).astype(np.float64) for shape in [(3, 2), 2, (rows, 3), (rows, 2)])
    slope, start, x, y = numbers
    return Line(slope, start), x, y


def same(got: Any, wanted: Any) -> None:
    """Equal bits, dtypes and shapes."""
    if isinstance(wanted, tuple):
        assert type(got) is type(wanted)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "rows"), [(1, 5), (2, 4), (3, 8), (4, 4), (5, 13)])
def test_sums_over_shards_are_the_sum_over_the_batch(target: str, count: int, rows: int) -> None:
    line, x, y = whole(rows)
    together = data_parallel(sums, devices(count, target), reduce="sum")
    same(together(line, x, y), sums(line, x, y))


@pytest.mark.parametrize("target", TARGETS)
def test_shards_of_unequal_size_count_by_their_size(target: str) -> None:
    line, x, y = whole(10)
    loss, slopes = data_parallel(means, devices(4, target))(line, x, y)
    exact, exact_slopes = means(line, x, y)
    for got, wanted in zip((loss, *slopes), (exact, *exact_slopes), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14, strict=True)


def test_the_mean_of_equal_shards_is_exact_where_the_sums_are() -> None:
    line, x, y = whole(8)
    same(data_parallel(means, devices(4, "sync_llvm"))(line, x, y), means(line, x, y))


def test_one_device_computes_what_jit_computes() -> None:
    line = Line(random.standard_normal((3, 2)), random.standard_normal(2))
    x, y = random.standard_normal((7, 3)), random.standard_normal((7, 2))
    same(data_parallel(means, devices(1, "sync_llvm"))(line, x, y), arrayjit.jit(means)(line, x, y))


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_changes_the_parameters_on_all_devices(target: str) -> None:
    line, x, y = whole(8)
    train = data_parallel(means, devices(4, target), update=descend)
    model = train.replicate(line)
    for _ in range(3):
        loss = train(model, x, y)
        exact, slopes = means(line, x, y)
        line = descend(line, slopes)
        same(loss, exact)
    same(model.parameters(), line)


def test_a_step_that_returns_gradients_alone_gives_no_value() -> None:
    line, x, y = whole(6)

    def slopes(line: Line, x: np.ndarray, y: np.ndarray) -> Line:
        return sums(line, x, y)[1]

    pair = devices(2, "sync_llvm")
    same(data_parallel(slopes, pair, reduce="sum")(line, x, y), slopes(line, x, y))
    train = data_parallel(slopes, pair, update=descend, reduce="sum")
    model = train.replicate(line)
    assert train(model, x, y) is None
    same(model.parameters(), descend(line, slopes(line, x, y)))


def test_an_update_keeps_state() -> None:
    def move(line: Line, slopes: Line, speed: Line, count: np.int64) -> tuple[Line, Line, np.int64]:
        speed = Line(*(v / 2 - s / (8 * count) for v, s in zip(speed, slopes, strict=True)))
        return Line(*(p + v for p, v in zip(line, speed, strict=True))), speed, count + count

    line, x, y = whole(4)
    state: tuple[Any, ...] = (Line(np.zeros((3, 2)), np.zeros(2)), np.int64(1))
    train = data_parallel(means, devices(2, "sync_llvm"), update=move)
    model = train.replicate(line, *state)
    for _ in range(3):
        train(model, x, y)
        line, *state = move(line, means(line, x, y)[1], *state)
    same(model.parameters(), line)
    same(model.state(), tuple(state))


def test_an_update_may_write_its_arguments() -> None:
    def descend_in_place(line: Line, slopes: Line) -> Line:
        for parameter, slope in zip(line, slopes, strict=True):
            slope *= 0.125
            parameter -= slope
        return line

    line, x, y = whole(4)
    found = []
    for update in (descend, descend_in_place):
        train = data_parallel(means, devices(2, "sync_llvm"), update=update)
        model = train.replicate(line)
        for _ in range(2):
            train(model, x, y)
        found.append(model.parameters())
    same(*found)


def test_an_update_may_return_views_of_its_arguments() -> None:
    def turned(pair: tuple[Any, Any], slopes: tuple[Any, Any]) -> tuple[Any, Any]:
        return pair[1].T, pair[0][::-1]

    def step(pair: tuple[Any, Any], x: np.ndarray) -> tuple[Any, Any]:
        return pair[0] * x.sum(), pair[1] * x.sum()

    given = random.random((3, 3)), random.random((3, 3))
    train = data_parallel(step, devices(2, "sync_llvm"), update=turned)
    model = train.replicate(given)
    train(model, np.ones(2))
    same(model.parameters(), (given[1].T.copy(), given[0][::-1].copy()))


@pytest.mark.parametrize("target", TARGETS)
def test_a_step_may_return_views_and_its_arguments(target: str) -> None:
    def step(given: dict[str, Any], x: np.ndarray) -> Any:
        whole = given["square"] * x.sum()
        parts = {
            "square": whole.T,
            "row": whole[1, ::-1],
            "flat": whole.reshape(-1)[2:6],
            "last": given["last"],
        }
        return (parts["row"], given["last"], (x @ x.T).T.sum()), parts

    given = {"square": random.random((3, 3)), "row": np.ones(3), "flat": np.ones(4), "last": random.random(2)}
    x = np.array([[1.0, 2.0], [3.0, -4.0]])
    value, parts = data_parallel(step, devices(2, target), reduce="sum")(given, x)
    shards = [step(given, row) for row in (x[:1], x[1:])]
    same(value, tuple(one + other for one, other in zip(shards[0][0], shards[1][0], strict=True)))
    for name, part in parts.items():
        same(part, shards[0][1][name] + shards[1][1][name])


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_values_may_be_nested_and_of_any_dtype(reduce: Any) -> None:
    def step(scale: Any, x: np.ndarray) -> Any:
        return {"largest": x.max(), "some": (x > 2, 3 * x), "none": None}, scale * x.sum()

    x = np.array([1, 3, 2, 4], np.int32)
    value, _ = data_parallel(lambda s, x: step(s, x[0]), devices(2, "sync_llvm"), reduce=reduce)(
        2.0, np.stack([x, x])
    )
    share = 1 if reduce == "mean" else 2
    kind = np.float64 if reduce == "mean" else np.int32
    same(value["largest"], kind(4 * share))
    same(value["some"][0], ((x > 2) * share).astype(np.float64 if reduce == "mean" else np.int64))
    same(value["some"][1], (3 * x * share).astype(kind))
    assert value["none"] is None


def test_the_arguments_stay_as_they_are_and_may_change_afterwards() -> None:
    line, x, y = whole(4)
    train = data_parallel(means, devices(2), update=descend)
    model = train.replicate(line)
    kept = [array.copy() for array in (*line, x, y)]
    train(model, x, y)
    same((*line, x, y), tuple(kept))
    wanted = model.parameters()
    model.load(line)
    for array in line:
        array[...] = np.nan
    train(model, x, y)
    x[...] = y[...] = np.nan
    same(model.parameters(), wanted)


def test_batches_of_any_layout_are_taken() -> None:
    line, x, y = whole(6)
    layouts = [(np.asfortranarray(x), y), (x[::-1], y[::-1]), (x.astype(">f8"), y)]
    together = data_parallel(sums, devices(2, "sync_llvm"), reduce="sum")
    for given in layouts:
        same(together(line, *given), sums(line, x, y))


def test_arrays_on_devices_are_taken() -> None:
    line, x, y = whole(6)
    together = data_parallel(sums, devices(2, "sync_llvm"), reduce="sum")
    there = Line(arrayjit.asarray(line.slope), line.start)
    same(together(there, arrayjit.asarray(x), y), sums(line, x, y))


def test_batches_of_several_sizes_go_on_with_the_same_parameters() -> None:
    line, *_ = whole(1)
    train = data_parallel(sums, devices(2, "sync_llvm"), update=descend, reduce="sum")
    model = train.replicate(line)
    for rows in (4, 7, 4, 2):
        _, x, y = whole(rows)
        train(model, x, y)
        line = descend(line, sums(line, x, y)[1])
        same(model.parameters(), line)


def test_two_models_are_trained_side_by_side() -> None:
    first, x, y = whole(4)
    second = Line(first.slope + 1, first.start - 1)
    train = data_parallel(means, devices(2, "sync_llvm"), update=descend)
    models = [train.replicate(line) for line in (first, second)]
    for _ in range(2):
        for model in models:
            train(model, x, y)
    for model, line in zip(models, (first, second), strict=True):
        for _ in range(2):
            line = descend(line, means(line, x, y)[1])
        same(model.parameters(), line)


def test_another_function_may_read_the_parameters() -> None:
    line, x, y = whole(4)
    pair = devices(2, "sync_llvm")
    train, look = data_parallel(means, pair, update=descend), data_parallel(means, pair)
    model = train.replicate(line)
    train(model, x, y)
    same(look(model, x, y), means(descend(line, means(line, x, y)[1]), x, y))


scale = np.array(2.0)


def scaled(weight: Any, x: np.ndarray) -> Any:
    return weight * scale * x.sum()


def test_arrays_that_the_step_finds_elsewhere_count_as_they_are_at_the_call() -> None:
    together = data_parallel(scaled, devices(2, "sync_llvm"), reduce="sum")
    x = np.array([1.0, 2.0])
    assert together(1.0, x) == 6
    scale[...] = 3
    assert together(1.0, x) == 9


def test_a_name_that_is_bound_anew_is_traced_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    together = data_parallel(scaled, devices(2, "sync_llvm"), reduce="sum")
    x = np.array([1.0, 2.0])
    monkeypatch.setitem(globals(), "scale", 4.0)
    assert together(1.0, x) == 12
    monkeypatch.setitem(globals(), "scale", 5.0)
    assert together(1.0, x) == 15


def test_jitted_functions_are_taken() -> None:
    line, x, y = whole(4)
    train = data_parallel(arrayjit.jit(means), devices(2, "sync_llvm"), update=arrayjit.jit(descend))
    model = train.replicate(line)
    train(model, x, y)
    same(model.parameters(), descend(line, means(line, x, y)[1]))


def test_the_step_is_traced_once_for_each_shape_of_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []

    def counted(function: Callable[..., Any], *args: Any) -> Any:
        traced.append(function)
        return trace(function, *args)

    trace = programs.trace_function
    monkeypatch.setattr(programs, "trace_function", counted)
    line, x, y = whole(10)
    train = data_parallel(means, devices(4, "sync_llvm"), update=descend)
    for _ in range(2):
        model = train.replicate(line)
        for _ in range(2):
            train(model, x, y)
    assert traced == [means, means, descend]


@pytest.mark.parametrize("count", range(1, 18))
def test_UT_12_values_are_merged_in_a_tree_that_ends_at_the_first_device(count: int) -> None:
    """Row UT-12: pairwise merges converging on position 0 for any device count."""
    held = [{number} for number in range(count)]
    depth = [0] * count
    for into, out_of in pairs(count):
        assert not held[into] & held[out_of]
        held[into] |= held[out_of]
        held[out_of] = set()
        depth[into] = max(depth[into], depth[out_of]) + 1
    assert held == [set(range(count)), *[set()] * (count - 1)]
    assert depth[0] == math.ceil(math.log2(count))
