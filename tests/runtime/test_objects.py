"""Object files in memory: what they define can be called, what they need is found or named, and pages go."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from arrayjit.errors import CompilerBug
from arrayjit.runtime import compiler, machine_code, objects
from arrayjit.runtime.machine_code import loaded, process_address

TEXT = """
@table = internal constant [4 x i64] [i64 3, i64 1, i64 4, i64 1], align 64
@pointers = internal constant [2 x ptr] [ptr @first, ptr @second]
@count = internal global i64 0
@far = external global i8
declare ptr @memcpy(ptr, ptr, i64)
declare i64 @elsewhere(i64)

define i64 @first(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define internal i64 @second(i64 %i) noinline {
  %v = call i64 @elsewhere(i64 %i)
  ret i64 %v
}
define i64 @either(i64 %which, i64 %i) {
  %p = getelementptr ptr, ptr @pointers, i64 %which
  %f = load ptr, ptr %p
  %v = call i64 %f(i64 %i)
  ret i64 %v
}
define i64 @counted() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %new
}
define void @copied(ptr %to, ptr %from, i64 %size) {
  %r = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  ret void
}
define ptr @place() {
  ret ptr @far
}
"""

ELSEWHERE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda i: 100 + i)
NAMES = {"elsewhere": ctypes.cast(ELSEWHERE, ctypes.c_void_p).value, "far": 0x1234_5678_9ABC}

LOADERS = {"ours": objects.load, "LLVM's": compiler.engine_image}


@pytest.fixture(params=LOADERS)
def load(request):
    """A loader that works here: LLVM's own does everywhere."""
    return LOADERS[request.param if objects.can_load() else "LLVM's"]


@pytest.fixture
def file():
    return compiler.compiler().object_file(TEXT, "text")


def resolve(name):
    return NAMES.get(name) or process_address(name)


def function(image, name, *types):
    return ctypes.CFUNCTYPE(*types)(image.addresses[name])


def test_functions_find_their_data_each_other_and_what_is_elsewhere(load, file):
    image = load(file, resolve)
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    assert set(image.addresses) == {"first", "either", "counted", "copied", "place"}
    assert [function(image, "first", number, number)(i) for i in range(4)] == [3, 1, 4, 1]
    assert function(image, "either", number, number, number)(0, 2) == 4
    assert function(image, "either", number, number, number)(1, 2) == 102
    assert [function(image, "counted", number)() for _ in range(3)] == [1, 2, 3]
    assert function(image, "place", pointer)() == 0x1234_5678_9ABC
    source, copy = np.arange(9.0), np.zeros(9)
    function(image, "copied", None, pointer, pointer, number)(copy.ctypes.data, source.ctypes.data, 72)
    assert copy.tolist() == source.tolist()


def test_two_images_of_a_file_share_nothing(load, file):
    images = [load(file, resolve) for _ in range(2)]
    counted = [function(image, "counted", ctypes.c_int64) for image in images]
    assert [counted[0](), counted[0](), counted[1]()] == [1, 2, 1]


def test_a_name_that_is_nowhere_is_an_error_that_says_it(load, file):
    with pytest.raises(CompilerBug, match="elsewhere, which is not here"):
        load(file, lambda name: 0 if name == "elsewhere" else resolve(name))


def test_an_object_file_is_packed_and_unpacked(file):
    assert objects.ObjectFile.unpacked(file.packed()) == file
    assert set(file.needs) == {"memcpy", "elsewhere", "far"}


def pages(kind):
    """The ranges of addresses of a kind that the process has."""
    with open("/proc/self/maps") as lines:
        words = [line.split()[:2] for line in lines]
    return [range(*(int(end, 16) for end in place.split("-"))) for place, found in words if kind in found]


def executable(addresses):
    """How many of the addresses are code."""
    return sum(any(address in each for each in pages("x")) for address in addresses)


@pytest.mark.skipif(not objects.can_load(), reason="the memory of LLVM's own loader is LLVM's")
def test_pages_are_given_back_with_the_image_and_are_never_written_and_executed(file):
    both = pages("rwx")
    images = [objects.load(file, resolve) for _ in range(20)]
    addresses = [image.addresses["first"] for image in images]
    assert executable(addresses) == 20
    assert pages("rwx") == both
    del images
    gc.collect()
    assert executable(addresses) == 0


def test_text_is_compiled_once_for_all_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    phases = []
    for _ in range(2):
        seconds: dict[str, float] = {}
        assert loaded(TEXT, "text", resolve, seconds=seconds).addresses
        phases.append(set(seconds))
    assert phases == [{"codegen", "link"}, {"recall code", "link"}]


@pytest.mark.parametrize("what", ["processor", "compiler"])
def test_another_processor_or_compiler_finds_nothing(tmp_path, monkeypatch, what):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path))
    loaded(TEXT, "text", resolve)
    if what == "processor":
        monkeypatch.setattr(machine_code.processor, "identity", lambda: "another")
    else:
        monkeypatch.setattr(machine_code, "_compiler_identity", lambda: ("another",))
    seconds: dict[str, float] = {}
    loaded(TEXT, "text", resolve, seconds=seconds)
    assert "codegen" in seconds


def test_where_objects_are_not_loaded_by_ourselves_LLVM_does_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "can_load", lambda: False)
    image = loaded(TEXT, "text", resolve)
    assert isinstance(image.memory, compiler.llvm.ExecutionEngine)
    assert function(image, "first", ctypes.c_int64, ctypes.c_int64)(2) == 4
