"""`arrayjit.trace(file)`: what happened, as a file for Perfetto and Chrome, checked against the rules of the
trace event format, and by Perfetto itself; and names of compiled functions for `perf`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trace_processor
from perfetto.trace_processor import TraceProcessor

import arrayjit
from arrayjit.assignments import Node, accumulate, merge, program
from arrayjit.devices import MergeUse, compile, device_to_device, fresh_backend
from arrayjit.timeline import RECORDER

Event = dict[str, Any]
Query = Callable[[str], list[tuple[Any, ...]]]

REQUIRED = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "M": {"name", "pid", "tid", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Of a call, of one that is compiled already, and of work on two devices. Nobody has compiled anything
    before: the cache is of these tests alone."""
    folder = tmp_path_factory.mktemp("trace")
    file = folder / "t.json"

    @arrayjit.jit(target="llvm")
    def program(x: Any) -> Any:
        return np.exp(x).sum() + 1

    with pytest.MonkeyPatch.context() as patch, arrayjit.trace(file):
        patch.setenv("ARRAYJIT_CACHE_DIR", str(folder / "cache"))
        program(np.ones(1000))
        program(np.ones(1000))
        there = arrayjit.asarray(np.ones(1000), device="llvm") * 2.0
        (there.to("interp") + 1.0).block_until_ready()
    return read(file)


def read(file: Path) -> list[Event]:
    """The events of a file that keeps every rule."""
    content = file.read_bytes()
    trace = json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)
    assert trace.keys() == {"traceEvents", "displayTimeUnit"}
    found: list[Event] = trace["traceEvents"]
    for event in found:
        assert event.keys() - {"ph"} == REQUIRED[event["ph"]]
        assert all(type(event[key]) is int for key in ("pid", "tid"))
        assert all(event[key] >= 0 for key in ("ts", "dur") if key in event)
    return found


def spans(events: list[Event], category: str) -> list[Event]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def holds(outer: Event, inner: Event) -> bool:
    same = (outer["pid"], outer["tid"]) == (inner["pid"], inner["tid"])
    return same and outer["ts"] <= inner["ts"] and end(inner) <= end(outer) + 0.002


def end(event: Event) -> float:
    return float(event["ts"] + event["dur"])


