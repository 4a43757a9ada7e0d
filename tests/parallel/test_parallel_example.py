"""The rules, and the example: the network trained on four devices is the one trained on one, to rounding."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from arrayjit.demo.network import Digits, Network, batches

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "data_parallel.py"
RULES = HERE.parents[1] / "docs" / "data_parallel.md"
EPOCHS = 4


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture(scope="module")
def data() -> Digits:
    pixels, digits = load_digits(return_X_y=True)
    return Digits.of(pixels[:1500], digits[:1500])


def exact(names: dict[str, Any], data: Digits) -> Network:
    """The training in NumPy, in float64."""
    network = Network(*(weight.astype(np.float64) for weight in Network.random(names["SEED"])))
    velocity = network.zeros()
    for pixels, targets in batches(data, names["BATCH"], EPOCHS, names["SEED"]):
        _, slope = names["slopes"](network, pixels.astype(np.float64), targets.astype(np.float64))
        network, velocity = names["descend"](network, slope, velocity)
    return network


@pytest.mark.parametrize("target", ["llvm", "sync_llvm"])
def test_four_devices_train_the_network_of_one(names: dict[str, Any], data: Digits, target: str) -> None:
    """The tolerance is what rounding the weights may add up to: each step rounds each weight once, by at most
    half a unit in the last place of the largest."""
    one, one_loss = names["trained"](1, data, EPOCHS, target)
    four, four_loss = names["trained"](4, data, EPOCHS, target)
    right = exact(names, data)
    steps = EPOCHS * (len(data.pixels) // names["BATCH"])
    largest = max(float(np.abs(weights).max()) for weights in right)
    tolerance = steps * float(np.spacing(np.float32(largest))) / 2
    assert tolerance < 2e-5
    difference = names["largest_difference"]
    assert difference(one, four) < tolerance
    assert difference(one, right) < tolerance
    assert difference(four, right) < tolerance
    assert abs(one_loss - four_loss) < tolerance


def test_two_trainings_on_four_devices_give_the_same_bits(names: dict[str, Any], data: Digits) -> None:
    (one, one_loss), (other, other_loss) = (names["trained"](4, data, EPOCHS) for _ in range(2))
    assert one_loss == other_loss
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right, strict=True)


def test_the_example_prints_both_and_their_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], names: dict[str, Any]
) -> None:
    monkeypatch.setitem(names["main"].__globals__, "EPOCHS", 1)
    names["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("   ")[0] for line in lines[:2]] == ["devices: 1", "devices: 4"]
    assert float(lines[2].removeprefix("largest difference of a weight: ")) < 1e-5


def test_every_rule_names_a_test() -> None:
    rules = re.split(r"^\d+\. ", RULES.read_text(), flags=re.MULTILINE)[1:]
    written = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    tests = set(re.findall(r"^def (test_\w+)", written, re.MULTILINE))
    for rule in rules:
        named = set(re.findall(r"`(test_\w+)`", rule))
        assert named, rule
        assert named <= tests
