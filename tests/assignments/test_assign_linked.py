"""Hand-written programs on devices: compiled, linked, scheduled, with merge buffers and static symbols."""

from __future__ import annotations

import numpy as np
import pytest

from arrayjit.assignments import (
    Mode,
    Node,
    accumulate,
    assign,
    axes,
    block,
    merge,
    number,
    program,
    reduce,
    static,
)
from arrayjit.backends import Backend, fresh_backend
from arrayjit.compile import compile, compile_batch
from arrayjit.errors import LinkError
from arrayjit.runtime.context import Context
from arrayjit.runtime.merge import MergeUse
from arrayjit.runtime.transfer import device_to_device

i, j, k = axes("i j k")


@pytest.fixture(params=["interp", "sync_llvm", "llvm"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return fresh_backend(request.param)


def values(context: Context, node: Node) -> np.ndarray:
    array = np.empty(node.shape, node.dtype.numpy)
    assert context.to_host(node.tensor, array)
    context.device.await_()
    return array


def test_a_program_is_compiled_linked_and_run(backend: Backend) -> None:
    a, b, c = Node("a", (4, 3)), Node("b", (3, 5)), Node("c", (4, 5))
    matmul = program(block("matmul", reduce("add", c[i, j], a[i, k] * b[k, j])))
    x, y = np.random.default_rng(0).random((4, 3)), np.random.default_rng(1).random((3, 5))
    routine = backend.init().link(compile(backend, matmul), initial={a.tensor: x, b.tensor: y})
    routine.schedule()
    np.testing.assert_allclose(values(routine.context, c), x @ y)
    assert routine.inputs == {a.tensor, b.tensor}
    assert routine.outputs == {c.tensor}


def test_AS_7_what_a_program_does_not_bring_must_be_there(backend: Backend) -> None:
    x, weights, y = Node("x", 3), Node("weights", 3), Node("y", 3)
    code = compile(backend, program(assign(y[...], x[...] * weights[...]), name="apply"))
    context = backend.init().init_from_host(x.tensor, np.ones(3))
    with pytest.raises(LinkError, match="weights"):
        context.link(code)
    routine = context.link(code, initial={weights.tensor: np.arange(3.0)})
    routine.schedule()
    np.testing.assert_array_equal(values(routine.context, y), [0, 1, 2])


def test_AS_7_a_sum_from_zeroed_memory_is_brought_along(backend: Backend) -> None:
    total = Node("total")
    count = program(accumulate("add", total[()], 1.0), name="count", embedded=[total])
    routine = backend.init().link(compile(backend, count))
    for _ in range(3):
        routine.schedule()
    assert values(routine.context, total) == 3


def test_IX_2_a_static_symbol_is_bound_for_each_launch(backend: Backend) -> None:
    table, y, step = Node("table", (4, 3)), Node("y", 3), static("step", 0, 4)
    take = program(assign(y[...], table.at(step)[...] * number(step)), name="take")
    before = np.arange(12.0).reshape(4, 3)
    routine = backend.init().link(compile(backend, take), initial={table.tensor: before})
    for value in range(4):
        routine.bindings[step] = value
        routine.schedule()
        np.testing.assert_array_equal(values(routine.context, y), before[value] * value)
    routine.bindings[step] = 4
    with pytest.raises(LinkError, match="step = 4 is out of range"):
        routine.schedule()


def test_AS_3_gradients_meet_in_a_merge_buffer(backend: Backend) -> None:
    grad = Node("grad", 3)
    add = program(accumulate("add", grad[...], merge(grad)[...]), name="add")
    here, there = backend.init(), backend.init()
    here = here.init_from_host(grad.tensor, np.array([1.0, 2.0, 3.0]))
    there = there.init_from_host(grad.tensor, np.array([10.0, 20.0, 30.0]))
    transfer = device_to_device(grad.tensor, dst=here, src=there, into=MergeUse.COPY)
    assert transfer is not None
    routine = transfer.context.link(compile(backend, add))
    transfer.schedule()
    routine.schedule()
    np.testing.assert_array_equal(values(routine.context, grad), [11, 22, 33])


def test_LL_10_programs_of_a_batch_hand_on_what_is_virtual(backend: Backend) -> None:
    x, y, z, t = Node("x", 3), Node("y", 3), Node("z", 3), Node("t", 3, mode=Mode.VIRTUAL)
    first = program(assign(t[...], np.exp(x[...])), assign(y[...], t[...] + 1), name="first")
    second = program(assign(z[...], t[...] * y[...]), name="second", optimization=first.optimization)
    context = backend.init().init_from_host(x.tensor, np.array([0.0, 1.0, 2.0]))
    context, routines = context.link_batch(compile_batch(backend, [first, second]))
    for routine in routines:
        assert routine is not None
        routine.schedule()
    powers = np.exp([0.0, 1.0, 2.0])
    np.testing.assert_allclose(values(context, z), powers * (powers + 1))
