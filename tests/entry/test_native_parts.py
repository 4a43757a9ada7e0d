"""Real and imaginary parts of complex arrays, views of other dtypes, are handed out without Python."""

from __future__ import annotations

import numpy as np
import pytest

import arrayjit

PARTS = {
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "transposed": lambda z: z.imag.T,
    "some": lambda z: (z.real[1:, ::2], z.imag[0], z.imag[::-1]),
    "of a new array": lambda z: (z * 2).imag,
    "of some of a new array": lambda z: ((z * 2).real.T, (z * 3).reshape(-1).imag[3:7]),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("layout", ["rows", "columns", "backwards", "read-only"])
def test_parts_of_complex_numbers(native, name, dtype, layout):
    z = (np.arange(48.0) + 1j * np.arange(48.0)[::-1]).astype(dtype).reshape(6, 8)
    z = {"columns": np.asfortranarray(z), "backwards": z[::2, ::-1]}.get(layout, z)
    z.flags.writeable = layout != "read-only"
    got, want = native(arrayjit.jit(PARTS[name]), z), PARTS[name](z)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
        assert np.shares_memory(one, z) == np.shares_memory(other, z)
        if np.shares_memory(other, z):
            assert (one.strides, one.flags.writeable) == (other.strides, other.flags.writeable)
