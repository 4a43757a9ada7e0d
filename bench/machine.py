"""What this machine can do at best, measured: `python bench/machine.py [--threads N]`.

How that is measured is `arrayjit.profile.machine`'s.
"""

from __future__ import annotations

import argparse

from arrayjit.profile.machine import Limits, best_of, clock, description, limits

__all__ = ["Limits", "best_of", "clock", "description", "limits"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    measured = limits(parser.parse_args().threads)
    print(description())
    print(f"fused multiply-adds   {measured.float32 / 1e9:7.1f} GFLOP/s float32")
    print(f"                      {measured.float64 / 1e9:7.1f} GFLOP/s float64")
    print(f"reading memory        {measured.read / 1e9:7.1f} GB/s")
    print(f"triad, written back   {measured.triad / 1e9:7.1f} GB/s")
    print(f"triad, streamed       {measured.streamed / 1e9:7.1f} GB/s")


if __name__ == "__main__":
    main()
