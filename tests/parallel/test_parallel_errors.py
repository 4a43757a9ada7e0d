"""Mistakes are named, and what was computed before them stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from arrayjit.errors import (
    DeviceError,
    DTypeError,
    IndexOutOfRange,
    NumberError,
    ShapeError,
    UnknownTarget,
    UnsupportedError,
)
from arrayjit.parallel import data_parallel, devices

TARGETS = ("llvm", "sync_llvm", "interp")


def step(weights: np.ndarray, x: np.ndarray) -> tuple[Any, np.ndarray]:
    return x.sum(), weights * x.sum()


def descend(weights: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    return weights - slopes


def pair() -> Any:
    return devices(2, "sync_llvm")


def test_no_device() -> None:
    with pytest.raises(DeviceError, match="there are no devices"):
        data_parallel(step, [])
    with pytest.raises(NumberError, match="0 devices"):
        devices(0)


def test_the_same_device_twice() -> None:
    first, second = pair()
    with pytest.raises(DeviceError, match="sync_llvm:0 is given twice"):
        data_parallel(step, [first, second, first])
    with pytest.raises(DeviceError, match="sync_llvm:0 is given twice"):
        data_parallel(step, ["sync_llvm", "sync_llvm:0"])


@pytest.mark.parametrize("name", ["nowhere", "nowhere:0", "llvm:first"])
def test_a_device_that_is_not_there(name: str) -> None:
    with pytest.raises(UnknownTarget):
        data_parallel(step, [name])


def test_a_way_to_reduce_that_is_not_there() -> None:
    with pytest.raises(UnsupportedError, match="reduce is 'max'"):
        data_parallel(step, pair(), reduce="max")  # type: ignore[arg-type]


def test_a_batch_with_fewer_rows_than_devices() -> None:
    with pytest.raises(ShapeError, match="a batch of 1 cannot be split over 2 devices"):
        data_parallel(step, pair())(np.ones(3), np.ones(1))


def test_arrays_of_a_batch_with_different_leading_extents() -> None:
    with pytest.raises(ShapeError, match="no leading extent in common") as error:
        data_parallel(step, pair())(np.ones(3), {"x": np.ones((4, 2)), "y": np.ones(5)})
    assert "batch_0_x: (4, 2)" in str(error.value)


@pytest.mark.parametrize("batch", [(), (2.0,), (np.float64(2),), (np.array(2.0),), ([1.0, 2.0],)])
def test_a_batch_that_cannot_be_split(batch: Any) -> None:
    with pytest.raises(ShapeError, match="no leading extent in common"):
        data_parallel(step, pair())(np.ones(3), *batch)


def test_a_subclass_of_ndarray() -> None:
    for given in [(np.ma.array(np.ones(3)), np.ones(4)), (np.ones(3), np.ma.array(np.ones(4)))]:
        with pytest.raises(UnsupportedError, match="subclass of ndarray"):
            data_parallel(step, pair())(*given)


def test_an_element_type_that_is_not_supported() -> None:
    with pytest.raises(DTypeError, match="complex128"):
        data_parallel(step, pair())(np.ones(3, complex), np.ones(4))


def test_no_parameters() -> None:
    with pytest.raises(ShapeError, match="there are no parameters"):
        data_parallel(step, pair()).replicate(())


def test_gradients_of_another_structure() -> None:
    def wrong(weights: Any, x: np.ndarray) -> Any:
        return [weights["a"] * x.sum()]

    with pytest.raises(ShapeError, match="neither gradients nor") as error:
        data_parallel(wrong, pair())({"a": np.ones(3)}, np.ones(4))
    assert "[array]" in str(error.value)
    assert "{'a': array}" in str(error.value)


def test_gradients_of_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"gradient of parameters has shape \(\), the parameter \(3,\)"):
        data_parallel(lambda weights, x: x.sum(), pair())(np.ones(3), np.ones(4))


def test_a_value_with_a_row_for_each_example() -> None:
    together = data_parallel(lambda weights, x: (2 * x, weights * x.sum()), pair())
    with pytest.raises(ShapeError, match="other shapes for other sizes"):
        together(np.ones(3), np.ones(5))


def test_a_value_that_does_not_depend_on_the_batch() -> None:
    with pytest.raises(UnsupportedError, match="the same for every batch"):
        data_parallel(lambda weights, x: (len(x), weights * x.sum()), pair())(np.ones(3), np.ones(4))


def test_results_of_a_size_that_only_the_run_knows() -> None:
    with pytest.raises(UnsupportedError, match="only the run knows"):
        data_parallel(lambda weights, x: (x[x > 0], weights * x.sum()), pair())(np.ones(3), np.ones(4))


@pytest.mark.parametrize("argument", ["weights", "x"])
def test_a_step_that_writes_its_arguments(argument: str) -> None:
    def careless(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        (weights if argument == "weights" else x)[...] = 0
        return weights * x.sum()

    with pytest.raises(UnsupportedError, match=f"step writes its argument {argument}"):
        data_parallel(careless, pair())(np.ones(3), np.ones(4))


elsewhere = np.zeros(3)


def test_a_step_that_writes_an_array_that_is_no_argument() -> None:
    def careless(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        elsewhere[...] = weights
        return weights * x.sum()

    with pytest.raises(UnsupportedError, match="step writes an array that is no argument"):
        data_parallel(careless, pair())(np.ones(3), np.ones(4))


@pytest.mark.parametrize(
    ("update", "error", "words"),
    [
        (lambda w, g: (w, g), ShapeError, "something else than new parameters"),
        (lambda w, g: w[1:], ShapeError, r"float64 \(2,\) as new, which is float64 \(3,\)"),
        (lambda w, g: (w - g).astype(np.float32), DTypeError, r"float32 \(3,\) as new"),
    ],
)
def test_an_update_that_returns_something_else(update: Any, error: Any, words: str) -> None:
    train = data_parallel(step, pair(), update=update)
    model = train.replicate(np.ones(3))
    with pytest.raises(error, match=words):
        train(model, np.ones(4))
    np.testing.assert_array_equal(model.parameters(), np.ones(3))


def test_arrays_in_place_of_replicated_parameters() -> None:
    with pytest.raises(UnsupportedError, match="not on the devices"):
        data_parallel(step, pair(), update=descend)(np.ones(3), np.ones(4))


def test_state_without_an_update() -> None:
    with pytest.raises(UnsupportedError, match="state without an update"):
        data_parallel(step, pair()).replicate(np.ones(3), np.ones(3))


def test_parameters_on_other_devices() -> None:
    model = data_parallel(step, pair()).replicate(np.ones(3))
    with pytest.raises(DeviceError, match="on other devices"):
        data_parallel(step, pair())(model, np.ones(4))


@pytest.mark.parametrize("other", [np.ones(4), np.ones(3, np.float32), [np.ones(3)]])
def test_loading_something_else(other: Any) -> None:
    model = data_parallel(step, pair()).replicate(np.ones(3))
    with pytest.raises(ShapeError, match="not those that were replicated"):
        model.load(other)
    np.testing.assert_array_equal(model.parameters(), np.ones(3))


def test_errors_name_the_user_s_line() -> None:
    with pytest.raises(ShapeError) as error:
        data_parallel(step, pair())(np.ones(3), np.ones(1))
    assert __file__ in str(error.value)


def picked(weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    return weights * weights[places].sum()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shard", range(3))
def test_a_step_that_raises_on_one_device(target: str, shard: int) -> None:
    """The error names the device; no device's parameters have changed, and training goes on."""
    places = np.zeros(6, np.int64)
    wrong = places.copy()
    wrong[2 * shard] = 99
    group = devices(3, target)
    train = data_parallel(picked, group, update=descend, reduce="sum")
    model = train.replicate(np.array([1.0, 2.0]))
    for _ in range(2):
        with pytest.raises(IndexOutOfRange, match="out of bounds") as error:
            train(model, wrong)
        assert f"on {group[shard].name}" in str(error.value)
        np.testing.assert_array_equal(model.parameters(), [1.0, 2.0])
    train(model, places)
    np.testing.assert_array_equal(model.parameters(), [-5.0, -10.0])
    train(model, places)
    np.testing.assert_array_equal(model.parameters(), [-155.0, -310.0])


