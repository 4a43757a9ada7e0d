"""What is known of the processor without LLVM is what LLVM knows."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from arrayjit import processor
from arrayjit.targets.host import CPUS


@pytest.fixture(autouse=True)
def anew():
    yield
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()


def test_it_has_the_features_that_LLVM_says_it_has():
    known = llvm.get_host_cpu_features()
    for cpu in CPUS:
        for feature in cpu.features:
            assert (feature in processor.features()) == known.get(feature, False), feature


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_LLVM_is_asked(monkeypatch, platform):
    monkeypatch.setattr(processor.sys, "platform", platform)
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()
    known = llvm.get_host_cpu_features()
    assert processor.features() == {name for name, there in known.items() if there}
    assert processor.identity().startswith(llvm.get_host_cpu_name())


ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes
CPU implementer\t: 0x41
CPU part\t: 0xd0c

processor\t: 1
Features\t: other
"""


def write_cpuinfo(monkeypatch, folder, text):
    (folder / "cpuinfo").write_text(text)
    monkeypatch.setattr(processor, "_CPUINFO", str(folder / "cpuinfo"))
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()


def test_of_an_ARM_processor_linux_tells_other_things(monkeypatch, tmp_path):
    write_cpuinfo(monkeypatch, tmp_path, ARM)
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    assert processor.features() == {"fp", "neon", "evtstrm", "aes"}
    assert processor.identity() == "0x41 0xd0c aes evtstrm fp neon"


@pytest.mark.parametrize(("machine", "text"), [("aarch64", "flags\t: avx2 fma\n"), ("x86_64", ARM)])
def test_where_a_machine_is_emulated_the_features_of_the_other_one_are_not_its_own(
    monkeypatch, tmp_path, machine, text
):
    write_cpuinfo(monkeypatch, tmp_path, text)
    monkeypatch.setattr(processor.platform, "machine", lambda: machine)
    known = llvm.get_host_cpu_features()
    assert processor.features() == {name for name, there in known.items() if there}
