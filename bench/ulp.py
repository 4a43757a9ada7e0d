"""The errors of the elementary functions: `python bench/ulp.py [--only NAME ...] [--stride N] [--samples N]`.

Each function is compiled for this machine and compared with a wider type: float32 with float64, on every
N-th bit pattern (`--stride 1` takes all), float64 with long double, on samples of all bit patterns and of
the ranges where functions have their corners. An error is in units in the last place of the exact result.
`--markdown FILE` writes docs/accuracy.md. Exits with 1 where an error exceeds what the table of ops says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from arrayjit.compile import build, run
from arrayjit.ir.assign import ArrayParam, Assign, Computation
from arrayjit.ir.dtype import F32, F64, DType
from arrayjit.ir.expr import Apply, Load
from arrayjit.ir.index import Affine, Symbol, affine
from arrayjit.ir.ops import OPS, Op
from arrayjit.ir.tensor import Tensor

Values = NDArray[np.generic]

RANGES = (0.01, 1.0, 3.0, 20.0, 110.0, 750.0, 1e6)
CHUNK = 1 << 18
MEASURED = tuple(
    row
    for row in OPS.values()
    if any(row.ulp) and not row.apart and row.name not in ("logaddexp", "logaddexp2", "tanh_approx")
)
"""Those whose errors are relative to the result, each once; what stands apart is part of others."""

PAGE = """\
# The accuracy of elementary functions

The greatest error found, in units in the last place (ULP) of the exact result, and the argument where it is.
float32: {singles} for functions of one argument, compared with float64; float64:
{doubles} samples, compared with long double. "Bound" is what the table of ops (`arrayjit/ir/ops.py`) promises
and the tests hold. Results are the same bits on every target, for every vector width and number of threads.
Arguments include subnormal numbers and, for angles, all magnitudes. Written by
`python bench/ulp.py --markdown docs/accuracy.md`.

"""


@dataclass(frozen=True, slots=True)
class Error:
    """The greatest error of a function in one dtype."""

    name: str
    dtype: DType
    bound: float
    ulp: float
    at: tuple[np.generic, ...]
    samples: int


def compiled(row: Op, dtype: DType, size: int) -> Callable[..., Values]:
    """The function of arrays of a size."""
    inputs = [Tensor.of("x", (size,), dtype) for _ in range(row.arity)]
    output, symbol = Tensor.of("y", (size,), dtype), Symbol("i")
    value = Apply(row, tuple(Load(tensor, affine([symbol])) for tensor in inputs), dtype)
    assign = Assign(((symbol, Affine.of(size)),), output, affine([symbol]), value)
    params = (*(ArrayParam(tensor, "read") for tensor in inputs), ArrayParam(output, "write"))
    procedure = build(Computation(row.name, params, (assign,)), "sync_llvm").load()

    def function(*args: Values) -> Values:
        result = np.empty(size, dtype.numpy)
        run(procedure, dict(zip([*inputs, output], [*args, result], strict=True)))
        return result

    return function


def samples(row: Op, dtype: DType, stride: int, count: int) -> Iterator[tuple[Values, ...]]:
    """Arguments, in chunks of one size."""
    number, chunks = dtype.numpy.type, max(1, count // CHUNK)
    rng = np.random.default_rng(0)
    if dtype is F32 and row.arity == 1:
        patterns = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32)
        for first in range(0, len(patterns), CHUNK):
            yield (np.resize(patterns[first : first + CHUNK], CHUNK).view(np.float32),)
    for _ in range(chunks):
        yield tuple(_any_bits(rng, dtype) for _ in range(row.arity))
        bounds = rng.choice(RANGES, (row.arity, CHUNK))
        yield tuple((rng.uniform(-1, 1, CHUNK) * bound).astype(number) for bound in bounds)
        yield tuple(np.exp(rng.normal(0, 0.3, CHUNK)).astype(number) for _ in range(row.arity))
        if row.name in ("power", "float_power"):
            base = np.exp(rng.uniform(-1, 1, CHUNK) * rng.choice((0.4, 4.0, 40.0), CHUNK)).astype(number)
            size = rng.uniform(-1, 1, CHUNK) * (700.0 if dtype is F64 else 87.0)
            with np.errstate(divide="ignore"):
                yield base, (size / np.log(base.astype(np.float64))).astype(number)


def _any_bits(rng: np.random.Generator, dtype: DType) -> Values:
    return rng.integers(0, 256, CHUNK * dtype.itemsize, np.uint8).view(dtype.numpy)


def exact(row: Op, args: tuple[Values, ...]) -> Values:
    """The function in the next wider type."""
    wide = np.float64 if args[0].dtype == np.float32 else np.longdouble
    function = {"erf": erf, "erfc": erfc}.get(row.name, row.ref)
    return np.asarray(function(*(arg.astype(wide) for arg in args)))


def erf(x: Values) -> Values:
    """By Kummer's series, whose terms have one sign; from 6.5 on it is 1 in long double."""
    size = np.minimum(np.abs(x), x.dtype.type(6.5))
    term = total = size
    for n in range(1, 150):
        term = term * (2 * size * size / (2 * n + 1))
        total = total + term
    return np.copysign(2 / np.sqrt(_pi(x)) * np.exp(-size * size) * total, x) + np.where(np.isnan(x), x, 0)


