"""A device whose memory is not the host's, for tests: the reference interpreter over a heap with an address
space of its own. Whoever takes one kind of address for the other crashes or raises."""

from __future__ import annotations

import ctypes
import weakref
from bisect import bisect_right
from itertools import count
from threading import Lock

from arrayjit.runtime.device import Machine
from arrayjit.runtime.host import HostMemory
from arrayjit.runtime.interp import InterpDriver

PAGE = 1 << 40
_pages = count(1 << 20)


class RemoteMemory:
    def __init__(self, nbytes):
        self.real = HostMemory(nbytes)
        self.nbytes = nbytes
        self.address = next(_pages) * PAGE


class RemoteExecutable:
    def __init__(self, driver, executable):
        self.seconds = executable.seconds
        self._driver = driver
        self._executable = executable

    def launch(self, pointers, bindings, workspace, pool=0):
        here = [self._driver.real_address(pointer) for pointer in pointers]
        return self._executable.launch(here, bindings, 0)


class RemoteDriver(InterpDriver):
    is_host = False

    def __init__(self, name="interp", devices=1):
        super().__init__(name)
        self._devices = devices
        self._heap = weakref.WeakValueDictionary()
        self._heap_lock = Lock()

    def num_devices(self):
        return self._devices

    def allocate(self, ordinal, nbytes):
        memory = RemoteMemory(nbytes)
        with self._heap_lock:
            self._heap[memory.address] = memory
        return memory

    def real_address(self, address):
        with self._heap_lock:
            pages = sorted(self._heap)
            page = pages[bisect_right(pages, address) - 1]
            memory = self._heap[page]
        assert page <= address <= page + memory.nbytes, f"{address:#x} is no address of the device"
        return memory.real.address + address - page

    def memset_zero(self, memory, offset, nbytes):
        ctypes.memset(memory.real.address + offset, 0, nbytes)

    def upload(self, memory, offset, array):
        assert offset + array.nbytes <= memory.nbytes
        ctypes.memmove(memory.real.address + offset, array.ctypes.data, array.nbytes)

    def download(self, memory, offset, array):
        assert offset + array.nbytes <= memory.nbytes
        ctypes.memmove(array.ctypes.data, memory.real.address + offset, array.nbytes)

    def copy(self, memory, offset, source, origin, start, nbytes):
        here = origin.real.address if isinstance(source, RemoteDriver) else origin.address
        ctypes.memmove(memory.real.address + offset, here + start, nbytes)

    def dlpack_device(self, ordinal):
        return None

    def load(self, code, ordinal=0):
        return RemoteExecutable(self, super().load(code, ordinal))


def remote_device(devices=1, limit=None):
    """The first device of a new machine."""
    return Machine(lambda: RemoteDriver(devices=devices), limit).get_device(0)
