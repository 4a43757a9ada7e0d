"""Contexts, routines and workspaces on the host, the same for every driver of the host."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hardware import HOSTS

from arrayjit.backends import BACKENDS, backend
from arrayjit.errors import (
    BackendUnavailable,
    CompilerBug,
    LinkError,
    Location,
    UnknownTarget,
    UnsupportedError,
)
from arrayjit.ir.assign import ArrayParam, IndexParam
from arrayjit.ir.code import Code
from arrayjit.ir.dtype import BOOL, F64, I64
from arrayjit.ir.expr import Apply, Const, Index, Load
from arrayjit.ir.index import Affine, Symbol, SymbolKind
from arrayjit.ir.loops import For, Kernel, Place, PlaceKind, Raise, Store
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor
from arrayjit.runtime.context import Context
from arrayjit.runtime.memory import Purpose

HERE = Location(__file__, 1)


@pytest.fixture(params=HOSTS)
def target(request):
    return request.param


@pytest.fixture
def device(target):
    return backend(target).get_device(0)


def compiled(target, kernel):
    return backend(target).target.emit(kernel)


def doubled(size=5, name="doubled"):
    """`out = x + x`, through a temporary in the workspace."""
    x, out = Tensor.of("x", (size,), F64), Tensor.of("out", (size,), F64)
    hidden = Tensor.of("hidden", (size,), F64)
    i, j = Symbol("i"), Symbol("j")
    at_i, at_j, whole = (Affine.of(i),), (Affine.of(j),), (Affine.of(0), Affine.of(size))
    twice = Apply(op("add"), (Load(x, at_i), Load(x, at_i)), F64)
    body = (
        For(i, *whole, (Store(hidden, at_i, twice),)),
        For(j, *whole, (Store(out, at_j, Load(hidden, at_j)),)),
    )
    placement = {hidden: Place(PlaceKind.ARENA, "a test")}
    params = (ArrayParam(x, "read"), ArrayParam(out, "write"))
    return x, out, Kernel(name, params, body, placement, arena_bytes=8 * size)


def filled():
    """`out[:] = number`, a static symbol from 0 to 9, which must not be 7 (nor more than 8)."""
    number, i = Symbol("number", SymbolKind.STATIC, 0, 10), Symbol("i")
    out = Tensor.of("out", (3,), I64)
    value = Index(Affine.of(number))

    def equals(what):
        return Apply(op("equal"), (value, Const(what, I64)), BOOL)

    body = (
        Raise(equals(7), "IndexError", "seven is out of bounds", HERE),
        For(i, Affine.of(0), Affine.of(3), (Store(out, (Affine.of(i),), value),)),
        Raise(equals(9), "ZeroDivisionError", "nine", None),
    )
    return number, out, Kernel("filled", (ArrayParam(out, "write"), IndexParam(number)), body)


def test_launch_runs_on_the_callers_arrays(target, device):
    _, _, kernel = doubled()
    procedure = device.load(compiled(target, kernel))
    source, result = np.arange(5.0), np.empty(5)
    procedure.launch([source.ctypes.data, result.ctypes.data])
    np.testing.assert_array_equal(result, source * 2)


def test_schedule_runs_on_the_contexts_buffers(target, device):
    x, out, kernel = doubled()
    root = Context(device).init_from_host(x, np.arange(5.0))
    routine = root.link(compiled(target, kernel))
    event = routine.schedule()
    event.sync()
    assert event.is_done()
    result = np.empty(5)
    assert routine.context.to_host(out, result)
    device.await_()
    assert device.is_idle()
    assert device.all_work().is_done()
    np.testing.assert_array_equal(result, np.arange(5.0) * 2)
    assert routine.inputs == {x}
    assert routine.outputs == {out}


def test_linking_gives_a_new_context_and_leaves_the_old_one(target, device):
    x, out, kernel = doubled()
    root = Context(device)
    given = root.init_from_host(x, np.zeros(5))
    routine = given.link(compiled(target, kernel))
    assert not root.buffers
    assert set(given.buffers) == {x}
    assert set(routine.context.buffers) == {x, out}
    assert routine.context.buffers[x] is given.buffers[x]
    assert not given.to_host(out, np.empty(5))
    assert not root.from_host(x, np.empty(5))
    with pytest.raises(LinkError, match="already has a buffer"):
        given.init_from_host(x, np.zeros(5))


def test_new_buffers_are_zero_and_given_back(target, device):
    _, out, kernel = doubled(1000)
    gc.collect()
    before = device.memory_by_purpose()[Purpose.WORKING]
    routine = Context(device).link(compiled(target, kernel))
    assert device.memory_by_purpose()[Purpose.WORKING] == before + 8000 + 8000
    routine.schedule()
    result = np.ones(1000)
    routine.context.to_host(out, result)
    device.await_()
    assert not result.any()
    del routine
    gc.collect()
    assert device.memory_by_purpose()[Purpose.WORKING] == before


def test_bindings_are_taken_when_scheduled(target, device):
    number, out, kernel = filled()
    routine = Context(device).link(compiled(target, kernel))
    with pytest.raises(LinkError, match="number"):
        routine.schedule()
    routine.bindings[number] = 3
    routine.schedule()
    routine.bindings[number] = 4
    result = np.empty(3, np.int64)
    routine.context.to_host(out, result)
    device.await_()
    np.testing.assert_array_equal(result, [3, 3, 3])
    routine.bindings[number] = 10
    with pytest.raises(LinkError, match="out of range"):
        routine.schedule()


def test_a_status_becomes_the_programs_exception(target, device):
    _, _, kernel = filled()
    procedure = device.load(compiled(target, kernel))
    result = np.zeros(3, np.int64)
    with pytest.raises(IndexError, match="seven is out of bounds") as caught:
        procedure.launch([result.ctypes.data], [7])
    assert f"{__file__}:1" in str(caught.value)
    assert HERE.source() in str(caught.value)
    np.testing.assert_array_equal(result, [0, 0, 0])
    with pytest.raises(ZeroDivisionError, match=r"^nine\n"):
        procedure.launch([result.ctypes.data], [9])
    np.testing.assert_array_equal(result, [9, 9, 9])
    procedure.launch([result.ctypes.data], [8])
    np.testing.assert_array_equal(result, [8, 8, 8])


def test_threads_share_a_routine_and_not_its_workspace(target, device):
    size = 200_000 if target != "interp" else 2_000
    _, _, kernel = doubled(size)
    procedure = device.load(compiled(target, kernel))
    wrong = []

    def work(value):
        source, result = np.full(size, value), np.empty(size)
        for _ in range(5):
            procedure.launch([source.ctypes.data, result.ctypes.data])
            if not (result == 2 * value).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_workspaces_are_reused(target, device):
    _, _, kernel = doubled(100_000 if target != "interp" else 100)
    procedure = device.load(compiled(target, kernel))
    source, result = np.zeros(100_000), np.empty(100_000)
    pointers = [source.ctypes.data, result.ctypes.data]
    procedure.launch(pointers)
    used = device.get_used_memory()
    for _ in range(3):
        procedure.launch(pointers)
    assert device.get_used_memory() == used


def test_layouts_that_the_caller_chose_come_from_the_caller(target, device):
    x = Tensor("x", (Affine.of(4),), F64, (Affine.of(-1),))
    out, i = Tensor.of("out", (4,), F64), Symbol("i")
    body = For(i, Affine.of(0), Affine.of(4), (Store(out, (Affine.of(i),), Load(x, (Affine.of(i),))),))
    kernel = Kernel("reversed", (ArrayParam(x, "read"), ArrayParam(out, "write")), (body,))
    code = compiled(target, kernel)
    with pytest.raises(LinkError, match="no buffer for x"):
        Context(device).link(code).schedule()
    source, result = np.arange(4.0), np.empty(4)
    device.load(code).launch([source[::-1].ctypes.data, result.ctypes.data])
    np.testing.assert_array_equal(result, source[::-1])


def test_arrays_without_elements(target, device):
    x, out, kernel = doubled(0)
    routine = Context(device).init_from_host(x, np.empty(0)).link(compiled(target, kernel))
    routine.schedule()
    result = np.empty(0)
    assert routine.context.to_host(out, result)


def test_what_does_not_fit_is_refused(target, device):
    x, _, kernel = doubled()
    code = compiled(target, kernel)
    with pytest.raises(LinkError, match="is for target 'elsewhere'"):
        Context(device).link(replace(code, target="elsewhere"))
    merging = replace(code, params=(ArrayParam(x, "merge"),))
    with pytest.raises(LinkError, match="merge buffer"):
        Context(device).link(merging)
    with pytest.raises(LinkError, match="float32"):
        Context(device).init_from_host(x, np.zeros(5, np.float32))
    with pytest.raises(BackendUnavailable, match="no device 1"):
        backend(target).get_device(1)
    held = Context(device).init_from_host(x, np.zeros(5))
    with pytest.raises(LinkError, match="C-ordered"):
        held.to_host(x, np.empty(10)[::2])


def test_a_device_tells_what_it_is(target, device):
    assert device.name == f"{target}:0"
    assert backend(target).get_device(0) is device
    assert device.static_properties["cores"] >= 1


def test_buffers_are_aligned_for_vectors(device):
    for nbytes in (0, 1, 100):
        assert device.driver.allocate(0, nbytes).address % 64 == 0


def test_unknown_targets_are_named():
    with pytest.raises(UnknownTarget, match="sync_llvm"):
        backend("abacus")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(BACKENDS, "abacus", ("targets.abacus.Target", "runtime.abacus.Driver"))
    with pytest.raises(BackendUnavailable, match="abacus"):
        backend("abacus")


def llvm_procedure(text):
    return backend("sync_llvm").get_device(0).load(Code("sync_llvm", "f", text, ()))


def test_text_that_llvm_rejects_is_a_bug_and_not_a_crash():
    unparsable = "define i32 @f(ptr %table) { ret i64 0 }"
    undominated = """
        define i32 @f(ptr %table) {
          %a = add i32 %b, 1
          %b = add i32 1, 1
          ret i32 %a
        }"""
    for text in (unparsable, undominated):
        with pytest.raises(CompilerBug, match="LLVM rejects"):
            llvm_procedure(text)


def test_routines_of_one_name_are_kept_apart():
    one, two = (llvm_procedure(f"define i32 @f_kernel(ptr %table) {{ ret i32 {n} }}") for n in (1, 2))
    assert one.executable.launch((), (), 0) == 1
    assert two.executable.launch((), (), 0) == 2


@pytest.mark.parametrize("name", ["<lambda>", "größe", "a.b"])
def test_a_routine_may_have_any_name(name, target, device):
    _, _, kernel = doubled(name=name)
    routine = Context(device).link(compiled(target, kernel))
    routine.schedule()
    assert routine.name == name


def test_every_phase_is_timed_and_every_stage_is_text():
    _, _, kernel = doubled()
    code = compiled("sync_llvm", kernel)
    device = backend("sync_llvm").get_device(0)
    phases = set(device.load(code).executable.seconds)
    assert phases in ({"codegen", "link"}, {"recall code", "link"})
    assert "doubled" in device.driver.assembly(code)
    with pytest.raises(UnsupportedError, match="machine code"):
        backend("interp").driver.assembly(compiled("interp", kernel))


def test_the_reference_needs_no_llvm():
    """Rows of the table are loaded when they are asked for."""
    code = "import sys, arrayjit.backends as b; b.backend('interp'); print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
