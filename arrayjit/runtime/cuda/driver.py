"""The drivers of GPUs: of those of this machine, and of simulated ones."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BackendUnavailable, DeviceError, NumberError
from ...ir.code import Code
from ...ir.gpus import compute_capability
from ...ir.launches import DeviceProgram
from ...late import Late
from ...settings import gpu_wanted
from ..driver import Driver, Memory
from . import nvrtc
from .api import Api, ApiError, Image
from .gpu import Gpu, GpuMemory
from .lane import Lane, lane_in_use
from .program import GpuExecutable
from .queue import GpuQueue
from .sass import disassembled

if TYPE_CHECKING:
    from . import sim
else:
    sim = Late("arrayjit.runtime.cuda.sim")
bindings: Any = Late("arrayjit.runtime.cuda.bindings")  # which imports CUDA's

__all__ = ["CudaDriver", "GpuDriver", "LoweringDriver", "SimulatedDriver"]


class GpuDriver:
    """What both have: the devices of an Api. What is simulated says nothing about time."""

    is_host = False
    is_simulated = False

    def __init__(self, name: str, make: Callable[[], Api]) -> None:
        self.name = name
        self.api = make()
        self._lanes: set[Lane] = set()
        self._gpus: dict[int, Gpu] = {}

    def num_devices(self) -> int:
        return self.api.device_count()

    def gpu(self, ordinal: int) -> Gpu:
        """The GPU, made when it is first asked for."""
        found = self._gpus.get(ordinal)
        if found is None:
            found = self._gpus.setdefault(
                ordinal, Gpu(self.api, ordinal, f"{self.name}:{ordinal}", self._lanes)
            )
        return found

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        info = self.api.info(ordinal)
        return {
            "gpu": info.name,
            "arch": info.arch,
            "driver": ".".join(map(str, info.version)),
            "multiprocessors": info.multiprocessors,
            "memory_bytes": info.memory_bytes,
            "shared_bytes": info.shared_bytes,
            "l2_bytes": info.l2_bytes,
            "ordinal": ordinal,
        }

    def debug_info(self, ordinal: int) -> Mapping[str, str | int]:
        gpu = self._gpus.get(ordinal)
        failure = gpu.error if gpu is not None else None
        return {"ordinal": ordinal, "failure": failure.what if failure else ""}

    def queue(self, ordinal: int, name: str) -> GpuQueue:
        return GpuQueue(self.gpu(ordinal), name)

    def threads(self, ordinal: int, most: int | None = None) -> int:
        return 0

    def reaches(self, ordinal: int, other: int) -> bool:
        return self.api.can_access_peer(ordinal, other)

    def enable_access(self, ordinal: int, other: int) -> None:
        with self.gpu(other).asked(), self.gpu(ordinal).asked():
            self.api.enable_peer_access(ordinal, other)

    def dlpack_device(self, ordinal: int) -> tuple[int, int] | None:
        return None

    def borrow(self, ordinal: int, address: int, nbytes: int, owner: object) -> GpuMemory:
        return GpuMemory(self.gpu(ordinal), address, nbytes, owner)

    def ordinal_of(self, address: int) -> int:
        try:
            return self.api.ordinal_of(address)
        except ApiError as error:
            raise DeviceError(f"{self.name}: {error}", fix="pass an array that is on a GPU") from error

    def lend(self, ordinal: int) -> int:
        return self.gpu(ordinal).lend()

    def follow(self, ordinal: int, stream: int) -> None:
        self.gpu(ordinal).follow_stream(stream)

    def order(self) -> object:
        return lane_in_use()

    def allocate(self, ordinal: int, nbytes: int) -> GpuMemory:
        return self.gpu(ordinal).allocate(nbytes)

    def memset_zero(self, memory: Memory, offset: int, nbytes: int) -> None:
        if nbytes:
            with _owner(memory).at() as lane:
                self.api.memset(memory.address + offset, 0, nbytes, lane.stream)

    def upload(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """The values are taken now: the array may change while they travel."""
        with _owner(memory).at() as lane:
            lane.upload(memory.address + offset, array)

    def download(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Waits for the copy."""
        with _owner(memory).at() as lane:
            lane.download(array, memory.address + offset)

    def copy(
        self, memory: Memory, offset: int, source: Driver, origin: Memory, start: int, nbytes: int
    ) -> None:
        if isinstance(source, GpuDriver) and source.api is self.api:
            target, owner = _owner(memory), _owner(origin)
            with target.at() as lane:
                into, out_of = memory.address + offset, origin.address + start
                if owner is target:
                    self.api.d2d(into, out_of, nbytes, lane.stream)
                else:
                    self.api.peer(into, target.ordinal, out_of, owner.ordinal, nbytes, lane.stream)
        elif source.is_host:
            self.upload(memory, offset, _host_view(origin.address + start, nbytes))
        else:
            array = np.empty(nbytes, np.uint8)
            source.download(origin, start, array)
            self.upload(memory, offset, array)

    def load(self, code: Code, ordinal: int = 0) -> GpuExecutable:
        """Kernels for the device's architecture. Raises BackendUnavailable where NVRTC is missing or does not
        know it, and for code that needs a newer one, CompilerBug for a source that it rejects."""
        _require(code, f"{self.name}:{ordinal}", self.api.info(ordinal).arch)
        start = time.perf_counter()
        image = self._image(code, ordinal)
        seconds = {"nvrtc": time.perf_counter() - start}
        start = time.perf_counter()
        executable = GpuExecutable(self.gpu(ordinal), code, image, seconds)
        seconds["load"] = time.perf_counter() - start
        return executable

    def assembly(self, code: Code) -> str:
        """The PTX for the first device."""
        return self._image(code, 0).ptx

    def machine_code(self, code: Code) -> str:
        """What the first device runs, as NVIDIA's disassembler shows it. Raises BackendUnavailable without
        it."""
        return disassembled(self._image(code, 0).cubin)

    def close(self) -> None:
        gpus, self._gpus = self._gpus, {}
        for gpu in gpus.values():
            gpu.close()

    def _image(self, code: Code, ordinal: int) -> Image:
        program: DeviceProgram = code.payload
        return nvrtc.compiled(program.source, self.api.info(ordinal).arch, code.name)


