"""Settings, read from the environment at use and passed down; nothing else reads the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from .errors import SettingError
from .frozen import frozen
from .late import Late

if TYPE_CHECKING:
    import pathlib

    import platformdirs
else:
    pathlib, platformdirs = Late("pathlib"), Late("platformdirs")

__all__ = [
    "CHECKS",
    "FAST",
    "GET_VARIABLE",
    "MISLEADING",
    "Settings",
    "c_compiler_wanted",
    "cache_bytes",
    "cache_folder",
    "checks_wanted",
    "compilations_shown",
    "cpu_wanted",
    "debugger_wanted",
    "default_target",
    "entry_wanted",
    "environment",
    "environment_for_numpy",
    "gpu_wanted",
    "left_out",
    "misleading",
    "names_in",
    "num_threads",
    "perf_map_wanted",
    "variables",
]


def default_target() -> str:
    """`ARRAYJIT_TARGET`: where functions run unless the program says; asked for at each call."""
    return os.environ.get("ARRAYJIT_TARGET") or "llvm"


def cache_folder() -> pathlib.Path:
    """`ARRAYJIT_CACHE_DIR`: where what was learnt is kept for later processes; by default where the system
    keeps the caches of a user's programs."""
    wish = os.environ.get("ARRAYJIT_CACHE_DIR")
    return pathlib.Path(wish) if wish else platformdirs.user_cache_path("arrayjit")


def cache_bytes() -> int:
    """`ARRAYJIT_CACHE_BYTES`: how much may be kept there; by default 1 GiB; 0 does without files."""
    wish = os.environ.get("ARRAYJIT_CACHE_BYTES") or str(1 << 30)
    if not wish.isdecimal():
        raise SettingError(f"ARRAYJIT_CACHE_BYTES is {wish!r}", fix="set it to a number of bytes, such as 0")
    return int(wish)


def compilations_shown() -> bool:
    """`ARRAYJIT_LOG_COMPILES=1`: each compilation is logged as a warning, which needs no logging set up."""
    return os.environ.get("ARRAYJIT_LOG_COMPILES", "") not in ("", "0")


CHECKS = ("bounds", "nan", "overflow")
"""What compiled code can look for while it runs."""

FAST = ("atomics", "tf32")
"""What may change bits on GPUs."""


def names_in(wish: str | Iterable[str], choices: Collection[str], source: str) -> tuple[str, ...]:
    """Names of choices, or one string with commas between them, in a fixed order. Raises SettingError, which
    names where they come from, for what is none."""
    fix = f"choose among {', '.join(choices)}"
    if isinstance(wish, str):
        wish = filter(None, map(str.strip, wish.split(",")))
    elif not isinstance(wish, Iterable):
        raise SettingError(f"{source} is {wish!r}", fix=fix)
    names = list(wish)
    unknown = sorted({repr(name) for name in names if name not in choices})
    if unknown:
        raise SettingError(f"{source} has {', '.join(unknown)}", fix=fix)
    return tuple(sorted(set(names)))


def checks_wanted() -> tuple[str, ...]:
    """`ARRAYJIT_CHECK`: what functions made from now on look for where they do not say, such as
    `nan,bounds`."""
    return names_in(os.environ.get("ARRAYJIT_CHECK", ""), CHECKS, "ARRAYJIT_CHECK")


def entry_wanted() -> str:
    """`ARRAYJIT_ENTRY`: how functions made from now on are called, "native" or "python"."""
    wish = os.environ.get("ARRAYJIT_ENTRY") or "native"
    if wish not in ("native", "python"):
        raise SettingError(f"ARRAYJIT_ENTRY is {wish!r}", fix="set it to native or python")
    return wish


def perf_map_wanted() -> bool:
    """`ARRAYJIT_PERF_MAP=1`: the profiler `perf` is told the names of compiled functions."""
    return os.environ.get("ARRAYJIT_PERF_MAP", "") not in ("", "0")


def debugger_wanted() -> bool:
    """`ARRAYJIT_GDB=1`: the debugger `gdb` is told the names and the lines of compiled functions."""
    return os.environ.get("ARRAYJIT_GDB", "") not in ("", "0")


MISLEADING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NVPL_BLAS_DEBUG_CPU_TYPE")
"""They make the BLAS libraries of NumPy, which read them when it is imported, choose slow kernels: those for
another machine than this one."""


