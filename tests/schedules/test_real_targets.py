"""The random schedules on the real targets: several devices with threads of their own, and devices that work
when they are told to. Here only results and errors can be checked, and that it ends."""

from __future__ import annotations

import pytest
from exploring import STEPS, seeds
from schedule_programs import FAILING, PROGRAMS
from walks import Walk

from arrayjit.backends import fresh_backend
from arrayjit.compile import compile

TARGETS = {"llvm": {"devices": 3}, "sync_llvm": {}, "interp": {}}


@pytest.fixture(scope="module", params=TARGETS)
def run(request):
    backend = fresh_backend(request.param, **TARGETS[request.param])
    codes = {program: compile(backend, program.computation, shared=True) for program in (*PROGRAMS, FAILING)}
    yield lambda seed, faults: Walk(seed, backend.machine, codes.__getitem__, faults=faults).run(STEPS)
    backend.machine.unsafe_cleanup()


@pytest.mark.parametrize("faults", [False, True], ids=["sound", "with errors"])
def test_a_schedule_gives_what_its_operations_give_one_by_one(run, faults):
    for seed in seeds(150):
        run(seed, faults)
