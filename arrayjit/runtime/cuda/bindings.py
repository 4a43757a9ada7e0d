"""The Api of NVIDIA's driver, through the package cuda-python.

Each device has its primary context, which it shares with other libraries in the process, and memory comes
from the device's default pool, which keeps what is freed."""

from __future__ import annotations

import os
from threading import Lock, local
from typing import Any

from cuda.bindings import driver as cuda

from ...errors import BackendUnavailable
from .api import ApiError, Dims, GpuInfo, Image, OutOfDeviceMemory, Packed, Resources

__all__ = ["OLDEST", "CudaApi", "connected"]

OLDEST = 12000
"""Version 12.0, which the drivers 525 and later have."""

_STICKY = frozenset((214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 999))
"""Statuses after which the context cannot be used: of ECC, NVLink and launch failures."""

_NO_MEMORY = 2
_NOT_READY = 600
_NO_DEVICE = 100
_ALREADY_ENABLED = 704
_DEFAULT_SHARED_BYTES = 48 * 1024


def connected() -> CudaApi:
    """The driver, ready for use. Raises BackendUnavailable without one, with too old a one, and without a
    GPU."""
    try:
        (status,) = cuda.cuInit(0)
    except RuntimeError as error:
        raise BackendUnavailable(
            "there is no NVIDIA driver", details=(str(error).partition("\n")[0],), fix=_DRIVER
        ) from error
    if int(status) == _NO_DEVICE:
        raise BackendUnavailable("there is no NVIDIA GPU", fix="use another target, such as llvm or cuda-sim")
    if int(status):
        raise BackendUnavailable(f"NVIDIA's driver does not start: {status!r}", fix=_DRIVER)
    version = _checked(cuda.cuDriverGetVersion())
    if version < OLDEST:
        raise BackendUnavailable(
            f"NVIDIA's driver is of CUDA {_dotted(version)}, older than {_dotted(OLDEST)}", fix=_DRIVER
        )
    if not _checked(cuda.cuDeviceGetCount()):
        raise BackendUnavailable("there is no NVIDIA GPU", fix="use another target, such as llvm or cuda-sim")
    return CudaApi()


_DRIVER = "install NVIDIA's driver 525 or later, or use another target, such as llvm or cuda-sim"


