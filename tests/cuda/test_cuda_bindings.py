"""The real driver's Api, through NVIDIA's own package, over a library that answers as a GPU would: handles,
arguments, contexts, errors. In processes of their own, as a process has one libcuda."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    # NVRTC would load a file of the real one's name.
    built = tmp_path_factory.mktemp("libcuda") / "libfake_for_arrayjit.so"
    options = ["-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["gcc", *options, "-o", built, HERE / "fake_libcuda.c"], check=True)
    return str(built)


def run(library: str, *command: str, **environment: str) -> str:
    """What a Python with the library prints."""
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "FAKE_LIBCUDA": library, **environment},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_cases_of_devices_pass(library: str) -> None:
    output = run(library, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "tests/cuda")
    assert " passed" in output.splitlines()[-1], output
    assert "failed" not in output.splitlines()[-1]
    assert "error" not in output.splitlines()[-1]


def test_the_cases_of_devices_pass_without_peer_access(library: str) -> None:
    cases = "tests/cuda/test_cuda_device.py"
    output = run(
        library, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", cases, FAKE_CUDA_PEERS="0"
    )
    assert " passed" in output.splitlines()[-1], output
    assert "failed" not in output.splitlines()[-1]


CONNECT = """
import ctypes, os
ctypes.CDLL(os.environ["FAKE_LIBCUDA"], mode=ctypes.RTLD_GLOBAL)
from arrayjit.runtime.cuda.bindings import connected
"""


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"FAKE_CUDA_VERSION": "11080"}, "NVIDIA's driver is of CUDA 11.8, older than 12.0"),
        ({"FAKE_CUDA_DEVICES": "0"}, "there is no NVIDIA GPU"),
    ],
)
def test_what_is_missing_is_said(library: str, environment: dict[str, str], said: str) -> None:
    program = CONNECT + "\nconnected()"
    output = run(library, "-c", program, **environment)
    assert f"BackendUnavailable: {said}" in output
    assert "fix: " in output


def test_properties_are_the_drivers(library: str) -> None:
    program = CONNECT + "api = connected(); print(api.device_count(), api.info(1))"
    assert run(library, "-c", program).strip() == (
        "2 GpuInfo(name='fake GPU 1', arch='sm_90', version=(12, 4), multiprocessors=132, "
        "memory_bytes=67108864, shared_bytes=232448, l2_bytes=52428800)"
    )


def test_every_operation_of_the_seam_is_there() -> None:
    from arrayjit.runtime.cuda.api import Api
    from arrayjit.runtime.cuda.bindings import CudaApi
    from arrayjit.runtime.cuda.sim import SimulatedApi

    operations = {name for name in vars(Api) if not name.startswith("_")}
    for made in (CudaApi, SimulatedApi):
        assert operations <= set(dir(made))


def test_a_failed_operation_says_cudas_name_for_it(library: str) -> None:
    program = (
        CONNECT
        + """
from arrayjit.runtime.cuda.api import ApiError, Image, OutOfDeviceMemory, Packed
api = connected()
api.use(0)
stream = api.stream()
scale = api.function(api.load(Image(b"", ".version 8.0")), "scale", 0)
for attempt in (
    lambda: api.alloc(1 << 40, stream),
    lambda: api.function(api.load(Image(b"", ".version 8.0")), "nothing", 0),
    lambda: api.launch(scale, (1, 1, 1), (2048, 1, 1), 0, stream, Packed([0])),
    lambda: api.free(12345, stream),
):
    try:
        attempt()
    except ApiError as error:
        print(type(error).__name__, error.name, error.is_sticky)
api.use(1)
try:
    api.memset(api.alloc(8, stream), 0, 8, stream)
except ApiError as error:
    print(error.name)
start, end = api.event(), api.event()
print(api.elapsed(start, end), api.is_done(end))
"""
    )
    assert run(library, "-c", program).splitlines() == [
        "OutOfDeviceMemory CUDA_ERROR_OUT_OF_MEMORY False",
        "ApiError CUDA_ERROR_NOT_FOUND False",
        "ApiError CUDA_ERROR_INVALID_VALUE False",
        "ApiError CUDA_ERROR_INVALID_VALUE False",
        "CUDA_ERROR_INVALID_HANDLE",
        "1.5 True",
    ]


def test_without_a_driver_or_its_package_that_is_said() -> None:
    no_driver = "from arrayjit.runtime.cuda.driver import CudaDriver; CudaDriver('cuda')"
    output = subprocess.run(
        [sys.executable, "-c", no_driver], capture_output=True, text=True, check=False
    ).stderr
    if "BackendUnavailable" in output:  # elsewhere there is a GPU
        assert "there is no NVIDIA driver" in output or "there is no NVIDIA GPU" in output
    hidden = "import sys; sys.modules['cuda.bindings'] = None; " + no_driver
    output = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=False
    ).stderr
    assert "BackendUnavailable: target 'cuda' needs the package cuda-python" in output
    assert "fix: pip install 'arrayjit[cuda]'" in output
