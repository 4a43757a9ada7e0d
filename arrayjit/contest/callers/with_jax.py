"""JAX: `jax.jit` on the program, in whose text `np` stands for `jax.numpy`, on JAX's own arrays of the same
dtypes.

It runs on the CPU. Python's integers are compiled in, since shapes are made of them. To import this has JAX
compute in double precision where NumPy does, in the whole process.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..tasks import Arguments, Entry, Task

__all__ = ["entry"]

jax.config.update("jax_enable_x64", True)


def entry(task: Task, written: tuple[int, ...]) -> Entry:
    def start(*arguments: Any) -> Callable[..., Any]:
        constant = tuple(k for k, argument in enumerate(arguments) if isinstance(argument, int))
        compiled = jax.jit(translated(unwrap(task.program or task.function)), static_argnums=constant)
        return lambda *arguments: jax.block_until_ready(compiled(*arguments))

    return Entry(start, place)


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with names of NumPy's module meaning `jax.numpy`."""
    if not isinstance(function, FunctionType):
        return function
    names = {name: jnp if value is np else value for name, value in function.__globals__.items()}
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def place(arguments: Arguments) -> Arguments:
    """Copies of the arrays in the memory of the CPU, where JAX then computes."""
    cpu = jax.devices("cpu")[0]
    cpu = jax.devices("cpu")[0]

    def moved(leaf: Any) -> Any:
        return jax.device_put(leaf, cpu) if isinstance(leaf, np.ndarray) else leaf

    return tuple(jax.tree.map(moved, one) for one in arguments)
