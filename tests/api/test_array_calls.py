"""`jit` on Arrays: which device a call runs on, what it waits for, what it gives."""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from remote import RemoteDriver, remote_device

import arrayjit
from arrayjit import backends
from arrayjit.backends import Backend, fresh_backend
from arrayjit.errors import DeletedArray, DeviceError, DeviceMismatch
from arrayjit.runtime.device import Machine
from arrayjit.runtime.memory import Purpose

pytestmark = pytest.mark.filterwarnings("ignore::arrayjit.RecompilationWarning")

HOSTS = ["sync_llvm", "llvm", "interp"]


@pytest.fixture(params=[*HOSTS, "remote"])
def device(request):
    return remote_device() if request.param == "remote" else fresh_backend(request.param).get_device()


def on(device, values):
    return arrayjit.asarray(np.array(values, dtype=float), device=device, copy=True)


def address(array):
    return array.layout.__array_interface__["data"][0]


@arrayjit.jit
def add(x, y):
    return x + y


@arrayjit.jit
def write(x, y):
    x[...] = y


# Where a call runs


def test_a_call_runs_where_its_arrays_are(device):
    x = on(device, [1, 2, 3])
    result = add(x, np.array([1.0, 1.0, 1.0]))
    assert isinstance(result, arrayjit.Array)
    assert result.device is device
    assert add(result, 1).tolist() == [3, 4, 5]
    with arrayjit.use(target="interp"):
        assert add(x, 1).device is device


def test_numpy_alone_gives_numpy():
    assert isinstance(add(np.ones(3), np.ones(3)), np.ndarray)


def test_numpy_alone_gives_arrays_where_memory_is_not_the_hosts(monkeypatch):
    machine = Machine(lambda: RemoteDriver())
    known = backends._backend
    interp = known("interp")
    monkeypatch.setattr(
        backends,
        "_backend",
        lambda name: Backend(name, interp.target, machine) if name == "interp" else known(name),
    )
    result = add.on("interp")(np.ones(3), np.ones(3)[::-1])
    assert isinstance(result, arrayjit.Array)
    assert result.device is machine.get_device()
    assert result.tolist() == [2, 2, 2]
    assert add(np.ones(3), 1, target="interp").device is machine.get_device()


def test_arrays_of_several_devices_are_refused():
    x, y = arrayjit.asarray([1.0], device="llvm"), arrayjit.asarray([1.0], device="interp")
    for call in (lambda: x + y, lambda: add(x, y), lambda: np.concatenate([x, y])):
        with pytest.raises(DeviceMismatch, match=r"several devices: llvm:0, interp:0[\s\S]*x.to\(y.device\)"):
            call()
    assert (x + y.to(x.device)).tolist() == [2]


def test_a_call_for_another_target_is_refused():
    x = arrayjit.asarray([1.0], device="llvm")
    for call in (lambda: add(x, 1, target="interp"), lambda: add.on("sync_llvm")(x, 1)):
        for _ in range(2):
            with pytest.raises(DeviceMismatch, match="has arrays on llvm:0"):
                call()
    assert add(x, 1, target="llvm").tolist() == [2]


def test_code_is_compiled_once_for_a_device(device):
    @arrayjit.jit
    def f(x):
        return x * 2

    for _ in range(3):
        assert f(on(device, [1, 2])).tolist() == [2, 4]
    assert f.stats().compiles == 1
    f(on(remote_device(), [1, 2]))
    assert f.stats().compiles == 2


def test_stages_are_readable_for_arrays(device):
    x = on(device, [1, 2, 3])
    lowered = add.lower(x, x[::-1])
    assert "add" in lowered.as_text("optimized")
    result = lowered.compile()(x, x[::-1])
    assert result.device is device
    assert result.tolist() == [4, 4, 4]
    with pytest.raises(TypeError, match="differ"):
        lowered.compile()(np.ones(3), np.ones(3))


# What a call takes and gives


