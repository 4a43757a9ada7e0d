"""`scipy.special.erf` and `erfc` reach the compiler as NumPy's own ufuncs do."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import numpy as np
import pytest

import arrayjit


@pytest.fixture
def special(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What `import scipy.special` gives, as far as it matters: a module with ufuncs."""
    module = ModuleType("scipy.special")
    for name in ("erf", "erfc", "gamma"):
        setattr(module, name, np.frompyfunc(getattr(math, name), 1, 1))
    monkeypatch.setitem(sys.modules, "scipy.special", module)
    return module


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_keep_the_dtype(special: ModuleType, name: str, dtype: type) -> None:
    function = getattr(special, name)
    x = np.linspace(-3, 3, 50, dtype=dtype)
    result = arrayjit.jit(lambda x: function(x) * 2)(x)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, 2 * function(x).astype(dtype), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_error_function_of_what_is_far_is_one(special: ModuleType, dtype: type) -> None:
    x = np.array([6.0, -6.0, 1e30, np.inf, -np.inf, np.nan], dtype)
    for target in ("llvm", "interp"):
        result = arrayjit.jit(lambda x: special.erf(x), target=target)(x)
        np.testing.assert_array_equal(result, np.array([1, -1, 1, 1, -1, np.nan], dtype), strict=True)


def test_other_functions_are_refused_by_name(special: ModuleType) -> None:
    with pytest.raises(arrayjit.UnsupportedError, match="gamma"):
        arrayjit.jit(lambda x: special.gamma(x))(np.ones(3))
