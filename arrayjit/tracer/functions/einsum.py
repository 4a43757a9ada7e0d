"""`einsum`: subscripts are parsed, then operands are contracted two at a time, left to right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.dtype import DType
from ...ir.index import Affine
from ...ir.ops import op
from ..record.registry import implements
from ..values.array import SymbolicArray
from ..values.elementwise import elementwise
from ..values.extents import ONE, agree
from .contractions import contract
from .operands import arrays_of, common_dtype, deliver, element_type, is_given, remapped, require_cast

__all__ = ["einsum"]

# Labels of the axes under an ellipsis: private characters, one for each axis counted from the last.
_ELLIPSIS = [chr(0xE000 + n) for n in range(32)]


@implements(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
) -> SymbolicArray:
    subscripts, *given = operands if isinstance(operands[0], str) else _with_letters(operands)
    arrays = arrays_of(given)
    terms, output = _parsed(subscripts, arrays)
    _check_extents(arrays, terms)
    is_view = len(arrays) == 1 and sorted(set(terms[0])) == sorted(output)
    if is_view and not is_given(out):  # In a dtype of its own, whatever is asked for.
        return _rearranged(arrays[0], terms[0], output)
    kind = element_type(dtype, common_dtype(*arrays, *([out] if is_given(out) else [])))
    for array in arrays:
        require_cast(array, kind.numpy, casting)
    return deliver(_contracted(arrays, terms, output, kind), out, casting)


def _with_letters(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Operands that are followed by the numbers of their axes, as they are after subscripts of letters."""
    arrays, lists = operands[: len(operands) // 2 * 2 : 2], operands[1::2]
    text = ",".join(map(_letters, lists))
    return (f"{text}->{_letters(operands[-1])}" if len(operands) % 2 else text, *arrays)


def _letters(axes: Sequence[Any]) -> str:
    if not all(axis is Ellipsis or 0 <= axis < len(ascii_letters) for axis in axes):
        raise ShapeError(
            f"einsum: subscript is not within the valid range [0, {len(ascii_letters)})",
            fix="number the axes from 0",
        )
    in_order = ascii_uppercase + ascii_lowercase
    return "".join("..." if axis is Ellipsis else in_order[axis] for axis in axes)


def _contracted(
    arrays: Sequence[SymbolicArray], terms: Sequence[str], output: str, kind: DType
) -> SymbolicArray:
    pending = list(zip(arrays, terms, strict=True))
    while len(pending) > 2:
        (left, first), (right, second) = pending[:2]
        later = set(output).union(*(term for _, term in pending[2:]))
        kept = "".join(label for label in dict.fromkeys(first + second) if label in later)
        pending[:2] = [(contract((left, right), (first, second), kept, kind), kept)]
    result = contract([array for array, _ in pending], [term for _, term in pending], output, kind)
    is_summed = any(label not in output for _, term in pending for label in term)
    # NumPy adds each product to a zero, which shows in the sign of zeros.
    return result if is_summed or not kind.is_inexact else elementwise(op("add"), result, 0.0)


def _parsed(subscripts: str, arrays: Sequence[SymbolicArray]) -> tuple[list[str], str]:
    """One label for each axis of each operand, and those of the result."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    given = left.split(",")
    if len(given) != len(arrays):
        raise _malformed(
            f"einsum: {len(given)} subscripts but {len(arrays)} operands", subscripts, "give one for each"
        )
    terms = [_completed(term, array, subscripts) for term, array in zip(given, arrays, strict=True)]
    spread = [label for label in _ELLIPSIS[::-1] if any(label in term for term in terms)]
    if arrow:
        output = right.replace("...", "".join(spread))
    else:
        counts = Counter("".join(terms))
        output = "".join(spread) + "".join(
            sorted(label for label in counts if counts[label] == 1 and label not in spread)
        )
    unknown = [label for label in output if not any(label in term for term in terms)]
    if unknown or len(set(output)) != len(output):
        raise _malformed(
            f"einsum output {right!r} names a label twice, or one that no operand has",
            subscripts,
            "name each label of the operands at most once after ->",
        )
    return terms, output


def _completed(term: str, array: SymbolicArray, subscripts: str) -> str:
    before, dots, after = term.partition("...")
    named = len(before) + len(after)
    if not all(label.isalpha() for label in before + after):
        raise _malformed(f"invalid subscript in {term!r}", subscripts, "use letters, commas, '...' and '->'")
    missing = array.ndim - named
    if missing < 0 or (missing and not dots):
        raise _malformed(
            f"einstein sum subscripts {term!r} do not fit an operand of {array.ndim} dimensions",
            subscripts,
            "give one letter for each axis, or '...'",
        )
    return before + "".join(_ELLIPSIS[:missing][::-1]) + after


def _malformed(what: str, subscripts: str, fix: str) -> ShapeError:
    return ShapeError(what, details=(f"in {subscripts!r}",), fix=fix)


def _check_extents(arrays: Sequence[SymbolicArray], terms: Sequence[str]) -> None:
    extents: dict[str, Affine] = {}
    for array, term in zip(arrays, terms, strict=True):
        own: dict[str, Affine] = {}
        for label, extent in zip(term, array.cells.shape, strict=True):
            known = extents.get(label, ONE)
            words = f"operand has a mismatch in the dimension labelled {label!r}: {known} and {extent}"
            fits = ONE in (known, extent) or agree(known, extent, words)
            if not (fits and agree(own.setdefault(label, extent), extent, words)):
                fix = "give axes of the same label the same size"
                raise ShapeError(words, fix=fix)
            extents[label] = extent if known == ONE else known


def _rearranged(array: SymbolicArray, term: str, output: str) -> SymbolicArray:
    """A transpose or a diagonal: a view, as in NumPy."""
    shape = [array.cells.shape[term.index(label)] for label in output]

    def place(position: tuple[Affine, ...]) -> list[Affine]:
        at = dict(zip(output, position, strict=True))
        return [at[label] for label in term]

    return remapped(array, shape, place)