class CudaApi:
    """The functions of `Api`, whose docstrings say what they do."""

    def __init__(self) -> None:
        self._contexts: dict[int, Any] = {}
        self._thread = local()
        self._lock = Lock()
        self._process = os.getpid()

    def device_count(self) -> int:
        return int(_checked(cuda.cuDeviceGetCount()))

    def info(self, ordinal: int) -> GpuInfo:
        device = _checked(cuda.cuDeviceGet(ordinal))
        kinds = cuda.CUdevice_attribute

        def attribute(name: str) -> int:
            kind = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(_checked(cuda.cuDeviceGetAttribute(kind, device)))

        version = _checked(cuda.cuDriverGetVersion())
        major, minor = attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")
        return GpuInfo(
            name=_checked(cuda.cuDeviceGetName(256, device)).partition(b"\0")[0].decode(),
            arch=f"sm_{major}{minor}",
            version=(version // 1000, version % 1000 // 10),
            multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
            memory_bytes=int(_checked(cuda.cuDeviceTotalMem(device))),
            shared_bytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            l2_bytes=attribute("L2_CACHE_SIZE"),
        )

    def use(self, ordinal: int) -> None:
        if self._process != os.getpid():
            raise ApiError(
                "CUDA_ERROR_NOT_INITIALIZED",
                "CUDA does not work in a forked process: use 'spawn'",
                is_sticky=True,
            )
        if getattr(self._thread, "ordinal", None) == ordinal:
            return
        context = self._contexts.get(ordinal)
        if context is None:
            context = self._retained(ordinal)
        _check(cuda.cuCtxSetCurrent(context))
        self._thread.ordinal = ordinal

    def release(self, ordinal: int) -> None:
        with self._lock:
            if self._contexts.pop(ordinal, None) is not None:
                self._thread = local()
                _check(cuda.cuDevicePrimaryCtxRelease(_checked(cuda.cuDeviceGet(ordinal))))

    def can_access_peer(self, ordinal: int, other: int) -> bool:
        device, peer = (_checked(cuda.cuDeviceGet(each)) for each in (ordinal, other))
        return bool(_checked(cuda.cuDeviceCanAccessPeer(device, peer)))

    def enable_peer_access(self, ordinal: int, other: int) -> None:
        self.use(other)
        self.use(ordinal)
        outcome = cuda.cuCtxEnablePeerAccess(self._contexts[other], 0)
        if int(outcome[0]) != _ALREADY_ENABLED:
            _check(outcome)
        # Pools have an access of their own, which that of contexts does not give.
        access = cuda.CUmemAccessDesc()
        access.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = ordinal
        access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        pool = _checked(cuda.cuDeviceGetDefaultMemPool(_checked(cuda.cuDeviceGet(other))))
        _check(cuda.cuMemPoolSetAccess(pool, [access], 1))

    def ordinal_of(self, address: int) -> int:
        kind = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(_checked(cuda.cuPointerGetAttribute(kind, address)))

    def alloc(self, nbytes: int, stream: int) -> int:
        return int(_checked(cuda.cuMemAllocAsync(nbytes, stream)))

    def free(self, address: int, stream: int) -> None:
        _check(cuda.cuMemFreeAsync(address, stream))

    def pinned_alloc(self, nbytes: int) -> int:
        return int(_checked(cuda.cuMemAllocHost(nbytes)))

    def pinned_free(self, address: int) -> None:
        _check(cuda.cuMemFreeHost(address))

    def h2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        _check(cuda.cuMemcpyHtoDAsync(target, source, nbytes, stream))

    def d2h(self, target: int, source: int, nbytes: int, stream: int) -> None:
        _check(cuda.cuMemcpyDtoHAsync(target, source, nbytes, stream))

    def d2d(self, target: int, source: int, nbytes: int, stream: int) -> None:
        _check(cuda.cuMemcpyDtoDAsync(target, source, nbytes, stream))

    def peer(
        self, target: int, target_ordinal: int, source: int, source_ordinal: int, nbytes: int, stream: int
    ) -> None:
        into, out_of = self._contexts[target_ordinal], self._contexts[source_ordinal]
        _check(cuda.cuMemcpyPeerAsync(target, into, source, out_of, nbytes, stream))

    def memset(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        _check(cuda.cuMemsetD8Async(address, byte, nbytes, stream))

    def stream(self) -> int:
        return int(_checked(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)))

    def destroy_stream(self, stream: int) -> None:
        _check(cuda.cuStreamDestroy(stream))

    def event(self) -> int:
        return int(_checked(cuda.cuEventCreate(cuda.CUevent_flags.CU_EVENT_DEFAULT)))

    def destroy_event(self, event: int) -> None:
        _check(cuda.cuEventDestroy(event))

    def record(self, event: int, stream: int) -> None:
        _check(cuda.cuEventRecord(event, stream))

    def wait(self, stream: int, event: int) -> None:
        _check(cuda.cuStreamWaitEvent(stream, event, 0))

    def is_done(self, event: int) -> bool:
        outcome = cuda.cuEventQuery(event)
        if int(outcome[0]) == _NOT_READY:
            return False
        _check(outcome)
        return True

    def sync_event(self, event: int) -> None:
        _check(cuda.cuEventSynchronize(event))

    def sync_stream(self, stream: int) -> None:
        _check(cuda.cuStreamSynchronize(stream))

    def sync_device(self) -> None:
        _check(cuda.cuCtxSynchronize())

    def elapsed(self, start: int, end: int) -> float:
        return float(_checked(cuda.cuEventElapsedTime(start, end)))

    def load(self, image: Image) -> int:
        text = image.cubin or image.ptx.encode() + b"\0"
        return int(_checked(cuda.cuModuleLoadData(text)))

    def unload(self, module: int) -> None:
        _check(cuda.cuModuleUnload(module))

    def function(self, module: int, name: str, shared_bytes: int) -> int:
        function = _checked(cuda.cuModuleGetFunction(module, name.encode()))
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            limit = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _check(cuda.cuFuncSetAttribute(function, limit, shared_bytes))
        return int(function)

    def resources(self, function: int) -> Resources:
        kinds = cuda.CUfunction_attribute

        def attribute(name: str) -> int:
            kind = getattr(kinds, f"CU_FUNC_ATTRIBUTE_{name}")
            return int(_checked(cuda.cuFuncGetAttribute(kind, function)))

        return Resources(
            registers=attribute("NUM_REGS"),
            local_bytes=attribute("LOCAL_SIZE_BYTES"),
            shared_bytes=attribute("SHARED_SIZE_BYTES"),
        )

    def launch(
        self, function: int, grid: Dims, block: Dims, shared_bytes: int, stream: int, arguments: Packed
    ) -> None:
        _check(cuda.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, arguments.address, 0))

    def begin_capture(self, stream: int) -> None:
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        _check(cuda.cuStreamBeginCapture(stream, mode))

    def end_capture(self, stream: int) -> int:
        graph = _checked(cuda.cuStreamEndCapture(stream))
        try:
            return int(_checked(cuda.cuGraphInstantiate(graph, 0)))
        finally:
            cuda.cuGraphDestroy(graph)

    def graph_launch(self, graph: int, stream: int) -> None:
        _check(cuda.cuGraphLaunch(graph, stream))

    def destroy_graph(self, graph: int) -> None:
        _check(cuda.cuGraphExecDestroy(graph))

    def _retained(self, ordinal: int) -> Any:
        """The device's primary context, and its pool told to keep what is freed."""
        with self._lock:
            if ordinal not in self._contexts:
                device = _checked(cuda.cuDeviceGet(ordinal))
                context = _checked(cuda.cuDevicePrimaryCtxRetain(device))
                _check(cuda.cuCtxSetCurrent(context))
                pool = _checked(cuda.cuDeviceGetDefaultMemPool(device))
                kind = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
                _check(cuda.cuMemPoolSetAttribute(pool, kind, cuda.cuuint64_t((1 << 64) - 1)))
                self._contexts[ordinal] = context
            return self._contexts[ordinal]


def _checked(outcome: tuple[Any, ...]) -> Any:
    """What a function gave. Raises ApiError."""
    _check(outcome)
    return outcome[1]


def _check(outcome: tuple[Any, ...]) -> None:
    status = outcome[0]
    if status:
        _, name = cuda.cuGetErrorName(status)
        _, text = cuda.cuGetErrorString(status)
        kind = OutOfDeviceMemory if int(status) == _NO_MEMORY else ApiError
        raise kind(_decoded(name), _decoded(text), is_sticky=int(status) in _STICKY)


def _decoded(text: bytes | None) -> str:
    return (text or b"unknown").rstrip(b"\0").decode()


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