def test_containers_of_arrays(device):
    @arrayjit.jit
    def f(params, pair):
        return {name: value * pair[0] for name, value in params.items()}, [pair[1], pair[1]]

    params = {"w": on(device, [1, 2]), "b": np.float64(3)}
    scaled, (one, same) = f(params, (2.0, on(device, [5])))
    assert scaled["w"].tolist() == [2, 4]
    assert float(scaled["b"]) == 6
    assert one is same


def test_the_argument_itself_and_views_of_it(device):
    @arrayjit.jit
    def f(x):
        x[0] = 9
        return x, x[::-1], x.reshape(2, 2).T

    x = on(device, [1, 2, 3, 4])
    same, turned, square = f(x)
    assert same is x
    x[1] = 8
    assert turned.tolist() == [4, 3, 8, 9]
    assert square.tolist() == [[9, 3], [8, 4]]


def test_numbers(device):
    @arrayjit.jit
    def f(x, n):
        return x.sum(), n + 1, x.shape[0], int(x[0]), np.float32(x[1])

    total, following, length, first, second = f(on(device, [1, 2, 3]), 4)
    assert isinstance(total, arrayjit.Array)
    assert (float(total), total.shape) == (6, ())
    assert [type(n) for n in (following, length, first)] == [int, int, int]
    assert (following, length, first) == (5, 3, 1)
    assert second.dtype == np.float32


def test_sizes_that_are_computed(device):
    @arrayjit.jit
    def f(x):
        return x[x > 1], np.nonzero(x > 1)[0]

    values, places = f(on(device, [1, 2, 0, 3]))
    assert (values.tolist(), places.tolist()) == ([2, 3], [1, 3])
    assert (values + 1).tolist() == [3, 4]
    gc.collect()
    assert device.memory_by_purpose()[Purpose.ARRAY] == 4 * 8
    x, mask = np.arange(12.0).reshape(3, 4), np.array([True, False, True, True])
    got = arrayjit.jit(lambda x, m: x[:, m])(on(device, x), mask)
    assert np.array_equal(got.numpy(), x[:, mask])
    assert got.strides == (24, 8)
    for none in (on(device, [0, 0]), on(device, [])):
        assert [part.shape for part in f(none)] == [(0,), (0,)]


def test_transposed_results(device):
    @arrayjit.jit
    def f(x):
        return np.asarray(x.T + 1, order="K"), (x * 2).T

    x = np.arange(6.0).reshape(2, 3)
    for got, want in zip(f(on(device, x)), (x.T + 1, (x * 2).T), strict=True):
        assert np.array_equal(got.numpy(), want)
        assert got.strides == want.strides


def test_arguments_that_share_memory(device):
    @arrayjit.jit
    def shift(x, y):
        x[...] = y
        y += 1

    got, want = on(device, range(6)), np.arange(6.0)
    shift(got[1:], got[:-1])
    shift.__wrapped__(want[1:], want[:-1])
    assert got.tolist() == want.tolist()


def test_numpy_arguments_are_written_by_the_time_that_the_call_returns(device):
    for target in (np.zeros(3), np.zeros((3, 2))[:, 1], np.zeros(3)[::-1], np.zeros(3, ">f8")):
        write(target, on(device, [1, 2, 3]))
        assert target.tolist() == [1, 2, 3]
    shared = np.zeros(6)
    arrayjit.jit(lambda a, b, c: (a.__setitem__(slice(None), c), b.__iadd__(c)))(
        shared[:3], shared[2:5], on(device, [1, 2, 3])
    )
    assert shared.tolist() == [1, 2, 4, 2, 3, 0]


def test_results_that_show_numpy_arguments_are_numpys(device):
    @arrayjit.jit
    def f(x, y):
        x += y
        return x, x[1:]

    x = np.zeros(3)
    same, tail = f(x, on(device, [1, 2, 3]))
    assert same is x
    assert np.shares_memory(tail, x)
    assert tail.tolist() == [2, 3]