def tracks(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    found: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    return found


def test_spans_of_a_track_lie_within_or_after_one_another(events: list[Event]) -> None:
    for track in tracks(events).values():
        open_until: list[float] = []
        for event in track:
            while open_until and open_until[-1] <= event["ts"] + 0.002:
                open_until.pop()
            assert not open_until or end(event) <= open_until[-1] + 0.002
            open_until.append(end(event))


def test_tracks_have_names(events: list[Event]) -> None:
    named = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    assert named.keys() == tracks(events).keys()
    assert {"MainThread", "llvm:0", "interp:0"} <= set(named.values())
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert processes == [f"python {os.getpid()}", "streams"]


def test_a_first_call_has_its_phases_and_passes_and_its_kernel_in_it(events: list[Event]) -> None:
    first, second, *_ = [event for event in spans(events, "call") if "program" in event["name"]]
    inside = [event["name"] for event in events if event["ph"] == "X" and holds(first, event)]
    assert inside[:2] == [first["name"], f"compile {first['name']}"]
    for phase in ("trace", "inline", "lower", "fuse", "vectorise", "emit", "link", "program"):
        assert phase in inside
    assert [event["name"] for event in events if event["ph"] == "X" and holds(second, event)] == [
        second["name"],
        "program",
    ]


def test_work_of_a_stream_is_on_its_track(events: list[Event]) -> None:
    (copy,) = spans(events, "copy")
    assert copy["name"] == "copy from llvm:0"
    tasks = spans(events, "task")
    assert len(tasks) == 2
    kernels = spans(events, "kernel")
    assert all(any(holds(task, kernel) for kernel in kernels) for task in tasks)


def test_what_waited_has_an_arrow_from_what_it_waited_for(events: list[Event]) -> None:
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert starts
    (copy,) = spans(events, "copy")
    made, _ = spans(events, "task")
    for number, start in starts.items():
        assert made["ts"] <= start["ts"] <= end(made)
        assert (start["pid"], start["tid"]) == (made["pid"], made["tid"])
        assert ends[number]["ts"] == copy["ts"]
        assert (ends[number]["pid"], ends[number]["tid"]) == (copy["pid"], copy["tid"])


def on_two_devices(target: str) -> None:
    """Both add, then one gets what the other has; another stream of its waits for that."""
    total = Node("total", (1000,))
    backend = fresh_backend(target, devices=2)
    near, far = (
        backend.init(device).init_from_host(total.tensor, np.zeros(1000))
        for device in backend.machine.devices()
    )
    growing = compile(backend, program(accumulate("add", total[...], 1.0), name="grow"), shared=True)
    near_grow, far_grow = near.link(growing), far.link(growing)
    bring = device_to_device(total.tensor, dst=near_grow.context, src=far_grow.context, into=MergeUse.COPY)
    join = program(accumulate("add", total[...], merge(total)[...]), name="join")
    joined = bring.context.link(compile(backend, join))
    for routine in (near_grow, far_grow, bring):
        routine.schedule()
    side = near.device.new_stream()
    side.wait_for(joined.schedule())
    side.await_()
    result = np.empty(1000)
    joined.context.to_host(total.tensor, result)
    near.device.await_()
    assert (result == 2).all()


@pytest.mark.parametrize("target", ["llvm", "c", "cuda-sim"])
def test_arrows_between_the_streams_of_a_target(target: str, tmp_path: Path) -> None:
    with arrayjit.trace(tmp_path / "t.json"):
        on_two_devices(target)
    events = read(tmp_path / "t.json")
    done = {"copy": spans(events, "copy"), "task": spans(events, "task")}
    names = {}
    for event in events:
        if event["ph"] in "sf":
            held = [span for span in done["copy"] + done["task"] if holds(span, {**event, "dur": 0})]
            (names[event["ph"], event["id"]],) = (span["name"] for span in held)
    arrows = {(names["s", number], names["f", number]) for _, number in names}
    assert arrows == {("grow", "copy total"), ("join", "event")}


@pytest.fixture(scope="module", params=["llvm", "cuda-sim"])
def query(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """The rows that SQL finds in the trace of a call and of a program on two devices, as Perfetto's Python
    package and its trace processor have loaded it."""

    @arrayjit.jit(target="sync_llvm")
    def called(x: Any) -> Any:
        return np.exp(x).sum()

    file = tmp_path_factory.mktemp("perfetto") / "t.json.gz"
    with arrayjit.trace(file):
        called(np.ones(1000))
        on_two_devices(request.param)
    with (
        trace_processor.serving() as address,
        TraceProcessor(trace=str(file), addr=address) as processor,
    ):
        yield lambda sql: [tuple(vars(row).values()) for row in processor.query(sql)]


def test_Perfetto_finds_nothing_wrong(query: Query) -> None:
    assert query("select name from stats where severity in ('error', 'data_loss') and value > 0") == []


def test_Perfetto_has_the_work_of_each_stream_on_its_track(query: Query, request: Any) -> None:
    target = request.node.callspec.params["query"]
    rows = query(
        "select thread.name as track, slice.category as category, slice.name as name from slice "
        "join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid) "
        "where process.name = 'streams' order by ts, depth"
    )
    tracks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for track, *what in rows:
        tracks[track].append(tuple(what))
    grown = [("copy", "upload"), ("task", "grow"), ("kernel", "grow")]
    near = [*grown, ("copy", "copy total"), ("task", "join"), ("kernel", "join"), ("copy", "download")]
    assert tracks == {f"{target}:0": near, f"{target}:1": grown, f"{target}:0 stream 1": [("task", "event")]}


def test_Perfetto_has_the_kernel_within_its_call(query: Query) -> None:
    rows = query(
        "select parent.name as call, parent.category as category, thread.name as thread from slice "
        "join slice parent on parent.id = slice.parent_id "
        "join thread_track on slice.track_id = thread_track.id join thread using (utid) "
        "where slice.name = 'called' and slice.category = 'kernel'"
    )
    ((call, *where),) = rows
    assert call.endswith("called")
    assert where == ["call", "MainThread"]


def test_Perfetto_has_the_arrows(query: Query) -> None:
    rows = query(
        "select sender.name as sender, receiver.name as receiver, sender.ts < receiver.ts as later from flow "
        "join slice sender on sender.id = slice_out join slice receiver on receiver.id = slice_in"
    )
    assert sorted(rows) == [("grow", "copy total", 1), ("join", "event", 1)]


def test_calls_of_all_threads_are_recorded_also_of_functions_called_without_python(tmp_path: Path) -> None:
    @arrayjit.jit
    def shared(x: Any) -> Any:
        return x + 1

    def calls() -> Iterator[None]:
        for _ in range(60):
            shared(np.ones(3))
            yield

    list(calls())
    with arrayjit.trace(tmp_path / "t.json"):
        threads = [threading.Thread(target=lambda: list(calls()), name=f"worker {n}") for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = read(tmp_path / "t.json")
    assert len(spans(events, "call")) == 120
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {"worker 0", "worker 1"}
    hits = shared.stats().hits
    list(calls())
    assert shared.stats().hits == hits + 60


def test_a_trace_is_written_if_the_block_raises_and_may_be_compressed(tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    with pytest.raises(FloatingPointError), arrayjit.trace(file):
        arrayjit.jit(lambda x: np.log(x), check="nan")(np.array([-1.0]))
    assert spans(read(file), "call")
    assert RECORDER.timeline is None


def test_nothing_happened(tmp_path: Path) -> None:
    with arrayjit.trace(tmp_path / "t.json"):
        pass
    assert read(tmp_path / "t.json") == []


def test_one_trace_at_a_time_and_only_where_it_can_be_written(tmp_path: Path) -> None:
    with arrayjit.trace(tmp_path / "t.json"):
        with pytest.raises(RuntimeError, match="recorded already"), arrayjit.trace(tmp_path / "u.json"):
            pass
        assert RECORDER.timeline is not None
    with pytest.raises(FileNotFoundError), arrayjit.trace(tmp_path / "nowhere" / "t.json"):
        pass
    assert RECORDER.timeline is None


PERF = """
import os, pathlib, numpy as np, arrayjit

@arrayjit.jit(target="sync_llvm")
def blur(x):
    return np.exp(x) + 1

blur(np.ones(100))
print(pathlib.Path("/tmp", f"perf-{os.getpid()}.map").read_text())
"""


@pytest.mark.parametrize("debugger", ["0", "1"])
def test_perf_is_told_the_names_of_compiled_functions(debugger: str) -> None:
    environment = {**os.environ, "ARRAYJIT_PERF_MAP": "1", "ARRAYJIT_GDB": debugger}
    command = [sys.executable, "-c", PERF]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = [line.split(" ") for line in ran.stdout.split("\n") if line]
    names = [name for _, _, name in lines]
    assert {"blur_kernel", "blur_kernel.body"} <= set(names)
    ranges = sorted((int(start, 16), int(start, 16) + int(size, 16)) for start, size, _ in lines)
    assert all(low < high for low, high in ranges)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))
