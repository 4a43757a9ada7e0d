"""Arguments of random programs that are arrays of small whole numbers."""

from __future__ import annotations

import math

import numpy as np
from written import Writer

__all__ = ["whole_numbers"]

LAYOUTS = ("{0}", "{0}", "{0}", "np.asfortranarray({0})", "{0}[::-1]", "np.repeat({0}, 2, axis=-1)[..., ::2]")
"""How an array lies in memory."""


def whole_numbers(writer: Writer, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """An argument of small whole numbers, with a special one now and then; or another one once more."""
    alike = [other for other in writer.arguments if np.shape(writer.names[other]) == shape]
    if alike and writer.integer(0, 5) == 0:
        writer.argument(name, writer.choose("{0}", "{0}", "{0}[::-1]").format(writer.choose(*alike)))
        return
    size = math.prod(shape)
    numbers = f"(np.arange({size}).reshape({shape}) * 7 % 11 % 5).astype({dtype!r})"
    writer.argument(name, writer.choose(*LAYOUTS).format(numbers))
    if size and writer.integer(0, 3) == 0:
        value = writer.choose("np.nan", "-np.inf", "np.inf", "-0.0") if dtype[0] == "f" else "1"
        writer.make(f"{name}.flat[{writer.integer(0, size - 1)}] = {value}")
