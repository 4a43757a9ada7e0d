"""Jitted functions in threads and processes: compiled once, pickled by name, gone when nobody has them."""

from __future__ import annotations

import concurrent.futures
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import arrayjit
from arrayjit import cache


def softened(x, factor):
    return np.tanh(x * factor) + x.sum()


@pytest.mark.filterwarnings("ignore::arrayjit.RecompilationWarning")
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
    "dask, processes": """
        import dask
        lazy = [dask.delayed(scaled)(x) for x in inputs]
        results = dask.compute(*lazy, scheduler="processes", num_workers=2)
    """,
    "dask, threads": """
        import dask
        results = dask.compute(*[dask.delayed(scaled)(x) for x in inputs], scheduler="threads")
    """,
    "dask, blocks of arrays": """
        from dask.array import from_array
        lazy = [from_array(x, chunks=3).map_blocks(scaled) for x in inputs]
        results = [whole.compute(scheduler="threads") for whole in lazy]
    """,
    "asyncio": """
        import asyncio
        async def all_of_them():
            return await asyncio.gather(*(asyncio.to_thread(scaled, x) for x in inputs))
        results = asyncio.run(all_of_them())
    """,
}


PROCESSES = ["multiprocessing, spawn", "joblib, processes", "dask, processes"]


@pytest.mark.parametrize(
    ("pool", "place"),
    [*((pool, "a module") for pool in POOLS), *((pool, "the script") for pool in PROCESSES)],
)
def test_pools_take_jitted_functions_of_a_module_and_of_the_script(tmp_path, pool, place):
    (tmp_path / "model.py").write_text(MODULE)
    script = tmp_path / "script.py"
    body = textwrap.indent(textwrap.dedent(POOLS[pool]), "    ")
    script.write_text(
        f"""
{MODULE if place == "the script" else "from model import *"}

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


BY_VALUE = """
import cloudpickle, subprocess, sys
import numpy as np
import arrayjit

def made(factor):
    @arrayjit.jit(static_argnames="n", target="sync_llvm")
    def power(x, n):
        return x * factor if n == 1 else power(x, n - 1) * factor
    return power

@arrayjit.jit
def scaled(x):
    return shift(x) * made(3.0)(x, 2)

@arrayjit.jit
def shift(x):
    return x + 1 if x.ndim else scaled(x)

pickled = cloudpickle.dumps([made(2.0), scaled])
subprocess.run([sys.executable, "-c", LOADER, pickled.hex()], check=True)
"""
LOADER = """
import pickle, sys
import numpy as np
power, scaled = pickle.loads(bytes.fromhex(sys.argv[1]))
x = np.arange(3.0)
print(power(x, n=3), scaled(x), type(power).__mro__[1].__name__, power.stats().reasons[0].target)
"""


def test_functions_that_no_name_leads_to_are_taken_by_value(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"LOADER = {LOADER!r}\n{BY_VALUE}")
    assert told(script) == "[ 0.  8. 16.] [ 0. 18. 54.] JitFunction sync_llvm"


def softened_cubes(x):
    return np.tanh(x) ** 3


cubes = arrayjit.jit(softened_cubes, target="sync_llvm", fast=["tf32"])


def test_a_function_whose_name_leads_to_the_plain_one_is_pickled_with_it():
    again = pickle.loads(pickle.dumps(cubes))
    x = np.linspace(0.0, 1.0, 5)
    assert again(x).tobytes() == cubes(x).tobytes()
    assert again.stats().reasons[0].target == "sync_llvm"
    assert pickle.loads(pickle.dumps(cubes)) is again, "which keeps what it has compiled"
    assert pickle.loads(pickle.dumps(cubes.on(threads=1)))(x).tobytes() == cubes(x).tobytes()


def test_copies_are_the_function_itself():
    assert copy.copy(cubes) is copy.deepcopy(cubes) is cubes


def test_pythons_own_pickler_takes_no_function_without_a_name():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(arrayjit.jit(lambda x: x))


FIFTY = """
import json, sys
import numpy as np
import arrayjit
from arrayjit.cache import counters

def made(number):
    return arrayjit.jit(lambda x: x * number + x[::-1])

x, first = np.linspace(0, 1, 20), int(sys.argv[1])
for number in [*range(first, 50), *range(first)]:
    np.testing.assert_array_equal(made(float(number))(x), x * number + x[::-1])
print(json.dumps([counters.damaged, counters.refused, "llvmlite" in sys.modules]))
"""


@pytest.fixture
def kept(tmp_path):
    """Starts processes that keep their code in a folder of this test."""
    folder = tmp_path / "kept"

    def started(text: str, *args: str, **environment: str) -> subprocess.Popen[str]:
        settings = {"PYTHONPATH": os.pathsep.join(sys.path), "ARRAYJIT_CACHE_DIR": str(folder), **environment}
        command = [sys.executable, "-c", text, *args]
        environ, pipe = {**os.environ, **settings}, subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environ, cwd=tmp_path)

    return started


def said(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip(), err


def test_eight_processes_that_race_for_fifty_kernels_compile_them_for_a_ninth(kept, tmp_path, monkeypatch):
    for racer in [kept(FIFTY, str(6 * k)) for k in range(8)]:
        assert json.loads(said(racer)[0])[:2] == [0, 0]
    assert json.loads(said(kept(FIFTY, "0"))[0]) == [0, 0, False]
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "kept"))
    assert cache.contents().entries["code"] == 50
    assert cache.verify()[1] == 0


INCREASED = """
import sys
import numpy as np
import arrayjit
f = arrayjit.jit(lambda x: x + 1.0)
print([f(np.zeros(n)).tolist() for n in range(1, 6)], "llvmlite" in sys.modules)
"""


def test_two_versions_that_use_one_folder_at_the_same_time_do_not_mix(kept, tmp_path):
    """In one of them addition is spelled as subtraction."""
    versions = [str(tmp_path / name) for name in ("right", "wrong")]
    for version in versions:
        shutil.copytree(Path(arrayjit.__file__).parent, Path(version, "arrayjit"))
    table = Path(versions[1], "arrayjit", "ir", "ops.py")
    table.write_text(table.read_text().replace('"fadd"', '"fsub"'))
    for has_compiled in (True, False):
        processes = [kept(INCREASED, PYTHONPATH=os.pathsep.join([path, *sys.path])) for path in versions]
        told = [said(process)[0] for process in processes]
        assert told == [f"{[[one] * n for n in range(1, 6)]} {has_compiled}" for one in (1.0, -1.0)]


def test_where_a_home_cannot_be_written_to_every_process_compiles(kept, tmp_path):
    (tmp_path / ".cache").write_text("no folder can be made here")
    tmp_path.chmod(0o555)
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "ARRAYJIT_CACHE_DIR": ""}
    results = [said(kept(INCREASED, **home)) for _ in range(2)]
    tmp_path.chmod(0o755)
    for out, err in results:
        assert out == f"{[[1.0] * n for n in range(1, 6)]} True"
        assert err.count("nothing is kept in") == 1


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


def test_on_a_disk_that_is_full_in_the_middle_of_a_file_every_process_compiles(kept, tmp_path):
    """A file that outgrows a limit ends as one on a full disk does."""
    for _ in range(2):
        out, err = said(kept(FULL + INCREASED))
        assert out == f"{[[1.0] * n for n in range(1, 6)]} True"
        assert err.count("nothing is kept in") == 1
    assert [path for path in (tmp_path / "kept").rglob("*") if path.is_file()] == []


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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_functions_that_are_made_compiled_and_dropped_leave_nothing_behind(tmp_path):
    """Three thousand times, some until they are called without Python, after three thousand and then three
    thousand others, the process needs no more memory than it did. In a process of its own, since what
    thousands of tests have freed may not fit what one more needs. The most of many moments counts: an
    allocator gives back a megabyte at times, and takes it again. What the system has written out counts, and
    what it may read from files again does not: it takes both away at will."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import gc
from pathlib import Path
import arrayjit
import numpy as np

def kib():
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(told[kind].split()[0]) for kind in ("RssAnon", "VmSwap"))

