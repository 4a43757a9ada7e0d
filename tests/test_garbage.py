"""The collector of garbage rests while functions are compiled, and goes on as it was."""

import gc
import os
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.errors import UserError
from arrayjit.garbage import resting
from arrayjit.passes import manager


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """On before and after."""
    gc.enable()
    yield
    gc.enable()


def test_it_rests_in_a_compilation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def optimize(*args: Any, **options: Any) -> manager.Optimized:
        seen.append(gc.isenabled())
        return plain(*args, **options)

    plain = manager.optimize
    monkeypatch.setattr("arrayjit.compile.manager.optimize", optimize)
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    arrayjit.jit(lambda x: x * 3 + 14)(np.ones(3))
    assert seen == [False]
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    @arrayjit.jit
    def run(x):
        return 1 if x[0] > 0 else 2

    with pytest.raises(UserError):
        run(np.ones(3))
    assert gc.isenabled()


def test_what_the_user_has_switched_off_stays_off() -> None:
    gc.disable()
    arrayjit.jit(lambda x: x * 2)(np.ones(3))
    assert not gc.isenabled()


@contextmanager
def resting_elsewhere() -> Iterator[None]:
    """Another thread has the collector rest."""
    here, there = threading.Event(), threading.Event()

    def other() -> None:
        with resting():
            here.set()
            assert there.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert here.wait(60)
    yield
    there.set()
    thread.join()


def test_it_goes_on_after_the_last_of_several_threads() -> None:
    with resting_elsewhere():
        with resting(), resting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def state_in_fork() -> int:
    child = os.fork()
    if not child:
        os._exit(int(gc.isenabled()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_new_process_does_not_wait_for_the_threads_of_the_old() -> None:
    with resting_elsewhere():
        assert not gc.isenabled()
        assert state_in_fork() == 1


def test_a_new_process_rests_where_its_own_thread_does() -> None:
    with resting():
        assert state_in_fork() == 0


class Kept:
    """The collector looks at it, as at what modules are made of."""


def is_old(thing: object) -> bool:
    return any(thing is other for other in gc.get_objects(generation=2))


@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_made_while_modules_are_imported_is_old(
    monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    (gc.freeze if frozen else gc.unfreeze)()
    try:
        with resting():
            monkeypatch.setitem(sys.modules, "a_module_that_was_imported", types.ModuleType("a"))
            kept = Kept()
        assert is_old(kept) == (not frozen)
        assert (gc.get_freeze_count() > 0) == frozen
    finally:
        gc.freeze()


def test_what_is_made_otherwise_is_young() -> None:
    with resting():
        kept = Kept()
    assert not is_old(kept)
