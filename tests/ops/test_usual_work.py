"""How much work usual arguments of elementary functions are: what only others need is in a branch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from arrayjit.ir.dtype import F32, F64, DType
from arrayjit.ir.evaluation import Evaluation
from arrayjit.ir.ops import OPS


class Origins(Evaluation):
    """Knows what primitives were made of, and of what is seldom needed only what is."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[str, tuple[Any, ...], Any]] = {}

    def op(self, name: str, *args: Any) -> Any:
        definition = OPS[name].definition([self.dtype(arg) for arg in args])
        if name == "rarely":
            args = args[0], args[1 if args[0].any() else 2]
        elif definition is not None:
            return definition(self, *args)
        result = super().op(name, *args) if name != "rarely" else args[1].copy()
        self.made[id(result)] = name, args, result
        return result

    def cast(self, value: Any, dtype: DType) -> Any:
        result = super().cast(value, dtype)
        self.made[id(result)] = "cast", (value,), result
        return result

    def needed(self, value: Any) -> Counter[str]:
        """How often each primitive is needed for it."""
        seen, waiting, names = set(), [value], Counter[str]()
        while waiting:
            each = id(waiting.pop())
            if each in self.made and each not in seen:
                seen.add(each)
                name, args, _ = self.made[each]
                names[name] += 1
                waiting.extend(args)
        return names


@pytest.mark.parametrize(
    ("name", "dtype", "most"), [("log", F32, 20), ("log", F64, 25), ("power", F32, 50), ("power", F64, 63)]
)
def test_usual_arguments_need_few_instructions(name: str, dtype: DType, most: int) -> None:
    origins, row = Origins(), OPS[name]
    args = [np.array([1.5, 2.5], dtype.numpy) for _ in range(row.arity)]
    needed = origins.needed(origins.op(name, *args))
    free = ("bits", "from_bits", "rarely", "negative")
    assert sum(needed.values()) - sum(needed[each] for each in free) <= most, needed


@pytest.mark.parametrize(("name", "dtype"), [("exp", F32), ("exp", F64), ("exp2", F32), ("exp2", F64)])
def test_powers_that_are_zero_need_no_branch_for_small_ones(name: str, dtype: DType) -> None:
    def work(x: float) -> Counter[str]:
        origins = Origins()
        return origins.needed(origins.op(name, np.array([x, x], dtype.numpy)))

    usual, lost = work(-1.5), work(-np.inf)
    assert lost - usual <= Counter(rarely=1, less=1, bitwise_or=1, bitwise_xor=1, where=1)
