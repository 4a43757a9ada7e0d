"""The whole flow on one screen: Computation -> passes -> Kernel -> target -> Code -> Routine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from .backends import Backend, backend
from .errors import CompilerBug, UnsupportedError
from .ir.assign import ArrayParam, Computation
from .ir.code import Code
from .ir.index import Symbol
from .ir.loops import Kernel
from .ir.tensor import Tensor
from .ir.text import print_computation, print_kernel
from .passes.manager import Dump, Optimized, optimize
from .runtime.context import Context
from .runtime.routine import Routine
from .settings import Settings

__all__ = ["STAGES", "Build", "build", "compile_computation", "run"]

STAGES = ("assignments", "loops", "optimized", "llvm", "asm")


@dataclass(frozen=True, slots=True)
class Build:
    """A computation lowered, optimised and emitted for one target, not yet linked.

    `seconds` has the time of each phase: every pass by its name, then `emit`.
    """

    backend: Backend
    computation: Computation
    optimized: Optimized
    code: Code
    seconds: Mapping[str, float]

    def as_text(self, stage: str) -> str:
        """The text of a stage: one of `STAGES`. Raises UnsupportedError for a stage the target lacks."""
        match stage:
            case "assignments":
                return print_computation(self.computation)
            case "loops":
                return print_kernel(self.optimized.loops)
            case "optimized":
                return print_kernel(self.optimized.kernel)
            case "llvm" if isinstance(self.code.payload, str):
                return self.code.payload
            case "asm" if isinstance(self.code.payload, str):
                return self.backend.driver.assembly(self.code)
            case _:
                raise UnsupportedError(
                    f"target {self.backend.name!r} has no stage {stage!r}",
                    fix=f"choose one of {', '.join(STAGES[:3])}"
                    + (", or lower for target sync_llvm" if stage in STAGES else ""),
                )

    def link(self) -> Routine:
        """Native code in a fresh context on the backend's first device."""
        return Context(self.backend.driver.get_device(0)).link(self.code)


def build(computation: Computation, target: str, settings: Settings | None = None) -> Build:
    """Run the passes and the emitter. Raises UnknownTarget, BackendUnavailable, CompilerBug."""
    settings = settings or Settings.from_environment()
    chosen = backend(target)
    dump = _dump_into(settings.dump, computation.name) if settings.dump else None
    optimized = optimize(computation, chosen.target.caps(), verify=settings.verify, dump=dump)
    start = time.perf_counter()
    code = _emit(chosen, optimized.kernel)
    seconds = {**optimized.seconds, "emit": time.perf_counter() - start}
    if dump is not None and isinstance(code.payload, str):
        dump("emitted", code.payload)
    return Build(chosen, computation, optimized, code, seconds)


def compile_computation(computation: Computation, target: str, settings: Settings | None = None) -> Routine:
    """From a computation to a routine that can be run."""
    return build(computation, target, settings).link()


def run(
    routine: Routine, arrays: Mapping[Tensor, np.ndarray], bindings: Mapping[Symbol, int] | None = None
) -> None:
    """Run a routine on NumPy arrays, in place: one aligned native array per array parameter."""
    bindings = bindings or {}
    pointers = [arrays[param.tensor].ctypes.data for param in routine.params if isinstance(param, ArrayParam)]
    symbols = [param.symbol for param in routine.params if not isinstance(param, ArrayParam)]
    routine.launch(pointers, [bindings[symbol] for symbol in symbols])


def _emit(backend: Backend, kernel: Kernel) -> Code:
    try:
        return backend.target.emit(kernel)
    except CompilerBug:
        raise
    except Exception as error:
        stage = f"the emitter of {backend.name}"
        raise CompilerBug(f"{type(error).__name__}: {error}", stage=stage) from error


def _dump_into(folder: str, name: str) -> Dump:
    """A writer of one readable file per stage, into a new folder for each build."""
    for number in count():
        build_folder = Path(folder, f"{name}-{number}")
        try:
            build_folder.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    order = count()

    def dump(stage: str, text: str) -> str:
        file = build_folder / f"{next(order):02}-{stage}.txt"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return dump
