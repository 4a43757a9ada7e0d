"""Sections 13 and 16 of the seeds (rows IM, CC): what a driver gives, and what is built from it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hardware import ANYWHERE
from hypothesis import given
from hypothesis import strategies as st
from small_programs import N, code, incremented, stamped, summed, value, vector

from arrayjit.devices import Context, Location, Purpose, compile, device_to_device, fresh_backend
from arrayjit.errors import CompilerBug
from arrayjit.ir.assign import ArrayParam, Assign, Computation, IndexParam
from arrayjit.ir.code import Code
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Cast, Index
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.memory import ALIGNMENT, SLAB, plan
from arrayjit.runtime.stream import Buffer


def test_IM_1_a_buffer_has_an_address_and_a_size_and_prints_its_place(device):
    pool = device.alloc_pool(200, Purpose.WORKING)
    buffer = Buffer(pool, 64, 100)
    assert buffer.address == pool.memory.address + 64
    assert buffer.location == Location(pool.number, 64)
    assert repr(buffer) == f"Buffer(pool {pool.number} + 64, 100 bytes)"


def test_IM_2_memory_is_counted_zeroed_copied_and_given_back(device):
    driver = device.driver
    one, two = (device.alloc_pool(4, Purpose.WORKING) for _ in range(2))
    assert device.get_used_memory() == 8
    driver.upload(one.memory, 1, np.array([7, 8], np.uint8))
    driver.copy(two.memory, 0, driver, one.memory, 1, 3)
    seen = np.empty(4, np.uint8)
    driver.download(two.memory, 0, seen)
    np.testing.assert_array_equal(seen, [7, 8, 0, 0])
    del one, two
    assert device.get_used_memory() == 0


def test_IM_2_a_copy_onto_itself_is_left_out(root):
    x = vector("x")
    context = root.init_from_host(x, np.zeros(N))
    assert device_to_device(x, dst=context, src=context.child()) is None


def test_IM_3_a_freed_slab_has_no_address_any_more(device):
    pool = device.alloc_pool(8, Purpose.WORKING)
    pool.free()
    with pytest.raises(RuntimeError, match="was given back"):
        _ = pool.memory


def test_IM_4_device_ids_are_unique_across_backends(fresh):
    ids = [fresh(name).get_device().device_id for name in ANYWHERE for _ in range(2)]
    assert len(set(ids)) == len(ids)


def test_IM_5_IM_6_IM_11_a_device_is_the_same_object_for_every_driver(fresh):
    kinds = {type(fresh(name).get_device()) for name in ANYWHERE}
    assert len(kinds) == 1


def test_IM_7_IM_10_a_driver_needs_queues_memory_and_loading_for_all_the_rest(device):
    driver = device.driver
    queue = driver.queue(0, "a queue")
    done = []
    queue.put(lambda: done.append(1), "some")
    queue.flush(1)
    queue.wait(1)
    assert (queue.name, queue.done, done) == ("a queue", 1, [1])
    queue.close()
    assert driver.allocate(0, 100).address % ALIGNMENT == 0


def test_IM_8_a_procedure_runs_on_any_memory_of_the_device(machine, device):
    x = vector("x")
    procedure = device.load(code(machine, incremented(x)))
    for start in (0.0, 5.0):
        pool = device.alloc_pool(8 * N, Purpose.WORKING)
        device.driver.upload(pool.memory, 0, np.full(N, start))
        procedure.launch([pool.memory.address])
        seen = np.empty(N)
        device.driver.download(pool.memory, 0, seen)
        np.testing.assert_array_equal(seen, np.full(N, start + 1))


def test_IM_9_raw_copies_have_no_events(device):
    x = vector("x")
    context = Context(device).init_from_host(x, np.zeros(N))
    device.await_()
    buffer, before = context.buffers[x], device.stream.submitted
    device.driver.upload(buffer.pool.memory, buffer.offset, np.ones(N))
    assert device.stream.submitted == before
    np.testing.assert_array_equal(value(context, x), np.ones(N))


def test_IM_12_what_is_postponed_prints_its_name(machine):
    assert "incremented" in repr(compile(machine, incremented(vector("x"))))


sizes = st.lists(st.integers(0, 1000), max_size=12)


@given(sizes, st.integers(1, 3000))
def test_BE_16_a_plan_has_no_overlap_is_aligned_and_keeps_to_the_limit(sizes, limit):
    segments = plan(sizes, limit)
    placed = [
        (slab, offset, sizes[segment.first + number])
        for slab, segment in enumerate(segments)
        for number, offset in enumerate(segment.offsets)
    ]
    assert [size for _, _, size in placed] == sizes
    for slab, segment in enumerate(segments):
        inside = [(offset, size) for number, offset, size in placed if number == slab]
        assert all(offset % ALIGNMENT == 0 for offset, _ in inside)
        assert all(a + size <= b for (a, size), (b, _) in pairwise(inside))
        assert segment.nbytes == sum(inside[-1])
        assert segment.nbytes <= limit or len(inside) == 1


@given(sizes)
def test_BE_16_a_plan_wastes_less_than_a_line_per_item(sizes):
    segments = plan(sizes)
    assert sum(segment.nbytes for segment in segments) <= sum(sizes) + ALIGNMENT * len(sizes)


def test_BE_16_an_item_above_the_limit_has_a_slab_of_its_own():
    assert [segment.offsets for segment in plan([1, SLAB + 1, 1])] == [(0,), (0,), (0,)]
    assert plan([]) == ()


def test_CC_1_native_code_is_compiled_in_this_process_and_its_phases_are_timed(tmp_path, monkeypatch):
    """What was compiled before is recalled."""
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    backend = fresh_backend("sync_llvm")
    for first in ("codegen", "recall code"):
        procedure = backend.get_device().load(code(backend, incremented(vector("x"))))
        assert procedure.executable.seconds.keys() == {first, "link"}


def test_CC_1_text_that_does_not_compile_names_the_routine_and_what_is_wrong():
    backend = fresh_backend("sync_llvm")
    with pytest.raises(CompilerBug, match=r"(?s)'broken'.*expected type"):
        backend.get_device().load(Code("sync_llvm", "broken", "define nonsense", ()))


def test_CC_3_WK_10_static_symbols_are_matched_by_identity_and_not_by_name(machine, root):
    """Two of one name, in whatever order they were made and are used."""
    late, early = (Symbol("i", SymbolKind.STATIC, 0, 100) for _ in range(2))
    out, i = Tensor.of("out", (1,), F64), Symbol("i")
    weighted = Affine.of(late) * 10 + early
    body = (Assign(((i, Affine.of(1)),), out, (Affine.of(i),), Cast(Index(weighted), F64)),)
    params = (IndexParam(early), ArrayParam(out, "write"), IndexParam(late))
    routine = root.link(code(machine, Computation("two", params, body)))
    routine.bindings.update({late: 4, early: 2})
    routine.schedule()
    np.testing.assert_array_equal(value(routine.context, out), [42.0])


def test_IM_2_zero_bytes_need_no_memory(machine, root):
    x, y, out = (vector(label, 0) for label in ("x", "y", "out"))
    routine = root.link(code(machine, summed(out, x, y)))
    routine.schedule()
    assert value(routine.context, out).size == 0
    assert root.device.get_used_memory() == 0


def test_CC_3_numbers_of_a_launch_are_its_own(machine, root):
    out = vector("out")
    step, program = stamped(out)
    routine = root.link(code(machine, program))
    for number in range(20):
        routine.bindings[step] = number
        routine.schedule()
    np.testing.assert_array_equal(value(routine.context, out), np.full(N, 19.0))
