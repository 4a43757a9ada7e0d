"""The symbolic array: what the user's function holds while it is traced.

It looks like an ndarray (or like the NumPy or Python scalar that it stands for) and owns no numbers.
Every behaviour that computes lives in a feature file and is found through the registry; what needs
the numbers raises at the user's line.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MethodType
from typing import Any, NoReturn, Union, final

import numpy as np

from ...errors import ConcretizationError, DTypeError, NotAnArray, ShapeError, UnsupportedError
from ...ir.dtype import DType
from ...ir.expr import Expr
from ...ir.index import Affine, Extent
from ..record.registry import METHODS
from ..record.retrace import Fix, Reason, number_needed, told
from ..record.rewrites import instead_of_array, instead_of_condition, instead_of_float
from ..record.trace import TEMPORARY, Trace, user_location
from ..record.turns import require_one_answer
from ..record.view import View
from .extents import is_at_least, product
from .integer import TRUTH, needed, python_int

__all__ = ["TEXT", "PythonNumber", "SymbolicArray", "describe"]

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
)  # fmt: skip
TEXT = "<traced "
"""How the text of a traced array begins, which is for messages while the function is traced."""

_NO_TEXT = "print the result after the call"
_ONLY_ONE = "only 0-dimensional arrays can be converted to Python scalars"
_PLAIN = (
    "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "divmod", "rdivmod",
    "array_ufunc", "array_function",
)  # fmt: skip


PythonNumber = Union[type[bool], type[int], type[float], type[complex]]
"""What the Python scalars are that arrays adapt to."""


@final
class SymbolicArray:
    """A traced ndarray; with `is_scalar` a NumPy scalar (a copy, never a view); with `weak` a Python
    scalar of that type, which adapts to the dtype of its partner as NEP 50 says."""

    __slots__ = ("cells", "is_scalar", "record", "weak")

    cells: View
    record: Trace
    weak: PythonNumber | None
    is_scalar: bool

    def __init__(
        self,
        view: View,
        trace: Trace,
        weak: PythonNumber | None = None,
        is_scalar: bool = False,
    ) -> None:
        self.cells = view
        self.record = trace
        self.weak = weak
        self.is_scalar = is_scalar

    @staticmethod
    def of(
        view: View,
        trace: Trace,
        *,
        weak: PythonNumber | None = None,
        is_scalar: bool = False,
    ) -> SymbolicArray:
        return SymbolicArray(view, trace, weak, is_scalar)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The type that the user's `isinstance` sees: what this stands for when the function runs."""
        if self.weak is not None:
            return self.weak
        return self.dtype.type if self.is_scalar else np.ndarray

    @property
    def element_type(self) -> DType:
        return self.cells.tensor.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.cells.tensor.dtype.numpy

    @dtype.setter
    def dtype(self, value: object) -> NoReturn:
        raise UnsupportedError(
            "assigning to .dtype is not supported in a jitted function",
            loc=user_location(),
            details=(describe(self),),
            fix="use x = x.view(dtype)",
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Integers, traced ones for extents that depend on loops or computed numbers."""
        return tuple(python_int(extent, self.record) for extent in self.cells.shape)  # type: ignore[misc]

    @shape.setter
    def shape(self, value: object) -> NoReturn:
        raise UnsupportedError(
            "assigning to .shape is not supported in a jitted function",
            loc=user_location(),
            details=(describe(self),),
            fix="use x = x.reshape(...)",
        )

    @property
    def ndim(self) -> int:
        return self.cells.rank

    @property
    def size(self) -> int:
        return python_int(product(self.cells.shape), self.record)  # type: ignore[return-value]

    @property
    def itemsize(self) -> int:
        return self.element_type.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        strides: tuple[int, ...] = METHODS["strides"](self)
        return strides

    @strides.setter
    def strides(self, value: object) -> NoReturn:
        raise UnsupportedError(
            "assigning to .strides is not supported in a jitted function",
            loc=user_location(),
            details=(describe(self),),
            fix="use np.lib.stride_tricks.as_strided(x, x.shape, strides)",
        )

    @property
    def T(self) -> SymbolicArray:  # noqa: N802
        if self.ndim < 2:
            return self if self.is_scalar else SymbolicArray(self.cells, self.record)
        order = tuple(reversed(range(self.ndim)))
        return SymbolicArray(self.cells.transpose(order), self.record)

    @property
    def mT(self) -> Any:  # noqa: N802
        return METHODS["mT"](self)

    @property
    def real(self) -> Any:
        return METHODS["real"](self)

    @real.setter
    def real(self, value: Any) -> None:
        METHODS["__write__"](METHODS["real"](self), value)

    @property
    def imag(self) -> Any:
        return METHODS["imag"](self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if not self.element_type.is_complex:
            words = "array does not have imaginary part to set"
            raise DTypeError(words, loc=user_location(), fix="use an array of a complex dtype")
        METHODS["__write__"](METHODS["imag"](self), value)

    @property
    def flat(self) -> Any:
        return METHODS["flat"](self)

    @flat.setter
    def flat(self, value: Any) -> None:
        METHODS["flat"](self)[:] = value

    @property
    def device(self) -> str:
        """Where the array is, as NumPy says it."""
        if self.weak is not None:
            raise AttributeError(f"{self.weak.__name__!r} object has no attribute 'device'")
        return "cpu"

    @property
    def flags(self) -> Any:
        if self.weak is not None:
            raise AttributeError(f"{self.weak.__name__!r} object has no attribute 'flags'")
        return METHODS["flags"](self)

    def load(self, position: Sequence[Extent]) -> Expr:
        """The cell at `position`."""
        return self.cells.load(position)

    def shown(self) -> View:
        """The cells for a view to show: of a number, which never changes, those of a copy."""
        if self.is_scalar or self.weak is not None:
            return self.record.compute((), self.element_type, self.load)
        return self.cells

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    def __getattr__(self, name: str) -> Any:
        function = METHODS.get(name)
        if function is not None:
            return MethodType(function, self)
        if hasattr(self.__class__, name) and not name.startswith("__"):
            if self.weak is not None:
                _needs_value(
                    self, f"for its {name}", "compute it before the call, and pass it as an argument"
                )
            raise UnsupportedError(
                f"{self.__class__.__name__}.{name} is not supported in a jitted function",
                loc=user_location(),
                details=(describe(self),),
                fix="compute it outside the jitted function, or with the operations of the support table",
            )
        raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")

    def _number(self) -> Any:
        """The number of an array of one cell, if it is known while tracing; else None."""
        if not self.record.is_open or any(extent != Affine.of(1) for extent in self.cells.shape):
            return None
        known = self.record.known(self.cells)
        return None if known is None else known.reshape(())[()]

    def __getitem__(self, key: Any) -> Any:
        return METHODS["__getitem__"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        METHODS["__setitem__"](self, key, value)

    def __delitem__(self, key: object) -> NoReturn:
        raise ShapeError(
            "cannot delete array elements",
            loc=user_location(),
            details=(describe(self),),
            fix="make an array without them: np.delete(x, i)",
        )

    def __len__(self) -> int:
        if not self.cells.shape:
            raise DTypeError("len() of unsized object", loc=user_location(), details=(describe(self),))
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.cells.shape:
            raise DTypeError("iteration over a 0-d array", loc=user_location(), details=(describe(self),))
        return METHODS["__iter__"](self, sys._getframe(1))  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        known = self._number()
        if known is not None:
            return bool(known)
        loc = user_location()
        if self.ndim and any(extent != Affine.of(1) for extent in self.cells.shape):
            raise ShapeError(
                "the truth value of an array with more than one element is ambiguous",
                loc=loc,
                details=(describe(self),),
                fix=instead_of_condition(loc, "use x.any() or x.all()"),
            )
        fix = partial(
            instead_of_condition, loc, "use np.where(condition, a, b), or arrayjit.cond", self.record.branches
        )
        _needs_value(self, TRUTH, fix)

    def __float__(self) -> float:
        known = self._number()
        if known is not None:
            return float(known)
        _needs_value(self, "as a float", partial(instead_of_float, user_location()), _ONLY_ONE)

    def __int__(self) -> int:
        known = self._number()
        if known is not None:
            return int(known)
        _needs_value(self, "as an int", "leave it out, or use x.astype(int)", _ONLY_ONE)

    def __complex__(self) -> complex:
        known = self._number()
        if known is not None:
            return complex(known)
        _needs_value(self, "as a complex number", "leave it out, or use x.astype(complex)", _ONLY_ONE)

    def __index__(self) -> int:
        known = None if self.ndim else self._number()
        if known is not None:
            return operator.index(known)
        _needs_value(
            self,
            "as an index, a length or a range",
            "index an array instead of a list, np.array(items)[i]; take sizes from arguments and shapes",
            "only integer scalar arrays can be converted to a scalar index",
        )

    def __round__(self, digits: int | None = None) -> Any:
        return METHODS["__round__"](self, digits)

    def __hash__(self) -> int:
        words = "unhashable type: 'numpy.ndarray'"
        _needs_value(self, "as a key", "keep the values in an array, and index it", words)

    def __format__(self, spec: str) -> str:
        if spec:
            words = "unsupported format string passed to numpy.ndarray.__format__"
            _needs_value(self, "as text", _NO_TEXT, words)
        return repr(self)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        held = sys._getframe(1).f_locals.items()
        types = [name for name, value in held if isinstance(value, type) and issubclass(value, np.generic)]
        fix = partial(instead_of_array, user_location(), types)
        _needs_value(self, "as a NumPy array", fix, kind=NotAnArray)

    def __copy__(self) -> Any:
        return METHODS["copy"](self) if self.weak is None else self

    def __deepcopy__(self, memo: object) -> Any:
        return self.__copy__()

    def __repr__(self) -> str:
        if self.weak is not None and self.record.is_open:
            _needs_value(self, "as text", _NO_TEXT)
        return f"{TEXT}{describe(self)}>"


def describe(array: SymbolicArray) -> str:
    """A phrase for messages: what the value is, its dtype and shape, and its name."""
    label = array.cells.tensor.label
    name = "" if label == TEMPORARY else f" {label}"
    if array.weak is not None:
        return array.weak.__name__ + name
    if array.is_scalar:
        return f"{array.dtype} scalar{name}"
    extents = ", ".join(map(str, array.cells.shape)) + ("," if array.ndim == 1 else "")
    return f"{array.dtype} array{name} of shape ({extents})"


def _needs_value(
    array: SymbolicArray,
    purpose: str,
    fix: Fix,
    of_several: str = "",
    kind: type[ConcretizationError] = ConcretizationError,
) -> NoReturn:
    """Start again where loop indices or scalar arguments decide the number; else raise. `of_several` is what
    NumPy says of an array that does not have one element."""
    words = f"{needed('a traced value', purpose)}, which is known only when the compiled function runs"
    loc, details = user_location(), (describe(array),)
    if of_several and any(is_at_least(extent, 2) or is_at_least(-extent, 0) for extent in array.cells.shape):
        raise DTypeError(of_several, loc=loc, details=details, fix=told(fix))
    if array.ndim == 0 and array.record.is_open:
        if purpose is TRUTH:
            require_one_answer(array.record, array.load(()), Reason(words, loc, fix))
        number_needed(
            array.record,
            [array.load(())],
            words,
            loc,
            details=details,
            fix=fix,
            is_condition=purpose is TRUTH,
        )
    raise kind(words, loc=loc, details=details, fix=told(fix))


def _forward(name: str) -> Callable[..., Any]:
    def dunder(self: SymbolicArray, *args: Any, **kwargs: Any) -> Any:
        return METHODS[name](self, *args, **kwargs)

    dunder.__name__ = name
    return dunder


# Python looks operators up on the type, never through `__getattr__`.
for _stem in _BINARY:
    for _prefix in ("", "r", "i"):
        setattr(SymbolicArray, f"__{_prefix}{_stem}__", _forward(f"__{_prefix}{_stem}__"))
for _stem in _PLAIN:
    setattr(SymbolicArray, f"__{_stem}__", _forward(f"__{_stem}__"))
