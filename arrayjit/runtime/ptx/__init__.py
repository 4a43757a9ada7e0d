"""An interpreter of PTX in NumPy, which finds the races and the bad accesses of the kernels it runs.

    module = parse(ptx)                            text to frozen data; `module.kernels` by name
    memory = GlobalMemory()                        a device's memory: allocate, free, view
    loaded = Loaded(module, memory)                its variables in the memory
    loaded.launch(name, grid, block, shared_bytes, arguments)

Whatever a kernel does wrong raises a `Fault` that names the instruction and the thread.
"""

from __future__ import annotations

from .faults import Fault
from .launch import Loaded
from .memory import GlobalMemory
from .module import Function, Module
from .parse import parse

__all__ = ["Fault", "Function", "GlobalMemory", "Loaded", "Module", "parse"]
