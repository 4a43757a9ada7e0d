"""The whole flow on one screen: Computation -> passes -> Kernel -> target -> Code -> Procedure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .backends import Backend, backend, lowering_backend
from .errors import CompilerBug, SettingError, UnsupportedError, UserError, is_ours
from .frozen import frozen_by_identity
from .ir.code import DEFAULT_OPT, DEFAULT_SCHEDULE, Caps, Code, Postponed, Schedule
from .ir.index import Symbol
from .ir.journal import VALUES
from .ir.params import ArrayParam, Param
from .ir.tensor import Tensor
from .late import Late
from .reuse import Call, code_key, recall_code, remember_code
from .runtime.procedure import Procedure
from .settings import Settings
from .timeline import RECORDER, note
from .tracer.calls.convention import Convention

if TYPE_CHECKING:
    import pathlib

    from .ir import assign, text
    from .ir.assign import Computation
    from .ir.loops import Kernel
    from .passes import manager
    from .passes.analysis import work
    from .runtime.device import Device
else:
    pathlib = Late("pathlib")
    assign, text = Late("arrayjit.ir.assign"), Late("arrayjit.ir.text")
    manager, work = Late("arrayjit.passes.manager"), Late("arrayjit.passes.analysis.work")

__all__ = [
    "STAGES",
    "Build",
    "Emitted",
    "Program",
    "build",
    "compile",
    "compile_batch",
    "kept_call",
    "recalled",
    "run",
]

STAGES = ("assignments", "loops", "optimized", "llvm", "c", "cuda", "asm", "ptx", "sass")

_LANGUAGES = {"": (), "llvm": ("llvm", "asm"), "c": ("c", "asm"), "cuda": ("cuda", "ptx", "sass")}
"""The stages of targets that emit text."""


class Program(Protocol):
    """A computation and the tensors that it expects to find in the context that it is linked into."""

    @property
    def computation(self) -> Computation: ...

    @property
    def prior(self) -> frozenset[Tensor]: ...


@frozen_by_identity
class Emitted:
    """Code for one target, not yet linked.

    `seconds` has the time of each phase: every pass by its name, then `emit`; of code of an earlier process,
    `recall call` or `recall text` alone. `key` is what the code is kept under; "" where it is not.
    """

    backend: Backend
    code: Code
    seconds: Mapping[str, float]
    key: str

    def load(self) -> Procedure:
        """Native code on the backend's first device."""
        return self.backend.get_device(0).load(self.code)


@frozen_by_identity
class Build(Emitted):
    """A computation as code for one target. `rerun` runs the passes again and shows each to a watcher;
    `remarks` are decisions beside theirs."""

    computation: Computation
    optimize: Callable[[], manager.Optimized] = field(repr=False)
    rerun: Callable[[manager.Watch], manager.Optimized] = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def optimized(self) -> manager.Optimized:
        """What the passes did, done now if the code is of an earlier process."""
        return self.optimize()

    def as_text(self, stage: str) -> str:
        """The text of a stage: one of `STAGES`. Raises UnsupportedError for a stage the target lacks."""
        match stage:
            case "assignments":
                return text.print_computation(self.computation)
            case "loops":
                return text.print_kernel(self.optimized.loops)
            case "optimized":
                return text.print_kernel(self.optimized.kernel)
            case _ if stage == self.backend.target.language and isinstance(self.code.payload, str):
                return self.code.payload
            case "asm" if isinstance(self.code.payload, str):
                return self.backend.driver.assembly(self.code)
            case "cuda" if self.backend.target.language == "cuda":
                return str(self.code.payload.source)
            case "ptx" if self.backend.target.language == "cuda":
                return self.backend.driver.assembly(self.code)
            case "sass" if self.backend.target.language == "cuda":
                driver: Any = self.backend.driver
                return str(driver.machine_code(self.code))
            case _:
                own = (*STAGES[:3], *_LANGUAGES[self.backend.target.language])
                other = {"asm": "llvm", "ptx": "cuda", "sass": "cuda"}.get(stage, stage)
                raise UnsupportedError(
                    f"target {self.backend.name!r} has no stage {stage!r}",
                    fix=f"choose one of {', '.join(own)}"
                    + (f", or lower for target {other}" if stage in STAGES else ""),
                )


