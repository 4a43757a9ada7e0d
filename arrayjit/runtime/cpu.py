"""The driver of the host's CPU: machine code in this process, which lives as long as its executable."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING

from .. import processor
from ..errors import BackendUnavailable
from ..ir.code import Code
from ..ir.params import IndexParam
from ..late import Late
from .host import HostDriver
from .machine_code import loaded, process_address
from .objects import Image

if TYPE_CHECKING:
    from . import compiler
else:
    compiler = Late("arrayjit.runtime.compiler")

__all__ = ["CpuDriver", "CpuExecutable"]


class CpuExecutable:
    """A native function of one pointer table."""

    def __init__(self, image: Image, code: Code, seconds: Mapping[str, float]) -> None:
        self.seconds = seconds
        self.address = image.addresses[code.symbol]
        self._image = image
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)(self.address)
        self._table = Struct(f"{len(code.params) + 2}P").pack
        self._is_index = tuple(isinstance(param, IndexParam) for param in code.params)
        self._numbers = ctypes.c_int64 * sum(self._is_index)

    def launch(self, pointers: Sequence[int], bindings: Sequence[int], workspace: int, pool: int = 0) -> int:
        """Call the function with the interpreter's lock released."""
        slots = pointers
        if bindings:
            numbers = self._numbers(*bindings)
            first, rest = ctypes.addressof(numbers), iter(pointers)
            number = iter(range(first, first + ctypes.sizeof(numbers), 8))
            slots = [next(number) if is_index else next(rest) for is_index in self._is_index]
        status: int = self._function(self._table(*slots, workspace, pool))
        return status


class CpuDriver(HostDriver):
    """Compiles and runs on the calling thread."""

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {**super().static_properties(ordinal), "cpu": processor.identity()}

    def load(self, code: Code, ordinal: int = 0) -> CpuExecutable:
        """Machine code for the text. Raises BackendUnavailable for code that this CPU cannot run, CompilerBug
        for text that the compiler rejects."""
        _require(code, [feature for feature in code.needs if feature not in processor.features()])
        seconds: dict[str, float] = {}
        return CpuExecutable(self._image(code, seconds), code, seconds)

    def _image(self, code: Code, seconds: dict[str, float]) -> Image:
        """The compiled code in memory; `seconds` receives the time of each phase."""
        return loaded(code.payload, code.name, process_address, opt=code.opt, seconds=seconds)

    def assembly(self, code: Code) -> str:
        """The machine code as text, which this CPU need not be able to run."""
        known = compiler.compiler().features
        _require(code, [feature for feature in code.needs if feature not in known])
        return compiler.compiler().assembly(code.payload, code.name, code.opt)


def _require(code: Code, missing: Sequence[str]) -> None:
    """Raise for code that needs features which are missing here."""
    if missing:
        raise BackendUnavailable(
            f"{code.name!r} is compiled for CPUs with {', '.join(code.needs)}; this one has no {missing[0]}",
            fix="compile it for this CPU: leave out cpu= and unset ARRAYJIT_CPU",
        )
