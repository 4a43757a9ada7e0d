"""docs/accuracy.md has every function as measured; the script measures against right numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import ulp

from arrayjit.ir.dtype import F32, F64
from arrayjit.ir.ops import OPS

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
ROW = re.compile(r"\| `(\w+)` \| (\w+) \| ([\d.]+) \| .* \| ([\d.]+) \|")


def test_every_function_is_in_the_table_within_its_bound() -> None:
    listed = {}
    for name, dtype, error, bound in ROW.findall(PAGE.read_text()):
        listed[name, dtype] = float(bound)
        assert float(error) <= float(bound)
    wanted = {(row.name, dtype.name): row.ulp[dtype is F64] for row in ulp.MEASURED for dtype in (F32, F64)}
    assert listed == wanted


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_exact_error_functions_agree_with_the_c_library(name: str) -> None:
    x = np.concatenate([np.linspace(-7, 7, 1001), np.linspace(7, 26, 500)])
    want = [getattr(math, name)(number) for number in x]
    np.testing.assert_allclose(ulp.exact(OPS[name], (x,)).astype(float), want, rtol=1e-15)


def test_errors_are_counted_in_units_of_the_exact_result() -> None:
    want = np.array([1.0, 1.0 + 2.0**-24, np.inf, np.nan, 3e38, 1.0])
    got = np.array([1.0, 1.0 + 2.0**-23, np.inf, np.nan, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(ulp.units(got, want), [0, 0.5, 0, 0, np.inf, np.inf])


def test_a_measurement_finds_what_it_should() -> None:
    error = ulp.measured(OPS["exp"], F32, 1 << 20, ulp.CHUNK)
    assert 0.5 < error.ulp <= OPS["exp"].ulp[0]
    assert error.samples == 4 * ulp.CHUNK