def build(
    computation: Computation,
    target: str,
    settings: Settings | None = None,
    *,
    threads: int | None = None,
    fast: tuple[str, ...] = (),
    schedule: Schedule = DEFAULT_SCHEDULE,
    opt: int = DEFAULT_OPT,
    device: Device | None = None,
) -> Build:
    """Run the passes and the emitter, for at most so many threads and for a device, by default the first; a
    GPU need not be there. `fast` is that of Caps. Raises UnknownTarget, BackendUnavailable, CompilerBug."""
    chosen = lowering_backend(target) if device is None else _backend_of(target, device)
    settings = settings or Settings.from_environment()
    caps = _caps(chosen, threads, fast)
    start = time.perf_counter()
    key = ""

    def rerun(watch: manager.Watch) -> manager.Optimized:
        return manager.optimize(computation, caps, schedule, watch=watch)

    if not settings.watches and not computation.checks:
        key = code_key(computation, chosen.name, chosen.target.cpu, caps, schedule)
        code = recall_code(key, computation.params)
        if code is not None:
            again = cache(lambda: manager.optimize(computation, caps, schedule))
            code = replace(code, threads=threads, opt=opt)
            seconds = {"recall text": time.perf_counter() - start}
            return Build(chosen, code, seconds, key, computation, again, rerun)
    optimized, dump = _optimized(computation, settings, caps, schedule)
    start = time.perf_counter()
    code = _emit(chosen, optimized.kernel, dump)
    code = replace(code, params=_with_own(code.params, computation), threads=threads, opt=opt)
    seconds = {**optimized.seconds, "emit": time.perf_counter() - start}
    note("emit", "compile", start)
    if key:
        remember_code(key, computation.params, code)
    return Build(chosen, code, seconds, key, computation, lambda: optimized, rerun)


def kept_call(
    function: Callable[..., Any],
    key: Hashable,
    target: str,
    threads: int | None,
    fast: tuple[str, ...],
    device: Device | None,
) -> Call | None:
    """A call as other processes may know it; `key` is all that its trace depends on beside the function. None
    for one that cannot be told from others."""
    chosen = _backend_of(target, device)
    return Call.of(function, key, chosen.name, chosen.target.cpu, _caps(chosen, threads, fast))


def recalled(
    call: Call,
    leaves: Sequence[Any],
    target: str,
    *,
    threads: int | None,
    opt: int,
    device: Device | None,
) -> tuple[Convention, Emitted] | None:
    """What an earlier process made of a call, which then needs neither tracing nor passes; None if there is
    none."""
    start = time.perf_counter()
    kept = call.recall(leaves)
    if kept is None:
        return None
    convention, params, key = kept
    code = recall_code(key, params)
    if code is None:
        return None
    code = replace(code, threads=threads, opt=opt)
    chosen = _backend_of(target, device)
    return convention, Emitted(chosen, code, {"recall call": time.perf_counter() - start}, key)


def compile(
    backend: Backend, program: Program | Computation, *, name: str | None = None, shared: bool = False
) -> Code | Postponed:
    """Code to be linked into contexts of the backend's devices, planned for the first; give
    `backend.fitted(device)` for another.

    `name` replaces the computation's. With `shared` the code is emitted now, once for all links; otherwise
    when it is linked, if it ever is. Mistakes in the program are raised now in either case.
    """
    computation = program if isinstance(program, assign.Computation) else program.computation
    prior = frozenset[Tensor]() if isinstance(program, assign.Computation) else program.prior
    if name is not None:
        computation = replace(computation, name=name)
    if RECORDER.values is not None:
        computation = replace(computation, checks=(*computation.checks, VALUES))
    optimized, dump = _optimized(computation, Settings.from_environment(), _caps(backend))

    def emit() -> Code:
        code = _emit(backend, optimized.kernel, dump)
        return replace(code, params=_with_own(code.params, computation), prior=prior)

    if shared:
        return emit()
    params = _with_own(optimized.kernel.params, computation)
    return Postponed(backend.name, computation.name, params, prior, emit)


