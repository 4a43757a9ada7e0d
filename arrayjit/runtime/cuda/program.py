"""A DeviceProgram on a GPU: its kernels loaded, and its plan ready to run.

Arguments are packed once; what changes from launch to launch is written over. A plan of several launches that
runs again with the same addresses and numbers is captured as a graph, which is then launched as one. Where
launches are measured, they are launched one by one.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Union

import numpy as np

from ...errors import CompilerBug, Location
from ...frozen import frozen, slotted
from ...ir.code import Code
from ...ir.index import Symbol
from ...ir.launches import (
    DeviceProgram,
    Launch,
    Number,
    Pointer,
    Repeat,
    RepeatWhile,
    StatusWord,
    Step,
    Workspace,
)
from ...ir.params import IndexParam
from .api import ALL_BITS, Dims, Image, Packed, Resources
from .gpu import Gpu
from .lane import Lane, lane_in_use
from .nvrtc import Usage, usage

__all__ = ["GpuExecutable", "LoadedKernel"]

_GRAPHS = 8
"""Of each executable that are kept, for the addresses that were used last."""

_LONGEST = 4096
"""Launches in a graph."""


_AHEAD = 128
"""Launches of a loop that may follow one another before the host looks whether it goes on. A loop has as many
in vain as it had in earnest, at most: rounds grow by factors of two."""


@slotted
class _Run:
    """One run of a plan."""

    lane: Lane
    pointers: Sequence[int]
    workspace: int
    status: int
    symbols: dict[Symbol, int]
    launches: int = 0


Act = Callable[[_Run], None]


@frozen
class LoadedKernel:
    """What a launch of a plan runs: blocks of so many threads, and what these take, of which `spilled_bytes`
    were moved out of a thread's registers (None where no assembler has told); `loc` is the user's line.
    `shared_bytes` are all of a block."""

    name: str
    threads: Dims
    shared_bytes: int
    resources: Resources
    spilled_bytes: int | None
    loc: Location | None


class GpuExecutable:
    """Loaded kernels, in the order of the plan's launches; they stay loaded as long as the object lives."""

    def __init__(self, gpu: Gpu, code: Code, image: Image, seconds: Mapping[str, float]) -> None:
        program: DeviceProgram = code.payload
        self.seconds = seconds
        self.image = image
        self._gpu = gpu
        self._name = code.name
        self._may_fail = program.may_fail
        self._symbols = tuple(param.symbol for param in code.params if isinstance(param, IndexParam))
        self._is_constant = _is_constant(program.plan)
        self._writing = Lock()  # of the packed arguments
        self._graphs: OrderedDict[tuple[object, ...], int] = OrderedDict()  # 0 for what has run once
        self._launchers: list[_Launcher] = []
        with gpu.asked():
            self._module = gpu.api.load(image)
            weakref.finalize(self, gpu.leave_module, self._module).atexit = False
            self._plan = tuple(self._made(step) for step in program.plan)

    @property
    def kernels(self) -> tuple[LoadedKernel, ...]:
        """What each launch of the plan runs; the numbers of a LaunchClock count them from 0."""
        reports = usage(self.image.log)
        with self._gpu.asked():
            return tuple(launcher.loaded(reports) for launcher in self._launchers)

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int = 0) -> int:
        """Run the plan on the lane that this thread is on. Waits only for programs that may fail."""
        lane = lane_in_use()
        if lane is not None and self._gpu.has(lane):
            return self._launched(lane, pointers, bindings, workspace)
        with self._gpu.at() as aside:
            return self._launched(aside, pointers, bindings, workspace)

    def _launched(self, lane: Lane, pointers: Sequence[int], bindings: Sequence[int], workspace: int) -> int:
        status = lane.status_address() if self._may_fail else 0
        run = _Run(lane, pointers, workspace, status, dict(zip(self._symbols, bindings, strict=True)))
        if status:
            self._gpu.api.memset(status, 0, 8, lane.stream)
        key = (status, workspace, *pointers, *bindings)
        graph = self._graphs.get(key) if self._is_constant and lane.clock is None else None
        with self._writing:
            if graph is None:
                self._play(run)
                if self._is_constant and lane.clock is None and 1 < run.launches <= _LONGEST:
                    self._keep(key, 0)
            else:
                graph = graph or self._captured(run)
                self._keep(key, graph)
                self._gpu.api.graph_launch(graph, lane.stream)
                lane.recent.append(f"a kernel of {self._name!r}")
        return lane.status() if status else 0

    def _play(self, run: _Run) -> None:
        for act in self._plan:
            act(run)

    def _captured(self, run: _Run) -> int:
        """The plan of a run as a graph."""
        api, stream = self._gpu.api, run.lane.stream
        api.begin_capture(stream)
        try:
            self._play(run)
        except BaseException:
            api.destroy_graph(api.end_capture(stream))
            raise
        return api.end_capture(stream)

    def _keep(self, key: tuple[object, ...], graph: int) -> None:
        """Keep a graph as the one that was used last."""
        self._graphs[key] = graph
        self._graphs.move_to_end(key)
        if len(self._graphs) > _GRAPHS:
            _, oldest = self._graphs.popitem(last=False)
            if oldest:
                self._gpu.leave_graph(oldest)

    def _made(self, step: Step) -> Act:
        """What does a step of the plan."""
        match step:
            case Launch():
                launcher = _Launcher(self._gpu, self._module, self._name, step, len(self._launchers))
                self._launchers.append(launcher)
                return launcher
            case Repeat(symbol=symbol, lo=lo, hi=hi, step=stride, body=body):
                acts = tuple(self._made(inner) for inner in body)

                def repeat(run: _Run) -> None:
                    symbols = run.symbols
                    for number in range(lo.evaluate(symbols), hi.evaluate(symbols), stride):
                        symbols[symbol] = number
                        for act in acts:
                            act(run)

                return repeat
            case RepeatWhile():
                return self._repeating(step)

    def _repeating(self, loop: RepeatWhile) -> Act:
        """What runs a loop that the device ends: guarded ones in rounds, between which the host looks at the
        condition."""
        tests = tuple(self._made(inner) for inner in loop.test)
        acts = (*(self._made(inner) for inner in loop.body), *tests)

        def repeat_while(run: _Run) -> None:
            if loop.is_guarded and tests:
                self._gpu.api.memset(_address(run, loop.condition), 1, 1, run.lane.stream)
            for act in tests:
                act(run)
            at_once = 1
            while _holds(run, loop.condition):
                before = run.launches
                for _ in range(at_once):
                    for act in acts:
                        act(run)
                if loop.is_guarded and run.lane.clock is None:  # what is timed is launched in earnest only
                    launches = max(1, (run.launches - before) // at_once)
                    at_once = max(1, min(2 * at_once, _AHEAD // launches))

        return repeat_while


class _Launcher:
    """A step that launches a kernel; `number` is its place among those of the plan."""

    def __init__(self, gpu: Gpu, module: int, program: str, step: Launch, number: int) -> None:
        if not 1 <= len(step.grid) <= 3 or not 1 <= len(step.threads) <= 3:
            raise CompilerBug(f"kernel {step.kernel!r} has a grid of {len(step.grid)} axes", stage="emitter")
        self.number = number
        self._step = step
        self._api = gpu.api
        self._launch = gpu.api.launch
        self._function = gpu.api.function(module, step.kernel, step.shared_bytes)
        self._block = _three(step.threads)
        self._shared_bytes = step.shared_bytes
        self._name = f"{step.kernel!r} of {program!r}{f', {step.loc}' if step.loc else ''}"
        self._packed = Packed([0] * len(step.arguments))
        self._blocks = step.grid
        self._grid: Dims | None = None
        if all(blocks.cells.is_constant for blocks in step.grid):
            self._grid = _three([blocks.count({}) for blocks in step.grid])
        self._pointers: list[tuple[int, int]] = []
        self._workspaces: list[tuple[int, int]] = []
        self._numbers: list[tuple[int, Number]] = []
        self._statuses: list[int] = []
        for slot, argument in enumerate(step.arguments):
            match argument:
                case Pointer(number=number):
                    self._pointers.append((slot, number))
                case Workspace(offset=offset):
                    self._workspaces.append((slot, offset))
                case Number(value=value) if value.is_constant:
                    self._packed.values[slot] = value.offset & ALL_BITS
                case Number():
                    self._numbers.append((slot, argument))
                case StatusWord():
                    self._statuses.append(slot)

    def __call__(self, run: _Run) -> None:
        grid = self._grid or _three([blocks.count(run.symbols) for blocks in self._blocks])
        if 0 in grid:
            return
        values = self._packed.values
        for slot, number in self._pointers:
            values[slot] = run.pointers[number]
        for slot, offset in self._workspaces:
            values[slot] = run.workspace + offset
        for slot, argument in self._numbers:
            values[slot] = argument.value.evaluate(run.symbols) & ALL_BITS
        for slot in self._statuses:
            values[slot] = run.status
        run.launches += 1
        lane = run.lane
        lane.recent.append(self._name)
        if lane.clock is not None:
            lane.clock.start(self.number, grid)
        self._launch(self._function, grid, self._block, self._shared_bytes, lane.stream, self._packed)
        if lane.clock is not None:
            lane.clock.stop()

    def loaded(self, reports: Mapping[str, Usage]) -> LoadedKernel:
        """What it launches, of which the assembler reported so."""
        step, resources = self._step, self._api.resources(self._function)
        report = reports.get(step.kernel)
        return LoadedKernel(
            step.kernel,
            self._block,
            resources.shared_bytes + self._shared_bytes,
            resources,
            None if report is None else report.spilled_bytes,
            step.loc,
        )


def _address(run: _Run, place: Union[Pointer, Workspace]) -> int:
    return run.pointers[place.number] if isinstance(place, Pointer) else run.workspace + place.offset


def _holds(run: _Run, condition: Union[Pointer, Workspace]) -> bool:
    """Whether the byte that a test wrote is not 0, once it is there, and nothing has failed."""
    byte = np.empty(1, np.uint8)
    run.lane.download(byte, _address(run, condition))
    return bool(byte[0]) and not (run.status and run.lane.status())


def _three(counts: Sequence[int]) -> Dims:
    x, y, z = (*counts, *(1,) * (3 - len(counts)))
    return x, y, z


def _is_constant(plan: tuple[Step, ...]) -> bool:
    """Whether the same launches follow for the same addresses and numbers."""
    return all(
        isinstance(step, Launch) or (isinstance(step, Repeat) and _is_constant(step.body)) for step in plan
    )
