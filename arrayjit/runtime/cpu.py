"""The driver of the host's CPU: LLVM IR text becomes machine code in this process.

The text is parsed, verified (an invalid module would abort the process in the code generator), compiled
without optimisation passes, since the emitter prints vector code in single-assignment form, and added to
one engine. Machine code stays loaded until the process ends.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from itertools import count
from struct import Struct
from threading import Lock

import llvmlite.binding as llvm

from ..errors import BackendUnavailable, CompilerBug
from ..ir.assign import IndexParam, Param
from ..ir.code import Code
from .host import HostDriver

__all__ = ["CpuDriver", "CpuExecutable"]

# Code generation selects and schedules as well at this level as at the next, in less time.
OPTIMISATION = 2


class CpuExecutable:
    """A native function of one pointer table."""

    def __init__(self, address: int, params: tuple[Param, ...], seconds: Mapping[str, float]) -> None:
        self.seconds = seconds
        self.address = address
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)(address)
        self._table = Struct(f"{len(params) + 2}P").pack
        self._is_index = tuple(isinstance(param, IndexParam) for param in params)
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

    def __init__(self, name: str) -> None:
        super().__init__(name)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._features: Mapping[str, bool] = llvm.get_host_cpu_features()
        self._lock = Lock()
        self._names = count()
        self._machine = _target_machine()
        # An engine owns its target machine, which must be no one else's.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        # Code may still be running in another thread when the interpreter shuts down.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._engine))

    def static_properties(self, ordinal: int) -> Mapping[str, str | int]:
        return {**super().static_properties(ordinal), "cpu": str(llvm.get_host_cpu_name())}

    def name_addresses(self, addresses: Mapping[str, int]) -> None:
        """From now on code may use these names for what is there, in all of the process."""
        for name, address in addresses.items():
            llvm.add_symbol(name, address)

    def load(self, code: Code) -> CpuExecutable:
        """Machine code for the IR text. Raises BackendUnavailable for code that this CPU cannot run,
        CompilerBug for text that LLVM rejects."""
        _require(code, [feature for feature in code.needs if not self._features.get(feature)])
        with self._lock:
            clock = _Clock()
            module = self._parse(code)
            clock.lap("parse")
            symbol = f"routine.{next(self._names)}"
            module.get_function(code.symbol).name = symbol
            if "alwaysinline" in code.payload:
                self._inline(module)
            machine_code = self._machine.emit_object(module)
            clock.lap("codegen")
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
            self._engine.finalize_object()
            address = self._engine.get_function_address(symbol)
            clock.lap("link")
        if not address:
            raise CompilerBug(f"{code.name!r} was compiled and cannot be found", stage="runtime/cpu")
        return CpuExecutable(address, code.params, clock.seconds)

    def _inline(self, module: llvm.ModuleRef) -> None:
        """Put functions that ask for it where they are called."""
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, llvm.create_pass_builder(self._machine, llvm.create_pipeline_tuning_options()))

    def assembly(self, code: Code) -> str:
        """The machine code as text, which this CPU need not be able to run."""
        _require(code, [feature for feature in code.needs if feature not in self._features])
        with self._lock:
            return str(self._machine.emit_assembly(self._parse(code)))

    def _parse(self, code: Code) -> llvm.ModuleRef:
        try:
            module = llvm.parse_assembly(code.payload)
            module.triple = self._machine.triple
            module.data_layout = str(self._machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompilerBug(
                f"LLVM rejects the text of {code.name!r}: {error}", stage="targets/llvm"
            ) from error
        for function in module.functions:
            name = function.name
            # A name that is not found would be linked to address 0 without a word.
            if function.is_declaration and not name.startswith("llvm.") and not llvm.address_of_symbol(name):
                raise CompilerBug(f"{code.name!r} calls {name}, which is not here", stage="targets/llvm")
        return module


class _Clock:
    """The time of each phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase], self._start = now - self._start, now


def _require(code: Code, missing: Sequence[str]) -> None:
    """Raise for code that needs features which are missing here."""
    if missing:
        raise BackendUnavailable(
            f"{code.name!r} is compiled for CPUs with {', '.join(code.needs)}; this one has no {missing[0]}",
            fix="compile it for this CPU: leave out cpu= and unset ARRAYJIT_CPU",
        )


def _target_machine() -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMISATION,
        jit=True,
    )