def compile_batch(
    backend: Backend,
    programs: Sequence[Program | Computation],
    *,
    names: Sequence[str] | None = None,
    occupancy: Callable[[str, int], bool] | None = None,
    shared: bool = False,
) -> tuple[Code | Postponed | None, ...]:
    """Code of several programs, for `Context.link_batch`. `names` replace theirs; where `occupancy` says no
    to a name and its position there is None. Raises ValueError for another number of names."""
    if names is None:
        names = [(p if isinstance(p, assign.Computation) else p.computation).name for p in programs]
    return tuple(
        compile(backend, program, name=name, shared=shared)
        if occupancy is None or occupancy(name, number)
        else None
        for number, (program, name) in enumerate(zip(programs, names, strict=True))
    )


def run(
    procedure: Procedure, arrays: Mapping[Tensor, np.ndarray], bindings: Mapping[Symbol, int] | None = None
) -> None:
    """Run a procedure on NumPy arrays, in place: one aligned native array per array parameter."""
    bindings = bindings or {}
    pointers = [
        arrays[param.tensor].ctypes.data for param in procedure.params if isinstance(param, ArrayParam)
    ]
    symbols = [param.symbol for param in procedure.params if not isinstance(param, ArrayParam)]
    procedure.launch(pointers, [bindings[symbol] for symbol in symbols])


def _backend_of(target: str, device: Device | None) -> Backend:
    """The backend that plans for a device, by default for the target's first."""
    return backend(target) if device is None else backend(target).fitted(device)


def _caps(backend: Backend, threads: int | None = None, fast: tuple[str, ...] = ()) -> Caps:
    """What passes may know of the hardware, with so many threads at most; `fast` is for GPUs."""
    caps = backend.target.caps()
    if fast and caps.gpu is not None:
        caps = replace(caps, fast=fast)
    return caps if threads is None else replace(caps, threads=min(threads, caps.threads))


def _optimized(
    computation: Computation, settings: Settings, caps: Caps, schedule: Schedule = DEFAULT_SCHEDULE
) -> tuple[manager.Optimized, manager.Dump | None]:
    dump = _dump_into(settings.dump, computation.name) if settings.dump else None
    if dump is not None:
        dump("traced", text.print_computation(computation, locations=True))
    return manager.optimize(computation, caps, schedule, verify=settings.verify, dump=dump), dump


def _with_own(params: tuple[Param, ...], computation: Computation) -> tuple[Param, ...]:
    """The parameters of a kernel as its caller knows them: passes see arrays of the parts of complex ones."""
    return (*computation.params, *params[len(computation.params) :])


def _emit(backend: Backend, kernel: Kernel, dump: manager.Dump | None) -> Code:
    try:
        emitted = backend.target.emit(kernel)
        code = replace(emitted, is_short=work.is_short(kernel), logged=kernel.logged)
    except Exception as error:
        if isinstance(error, CompilerBug) or not is_ours(error):
            raise
        stage = f"the emitter of {backend.name}"
        raise CompilerBug(f"{type(error).__name__}: {error}", stage=stage) from error
    if dump is not None and isinstance(code.payload, str):
        dump("emitted", code.payload)
        dump("asm", _assembly_or_reason(backend, code))
    return code


def _assembly_or_reason(backend: Backend, code: Code) -> str:
    """The machine code as text, or why there is none here."""
    try:
        return backend.driver.assembly(code)
    except UserError as error:
        return f"{error}\n"


def _dump_into(folder: str, name: str) -> manager.Dump:
    """A writer of one readable file per stage, into a new folder for each build. Raises SettingError where
    that cannot be written."""
    order = count()
    try:
        build_folder = _new_folder(pathlib.Path(folder), re.sub(r"\W+", "_", name) or "program")
    except OSError as error:
        raise SettingError(
            f"ARRAYJIT_DUMP is {folder!r}, where nothing can be written: {error.strerror}",
            fix="set it to a folder of your own, which is made if need be",
        ) from None

    def dump(stage: str, text: str) -> str:
        file = build_folder / f"{next(order):03}-{stage}.txt"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return dump


def _new_folder(parent: pathlib.Path, name: str) -> pathlib.Path:
    """The first folder `name-0`, `name-1`, ... that was not there."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