class CudaDriver(GpuDriver):
    """The GPUs of this machine, through CUDA's driver. Raises BackendUnavailable where there is none."""

    def __init__(self, name: str) -> None:
        try:
            super().__init__(name, lambda: bindings.connected())
        except ImportError as error:
            raise BackendUnavailable(
                f"target {name!r} needs the package cuda-python", fix=nvrtc.INSTALL
            ) from error
        nvrtc.version()

    def dlpack_device(self, ordinal: int) -> tuple[int, int]:
        return _DLPACK_CUDA, ordinal


class LoweringDriver(GpuDriver):
    """For no GPU at all: it shows what NVRTC makes for the architecture that a program was planned for.
    Whatever needs a GPU raises the reason why there is none."""

    def __init__(self, name: str, reason: BackendUnavailable) -> None:
        no_api: Any = _Missing(reason)
        super().__init__(name, lambda: no_api)

    def _image(self, code: Code, ordinal: int) -> Image:
        program: DeviceProgram = code.payload
        return nvrtc.compiled(program.source, program.arch, code.name)


class _Missing:
    """An Api that has no operations."""

    def __init__(self, reason: BackendUnavailable) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        reason = self._reason
        raise BackendUnavailable(reason.what, details=reason.details, fix=reason.fix)


class SimulatedDriver(GpuDriver):
    """So many GPUs on the host, of an architecture or, separated by commas, of several in turn; by default of
    that of `ARRAYJIT_GPU`. Kernels are compiled as for real ones, and interpreted, which finds mistakes in
    them and in the order of work. It is slow. `seed` chooses one of the orders in which work that is not
    ordered may be done, `memory_bytes` is what each GPU has, `peer_access` whether each can use the memory
    of the others."""

    is_simulated = True

    def __init__(
        self,
        name: str,
        devices: int = 2,
        arch: str = "",
        seed: int = 0,
        memory_bytes: int = 1 << 32,
        peer_access: bool = True,
    ) -> None:
        if devices < 1:
            raise NumberError(f"target {name!r} cannot have {devices} devices", fix="ask for 1 or more")
        archs = [nvrtc.checked_arch(each) for each in (arch or gpu_wanted() or "sm_90").split(",")]
        super().__init__(
            name,
            lambda: sim.SimulatedApi(devices, archs, seed, memory_bytes, sim.interpreted, peer_access),
        )


_DLPACK_CUDA = 2


def _require(code: Code, device: str, arch: str) -> None:
    """Raise for code that needs a newer architecture."""
    for needed in code.needs:
        if compute_capability(arch) < compute_capability(needed):
            raise BackendUnavailable(
                f"{code.name!r} is compiled for GPUs of {needed} and later; {device} is of {arch}",
                fix="compile it for that device: compile(backend.fitted(device), ...)",
            )


def _owner(memory: Memory) -> Gpu:
    assert isinstance(memory, GpuMemory)
    return memory.gpu


def _host_view(address: int, nbytes: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