def _trained(train: Any, model: Any, *batch: Any) -> Any:
    train(model, *batch)
    return model.parameters()


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_that_raises(target: str) -> None:
    """By the time the parameters are asked for it is known; they are as they were before, on all devices."""

    def jump(weights: np.ndarray, slopes: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return weights + weights[place], place + 1

    train = data_parallel(picked, devices(2, target), update=jump, reduce="sum")
    model = train.replicate(np.array([1.0, 2.0]), np.array([0, 0]))
    places = np.zeros(2, np.int64)
    for _ in range(2):
        train(model, places)
        model.parameters()
    known = model.parameters()
    np.testing.assert_array_equal(known, [5.0, 6.0])
    with pytest.raises(IndexOutOfRange, match="out of bounds"):
        _trained(train, model, places)
    np.testing.assert_array_equal(model.parameters(), known)
    np.testing.assert_array_equal(model.state()[0], [2, 2])
    model.load(known, np.array([1, 0]))
    train(model, places)
    np.testing.assert_array_equal(model.parameters(), [11.0, 11.0])


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_that_raises_half_way(target: str) -> None:
    """What it wrote stays written, as in NumPy, and all devices then have it."""

    def jump(weights: np.ndarray, slopes: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights += 1
        slopes[place] = 0
        return weights, place

    group = devices(4, target)
    train = data_parallel(picked, group, update=jump, reduce="sum")
    look = data_parallel(picked, group, reduce="sum")
    model = train.replicate(np.array([1.0, 2.0]), np.array([9]))
    places = np.zeros(4, np.int64)
    with pytest.raises(IndexOutOfRange, match="out of bounds"):
        _trained(train, model, places)
    np.testing.assert_array_equal(model.parameters(), [2.0, 3.0])
    np.testing.assert_array_equal(look(model, places), [16.0, 24.0])
