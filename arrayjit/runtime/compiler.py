"""LLVM: IR text becomes an object file, or assembly.

The text is parsed, verified (an invalid module would abort the process in the code generator) and by default
compiled without optimisation passes: the emitter prints vector code in single-assignment form. Where
`objects` does not load object files, LLVM's own loader does, with an engine for each file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from threading import Lock

import llvmlite.binding as llvm

from ..errors import CompilerBug
from ..ir.code import DEFAULT_OPT
from .objects import Image, ObjectFile, found, placed

__all__ = ["Compiler", "compiler", "engine_image"]

_WITH_PASSES = 3


class Compiler:
    """For this processor. Code that is compiled for any other says so in its functions' attributes."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        self._lock = Lock()
        # A process forks when nothing is compiled: LLVM's own locks would stay taken in the child.
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )
        self._machines: dict[int, llvm.TargetMachine] = {}

    @property
    def features(self) -> Mapping[str, bool]:
        """Of the kind of processor that this is of: which ones it has."""
        features: Mapping[str, bool] = llvm.get_host_cpu_features()
        return features

    def object_file(self, text: str, name: str, opt: int = DEFAULT_OPT) -> ObjectFile:
        """Raises CompilerBug for text that LLVM rejects; `name` is for that. `opt` is the effort of the code
        generator; with 3 LLVM's own passes come before it."""
        with self._lock:
            return self._object_file(text, name, opt)

    def _object_file(self, text: str, name: str, opt: int) -> ObjectFile:
        """The lock is held until the module is gone."""
        module, machine = self._parsed(text, name, opt)
        public = [part for part in _parts(module) if part.linkage is llvm.Linkage.external]
        functions = tuple(part.name for part in public if not part.is_declaration)
        needs = tuple(part.name for part in public if part.is_declaration)
        needs = tuple(name for name in needs if not name.startswith("llvm."))
        return ObjectFile(functions, needs, machine.emit_object(module))

    def assembly(self, text: str, name: str, opt: int = DEFAULT_OPT) -> str:
        """Machine code as text."""
        with self._lock:
            module, machine = self._parsed(text, name, opt)
            printed = str(machine.emit_assembly(module))
            del module
            return printed

    def _parsed(self, text: str, name: str, opt: int) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
        """A module that is ready for the code generator."""
        machine = self._machines.get(opt)
        if machine is None:
            machine = self._machines[opt] = _target_machine(opt)
        try:
            module = llvm.parse_assembly(text)
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompilerBug(f"LLVM rejects the text of {name!r}: {error}", stage="targets/llvm") from error
        if opt >= _WITH_PASSES or "alwaysinline" in text:
            _run_passes(module, machine, opt)
        return module, machine


def engine_image(file: ObjectFile, resolve: Callable[[str], int], *, listed: bool = False) -> Image:
    """Code loaded by LLVM; `resolve` gives the address of what the file does not define. With `listed` the
    image says which functions it has. Raises CompilerBug for an address that is 0, to which LLVM would link
    without a word."""
    compiler()
    for name in file.needs:
        llvm.add_symbol(name, found(name, resolve))
    # An engine owns its target machine, which must be no one else's.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(file.content))
    engine.finalize_object()
    addresses = {name: engine.get_function_address(name) for name in file.functions}
    return Image(addresses, engine, tuple(placed(file, addresses)) if listed else ())


@cache
def compiler() -> Compiler:
    """The process's compiler."""
    return Compiler()


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt: int) -> None:
    """LLVM's own, or those alone that put functions where they are called."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=opt))
    if opt >= _WITH_PASSES:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def _target_machine(opt: int = DEFAULT_OPT) -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=opt,
        jit=True,
    )


def _parts(module: llvm.ModuleRef) -> Iterator[llvm.ValueRef]:
    yield from module.functions
    yield from module.global_variables
