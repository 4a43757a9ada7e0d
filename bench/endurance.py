"""What do many calls leave behind? `python bench/endurance.py [--calls N]`

The statements of the suite `calls` are run so often. Shown is what that changed: references to the objects
that they work on, and the process's memory. Exits with 1 where that is more than nothing.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import timeit
from collections.abc import Sequence
from pathlib import Path

from calls import PROGRAMS

import arrayjit

UNCERTAIN = 5
"""References to `None` come and go with everything that runs."""
KIBIBYTES = 1024


def resident_kibibytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def endurance(count: int) -> tuple[int, int]:
    """How many references to one object, and how many KiB, so many calls have added."""
    ways, watched = [], [None, float]
    for _, program, make in PROGRAMS.values():
        jitted, arguments = arrayjit.jit(program), make("float32")
        ways.append(timeit.Timer("f(*arguments)", globals={"f": jitted, "arguments": arguments}))
        watched += [jitted, *arguments]

    def references(each: int) -> Sequence[int]:
        for way in ways:
            way.timeit(each)
        gc.collect()
        return [sys.getrefcount(one) for one in watched]

    before, memory = references(10_000), resident_kibibytes()
    after = references(count // len(ways))
    return max(abs(new - old) for new, old in zip(after, before, strict=True)), resident_kibibytes() - memory


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000_000)
    count = parser.parse_args().calls
    drift, grown = endurance(count)
    print(f"{count:,} calls: references to one object {drift:+d}, memory {grown:+d} KiB")
    return int(drift > UNCERTAIN or grown > KIBIBYTES)


if __name__ == "__main__":
    sys.exit(main())
