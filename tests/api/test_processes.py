"""Jitted functions in threads and processes: compiled once, pickled by name, gone when nobody has them."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import arrayjit


def softened(x, factor):
    return np.tanh(x * factor) + x.sum()


def test_threads_that_compile_for_different_arguments_do_not_disturb_each_other():
    f = arrayjit.jit(softened)
    sizes = [n for n in range(1, 25) for _ in range(4)]
    expected = {n: softened(np.linspace(0, 1, n), 2.0) for n in sizes}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for n, result in zip(sizes, pool.map(lambda n: f(np.linspace(0, 1, n), 2.0), sizes), strict=True):
            np.testing.assert_allclose(result, expected[n], rtol=1e-12)
    assert f.stats().compiles == 24


@pytest.mark.parametrize("target", ["llvm", "sync_llvm"])
def test_one_kernel_may_be_called_from_several_threads_at_once(target):
    f = arrayjit.jit(lambda x: np.sort(np.sin(x) * np.arange(x.size))[::7].cumsum(), target=target)
    inputs = [np.linspace(0, k, 30_000) for k in range(1, 9)]
    expected = [f(x) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for result, wanted in zip(pool.map(f, inputs), expected, strict=True):
                assert result.tobytes() == wanted.tobytes()


MODULE = """
import numpy as np
import arrayjit

FACTOR = 3.0

@arrayjit.jit
def scaled(x):
    return np.exp(x) * FACTOR

class Model:
    @arrayjit.jit
    def energy(self, x):
        return (x * x).sum()
"""

POOLS = {
    "multiprocessing, fork": """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map(scaled, inputs)
    """,
    "multiprocessing, spawn": """
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            results = pool.map(scaled, inputs)
    """,
    "concurrent.futures": """
        import concurrent.futures, multiprocessing
        context = multiprocessing.get_context("forkserver")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            results = list(pool.map(scaled, inputs))
    """,
    "joblib, processes": """
        import joblib
        results = joblib.Parallel(n_jobs=2)(joblib.delayed(scaled)(x) for x in inputs)
    """,
    "joblib, threads": """
        import joblib
        results = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(scaled)(x) for x in inputs)
    """,
}


@pytest.mark.parametrize("pool", POOLS)
def test_pools_take_jitted_functions(tmp_path, pool):
    (tmp_path / "model.py").write_text(MODULE)
    script = tmp_path / "script.py"
    body = textwrap.indent(textwrap.dedent(POOLS[pool]), "    ")
    script.write_text(
        f"""
import numpy as np
from model import scaled

if __name__ == "__main__":
    inputs = [np.linspace(0, 1, n) for n in (5, 5, 7, 5)]
    here = [scaled(x).tobytes() for x in inputs]
{body}
    print([result.tobytes() for result in results] == here)
"""
    )
    assert told(script) == "True"


def test_a_bound_method_is_pickled_with_its_object(tmp_path):
    (tmp_path / "model.py").write_text(MODULE)
    script = tmp_path / "script.py"
    script.write_text(
        """
import pickle
import numpy as np
from model import Model

energy = pickle.loads(pickle.dumps(Model().energy))
print(energy(np.arange(4.0)))
"""
    )
    assert told(script) == "14.0"


def told(script: Path) -> str:
    paths = [str(script.parent), *sys.path]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_functions_that_are_made_compiled_and_dropped_leave_nothing_behind():
    """Two thousand times, some until they are called without Python."""
    x = np.ones(100)
    after: dict[int, tuple[int, int]] = {}
    for cycle in range(1, 2001):
        f = arrayjit.jit(lambda a, b: np.exp(a) * b + a)
        for _ in range(70 if cycle % 10 == 0 else 2):
            f(x, x)
        del f
        if cycle in (500, 2000):
            gc.collect()
            after[cycle] = (pages(), len(gc.get_objects()))
    (pages_before, objects_before), (pages_after, objects_after) = after[500], after[2000]
    assert (pages_after - pages_before) * os.sysconf("SC_PAGE_SIZE") < 4 << 20
    assert objects_after - objects_before < 500
