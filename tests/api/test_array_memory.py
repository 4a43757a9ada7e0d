"""Where an Array's memory is, who shares it, and what becomes of it."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from remote import remote_device

import arrayjit
from arrayjit.backends import fresh_backend
from arrayjit.errors import DeletedArray, DeviceError, OutOfMemory
from arrayjit.runtime.memory import Purpose

HOSTS = ["sync_llvm", "llvm", "interp"]


@pytest.fixture(params=HOSTS)
def host(request):
    return fresh_backend(request.param).get_device()


@pytest.fixture(params=[*HOSTS, "remote"])
def device(request):
    return remote_device() if request.param == "remote" else fresh_backend(request.param).get_device()


def address(array):
    return array.__array_interface__["data"][0]


# Sharing


@pytest.mark.parametrize("make", [lambda: np.arange(6.0), lambda: np.arange(6).reshape(2, 3)[:, ::-1]])
def test_hosts_share_memory_with_numpy_both_ways(host, make):
    x = make()
    a = arrayjit.asarray(x, device=host)
    assert np.shares_memory(a.numpy(), x)
    assert np.shares_memory(np.asarray(a), x)
    a += 1
    a.block_until_ready()
    assert np.array_equal(x, make() + 1)
    x[...] = 0
    assert not a.any()


def test_a_copy_is_one(device):
    x = np.arange(6.0)
    for a in (arrayjit.asarray(x, device=device, copy=True), arrayjit.asarray(x, device=device).copy()):
        a += 1
        assert np.array_equal(a.numpy(), x + 1)
    assert np.array_equal(x, np.arange(6.0))


def test_what_cannot_be_shared_is_copied_or_refused(host):
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float64)
    a = arrayjit.asarray(unaligned, device=host)
    assert not np.shares_memory(a.numpy(), unaligned)
    for x in (unaligned, [1, 2], np.arange(3)):
        with pytest.raises(ValueError, match="without a copy"):
            arrayjit.asarray(x, device=host, copy=False, dtype=np.float64)


def test_read_only_memory_stays_read_only(host):
    x = np.arange(3.0)
    x.flags.writeable = False
    a = arrayjit.asarray(x, device=host)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    assert not a.numpy().flags.writeable


def test_asarray_of_an_array_is_itself(device):
    a = arrayjit.asarray([1, 2], device=device)
    assert arrayjit.asarray(a) is a
    assert arrayjit.asarray(a, device=device, dtype=int) is a
    assert arrayjit.asarray(a, copy=True) is not a
    assert arrayjit.asarray(a, dtype=np.float32).dtype == np.float32
    assert arrayjit.asarray(a, dtype=np.float32).device is device


def test_exports_keep_the_memory_alive(host):
    a = arrayjit.asarray(np.arange(1000.0), device=host, copy=True)
    exports = [a.numpy(), np.asarray(a), np.from_dlpack(a)]
    a.delete()
    del a
    gc.collect()
    assert host.memory_by_purpose()[Purpose.ARRAY] == 8000
    assert all(np.array_equal(export, np.arange(1000.0)) for export in exports)
    del exports
    gc.collect()
    assert host.memory_by_purpose()[Purpose.ARRAY] == 0


def test_dlpack_shares_memory(host):
    a = arrayjit.asarray(np.arange(6.0).reshape(2, 3), device=host, copy=True)
    x = np.from_dlpack(a[:, 1:])
    assert address(x) == address(a[:, 1:])
    back = arrayjit.from_dlpack(x, device=host)
    assert address(back) == address(x)
    assert a.__dlpack_device__() == (1, 0)


if find_spec("torch") is not None:
    import torch

    def test_torch_shares_memory(host):
        a = arrayjit.asarray(np.arange(6.0), device=host, copy=True)
        tensor = torch.from_dlpack(a)
        tensor += 1
        assert np.array_equal(a.numpy(), np.arange(6.0) + 1)
        b = arrayjit.from_dlpack(tensor, device=host)
        b *= 2
        b.block_until_ready()
        assert tensor.tolist() == [2, 4, 6, 8, 10, 12]


def test_memory_of_a_device_is_no_hosts():
    device = remote_device()
    x = np.arange(6.0).reshape(2, 3)
    a = arrayjit.asarray(x, device=device)
    assert not hasattr(a, "__array_interface__")
    for export in (a.__dlpack__, a.__dlpack_device__):
        with pytest.raises(BufferError, match="in no memory that other libraries can use"):
            export()
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(a, copy=False)
    got = a.numpy()
    assert np.array_equal(got, x)
    got[...] = 0
    assert np.array_equal(np.asarray(a[:, ::-2], np.float32), x[:, ::-2])
    assert arrayjit.from_dlpack(x, device=device).tolist() == x.tolist()


# Copies of other kinds


def test_arrays_are_copied_and_pickled_by_value(device):
    a = arrayjit.asarray(np.arange(6.0).reshape(2, 3), device=device, copy=True)[:, ::2]
    for clone in (copy.copy(a), copy.deepcopy(a)):
        assert clone.device is device
        clone += 1
        assert clone.tolist() == [[1, 3], [4, 6]]
    again = pickle.loads(pickle.dumps(a))
    assert again.device is arrayjit.asarray(0).device
    assert again.tolist() == a.tolist() == [[0, 2], [3, 5]]


def test_arrays_move_between_devices(device):
    x = np.arange(6.0).reshape(2, 3)
    a = arrayjit.asarray(x, device=device, copy=True)
    assert a.to(device) is a
    others = [*(fresh_backend(name).get_device() for name in HOSTS), remote_device()]
    for other in others:
        there = a.T.to(other)
        a += 1
        x = x + 1
        assert there.device is other
        assert np.array_equal(there.numpy(), (x - 1).T)
        assert np.array_equal(there.to(device).numpy(), (x - 1).T)


def test_devices_have_names():
    assert arrayjit.asarray(1, device="llvm").device is arrayjit.asarray(1, device="llvm:0").device
    with arrayjit.use(target="interp"):
        assert arrayjit.asarray(1).device.name == "interp:0"
    for wrong in ("llvm:9", "llvm:x", "nothing"):
        with pytest.raises(arrayjit.UserError, match=r"device|target"):
            arrayjit.asarray(1, device=wrong)


# Life


def test_memory_is_counted_and_given_back(device):
    before = device.memory_by_purpose()[Purpose.ARRAY]
    a = arrayjit.asarray(np.zeros(100), device=device, copy=True)
    b = a + 1
    b.block_until_ready()
    assert device.memory_by_purpose()[Purpose.ARRAY] == before + 1600
    a.delete()
    del b
    gc.collect()
    assert device.memory_by_purpose()[Purpose.ARRAY] == before


def test_weak_references(device):
    a = arrayjit.asarray(np.zeros(3), device=device)
    reference = weakref.ref(a)
    assert reference() is a
    del a
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a + 1,
        lambda a: a.numpy(),
        lambda a: np.sum(a),
        lambda a: a.block_until_ready(),
        lambda a: a.to("interp"),
        lambda a: a[0],
        lambda a: arrayjit.jit(np.sin)(a),
        lambda a: arrayjit.donate(a),
        lambda a: np.asarray(a),
    ],
)
@pytest.mark.parametrize("end", ["deleted", "donated"])
def test_what_is_gone_cannot_be_used(device, end, use):
    a = arrayjit.asarray(np.arange(3.0), device=device, copy=True)
    view = a[1:]
    kept = a.delete() if end == "deleted" else arrayjit.donate(a)
    for gone in (a, view):
        with pytest.raises(DeletedArray, match=f"the array was {end}"):
            use(gone)
    del kept


def test_arrays_end_with_their_device():
    backend = fresh_backend("llvm")
    a = arrayjit.asarray(np.arange(3.0), device=backend.get_device(), copy=True)
    x = a.numpy()
    backend.machine.unsafe_cleanup()
    for use in (lambda: a + 1, a.numpy, a.block_until_ready, lambda: a.to("interp"), lambda: repr(a)):
        with pytest.raises(DeviceError, match="closed"):
            use()
    assert x.tolist() == [0, 1, 2]


def test_a_full_device_says_so_and_stays_usable():
    device = remote_device(limit=1 << 20)
    a = arrayjit.asarray(np.zeros(1 << 16), device=device)
    with pytest.raises(OutOfMemory, match="array 524,288"):
        np.concatenate([a, a])
    assert not (a == 1).any()


def test_threads_share_arrays(device):
    a = arrayjit.asarray(np.zeros(64), device=device, copy=True)

    def work(number):
        for _ in range(20):
            a[number] = a[number] + 1
        return float((a[number] + 1).sum())

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(work, range(4))) == [21.0] * 4
    finally:
        sys.setswitchinterval(switching)
    assert a.tolist() == [20.0] * 4 + [0.0] * 60


# Other libraries


def test_arrays_are_saved_and_shown_from_the_host(device, tmp_path):
    a = arrayjit.asarray(np.arange(3.0), device=device)
    np.save(tmp_path / "a.npy", a)
    np.savez(tmp_path / "a.npz", a=a)
    assert np.load(tmp_path / "a.npy").tolist() == np.load(tmp_path / "a.npz")["a"].tolist() == [0, 1, 2]
    assert np.array2string(a) == "[0. 1. 2.]"


def test_the_namespace_makes_arrays_on_the_device(device):
    a = arrayjit.asarray(np.arange(3.0), device=device)
    xp = a.__array_namespace__(api_version="2023.12")
    made = [
        xp.zeros(3),
        xp.arange(3),
        xp.asarray([1, 2, 3]),
        xp.from_dlpack(np.ones(3)),
        xp.full((3,), 2, dtype=xp.float32),
    ]
    for b in made:
        assert b.device is device
        assert xp.sum(a + b).device is device
    assert xp.ones(2, device="interp").device.name == "interp:0"
    with pytest.raises(ValueError, match="1999"):
        a.__array_namespace__(api_version="1999")


def test_a_program_for_the_array_api_runs_on_numpy_and_on_devices(device):
    def standardised(x):
        xp = x.__array_namespace__()
        centred = x - xp.mean(x, axis=0)
        return centred / xp.maximum(xp.std(centred, axis=0), xp.asarray(1e-9))

    x = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(standardised(arrayjit.asarray(x, device=device)).numpy(), standardised(x))
