"""Float sums: as accurate as NumPy's, in an order that can be written down."""

from __future__ import annotations

import numpy as np

from arrayjit.ir.code import Caps
from arrayjit.ir.interp import run
from arrayjit.ir.loops import For, Kernel, LoopKind, walk_statements
from arrayjit.ir.parse import parse
from arrayjit.ir.verify import verify_kernel
from arrayjit.passes.schedule.cascade import CHAIN, cascade
from arrayjit.passes.schedule.collapse import collapse
from arrayjit.passes.schedule.quarters import quarters
from arrayjit.passes.schedule.vectorise import vectorise


def total(n: int) -> Kernel:
    kernel = parse(f"""
def total(x: read[f32, {n}], s: write[f32]):
    acc: f32 = f32(-0.0)
    for i in parallel(0, {n}):
        acc = reduce(add, acc, x[i])
    s[()] = acc
""")
    assert isinstance(kernel, Kernel)
    return kernel


def optimised(kernel: Kernel) -> Kernel:
    for step in (collapse, vectorise, quarters, cascade):
        kernel = step(kernel, Caps())
    verify_kernel(kernel)
    return kernel


def summed(kernel: Kernel, values: np.ndarray) -> np.ndarray:
    source, into = (param.tensor for param in kernel.params)
    result = np.zeros([extent.constant for extent in into.shape], np.float32)
    run(kernel, {source: values, into: result})
    return result


def chain(values: np.ndarray) -> np.ndarray:
    """Added one after another along the last axis."""
    partial = np.full(values.shape[:-1], -0.0, np.float32)
    for k in range(values.shape[-1]):
        partial = partial + values[..., k]
    return partial


def folded(lanes: np.ndarray) -> np.float32:
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return np.float32(lanes[0])


def test_a_long_sum_is_lanes_of_trees_then_folded() -> None:
    values = np.random.default_rng(0).standard_normal(50_000).astype(np.float32)
    tree = values[: 780 * 64].reshape(2, 5, 6, 13, 64).transpose(4, 0, 1, 2, 3)
    overlapping = np.where(np.arange(64) < 48, np.float32(-0.0), values[-128:-64])
    expected = folded(chain(chain(chain(chain(tree)))) + (overlapping + values[-64:]))
    assert summed(optimised(total(50_000)), values) == expected


def test_a_sum_of_a_mebibyte_is_that_of_its_quarters() -> None:
    values = np.random.default_rng(3).standard_normal(270_029).astype(np.float32)
    length = (5 * 7 * 8 * 15 + 16) * 16  # of 67,504 such a quarter would not be 512 bytes apart from the next
    expected = np.float32(-0.0)
    for quarter in values[: 4 * length].reshape(4, length):
        tree = quarter[: -16 * 16].reshape(5, 7, 8, 15, 16).transpose(4, 0, 1, 2, 3)
        left = quarter[-16 * 16 :].reshape(16, 16).T
        expected += folded(chain(chain(chain(chain(tree)))) + chain(left))
    expected += summed(optimised(total(205)), values[4 * length :])
    assert summed(optimised(total(270_029)), values) == expected


def test_no_chain_is_longer_than_numpys() -> None:
    for n in (100, 1000, 4097, 50_000, 999_983):
        loops = [stmt for stmt in walk_statements(optimised(total(n)).body) if isinstance(stmt, For)]
        assert loops
        for loop in loops:
            lanes = loop.lanes if loop.kind is LoopKind.VECTOR else 1
            assert loop.trips in range(CHAIN * lanes + 1), n


def test_sums_of_columns_are_trees_too() -> None:
    kernel = parse("""
def columns(x: read[f32, 5000, 40], s: write[f32, 40]):
    for j in parallel(0, 40):
        acc: f32 = f32(-0.0)
        for i in parallel(0, 5000):
            acc = reduce(add, acc, x[i, j])
        s[j] = acc
""")
    assert isinstance(kernel, Kernel)
    values = np.random.default_rng(1).standard_normal((5000, 40)).astype(np.float32)
    tree = values.T.reshape(40, 4, 5, 5, 5, 10)
    assert np.array_equal(summed(optimised(kernel), values), chain(chain(chain(chain(chain(tree))))))


def test_minus_zeros_add_up_to_minus_zero() -> None:
    result = summed(optimised(total(5000)), np.full(5000, -0.0, np.float32))
    assert result == 0
    assert np.signbit(result)


def test_sums_of_one_sign_err_as_little_as_numpys() -> None:
    """Both errors are those of the last few additions of a balanced tree: equal but for chance."""
    ours, theirs = [], []
    for n in np.geomspace(500, 20_000, 30).astype(int):
        kernel = optimised(total(int(n)))
        for seed in range(20):
            values = np.random.default_rng(seed).random(n, np.float32)
            exact = values.astype(np.float64).sum()
            ours.append((float(summed(kernel, values)) - exact) / exact)
            theirs.append((float(values.sum()) - exact) / exact)
    assert np.sqrt(np.mean(np.square(ours))) <= 1.05 * np.sqrt(np.mean(np.square(theirs)))
    assert np.max(np.abs(ours)) <= 3e-7


def test_a_sum_fused_with_a_map_stores_every_cell_once_more_at_most() -> None:
    kernel = parse("""
def softmax_row(x: read[f32, 1000], y: write[f32, 1000], s: write[f32]):
    acc: f32 = f32(-0.0)
    top: f32 = f32(-inf)
    for i in parallel(0, 1000):
        t: f32 = multiply[f32](x[i], x[i])
        y[i] = t
        acc = reduce(add, acc, t)
        top = reduce(maximum, top, t)
    s[()] = add[f32](acc, top)
""")
    assert isinstance(kernel, Kernel)
    values = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    mapped, result = np.zeros(1000, np.float32), np.zeros((), np.float32)
    arrays = dict(zip((param.tensor for param in kernel.params), (values, mapped, result), strict=True))
    run(optimised(kernel), arrays)
    assert np.array_equal(mapped, values * values)
    assert abs(float(result) - float((values * values).sum() + (values * values).max())) < 1e-3
