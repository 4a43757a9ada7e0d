"""What GPUs are used for, in plain NumPy: large arrays once through memory, products of matrices, and calls
in which a GPU has little to do.

Arguments lie in the GPU's memory. Products of bfloat16 are asked for as float32, as NumPy forms them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from programs import TOLERANCE, copy_of, gelu, product, softmax

from arrayjit.contest.tasks import Arguments, Choice, Task
from arrayjit.frozen import frozen

__all__ = ["on_gpu"]

BFLOAT16 = 1e-2
"""Libraries round the results of such products to bfloat16, by 2**-9 at most."""
LAYERS = 10


def added(a, b):
    return a + b


def ten_layers(x, weights):
    """Short kernels, each of which needs the result of the one before."""
    for _ in range(LAYERS):
        x = np.tanh(x @ weights)
    return x


Shapes = tuple[tuple[int, ...], ...]


@frozen
class Program:
    """What is computed, on arguments of `large` shapes, or of `tiny` ones where a GPU is simulated."""

    function: Callable[..., Any]
    large: Shapes
    tiny: Shapes
    dtypes: tuple[str, ...] = ("float32",)


def square(n: int) -> Shapes:
    return (n, n), (n, n)


PROGRAMS = {
    "copy": Program(copy_of, ((1 << 27,),), ((4096,),)),
    "gelu": Program(gelu, ((1 << 27,),), ((4096,),)),
    "softmax": Program(softmax, ((1 << 15, 4096),), ((16, 256),)),
    "matmul": Program(product, square(4096), square(32), ("float32", "bfloat16")),
    "a + b": Program(added, ((16,), (16,)), ((16,), (16,))),
    "ten_layers": Program(ten_layers, square(256), square(16)),
}
QUICK = ("copy", "softmax", "a + b")


def on_gpu(choice: Choice) -> Iterator[Task]:
    for name, program in PROGRAMS.items():
        shapes = program.tiny if choice.tiny else program.large
        size = "x".join(map(str, shapes[0]))
        if (choice.quick and name not in QUICK) or size not in (choice.sizes or (size,)):
            continue
        for dtype in program.dtypes:
            if dtype in (choice.dtypes or (dtype,)):
                tolerance = TOLERANCE.get(dtype, BFLOAT16)
                make = partial(drawn, shapes, dtype)
                yield Task("gpu", name, size, dtype, program.function, make, tolerance)


def drawn(shapes: Shapes, dtype: str) -> Arguments:
    """Numbers between -1 and 1; those of weights so small that layers keep their scale."""
    random = np.random.default_rng(1)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    first, *rest = (2 * random.random(shape, np.float32) - 1 for shape in shapes)
    return tuple(part.astype(kind) for part in (first, *(part / part.shape[0] ** 0.5 for part in rest)))
