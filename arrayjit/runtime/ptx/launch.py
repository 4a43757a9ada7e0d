"""Modules in a device's memory, and launches of their kernels.

memory = GlobalMemory()
loaded = Loaded(parse(ptx), memory)
x = memory.allocate(4096, "x")
loaded.launch("kernel", (4, 1, 1), (256, 1, 1), 0, struct.pack("<Q", x))
memory.view(x, 4096)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .code import Code, decode
from .faults import BadLaunch, InvalidPtx
from .flat import Flat, flatten
from .memory import GlobalMemory
from .module import Function, Module, Number, Variable
from .races import WARP, Clocks
from .schedule import run
from .site import Names
from .spaces import ArgumentSpace, GenericSpace, GlobalSpace, LocalSpace, SharedSpace
from .threads import Shape, Space, Threads, Triple
from .types import Array

__all__ = ["BUDGET", "Loaded"]

BUDGET = 50_000_000
"""Steps of a group of threads that a batch of blocks may take before the kernel is said not to end."""

_LANES = 1 << 13
"""Threads that run at once; blocks are run in batches of about so many."""
_MOST_THREADS = 1024
_MOST_SHARED = {"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99, "sm_120": 99, "sm_121": 99}
"""KiB that a block may have, where it is not 227 (CUDA C++ Programming Guide, "Compute Capabilities")."""
_GRID = ((1 << 31) - 1, 65535, 65535)
_BLOCK = (1024, 1024, 64)
_APART = 256
"""Bytes between shared arrays."""


class Loaded:
    """A module whose variables lie in a memory, until `unload`. Not for several threads at once."""

    def __init__(self, module: Module, memory: GlobalMemory) -> None:
        self.module = module
        self.memory = memory
        self._addresses: dict[str, int] = {}
        self._decoded: dict[str, _Kernel] = {}
        for each in module.variables.values():
            if each.space in ("global", "const"):
                is_constant = each.space == "const"
                self._addresses[each.name] = memory.allocate(each.nbytes, each.name, is_constant=is_constant)
        for each in module.variables.values():
            if each.name in self._addresses:
                self._fill(each)

    def address(self, name: str) -> tuple[int, int]:
        """Where a variable of the module lies, and its bytes. Raises KeyError."""
        return self._addresses[name], self.module.variables[name].nbytes

    def unload(self) -> None:
        """Give the variables' memory back."""
        for address in self._addresses.values():
            self.memory.free(address)
        self._addresses.clear()
        self._decoded.clear()

    def launch(
        self,
        name: str,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        arguments: bytes,
        *,
        budget: int = BUDGET,
    ) -> None:
        """Run a kernel to its end. `shared_bytes` are the dynamic ones; `arguments` is the block of
        parameters as the ABI lays it out (each at a multiple of its alignment).

        Raises a Fault: BadLaunch, or what the kernel does wrong. After one, memory holds what had been done.
        """
        kernel = self._kernel(name)
        _check(kernel.code.flat.kernel, self.module.target, grid, block, shared_bytes, arguments)
        shape = Shape(grid, block)
        released, acquired = np.zeros(shape.blocks, np.int64), np.zeros(shape.blocks, bool)
        spaces: dict[str, Space] = {"global": GlobalSpace(self.memory), "param": ArgumentSpace(arguments)}
        lanes = shape.warps * WARP
        batch = min(max(1, _LANES // lanes), shape.blocks)
        registers = _registers(kernel.dtypes, batch * lanes)
        with np.errstate(all="ignore"):
            for first in range(0, shape.blocks, batch):
                blocks = min(batch, shape.blocks - first)
                spaces["local"] = LocalSpace(blocks * lanes, kernel.local_bytes)
                spaces["shared"] = kernel.shared(blocks, shared_bytes)
                spaces["generic"] = GenericSpace(spaces)
                clocks = Clocks(first, blocks, shape.warps, released, acquired)
                threads = Threads(shape, first, blocks, registers, clocks, spaces)
                kernel.fill_specials(threads, shared_bytes)
                run(kernel.code, threads, budget)

    def _kernel(self, name: str) -> _Kernel:
        if name not in self._decoded:
            function = self.module.functions.get(name)
            if function is None or not function.is_entry:
                known = ", ".join(sorted(self.module.kernels)) or "none"
                raise BadLaunch(f"the module has no kernel {name!r}; it has {known}")
            flat = flatten(function, self.module.functions)
            self._decoded[name] = _Kernel(flat, self.module, self._addresses)
        return self._decoded[name]

    def _fill(self, variable: Variable) -> None:
        """A variable's initial values; the rest of it is zero."""
        bytes_ = self.memory.view(self._addresses[variable.name], variable.nbytes)
        bytes_[:] = 0
        kind = variable.type
        values = bytes_.view(f"u{kind.nbytes}")
        for number, value in enumerate(variable.initial):
            if isinstance(value, str):
                if value not in self._addresses:
                    raise InvalidPtx(
                        f"variable {variable.name} begins with the address of {value!r}, which is not known"
                    )
                values[number] = self._addresses[value]
            else:
                values[number] = _bits(value, kind.nbytes)


def _bits(number: Number, nbytes: int) -> int:
    """A literal as the bytes of an integer."""
    if isinstance(number.value, float):
        return int.from_bytes(struct.pack("<d" if nbytes == 8 else "<f", number.value), "little")
    return number.value % (1 << 8 * nbytes)


class _Kernel:
    """A decoded kernel and where its arrays lie."""

    def __init__(self, flat: Flat, module: Module, addresses: dict[str, int]) -> None:
        known = {name: ("global", address) for name, address in addresses.items()}
        known |= {each.name: ("param", each.offset) for each in flat.kernel.parameters}
        variables = (*module.variables.values(), *flat.variables)
        self.local_bytes = 0
        for each in variables:
            if each.space in ("local", "param"):
                start = -(-self.local_bytes // each.align) * each.align
                known[each.name] = ("local", start)
                self.local_bytes = start + each.nbytes
        self.arrays: dict[str, tuple[int, int]] = {}
        self.end = 0
        for each in variables:
            if each.space == "shared" and not each.is_dynamic:
                self.arrays[each.name] = (self.end, each.nbytes)
                self.end += -(-(each.nbytes + _APART) // _APART) * _APART
        self.dynamic = [each.name for each in variables if each.space == "shared" and each.is_dynamic]
        known |= {name: ("shared", start) for name, (start, _) in self.arrays.items()}
        known |= {name: ("shared", self.end) for name in self.dynamic}
        self.names = Names(flat.registers, known)
        self.code: Code = decode(flat, self.names)
        self.dtypes = self.names.dtypes()

    def fill_specials(self, threads: Threads, shared_bytes: int) -> None:
        """The registers that hardware fills."""
        if self.names.specials:
            values = threads.specials(shared_bytes, self.code.flat.kernel.shared_bytes)
            for name, slot in self.names.specials.items():
                threads.registers[slot][:] = values[name]

    def shared(self, blocks: int, dynamic_bytes: int) -> SharedSpace:
        """The shared memory of some blocks; dynamic arrays all begin behind the others."""
        arrays = {**self.arrays, **{name: (self.end, dynamic_bytes) for name in self.dynamic}}
        return SharedSpace(blocks, arrays, self.end + dynamic_bytes)


def _registers(dtypes: Sequence[np.dtype[Any]], lanes: int) -> list[Array]:
    """Registers before they are written: whatever hardware left there."""
    made: list[Array] = [np.empty(0)] * len(dtypes)
    for dtype in set(dtypes):
        slots = [slot for slot, each in enumerate(dtypes) if each == dtype]
        poison = True if dtype.kind == "b" else np.iinfo(dtype).max
        for slot, row in zip(slots, np.full((len(slots), lanes), poison, dtype), strict=True):
            made[slot] = row
    return made


def _check(
    function: Function, target: str, grid: Triple, block: Triple, shared_bytes: int, arguments: bytes
) -> None:
    """Raises BadLaunch for what hardware refuses."""
    wrong = ""
    most_shared = 1024 * _MOST_SHARED.get(target.rstrip("af"), 227)
    total = function.shared_bytes + shared_bytes
    if any(not 1 <= each <= most for each, most in zip(grid, _GRID, strict=True)):
        wrong = f"its grid {grid} is not within 1 ... {_GRID}"
    elif any(not 1 <= each <= most for each, most in zip(block, _BLOCK, strict=True)):
        wrong = f"its blocks {block} are not within 1 ... {_BLOCK}"
    elif (threads := block[0] * block[1] * block[2]) > _MOST_THREADS:
        wrong = f"a block has {threads} threads, of which {_MOST_THREADS} are the most"
    elif function.required_threads not in (None, block):
        wrong = f"its blocks are {block} and have to be {function.required_threads}"
    elif function.max_threads is not None and threads > (most := int(np.prod(function.max_threads))):
        wrong = f"a block has {threads} threads, and the kernel was compiled for at most {most}"
    elif shared_bytes < 0 or total > most_shared:
        wrong = f"a block has {total} bytes of shared memory, of which {most_shared} are the most"
    elif len(arguments) != function.argument_bytes:
        wrong = f"its arguments are {len(arguments)} bytes and have to be {function.argument_bytes}"
    if wrong:
        raise BadLaunch(f"kernel {function.name} cannot be launched: {wrong}")