def test_numpy_memory_shared_with_an_array_is_one_memory():
    x = np.arange(3.0)
    a = arrayjit.asarray(x, device="llvm")
    write(a, np.ones(3))
    write(a[1:], x[:-1] + 4)
    assert add(x, a).tolist() == [2, 10, 10]


# Arrays that are met by other ways

weights = arrayjit.asarray(np.array([1.0, 2.0, 3.0]), device="interp", copy=True)
counts = {"calls": arrayjit.asarray(np.zeros(1), device="interp", copy=True)}


def test_an_array_of_a_global_or_a_closure_is_read_at_each_call(device):
    scale = on(device, [2])

    @arrayjit.jit
    def f(x):
        return x * scale

    assert f(np.ones(3)).tolist() == [2, 2, 2]
    scale[0] = 5
    result = f(np.ones(3))
    assert result.device is device
    assert result.tolist() == [5, 5, 5]
    scale.delete()
    with pytest.raises(DeletedArray):
        f(np.ones(3))


def test_an_array_of_a_global_is_written():
    @arrayjit.jit
    def f(x):
        counts["calls"] += 1
        return x @ weights

    assert float(f(np.ones(3))) == 6
    assert float(f(np.ones(3))) == 6
    assert counts["calls"].tolist() == [2]


def test_an_array_of_a_global_on_another_device_is_refused():
    @arrayjit.jit
    def f(x):
        return x * weights

    with pytest.raises(DeviceMismatch, match="llvm:0, interp:0"):
        f(arrayjit.asarray(np.ones(3), device="llvm"))
    with pytest.raises(DeviceMismatch, match="interp:0"):
        f(np.ones(3), target="llvm")


def test_an_array_met_twice_is_not_written(device):
    scale = on(device, [1, 2])

    @arrayjit.jit
    def f(x):
        x *= scale

    with pytest.raises(NotImplementedError, match="meets twice"):
        f(scale)


# Errors and waiting


@arrayjit.jit
def pick(x, i):
    return x[i] + 0


def test_errors_are_raised_at_the_call_or_when_waiting(device):
    x, i = on(device, [1, 2]), arrayjit.asarray([7], device=device)
    with pytest.raises(IndexError, match="out of bounds"):
        pick(x, i).block_until_ready()
    assert pick(x, i * 0).tolist() == [1]


def test_what_was_not_computed_has_no_values():
    device = fresh_backend("llvm").get_device()
    x, i = on(device, [1, 2]), arrayjit.asarray([7], device=device)
    started = threading.Event()
    device.stream.submit(started.wait, "hold")
    first = pick(x, i)
    second = first * 2
    started.set()
    with pytest.raises(IndexError, match="out of bounds"):
        second.numpy()
    for use in (first.numpy, second.numpy, lambda: (first + 1).numpy(), lambda: first.to("interp")):
        with pytest.raises(DeviceError, match="has no values"):
            use()
    assert (x + 1).tolist() == [2, 3]


def test_calls_return_before_they_run_and_are_in_order():
    device = fresh_backend("llvm").get_device()
    x = on(device, [0])
    started = threading.Event()
    device.stream.submit(started.wait, "hold")
    for _ in range(100):
        x += 1
    doubled = x * 2
    x += 1
    assert not device.is_idle()
    started.set()
    assert (float(doubled[0]), float(x[0])) == (200, 101)


def test_memory_that_pending_work_uses_stays():
    device = fresh_backend("llvm").get_device()
    started = threading.Event()
    x = on(device, np.arange(1000))
    device.stream.submit(started.wait, "hold")
    total = (x + 1).sum()
    x.delete()
    gc.collect()
    started.set()
    assert float(total) == 500500
    gc.collect()
    assert device.memory_by_purpose()[Purpose.ARRAY] == 8


# Donation


def step(p, g):
    return p - 0.5 * g


def turned(p, g):
    return p[::-1] + g


def matrix(p, g):
    return np.outer(p, g) @ p


def in_place(p, g):
    p += g
    return p


