"""Loops that the GPU ends: the host looks at their conditions once a round, and results are those of looking
each time."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

import numpy as np
import pytest

import arrayjit
from arrayjit.ir.launches import Launch, RepeatWhile, Step, Workspace
from arrayjit.runtime.cuda import driver, nvrtc
from arrayjit.runtime.cuda.lane import Lane

CELLS = 20_000
ROUNDS = (0, 1, 2, 3, 4, 7, 8, 31, 70)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each byte that the host has waited for."""
    seen: list[int] = []
    plain = Lane.download

    def download(self: Lane, array: np.ndarray, source: int) -> None:
        plain(self, array, source)
        if array.nbytes == 1:
            seen.append(int(array[0]))

    monkeypatch.setattr(Lane, "download", download)
    return seen


def halved(x):
    return arrayjit.while_loop(lambda x: np.abs(x).max() > 1, lambda x: x * 0.5, x)


def tallied(x, bound):
    """Counts, sums and changes an array, by several launches each time."""

    def goes_on(state):
        x, count, _ = state
        return (count < bound) & (np.abs(x).sum() < 1e30)

    def once(state):
        x, count, total = state
        return x[::-1] + x.max() * 0.25, count + 1, total + (x * x).sum()

    return arrayjit.while_loop(goes_on, once, (x, 0, 0.0))


def signed(x, bound):
    """Branches in a loop."""

    def once(state):
        x, count = state
        return arrayjit.cond(x.sum() > 0, lambda x: x - 2, lambda x: x + 3, x), count + 1

    return arrayjit.while_loop(lambda state: (state[1] < bound) & (state[0].max() < 99), once, (x, 0))


def nested(x, bound):
    def once(state):
        x, count = state
        return arrayjit.while_loop(lambda x: x.max() > 1, lambda x: x * 0.5, x * 8), count + 1

    return arrayjit.while_loop(lambda state: (state[1] < bound) & (state[0].max() < 9), once, (x, 0))


def picked(x, indices, bound):
    """Fails in the round in which an index is too large."""

    def once(state):
        x, count, found = state
        return x * 0.5 + x[indices + count].sum(), count + 1, found + x[indices[0] + count]

    return arrayjit.while_loop(lambda state: (state[1] < bound) & (state[0].max() < 1e9), once, (x, 0, 0.0))


def chosen(x):
    return arrayjit.cond(x.sum() > 0, lambda x: np.sqrt(x) * 2, lambda x: np.exp(x) - 1, x)


def array(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(CELLS)


def on_gpu(function: Callable[..., Any], *arguments: Any) -> list[np.ndarray]:
    return flat(arrayjit.jit(function, target="cuda-sim")(*arguments))


def in_interpreter(function: Callable[..., Any], *arguments: Any) -> list[np.ndarray]:
    return flat(arrayjit.jit(function, target="interp")(*arguments))


def flat(results: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (results if isinstance(results, tuple) else (results,))]


def loops(function: Callable[..., Any], *arguments: Any) -> list[RepeatWhile]:
    plan: tuple[Step, ...] = (
        arrayjit.jit(function, target="cuda-sim").lower(*arguments).build.code.payload.plan
    )
    return [step for step in plan if isinstance(step, RepeatWhile)]


def most_looks(rounds: int) -> int:
    """How often the host looks: before the first iteration, and after rounds of 1, 2, 4, ..., if these do not
    become too many."""
    return 1 + ceil(log2(rounds + 1)) + rounds // 16


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_host_looks_once_a_round(rounds: int, looks: list[int]) -> None:
    x = (array() * 0.4 + 0.55) * 2.0**rounds
    (loop,) = loops(halved, x)
    assert loop.is_guarded
    np.testing.assert_array_equal(on_gpu(halved, x)[0], in_interpreter(halved, x)[0])
    assert looks[-1] == 0
    assert len(looks) <= most_looks(rounds)


@pytest.mark.parametrize("rounds", ROUNDS[:6])
def test_states_of_several_launches_end_as_they_should(rounds: int, looks: list[int]) -> None:
    (loop,) = loops(tallied, array(), rounds)
    assert loop.is_guarded
    assert len(loop.body) + len(loop.test) > 2
    for got, wanted in zip(
        on_gpu(tallied, array(), rounds), in_interpreter(tallied, array(), rounds), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert len(looks) <= most_looks(rounds)


def test_a_loop_in_a_loop_is_looked_at_each_time_it_starts(looks: list[int]) -> None:
    (outer,) = loops(nested, array(), 5)
    (inner,) = (step for step in outer.body if isinstance(step, RepeatWhile))
    assert (outer.is_guarded, inner.is_guarded) == (False, True)
    for got, wanted in zip(on_gpu(nested, array(), 5), in_interpreter(nested, array(), 5), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_nobody_looks_whether_a_branch_is_taken(looks: list[int]) -> None:
    plan = arrayjit.jit(chosen, target="cuda-sim").lower(array()).build.code.payload.plan
    assert all(isinstance(step, Launch) for step in plan)
    for x in (array(), -array()):
        np.testing.assert_allclose(on_gpu(chosen, x)[0], in_interpreter(chosen, x)[0], rtol=1e-12)
    assert not looks


@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_a_loop_with_a_branch_in_it_has_rounds(rounds: int, looks: list[int]) -> None:
    (loop,) = loops(signed, array(), rounds)
    assert loop.is_guarded
    for got, wanted in zip(
        on_gpu(signed, array(), rounds), in_interpreter(signed, array(), rounds), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    assert len(looks) <= most_looks(rounds)


@pytest.mark.parametrize("first", [3, CELLS - 4])
def test_what_fails_in_a_round_fails_as_it_would_alone(first: int) -> None:
    indices = np.arange(first, first + 2)
    outcomes = []
    for target in ("cuda-sim", "interp"):
        x = array()
        try:
            results = flat(arrayjit.jit(picked, target=target)(x, indices, 9))
        except IndexError as error:
            results = [np.array(str(error).splitlines()[:2])]
        outcomes.append([*results, x])
    for got, wanted in zip(*outcomes, strict=True):
        if got.dtype.kind == "U":
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_a_condition_shares_its_byte_with_nothing_in_the_loop() -> None:
    build = arrayjit.jit(tallied, target="cuda-sim").lower(array(), 9).build
    placed = build.optimized.kernel.placement
    (loop,) = (step for step in build.code.payload.plan if isinstance(step, RepeatWhile))
    assert isinstance(loop.condition, Workspace)
    arena = [(place.offset, tensor.nbytes) for tensor, place in placed.items() if place.kind.value == "arena"]
    assert [start for start, size in arena if start <= loop.condition.offset < start + size] == [
        loop.condition.offset
    ]


@pytest.mark.parametrize("function", [halved, chosen])
def test_kernels_that_do_not_look_are_found(function, monkeypatch: pytest.MonkeyPatch) -> None:
    x = array() * 64 - 32 if function is halved else array()
    wanted = in_interpreter(function, x)[0]
    compiled = nvrtc.compiled

    def without_guards(source: str, arch: str, name: str):
        kept = [line for line in source.splitlines() if not line.strip().startswith("if (!*")]
        assert len(kept) < len(source.splitlines())
        return compiled("\n".join(kept), arch, name)

    monkeypatch.setattr(driver.nvrtc, "compiled", without_guards)
    assert not np.allclose(on_gpu(function, x)[0], wanted)
