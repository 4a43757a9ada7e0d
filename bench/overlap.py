"""Do devices of the CPU overlap, and what does a schedule cost? `python bench/overlap.py [--rounds N]`.

Two independent routines are scheduled on one device, where they run one after the other, and on two, in turn;
the ratio is that of the best times, so that other programs on the machine hardly count. It needs two idle
cores. The cost of a schedule is the time that the processor spends on the submitting thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from arrayjit.devices import Backend, Context, Device, Event, Routine, compile, fresh_backend
from arrayjit.ir.assign import ArrayParam, Assign, Computation, Loop
from arrayjit.ir.dtype import F64
from arrayjit.ir.expr import Apply, Const, Load
from arrayjit.ir.index import Affine, Symbol
from arrayjit.ir.ops import op
from arrayjit.ir.tensor import Tensor

SIZE = 4096
SWEEPS = 10_000
SCHEDULES = 2_000
MOST = 0.65
"""The two together may take so much of the time that one after the other takes."""


def relaxed(sweeps: int) -> tuple[Tensor, Computation]:
    """`x = 0.5 * x + 1`, so many times: arithmetic in the nearest cache."""
    x, i = Tensor.of("x", (SIZE,), F64), Symbol("i")
    half = Apply(op("multiply"), (Load(x, (Affine.of(i),)), Const(0.5, F64)), F64)
    body = Assign(((i, Affine.of(SIZE)),), x, (Affine.of(i),), Apply(op("add"), (half, Const(1.0, F64)), F64))
    loop = Loop(Symbol("sweep"), Affine.of(0), Affine.of(sweeps), 1, (body,))
    return x, Computation("relaxed", (ArrayParam(x, "update"),), (loop,))


def linked(backend: Backend, device: Device, sweeps: int) -> Routine[Context]:
    x, program = relaxed(sweeps)
    context = backend.init(device).init_from_host(x, np.zeros(SIZE))
    return context.link(compile(backend, program))


def seconds(routines: Sequence[Routine[Context]]) -> float:
    """From the first schedule to the end of the last."""
    start = time.perf_counter()
    events: list[Event] = [routine.schedule() for routine in routines]
    for event in events:
        event.sync()
    return time.perf_counter() - start


def overlap(rounds: int) -> tuple[float, float]:
    """The best times of two routines on one device and on two."""
    backend = fresh_backend("llvm", devices=2)
    first, second = backend.machine.devices()
    here, also_here, there = (linked(backend, device, SWEEPS) for device in (first, first, second))
    seconds([here, also_here, there])
    times = [(seconds([here, also_here]), seconds([here, there])) for _ in range(rounds)]
    backend.machine.unsafe_cleanup()
    return min(one for one, _ in times), min(two for _, two in times)


def cost_of_a_schedule(target: str, rounds: int) -> float:
    """Microseconds; on a device that works on the calling thread with the routine's own."""
    backend = fresh_backend(target)
    routine = linked(backend, backend.get_device(), 0)
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(SCHEDULES):
            routine.schedule()
        times.append((time.thread_time() - start) / SCHEDULES * 1e6)
        routine.context.device.await_()
    backend.machine.unsafe_cleanup()
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    one, two = overlap(rounds)
    print(f"two routines on one device  {one * 1e3:8.2f} ms")
    print(f"               on two       {two * 1e3:8.2f} ms  ratio {two / one:.2f} (at most {MOST})")
    for target in ("llvm", "sync_llvm"):
        print(f"a schedule on {target:<9}     {cost_of_a_schedule(target, rounds):8.2f} us")
    return int(two / one > MOST)


if __name__ == "__main__":
    raise SystemExit(main())