def in_turn(p, g):
    q = p * 2
    return q, g + q


@pytest.mark.parametrize("program", [step, turned, matrix, in_place, in_turn], ids=lambda f: f.__name__)
def test_a_donated_array_is_where_the_result_is(program, device):
    values, other = [1, 2, 3], [4, 6, 8]
    want = program(np.array(values, float), np.array(other, float))
    p = on(device, values)
    place = address(p)
    got = arrayjit.jit(program)(arrayjit.donate(p), on(device, other))
    first, first_want = (got[0], want[0]) if isinstance(want, tuple) else (got, want)
    assert address(first) == place
    assert first.tolist() == first_want.tolist()
    if isinstance(want, tuple):
        assert got[1].tolist() == want[1].tolist()
    with pytest.raises(DeletedArray):
        p.numpy()


def read_later(p, g):
    q = p * 2
    return q, (p * q).sum()


def other_shape(p, g):
    return np.concatenate([p, g])


def other_dtype(p, g):
    return p > g


def backwards(p, g):
    q = np.zeros_like(p)
    for i in range(3):
        q[i] = p[2 - i] + g[i]
    return q


def shown(p, g):
    return p + g, p[1:]


@pytest.mark.parametrize(
    "program", [read_later, other_shape, other_dtype, backwards, shown], ids=lambda f: f.__name__
)
def test_a_donated_array_that_is_still_needed_or_does_not_fit_is_left_alone(program, device):
    values, other = [1, 2, 3], [4, 6, 8]
    want = program(np.array(values, float), np.array(other, float))
    given = arrayjit.donate(on(device, values))
    place = address(given)
    got = arrayjit.jit(program)(given, on(device, other))
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for mine, numpys in pairs:
        assert address(mine) != place
        assert mine.tolist() == numpys.tolist()
    with pytest.raises(DeletedArray):
        given.numpy()


def test_each_donated_array_takes_one_result(device):
    @arrayjit.jit
    def f(p, q):
        return p + 1, q + 1, q + 2, q + 3

    p, q = on(device, [1]), on(device, [2])
    places = {address(p), address(q)}
    results = f(arrayjit.donate(p), arrayjit.donate(q))
    assert [x.tolist() for x in results] == [[2], [3], [4], [5]]
    found = {address(x) for x in results}
    assert len(found) == 4
    assert places < found


def test_one_donation_passed_twice(device):
    given = arrayjit.donate(on(device, [1, 2]))
    assert add(given, given).tolist() == [2, 4]
    with pytest.raises(DeletedArray):
        add(given, given)


def test_numpys_memory_is_not_donated():
    x = np.arange(3.0)
    result = add(arrayjit.donate(arrayjit.asarray(x, device="llvm")), 1)
    assert result.tolist() == [1, 2, 3]
    assert x.tolist() == [0, 1, 2]


def test_donation_keeps_memory_steady(device):
    p, g = on(device, np.ones(1000)), on(device, np.ones(1000))
    jitted = arrayjit.jit(step)
    for _ in range(10):
        p = jitted(arrayjit.donate(p), g)
        assert device.memory_by_purpose()[Purpose.ARRAY] <= 16_000 + 8
    assert p.tolist() == [-4.0] * 1000


def test_only_arrays_are_donated():
    with pytest.raises(TypeError, match="takes an Array, not ndarray"):
        arrayjit.donate(np.ones(3))


def test_every_rule_has_its_test():
    here = Path(__file__).parent
    rules = (here.parents[1] / "docs" / "device_arrays.md").read_text()
    quoted = [
        re.findall(r"`(test_\w+)`", rule) for rule in re.split(r"^\d+\. ", rules, flags=re.MULTILINE)[1:]
    ]
    assert all(quoted)
    texts = [file.read_text() for file in here.glob("test_array_*.py")]
    written = {name for text in texts for name in re.findall(r"def (test_\w+)", text)}
    assert {name for names in quoted for name in names} <= written