def erfc(x: Values) -> Values:
    """By Legendre's continued fraction for large numbers."""
    size = np.maximum(x, x.dtype.type(2))
    fraction = size
    for n in range(300, 0, -1):
        fraction = size + n / (2 * fraction)
    near = np.minimum(size, x.dtype.type(100))
    # The square of a number of few bits is exact.
    short = near.astype(np.float32).astype(x.dtype)
    decay = np.exp(-short * short) * np.exp((short - near) * (short + near))
    return np.where(x < 2, 1 - erf(x), decay / (np.sqrt(_pi(x)) * fraction))


def _pi(x: Values) -> np.generic:
    return 4 * np.arctan(x.dtype.type(1))


def units(got: Values, want: Values) -> Values:
    """How far results are from exact ones; infinite where one is no number and the other is."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        _, exponent = np.frexp(np.abs(want))
        unit = np.ldexp(np.ones_like(want), np.maximum(exponent - 1, info.minexp) - info.nmant)
        error = np.abs(got.astype(want.dtype) - want) / unit
    same = (got == rounded) & ~np.isfinite(rounded) | np.isnan(got) & np.isnan(rounded)
    beyond = (np.abs(want) >= info.max) & (np.abs(got) >= info.max)
    return np.where(same | beyond, 0, np.where(np.isnan(error), np.inf, error))


def measured(row: Op, dtype: DType, stride: int, count: int) -> Error:
    """The greatest error over all samples."""
    function = compiled(row, dtype, CHUNK)
    worst, at, seen = -1.0, (), 0
    for args in samples(row, dtype, stride, count):
        with np.errstate(all="ignore"):
            errors = units(function(*args), exact(row, args))
        position = int(np.argmax(errors))
        seen += CHUNK
        if errors[position] > worst:
            worst, at = float(errors[position]), tuple(arg[position] for arg in args)
    return Error(row.name, dtype, row.ulp[dtype is F64], worst, at, seen)


def page(errors: list[Error], stride: int, count: int) -> str:
    """docs/accuracy.md."""
    singles = "every bit pattern" if stride == 1 else f"every {stride}th bit pattern"
    lines = ["| function | dtype | greatest error | at | bound |", "| --- | --- | --- | --- | --- |"]
    for error in errors:
        at = ", ".join(f"{number:.9g}" for number in error.at)
        cells = (f"`{error.name}`", error.dtype.name, f"{error.ulp:.3f}", at, f"{error.bound:g}")
        lines.append("| " + " | ".join(cells) + " |")
    return PAGE.format(singles=singles, doubles=f"{3 * count:,}") + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[row.name for row in MEASURED])
    parser.add_argument("--stride", type=int, default=101)
    parser.add_argument("--samples", type=int, default=1 << 20)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    table = Table("function", "dtype", "greatest", "at", "bound", box=SIMPLE_HEAD)
    errors = []
    console = Console()
    rows = [row for row in MEASURED if not options.only or row.name in options.only]
    with console.status("measuring") as status:
        for row in rows:
            for dtype in (F32, F64):
                status.update(f"{row.name} {dtype.name}")
                error = measured(row, dtype, options.stride, options.samples)
                errors.append(error)
                at = ", ".join(f"{number:.9g}" for number in error.at)
                table.add_row(row.name, dtype.name, f"{error.ulp:.3f}", at, f"{error.bound:g}")
    console.print(table)
    if options.markdown:
        options.markdown.write_text(page(errors, options.stride, options.samples))
    return int(any(error.ulp > error.bound for error in errors))


if __name__ == "__main__":
    sys.exit(main())
