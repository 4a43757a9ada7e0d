"""The demo's own process: `python -m arrayjit demo` starts it, in an environment fair to NumPy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import UserError
from ..settings import default_target

try:
    from .report import show
except ModuleNotFoundError as missing:
    sys.exit(f"the demo needs {missing.name}\n  fix: pip install 'arrayjit[demo]'")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m arrayjit demo",
        description="Develop a photograph and train a small network, by NumPy and by arrayjit.",
    )
    parser.add_argument("--out", type=Path, default=Path("demo-pictures"), help="folder for the pictures")
    parser.add_argument("--target", default=default_target(), help="what runs the code")
    parser.add_argument("--small", action="store_true", help="less data and fewer runs: a quick check")
    options = parser.parse_args()
    try:
        show(options.out, options.target, options.small)
    except UserError as error:
        print(f"{error.what}\n  fix: {error.fix}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
