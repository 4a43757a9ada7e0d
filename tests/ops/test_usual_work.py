"""How much work usual arguments of elementary functions are: what only others need is in a branch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from arrayjit.ir.dtype import BF16, F16, F32, F64, DType
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
    ("name", "dtype", "most"), [("log", F32, 20), ("log", F64, 25), ("power", F32, 51), ("power", F64, 64)]
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


def test_small_integers_need_few_rounds() -> None:
    def work(name: str, x: int, y: int) -> int:
        origins = Origins()
        return origins.needed(origins.op(name, np.array([x, x]), np.array([y, y]))).total()

    assert work("gcd", 60, 84) <= 130 < work("gcd", 2**61 - 1, 2**60 - 5)
    assert work("power", 3, 5) <= 20 < work("power", 3, 500) <= 70 < work("power", -1, 2**40)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_usual_powers_of_two_are_one_product(dtype: DType) -> None:
    origins = Origins()
    numbers, exponents = np.array([1.5, 0.0], dtype.numpy), np.array([-3, 9], np.int32)
    needed = origins.needed(origins.op("ldexp", numbers, exponents))
    assert needed["multiply"] == 1


@pytest.mark.parametrize("name", ["log2", "log10"])
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("x", [0.0, -2.5, np.inf, np.nan])
def test_logarithms_of_what_has_none_need_no_other_scale(name: str, dtype: DType, x: float) -> None:
    def work(x: float) -> Counter[str]:
        origins = Origins()
        return origins.needed(origins.op(name, np.array([x, x], dtype.numpy)))

    assert (work(x) - work(1.5)).total() <= 10


@pytest.mark.parametrize("name", ["absolute", "negative"])
@pytest.mark.parametrize("dtype", [F16, BF16])
def test_signs_of_small_floats_are_bits(name: str, dtype: DType) -> None:
    origins, numbers = Origins(), np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    result = origins.op(name, numbers)
    assert "cast" not in origins.needed(result)
    bits = numbers.view(np.uint16)
    want = bits & 0x7FFF if name == "absolute" else bits ^ 0x8000
    np.testing.assert_array_equal(result.view(np.uint16), want)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_powers_of_negative_numbers_zeros_and_infinities_are_short(dtype: DType) -> None:
    """They need what usual powers do, and a sign: no logarithm of their own, nor lengthening by float64."""
    origins = Origins()
    x = np.array([-1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan], dtype.numpy)
    y = np.array([3.0, 0.5, -2.0, 3.0, -1.0, 3.0, 0.0], dtype.numpy)
    with np.errstate(all="ignore"):
        needed = origins.needed(origins.op("power", x, y))
    assert needed["fma"] <= 27, needed
    assert needed["cast"] <= 4, needed
    assert not needed["divide"], needed