def misleading() -> list[str]:
    """Those of them that are set."""
    return [name for name in MISLEADING if name in os.environ]


def left_out() -> str:
    """What to say where they are left out of a process's environment; "" if none is set."""
    names = misleading()
    return f"NumPy runs without {', '.join(names)}, which would slow NumPy's products down" if names else ""


def environment_for_numpy() -> dict[str, str]:
    """The environment of a process in which NumPy runs at its best."""
    return {name: value for name, value in os.environ.items() if name not in MISLEADING}


GET_VARIABLE = os.getenv
"""Python's function that reads a variable of the environment, which traced functions see another one for."""


def variables() -> Mapping[str, str]:
    """All variables of the environment, for what looks at it as a whole."""
    return os.environ


def environment() -> tuple[dict[Any, Any], Callable[[str], Any]]:
    """Where Python keeps the variables of the environment: a dict, and what makes its keys."""
    held: Any = os.environ
    return held._data, held.encodekey


def cpu_wanted() -> str:
    """`ARRAYJIT_CPU`: the kind of CPU that code is made for, a row of the table in `targets/host`; "" is this
    one. A target asks when it is first used."""
    return os.environ.get("ARRAYJIT_CPU", "")


def gpu_wanted() -> str:
    """`ARRAYJIT_GPU`: the architecture of GPUs that code is planned for where there is none, a row of the
    table in `ir/gpus`, and that `cuda-sim` simulates; "" is the default. A target asks when it is first
    used."""
    return os.environ.get("ARRAYJIT_GPU", "")


def c_compiler_wanted() -> str:
    """`CC`: the command that compiles C, as a shell would split it; "" is the first compiler there is."""
    return os.environ.get("CC", "")


def num_threads() -> int:
    """`ARRAYJIT_NUM_THREADS`: how many threads share the loops of a kernel; by default one for each core that
    this process may use."""
    wish = os.environ.get("ARRAYJIT_NUM_THREADS")
    if not wish:
        return _cores()
    if not wish.isdecimal() or int(wish) == 0:
        raise SettingError(f"ARRAYJIT_NUM_THREADS is {wish!r}", fix="set it to 1, 2, 3, ...")
    return int(wish)


@cache
def _cores() -> int:
    """The cores that the process may run on, or fewer if control groups grant it less than their time."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([cores, *map(int, _quotas(pathlib.Path("/")))]))


def _quotas(root: pathlib.Path) -> Iterator[float]:
    """How many cores' worth of time each control group around this process gets, where that is limited."""
    memberships = root / "proc/self/cgroup"
    for line in memberships.read_text().splitlines() if memberships.exists() else ():
        _, controllers, group = line.split(":", 2)
        is_second = controllers == ""
        if is_second or "cpu" in controllers.split(","):
            top = root / "sys/fs/cgroup" / controllers
            place = top / group.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(top):
                    yield from _quota(folder, is_second)


def _quota(folder: pathlib.Path, is_second: bool) -> Iterator[float]:
    """The limit of one group, which each version of control groups tells in its own way."""
    names = ("cpu.max",) if is_second else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    files = [folder / name for name in names]
    if all(file.exists() for file in files):
        granted, period = (word for file in files for word in file.read_text().split())
        if granted not in ("max", "-1"):
            yield int(granted) / int(period)


@frozen
class Settings:
    """`verify` checks the IR after every pass; `dump` is a folder for each stage's text, or "";
    `full_traceback` keeps arrayjit's own frames in tracebacks."""

    verify: bool = False
    dump: str = ""
    full_traceback: bool = False

    @property
    def watches(self) -> bool:
        """Whether somebody wants to see every pass at work."""
        return self.verify or bool(self.dump)

    @staticmethod
    def from_environment() -> Settings:
        """`ARRAYJIT_VERIFY=1`, `ARRAYJIT_DUMP=dir`, `ARRAYJIT_TRACEBACK=full`."""
        env = os.environ
        return Settings(
            verify=env.get("ARRAYJIT_VERIFY", "") not in ("", "0"),
            dump=env.get("ARRAYJIT_DUMP", ""),
            full_traceback=env.get("ARRAYJIT_TRACEBACK", "") == "full",
        )
