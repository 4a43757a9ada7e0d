"""Large results lie in blocks that are used again, and no array ever sees that."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.runtime import results as module
from arrayjit.runtime.host import HostMemory
from arrayjit.runtime.results import LARGE, LARGE_TOGETHER, Results

F64 = np.dtype(np.float64)
CELLS = LARGE // 8


@pytest.fixture
def blocks() -> Results:
    return Results(limit=4 * LARGE)


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_the_next_array_of_about_the_size_gets_the_block(blocks: Results) -> None:
    array = blocks.maker((CELLS,), F64)()
    place = address(array)
    del array
    assert address(blocks.maker((CELLS,), np.dtype(np.int64))()) == place


def test_a_block_is_not_used_for_what_would_waste_more_than_an_eighth(blocks: Results) -> None:
    array = blocks.maker((2 * CELLS,), F64)()
    place = address(array)
    del array
    assert address(blocks.maker((CELLS,), F64)()) != place
    assert blocks.idle_bytes == 3 * LARGE


def test_a_large_array_is_a_plain_one_on_a_cache_line_s_boundary(blocks: Results) -> None:
    array = blocks.maker((CELLS // 4, 4), F64)()
    assert type(array) is np.ndarray
    assert array.shape == (CELLS // 4, 4)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert address(array) % 64 == 0


def test_a_small_array_owns_its_memory(blocks: Results) -> None:
    array = blocks.maker((CELLS - 1,), F64)()
    assert array.flags.owndata
    del array
    assert blocks.idle_bytes == 0


def test_strides_say_how_an_array_lies(blocks: Results) -> None:
    array = blocks.maker((4, CELLS), F64, (8, 32))()
    assert array.flags.f_contiguous


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array[5:],
        lambda array: array.reshape(-1, 2).T[1:],
        lambda array: array.view(np.int32),
        memoryview,
        np.from_dlpack,
        lambda array: array.__dlpack__(),
    ],
    ids=["slice", "reshape", "view", "memoryview", "from_dlpack", "capsule"],
)
def test_a_block_is_idle_once_the_last_view_is_gone(blocks: Results, keep: Callable[[Any], object]) -> None:
    array = blocks.maker((CELLS,), F64)()
    view = keep(array)
    del array
    assert blocks.idle_bytes == 0
    del view
    gc.collect()
    assert blocks.idle_bytes == LARGE


def test_idle_blocks_have_no_more_bytes_than_the_limit(blocks: Results) -> None:
    arrays = [blocks.maker((CELLS,), F64)() for _ in range(10)]
    latest = [address(array) for array in arrays[-4:]]
    while arrays:
        del arrays[0]
        assert blocks.idle_bytes <= 4 * LARGE
    assert address(blocks.maker((CELLS,), F64)()) == latest[-1]
    assert blocks.idle_bytes == 4 * LARGE


def test_what_is_larger_than_the_limit_is_not_kept(blocks: Results) -> None:
    blocks.maker((5 * CELLS,), F64)()
    assert blocks.idle_bytes == 0


def test_idle_blocks_make_room_for_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Results(limit=4 * LARGE)
    blocks.maker((CELLS,), F64)()
    allocate = module.HostMemory

    def short_of_memory(nbytes: int) -> object:
        if blocks.idle_bytes:
            raise MemoryError
        return allocate(nbytes)

    monkeypatch.setattr(module, "HostMemory", short_of_memory)
    assert blocks.maker((2 * CELLS,), F64)().nbytes == 2 * LARGE
    assert blocks.idle_bytes == 2 * LARGE


def test_threads_never_share_a_block(blocks: Results) -> None:
    make = blocks.maker((CELLS,), F64)
    mixed: list[int] = []

    def use(number: int) -> None:
        for _ in range(50):
            array = make()
            array[:] = number
            if not (array == number).all():
                mixed.append(number)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not mixed
    assert 0 < blocks.idle_bytes <= 4 * LARGE


def test_an_array_may_die_while_another_one_is_made(blocks: Results) -> None:
    """The garbage collector may run in the middle of anything."""

    class Dying(list[Any]):
        def __reversed__(self) -> Any:
            cycle.clear()
            return super().__reversed__()

    first = blocks.maker((CELLS,), F64)()
    cycle = [first]
    del first
    blocks._idle = Dying()
    blocks.maker((CELLS,), F64)()
    assert 0 < blocks.idle_bytes <= 2 * LARGE


def test_a_fork_has_its_own_blocks() -> None:
    double = arrayjit.jit(lambda x: x * 2, target="sync_llvm")
    x = np.arange(float(CELLS))
    kept = double(x)
    child = os.fork()
    if child == 0:
        same = all(bool((double(x) == x * 2).all()) for _ in range(3))
        kept[:] = -1
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (kept == x * 2).all()


def test_results_of_calls_are_apart() -> None:
    double = arrayjit.jit(lambda x: x * 2)
    x = np.arange(float(CELLS))
    first, second = double(x), double(x + 1)
    assert not np.shares_memory(first, second)
    assert (first == x * 2).all()


def several(x):
    return x * 2, x * 3, x * 4


def selected(x):
    return x[x > 5]


def single(x):
    return x * 2


@pytest.mark.parametrize(("function", "has_blocks"), [(several, True), (selected, True), (single, False)])
@pytest.mark.parametrize("entry", ["native", "python"])
def test_arrays_that_are_large_together_have_blocks(
    function: Callable[..., Any], has_blocks: bool, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARRAYJIT_ENTRY", entry)
    monkeypatch.setattr(module.results(), "_idle", [])
    x = np.arange(float(LARGE_TOGETHER // 8 + 10))
    jitted = arrayjit.jit(function)
    for _ in range(3):
        for one, other in zip(np.atleast_2d(jitted(x)), np.atleast_2d(function(x)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert (module.results().idle_bytes > 0) == has_blocks


@pytest.mark.alone
def test_results_of_calls_take_no_more_memory_in_the_long_run() -> None:
    double = arrayjit.jit(lambda x: x * 2)
    x = np.arange(float(CELLS))
    for _ in range(100):
        double(x)
    before = resident()
    for _ in range(300):
        double(x)
    assert resident() - before < 4 * LARGE


def test_a_transposed_result_lies_as_numpy_s_does() -> None:
    x = np.arange(float(CELLS)).reshape(4, -1).T
    got, wanted = arrayjit.jit(lambda x: x * 2)(x), x * 2
    assert got.strides == wanted.strides
    assert (got == wanted).all()


def resident() -> int:
    """The bytes of memory that this process has pages of."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory_starts_on_a_page_s_boundary_so_that_no_store_is_just_ahead_of_a_load():
    assert [HostMemory(nbytes).address % 4096 for nbytes in (1, 4096, LARGE + 1)] == [0, 0, 0]
