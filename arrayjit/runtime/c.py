"""The drivers of the host's CPU for code in C, which the system's compiler compiles."""

from __future__ import annotations

from ..ir.code import Code
from ..settings import cpu_wanted
from .c_compiler import c_compiler
from .cpu import CpuDriver
from .objects import Image
from .workers import WorkerDriver

__all__ = ["CDriver", "ParallelCDriver"]


class CDriver(CpuDriver):
    """Compiles and runs on the calling thread; `cpu` is the CPU that code is emitted for, by default what the
    setting says. Raises BackendUnavailable where there is no compiler."""

    def __init__(self, name: str, cpu: str = "") -> None:
        super().__init__(name)
        self._cpu = cpu or cpu_wanted()
        c_compiler()

    def _image(self, code: Code, seconds: dict[str, float]) -> Image:
        return c_compiler().image(code, self._cpu, seconds)

    def assembly(self, code: Code) -> str:
        return c_compiler().assembly(code, self._cpu)


class ParallelCDriver(CDriver, WorkerDriver):
    """The same with devices that work on their own."""

    def __init__(self, name: str, devices: int = 1, cpu: str = "") -> None:
        WorkerDriver.__init__(self, name, devices)
        self._cpu = cpu or cpu_wanted()
        c_compiler()
