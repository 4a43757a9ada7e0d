"""Code is planned and compiled for the GPU that is there, of several for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import arrayjit
from arrayjit import backends
from arrayjit.devices import Backend, compile, fresh_backend
from arrayjit.errors import BackendUnavailable
from arrayjit.ir.code import Code
from arrayjit.ir.gpus import ARCHITECTURES
from arrayjit.parallel import data_parallel
from arrayjit.runtime.cuda import driver
from arrayjit.runtime.cuda.sim import SimulatedApi

Make = Callable[..., Backend]
LONG = np.ones(1 << 16, np.float32)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """`make("sm_80,sm_90")` is the process's `cuda-sim`, with a GPU of each."""
    made: list[Backend] = []

    def fresh(archs: str, **options: int) -> Backend:
        made.append(fresh_backend("cuda-sim", devices=archs.count(",") + 1, arch=archs, **options))
        known = backends._backend
        monkeypatch.setattr(
            backends, "_backend", lambda name: made[-1] if name == "cuda-sim" else known(name)
        )
        return made[-1]

    yield fresh
    for backend in made:
        backend.machine.unsafe_cleanup()


@arrayjit.jit(target="cuda-sim")
def total(x):
    return x.sum()


@arrayjit.jit(target="cuda-sim")
def product(a, b):
    return a @ b


def grids(lowered) -> list[int]:
    """Blocks of each launch of a lowered call."""
    return [step.grid[0].count({}) for step in lowered.build.code.payload.plan]


def halves(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float16)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_plans_are_for_the_gpu_that_is_found(make: Make, arch: str) -> None:
    backend = make(arch)
    lowered = total.lower(arrayjit.spec(1 << 23, np.float32))
    assert lowered.build.code.payload.arch == arch
    assert f".target {arch}" in lowered.as_text("ptx")
    assert lowered.build.backend is backend
    assert backend.target.caps().gpu.processors == ARCHITECTURES[arch].processors
    assert grids(lowered)[0] == 8 * ARCHITECTURES[arch].processors


def test_plans_follow_what_a_gpu_says_of_itself(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimulatedApi.info
    small = {"multiprocessors": 20, "shared_bytes": 32 << 10, "l2_bytes": 4 << 20}
    monkeypatch.setattr(
        SimulatedApi, "info", lambda self, ordinal: _with(info(self, ordinal), arch="sm_75", **small)
    )
    caps = make("sm_75").target.caps()
    assert (caps.gpu.processors, caps.gpu.shared_bytes, caps.l3_bytes) == (20, 32 << 10, 4 << 20)
    assert not caps.gpu.tensor_cores
    assert grids(total.lower(arrayjit.spec(1 << 21, np.float32)))[0] == 160


def _with(info, **fields):
    return type(info)(**{name: fields.get(name, getattr(info, name)) for name in type(info).__slots__})


def test_each_gpu_has_a_plan_of_its_own(make: Make) -> None:
    backend = make("sm_80,sm_75,sm_90")
    for device in backend.machine.devices():
        arch = device.static_properties["arch"]
        x = arrayjit.asarray(LONG, device=device)
        lowered = total.lower(x)
        assert lowered.build.code.payload.arch == arch
        assert f".target {arch}" in device.load(lowered.build.code).executable.image.ptx
        assert float(total(x)) == len(LONG)
        assert total.lower(x).compile().variant.device is device


def test_gpus_without_tensor_cores_form_products_otherwise(make: Make) -> None:
    backend = make("sm_80,sm_75")
    a, b = halves(64, 64), halves(64, 64)
    for device, has in zip(backend.machine.devices(), (True, False), strict=True):
        lowered = product.lower(*(arrayjit.asarray(each, device=device) for each in (a, b)))
        assert ("mma.sync" in lowered.as_text("cuda")) == has
        assert lowered.build.code.needs == (("sm_80",) if has else ())
        found = product(*(arrayjit.asarray(each, device=device) for each in (a, b))).numpy()
        np.testing.assert_allclose(found, a @ b, rtol=2e-2, atol=2e-2)


def test_code_for_a_newer_gpu_is_refused_by_an_older_one(make: Make) -> None:
    backend = make("sm_80,sm_75")
    older = backend.get_device(1)
    computation = product.lower(halves(64, 64), halves(64, 64)).build.computation
    code = compile(backend, computation, shared=True)
    assert isinstance(code, Code)
    with pytest.raises(
        BackendUnavailable, match="for GPUs of sm_80 and later; cuda-sim:1 is of sm_75"
    ) as raised:
        older.load(code)
    assert "backend.fitted(device)" in str(raised.value)
    fitted = compile(backend.fitted(older), computation, shared=True)
    assert isinstance(fitted, Code)
    older.load(fitted)


def test_a_gpu_that_is_too_old_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.nvrtc, "checked_arch", lambda arch: arch)
    with pytest.raises(
        BackendUnavailable, match="simulated sm_70 is of architecture sm_70, older than sm_75"
    ) as raised:
        make("sm_70")
    assert "CUDA_VISIBLE_DEVICES" in str(raised.value)


def test_parallel_steps_are_planned_for_each_gpu(make: Make) -> None:
    backend = make("sm_90,sm_75")
    train = data_parallel(lambda w, x: w * x.mean(), backend.machine.devices())
    model = train.replicate(np.float32(2))
    np.testing.assert_allclose(train(model, LONG), 2)


def test_an_option_chooses_what_is_planned_for() -> None:
    backend = fresh_backend("cuda-sim", arch="sm_90", plan_for="sm_80")
    assert backend.target.caps() == ARCHITECTURES["sm_80"].caps()
    backend.machine.unsafe_cleanup()


def test_the_setting_says_what_is_planned_for_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARRAYJIT_GPU", "sm_100")
    backend = fresh_backend("cuda-sim", arch="sm_80")
    assert backend.target.caps() == ARCHITECTURES["sm_80"].caps()
    backend.machine.unsafe_cleanup()


def test_code_is_kept_for_each_kind_of_gpu(make: Make) -> None:
    backend = make("sm_80,sm_90,sm_80")
    builds = [
        total.lower(arrayjit.asarray(LONG[:999], device=device)).build for device in backend.machine.devices()
    ]
    keys = [build.key for build in builds]
    assert all(keys)
    assert keys[0] == keys[2] != keys[1]
    assert [build.code.payload.arch for build in builds] == ["sm_80", "sm_90", "sm_80"]
