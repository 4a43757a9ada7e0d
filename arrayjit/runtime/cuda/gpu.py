"""One GPU: its memory, and what has become of it.

Memory is taken from CUDA's pool, and given back to it, in the order of one stream, the *home* lane. So what
is freed there can be had again at once by later work on it, and nothing is waited for. Other lanes wait for
home once it has handed out memory, and home waits for them before it takes some back.

What is done outside of queues is done on a lane of its own, *aside*, and waited for.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

from ...errors import DeviceError
from .api import Api, ApiError, OutOfDeviceMemory
from .lane import Lane, lane_in_use

__all__ = ["Gpu", "GpuMemory"]


class GpuMemory:
    """Memory of a GPU, given back when the object dies; with an `owner` it is the owner's."""

    __slots__ = ("__weakref__", "address", "gpu", "nbytes", "owner")

    def __init__(self, gpu: Gpu, address: int, nbytes: int, owner: object = None) -> None:
        self.gpu = gpu
        self.address = address
        self.nbytes = nbytes
        self.owner = owner
        if owner is None:
            weakref.finalize(self, gpu.leave, address).atexit = False


class Gpu:
    """A device of an Api. `error` is what made it unusable, if anything has; `lanes` are those of all
    devices, which copy from one another."""

    def __init__(self, api: Api, ordinal: int, name: str, lanes: set[Lane]) -> None:
        self.api = api
        self.ordinal = ordinal
        self.name = name
        self.info = api.info(ordinal)
        self.error: DeviceError | None = None
        self.handed_out = 0
        api.use(ordinal)
        self.home = Lane(api, ordinal, api.stream())
        self._aside = Lane(api, ordinal, api.stream())
        self._lanes = lanes
        self._lanes.update((self.home, self._aside))
        self._is_home_taken = False
        self._left: deque[Callable[[], None]] = deque()
        self._lock = RLock()

    def lane(self) -> Lane:
        """A lane for a queue: the first has home."""
        with self._lock:
            if not self._is_home_taken:
                self._is_home_taken = True
                return self.home
        with self.asked():
            lane = Lane(self.api, self.ordinal, self.api.stream())
        self._lanes.add(lane)
        return lane

    def has(self, lane: Lane) -> bool:
        """Whether a lane is one of this device's."""
        return lane.api is self.api and lane.ordinal == self.ordinal

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Operations of the Api on this device. Raises DeviceError for what they raise but the want of
        memory, and at once where the device is dead."""
        if self.error is not None:
            raise self._dead()
        try:
            self.api.use(self.ordinal)
            yield
        except OutOfDeviceMemory:
            raise
        except ApiError as error:
            raise self._explained(error) from error.__cause__

    @contextmanager
    def at(self) -> Iterator[Lane]:
        """Operations on the lane that this thread is on, where it is this device's; otherwise aside."""
        lane = lane_in_use()
        if lane is not None and self.has(lane):
            with self.asked():
                yield lane
            return
        with self._aside.lock, self.asked():
            self.follow(self._aside)
            yield self._aside
            self._aside.sync()

    def allocate(self, nbytes: int) -> GpuMemory:
        """Memory with any contents. Raises MemoryError."""
        nbytes = max(nbytes, 1)
        with self._lock, self.asked():
            self.clear()
            try:
                address = self.api.alloc(nbytes, self.home.stream)
            except OutOfDeviceMemory:
                self.api.sync_device()
                self.clear()
                address = self.api.alloc(nbytes, self.home.stream)
            self.handed_out += 1
        return GpuMemory(self, address, nbytes)

    def follow(self, lane: Lane) -> None:
        """Let a lane's next work come after all memory was handed out."""
        if lane is not self.home:
            lane.follow(self.home)

    def lend(self) -> int:
        """A stream of CUDA's: what is on it, all later work comes after."""
        with self._lock:
            self.handed_out += 1
        return self.home.stream

    def follow_stream(self, stream: int) -> None:
        """Let all later work come after what another library's stream was given."""
        with self._lock, self.asked():
            event = self.home.take_event()
            self.api.record(event, stream)
            self.api.wait(self.home.stream, event)
            self.home.give_event(event)
            self.handed_out += 1

    def leave(self, address: int) -> None:
        """Nothing refers to this memory any more. The collector says so at any moment, in any thread."""
        self._left.append(lambda: self.api.free(address, self.home.stream))

    def leave_graph(self, graph: int) -> None:
        """As `leave`."""
        self._left.append(lambda: self.api.destroy_graph(graph))

    def leave_module(self, module: int) -> None:
        """As `leave`."""

        def unload() -> None:
            self.api.sync_device()
            self.api.unload(module)

        self._left.append(unload)

    def leave_lane(self, lane: Lane) -> None:
        """As `leave`."""
        lane.is_left = lane is not self.home

    def clear(self) -> None:
        """Give back what was left, after the work that uses it."""
        if self._left:
            for lane in tuple(self._lanes):
                self._await_on_home(lane)
            self.api.use(self.ordinal)
            while self._left:
                self._left.popleft()()

    def close(self) -> None:
        """Give all back."""
        self.error = DeviceError(f"{self.name} is closed", fix="get a device anew after reinitialize()")
        self._left.clear()
        self._lanes.difference_update([lane for lane in self._lanes if self.has(lane)])
        self.api.release(self.ordinal)

    def _await_on_home(self, lane: Lane) -> None:
        """Let home come after what a lane was given; one that was left, and has nothing to do, goes."""
        if lane is self.home:
            return
        try:
            self.api.use(lane.ordinal)
            lane.look()
            event = lane.mark()
            if event:
                self.api.use(self.ordinal)
                self.api.wait(self.home.stream, event)
            elif lane.is_left:
                self._lanes.discard(lane)
                lane.close()
        except ApiError:
            if self.has(lane):
                raise

    def _explained(self, error: ApiError) -> DeviceError:
        """What an operation raised, for the user; what is sticky is the end of the device."""
        if not error.is_sticky:
            return DeviceError(f"{self.name}: {error}", fix="see what CUDA says of it")
        launched = [name for lane in tuple(self._lanes) if self.has(lane) for name in lane.recent]
        self.error = DeviceError(
            f"{self.name} has failed: {error}",
            details=tuple(f"it may have been {name}" for name in reversed(launched)),
            fix="mend the kernel, and use other devices or fresh_backend() until then",
        )
        return self.error

    def _dead(self) -> DeviceError:
        assert self.error is not None
        return DeviceError(
            f"{self.name} cannot be used any more: {self.error.what}",
            details=self.error.details[:4],
            fix=self.error.fix,
        )