x = np.ones(100)
most = 0
for cycle in range(1, 9001):
    f = arrayjit.jit(lambda a, b: np.exp(a) * b + a)
    for _ in range(70 if cycle % 10 == 0 else 2):
        f(x, x)
    del f
    if cycle > 3000 and cycle % 50 == 0:
        most = max(most, kib())
    if cycle in (6000, 9000):
        gc.collect()
        print(most, len(gc.get_objects()))
        most = 0
"""
    )
    (most_before, objects_before), (most_after, objects_after) = (
        map(int, line.split()) for line in told(script).splitlines()
    )
    assert most_after - most_before < 1 << 10
    assert objects_after - objects_before < 20


def test_a_function_that_is_made_again_leaves_nothing_for_the_collector(tmp_path):
    """It would lie there until the collector goes through everything that the process has. Threads that other
    tests have left may drop something at any time, so this has a process of its own too."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import gc
import arrayjit
import numpy as np

x = np.ones(100)

def make_and_drop():
    f = arrayjit.jit(lambda a, b: np.exp(a) * b - a)
    for _ in range(70):
        f(x, x)

make_and_drop()
gc.collect()
gc.disable()
make_and_drop()
print(gc.collect())
"""
    )
    assert told(script) == "0"


def forked(text: str) -> None:
    """A script whose children do something, by `go_on`, ends well."""
    begin = """
        import faulthandler, os, threading, time
        import numpy as np
        import arrayjit

        def go_on(act):
            \"\"\"A child does it.\"\"\"
            child = os.fork()
            if child == 0:
                faulthandler.dump_traceback_later(200, exit=True)
                act()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """
    script = textwrap.dedent(begin) + textwrap.dedent(text)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_child_may_be_forked_while_threads_compile() -> None:
    forked("""
        is_over = False

        def compile_more():
            number = 0
            while not is_over:
                number += 1
                add = arrayjit.jit(eval(f"lambda x: np.cumsum(np.sin(x) * {number})"))
                add(np.arange(5.0))

        def act():
            assert np.array_equal(arrayjit.jit(lambda x: x * 3)(np.arange(4.0)), np.arange(4.0) * 3)

        act()  # a child may not be forked while a thread imports what compiling needs
        threads = [threading.Thread(target=compile_more, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            time.sleep(0.05)
            go_on(act)
        is_over = True
        for thread in threads:
            thread.join()
    """)


def test_a_child_compiles_what_a_thread_was_about_to() -> None:
    forked("""
        begun, allowed = threading.Event(), threading.Event()

        def wait():
            begun.set()
            allowed.wait()

        def program(x):
            wait()
            return x + 1

        jitted = arrayjit.jit(program)

        def call():
            assert np.array_equal(jitted(np.arange(4.0)), np.arange(4.0) + 1)

        def act():
            allowed.set()
            call()

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        begun.wait()
        go_on(act)
        allowed.set()
        thread.join()
    """)
